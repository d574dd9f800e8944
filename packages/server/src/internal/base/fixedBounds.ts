/**
 * The bounds that have no option, because no deployment has a reason to change them. Tests provide the reference with
 * lower ones.
 */
import * as Context from "effect/Context"

/** The fixed bounds of a server; times in milliseconds. `docs/limits.md` lists them. */
export const fixedBounds = {
  /** Characters of `initialize` over HTTP. A longer one is answered with 413. */
  maxInitializeChars: 65_536,
  /** Time of a client to send `notifications/initialized`, or any other message. Then the session ends. */
  initializeTimeout: 60_000,
  /**
   * Time without a request after which a node removes its copy of a session that another node has opened, unless messages
   * wait there for its client.
   */
  idleCopyTimeout: 60_000,
  /** Messages of a session outside requests, while its client has no GET stream. The oldest is dropped. */
  maxPendingMessages: 100,
  /** Characters that wait in memory for a slow reader of a stream. The next message closes the connection. */
  maxUnsentChars: 1024 * 1024,
  /** Time in which a client must read an answer, or `minReadBytesPerSecond` of it. Then its connection is closed. */
  sendTimeout: 60_000,
  /** Bytes that a client must read per second, on average over `sendTimeout`, while a part of an answer is unsent. */
  minReadBytesPerSecond: 1_024,
  /** Time that a client should wait before it reconnects to a closed stream. */
  retryDelay: 1_000,
  /** Time of the head of a request to arrive at a listener. Then the answer is 408, and the connection is closed. */
  headersTimeout: 15_000,
  /** Milliseconds without a request after which a connection is closed while a listener stops. */
  idleCloseDelay: 100,
  /** The same while requests arrive on other connections: a proxy may use each of them. */
  busyCloseDelay: 500,
  /** The same for a new connection, on which no request has arrived yet. */
  firstRequestDelay: 1_000,
  /** The longest time of all these delays, and then of the last bytes of answers to be sent. */
  flushTimeout: 2_000,
  /** Time after which the certificates of the requests between nodes are read again. */
  certificateInterval: 60_000,
  /** Events of one stream that the store in memory retains. The oldest is deleted. */
  maxEventsPerStream: 1_000,
  /** Characters of the events of one session that the store in memory retains. A larger event is not stored. */
  maxEventCharsPerSession: 1024 * 1024,
  /** Characters of the events of all sessions that the store in memory retains. */
  maxEventChars: 32 * 1024 * 1024,
  /** Time for which the store in memory retains the events of a complete stream. */
  eventLifetime: 300_000,
  /** Keys of one rate limit in memory. The count of the least recently used one is forgotten. */
  maxKeys: 10_000,
  /** Series of the metrics of requests. Further ones are counted together, as `_OTHER`. */
  maxSeries: 2_000,
  /** Characters of the texts of one tool that a search reads. */
  maxIndexedChars: 8_192,
  /** Characters of the texts of all tools that a search reads. Each tool gets an equal part, of at least 256. */
  maxIndexedCharsOfAll: 2 * 1024 * 1024,
  /** Characters of the query of a search that are read. */
  maxQueryChars: 1_000,
  /** Resources that one session, or one `subscriptions/listen`, may subscribe to. */
  maxResources: 1_000,
  /**
   * Open `subscriptions/listen` requests of the server. On its connection each counts against
   * `Limits.maxInFlightRequests` too.
   */
  maxListens: 20_000,
  /** Open `subscriptions/listen` requests of one principal. Anonymous callers are not counted here. */
  maxListensPerPrincipal: 1_000,
  /** Milliseconds from the first change of a list to the notification of all changes until then. */
  listChangedDelay: 50,
  /**
   * Milliseconds that an interrupted handler may take to stop, at the end of an endpoint and after a `Timeout`. Then it is
   * abandoned, and logged.
   */
  interruptTimeout: 5_000
}

export type FixedBounds = Readonly<typeof fixedBounds>

export const Bounds = /* @__PURE__ */ Context.Reference<FixedBounds>("@skein/server/internal/Bounds", {
  defaultValue: () => fixedBounds
})
