/**
 * The notifications of a server, for whoever listens.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

const everything = () => true

/** Hands what is told to every listener. Nothing is kept, nor made, while nobody listens. */
export class Broadcast<A> {
  readonly #bufferSize: number
  readonly #first: (() => A) | undefined
  #listeners: Map<Queue.Queue<A, Cause.Done>, (notice: A) => boolean> | undefined = undefined
  #over = false

  /** `first` makes what each listener is told when it comes, also after the end. */
  constructor(bufferSize: number, first?: () => A) {
    this.#bufferSize = bufferSize
    this.#first = first
  }

  /** Whether anyone listens. */
  get listened(): boolean {
    return this.#listeners !== undefined && this.#listeners.size > 0
  }

  tell(notice: A): void {
    for (const [listener, wants] of this.#listeners ?? []) {
      if (wants(notice)) Queue.offerUnsafe(listener, notice)
    }
  }

  end(): void {
    this.#over = true
    for (const listener of this.#listeners?.keys() ?? []) Queue.endUnsafe(listener)
    this.#listeners = undefined
  }

  /** Each run of the stream is a listener of its own, with a buffer that drops what is oldest when it is full. */
  get stream(): Stream.Stream<A> {
    return this.#listen(everything)
  }

  /** The same, of those that are wanted alone: the others take no room in the buffer. */
  only<B extends A>(wants: (notice: A) => notice is B): Stream.Stream<B> {
    return this.#listen(wants) as Stream.Stream<B>
  }

  #listen(wants: (notice: A) => boolean): Stream.Stream<A> {
    return Stream.callback<A>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          if (this.#first !== undefined) Queue.offerUnsafe(queue, this.#first())
          if (this.#over) Queue.endUnsafe(queue)
          else (this.#listeners ??= new Map()).set(queue, wants)
        }),
        () => Effect.sync(() => this.#listeners?.delete(queue))
      ), { bufferSize: this.#bufferSize, strategy: "sliding" })
  }
}
