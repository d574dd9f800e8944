/**
 * One server in front of many: those of a configuration.
 */
import type { ConfigSource as CoreConfigSource } from "@skein/client/ClientPool"
import type * as ServerConfig from "@skein/client/ServerConfig"
import * as Core from "@skein/gateway/Gateway"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Definition, opaque } from "../base/definition.ts"
import type { Implementation } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { ConfigReload } from "../client/asyncClientPool.ts"
import type { ConfigEntry, ConfigSource } from "../client/nodeConfig.ts"
import { coreOptions, type ProxyOptions } from "./proxyOptions.ts"

/** The options of `gateway`. */
export interface GatewayOptions {
  /**
   * The prefix of the names and URIs of a server: that of its member `gateway` by default, or else its name, with `_` in place of
   * characters that names of tools do not have. With `""` they stay as they are.
   */
  readonly prefix?: ((server: string) => string | undefined) | undefined
  /** The options of the proxy of a server. Those of its client are in the configuration (`NodeConfig`). */
  readonly proxy?: ((server: string) => Omit<ProxyOptions, "client">) | undefined
  /** How many servers the gateway has at most: 100 by default. Further ones are left out, with a warning. */
  readonly maxServers?: number | undefined
  /** Selects servers: all by default. */
  readonly include?: ((name: string, entry: ConfigEntry) => boolean) | undefined
  /** How often the configuration is read again: never by default. One that cannot be used changes nothing. */
  readonly watchInterval?: Duration | undefined
}

/** The state of a server behind a gateway. */
export interface GatewayServer {
  /** The name of the server in the configuration. */
  readonly name: string
  /** The prefix of its names and URIs: empty if they are as the server has them. */
  readonly prefix: string
  /** Whether the gateway is ready only while this server is connected. */
  readonly required: boolean
  /** Whether it can be reached: `waiting` for the next attempt, for example. */
  readonly state: "connecting" | "connected" | "reconnecting" | "waiting" | "ended"
  /** When the state began, in milliseconds since 1970. */
  readonly since: number
  /** The number of attempts in a row that have failed. */
  readonly attempts: number
  /** When the next attempt begins, in milliseconds since 1970. */
  readonly nextAttempt: number | undefined
  /** Why the last attempt failed, or why the connection has ended. */
  readonly failure: string | undefined
  /** Its name in messages. */
  readonly label: string | undefined
  /** Its name and version, as it sent them. Do not trust them. */
  readonly info: Implementation | undefined
  /** The revision of the protocol that it is reached in. */
  readonly revision: string | undefined
  /** The number of its entries that are offered, by kind. */
  readonly entries: Readonly<Record<"tools" | "resources" | "resourceTemplates" | "prompts", number>>
  /** The number of connections of single callers, beside the one that lists. */
  readonly connections: number
  /** The number of calls that wait for the answers of stateless callers. */
  readonly parkedCalls: number
  /** Its processes now, with the end of what each has written to stderr. */
  readonly processes: ReadonlyArray<{ readonly pid: number; readonly stderr: string }>
  /** The end of the stderr of the process that ended last; undefined if none has ended. */
  readonly lastStderr: string | undefined
}

/** A gateway: a definition of a server. Its methods wait until the server is started. */
export interface Gateway extends Definition {
  /** The servers and their states now, in the order in which they are listed. */
  servers(): Promise<ReadonlyArray<GatewayServer>>
  /** Closes the connections of a server, and its processes, and opens it again. Rejects with `ServerNotFound`. */
  restart(server: string): Promise<void>
  /**
   * Reads the configuration again, and changes the servers that differ. Rejects with `ConfigUnreadable` or `InvalidConfig`, and
   * then changes nothing.
   */
  reload(): Promise<ConfigReload>
}

/**
 * Puts all servers of a configuration behind this server, or those of several, of which a later one replaces entries of an
 * earlier one. Each has its name as prefix: `files_read`. An invalid entry is left out, with a warning in the log. The server
 * does not start with a configuration that cannot be read (`PoolError`).
 *
 * @example
 * const desk = gateway(NodeConfig.file("mcp.json"), { watchInterval: "2 seconds" })
 * new AsyncServer({ name: "desk", version: "1.0.0" }).use(desk).runHttp()
 * for (const { name, state } of await desk.servers()) console.log(name, state)
 */
export const gateway = (
  config: ConfigSource | ReadonlyArray<ConfigSource>,
  { proxy, ...options }: GatewayOptions = {}
): Gateway => {
  let started: (gateway: Core.Gateway["Service"]) => void
  let running = new Promise<Core.Gateway["Service"]>((resolve) => (started = resolve))
  const layer = Core.fromConfig(config as unknown as CoreConfigSource, {
    ...options as Omit<GatewayOptions, "proxy" | "include">,
    include: options.include as ((name: string, entry: ServerConfig.Entry) => boolean) | undefined,
    proxy: proxy && ((server) => coreOptions(proxy(server)))
  })
  const captured = Layer.effectDiscard(Effect.map(Core.current, (gateway) => {
    started(gateway)
    running = Promise.resolve(gateway)
  }))
  const run = async <A, E>(effect: (gateway: Core.Gateway["Service"]) => Effect.Effect<A, E>): Promise<A> =>
    Effect.runPromise(effect(await running))
  return opaque<Gateway>(Layer.provideMerge(captured, layer), {
    servers: () => run(({ servers }) => servers),
    restart: (server: string) => run(({ restart }) => restart(server)),
    reload: () => run(({ reload }) => reload) as Promise<ConfigReload>
  })
}
