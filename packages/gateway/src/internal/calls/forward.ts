/**
 * Forwards requests of callers to the remote server, in every combination of revisions.
 *
 * - A caller with a session is asked while the request at the remote server is open.
 * - A stateless caller of a remote server of a session-based revision is asked in rounds, between which the call is
 *   parked: see `parkedCalls.ts`.
 * - A stateless caller of a stateless remote server is asked in rounds too, but nothing is parked: the state of the remote
 *   server travels in the caller's `requestState`.
 */
import type { RequestOptions } from "@skein/client/Client"
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import type { InputRequiredResult, InputResponses } from "@skein/protocol/InputRequired"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { RequestMethod } from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import * as ClientKey from "@skein/runtime/ClientKey"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { Handled } from "@skein/server/Catalog"
import * as Forwarding from "@skein/server/Forwarding"
import { type InputError, toMcpError as ofInputError } from "@skein/server/InputError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { CurrentRequest, type ForwardedRequest, ownerOf } from "../connection/forwardedRequest.ts"
import { passedOn, withPassedOnMeta } from "../connection/meta.ts"
import type { ParkedCall, ParkedCalls } from "./parkedCalls.ts"
import type { Connect, RemoteConnection } from "../connection/connections.ts"
import { declaredBy } from "../connection/relay.ts"
import { named, remoteError, type RemoteName, toMcpError, unavailable, upper } from "../connection/remoteError.ts"

/** The members that the next round adds to the params, in the stateless revision. */
interface Round {
  readonly inputResponses?: InputResponses | undefined
  readonly requestState?: string | undefined
}

/** The outcome of one round at the remote server: a result, or input requests. */
type Outcome<A> =
  | { readonly _tag: "Result"; readonly result: A }
  | { readonly _tag: "Required"; readonly required: InputRequiredResult }

/** The connection has ended before the request was sent. */
interface Unsent {
  readonly _tag: "Unsent"
  readonly connection: RemoteConnection
}

/** The record of one round in a stateless caller's `requestState`, as JSON. */
type Step<A> = Outcome<A> | { readonly _tag: "Parked"; readonly id: string }

const canBeAsked = ({ caller: { capabilities } }: RequestContext): boolean =>
  ["elicitation", "sampling", "roots"].some((name) => Capabilities.declares(capabilities, name))

/** Sends one round of a request to the remote server. */
type Send<R> = (round: Round, forwarded: ForwardedRequest) => Effect.Effect<Outcome<R>, McpError.McpError>

/** Forwards a request with these params, and returns the result of the remote server. */
export type Forward = <P extends object, R extends object>(
  method: RequestMethod<P, R>,
  params: P,
  request: RequestContext
) => Handled<R>

