/**
 * The class `AsyncClientPool`: clients of many servers.
 */
import * as Core from "@skein/client/AsyncClientPool"
import type { Transport } from "../base/definition.ts"
import type { ObservedClient } from "../base/observed.ts"
import type { Prompt, Resource, ResourceTemplate, Tool } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { Abortable } from "./calls.ts"
import type { ClientMethods } from "./clientMethods.ts"
import type { ClientError, PoolError } from "./errors.ts"
import type { AsyncHandlers } from "./handlers.ts"
import type { ConfigEntry, ConfigSource } from "./nodeConfig.ts"
import type { ClientMiddleware } from "./middleware.ts"
import { type ClientOptions, type ReconnectPolicy, toCore } from "./options.ts"
import type { AsyncToolkit, ToolkitOptions } from "./toolkit.ts"

/** A server of a pool: its transport, and the options of its client. */
export interface PoolServer {
  readonly transport: Transport
  readonly options?: ClientOptions | undefined
  /** How long one attempt to open it may take: the pool's `timeout` by default. */
  readonly timeout?: Duration | undefined
}

/** The handlers of a pool, which answer all of its servers, and the signal that closes it. */
export interface AsyncOptions extends AsyncHandlers, ObservedClient {
  /** Closes the pool when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a pool. */
export interface PoolOptions extends AsyncOptions {
  /** How many servers are opened at the same time: 8 by default. One that is not open after 5 seconds no longer counts. */
  readonly concurrency?: number | undefined
  /** How long one attempt to open a server may take: 30 seconds by default. */
  readonly timeout?: Duration | undefined
  /** Whether the lists of a server are stored until it reports that they have changed: true by default. */
  readonly cacheLists?: boolean | undefined
  /** Functions around each call of each server, outermost first. `call.server` is the name of the server. */
  readonly middleware?: ReadonlyArray<ClientMiddleware> | undefined
  /** How many servers the pool has at most: 100 by default. */
  readonly maxServers?: number | undefined
  /**
   * When a broken server is opened again: the defaults are those of a `ReconnectPolicy`, with a `maxDelay` of 1 minute and
   * without `maxAttempts`.
   */
  readonly reconnect?: ReconnectPolicy | undefined
}

/** The options of a pool that has a configuration. */
export interface PoolConfigOptions extends PoolOptions {
  /**
   * Selects servers by their entries, before they are started: all by default. The others are in `config.excluded`.
   *
   * @example
   * include: (_, entry) => approved.has(JSON.stringify([entry.name, entry.raw]))
   */
  readonly include?: ((name: string, entry: ConfigEntry) => boolean) | undefined
  /**
   * An entry that cannot be used is left out with a warning and is in `config.problems` (`"warn"`, the default), or rejects
   * (`"fail"`).
   */
  readonly onInvalidConfig?: "warn" | "fail" | undefined
  /** How often the configuration is read again, to apply its changes: never by default. */
  readonly watchInterval?: Duration | undefined
}

/** The client of a server of a pool. It has no `close`: it ends with the pool. */
export interface PooledClient extends ClientMethods {}

/** The state of a server of a pool. */
export type PoolState =
  | {
    /** The server is being opened, or waits for `concurrency`. */
    readonly _tag: "Opening"
    /** The number of the attempt, from 1. */
    readonly attempt: number
  }
  | { readonly _tag: "Open"; readonly client: PooledClient }
  | {
    /** The server could not be opened, or its client has ended. */
    readonly _tag: "Broken"
    readonly error: ClientError
    /** How many attempts in a row have failed. */
    readonly attempt: number
    /** When it is opened again, in milliseconds since 1970. `undefined` if it waits for `restart`. */
    readonly retryAt: number | undefined
  }

/** A server of a pool: its name and its state. */
export interface PoolEntry {
  readonly name: string
  readonly state: PoolState
}

/** The names of the servers that have changed since the previous element. */
export interface PoolChange {
  /** Servers that were added or removed, or whose state has changed. */
  readonly servers: ReadonlyArray<string>
  /** Servers whose list of tools has changed. */
  readonly tools: ReadonlyArray<string>
  /** Servers whose list of prompts has changed. */
  readonly prompts: ReadonlyArray<string>
  /** Servers whose list of resources, or of resource templates, has changed. */
  readonly resources: ReadonlyArray<string>
}

/** The list that one server returned, or the error that it failed with. */
export type Listing<A> =
  | { readonly server: string; readonly items: ReadonlyArray<A>; readonly error?: undefined }
  | { readonly server: string; readonly error: ClientError; readonly items?: undefined }

/** The changes after a configuration was read again, by the names of servers. */
export interface ConfigReload {
  readonly added: ReadonlyArray<string>
  /** Servers whose definition has changed. They were closed, and are opened with the new one. */
  readonly changed: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  /** Servers that keep their connections, including those whose new entry is invalid. */
  readonly unchanged: ReadonlyArray<string>
  /** The entries that cannot be used. */
  readonly problems: ReadonlyArray<PoolError>
}

/** A configuration as it was applied last. */
export interface AppliedConfig {
  /** The servers by name, with their entries. */
  readonly servers: ReadonlyMap<string, { readonly entry: ConfigEntry; readonly server: PoolServer }>
  /** The names of disabled entries. */
  readonly disabled: ReadonlyArray<string>
  /** The entries that `include` has left out. */
  readonly excluded: ReadonlyArray<ConfigEntry>
  /** One error for each entry that cannot be used, and for each configuration among several. */
  readonly problems: ReadonlyArray<PoolError>
}

/**
 * Clients of many servers, each opened and supervised separately. A server that cannot be opened, hangs or ends does not affect
 * the others, and is opened again after a delay. Do not trust the descriptions of remote tools: ask the user before an
 * important call.
 *
 * @example
 * await using pool = await AsyncClientPool.make({
 *   files: { transport: Stdio.transport({ command: "files-server" }) },
 *   search: { transport: Http.transport({ url: "https://example.com/mcp" }) }
 * })
 * const { call, tools } = await pool.toolkit()
 * const { name, arguments: args } = await askModel(tools)
 * const { content } = await call(name, args)
 */
export interface AsyncClientPool {
  /**
   * The client of a server. Waits while the server is being opened. Rejects at once with the error of a broken server, or with
   * `ServerNotFound`. Call it for each piece of work: after a client has given up, the pool makes a new one.
   */
  client(name: string, options?: Abortable): Promise<PooledClient>
  /** The servers and their present states, in the order in which they were added. */
  readonly entries: ReadonlyArray<PoolEntry>
  /** The entries, now and after each change. A slow reader gets the latest entries only. Ends with the pool. */
  states(options?: Abortable): AsyncIterable<ReadonlyArray<PoolEntry>>
  /** The names of the servers whose state or lists have changed: all servers first. A slow reader misses no change. */
  changes(options?: Abortable): AsyncIterable<PoolChange>
  /** Adds a server and starts to open it. Rejects with `DuplicateName` or `LimitExceeded`. */
  add(name: string, server: PoolServer): Promise<void>
  /** Closes a server and removes it, and resolves when it has ended. Returns whether the pool had it. */
  remove(name: string): Promise<boolean>
  /** Closes a server and opens it again, with another definition if there is one. Rejects with `ServerNotFound`. */
  restart(name: string, server?: PoolServer): Promise<void>
  /** The tools of each server, within 30 seconds: `toolkit` gives them unique names. */
  tools(options?: Abortable): Promise<ReadonlyArray<Listing<Tool>>>
  /** The resources of each server, within 30 seconds. */
  resources(options?: Abortable): Promise<ReadonlyArray<Listing<Resource>>>
  /** The resource templates of each server, within 30 seconds. */
  resourceTemplates(options?: Abortable): Promise<ReadonlyArray<Listing<ResourceTemplate>>>
  /** The prompts of each server, within 30 seconds. */
  prompts(options?: Abortable): Promise<ReadonlyArray<Listing<Prompt>>>
  /**
   * The tools of the servers that are ready now, for a language model. Make a toolkit for each turn: the pool stores the lists
   * of its servers until they change.
   *
   * @example
   * const toolkit = await pool.toolkit({ include: (server, { name }) => name !== "delete", maxTools: 128 })
   */
  toolkit(options?: ToolkitOptions): Promise<AsyncToolkit>
  /** Closes all servers in parallel. Pending calls reject with `Closed`. Resolves when nothing runs any more. */
  close(): Promise<void>
  /** Closes the pool at the end of a block: `await using pool = await AsyncClientPool.make(servers)`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** A pool whose servers are those of a configuration. */
export interface AsyncConfiguredPool extends AsyncClientPool {
  /** The configuration as it was applied last. */
  readonly config: AppliedConfig
  /**
   * Reads the configuration again and applies the differences: a server whose entry is unchanged or has become invalid keeps its
   * connection. Rejects with `ConfigUnreadable` or `InvalidConfig`, and then changes nothing.
   */
  reload(): Promise<ConfigReload>
}

/** The class of `AsyncClientPool`. */
export interface AsyncClientPoolClass {
  /**
   * Makes a pool of servers by their names, and starts to open them. It does not wait for any server. Rejects with
   * `LimitExceeded` for more than `maxServers`.
   */
  make(servers: { readonly [name: string]: PoolServer }, options?: PoolOptions): Promise<AsyncClientPool>
  /**
   * Makes a pool of the servers of a configuration, or of several, of which a later one replaces the entries of an earlier one.
   * Rejects with `ConfigUnreadable` or `InvalidConfig` if none can be used.
   *
   * @example
   * const pool = await AsyncClientPool.fromConfig(NodeConfig.file("mcp.json"), { watchInterval: "2 seconds" })
   */
  fromConfig(
    source: ConfigSource | ReadonlyArray<ConfigSource>,
    options?: PoolConfigOptions
  ): Promise<AsyncConfiguredPool>
  /** Tells whether a value is a pool: `value instanceof AsyncClientPool`. */
  [Symbol.hasInstance](value: unknown): value is AsyncClientPool
}

export const AsyncClientPool: AsyncClientPoolClass = {
  make: async (servers, options = {}) =>
    (await Core.AsyncClientPool.make(servers as never, await toCore(options))) as unknown as AsyncClientPool,
  fromConfig: async (source, options = {}) =>
    (await Core.AsyncClientPool.fromConfig(source as never, await toCore(options))) as unknown as AsyncConfiguredPool,
  [Symbol.hasInstance]: (value): value is AsyncClientPool => value instanceof Core.AsyncClientPool
}
