/** The options of all token stores, the bound of their values, and their errors. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { InvalidEntry, KeyError, TokenStoreError, ValueTooLarge } from "./TokenStoreError.ts"

/** The options that all stores have. */
export interface Options {
  /**
   * The longest wait for a lock: 30 seconds by default, on Effect's clock. Then `withLock` fails with the reason
   * `LockTimeout`. A holder that is stopped (SIGSTOP, a debugger) blocks the others for that time each. Raise it for an
   * authorization server that answers slowly, since a lock is held while it renews a token.
   */
  readonly lockTimeout?: Duration.Input | undefined
}

/**
 * The largest value in bytes of UTF-8. A larger one is not written, and the reason is `ValueTooLarge`. An answer of an
 * authorization server has at most 256 KiB (`Outbound`).
 */
export const maxValueBytes = 1024 * 1024

const utf8 = new TextEncoder()

/** Fails with `ValueTooLarge` for a value beyond `maxValueBytes`. */
export const checkSize = (value: Redacted.Redacted): Effect.Effect<void, TokenStoreError> =>
  Effect.suspend(() => {
    const text = Redacted.value(value)
    // A character has at most three bytes, so most values are not encoded to be counted.
    const bytes = text.length * 3 <= maxValueBytes ? 0 : utf8.encode(text).length
    return bytes <= maxValueBytes ? Effect.void : Effect.fail(
      new TokenStoreError({
        reason: new ValueTooLarge({
          message: `cannot write a token: it has ${bytes} bytes, and at most ${maxValueBytes} are stored`
        })
      })
    )
  })

export const unavailable = (message: string, cause?: unknown): TokenStoreError =>
  new TokenStoreError({ message, ...(cause === undefined ? {} : { cause }) })

export const invalidEntry = (message: string): TokenStoreError =>
  new TokenStoreError({ reason: new InvalidEntry({ message }) })

export const keyError = (message: string): TokenStoreError => new TokenStoreError({ reason: new KeyError({ message }) })
