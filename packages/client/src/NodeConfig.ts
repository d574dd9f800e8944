/**
 * Configurations of servers on Node: reads files and objects, and makes the transports of their entries. Pass them to
 * `ClientPool.fromConfig`. `ServerConfig` documents their syntax.
 *
 * Processes are started by `Stdio`, with `stderr: "capture"`, and HTTP servers are reached by `NodeHttp`. A relative
 * `cwd` or `envFile` is relative to `workspaceFolder`, in which processes run by default. `~/` at the start of
 * `command`, `cwd` and `envFile` is the home directory. A configuration of more than 16 MiB fails with
 * `ConfigUnreadable`, and an entry with a larger `envFile` with `InvalidEntry`.
 *
 * @example
 * const pool = yield* ClientPool.fromConfig(NodeConfig.file(".vscode/mcp.json"))
 * const files = yield* pool.client("files")
 */
import * as Revision from "@skein/protocol/Revision"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { quote } from "@skein/protocol/Text"
import type { Transport } from "@skein/runtime/Connection"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { homedir } from "node:os"
import { resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import type * as Client from "./Client.ts"
import type { ConfigSource, ConfiguredServer } from "./internal/pool/configuredPool.ts"
import * as NodeHttp from "./NodeHttp.ts"
import { ConfigUnreadable, InvalidEntry, PoolError } from "./PoolError.ts"
import * as ServerConfig from "./ServerConfig.ts"
import * as Stdio from "./Stdio.ts"

/** The values of variables, and the options of transports and clients. */
export interface Options {
  /**
   * The environment for variables: `process.env` by default, as it is when the configuration is read. An entry can send
   * each of these variables to its server: for a file that the user did not write, pass only those that it may use.
   *
   * @example
   * env: { HOME: process.env["HOME"], PROJECT_TOKEN: process.env["PROJECT_TOKEN"] }
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** The value of `${workspaceFolder}`, and the folder of relative paths: the working directory by default. */
  readonly workspaceFolder?: string | undefined
  /** Selects entries by name: all by default. The others are not read, and no input is asked for them. */
  readonly servers?: ((server: string) => boolean) | undefined
  /**
   * Asks for the value of an input of VS Code. Each input is asked for once per source, also when the configuration is
   * read again. Without it, or when the value is `undefined`, the `default` of the input is used. It returns an effect or
   * a promise.
   */
  readonly input?:
    | ((input: ServerConfig.Input) => Effect.Effect<string | undefined> | PromiseLike<string | undefined>)
    | undefined
  /** Further options of the process of an entry: `shutdownTimeout`, for example. */
  readonly stdio?: ((entry: ServerConfig.StdioEntry) => Partial<Stdio.Options>) | undefined
  /** Further options of the HTTP transport of an entry: `credentials`, for example. */
  readonly http?: ((entry: ServerConfig.HttpEntry) => Partial<NodeHttp.Options>) | undefined
  /** The options of the client of an entry. */
  readonly client?: ((entry: ServerConfig.Entry) => Client.Options) | undefined
  /**
   * How long one attempt to open the server of an entry may take. Without it, or when it returns `undefined`, the
   * `timeout` of the pool applies. Use it for programs that are downloaded when they start for the first time.
   *
   * @example
   * timeout: (entry) => entry.type === "stdio" && entry.command === "npx" ? "5 minutes" : undefined
   */
  readonly timeout?: ((entry: ServerConfig.Entry) => Duration.Input | undefined) | undefined
}

/** The options of a file. */
export interface FileOptions extends Options {
  /** Whether a missing file counts as an empty configuration instead of `ConfigUnreadable`: false by default. */
  readonly optional?: boolean | undefined
}

const withHome = (path: string): string => path === "~" ? homedir() : path.replace(/^~(?=[/\\])/, () => homedir())

const messageOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

/** Why a file cannot be read. */
interface Unreadable {
  readonly problem: string
  readonly cause?: unknown
}

/** How large the file of a configuration, and each `envFile`, may be. */
const maxConfigBytes = 16 * 1024 * 1024

/** Reads a regular file up to the bound. A device or a pipe could be endless. */
const readText = Effect.fnUntraced(function*(path: string): Effect.fn.Return<string, Unreadable> {
  // Loaded on first use, as in `nodeClient`.
  const { readFile, stat } = process.getBuiltinModule("node:fs/promises")
  const attempt = <A>(evaluate: () => Promise<A>) =>
    Effect.tryPromise({ try: evaluate, catch: (cause): Unreadable => ({ problem: messageOf(cause), cause }) })
  const found = yield* attempt(() => stat(path))
  if (!found.isFile()) return yield* Effect.fail({ problem: "it is not a file" })
  return found.size > maxConfigBytes
    ? yield* Effect.fail({ problem: `it has more than ${maxConfigBytes} bytes` })
    : yield* attempt(() => readFile(path, "utf8"))
})

/** Makes servers of entries. */
const serverOf = Effect.fnUntraced(function*(
  entry: ServerConfig.Entry,
  source: string,
  workspaceFolder: string,
  options: Options
): Effect.fn.Return<ConfiguredServer, ServerConfig.EntryError> {
  const client = options.client?.(entry)
  const timeout = options.timeout?.(entry)
  if (entry.type === "stdio") {
    const { args, command, envFile, name } = entry
    const cwd = resolve(workspaceFolder, withHome(entry.cwd ?? ""))
    let fromFile: NodeJS.Dict<string> | undefined
    if (envFile !== undefined) {
      const path = resolve(workspaceFolder, withHome(envFile))
      fromFile = yield* Effect.mapBoth(readText(path), {
        onSuccess: (text): NodeJS.Dict<string> => process.getBuiltinModule("node:util").parseEnv(text),
        onFailure: ({ problem }) => {
          const message = `The server ${
            quote(name)
          } in ${source} has an envFile that cannot be read: ${path} (${problem})`
          return new PoolError({
            reason: new InvalidEntry({ message, source, server: name })
          }) as ServerConfig.EntryError
        }
      })
    }
    const started = { command: withHome(command), args, cwd, env: { ...fromFile, ...entry.env } }
    const transport = Stdio.transport({ stderr: "capture", ...options.stdio?.(entry), ...started })
    return { entry, key: keyOf(started), server: { transport, options: client, timeout } }
  }
  const { headers, type, url } = entry
  const http = NodeHttp.transport({ ...options.http?.(entry), url, headers })
  const transport: Transport = type === "sse" ? { ...http, connect: http.connectWith!("sse") } : http
  // HTTP+SSE carries sessions only, so that the probe for the stateless revision is left out.
  const all = type === "sse" ? { revisions: Revision.sessionBased, ...client } : client
  return { entry, key: keyOf({ headers, type, url }), server: { transport, options: all, timeout } }
})

/** Equal keys mean that the server need not be started again. */
const keyOf = (members: object): string =>
  // A variable that is removed differs from one that is not mentioned.
  CanonicalJson.stringify(
    JSON.parse(JSON.stringify(members, (_, value: unknown) => value === undefined ? null : value))
  )

/** The options that are functions, and their arguments. Untyped programs pass values. */
const functions = [
  ...(["client", "http", "stdio", "timeout"] as const).map((name) => [name, "entry"] as const),
  ["servers", "name"],
  ["input", "input"]
] as const

const sourceOf = (
  source: string,
  config: Effect.Effect<unknown, PoolError>,
  options: Options
): ConfigSource => {
  for (const [name, of] of functions) {
    const given: unknown = options[name]
    if (given === undefined || typeof given === "function") continue
    throw new TypeError(`The option ${name} of a configuration is a function of the ${of}: ${name}: (${of}) => …`)
  }
  const answers = new Map<string, string | undefined>()
  const { input } = options
  const asked = input === undefined ? undefined : (asking: ServerConfig.Input) =>
    answers.has(asking.id)
      ? Effect.succeed(answers.get(asking.id))
      : Effect.tap(
        Effect.suspend(() => {
          const value = input(asking)
          return Effect.isEffect(value) ? value : Effect.promise(() => value)
        }),
        (value) => Effect.sync(() => answers.set(asking.id, value))
      )
  return {
    name: source,
    read: Effect.gen(function*() {
      const workspaceFolder = resolve(options.workspaceFolder ?? ".")
      const { disabled, entries, problems } = yield* ServerConfig.read(yield* config, {
        source,
        env: options.env ?? process.env,
        workspaceFolder,
        userHome: homedir(),
        pathSeparator: sep,
        servers: options.servers,
        input: asked
      })
      const servers = new Map<string, ConfiguredServer>()
      const failed: Array<PoolError> = [...problems]
      for (const entry of entries) {
        const server = yield* Effect.result(serverOf(entry, source, workspaceFolder, options))
        if (Result.isSuccess(server)) servers.set(entry.name, server.success)
        else failed.push(server.failure)
      }
      return { servers, disabled, problems: failed }
    })
  }
}

/**
 * A configuration as an object: parsed from TOML or YAML, for example, or stored in a database.
 *
 * @example
 * NodeConfig.object({ mcpServers: { time: { command: "uvx", args: ["mcp-server-time"] } } })
 */
export const object = (config: unknown, options: Options = {}): ConfigSource =>
  sourceOf("the configuration", Effect.succeed(config), options)

const empty: unknown = { mcpServers: {} }

/**
 * A configuration in a file of JSON with comments. The file is read each time that the configuration is read. Fails
 * with `ConfigUnreadable` or `InvalidConfig`.
 *
 * @example
 * NodeConfig.file("~/.cursor/mcp.json", { optional: true })
 */
export const file = (path: string | URL, options: FileOptions = {}): ConfigSource => {
  const { optional = false } = options
  const at = path instanceof URL ? fileURLToPath(path) : withHome(path)
  const text = Effect.mapError(
    readText(at),
    ({ cause, problem }) =>
      new PoolError({
        reason: new ConfigUnreadable({ source: at, message: `${at} cannot be read: ${problem}`, cause })
      })
  )
  const read = Effect.flatMap(text, (text) => ServerConfig.parse(text, at))
  const isMissing = ({ reason }: PoolError): boolean =>
    reason._tag === "ConfigUnreadable" && reason.cause instanceof Error && "code" in reason.cause &&
    reason.cause.code === "ENOENT"
  return sourceOf(at, optional ? Effect.catchIf(read, isMissing, () => Effect.succeed(empty)) : read, options)
}
