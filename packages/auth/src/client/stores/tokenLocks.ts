/** The lock of a token store. */
import * as Settings from "@skein/runtime/Options"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import { type LockOptions, makeLocks, type SharedLock } from "../../shared/localLocks.ts"
import type { Options } from "./values.ts"
import { LockLost, LockTimeout, TokenStoreError } from "./TokenStoreError.ts"

/** A lock by key. A `TokenStore` has one. */
export interface TokenLock {
  /**
   * Runs an effect while no other caller that shares the lock runs one with the same key. The lock is released when the
   * effect ends, however it ends, and when its process dies. Waiting can be interrupted, and fails with the reason
   * `LockTimeout` after `lockTimeout`: the effect does not run without the lock. The lock is not reentrant.
   */
  readonly withLock: <A, E, R>(
    key: string,
    effect: Effect.Effect<A, E, R>,
    options?: LockOptions
  ) => Effect.Effect<A, E | TokenStoreError, R>
}

const lockTimedOut = (lockTimeout: Duration.Duration): TokenStoreError =>
  new TokenStoreError({
    reason: new LockTimeout({
      message: `the lock of the token store was not obtained within lockTimeout (${Duration.format(lockTimeout)}): ` +
        "another fiber or process holds it, or the store is slow"
    })
  })

export const lockLost = (): TokenStoreError =>
  new TokenStoreError({
    reason: new LockLost({
      message: "the lock of the token store was lost: its lease ended while this process did not renew it"
    })
  })

/** Makes the `withLock` of a token store: see `makeLocks`. */
export const makeTokenLocks = (
  options: Options,
  shared?: (key: string) => SharedLock<TokenStoreError>
): TokenLock["withLock"] => {
  const { lockTimeout } = Settings.resolve<Options>(options, {}, { lockTimeout: "30 seconds" })
  return makeLocks({ lockTimeout: Duration.millis(lockTimeout), timedOut: lockTimedOut }, shared)
}
