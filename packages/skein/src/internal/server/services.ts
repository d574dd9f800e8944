/**
 * The services of a whole server: stores of states, the keys of pending requests, and what several processes share.
 */
import * as HandlerError from "@skein/server/HandlerError"
import { EventBus } from "@skein/server/EventBus"
import * as StateError from "@skein/server/StateError"
import type * as StateStore from "@skein/server/StateStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily, serve, type Service } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"

/** The bounds of a store in memory. */
export interface MemoryStateOptions {
  /** The number of values: 10,000 by default. At the bound, see `maxBytes`. */
  readonly maxEntries?: number | undefined
  /**
   * The size of all values, in bytes of JSON: 64 MiB by default. At the bound the owner with the most loses its least recently
   * used values. A write of that owner itself fails: `StateError` `Full`.
   */
  readonly maxBytes?: number | undefined
  /** The size of the values of one owner, in bytes of JSON: 1 MiB by default. More fails: `StateError` `TooLarge`. */
  readonly maxBytesPerClient?: number | undefined
}

const load = () => import("@skein/server/StateStore")

/**
 * Stores states in memory, with these bounds. Without a store, a server has one in memory with the default bounds.
 *
 * @example
 * server.use(memoryState({ maxEntries: 1_000 }))
 */
export const memoryState = (options?: MemoryStateOptions): Service =>
  serve(lazily(load, ({ layerMemory }) => layerMemory(options)))

/** The name of the server in a database, and the bounds. */
export interface StateTableOptions {
  /** The server, or the group of processes, whose values these are: `default` by default. Two servers need two. */
  readonly namespace?: string | undefined
  /** The size of the values of one user, in bytes of JSON: 1 MiB by default. More fails: `StateError` `TooLarge`. */
  readonly maxBytesPerClient?: number | undefined
  /** The bounds of the memory for the state of sessions. */
  readonly memory?: MemoryStateOptions | undefined
}

/** The file of states. */
export interface SqliteStateOptions extends StateTableOptions {
  /** The file. It is created, readable for its owner only, if it does not exist. Its folder must exist. */
  readonly filename: string
  /** `"normal"` (default): a power failure may revert the last moments. `"full"`: it does not, with one `fsync` per write. */
  readonly synchronous?: "normal" | "full" | undefined
  /** The longest wait for the lock of another process: 1 second by default. */
  readonly lockTimeout?: Duration | undefined
}

/**
 * Stores the state of users in a SQLite file, by `node:sqlite`. The state of sessions is in memory.
 *
 * @example
 * server.use(sqliteState({ filename: "shop.db" }))
 */
export const sqliteState = ({ filename, lockTimeout, synchronous, ...options }: SqliteStateOptions): Service =>
  serve(lazily(
    () => Promise.all([import("@skein/server/SqlStateStore"), import("@skein/sql/SqliteClient")]),
    ([{ layer }, sqlite]) => Layer.provide(layer(options), sqlite.layer({ filename, lockTimeout, synchronous }))
  ))

/** The connection to PostgreSQL. The environment variables `PGHOST` and so on fill in the members that are absent. */
export interface PostgresStateOptions extends StateTableOptions {
  /** `postgres://user:password@host:5432/database?sslmode=…`. Its parts take precedence over the members below. */
  readonly url?: string | undefined
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** Whether to use TLS, or the certificates of authorities in PEM. With `ca` the certificate is verified. */
  readonly ssl?: boolean | { readonly ca?: string | undefined } | undefined
  /** The most connections: 10 by default. */
  readonly maxConnections?: number | undefined
  /** The longest wait for a connection: 10 seconds by default. */
  readonly connectTimeout?: Duration | undefined
  /** The longest execution of one statement: 30 seconds by default. */
  readonly statementTimeout?: Duration | undefined
}

/**
 * Stores the state of users in PostgreSQL, for a server that runs in several processes. Updates are atomic between them. The
 * state of sessions is in memory.
 *
 * @example
 * server.use(postgresState({ url: process.env["DATABASE_URL"], namespace: "shop" }))
 */
