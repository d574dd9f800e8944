/**
 * Streams that have brought the answer and are not closed yet. A server "SHOULD terminate the stream" then, and whoever waits for
 * that a moment keeps the connection for the next request; one that never does is cut off.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Road } from "./lane.ts"

// How long a stream may stay open, in milliseconds: between once and twice that.
const grace = 1_000

/** See the module's text. One fiber watches all of them, while there are any. */
export class Lingering {
  readonly #road: Road
  #fresh = new Set<Fiber.Fiber<void>>()
  #stale = new Set<Fiber.Fiber<void>>()
  #watching = false

  constructor(road: Road) {
    this.#road = road
  }

  add(fiber: Fiber.Fiber<void>): void {
    if (this.#stale.has(fiber)) return
    this.#fresh.add(fiber)
    if (this.#watching) return
    this.#watching = true
    this.#road.fork(this.#watch)
  }

  delete(fiber: Fiber.Fiber<void>): void {
    if (!this.#fresh.delete(fiber)) this.#stale.delete(fiber)
  }

  readonly #watch: Effect.Effect<void> = Effect.suspend(() => Effect.flatMap(Effect.sleep(grace), () => this.#sweep()))

  #sweep(): Effect.Effect<void> {
    for (const fiber of this.#stale) fiber.interruptUnsafe()
    this.#stale = this.#fresh
    this.#fresh = new Set()
    this.#watching = this.#stale.size > 0
    return this.#watching ? this.#watch : Effect.void
  }
}
