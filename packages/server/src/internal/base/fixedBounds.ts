/**
 * The bounds that have no option, because no deployment has a reason to change them. Tests provide the reference with
 * lower ones.
 */
import * as Context from "effect/Context"

/** The fixed bounds of a server; times in milliseconds. `docs/limits.md` lists them. */
export interface FixedBounds {
  /** Characters of `initialize` over HTTP. A longer one is answered with 413. */
  readonly maxInitializeChars: number
  /** Time of a client to send `notifications/initialized`, or any other message. Then the session ends. */
  readonly initializeTimeout: number
  /** Messages of a session outside requests, while its client has no GET stream. The oldest is dropped. */
  readonly maxPendingMessages: number
  /** Characters that wait in memory for a slow reader of a stream. The next message closes the connection. */
  readonly maxUnsentChars: number
  /** Time in which a client must read an answer, or `minReadBytesPerSecond` of it. Then its connection is closed. */
  readonly sendTimeout: number
  /** Bytes that a client must read per second, on average over `sendTimeout`, while a part of an answer is unsent. */
  readonly minReadBytesPerSecond: number
  /** Time that a client should wait before it reconnects to a closed stream. */
  readonly retryDelay: number
  /** Time of the head of a request to arrive at a listener. Then the answer is 408, and the connection is closed. */
  readonly headersTimeout: number
  /** Events of one stream that the store in memory retains. The oldest is deleted. */
  readonly maxEventsPerStream: number
  /** Characters of the events of one session that the store in memory retains. A larger event is not stored. */
  readonly maxEventCharsPerSession: number
  /** Characters of the events of all sessions that the store in memory retains. */
  readonly maxEventChars: number
  /** Time for which the store in memory retains the events of a complete stream. */
  readonly eventLifetime: number
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
  initializeTimeout: 60_000,
  maxPendingMessages: 100,
  maxUnsentChars: 1024 * 1024,
  sendTimeout: 60_000,
  minReadBytesPerSecond: 1_024,
  retryDelay: 1_000,
  headersTimeout: 15_000,
  maxEventsPerStream: 1_000,
  maxEventCharsPerSession: 1024 * 1024,
  maxEventChars: 32 * 1024 * 1024,
  eventLifetime: 300_000,
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
