/**
 * Lists the tools again while calls wait for it.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { ClientError } from "../../ClientError.ts"
import type { CallClock } from "../base/callClock.ts"
import type { RemainingTime } from "../base/callOptions.ts"

/** The part of a client that lists the tools again. */
interface ListingContext {
  readonly supervisor: { readonly callClock: CallClock }
  /** Lists all tools, past the cache. */
  readonly listAllTools: Effect.Effect<unknown, ClientError>
  readonly scope: Scope.Scope
}

/**
 * Lists the tools in a scope of the client, so that interrupting one of the waiting calls does not interrupt it for the
 * others.
 */
export class ToolListRefresh {
  readonly #client: ListingContext
  #running: Fiber.Fiber<void> | undefined = undefined
  /** How many times the tools were listed. */
  count = 0
  /** Why they could not be listed the last time; undefined if they could. */
  failure: ClientError | undefined = undefined

  constructor(client: ListingContext) {
    this.#client = client
  }

  /** Whether the tools are being listed now. */
  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /**
   * Lists the tools once for all calls that are waiting, within the time of a call. It does not fail: if a call is still
   * wrong, the server rejects it again.
   */
  within({ maxTimeout, timeout }: RemainingTime): Effect.Effect<unknown> {
    const listed = Effect.suspend(() =>
      this.#running === undefined ? Effect.flatMap(this.#start, Fiber.await) : Fiber.await(this.#running)
    )
    const { callClock } = this.#client.supervisor
    return callClock.timeoutOption(listed, Math.max(0, Math.min(timeout, maxTimeout)))
  }

  get #start(): Effect.Effect<Fiber.Fiber<void>> {
    const work = Effect.matchEffect(this.#client.listAllTools, {
      onFailure: (failure) => {
        this.failure = failure
        return Effect.logWarning(`The tools could not be listed again: ${failure.message}`)
      },
      onSuccess: () => {
        this.failure = undefined
        return Effect.void
      }
    })
    return Effect.map(Effect.forkIn(work, this.#client.scope), (fiber) => {
      this.#running = fiber
      fiber.addObserver(() => {
        this.#running = undefined
        this.count++
      })
      return fiber
    })
  }
}
