/**
 * A pool of clients as a class, for programs that do not use Effect: many servers, each opened and supervised separately.
 *
 * It is `ClientPool` with promises, and has the handlers, signals and the end of `AsyncClient`. In addition it has the
 * tools of all servers for a language model (`toolkit`), with a unique name for each.
 *
 * - **Servers.** The pool opens its servers in parallel, and does not wait for them. A server that cannot be opened, hangs or
 *   ends does not affect the others, and is opened again after a delay (`reconnect`).
 * - **Handlers** (`elicit`, `sample` and others) answer all servers. `server.label` in a request is the name of the server
 *   in the pool.
 * - **Errors.** A promise rejects with the `ClientError` of a server, or with a `PoolError`.
 * - **The end.** `close` ends all servers in parallel and everything that still runs: pending calls reject with the reason
 *   `Closed`, loops end without an error, and the signals of handlers abort. So does `await using`.
 *
 * **Gotchas.** Call `client(name)` for each piece of work instead of storing a client: after a client has given up, the pool
 * makes a new one. Do not trust the descriptions of remote tools: ask the user before an important call.
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
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ClientError } from "./ClientError.ts"
import * as ClientPool from "./ClientPool.ts"
import { ClientMethods } from "./internal/async/clientMethods.ts"
import { type AsyncToolkit, makeToolkit, type ToolkitOptions } from "./internal/async/asyncToolkit.ts"
import type { Abortable, AsyncHandlers } from "./internal/async/options.ts"
import { openWith, type PromiseRunner } from "./internal/async/promiseRunner.ts"
import { bindOnRead } from "./internal/client/client.ts"

export type { AsyncToolkit, ToolkitOptions, ToolkitTool } from "./internal/async/asyncToolkit.ts"

/** The handlers of a pool, and the signal that closes it. */
export interface AsyncOptions extends AsyncHandlers {
  /** Closes the pool when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a pool: those of `ClientPool`, the handlers, and the signal. */
export interface Options extends ClientPool.Options, AsyncOptions {}

/** The options of a pool that has a configuration: those of `ClientPool.fromConfig`, the handlers, and the signal. */
export interface ConfigOptions extends ClientPool.ConfigOptions, AsyncOptions {}

/** The client of a server of the pool: the methods of an `AsyncClient`, without its end, which is that of the pool. */
export type PooledClient = ClientMethods

/** The state of a server. `Open` has its client. */
export type State = ClientPool.Opening | ClientPool.Broken | {
  readonly _tag: "Open"
  readonly client: PooledClient
}

/** A server of the pool: its name and its state. */
export interface Entry {
  readonly name: string
  readonly state: State
}

/** The list that one server returned, or the error that it failed with. */
export type Listing<A> =
  | { readonly server: string; readonly items: ReadonlyArray<A>; readonly error?: undefined }
  | { readonly server: string; readonly error: ClientError; readonly items?: undefined }

type Pool = ClientPool.ClientPool["Service"]

/** A pool of clients. Make it with {@link AsyncClientPool.make} or {@link AsyncClientPool.fromConfig}, and close it. */
export class AsyncClientPool implements AsyncDisposable {
  readonly #pool: Pool
  readonly #runner: PromiseRunner
  readonly #warned = { about: "" }

  protected constructor(pool: Pool, runner: PromiseRunner) {
    this.#pool = pool
    this.#runner = runner
  }

  static {
    bindOnRead(this.prototype)
  }

  /**
   * Makes a pool of servers by their names, and starts to open them. It does not wait for any server. Rejects with the
   * `PoolError` `LimitExceeded` for more than `maxServers`, and for `roots` with `InvalidRoot`.
   *
   * @example
   * const pool = await AsyncClientPool.make({ files: { transport: Stdio.transport({ command: "files-server" }) } })
   */
  static async make(
    servers: Readonly<Record<string, ClientPool.Server>>,
    options: Options = {}
  ): Promise<AsyncClientPool> {
    const { opened, runner } = await openWith("pool", options, options.signal, ClientPool.make(servers, options))
    return new AsyncClientPool(opened, runner)
  }

  /**
   * Makes a pool of the servers of a configuration, or of several: see `ClientPool.fromConfig`. Rejects with the `PoolError`
   * `ConfigUnreadable` or `InvalidConfig`.
   *
   * @example
   * const pool = await AsyncClientPool.fromConfig(NodeConfig.file("mcp.json"), { watchInterval: "2 seconds" })
   */
  static async fromConfig(
    source: ClientPool.ConfigSource | ReadonlyArray<ClientPool.ConfigSource>,
    options: ConfigOptions = {}
  ): Promise<AsyncConfiguredPool> {
    const { opened, runner } = await openWith(
      "pool",
      options,
      options.signal,
      ClientPool.fromConfig(source, options)
    )
    return new AsyncConfiguredPool(opened, runner)
  }

  // ---- the servers

  /**
   * The client of a server. Waits while the server is being opened. Rejects at once with the error of a broken server, or
   * with the `PoolError` `ServerNotFound`.
   *
   * @example
   * const files = await pool.client("files")
   * const { content } = await files.callTool("read", { path: "a.txt" })
   */
  client(name: string, options?: Abortable<{}>): Promise<PooledClient> {
    return this.#runner.run(
      Effect.map(this.#pool.client(name), (client) => new ClientMethods(client, this.#runner)),
      options?.signal
    )
  }

