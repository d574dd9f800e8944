/**
 * The watches of resources that have subscribers: each runs while its URI has at least one.
 */
import type * as McpError from "@skein/protocol/McpError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Watch } from "../../Catalog.ts"
import type { Fibers } from "../base/fibers.ts"

interface Running {
  /** The number of subscribers, those that wait for the confirmation included. */
  count: number
  readonly scope: Scope.Closeable
  readonly confirmed: Deferred.Deferred<void, McpError.McpError>
}

export class ResourceWatches {
  readonly #fibers: Fibers
  readonly #running = new Map<string, Running>()

  constructor(fibers: Fibers) {
    this.#fibers = fibers
  }

  /** The number of URIs that are watched. */
  get size(): number {
    return this.#running.size
  }

  /**
   * Counts a subscriber of a URI, and starts the watch if it is the first one. Waits until the watch confirms the
   * subscription. After a failure or an interruption the subscriber is not counted.
   */
  retain(uri: string, watch: Watch): Effect.Effect<void, McpError.McpError> {
    return Effect.suspend(() => {
      const running = this.#running.get(uri) ?? this.#start(uri, watch)
      running.count++
      return Effect.onError(Deferred.await(running.confirmed), () => Effect.sync(() => this.#drop(uri, running)))
    })
  }

  /** A subscriber has left. Does nothing for a URI that is not watched. */
  release(uri: string): void {
    const running = this.#running.get(uri)
    if (running !== undefined) this.#drop(uri, running)
  }

  #start(uri: string, watch: Watch): Running {
    const scope = Scope.makeUnsafe()
    const confirmed = Deferred.makeUnsafe<void, McpError.McpError>()
    const running = { count: 0, scope, confirmed }
    this.#running.set(uri, running)
    // The fiber belongs to the scope, so that the last subscriber ends it even before the confirmation.
    const started = Effect.onExit(Scope.provide(watch(uri), scope), (exit) => Deferred.done(confirmed, exit))
    this.#fibers.fork(Effect.asVoid(Effect.forkIn(Effect.exit(started), scope, { startImmediately: true })))
    return running
  }

  #drop(uri: string, running: Running): void {
    if (--running.count > 0) return
    if (this.#running.get(uri) === running) this.#running.delete(uri)
    this.#fibers.fork(Scope.close(running.scope, Exit.void))
  }
}
