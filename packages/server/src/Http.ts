/**
 * Streamable HTTP, in both eras, whatever brings the requests: the core that every door leads to.
 *
 * Most servers want a door: `NodeHttp` for `node:http`, Express and Fastify.
 */
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { classify as classifyRequest } from "./internal/http/classify.ts"
import type { HttpAnswer, HttpRequest } from "./internal/http/adapter.ts"
import { adapterContext } from "./internal/http/adapters/principal.ts"
import * as http from "./internal/http/endpoint.ts"
import * as options from "./internal/http/options.ts"
import { McpServer } from "./McpServer.ts"

export type { Classified, RequestEra, SessionEra } from "./internal/http/classify.ts"
export type { Body, BodyFault, Headers, HttpAnswer, HttpRequest } from "./internal/http/adapter.ts"
export type { Refused } from "./internal/http/refusals.ts"

/** Where and how an endpoint answers, and what bounds it. Every member is optional. */
export interface Options extends options.Options {}

/** Sessions, and when they end. */
export interface SessionOptions extends options.SessionOptions {}

/** What answers the requests that a door brings. */
export interface Endpoint {
  /**
   * Answers a request, at once or when it is handled. Never throws. With `identify` who makes the request is found out once Host,
   * Origin and path have passed, so that a foreign page costs nothing: it writes the `principal` to the request, and goes on with
   * `then`; or it answers by itself.
   */
  readonly handle: (request: HttpRequest, answer: HttpAnswer, identify?: (then: () => void) => void) => void
  /** The requests of the request era that are being handled; one that ends at once is never seen. */
  readonly requests: Iterable<RequestContext>
  /** How many sessions there are. */
  readonly sessions: number
  /** How many streams are open that last as long as their client wants: `subscriptions/listen` and GET. */
  readonly streams: number
  /**
   * Takes nothing more, and ends what there is: subscriptions get their result, what runs may finish within the grace and is
   * interrupted then. The scope does this too.
   */
  readonly close: Effect.Effect<void>
}

/** Makes the endpoint of a server. It is closed with the scope. */
export const make = (options_?: Options): Effect.Effect<Endpoint, never, McpServer | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function*() {
      const { core } = yield* McpServer
      const endpoint = new http.Endpoint(core, options.resolve(options_), yield* adapterContext)
      core.endpoints.add(endpoint)
      return endpoint
    }),
    (endpoint) => endpoint.close
  )

/**
 * To which era an HTTP request belongs: it is handled alone, it belongs to a session or opens one, or it is refused. `message` is
 * what it posted, where it did; `supported` are the revisions that the server speaks. See `Classified`.
 */
export const classify: typeof classifyRequest = classifyRequest
