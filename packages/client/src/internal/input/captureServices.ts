/**
 * Handlers that need services: those are captured where their layer is built, and given to them when they run.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"

/** What a layer of handlers needs: all but a scope, of which each question has its own. */
export type Needed<R> = Exclude<R, Scope.Scope>

/** Gives an effect what its layer was built with, and a scope of its own. */
export type Provide<R> = <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E>

/** Captures the services. What belongs to the building of the layer is not handed on. */
export const capture = <R>(): Effect.Effect<Provide<R>, never, Needed<R>> =>
  Effect.map(Effect.context<Needed<R>>(), (context): Provide<R> => {
    const services = Context.omit(Scope.Scope, Layer.CurrentMemoMap, Tracer.ParentSpan)(
      context as Context.Context<never>
    ) as Context.Context<Needed<R>>
    return (effect) =>
      Effect.provideContext(Effect.scoped(effect), services) as Effect.Effect<
        Effect.Success<typeof effect>,
        Effect.Error<typeof effect>
      >
  })
