/**
 * Registers definitions in the catalog, and captures the services that their handlers need when they run.
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { Catalog, type HandlerServices } from "../../Catalog.ts"
import type { DefinitionError } from "../../DefinitionError.ts"
import { internals } from "../catalog/catalogState.ts"
import * as logs from "../base/logs.ts"

/** Provides the effect of a handler with its captured services. */
export type Provide<R> = <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>

/**
 * Undoes `Provide`, for the handlers inside of a middleware: they do not see the services that the middleware captured.
 */
export type Restore = <A, E>(effect: Effect.Effect<A, E, McpRequest>) => Effect.Effect<A, E, McpRequest>

/**
 * The services that are never captured. They belong to the request, to the building of layers, or to the server, and
 * each request has the catalog of its own server.
 */
const neverCaptured: ReadonlySet<string> = new Set([
  McpRequest.key,
  Catalog.key,
  Scope.Scope.key,
  Layer.CurrentMemoMap.key,
  Tracer.ParentSpan.key
])

const none: ReadonlySet<string> = new Set()

/**
 * Makes the functions that provide the captured services, and that restore the services of the request.
 *
 * Only services that `base` does not have are provided, where `base` is the context that every request of the server
 * starts with. The two are compared once, here. Mostly no service is missing, and a call costs nothing.
 */
const provider = <R>(captured: Context.Context<never>, base: Context.Context<never>): [Provide<R>, Restore] => {
  // A definition that is added while a request is handled must not carry that request's user, or its annotations, into
  // later ones.
  const insideRequest = captured.mapUnsafe.has(McpRequest.key)
  const ofRequest = insideRequest ? logs.requestScopedKeys(captured) : none
  const missing = logs.overrideLoggers(
    [...captured.mapUnsafe].filter(([key, value]) =>
      !neverCaptured.has(key) && !ofRequest.has(key) && base.mapUnsafe.get(key) !== value
    ),
    base
  )
  const add = (current: Context.Context<McpRequest>): Context.Context<R> =>
    missing.reduce<Context.Context<never>>(
      (context, [key, value]) =>
        insideRequest && current.mapUnsafe.has(key) ? context : Context.addUnsafe(context, key, value),
      current
    ) as Context.Context<R>
  // A service that the middleware itself provides in place of a captured one is meant for the handlers inside of it,
  // and stays.
  const restore = (current: Context.Context<McpRequest>): Context.Context<McpRequest> => {
    const map = new Map(current.mapUnsafe)
    for (const [key, value] of missing) {
      if (map.get(key) !== value) continue
      if (base.mapUnsafe.has(key)) map.set(key, base.mapUnsafe.get(key))
      else map.delete(key)
    }
    return Context.makeUnsafe(map)
  }
  if (missing.length === 0) return [(effect) => effect as never, (effect) => effect]
  return [(effect) => Effect.updateContext(effect, add), (effect) => Effect.updateContext(effect, restore)]
}

/** Adds a definition to the catalog whose handler needs the services `R` when it runs. */
export type Register<R> = (
  catalog: Catalog["Service"],
  provide: Provide<R>,
  restore: Restore
) => Effect.Effect<void, DefinitionError, Scope.Scope>

/**
 * Registers a definition until the scope closes, from a program or a handler. Captures the services of the current
 * fiber.
 */
export const registerScoped = <R>(
  register: Register<R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R>> =>
  Effect.gen(function*() {
    const catalog = yield* Catalog
    yield* register(catalog, ...provider<R>(yield* Effect.context<never>(), catalog[internals].base))
  }) as Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R>>

/** Makes a layer that registers a definition. Captures the services that the layer is built with. */
export const registerLayer = <R>(
  register: Register<R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  Layer.effectDiscard(registerScoped(register)) as Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>>
