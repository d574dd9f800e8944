/** A connection whose other side sends and receives text. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Receiver } from "@skein/runtime/Connection"
import * as Ndjson from "@skein/runtime/Ndjson"
import * as Effect from "effect/Effect"

/** The messages are delivered in the next turn of the event loop, in order. */
export class TextConnection implements Connection {
  readonly drained: Effect.Effect<void> = Effect.void
  /** Receives each message of this side, as JSON. */
  onText: (text: string) => void = () => {}
  #receiver: Receiver | undefined
  #end: End | undefined
  readonly #reader = new Ndjson.Reader({
    message: (message) => this.#receiver?.message(message),
    maxLineBytes: 4 * 1024 * 1024
  })
  readonly #pending: Array<Buffer> = []

  open(receiver: Receiver): void {
    if (this.#end !== undefined) return receiver.end(this.#end)
    this.#receiver = receiver
    for (const bytes of this.#pending.splice(0)) this.#push(bytes)
  }

  send(message: JsonRpc.Outbound): boolean {
    if (this.#end !== undefined) return true
    const text = JsonRpc.encode(message)
    setImmediate(() => this.onText(text))
    return true
  }

  /** Delivers a line. */
  deliver(line: string): void {
    const bytes = Buffer.from(`${line.replaceAll("\n", " ")}\n`)
    setImmediate(() => this.#receiver === undefined ? void this.#pending.push(bytes) : this.#push(bytes))
  }

  #push(bytes: Buffer): void {
    if (this.#end === undefined) this.#reader.push(bytes)
  }

  readonly close: Effect.Effect<void> = Effect.sync(() => {
    if (this.#end !== undefined) return
    this.#end = { _tag: "ClosedByUs" }
    this.#receiver?.end(this.#end)
  })
}
