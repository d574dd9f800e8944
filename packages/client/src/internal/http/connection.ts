/**
 * A connection over HTTP. It owns the HTTP client, the fibers of its requests, and the protocol: Streamable HTTP or
 * HTTP+SSE.
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
import { CallClock, CurrentCallClock } from "../base/callClock.ts"
import * as LegacySse from "./legacySse.ts"
import { Exchanger } from "./exchange.ts"
import type { HttpProtocol } from "./protocol.ts"
import { resolve, type Resolved, type Settings } from "./settings.ts"
import { Streamable, type StreamableChannel } from "./streamable.ts"
import type { HttpClient } from "./httpClient.ts"

/** The HTTP transport of a server. */
export type HttpMode = "streamable" | "sse"

const logDefect = (exit: Exit.Exit<void>): Effect.Effect<void> | undefined =>
  Exit.isFailure(exit) && Cause.hasDies(exit.cause)
    ? Effect.logError("defect in the HTTP transport", exit.cause)
    : undefined

/** A connection to one server. */
export class HttpConnection implements Connection, StreamableChannel {
  readonly exchanger: Exchanger
  readonly sendsHeaders = true
  httpMode: HttpMode = "streamable"
  readonly #client: HttpClient
  #fibers: Set<Fiber.Fiber<void>> | undefined
  #protocol: HttpProtocol
  #receiver: Receiver | undefined
  #end: End | undefined
  #closing: Fiber.Fiber<void> | undefined
  // Events for the receiver are delivered one by one: an event that occurs during a delivery waits.
  #isDelivering = false
  readonly #pending: Array<(receiver: Receiver) => void> = []

  constructor(client: HttpClient, settings: Resolved, context: Context.Context<never>) {
    this.#client = client
    const callClock = Context.getOrUndefined(context, CurrentCallClock) ?? new CallClock()
    this.exchanger = new Exchanger(client, settings, callClock, context)
    this.#protocol = new Streamable(this)
  }

  // ---- for the peer

  get extensions(): Connection["extensions"] {
    return this.settings.credentials?.extensions
  }

  get authorizationContext(): Connection["authorizationContext"] {
    return this.settings.credentials?.authorizationContext?.(this.settings.url)
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#deliverNext()
  }

  send(message: JsonRpc.Outbound, _about?: JsonRpc.Id, headers?: Headers): boolean {
    if (this.#end !== undefined) return true
    this.#protocol.send(message, headers)
    return !this.#protocol.queue.full
  }

  get drained(): Effect.Effect<void> {
    return this.#end !== undefined ? Effect.void : this.#protocol.queue.drained
  }

  /** Closes the connection with a scope. */
  closeWith(scope: Scope.Scope): Effect.Effect<void> {
    return Scope.addFinalizerExit(scope, () => this.close)
  }

  /** Closes the connection, after ending the session on the server within `shutdownTimeout`. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#closing ??= this.exchanger.runDetached(Effect.andThen(
      this.#end === undefined && this.settings.shutdownTimeout > 0
        ? Effect.timeoutOption(this.#protocol.close, this.settings.shutdownTimeout)
        : Effect.void,
      Effect.andThen(Effect.sync(() => this.end({ _tag: "ClosedByUs" })), this.#client.close)
    ))
    return Effect.asVoid(Fiber.await(this.#closing))
  })

  // ---- for the protocol

  get settings(): Resolved {
    return this.exchanger.settings
  }

  get callClock(): CallClock {
    return this.exchanger.callClock
  }

  fork(effect: Effect.Effect<void>): Fiber.Fiber<void> {
    const fiber = this.exchanger.runDetached(Effect.onExitPrimitive(effect, logDefect))
    if (fiber.pollUnsafe() !== undefined) return fiber
    // The fiber itself may have ended the connection.
    if (this.#end !== undefined) fiber.interruptUnsafe()
    const fibers = this.#fibers ??= new Set()
    fibers.add(fiber)
    fiber.addObserver(() => fibers.delete(fiber))
    return fiber
  }

  deliver(message: JsonRpc.Inbound, about?: JsonRpc.Id): void {
    if (this.#end !== undefined) return
    const origin = about === undefined ? undefined : { about }
    this.#deliverNext((receiver) => receiver.message(message, origin))
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
    this.exchanger.release(end._tag === "ClosedByUs")
    for (const fiber of this.#fibers ?? []) fiber.interruptUnsafe()
    this.#deliverNext((receiver) => receiver.end(end))
  }

  // ---- HTTP+SSE of 2024-11-05

  /** Switches to HTTP+SSE. */
  get switchToSse(): Effect.Effect<void, TransportError> {
    return Effect.map(LegacySse.open(this), (protocol) => {
      this.#protocol = protocol
      this.httpMode = "sse"
    })
  }

  /** Sends a refused `initialize` again over HTTP+SSE. Returns the error if the server does not have that transport. */
  fallBackToSse(initialize: JsonRpc.Request): Effect.Effect<TransportError | undefined> {
    return Effect.matchEffect(this.switchToSse, {
      onFailure: (error) => {
        const { message, status } = error
        // A 4xx is the usual response of a server without that stream. Anything else is a fault worth a warning.
        const log = status !== undefined && status >= 400 ? Effect.logDebug : Effect.logWarning
        return Effect.as(log(`HTTP+SSE failed as well: ${message}`), error)
      },
      onSuccess: () => {
        this.#protocol.send(initialize, undefined)
        return Effect.undefined
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
}

/** Makes a transport. Each connection has an HTTP client of its own and closes it. */
export const transport = (makeClient: () => HttpClient, settings: Settings): Transport => {
  const connect = Effect.flatMap(Effect.context<Scope.Scope>(), (context) => {
    const resolved = resolve(settings, context)
    if (resolved instanceof TransportError) return Effect.fail(resolved)
    return Effect.uninterruptible(Effect.suspend(() => {
      const connection = new HttpConnection(makeClient(), resolved, context)
      return Effect.as(connection.closeWith(Context.get(context, Scope.Scope)), connection)
    }))
  })
  return {
    connect,
    connectWith: (variant) => variant === "sse" ? Effect.tap(connect, (connection) => connection.switchToSse) : connect,
    reconnects: true
  }
}
