/**
 * Listeners that scopes add and remove: for a part that calls each of them when something arrives.
 *
 * @example
 * const listeners = Listeners.make<(text: string) => void>()
 * const program = Effect.scoped(Effect.andThen(listeners.add(console.log), Effect.never))
 * for (const listener of listeners.all) listener("hello")
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** The listeners, and the effect that adds one of them until the scope closes. */
export interface Listeners<A> {
  readonly all: ReadonlySet<A>
  readonly add: (listener: A) => Effect.Effect<void, never, Scope.Scope>
}

/** Makes a set without listeners. A listener that is added twice is one, until the first scope closes. */
export const make = <A>(): Listeners<A> => {
  const all = new Set<A>()
  const add = (listener: A): Effect.Effect<void, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => void all.add(listener)),
      () => Effect.sync(() => void all.delete(listener))
    )
  return { all, add }
}
