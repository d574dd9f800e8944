/**
 * The sessions of an HTTP endpoint: who may use which, how many there are, and when they end.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type * as Limits from "@skein/runtime/Limits"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as EventStore from "../../EventStore.ts"
import { clip } from "../text.ts"
import type { Host } from "../dispatch/serverCore.ts"
import { ServerSession } from "../dispatch/session.ts"
import { monotonicMillis } from "../time.ts"
import { isOpening } from "./classify.ts"
import type { HttpAnswer, HttpRequest } from "./adapter.ts"
import { Sweeper } from "./sessionExpiry.ts"
import type { Held, Keeper } from "./sessionBase.ts"
import type { Gauge } from "./gauge.ts"
import type { KeepAlive } from "./keepAlive.ts"
import { LegacySession } from "../legacySse/sseSession.ts"
import type { Resolved } from "./options.ts"
import type { Parts } from "./context.ts"
import { busy, closing, idOf, invalid, malformed, noSession, type Refused, tooMany, tooManyStreams } from "./refusal.ts"
import type { Refusals } from "./refusals.ts"
import { HttpSession } from "./streamableSession.ts"
import { KeyedCounter } from "../limits/concurrencyLimiter.ts"

const noLegacyId = invalid(400, "Bad Request: the sessionId of a session is missing")
// The same for one that never was, that is over, and that is somebody else's.
const notFound = invalid(404, "Not Found: there is no such session")
const tooManyOfOne = busy("Service Unavailable: too many sessions of one principal")

// How often the event log is looked through while there is something in it, in milliseconds.
const logSweep = 10_000

/** 128 random bits, in letters that need no quoting anywhere. */
const newId = (): string =>
  btoa(String.fromCharCode(...globalThis.crypto.getRandomValues(new Uint8Array(16))))
    .replaceAll("+", "-").replaceAll("/", "_").slice(0, 22)

export class Sessions implements Keeper {
  readonly options: Resolved
  readonly log: EventStore.Store
  readonly keepAlive: KeepAlive
  closing = false
  readonly gauge: Gauge
  readonly #refusals: Refusals
  readonly #host: Host
  readonly #context: Context.Context<never>
  readonly #limits: Limits.Resolved
  readonly #clock: Clock.Clock
  readonly #run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly #scope = Scope.makeUnsafe("parallel")
  readonly #sweeper: Sweeper
  // Those that can be found, and those that are told to end.
  readonly #found = new Map<string, Held>()
  readonly #ending = new Set<Held>()
  // How many each principal has of those that can be found.
  readonly #owned = new KeyedCounter()
  // How many POSTs there were that stand alone.
  #posts = 0

  /** An `EventStore` among the services of the endpoint is used. */
  constructor({ context, gauge, host, keepAlive, limits, options, refusals }: Parts) {
    this.options = options
    this.keepAlive = keepAlive
    this.gauge = gauge
    this.#refusals = refusals
    this.log = Option.getOrElse(Context.getOption(context, EventStore.EventStore), () => EventStore.make())
    this.#host = host
    this.#context = context
    this.#limits = limits
    this.#clock = Context.get(context, Clock.Clock)
    this.#run = Effect.runForkWith(context)
    this.#sweeper = new Sweeper(() => this.now(), this.#run, (now) => this.#sweep(now))
  }

  /** How many sessions there are. */
  get size(): number {
    return this.#found.size
  }

