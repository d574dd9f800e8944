/**
 * Middleware: functions around the dispatcher of a server, for every request of every method in all revisions.
 *
 * A middleware turns one dispatcher into another. It receives the `RequestContext`: the method, the raw params, the
 * caller (`request.caller.principal`, `request.caller.revision`), and the headers of an HTTP request
 * (`request.origin?.header?.("user-agent")`). It receives `initialize` and methods that do not exist too. It does not
 * receive notifications, nor requests that are refused before dispatch (an invalid `_meta`, an id that is in use).
 *
 * - `next` returns the encoded result, as an object or as JSON text (`JsonRpc.Encoded`), or fails with a JSON-RPC
 *   error. A middleware may change either, or answer without calling `next`, in the form of the caller's revision. In
 *   the stateless revision `resultType` and the description of the server are added if they are absent.
 * - A middleware cannot change the request. Handlers receive it as the client sent it, and audit logs show the same
 *   request.
 * - The order matters: middleware that is listed first is the outermost. It is added and removed with the scope of its
 *   layer, also while the server runs. Requests in progress continue with the middleware that they started with.
 * - The services of a middleware are captured when its layer is built. Handlers inside of it do not see them, but they
 *   do see the services that the middleware provides to `next(request)`.
 * - In the stateless revision a handler that sends input requests is interrupted. It runs again with the responses as
 *   a separate request.
 *
 * @example
 * const timed = Middleware.layer((next) => (request) =>
 *   Effect.tap(Effect.timed(next(request)), ([duration]) => Effect.logInfo(`${request.method} took ${duration}`)).pipe(
 *     Effect.map(([, answer]) => answer)
 *   ))
 * const server = McpServer.layer({ name: "timed", version: "1.0.0" }, timed, Tool.layer(greet, greeting))
 */
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalogState.ts"
import { registerLayer } from "./internal/definitions/captureServices.ts"
import { networkOf } from "./internal/limits/client.ts"
import { methodOf } from "./internal/dispatch/target.ts"

/** Handles a request: the server, or a middleware with everything inside of it. `R` are the services that it needs. */
export type Handler<R = never> = Dispatcher<McpRequest | R>

/** Wraps a handler. It is called once per change of the server's middleware, not once per request. */
export type Middleware<R = never> = (next: Handler) => Handler<R>

/**
 * Adds a middleware to a server. Middleware that is listed first is the outermost.
 *
 * @example
 * const refuse = Middleware.layer((next) => (request) =>
 *   request.method === "tools/call" && closed()
 *     ? Effect.fail(McpError.other(503, "Closed until 8:00"))
 *     : next(request))
 */
export const layer = <R = never>(
  middleware: Middleware<R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) =>
    catalog[internals].middleware.add((next) => {
      const handler = middleware((request) => restore(next(request)))
      return (request) => provide(handler(request) as Effect.Effect<Answer, McpError.McpError, R>)
    })
  )

/** The methods that a middleware applies to: a list, or `all` methods but `subscriptions/listen`, which has no end. */
export type Methods = ReadonlyArray<string> | "all"

/** Turns the methods into a predicate. */
export const includes = (methods: Methods): (method: string) => boolean => {
  if (methods === "all") return (method) => method !== "subscriptions/listen"
  const set = new Set(methods)
  return (method) => set.has(method)
}

/**
 * Makes the key of a request. Requests with the same key share a limit. `target` is the tool, prompt or resource that
 * the request names, if it exists and the caller may see it. Unknown names get no key of their own, so that a client
 * cannot fill the table of keys.
 */
export type Key = (request: RequestContext, target: string | undefined) => string

// The length of each part precedes it, so that different lists of parts make different keys.
const join = (...parts: ReadonlyArray<string>): string => parts.map((part) => `${part.length}:${part}`).join("")

/** One key for all requests. */
export const perServer: Key = () => ""

// No list of parts has a space here, so this differs from all other keys.
const addressOf = ({ origin }: RequestContext): string =>
  origin?.address === undefined ? "" : ` ${networkOf(origin.address)}`

/**
 * One key for each principal, and one for each network address of anonymous callers (for the first 64 bits of an IPv6
 * address). Anonymous callers without an address share one key, because nothing that they claim can be trusted. Behind a
 * proxy, set `trustedProxies` of the endpoint, or write a key that reads a header of the proxy.
 *
 * @example
 * const perAddress: Middleware.Key = ({ origin }) => origin?.header?.("x-real-ip") ?? ""
 */
export const perPrincipal: Key = (request) => {
  const { principal } = request.caller
  return principal === undefined ? addressOf(request) : join(principal.id)
}

/** One key for each tool, prompt and resource, and one for all other requests of a method. */
export const perTarget: Key = (request, target) =>
  target === undefined ? join(methodOf(request)) : join(methodOf(request), target)

/** One key for each principal, or address of an anonymous caller, and each tool, prompt and resource. */
export const perPrincipalAndTarget: Key = (request, target) => {
  const { principal } = request.caller
  return principal === undefined
    ? perTarget(request, target) + addressOf(request)
    : join(methodOf(request), target === undefined ? "" : `=${target}`, principal.id)
}
