/**
 * The keys of a proxy. Each use of a secret has a key of its own (RFC 5869): stored values and cookies are encrypted, forms
 * are signed, and the engine signs its cookies.
 */
import * as Effect from "effect/Effect"
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { type Cipher, makeCipher } from "../shared/cipher.ts"

/** Encrypts and signs with the first key, and accepts those of all. */
export interface Sealing extends Cipher {
  /** A code that only these keys can make. */
  readonly sign: (text: string) => string
  /** Whether one of the keys made the code. */
  readonly isSigned: (text: string, code: string) => boolean
  /** Keys for the cookies of the engine, the first of which signs. */
  readonly cookieKeys: ReadonlyArray<string>
}

const derive = (secret: string, use: string): Buffer => Buffer.from(hkdfSync("sha256", secret, "skein proxy", use, 32))

/** Makes the sealing of some secrets, which `keyProblem` has checked. */
export const makeSealing = (secrets: ReadonlyArray<string>): Effect.Effect<Sealing> => {
  const signing = secrets.map((secret) => derive(secret, "forms"))
  const code = (key: Buffer, text: string): string => createHmac("sha256", key).update(text).digest("base64url")
  return Effect.map(makeCipher(secrets, "proxy"), (cipher) => ({
    ...cipher,
    sign: (text) => code(signing[0]!, text),
    isSigned: (text, given) =>
      signing.some((key) => {
        const [wanted, bytes] = [Buffer.from(code(key, text)), Buffer.from(given)]
        return wanted.length === bytes.length && timingSafeEqual(wanted, bytes)
      }),
    cookieKeys: secrets.map((secret) => derive(secret, "cookies").toString("base64url"))
  }))
}

/**
 * The hash of an identifier. It needs no key: the identifiers that are secrets, such as refresh tokens, are random texts
 * of more than 250 bits. So the hash stays the same when the keys are replaced.
 */
export const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url")
