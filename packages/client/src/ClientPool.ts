/**
 * A pool of clients, one for each of many servers, each opened and supervised separately: a failing server is one
 * broken entry.
 *
 * `make` opens all servers in parallel and does not wait for them. Each server has a scope of its own, so that its
 * failure does not affect the others. A server that cannot be opened, or whose client has ended, is opened again after
 * a delay (`reconnect`).
 *
 * The pool's clients use the services of the context in which `make` runs (`Elicitation`, `Sampling`, `Roots`), also
 * for servers that are added later. `Credentials` are the exception: the pool removes the service, because it would
 * send them to every server. Give each transport its own credentials.
 *
 * **Gotchas.** A client reconnects automatically. After it has given up, its entry is `Broken`, and the pool makes a
 * new client. Therefore call `client(name)` for each piece of work instead of storing a client. A server over HTTP
 * without a standalone stream (2026-07-28, for instance) stays `Open` after it has become unreachable until the next
 * call, unless its client has a `heartbeat`.
 *
 * @example
 * const pool = yield* ClientPool.make({
 *   files: { transport: Stdio.transport({ command: "files-server" }) },
 *   search: { transport: Http.transport({ url: "https://example.com/mcp" }) }
 * })
 * for (const { result, server } of yield* pool.tools) {
 *   if (Result.isSuccess(result)) console.log(server, result.success.length)
 *   else console.log(server, result.failure.message)
 * }
 */
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Client } from "./Client.ts"
import type { ClientError } from "./ClientError.ts"
import { DuplicateName, LimitExceeded, PoolError, ServerNotFound } from "./PoolError.ts"
import { Credentials } from "./Credentials.ts"
import { Broadcast } from "./internal/base/broadcast.ts"
import { listResult } from "./internal/calls/pages.ts"
import { type AppliedConfig, type ConfigSource, LiveConfig, type Reload } from "./internal/pool/configuredPool.ts"
import { type PoolChange, PoolChanges } from "./internal/pool/poolChanges.ts"
import { PoolEntry, type Server, type State } from "./internal/pool/poolEntry.ts"
import type { Items, Kind } from "./internal/pool/serverLists.ts"
import type { Ready, ReadyOptions } from "./internal/toolkit/source.ts"
import type { Middleware } from "./Middleware.ts"
import * as Reconnect from "./Reconnect.ts"
import type * as ServerConfig from "./ServerConfig.ts"
import type { Telemetry } from "./Telemetry.ts"

export type { AppliedConfig, Config, ConfigSource, ConfiguredServer, Reload } from "./internal/pool/configuredPool.ts"
export type { PoolChange } from "./internal/pool/poolChanges.ts"
export type { Broken, Open, Opening, Server, State } from "./internal/pool/poolEntry.ts"
export type { Ready, ReadyOptions } from "./internal/toolkit/source.ts"

/** The options of a pool. */
export interface Options {
  /**
   * How many servers are opened at the same time: 8 by default. The others wait. A server that is not open after 5
   * seconds goes on, and the next one begins.
   */
  readonly concurrency?: number | undefined
  /** How long one attempt to open a server may take: 30 seconds by default. Then the attempt fails with `Timeout`. */
  readonly timeout?: Duration.Input | undefined
  /**
   * Whether the lists of a server are stored until the server reports that they have changed: true by default. The pool
   * then subscribes to the changes of a server when one of its lists is needed for the first time, which over HTTP
   * takes one stream of that server. A server that reports no changes is asked each time, as all are with `false`.
   */
  readonly cacheLists?: boolean | undefined
  /**
   * Functions around each call of each server, outermost first: see `Middleware`. None by default. `call.server` is the
   * name of the server. They are outside of the middleware of the server's own `options`.
   */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** Makes a span for each request of each server whose `options` have none: see `Telemetry`. No spans by default. */
  readonly telemetry?: Telemetry | undefined
  /** How many servers a pool has at most: 100 by default. `make` and `add` fail with `LimitExceeded` beyond that. */
  readonly maxServers?: number | undefined
  /**
   * When a broken server is opened again. The defaults are those of `Reconnect.Policy`, but `maxDelay` is 1 minute and
   * `maxAttempts` is unlimited. After `maxAttempts` the entry stays `Broken` until `restart`. How a client reconnects
   * is one of its own options.
   */
  readonly reconnect?: Reconnect.Policy | undefined
}

/** A server of the pool: its name and its state. */
export interface Entry {
  readonly name: string
  readonly state: State
}

