/**
 * One server in front of many: all servers of a configuration behind one endpoint, each with a prefix before its names.
 *
 * Any revision of the protocol on both sides, over stdio and HTTP. A server that cannot be reached, hangs or crashes affects
 * its own entries only. The configuration may change while the gateway runs: only the servers that differ are opened or closed,
 * and no session of a client ends.
 *
 * The entries are those that hosts have (`mcpServers`, VS Code's `servers`). The member `gateway` of an entry says how the server is
 * offered: see `Members`.
 *
 * @example
 * const Server = McpServer.layer({ name: "desk", version: "1.0.0" }, Gateway.fromConfig(NodeConfig.file("mcp.json")))
 * NodeHttp.runMain(Server, { port: 3000 })
 */
import type { Config, ConfigSource, ConfiguredServer, Reload } from "@skein/client/ClientPool"
import { InvalidEntry, PoolError } from "@skein/client/PoolError"
import * as ServerConfig from "@skein/client/ServerConfig"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { quote } from "@skein/protocol/Text"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { member, type Members, membersOf } from "./internal/servers/members.ts"
import { makeParts, type Parts, type Server, type ServerState } from "./internal/servers/parts.ts"
import type * as Proxy from "./Proxy.ts"

export type { Members } from "./internal/servers/members.ts"
export type { Server, ServerProcess, ServerState } from "./internal/servers/parts.ts"

/** The options of a gateway. */
export interface Options<R = never> {
  /**
   * The prefix of the names and URIs of a server: by default that of its member `gateway`, or else its name, with `_` in place of
   * characters that names of tools do not have. With `""` they stay as they are, and of two equal names that of the first server
   * is offered, with a warning. A name of more than 64 characters is shortened, and ends with a digest.
   */
  readonly prefix?: ((server: string) => string | undefined) | undefined
  /** Further options of the proxy of a server: see `Proxy.Options`. */
  readonly proxy?: ((server: string) => Proxy.Options<R>) | undefined
  /** How many servers the gateway has at most: 100 by default. Raise it for more. Further ones are left out, with a warning. */
  readonly maxServers?: number | undefined
}

/** The options of a gateway with a configuration. */
export interface ConfigOptions<R = never> extends Options<R> {
  /** Selects servers: all by default. */
  readonly include?: ((name: string, entry: ServerConfig.Entry) => boolean) | undefined
  /**
   * How often the configuration is read again: never by default. A configuration that cannot be used changes nothing, and is
   * logged once.
   */
  readonly watchInterval?: Duration.Input | undefined
}

/** A running gateway: made by `layer` and `fromConfig`, and found by `current`. */
export class Gateway extends Context.Service<Gateway, {
  /** The servers and their states now, in the order in which they are listed. */
  readonly servers: Effect.Effect<ReadonlyArray<ServerState>>
  /**
   * Closes the connections of a server, and its processes, and opens it again. Calls in progress fail. Fails with `ServerNotFound`.
   */
  readonly restart: (name: string) => Effect.Effect<void, PoolError>
  /**
   * Reads the configuration again, and changes the servers that differ. It does not wait until those are open. Fails with
   * `ConfigUnreadable` or `InvalidConfig`, and then changes nothing. A gateway without a configuration has nothing to read.
   */
  readonly reload: Effect.Effect<Reload, PoolError>
}>()("@skein/gateway/Gateway") {}

/**
 * The gateway of a server. Dies if the server has none.
 *
 * @example
 * const states = Effect.flatMap(Gateway.current, ({ servers }) => servers)
 */
export const current: Effect.Effect<Gateway["Service"], never, Catalog.Catalog> = Effect.flatMap(
  Catalog.Catalog,
  (catalog) => {
    for (const { services } of Extension.list(catalog)) {
      const found = services && Context.getOrUndefined(services, Gateway)
      if (found !== undefined) return Effect.succeed(found)
    }
    return Effect.die(
      new Error("The server has no gateway: add Gateway.fromConfig or Gateway.layer to its definitions")
    )
  }
)

/** The servers of one gateway: how they are added at first, and read again. */
interface Source {
  readonly begin: Effect.Effect<void, PoolError>
  readonly reload: Effect.Effect<Reload, PoolError>
  readonly watch: Effect.Effect<never>
}

