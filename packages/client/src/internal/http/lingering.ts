/**
 * Streams that have brought the answer and are not closed yet. A server "SHOULD terminate the stream" then, and whoever waits for
 * that a moment keeps the connection for the next request; one that never does is cut off.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Road } from "./protocol.ts"

// How long a stream may stay open, in milliseconds: between once and twice that.
const grace = 1_000

/** See the module's text. One fiber watches all of them, while there are any. */
export class Lingering {
  readonly #road: Road
  #fresh: Set<Fiber.Fiber<void>> | undefined = undefined
  #stale: Set<Fiber.Fiber<void>> | undefined = undefined
  #watching = false

  constructor(road: Road) {
    this.#road = road
  }

  add(fiber: Fiber.Fiber<void>): void {
    if (this.#stale?.has(fiber) === true) return
    ;(this.#fresh ??= new Set()).add(fiber)
    if (this.#watching) return
    this.#watching = true
    this.#road.fork(this.#watch)
  }

  delete(fiber: Fiber.Fiber<void>): void {
    if (this.#fresh?.delete(fiber) !== true) this.#stale?.delete(fiber)
  }

  get #watch(): Effect.Effect<void> {
    return Effect.flatMap(Effect.sleep(grace), () => this.#sweep())
  }

  #sweep(): Effect.Effect<void> {
    for (const fiber of this.#stale ?? []) fiber.interruptUnsafe()
    this.#stale = this.#fresh?.size === 0 ? undefined : this.#fresh
    this.#fresh = undefined
    this.#watching = this.#stale !== undefined
    return this.#watching ? this.#watch : Effect.void
  }
}
