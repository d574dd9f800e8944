/**
 * Routes of Effect's `HttpRouter` beside the endpoint of `NodeHttp`, on the same listener: the value of its option
 * `routes`. This module needs the package `@effect/platform-node`. Together they have more code than a small server, so
 * only a server that has routes loads and bundles it.
 *
 * @example
 * const Metrics = PrometheusMetrics.layerHttp()
 * NodeHttp.runMain(Server, { routes: NodeRoutes.make(Metrics) })
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { toServerResponse } from "@effect/platform-node/NodeHttpServerRequest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FileSystem } from "effect/FileSystem"
import type * as Etag from "effect/http/Etag"
import * as HttpEffect from "effect/http/HttpEffect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpPlatform } from "effect/http/HttpPlatform"
import * as HttpRouter from "effect/http/HttpRouter"
import { causeResponse, causeResponseStripped, HttpServerError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Path } from "effect/Path"
import * as Scope from "effect/Scope"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { HttpAnswer, HttpRequest } from "./internal/http/messages/adapter.ts"
import type { Resolved } from "./internal/http/access/options.ts"
import { makeSourceCheck } from "./internal/http/endpoint/pageHandler.ts"
import { closing, invalid, send, tooManyRequests } from "./internal/http/messages/refusals.ts"

/** The services of Node that each layer of routes gets. */
export type RouteServices = HttpPlatform | Etag.Generator | FileSystem | Path

/** The services that a layer with the requirements `R` needs from the layers of the server. */
export type ServicesOf<R> = Exclude<
  | HttpRouter.Request.Without<R>
  | HttpRouter.Request.Only<"Requires", R>
  | Exclude<HttpRouter.Request.Only<"GlobalRequires", R>, HttpRouter.GlobalProvided>,
  HttpRouter.HttpRouter | RouteServices
>

/** The bounds of the routes, and the names that they accept; `NodeHttp` passes those of its endpoint. */
export type Options = Pick<
  Resolved,
  "allowedHosts" | "allowedOrigins" | "maxInFlightRequests" | "maxMessageBytes" | "shutdownTimeout"
>

/** The routes of a listening server. */
export interface Running {
  /** Answers a request. `isLast`: its connection is closed after the answer. Never throws. */
  readonly handle: (
    message: IncomingMessage,
    response: ServerResponse,
    request: HttpRequest,
    answer: HttpAnswer,
    isLast: boolean
  ) => void
  /** Refuses new requests, and interrupts those that do not end within `shutdownTimeout`. */
  readonly close: Effect.Effect<void>
}

/** Routes for `NodeHttp`; `make` makes them. */
export interface Routes<R = never> {
  /** Builds the routes; requests run with `services`. `NodeHttp` calls it before it listens. */
  readonly start: (
    options: Options,
    services: Context.Context<never>
  ) => Effect.Effect<Running, never, Scope.Scope | R>
}

const notFound = JsonRpc.encode(
  JsonRpc.failure(undefined, invalid(404, "Not Found: there is no such path here").error)
)

const isNotFound = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    Cause.isFailReason(reason) && reason.error instanceof HttpServerError &&
    reason.error.reason._tag === "RouteNotFound"
  )

/** Answers a request whose route has failed. An error of the server is logged: the client learns nothing about it. */
const answerFailure = (cause: Cause.Cause<unknown>): Effect.Effect<HttpServerResponse.HttpServerResponse, unknown> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
  if (isNotFound(cause)) {
    return Effect.succeed(HttpServerResponse.text(notFound, { status: 404, contentType: "application/json" }))
  }
  return Effect.flatMap(
    causeResponse(cause),
    ([response]) =>
      Effect.as(response.status < 500 ? Effect.void : Effect.logError("HTTP: a route failed", cause), response)
  )
}

/** Logs why the response of a route was not sent, unless its client has disconnected, or the server shuts down. */
const logFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Option.match(Option.filter(causeResponseStripped(cause)[1], (rest) => !Cause.hasInterruptsOnly(rest)), {
    onNone: () => Effect.void,
    onSome: (rest) => Effect.logError("HTTP: the response of a route failed", rest)
  })

/** A `Host` that is an address. A page after DNS rebinding sends its own name, and so cannot have one. */
const address = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:.]+\])(?::\d{1,5})?$/i

