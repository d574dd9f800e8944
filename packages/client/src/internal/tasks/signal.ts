/**
 * Something that one fiber waits for and others tell.
 */
import * as Effect from "effect/Effect"

/** What is told while nobody waits is not lost. Several tellings are one. */
export class Signal {
  #told = false
  #resume: (() => void) | undefined = undefined

  tell(): void {
    this.#told = true
    this.#resume?.()
  }

  /** Waits until it is told, and takes it. */
  get wait(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const take = () => {
        this.#told = false
        this.#resume = undefined
        resume(Effect.void)
      }
      if (this.#told) return take()
      this.#resume = take
      return Effect.sync(() => {
        this.#resume = undefined
      })
    })
  }
}