export const postgresState = (
  { maxBytesPerClient, memory, namespace, ...connection }: PostgresStateOptions
): Service =>
  serve(lazily(
    () => Promise.all([import("@skein/server/SqlStateStore"), import("@skein/sql/PgClient")]),
    ([{ layer }, postgres]) =>
      Layer.provide(layer({ maxBytesPerClient, memory, namespace }), postgres.layer(connection as never))
  ))

/** The key of a stored value. */
export interface StateKey {
  /** A user, as `principal ` and the id, or a session. It may be any text. */
  readonly owner: string
  readonly scope: "user" | "session"
  readonly name: string
}

/** A place of yours for the state of users. A promise that rejects fails the operation: `StateError` `Unavailable`. */
export interface StateTable {
  /** Returns a value that exists and has not expired, with its version: a text that differs after each write. */
  readonly get: (key: StateKey) => Awaitable<{ readonly json: string; readonly version: string } | undefined>
  /**
   * Writes a value for `ttlMs` milliseconds (`Infinity` for a value that does not expire) if it still has the version
   * `expected`, or does not exist for `undefined`, in one step. Returns whether it did.
   */
  readonly set: (
    key: StateKey,
    write: { readonly json: string; readonly expected: string | undefined; readonly ttlMs: number }
  ) => Awaitable<boolean>
  /** Removes a value, if it exists. */
  readonly remove: (key: StateKey) => Awaitable<void>
}

/** Calls a function of a store of the application. */
const attempt = <A>(run: () => Awaitable<A>): Effect.Effect<A, StateError.StateError> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) =>
      cause instanceof StateError.StateError ? cause : new StateError.StateError({
        // Without the message of the cause, which may quote the value.
        reason: new StateError.Unavailable({ message: "The state is not available: its store failed", cause })
      })
  })

/**
 * Stores the state of users in a place of yours. `memory` has the bounds of the memory for the state of sessions.
 *
 * @example
 * server.use(customState({ get: (key) => table.read(key), set: (key, write) => table.write(key, write), remove }))
 */
export const customState = (table: StateTable, memory?: MemoryStateOptions): Service => {
  const users: StateStore.Store = {
    get: (key) => attempt(() => table.get(key)),
    set: (key, write) => attempt(() => table.set(key, write)),
    remove: (key) => attempt(() => table.remove(key))
  }
  return serve(lazily(load, ({ layer }) => layer(users, memory)))
}

/** The keys and bounds of requests that wait for input, in 2026-07-28. */
export interface RequestStateOptions {
  /**
   * Secrets of at least 32 bytes, which all instances behind a load balancer need. The first key encrypts; all keys decrypt. To
   * rotate, add the new key in second place everywhere, then move it to first place. One random key by default.
   */
  readonly keys?: ReadonlyArray<Uint8Array | string> | undefined
  /** How long the client has for the responses of one round: 10 minutes by default. */
  readonly lifetime?: Duration | undefined
  /** How often a request may be answered with input requests: 16 by default. Then `InputError` `LimitExceeded`. */
  readonly maxRounds?: number | undefined
  /** The largest state in characters: 65,536 by default. */
  readonly maxChars?: number | undefined
}

/**
 * Sets the keys and bounds of the state of requests that wait for input. A key that is too short fails the start.
 *
 * @example
 * server.use(requestState({ keys: [process.env["STATE_KEY"]!] }))
 */
export const requestState = (options: RequestStateOptions): Service =>
  serve(lazily(() => import("@skein/server/RequestState"), ({ layer }) => layer(options)))

/**
 * Sets whether clients see the message and the line of an unexpected error, instead of a reference. Without it, they do with
 * `SKEIN_DEVELOPMENT=true` in the environment, and in the processes of test runners.
 *
 * @example
 * const { url } = await new AsyncServer(description).use(development(false), ...tools).listen({ port: 0 })
 */