/**
 * Makes routes for the paths that are not of the endpoint or of its pages, such as `/metrics` or `/webhooks`.
 *
 * - `Host` must be among the `allowedHosts` or an address, and `Origin` among the `allowedOrigins`. The `protection` does
 *   not apply: use a middleware of the router.
 * - A route that fails is logged, and the response is 500, unless its error has a response of its own. A layer that
 *   cannot be built fails the start.
 * - `maxInFlightRequests` and `maxMessageBytes` bound the routes too, apart from the endpoint. At shutdown requests may
 *   finish within `shutdownTimeout`, and then are interrupted. WebSockets are not supported.
 *
 * @example
 * const Version = HttpRouter.add("GET", "/version", HttpServerResponse.text("1.0.0"))
 * NodeHttp.runMain(Server, { routes: NodeRoutes.make(Version) })
 */
export const make = <A, E, R>(layer: Layer.Layer<A, E, R>): Routes<ServicesOf<R>> => ({
  // The caller has the services.
  start: (options, services) => start(layer as Layer.Layer<A, E, HttpRouter.HttpRouter>, options, services)
})

/** Answers the requests for a path: a function of web standards. */
export type WebHandler = (request: Request) => Response | Promise<Response>

/**
 * Makes routes of functions, by their paths. The methods are up to the function. A path may have parameters (`/users/:id`)
 * and end with `*`, as those of `HttpRouter`. A function that throws is logged, and the response is 500. The signal of the
 * request aborts when its client disconnects. See `make` for the checks and bounds.
 *
 * @example
 * NodeHttp.runMain(Server, {
 *   routes: NodeRoutes.handlers({ "/version": () => Response.json({ version: "1.0.0" }) })
 * })
 */
export const handlers = (byPath: { readonly [path: `/${string}`]: WebHandler }): Routes =>
  make(Layer.mergeAll(
    Layer.empty,
    ...Object.entries(byPath).map(([path, handle]) =>
      // An async function, because `fromWebHandler` does not catch what a function throws.
      HttpRouter.add("*", path as HttpRouter.PathInput, HttpEffect.fromWebHandler(async (request) => handle(request)))
    )
  ))

const start = Effect.fnUntraced(function*<A, E>(
  routes: Layer.Layer<A, E, HttpRouter.HttpRouter>,
  options: Options,
  services: Context.Context<never>
): Effect.fn.Return<Running, never, Scope.Scope> {
  const { maxInFlightRequests, maxMessageBytes, shutdownTimeout } = options
  const app = yield* Effect.orDie(
    HttpRouter.toHttpEffect(Layer.provide(routes, NodeHttpServer.layerHttpServices))
  )
  const requests = yield* Effect.acquireRelease(Scope.make("parallel"), (scope, exit) => Scope.close(scope, exit))
  let isClosing = false
  const running = new Set<ReturnType<typeof toServerResponse>>()
  const idle = Latch.makeUnsafe(true)
  // Includes the sending of the response, and so of a body that is a stream.
  const counted = <E, R>(sent: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(HttpServerRequest, (request) => {
      const response = toServerResponse(request)
      running.add(response)
      idle.closeUnsafe()
      return Effect.onExit(sent, (exit) => {
        running.delete(response)
        if (running.size === 0) idle.openUnsafe()
        return Exit.isFailure(exit) ? logFailure(exit.cause) : Effect.void
      })
    })
  const run = yield* Effect.provideContext(
    NodeHttpServer.makeHandler(Effect.catchCause(app, answerFailure), { scope: requests, middleware: counted }),
    Context.add(services, MaxBodySize, ByteSize.bytes(maxMessageBytes))
  )
  const isAllowed = makeSourceCheck(options, services, "a route", (request) => address.test(request.header("host")!))
  return {
    handle: (message, response, request, answer, isLast) => {
      if (!isAllowed(request, answer)) return
      if (isClosing) return send(answer, closing)
      if (running.size >= maxInFlightRequests) return send(answer, tooManyRequests)
      if (isLast) response.setHeader("connection", "close")
      // Node leaves this to the handler of a listener that has the event `checkContinue`.
      if (message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
      run(message, response)
    },
    close: Effect.suspend(() => {
      isClosing = true
      // A client must not send its next request on a connection that is about to be closed.
      for (const response of running) if (!response.headersSent) response.setHeader("connection", "close")
      return Effect.andThen(Effect.timeoutOption(idle.await, shutdownTimeout), Scope.close(requests, Exit.void))
    })
  }
})
