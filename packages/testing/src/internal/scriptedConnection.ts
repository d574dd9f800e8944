/**
 * The client's side of a connection to a scripted server, in memory.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Receiver } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"

/**
 * The delivery of a request of the client: `drop` discards it, `lose` loses the connection in place of the delivery,
 * and an error refuses the request alone. With `delivered` the server receives the request first. `undefined` delivers
 * it.
 */
export type Delivery =
  | TransportError
  | "drop"
  | "lose"
  | { readonly delivered: TransportError | "lose" }
  | undefined

/** How the server treats the messages of one connection. */
interface Handler {
  readonly receive: (message: JsonRpc.Inbound, sender: ScriptedConnection) => void
  readonly onRequest: (request: JsonRpc.Request) => Delivery
}

/** The error of a lost connection. `retryAfter` is in milliseconds. */
export const lost = (message = "The scripted connection was lost", retryAfter?: number | undefined): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message }), retryAfter })

/**
 * The server receives a message within `send`. The client receives in a later microtask, so that delivery is never
 * nested in a call of the sender.
 */
export class ScriptedConnection implements Connection {
  readonly drained: Effect.Effect<void> = Effect.void
  readonly #handler: Handler
  readonly #texts: Array<string> = []
  #receiver: Receiver | undefined = undefined
  #end: End | undefined = undefined
  #isScheduled = false
  #turns = 0

  constructor(handler: Handler) {
    this.#handler = handler
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#schedule()
  }

  send(message: JsonRpc.Outbound): boolean {
    // Both sides read text, so that a message means the same as on a real transport.
    const received = JsonRpc.parseText(JsonRpc.encode(message))
    if (this.#end !== undefined) return true
    const delivery = received._tag === "Request" ? this.#handler.onRequest(received) : undefined
    if (delivery === "drop") return true
    const isDelivered = delivery === undefined || (typeof delivery === "object" && "delivered" in delivery)
    const fault = typeof delivery === "object" && "delivered" in delivery ? delivery.delivered : delivery
    // The fault is queued first: the client must not receive a reply before it.
    if (received._tag === "Request" && fault !== undefined) {
      queueMicrotask(() => fault === "lose" ? this.lose(lost()) : this.refuse(received.id, fault))
    }
    if (isDelivered) this.#handler.receive(received, this)
    return true
  }

  readonly close: Effect.Effect<void> = Effect.sync(() => {
    this.#texts.length = 0
    this.end({ _tag: "ClosedByUs" })
  })

  /** Sends a text to the client. */
  deliver(text: string): void {
    if (this.#end !== undefined) return
    this.#texts.push(text)
    this.#schedule()
  }

  /** Ends the connection after the texts that were sent. */
  end(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#schedule()
  }

  /** Ends the connection immediately. */
  lose(cause: TransportError): void {
    if (this.#end !== undefined) return
    this.#texts.length = 0
    this.#end = { _tag: "Lost", cause }
    this.#deliver()
  }

  refuse(id: JsonRpc.Id, error: TransportError): void {
    this.#receiver?.refused?.(id, error)
  }

  reportGap(error: TransportError | undefined): void {
    this.#receiver?.gap?.(error)
  }

  /**
   * Delivers in a later turn. A client and a script that send continuously would starve timers and sockets, so some
   * turns wait for them.
   */
  #schedule(): void {
    if (this.#isScheduled || this.#receiver === undefined) return
    this.#isScheduled = true
    if (++this.#turns % turnsAtOnce === 0) setImmediate(this.#turn)
    else queueMicrotask(this.#turn)
  }

  readonly #turn = (): void => {
    this.#isScheduled = false
    this.#deliver()
  }

  #deliver(): void {
    const receiver = this.#receiver
    if (receiver === undefined) return
    // A client may send a request while it receives: the reply waits for another turn, like every reply.
    for (let left = this.#texts.length; left > 0 && this.#texts.length > 0; left--) {
      receiver.message(JsonRpc.parseText(this.#texts.shift()!))
    }
    if (this.#texts.length > 0) return this.#schedule()
    if (this.#end === undefined || this.#receiver === undefined) return
    this.#receiver = undefined
    receiver.end(this.#end)
  }
}

const turnsAtOnce = 1024
