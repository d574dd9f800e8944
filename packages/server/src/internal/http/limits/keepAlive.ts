/**
 * Comments on quiet streams, so that proxies do not close them.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { HttpAnswer } from "../messages/adapter.ts"
import * as sse from "../messages/sse.ts"

// The streams are divided into this many groups, so that they are not all written in one turn of the event loop.
const slots = 16

/**
 * Writes a comment to each stream once per interval. One fiber serves all streams. It runs only while there are
 * streams. Slow streams are skipped: their connections are in use, and further text would wait in memory.
 */
export class KeepAlive {
  readonly #streams: ReadonlyArray<Set<HttpAnswer>> = Array.from({ length: slots }, () => new Set())
  readonly #context: Context.Context<never>
  readonly #beats: Effect.Effect<never> | undefined
  #fiber: Fiber.Fiber<never> | undefined = undefined
  #next = 0
  #turn = 0
  #size = 0

  /** The interval is in milliseconds; with 0 no comments are written. */
  constructor(interval: number, context: Context.Context<never>) {
    this.#context = context
    const beat = Effect.andThen(Effect.sleep(Math.ceil(interval / slots)), Effect.sync(() => this.#beat()))
    this.#beats = interval > 0 ? Effect.forever(beat) : undefined
  }

  /** Adds a stream. Returns the slot to remove it from. */
  add(stream: HttpAnswer): number {
    const slot = this.#next
    this.#next = (slot + 1) % slots
    this.#streams[slot]!.add(stream)
    this.#size++
    if (this.#beats !== undefined) this.#fiber ??= Effect.runForkWith(this.#context)(this.#beats)
    return slot
  }

  remove(stream: HttpAnswer, slot: number): void {
    if (!this.#streams[slot]!.delete(stream)) return
    this.#size--
    if (this.#size > 0) return
    this.#fiber?.interruptUnsafe()
    this.#fiber = undefined
  }

  #beat(): void {
    this.#turn = (this.#turn + 1) % slots
    for (const stream of this.#streams[this.#turn]!) if (!stream.slow && !stream.isClosed) stream.write(sse.keepAlive)
  }
}
