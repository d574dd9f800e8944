import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** The fibers of a server that belong to no connection. They end with the server. */
export class Fibers {
  readonly #run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly #running = new Set<Fiber.Fiber<unknown>>()
  #isClosed = false

  private constructor(context: Context.Context<never>) {
    this.#run = Effect.runForkWith(context)
  }

  /** Makes a set of fibers that the scope interrupts. */
  static make(context: Context.Context<never>): Effect.Effect<Fibers, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new Fibers(context)),
      (fibers) =>
        Effect.suspend(() => {
          fibers.#isClosed = true
          return Fiber.interruptAll(fibers.#running)
        })
    )
  }

  /** The number of running fibers. */
  get size(): number {
    return this.#running.size
  }

  /**
   * Runs an effect until it ends or the server does. Returns `undefined` if it ended synchronously. After the end of the
   * server, nothing is run.
   */
  fork(effect: Effect.Effect<void>): Fiber.Fiber<void> | undefined {
    if (this.#isClosed) return undefined
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return undefined
    this.#running.add(fiber)
    fiber.addObserver(() => void this.#running.delete(fiber))
    return fiber
  }
}
