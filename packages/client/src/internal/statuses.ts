/**
 * The status of a client, for whoever watches.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { Status } from "../Status.ts"

/** How many wait for a watcher. What is oldest is dropped then: the last one is what counts. */
const bufferSize = 16

/** Tells every watcher the present status, and each one after that, until the last. */
export class StatusBroadcast {
  #watchers: Set<Queue.Queue<Status, Cause.Done>> | undefined = undefined
  readonly #present: () => Status
  #over: boolean

  constructor(present: () => Status, over: boolean) {
    this.#present = present
    this.#over = over
  }

  /** It is not what it was. */
  changed(): void {
    if (this.#watchers === undefined || this.#watchers.size === 0) return
    const status = this.#present()
    for (const watcher of this.#watchers) Queue.offerUnsafe(watcher, status)
  }

  end(): void {
    this.#over = true
    for (const watcher of this.#watchers ?? []) Queue.endUnsafe(watcher)
    this.#watchers = undefined
  }

  get stream(): Stream.Stream<Status> {
    return Stream.callback<Status>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          Queue.offerUnsafe(queue, this.#present())
          if (this.#over) Queue.endUnsafe(queue)
          else (this.#watchers ??= new Set()).add(queue)
        }),
        () => Effect.sync(() => this.#watchers?.delete(queue))
      ), { bufferSize, strategy: "sliding" })
  }
}
