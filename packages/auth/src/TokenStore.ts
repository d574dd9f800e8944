/**
 * Where a client keeps what it obtains: tokens, registrations, and sign-ins that have begun. Everybody who shares a
 * store shares its sign-ins, so that a user is asked once and a refresh token is used once.
 *
 * A store holds text by key. Keys and values are those of `OAuth`; a store of your own neither reads nor changes them.
 * Use `layerMemory` for a program that signs in at each start, and `FileTokenStore`, `SqlTokenStore`,
 * `KeyValueTokenStore` or `BrowserTokenStore` for one that stays signed in.
 *
 * @example
 * const program = Effect.provide(main, TokenStore.layerMemory)
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Semaphore from "effect/Semaphore"

/**
 * A store could not read or write, or a lock was not obtained in time. The message names the operation and never a
 * value. Nothing was changed.
 */
export class TokenStoreError extends PrintableError.tagged("TokenStoreError")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** The store of a program. */
export class TokenStore extends Context.Service<TokenStore, {
  /** Reads the value of a key. */
  readonly get: (key: string) => Effect.Effect<Option.Option<Redacted.Redacted>, TokenStoreError>
  /**
   * Writes the value of a key. When it succeeds, the value survives the end of the process, unless the store is in
   * memory. A reader sees the old value or the new one.
   */
  readonly set: (key: string, value: Redacted.Redacted) => Effect.Effect<void, TokenStoreError>
  /** Removes a key. A key without a value is no error. */
  readonly remove: (key: string) => Effect.Effect<void, TokenStoreError>
  /**
   * Runs an effect while nobody else who shares the store runs one with the same key. The lock is released when the
   * effect ends, however it ends, and when its process dies. Waiting can be interrupted, and fails with
   * `TokenStoreError` after the store's `lockTimeout`: the effect does not run without the lock. The lock is not
   * reentrant.
   */
  readonly withLock: <A, E, R>(
    key: string,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TokenStoreError, R>
}>()("@skein/auth/TokenStore") {}

interface Lock {
  readonly semaphore: Semaphore.Semaphore
  /** How many run or wait. */
  users: number
}

const makeMemory = (): TokenStore["Service"] => {
  const values = new Map<string, Redacted.Redacted>()
  const locks = new Map<string, Lock>()
  return {
    get: (key) => Effect.sync(() => Option.fromUndefinedOr(values.get(key))),
    set: (key, value) => Effect.sync(() => void values.set(key, value)),
    remove: (key) => Effect.sync(() => void values.delete(key)),
    withLock: (key, effect) =>
      Effect.suspend(() => {
        const lock = locks.get(key) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
        locks.set(key, lock)
        lock.users++
        return Effect.ensuring(
          lock.semaphore.withPermit(effect),
          Effect.sync(() => {
            if (--lock.users === 0) locks.delete(key)
          })
        )
      })
  }
}

/**
 * A store in the memory of this process. It is gone when its layer is.
 *
 * @example
 * const program = Effect.provide(main, TokenStore.layerMemory)
 */
export const layerMemory: Layer.Layer<TokenStore> = /* @__PURE__ */ Layer.sync(TokenStore, () => makeMemory())
