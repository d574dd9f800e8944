/**
 * Reads the configuration of servers as hosts write it: `mcpServers` (Claude Desktop, Claude Code, Cursor, Windsurf,
 * Cline, Gemini) and `servers` with `inputs` (VS Code).
 *
 * This module has no I/O and works in browsers. On Node, use `NodeConfig`, which reads files and makes transports, and
 * `ClientPool.fromConfig`.
 *
 * - **Syntax.** {@link parse} reads JSON with comments and trailing commas. TOML (Codex) and YAML are not read: parse
 *   them with a library, and pass the object. The names of Codex (`mcp_servers`, `http_headers`, `env_http_headers`,
 *   `bearer_token_env_var`) are read.
 * - **Entries** with a `command` are processes: `args`, `env`, `cwd`, `envFile`. Entries with a `url` (`serverUrl`,
 *   `httpUrl`) are HTTP servers: `headers`. `type` decides between the two, and between Streamable HTTP and HTTP+SSE
 *   (`sse`). `disabled: true` or `enabled: false` leaves an entry out; any other value than a boolean is a problem of the
 *   entry, since it is not known whether the server may run. Every other member is ignored and available in
 *   `raw`: hosts disagree about the unit of `timeout`, and lists of approved tools are decisions of a host.
 * - **Variables** in strings: `${VAR}` and `${env:VAR}` of the environment, `${VAR:-default}` (also for an empty
 *   variable), `${input:id}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and
 *   `${/}`. A variable without a value makes its entry fail, and does not become an empty string. So does another
 *   expansion of a shell, such as `${VAR%suffix}`.
 * - **Errors.** An entry that is invalid is in `problems`, and the other entries are read. Messages have the line of the
 *   member, if the configuration is a result of {@link parse}.
 *
 * @example
 * const config = yield* ServerConfig.parse(`{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }`)
 * const { entries, problems } = yield* ServerConfig.read(config, { env: process.env })
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InvalidConfig, InvalidEntry, MissingVariable, PoolError } from "./PoolError.ts"
import { lineOf, remember } from "./internal/pool/memberLines.ts"
import { type Entry, entryOf, type EntryProblem, type HttpEntry, type StdioEntry } from "./internal/pool/configEntry.ts"
import type { Expansion } from "./internal/pool/variables.ts"

export type { Entry, HttpEntry, StdioEntry }
export { LiveConfig, type LiveConfigOptions, type RunningServers } from "./internal/pool/configuredPool.ts"

/** An item of `inputs` in a configuration of VS Code. */
export interface Input {
  readonly id: string
  /** `promptString` or `pickString`, as it is written. */
  readonly type: string | undefined
  readonly description: string | undefined
  readonly default: string | undefined
  /** Whether the value is a secret. */
  readonly password: boolean
  /** The values to choose from. */
  readonly options: ReadonlyArray<string>
}

/** The values of variables, and the name of the configuration. */
export interface Options {
  /** The name of the configuration in messages: the path of its file. Default: `the configuration`. */
  readonly source?: string | undefined
  /** The environment for `${VAR}` and `${env:VAR}`: empty by default. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** The value of `${workspaceFolder}`: none by default. */
  readonly workspaceFolder?: string | undefined
  /** The value of `${userHome}`: none by default. */
  readonly userHome?: string | undefined
  /** The value of `${pathSeparator}` and `${/}`: `/` by default. */
  readonly pathSeparator?: string | undefined
  /** Selects entries by name: all by default. The others are not read, and no input is asked for them. */
  readonly servers?: ((server: string) => boolean) | undefined
  /**
   * Asks for the value of an input. It runs for the inputs that the enabled entries use, one after the other. Without
   * it, or when it returns `undefined`, the `default` of the input is used.
   */
  readonly input?: ((input: Input) => Effect.Effect<string | undefined>) | undefined
}

/** The error of one entry. */
export type EntryError = PoolError & { readonly reason: InvalidEntry | MissingVariable }

