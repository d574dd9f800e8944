/**
 * One run of a stream of changes, and its buffer.
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Change, Gap, Honoured, Subscribed } from "../../../Changes.ts"
import type { ClientError } from "../../../ClientError.ts"
import type { ClientContext } from "../context.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"

const overflow: Gap = { _tag: "Gap", reason: "Overflow", cause: undefined }

/** Takes all buffered changes. */
export type Batch = Effect.Effect<readonly [Change, ...Array<Change>], ClientError>

/** A bounded queue of changes with one reader. When it drops changes, the reader receives a `Gap`. */
export class ChangeQueue {
  readonly #size: number
  #changes: Array<Change> = []
  /** Whether changes were dropped, and the last dropped `Subscribed`. */
  #hasDropped = false
  #subscribed: Subscribed | undefined = undefined
  #failure: Cause.Cause<ClientError> | undefined = undefined
  // Open while the queue has changes, or has failed.
  readonly #ready = Latch.makeUnsafe()

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
    this.#ready.openUnsafe()
  }

  /** Ends the queue: the reader gets the buffered changes, then the failure. */
  fail(cause: Cause.Cause<ClientError>): void {
    this.#failure = cause
    this.#ready.openUnsafe()
  }

  /** Waits for changes, and takes all that are there when the reader runs. */
  get batch(): Batch {
    return Effect.andThen(this.#ready.await, Effect.suspend(() => this.#take()))
  }

  #take(): Batch {
    const [first, ...rest] = this.#changes
    if (first === undefined) return Effect.failCause(this.#failure!)
    const subscribed = this.#subscribed === undefined ? [] : [this.#subscribed]
    const batch: readonly [Change, ...Array<Change>] = this.#hasDropped
      ? [overflow, ...subscribed, first, ...rest]
      : [first, ...rest]
    this.#changes = []
    this.#hasDropped = false
    this.#subscribed = undefined
    if (this.#failure === undefined) this.#ready.closeUnsafe()
    return Effect.succeed(batch)
  }
}

/** One run of a stream of changes. */
export interface Run {
  readonly client: ClientContext
  readonly wanted: Honoured
  readonly queue: ChangeQueue
  /** How long the server may take to acknowledge the subscription. */
  readonly timeout: Duration.Input
}

/**
 * Runs one subscription until the server ends it, or it fails. Calls `onActive` when the server has acknowledged it.
 */
export type Subscribe<A> = (
  connection: NegotiatedConnection,
  onActive: (honoured: Honoured) => void
) => Effect.Effect<A, ClientError>
