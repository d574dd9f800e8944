/**
 * The handshake of two nodes on a new connection. The node that has opened it sends a greeting with the numbers of both, and the
 * other one answers. With keys, each side proves with a fresh nonce that it has one, and both derive the keys of this
 * connection from it. They encrypt and authenticate all further frames, in their order.
 */
import { createSecretKey, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto"
import { FrameCipher, type Frames } from "./nodeFrames.ts"

// A node of another version is refused.
const version = 1

interface Greeting {
  readonly version: number
  /** The nodes that have opened and accepted the connection. */
  readonly from: number
  readonly to: number
  /** A random value, and a text that only one of the keys produces of it; undefined without keys. */
  readonly nonce?: string | undefined
  readonly proof?: string | undefined
}

interface Welcome {
  readonly nonce?: string | undefined
}

/** The keys of a fleet; `undefined` if certificates alone authenticate its nodes. */
export type Secrets = ReadonlyArray<Uint8Array> | undefined

const derive = (secret: Uint8Array, salt: string, info: string): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, `skein nodes ${info}`, 32))

const newNonce = (): string => randomBytes(32).toString("base64url")

const proofOf = (secret: Uint8Array, { from, nonce = "", to }: Pick<Greeting, "from" | "nonce" | "to">): string =>
  derive(secret, nonce, `${from} to ${to} proof`).toString("base64url")

const secretOf = (secrets: ReadonlyArray<Uint8Array>, greeting: Greeting): Uint8Array | undefined => {
  const proof = Buffer.from(String(greeting.proof))
  return secrets.find((secret) => {
    const own = Buffer.from(proofOf(secret, greeting))
    return own.length === proof.length && timingSafeEqual(own, proof)
  })
}

/** The cipher of the node that has opened a connection, or of the other one. */
const cipherOf = (
  secret: Uint8Array,
  { from, nonce, to }: Greeting,
  answer: string,
  isOpener: boolean
): FrameCipher => {
  const [requests, answers] = ["requests", "answers"].map((direction) =>
    createSecretKey(derive(secret, `${nonce} ${answer}`, `${from} to ${to} ${direction}`))
  )
  return isOpener ? new FrameCipher(requests!, answers!) : new FrameCipher(answers!, requests!)
}

const encode = (value: Greeting | Welcome): Buffer => Buffer.from(JSON.stringify(value))

/** Parses a part of the handshake. The bytes of another program are not JSON. */
const parse = <A>(bytes: Buffer): Partial<A> => {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === "object" && value !== null ? value : {}
  } catch {
    return {}
  }
}

const isNonce = (value: unknown): value is string => typeof value === "string" && value.length === 43

// The first frame of each side after the handshake proves that it has the keys. An empty frame instead of it is a refusal.
const ready = Buffer.from("ready")
const refusal = Buffer.alloc(0)

/** Makes the nodes of a connection known to each other, as the node that has opened it. `done` reports whether it was accepted. */
export const greet = (
  frames: Frames,
  { from, secrets, to }: { readonly from: number; readonly secrets: Secrets; readonly to: number },
  done: (isAccepted: boolean) => void
): void => {
  const secret = secrets?.[0]
  const nonce = secret && newNonce()
  const greeting = { version, from, to, nonce, proof: secret && proofOf(secret, { from, nonce, to }) }
  frames.receive = (bytes) => {
    const answer = parse<Welcome>(bytes).nonce
    if (bytes.length === 0 || (secret === undefined ? answer !== undefined : !isNonce(answer))) return done(false)
    frames.cipher = secret && cipherOf(secret, greeting, answer!, true)
    frames.receive = (bytes) => {
      if (!bytes.equals(ready)) return done(false)
      frames.send(ready)
      done(true)
    }
  }
  frames.send(encode(greeting))
}

/** Refuses a connection. Others learn nothing: the answer is always the same. */
export const refuse = (frames: Frames): void => frames.end(refusal)

/**
 * Waits for the greeting of the node that has opened a connection, and refuses others. `done` gets its number.
 */
export const welcome = (
  frames: Frames,
  { isKnown, node, secrets }: {
    readonly isKnown: (from: number) => boolean
    readonly node: number
    readonly secrets: Secrets
  },
  done: () => void
): void => {
  frames.receive = (bytes) => {
    const greeting = parse<Greeting>(bytes) as Greeting
    const { from, nonce, to } = greeting
    const isForThis = greeting.version === version && to === node && from !== node && isKnown(from)
    const secret = isForThis && isNonce(nonce) ? secretOf(secrets ?? [], greeting) : undefined
    if (!isForThis || (secrets === undefined ? nonce !== undefined : secret === undefined)) return refuse(frames)
    const answer = secret && newNonce()
    frames.send(encode({ nonce: answer }))
    frames.cipher = secret && cipherOf(secret, greeting, answer!, false)
    frames.send(ready)
    frames.receive = (bytes) => bytes.equals(ready) ? done() : void frames.socket.destroy()
  }
}
