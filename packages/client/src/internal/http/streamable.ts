/**
 * The client side of Streamable HTTP. A request that carries its own revision is stateless (2026-07-28). `initialize`
 * opens a session, to which all other messages belong.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Headers } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpChannel, HttpProtocol } from "./protocol.ts"
import { SendQueue } from "./sendQueue.ts"
import { errorText, failureIn, mediaType, refusal, unusable } from "./refusal.ts"
import { notificationHeaders, requestHeaders } from "./requestHeaders.ts"
import { Session, type SessionRequests } from "./session.ts"
import { noStandaloneStream, readStandaloneStream, resumedRequestStream } from "./standaloneStream.ts"
import type { Resolved } from "./settings.ts"
import { AnsweredStreams, EventStream, follow, type Outcome, PermanentFailure } from "./eventStream.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

/** A request of this client, from its POST to the end of its stream. */
interface Pending {
  readonly request: JsonRpc.Request
  /** Whether it is stateless (2026-07-28). */
  readonly stateless: boolean
  /** The fiber that runs it; `undefined` while it waits for `notifications/initialized`. */
  fiber: Fiber.Fiber<void> | undefined
  /** Whether the server has accepted it. */
  accepted: boolean
  /** Whether its stream broke off. Its response may then arrive on any other stream. */
  streamLost: boolean
  answered: boolean
}

/** The remaining work for a request after its exchange. */
type Remainder = Effect.Effect<void, TransportError> | undefined

const initialize = "initialize"

const lost = (message: string, cause?: unknown): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message, cause }) })

const unanswered = (outcome: Outcome): TransportError =>
  outcome instanceof PermanentFailure
    ? outcome.error
    : outcome === undefined
    ? lost("The stream ended without the response")
    : outcome

// A gateway that responds with one of these has not read the request, unless the body has its id.
const gatewayStatuses = new Set([401, 403, 429, 503])
// The responses of a server of 2024-11-05 to a POST at the URL of its stream.
const legacyStatuses = new Set([400, 404, 405])

/** The connection, which can fall back to HTTP+SSE. */
export interface StreamableChannel extends HttpChannel {
  /** Sends a refused `initialize` again over HTTP+SSE. Returns whether the server has that transport. */
  readonly fallBackToSse: (initialize: JsonRpc.Request) => Effect.Effect<boolean>
}

/** Sends requests by POST, each with a stream or a body as its response. */
export class Streamable implements HttpProtocol, SessionRequests {
  readonly #channel: StreamableChannel
  readonly #settings: Resolved
  readonly #requests = new Map<JsonRpc.Id, Pending>()
  readonly #session: Session
  readonly #queue: SendQueue
  #answeredStreams: AnsweredStreams | undefined
  /** The revision of stateless requests. */
  #statelessRevision: string | undefined
  // The messages that wait until the server has accepted `notifications/initialized`.
  #beforeInitialized: Array<() => void> | undefined
  // How many of those are not requests.
  #queuedMessages = 0

  constructor(channel: StreamableChannel, settings: Resolved) {
    this.#channel = channel
    this.#settings = settings
    this.#session = new Session(channel, this)
    this.#queue = new SendQueue(channel, settings)
  }

