/**
 * Captures the services of handlers when their layer is built, and provides them when the handlers run.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"

/** The services that a layer of handlers needs: all but `Scope`, since each request has a scope of its own. */
export type Needed<R> = Exclude<R, Scope.Scope>

/** Provides an effect with the captured services and a scope of its own. */
export type Provide<R> = <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E>

/**
 * Captures the services. Those that belong to building the layer (its scope, memo map and parent span) are left out.
 */
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
