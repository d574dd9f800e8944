/**
 * Writes the progress of a task to the store: at most once per `progressInterval`, and the last report always.
 */
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import { awaitStore, type EngineContext } from "./engineContext.ts"
import { truncateLine } from "../base/text.ts"

/** The part of `Run` that the writer needs. */
export interface ProgressTarget {
  readonly engine: Pick<EngineContext, "store" | "progressInterval">
  readonly task: { readonly id: string }
  /** Starts a fiber that ends with the run. */
  readonly fork: (effect: Effect.Effect<void>) => Effect.Effect<unknown>
}

/** Makes the writer of the progress of one run. */
export const makeProgressWriter = (run: ProgressTarget) => {
  let last = -Infinity
  let pending: Progress | undefined
  let isWriting = false

  /** Writes the report that is not written yet. */
  const flush: Effect.Effect<void> = Effect.suspend(() => {
    const progress = pending
    pending = undefined
    return progress === undefined ? Effect.void : awaitStore(run.engine.store.setProgress(run.task.id, progress))
  })

  const write = Effect.gen(function*() {
    while (pending !== undefined) {
      yield* flush
      yield* Effect.sleep(run.engine.progressInterval)
    }
    isWriting = false
  })

  /** Does not wait for the write: it may be called in a transaction, which the write would have to wait for. */
  const report = (progress: Progress): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (!(Number.isFinite(progress.progress) && progress.progress > last)) return Effect.void
      last = progress.progress
      const { message } = progress
      pending = message === undefined ? progress : { ...progress, message: truncateLine(message) }
      if (isWriting) return Effect.void
      isWriting = true
      return Effect.asVoid(run.fork(write))
    })

  return { flush, report }
}
