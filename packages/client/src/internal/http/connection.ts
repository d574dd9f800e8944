/**
 * A connection over HTTP: it owns the wire, every fiber that speaks on it, and the lane that says how the server is spoken to.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Headers, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { Exchanger } from "./exchange.ts"
import type { Lane, OpenLane } from "./protocol.ts"
import type { Resolved } from "./settings.ts"
import { Streamable, type StreamableRoad } from "./streamable.ts"
import type { Wire, WireReply, WireRequest } from "./httpClient.ts"

/** How a server is spoken to. */
export type Variant = "streamable" | "sse"

const blame = (exit: Exit.Exit<void>): Effect.Effect<void> | undefined =>
  Exit.isFailure(exit) && Cause.hasDies(exit.cause)
    ? Effect.logError("A defect in the HTTP transport", exit.cause)
    : undefined

/** See the module's text. */
export class HttpConnection implements Connection, StreamableRoad {
  readonly sendsHeaders = true
  readonly url: URL
  readonly maxMessageBytes: number
  readonly refusalTimeout: number
  readonly #settings: Resolved
  readonly #wire: Wire
  readonly #exchanger: Exchanger
  readonly #legacy: OpenLane
  readonly #context: Context.Context<never>
  #fibers: Set<Fiber.Fiber<void>> | undefined
  #lane: Lane
  #variant: Variant = "streamable"
  #receiver: Receiver | undefined
  #end: End | undefined
  #closing: Fiber.Fiber<void> | undefined
  // What is told to the receiver comes one by one, and never while it is told something.
  #telling = false
  readonly #untold: Array<(receiver: Receiver) => void> = []

  constructor(wire: Wire, settings: Resolved, context: Context.Context<never>, legacy: OpenLane) {
    this.url = settings.url
    this.maxMessageBytes = settings.maxMessageBytes
    this.refusalTimeout = settings.refusalTimeout
    this.#exchanger = new Exchanger(wire, settings)
    this.#settings = settings
    this.#wire = wire
    this.#legacy = legacy
    this.#context = context
    this.#lane = new Streamable(this, settings)
  }

  get httpMode(): Variant {
    return this.#variant
  }

  // ---- what a peer sees

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#tell()
  }

  send(message: JsonRpc.Outbound, _about?: JsonRpc.Id, headers?: Headers): boolean {
    if (this.#end !== undefined) return true
    this.#lane.send(message, headers)
    return this.#lane.full !== true
  }

  get drained(): Effect.Effect<void> {
    return this.#end !== undefined ? Effect.void : this.#lane.drained ?? Effect.void
  }

  /** Closes it with that scope. */
  closeWith(scope: Scope.Scope): Effect.Effect<void> {
    return Scope.addFinalizerExit(scope, () => this.close)
  }

  /** Ends the connection, with a word to the server within `closeTimeout`. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closing ??= this.#run(Effect.andThen(
        this.#end === undefined && this.#settings.closeTimeout > 0
          ? Effect.timeoutOption(this.#lane.close, this.#settings.closeTimeout) :
          Effect.void,
        Effect.andThen(Effect.sync(() => this.end({ _tag: "Closed" })), this.#wire.close)
      ))
      return Effect.asVoid(Fiber.await(this.#closing))
    })
  }

  // ---- what a lane sees

  exchange<A, E>(
    request: WireRequest,
    use: (reply: WireReply) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | TransportError> {
    return this.#exchanger.exchange(request, use)
  }

  fork(effect: Effect.Effect<void>): Fiber.Fiber<void> {
    const fiber = this.#run(Effect.onExitPrimitive(effect, blame))
    if (fiber.pollUnsafe() !== undefined) return fiber
    // It may have been what ended the connection.
    if (this.#end !== undefined) fiber.interruptUnsafe()
    const fibers = this.#fibers ??= new Set()
    fibers.add(fiber)
    fiber.addObserver(() => fibers.delete(fiber))
    return fiber
  }

  deliver(message: JsonRpc.Inbound): void {
    if (this.#end === undefined) this.#tell((receiver) => receiver.message(message))
  }

  refused(id: JsonRpc.Id, error: TransportError): void {
    if (this.#end === undefined) this.#tell((receiver) => receiver.refused?.(id, error))
  }

  missed(error?: TransportError): void {
    if (this.#end === undefined) this.#tell((receiver) => receiver.gap?.(error))
  }

  end(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    for (const fiber of this.#fibers ?? []) fiber.interruptUnsafe()
    this.#tell((receiver) => receiver.end(end))
  }

  // ---- the legacy pair of endpoints

  /** Speaks to the server as to one of 2024-11-05 from now on. */
  get becomeLegacy(): Effect.Effect<void, TransportError> {
    return Effect.suspend(() =>
      Effect.map(this.#legacy(this, this.#settings), (lane) => {
        this.#lane = lane
        this.#variant = "sse"
      })
    )
  }

  /** Sends a refused `initialize` once more in the other way, if the server knows that. */
  takeOver(initialize: JsonRpc.Request): Effect.Effect<boolean> {
    return Effect.matchEffect(this.becomeLegacy, {
      onFailure: ({ message, status }) => {
        // It has no such stream; or it has one, and something is wrong with it.
        const log = status !== undefined && status >= 400 ? Effect.logDebug : Effect.logWarning
        return Effect.as(log(`HTTP+SSE cannot be spoken to the server either: ${message}`), false)
      },
      onSuccess: () => {
        this.#lane.send(initialize, undefined)
        return Effect.succeed(true)
      }
    })
  }

  // ----

  #tell(what?: (receiver: Receiver) => void): void {
    const untold = this.#untold
    const receiver = this.#receiver
    if (what !== undefined) untold.push(what)
    if (receiver === undefined || this.#telling) return
    this.#telling = true
    try {
      for (let next = untold.shift(); next !== undefined; next = untold.shift()) next(receiver)
    } finally {
      this.#telling = false
    }
  }

  #run(effect: Effect.Effect<void>): Fiber.Fiber<void> {
    return Effect.runForkWith(this.#context)(effect)
  }
}
