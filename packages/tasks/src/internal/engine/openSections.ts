/**
 * The sections of a run that are under way (`Task.nonCancellable`), and a cancellation that waits for their end.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

/** The effects of sections on their run. */
interface SectionOptions {
  /** Called when a section ends, or when a cancellation begins to wait: the run looks for its next event. */
  readonly onChange: () => void
  /** Ends the run, which was cancelled. */
  readonly onCancelled: () => void
}

/** The sections of a run. */
export class OpenSections extends Data.Class<SectionOptions> {
  #open = 0
  /** Whether the task was cancelled, and the run goes on to the end of its sections. */
  isCancelled = false

  /** Whether the run is in a section. */
  get isIn(): boolean {
    return this.#open > 0
  }

  /** Runs a section. */
  run<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.#open++
      return Effect.ensuring(
        effect,
        Effect.sync(() => {
          this.#open--
          if (this.#open === 0 && this.isCancelled) this.onCancelled()
          this.onChange()
        })
      )
    })
  }

  /** Cancels the run, at the end of its sections. */
  cancel(): void {
    if (this.#open === 0) return this.onCancelled()
    if (this.isCancelled) return
    this.isCancelled = true
    this.onChange()
  }
}
