/**
 * A session over Streamable HTTP (2025-03-26 to 2025-11-25): many HTTP requests, one connection for its peer.
 *
 * What the peer says about a request goes to the POST that brought the request, and all else to the stream that the client opened
 * by GET; "the server MUST send each of its JSON-RPC messages on only one of the connected streams". A client that leaves cancels
 * nothing.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Limits from "@skein/runtime/Limits"
import { RequestError } from "@skein/runtime/RequestError"
import * as Effect from "effect/Effect"
import type { HttpAnswer, HttpRequest } from "./adapter.ts"
import type { Store } from "./eventStore.ts"
import { Held, type Keeper } from "./sessionBase.ts"
import type { KeepAlive } from "./keepAlive.ts"
import { Post } from "./post.ts"
import { closing, invalid, json, malformed, tooManyStreams } from "./refusal.ts"
import { type Owner, parseId, Stream } from "./stream.ts"

const accepted = {}

const inFlight = invalid(400, "Invalid Request: a request with this id is in flight already")
const twice = invalid(400, "Invalid Request: two requests of the batch have the same id, or one is in flight already")
const noBatches = invalid(400, "Invalid Request: only revision 2025-03-26 has batches")
// "The `initialize` request MUST NOT be part of a JSON-RPC batch" (2025-03-26, lifecycle).
const noInitialize = invalid(400, "Invalid Request: initialize is no part of a batch")
const unknownEvent = invalid(400, "Bad Request: the events after this Last-Event-ID are not there, or not any more")
const over = invalid(404, "Not Found: the session is over")

export class HttpSession extends Held implements Owner {
  readonly #limits: Limits.Resolved
  // The POSTs that are not answered yet, by the ids of their requests; undefined while there is none.
  #posts: Map<JsonRpc.Id, Post> | undefined = undefined
  // The one that is being read: it may be answered before it has to be found.
  #current: Post | undefined = undefined
  // The stream by GET, once the client has opened one.
  #standalone: Stream | undefined = undefined
  // What belongs to no request, while the client does not listen.
  #queue: Array<string> | undefined = undefined
  #streams = 0
  #over = false

  constructor(keeper: Keeper, id: string, owner: string | undefined, limits: Limits.Resolved) {
    super(keeper, id, owner)
    this.#limits = limits
  }

  get busy(): boolean {
    return this.#posts !== undefined || this.#standalone?.connected === true
  }

  // ---- what HTTP brings

  /** The handshake. A session that is refused, or whose id reaches nobody, is over with that. */
  initialize(message: JsonRpc.Request, request: HttpRequest, answer: HttpAnswer): void {
    this.#receive(new Opening(message.id, request.size, answer), message, request)
  }

  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    switch (message._tag) {
      case "Request":
        if (this.#find(message.id) !== undefined) return this.keeper.refuse(answer, inFlight, message.id)
        return this.#receive(this.#begin(new Post(message.id, request.size, answer)), message, request)
      case "Batch":
        return this.#batch(message, request, answer)
      case "Invalid":
        // "If the server cannot accept the input, it MUST return an HTTP error status code". What fails a question of this side's
        // has to be heard all the same.
        if (message.answer) this.deliver(message, request)
        return this.keeper.refuse(answer, malformed(message), message.answer ? undefined : message.id)
      default:
        // "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body." An answer that
        // nobody waits for any more is one that came late.
        this.deliver(message, request)
        this.#rest()
        return answer.reply(202, accepted, "")
    }
  }

  #batch(batch: JsonRpc.Batch<JsonRpc.Message | JsonRpc.Invalid>, request: HttpRequest, answer: HttpAnswer): void {
    const { members } = batch
    const { maxBatchMessages } = this.#limits
    if (this.revision !== "2025-03-26") return this.keeper.refuse(answer, noBatches)
    if (members.length > maxBatchMessages) {
      return this.keeper.refuse(
        answer,
        invalid(400, `Invalid Request: a batch holds at most ${maxBatchMessages} messages`)
      )
    }
    const ids = new Set<JsonRpc.Id>()
    for (const member of members) {
      if (member._tag !== "Request") continue
      if (member.method === "initialize") return this.keeper.refuse(answer, noInitialize)
      if (ids.has(member.id) || this.#find(member.id) !== undefined) return this.keeper.refuse(answer, twice)
      ids.add(member.id)
    }
    const answered = members.some((one) => one._tag === "Invalid" && !one.answer && one.notification !== true)
    if (ids.size > 0 || answered) {
      return this.#receive(this.#begin(new Post([...ids], request.size, answer)), batch, request)
    }
    this.deliver(batch, request)
    this.#rest()
    answer.reply(202, accepted, "")
  }

  #receive(post: Post, message: JsonRpc.Inbound, request: HttpRequest): void {
    const outer = this.#current
    this.#current = post
    try {
      this.deliver(message, request)
    } finally {
      this.#current = outer
    }
    if (post.over || this.#over) return this.#rest()
    const posts = (this.#posts ??= new Map())
    post.counted = true
    this.keeper.gauge.began(post.size)
    if (typeof post.id !== "object") posts.set(post.id, post)
    else for (const id of post.id) posts.set(id, post)
  }

  #begin(post: Post): Post {
    if (this.keeper.options.alwaysStream) this.#stream(post)
    return post
  }

  /** The client listens to what belongs to no request. */
  listen(answer: HttpAnswer): void {
    if (this.#crowded(this.#standalone)) return this.keeper.refuse(answer, tooManyStreams)
    ;(this.#standalone ??= new Stream(this, 0)).open(answer, true)
  }

  /** The client comes back to a stream of which it has seen the events up to this one. */
  resume(lastEventId: string, answer: HttpAnswer): void {
    const last = parseId(lastEventId)
    if (last === undefined) return this.keeper.refuse(answer, unknownEvent)
    const stream = this.#numbered(last.stream)
    if (this.#crowded(stream)) return this.keeper.refuse(answer, tooManyStreams)
    stream.resume(answer, last.event, () => this.keeper.refuse(answer, unknownEvent))
  }

  #crowded(stream: Stream | undefined): boolean {
    return stream?.connected !== true && this.keeper.crowded
  }

  /** A stream by its number. One that is not live is over: the log may still have it. */
  #numbered(number: number): Stream {
    if (number === 0) return this.#standalone ??= new Stream(this, 0)
    for (const { stream } of this.#posts?.values() ?? []) if (stream?.number === number) return stream
    return new Stream(this, number, true)
  }

  // ---- what the peer says

  send(message: JsonRpc.Outbound, about?: JsonRpc.Id): boolean {
    if (this.#over) return true
    if (message._tag === "Request" && this.log === undefined) throw unheard(message.method)
    const post = about === undefined ? this.#current : this.#find(about)
    if (message._tag === "Request" || message._tag === "Notification") {
      const text = JsonRpc.encode(message)
      if (about === undefined || post === undefined || post instanceof Opening) return this.#say(text)
      if (post.lost) return gone(message)
      return (post.stream ?? this.#stream(post)).say(text)
    }
    if (post === undefined) return true
    const opened = post instanceof Opening && message._tag === "Success" && !post.lost &&
      !this.keeper.options.sessions.stateless
    post.finish(message, opened ? { ...json, "mcp-session-id": this.id } : json)
    this.#forget(post)
    if (post instanceof Opening && !opened) this.keeper.end(this, { _tag: "Closed" })
    return true
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => this.#standalone?.drained ?? Effect.void)
  }

  drainedAbout(about: JsonRpc.Id): Effect.Effect<void> {
    return Effect.suspend(() => this.#find(about)?.stream?.drained ?? Effect.void)
  }

  discardRequest(about: JsonRpc.Id): void {
    const post = this.#find(about)
    if (post === undefined || !post.drop()) return
    this.#end(post)
    this.#forget(post)
  }

  /**
   * "After the server has sent an SSE event with an event ID to the client, the server MAY close the connection (without terminating
   * the SSE stream) at any time" (2025-11-25). Before that revision a stream lasts until its response.
   */
  endStream(about: JsonRpc.Id, retry: number | undefined): void {
    const post = this.#find(about)
    if (post === undefined || post instanceof Opening || post.lost || !this.primes) return
    ;(post.stream ?? this.#stream(post)).disconnect(retry)
  }

  /** Says what belongs to no request, now or when the client listens. */
  #say(text: string): boolean {
    if (this.#standalone?.connected === true) return this.#standalone.say(text)
    const queue = (this.#queue ??= [])
    // That a list has changed needs to be said once.
    if (queue.includes(text)) return true
    queue.push(text)
    if (queue.length > this.keeper.options.sessions.maxPendingMessages) queue.shift()
    return true
  }

  #stream(post: Post): Stream {
    return post.open(new Stream(this, ++this.#streams))
  }

  #find(id: JsonRpc.Id): Post | undefined {
    return this.#current?.has(id) === true ? this.#current : this.#posts?.get(id)
  }

  #forget(post: Post): void {
    this.#uncount(post)
    const posts = this.#posts
    if (posts === undefined) return
    if (typeof post.id !== "object") posts.delete(post.id)
    else for (const id of post.id) posts.delete(id)
    this.#rest()
  }

  #uncount(post: Post): void {
    if (!post.counted) return
    post.counted = false
    this.keeper.gauge.ended(post.size)
  }

  /** If nothing is in flight any more, nothing has been since now. */
  #rest(): void {
    if (this.#posts?.size === 0) this.#posts = undefined
    if (this.#current !== undefined) return
    if (this.keeper.closing || this.keeper.options.sessions.stateless) this.drain()
    else if (!this.busy) this.used()
  }

  drain(): void {
    if (this.#posts === undefined) this.keeper.end(this, { _tag: "Closed" })
  }

  /**
   * Ends a POST that is not answered. Where it is the session that ends, the client hears of that: "The SSE stream SHOULD eventually
   * include a JSON-RPC response for each JSON-RPC request sent in the POST body".
   */
  #end(post: Post): void {
    if (this.ending) {
      const why = this.keeper.closing ? closing : over
      const { answer } = post
      if (answer === undefined) post.fail(why.error)
      else this.keeper.refuse(answer, why, typeof post.id === "object" ? undefined : post.id)
    }
    post.end()
  }

  protected shut(): void {
    if (this.#over) return
    this.#over = true
    for (const post of this.#posts?.values() ?? []) {
      if (!post.over) this.#end(post)
      this.#uncount(post)
    }
    this.#posts = undefined
    this.#queue = undefined
    this.#standalone?.abandon()
    this.#standalone = undefined
  }

  // ---- what a stream needs

  /** A client that keeps no session cannot come back. */
  get log(): Store | undefined {
    return this.keeper.options.sessions.stateless ? undefined : this.keeper.log
  }

  get keepAlive(): KeepAlive {
    return this.keeper.keepAlive
  }

  get maxUnsentChars(): number {
    return this.keeper.options.maxUnsentChars
  }

  get retry(): number {
    return Math.ceil(this.keeper.options.retry)
  }

  /** Older clients read the data of every event as JSON. */
  get primes(): boolean {
    return this.log !== undefined && this.revision !== undefined && this.revision >= "2025-11-25"
  }

  fork(effect: Effect.Effect<unknown>): void {
    this.keeper.fork(effect)
  }

  attached(stream: Stream, listening: boolean): void {
    this.keeper.opened(listening)
    if (stream !== this.#standalone || this.#queue === undefined) return
    const queue = this.#queue
    this.#queue = undefined
    for (const text of queue) stream.say(text)
  }

  detached(_stream: Stream, listening: boolean): void {
    this.keeper.closed(listening)
    this.#rest()
  }

  completed(stream: Stream): void {
    this.keeper.completed(this, stream.number)
  }
}

/** What nobody can get any more is as good as said; but an answer to it is not waited for. */
const gone = ({ _tag, method }: JsonRpc.Request | JsonRpc.Notification): true => {
  if (_tag === "Notification") return true
  throw new RequestError({ reason: "Closed", method, message: `The client has left: ${method} was not sent` })
}

const unheard = (method: string): RequestError =>
  new RequestError({ reason: "Unsupported", method, message: `Without sessions a client cannot be asked: ${method}` })

/** The POST of the handshake. Its answer is never a stream: it tells the session's id, and only if all went well. */
class Opening extends Post {}
