import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** The fibers of a server that belong to no connection. They end with it. */
export class Fibers {
  readonly #run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly #running = new Set<Fiber.Fiber<unknown>>()
  #over = false

  private constructor(context: Context.Context<never>) {
    this.#run = Effect.runForkWith(context)
  }

  /** Those that the scope interrupts. */
  static make(context: Context.Context<never>): Effect.Effect<Fibers, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new Fibers(context)),
      (fibers) =>
        Effect.suspend(() => {
          fibers.#over = true
          return Fiber.interruptAll(fibers.#running)
        })
    )
  }

  /** How many have not ended. */
  get size(): number {
    return this.#running.size
  }

  /** Runs an effect until it ends or the server does; `undefined` when it ended at once. Nothing is run when the server is over. */
  fork(effect: Effect.Effect<void>): Fiber.Fiber<void> | undefined {
    if (this.#over) return undefined
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return undefined
    this.#running.add(fiber)
    fiber.addObserver(() => void this.#running.delete(fiber))
    return fiber
  }
}