  /** The servers and their present states, in the order in which they were added. */
  get entries(): ReadonlyArray<Entry> {
    return this.#entriesOf(this.#pool.entries)
  }

  /** The entries, now and after each change. A slow reader gets the latest entries only. Ends with the pool. */
  states(options?: Abortable<{}>): AsyncIterable<ReadonlyArray<Entry>> {
    return this.#runner.iterate(Stream.map(this.#pool.states, this.#entriesOf), options?.signal)
  }

  /**
   * The names of the servers whose state or lists have changed since the previous element: see `ClientPool.changes`.
   *
   * @example
   * for await (const { servers, tools } of pool.changes()) {
   *   if (servers.length > 0 || tools.length > 0) show((await pool.toolkit()).tools)
   * }
   */
  changes(options?: Abortable<{}>): AsyncIterable<ClientPool.PoolChange> {
    return this.#runner.iterate(this.#pool.changes, options?.signal)
  }

  /** Adds a server and starts to open it. Does not wait for that. Rejects with `DuplicateName` or `LimitExceeded`. */
  add(name: string, server: ClientPool.Server): Promise<void> {
    return this.#runner.run(this.#pool.add(name, server))
  }

  /** Closes a server and removes it, and resolves when it has ended. Returns whether the pool had it. */
  remove(name: string): Promise<boolean> {
    return this.#runner.run(this.#pool.remove(name))
  }

  /**
   * Closes a server and opens it again, with another definition if there is one. Waits for the closing only. Rejects with
   * `ServerNotFound`.
   */
  restart(name: string, server?: ClientPool.Server): Promise<void> {
    return this.#runner.run(this.#pool.restart(name, server))
  }

  // ---- the lists of all servers, each within 30 seconds

  /** The tools of each server, with their own names: see {@link AsyncClientPool.toolkit} for unique names. */
  tools(options?: Abortable<{}>): Promise<ReadonlyArray<Listing<Tool>>> {
    return this.#list(this.#pool.tools, options)
  }

  /** The resources of each server. */
  resources(options?: Abortable<{}>): Promise<ReadonlyArray<Listing<Resource>>> {
    return this.#list(this.#pool.resources, options)
  }

  /** The resource templates of each server. */
  resourceTemplates(options?: Abortable<{}>): Promise<ReadonlyArray<Listing<ResourceTemplate>>> {
    return this.#list(this.#pool.resourceTemplates, options)
  }

  /** The prompts of each server. */
  prompts(options?: Abortable<{}>): Promise<ReadonlyArray<Listing<Prompt>>> {
    return this.#list(this.#pool.prompts, options)
  }

  /**
   * The tools of the servers that are ready now, for a language model. Make a toolkit for each generation: the pool stores
   * the lists of its servers until they change. A server that is opened for the first time is waited for, until
   * `readyTimeout` (2 seconds by default) after the beginning.
   *
   * @example
   * const toolkit = await pool.toolkit({ include: (server, { name }) => name !== "delete", maxTools: 128 })
   */
  toolkit(options?: ToolkitOptions): Promise<AsyncToolkit> {
    return makeToolkit(this.#runner, this.#pool, options, this.#warned)
  }

  /** Closes all servers in parallel. Resolves when nothing runs any more: see the module. */
  close(): Promise<void> {
    return this.#runner.close()
  }

  /** Closes the pool at the end of a block: `await using pool = await AsyncClientPool.make(servers)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  readonly #entriesOf = (entries: ReadonlyArray<ClientPool.Entry>): ReadonlyArray<Entry> =>
    entries.map(({ name, state }) => ({
      name,
      state: state._tag === "Open" ? { _tag: "Open", client: new ClientMethods(state.client, this.#runner) } : state
    }))

  #list<A>(listings: ClientPool.Listings<A>, options: Abortable<{}> | undefined): Promise<ReadonlyArray<Listing<A>>> {
    const listed = Effect.map(
      listings,
      (all) =>
        all.map(({ result, server }): Listing<A> =>
          Result.isSuccess(result) ? { server, items: result.success } : { server, error: result.failure }
        )
    )
    return this.#runner.run(listed, options?.signal)
  }
}

/** A pool whose servers are those of a configuration. Made by {@link AsyncClientPool.fromConfig}. */
export class AsyncConfiguredPool extends AsyncClientPool {
  readonly #pool: ClientPool.ConfiguredPool
  readonly #runner: PromiseRunner

  /** Use {@link AsyncClientPool.fromConfig}. */
  constructor(pool: ClientPool.ConfiguredPool, runner: PromiseRunner) {
    super(pool, runner)
    this.#pool = pool
    this.#runner = runner
  }

  static {
    bindOnRead(this.prototype)
  }

  /** The configuration as it was applied last: the servers, the disabled and excluded ones, and one error per invalid entry. */
  get config(): ClientPool.AppliedConfig {
    return this.#pool.config
  }

  /**
   * Reads the configuration again and applies the differences: see `ClientPool.ConfiguredPool`. Rejects with
   * `ConfigUnreadable` or `InvalidConfig`, and then changes nothing.
   */
  reload(): Promise<ClientPool.Reload> {
    return this.#runner.run(this.#pool.reload)
  }
}
