/**
 * Shared by the tests of this package: a peer against a scripted counterpart that records sent messages, two connected
 * peers, handlers that the test controls, and a logger that records its lines.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import type * as Connection from "@skein/runtime/Connection"
import type * as RequestContext from "@skein/runtime/RequestContext"
import type * as Limits from "@skein/runtime/Limits"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Peer from "@skein/runtime/Peer"
import type * as Session from "@skein/runtime/Session"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import type * as Metric from "effect/Metric"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { Bounds, type FixedBounds, fixedBounds } from "../src/internal/base/fixedBounds.ts"

export const session = (revision: Revision.Revision): Session.Session => ({
  revision,
  info: { name: "kit", version: "1" },
  capabilities: {}
})

/** A sent message, and the request that it was sent about. */
export interface Sent {
  readonly json: any
  readonly about: JsonRpc.Id | undefined
}

/** The other end of a connection, controlled by a test. Messages are written and read as text. */
export class Counterpart implements Connection.Connection {
  readonly sent: Array<Sent> = []
  /** The requests that were reported as never getting a response. */
  readonly forgotten: Array<JsonRpc.Id> = []
  /** The result of `send`. */
  room = true
  /** Whether much output waits for the other end. */
  isOutputFull = false
  hasSessionId: boolean | undefined = undefined
  closes = 0
  /** Runs within `send`. */
  onSend: ((json: any) => void) | undefined = undefined
  #receiver: Connection.Receiver | undefined = undefined
  #ended = false
  readonly #waiting = new Set<() => void>()

  open(receiver: Connection.Receiver): void {
    this.#receiver = receiver
  }

  discardRequest(about: JsonRpc.Id): void {
    this.forgotten.push(about)
  }

  drainedAbout(): Effect.Effect<void> {
    return this.drained
  }

  endStream(): void {}

  send(message: JsonRpc.Outbound, about?: JsonRpc.Id): boolean {
    const json = JSON.parse(JsonRpc.encode(message))
    if (this.closes > 0) return true
    this.sent.push({ json, about })
    this.onSend?.(json)
    return this.room
  }

