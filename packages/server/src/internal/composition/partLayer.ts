/**
 * Builds the definitions of a part of a server with a catalog of their own.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Catalog } from "../../Catalog.ts"
import { nextPlace, type Place, placedInPart } from "../catalog/placement.ts"

/** A part whose definitions are being built. */
export interface OpenPart<E> {
  /** The catalog that the definitions register in. */
  readonly inside: Catalog["Service"]
  /** Receives the services that a definition provides, once it is built. */
  readonly built?:
    | ((context: Context.Context<never>, next: () => Place) => Effect.Effect<void, E, Scope.Scope>)
    | undefined
  /** Runs once all definitions are built. */
  readonly complete?: Effect.Effect<void, E, Scope.Scope> | undefined
}

/**
 * Makes the layer of a part. The definitions are built one after the other, and registered in this part even if the server
 * has the same definitions elsewhere. Layers of services are shared with the rest of the server.
 */
export const partLayer = <E>(
  definitions: ReadonlyArray<Layer.Layer<never, unknown, unknown>>,
  open: (outside: Catalog["Service"], place: Place) => Effect.Effect<OpenPart<E>, E, Scope.Scope>
): Layer.Layer<never, unknown, Catalog> =>
  Layer.effectDiscard(Effect.withFiber(Effect.fnUntraced(function*(fiber) {
    const scope = yield* Scope.Scope
    const current = yield* Effect.serviceOption(Layer.CurrentMemoMap)
    const { memoMap, place } = placedInPart(
      current._tag === "Some" ? current.value : Layer.makeMemoMapUnsafe(),
      {},
      fiber
    )
    const { built, complete, inside } = yield* open(yield* Catalog, place)
    const provided = Layer.succeed(Catalog, inside)
    for (const definition of definitions) {
      const context = yield* Layer.buildWithMemoMap(Layer.provide(definition, provided), memoMap, scope)
      if (built !== undefined) yield* built(context, () => nextPlace(memoMap, fiber))
    }
    if (complete !== undefined) yield* complete
  }))) as Layer.Layer<never, unknown, Catalog>
