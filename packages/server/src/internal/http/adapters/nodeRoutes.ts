/**
 * The routes of an application beside an endpoint, on the same listener. This module is loaded when a server has the
 * option `routes`: it loads Effect's router and its HTTP server for Node, more modules than everything else together.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { toServerResponse } from "@effect/platform-node/NodeHttpServerRequest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import { causeResponse, causeResponseStripped, HttpServerError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { HttpAnswer, HttpRequest } from "../adapter.ts"
import { makeSourceCheck } from "../pageHandler.ts"
import { closing, invalid, send, tooManyRequests } from "../refusals.ts"

/** The bounds of the routes, and the names that they accept; durations in milliseconds. */
export interface Options {
  readonly allowedHosts: ReadonlyArray<string> | "any" | undefined
  readonly allowedOrigins: ReadonlyArray<string> | "any" | undefined
  readonly maxBodyBytes: number
  readonly maxConcurrentRequests: number
  readonly shutdownTimeout: number
}

/** The routes of a listening server. */
export interface Routes {
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

/** A layer of routes, whose services the caller has. */
export type RoutesLayer = Layer.Layer<never, unknown, HttpRouter.HttpRouter>

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

/** Builds the routes, with the services of the caller. Requests run with `services`. */
export const make = (
  routes: RoutesLayer,
  options: Options,
  services: Context.Context<never>
): Effect.Effect<Routes, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { maxBodyBytes, maxConcurrentRequests, shutdownTimeout } = options
    const app = yield* Effect.orDie(
      HttpRouter.toHttpEffect(Layer.provide(routes, NodeHttpServer.layerHttpServices))
    )
    const requests = yield* Effect.acquireRelease(Scope.make("parallel"), (scope, exit) => Scope.close(scope, exit))
    let isClosing = false
    const running = new Set<ReturnType<typeof toServerResponse>>()
    let onIdle: (() => void) | undefined
    const idle = Effect.callback<void>((resume) => {
      if (running.size === 0) return resume(Effect.void)
      onIdle = () => resume(Effect.void)
    })
    // Includes the sending of the response, and so of a body that is a stream.
    const counted = <E, R>(sent: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
      Effect.flatMap(HttpServerRequest, (request) => {
        const response = toServerResponse(request)
        running.add(response)
        return Effect.onExit(sent, (exit) => {
          running.delete(response)
          if (running.size === 0) onIdle?.()
          return Exit.isFailure(exit) ? logFailure(exit.cause) : Effect.void
        })
      })
    const run = yield* Effect.provideContext(
      NodeHttpServer.makeHandler(Effect.catchCause(app, answerFailure), { scope: requests, middleware: counted }),
      Context.add(services, MaxBodySize, ByteSize.bytes(maxBodyBytes))
    )
    const isAllowed = makeSourceCheck(options, services, "a route", (request) => address.test(request.header("host")!))
    return {
      handle: (message, response, request, answer, isLast) => {
        if (!isAllowed(request, answer)) return
        if (isClosing) return send(answer, closing)
        if (running.size >= maxConcurrentRequests) return send(answer, tooManyRequests)
        if (isLast) response.setHeader("connection", "close")
        // Node leaves this to the handler of a listener that has the event `checkContinue`.
        if (message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
        run(message, response)
      },
      close: Effect.suspend(() => {
        isClosing = true
        // A client must not send its next request on a connection that is about to be closed.
        for (const response of running) if (!response.headersSent) response.setHeader("connection", "close")
        return Effect.andThen(Effect.timeoutOption(idle, shutdownTimeout), Scope.close(requests, Exit.void))
      })
    }
  })