/** Makes the function that forwards the requests of one proxy. */
export const makeForward = (
  connect: Connect,
  parked: ParkedCalls,
  name: RemoteName,
  run: (effect: Effect.Effect<void>) => unknown
): Forward => {
  const direct = <R>(request: RequestContext, send: Send<R>): Handled<R> => {
    const forwarded: ForwardedRequest = {
      caller: request.caller,
      owner: ownerOf(request),
      client: ClientKey.ofRequest(request),
      request,
      ask: (question, key) => Effect.provideService(Forwarding.inputRequest(question, { key }), McpRequest, request),
      sentIds: [],
      lacking: undefined
    }
    return untilResult(request, (round) => send(round, forwarded))
  }

  const inRounds = <R>(
    request: RequestContext,
    rounds: NonNullable<ReturnType<RequestContext["startRound"]>>,
    send: Send<R>
  ): Handled<R> =>
    untilResult(request, (round, number) => {
      const started = Effect.flatMap(
        parked.start(request, (call: ParkedCall<Outcome<R>>) => send(round, call)),
        (call): Effect.Effect<Step<R>, McpError.McpError> =>
          Exit.isExit(call) ? call : Effect.succeed({ _tag: "Parked", id: call.id })
      )
      return Effect.flatMap(rounds.once(`proxy ${number}`, started), (result) => {
        const step = result as Step<R>
        return step._tag === "Parked"
          ? parked.follow(step.id, request) as Effect.Effect<Outcome<R>, McpError.McpError>
          : Effect.succeed(step)
      })
    })

  /** Sends a request, and sends it again with the caller's answers as long as the remote server requires input. */
  const untilResult = <R>(
    request: RequestContext,
    send: (round: Round, number: number) => Effect.Effect<Outcome<R>, McpError.McpError>
  ): Handled<R> => {
    const next = (round: Round, number: number): Effect.Effect<R, McpError.McpError> =>
      Effect.flatMap(send(round, number), (outcome) =>
        outcome._tag === "Result"
          ? Effect.succeed(outcome.result)
          : Effect.flatMap(answersOf(outcome.required, request, number), (round) => next(round, number + 1)))
    return next(unsolicited(request), 1)
  }

  /** Sends a request once more, on the next connection, if its connection has ended before it was sent. */
  const delivered = Effect.fnUntraced(function*<R>(
    attempt: (ended?: RemoteConnection) => Effect.Effect<Outcome<R> | Unsent, McpError.McpError>
  ): Effect.fn.Return<Outcome<R>, McpError.McpError> {
    const first = yield* attempt()
    if (first._tag !== "Unsent") return first
    // A client that opens its connection again does not end.
    const end = yield* Effect.timeoutOption(first.connection.client.ended, endTimeout)
    const second = end._tag === "Some" ? yield* attempt(first.connection) : first
    return second._tag === "Unsent" ? yield* Effect.fail(unavailable(name)) : second
  })

  const attempt = <P extends object, R extends object>(
    method: RequestMethod<P, R>,
    params: P,
    round: Round,
    forwarded: ForwardedRequest,
    ended: RemoteConnection | undefined
  ): Effect.Effect<Outcome<R> | Unsent, McpError.McpError> => {
    const { caller } = forwarded
    const { params: received } = forwarded.request!
    return Effect.scoped(Effect.gen(function*() {
      const connection = yield* connect(forwarded.request!, ended)
      const { client, relay, requestLogs } = connection
      yield* requestLogs(caller.logLevel)
      yield* relay.add(forwarded)
      const meta = client.era === "stateless" ? statelessMeta(forwarded, received) : passedOn(received?.["_meta"])
      const sent = { ...params, ...round, ...(meta === undefined ? undefined : { _meta: meta }) }
      const options: RequestOptions = {
        // A result that depends on answers must not reach other callers, and each caller gets a fresh one.
        cache: "bypass",
        inputRequests: "fail",
        roundedIntegers: "keep",
        onSend: (id) => relay.sent(id, forwarded),
        ...(wantsProgress(received)
          ? {
            onProgress: (progress) => {
              const { request } = forwarded
              if (request !== undefined) run(request.progress(progress))
            }
          }
          : undefined)
      }
      const asked = Effect.provideService(client.request(method, sent, options), CurrentRequest, forwarded)
      const answered = yield* Effect.result(asked)
      if (Result.isSuccess(answered)) {
        const result = answered.success
        const lacking = isError(result) ? missingCapability(forwarded) : undefined
        return lacking === undefined
          ? { _tag: "Result", result: withPassedOnMeta(result) }
          : yield* Effect.fail(lacking)
      }
      const error = answered.failure
      const { reason, undelivered } = error
      if (reason._tag === "InputRequired") return { _tag: "Required", required: reason.required }
      if (reason._tag === "Closed" && reason.end !== undefined && undelivered === true) {
        return { _tag: "Unsent", connection }
      }
      if (reason._tag === "ProtocolError") return yield* Effect.fail(missingCapability(forwarded) ?? reason.error)
      // The caller does not receive the details.
      yield* Effect.logDebug(`${error.method ?? "A request"} failed at the remote server`, error)
      return yield* Effect.fail(toMcpError(error, name))
    }))
  }

  /** Asks the caller all input requests of a stateless remote server at once. */
  const answersOf = (
    { inputRequests = {}, requestState }: InputRequiredResult,
    request: RequestContext,
    number: number
  ): Effect.Effect<Round, McpError.McpError> => {
    const questions = Object.entries(inputRequests)
    if (number > maxRounds || questions.length > maxQuestions) {
      const bound = number > maxRounds ? `more than ${maxRounds} times` : `more than ${maxQuestions} answers at once`
      return Effect.fail(remoteError("RemoteFailed", `${upper(named(name))} required input ${bound}`))
    }
    const ask = ([key, question]: typeof questions[number]) =>
      Effect.map(
        Effect.provideService(Forwarding.inputRequest(question, { key }), McpRequest, request),
        (response) => [key, response] as const
      )
    return Effect.forEach(questions, ask, { concurrency: "unbounded" }).pipe(
      Effect.mapError((error: InputError) => ofInputError(error)),
      // Entries define own members, so that a key may be `__proto__`.
      Effect.map((responses) => ({
        ...(responses.length === 0 ? undefined : { inputResponses: Object.fromEntries(responses) }),
        ...(requestState === undefined ? undefined : { requestState })
      }))
    )
  }

  return <P extends object, R extends object>(
    method: RequestMethod<P, R>,
    params: P,
    request: RequestContext
  ): Handled<R> => {
    const send: Send<R> = (round, forwarded) => delivered((ended) => attempt(method, params, round, forwarded, ended))
    const round = request.exchange.rounds !== undefined && canBeAsked(request) ? request.startRound() : undefined
    return round === undefined ? direct(request, send) : inRounds(request, round, send)
  }
}

