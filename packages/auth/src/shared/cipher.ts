/**
 * The encryption of stored texts, for token stores and for the store of a proxy, by the `Sealer` of the runtime. The keys of
 * one secret differ for each purpose.
 */
import * as Sealer from "@skein/runtime/Sealer"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

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

const minKeyBytes = 32

/** Marks an encrypted text. Values of `OAuth` and of a proxy are JSON and never begin so. */
const prefix = "skein.1."

const utf8 = new TextEncoder()

const bytesOf = (key: Key): Uint8Array =>
  key instanceof Uint8Array ? key : utf8.encode(typeof key === "string" ? key : Redacted.value(key))

/** Whether a text is encrypted, with any key. */
export const isEncrypted = (text: string): boolean => text.startsWith(prefix)

/** Returns the problem of the keys, or `undefined`. */
export const keyProblem = (keys: ReadonlyArray<Key>): string | undefined => {
  if (keys.length === 0) return "no key for the encryption of tokens"
  const short = keys.findIndex((key) => bytesOf(key).length < minKeyBytes)
  return short < 0 ? undefined : `key ${short + 1} for the encryption of tokens has less than ${minKeyBytes} bytes`
}

/** A cipher with these keys, which have no problem. */
export const makeCipher = (keys: ReadonlyArray<Key>, purpose: "proxy" | "tokens"): Effect.Effect<Cipher> =>
  Effect.map(
    Effect.promise(() => Sealer.make(keys.map(bytesOf), purpose)),
    (sealer): Cipher => ({
      isCurrent: (encrypted) => isEncrypted(encrypted) && sealer.isCurrent(encrypted.slice(prefix.length)),
      // JSON keeps lone surrogates, which UTF-8 does not have.
      encrypt: (text, use) =>
        Effect.map(
          Effect.promise(() => sealer.seal(JSON.stringify(text), JSON.stringify(use))),
          (sealed) => prefix + sealed
        ),
      decrypt: (encrypted, use) =>
        isEncrypted(encrypted)
          ? Effect.map(
            Effect.promise(() => sealer.open(encrypted.slice(prefix.length), JSON.stringify(use))),
            (text) => text === undefined ? undefined : JSON.parse(text) as string
          )
          : Effect.succeed(undefined)
    })
  )
