/**
 * The memory of a rate limit: the use of each key within the window, for a bounded number of keys.
 *
 * The in-memory store of Effect retains every key forever. This one forgets a key that was idle for a whole window,
 * when the key has its full limit again. Beyond `maxKeys` it forgets the least recently used key early.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RateLimiter from "effect/persistence/RateLimiter"

interface Use {
  /** The remaining tokens (token bucket), or the taken ones (fixed window). */
  count: number
  /** When tokens were last added, or when the window ends, in milliseconds. */
  at: number
  /** When the key has its full limit again, in milliseconds. */
  idleAt: number
}

/** The keys of one rate limit, in the order of their last use. */
export class RateLimitMemory {
  readonly #uses = new Map<string, Use>()
  readonly #maxKeys: number

  constructor(maxKeys: number) {
    this.#maxKeys = Math.max(1, Math.floor(maxKeys))
  }

  get size(): number {
    return this.#uses.size
  }

  /**
   * Returns the use of a key, with a count of `count` if it has its full limit, and moves the key to the end of the
   * order.
   */
  touch(key: string, now: number, window: number, count: number): Use {
    const known = this.#uses.get(key)
    if (known !== undefined) this.#uses.delete(key)
    const use = known !== undefined && known.idleAt > now ? known : { count, at: now, idleAt: now }
    use.idleAt = now + window
    this.#sweep(now)
    this.#uses.set(key, use)
    return use
  }

  // All keys have the same window, so the first keys in order are the first to become idle.
  #sweep(now: number): void {
    for (const [key, { idleAt }] of this.#uses) {
      if (idleAt > now && this.#uses.size < this.#maxKeys) return
      this.#uses.delete(key)
    }
  }
}

/** Makes the store for the limiter of one rate limit. */
export const makeStore = (memory: RateLimitMemory): RateLimiter.RateLimiterStore["Service"] =>
  RateLimiter.RateLimiterStore.of({
    fixedWindow: ({ key, limit, refillRate, tokens }) =>
      Effect.clockWith((clock) => {
        const now = clock.currentTimeMillisUnsafe()
        const refill = Duration.toMillis(refillRate)
        const use = memory.touch(key, now, refill * (limit ?? tokens), 0)
        if (use.at <= now) Object.assign(use, { count: 0, at: now })
        const count = use.count + tokens
        if (limit === undefined || count <= limit) {
          use.count = count
          use.at += refill * tokens
          use.idleAt = Math.max(use.idleAt, use.at)
        }
        return Effect.succeed([count, use.at - now] as const)
      }),
    tokenBucket: ({ allowOverflow, key, limit, refillRate, tokens }) =>
      Effect.clockWith((clock) => {
        const now = clock.currentTimeMillisUnsafe()
        const refill = Duration.toMillis(refillRate)
        const use = memory.touch(key, now, refill * limit, limit)
        const refilled = Math.floor((now - use.at) / refill)
        if (refilled > 0) {
          use.count = Math.min(limit, use.count + refilled)
          use.at += refilled * refill
        }
        if (use.count >= limit) use.at = now
        const left = use.count - tokens
        if (allowOverflow || left >= 0) use.count = left
        return Effect.succeed([left, Math.max(0, now - use.at)] as const)
      }),
    // Adaptive limits learn from the answers of another server. This limit is fixed.
    adaptiveConsume: () => Effect.succeed({ delay: Duration.zero, epoch: 0, phase: "inactive" }),
    adaptiveFeedback: () => Effect.void
  })