  /** A message by POST. The guards are passed, and the body is parsed: `initialize` is among them, and what belongs to a session. */
  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const id = idOf(message)
    const full = this.#busy(message)
    if (full !== undefined) return this.refuse(answer, full, id)
    if (this.options.sessions.stateless) return this.#alone(message, request, answer)
    if (isOpening(message) && request.header(Header.keys.sessionId) === undefined) {
      return this.#open(message, request, answer)
    }
    const session = this.#sessionOf(request)
    if (!(session instanceof HttpSession)) return this.refuse(answer, session, id)
    session.post(message, request, answer)
  }

  /** Why nothing is asked now. What ends something, or answers it, is taken all the same. */
  #busy({ _tag }: JsonRpc.Inbound): Refused | undefined {
    if (_tag !== "Request" && _tag !== "Batch") return undefined
    return this.closing ? closing : this.gauge.requests >= this.options.maxConcurrentRequests ? tooMany : undefined
  }

  /** For whom a message of a session is: undefined before the handshake, and where the request belongs to no session. */
  caller(request: HttpRequest): ServerSession | undefined {
    const session = this.#sessionOf(request)
    return session instanceof HttpSession && session.peer.session instanceof ServerSession
      ? session.peer.session
      : undefined
  }

  /** A stream by GET: a new one, or one that the client comes back to. */
  get(request: HttpRequest, answer: HttpAnswer): void {
    const session = this.#sessionOf(request)
    if (!(session instanceof HttpSession)) return this.refuse(answer, session)
    const last = request.header("last-event-id")
    if (last === undefined || last === "") session.listen(answer)
    else session.resume(last, answer)
  }

  /** The end of a session by DELETE. */
  delete(request: HttpRequest, answer: HttpAnswer): void {
    const session = this.#sessionOf(request)
    if (!(session instanceof HttpSession)) return this.refuse(answer, session)
    this.end(session, { _tag: "Closed" })
    answer.reply(204, {}, "")
  }

  /** The stream of a 2024-11-05 session, which opens it. `messages` is the path that the client shall post to. */
  legacyGet(messages: string, request: HttpRequest, answer: HttpAnswer): void {
    const refused = this.#full(request.principal?.id)
    if (refused !== undefined) return this.refuse(answer, refused)
    if (this.crowded) return this.refuse(answer, tooManyStreams)
    const session = new LegacySession(this, newId(), request.principal?.id, answer)
    this.#add(session)
    this.#sweeper.arm(session.due(this.now()))
    session.start(messages)
  }

  /** A message to a 2024-11-05 session. */
  legacyPost(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const id = new URLSearchParams(request.query).get("sessionId")
    if (id === null || id === "") return this.refuse(answer, noLegacyId)
    const session = this.#found.get(id)
    if (!(session instanceof LegacySession) || session.owner !== request.principal?.id) {
      return this.refuse(answer, notFound)
    }
    const full = this.#busy(message)
    if (full !== undefined) return this.refuse(answer, full, idOf(message))
    session.post(message, request, answer)
  }

  /**
   * Ends all sessions: what is in flight may finish within the grace, and what it asks its client may be answered; then it is
   * interrupted.
   */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.closing = true
      this.#sweeper.disarm()
      for (const session of [...this.#found.values()]) session.drain()
      return Effect.timeoutOption(this.#ended, this.options.shutdownTimeout).pipe(
        Effect.andThen(() => {
          for (const session of [...this.#found.values()]) this.end(session, { _tag: "Closed" }, true)
          return this.#ended
        }),
        Effect.andThen(Scope.close(this.#scope, Exit.void))
      )
    })
  }

  get #ended(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach([...this.#found.values(), ...this.#ending], ({ peer }) => peer.ended, {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  #open(message: JsonRpc.Request, request: HttpRequest, answer: HttpAnswer): void {
    const refused = this.#full(request.principal?.id)
    if (refused !== undefined) return this.refuse(answer, refused, message.id)
    const session = new HttpSession(this, newId(), request.principal?.id, this.#limits)
    this.#add(session)
    this.#sweeper.arm(session.due(this.now()))
    session.initialize(message, request, answer)
  }

  /**
   * A POST that is all there is: a session for it alone, in the revision that its header names ("the server SHOULD assume protocol
   * version 2025-03-26" without one), and with a client that can be asked nothing. It is over with the answer.
   */
  #alone(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const id = idOf(message)
    if (id === undefined && message._tag !== "Batch") {
      // Nobody waits for an answer, and what a notification could be about is over.
      if (message._tag === "Invalid") return this.refuse(answer, malformed(message))
      return answer.reply(202, {}, "")
    }
    const refused = this.#full(request.principal?.id)
    if (refused !== undefined) return this.refuse(answer, refused, id)
    const session = new HttpSession(this, String(++this.#posts), request.principal?.id, this.#limits)
    this.#add(session)
    this.#host.hub.singleRequestPeers.add(session.peer)
    if (isOpening(message)) return session.initialize(message, request, answer)
    const revision = (request.header(Header.keys.protocolVersion) ?? "2025-03-26") as Revision
    session.peer.session = new ServerSession(session.peer, revision, undefined, {}, request.principal)
    session.post(message, request, answer)
    if (!session.busy) this.end(session, { _tag: "Closed" })
  }

  #add(session: Held): void {
    this.#found.set(session.id, session)
    this.#owned.add(session.owner, 1)
    session.peer = this.#host.open(session, this.#context)
  }

  /** It is not found any more. Tells whether it was. */
  #remove({ id, owner }: Held): boolean {
    if (!this.#found.delete(id)) return false
    this.#owned.add(owner, -1)
    return true
  }

  /** Why there is no room for one more of somebody's. Those that have expired make room. */
  #full(owner: string | undefined): Refused | undefined {
    if (this.closing) return closing
    const { maxSessions: max, maxSessionsPerPrincipal: maxPerPrincipal } = this.options.sessions
    if (owner !== undefined && this.#owned.of(owner) >= maxPerPrincipal) return tooManyOfOne
    if (this.#found.size >= max && this.#sweeper.wakeAt <= this.now()) this.#sweeper.sweep()
    if (this.#found.size < max) return undefined
    const wait = Math.ceil((this.#sweeper.wakeAt - this.now()) / 1_000)
    const refused = busy("Service Unavailable: too many sessions")
    return { ...refused, headers: { "retry-after": String(Math.min(Math.max(wait, 1), 60)) } }
  }

  /** The session that a request belongs to, or why it belongs to none. */
  #sessionOf(request: HttpRequest): HttpSession | Refused {
    const id = request.header(Header.keys.sessionId)
    if (id === undefined || id === "") return noSession
    const session = this.#found.get(id)
    if (!(session instanceof HttpSession) || session.owner !== request.principal?.id) return notFound
    // "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400 Bad
    // Request" (2025-06-18, transports). What was not negotiated is not spoken in this session.
    const version = request.header(Header.keys.protocolVersion)
    if (version === undefined || version === session.revision) return session
    const what = `MCP-Protocol-Version is ${clip(version)}, and the session speaks ${session.revision ?? "none yet"}`
    return invalid(400, `Bad Request: ${what}`)
  }

  #sweep(now: number): number {
    let next = Infinity
    for (const session of [...this.#found.values()]) {
      if (session.expires(now) > now) next = Math.min(next, session.due(now))
      else this.end(session, { _tag: "Expired" })
    }
    return this.log.sweep?.(now) === true ? Math.min(next, now + logSweep) : next
  }

  // ---- what a session needs

  refuse(answer: HttpAnswer, refused: Refused, id?: JsonRpc.Id): void {
    this.#refusals.refuse(answer, refused, id)
  }

  get crowded(): boolean {
    return this.gauge.streams >= this.options.maxStreams
  }

  opened(listening: boolean): void {
    if (listening) this.gauge.streams++
    this.#host.observer?.streamOpened()
  }

  closed(listening: boolean): void {
    if (listening) this.gauge.streams--
    this.#host.observer?.streamClosed()
  }

  now(): number {
    return monotonicMillis(this.#clock)
  }

  fork(effect: Effect.Effect<unknown>): void {
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() === undefined) Fiber.runIn(fiber, this.#scope)
  }

  completed(session: Held, stream: number): void {
    this.log.complete(session.id, stream)
    if (this.log.sweep !== undefined) this.#sweeper.arm(this.now() + logSweep)
  }

  end(session: Held, reason: SessionEnd, stopping?: boolean): void {
    if (this.#remove(session)) this.#ending.add(session)
    if (this.#found.size === 0) this.#sweeper.disarm()
    session.end(reason, stopping)
  }

  gone(session: Held): void {
    this.#remove(session)
    this.#ending.delete(session)
    if (this.#found.size === 0) this.#sweeper.disarm()
    // What stood alone was no session, and has nothing in the log.
    if (this.options.sessions.stateless) session.peer.session = undefined
    else this.log.forget(session.id)
    this.#host.forget(session.peer)
  }
}