/** The entries of a configuration. */
export interface Reading {
  readonly entries: ReadonlyArray<Entry>
  /** The names of disabled entries. */
  readonly disabled: ReadonlyArray<string>
  /** One error for each entry that is invalid: `InvalidEntry` or `MissingVariable`. */
  readonly problems: ReadonlyArray<EntryError>
}

const unnamed = "the configuration"

/** A place in a configuration, as `mcp.json:12`; without a line if it is not known. */
const placeOf = (source: string, config: unknown, path: ReadonlyArray<string>): string => {
  const line = lineOf(config, path)
  return line === undefined ? source : `${source}:${line}`
}

const entryError = (
  source: string,
  place: string,
  server: string,
  { problem, variable }: EntryProblem
): EntryError => {
  const fields = { message: `The server ${quote(server)} in ${place} ${problem}`, source, server }
  const reason = variable === undefined ? new InvalidEntry(fields) : new MissingVariable({ ...fields, variable })
  return new PoolError({ reason }) as EntryError
}

const invalidConfig = (place: string, problem: string, source = place): PoolError =>
  new PoolError({ reason: new InvalidConfig({ source, message: `${place} ${problem}` }) })

// A string, a comment, or a comma. A string or a comment without an end reaches to the end of the text, so that the
// search takes linear time.
const token = /"(?:[^"\\]|\\[^])*"?|\/\/[^\n\r]*|\/\*[^]*?(?:\*\/|$)|,/g

/** Replaces comments and trailing commas by spaces, so that positions in messages stay correct. */
const withoutComments = (text: string): string => {
  const blank = (part: string) => part.replaceAll(/[^\n\r]/g, " ")
  const plain = text.replaceAll(token, (part) => part.startsWith("/") ? blank(part) : part)
  return plain.replaceAll(token, (part, at: number) => {
    if (part !== ",") return part
    // The next character that is not a space decides. `sticky` finds it without copying the rest of the text.
    const next = /\s*/y
    next.lastIndex = at + 1
    next.exec(plain)
    return plain[next.lastIndex] === "}" || plain[next.lastIndex] === "]" ? " " : part
  })
}

/**
 * Parses JSON with comments and trailing commas, as VS Code allows them. Fails with `InvalidConfig`. The message has the
 * position where the engine reports it, and no part of the text, which may contain secrets.
 *
 * @example
 * const config = yield* ServerConfig.parse("{ // my servers\n \"servers\": {}, }")
 */
export const parse = (text: string, source: string = unnamed): Effect.Effect<unknown, PoolError> =>
  Effect.try({
    try: (): unknown => {
      const plain = withoutComments(text.replace(/^\uFEFF/, ""))
      return remember(plain, JSON.parse(plain))
    },
    catch: (error) => {
      const [, position = ""] = /(at position \d+(?: \(line \d+ column \d+\))?)/.exec(String(error)) ?? []
      const where = position === "" ? "" : ` (${position})`
      return invalidConfig(source, `is not valid JSON with comments${where}`)
    }
  })

/** The parts of a configuration. */
interface Parts {
  readonly inputs: unknown
  /** The entries by name, each with its path. */
  readonly servers: ReadonlyMap<string, { readonly raw: unknown; readonly path: ReadonlyArray<string> }>
}

/** Why a configuration has no servers, with the path of the member. */
interface Problem {
  readonly problem: string
  readonly path: ReadonlyArray<string>
}

/** The servers and inputs of a configuration, in any of its forms. A section that is null counts as absent beside others. */
const partsOf = (config: unknown): Parts | Problem => {
  if (!isObject(config)) return { problem: "must be a JSON object", path: [] }
  // The user settings of VS Code contain the configuration as a member.
  const nested = config["mcp"]
  const document = isObject(nested) && isObject(nested["servers"]) ? { ...config, ...nested } : config
  const names = ["mcpServers", "servers", "mcp_servers"].filter((name) => document[name] !== undefined)
  if (names.length === 0) return { problem: "has no member mcpServers or servers", path: [] }
  const pathOf = (name: string) => isObject(nested) && document[name] === nested[name] ? ["mcp", name] : [name]
  const sections = names.filter((name) => document[name] !== null)
  const invalid = sections.find((name) => !isObject(document[name])) ?? (sections.length === 0 ? names[0] : undefined)
  if (invalid !== undefined) {
    const advice = document[invalid] === null ? ", and has null: write {} if there are no servers" : ""
    return { problem: `must have an object as ${invalid}${advice}`, path: pathOf(invalid) }
  }
  const servers = sections.flatMap((section) =>
    Object.entries(document[section] as JsonObject).map(([name, raw]) =>
      [name, { raw, path: [...pathOf(section), name] }] as const
    )
  )
  return { inputs: document["inputs"], servers: new Map(servers) }
}

