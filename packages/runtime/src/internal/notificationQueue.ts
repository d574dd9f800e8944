/**
 * The notifications of the other side whose handlers are suspended.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

/** What the notices need of their peer. */
export interface Host {
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** There is one more, or one less. */
  readonly counted: () => void
}

export class Notices {
  readonly #host: Host
  readonly #max: number
  readonly #running = new Map<Fiber.Fiber<void>, string>()
  #dropped = 0

  constructor(host: Host, max: number) {
    this.#host = host
    this.#max = max
  }

  get size(): number {
    return this.#running.size
  }

  get full(): boolean {
    return this.#running.size >= this.#max
  }

  /** The methods of those that run. */
  get methods(): Iterable<string> {
    return this.#running.values()
  }

  /** Whether there is no room for one more. The log hears of the first that is dropped, and of how many once there is room. */
  drop(method: string): boolean {
    if (!this.full) return false
    if (this.#dropped++ === 0) {
      this.#host.fork(Effect.logWarning(`${method} was dropped: ${this.#max} notifications are being handled already`))
    }
    return true
  }

  /** Keeps a handler that did not end at once. */
  add(method: string, fiber: Fiber.Fiber<void>): void {
    this.#running.set(fiber, method)
    fiber.addObserver(() => {
      this.#running.delete(fiber)
      const dropped = this.#dropped
      this.#dropped = 0
      if (dropped > 1) this.#host.fork(Effect.logWarning(`${dropped} notifications were dropped`))
      this.#host.counted()
    })
    this.#host.counted()
  }

  interrupt(): void {
    for (const fiber of this.#running.keys()) fiber.interruptUnsafe()
  }
}

/** Whatever goes wrong in a handler harms nobody, and is logged. */
export const harmless = <R>(method: string, handled: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
  Effect.catchCause(
    handled,
    (cause) => Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`${method} was not handled`, cause)
  )