  readonly drained = Effect.callback<void>((resume) => {
    if (this.room) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    this.#waiting.add(wake)
    return Effect.sync(() => void this.#waiting.delete(wake))
  })

  readonly close = Effect.sync(() => {
    this.closes++
    this.end({ _tag: "ClosedByUs" })
    this.drain()
  })

  /** The number of callers that wait in `drained`. */
  get waiters(): number {
    return this.#waiting.size
  }

  drain(): void {
    this.room = true
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  end(end: Connection.End): void {
    if (this.#ended) return
    this.#ended = true
    this.#receiver?.end(end)
  }

  // ---- messages from the other side

  text(text: string, size?: number): void {
    if (!this.#ended) this.#receiver!.message(JsonRpc.parseText(text), size === undefined ? undefined : { size })
  }

  json(value: unknown): void {
    this.text(JSON.stringify(value))
  }

  request(id: JsonRpc.Id, method = "work", params?: object): void {
    this.json({ jsonrpc: "2.0", id, method, params })
  }

  notify(method: string, params?: object): void {
    this.json({ jsonrpc: "2.0", method, params })
  }

  cancel(requestId: unknown, reason?: string): void {
    this.notify("notifications/cancelled", { requestId, reason })
  }

  progress(progressToken: unknown, progress: unknown, rest: object = {}): void {
    this.notify("notifications/progress", { progressToken, progress, ...rest })
  }

  answer(id: JsonRpc.Id | undefined, result: object = {}): void {
    this.json({ jsonrpc: "2.0", id, result })
  }

  fail(id: JsonRpc.Id | undefined, code: number, message: string): void {
    this.json({ jsonrpc: "2.0", id, error: { code, message } })
  }

  // ---- sent messages

  get messages(): ReadonlyArray<any> {
    return this.sent.map((sent) => sent.json)
  }

  /** The responses to one id. */
  answers(id: JsonRpc.Id): ReadonlyArray<any> {
    return this.messages.filter((json) => json.method === undefined && json.id === id)
  }

  /** The requests that were sent. */
  requests(method?: string): ReadonlyArray<any> {
    return this.messages.filter((json) =>
      json.id !== undefined && json.method !== undefined && (method === undefined || json.method === method)
    )
  }

  notices(method: string): ReadonlyArray<any> {
    return this.messages.filter((json) => json.id === undefined && json.method === method)
  }
}

type Outcome = Effect.Effect<RequestContext.Answer, McpError.McpError>

/** Handlers that wait until the test ends them. */
export class Handlers {
  readonly #ends = new Map<JsonRpc.Id, Deferred.Deferred<RequestContext.Answer, McpError.McpError>>()
  readonly exchanges = new Map<JsonRpc.Id, RequestContext.RequestContext>()
  readonly started: Array<JsonRpc.Id> = []
  readonly interrupted: Array<JsonRpc.Id> = []

  /** Parks until `end` is called for its id. */
  readonly parked = (exchange: RequestContext.RequestContext): Outcome =>
    Effect.suspend(() => {
      const end = Deferred.makeUnsafe<RequestContext.Answer, McpError.McpError>()
      this.#ends.set(exchange.id, end)
      this.exchanges.set(exchange.id, exchange)
      this.started.push(exchange.id)
      return Effect.onInterrupt(Deferred.await(end), () => Effect.sync(() => void this.interrupted.push(exchange.id)))
    })

  end(id: JsonRpc.Id, outcome: Outcome = Effect.succeed({ done: id })): void {
    Deferred.doneUnsafe(this.#ends.get(id)!, outcome)
  }
}

export interface RawOptions {
  readonly revision?: Revision.Revision | undefined
  readonly limits?: Limits.Limits | undefined
  readonly bounds?: Partial<FixedBounds>
  /** The other side, if the test makes it itself. */
  readonly connection?: Counterpart
  readonly dispatch?: RequestContext.Dispatcher<RequestContext.McpRequest>
  readonly identify?: Peer.Options<never>["identify"]
  readonly onNotification?: Peer.Options<never>["onNotification"]
  readonly onLate?: Peer.Options<never>["onLateResult"]
  readonly patient?: boolean
  readonly accept?: Peer.Options<never>["accept"]
  readonly splitBatches?: boolean
}

const caller = (session: Session.Session | undefined, fallback: Revision.Revision): RequestContext.Caller => ({
  revision: session?.revision ?? fallback,
  info: undefined,
  capabilities: {}
})

/** A peer whose other side is the test. Its handlers park, unless a dispatcher is given. */
export const raw = (options: RawOptions = {}): Effect.Effect<
  { readonly peer: Peer.Peer; readonly other: Counterpart; readonly handlers: Handlers },
  never,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const revision = options.revision ?? "2025-11-25"
    const other = options.connection ?? new Counterpart()
    const handlers = new Handlers()
    const peer = yield* Peer.make({
      connection: other,
      dispatch: options.dispatch ?? handlers.parked,
      identify: options.identify ?? ((_request, session) => caller(session, revision)),
      onNotification: options.onNotification,
      onLateResult: options.onLate,
      pauseTimeoutsWhileHandling: options.patient,
      accept: options.accept,
      splitBatches: options.splitBatches,
      limits: options.limits
    }).pipe(Effect.provideService(Bounds, { ...fixedBounds, ...options.bounds }))
    if (revision !== "2026-07-28") peer.session = session(revision)
    return { peer, other, handlers }
  })

export interface PairOptions {
  readonly revision?: Revision.Revision
  readonly left?: RequestContext.Dispatcher<RequestContext.McpRequest>
  readonly right?: RequestContext.Dispatcher<RequestContext.McpRequest>
  readonly limits?: Limits.Limits
  readonly link?: InMemoryTransport.Options
}

/** Answers a ping, as the specification requires of both sides, and echoes all other requests. */
export const echo: RequestContext.Dispatcher = (exchange) =>
  Effect.succeed(exchange.method === "ping" ? {} : { method: exchange.method, params: exchange.params })

/** Two connected peers. */
export const pair = (options: PairOptions = {}): Effect.Effect<readonly [Peer.Peer, Peer.Peer], never, Scope.Scope> =>
  Effect.gen(function*() {
    const revision = options.revision ?? "2025-11-25"
    const [a, b] = yield* InMemoryTransport.make(options.link)
    const make = (connection: Connection.Connection, dispatch: RequestContext.Dispatcher<RequestContext.McpRequest>) =>
      Peer.make({
        connection,
        dispatch,
        identify: (_request, session) => caller(session, revision),
        limits: options.limits
      })
    const left = yield* make(a, options.left ?? echo)
    const right = yield* make(b, options.right ?? echo)
    left.session = right.session = session(revision)
    return [left, right] as const
  })

/** Runs everything that is runnable: microtasks, immediates and the fibers behind them. */
export const settle: Effect.Effect<void> = Effect.gen(function*() {
  for (let turn = 0; turn < 5; turn++) {
    yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
  }
})

/** The exit of the effect's fiber, if it has ended. */
export const poll = <A, E>(fiber: Fiber.Fiber<A, E>): "running" | "succeeded" | "failed" => {
  const exit = fiber.pollUnsafe()
  return exit === undefined ? "running" : exit._tag === "Success" ? "succeeded" : "failed"
}

/** The typed failure of a fiber. */
export const failureOf = <A, E>(fiber: Fiber.Fiber<A, E>): E | undefined => {
  const exit = fiber.pollUnsafe()
  return exit?._tag === "Failure" ? exit.cause.reasons.find(Cause.isFailReason)?.error : undefined
}

export interface Logged {
  readonly level: string
  readonly text: string
  readonly cause: string
}

/** Runs an effect with a logger that records all lines, including debug, and prints nothing. */
export const logged = <A, E, R>(
  f: (lines: ReadonlyArray<Logged>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const lines: Array<Logged> = []
    const logger = Logger.make<unknown, void>((entry) => {
      lines.push({
        level: entry.logLevel,
        text: Array.isArray(entry.message) ? entry.message.join(" ") : String(entry.message),
        cause: entry.cause.reasons.length === 0 ? "" : Cause.pretty(entry.cause)
      })
    })
    return f(lines).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(References.MinimumLogLevel, "All" satisfies LogLevel.LogLevel)
    )
  })

/** Counts the fibers that run with its service. */
export const census = () => {
  const counts = { alive: 0, started: 0 }
  const service: Metric.FiberRuntimeMetricsService = {
    recordFiberStart: () => {
      counts.alive++
      counts.started++
    },
    recordFiberEnd: () => {
      counts.alive--
    }
  }
  return { counts, service }
}
