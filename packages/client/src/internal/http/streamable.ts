/**
 * The client side of Streamable HTTP. A request that carries its own revision is stateless (2026-07-28). `initialize`
 * opens a session, to which all other messages belong.
 */
import { quote } from "@skein/protocol/Text"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { connectionLost } from "../base/errors.ts"
import type { HttpChannel, HttpProtocol } from "./protocol.ts"
import { type SendOptions, SendQueue } from "./sendQueue.ts"
import { errorText, failureIn, is2xx, mediaType, refusal, unusable } from "./refusal.ts"
import { notificationHeaders, requestHeaders } from "./requestHeaders.ts"
import { Session } from "./session.ts"
import { noStandaloneStream, readStandaloneStream, resumeRequestStream } from "./standaloneStream.ts"
import { AnsweredStreams, EventStream, type Outcome } from "./eventStream.ts"
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

const unanswered = (outcome: Outcome): TransportError =>
  outcome ?? connectionLost("The stream ended without the response")

// A gateway that responds with one of these has not read the request, unless the body has its id.
const gatewayStatuses = new Set([401, 403, 429, 503])
// The responses of a server of 2024-11-05 to a POST at the URL of its stream.
const legacyStatuses = new Set([400, 404, 405])

const isDenied = ({ status }: TransportError): boolean => status === 401 || status === 403

/** The connection, which can fall back to HTTP+SSE. */
export interface StreamableChannel extends HttpChannel {
  /** Sends a refused `initialize` again over HTTP+SSE. Returns the error if the server does not have that transport. */
  readonly fallBackToSse: (initialize: JsonRpc.Request) => Effect.Effect<TransportError | undefined>
}

/** Sends requests by POST, each with a stream or a body as its response. */
export class Streamable implements HttpProtocol {
  readonly #channel: StreamableChannel
  readonly #requests = new Map<JsonRpc.Id, Pending>()
  readonly #session: Session
  readonly queue: SendQueue
  #answeredStreams: AnsweredStreams | undefined
  /** The revision of stateless requests. */
  #statelessRevision: string | undefined

  constructor(channel: StreamableChannel) {
    this.#channel = channel
    this.#session = new Session(channel.settings.url)
    this.queue = new SendQueue(channel)
  }

