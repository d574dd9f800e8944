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
  /** Resources that one session, or one `subscriptions/listen`, may subscribe to. */
  readonly maxResources: number
  /**
   * Open `subscriptions/listen` requests of the server. On its connection each counts against
   * `Limits.maxInFlightRequests` too.
   */
  readonly maxListens: number
  /** Open `subscriptions/listen` requests of one principal. Anonymous callers are not counted here. */
  readonly maxListensPerPrincipal: number
  /** Milliseconds from the first change of a list to the notification of all changes until then. */
  readonly listChangedDelay: number
  /**
   * Milliseconds that an interrupted handler may take to stop, at the end of an endpoint and after a `Timeout`. Then it is
   * abandoned, and logged.
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
  maxResources: 1_000,
  maxListens: 20_000,
  maxListensPerPrincipal: 1_000,
  listChangedDelay: 50,
  interruptTimeout: 5_000
}

export const Bounds = /* @__PURE__ */ Context.Reference<FixedBounds>("@skein/server/internal/Bounds", {
  defaultValue: () => fixedBounds
})