export const development = (isDevelopment: boolean): Service =>
  serve(Layer.succeed(HandlerError.Development, isDevelopment))

/** Calls a function of the application. Its failure is logged, and has the value of `failed`. */
const orWarn = <A, B>(message: string, run: () => Awaitable<A>, failed: B): Effect.Effect<A | B> =>
  Effect.catchCause(
    Effect.tryPromise(async () => run()),
    (cause) => Effect.as(Effect.logWarning(message, cause), failed)
  )

/** A change of the lists or of a resource, as plain JSON. */
export type ServerChange =
  | { readonly _tag: "List"; readonly kind: "tools" | "resources" | "prompts" }
  | { readonly _tag: "Resource"; readonly uri: string; readonly parent?: string | undefined }

/** Carries changes from each process to all processes, including the publishing one. */
export interface ServerEventBus {
  /** Publishes a change. A change that cannot be published is lost, with a warning in the log. */
  readonly publish: (change: ServerChange) => Awaitable<void>
  /** Calls the function with every change. Returns a function that ends it. */
  readonly subscribe: (onChange: (change: ServerChange) => void) => Awaitable<() => Awaitable<void>>
}

/**
 * Notifies the clients of all processes of a server of its changes, over a shared system such as Redis or NATS. A single process
 * needs no bus.
 *
 * @example
 * server.use(eventBus({
 *   publish: (change) => redis.publish("changes", JSON.stringify(change)),
 *   subscribe: async (onChange) => {
 *     await redis.subscribe("changes", (text) => onChange(JSON.parse(text)))
 *     return () => redis.unsubscribe("changes")
 *   }
 * }))
 */
export const eventBus = ({ publish, subscribe }: ServerEventBus): Service =>
  serve(Layer.succeed(EventBus, {
    publish: (change) => orWarn("a change was not published on the event bus", () => publish(change), undefined),
    subscribe: (onChange) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.promise(async () => subscribe(onChange)),
        (unsubscribe) => orWarn("the subscription of the event bus did not end", unsubscribe, undefined)
      ))
  }))

/** The events of the streams of HTTP sessions, for clients that reconnect after a lost connection. */
export interface HttpEventStore {
  /** Stores an event. It must not throw or block. `client` identifies the principal or the address of the session. */
  readonly append: (session: string, stream: number, event: number, data: string, client?: string) => void
  /** Called when a stream is complete. Its events should be stored for a while. */
  readonly complete: (session: string, stream: number, client?: string) => void
  /** Called when a session has ended. Its events are no longer needed. */
  readonly forget: (session: string) => void
  /**
   * Returns the data of all events of a stream after one of its events (0 for all), in order, or `undefined` if some of them are
   * no longer stored. It must include all events that were appended before the call.
   */
  readonly read: (
    session: string,
    stream: number,
    after: number
  ) => Awaitable<ReadonlyArray<string> | undefined>
  /** Resolves when all workers can read the events that were appended before. A shared store that writes them later has it. */
  readonly flush?: (() => Awaitable<void>) | undefined
}

/**
 * Stores the events of HTTP sessions in a place of yours. Without it, they are in memory. If `read` fails, it is logged, and
 * the client receives no earlier events.
 *
 * @example
 * server.use(eventStore(redisEvents))
 */
export const eventStore = (store: HttpEventStore): Service =>
  serve(lazily(() => import("@skein/server/EventStore"), ({ EventStore }) =>
    Layer.succeed(EventStore, {
      append: (...event) => store.append(...event),
      complete: (...stream) => store.complete(...stream),
      forget: (session) => store.forget(session),
      read: (...position) =>
        orWarn("the events of a stream were not read from the event store", () => store.read(...position), undefined),
      ...(store.flush === undefined ? {} : {
        flush: orWarn(
          "the events of streams were not written to the event store",
          async () => store.flush?.(),
          undefined
        )
      })
    })))
