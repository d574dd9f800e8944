/**
 * What the layers of all definitions have in common: they find the catalog, and capture the services that a handler needs, to
 * give them back to it when it runs.
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { Catalog, type UnscopedHandler } from "../../Catalog.ts"
import type { DefinitionError } from "../../DefinitionError.ts"
import * as logs from "../observability/logs.ts"

/** What the layer of a handler needs for it: all that the request does not bring. */
export type Required<R> = R extends McpRequest ? never : R extends Scope.Scope ? UnscopedHandler : R

/** Gives a handler's effect what it needs besides the request. */
export type Provide<R> = <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>

/** Takes away again what a middleware was provided with: what it stands around has services of its own. */
export type Restore = <A, E>(effect: Effect.Effect<A, E, McpRequest>) => Effect.Effect<A, E, McpRequest>

/** Belongs to the request, to the building of layers, or to the server: never handed on. Each request has its server's catalog. */
const neverCaptured: ReadonlySet<string> = new Set([
  McpRequest.key,
  Catalog.key,
  Scope.Scope.key,
  Layer.CurrentMemoMap.key,
  Tracer.ParentSpan.key
])

const none: ReadonlySet<string> = new Set()

/**
 * Provides a handler with what its layer was built with and what `base`, with which every request of the server starts,
 * does not have. That is compared once, here; mostly nothing is missing, and a call pays nothing.
 */
const provider = <R>(captured: Context.Context<never>, base: Context.Context<never>): [Provide<R>, Restore] => {
  // What is added while a request is handled must not carry that request's user, or its annotations, into later ones.
  const inside = captured.mapUnsafe.has(McpRequest.key)
  const passing = inside ? logs.requestScopedKeys(captured) : none
  const missing = logs.overrideLoggers(
    [...captured.mapUnsafe].filter(([key, value]) =>
      !neverCaptured.has(key) && !passing.has(key) && base.mapUnsafe.get(key) !== value
    ),
    base
  )
  const add = (current: Context.Context<McpRequest>): Context.Context<R> =>
    missing.reduce<Context.Context<never>>(
      (context, [key, value]) =>
        inside && current.mapUnsafe.has(key) ? context : Context.addUnsafe(context, key, value),
      current
    ) as Context.Context<R>
  // What the middleware itself provides in the place of a service that it was given is meant for what is behind it, and stays.
  const remove = (current: Context.Context<McpRequest>): Context.Context<McpRequest> => {
    const map = new Map(current.mapUnsafe)
    for (const [key, value] of missing) {
      if (map.get(key) !== value) continue
      if (base.mapUnsafe.has(key)) map.set(key, base.mapUnsafe.get(key))
      else map.delete(key)
    }
    return Context.makeUnsafe(map)
  }
  if (missing.length === 0) return [(effect) => effect as never, (effect) => effect]
  return [(effect) => Effect.updateContext(effect, add), (effect) => Effect.updateContext(effect, remove)]
}

/** Adds to the catalog what needs the services `R` when it runs. */
export type Register<R> = (
  catalog: Catalog["Service"],
  provide: Provide<R>,
  withhold: Restore
) => Effect.Effect<void, DefinitionError, Scope.Scope>

/**
 * What adds to the catalog, until the scope closes, what needs the services `R` when it runs: for a program, and for a handler.
 * Those services are captured here and now.
 */
export const effect = <R>(
  add: Register<R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | Required<R>> =>
  Effect.gen(function*() {
    const catalog = yield* Catalog
    yield* add(catalog, ...provider<R>(yield* Effect.context<never>(), catalog.base))
  }) as Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | Required<R>>

/** The same as a layer. */
export const layer = <R>(add: Register<R>): Layer.Layer<never, DefinitionError, Catalog | Required<R>> =>
  Layer.effectDiscard(effect(add)) as Layer.Layer<never, DefinitionError, Catalog | Required<R>>
