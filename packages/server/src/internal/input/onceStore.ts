/**
 * The results of `once` in one request.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { RequestError } from "@skein/runtime/RequestError"
import type { RequestContext, Round } from "@skein/runtime/RequestContext"

/** The keys of the `once` calls that surround the current fiber. */
export const InOnce = Context.Reference<ReadonlyArray<string>>("@skein/server/InOnce", { defaultValue: () => [] })

/** Resumes a fiber that waits for the run of another fiber. Without an exit, the fiber must run the effect itself. */
type Waiter = (exit: Exit.Exit<unknown, unknown> | undefined) => void

/** The round of a request that is handled in one run and may not send input requests. It implements `once` only. */
export class OnceStore implements Round {
  readonly exchange: RequestContext
  /** The results, as JSON. */
  readonly done: Map<string, unknown>
  #running: Map<string, Array<Waiter>> | undefined = undefined

  constructor(exchange: RequestContext, done: Map<string, unknown> = new Map()) {
    this.exchange = exchange
    this.done = done
  }

  /** Whether an effect of a `once` is running. */
  get busy(): boolean {
    return this.#running !== undefined && this.#running.size > 0
  }

  /** Called when an effect of a `once` has ended. */
  protected settled(): void {}

  ask(method: string): ReturnType<Round["ask"]> {
    const message = `${this.exchange.method} may not be answered with input requests`
    return Effect.fail(new RequestError({ reason: "Unsupported", method, message }))
  }

  once<E, R>(key: string, effect: Effect.Effect<unknown, E, R>): Effect.Effect<unknown, E, R> {
    return Effect.withFiber((fiber) => {
      if (this.done.has(key)) return Effect.succeed(this.done.get(key))
      const outer = fiber.getRef(InOnce)
      if (outer.includes(key)) return Effect.die(new Error(`once(${JSON.stringify(key)}) waits for itself`))
      const running = this.#running?.get(key)
      return running === undefined ? this.#run(key, outer, effect) : this.#join(key, running, effect)
    })
  }

  #run<E, R>(key: string, outer: ReadonlyArray<string>, effect: Effect.Effect<unknown, E, R>) {
    const waiters: Array<Waiter> = []
    ;(this.#running ??= new Map()).set(key, waiters)
    return Effect.onExit(Effect.provideService(effect, InOnce, [...outer, key]), (exit) =>
      Effect.sync(() => {
        this.#running!.delete(key)
        if (Exit.isSuccess(exit)) this.done.set(key, exit.value)
        // After an interruption the next waiting fiber runs the effect.
        const given = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? undefined : exit
        for (const waiter of waiters) waiter(given)
        this.settled()
      }))
  }

  #join<E, R>(key: string, waiters: Array<Waiter>, effect: Effect.Effect<unknown, E, R>) {
    return Effect.callback<unknown, E, R>((resume) => {
      const waiter: Waiter = (exit) => resume(exit as Exit.Exit<unknown, E> | undefined ?? this.once(key, effect))
      waiters.push(waiter)
      return Effect.sync(() => {
        const at = waiters.indexOf(waiter)
        if (at >= 0) waiters.splice(at, 1)
      })
    })
  }
}
