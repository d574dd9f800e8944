/**
 * Reads the entry of one server in a configuration.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { expandIn, type Expansion } from "./variables.ts"

/** A server that is a process. */
export interface StdioEntry {
  readonly type: "stdio"
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Variables for the process. `null` in a configuration removes a variable: it is `undefined` here. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string | undefined
  /** The path of a file with further variables. `env` has precedence. */
  readonly envFile: string | undefined
  /** The entry as it is written, without expanded variables. */
  readonly raw: JsonObject
}

/** A server over HTTP. `sse` is the HTTP+SSE transport of 2024-11-05. */
export interface HttpEntry {
  readonly type: "http" | "sse"
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The entry as it is written, without expanded variables. */
  readonly raw: JsonObject
}

/** The entry of a server, with expanded variables. */
export type Entry = StdioEntry | HttpEntry

const types: ReadonlyMap<string, Entry["type"]> = /* @__PURE__ */ new Map([
  ["stdio", "stdio"],
  ["local", "stdio"],
  ["http", "http"],
  ["streamablehttp", "http"],
  ["remote", "http"],
  ["sse", "sse"]
])

/** Why an entry cannot be used. */
export interface EntryProblem {
  /** The part of the message after the name of the server. */
  readonly problem: string
  /** The variable that has no value. */
  readonly variable?: string
  /** The id of the input that has no value. */
  readonly input?: string
  /** The path of the member in the entry. */
  readonly path?: ReadonlyArray<string>
}

type Read<A> = Result.Result<A, EntryProblem>

const fail = (problem: string, path: ReadonlyArray<string> = []): Read<never> => Result.fail({ problem, path })

/** The path of `args[0]`, `env.TOKEN` and the like: a line has a name and not an index. */
const pathOf = (member: string): ReadonlyArray<string> => {
  const [, name = member, rest] = /^(\w+)(?:\[\d+\]|\.([^]*))?$/.exec(member) ?? []
  return rest === undefined ? [name] : [name, rest]
}

// A name of an environment variable, also of Windows: `ProgramFiles(x86)`.
const variableName = /^[\w.() -]*$/

const expanded = (text: string, member: string, expansion: Expansion): Read<string> => {
  const result = expandIn(text, expansion)
  if (typeof result === "string") return Result.succeed(result)
  const { kind, name } = result
  const variable = kind === undefined ? name : `${kind}:${name}`
  const use = `uses \${${variable}} in ${member}`
  const path = pathOf(member)
  if (kind === "input") return Result.fail({ problem: `${use}, an input without a value`, variable, input: name, path })
  if ((kind !== undefined && kind !== "env") || !variableName.test(name)) {
    return fail(`${use}, which is not supported: only \${VAR} and \${VAR:-default} are`, path)
  }
  const advice = `set the variable, or write \${${variable}:-default}`
  return Result.fail({ problem: `${use}, which has no value: ${advice}`, variable, path })
}

/** A text. Numbers and booleans are accepted, because people write ports and switches so. */
const textOf = (value: unknown, member: string, expansion: Expansion): Read<string> => {
  if (typeof value === "number" || typeof value === "boolean") return Result.succeed(String(value))
  if (typeof value !== "string") return fail(`must have a string as ${member}`, pathOf(member))
  const text = expanded(value, member, expansion)
  return Result.isSuccess(text) && text.success.includes("\0") ? fail(`has a NUL character in ${member}`) : text
}

