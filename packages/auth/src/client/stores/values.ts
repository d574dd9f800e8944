/** The options of all token stores, how they write keys and values, and their errors. */
import { sha256Base64Url } from "@skein/runtime/Digest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { parseJson } from "../../shared/web.ts"
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

/**
 * Returns the name of a key: 43 letters, digits, `-` and `_`, which are the SHA-256 of its JSON. A key may be longer than
 * a file name or an index can be, and JSON also distinguishes characters that UTF-8 does not have (lone surrogates).
 */
export const nameOf = (key: string): Effect.Effect<string> => sha256Base64Url(JSON.stringify(key))

/** Writes a value as JSON, which has neither NUL nor lone surrogates: databases refuse these. */
export const encodeValue = (value: string): string => JSON.stringify(value)

/** Reads a text of `encodeValue`, if there is one. Fails for any other text with the message. */
export const decodeValue = (
  text: string | undefined,
  message: string
): Effect.Effect<Option.Option<Redacted.Redacted>, TokenStoreError> => {
  if (text === undefined) return Effect.succeedNone
  const value = parseJson(text)
  return typeof value === "string" ? Effect.succeedSome(Redacted.make(value)) : Effect.fail(invalidEntry(message))
}
