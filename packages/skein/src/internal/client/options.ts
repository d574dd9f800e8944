/**
 * The options of a client.
 */
import type { Opaque } from "../base/definition.ts"
import type { Implementation, JsonObject, LoggingLevel, LoggingMessage, Revision } from "../base/messages.ts"
import { type ObservedClient, observedClient } from "../base/observed.ts"
import type { Duration } from "../base/types.ts"
import type { AsyncHandlers } from "./handlers.ts"
import { checkMiddleware, type ClientMiddleware } from "./middleware.ts"

/** The bounds of a client, and of each of its connections. */
export interface ClientLimits {
  /** How long a request waits for its response: 60 seconds by default. Progress restarts it. */
  readonly timeout?: Duration | undefined
  /** How long a request waits in total, regardless of progress: 1 hour by default. */
  readonly maxTimeout?: Duration | undefined
  /** How long questions of the server may continue to be answered after it has ended: 5 seconds by default. */
  readonly shutdownTimeout?: Duration | undefined
  /** How many questions of the server are handled at the same time: 1,024 by default. */
  readonly maxInFlightRequests?: number | undefined
  /** How many questions of the server are queued beyond that: 256 by default. Then they are refused. */
  readonly maxQueuedRequests?: number | undefined
  /** Bytes of the questions that are handled or queued: 64 Mi by default. Then they are refused. */
  readonly maxInFlightBytes?: number | undefined
  /** How many items a list may have, such as that of `listTools`: 10,000 by default. Then `LimitExceeded`. */
  readonly maxItems?: number | undefined
  /** How many notifications wait for each loop: 256 by default. Then the oldest is dropped. */
  readonly maxBufferedNotifications?: number | undefined
  /** How many times one request may be answered with questions: 16 by default. Then `LimitExceeded`. */
  readonly maxRounds?: number | undefined
  /** How many times a request whose response was lost is sent again: 3 by default. */
  readonly maxRetries?: number | undefined
}

/** How a lost connection is reopened. A connection that stays open for 30 seconds resets the count of attempts. */
export interface ReconnectPolicy {
  /** The delay before the first attempt: 500 milliseconds by default. */
  readonly initialDelay?: Duration | undefined
  /** The factor by which the delay grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /** The longest delay: 30 seconds by default. A server that asks for a longer one gets it, up to 10 minutes. */
  readonly maxDelay?: Duration | undefined
  /** Which part of each delay is random: all of it, the second half (the default), or nothing. */
  readonly jitter?: "full" | "half" | "none" | undefined
  /** How many attempts are made in a row: 8 by default. Then the client ends with `ReconnectExhausted`. */
  readonly maxAttempts?: number | undefined
}

/** The interval of the checks of a connection, and the timeout of each. */
export interface Heartbeat {
  readonly interval: Duration
  readonly timeout: Duration
}

/** Stores the responses of servers for several clients. `responseCache` and `responseStore` make one. */
export interface ResponseStore extends Opaque<"response store"> {}

/** Members that the options of all caches have. */
interface AnyCache {
  /** The longest time that a response counts as fresh, even if the server allows more: 24 hours by default. */
  readonly maxTtl?: Duration | undefined
  /** How long after that a response is still returned when the server cannot be reached: not at all by default. */
  readonly staleIfError?: Duration | undefined
}

/** The bounds of a cache in memory. */
export interface MemoryCacheOptions {
  /** How many responses are stored: 1,000 by default. Beyond that the least recently used one is dropped. */
  readonly maxEntries?: number | undefined
  /** How long all stored responses may be together, in UTF-16 units of JSON: 16 Mi by default. */
  readonly maxTotalChars?: number | undefined
}

/** A cache in memory that belongs to one client. */
export interface OwnCacheOptions extends AnyCache, MemoryCacheOptions {
  readonly store?: undefined
}

/** A cache in a store that other clients use as well. */
export interface SharedCacheOptions extends AnyCache {
  /** The store. If it fails or takes longer than 1 second, it is not used for 10 seconds. */
  readonly store: ResponseStore
  /** Identifies the server among all servers of the store: its URL, for example. Not the name that it gives itself. */
  readonly server: string
  /**
   * Identifies the user of the client: a unique id that never changes. Private responses are stored only with a partition, and
   * returned only to clients with the same one.
   */
  readonly partition?: string | undefined
}

/** The options of the cache of a client. */
export type CacheOptions = OwnCacheOptions | SharedCacheOptions

/** The result of a negotiation with a server: a JSON value to store by its URL and user. */
export interface ServerProfile {
  /** The negotiated revision. */
  readonly revision: Revision
  /** The mode of the transport: `streamable` or `sse` over HTTP. */
  readonly httpMode?: string | undefined
  /** Name and version of the server, as it sent them. */
  readonly info?: JsonObject | undefined
  /** The capabilities that the server declared. */
  readonly capabilities: JsonObject
  /** Instructions of the server for a language model. */
  readonly instructions?: string | undefined
  /** When the negotiation led to a session-based revision, in milliseconds since 1970. */
  readonly negotiatedAt?: number | undefined
  /** For whom the requests of the negotiation acted, without a secret. */
  readonly authorizationContext?: string | undefined
}