  get full(): boolean {
    return this.#queue.full ||
      (this.#beforeInitialized !== undefined && this.#beforeInitialized.length >= this.#settings.maxConcurrentPosts)
  }

  get drained(): Effect.Effect<void> {
    // Waiting messages are sent after `notifications/initialized`, which is in flight.
    return this.#beforeInitialized === undefined ? this.#queue.drained : this.#queue.idle
  }

  send(message: JsonRpc.Outbound, headers: Headers | undefined): void {
    switch (message._tag) {
      case "Request":
        return this.#sendRequest(message, headers)
      case "Notification":
        return this.#notify(message)
      default:
        // "The client MUST NOT send JSON-RPC responses" in a stateless revision.
        if (this.#statelessRevision === undefined) this.#post(JsonRpc.encode(message), this.#session.headers, true)
    }
  }

  get close(): Effect.Effect<void> {
    return Effect.andThen(
      this.#queue.idle,
      Effect.suspend(() => {
        const bye = this.#session.deleteRequest
        return bye === undefined ? Effect.void : Effect.ignore(this.#channel.exchange(bye, () => Effect.void))
      })
    )
  }

  // ---- requests

  #sendRequest(request: JsonRpc.Request, extra: Headers | undefined): void {
    const body = JsonRpc.encode(request)
    const version = RequestMeta.versionOf(request.params)
    const stateless = version !== undefined
    if (stateless) this.#statelessRevision = version
    else if (request.method === initialize) {
      this.#statelessRevision = undefined
      this.#session.begin()
    } else if (this.#session.gone) return this.#channel.refused(request.id, this.#session.refusedError())
    const pending: Pending = {
      request,
      stateless: stateless,
      fiber: undefined,
      accepted: false,
      streamLost: false,
      answered: false
    }
    this.#requests.set(request.id, pending)
    const headers = stateless ? requestHeaders(request, version, extra) : this.#session.headers
    const start = () => {
      if (this.#requests.get(request.id) === pending) {
        pending.fiber = this.#channel.fork(
          this.#run(pending, { method: "POST", url: this.#channel.url, headers, body })
        )
      }
    }
    if (this.#beforeInitialized === undefined || stateless) start()
    else this.#beforeInitialized.push(start)
  }

  #run(pending: Pending, request: HttpRequest): Effect.Effect<void> {
    return Effect.matchCause(
      Effect.flatMap(
        this.#channel.exchange(request, (reply) => this.#onReply(pending, reply)),
        (rest) => rest ?? Effect.void
      ),
      {
        onFailure: (cause) => {
          this.#forget(pending)
          if (!pending.answered) this.#channel.refused(pending.request.id, this.#errorOf(cause, pending))
        },
        onSuccess: () => this.#forget(pending)
      }
    )
  }

  /** A defect fails its request too, so that the caller does not wait forever. */
  #errorOf(cause: Cause.Cause<TransportError>, { accepted }: Pending): TransportError {
    const error = cause.reasons.find(Cause.isFailReason)?.error
    if (error !== undefined) {
      // An accepted request was delivered, even if the requests that resume its stream were not.
      return accepted && error.undelivered === true ? lost(error.message, error) : error
    }
    this.#channel.fork(Effect.logError("defect in a request over HTTP", cause))
    return lost("A defect in the transport or in the credentials; see the log", cause)
  }

  #forget(pending: Pending): void {
    if (this.#requests.get(pending.request.id) === pending) this.#requests.delete(pending.request.id)
    if (pending.fiber !== undefined) this.#answeredStreams?.delete(pending.fiber)
  }

  #onReply(pending: Pending, reply: HttpResponse): Effect.Effect<Remainder, TransportError> {
    const { status } = reply
    if (status < 200 || status >= 300) {
      return Effect.flatMap(errorText(reply, this.#settings), (text) => this.#onError(pending, reply, text))
    }
    pending.accepted = true
    if (pending.request.method === initialize && !this.#session.readId(reply)) {
      return Effect.fail(unusable(reply, "an invalid session id"))
    }
    const type = mediaType(reply)
    if (type === "text/event-stream") return this.#onStream(pending, reply)
    if (type === "application/json") {
      return Effect.flatMap(reply.text(this.#settings.maxMessageBytes), (text) => this.#onBody(pending, reply, text))
    }
    return Effect.flatMap(errorText(reply, this.#settings), (text) => {
      const what = text === ""
        ? `an empty body (status ${status})`
        : `the content type ${JSON.stringify(type.slice(0, 64))}`
      return Effect.fail(unusable(reply, what, text))
    })
  }

  #onBody(pending: Pending, reply: HttpResponse, text: string): Effect.Effect<Remainder, TransportError> {
    const message = JsonRpc.parseText(text)
    if (message._tag === "Invalid" && !message.answer) {
      return Effect.fail(unusable(reply, text === "" ? "an empty body" : "a body that is not a JSON-RPC message", text))
    }
    this.#deliver(message, pending)
    return pending.answered
      ? Effect.undefined
      : Effect.fail(unusable(reply, "a message that does not answer the request", text))
  }

  #onStream(pending: Pending, reply: HttpResponse): Effect.Effect<Remainder, TransportError> {
    const stream = new EventStream(this.#settings, (data) => {
      this.#deliver(JsonRpc.parseText(data), pending)
      if (!pending.answered || pending.fiber === undefined) return
      ;(this.#answeredStreams ??= new AnsweredStreams(this.#channel)).add(pending.fiber)
    })
    if (pending.stateless) {
      // "Resumable SSE streams via `Last-Event-ID` are not supported."
      return Effect.flatMap(
        stream.read(reply),
        (outcome) => pending.answered ? Effect.undefined : Effect.fail(unanswered(outcome))
      )
    }
    return Effect.flatMap(stream.readTimed(reply), (outcome): Effect.Effect<Remainder, TransportError> => {
      if (pending.answered) return Effect.undefined
      if (outcome instanceof PermanentFailure || stream.lastId === undefined) return Effect.fail(unanswered(outcome))
      pending.streamLost = true
      const gone = () => this.#onSessionNotFound(pending, this.#session.lostError)
      return Effect.succeed(
        follow(resumedRequestStream(this.#channel, this.#session, stream, () => pending.answered, gone), outcome)
      )
    })
  }

  #onError(pending: Pending, reply: HttpResponse, text: string): Effect.Effect<Remainder, TransportError> {
    const { request, stateless } = pending
    const { status } = reply
    const failure = failureIn(text)
    const named = failure !== undefined && failure.id === request.id
    const answer = named || (failure !== undefined && failure.id === undefined && !gatewayStatuses.has(status))
    const told: Effect.Effect<void, TransportError> = answer && status !== 401
      ? Effect.sync(() => this.#deliver(failure!, pending))
      : Effect.flatMap(refusal(reply, text, failure), (error) => Effect.fail(error))
    if (stateless) return Effect.as(told, undefined)
    if (request.method === initialize) {
      // "If the body contains a recognized modern JSON-RPC error, the server speaks a modern version of MCP."
      const recognized = failure !== undefined && (named || McpError.isRequestEra(failure.error))
      if (recognized || !legacyStatuses.has(status)) return Effect.as(told, undefined)
      // This exchange must end before the stream is requested.
      return Effect.succeed(Effect.flatMap(this.#channel.fallBackToSse(request), (taken) => taken ? Effect.void : told))
    }
    // An error with the id of this request does not concern the session.
    const said = failure !== undefined && failure.id === undefined ? failure.error.message : ""
    const known = !this.#session.isNotFound(status) && !this.#session.isUnknownSession(status, said)
    if (known) return Effect.as(told, undefined)
    return Effect.sync(() => this.#onSessionNotFound(pending, this.#session.refusedError(status)))
  }

  #onSessionNotFound(pending: Pending, error: TransportError): undefined {
    pending.answered = true
    this.#channel.refused(pending.request.id, error)
    this.#session.onNotFound()
  }

  /** Waits for the requests that the server has not accepted yet. `undefined` without such requests. */
  get unaccepted(): Effect.Effect<void> | undefined {
    const fibers = [...this.#requests.values()].flatMap(({ answered, fiber, accepted }) =>
      answered || accepted || fiber === undefined ? [] : [Fiber.await(fiber)]
    )
    if (fibers.length === 0) return undefined
    return Effect.asVoid(Effect.timeoutOption(Effect.all(fibers, { discard: true }), this.#settings.closeTimeout))
  }

  // ---- received messages

  #deliver(message: JsonRpc.Inbound, pending: Pending | undefined): void {
    switch (message._tag) {
      case "Batch":
        for (const member of message.members) this.#deliver(member, pending)
        return
      case "Request":
      case "Notification":
        return this.#channel.deliver(message)
      case "Invalid":
        if (!message.answer) return this.#channel.deliver(message)
    }
    // An error whose id could not be read, on the stream of one request, is about that request.
    const answer = message.id === undefined && pending !== undefined ? { ...message, id: pending.request.id } : message
    const answered = answer.id === undefined
      ? undefined
      : answer.id === pending?.request.id
      ? pending
      : this.#requests.get(answer.id)
    // A response to another request that has a stream of its own is dropped.
    if (answered !== pending && pending !== undefined && answered?.streamLost !== true) return
    if (answered !== undefined) {
      answered.answered = true
      if (answered.request.method === initialize && answer._tag === "Success") {
        this.#session.setRevision((answer.result as JsonRpc.JsonObject)["protocolVersion"])
      }
    }
    this.#channel.deliver(answer)
  }

  // ---- the session

  #notify(notification: JsonRpc.Notification): void {
    const body = JsonRpc.encode(notification)
    switch (notification.method) {
      case "notifications/cancelled": {
        const pending = this.#requests.get(notification.params?.["requestId"] as JsonRpc.Id)
        if (pending === undefined) {
          if (this.#statelessRevision === undefined) break
          return
        }
        const { fiber, stateless } = pending
        this.#forget(pending)
        fiber?.interruptUnsafe()
        // "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
        if (stateless || fiber === undefined) return
        break
      }
      case "notifications/initialized": {
        this.#beforeInitialized ??= []
        return this.#queue.send(this.#postRequest(body, this.#session.headers), {
          retry: true,
          ordered: false,
          onDone: (error) => {
            this.#onPosted(notification.method, error)
            if (this.#session.gone) return
            this.#listen()
            const waiting = this.#beforeInitialized ?? []
            this.#beforeInitialized = undefined
            this.#queuedMessages = 0
            for (const go of waiting) go()
          }
        })
      }
    }
    const headers = this.#statelessRevision === undefined
      ? this.#session.headers
      : notificationHeaders(notification, this.#statelessRevision)
    this.#post(body, headers, false, notification.method !== "notifications/cancelled")
  }

  #listen(): void {
    if (!this.#settings.standaloneStream) return this.#channel.gap(noStandaloneStream)
    const stream = new EventStream(this.#settings, (data) => this.#deliver(JsonRpc.parseText(data), undefined))
    this.#channel.fork(readStandaloneStream(this.#channel, this.#session, stream))
  }

  #postRequest(body: string, headers: Headers): HttpRequest {
    return { method: "POST", url: this.#channel.url, headers, body }
  }

  #post(body: string, headers: Headers, retry: boolean, ordered = false): void {
    const what = retry ? "A response" : "A notification"
    const go = () =>
      this.#queue.send(this.#postRequest(body, headers), {
        retry,
        ordered,
        onDone: (error) => this.#onPosted(what, error)
      })
    if (this.#beforeInitialized === undefined) return go()
    if (!this.#queue.overflows(this.#queuedMessages++)) this.#beforeInitialized.push(go)
  }

  #onPosted(what: string, error: TransportError | undefined): void {
    if (error === undefined) return
    if (this.#statelessRevision === undefined && this.#session.isNotFound(error.status)) {
      return this.#session.onNotFound()
    }
    this.#channel.fork(Effect.logDebug(`${what} was not accepted by the server: ${error.message}`))
  }
}
