/**
 * Filters the messages that a client's peer receives. The peer would answer messages that it does not understand, as a
 * server must; a client must not.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, End, Headers, Origin, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"

/**
 * Whether a message is not JSON-RPC, for instance a line of prose on stdout. A malformed response is passed on, since a
 * request waits for it.
 */
const isNoise = (message: JsonRpc.Message | JsonRpc.Invalid): boolean => message._tag === "Invalid" && !message.answer

/**
 * Filters the messages of a connection.
 *
 * - Input that is not JSON-RPC is dropped. An error response would be useless to a server that writes prose to its
 *   stdout.
 * - In the stateless revision, requests of the server are dropped: it "MUST NOT write JSON-RPC requests", and the
 *   client "MUST NOT write JSON-RPC responses" (2026-07-28, stdio).
 * - A batch is split into its messages if the revision has no batches.
 *
 * It is a base class and not a field of the connection, which saves an object for each idle client.
 */
export abstract class InboundFilter implements Connection, Receiver {
  readonly #connection: Connection
  #receiver: Receiver | undefined = undefined
  #warned: Set<string> | undefined = undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /**
   * The negotiated revision. Before the negotiation, the stateless revision if no session can be opened, else
   * undefined.
   */
  protected abstract get effectiveRevision(): Revision.Revision | undefined

  /** Something was dropped. Called once for each kind of message. */
  protected abstract dropped(why: string): void

  // ---- for the peer

  get isOutputFull(): boolean | undefined {
    return this.#connection.isOutputFull
  }

  get sendsHeaders(): boolean | undefined {
    return this.#connection.sendsHeaders
  }

  get extensions(): Connection["extensions"] {
    return this.#connection.extensions
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

  message(inbound: JsonRpc.Inbound, origin?: Origin): void {
    const revision = this.effectiveRevision
    if (inbound._tag === "Batch") {
      if (revision !== "2025-03-26") return inbound.members.forEach((member) => this.message(member, origin))
      const members = inbound.members.filter((member) => !isNoise(member))
      if (members.length < inbound.members.length) this.#drop("they are not JSON-RPC")
      return members.length === 0 ? undefined : this.#receiver!.message({ _tag: "Batch", members }, origin)
    }
    if (isNoise(inbound)) return this.#drop("they are not JSON-RPC")
    if (inbound._tag === "Request" && revision === "2026-07-28") {
      return this.#drop("2026-07-28 has no requests of the server")
    }
    this.#receiver!.message(inbound, origin)
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

  #drop(why: string): void {
    const warned = this.#warned ??= new Set()
    if (warned.has(why)) return
    warned.add(why)
    this.dropped(why)
  }
}
