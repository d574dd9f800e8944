/**
 * Encryption at rest for any token store: AES-256-GCM by WebCrypto, with keys derived by HKDF-SHA256. Keys of the store,
 * which are names of accounts and addresses of servers, stay readable where the store below has them. A value is bound to
 * its key: one that was moved to another key is refused.
 *
 * A value that none of the keys decrypts fails with the reason `KeyError`. It stays as it is, so that a process with a
 * wrong key loses nothing: with the right key it can be read again.
 *
 * **To rotate keys**, add the new key in second place in every process, then move it to the first place. A value is
 * encrypted with the first key when it is written next, for a token when it is renewed. Remove the old key when the last
 * sign-in from before has been renewed or has ended.
 *
 * @example
 * // TOKEN_KEYS="<new key>,<old key>", each from `openssl rand -base64 32`
 * const Store = EncryptedTokenStore.layerConfig("TOKEN_KEYS").pipe(
 *   Layer.provide(SqlTokenStore.layer())
 * )
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { keyError } from "./values.ts"
import { isEncrypted, type Key, keyProblem, makeCipher } from "../../shared/cipher.ts"
import * as TokenStore from "./TokenStore.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

export type { Key } from "../../shared/cipher.ts"

/** The keys. */
export interface Options {
  /**
   * The first key encrypts, and all of them decrypt. Each is a secret of at least 32 bytes. Nonces are random: a key is
   * safe for 2^32 writes.
   */
  readonly keys: ReadonlyArray<Key>
  /**
   * Whether values that were written before the encryption was turned on are read. They are encrypted when they are
   * written next. With it, anyone who can write to the store can insert values. Default `false`: such a value fails with
   * `KeyError`.
   */
  readonly readPlaintext?: boolean | undefined
}

/**
 * Makes an encrypting store around another. Fails with `KeyError` without keys, and for a key of less than 32 bytes.
 *
 * @example
 * const store = yield* EncryptedTokenStore.make(yield* FileTokenStore.make({ app: "teahouse" }), { keys: [key] })
 */
export const make = (
  store: TokenStore.TokenStore["Service"],
  { keys, readPlaintext = false }: Options
): Effect.Effect<TokenStore.TokenStore["Service"], TokenStoreError> =>
  Effect.gen(function*() {
    const problem = keyProblem(keys)
    if (problem !== undefined) return yield* Effect.fail(keyError(problem))
    const cipher = yield* makeCipher(keys, "tokens")
    const decrypt = (key: string, text: string): Effect.Effect<Redacted.Redacted, TokenStoreError> => {
      if (!isEncrypted(text)) {
        return readPlaintext ? Effect.succeed(Redacted.make(text)) : Effect.fail(
          keyError("a token in the store is not encrypted: set readPlaintext until it is renewed, or sign in again")
        )
      }
      return Effect.flatMap(
        cipher.decrypt(text, key),
        (value) =>
          value !== undefined ? Effect.succeed(Redacted.make(value)) : Effect.fail(
            keyError("cannot decrypt a token in the store: its key is not among the keys, or it was changed")
          )
      )
    }
    return TokenStore.TokenStore.of({
      ...store,
      get: (key) =>
        Effect.flatMap(store.get(key), (found) =>
          Option.isNone(found)
            ? Effect.succeedNone
            : Effect.asSome(decrypt(key, Redacted.value(found.value)))),
      set: (key, value) =>
        Effect.flatMap(cipher.encrypt(Redacted.value(value), key), (text) => store.set(key, Redacted.make(text)))
    })
  })

/**
 * Encrypts the values of the store that is provided to it.
 *
 * @example
 * const Store = EncryptedTokenStore.layer({ keys: [key] }).pipe(Layer.provide(FileTokenStore.layer({ app: "teahouse" })))
 */
export const layer = (options: Options): Layer.Layer<TokenStore.TokenStore, TokenStoreError, TokenStore.TokenStore> =>
  Layer.effect(TokenStore.TokenStore, Effect.flatMap(TokenStore.TokenStore, (store) => make(store, options)))

/**
 * The same with keys from configuration: one variable, the keys separated by commas. A missing variable is an error, so
 * that tokens do not stay unencrypted by mistake.
 *
 * @example
 * const Store = EncryptedTokenStore.layerConfig("TOKEN_KEYS").pipe(Layer.provide(SqlTokenStore.layer()))
 */
export const layerConfig = (
  name = "SKEIN_TOKEN_KEYS",
  options?: Omit<Options, "keys">
): Layer.Layer<TokenStore.TokenStore, TokenStoreError | Config.ConfigError, TokenStore.TokenStore> =>
  Layer.unwrap(Effect.map(Config.Redacted(name), (value) =>
    layer({
      ...options,
      keys: Redacted.value(value).split(",").map((key) => key.trim()).filter((key) => key !== "")
    })))
