/**
 * The services that a handler captured when its layer was built, given back to it when it runs.
 */
import { McpRequest } from "@skein/runtime/Exchange"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"

/** Belongs to the request, or to the building of layers: never handed on. */
const own: ReadonlySet<string> = new Set([McpRequest.key, Scope.Scope.key, Layer.CurrentMemoMap.key])

/**
 * Provides a handler with what its layer was built with and what `base`, with which every request of the server starts,
 * does not have. That is compared once, here; mostly nothing is missing, and a call pays nothing.
 */
export const provider = <R>(captured: Context.Context<R>, base: Context.Context<never>, omit: string) => {
  const missing = [...captured.mapUnsafe].filter(([key, value]) =>
    !own.has(key) && key !== omit && base.mapUnsafe.get(key) !== value)
  const add = (current: Context.Context<McpRequest>): Context.Context<R | McpRequest> =>
    missing.reduce<Context.Context<never>>(
      (context, [key, value]) => Context.addUnsafe(context, key, value),
      current
    ) as Context.Context<R | McpRequest>
  return <A, E>(effect: Effect.Effect<A, E, R | McpRequest>): Effect.Effect<A, E, McpRequest> =>
    missing.length === 0
      ? effect as Effect.Effect<A, E, McpRequest>
      : Effect.updateContext(effect, add)
}