/** The list that one server returned, or the error that it failed with. */
export interface Listing<A> {
  readonly server: string
  readonly result: Result.Result<ReadonlyArray<A>, ClientError>
}

/**
 * The lists of all servers, in the order of `entries` and requested in parallel. A server that does not declare the
 * capability has an empty list. A server that takes longer than 30 seconds, including its opening, is listed with the
 * error `Timeout`.
 */
export type Listings<A> = Effect.Effect<ReadonlyArray<Listing<A>>>

/** A pool of clients. Made by {@link make} or {@link layer}. */
export class ClientPool extends Context.Service<ClientPool, {
  /**
   * The client of a server. Waits while the server is being opened. Fails at once with the error of a broken server, or
   * with the `PoolError` `ServerNotFound`.
   */
  readonly client: (name: string) => Effect.Effect<Client, ClientError | PoolError>
  /** The servers and their present states, in the order in which they were added. */
  readonly entries: ReadonlyArray<Entry>
  /** The entries, now and after each change. A slow reader gets the latest entries only. Ends with the pool. */
  readonly states: Stream.Stream<ReadonlyArray<Entry>>
  /**
   * The names of the servers whose state or lists have changed since the previous element. The first element has all
   * servers. A reader that lists the named servers again after each element misses no change. A slow reader gets several
   * changes in one element. While it runs, the tools of each server are listed as soon as the server is open. Ends with
   * the pool.
   *
   * @example
   * yield* Stream.runForEach(pool.changes, ({ tools }) => Effect.logInfo(`The tools of ${tools.join(", ")} changed`))
   */
  readonly changes: Stream.Stream<PoolChange>
  /**
   * The tools of the servers that are ready now, in the order of `entries`. `Client.toolkit` uses it. It does not wait
   * for a server that is broken or reopened. It waits for the first opening of a server, and then for its list, until
   * `readyTimeout` after the beginning of each. If a list takes longer, the previous one is used. Servers that
   * `servers` excludes are neither waited for nor listed.
   */
  readonly ready: (options?: ReadyOptions) => Effect.Effect<ReadonlyArray<Ready>>
  /** Adds a server and starts to open it. Does not wait for that. Fails with `DuplicateName` or `LimitExceeded`. */
  readonly add: (name: string, server: Server) => Effect.Effect<void, PoolError>
  /**
   * Closes a server and removes it. Returns whether the pool had it. The name is free at once. The effect ends when the
   * server's process or connections have ended, within the timeouts of the transport.
   */
  readonly remove: (name: string) => Effect.Effect<boolean>
  /**
   * Closes a server and opens it again, even after the pool has given up on it. Waits for the closing, but not for the
   * opening. A second argument replaces the definition of the server. Fails with `ServerNotFound`.
   */
  readonly restart: (name: string, server?: Server) => Effect.Effect<void, PoolError>
  readonly tools: Listings<Tool>
  readonly resources: Listings<Resource>
  readonly resourceTemplates: Listings<ResourceTemplate>
  readonly prompts: Listings<Prompt>
}>()("@skein/client/ClientPool") {}

/**
 * Makes a pool of servers by their names. Closing the scope closes all of them in parallel. The effect does not wait
 * for any server: see `entries` and `states`. Fails with `LimitExceeded` for more than `maxServers`.
 *
 * @example
 * const pool = yield* ClientPool.make({ files: { transport: Stdio.transport({ command: "files-server" }) } })
 * const files = yield* pool.client("files")
 */
export const make = (
  servers: Readonly<Record<string, Server>>,
  options: Options = {}
): Effect.Effect<ClientPool["Service"], PoolError, Scope.Scope> => makeWith(servers, options, () => undefined)

