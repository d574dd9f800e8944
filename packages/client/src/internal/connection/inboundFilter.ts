/**
 * Filters the messages that a client's peer receives. The peer would answer messages that it does not understand, as a
 * server must; a client must not.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, End, Headers, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"

/** The state that the filter needs, and the receiver of its warnings. */
export interface InboundFilterContext {
  /**
   * The negotiated revision. Before the negotiation, the stateless revision if no session can be opened, else
   * undefined.
   */
  readonly spoken: Revision.Revision | undefined
  /** Something was dropped. Called once for each kind of message. */
  readonly dropped: (what: string) => void
}

/** For instance a line of prose on stdout. A malformed response is passed on, since a request waits for it. */
const isNoise = (message: JsonRpc.Message | JsonRpc.Invalid): boolean => message._tag === "Invalid" && !message.answer

/**
 * Filters the messages of a connection.
 *
 * - Input that is not JSON-RPC is dropped. An error response would be useless to a server that writes prose to its
 *   stdout.
 * - In the stateless revision, requests of the server are dropped: it "MUST NOT write JSON-RPC requests", and the
 *   client "MUST NOT write JSON-RPC responses" (2026-07-28, stdio).
 * - A batch is split into its messages if the revision has no batches.
 */
export class InboundFilter implements Connection, Receiver {
  readonly #connection: Connection
  readonly #watch: InboundFilterContext
  #receiver: Receiver | undefined = undefined
  #warned: Set<string> | undefined = undefined

  constructor(connection: Connection, watch: InboundFilterContext) {
    this.#connection = connection
    this.#watch = watch
    // A peer uses them if they exist, to stop reading for a while. They exist only if the connection supports it.
    if (connection.pause !== undefined) this.pause = () => connection.pause!()
    if (connection.resume !== undefined) this.resume = () => connection.resume!()
  }

  // ---- for the peer

  declare readonly pause?: () => void
  declare readonly resume?: () => void

  get sendsHeaders(): boolean | undefined {
    return this.#connection.sendsHeaders
  }

  get httpMode(): string | undefined {
    return this.#connection.httpMode
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#connection.open(this)
  }

  send(message: JsonRpc.Outbound, about?: JsonRpc.Id, headers?: Headers): boolean {
    return this.#connection.send(message, about, headers)
  }

  get drained(): Effect.Effect<void> {
    return this.#connection.drained
  }

  get close(): Effect.Effect<void> {
    return this.#connection.close
  }

  // ---- for the connection

  message(inbound: JsonRpc.Inbound): void {
    const { spoken } = this.#watch
    if (inbound._tag === "Batch") {
      if (spoken !== "2025-03-26") return inbound.members.forEach((member) => this.message(member))
      const members = inbound.members.filter((member) => !isNoise(member))
      if (members.length < inbound.members.length) this.#drop("they are not JSON-RPC")
      return members.length === 0 ? undefined : this.#receiver!.message({ _tag: "Batch", members })
    }
    if (isNoise(inbound)) return this.#drop("they are not JSON-RPC")
    if (inbound._tag === "Request" && spoken === "2026-07-28") {
      return this.#drop("2026-07-28 has no requests of the server")
    }
    this.#receiver!.message(inbound)
  }

  refused(id: JsonRpc.Id, error: TransportError): void {
    this.#receiver!.refused?.(id, error)
  }

  gap(error?: TransportError): void {
    this.#receiver!.gap?.(error)
  }

  end(end: End): void {
    this.#receiver!.end(end)
  }

  #drop(what: string): void {
    const warned = this.#warned ??= new Set()
    if (warned.has(what)) return
    warned.add(what)
    this.#watch.dropped(what)
  }
}
