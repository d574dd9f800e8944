/**
 * A token store in Effect's `KeyValueStore`: Redis, a file system, the storage of a platform, or memory.
 *
 * A `KeyValueStore` has no lock, so the store needs one of yours, and its promises are those of the lock and of the
 * `KeyValueStore`:
 *
 * - `lock: "process"` excludes the fibers that use this store, and no other process. It is right if one process at a time uses
 *   the `KeyValueStore`. Two processes with it can send the same refresh token; a server that detects reuse then ends the
 *   sign-in, and the user is asked again.
 * - A function of yours that acquires a lock which all who share the `KeyValueStore` use, such as one of Redis.
 * - Any other `TokenLock` that they use, such as another `TokenStore`: the lock of `FileTokenStore` for the processes of
 *   one computer, that of `SqlTokenStore` for several.
 * - A write is atomic and durable if that of the `KeyValueStore` is. `KeyValueStore.layerFileSystem` is neither, and
 *   writes files that other users may read: use `FileTokenStore`.
 * - Nothing stops a process that was stopped and has lost its lock from writing over a newer token, as `SqlTokenStore`
 *   does.
 *
 * @example
 * const Store = KeyValueTokenStore.layer({ lock: "process" }).pipe(Layer.provide(KeyValueStore.layerMemory))
 */
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Redacted from "effect/Redacted"
import { checkSize, decodeValue, encodeValue, nameOf, unavailable } from "./values.ts"
import type { SharedLock } from "../../shared/localLocks.ts"
import { makeTokenLocks } from "./tokenLocks.ts"
import * as TokenStore from "./TokenStore.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

/**
 * Acquires the lock of a key, and returns the function that releases it, or a promise or an effect of that. The signal aborts
 * when the lock is no longer wanted, after `lockTimeout` for example. A lock that is obtained after that is released at once.
 * An error fails the operation with `StoreUnavailable`.
 */
export type AcquireLock = (
  key: string,
  signal: AbortSignal
) => Awaitable.Awaitable<() => Awaitable.Awaitable<void, unknown>, unknown>

/** The lock, and the bounds of the store. */
export interface Options extends TokenStore.Options {
  /**
   * The lock of all programs that share the `KeyValueStore`; `"process"` if only the fibers that use this store do. With a
   * `TokenLock`, its own `lockTimeout` applies, and `lockTimeout` of this store if it is set.
   *
   * @example
   * const lock = async (key, signal) => {
   *   const held = await redlock.acquire([key], 60_000, { signal })
   *   return () => held.release()
   * }
   */
  readonly lock: "process" | AcquireLock | TokenStore.TokenLock
  /** The beginning of all keys in the `KeyValueStore`; `skein-token-` by default. */
  readonly prefix?: string | undefined
}

const lockOf = (options: Options): TokenStore.TokenLock["withLock"] => {
  const { lock, lockTimeout } = options
  if (lock === "process") return makeTokenLocks(options)
  if (typeof lock === "function") return makeTokenLocks(options, (key) => sharedLock(lock, key))
  return (key, effect, options) =>
    lock.withLock(key, effect, options ?? (lockTimeout === undefined ? undefined : { lockTimeout }))
}

type Release = () => Awaitable.Awaitable<void, unknown>

const sharedLock = (acquire: AcquireLock, key: string): SharedLock<TokenStoreError> => {
  const controller = new AbortController()
  let release: Release | undefined
  const free = (held: Release) =>
    Effect.catchCause(
      Awaitable.call(held),
      (cause) => Effect.logWarning("a lock of the token store was not released", cause)
    )
  const obtained = Effect.flatMap(
    Awaitable.call(() => acquire(key, controller.signal)),
    (held) =>
      controller.signal.aborted
        ? free(held)
        : Effect.sync(() => {
          release = held
        })
  )
  return {
    // It goes on when its waiter gives up: the lock may be obtained all the same, and nothing else would release it.
    acquire: Effect.flatMap(Effect.forkDetach(obtained, { startImmediately: true }), Fiber.join).pipe(
      Effect.mapError((cause) => unavailable("the lock of the token store could not be obtained", cause))
    ),
    release: Effect.suspend(() => {
      controller.abort()
      return release === undefined ? Effect.void : free(release)
    })
  }
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
