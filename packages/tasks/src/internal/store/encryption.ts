/**
 * Seals and opens with WebCrypto. A sealed text names its key by a hint of four bytes, so that one try is enough.
 */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import { TaskError } from "../../TaskError.ts"
import { curt } from "../text.ts"

/** What seals and opens texts: that of `Encryption.layer`, or one of your own (a key service). */
export interface Sealer {
  /** `about` says what the text is and whose; it is no secret, and authenticated. */
  readonly seal: (text: string, about: string) => Effect.Effect<string, TaskError>
  /** Fails with `Key` for what it did not seal about the same thing. */
  readonly open: (sealed: string, about: string) => Effect.Effect<string, TaskError>
  /** Whether texts that are not encrypted are read (`Encryption.Options`). */
  readonly readPlain: boolean
}

const nonceSize = 12
const utf8 = new TextEncoder()
const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type CryptoKey = Awaited<ReturnType<typeof globalThis.crypto.subtle.importKey>>

interface Derived {
  readonly hint: string
  readonly key: CryptoKey
}

const derive = async (secret: Uint8Array): Promise<Derived> => {
  const { subtle } = globalThis.crypto
  const material = await subtle.importKey("raw", new Uint8Array(secret), "HKDF", false, ["deriveKey", "deriveBits"])
  const parameters = (info: string) => ({
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: utf8.encode(`skein tasks ${info}`)
  })
  const [key, hint] = await Promise.all([
    subtle.deriveKey(parameters("key"), material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]),
    subtle.deriveBits(parameters("hint"), material, 32)
  ])
  return { hint: Base64Url.encode(new Uint8Array(hint)), key }
}

const seal = async ({ hint, key }: Derived, plain: string, about: string): Promise<string> => {
  const { crypto } = globalThis
  const iv = crypto.getRandomValues(new Uint8Array(nonceSize))
  const parameters = { name: "AES-GCM", iv, additionalData: utf8.encode(about) }
  const sealed = await crypto.subtle.encrypt(parameters, key, utf8.encode(plain))
  const whole = new Uint8Array(nonceSize + sealed.byteLength)
  whole.set(iv)
  whole.set(new Uint8Array(sealed), nonceSize)
  return `${hint}.${Base64Url.encode(whole)}`
}

const open = async (keys: ReadonlyArray<Derived>, sealed: string, about: string): Promise<string | undefined> => {
  const dot = sealed.indexOf(".")
  const key = keys.find(({ hint }) => hint === sealed.slice(0, dot))
  const decoded = Base64Url.decode(sealed.slice(dot + 1))
  if (key === undefined || Result.isFailure(decoded)) return undefined
  const bytes = new Uint8Array(decoded.success)
  const parameters = { name: "AES-GCM", iv: bytes.subarray(0, nonceSize), additionalData: utf8.encode(about) }
  try {
    return text.decode(await globalThis.crypto.subtle.decrypt(parameters, key.key, bytes.subarray(nonceSize)))
  } catch {
    // Tampered with, or moved.
    return undefined
  }
}

const failure = (about: string) =>
  new TaskError({
    reason: "Key",
    message: `What is kept as "${curt(about)}" cannot be opened: sealed with a key that is not given, or tampered with`
  })

/** The first secret seals, all of them open. */
export const makeSealer = (secrets: ReadonlyArray<Uint8Array>, readPlain: boolean): Effect.Effect<Sealer> =>
  Effect.map(Effect.promise(() => Promise.all(secrets.map(derive))), (keys): Sealer => ({
    readPlain,
    seal: (text, about) => Effect.promise(() => seal(keys[0]!, text, about)),
    open: (sealed, about) =>
      Effect.flatMap(
        Effect.promise(() => open(keys, sealed, about)),
        (text) => text === undefined ? Effect.fail(failure(about)) : Effect.succeed(text)
      )
  }))
