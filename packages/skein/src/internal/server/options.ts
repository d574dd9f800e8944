/**
 * The options of servers and of their processes.
 */
import type { Readable, Writable } from "node:stream"
import type { Icon, LoggingLevel, Revision } from "../base/messages.ts"
import type { ObservedServer } from "../base/observed.ts"
import type { Duration } from "../base/types.ts"

/** The description of a server, its bounds, its logs and its telemetry. */
export interface ServerOptions extends ObservedServer {
  /** A name for programs. */
  readonly name: string
  readonly version: string
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  /** Instructions for a language model: how to use the server. */
  readonly instructions?: string | undefined
  /** The revisions of the protocol that the server supports. All by default. */
  readonly revisions?: ReadonlyArray<Revision> | undefined
  /** The number of entries on one page of a list: 1,000 by default, at least 1. */
  readonly pageSize?: number | undefined
  /** How long, and by whom, results may be cached, by method. Not at all by default. */
  readonly caching?: CachingHints | undefined
  /** The bounds of each connection. */
  readonly limits?: ConnectionLimits | undefined
  /**
   * The kinds of entries that the server declares from the start even if it has none, for a server that adds them while it
   * runs. A client is not notified of changes of other kinds.
   */
  readonly declareListChanged?: ReadonlyArray<"tools" | "resources" | "prompts"> | undefined
  /** How the logs of handlers reach the clients that request them. `false` disables it. */
  readonly logging?: ClientLogOptions | false | undefined
}

/** The logs that clients receive. */
export interface ClientLogOptions {
  /** The level of sessions whose client has not set one: `info` by default. `false` sends nothing before that. */
  readonly defaultLevel?: LoggingLevel | false | undefined
  /** The largest data of one message, in characters of its JSON: 16,384 by default, at least 256. Longer texts are cut. */
  readonly maxChars?: number | undefined
}

/** The bounds of a connection. */
export interface ConnectionLimits {
  /** Requests that are handled at the same time: 1,024 by default. The next ones are queued. With 1, one by one. */
  readonly maxInFlightRequests?: number | undefined
  /** Requests that are queued: 256 by default. The next one is refused with `-32603`. */
  readonly maxQueuedRequests?: number | undefined
  /** Bytes of the requests that are handled or queued: 64 Mi by default. The next large one is refused with `-32603`. */
  readonly maxInFlightBytes?: number | undefined
  /** How long a call to the client waits for its response: 60 seconds by default. Progress restarts it. */
  readonly timeout?: Duration | undefined
  /** How long such a call waits in total: 1 hour by default. */
  readonly maxTimeout?: Duration | undefined
  /** How long requests in flight may continue after the client has ended: 5 seconds by default. */
  readonly shutdownTimeout?: Duration | undefined
}

/** The logs of a process, which are written to stderr, unless the server has a `logger`. */
export interface LogOptions {
  /** `"pretty"`, lines for people, by default; `"json"`, one object per line; or `"logfmt"`, `key=value` pairs. */
  readonly logFormat?: "pretty" | "json" | "logfmt" | undefined
  /** The least severe level that is logged: `"Info"` by default. The `level` of the server takes precedence. */
  readonly logLevel?: "All" | "Trace" | "Debug" | "Info" | "Warn" | "Error" | "Fatal" | "None" | undefined
  /**
   * The beginning of the names of the environment variables that set options: `SKEIN_` by default, as in `SKEIN_PORT`. An
   * option in the code wins over its variable. `false` reads no variable.
   */
  readonly environment?: string | false | undefined
}

/** The streams and the process of a server on stdio. */
export interface StdioOptions extends LogOptions {
  /** How long the cleanup may take after SIGTERM or SIGINT before the process exits: 5 seconds by default. */
  readonly shutdownTimeout?: Duration | undefined
  /** The longest line that is read, in bytes: 4 MiB by default. A longer one is refused. */
  readonly maxLineBytes?: number | undefined
  /** How many characters may wait while the client does not read: 64 Mi by default. Then the connection ends. */
  readonly maxUnsentChars?: number | undefined
  /** The stream that messages are read from: `process.stdin` by default. */
  readonly input?: Readable | undefined
  /** The stream that messages are written to: `process.stdout` by default. Nothing else can write to it meanwhile. */
  readonly output?: Writable | undefined
}

/** How long, and for whom, a result may be cached. Not at all by default. */
export interface CachingHint {
  /** How long the result is fresh, in milliseconds: a whole number of at least 0. 0 by default. */
  readonly ttlMs?: number | undefined
  /**
   * `public`: the result contains no data of a user and may be shared between all callers. `private` is the default, and always
   * applies to what only some callers may see.
   */
  readonly cacheScope?: "public" | "private" | undefined
}

/** The hints by method. The hints of a resource take precedence. */
export interface CachingHints {
  readonly "server/discover"?: CachingHint
  readonly "tools/list"?: CachingHint
  readonly "prompts/list"?: CachingHint
  readonly "resources/list"?: CachingHint
  readonly "resources/templates/list"?: CachingHint
  readonly "resources/read"?: CachingHint
  readonly "skills/list"?: CachingHint
  readonly "skills/get"?: CachingHint
}
