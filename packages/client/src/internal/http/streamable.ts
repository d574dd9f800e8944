/**
 * Streamable HTTP as a client speaks it. It learns the era from what passes: a request that says its own revision is of the request
 * era; `initialize` opens a session, to which everything else belongs.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Headers } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Lane, Road } from "./protocol.ts"
import { Lingering } from "./lingering.ts"
import { Posts } from "./sendQueue.ts"
import { errorText, failureIn, mediaType, refusal, unusable } from "./refusal.ts"
import { ofNotification, ofRequest } from "./requestHeaders.ts"
import { type Owner, Session } from "./session.ts"
import { listen, resuming, unheard } from "./sessionStream.ts"
import type { Resolved } from "./settings.ts"
import { EventStream, Final, follow, type Outcome } from "./eventStream.ts"
import type { WireReply, WireRequest } from "./httpClient.ts"

/** A request of ours, from its POST to the end of its stream. */
interface Pending {
  readonly request: JsonRpc.Request
  /** It is of the request era. */
  readonly modern: boolean
  /** What runs it, once nothing has to come before it. */
  fiber: Fiber.Fiber<void> | undefined
  /** The server has taken it. */
  taken: boolean
  /** Its stream broke off: its answer may come on any other. */
  adrift: boolean
  answered: boolean
}

/** What is left to do for a request when its exchange is over. */
type Rest = Effect.Effect<void, TransportError> | undefined

const initialize = "initialize"

const lost = (message: string, cause?: unknown): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message, cause }) })

const unanswered = (outcome: Outcome): TransportError =>
  outcome instanceof Final
    ? outcome.error
    : outcome === undefined
    ? lost("The stream ended without the answer")
    : outcome

// Whoever turns a request away with one of these has not read it, whatever the body says, unless it names the request.
const doors = new Set([401, 403, 429, 503])
// What a server of 2024-11-05 answers to a POST where its stream is.
const legacy = new Set([400, 404, 405])

/** The connection, which may have another way to speak to the server. */
export interface StreamableRoad extends Road {
  /** Sends an `initialize` that was refused once more in that way, if the server knows it. */
  readonly takeOver: (initialize: JsonRpc.Request) => Effect.Effect<boolean>
}

/** See the module's text. */
export class Streamable implements Lane, Owner {
  readonly #road: StreamableRoad
  readonly #settings: Resolved
  readonly #requests = new Map<JsonRpc.Id, Pending>()
  readonly #session: Session
  readonly #posts: Posts
  #lingering: Lingering | undefined
  /** The revision of the requests, in the request era. */
  #modern: string | undefined
  // What waits until the server has accepted `notifications/initialized`.
  #gate: Array<() => void> | undefined
  // How many of those are no requests.
  #told = 0

  constructor(road: StreamableRoad, settings: Resolved) {
    this.#road = road
    this.#settings = settings
    this.#session = new Session(road, this)
    this.#posts = new Posts(road, settings)
  }

  get full(): boolean {
    return this.#posts.full || (this.#gate !== undefined && this.#gate.length >= this.#settings.maxConcurrentPosts)
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
        if (this.#modern === undefined) this.#post(JsonRpc.encode(message), this.#session.headers, true)
    }
  }

