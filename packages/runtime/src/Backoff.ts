/**
 * The delays between attempts, which grow with each failure: to reconnect, to resume a stream, to send a message again, to
 * reach a store.
 */

/** How the delays grow. Times are in milliseconds. */
export interface Backoff {
  /** The delay before the first attempt. */
  readonly initialDelay: number
  /** How much longer each delay is than the one before: twice as long by default. */
  readonly factor?: number | undefined
  /** The longest delay. */
  readonly maxDelay: number
  /** The random part of each delay: all of it, its second half, or none (default). */
  readonly jitter?: "full" | "half" | "none" | undefined
}

/** The longest delay that a server may request (`Retry-After`), in milliseconds: 10 minutes. */
export const maxRetryAfter = 600_000

/**
 * The delay before an attempt, in milliseconds. Attempts count from 1. `random` is at least 0 and below 1, and is needed
 * with jitter only. `retryAfter` is the delay that a server has requested, in milliseconds: the delay is not shorter than
 * that, up to `maxRetryAfter`.
 *
 * @example
 * Backoff.delay({ initialDelay: 100, maxDelay: 5_000 }, 3) // 400
 */
export const delay = (backoff: Backoff, attempt: number, random = 0, retryAfter = 0): number => {
  const { factor = 2, initialDelay, jitter = "none", maxDelay } = backoff
  const longest = Math.min(maxDelay, initialDelay * factor ** (attempt - 1))
  const wait = jitter === "none" ? longest : jitter === "full" ? longest * random : longest * (1 + random) / 2
  return Math.max(wait, Math.min(retryAfter, maxRetryAfter))
}
