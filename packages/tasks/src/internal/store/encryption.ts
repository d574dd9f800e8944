/**
 * Encrypts texts with WebCrypto: AES-256-GCM, with keys derived by HKDF-SHA256. An encrypted text names its key by a
 * hint of four bytes, so that decryption tries one key only.
 */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import { KeyError, TaskError } from "../../TaskError.ts"
import { redactTaskIds } from "../text.ts"

/**
 * Encrypts and decrypts stored texts. `Encryption.make` returns one; an application may implement another, on a key
 * service for instance.
 */
export interface Cipher {
  /** Encrypts a text. `associatedData` names the task and the use of the text. It is authenticated, and not secret. */
  readonly encrypt: (text: string, associatedData: string) => Effect.Effect<string, TaskError>
  /**
   * Decrypts a text. Fails with `KeyError` for a text that was not encrypted with the same associated data and one of
   * the keys.
   */
  readonly decrypt: (encrypted: string, associatedData: string) => Effect.Effect<string, TaskError>
  /** Whether texts that are not encrypted are read. See `Encryption.Options`. */
  readonly readPlaintext: boolean
}

const nonceBytes = 12
const utf8Encoder = new TextEncoder()
const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type CryptoKey = Awaited<ReturnType<typeof globalThis.crypto.subtle.importKey>>

interface DerivedKey {
  readonly hint: string
  readonly key: CryptoKey
}

const derive = async (secret: Uint8Array): Promise<DerivedKey> => {
  const { subtle } = globalThis.crypto
  const material = await subtle.importKey("raw", new Uint8Array(secret), "HKDF", false, ["deriveKey", "deriveBits"])
  const parameters = (info: string) => ({
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: utf8Encoder.encode(`skein tasks ${info}`)
  })
  const [key, hint] = await Promise.all([
    subtle.deriveKey(parameters("key"), material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]),
    subtle.deriveBits(parameters("hint"), material, 32)
  ])
  return { hint: Base64Url.encode(new Uint8Array(hint)), key }
}

const encrypt = async ({ hint, key }: DerivedKey, text: string, associatedData: string): Promise<string> => {
  const { crypto } = globalThis
  const iv = crypto.getRandomValues(new Uint8Array(nonceBytes))
  const parameters = { name: "AES-GCM", iv, additionalData: utf8Encoder.encode(associatedData) }
  const ciphertext = await crypto.subtle.encrypt(parameters, key, utf8Encoder.encode(text))
  const bytes = new Uint8Array(nonceBytes + ciphertext.byteLength)
  bytes.set(iv)
  bytes.set(new Uint8Array(ciphertext), nonceBytes)
  return `${hint}.${Base64Url.encode(bytes)}`
}

const decrypt = async (
  keys: ReadonlyArray<DerivedKey>,
  encrypted: string,
  associatedData: string
): Promise<string | undefined> => {
  const dot = encrypted.indexOf(".")
  const key = keys.find(({ hint }) => hint === encrypted.slice(0, dot))
  const decoded = Base64Url.decode(encrypted.slice(dot + 1))
  if (key === undefined || Result.isFailure(decoded)) return undefined
  const bytes = new Uint8Array(decoded.success)
  const parameters = {
    name: "AES-GCM",
    iv: bytes.subarray(0, nonceBytes),
    additionalData: utf8Encoder.encode(associatedData)
  }
  try {
    return utf8Decoder.decode(
      await globalThis.crypto.subtle.decrypt(parameters, key.key, bytes.subarray(nonceBytes))
    )
  } catch {
    // The text was changed, or moved from another place.
    return undefined
  }
}

const cannotDecrypt = (associatedData: string) =>
  new TaskError({
    reason: new KeyError({
      message: `cannot decrypt the stored text "${
        redactTaskIds(associatedData)
      }": its key is not configured, or it was changed`
    })
  })

/** A cipher with these secrets: the first one encrypts, and all of them decrypt. */
export const makeCipher = (secrets: ReadonlyArray<Uint8Array>, readPlaintext: boolean): Effect.Effect<Cipher> =>
  Effect.map(Effect.promise(() => Promise.all(secrets.map(derive))), (keys): Cipher => ({
    readPlaintext,
    encrypt: (text, associatedData) => Effect.promise(() => encrypt(keys[0]!, text, associatedData)),
    decrypt: (encrypted, associatedData) =>
      Effect.flatMap(
        Effect.promise(() => decrypt(keys, encrypted, associatedData)),
        (text) => text === undefined ? Effect.fail(cannotDecrypt(associatedData)) : Effect.succeed(text)
      )
  }))
