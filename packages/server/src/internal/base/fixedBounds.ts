/**
 * The bounds that have no option, because no deployment has a reason to change them. Tests provide the reference with
 * lower ones.
 */
import * as Context from "effect/Context"

/** The fixed bounds of a server. `docs/limits.md` lists them. */
export interface FixedBounds {
  /** Characters of `initialize` over HTTP. A longer one is answered with 413. */
  readonly maxInitializeChars: number
  /** Bytes that a client must read per second, on average over `sendTimeout`, while a part of an answer is unsent. */
  readonly minReadBytesPerSecond: number
  /** Events of one stream that the store in memory retains. The oldest is deleted. */
  readonly maxEventsPerStream: number
  /** Keys of one rate limit in memory. The count of the least recently used one is forgotten. */
  readonly maxKeys: number
  /** Series of the metrics of requests. Further ones are counted together, as `_OTHER`. */
  readonly maxSeries: number
  /** Characters of the texts of one tool that a search reads. */
  readonly maxIndexedChars: number
  /** Characters of the query of a search that are read. */
  readonly maxQueryChars: number
  /**
   * How long the end of an endpoint waits for interrupted stateless requests, in milliseconds. Requests that still run
   * then are abandoned, and logged.
   */
  readonly interruptTimeout: number
}

export const fixedBounds: FixedBounds = {
  maxInitializeChars: 65_536,
  minReadBytesPerSecond: 1_024,
  maxEventsPerStream: 1_000,
  maxKeys: 10_000,
  maxSeries: 2_000,
  maxIndexedChars: 8_192,
  maxQueryChars: 1_000,
  interruptTimeout: 5_000
}

export const Bounds = /* @__PURE__ */ Context.Reference<FixedBounds>("@skein/server/internal/Bounds", {
  defaultValue: () => fixedBounds
})