/** The same, with the reason why a server that a configuration names is not in the pool. */
const makeWith = Effect.fnUntraced(function*(
  servers: Readonly<Record<string, Server>>,
  options: Options,
  whyMissing: (name: string) => string | undefined
): Effect.fn.Return<ClientPool["Service"], PoolError, Scope.Scope> {
  const { maxServers = 100 } = options
  const context = yield* Effect.context<never>()
  const withContext = (effect: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.updateContext(
      effect,
      (outside: Context.Context<never>): Context.Context<never> =>
        Context.omit(Credentials)(Context.merge(outside, context))
    )
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const pooled = new Map<string, PoolEntry>()
  const entries = (): ReadonlyArray<Entry> => Array.from(pooled.values(), ({ name, state }) => ({ name, state }))
  const states = new Broadcast(1, entries)
  const changes = new PoolChanges(() => [...pooled.keys()], maxServers)
  const policy = Reconnect.resolve({ maxDelay: "1 minute", maxAttempts: Infinity, ...options.reconnect })
  const shared = {
    openPermits: yield* Semaphore.make(options.concurrency ?? 8),
    timeout: options.timeout ?? "30 seconds",
    policy,
    isWatched: false,
    cacheLists: options.cacheLists ?? true,
    middleware: options.middleware ?? [],
    telemetry: options.telemetry,
    onChange: (name: string, aspect: keyof PoolChange) => {
      changes.publish(aspect, name)
      if (aspect === "servers" && states.hasListeners) {
        states.publish(entries())
      }
    }
  }
  yield* Scope.addFinalizer(
    scope,
    Effect.sync(() => {
      states.end()
      changes.end()
    })
  )
  const watch = Effect.suspend(() => {
    if (shared.isWatched) {
      return Effect.void
    }
    shared.isWatched = true
    return Effect.forEach(pooled.values(), (entry) => withContext(entry.watch), { discard: true })
  })

  const find = (name: string): Effect.Effect<PoolEntry, PoolError> =>
    Effect.suspend(() => {
      const entry = pooled.get(name)
      if (entry !== undefined) return Effect.succeed(entry)
      const why = whyMissing(name)
      const message = `The pool has no server named ${name}${why === undefined ? "" : `: ${why}`}`
      return Effect.fail(new PoolError({ reason: new ServerNotFound({ message, server: name }) }))
    })
  const add: ClientPool["Service"]["add"] = (name, server) =>
    Effect.suspend(() => {
      if (pooled.has(name)) {
        const message = `The pool already has a server named ${name}`
        return Effect.fail(new PoolError({ reason: new DuplicateName({ message, server: name }) }))
      }
      if (pooled.size >= maxServers) {
        const message = `The pool already has maxServers (${maxServers}) servers`
        return Effect.fail(new PoolError({ reason: new LimitExceeded({ message, maxServers }) }))
      }
      const entry = new PoolEntry(name, server, shared, Scope.forkUnsafe(scope, "parallel"))
      pooled.set(name, entry)
      return withContext(entry.start)
    })
  for (const [name, server] of Object.entries(servers)) yield* add(name, server)

  const list = <K extends Kind>(kind: K): Listings<Items[K]> =>
    Effect.suspend(() =>
      Effect.forEach([...pooled.values()], (entry) =>
        Effect.map(
          listResult(entry.list(kind), `${entry.name} did not return its list`),
          (result): Listing<Items[K]> => ({ server: entry.name, result })
        ), { concurrency: "unbounded" })
    )
  return {
    client: (name) => Effect.flatMap(find(name), ({ client }) => client),
    get entries() {
      return entries()
    },
    states: states.stream,
    changes: Stream.unwrap(Effect.as(watch, changes.stream)),
    ready: ({ readyTimeout = 0, servers } = {}) =>
      Effect.suspend(() =>
        Effect.forEach(
          [...pooled.values()].filter(({ name }) => servers?.(name) ?? true),
          (entry) => entry.ready(Duration.toMillis(Duration.fromInputUnsafe(readyTimeout))),
          { concurrency: "unbounded" }
        )
      ),
    add,
    remove: (name) =>
      Effect.suspend(() => {
        const entry = pooled.get(name)
        if (entry === undefined) return Effect.succeed(false)
        pooled.delete(name)
        return Effect.as(entry.close, true)
      }),
    restart: (name, server) => Effect.flatMap(find(name), (entry) => withContext(entry.restart(server))),
    tools: list("tools"),
    resources: list("resources"),
    resourceTemplates: list("resourceTemplates"),
    prompts: list("prompts")
  }
})

/**
 * Provides a pool of servers, as {@link make} makes it.
 *
 * @example
 * const Live = ClientPool.layer({ files: { transport: Stdio.transport({ command: "files-server" }) } })
 * const program = Effect.gen(function*() {
 *   const pool = yield* ClientPool.ClientPool
 *   return yield* pool.tools
 * }).pipe(Effect.provide(Live))
 */
export const layer = (
  servers: Readonly<Record<string, Server>>,
  options: Options = {}
): Layer.Layer<ClientPool, PoolError> => Layer.effect(ClientPool, make(servers, options))

type PoolService = ClientPool["Service"]

/** The options of a pool that has a configuration. */
export interface ConfigOptions extends Options {
  /**
   * Selects servers by their entries, before they are started: all by default. The others are in `config.excluded`.
   * Disabled entries are never started. It runs for each entry each time that the configuration is read, so that
   * `reload` applies a changed decision. It must not throw.
   *
   * @example
   * include: (_, entry) => approved.has(JSON.stringify([entry.name, entry.raw]))
   */
  readonly include?: ((name: string, entry: ServerConfig.Entry) => boolean) | undefined
  /**
   * The handling of an entry that cannot be used, and of such a configuration among several: it is left out with a
   * warning in the log, and is in `config.problems` (`"warn"`, the default), or it fails the pool (`"fail"`). Use
   * `"fail"` if a later configuration disables servers that must not run. If no configuration can be used, the pool
   * fails in both cases.
   */
  readonly onInvalidConfig?: "warn" | "fail" | undefined
  /**
   * How often the configuration is read again, to apply its changes: never by default. A configuration that cannot be
   * read changes nothing, and is logged once. `"2 seconds"` suits a file that a person edits.
   */
  readonly watchInterval?: Duration.Input | undefined
}

/** A pool whose servers are those of a configuration. */
export interface ConfiguredPool extends PoolService {
  /**
   * The configuration as it was applied last: the servers by name, the disabled and the excluded ones, and one error per
   * invalid entry, and per configuration that cannot be used.
   */
  readonly config: AppliedConfig
  /**
   * Reads the configuration again and applies the differences. A server whose entry is unchanged keeps its connection.
   * One whose entry has changed is closed and opened again, and one without an entry is closed and removed. A server
   * whose entry has become invalid keeps its connection, and so do those of one of several configurations that cannot
   * be used. Servers that were added by `add` are not affected. Waits for the closings. Fails with `ConfigUnreadable` or
   * `InvalidConfig` if no configuration can be used, and then changes nothing.
   */
  readonly reload: Effect.Effect<Reload, PoolError>
}

/**
 * Makes a pool of the servers of a configuration, or of several, of which a later one replaces the entries of an
 * earlier one. Like `make`, it does not wait for any server.
 *
 * Each entry that is invalid, or for which the pool has no place (`maxServers`), is logged and listed in
 * `config.problems`, and so is a configuration that cannot be used beside others. The other servers run. Fails with
 * `ConfigUnreadable` or `InvalidConfig` if no configuration can be used; `onInvalidConfig` makes each problem an error.
 *
 * `NodeConfig` makes sources from files and objects. In browsers, make one with `ServerConfig.read`.
 *
 * @example
 * const pool = yield* ClientPool.fromConfig(
 *   [NodeConfig.file("~/.cursor/mcp.json", { optional: true }), NodeConfig.file(".cursor/mcp.json")],
 *   { watchInterval: "2 seconds" }
 * )
 * for (const { message } of pool.config.problems) yield* Effect.logWarning(message)
 */
export const fromConfig = Effect.fnUntraced(function*(
  source: ConfigSource | ReadonlyArray<ConfigSource>,
  options: ConfigOptions = {}
): Effect.fn.Return<ConfiguredPool, PoolError, Scope.Scope> {
  const { include, onInvalidConfig = "warn", watchInterval } = options
  const pool = yield* makeWith({}, options, (name) => config.whyMissing(name))
  const sources: ReadonlyArray<ConfigSource> = "read" in source ? [source] : source
  const config: LiveConfig = new LiveConfig(sources, {
    add: (name, { server }) => pool.add(name, server),
    remove: pool.remove,
    restart: (name, { server }) => pool.restart(name, server)
  }, { include, isStrict: onInvalidConfig === "fail" })
  yield* config.reload
  if (watchInterval !== undefined) yield* Effect.forkScoped(config.watch(watchInterval))
  // The members of the pool include getters, which must stay getters.
  return Object.defineProperties({
    get config() {
      return config.current
    },
    reload: config.reload
  }, Object.getOwnPropertyDescriptors(pool)) as ConfiguredPool
})

/**
 * Provides a pool of the servers of a configuration, as {@link fromConfig} makes it. All of its options
 * apply. A program that calls `reload` or reads `config` uses {@link fromConfig} instead.
 *
 * @example
 * const Live = ClientPool.layerFromConfig(NodeConfig.file(".vscode/mcp.json"))
 */
export const layerFromConfig = (
  source: ConfigSource | ReadonlyArray<ConfigSource>,
  options: ConfigOptions = {}
): Layer.Layer<ClientPool, PoolError> => Layer.effect(ClientPool, fromConfig(source, options))
