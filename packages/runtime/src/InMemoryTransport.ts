/**
 * Two connections joined in memory, for tests and for a server that lives in the same process as its client.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Connection, End, Origin, Principal, Receiver, Transport } from "./Connection.ts"

/** How a link is made. */
export interface Options {
  /**
   * How many messages may wait for a slow reader on each side before `send` answers `false`: 1,024 by default. They are
   * taken all the same, so that what is queued is bounded by what two peers have in flight, and not by the link: there is no
   * other side here that could be lost.
   */
  readonly highWaterMark?: number | undefined
  /** Who the second side takes the first one for, as the host of another transport would find it out: nobody by default. */
  readonly principal?: Principal | undefined
}

class Side implements Connection {
  other!: Side
  readonly #maxQueued: number
  readonly #origin: Origin | undefined
  readonly #inbox: Array<string> = []
  #waiting: Set<() => void> | undefined = undefined
  #receiver: Receiver | undefined = undefined
  #end: End | undefined = undefined
  #paused = false
  #scheduled = false
  #turns = 0

  constructor(maxQueued: number, origin?: Origin) {
    this.#maxQueued = maxQueued
    this.#origin = origin
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    this.#schedule()
  }

  /** What is sent is written and read as text, so that it means here what it means on a wire. */
  send(message: JsonRpc.Outbound): boolean {
    const text = JsonRpc.encode(message)
    return this.#end !== undefined || this.other.#take(text)
  }

  get drained(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#end !== undefined || this.other.#hasRoom) return resume(Effect.void)
      const wake = () => resume(Effect.void)
      const waiting = (this.other.#waiting ??= new Set())
      waiting.add(wake)
      return Effect.sync(() => void waiting.delete(wake))
    })
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#schedule()
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#finish({ _tag: "Closed" })
      this.other.#finish({ _tag: "Ended" })
    })
  }

  get #hasRoom(): boolean {
    return this.#end !== undefined || this.#inbox.length < this.#maxQueued
  }

  #take(text: string): boolean {
    if (this.#end !== undefined) return true
    this.#inbox.push(text)
    this.#schedule()
    return this.#hasRoom
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    if (end._tag === "Closed") this.#inbox.length = 0
    this.#schedule()
    this.#wakeWriters()
  }

  #wakeWriters(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    this.#waiting = undefined
    for (const wake of waiting) wake()
  }

  /**
   * Delivery is never nested in the sender's turn. Two sides that always have something to say would keep timers and sockets
   * waiting for ever, so that now and then delivery waits for them.
   */
  #schedule(): void {
    if (this.#scheduled || this.#receiver === undefined || (this.#paused && this.#end === undefined)) return
    this.#scheduled = true
    if (++this.#turns % turnsAtOnce === 0) later(this.#turn)
    else queueMicrotask(this.#turn)
  }

  readonly #turn = (): void => {
    this.#scheduled = false
    this.#deliver()
  }

  #deliver(): void {
    const receiver = this.#receiver
    if (receiver === undefined) return
    while (!this.#paused && this.#inbox.length > 0) {
      receiver.message(JsonRpc.parseText(this.#inbox.shift()!), this.#origin)
    }
    if (this.#hasRoom) this.#wakeWriters()
    if (this.#end === undefined || this.#inbox.length > 0) return
    this.#receiver = undefined
    receiver.end(this.#end)
  }
}

const turnsAtOnce = 1024

const later = (f: () => void): void => {
  if (typeof setImmediate === "function") setImmediate(f)
  else setTimeout(f, 0)
}

/** Two connections: what one sends, the other receives, in order. The scope closes both. */
export const make = (options: Options = {}): Effect.Effect<readonly [Connection, Connection], never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { highWaterMark: maxQueued = 1024, principal } = options
      const left = new Side(maxQueued)
      const right = new Side(maxQueued, principal === undefined ? undefined : { principal })
      left.other = right
      right.other = left
      return [left, right] as const
    }),
    ([left, right]) => Effect.andThen(left.close, right.close)
  )

/**
 * A transport to what serves the other side in this process. Each connection is a link of its own, which the scope that it is
 * opened in closes, together with what serves it.
 */
export const transport = (
  serve: (connection: Connection) => Effect.Effect<unknown, never, Scope.Scope>,
  options?: Options
): Transport => ({
  connect: Effect.flatMap(make(options), ([near, far]) => Effect.as(serve(far), near))
})
