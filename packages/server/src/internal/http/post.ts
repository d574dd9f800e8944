/**
 * A POST with requests in it, from its arrival to its answer: one JSON text where the result is the first thing to say, a stream
 * from the moment something comes before it.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { HttpAnswer } from "./adapter.ts"
import { json } from "./refusal.ts"
import * as sse from "./sse.ts"
import type { Stream } from "./stream.ts"

export type Reply = JsonRpc.Success | JsonRpc.Failure | JsonRpc.Batch

export class Post {
  /** The id of its request, or those of all requests of a batch. */
  readonly id: JsonRpc.Id | ReadonlyArray<JsonRpc.Id>
  readonly #answer: HttpAnswer
  #stream: Stream | undefined = undefined
  /** How many of its requests are not answered. */
  #owed: number
  /** Whether nothing more will be said. */
  over = false
  /** How many characters it has, and whether they count, since it is in flight. */
  readonly size: number
  counted = false

  constructor(id: JsonRpc.Id | ReadonlyArray<JsonRpc.Id>, size: number, answer: HttpAnswer) {
    this.id = id
    this.size = size
    this.#answer = answer
    this.#owed = typeof id === "object" ? id.length : 1
  }

  /** Its stream, once there is one. */
  get stream(): Stream | undefined {
    return this.#stream
  }

  /** Where it can still be answered with one text. */
  get answer(): HttpAnswer | undefined {
    return this.#stream === undefined && !this.#answer.over ? this.#answer : undefined
  }

  /** Whether the client left before it was told anything. Nobody can come back for what has no event id. */
  get lost(): boolean {
    return this.#stream === undefined && this.#answer.over
  }

  /** Begins a stream. */
  open(stream: Stream): Stream {
    this.#stream = stream
    stream.open(this.#answer, false)
    return stream
  }

  /** Whether this is about it. */
  has(id: JsonRpc.Id): boolean {
    return typeof this.id === "object" ? this.id.includes(id) : this.id === id
  }

  /** Answers. Throws what `JsonRpc.encode` throws, and then nothing was sent. */
  finish(reply: Reply, headers = json): void {
    const stream = this.#stream
    if (stream === undefined) {
      const text = JsonRpc.encode(reply)
      this.over = true
      return this.#answer.reply(200, headers, text)
    }
    // Clients read one message per event, whether the revision has batches or not.
    const texts = reply._tag === "Batch" ? reply.members.map(JsonRpc.encode) : [JsonRpc.encode(reply)]
    this.over = true
    for (const text of texts) stream.say(text)
    stream.complete()
  }

  /** Says on its stream, where there is one, that its requests have failed. */
  fail(error: JsonRpc.ErrorObject): void {
    const ids = typeof this.id === "object" ? this.id : [this.id]
    for (const id of ids) this.#stream?.say(JsonRpc.encode(JsonRpc.failure(id, error)))
  }

  /** One of its requests is not answered. Tells whether all is over now. */
  drop(): boolean {
    return --this.#owed <= 0
  }

  /**
   * It is not answered. "Not send a response for the cancelled request" (2025-11-25, cancellation), and still the POST of a request
   * is answered with JSON or with a stream: a stream in which nothing is said. Clients take it without complaint.
   */
  end(): void {
    this.over = true
    if (this.#stream !== undefined) return this.#stream.complete()
    if (this.#answer.over) return
    this.#answer.open(200, sse.headers)
    this.#answer.end()
  }
}
