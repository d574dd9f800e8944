/**
 * A broadcast of values to any number of streams: the notifications of a server, the status of a client, the entries of
 * a pool.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/**
 * Publishes each value to every stream that runs at the time. Each run has a buffer of `bufferSize` values, which drops
 * its oldest value when it is full. Nothing is allocated while no stream runs.
 */
export class Broadcast<A> {
  readonly #bufferSize: number
  readonly #initial: (() => A) | undefined
  #listeners: Map<Queue.Queue<A, Cause.Done>, (value: A) => boolean> | undefined = undefined
  #isEnded: boolean

  /** `initial` returns the first value of each run. A run that begins after the end has that value alone. */
  constructor(bufferSize: number, initial?: () => A, isEnded = false) {
    this.#bufferSize = bufferSize
    this.#initial = initial
    this.#isEnded = isEnded
  }

  /** Whether any stream runs. A publisher checks this first if its values are costly to make. */
  get hasListeners(): boolean {
    return this.#listeners !== undefined && this.#listeners.size > 0
  }

  publish(value: A): void {
    for (const [queue, isWanted] of this.#listeners ?? []) {
      if (isWanted(value)) Queue.offerUnsafe(queue, value)
    }
  }

  /** Ends all streams, after the values that they have buffered. */
  end(): void {
    this.#isEnded = true
    for (const queue of this.#listeners?.keys() ?? []) Queue.endUnsafe(queue)
    this.#listeners = undefined
  }

  get stream(): Stream.Stream<A> {
    return this.accepted(() => true)
  }

  /** A stream of the values that pass the filter. The other values take no space in its buffer. */
  filter<B extends A>(isWanted: (value: A) => value is B): Stream.Stream<B> {
    return this.accepted(isWanted) as Stream.Stream<B>
  }

  /** A stream of the values that a function accepts. It is called with each value when that is published. */
  accepted(isWanted: (value: A) => boolean): Stream.Stream<A> {
    return Stream.callback<A>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          if (this.#initial !== undefined) Queue.offerUnsafe(queue, this.#initial())
          if (this.#isEnded) Queue.endUnsafe(queue)
          else (this.#listeners ??= new Map()).set(queue, isWanted)
        }),
        () => Effect.sync(() => this.#listeners?.delete(queue))
      ), { bufferSize: this.#bufferSize, strategy: "sliding" })
  }
}