  get close(): Effect.Effect<void> {
    return Effect.andThen(
      this.#posts.idle,
      Effect.suspend(() => {
        const bye = this.#session.delete
        return bye === undefined ? Effect.void : Effect.ignore(this.#road.exchange(bye, () => Effect.void))
      })
    )
  }

  // ---- requests

  #ask(request: JsonRpc.Request, extra: Headers | undefined): void {
    const body = JsonRpc.encode(request)
    const version = RequestMeta.versionOf(request.params)
    const modern = version !== undefined
    if (modern) this.#modern = version
    else if (request.method === initialize) {
      this.#modern = undefined
      this.#session.begin()
    } else if (this.#session.gone) return this.#road.refused(request.id, this.#session.refused())
    const pending: Pending = { request, modern, fiber: undefined, taken: false, adrift: false, answered: false }
    this.#requests.set(request.id, pending)
    const headers = modern ? ofRequest(request, version, extra) : this.#session.headers
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
          if (!pending.answered) this.#road.refused(pending.request.id, this.#errorOf(cause, pending))
        },
        onSuccess: () => this.#forget(pending)
      }
    )
  }

  /** A defect fails its request too: whoever waits for it must not wait for ever. */
  #errorOf(cause: Cause.Cause<TransportError>, { taken }: Pending): TransportError {
    const error = cause.reasons.find(Cause.isFailReason)?.error
    if (error !== undefined) {
      // What the server has taken was delivered, whatever became of the requests that asked for the rest of its stream.
      return taken && error.undelivered === true ? lost(error.message, error) : error
    }
    this.#road.fork(Effect.logError("A defect in a request over HTTP", cause))
    return lost("A defect in the transport, or in the credentials: the log has it", cause)
  }

  #forget(pending: Pending): void {
    if (this.#requests.get(pending.request.id) === pending) this.#requests.delete(pending.request.id)
    if (pending.fiber !== undefined) this.#lingering?.delete(pending.fiber)
  }

  #onReply(pending: Pending, reply: WireReply): Effect.Effect<Rest, TransportError> {
    const { status } = reply
    if (status < 200 || status >= 300) {
      return Effect.flatMap(errorText(reply, this.#settings), (text) => this.#onError(pending, reply, text))
    }
    pending.taken = true
    if (pending.request.method === initialize && !this.#session.learn(reply)) {
      return Effect.fail(unusable(reply, "a session id that is none"))
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

  #onBody(pending: Pending, reply: WireReply, text: string): Effect.Effect<Rest, TransportError> {
    const message = JsonRpc.parseText(text)
    if (message._tag === "Invalid" && !message.answer) {
      return Effect.fail(unusable(reply, text === "" ? "an empty body" : "what is no JSON-RPC message", text))
    }
    this.#deliver(message, pending)
    return pending.answered
      ? Effect.undefined
      : Effect.fail(unusable(reply, "a message that does not answer the request", text))
  }

  #onStream(pending: Pending, reply: WireReply): Effect.Effect<Rest, TransportError> {
    const stream = new EventStream(this.#settings, (data) => {
      this.#deliver(JsonRpc.parseText(data), pending)
      if (!pending.answered || pending.fiber === undefined) return
      ;(this.#lingering ??= new Lingering(this.#road)).add(pending.fiber)
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
      pending.adrift = true
      const gone = () => this.#forgotten(pending, this.#session.lost)
      return Effect.succeed(
        follow(resuming(this.#road, this.#session, stream, () => pending.answered, gone), outcome)
      )
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
      return Effect.succeed(Effect.flatMap(this.#road.takeOver(request), (taken) => taken ? Effect.void : told))
    }
    // What answers this very request is no word on the session.
    const said = failure !== undefined && failure.id === undefined ? failure.error.message : ""
    const known = !this.#session.isForgotten(status) && !this.#session.isUnknown(status, said)
    if (known) return Effect.as(told, undefined)
    return Effect.sync(() => this.#forgotten(pending, this.#session.refused(status)))
  }

  #forgotten(pending: Pending, error: TransportError): undefined {
    pending.answered = true
    this.#road.refused(pending.request.id, error)
    this.#session.forgotten()
  }

  /** Waits for the requests that the server has not taken yet, within the grace for the end. */
  /** Waits for the requests that the server has not taken yet, where there are any. */
  get untaken(): Effect.Effect<void> | undefined {
    const fibers = [...this.#requests.values()].flatMap(({ answered, fiber, taken }) =>
      answered || taken || fiber === undefined ? [] : [Fiber.await(fiber)]
    )
    if (fibers.length === 0) return undefined
    return Effect.asVoid(Effect.timeoutOption(Effect.all(fibers, { discard: true }), this.#settings.closeTimeout))
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
    // One in the name of another request that has a stream of its own is nobody's.
    if (answered !== pending && pending !== undefined && answered?.adrift !== true) return
    if (answered !== undefined) {
      answered.answered = true
      if (answered.request.method === initialize && answer._tag === "Success") {
        this.#session.agreed((answer.result as JsonRpc.JsonObject)["protocolVersion"])
      }
    }
    this.#road.deliver(answer)
  }

  // ---- the session

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
        return this.#posts.send(this.#posting(body, this.#session.headers), {
          insist: true,
          ordered: false,
          done: (error) => {
            this.#accepted(notification.method, error)
            if (this.#session.gone) return
            this.#listen()
            const waiting = this.#gate ?? []
            this.#gate = undefined
            this.#told = 0
            for (const go of waiting) go()
          }
        })
      }
    }
    const headers = this.#modern === undefined ? this.#session.headers : ofNotification(notification, this.#modern)
    this.#post(body, headers, false, notification.method !== "notifications/cancelled")
  }

  #listen(): void {
    if (!this.#settings.standaloneStream) return this.#road.missed(unheard)
    const stream = new EventStream(this.#settings, (data) => this.#deliver(JsonRpc.parseText(data), undefined))
    this.#road.fork(listen(this.#road, this.#session, stream))
  }

  #posting(body: string, headers: Headers): WireRequest {
    return { method: "POST", url: this.#road.url, headers, body }
  }

  #post(body: string, headers: Headers, insist: boolean, ordered = false): void {
    const what = insist ? "An answer" : "A notification"
    const go = () =>
      this.#posts.send(this.#posting(body, headers), { insist, ordered, done: (error) => this.#accepted(what, error) })
    if (this.#gate === undefined) return go()
    if (!this.#posts.overflows(this.#told++)) this.#gate.push(go)
  }

  #accepted(what: string, error: TransportError | undefined): void {
    if (error === undefined) return
    if (this.#modern === undefined && this.#session.isForgotten(error.status)) return this.#session.forgotten()
    this.#road.fork(Effect.logDebug(`${what} was not accepted by the server: ${error.message}`))
  }
}
