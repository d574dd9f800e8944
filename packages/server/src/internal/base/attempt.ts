/** Calls functions of authors that may return promises. */
import type { Awaitable } from "@skein/runtime/Awaitable"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { HandlerError } from "../../HandlerError.ts"

/** Calls a function that returns a value or a promise. An error that it throws becomes a failure or a defect. */
export const attempt = <A>(run: (signal: AbortSignal) => A | Promise<A>): Effect.Effect<A, HandlerError> =>
  Effect.callback((resume, signal) => {
    const fail = (error: unknown) => resume(Effect.failCause(causeOf(error)))
    try {
      const value = run(signal)
      if (!Predicate.isPromiseLike(value)) return resume(Effect.succeed(value))
      value.then((value) => resume(Effect.succeed(value)), fail)
    } catch (error) {
      fail(error)
    }
  })

/**
 * Calls a function that returns a value, a promise or an effect. An error that it throws, or with which its promise
 * rejects, becomes a failure or a defect, as in an async handler.
 */
export const settle = <A, E, R>(
  run: (signal: AbortSignal) => Awaitable<A, E, R>
): Effect.Effect<A, E | HandlerError, R> =>
  Effect.flatten(attempt((signal): Effect.Effect<A, E, R> | Promise<Effect.Effect<A, E, R>> => {
    const result = run(signal)
    if (Effect.isEffect(result)) return result as Effect.Effect<A, E, R>
    if (!Predicate.isPromiseLike(result)) return Effect.succeed(result as A)
    return result.then((value) => Effect.succeed(value as A)) as Promise<Effect.Effect<A, E, R>>
  }))

/**
 * Whether a client, or its model, may see the message of an error that an async handler throws. A program with the package
 * `skein` and this one has two classes of each error, so the name of the error counts.
 */
const isVisible = (error: unknown): error is HandlerError =>
  (error instanceof Error && error.name === "VisibleError") ||
  (Predicate.isObject(error) && typeof error["_tag"] === "string" && typeof error["message"] === "string" &&
    !Cause.isUnknownError(error))

/** The cause of what an async function throws: a failure that the client may see, or else a defect. */
export const causeOf = (error: unknown): Cause.Cause<HandlerError> =>
  isVisible(error) ? Cause.fail(error) : Cause.die(error)
