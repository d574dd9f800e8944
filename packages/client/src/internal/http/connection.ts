/**
 * A connection over HTTP: it owns the wire, every fiber that speaks on it, and the lane that says how the server is spoken to.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Headers, Receiver, Transport } from "@skein/runtime/Connection"
import { TransportError } from "@skein/runtime/TransportError"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as LegacySse from "../legacySse/legacySse.ts"
import { Exchanger } from "./exchange.ts"
import type { HttpProtocol, OpenProtocol } from "./protocol.ts"
import { resolve, type Resolved, type Settings } from "./settings.ts"
import { Streamable, type StreamableChannel } from "./streamable.ts"
import type { HttpClient, HttpRequest, HttpResponse } from "./httpClient.ts"

/** How a server is spoken to. */
export type HttpMode = "streamable" | "sse"

const logDefect = (exit: Exit.Exit<void>): Effect.Effect<void> | undefined =>
  Exit.isFailure(exit) && Cause.hasDies(exit.cause)
    ? Effect.logError("A defect in the HTTP transport", exit.cause)
    : undefined

/** See the module's text. */
export class HttpConnection implements Connection, StreamableChannel {
  readonly sendsHeaders = true
  readonly url: URL
  readonly maxMessageBytes: number
  readonly refusalTimeout: number
  readonly #settings: Resolved
  readonly #client: HttpClient
  readonly #exchanger: Exchanger
  readonly #openLegacySse: OpenProtocol
  readonly #context: Context.Context<never>
  #fibers: Set<Fiber.Fiber<void>> | undefined
  #protocol: HttpProtocol
  #httpMode: HttpMode = "streamable"
  #receiver: Receiver | undefined
  #end: End | undefined
  #closing: Fiber.Fiber<void> | undefined
  // What is told to the receiver comes one by one, and never while it is told something.
  #isDelivering = false
  readonly #pending: Array<(receiver: Receiver) => void> = []

  constructor(client: HttpClient, settings: Resolved, context: Context.Context<never>, openLegacySse: OpenProtocol) {
    this.url = settings.url
    this.maxMessageBytes = settings.maxMessageBytes
    this.refusalTimeout = settings.refusalTimeout
    this.#exchanger = new Exchanger(client, settings)
    this.#settings = settings
    this.#client = client
    this.#openLegacySse = openLegacySse
    this.#context = context
    this.#protocol = new Streamable(this, settings)
  }

  get httpMode(): HttpMode {
    return this.#httpMode
  }

  // ---- what a peer sees

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#deliverNext()
  }

  send(message: JsonRpc.Outbound, _about?: JsonRpc.Id, headers?: Headers): boolean {
    if (this.#end !== undefined) return true
    this.#protocol.send(message, headers)
    return this.#protocol.full !== true
  }

  get drained(): Effect.Effect<void> {
    return this.#end !== undefined ? Effect.void : this.#protocol.drained ?? Effect.void
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
          ? Effect.timeoutOption(this.#protocol.close, this.#settings.closeTimeout) :
          Effect.void,
        Effect.andThen(Effect.sync(() => this.end({ _tag: "Closed" })), this.#client.close)
      ))
      return Effect.asVoid(Fiber.await(this.#closing))
    })
  }

  // ---- what a lane sees

  exchange<A, E>(
    request: HttpRequest,
    use: (reply: HttpResponse) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | TransportError> {
    return this.#exchanger.exchange(request, use)
  }

  fork(effect: Effect.Effect<void>): Fiber.Fiber<void> {
    const fiber = this.#run(Effect.onExitPrimitive(effect, logDefect))
    if (fiber.pollUnsafe() !== undefined) return fiber
    // It may have been what ended the connection.
    if (this.#end !== undefined) fiber.interruptUnsafe()
    const fibers = this.#fibers ??= new Set()
    fibers.add(fiber)
    fiber.addObserver(() => fibers.delete(fiber))
    return fiber
  }

  deliver(message: JsonRpc.Inbound): void {
    if (this.#end === undefined) this.#deliverNext((receiver) => receiver.message(message))
  }

  refused(id: JsonRpc.Id, error: TransportError): void {
    if (this.#end === undefined) this.#deliverNext((receiver) => receiver.refused?.(id, error))
  }

  gap(error?: TransportError): void {
    if (this.#end === undefined) this.#deliverNext((receiver) => receiver.gap?.(error))
  }

  end(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    for (const fiber of this.#fibers ?? []) fiber.interruptUnsafe()
    this.#deliverNext((receiver) => receiver.end(end))
  }

  // ---- the legacy pair of endpoints

  /** Speaks to the server as to one of 2024-11-05 from now on. */
  get switchToSse(): Effect.Effect<void, TransportError> {
    return Effect.suspend(() =>
      Effect.map(this.#openLegacySse(this, this.#settings), (protocol) => {
        this.#protocol = protocol
        this.#httpMode = "sse"
      })
    )
  }

  /** Sends a refused `initialize` once more in the other way, if the server knows that. */
  fallBackToSse(initialize: JsonRpc.Request): Effect.Effect<boolean> {
    return Effect.matchEffect(this.switchToSse, {
      onFailure: ({ message, status }) => {
        // It has no such stream; or it has one, and something is wrong with it.
        const log = status !== undefined && status >= 400 ? Effect.logDebug : Effect.logWarning
        return Effect.as(log(`HTTP+SSE cannot be spoken to the server either: ${message}`), false)
      },
      onSuccess: () => {
        this.#protocol.send(initialize, undefined)
        return Effect.succeed(true)
      }
    })
  }

  // ----

  #deliverNext(what?: (receiver: Receiver) => void): void {
    const pending = this.#pending
    const receiver = this.#receiver
    if (what !== undefined) pending.push(what)
    if (receiver === undefined || this.#isDelivering) return
    this.#isDelivering = true
    try {
      for (let next = pending.shift(); next !== undefined; next = pending.shift()) next(receiver)
    } finally {
      this.#isDelivering = false
    }
  }

  #run(effect: Effect.Effect<void>): Fiber.Fiber<void> {
    return Effect.runForkWith(this.#context)(effect)
  }
}

/** One wire for each connection; the connection closes it. */
export const transport = (makeWire: () => HttpClient, settings: Settings): Transport => {
  const connect = Effect.flatMap(Effect.context<Scope.Scope>(), (context) => {
    const resolved = resolve(settings, context)
    if (resolved instanceof TransportError) return Effect.fail(resolved)
    return Effect.uninterruptible(Effect.suspend(() => {
      const connection = new HttpConnection(makeWire(), resolved, context, LegacySse.open)
      return Effect.as(connection.closeWith(Context.get(context, Scope.Scope)), connection)
    }))
  })
  return {
    connect,
    connectWith: (variant) => variant === "sse" ? Effect.tap(connect, (connection) => connection.switchToSse) : connect,
    reconnects: true
  }
}
