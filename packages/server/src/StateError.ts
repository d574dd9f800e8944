/**
 * The failure of an operation on a state: see `State`. If a handler fails with it, the caller of a tool reads its
 * message.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The state belongs to a user, and the caller is anonymous. */
export class Anonymous extends PrintableError.tagged("Anonymous") {}

/** The state belongs to a session, and the request has none. */
export class NoSession extends PrintableError.tagged("NoSession") {}

/** The value, or all values of its owner, exceed a bound. The earlier value stays. */
export class TooLarge extends PrintableError.tagged("TooLarge") {}

/** The store is full. The earlier value stays. */
export class Full extends PrintableError.tagged("Full") {}

/** The value does not match the schema, or has no JSON form. The earlier value stays. */
export class InvalidValue extends PrintableError.tagged("InvalidValue") {}

/** Other requests changed the value each time before this one could write it. The value stays. */
export class Conflict extends PrintableError.tagged("Conflict") {}

/** The store failed. */
export class Unavailable extends PrintableError.tagged("Unavailable")<{ readonly cause?: unknown }> {}

/** The reasons. */
export type Reason = Anonymous | NoSession | TooLarge | Full | InvalidValue | Conflict | Unavailable

/**
 * A failed operation on a state. The `reason` is a tagged error, for `Effect.catchReason`.
 *
 * @example
 * const lines = Effect.catchReason(cart.get, "StateError", "Anonymous", () => Effect.succeed([]))
 */
export class StateError extends PrintableError.withReason("StateError")<{ readonly reason: Reason }> {}
