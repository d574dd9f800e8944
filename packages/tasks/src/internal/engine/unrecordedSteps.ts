/**
 * The ends of steps that are not recorded yet. A cancellation may cut a run off while a step ends, or just after. The
 * run that then collects the compensations of the task finds the end of the step here, if it is in the same process.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** Milliseconds for which an end is available. Compensations begin immediately. */
const retentionMs = 60_000

/** The ends of steps of this process, by key. */
export class UnrecordedSteps {
  readonly #steps = new Map<string, { readonly end: Deferred.Deferred<string | undefined>; endedAt: number }>()

  /**
   * Records that a step starts. The returned function takes its end: the text to record, or `undefined` if there is
   * none.
   */
  begin(key: string): (text: string | undefined, now: number) => void {
    const end = Deferred.makeUnsafe<string | undefined>()
    const entry = { end, endedAt: Infinity }
    this.#steps.delete(key)
    this.#steps.set(key, entry)
    return (text, now) => {
      Deferred.doneUnsafe(end, Effect.succeed(text))
      entry.endedAt = now
      for (const [key, { endedAt }] of this.#steps) {
        if (endedAt + retentionMs < now) this.#steps.delete(key)
        else if (endedAt <= now) break
      }
    }
  }

  /** Waits for the end of a step; `undefined` for a key without a step. */
  find(key: string): Effect.Effect<string | undefined> | undefined {
    const entry = this.#steps.get(key)
    return entry && Deferred.await(entry.end)
  }

  /** Removes a step that is recorded. */
  delete(key: string): void {
    this.#steps.delete(key)
  }

  /** The number of steps. */
  get size(): number {
    return this.#steps.size
  }
}
