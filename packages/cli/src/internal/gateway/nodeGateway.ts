/**
 * `skein gateway`: serves the servers of configurations, a URL or a command as one server, over HTTP or stdio.
 */
import type { Config, ConfigSource } from "@skein/client/ClientPool"
import * as NodeConfig from "@skein/client/NodeConfig"
import type { PoolError } from "@skein/client/PoolError"
import * as Gateway from "@skein/gateway/Gateway"
import type { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { basename } from "node:path"
import { makeSignIns } from "../accounts/callCredentials.ts"
import type { SignInOptions } from "../accounts/signInOptions.ts"
import { quoteName, sanitize } from "../base/format.ts"
import { type CommandFailed, failed, Process, version } from "../base/process.ts"
import { resolveEnv } from "../connection/connection.ts"

/** The servers of a gateway. */
export type GatewayTarget =
  | { readonly _tag: "Files"; readonly files: ReadonlyArray<string> }
  | { readonly _tag: "Url"; readonly url: URL }
  | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }

/** A parsed command line of `gateway`. */
export interface GatewayLine {
  readonly target: GatewayTarget
  readonly stdio: boolean
  readonly port: number | undefined
  readonly host: string | undefined
  /** The port of the console. */
  readonly console: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly login: boolean
}

/** How often configurations are read again. */
const watchInterval = "2 seconds"

/** A sign-in with a browser of this computer, as with `skein login`. */
const signIn: SignInOptions = {
  clientId: undefined,
  issuer: undefined,
  redirectUri: undefined,
  scopes: undefined,
  resourceMetadata: undefined,
  omitResource: false,
  assumePkce: false,
  port: undefined,
  paste: false,
  noBrowser: false
}

/** The configurations of the command line. A single server keeps its names. */
const sourcesOf = (
  { env, headers, target }: GatewayLine,
  inherited: Process["Service"]["env"],
  options: NodeConfig.Options
): ReadonlyArray<ConfigSource> => {
  switch (target._tag) {
    case "Files":
      return target.files.map((file) => NodeConfig.file(file, options))
    case "Url": {
      const { host, href } = target.url
      return [NodeConfig.object({ mcpServers: { [host]: { url: href, headers, gateway: { prefix: "" } } } }, options)]
    }
    case "Command": {
      const { args, command } = target
      const entry = { command, args, env: resolveEnv(env, inherited), gateway: { prefix: "" } }
      return [NodeConfig.object({ mcpServers: { [basename(command)]: entry } }, options)]
    }
  }
}

/** A number with its noun. */
const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

/** The servers at the start, as one line each. */
const reportOf = (states: ReadonlyArray<Gateway.ServerState>): ReadonlyArray<string> =>
  states.map(({ entries, failure, name, state }) => {
    const { prompts, resources, tools } = entries
    return state === "connected"
      ? `${quoteName(name)}: ${count(tools, "tool")}, ${count(resources, "resource")}, ${count(prompts, "prompt")}`
      : `${quoteName(name)}: ${state}${failure === undefined ? "" : `, ${failure}`}`
  })

/** Reads the configurations, and returns the function that serves them. A failure is one of the command line. */
export const prepareGateway = Effect.fnUntraced(function*(
  line: GatewayLine
): Effect.fn.Return<() => void, CommandFailed, Process> {
  const process = yield* Process
  const { console: { warn }, env } = process
  // The tokens of sign-ins are used as long as the process runs.
  const signIns = yield* Scope.provide(makeSignIns(line.login ? signIn : undefined), Scope.makeUnsafe())
  const options: NodeConfig.Options = {
    env,
    http: ({ headers, url }) => ({ credentials: signIns.credentials(new URL(url), headers) }),
    client: () => ({ info: { name: "skein-gateway", version } })
  }
  const sources = sourcesOf(line, env, options).map(({ name, read }): ConfigSource => ({
    name,
    read: Effect.tap(read, () => Effect.catch(signIns.prepared, ({ report }) => Effect.logWarning(report)))
  }))
  const read = yield* Effect.forEach(
    sources,
    ({ read }): Effect.Effect<Config, CommandFailed> =>
      Effect.mapError(read, ({ message }: PoolError) => failed(2, message))
  )
  if (read.every(({ servers }) => servers.size === 0)) {
    const [problem] = read.flatMap(({ problems }) => problems)
    return yield* failed(2, problem?.message ?? "The configuration has no servers")
  }
  let running: Gateway.Gateway["Service"] | undefined
  const captured = Layer.effectDiscard(Effect.map(Gateway.current, (gateway) => void (running = gateway)))
  const servers = Gateway.fromConfig(sources, line.target._tag === "Files" ? { watchInterval } : {})
  const server = McpServer.layer(
    { name: "skein-gateway", title: "Skein gateway", version },
    Layer.provideMerge(captured, servers)
  )
  const states = Effect.suspend(() => running?.servers ?? Effect.succeed([]))
  const shown = line.console === undefined ? server : yield* withConsole(server, line.console)
  if (line.stdio) return () => Stdio.runMain(shown)
  const { host, port } = line
  /** Fails while a server that is required is not connected: `/ready` is answered with 503. */
  const check = Effect.flatMap(states, (all) => {
    const missing = all.filter(({ required, state }) => required && state !== "connected")
    return missing.length === 0
      ? Effect.void
      : Effect.fail(`not connected: ${missing.map(({ name }) => name).join(", ")}`)
  })
  return () =>
    NodeHttp.runMain(shown, {
      host,
      port,
      health: { check },
      onListening: ({ url }) =>
        Effect.map(states, (all) => {
          for (const text of reportOf(all)) warn(sanitize(text))
          warn(`The gateway listens on ${url}`)
        })
    })
})

/** The server with a console on a port of its own. */
const withConsole = <E>(
  server: Layer.Layer<McpServer.McpServer | Catalog, E>,
  port: number
): Effect.Effect<Layer.Layer<McpServer.McpServer, unknown>> =>
  Effect.promise(async () => {
    const Console = await import("@skein/console/Console")
    const ConsoleGateway = await import("@skein/console/ConsoleGateway")
    const { ConsoleSources } = await import("@skein/console/ConsoleSource")
    const sources = Layer.provideMerge(ConsoleGateway.layer, ConsoleSources.layer)
    return Console.layer({ port }).pipe(Layer.provide(sources), Layer.provideMerge(server))
  })