/** Responses that a stateless caller sends with its first request, for a stateless remote server that accepts them. */
const unsolicited = ({ params }: RequestContext): Round => {
  const responses = params?.["inputResponses"]
  return isObject(responses) && params?.["requestState"] === undefined
    ? { inputResponses: responses as InputResponses }
    : {}
}

const isError = (result: object): boolean => (result as { readonly isError?: unknown }).isError === true

/**
 * The error of a call that failed after the remote server had asked a stateless caller for something that this caller
 * does not support. A remote server with sessions cannot know that in advance: its client declares what all callers may
 * have. 2026-07-28, basic: "If processing a request requires a capability the client did not include […], the server
 * MUST return a `MissingRequiredClientCapabilityError`".
 */
const missingCapability = ({ caller, lacking }: ForwardedRequest): McpError.McpError | undefined =>
  lacking === undefined || Revision.era(caller.revision) === "session"
    ? undefined
    : McpError.missingRequiredClientCapability(lacking)

const wantsProgress = (params: JsonObject | undefined): boolean => {
  const meta = params?.["_meta"]
  return typeof meta === "object" && meta !== null && RequestMeta.progressToken in meta
}

/** The `_meta` of a request to a stateless remote server: the caller's capabilities and log level, for this request. */
const statelessMeta = ({ caller }: ForwardedRequest, received: JsonObject | undefined): JsonObject => {
  const declared = { ...declaredBy(caller), extensions: { [Task.extension]: {} } }
  const written = Codec.encode(Capabilities.ClientCapabilities, "2026-07-28", declared)
  return {
    ...passedOn(received?.["_meta"]),
    [RequestMeta.clientCapabilities]: Result.getOrElse(written, () => declared),
    ...(caller.logLevel === undefined ? undefined : { [RequestMeta.logLevel]: caller.logLevel })
  }
}

// How long a request that was not sent waits for the end of the client: longer than the end of a child process takes.
const endTimeout = "10 seconds"

// How many input requests one result of a stateless remote server may contain, and how often it may answer a request
// with some: the defaults of `maxInputRequests` of a client and of `maxRounds` of a server.
const maxQuestions = 32
const maxRounds = 16
