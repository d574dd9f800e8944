/**
 * What steps do, and have done, that nobody remembers yet. A cancellation may come while a step comes to its end, or right after: its
 * run is cut off, but the one that finds out what there is to undo learns of it here, when it is in the same process.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** Milliseconds for which that is kept: what is undone begins at once. */
const longest = 60_000

/** See the module's text. */
export class Acted {
  readonly #all = new Map<string, { readonly end: Deferred.Deferred<string | undefined>; ended: number }>()

  /** A step begins to act. Gives what tells its end: the text to remember, or `undefined` where there is none. */
  begin(key: string): (text: string | undefined, now: number) => void {
    const end = Deferred.makeUnsafe<string | undefined>()
    const entry = { end, ended: Infinity }
    this.#all.delete(key)
    this.#all.set(key, entry)
    return (text, now) => {
      Deferred.doneUnsafe(end, Effect.succeed(text))
      entry.ended = now
      for (const [key, { ended }] of this.#all) {
        if (ended + longest < now) this.#all.delete(key)
        else if (ended <= now) break
      }
    }
  }

  /** How a step ends that acts, or of which nothing else may be known; `undefined` where there is no such step. */
  find(key: string): Effect.Effect<string | undefined> | undefined {
    const entry = this.#all.get(key)
    return entry && Deferred.await(entry.end)
  }

  /** It is remembered. */
  delete(key: string): void {
    this.#all.delete(key)
  }

  /** How many there are. */
  get size(): number {
    return this.#all.size
  }
}
