/**
 * Refuses the values that handlers return and that cannot be sent. Types refuse most of them, and untyped programs return
 * them. The author reads the message in the log, and as a client.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Logging from "../../Logging.ts"

/** Whether a value is a generator or another iterator. */
export const isIterating = (value: unknown): boolean => isObject(value) && typeof value["next"] === "function"

/** The problem of a handler of `<Kind>.layer` that returned something else than an effect: the object of "returned". */
export const notAnEffect = (value: unknown, kind: string): string => {
  if (!Predicate.isPromiseLike(value)) {
    return isIterating(value)
      ? "a generator, and not an effect: wrap it in Effect.gen"
      : `no effect: return Effect.succeed(value), or use ${kind}.async`
  }
  // Its rejection would end the process.
  value.then(undefined, () => {})
  return `a promise, and not an effect: use ${kind}.async, or wrap it in Effect.promise`
}

/** Names the type of a value, for a message. */
export const nameOf = (value: unknown): string =>
  value === undefined
    ? "nothing"
    : value === null
    ? "null"
    : Array.isArray(value)
    ? "a list"
    : Predicate.isPromiseLike(value)
    ? "a promise"
    : typeof value === "object"
    ? "an object"
    : `a ${typeof value}`

/** Logs the problem of a prompt or a resource, and fails with it. */
export const refuseAnswer = (message: string): Effect.Effect<never, McpError.McpError> =>
  Effect.andThen(
    Logging.withheld(Effect.logError(message)),
    Effect.fail(new McpError.McpError({ reason: "InternalError", message }))
  )

/** Returns the effect that a handler returned, or one that refuses its value. `handler` names it, with its article. */
export const effectOf = <A, E, R>(
  made: Effect.Effect<A, E, R>,
  handler: string,
  kind: string
): Effect.Effect<A, E | McpError.McpError, R> =>
  Effect.isEffect(made) ? made : refuseAnswer(`${handler} returned ${notAnEffect(made, kind)}`)
