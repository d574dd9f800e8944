/**
 * The sessions of an HTTP endpoint: to whom they belong, how many there are, and when they end.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { clip } from "@skein/protocol/Text"
import * as RandomId from "@skein/runtime/RandomId"
import type { Caller } from "@skein/runtime/RequestContext"
import type { SessionEnd } from "@skein/runtime/Session"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as Scope from "effect/Scope"
import { logInterrupted } from "@skein/runtime/RequestRunner"
import { Fleet } from "../../../Fleet.ts"
import { ServerSession } from "../../base/session.ts"
import { clientOf } from "../../base/client.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { isOpening } from "../messages/classify.ts"
import type { EndpointContext } from "./context.ts"
import type { Claim } from "../limits/load.ts"
import { memoryOf } from "../limits/memory.ts"
import * as paramHeaders from "../messages/paramHeaders.ts"
import {
  busy,
  closing,
  fromError,
  type HttpRefusal,
  idOf,
  invalid,
  malformed,
  noSession,
  tooManyBytes,
  tooManyRequests
} from "../messages/refusals.ts"
import { FleetSessions, tooManySessionsOfPrincipal } from "./fleetSessions.ts"
import type { HttpSessionBase, SessionOwner } from "./sessionBase.ts"
import { ExpiryTimer } from "../limits/expiryTimer.ts"
import { NodeRequests, type Passed, Transport } from "./nodeRequests.ts"
import { notFound } from "./sessionLookups.ts"
import { StreamableSession } from "./streamableSession.ts"

const noTransport = "sessions: \"home\" needs nodes that reach each other: set nodeRequests of NodeHttp"

// How often expired streams are removed from the event log, in milliseconds.
const logSweepInterval = 10_000

/** A session id: 130 random bits, as 22 letters and digits. */
export const newId = (): string => RandomId.make(22)

/** The caller of a message to a session; undefined before `initialize`, and without a session. */
const callerOf = (
  found: StreamableSession | HttpRefusal | undefined,
  { principal }: HttpRequest
): Caller | undefined => {
  const session = found instanceof StreamableSession ? found.peer.session : undefined
  return session instanceof ServerSession ? session.callerFor(principal) : undefined
}

export class Sessions implements SessionOwner {
  readonly endpoint: EndpointContext
  readonly fleet: FleetSessions | undefined
  readonly nodes: NodeRequests | undefined
  // Whether each session stays at the node that has opened it.
  readonly #isHome: boolean
  readonly #scope = Scope.makeUnsafe("parallel")
  readonly #expiry: ExpiryTimer
  /** The sessions that requests can use, of either transport. */
  readonly open = new Map<string, HttpSessionBase>()
  // The sessions that are ending.
  readonly #ending = new Set<HttpSessionBase>()
  // The number of open sessions of each principal.
  readonly #owned = new KeyedCounter()
  // Whether a warning about dropped messages was logged.
  #hasDropped = false
  // The number of POSTs that were handled without a session.
  #posts = 0

