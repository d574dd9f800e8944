/**
 * Runs of effects that equal requests share while they run.
 */
import type * as McpError from "@skein/protocol/McpError"
import type { McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>

/**
 * The continuation of a request that waits for the run of another one: it takes its exit, runs apart from others, or
 * starts again because the other one was cancelled.
 */
type Outcome =
  | { readonly _tag: "Shared"; readonly exit: Exit.Exit<unknown, McpError.McpError> }
  | { readonly _tag: "Apart" }
  | { readonly _tag: "Again" }

export class SharedRuns {
  readonly #running = new Map<string, Deferred.Deferred<Outcome>>()

  /**
   * Runs an effect, or waits for the run with the same key. `isShared` is called with the result; it returns `false` if
   * no other request may have it. `again` is the whole call once more.
   */
  run<A>(
    key: string,
    request: RequestContext,
    next: () => Handled<A>,
    isShared: (result: A) => boolean,
    again: () => Handled<A>
  ): Handled<A> {
    return Effect.suspend(() => {
      const running = this.#running.get(key)
      if (running === undefined) return this.#lead(key, request, next, isShared)
      return Effect.flatMap(Deferred.await(running), (outcome): Handled<A> => {
        if (outcome._tag === "Again") return again()
        return outcome._tag === "Apart" ? next() : outcome.exit as Exit.Exit<A, McpError.McpError>
      })
    })
  }

  #lead<A>(
    key: string,
    request: RequestContext,
    next: () => Handled<A>,
    isShared: (result: A) => boolean
  ): Handled<A> {
    const running = Deferred.makeUnsafe<Outcome>()
    const end = (outcome: Outcome) => {
      if (this.#running.get(key) === running) this.#running.delete(key)
      Deferred.doneUnsafe(running, Effect.succeed(outcome))
    }
    this.#running.set(key, running)
    // Its client may take minutes to answer, and the answer is for this request only.
    const { exchange } = request
    const before = exchange.onAsk
    exchange.onAsk = () => {
      before?.()
      end({ _tag: "Apart" })
    }
    return Effect.onExitPrimitive(Effect.suspend(next), (exit) => {
      if (exchange.hasAsked) end({ _tag: "Apart" })
      else if (Exit.isSuccess(exit)) end(isShared(exit.value) ? { _tag: "Shared", exit } : { _tag: "Apart" })
      else if (Cause.hasInterruptsOnly(exit.cause)) end({ _tag: "Again" })
      else if (exit.cause.reasons.some(Cause.isDieReason)) end({ _tag: "Apart" })
      else end({ _tag: "Shared", exit })
      return undefined
    })
  }
}
