/**
 * The notifications of a server, for whoever listens.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/** Hands what is told to every listener. Nothing is kept, nor made, while nobody listens. */
export class Notices<A> {
  readonly #bufferSize: number
  readonly #listeners = new Set<Queue.Queue<A, Cause.Done>>()
  #over = false

  constructor(bufferSize: number) {
    this.#bufferSize = bufferSize
  }

  /** Whether anyone listens. */
  get listened(): boolean {
    return this.#listeners.size > 0
  }

  tell(notice: A): void {
    for (const listener of this.#listeners) Queue.offerUnsafe(listener, notice)
  }

  end(): void {
    this.#over = true
    for (const listener of this.#listeners) Queue.endUnsafe(listener)
    this.#listeners.clear()
  }

  /** Each run of the stream is a listener of its own, with a buffer that drops what is oldest when it is full. */
  get stream(): Stream.Stream<A> {
    return Stream.callback<A>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          if (this.#over) Queue.endUnsafe(queue)
          else this.#listeners.add(queue)
        }),
        () => Effect.sync(() => this.#listeners.delete(queue))
      ), { bufferSize: this.#bufferSize, strategy: "sliding" })
  }
}
