/**
 * Runs HTTP requests through the router of the application, in its own process.
 *
 * A request passes the router's middleware and the middleware of its endpoint, as a request from a socket does. Its answer
 * is read up to a bound.
 */
import { printable } from "@skein/protocol/Text"
import { McpRequest } from "@skein/runtime/RequestContext"
import { CurrentPrincipal } from "@skein/server/HttpRoutes"
import * as Logging from "@skein/server/Logging"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as HttpEffect from "effect/http/HttpEffect"
import type { HttpRouter } from "effect/http/HttpRouter"
import { isHttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import type * as answers from "../answer/answer.ts"
import * as boundedBody from "../answer/boundedBody.ts"

/** The beginning of an answer that has more bytes than the bound. */
export class AnswerTooLarge extends Data.TaggedError("AnswerTooLarge")<answers.Received> {}

/** The router has no route for the request. */
export class NoRoute extends Data.TaggedError("NoRoute") {}

/** The headers that the author adds to a call, by their names in lower case. They replace those of the arguments. */
export const CallHeaders: Context.Reference<Readonly<Record<string, string>>> = /* @__PURE__ */ Context.Reference(
  "@skein/openapi/HttpApiTools/CallHeaders",
  { defaultValue: (): Readonly<Record<string, string>> => ({}) }
)

/** Reads the body of an answer. An endless one costs no more than the bound. */
const readBody = (
  response: HttpServerResponse.HttpServerResponse,
  maxBytes: number
): Effect.Effect<Uint8Array, AnswerTooLarge> =>
  response.body._tag === "Empty"
    ? Effect.succeed(new Uint8Array(0))
    : Effect.flatMap(
      Effect.orDie(boundedBody.read(HttpServerResponse.toClientResponse(response), maxBytes)),
      (body) =>
        body.isCut
          ? Effect.fail(new AnswerTooLarge({ status: response.status, headers: response.headers, body }))
          : Effect.succeed(body.bytes)
    )

const isRouteNotFound = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    reason._tag === "Fail" && isHttpServerError(reason.error) && reason.error.reason._tag === "RouteNotFound"
  )

/** The failure that no answer describes, if there is one. The caller gets a reference, and the log the cause. */
const defectOf = (cause: Cause.Cause<unknown>, status: number): unknown => {
  if (status !== 500) return undefined
  for (const reason of cause.reasons) {
    if (reason._tag === "Fail") return reason.error
    if (reason._tag === "Die" && !HttpServerResponse.isHttpServerResponse(reason.defect)) return reason.defect
  }
  return undefined
}

/**
 * Makes the client whose requests run in the router, with `baseUrl` in front of their paths. The body of an answer is
 * complete.
 */
export const makeInProcessClient = (
  router: HttpRouter,
  baseUrl: string,
  maxResultBytes: number
): HttpClient.HttpClient.With<AnswerTooLarge | NoRoute, McpRequest> => {
  // An argument may make a path without a route, so that a client could fill the log.
  let hasWarned = false
  const run = Effect.fnUntraced(function*(given: HttpClientRequest.HttpClientRequest) {
    const { caller } = yield* McpRequest
    const outer = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
    const request = HttpClientRequest.setHeaders(HttpClientRequest.prependUrl(given, baseUrl), yield* CallHeaders)
    const inner = HttpServerRequest.fromClientRequest(request)
    const serverRequest = Option.match(outer, {
      onNone: () => inner,
      onSome: ({ peerAddress, remoteAddress }) => inner.modify({ peerAddress, remoteAddress })
    })
    let answer: HttpClientResponse | AnswerTooLarge | undefined
    // It runs uninterruptibly, with the scope of the request. A stream may never end.
    const take = (_: unknown, response: HttpServerResponse.HttpServerResponse) =>
      Effect.interruptible(readBody(response, maxResultBytes)).pipe(
        Effect.match({
          onFailure: (tooLarge) => answer = tooLarge,
          onSuccess: (bytes) => {
            const { headers, status } = response
            answer = HttpServerResponse.toClientResponse(HttpServerResponse.uint8Array(bytes, { headers, status }), {
              request
            })
          }
        })
      )
    const exit = yield* Effect.exit(
      HttpEffect.toHandled(router.asHttpEffect(), take).pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, serverRequest),
        Effect.provideService(CurrentPrincipal, caller.principal)
      )
    )
    if (Exit.isFailure(exit)) {
      if (isRouteNotFound(exit.cause)) {
        if (!hasWarned) {
          hasWarned = true
          yield* Logging.withheld(Effect.logWarning(
            `the router has no route for ${request.method} ${
              printable(request.url, 200)
            }: add HttpApiBuilder.layer to the ` +
              "application, and set baseUrl if the router serves the API under a prefix"
          ))
        }
        return yield* new NoRoute()
      }
      const defect = defectOf(exit.cause, answer?.status ?? 500)
      if (defect !== undefined) return yield* Effect.die(defect)
      if (Cause.hasInterrupts(exit.cause)) return yield* Effect.interrupt
    }
    if (answer === undefined) return yield* Effect.die(new Error("the router returned without an answer"))
    return answer instanceof AnswerTooLarge ? yield* answer : answer
  })
  return HttpClient.makeWith<never, never, AnswerTooLarge | NoRoute, McpRequest>(
    (request) => Effect.flatMap(request, run),
    Effect.succeed
  ) as HttpClient.HttpClient.With<AnswerTooLarge | NoRoute, McpRequest>
}
