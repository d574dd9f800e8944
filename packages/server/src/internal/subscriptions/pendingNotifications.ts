/**
 * Notices for many listeners, of whom each may be slow to read.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Effect from "effect/Effect"
import type { Fibers } from "../dispatch/fibers.ts"

/** What a listener is told. */
export interface Notice {
  readonly method: string
  readonly params?: JsonObject | undefined
}

/** Who is told. */
export interface Target {
  /** Sends a notice now, and waits while the other side is slow to read. */
  readonly say: (notice: Notice) => Effect.Effect<void>
}

/**
 * Whoever is slow to read delays nobody else, and keeps no more than one notice of each key: a notice says that something has
 * changed, and once is enough for several changes that were not heard of yet.
 */
export class Outbox {
  readonly #fibers: Fibers
  // Those who are slow, and what waits for each. Nothing is kept of the others.
  readonly #waiting = new Map<Target, Map<string, Notice>>()

  constructor(fibers: Fibers) {
    this.#fibers = fibers
  }

  /** How many are slow to read. */
  get size(): number {
    return this.#waiting.size
  }

  /** Tells a notice, now or when there is room. `merged` takes its place where another one with its key waits already. */
  tell(target: Target, key: string, notice: Notice, merged: Notice = notice): void {
    const waiting = this.#waiting.get(target)
    if (waiting !== undefined) return void waiting.set(key, waiting.has(key) ? merged : notice)
    const slow = this.#fibers.fork(target.say(notice))
    if (slow === undefined) return
    const queue = new Map<string, Notice>()
    this.#waiting.set(target, queue)
    slow.addObserver(() => this.#next(target, queue))
  }

  #next(target: Target, queue: Map<string, Notice>): void {
    for (const [key, notice] of queue) {
      queue.delete(key)
      const slow = this.#fibers.fork(target.say(notice))
      if (slow !== undefined) return void slow.addObserver(() => this.#next(target, queue))
    }
    this.#waiting.delete(target)
  }
}