const optionalText = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

const inputsOf = (inputs: unknown): ReadonlyMap<string, Input> =>
  new Map((Array.isArray(inputs) ? inputs : []).flatMap((input: unknown): ReadonlyArray<readonly [string, Input]> => {
    if (!isObject(input) || typeof input["id"] !== "string") return []
    const { id, options } = input
    const texts = Array.isArray(options) ? options : []
    return [[id, {
      id,
      type: optionalText(input["type"]),
      description: optionalText(input["description"]),
      default: optionalText(input["default"]),
      password: input["password"] === true,
      options: texts.flatMap((option: unknown) => optionalText(isObject(option) ? option["value"] : option) ?? [])
    }]]
  }))

const isDisabled = (raw: JsonObject): boolean => raw["disabled"] === true || raw["enabled"] === false

/** The member that should say whether an entry is disabled, and does not. */
const unclearSwitch = (raw: JsonObject): string | undefined =>
  ["disabled", "enabled"].find((name) => typeof (raw[name] ?? true) !== "boolean")

/**
 * Reads the entries of a configuration. Fails with `InvalidConfig` if it has no servers at all. An empty list of servers
 * is valid.
 *
 * @example
 * const { entries, problems } = yield* ServerConfig.read(
 *   { mcpServers: { search: { url: "https://example.com/mcp", headers: { Authorization: "Bearer ${TOKEN}" } } } },
 *   { env: { TOKEN: "secret" } }
 * )
 */
export const read = (config: unknown, options: Options = {}): Effect.Effect<Reading, PoolError> =>
  Effect.gen(function*() {
    const { env = {}, pathSeparator = "/", source = unnamed, userHome, workspaceFolder } = options
    const parts = partsOf(config)
    if ("problem" in parts) return yield* invalidConfig(placeOf(source, config, parts.path), parts.problem, source)
    const inputs = inputsOf(parts.inputs)
    const values = new Map<string, string | undefined>()
    const expansion: Expansion = {
      env,
      inputs: values,
      named: {
        workspaceFolder,
        workspaceFolderBasename: workspaceFolder?.split(/[\\/]/).findLast((part) => part !== ""),
        userHome,
        pathSeparator,
        "/": pathSeparator
      }
    }
    const entries: Array<Entry> = []
    const disabled: Array<string> = []
    const problems: Array<EntryError> = []
    for (const [name, { path, raw }] of parts.servers) {
      if (options.servers?.(name) === false) continue
      if (isObject(raw) && isDisabled(raw)) {
        disabled.push(name)
        continue
      }
      const unclear = isObject(raw) ? unclearSwitch(raw) : undefined
      if (unclear !== undefined) {
        const problem = `must have true or false as ${unclear}, without quotes`
        problems.push(entryError(source, placeOf(source, config, [...path, unclear]), name, { problem }))
        continue
      }
      let entry = entryOf(name, raw, expansion)
      // An entry is read again after each input that it turned out to need.
      while (Result.isFailure(entry)) {
        const id = entry.failure.input
        const input = id === undefined || values.has(id) ? undefined : inputs.get(id)
        if (input === undefined) break
        values.set(input.id, (options.input === undefined ? undefined : yield* options.input(input)) ?? input.default)
        entry = entryOf(name, raw, expansion)
      }
      if (Result.isSuccess(entry)) entries.push(entry.success)
      else {
        const place = placeOf(source, config, [...path, ...entry.failure.path ?? []])
        problems.push(entryError(source, place, name, entry.failure))
      }
    }
    return { entries, disabled, problems }
  })
