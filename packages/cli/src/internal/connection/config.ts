/**
 * The servers of a configuration: lists them, and finds the one to connect to.
 */
import type * as Client from "@skein/client/Client"
import type { Credentials } from "@skein/client/Credentials"
import * as NodeConfig from "@skein/client/NodeConfig"
import type { PoolError } from "@skein/client/PoolError"
import type { Entry, Input } from "@skein/client/ServerConfig"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { quoteLine, quoteName, sanitize, serverStderr } from "../base/format.ts"
import { type CommandFailed, type Console, failed, type Terminal } from "../base/process.ts"

/** The server to connect to. */
export interface Server {
  readonly transport: Transport
  readonly options?: Client.Options | undefined
}

type Env = Readonly<Record<string, string | undefined>>

const read = (file: string, options: NodeConfig.FileOptions) =>
  Effect.mapError(NodeConfig.file(file, options).read, ({ message }: PoolError) => failed(2, message))

/** Asks for an input on the terminal. An empty answer takes the default. */
const ask = (terminal: Terminal, input: Input): Effect.Effect<string | undefined> => {
  const choices = input.options.length === 0 ? "" : ` (${input.options.join(", ")})`
  const fallback = input.default === undefined ? "" : ` [${input.default}]`
  const prompt = quoteLine(`${input.description ?? input.id}${choices}${fallback}`)
  return Effect.map(terminal.readLine(`${prompt}: `), (line) => line === "" ? undefined : line)
}

/** The entry of that name, and its server. */
export const configuredIn = Effect.fnUntraced(function*(
  { file, server = "" }: { readonly file: string; readonly server: string | undefined },
  { closeTimeout, console, credentials, env, inputs, terminal, verbose }: {
    readonly console: Console
    /** The credentials for a URL, if its headers do not authorize the requests. */
    readonly credentials: (url: URL, headers: Readonly<Record<string, string>>) => Credentials["Service"] | undefined
    readonly env: Env
    readonly inputs: Readonly<Record<string, string>>
    readonly terminal: Terminal | undefined
    readonly verbose: boolean
    /** How long the process of the server may take to end after its stdin was closed. */
    readonly closeTimeout?: number | undefined
  }
): Effect.fn.Return<{ readonly entry: Entry; readonly server: Server }, CommandFailed> {
  const input = (wanted: Input): Effect.Effect<string | undefined> =>
    Object.hasOwn(inputs, wanted.id)
      ? Effect.succeed(inputs[wanted.id])
      : terminal === undefined
      ? Effect.succeed(undefined)
      : ask(terminal, wanted)
  const { disabled, problems, servers } = yield* read(file, {
    env,
    input,
    servers: (name) => name === server,
    stdio: () => ({
      stderr: serverStderr(verbose, console),
      ...closeTimeout === undefined ? {} : { shutdownTimeout: closeTimeout }
    }),
    http: ({ headers, url }) => ({ credentials: credentials(new URL(url), headers) })
  })
  const [problem] = problems
  if (problem !== undefined) {
    const { message, reason } = problem
    const advice = reason._tag === "MissingVariable" && reason.variable.startsWith("input:")
      ? `. Set it with --input ${reason.variable.slice("input:".length)}=<value>`
      : ""
    return yield* failed(2, `${message}${advice}`)
  }
  if (disabled.includes(server)) {
    return yield* failed(2, `The server ${JSON.stringify(server)} in ${file} is disabled`)
  }
  const found = servers.get(server)
  if (found !== undefined) return found
  const all = yield* readAll(file, env)
  const names = [...all.servers.keys(), ...all.disabled]
  const has = names.length === 0 ? "It has no valid entries" : `It has: ${names.map(quoteName).join(", ")}`
  return yield* failed(2, `${file} has no server ${JSON.stringify(server)}. ${has}`)
})

/** Reads all entries without asking for inputs. */
const readAll = (file: string, env: Env) => read(file, { env, input: ({ id }) => Effect.succeed(`\${input:${id}}`) })

/** The command line or the URL as the file has it: expanded variables can be secrets. */
const placeOf = ({ raw, type }: Entry): string =>
  type === "stdio"
    ? [raw["command"], ...Array.isArray(raw["args"]) ? raw["args"] : []].map(String).join(" ")
    : String(raw["url"] ?? raw["serverUrl"] ?? raw["httpUrl"])

/** The text with the servers of a configuration, one in a line. Reports entries that cannot be used. */
export const listServers = (
  file: string,
  { env, json }: { readonly env: Env; readonly json: boolean },
  { warn }: Console
): Effect.Effect<string, CommandFailed> =>
  Effect.map(readAll(file, env), ({ disabled, problems, servers }) => {
    for (const { message } of problems) warn(sanitize(message))
    const listed = [
      ...Array.from(servers.values(), ({ entry }) => ({ name: entry.name, type: entry.type, place: placeOf(entry) })),
      ...disabled.map((name) => ({ name, type: "disabled", place: "" }))
    ]
    return json
      ? JSON.stringify(listed, undefined, 2)
      : listed.map(({ name, place, type }) => quoteLine(`${quoteName(name)}  ${type}  ${place}`.trimEnd())).join("\n")
  })
