/**
 * Streamable HTTP in all revisions, independent of the HTTP server: the endpoint that all adapters use.
 *
 * Most servers use an adapter: `NodeHttp` for `node:http`, Express and Fastify, `WebHttp` for web-standard platforms,
 * or `HttpRoutes` for Effect's `HttpRouter`. An adapter of your own makes an endpoint and calls `handle` with an
 * `HttpRequest` and an `HttpAnswer` for each HTTP request.
 *
 * @example
 * const endpoint = yield* Http.make({ path: "/mcp", allowedHosts: ["mcp.example.com"] })
 * onRequest((message) => endpoint.handle(new MyRequest(message), new MyAnswer(message)))
 */
import type { Exchange } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { internals } from "./internal/catalog/catalogState.ts"
import type { HttpAnswer, HttpRequest } from "./internal/http/messages/adapter.ts"
import { Fleet } from "./Fleet.ts"
import { Bounds } from "./internal/base/fixedBounds.ts"
import * as logs from "./internal/base/logs.ts"
import { makeEndpoint } from "./internal/http/endpoint/endpoint.ts"
import { type Options, type ReadyOptions, resolve } from "./internal/http/access/options.ts"
import type { FindPrincipal } from "./internal/http/access/protection.ts"
import { McpServer } from "./McpServer.ts"

export type { Body, BodyFault, Headers, HttpAnswer, HttpRequest } from "./internal/http/messages/adapter.ts"
export type { Limits, Options } from "./internal/http/access/options.ts"
export { networkOf } from "@skein/runtime/ClientKey"
export {
  type FindPrincipal,
  InvalidPrincipal,
  type PageRequest,
  type Pages,
  type Protection,
  Refusal
} from "./internal/http/access/protection.ts"

/** Handles the HTTP requests of one adapter. */
export interface Endpoint {
  /**
   * Handles a request and answers it. Never throws. `findPrincipal` is called after the checks of Host, Origin and path,
   * so that refused requests cost no authentication. The option `protection` is asked for the principal that it does not
   * find.
   */
  readonly handle: (request: HttpRequest, answer: HttpAnswer, findPrincipal?: FindPrincipal) => void
  /** The stateless requests in progress, without those that end synchronously. */
  readonly requests: Iterable<Exchange>
  /** The number of sessions. */
  readonly sessions: number
  /** The number of open streams without an end of their own: those of `subscriptions/listen` and of GET. */
  readonly streams: number
  /** The number of requests in progress, in sessions and without, as `maxInFlightRequests` counts them. */
  readonly inFlightRequests: number
  /** How many bytes are retained for clients, as `maxRetainedBytes` counts them. */
  readonly retainedBytes: number
  /**
   * Refuses new requests, completes subscriptions with their results, and lets requests in progress finish within
   * `shutdownTimeout` before it interrupts them. Closing the scope does this too.
   */
  readonly close: Effect.Effect<void>
}

/** @internal Makes the protection, the pages and the card of the options, if they are effects. */
export const withParts = <O extends Options>(
  options: O
): Effect.Effect<O & ReadyOptions, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const { pages, protection, serverCard } = options
    return {
      ...options,
      pages: Effect.isEffect(pages) ? yield* pages : pages,
      protection: Effect.isEffect(protection) ? yield* protection : protection,
      serverCard: Effect.isEffect(serverCard) ? yield* serverCard : serverCard
    }
  })

/**
 * @internal The surrounding services and those of the server, which take precedence, so that its loggers receive the logs of an
 * adapter. They contain no scope: requests would add resources to it.
 */
export const adapterContext: Effect.Effect<Context.Context<never>, never, McpServer> = /* @__PURE__ */ Effect.map(
  /* @__PURE__ */ Effect.context<McpServer>(),
  (context) => {
    const surrounding: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(
      context as Context.Context<McpServer | Scope.Scope>
    )
    return logs.withServerServices(surrounding, Context.get(context, McpServer)[internals].catalog[internals].base)
  }
)

/**
 * Makes the endpoint of a server. It is closed with the scope.
 *
 * @example
 * const endpoint = yield* Http.make({ allowedHosts: ["mcp.example.com"] })
 */
export const make = (options: Options = {}): Effect.Effect<Endpoint, never, McpServer | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function*() {
      const core = (yield* McpServer)[internals]
      const endpoint = makeEndpoint(
        core,
        resolve(yield* withParts(options), yield* Bounds),
        yield* adapterContext
      )
      core.endpoints.add(endpoint)
      return endpoint
    }),
    (endpoint) => endpoint.close
  ).pipe(Effect.tap(Effect.gen(function*() {
    const fleet = yield* Effect.serviceOption(Fleet)
    if (Option.isNone(fleet)) return
    // A server without a fleet does not load it.
    const { compareCatalogs } = yield* Effect.promise(() => import("./internal/http/endpoint/catalogComparison.ts"))
    yield* compareCatalogs(fleet.value, (yield* McpServer)[internals].catalog)
  })))

/**
 * The paths that an endpoint answers: its own, those of HTTP+SSE, those of its pages, of the pages of its protection and
 * of its card. A router that passes single paths must pass all of these, or clients do not find the metadata. A path that ends with `/*`
 * stands for all paths below it.
 *
 * @example
 * const { handler } = await NodeHttp.mount(Server, options)
 * app.all(Http.paths(options), handler)
 */
export const paths = (
  { legacySse, pages, path = "/mcp", protection, serverCard }: ReadyOptions
): Array<string> => [
  path,
  ...(legacySse === undefined ? [] : [legacySse.path, legacySse.messages]),
  ...(protection?.paths ?? []),
  ...(pages?.paths ?? []),
  ...(serverCard?.paths ?? [])
]
