/**
 * A session over HTTP+SSE (2024-11-05): one stream for all that the server says, and a path to post to. The session is the stream:
 * it ends when the client leaves.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { HttpAnswer, HttpRequest } from "../http/adapter.ts"
import { Held, type Keeper } from "../http/sessionBase.ts"
import { closing, malformed } from "../http/refusal.ts"
import * as sse from "../http/sse.ts"
import { Unsent } from "../http/slowReaderBuffer.ts"

export class LegacySession extends Held {
  readonly #answer: HttpAnswer
  #slot = 0
  readonly #unsent: Unsent
  #over = false
  /** The requests in flight, with the lengths of their bodies. */
  readonly #open = new Map<JsonRpc.Id, number>()
  /** Whether a request is being refused that has the id of one in flight. */
  #twice = false

  constructor(keeper: Keeper, id: string, owner: string | undefined, answer: HttpAnswer) {
    super(keeper, id, owner)
    this.#answer = answer
    this.#unsent = new Unsent(keeper.options.maxUnsentChars)
  }

  get busy(): boolean {
    return !this.#over
  }

  /**
   * "When a client connects, the server MUST send an `endpoint` event containing a URI for the client to use for sending messages."
   * It is relative to the origin: a client takes no other.
   */
  start(messages: string): void {
    this.#answer.open(200, sse.headers)
    this.#answer.write(sse.named("endpoint", `${messages}?sessionId=${this.id}`))
    this.#slot = this.keeper.keepAlive.add(this.#answer)
    this.keeper.opened(true)
    const left = () => this.keeper.end(this, { _tag: "Closed" })
    if (this.#answer.over) left()
    else this.#answer.onClose(left)
  }

  /** Takes a message; what there is to say to it comes on the stream. */
  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    if (message._tag === "Invalid" && message.error.code === -32700) {
      return this.keeper.refuse(answer, malformed(message))
    }
    answer.reply(202, {}, "")
    if (message._tag !== "Request") return this.deliver(message, request)
    if (this.#open.has(message.id)) this.#twice = true
    else {
      this.#open.set(message.id, request.size)
      this.keeper.gauge.began(request.size)
    }
    this.deliver(message, request)
    this.#twice = false
  }

  send(message: JsonRpc.Outbound): boolean {
    if ((message._tag === "Success" || message._tag === "Failure") && message.id !== undefined) this.#done(message.id)
    if (this.#over || this.#answer.over) return true
    const text = sse.named("message", JsonRpc.encode(message))
    return this.#unsent.write(this.#answer, text) ?? this.#cut()
  }

  #done(id: JsonRpc.Id): void {
    const size = this.#twice ? undefined : this.#open.get(id)
    if (size === undefined) return
    this.#open.delete(id)
    this.keeper.gauge.ended(size)
  }

  #cut(): true {
    this.#answer.abort()
    this.keeper.end(this, { _tag: "Closed" })
    const message = `A client does not read: its session ends, with ${this.#unsent.size} characters unsent`
    this.keeper.fork(Effect.logWarning(message))
    return true
  }

  /** Its requests may finish as those of a client that has said all that it had to say. */
  drain(): void {
    this.peer.close({ _tag: "Ended" }, true)
  }

  /** A request will not be answered. Where it is this side that ends, the client hears of that. */
  discardRequest(about: JsonRpc.Id): void {
    this.#done(about)
    if (this.ending || this.keeper.closing) this.send(JsonRpc.failure(about, closing.error))
  }

  get drained(): Effect.Effect<void> {
    return this.#answer.drained
  }

  protected shut(): void {
    if (this.#over) return
    this.#over = true
    this.keeper.keepAlive.remove(this.#answer, this.#slot)
    this.keeper.closed(true)
    for (const id of this.#open.keys()) this.#done(id)
    this.#answer.end()
  }
}
