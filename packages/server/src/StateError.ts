/**
 * The failure of an operation on a state: see `State`. If a handler fails with it, the caller of a tool reads its
 * message.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The state belongs to a user, and the caller is anonymous. */
export class Anonymous extends PrintableError.tagged("Anonymous")<{ readonly message: string }> {}

/** The state belongs to a session, and the request has none. */
export class NoSession extends PrintableError.tagged("NoSession")<{ readonly message: string }> {}

/** The value, or all values of its owner, exceed a bound. The earlier value stays. */
export class TooLarge extends PrintableError.tagged("TooLarge")<{ readonly message: string }> {}

/** The store is full. The earlier value stays. */
export class Full extends PrintableError.tagged("Full")<{ readonly message: string }> {}

/** The value does not match the schema, or has no JSON form. The earlier value stays. */
export class InvalidValue extends PrintableError.tagged("InvalidValue")<{ readonly message: string }> {}

/** Other requests changed the value each time before this one could write it. The value stays. */
export class Conflict extends PrintableError.tagged("Conflict")<{ readonly message: string }> {}

/** The store failed. */
export class Unavailable
  extends PrintableError.tagged("Unavailable")<{ readonly message: string; readonly cause?: unknown }>
{}

/** The reasons. */
export type Reason = Anonymous | NoSession | TooLarge | Full | InvalidValue | Conflict | Unavailable

/**
 * A failed operation on a state. The `reason` is a tagged error, for `Effect.catchReason`.
 *
 * @example
 * const lines = Effect.catchReason(cart.get, "StateError", "Anonymous", () => Effect.succeed([]))
 */
export class StateError
  extends PrintableError.tagged("StateError")<{ readonly reason: Reason; readonly message: string }>
{
  constructor(fields: { readonly reason: Reason }) {
    super({ ...fields, message: fields.reason.message })
  }
}