/** How tasks of servers are followed. */
export interface FollowOptions {
  /** The poll interval if the server suggests none: 1 second by default, and 100 milliseconds to 5 minutes in any case. */
  readonly pollInterval?: Duration | undefined
  /** How many polls in a row may fail with a transient failure: 10 by default. Then the task fails with the last one. */
  readonly maxFailures?: number | undefined
}

/** The options of a client, without handlers. All of them are optional. */
export interface ClientOptions {
  /** Name and version of this client, as it sends them to the server: those of Skein by default. */
  readonly info?: Implementation | undefined
  /** The revisions that the client accepts: all by default. A server with none of them is refused. */
  readonly revisions?: ReadonlyArray<Revision> | undefined
  /**
   * How long the client waits for the response to its first request before it assumes an older server: 3 seconds by default,
   * 10 seconds for a process.
   */
  readonly probeTimeout?: Duration | undefined
  /** The extensions that the host supports, by their identifiers, with their settings: none by default. */
  readonly extensions?: { readonly [extension: string]: JsonObject } | undefined
  /** The bounds of the client and of each connection, and the timeouts of requests. */
  readonly limits?: ClientLimits | undefined
  /** Whether a method that the server did not declare rejects with `Unsupported` and sends nothing: true by default. */
  readonly enforceCapabilities?: boolean | undefined
  /** Functions around each call, outermost first: `middleware` makes them. None by default. */
  readonly middleware?: ReadonlyArray<ClientMiddleware> | undefined
  /** The name that the host gives this server: handlers receive it. In a pool, the server's name there by default. */
  readonly label?: string | undefined
  /**
   * Whether a server may ask its questions as tasks (2025-11-25), so that no request stays open while a user thinks: true by
   * default. At most 100 of a connection run at the same time.
   */
  readonly taskReceiver?: boolean | undefined
  /**
   * Whether the result of a tool is validated against its `outputSchema`: true by default; an object sets other bounds. A result
   * that does not match rejects with `InvalidResponse`.
   */
  readonly validateOutput?: boolean | ValidationBounds | undefined
  /** Whether a result without structured content rejects if the tool has an `outputSchema`: false by default. */
  readonly requireStructuredContent?: boolean | undefined
  /**
   * Whether and how a lost connection is reopened. By default HTTP connections are, and a process that exits is started again
   * only if this option is `true` or a policy.
   */
  readonly reconnect?: ReconnectPolicy | boolean | undefined
  /** Checks the server every `interval`. Without a response within `timeout` the connection counts as lost. Off by default. */
  readonly heartbeat?: Heartbeat | undefined
  /** How responses are cached, if the server allows it: in memory, for this client alone, by default. `false`: no cache. */
  readonly cache?: CacheOptions | false | undefined
  /** How tasks are followed. With `false` the client does not declare tasks. */
  readonly tasks?: FollowOptions | boolean | undefined
  /** The profile of the server from an earlier connection (`client.serverProfile`): saves the negotiation. */
  readonly serverProfile?: ServerProfile | undefined
}

/** The bounds of the validation of a result. */
export interface ValidationBounds {
  /** The most characters of the schema as JSON text: 262,144 by default. */
  readonly maxSchemaChars?: number | undefined
  /** The most steps of one validation: 1,000,000 by default, and 10 in addition for each character. */
  readonly maxSteps?: number | undefined
  /** Whether patterns with look-around or back references are allowed, which may take years: false by default. */
  readonly nativePatterns?: boolean | undefined
}

/** The options of `AsyncClient.connect`: those of the client, the handlers, and these. */
export interface ConnectOptions extends ClientOptions, AsyncHandlers, ObservedClient {
  /** Receives the log messages of the server. An exception is logged. */
  readonly onLog?: ((message: LoggingMessage) => void) | undefined
  /** The least severe level of log messages that the server is asked for: `info` by default if there is an `onLog`. */
  readonly logLevel?: LoggingLevel | undefined
  /** Closes the client when it aborts. While the client connects, `connect` rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Converts the options of a client or a pool to those of the core: loggers and telemetry become services, and the types of all
 * other options are those of the core without Effect.
 */
export const toCore = async <A extends ObservedClient & Pick<ClientOptions, "middleware">>(
  { level, logger, telemetry, ...options }: A
): Promise<Record<string, never>> => {
  checkMiddleware(options.middleware)
  return { ...options, ...await observedClient({ level, logger, telemetry }) } as unknown as Record<string, never>
}
