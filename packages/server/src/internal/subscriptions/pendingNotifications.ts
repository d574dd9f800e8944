/**
 * Notices for many listeners, of whom each may be slow to read.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Effect from "effect/Effect"
import type { Fibers } from "../dispatch/fibers.ts"

/** What a listener is told. */
export interface OutgoingNotification {
  readonly method: string
  readonly params?: JsonObject | undefined
}

/** Who is told. */
export interface NotificationTarget {
  /** Sends a notice now, and waits while the other side is slow to read. */
  readonly send: (notice: OutgoingNotification) => Effect.Effect<void>
}

/**
 * Whoever is slow to read delays nobody else, and keeps no more than one notice of each key: a notice says that something has
 * changed, and once is enough for several changes that were not heard of yet.
 */
export class PendingNotifications {
  readonly #fibers: Fibers
  // Those who are slow, and what waits for each. Nothing is kept of the others.
  readonly #waiting = new Map<NotificationTarget, Map<string, OutgoingNotification>>()

  constructor(fibers: Fibers) {
    this.#fibers = fibers
  }

  /** How many are slow to read. */
  get size(): number {
    return this.#waiting.size
  }

  /** Tells a notice, now or when there is room. `merged` takes its place where another one with its key waits already. */
  tell(
    target: NotificationTarget,
    key: string,
    notice: OutgoingNotification,
    merged: OutgoingNotification = notice
  ): void {
    const waiting = this.#waiting.get(target)
    if (waiting !== undefined) return void waiting.set(key, waiting.has(key) ? merged : notice)
    const slow = this.#fibers.fork(target.send(notice))
    if (slow === undefined) return
    const queue = new Map<string, OutgoingNotification>()
    this.#waiting.set(target, queue)
    slow.addObserver(() => this.#next(target, queue))
  }

  #next(target: NotificationTarget, queue: Map<string, OutgoingNotification>): void {
    for (const [key, notice] of queue) {
      queue.delete(key)
      const slow = this.#fibers.fork(target.send(notice))
      if (slow !== undefined) return void slow.addObserver(() => this.#next(target, queue))
    }
    this.#waiting.delete(target)
  }
}
