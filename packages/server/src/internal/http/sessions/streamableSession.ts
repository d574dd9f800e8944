/**
 * A session over Streamable HTTP (2025-03-26 to 2025-11-25): many HTTP requests, one connection for its peer.
 *
 * Messages about a request go to the POST that carried it, and all others to the stream that the client has opened by
 * GET; "the server MUST send each of its JSON-RPC messages on only one of the connected streams". A client that
 * disconnects cancels nothing.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Principal } from "@skein/runtime/Connection"
import type { StreamInfo } from "@skein/runtime/Inspect"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Store } from "../limits/eventStore.ts"
import { memoryOf } from "../limits/memory.ts"
import {
  closing,
  displaced,
  inFlight,
  inFlightOrTwice,
  interrupted,
  json,
  logDisplaced,
  malformed,
  noBatches,
  noInitialize,
  sessionEnded,
  tooManyRequests,
  tooManyStreams,
  unknownEvent,
  unreadable
} from "../messages/refusals.ts"
import { parseId, type StreamPlace } from "./eventId.ts"
import type { FleetSessions } from "./fleetSessions.ts"
import { notSent, Post, sendToNobody } from "./post.ts"
import { HttpSessionBase } from "./sessionBase.ts"
import { reconnect, Stream, type StreamingSession } from "./stream.ts"

export class StreamableSession extends HttpSessionBase implements StreamingSession {
  readonly hasSessionId = true
  protected readonly transport = "Streamable HTTP"
  // The POSTs that are not answered yet, by the ids of their requests; undefined while there are none.
  #posts: Map<JsonRpc.Id, Post> | undefined = undefined
  // The POST that is being delivered: it may be answered before it is among the others.
  #current: Post | undefined = undefined
  // The stream by GET, once the client has opened one.
  #standalone: Stream | undefined = undefined
  // Messages that belong to no request, while the client does not listen.
  #queue: Array<string> | undefined = undefined
  #streams = 0
  #isClosed = false

  get busy(): boolean {
    return this.#posts !== undefined || this.#standalone?.connected === true
  }

  override get holdsMessages(): boolean {
    return this.#queue !== undefined
  }

  get streams(): ReadonlyArray<StreamInfo> {
    const standalone = this.#standalone
    return [
      ...(standalone === undefined ? [] : [{ kind: "listen" as const, about: [], connected: standalone.connected }]),
      ...Array.from(new Set(this.#posts?.values())).flatMap(({ id, stream }) =>
        stream === undefined
          ? []
          : [{ kind: "response" as const, about: typeof id === "object" ? id : [id], connected: stream.connected }]
      )
    ]
  }

  // ---- HTTP requests

  /** Handles the POST of `initialize`. The session ends if it fails, or if its id does not reach the client. */
  initialize(message: JsonRpc.Request, request: HttpRequest, answer: HttpAnswer): void {
    this.#deliver(new Post(this, message.id, answer, true), message, request)
  }

  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    switch (message._tag) {
      case "Request":
        if (this.#find(message.id) !== undefined) return this.owner.endpoint.refuse(answer, inFlight, message.id)
        return this.#deliver(new Post(this, message.id, answer, false), message, request)
      case "Batch":
        return this.#batch(message, request, answer)
      case "Invalid":
        // "If the server cannot accept the input, it MUST return an HTTP error status code". An invalid response fails
        // the request of this side that it belongs to.
        if (message.answer && this.owner.fleet?.isForThis(this, message) !== false) this.#receive(message, request)
        return this.owner.endpoint.refuse(answer, malformed(message), message.answer ? undefined : message.id)
      default:
        // "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body." A
        // response to no pending request is a late one.
        if (this.owner.fleet?.isForThis(this, message) !== false) this.#receive(message, request)
        else this.arrived(request)
        this.#rest()
        return this.#accept(answer, this.owner.fleet !== undefined && isInitialized(message))
    }
  }

  /** Answers a POST without requests. The next request may reach another node. */
  #accept(answer: HttpAnswer, isInitialized: boolean): void {
    const { endpoint, fleet } = this.owner
    if (fleet === undefined || !isInitialized) return answer.reply(202, {}, "")
    fleet.initialized(this, (refused) => {
      if (refused === undefined) answer.reply(202, {}, "")
      else endpoint.refuse(answer, refused)
    })
  }

  #batch(received: JsonRpc.Batch<JsonRpc.Message | JsonRpc.Invalid>, request: HttpRequest, answer: HttpAnswer): void {
    if (this.revision !== "2025-03-26") return this.owner.endpoint.refuse(answer, noBatches)
    const ids = new Set<JsonRpc.Id>()
    for (const member of received.members) {
      if (member._tag !== "Request") continue
      if (member.method === "initialize") return this.owner.endpoint.refuse(answer, noInitialize)
      if (ids.has(member.id) || this.#find(member.id) !== undefined) {
        return this.owner.endpoint.refuse(answer, inFlightOrTwice)
      }
      ids.add(member.id)
    }
    const { fleet } = this.owner
    const members = fleet === undefined
      ? received.members
      : received.members.filter((member) => fleet.isForThis(this, member))
    const batch = members.length === received.members.length ? received : { ...received, members }
    const isAnswered = members.some((one) => one._tag === "Invalid" && !one.answer && one.notification !== true)
    const initializes = fleet !== undefined && members.some(isInitialized)
    if (ids.size > 0 || isAnswered) {
      if (initializes) fleet?.initialized(this, constVoid)
      return this.#deliver(new Post(this, [...ids], answer, false), batch, request)
    }
    if (members.length > 0) this.#receive(batch, request)
    this.#rest()
    this.#accept(answer, initializes)
  }

  #receive(message: JsonRpc.Inbound, request: HttpRequest): void {
    this.arrived(request)
    this.receiver.message(message, request)
  }

  /** Delivers the requests of a POST, and remembers the POST until they are answered. */
  #deliver(post: Post, message: JsonRpc.Inbound, request: HttpRequest): void {
    if (this.owner.endpoint.options.alwaysStream && !post.isOpening) this.openStream(post)
    const outer = this.#current
    this.#current = post
    this.arrived(request)
    try {
      this.receiver.message(message, request)
    } finally {
      this.#current = outer
    }
    if (post.isOver || this.#isClosed) return this.#rest()
    const posts = (this.#posts ??= new Map())
    if (typeof post.id !== "object") posts.set(post.id, post)
    else for (const id of post.id) posts.set(id, post)
    const { load, runner, silentAnswers } = this.owner.endpoint
    load.add(post, this.client, memoryOf(message) + post.replyBytes)
    if (post.unanswered !== undefined && !post.isOpening) silentAnswers.add(post, runner.now())
  }

  /** Opens the stream for messages that belong to no request. */
  listen({ principal }: HttpRequest, answer: HttpAnswer): void {
    if (this.#isFull(this.#standalone)) return this.owner.endpoint.refuse(answer, tooManyStreams)
    this.#openStandalone(principal, answer)
    const { fleet } = this.owner
    if (fleet !== undefined) this.owner.fork(fleet.streams.listens(this))
  }

  #openStandalone(principal: Principal | undefined, answer: HttpAnswer): void {
    const stream = this.#standalone ??= this.#newStandalone()
    stream.principal = principal
    stream.open(answer, true)
  }

  #newStandalone(): Stream {
    return new Stream(this, this.owner.fleet?.streams.newNumber(true) ?? 0)
  }

  /** Resumes a stream after an event. */
  resume(lastEventId: string, request: HttpRequest, answer: HttpAnswer): void {
    const { fleet, nodes } = this.owner
    const last = parseId(lastEventId, fleet !== undefined)
    if (last === undefined) return this.owner.endpoint.refuse(answer, unknownEvent)
    if (fleet?.streams.isStandalone(last.stream) === true) {
      return this.owner.fork(this.#continue(fleet, last, request.principal, answer))
    }
    const node = fleet?.streams.nodeOf(last.stream)
    if (node === undefined || nodes?.mayPass(node, request) !== true) return this.#resume(last, request, answer, false)
    // The request may be in progress there. If that node has gone or ends, the event store may have the rest.
    const otherwise = (status = 503): void => this.#resume(last, request, answer, status === 503)
    nodes.pass({ node, request, answer, isRefused: (status) => status >= 400, otherwise })
  }

  /** Resumes the stream of a request. `isBusy` if its node has the rest, perhaps, and cannot send it now. */
  #resume(place: StreamPlace, { principal }: HttpRequest, answer: HttpAnswer, isBusy: boolean): void {
    if (this.isEnding) return reconnect(this, place, answer)
    const stream = this.#streamOf(place)
    if (this.#isFull(stream)) return this.owner.endpoint.refuse(answer, tooManyStreams)
    stream.principal = principal
    stream.resume(answer, place.event, (hasFailed) => {
      const { endpoint, fleet } = this.owner
      if (hasFailed) return endpoint.refuse(answer, unreadable)
      if (fleet === undefined) return endpoint.refuse(answer, unknownEvent)
      const concluded = Effect.map(fleet.streams.whereIs(place.stream), (where) => {
        if (isBusy && where === "Elsewhere") reconnect(this, place, answer)
        else if (where !== "Gone" || !fleet.streams.failLost(place, answer)) endpoint.refuse(answer, unknownEvent)
      })
      this.owner.fork(concluded)
    })
  }

  /**
   * Continues the standalone stream of another node or of an earlier copy with the events that the client has missed: the
   * other nodes have stopped using it before these are read. If the event store does not have them, a stream begins.
   */
  #continue(
    fleet: FleetSessions,
    place: StreamPlace,
    principal: Principal | undefined,
    answer: HttpAnswer
  ): Effect.Effect<void> {
    const { event: after, stream: number } = place
    // Another node may have continued the stream which this one still has: while it was cut off it could not know.
    const begin = (): void => {
      this.leaveStream()
      if (this.#isFull(undefined)) return this.owner.endpoint.refuse(answer, tooManyStreams)
      this.#openStandalone(principal, answer)
      fleet.streams.missedAll(this)
    }
    const resume = (stream: Stream): void => {
      if (this.#isFull(stream)) return this.owner.endpoint.refuse(answer, tooManyStreams)
      stream.principal = principal
      stream.resume(answer, after, begin)
    }
    if (this.#standalone?.number === number) return Effect.sync(() => resume(this.#standalone!))
    return Effect.map(fleet.streams.take(this, number, after), (missed) => {
      if (answer.isClosed) return
      // A later request finds the session again, if it has not ended at all nodes.
      if (missed === "Elsewhere" || this.isEnding) return reconnect(this, place, answer)
      if (this.#standalone?.number === number) return resume(this.#standalone)
      if (missed === undefined) return begin()
      const hasOther = this.#standalone !== undefined
      this.leaveStream()
      resume(this.#standalone = new Stream(this, number, { last: after + missed.length }))
      // The client has not received an event of the other stream here.
      if (hasOther) fleet.streams.missedAll(this)
    })
  }

  #isFull(stream: Stream | undefined): boolean {
    return stream?.connected !== true && this.owner.isStreamsFull(this.client)
  }

  /** Returns the stream with a number. A complete stream may still be in the event log. */
  #streamOf({ request, stream: number }: StreamPlace): Stream {
    if (this.owner.fleet === undefined && number === 0) return this.#standalone ??= this.#newStandalone()
    for (const { stream } of this.#posts?.values() ?? []) if (stream?.number === number) return stream
    return new Stream(this, number, { complete: true, request })
  }

  // ---- for other nodes

  /** Whether a request is in flight here. */
  handles(id: JsonRpc.Id): boolean {
    return this.#find(id) !== undefined
  }

  /** Handles a message of the client that another node has received. */
  receiveFromNode(text: string): void {
    if (!this.#isClosed) this.receiver.message(JsonRpc.parseText(text, 1))
  }

  /** Sends a message that belongs to no request, and that another node has sent here. */
  sendFromNode(text: string, from: number): void {
    if (!this.#isClosed) this.#sendStandalone(text, from)
  }

  get standalone(): number | undefined {
    return this.#standalone?.number
  }

  /** Ends the stream here: another node may continue it. */
  leaveStream(): void {
    this.#standalone?.abandon()
    this.#standalone = undefined
  }

  // ---- messages of the peer

  send(message: JsonRpc.Outbound, about?: JsonRpc.Id): boolean {
    if (this.#isClosed) return true
    if (message._tag === "Request" && this.log === undefined) throw notSent(message.method)
    const post = about === undefined ? this.#current : this.#find(about)
    if (message._tag === "Request" || message._tag === "Notification") {
      const text = JsonRpc.encode(message)
      if (about === undefined || post === undefined || post.isOpening) return this.#sendStandalone(text)
      if (post.isLost) return sendToNobody(message)
      return (post.stream ?? this.openStream(post)).send(text)
    }
    if (post === undefined) return true
    const isOpened = post.isOpening && message._tag === "Success" && !post.isLost &&
      !this.owner.endpoint.options.stateless
    if (isOpened && this.owner.fleet !== undefined) return this.#share(this.owner.fleet, post, message)
    post.respond(message, isOpened ? { ...json, "mcp-session-id": this.id } : json)
    this.#remove(post)
    if (post.isOpening && !isOpened) this.owner.end(this, { _tag: "ClosedByUs" })
    return true
  }

  /** Answers `initialize` once the session is stored: the next request may reach another node. */
  #share(fleet: FleetSessions, post: Post, message: JsonRpc.Success): true {
    fleet.create(this, (refused) => {
      if (this.isEnding || post.isOver) return
      if (refused === undefined && !post.isLost) {
        post.respond(message, { ...json, "mcp-session-id": this.id })
        return this.#remove(post)
      }
      if (refused !== undefined && post.unanswered !== undefined) {
        this.owner.endpoint.refuse(post.unanswered, refused, post.id as JsonRpc.Id)
      }
      post.isOver = true
      this.#remove(post)
      if (refused === undefined) this.owner.interrupt(this)
      else this.owner.end(this, { _tag: "ClosedByUs" })
    })
    return true
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => this.#standalone?.drained ?? Effect.void)
  }

  drainedAbout(about: JsonRpc.Id): Effect.Effect<void> {
    return Effect.suspend(() => this.#find(about)?.stream?.drained ?? Effect.void)
  }

  replyRetained(about: JsonRpc.Id, chars: number): void {
    const post = this.#find(about)
    if (post === undefined) return
    if (post.share === undefined) post.replyBytes += chars
    else this.owner.endpoint.load.charge(post, chars)
  }

  discardRequest(about: JsonRpc.Id): void {
    const post = this.#find(about)
    if (post === undefined || !post.discardOne()) return
    this.#end(post)
    this.#remove(post)
  }

  /**
   * "After the server has sent an SSE event with an event ID to the client, the server MAY close the connection
   * (without terminating the SSE stream) at any time" (2025-11-25). Before that revision a stream lasts until its
   * response.
   */
  endStream(about: JsonRpc.Id, retry: number | undefined): void {
    const post = this.#find(about)
    if (post === undefined || post.isOpening || post.isLost || !this.primes) return
    ;(post.stream ?? this.openStream(post)).disconnect(retry)
  }

  /** Sends a message that belongs to no request, now or when the client listens. */
  #sendStandalone(text: string, from?: number): boolean {
    if (this.#standalone?.connected === true) return this.#standalone.send(text)
    return this.owner.fleet?.sendElsewhere(this, text, from) === true || this.#keep(text)
  }

  /** Keeps a message until the client listens. */
  #keep(text: string): true {
    const queue = (this.#queue ??= [])
    // One notification suffices for several changes of a list.
    if (queue.includes(text)) return true
    queue.push(text)
    const isFull = queue.length > this.owner.endpoint.options.bounds.maxPendingMessages
    const dropped = isFull ? queue.shift()!.length : 0
    if (isFull) this.owner.messageDropped()
    this.owner.endpoint.load.charge(this, text.length - dropped)
    return true
  }

  openStream(post: Post): Stream {
    const { fleet } = this.owner
    const request = fleet === undefined || typeof post.id === "object" ? undefined : post.id
    return post.open(new Stream(this, fleet?.streams.newNumber(false) ?? ++this.#streams, { request }))
  }

  /** Returns the messages that wait for the stream. */
  takeQueue(): ReadonlyArray<string> {
    const queue = this.#queue ?? []
    this.#queue = undefined
    this.owner.endpoint.load.charge(this, -queue.reduce((sum, text) => sum + text.length, 0))
    return queue
  }

  #find(id: JsonRpc.Id): Post | undefined {
    return this.#current?.has(id) === true ? this.#current : this.#posts?.get(id)
  }

  #remove(post: Post): void {
    this.owner.endpoint.load.remove(post)
    this.owner.endpoint.silentAnswers.remove(post)
    const posts = this.#posts
    if (posts === undefined) return
    if (typeof post.id !== "object") posts.delete(post.id)
    else for (const id of post.id) posts.delete(id)
    this.#rest()
  }

  /** Gives up a POST at a bound of the endpoint: answers it with an error, and cancels its requests. */
  displace(post: Post): void {
    // "The `initialize` request MUST NOT be cancelled by clients", so its session ends.
    if (post.isOpening) return this.owner.end(this, { _tag: "ClosedByUs" })
    this.owner.fork(logDisplaced)
    post.fail(displaced)
    post.end()
    this.#remove(post)
    for (const requestId of typeof post.id === "object" ? post.id : [post.id]) {
      this.receiver.message(JsonRpc.notification("notifications/cancelled", { requestId }))
    }
  }

  /** Begins the idle time if nothing is in flight and no client listens, or ends a session that is draining. */
  #rest(): void {
    if (this.#posts?.size === 0) this.#posts = undefined
    if (this.#current !== undefined) return
    if (this.owner.endpoint.isClosing || this.owner.endpoint.options.stateless) this.drain()
    else if (!this.busy) this.touch()
  }

  drain(): void {
    if (this.#posts === undefined) this.owner.end(this, { _tag: "ClosedByUs" })
  }

  /**
   * Ends a POST that is not answered. If the session ends, the client receives an error: "The SSE stream SHOULD
   * eventually include a JSON-RPC response for each JSON-RPC request sent in the POST body".
   */
  #end(post: Post): void {
    const { isClosing, refuse } = this.owner.endpoint
    if (this.isEnding) {
      if (!post.isOpening) post.fail(isClosing ? interrupted : sessionEnded)
      // The client may repeat `initialize`.
      else if (post.unanswered !== undefined) {
        refuse(post.unanswered, isClosing ? closing : tooManyRequests, post.id as JsonRpc.Id)
      }
    }
    post.end()
  }

  protected closeStreams(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const post of this.#posts?.values() ?? []) {
      if (!post.isOver) this.#end(post)
      this.owner.endpoint.load.remove(post)
      this.owner.endpoint.silentAnswers.remove(post)
    }
    this.#posts = undefined
    this.#queue = undefined
    this.leaveStream()
  }

  // ---- for its streams

  /** A client without a session cannot resume a stream. */
  get log(): Store | undefined {
    return this.owner.endpoint.options.stateless ? undefined : this.owner.endpoint.eventStore
  }

  skipsLostEvents(stream: number): boolean {
    return this.owner.fleet === undefined && stream === 0
  }

  noEventsLeft(place: StreamPlace, answer: HttpAnswer): void {
    const streams = this.owner.fleet?.streams
    if (streams === undefined) return answer.reply(204, {}, "")
    const concluded = Effect.flatMap(streams.whereIs(place.stream), (where) =>
      where === "Elsewhere"
        ? Effect.sync(() => reconnect(this, place, answer))
        : streams.conclude(this, place, answer))
    this.owner.fork(concluded)
  }

  /** Older clients read the data of every event as JSON. */
  get primes(): boolean {
    return this.log !== undefined && this.revision !== undefined && this.revision >= "2025-11-25"
  }

  connected(stream: Stream, longLived: boolean): void {
    this.owner.streamOpened(this.client, longLived ? stream : undefined)
    if (longLived) this.owner.endpoint.streamExpiry.add(stream, stream.principal)
    if (stream !== this.#standalone || this.#queue === undefined) return
    for (const text of this.takeQueue()) stream.send(text)
  }

  disconnected(stream: Stream, longLived: boolean): void {
    this.owner.streamClosed(longLived ? stream : undefined)
    this.owner.endpoint.streamExpiry.remove(stream)
    this.#rest()
  }
}

const isInitialized = (message: JsonRpc.Message | JsonRpc.Invalid): boolean =>
  message._tag === "Notification" && message.method === "notifications/initialized"
