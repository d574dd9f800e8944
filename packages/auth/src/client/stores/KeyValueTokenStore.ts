/**
 * A token store in Effect's `KeyValueStore`: Redis, a file system, the storage of a platform, or memory.
 *
 * A `KeyValueStore` has no lock, so the store needs one of yours, and its promises are those of the lock and of the
 * `KeyValueStore`:
 *
 * - `lock: "process"` excludes the fibers that use this store, and no other process. It is right if one process at a time uses
 *   the `KeyValueStore`. Two processes with it can send the same refresh token; a server that detects reuse then ends the
 *   sign-in, and the user is asked again.
 * - Any other `TokenLock` that all who share the `KeyValueStore` use, such as another `TokenStore`: the lock of
 *   `FileTokenStore` for the processes of one computer, that of `SqlTokenStore` for several.
 * - A write is atomic and durable if that of the `KeyValueStore` is. `KeyValueStore.layerFileSystem` is neither, and
 *   writes files that other users may read: use `FileTokenStore`.
 * - Nothing stops a process that was stopped and has lost its lock from writing over a newer token, as `SqlTokenStore`
 *   does.
 *
 * @example
 * const Store = KeyValueTokenStore.layer({ lock: "process" }).pipe(Layer.provide(KeyValueStore.layerMemory))
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Redacted from "effect/Redacted"
import { checkSize, decodeValue, encodeValue, nameOf, unavailable } from "./values.ts"
import { makeTokenLocks } from "./tokenLocks.ts"
import * as TokenStore from "./TokenStore.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

/** The lock, and the bounds of the store. */
export interface Options extends TokenStore.Options {
  /**
   * The lock of all programs that share the `KeyValueStore`; `"process"` if only the fibers that use this store do. With a
   * `TokenLock`, its own `lockTimeout` applies, and `lockTimeout` of this store if it is set.
   */
  readonly lock: "process" | TokenStore.TokenLock
  /** The beginning of all keys in the `KeyValueStore`; `skein-token-` by default. */
  readonly prefix?: string | undefined
}

const lockOf = (options: Options): TokenStore.TokenLock["withLock"] => {
  const { lock, lockTimeout } = options
  if (lock === "process") return makeTokenLocks(options)
  return (key, effect, options) =>
    lock.withLock(key, effect, options ?? (lockTimeout === undefined ? undefined : { lockTimeout }))
}

const failed = ({ message, method }: KeyValueStore.KeyValueStoreError): TokenStoreError =>
  unavailable(`KeyValueStore.${method} failed, so the token store cannot be used: ${message}`)

/** Without the message of the driver, which may quote the value. */
const writeFailed = ({ method }: KeyValueStore.KeyValueStoreError): TokenStoreError =>
  unavailable(`KeyValueStore.${method} failed, so the token store cannot be used`)

/**
 * Makes a store.
 *
 * @example
 * const files = yield* FileTokenStore.make({ app: "teahouse" })
 * const store = yield* KeyValueTokenStore.make({ lock: files })
 */
export const make = (
  options: Options
): Effect.Effect<TokenStore.TokenStore["Service"], never, KeyValueStore.KeyValueStore> =>
  Effect.map(KeyValueStore.KeyValueStore, (values) => {
    const keyOf = (key: string) => Effect.map(nameOf(key), (name) => `${options.prefix ?? "skein-token-"}${name}`)
    return TokenStore.TokenStore.of({
      get: (key) =>
        Effect.gen(function*() {
          const name = yield* keyOf(key)
          return yield* decodeValue(
            yield* Effect.mapError(values.get(name), failed),
            `the entry "${name}" of the KeyValueStore is damaged, or another program wrote it; remove it, and sign in again`
          )
        }),
      set: (key, value) =>
        Effect.gen(function*() {
          yield* checkSize(value)
          const name = yield* keyOf(key)
          const written = values.set(name, encodeValue(Redacted.value(value)))
          yield* Effect.uninterruptible(Effect.mapError(written, writeFailed))
        }),
      remove: (key) =>
        Effect.flatMap(keyOf(key), (name) => Effect.uninterruptible(Effect.mapError(values.remove(name), failed))),
      withLock: lockOf(options)
    })
  })

/**
 * Provides a store in a `KeyValueStore`.
 *
 * @example
 * const Store = KeyValueTokenStore.layer({ lock: "process", prefix: "teahouse:" })
 */
export const layer = (
  options: Options
): Layer.Layer<TokenStore.TokenStore, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(TokenStore.TokenStore, make(options))