/** Reads the members of an entry. A member that is `null` counts as absent. */
const membersOf = (raw: JsonObject, expansion: Expansion) => ({
  text: (member: string): Read<string | undefined> => {
    const value = raw[member] ?? undefined
    return value === undefined ? Result.succeed(undefined) : textOf(value, member, expansion)
  },
  texts: (member: string): Read<ReadonlyArray<string>> => {
    const value = raw[member] ?? []
    return Array.isArray(value)
      ? Result.all(value.map((item: unknown, at) => textOf(item, `${member}[${at}]`, expansion)))
      : fail(`must have an array of strings as ${member}`, [member])
  },
  /** An object of texts. A `null` in it is `undefined`. */
  record: (member: string): Read<Readonly<Record<string, string | undefined>>> => {
    const value = raw[member] ?? {}
    if (!isObject(value)) return fail(`must have an object as ${member}`, [member])
    const members = Object.entries(value).map(([name, item]) =>
      item === null
        ? Result.succeed([name, undefined] as const)
        : Result.map(textOf(item, `${member}.${name}`, expansion), (text) => [name, text] as const)
    )
    // `fromEntries` defines own members, so that a variable named `__proto__` stays a member.
    return Result.map(Result.all(members), (all) => Object.fromEntries(all))
  },
  /** The value of an environment variable that another member names. */
  variable: (name: string, member: string): Read<string> => expanded(`\${env:${name}}`, member, expansion)
})

type Members = ReturnType<typeof membersOf>

const headerName = /^[!#$%&'*+\-.^`|~\w]+$/
// Visible characters, spaces and tabs (RFC 9110, 5.5).
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The headers. Codex has members of its own for them. */
const headersOf = (members: Members): Read<Readonly<Record<string, string>>> =>
  Result.gen(function*() {
    const all: Array<readonly [string, string | undefined]> = Object.entries(yield* members.record("http_headers"))
    for (const [name, variable] of Object.entries(yield* members.record("env_http_headers"))) {
      if (variable !== undefined) all.push([name, yield* members.variable(variable, `env_http_headers.${name}`)])
    }
    const bearer = yield* members.text("bearer_token_env_var")
    if (bearer !== undefined) {
      all.push(["Authorization", `Bearer ${yield* members.variable(bearer, "bearer_token_env_var")}`])
    }
    all.push(...Object.entries(yield* members.record("headers")))
    const headers: ReadonlyArray<readonly [string, string]> = all.flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const]
    )
    const invalid = headers.find(([name, value]) => !headerName.test(name) || !headerValue.test(value))
    if (invalid !== undefined) return yield* fail(`has an invalid HTTP header ${quote(invalid[0])}`)
    return Object.fromEntries(headers)
  })

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

const typeOf = (raw: JsonObject, hasUrl: boolean): Read<Entry["type"]> => {
  const given = raw["type"] ?? raw["transport"] ?? raw["transportType"]
  if (typeof given === "string") {
    const type = types.get(given.toLowerCase().replaceAll(/[-_ ]/g, ""))
    return type === undefined
      ? fail(`has the unknown type ${quote(given)}: use stdio, http or sse`)
      : Result.succeed(type)
  }
  const hasCommand = isPresent(raw["command"])
  if (hasCommand && hasUrl) return fail("has a command and a url: add a type, or remove one of them")
  if (!hasCommand && !hasUrl) return fail("has no command and no url")
  return Result.succeed(hasCommand ? "stdio" : "http")
}

/** The entry of a server, or why it cannot be used. */
export const entryOf = (name: string, raw: unknown, expansion: Expansion): Read<Entry> =>
  Result.gen(function*() {
    if (!isObject(raw)) return yield* fail("must be an object")
    const members = membersOf(raw, expansion)
    const urlMember = ["url", "serverUrl", "httpUrl"].find((member) => isPresent(raw[member]))
    const type = yield* typeOf(raw, urlMember !== undefined)
    if (type === "stdio") {
      const command = yield* members.text("command")
      if (command === undefined || command.trim() === "") return yield* fail("has no command")
      return {
        type,
        name,
        command,
        args: yield* members.texts("args"),
        env: yield* members.record("env"),
        cwd: yield* members.text("cwd"),
        envFile: yield* members.text("envFile"),
        raw
      }
    }
    const url = urlMember === undefined ? undefined : yield* members.text(urlMember)
    if (url === undefined) return yield* fail("has no url")
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      return yield* fail(`must have an http or https URL as ${urlMember}`)
    }
    return { type, name, url, headers: yield* headersOf(members), raw }
  })
