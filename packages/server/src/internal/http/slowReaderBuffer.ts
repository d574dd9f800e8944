import type { HttpAnswer } from "./adapter.ts"

/** What waits in memory for a client that is slow to read a stream. */
export class Unsent {
  #size = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** How many characters wait. */
  get size(): number {
    return this.#size
  }

  /** Writes, and tells whether the client reads. `undefined` where too much waits already: nothing was written. */
  write(answer: HttpAnswer, text: string): boolean | undefined {
    if (!answer.slow) this.#size = 0
    // What is large by itself is no sign that nobody reads.
    if (this.#size > this.#max) return undefined
    if (answer.write(text)) return true
    this.#size += text.length
    return false
  }
}
