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
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { internals } from "./internal/catalogState.ts"
import type { HttpAnswer, HttpRequest } from "./internal/http/adapter.ts"
import { adapterContext } from "./internal/http/adapters/principal.ts"
import * as http from "./internal/http/endpoint.ts"
import { type Options, resolve } from "./internal/http/options.ts"
import { McpServer } from "./McpServer.ts"

export type { Body, BodyFault, Headers, HttpAnswer, HttpRequest } from "./internal/http/adapter.ts"
export type { Options, SessionOptions } from "./internal/http/options.ts"

/** Handles the HTTP requests of one adapter. */
export interface Endpoint {
  /**
   * Handles a request and answers it. Never throws. `identify` is called after the checks of Host, Origin and path, so
   * that refused requests cost no authentication. It sets the `principal` of the request and calls `then`, or it
   * answers the request without calling `then`.
   */
  readonly handle: (request: HttpRequest, answer: HttpAnswer, identify?: (then: () => void) => void) => void
  /** The stateless requests in progress, without those that end synchronously. */
  readonly requests: Iterable<RequestContext>
  /** The number of sessions. */
  readonly sessions: number
  /** The number of open streams without an end of their own: those of `subscriptions/listen` and of GET. */
  readonly streams: number
  /** How many bytes are retained for clients, as `maxRetainedBytes` counts them. */
  readonly retainedBytes: number
  /**
   * Refuses new requests, completes subscriptions with their results, and lets requests in progress finish within
   * `shutdownTimeout` before it interrupts them. Closing the scope does this too.
   */
  readonly close: Effect.Effect<void>
}

/**
 * Makes the endpoint of a server. It is closed with the scope.
 *
 * @example
 * const endpoint = yield* Http.make({ allowedHosts: ["mcp.example.com"] })
 */
export const make = (options?: Options): Effect.Effect<Endpoint, never, McpServer | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function*() {
      const core = (yield* McpServer)[internals]
      const endpoint = new http.Endpoint(core, resolve(options), yield* adapterContext)
      core.endpoints.add(endpoint)
      return endpoint
    }),
    (endpoint) => endpoint.close
  )
