/**
 * The encryption of stored texts, for token stores and for the store of a proxy: AES-256-GCM by WebCrypto, with keys
 * derived by HKDF-SHA256. An encrypted text names its key by a hint of four bytes, so that decryption tries one key only.
 */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/**
 * A secret of at least 32 bytes, or a text of at least 32 bytes in UTF-8, from a random source (`openssl rand -base64
 * 32`).
 */
export type Key = Uint8Array | string | Redacted.Redacted<string>

/** Encrypts with the first key, and decrypts with all of them. */
export interface Cipher {
  /** Encrypts a text for one use, which is authenticated and not secret. */
  readonly encrypt: (text: string, use: string) => Effect.Effect<string>
  /** Returns `undefined` for a text that was not encrypted for this use with one of the keys. */
  readonly decrypt: (encrypted: string, use: string) => Effect.Effect<string | undefined>
  /** Whether a text was encrypted with the first key: otherwise it needs a new encryption before its key is removed. */
  readonly isCurrent: (encrypted: string) => boolean
}

/** What the texts are of. The keys of one secret differ for each. */
export type Purpose = "proxy" | "tokens"

const minKeyBytes = 32
const nonceBytes = 12

/** Marks an encrypted text. Values of `OAuth` and of a proxy are JSON and never begin so. */
const prefix = "skein.1."

const utf8Encoder = new TextEncoder()
const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

interface DerivedKey {
  readonly hint: string
  readonly key: CryptoKey
}

const bytesOf = (key: Key): Uint8Array =>
  key instanceof Uint8Array ? key : utf8Encoder.encode(typeof key === "string" ? key : Redacted.value(key))

const derive = async (secret: Uint8Array, purpose: Purpose): Promise<DerivedKey> => {
  const { subtle } = crypto
  const material = await subtle.importKey("raw", new Uint8Array(secret), "HKDF", false, ["deriveKey", "deriveBits"])
  const parameters = (info: string) => ({
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: utf8Encoder.encode(`skein ${purpose} ${info}`)
  })
  const [key, hint] = await Promise.all([
    subtle.deriveKey(parameters("key"), material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]),
    subtle.deriveBits(parameters("hint"), material, 32)
  ])
  return { hint: Base64Url.encode(new Uint8Array(hint)), key }
}

// JSON keeps lone surrogates, which UTF-8 does not have.
const encrypt = async ({ hint, key }: DerivedKey, text: string, use: string): Promise<string> => {
  const iv = crypto.getRandomValues(new Uint8Array(nonceBytes))
  const parameters = { name: "AES-GCM", iv, additionalData: utf8Encoder.encode(JSON.stringify(use)) }
  const ciphertext = await crypto.subtle.encrypt(parameters, key, utf8Encoder.encode(JSON.stringify(text)))
  const bytes = new Uint8Array(nonceBytes + ciphertext.byteLength)
  bytes.set(iv)
  bytes.set(new Uint8Array(ciphertext), nonceBytes)
  return `${prefix}${hint}.${Base64Url.encode(bytes)}`
}

const decrypt = async (
  keys: ReadonlyArray<DerivedKey>,
  encrypted: string,
  use: string
): Promise<string | undefined> => {
  const [hint, data = ""] = encrypted.slice(prefix.length).split(".")
  const key = keys.find((key) => key.hint === hint)
  const decoded = Base64Url.decode(data)
  if (!isEncrypted(encrypted) || key === undefined || Result.isFailure(decoded)) return undefined
  const bytes = new Uint8Array(decoded.success)
  const parameters = {
    name: "AES-GCM",
    iv: bytes.subarray(0, nonceBytes),
    additionalData: utf8Encoder.encode(JSON.stringify(use))
  }
  try {
    const text = await crypto.subtle.decrypt(parameters, key.key, bytes.subarray(nonceBytes))
    return JSON.parse(utf8Decoder.decode(text)) as string
  } catch {
    // It was changed, or moved from another use.
    return undefined
  }
}

/** Whether a text is encrypted, with whatever key. */
export const isEncrypted = (text: string): boolean => text.startsWith(prefix)

/** Returns what is wrong with the keys, if anything. */
export const keyProblem = (keys: ReadonlyArray<Key>): string | undefined => {
  if (keys.length === 0) return "no key for the encryption of tokens"
  const short = keys.findIndex((key) => bytesOf(key).length < minKeyBytes)
  return short < 0 ? undefined : `key ${short + 1} for the encryption of tokens has less than ${minKeyBytes} bytes`
}

/** A cipher with these keys, which have no problem. */
export const makeCipher = (keys: ReadonlyArray<Key>, purpose: Purpose): Effect.Effect<Cipher> =>
  Effect.map(
    Effect.promise(() => Promise.all(keys.map((key) => derive(bytesOf(key), purpose)))),
    (derived): Cipher => ({
      isCurrent: (encrypted) => encrypted.startsWith(`${prefix}${derived[0]!.hint}.`),
      encrypt: (text, use) => Effect.promise(() => encrypt(derived[0]!, text, use)),
      decrypt: (encrypted, use) => Effect.promise(() => decrypt(derived, encrypted, use))
    })
  )
