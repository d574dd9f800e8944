/**
 * A signal that one fiber waits for and others send.
 */
import * as Effect from "effect/Effect"

/** A signal that is sent while no fiber waits is not lost. Several of them count as one. */
export class Signal {
  #told = false
  #resume: (() => void) | undefined = undefined

  tell(): void {
    this.#told = true
    this.#resume?.()
  }

  /** Waits until the signal is sent, and resets it. */
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
