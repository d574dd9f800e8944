/**
 * Notifications to many subscribers, any of which may be slow to read.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Effect from "effect/Effect"
import type { Fibers } from "./fibers.ts"

/** A notification without its JSON-RPC envelope. */
export interface OutgoingNotification {
  readonly method: string
  readonly params?: JsonObject | undefined
}

/** A receiver of notifications: a session, or an open `subscriptions/listen`. */
export interface NotificationTarget {
  /** Sends a notification. Suspends while the client is slow to read. */
  readonly send: (notification: OutgoingNotification) => Effect.Effect<void>
}

/**
 * Sends notifications without waiting. A slow target delays no other target, and at most one notification of each key
 * waits for it, because one notification suffices for several changes that the client has not read about yet.
 */
export class PendingNotifications {
  readonly #fibers: Fibers
  // The slow targets and their waiting notifications. Nothing is stored for the others.
  readonly #waiting = new Map<NotificationTarget, Map<string, OutgoingNotification>>()

  constructor(fibers: Fibers) {
    this.#fibers = fibers
  }

  /** The number of slow targets. */
  get size(): number {
    return this.#waiting.size
  }

  /**
   * Sends a notification now, or as soon as the target reads again. If another one with the key is waiting already,
   * `merged` replaces it.
   */
  send(
    target: NotificationTarget,
    key: string,
    notification: OutgoingNotification,
    merged: OutgoingNotification = notification
  ): void {
    const waiting = this.#waiting.get(target)
    if (waiting !== undefined) return void waiting.set(key, waiting.has(key) ? merged : notification)
    const slow = this.#fibers.fork(target.send(notification))
    if (slow === undefined) return
    const queue = new Map<string, OutgoingNotification>()
    this.#waiting.set(target, queue)
    slow.addObserver(() => this.#next(target, queue))
  }

  #next(target: NotificationTarget, queue: Map<string, OutgoingNotification>): void {
    for (const [key, notification] of queue) {
      queue.delete(key)
      const slow = this.#fibers.fork(target.send(notification))
      if (slow !== undefined) return void slow.addObserver(() => this.#next(target, queue))
    }
    this.#waiting.delete(target)
  }
}
