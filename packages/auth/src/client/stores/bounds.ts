/** The bounds of all token stores. */
import * as Settings from "@skein/runtime/Options"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { InvalidEntry, KeyError, TokenStoreError, ValueTooLarge } from "./TokenStoreError.ts"

/** The bounds that all stores have. */
export interface Options {
  /**
   * The longest wait for a lock: 30 seconds by default, on Effect's clock. Then `withLock` fails with the reason
   * `LockTimeout`. A holder that is stopped (SIGSTOP, a debugger) blocks the others for that time each.
   */
  readonly lockTimeout?: Duration.Input | undefined
  /**
   * The largest value in bytes of UTF-8: 1 MiB by default. A larger one is not written, and the reason is
   * `ValueTooLarge`. An answer of an authorization server has at most 256 KiB (`Outbound`). Raise it for a
   * store of your own values.
   */
  readonly maxValueBytes?: number | undefined
}

/** The bounds of a store, with their defaults. */
export interface Bounds {
  readonly lockTimeout: Duration.Duration
  readonly maxValueBytes: number
}

export const makeBounds = ({ lockTimeout: given, maxValueBytes }: Options): Bounds => {
  const { lockTimeout, ...rest } = Settings.resolve(
    { lockTimeout: given, maxValueBytes },
    { maxValueBytes: 1024 * 1024 },
    { lockTimeout: "30 seconds" }
  )
  return { ...rest, lockTimeout: Duration.millis(lockTimeout) }
}

const utf8 = new TextEncoder()

/** Fails with `ValueTooLarge` for a value beyond `maxValueBytes`. */
export const checkSize = (
  { maxValueBytes }: Bounds,
  value: Redacted.Redacted
): Effect.Effect<void, TokenStoreError> =>
  Effect.suspend(() => {
    const text = Redacted.value(value)
    // A character has at most three bytes, so most values are not encoded to be counted.
    const bytes = text.length * 3 <= maxValueBytes ? 0 : utf8.encode(text).length
    return bytes <= maxValueBytes ? Effect.void : Effect.fail(
      new TokenStoreError({
        reason: new ValueTooLarge({
          message: `cannot write a token: its ${bytes} bytes exceed maxValueBytes (${maxValueBytes})`
        })
      })
    )
  })

export const unavailable = (message: string, cause?: unknown): TokenStoreError =>
  new TokenStoreError({ message, ...(cause === undefined ? {} : { cause }) })

export const invalidEntry = (message: string): TokenStoreError =>
  new TokenStoreError({ reason: new InvalidEntry({ message }) })

export const keyError = (message: string): TokenStoreError => new TokenStoreError({ reason: new KeyError({ message }) })
