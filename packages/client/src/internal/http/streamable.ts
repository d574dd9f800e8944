/**
 * Streamable HTTP as a client speaks it. It learns the era from what passes: a request that says its own revision is of the request
 * era; `initialize` opens a session, to which everything else belongs.
 */
import { names } from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import { type Headers, TransportError } from "@skein/runtime/Connection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Lane, Road } from "./lane.ts"
import { Lingering } from "./lingering.ts"
import { Posts } from "./posts.ts"
import { errorText, failureIn, mayPass, mediaType, refusal, unusable } from "./refusal.ts"
import { isSessionId, isVersion, ofNotification, ofRequest, SessionHeaders } from "./requestHeaders.ts"
import type { Resolved } from "./settings.ts"
import { ask, EventStream, Final, follow, type Following, type Outcome } from "./stream.ts"
import type { WireReply, WireRequest } from "./wire.ts"

/** A request of ours, from its POST to the end of its stream. */
interface Pending {
  readonly request: JsonRpc.Request
  /** It is of the request era. */
  readonly modern: boolean
  /** What runs it, once nothing has to come before it. */
  fiber: Fiber.Fiber<void> | undefined
  /** The server has taken it. */
  taken: boolean
  answered: boolean
}

/** What is left to do for a request when its exchange is over. */
type Rest = Effect.Effect<void, TransportError> | undefined

const initialize = "initialize"

const lost = (message: string, cause?: unknown, status?: number): TransportError =>
  new TransportError({ reason: "Lost", message, cause, status })

const unanswered = (outcome: Outcome): TransportError =>
  outcome instanceof Final
    ? outcome.error
    : outcome === undefined
    ? lost("The stream ended without the answer")
    : outcome

const gone = "The session is gone: the server does not know it any more (404)"

/** The refusal of a request whose session is gone: nobody has handled it. */
const turnedAway = (): TransportError =>
  new TransportError({ reason: "Refused", message: gone, status: 404, undelivered: true })

// Whoever turns a request away with one of these has not read it, whatever the body says, unless it names the request.
const doors = new Set([401, 403, 429, 503])
// What a server of 2024-11-05 answers to a POST where its stream is.
const legacy = new Set([400, 404, 405])

/** See the module's text. */
export class Streamable implements Lane {
  readonly #road: Road
  readonly #settings: Resolved
  readonly #takeOver: (initialize: JsonRpc.Request) => Effect.Effect<boolean>
  readonly #requests = new Map<JsonRpc.Id, Pending>()
  readonly #posts: Posts
  readonly #lingering: Lingering
  /** The revision of the requests, in the request era. */
  #modern: string | undefined
  #sessionId: string | undefined
  #session = new SessionHeaders(undefined, undefined)
  // What waits until the server has accepted `notifications/initialized`.
  #gate: Array<() => void> | undefined
  #gone = false

  constructor(road: Road, settings: Resolved, takeOver: (initialize: JsonRpc.Request) => Effect.Effect<boolean>) {
    this.#road = road
    this.#settings = settings
    this.#takeOver = takeOver
    this.#posts = new Posts(road, settings)
    this.#lingering = new Lingering(road)
  }

  get full(): boolean {
    return this.#posts.full || (this.#gate !== undefined && this.#gate.length >= this.#settings.maxPosts)
  }

  get drained(): Effect.Effect<void> {
    // What waits at the gate is not sent before `initialized` has arrived, which is on its way.
    return this.#gate === undefined ? this.#posts.drained : this.#posts.idle
  }

