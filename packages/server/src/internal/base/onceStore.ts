/**
 * Effects that run once per request, and their results.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { RequestError, Unsupported } from "@skein/runtime/RequestError"
import { type RequestContext, type Round, unavailable } from "@skein/runtime/RequestContext"

/** The keys of the `once` calls that a fiber runs in. */
export const InOnce = Context.Reference<ReadonlyArray<string>>("@skein/server/InOnce", { defaultValue: () => [] })

/** Resumes a fiber that waits for the run of another one; without an exit that fiber must run the effect itself. */
type Waiter = (exit: Exit.Exit<unknown, unknown> | undefined) => void

/** The round of a request that may not request input: it only stores the results of `once`. */
export class OnceStore implements Round {
  readonly request: RequestContext
  /** The results, as JSON, by key. */
  readonly done: Map<string, unknown>
  #running: Map<string, Array<Waiter>> | undefined = undefined

  constructor(request: RequestContext, done: Map<string, unknown> = new Map()) {
    this.request = request
    this.done = done
  }

  /** Whether an effect is running. */
  get busy(): boolean {
    return this.#running !== undefined && this.#running.size > 0
  }

  /** Called when an effect has ended. */
  protected settled(): void {}

  ask(method: string): ReturnType<Round["ask"]> {
    const message = unavailable(this.request, method)
    return Effect.fail(new RequestError({ reason: new Unsupported({ message }), method }))
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
        // If it was interrupted, the next waiting fiber runs the effect.
        const outcome = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? undefined : exit
        for (const waiter of waiters) waiter(outcome)
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

/** The round of a request, or the store of its `once` calls. */
export const roundOf = (request: RequestContext): Round =>
  request.startRound() ?? (request.exchange.round = new OnceStore(request.original))
