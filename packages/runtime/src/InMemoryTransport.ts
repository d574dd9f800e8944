/**
 * Two connected connections in memory, for tests and for a server in the process of its client.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Connection, End, Origin, Principal, Receiver, Transport } from "./Connection.ts"
import { Bounds } from "./internal/base/fixedBounds.ts"

/** Options of an in-memory transport. */
export interface Options {
  /** The principal of the first side, as the second side sees it: none by default. */
  readonly principal?: Principal | undefined
}

class Side implements Connection {
  other!: Side
  readonly #highWaterMark: number
  readonly #origin: Origin | undefined
  readonly #inbox: Array<string> = []
  /** Opened when this side takes more; set while a caller waits for that. */
  #drained: Latch.Latch | undefined = undefined
  #receiver: Receiver | undefined = undefined
  #end: End | undefined = undefined
  #scheduled = false
  #turns = 0

  constructor(highWaterMark: number, origin?: Origin) {
    this.#highWaterMark = highWaterMark
    this.#origin = origin
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#schedule()
  }

  /** Messages are encoded and parsed, so that they mean the same as on other transports. */
  send(message: JsonRpc.Outbound): boolean {
    const text = JsonRpc.encode(message)
    return this.#end !== undefined || this.other.#take(text)
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.#end !== undefined || this.other.#acceptsMore
        ? Effect.void
        : (this.other.#drained ??= Latch.makeUnsafe(false)).await
    )
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#finish({ _tag: "ClosedByUs" })
      this.other.#finish({ _tag: "ClosedByPeer" })
    })
  }

  get #acceptsMore(): boolean {
    return this.#end !== undefined || this.#inbox.length < this.#highWaterMark
  }

  #take(text: string): boolean {
    if (this.#end !== undefined) return true
    this.#inbox.push(text)
    this.#schedule()
    return this.#acceptsMore
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    if (end._tag === "ClosedByUs") this.#inbox.length = 0
    this.#schedule()
    this.#wakeWriters()
  }

  #wakeWriters(): void {
    this.#drained?.openUnsafe()
    this.#drained = undefined
  }

  /**
   * Delivery is never nested in the turn of the sender. Two sides that send continuously would starve timers and
   * sockets, so every `maxMicrotasks` deliveries wait for a macrotask.
   */
  #schedule(): void {
    if (this.#scheduled || this.#receiver === undefined) return
    this.#scheduled = true
    if (++this.#turns % maxMicrotasks === 0) later(this.#deliver)
    else queueMicrotask(this.#deliver)
  }

  readonly #deliver = (): void => {
    this.#scheduled = false
    const receiver = this.#receiver
    if (receiver === undefined) return
    while (this.#inbox.length > 0) {
      receiver.message(JsonRpc.parseText(this.#inbox.shift()!), this.#origin)
    }
    this.#wakeWriters()
    if (this.#end === undefined) return
    this.#receiver = undefined
    receiver.end(this.#end)
  }
}

const maxMicrotasks = 1024

const later = (f: () => void): unknown => typeof setImmediate === "function" ? setImmediate(f) : setTimeout(f, 0)

/**
 * Makes two connections: each receives the messages of the other, in order. The scope closes both.
 *
 * `send` returns `false` from 1,024 messages on that wait for a slow reader, and accepts further ones all the same. A side
 * that was opened takes all messages in the next turn. There is no other bound: the other side is in the same process and
 * cannot be lost.
 */
export const make = (options: Options = {}): Effect.Effect<readonly [Connection, Connection], never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Bounds, ({ highWaterMark }) => {
      const { principal } = options
      const left = new Side(highWaterMark)
      const right = new Side(highWaterMark, principal === undefined ? undefined : { principal })
      left.other = right
      right.other = left
      return [left, right] as const
    }),
    ([left, right]) => Effect.andThen(left.close, right.close)
  )

/**
 * A transport to a server in this process. `serve` receives the other side of each connection. The scope of a
 * connection closes it and stops serving it.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
export const transport = (
  serve: (connection: Connection) => Effect.Effect<unknown, never, Scope.Scope>,
  options?: Options
): Transport => ({
  connect: Effect.flatMap(make(options), ([near, far]) => Effect.as(serve(far), near))
})
