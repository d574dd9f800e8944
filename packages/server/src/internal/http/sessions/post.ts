/**
 * A POST with requests of a session, until it is answered.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { Closed, RequestError, Unsupported } from "@skein/runtime/RequestError"
import type { HttpAnswer } from "../messages/adapter.ts"
import type { Claim, Share } from "../limits/load.ts"
import type { SilentAnswer } from "../limits/silentAnswers.ts"
import { json } from "../messages/refusals.ts"
import * as sse from "../messages/sse.ts"
import type { Stream } from "./stream.ts"

/** The session of a POST. */
export interface PostingSession {
  /** Whether a request to the client waits for its answer. */
  readonly isAsking: boolean
  /** Gives up a POST at a bound of the endpoint. */
  readonly displace: (post: Post) => void
  /** Begins the stream of a POST. */
  readonly openStream: (post: Post) => Stream
}

type Reply = JsonRpc.Success | JsonRpc.Failure | JsonRpc.Batch

/**
 * A POST with requests, until it is answered: with one JSON text if the result is the first message, with a stream from
 * the moment another message precedes it.
 */
export class Post implements Claim, SilentAnswer {
  readonly kind = "requests"
  share: Share | undefined = undefined
  bytes = 0
  /** The id of its request, or those of all requests of a batch. */
  readonly id: JsonRpc.Id | ReadonlyArray<JsonRpc.Id>
  /**
   * Whether it is the `initialize` request. Its response is never a stream: the header of a success carries the session
   * id.
   */
  readonly isOpening: boolean
  /** How many bytes of its replies wait for the last one of its batch. */
  replyBytes = 0
  /** Whether nothing more will be sent. */
  isOver = false
  readonly #session: PostingSession
  readonly #answer: HttpAnswer
  /** Its stream, once there is one. */
  stream: Stream | undefined = undefined
  /** How many of its requests have no outcome yet. */
  #pending: number

  constructor(
    session: PostingSession,
    id: JsonRpc.Id | ReadonlyArray<JsonRpc.Id>,
    answer: HttpAnswer,
    isOpening: boolean
  ) {
    this.#session = session
    this.id = id
    this.isOpening = isOpening
    this.#answer = answer
    this.#pending = typeof id === "object" ? id.length : 1
  }

  /** Whether its session waits for an answer of the client. */
  get isWaiting(): boolean {
    return this.#session.isAsking
  }

  evict(): void {
    this.#session.displace(this)
  }

  /** The HTTP response, if nothing was sent yet and the client is connected. */
  get unanswered(): HttpAnswer | undefined {
    return this.stream === undefined && !this.#answer.isClosed ? this.#answer : undefined
  }

  /** Whether the client disconnected before anything was sent. It cannot resume a stream without an event id. */
  get isLost(): boolean {
    return this.stream === undefined && this.#answer.isClosed
  }

  /** Begins a stream. */
  open(stream: Stream): Stream {
    this.stream = stream
    stream.open(this.#answer, false)
    return stream
  }

  /** Begins the stream of a request that takes long. */
  beginStream(): void {
    if (this.unanswered === undefined) return
    this.#session.openStream(this)
    this.#answer.write(sse.keepAlive)
  }

  has(id: JsonRpc.Id): boolean {
    return typeof this.id === "object" ? this.id.includes(id) : this.id === id
  }

  /** Sends the response. Throws what `JsonRpc.encode` throws, and then nothing was sent. */
  respond(reply: Reply, headers = json): void {
    const stream = this.stream
    if (stream === undefined) {
      const text = JsonRpc.encode(reply)
      this.isOver = true
      const http = reply._tag === "Failure" ? reply.error.http : undefined
      return http === undefined
        ? this.#answer.reply(200, headers, text)
        : this.#answer.reply(http.status, { ...headers, ...http.headers }, text)
    }
    // Clients read one message per event, whether the revision has batches or not.
    const texts = reply._tag !== "Batch" ? [JsonRpc.encode(reply)] : reply.texts ?? reply.members.map(JsonRpc.encode)
    this.isOver = true
    for (const text of texts) stream.send(text)
    stream.complete()
  }

  /** Answers its requests with an error: on its stream, or with JSON if nothing was sent yet. */
  fail(error: JsonRpc.ErrorObject): void {
    const { id, stream } = this
    const texts = (typeof id === "object" ? id : [id]).map((id) => JsonRpc.encode(JsonRpc.failure(id, error)))
    if (stream !== undefined) { for (const text of texts) stream.send(text) }
    else this.unanswered?.reply(200, json, typeof id === "object" ? `[${texts.join()}]` : texts[0]!)
  }

  /** One of its requests was discarded. Returns whether that was the last one. */
  discardOne(): boolean {
    return --this.#pending <= 0
  }

  /**
   * Ends it without a response. "Not send a response for the cancelled request" (2025-11-25, cancellation), and still a
   * POST with a request is answered with JSON or with a stream: so it is an empty stream, which clients accept.
   */
  end(): void {
    this.isOver = true
    if (this.stream !== undefined) return this.stream.complete()
    if (this.#answer.isClosed) return
    this.#answer.open(200, sse.headers)
    this.#answer.end()
  }
}

/** A notification to a client that has left is dropped; a request is not sent, because no response would follow. */
export const sendToNobody = ({ _tag, method }: JsonRpc.Request | JsonRpc.Notification): true => {
  if (_tag === "Notification") return true
  throw new RequestError({ reason: new Closed({ message: `The client has left: ${method} was not sent` }), method })
}

/** The failure of a request to the client of an endpoint without sessions. */
export const notSent = (method: string): RequestError =>
  new RequestError({
    reason: new Unsupported({ message: `server-to-client requests need sessions: ${method} was not sent` }),
    method
  })