  send(message: JsonRpc.Outbound, headers: Headers | undefined): void {
    switch (message._tag) {
      case "Request":
        return this.#sendRequest(message, headers)
      case "Notification":
        return this.#notify(message)
      default:
        // "The client MUST NOT send JSON-RPC responses" in a stateless revision.
        if (this.#statelessRevision !== undefined) return
        this.#post(this.#session.postRequest(JsonRpc.encode(message)), "A response", { retry: true, ordered: false })
    }
  }

  get close(): Effect.Effect<void> {
    return Effect.andThen(
      this.queue.idle,
      Effect.suspend(() => {
        const request = this.#session.deleteRequest
        return request === undefined
          ? Effect.void
          : Effect.ignore(this.#channel.exchanger.exchange(request, () => Effect.void))
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
      stateless,
      fiber: undefined,
      accepted: false,
      streamLost: false,
      answered: false
    }
    this.#requests.set(request.id, pending)
    const post: HttpRequest = stateless
      ? { method: "POST", url: this.#channel.settings.url, headers: requestHeaders(request, version, extra), body }
      : this.#session.postRequest(body)
    const start = () => {
      if (this.#requests.get(request.id) === pending) pending.fiber = this.#channel.fork(this.#run(pending, post))
    }
    if (stateless) start()
    else this.queue.whenReleased(start)
  }

  #run(pending: Pending, request: HttpRequest): Effect.Effect<void> {
    return Effect.matchCause(
      Effect.flatMap(
        this.#channel.exchanger.exchange(request, (reply) => this.#onReply(pending, reply)),
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
      return accepted && error.undelivered === true ? connectionLost(error.message, error) : error
    }
    this.#channel.fork(Effect.logError("defect in a request over HTTP", cause))
    return connectionLost("A defect in the transport or in the credentials; see the log", cause)
  }

  #forget(pending: Pending): void {
    if (this.#requests.get(pending.request.id) === pending) this.#requests.delete(pending.request.id)
    if (pending.fiber !== undefined) this.#answeredStreams?.delete(pending.fiber)
  }

  #onReply(pending: Pending, reply: HttpResponse): Effect.Effect<Remainder, TransportError> {
    if (!is2xx(reply)) {
      return Effect.flatMap(errorText(reply, this.#channel), (text) => this.#onError(pending, reply, text))
    }
    pending.accepted = true
    if (pending.request.method === initialize && !this.#session.readId(reply)) {
      return Effect.fail(unusable(reply, "an invalid session id"))
    }
    const type = mediaType(reply)
    if (type === "text/event-stream") return this.#onStream(pending, reply)
    if (type === "application/json") {
      return Effect.flatMap(
        reply.text(this.#channel.settings.maxMessageBytes),
        (text) => this.#onBody(pending, reply, text)
      )
    }
    return Effect.flatMap(errorText(reply, this.#channel), (text) => {
      const what = text === ""
        ? `an empty body (status ${reply.status})`
        : `the content type ${quote(type, 64)}`
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
    const stream = new EventStream(this.#channel.settings, (data) => {
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
      if (stream.lastId === undefined) return Effect.fail(unanswered(outcome))
      pending.streamLost = true
      return Effect.succeed(resumeRequestStream({
        channel: this.#channel,
        session: this.#session,
        stream,
        isOver: () => pending.answered,
        onNotFound: () => this.#refuse(pending, this.#session.lostError)
      }, outcome))
    })
  }

  #onError(pending: Pending, reply: HttpResponse, text: string): Effect.Effect<Remainder, TransportError> {
    const { request, stateless } = pending
    const { status } = reply
    const failure = failureIn(text)
    const named = failure !== undefined && JsonRpc.ownId(failure.id) === request.id
    const answer = named || (failure !== undefined && failure.id === undefined && !gatewayStatuses.has(status))
    const answered: Effect.Effect<undefined, TransportError> = answer && status !== 401 &&
        reply.credentialsFailure === undefined
      ? Effect.as(Effect.sync(() => this.#deliver(failure!, pending)), undefined)
      : Effect.flip(refusal(reply, text, failure))
    if (stateless) return answered
    if (request.method === initialize) {
      // "If the body contains a recognized modern JSON-RPC error, the server speaks a modern version of MCP."
      const recognized = failure !== undefined && (named || McpError.isStateless(failure.error))
      if (recognized || !legacyStatuses.has(status)) return answered
      // This exchange must end before the stream is requested.
      return Effect.succeed(
        Effect.flatMap(this.#channel.fallBackToSse(request), (error): Remainder & {} =>
          // The server has that transport, but the credentials failed to open it.
          error === undefined
            ? Effect.void
            : error.cause !== undefined && isDenied(error)
            ? Effect.fail(error)
            : answered)
      )
    }
    // An error with the id of this request does not concern the session.
    const message = failure !== undefined && failure.id === undefined ? failure.error.message : ""
    if (!this.#session.isNotFound(status) && !this.#session.isUnknownSession(status, message)) return answered
    return Effect.sync(() => this.#refuse(pending, this.#session.refusedError(status)))
  }

  /** Fails a request whose session does not exist. */
  #refuse(pending: Pending, error: TransportError): undefined {
    pending.answered = true
    this.#channel.refused(pending.request.id, error)
    this.#onNotFound()
  }

  /**
   * Ends the connection: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it
   * MUST start a new session." The caller has already failed its own request. The other requests in flight will get the
   * same response, and can then be retried on the new connection, so they have `shutdownTimeout` for that.
   */
  #onNotFound(): void {
    if (this.#session.gone) return
    this.#session.gone = true
    const end = () => this.#channel.end({ _tag: "Lost", cause: this.#session.lostError })
    const unaccepted = [...this.#requests.values()].flatMap(({ answered, fiber, accepted }) =>
      answered || accepted || fiber === undefined ? [] : [Fiber.await(fiber)]
    )
    if (unaccepted.length === 0) return end()
    const { shutdownTimeout } = this.#channel.settings
    this.#channel.fork(
      Effect.map(this.#channel.callClock.timeoutOption(Effect.all(unaccepted, { discard: true }), shutdownTimeout), end)
    )
  }

  // ---- received messages

  #deliver(message: JsonRpc.Inbound, pending: Pending | undefined): void {
    switch (message._tag) {
      case "Batch":
        for (const member of message.members) this.#deliver(member, pending)
        return
      case "Request":
      case "Notification":
        return this.#channel.deliver(message, pending?.request.id)
      case "Invalid":
        if (!message.answer) return this.#channel.deliver(message)
    }
    // An error whose id could not be read, on the stream of one request, is about that request.
    const answer = message.id === undefined && pending !== undefined ? { ...message, id: pending.request.id } : message
    const id = JsonRpc.ownId(answer.id)
    const answered = id === undefined ? undefined : id === pending?.request.id ? pending : this.#requests.get(id)
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
      case "notifications/initialized":
        return this.queue.initialized(this.#session.postRequest(body), (error) => {
          this.#onPosted(notification.method, error)
          if (this.#session.gone) return
          this.#listen()
          this.queue.release()
        })
    }
    const request: HttpRequest = this.#statelessRevision === undefined ? this.#session.postRequest(body) : {
      method: "POST",
      url: this.#channel.settings.url,
      headers: notificationHeaders(notification, this.#statelessRevision),
      body
    }
    const ordered = notification.method !== "notifications/cancelled"
    this.#post(request, "A notification", { retry: false, ordered })
  }

  #listen(): void {
    if (!this.#channel.settings.standaloneStream) return this.#channel.gap(noStandaloneStream)
    const stream = new EventStream(this.#channel.settings, (data) => this.#deliver(JsonRpc.parseText(data), undefined))
    this.#channel.fork(readStandaloneStream(this.#channel, this.#session, stream, () => this.#onNotFound()))
  }

  #post(request: HttpRequest, what: string, options: Omit<SendOptions, "onDone">): void {
    this.queue.send(request, { ...options, onDone: (error) => this.#onPosted(what, error) })
  }

  #onPosted(what: string, error: TransportError | undefined): void {
    if (error === undefined) return
    if (this.#statelessRevision === undefined && this.#session.isNotFound(error.status)) return this.#onNotFound()
    this.#channel.fork(Effect.logDebug(`${what} was not accepted by the server: ${error.message}`))
  }
}
