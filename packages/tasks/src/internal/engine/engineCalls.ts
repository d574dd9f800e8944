/**
 * The calls of a run to the workflow engine, which must not block the end of the run.
 *
 * The workflow engine ends a run before it starts a step again that it could not record, or that another process must
 * run. In an uninterruptible region, such as a finalizer, the run would wait for that step, and the workflow engine for
 * the run.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Milliseconds that a run which must end waits for the workflow engine, while none of its steps executes. */
const maxWaitMs = 2000

/** Milliseconds between two checks whether the calls have ended. */
const checkIntervalMs = 100

/** The calls of one run. */
export class EngineCalls {
  readonly #fibers = new Set<Fiber.Fiber<unknown, unknown>>()

  /** Calls the workflow engine. `interrupt` can end the call. */
  run<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.flatMap(Effect.forkChild(Effect.interruptible(effect), { startImmediately: true }), (fiber) => {
      this.#fibers.add(fiber)
      fiber.addObserver(() => this.#fibers.delete(fiber))
      return Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
    })
  }

  /** Interrupts a fiber. While `isStepExecuting`, its calls continue, so that the step ends and is recorded. */
  interrupt(fiber: Fiber.Fiber<unknown, unknown>, isStepExecuting: () => boolean): Effect.Effect<void> {
    const endCalls = Effect.gen({ self: this }, function*() {
      for (let waitedMs = 0;; waitedMs += checkIntervalMs) {
        if (isStepExecuting()) waitedMs = 0
        if (waitedMs >= maxWaitMs) yield* Fiber.interruptAll(this.#fibers)
        yield* Effect.sleep(checkIntervalMs)
      }
    })
    return Effect.raceFirst(Fiber.interrupt(fiber), Effect.interruptible(endCalls))
  }
}
