/**
 * The memory of a rate limit: what each key has used, for as long as that counts, and of so many keys at most.
 *
 * Effect's own store in memory keeps every key that it ever saw. Here a key is forgotten when it has been idle for a whole window,
 * when it would be as good as new; and beyond `maxKeys` the key that was used longest ago is forgotten before its time.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RateLimiter from "effect/persistence/RateLimiter"

interface Use {
  /** Tokens that are left, or that were taken. */
  count: number
  /** When tokens were last added, or when the window ends; in milliseconds. */
  at: number
  /** When it is as good as new. */
  idleAt: number
}

/** What one rate limit remembers, in the order of last use. */
export class RateLimitMemory {
  readonly #uses = new Map<string, Use>()
  readonly #maxKeys: number

  constructor(maxKeys: number) {
    this.#maxKeys = Math.max(1, Math.floor(maxKeys))
  }

  get size(): number {
    return this.#uses.size
  }

  /** What a key has used; `undefined` where it is as good as new. It is now the last one in order. */
  touch(key: string, now: number, window: number, count: number): Use {
    const known = this.#uses.get(key)
    if (known !== undefined) this.#uses.delete(key)
    const use = known !== undefined && known.idleAt > now ? known : { count, at: now, idleAt: now }
    use.idleAt = now + window
    this.#sweep(now)
    this.#uses.set(key, use)
    return use
  }

  // All have the same window, so that the first ones in order are the first to be idle.
  #sweep(now: number): void {
    for (const [key, { idleAt }] of this.#uses) {
      if (idleAt > now && this.#uses.size < this.#maxKeys) return
      this.#uses.delete(key)
    }
  }
}

/** A store in memory, for the limiter of one rate limit. */
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
    // A limit of the server's own does not learn from the answers of another one.
    adaptiveConsume: () => Effect.succeed({ delay: Duration.zero, epoch: 0, phase: "inactive" }),
    adaptiveFeedback: () => Effect.void
  })
