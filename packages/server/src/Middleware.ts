/**
 * Middleware: what stands around the dispatcher, for every request of every method in both eras.
 *
 * A middleware is a function from dispatcher to dispatcher. It is called with the `RequestContext`: the method, the params as they came,
 * who asks (`exchange.caller.principal`, `exchange.caller.revision`), and the headers, where HTTP brought it
 * (`exchange.origin?.header?.("user-agent")`). It sees methods that do not exist too, and `initialize`; what is refused before it
 * is dispatched (a `_meta` that cannot be read, an id that is in use) it does not see, and neither does it see notifications.
 *
 * - What the next one answers is the result as it is written, an object or JSON text already (`JsonRpc.Encoded`); what it fails
 *   with is a JSON-RPC error. A middleware may change either, or answer by itself, in the caller's revision; in the request era
 *   `resultType` and the server's name are added where they are missing.
 * - It cannot change the request. A handler gets what the client sent, and what an audit log shows is what was handled.
 * - Middleware that is listed first stands outside of that which is listed later. It comes and goes with the scope of its layer,
 *   also while the server runs; requests that are under way go on as they began.
 * - The services that it needs are captured when its layer is built, and are its own: what it stands around does not see them.
 *   What it provides to `next(exchange)` itself, handlers do see.
 * - A handler that asks the client something in the request era is interrupted when its questions go out, and runs again for the
 *   answers, as a request of its own.
 *
 * @example
 * const timed = Middleware.layer((next) => (exchange) =>
 *   Effect.tap(Effect.timed(next(exchange)), ([duration]) => Effect.logInfo(`${exchange.method} took ${duration}`)).pipe(
 *     Effect.map(([, answer]) => answer)
 *   ))
 * const server = McpServer.layer({ name: "timed", version: "1.0.0" }, timed, Tool.layer(greet, greeting))
 */
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { methodOf } from "./internal/dispatch/target.ts"

/** What handles a request: the server itself, or a middleware and all that is behind it. `R` is what it needs besides. */
export type Handler<R = never> = Dispatcher<McpRequest | R>

/** Wraps what handles requests. It is called once per change of the server's middleware, not once per request. */
export type Middleware<R = never> = (next: Handler) => Handler<R>

/** Adds a middleware to a server. Those that are listed first stand outside of those that are listed later. */
export const layer = <R = never>(
  middleware: Middleware<R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<R>> =>
  captured.layer<R>((catalog, provide, withhold) =>
    catalog.middleware.add((next) => {
      const handler = middleware((exchange) => withhold(next(exchange)))
      return (exchange) => provide(handler(exchange) as Effect.Effect<Answer, McpError.McpError, R>)
    })
  )

/** Which requests a middleware is about: those of these methods, or `all` but `subscriptions/listen`, which has no end. */
export type Methods = ReadonlyArray<string> | "all"

/** The methods as a predicate. */
export const includes = (methods: Methods): (method: string) => boolean => {
  if (methods === "all") return (method) => method !== "subscriptions/listen"
  const set = new Set(methods)
  return (method) => set.has(method)
}

/**
 * What a bound counts apart: requests with the same key share it. `target` is the tool, prompt or resource that the request
 * names, where there is one that its caller may see: a name that a client made up has no key of its own, and fills no table.
 */
export type Key = (exchange: RequestContext, target: string | undefined) => string

// Each part says how long it is, so that no two lists of parts make the same key.
const join = (...parts: ReadonlyArray<string>): string => parts.map((part) => `${part.length}:${part}`).join("")

/** All requests together. */
export const perServer: Key = () => ""

/**
 * The requests of each principal. Callers without one share a key: what they say of themselves is not to be trusted. Where a
 * proxy tells them apart, write a key that reads its header: `exchange.origin?.header?.("x-real-ip")`.
 */
export const perPrincipal: Key = ({ caller: { principal } }) => principal === undefined ? "" : join(principal.id)

/** The requests for each tool, prompt and resource; all other requests of a method together. */
export const perTarget: Key = (exchange, target) =>
  target === undefined ? join(methodOf(exchange)) : join(methodOf(exchange), target)

/** The requests of each principal for each tool, prompt and resource. */
export const perPrincipalAndTarget: Key = (exchange, target) => {
  const { principal } = exchange.caller
  return principal === undefined
    ? perTarget(exchange, target)
    : join(methodOf(exchange), target === undefined ? "" : `=${target}`, principal.id)
}