  send(message: JsonRpc.Outbound, headers: Headers | undefined): void {
    switch (message._tag) {
      case "Request":
        return this.#ask(message, headers)
      case "Notification":
        return this.#notify(message)
      default:
        // "The client MUST NOT send JSON-RPC responses" in the request era.
        if (this.#modern === undefined) this.#post(JsonRpc.encode(message), this.#session.posted, true)
    }
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(
      this.#posts.idle,
      Effect.suspend(() =>
        this.#sessionId === undefined || this.#gone
          ? Effect.void
          : Effect.ignore(this.#road.exchange(
            { method: "DELETE", url: this.#road.url, headers: this.#session.deleted },
            () => Effect.void
          ))
      )
    )
  )

  // ---- requests

  #ask(request: JsonRpc.Request, extra: Headers | undefined): void {
    const body = JsonRpc.encode(request)
    const version = RequestMeta.versionOf(request.params)
    const modern = version !== undefined
    if (modern) this.#modern = version
    else if (request.method === initialize) this.#begin()
    else if (this.#gone) return this.#road.refused(request.id, turnedAway())
    const pending: Pending = { request, modern, fiber: undefined, taken: false, answered: false }
    this.#requests.set(request.id, pending)
    const headers = modern ? ofRequest(request, version, extra) : this.#session.posted
    const start = () => {
      if (this.#requests.get(request.id) === pending) {
        pending.fiber = this.#road.fork(this.#run(pending, { method: "POST", url: this.#road.url, headers, body }))
      }
    }
    if (this.#gate === undefined || modern) start()
    else this.#gate.push(start)
  }

  #run(pending: Pending, request: WireRequest): Effect.Effect<void> {
    return Effect.matchCause(
      Effect.flatMap(
        this.#road.exchange(request, (reply) => this.#onReply(pending, reply)),
        (rest) => rest ?? Effect.void
      ),
      {
        onFailure: (cause) => {
          this.#forget(pending)
          if (!pending.answered) this.#road.refused(pending.request.id, this.#errorOf(cause))
        },
        onSuccess: () => this.#forget(pending)
      }
    )
  }

  /** A defect fails its request too: whoever waits for it must not wait for ever. */
  #errorOf(cause: Cause.Cause<TransportError>): TransportError {
    const reason = cause.reasons.find(Cause.isFailReason)
    if (reason !== undefined) return reason.error
    this.#road.fork(Effect.logError("A defect in a request over HTTP", cause))
    return lost("A defect in the transport, or in the credentials: the log has it", cause)
  }

  #forget(pending: Pending): void {
    if (this.#requests.get(pending.request.id) === pending) this.#requests.delete(pending.request.id)
    if (pending.fiber !== undefined) this.#lingering.delete(pending.fiber)
  }

  #onReply(pending: Pending, reply: WireReply): Effect.Effect<Rest, TransportError> {
    const { status } = reply
    const { maxMessage } = this.#settings
    if (status < 200 || status >= 300) {
      return Effect.flatMap(errorText(reply, maxMessage), (text) => this.#onError(pending, reply, text))
    }
    pending.taken = true
    if (pending.request.method === initialize && !this.#learn(reply)) {
      return Effect.fail(unusable(status, "a session id that is none"))
    }
    const type = mediaType(reply)
    if (type === "text/event-stream") return this.#onStream(pending, reply)
    if (type === "application/json") {
      return Effect.flatMap(reply.text(maxMessage), (text) => this.#onBody(pending, status, text))
    }
    return Effect.flatMap(errorText(reply, maxMessage), (text) => {
      const what = text === ""
        ? `an empty body (status ${status})`
        : `the content type ${JSON.stringify(type.slice(0, 64))}`
      return Effect.fail(unusable(status, what, text))
    })
  }

  #onBody(pending: Pending, status: number, text: string): Effect.Effect<Rest, TransportError> {
    const message = JsonRpc.parseText(text)
    if (message._tag === "Invalid" && !message.answer) {
      return Effect.fail(unusable(status, text === "" ? "an empty body" : "what is no JSON-RPC message", text))
    }
    this.#deliver(message, pending)
    return pending.answered
      ? Effect.undefined
      : Effect.fail(unusable(status, "a message that does not answer the request", text))
  }

