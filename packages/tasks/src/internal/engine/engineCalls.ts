/**
 * What a run asks of the engine, and how it leaves that.
 *
 * The engine ends a run before it begins a step again that it could not remember, or that another process is to run. In what is not to
 * be interrupted, such as a finalizer, the run would wait for that step, and the engine for the run.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Milliseconds for which a run that is to end waits for the engine, while no step of it runs. */
const patience = 2000

/** Milliseconds between two looks whether they are over. */
const glance = 100

/** See the module's text. */
export class Waits {
  readonly #fibers = new Set<Fiber.Fiber<unknown, unknown>>()

  /** Waits for the engine, until it is left. */
  on<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.flatMap(Effect.forkChild(Effect.interruptible(effect), { startImmediately: true }), (fiber) => {
      this.#fibers.add(fiber)
      fiber.addObserver(() => this.#fibers.delete(fiber))
      return Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
    })
  }

  /** Ends what asks. `busy` says whether a step runs: it comes to its end, and is remembered. */
  end(fiber: Fiber.Fiber<unknown, unknown>, busy: () => boolean): Effect.Effect<void> {
    const leave = Effect.gen({ self: this }, function*() {
      for (let still = 0;; still += glance) {
        if (busy()) still = 0
        if (still >= patience) yield* Fiber.interruptAll(this.#fibers)
        yield* Effect.sleep(glance)
      }
    })
    return Effect.raceFirst(Fiber.interrupt(fiber), Effect.interruptible(leave))
  }
}
