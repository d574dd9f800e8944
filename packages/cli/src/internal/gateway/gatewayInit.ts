/**
 * `skein gateway init`: a configuration with the servers of the hosts of this computer.
 */
import * as ServerConfig from "@skein/client/ServerConfig"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { quoteName, sanitize } from "../base/format.ts"
import { existing, type Place, readText, replaceText, thisPlace } from "../base/nodeFiles.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { hosts } from "../install/hosts.ts"

/** The servers of one file of a host. */
interface Found {
  readonly host: string
  readonly title: string
  readonly file: string
  readonly servers: JsonObject
  readonly inputs: ReadonlyArray<unknown>
}

/** An entry that starts a gateway would be in front of itself. */
const isGateway = (entry: unknown): boolean =>
  isObject(entry) && [entry["command"], ...Array.isArray(entry["args"]) ? entry["args"] : []].includes("gateway")

/** The files of hosts that exist here, each once. */
const filesOf = (place: Place): ReadonlyArray<readonly [host: string, title: string, file: string, member: string]> =>
  Object.entries(hosts).flatMap(([host, { format, member, projectFile, title, userFile }]) =>
    format === "toml" ? [] : [userFile, projectFile].flatMap((of) => {
      const file = of && existing(place.folder, of(place))
      return file === undefined ? [] : [[host, title, file, member] as const]
    })
  )

/** Reads the servers of a file. One that cannot be read is reported, and left out. */
const read = Effect.fnUntraced(function*(
  [host, title, file, member]: ReturnType<typeof filesOf>[number]
): Effect.fn.Return<Found | undefined, never, Process> {
  const { console: { warn } } = yield* Process
  const config = yield* Effect.result(Effect.flatMap(readText(file), (text) => ServerConfig.parse(text, file)))
  if (Result.isFailure(config)) {
    warn(sanitize(config.failure.message))
    return undefined
  }
  if (!isObject(config.success)) return undefined
  const { inputs, [member]: servers } = config.success
  if (!isObject(servers)) return undefined
  return { host, title, file, servers, inputs: Array.isArray(inputs) ? inputs : [] }
})

/** Joins the servers of all files. An equal entry is taken once, and another one of the same name gets that of its host. */
const merge = (all: ReadonlyArray<Found>) => {
  const servers = new Map<string, { readonly entry: unknown; readonly from: string }>()
  const inputs = new Map<string, unknown>()
  for (const found of all) {
    for (const input of found.inputs) inputs.set(isObject(input) ? String(input["id"]) : "", input)
    for (const [name, entry] of Object.entries(found.servers)) {
      if (isGateway(entry)) continue
      const known = servers.get(name)
      if (known !== undefined && CanonicalJson.stringify(known.entry) === CanonicalJson.stringify(entry)) continue
      servers.set(known === undefined ? name : `${name}-${found.host}`, { entry, from: found.title })
    }
  }
  return { servers, inputs: [...inputs.values()] }
}

/** The schema of the file, for editors. */
const $schema = "https://raw.githubusercontent.com/skein-mcp/skein/main/packages/gateway/mcp.schema.json"

/** Writes the file, which must not exist. `place` is that of this process by default. */
export const initGateway = Effect.fnUntraced(function*(
  file: string,
  given?: Place
): Effect.fn.Return<void, CommandFailed, Process> {
  const { console, env } = yield* Process
  const place = given ?? thisPlace(env)
  if (existing(place.folder, file) !== undefined) {
    return yield* failed(1, `${file} exists. Name another file, or serve it: skein gateway ${file}`)
  }
  const found = (yield* Effect.forEach(filesOf(place), read)).filter((each) => each !== undefined)
  const { inputs, servers } = merge(found)
  if (servers.size === 0) {
    const titles = Object.values(hosts).filter(({ format }) => format === "json").map(({ title }) => title)
    return yield* failed(1, `No servers were found in the configurations of ${titles.join(", ")}`)
  }
  const config = {
    $schema,
    ...(inputs.length === 0 ? undefined : { inputs }),
    mcpServers: Object.fromEntries(Array.from(servers, ([name, { entry }]) => [name, entry]))
  }
  yield* Effect.mapError(
    replaceText(file, `${JSON.stringify(config, undefined, 2)}\n`),
    ({ message }) => failed(3, message)
  )
  for (const [name, { from }] of servers) yield* console.print(`${quoteName(name)}  ${from}`)
  console.warn(sanitize(`Wrote ${file}, which has the secrets of these entries. Serve it: skein gateway ${file}`))
})
