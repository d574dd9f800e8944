/**
 * Progress of a task, on its way to the row: not more often than its readers can make use of, and the last one always.
 */
import type { Progress } from "@skein/runtime/RequestContext"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Host, patiently } from "./engineContext.ts"
import { line } from "../text.ts"

/** What gets on: a run. */
export interface Progressive {
  readonly host: Pick<Host, "store" | "progressInterval">
  readonly work: { readonly id: string }
  readonly context: Context.Context<never>
  readonly scope: Scope.Scope
}

/** See the module's text. */
export class Progressing {
  readonly #run: Progressive
  #last = -Infinity
  #pending: Progress | undefined = undefined
  #writing = false

  constructor(run: Progressive) {
    this.#run = run
  }

  /** Waits for nothing: it may be called in a transaction, that the row's write would have to wait for. */
  report(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!(Number.isFinite(progress.progress) && progress.progress > this.#last)) return Effect.void
      this.#last = progress.progress
      const { message } = progress
      this.#pending = message === undefined ? progress : { ...progress, message: line(message) }
      if (this.#writing) return Effect.void
      this.#writing = true
      const { context, scope } = this.#run
      return Effect.asVoid(Effect.forkIn(Effect.setContext(this.#write, context), scope))
    })
  }

  /** Writes what is not written yet. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const progress = this.#pending
    if (progress === undefined) return Effect.void
    this.#pending = undefined
    const { host: { store }, work: { id } } = this.#run
    return patiently(store.progress(id, progress))
  })

  readonly #write: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    while (this.#pending !== undefined) {
      yield* this.flush
      yield* Effect.sleep(this.#run.host.progressInterval)
    }
    this.#writing = false
  })
}
