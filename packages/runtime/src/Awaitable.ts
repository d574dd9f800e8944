/**
 * Results of functions that an application supplies: a value, a promise or an effect.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** A value, a promise of it, or an effect that computes it. */
export type Awaitable<A, E = never, R = never> = A | PromiseLike<A> | Effect.Effect<A, E, R>

/** A result with an effect in the place of a promise. */
export type Settled<T> = T extends Effect.Effect<unknown, unknown, unknown> ? T
  : T extends PromiseLike<infer A> ? Effect.Effect<A, unknown>
  : T

/**
 * Returns a value, or an effect in the place of a promise. The rejection of a promise is a failure with its reason.
 *
 * Use it where a value is used at once, so that it costs no effect, and where an effect is told from a value: a promise
 * must not be taken for the value.
 *
 * @example
 * const found = Awaitable.settle(find(request))
 * return Effect.isEffect(found) ? Effect.map(found, accept) : accept(found)
 */
export const settle = <T>(result: T): Settled<T> =>
  (!Effect.isEffect(result) && Predicate.isPromiseLike(result)
    ? Effect.callback<unknown, unknown>((resume) => {
      result.then((value) => resume(Effect.succeed(value)), (reason: unknown) => resume(Effect.fail(reason)))
    })
    : result) as Settled<T>

/**
 * Returns an effect of the result of a function. The rejection of a promise is a failure with its reason; an error that
 * the function throws is a defect.
 *
 * @example
 * const approved = Awaitable.call(() => needsApproval(tool, args))
 */
export const call = <A, E = never, R = never>(run: () => Awaitable<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const result: unknown = settle(run())
    return Effect.isEffect(result) ? result as Effect.Effect<A, E, R> : Effect.succeed(result as A)
  })