const make = <R>(
  { maxServers = 100, prefix, proxy }: Options<R>,
  sourceOf: (parts: Parts) => Source
): Layer.Layer<never, PoolError, Catalog.Catalog | Exclude<R, Scope.Scope>> =>
  Extension.effect(Effect.gen(function*() {
    const parts = makeParts<R>({
      build: yield* Catalog.places,
      services: Context.omit(Layer.CurrentMemoMap, Catalog.Catalog)(
        yield* Effect.context<R | Catalog.Catalog | Layer.CurrentMemoMap>()
      ) as Context.Context<R>,
      scope: yield* Effect.scope,
      prefix,
      proxy,
      maxServers
    })
    const { begin, reload, watch } = sourceOf(parts)
    yield* begin
    const gateway: Gateway["Service"] = {
      servers: Effect.sync(parts.states),
      restart: (name) => parts.replace(name),
      reload
    }
    return {
      name: "gateway",
      isSingle: true,
      lists: ["tools", "resources", "prompts"],
      services: Context.make(Gateway, gateway),
      ready: Effect.andThen(parts.start, Effect.asVoid(Effect.forkScoped(watch)))
    } satisfies Extension.Extension
  })) as never

/**
 * Puts servers behind this server, by name. The gateway connects to all of them at the same time, and starts without those that
 * do not answer within `readyTimeout` of `Proxy.Options`.
 *
 * Fails with the `PoolError` `LimitExceeded`.
 *
 * @example
 * const Servers = Gateway.layer({
 *   files: { transport: Stdio.transport({ command: "npx", args: ["@example/files-server"] }) },
 *   mail: { transport: Http.transport({ url: "https://mail.example/mcp" }), gateway: { tools: { except: ["delete_*"] } } }
 * })
 */
export const layer = <R = never>(
  servers: Readonly<Record<string, Server>>,
  options: Options<R> = {}
): Layer.Layer<never, PoolError, Catalog.Catalog | Exclude<R, Scope.Scope>> =>
  make(options, (parts) => {
    const names = Object.keys(servers)
    return {
      begin: Effect.forEach(names, (name, at) => parts.add(name, servers[name]!, names[at - 1]), { discard: true }),
      reload: Effect.succeed({ added: [], changed: [], removed: [], unchanged: names, problems: [] }),
      watch: Effect.never
    }
  })

/**
 * Puts all servers of a configuration behind this server, or those of several, of which a later one replaces entries of an earlier
 * one. An entry that is invalid, or for which the gateway has no place, is left out, with a warning.
 *
 * A process that the gateway starts is asked every 2 seconds whether it still answers, and is started again if it does not answer
 * for 3 seconds: `heartbeat` in the member `gateway`.
 *
 * Fails with the `PoolError` `ConfigUnreadable` or `InvalidConfig` if no configuration can be used.
 *
 * @example
 * const Desk = McpServer.layer(
 *   { name: "desk", version: "1.0.0" },
 *   Gateway.fromConfig(NodeConfig.file("mcp.json"), { watchInterval: "2 seconds" })
 * )
 */
export const fromConfig = <R = never>(
  source: ConfigSource | ReadonlyArray<ConfigSource>,
  options: ConfigOptions<R> = {}
): Layer.Layer<never, PoolError, Catalog.Catalog | Exclude<R, Scope.Scope>> =>
  make(options, (parts) => {
    const sources = "read" in source ? [source] : source
    const live = new ServerConfig.LiveConfig(sources.map(withMembers), {
      add: (name, configured, after) => parts.add(name, serverOf(configured), after),
      remove: parts.remove,
      restart: (name, configured) => parts.replace(name, serverOf(configured))
    }, { include: options.include })
    const { watchInterval } = options
    return {
      begin: Effect.asVoid(live.reload),
      reload: live.reload,
      watch: watchInterval === undefined ? Effect.never : live.watch(watchInterval)
    }
  })

/** The server of an entry. A process is asked by default whether it still answers; requests over HTTP have timeouts. */
const serverOf = ({ entry, server: { options, timeout, transport } }: ConfiguredServer): Server => {
  const members: Members = Result.getOrElse(membersOf(entry.raw), () => ({}))
  return { transport, client: options, timeout, gateway: { heartbeat: entry.type === "stdio", ...members } }
}

/** A source whose entries with an invalid member `gateway` are problems, and whose keys include the member. */
const withMembers = ({ name: source, read }: ConfigSource): ConfigSource => ({
  name: source,
  read: Effect.map(read, ({ disabled, problems, servers }): Config => {
    const valid = new Map<string, ConfiguredServer>()
    const invalid: Array<PoolError> = []
    for (const [name, configured] of servers) {
      const members = membersOf(configured.entry.raw)
      if (Result.isSuccess(members)) {
        valid.set(name, { ...configured, key: CanonicalJson.stringify([configured.key, members.success]) })
        continue
      }
      const message = `The server ${quote(name)} in ${source} has an invalid member ${member}: ${members.failure}`
      invalid.push(new PoolError({ reason: new InvalidEntry({ message, source, server: name }) }))
    }
    return { servers: valid, disabled, problems: [...problems, ...invalid] }
  })
})
