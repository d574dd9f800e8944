/**
 * A session over HTTP+SSE (2024-11-05): one stream for all messages of the server, and a path for those of the client.
 * The session is the stream: it ends when the client leaves.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Principal } from "@skein/runtime/Connection"
import type { StreamInfo } from "@skein/runtime/Inspect"
import * as Effect from "effect/Effect"
import { constFalse } from "effect/Function"
import { ServerSession } from "../../base/session.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { isOpening } from "../messages/classify.ts"
import { SimpleClaim } from "../limits/load.ts"
import { memoryOf } from "../limits/memory.ts"
import { displaced, interrupted, logDisplaced, malformed, sessionEnded } from "../messages/refusals.ts"
import { HttpSessionBase, type SessionOwner } from "../sessions/sessionBase.ts"
import * as sse from "../messages/sse.ts"

export class SseSession extends HttpSessionBase {
  protected readonly transport = "HTTP+SSE"
  readonly #answer: HttpAnswer
  readonly #buffer: sse.SlowReaderBuffer
  #keepAliveSlot = 0
  #isClosed = false
  /** Whether the client has sent `initialize` on this stream. */
  #isInitializing = false
  /** Its stream, which ends with it. */
  readonly #stream = new SimpleClaim("streams", constFalse, () => this.evict())
  readonly #inFlight = new Map<JsonRpc.Id, SimpleClaim>()
  /** Whether a request with the id of one in flight is being refused. */
  #isDuplicate = false

  constructor(owner: SessionOwner, id: string, from: HttpRequest, answer: HttpAnswer) {
    super(owner, id, from)
    this.#answer = answer
    this.#buffer = new sse.SlowReaderBuffer(owner.endpoint.options.bounds.maxUnsentChars)
  }

  get busy(): boolean {
    return !this.#isClosed
  }

  get streams(): ReadonlyArray<StreamInfo> {
    return [{ kind: "listen", about: [], connected: !this.#isClosed }]
  }

  /**
   * "When a client connects, the server MUST send an `endpoint` event containing a URI for the client to use for
   * sending messages." It is relative to the origin: clients accept no other.
   */
  start(messages: string, principal: Principal | undefined): void {
    this.#answer.open(200, sse.headers)
    this.#answer.write(sse.named("endpoint", `${messages}?sessionId=${this.id}`))
    this.#keepAliveSlot = this.owner.endpoint.keepAlive.add(this.#answer)
    this.owner.streamOpened(this.client, this.#stream)
    this.owner.endpoint.streamExpiry.add(this.#stream, principal)
    // A proxy may close the stream because the server shuts down.
    const left = () => this.owner.end(this, { _tag: "ClosedByUs" }, this.owner.endpoint.isClosing)
    if (this.#answer.isClosed) left()
    else this.#answer.onClose(left)
  }

  /** Receives a message. Replies are sent on the stream. */
  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer, assumeInitialized: boolean): void {
    if (message._tag === "Invalid" && message.error.code === -32700) {
      return this.owner.endpoint.refuse(answer, malformed(message))
    }
    answer.reply(202, {}, "")
    this.owner.endpoint.streamExpiry.postpone(this.#stream, request.principal)
    if (message._tag === "Request" && assumeInitialized) this.#assumeSession(message, request)
    this.arrived(request)
    if (message._tag === "Request") {
      if (this.#inFlight.has(message.id)) this.#isDuplicate = true
      else {
        // It waits while the session waits for an answer of the client.
        const claim = new SimpleClaim("requests", () => this.isAsking, () => this.#displace(message.id))
        this.#inFlight.set(message.id, claim)
        this.owner.endpoint.load.add(claim, this.client, memoryOf(message.params))
        // Answered already: it was too large.
        if (claim.share === undefined) return
      }
      if (isOpening(message) && this.bytes === 0) this.owner.endpoint.load.charge(this, memoryOf(message.params))
    }
    this.receiver.message(message, request)
    this.#isDuplicate = false
  }

  /** Opens a session for a client that continues an earlier one on a new stream, without `initialize`. */
  #assumeSession({ method, params }: JsonRpc.Request, request: HttpRequest): void {
    if (method === "initialize") this.#isInitializing = true
    if (this.#isInitializing || method === "ping" || this.peer.session !== undefined || RequestMeta.isModern(params)) {
      return
    }
    const { core } = this.owner.endpoint
    const named = request.header(Header.keys.protocolVersion)
    const revisions = core.revisions.filter((revision) => Revision.era(revision) === "session")
    const revision = revisions.find((revision) => revision === named) ?? revisions.at(-1)
    if (revision === undefined) return
    const session = core.subscriptions.openSession(
      new ServerSession(this.peer, revision, undefined, {}, request.principal)
    )
    // The client has sent the notification on its earlier stream.
    session.initialized = true
    core.observer?.sessionOpened(this.peer, request)
  }

  send(message: JsonRpc.Outbound): boolean {
    if ((message._tag === "Success" || message._tag === "Failure") && message.id !== undefined) {
      this.#requestEnded(message.id)
    }
    if (this.#isClosed || this.#answer.isClosed) return true
    const text = sse.named("message", JsonRpc.encode(message))
    return this.#buffer.write(this.#answer, text) ?? this.#endUnread()
  }

  #requestEnded(id: JsonRpc.Id): void {
    const claim = this.#isDuplicate ? undefined : this.#inFlight.get(id)
    if (claim === undefined) return
    this.#inFlight.delete(id)
    this.owner.endpoint.load.remove(claim)
  }

  /** Gives up a request at a bound of the endpoint: answers it with an error, and cancels it. */
  #displace(id: JsonRpc.Id): void {
    this.owner.fork(logDisplaced)
    this.send(JsonRpc.failure(id, displaced))
    this.receiver.message(JsonRpc.notification("notifications/cancelled", { requestId: id }))
  }

  #endUnread(): true {
    this.#answer.abort()
    this.owner.end(this, { _tag: "ClosedByUs" })
    const message = `ended a session: its client does not read, and ${this.#buffer.size} characters are unsent`
    this.owner.fork(Effect.logWarning(message))
    return true
  }

  /** Lets the requests in flight finish, as if the client had closed the session. */
  drain(): void {
    this.peer.close({ _tag: "ClosedByPeer" }, true)
  }

  /** Discards a request. The client receives an error if this side ends the session. */
  discardRequest(about: JsonRpc.Id): void {
    this.#requestEnded(about)
    const { isClosing } = this.owner.endpoint
    if (this.isEnding || isClosing) this.send(JsonRpc.failure(about, isClosing ? interrupted : sessionEnded))
  }

  get drained(): Effect.Effect<void> {
    return this.#answer.drained
  }

  protected closeStreams(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.owner.endpoint.keepAlive.remove(this.#answer, this.#keepAliveSlot)
    this.owner.streamClosed(this.#stream)
    this.owner.endpoint.streamExpiry.remove(this.#stream)
    for (const id of this.#inFlight.keys()) this.#requestEnded(id)
    this.#answer.end()
  }
}
