/**
 * The buffered changes of one run of a stream of changes. It is bounded. When it drops changes, the reader receives a
 * `Gap`.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Change, Gap, Subscribed } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"

const overflow: Gap = { _tag: "Gap", reason: "Overflow", cause: undefined }

/** Takes all buffered changes. */
export type Batch = Effect.Effect<readonly [Change, ...Array<Change>], ClientError>

/** A bounded queue with one reader. */
export class ChangeQueue {
  readonly #size: number
  #changes: Array<Change> = []
  /** Whether changes were dropped, and the last dropped `Subscribed`. */
  #hasDropped = false
  #subscribed: Subscribed | undefined = undefined
  #failure: Cause.Cause<ClientError> | undefined = undefined
  #resume: ((batch: Batch) => void) | undefined = undefined

  constructor(size: number) {
    this.#size = Math.max(1, size)
  }

  /** Adds a change. A full queue drops its oldest one. */
  offer(change: Change): void {
    if (this.#changes.length >= this.#size) {
      const dropped = this.#changes.shift()!
      if (dropped._tag === "Subscribed") this.#subscribed = dropped
      this.#hasDropped = true
    }
    this.#changes.push(change)
    this.#deliver()
  }

  /** Ends the queue: the reader gets the buffered changes, then the failure. */
  fail(cause: Cause.Cause<ClientError>): void {
    this.#failure = cause
    this.#deliver()
  }

  /** Waits for changes. */
  get batch(): Batch {
    return Effect.suspend(() => this.#changes.length > 0 || this.#failure !== undefined ? this.#take() : this.#next)
  }

  get #next(): Batch {
    return Effect.callback((resume) => {
      this.#resume = resume
      return Effect.sync(() => {
        this.#resume = undefined
      })
    })
  }

  #deliver(): void {
    const wake = this.#resume
    this.#resume = undefined
    // Taken when the reader runs, so that changes until then are in the same batch.
    wake?.(Effect.suspend(() => this.#take()))
  }

  #take(): Batch {
    const [first, ...rest] = this.#changes
    if (first === undefined) return Effect.failCause(this.#failure!)
    const told: ReadonlyArray<Change> = this.#subscribed === undefined ? [] : [this.#subscribed]
    const batch: readonly [Change, ...Array<Change>] = this.#hasDropped
      ? [overflow, ...told, first, ...rest]
      : [first, ...rest]
    this.#changes = []
    this.#hasDropped = false
    this.#subscribed = undefined
    return Effect.succeed(batch)
  }
}
