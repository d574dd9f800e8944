/**
 * Effects in progress, by key. Callers with the same key share one run.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

interface Run<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  waiters: number
}

/**
 * Runs an effect once for all callers that want its result at the same time. The run belongs to its callers: one that
 * is interrupted leaves the run to the others, and the last one ends it.
 */
export class SharedEffects<A, E> {
  readonly #runs = new Map<string, Run<A, E>>()

  /** The number of runs in progress. */
  get size(): number {
    return this.#runs.size
  }

  /** Waits for the run of this key. Undefined if none is in progress. */
  join(key: string): Effect.Effect<A, E> | undefined {
    const known = this.#runs.get(key)
    return known && this.run(key, Effect.suspend(() => Fiber.join(known.fiber)))
  }

  /** Runs `effect`, or waits for the run of this key that is in progress. */
  run(key: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        Effect.suspend(() => this.#join(key, effect)),
        (run) => Effect.ensuring(restore(Fiber.join(run.fiber)), Effect.suspend(() => this.#leave(key, run)))
      )
    )
  }

  #join(key: string, effect: Effect.Effect<A, E>): Effect.Effect<Run<A, E>> {
    const known = this.#runs.get(key)
    if (known !== undefined) {
      known.waiters++
      return Effect.succeed(known)
    }
    return Effect.map(Effect.forkDetach(Effect.interruptible(effect), { startImmediately: true }), (fiber) => {
      const run = { fiber, waiters: 1 }
      this.#runs.set(key, run)
      fiber.addObserver(() => this.#forget(key, run))
      return run
    })
  }

  #leave(key: string, run: Run<A, E>): Effect.Effect<void> {
    if (--run.waiters > 0) return Effect.void
    this.#forget(key, run)
    return Effect.asVoid(Fiber.interrupt(run.fiber))
  }

  #forget(key: string, run: Run<A, E>): void {
    if (this.#runs.get(key) === run) this.#runs.delete(key)
  }
}