  #onStream(pending: Pending, reply: WireReply): Effect.Effect<Rest, TransportError> {
    const stream = new EventStream(this.#settings, (data) => {
      this.#deliver(JsonRpc.parseText(data), pending)
      if (pending.answered && pending.fiber !== undefined) this.#lingering.add(pending.fiber)
    })
    if (pending.modern) {
      // "Resumable SSE streams via `Last-Event-ID` are not supported."
      return Effect.flatMap(
        stream.read(reply),
        (outcome) => pending.answered ? Effect.undefined : Effect.fail(unanswered(outcome))
      )
    }
    return Effect.flatMap(stream.timed(reply), (outcome): Effect.Effect<Rest, TransportError> => {
      if (pending.answered) return Effect.undefined
      if (outcome instanceof Final || stream.lastId === undefined) return Effect.fail(unanswered(outcome))
      return Effect.succeed(follow(this.#resuming(pending, stream), undefined))
    })
  }

  #onError(pending: Pending, reply: WireReply, text: string): Effect.Effect<Rest, TransportError> {
    const { modern, request } = pending
    const { status } = reply
    const failure = failureIn(text)
    const named = failure !== undefined && failure.id === request.id
    const answer = named || (failure !== undefined && failure.id === undefined && !doors.has(status))
    const told: Effect.Effect<void, TransportError> = answer && status !== 401
      ? Effect.sync(() => this.#deliver(failure!, pending))
      : Effect.flatMap(refusal(reply, text, failure), (error) => Effect.fail(error))
    if (modern) return Effect.as(told, undefined)
    if (request.method === initialize) {
      // "If the body contains a recognized modern JSON-RPC error, the server speaks a modern version of MCP."
      const recognized = failure !== undefined && (named || McpError.isRequestEra(failure.error))
      if (recognized || !legacy.has(status)) return Effect.as(told, undefined)
      // The exchange has to be over before the server is asked for its stream.
      return Effect.succeed(Effect.flatMap(this.#takeOver(request), (taken) => taken ? Effect.void : told))
    }
    if (status !== 404 || this.#sessionId === undefined) return Effect.as(told, undefined)
    return Effect.sync(() => {
      pending.answered = true
      this.#road.refused(request.id, turnedAway())
      this.#end()
      return undefined
    })
  }

  // ---- what comes

  #deliver(message: JsonRpc.Inbound, pending: Pending | undefined): void {
    switch (message._tag) {
      case "Batch":
        for (const member of message.members) this.#deliver(member, pending)
        return
      case "Request":
      case "Notification":
        return this.#road.deliver(message)
      case "Invalid":
        if (!message.answer) return this.#road.deliver(message)
    }
    // An error whose id could not be read, on the stream of one request, is about that request.
    const answer = message.id === undefined && pending !== undefined ? { ...message, id: pending.request.id } : message
    const answered = answer.id === undefined
      ? undefined
      : answer.id === pending?.request.id
      ? pending
      : this.#requests.get(answer.id)
    if (answered !== undefined) {
      answered.answered = true
      if (answered.request.method === initialize && answer._tag === "Success") {
        const version = (answer.result as JsonRpc.JsonObject)["protocolVersion"]
        this.#session = new SessionHeaders(this.#sessionId, isVersion(version) ? version : undefined)
      }
    }
    this.#road.deliver(answer)
  }

  // ---- the session

  #begin(): void {
    this.#modern = undefined
    this.#sessionId = undefined
    this.#session = new SessionHeaders(undefined, undefined)
    this.#gone = false
  }

  /** Takes the session's id from the response to `initialize`; `false` if it is none. */
  #learn(reply: WireReply): boolean {
    const id = reply.header(names.sessionId.toLowerCase())
    if (id === undefined) return true
    if (!isSessionId(id)) return false
    this.#sessionId = id
    this.#session = new SessionHeaders(id, undefined)
    return true
  }

  /**
   * "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST start a new session." The other
   * requests that are on their way will hear the same, and may be made again then: `closeGrace` is what they have for that.
   */
  #end(): void {
    if (this.#gone) return
    this.#gone = true
    const end = () => this.#road.end({ _tag: "Lost", cause: lost(gone, undefined, 404) })
    const others = [...this.#requests.values()].flatMap(({ answered, fiber, taken }) =>
      answered || taken || fiber === undefined ? [] : [Fiber.await(fiber)]
    )
    if (others.length === 0) return end()
    const told = Effect.timeoutOption(Effect.all(others, { discard: true }), this.#settings.closeGrace)
    this.#road.fork(Effect.andThen(told, Effect.sync(end)))
  }

  #notify(notification: JsonRpc.Notification): void {
    const body = JsonRpc.encode(notification)
    switch (notification.method) {
      case "notifications/cancelled": {
        const pending = this.#requests.get(notification.params?.["requestId"] as JsonRpc.Id)
        if (pending === undefined) {
          if (this.#modern === undefined) break
          return
        }
        const { fiber, modern } = pending
        this.#forget(pending)
        fiber?.interruptUnsafe()
        // "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
        if (modern || fiber === undefined) return
        break
      }
      case "notifications/initialized": {
        this.#gate ??= []
        return this.#posts.send(this.#posting(body, this.#session.posted), {
          insist: true,
          ordered: false,
          done: (error) => {
            this.#accepted(notification.method, error)
            if (this.#gone) return
            this.#road.fork(this.#listen())
            const waiting = this.#gate ?? []
            this.#gate = undefined
            for (const go of waiting) go()
          }
        })
      }
    }
    const headers = this.#modern === undefined ? this.#session.posted : ofNotification(notification, this.#modern)
    this.#post(body, headers, false, notification.method !== "notifications/cancelled")
  }

  #posting(body: string, headers: Headers): WireRequest {
    return { method: "POST", url: this.#road.url, headers, body }
  }

  #post(body: string, headers: Headers, insist: boolean, ordered = false): void {
    const what = insist ? "An answer" : "A notification"
    const go = () =>
      this.#posts.send(this.#posting(body, headers), { insist, ordered, done: (error) => this.#accepted(what, error) })
    if (this.#gate === undefined) go()
    else this.#gate.push(go)
  }

  #accepted(what: string, error: TransportError | undefined): void {
    if (error === undefined) return
    if (error.status === 404 && this.#sessionId !== undefined && this.#modern === undefined) return this.#end()
    this.#road.fork(Effect.logDebug(`${what} was not accepted by the server: ${error.message}`))
  }

  // ---- the streams of the session

  #getting(lastId: string | undefined): WireRequest {
    return { method: "GET", url: this.#road.url, headers: this.#session.got(lastId) }
  }

  #resuming(pending: Pending, stream: EventStream): Following {
    return {
      road: this.#road,
      stream,
      request: (lastId) => this.#getting(lastId),
      over: () => pending.answered,
      judge: (reply) => {
        if (reply.status === 404 && this.#sessionId !== undefined) {
          return Effect.sync(() => {
            pending.answered = true
            this.#road.refused(pending.request.id, lost(gone, undefined, 404))
            this.#end()
            return undefined
          })
        }
        return Effect.map(this.#refusal(reply), (error) =>
          mayPass(reply.status) ? error : new Final(
            lost(`The stream could not be resumed: ${error.message}`, error, reply.status)
          ))
      }
    }
  }

  #refusal(reply: WireReply): Effect.Effect<TransportError> {
    return Effect.flatMap(errorText(reply, this.#settings.maxMessage), (text) => refusal(reply, text))
  }

  /** Listens to what the server has to say of itself, if it has a stream for that. */
  #listen(): Effect.Effect<void> {
    const stream = new EventStream(this.#settings, (data) => this.#deliver(JsonRpc.parseText(data), undefined))
    const following: Following = {
      road: this.#road,
      stream,
      request: (lastId) => this.#getting(lastId),
      over: () => this.#gone,
      judge: (reply) => {
        // A server that never had a stream may answer 404 too.
        if (reply.status === 404 && this.#sessionId !== undefined && stream.opened) {
          return Effect.sync(() => void this.#end())
        }
        return Effect.map(this.#refusal(reply), (error) => mayPass(reply.status) ? error : new Final(error))
      }
    }
    return Effect.matchEffect(Effect.flatMap(ask(following), (outcome) => follow(following, outcome)), {
      onFailure: (error) => {
        // The server cannot be reached at all: a new connection may, or says so.
        if (!stream.reached) return Effect.sync(() => this.#road.end({ _tag: "Lost", cause: error }))
        const message = `What the server says of itself is not listened to: ${error.message}`
        return stream.opened ? Effect.logWarning(message) : Effect.logDebug(message)
      },
      onSuccess: () => Effect.void
    })
  }
}
