/**
 * Writes the progress of a task to the store: at most once per `progressInterval`, and the last report always.
 */
import type { Progress } from "@skein/runtime/RequestContext"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { awaitStore, type EngineContext } from "./engineContext.ts"
import { truncateLine } from "../base/text.ts"

/** The part of `Run` that the writer needs. */
export interface ProgressTarget {
  readonly engine: Pick<EngineContext, "store" | "progressInterval">
  readonly task: { readonly id: string }
  readonly context: Context.Context<never>
  readonly scope: Scope.Scope
}

/** Writes the progress of one run. */
export class ProgressWriter {
  readonly #run: ProgressTarget
  #last = -Infinity
  #pending: Progress | undefined = undefined
  #writing = false

  constructor(run: ProgressTarget) {
    this.#run = run
  }

  /** Does not wait for the write: it may be called in a transaction, which the write would have to wait for. */
  report(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!(Number.isFinite(progress.progress) && progress.progress > this.#last)) return Effect.void
      this.#last = progress.progress
      const { message } = progress
      this.#pending = message === undefined ? progress : { ...progress, message: truncateLine(message) }
      if (this.#writing) return Effect.void
      this.#writing = true
      const { context, scope } = this.#run
      return Effect.asVoid(Effect.forkIn(Effect.setContext(this.#write, context), scope))
    })
  }

  /** Writes the report that is not written yet. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const progress = this.#pending
    if (progress === undefined) return Effect.void
    this.#pending = undefined
    const { engine: { store }, task: { id } } = this.#run
    return awaitStore(store.setProgress(id, progress))
  })

  readonly #write: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    while (this.#pending !== undefined) {
      yield* this.flush
      yield* Effect.sleep(this.#run.engine.progressInterval)
    }
    this.#writing = false
  })
}