  constructor(endpoint: EndpointContext) {
    this.endpoint = endpoint
    const run = Effect.runForkWith(endpoint.context)
    this.#expiry = new ExpiryTimer(() => endpoint.runner.now(), run, (now) => this.#expire(now))
    const fleet = Context.getOrUndefined(endpoint.context, Fleet)
    const transport = endpoint.options.stateless ? undefined : Context.getOrUndefined(endpoint.context, Transport)
    this.nodes = transport && new NodeRequests(transport, endpoint, (effect) => this.fork(effect))
    this.#isHome = fleet !== undefined && endpoint.options.sessions === "home"
    if (this.#isHome && this.nodes === undefined) throw new Error(noTransport)
    if (fleet === undefined || endpoint.options.stateless || this.#isHome) return
    endpoint.core.subscriptions.sharing = this.fleet = new FleetSessions(fleet, this)
    run(Effect.provideService(fleet.receive(this.fleet), Scope.Scope, this.#scope))
  }

  /**
   * Handles a POST of `initialize`, or of a message that belongs to a session. `text` is its body, for another node.
   */
  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer, text: string): void {
    if (this.#passes(request, answer, { message, text })) return
    if (this.fleet?.lookups.mustFind(request) === true) {
      return this.fleet.lookups.find(request, message, answer, () => this.post(message, request, answer, text))
    }
    const id = idOf(message)
    const session = this.#sessionOf(request)
    const mismatch = this.mismatch(message, request, session, this.endpoint.options.requireMcpHeaders)
    if (mismatch !== undefined) return this.endpoint.refuse(answer, mismatch, id)
    const overload = this.overload(message, request)
    if (overload !== undefined) return this.endpoint.refuse(answer, overload, id)
    if (this.endpoint.options.stateless) return this.#postAlone(message, request, answer)
    if (isOpening(message) && request.header(Header.keys.sessionId) === undefined) {
      return this.#initialize(message, request, answer)
    }
    if (!(session instanceof StreamableSession)) return this.endpoint.refuse(answer, session, id)
    this.fleet?.touch(session.id)
    session.post(message, request, answer)
  }

  /** Passes a request on to the node that has its session, if sessions stay where they were opened. */
  #passes(request: HttpRequest, answer: HttpAnswer, body?: Passed["body"]): boolean {
    if (!this.#isHome) return false
    const node = this.nodes?.nodeOf(request.header(Header.keys.sessionId), request)
    if (node === undefined) return false
    const refused = body && this.overload(body.message, request)
    if (refused !== undefined) this.endpoint.refuse(answer, refused, idOf(body!.message))
    else this.nodes!.passToSession(node, { request, answer, body }, () => this.endpoint.refuse(answer, notFound))
    return true
  }

  /** Makes the id of a session that only this node handles. The other nodes of a fleet find this one by it. */
  newOwnId(): string {
    return this.nodes?.idOf(newId()) ?? newId()
  }

  /**
   * Refuses new requests while the endpoint is overloaded or closes. Responses and notifications are still accepted.
   */
  overload({ _tag }: JsonRpc.Inbound, request: HttpRequest): HttpRefusal | undefined {
    if (_tag !== "Request" && _tag !== "Batch") return undefined
    if (this.endpoint.isClosing) return closing
    const { load, options: { maxInFlightRequests } } = this.endpoint
    if (load.requests < maxInFlightRequests) return undefined
    return load.makeRoomFor("requests", clientOf(request)) ? undefined : tooManyRequests
  }

  /** Compares the headers that repeat parts of a message with the message; `required` if they must be present. */
  mismatch(
    message: JsonRpc.Inbound,
    request: HttpRequest,
    found: StreamableSession | HttpRefusal | undefined,
    required: boolean
  ): HttpRefusal | undefined {
    let wrong: string | undefined
    if (message._tag === "Batch") wrong = paramHeaders.mismatchOfBatch(message, request, required)
    else if (message._tag === "Request" || message._tag === "Notification") {
      const isRequired = required && message._tag === "Request"
      const caller = isRequired || request.params !== undefined ? callerOf(found, request) : undefined
      wrong = paramHeaders.mismatch(this.endpoint.core.catalog, message, request, caller, isRequired)
    }
    return wrong === undefined ? undefined : fromError(McpError.headerMismatch(wrong), Revision.latestSession)
  }

  /** Handles a GET, which opens a stream or resumes one. */
  get(request: HttpRequest, answer: HttpAnswer): void {
    if (this.#passes(request, answer)) return
    if (this.fleet?.lookups.mustFind(request) === true) {
      return this.fleet.lookups.find(request, undefined, answer, () => this.get(request, answer))
    }
    const session = this.#sessionOf(request)
    if (!(session instanceof StreamableSession)) return this.endpoint.refuse(answer, session)
    this.fleet?.touch(session.id)
    const last = request.header("last-event-id")
    if (last === undefined || last === "") session.listen(request, answer)
    else session.resume(last, request, answer)
  }

  /** Handles a DELETE, which ends a session. */
  delete(request: HttpRequest, answer: HttpAnswer): void {
    if (this.#passes(request, answer)) return
    if (this.fleet?.lookups.mustFind(request) === true) {
      return this.fleet.lookups.find(request, undefined, answer, () => this.delete(request, answer))
    }
    const session = this.#sessionOf(request)
    if (!(session instanceof StreamableSession)) return this.endpoint.refuse(answer, session)
    if (this.fleet === undefined) {
      this.end(session, { _tag: "ClosedByUs" })
      return answer.reply(204, {}, "")
    }
    // No other node may serve the session once its client knows that it has ended.
    this.fleet.end(session, (refused) => {
      if (refused === undefined) answer.reply(204, {}, "")
      else this.endpoint.refuse(answer, refused)
    })
  }

  /** Adds a session, and connects it to the server. `bytes` is the memory of its `initialize`. */
  add(session: HttpSessionBase, bytes: number): void {
    this.open.set(session.id, session)
    if (!session.isCopy) this.#owned.add(session.principalId, 1)
    session.peer = this.endpoint.core.open(session, this.endpoint.runner, this.fleet?.requestIds)
    // The session of a single request has no data of its own.
    if (!this.endpoint.options.stateless) this.endpoint.load.add(session, session.client, bytes)
  }

  /** Adds a copy of a session that another node has opened. `bytes` is the memory of its `initialize`. */
  restore(id: string, request: HttpRequest, bytes: number): StreamableSession {
    const session = new StreamableSession(this, id, request)
    session.restored()
    this.add(session, bytes)
    this.expire(session)
    return session
  }

  /** Ends a session when it expires. */
  expire(session: HttpSessionBase): void {
    this.#expiry.arm(session.nextCheckAt(this.endpoint.runner.now()))
  }

  /**
   * Refuses a new session if a bound is reached. Expired sessions are removed first, and then a session of a client with
   * a larger share, or one that waits for its client.
   */
  full(request: HttpRequest): HttpRefusal | undefined {
    if (this.endpoint.isClosing) return closing
    const { maxSessionsPerPrincipal } = this.endpoint.options
    const { principal } = request
    if (principal !== undefined && this.#owned.of(principal.id) >= maxSessionsPerPrincipal) {
      return tooManySessionsOfPrincipal
    }
    return this.noRoom(request)
  }

  /** Refuses a new session, or a copy of one, if there are `maxSessions` that cannot be removed. */
  noRoom(request: HttpRequest): HttpRefusal | undefined {
    const { maxSessions, stateless } = this.endpoint.options
    if (this.open.size >= maxSessions && this.#expiry.wakeAt <= this.endpoint.runner.now()) this.#expiry.check()
    if (this.open.size < maxSessions || this.fleet?.makeRoom() === true) return undefined
    const hasRoom = this.endpoint.load.makeRoomFor(stateless ? "requests" : "sessions", clientOf(request))
    if (hasRoom && this.open.size < maxSessions) return undefined
    const wait = Math.ceil((this.#expiry.wakeAt - this.endpoint.runner.now()) / 1_000)
    const refused = busy("Service Unavailable: too many sessions")
    return { ...refused, headers: { "retry-after": String(Math.min(Math.max(wait, 1), 60)) } }
  }

  /**
   * Ends all sessions. Requests in flight may finish within `shutdownTimeout`, and the input that they request may
   * arrive; then they are interrupted.
   */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#expiry.disarm()
    for (const session of [...this.open.values()]) session.drain()
    const allDone = Effect.all([this.#allEnded, this.nodes?.drained ?? Effect.void], { concurrency: 2 })
    return Effect.timeoutOption(allDone, this.endpoint.options.shutdownTimeout).pipe(
      Effect.andThen(() => {
        const sessions = [...this.open.values()]
        const interrupted = sessions.flatMap(({ peer }) => [...peer.requests])
        for (const session of sessions) this.end(session, { _tag: "ClosedByUs" }, true)
        return Effect.andThen(
          logInterrupted(interrupted),
          Effect.andThen(this.nodes?.close ?? Effect.void, this.#allEnded)
        )
      }),
      Effect.andThen(Scope.close(this.#scope, Exit.void))
    )
  })

  readonly #allEnded: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach([...this.open.values(), ...this.#ending], ({ peer }) => peer.ended, {
      concurrency: "unbounded",
      discard: true
    })
  )

  #initialize(message: JsonRpc.Request, request: HttpRequest, answer: HttpAnswer): void {
    const refused = this.full(request)
    if (refused !== undefined) return this.endpoint.refuse(answer, refused, message.id)
    const session = new StreamableSession(this, this.fleet?.newId() ?? this.newOwnId(), request)
    this.add(session, memoryOf(message.params))
    if (session.isEnding) return this.endpoint.refuse(answer, tooManyBytes, message.id)
    this.expire(session)
    session.initialize(message, request, answer)
  }

  /**
   * Handles a POST to an endpoint without sessions: opens a session for this POST alone, in the revision of its header
   * ("the server SHOULD assume protocol version 2025-03-26" without one), and with a client that cannot receive
   * requests. It ends with the response.
   */
  #postAlone(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const id = idOf(message)
    if (id === undefined && message._tag !== "Batch") {
      // A notification has no effect: there is no session that it could belong to.
      if (message._tag === "Invalid") return this.endpoint.refuse(answer, malformed(message))
      return answer.reply(202, {}, "")
    }
    const refused = this.full(request)
    if (refused !== undefined) return this.endpoint.refuse(answer, refused, id)
    const session = new StreamableSession(this, String(++this.#posts), request)
    this.add(session, 0)
    this.endpoint.core.subscriptions.singleRequestPeers.add(session.peer)
    if (isOpening(message)) return session.initialize(message, request, answer)
    const revision = Revision.read(request.header(Header.keys.protocolVersion)) ?? "2025-03-26"
    session.peer.session = new ServerSession(session.peer, revision, undefined, {}, request.principal)
    session.post(message, request, answer)
    if (!session.busy) this.end(session, { _tag: "ClosedByUs" })
  }

  /** The session that a request names, or why it cannot use one. */
  #sessionOf(request: HttpRequest): StreamableSession | HttpRefusal {
    const id = request.header(Header.keys.sessionId)
    if (id === undefined || id === "") return noSession
    const session = this.open.get(id)
    if (!(session instanceof StreamableSession) || session.principalId !== request.principal?.id) return notFound
    // "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400
    // Bad Request" (2025-06-18, transports). A session supports only the revision that was negotiated.
    const version = request.header(Header.keys.protocolVersion)
    if (version === undefined || Revision.read(version) === session.revision) return session
    const what = `MCP-Protocol-Version is ${clip(version)}, and the session has ${
      session.revision ?? "no revision yet"
    }`
    return invalid(400, `Bad Request: ${what}`)
  }

  /** Ends the sessions that have expired. Returns the time of the next check. */
  #expire(now: number): number {
    let next = Infinity
    for (const session of [...this.open.values()]) {
      if (session.expiresAt(now) > now) {
        if (session.busy) this.fleet?.touch(session.id)
        next = Math.min(next, session.nextCheckAt(now))
      } else this.end(session, { _tag: "Expired" })
    }
    return this.endpoint.eventStore.sweep?.(now) === true ? Math.min(next, now + logSweepInterval) : next
  }

  /** Makes a session unavailable to requests. Returns whether it was available. */
  #remove(session: HttpSessionBase): boolean {
    const { id, principalId } = session
    // A copy of the same session may have replaced it.
    if (this.open.get(id) !== session) return false
    this.open.delete(id)
    this.endpoint.load.remove(session)
    if (!session.isCopy) this.#owned.add(principalId, -1)
    if (this.open.size === 0) this.#expiry.disarm()
    return true
  }

  // ---- for the sessions

  isStreamsFull(client: string): boolean {
    const { load, options: { maxStreams } } = this.endpoint
    return load.streams >= maxStreams && !load.makeRoomFor("streams", client)
  }

  streamOpened(client: string, longLived: Claim | undefined): void {
    if (longLived !== undefined) this.endpoint.load.add(longLived, client, 0)
    this.endpoint.core.observer?.streamOpened()
  }

  streamClosed(longLived: Claim | undefined): void {
    if (longLived !== undefined) this.endpoint.load.remove(longLived)
    this.endpoint.core.observer?.streamClosed()
  }

  streamCompleted(session: HttpSessionBase, stream: number): void {
    this.endpoint.eventStore.complete(session.id, stream, session.client)
    if (this.endpoint.eventStore.sweep !== undefined) this.#expiry.arm(this.endpoint.runner.now() + logSweepInterval)
  }

  messageDropped(): void {
    if (this.#hasDropped) return
    this.#hasDropped = true
    const { context, options: { bounds: { maxPendingMessages } } } = this.endpoint
    Effect.runForkWith(context)(Effect.logWarning(
      `HTTP: more than ${maxPendingMessages} messages of a session have no stream: the oldest are dropped`
    ))
  }

  fork(effect: Effect.Effect<unknown>): void {
    const fiber = Effect.runForkWith(this.endpoint.context)(effect)
    if (fiber.pollUnsafe() === undefined) Fiber.runIn(fiber, this.#scope)
  }

  /** Ends a session; `stopping` if the endpoint closes. When its peer has ended, `closed` follows. */
  end(session: HttpSessionBase, reason: SessionEnd, stopping?: boolean): void {
    if (this.#remove(session)) this.#ending.add(session)
    session.isEnding = true
    session.peer.close(reason, stopping)
  }

  interrupt(session: HttpSessionBase): void {
    if (this.fleet === undefined || !(session instanceof StreamableSession)) this.end(session, { _tag: "ClosedByUs" })
    else this.fleet.end(session, constVoid)
  }

  closed(session: HttpSessionBase): void {
    this.#remove(session)
    this.#ending.delete(session)
    // A POST without a session is not counted as one, and has no entries in the event log.
    if (this.endpoint.options.stateless) session.peer.session = undefined
    else if (this.fleet?.closed(session) !== false) this.endpoint.eventStore.forget(session.id)
    this.endpoint.core.forget(session.peer)
  }
}
