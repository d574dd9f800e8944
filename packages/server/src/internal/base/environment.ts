/**
 * Reads options of a server process from variables of its environment: how values are read, and the variables of the
 * logs. `http/endpoint/variables.ts` has those of a server over HTTP.
 *
 * `runMain` reads `process.env` with these functions, without `effect/Config`, which would double the time that a small
 * server takes to load. `HttpConfig` makes a `Config` of the same variables.
 */
import { printable } from "@skein/protocol/Text"
import * as Duration from "effect/Duration"
import type { LogLevel } from "effect/LogLevel"
import * as Redacted from "effect/Redacted"

/** How the value of a variable is read. */
export interface Variable<A> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** Describes a value that is not valid, where the value itself is a secret. */
  readonly describe?: (text: string) => string
  /** Returns `undefined` if the value is not valid, and `null` if it leaves the option out. */
  readonly parse: (text: string) => A | undefined
  /** The option that has the option as a member, and its name there, if that is not the name of the variable. */
  readonly group?: "limits" | "nodeRequests"
  readonly member?: string
  /** The name of a variable, without a prefix, that is read if the variable of the option is missing. */
  readonly fallback?: string
}

/** Variables by the names of their options. */
export type Variables = { readonly [option: string]: Variable<unknown> }

/** The name of the variable of an option, without the prefix: `MAX_STREAMS` for `maxStreams`. */
export const nameOf = (option: string): string => option.replaceAll(/[A-Z]/g, "_$&").toUpperCase()

/** Reads a whole number from 0 to `max`. */
export const integer = (text: string, max: number): number | undefined => {
  const value = Number(text)
  return /^\d+$/.test(text) && value <= max ? value : undefined
}

export const count: Variable<number> = {
  expected: "a whole number",
  parse: (text) => integer(text, Number.MAX_SAFE_INTEGER)
}

/** A list with commas. `expected` names its entries. */
export const list = (expected: string): Variable<ReadonlyArray<string> | "any"> => ({
  expected: `${expected}, separated by commas, or any`,
  parse: (text) => {
    if (text === "any") return text
    const entries = text.split(",").map((entry) => entry.trim())
    return entries.every((entry) => entry !== "" && !/\s/.test(entry)) ? entries : undefined
  }
})

const units: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

export const duration: Variable<Duration.Duration> = {
  expected: "a duration, such as 10s or \"10 seconds\"",
  parse: (text) => {
    const [, amount, unit = ""] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? []
    if (amount !== undefined) return Duration.millis(Number(amount) * units[unit]!)
    // `Duration` reads more, such as "Infinity" and "-1 second".
    if (!/^\d+(\.\d+)? [a-z]+$/.test(text)) return undefined
    try {
      return Duration.fromInputUnsafe(text as Duration.Input)
    } catch {
      return undefined
    }
  }
}

/** One of these words, in any case. */
export const oneOf = <const A extends string>(values: ReadonlyArray<A>): Variable<A> => ({
  expected: `one of ${values.join(", ")}`,
  parse: (text) => values.find((value) => value.toLowerCase() === text.toLowerCase())
})

/** A port to listen on. */
export const port: Variable<number> = {
  expected: "a port, from 0 to 65535",
  parse: (text) => integer(text, 65_535)
}

/** A text that matches a pattern. */
export const text = (expected: string, pattern: RegExp): Variable<string> => ({
  expected,
  parse: (value) => pattern.test(value) ? value : undefined
})

/** A switch. */
export const toggle: Variable<boolean> = {
  expected: "true or false",
  parse: (value) => value === "true" ? true : value === "false" ? false : undefined
}

/** A switch for an option that is a value: it is missing if the switch is off. */
export const presence = <A>(value: A): Variable<A | null> => ({
  ...toggle,
  parse: (text) => text === "true" ? value : text === "false" ? null : undefined
})

/** Secrets of at least `minBytes` bytes in UTF-8, with commas between them. Its value is in no message and no log. */
export const secrets = (minBytes: number): Variable<ReadonlyArray<Redacted.Redacted<string>>> => {
  const split = (text: string) => text.split(",").map((secret) => secret.trim())
  const isShort = (secret: string) => new TextEncoder().encode(secret).length < minBytes
  return {
    expected: `keys of at least ${minBytes} bytes, separated by commas, such as the output of openssl rand -base64 32`,
    describe: (text) => `has a key that is too short (number ${split(text).findIndex(isShort) + 1})`,
    parse: (text) => split(text).some(isShort) ? undefined : split(text).map((secret) => Redacted.make(secret))
  }
}

/** The variables of the logs, which every server process has. */
export const logVariables = {
  logFormat: oneOf(["pretty", "json", "logfmt"]),
  logLevel: oneOf<LogLevel>(["All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None"])
} as const

/** The variable that marks a process that `NodeHttp.runMain` has started as a worker. */
export const workerVariable = "SKEIN_WORKER"

/** The beginning of the names of variables, unless the application sets another one. */
export const defaultPrefix = "SKEIN_"

/** A prefix that is an option, or the reason why it cannot be used: the variables PATH and HOST have other meanings. */
const prefixFault = (prefix: string): string | undefined =>
  /^[A-Za-z_]\w*$/.test(prefix)
    ? undefined
    : `The option environment is "${printable(prefix, 128)}": expected a prefix such as ${defaultPrefix}`

/** The names of the variables of an option, in the order in which they are looked for. */
export const namesOf = (option: string, { fallback }: Variable<unknown>, prefix: string): ReadonlyArray<string> =>
  fallback === undefined ? [prefix + nameOf(option)] : [prefix + nameOf(option), fallback]

/**
 * Fills in options from variables, where they are not set. An empty variable counts as missing. Returns the options, or
 * a line for the user who started the process, about the first variable that is not valid.
 */
export const readAll = <O extends object>(
  options: O,
  variables: Variables,
  env: { readonly [name: string]: string | undefined },
  prefix: string
): O | string => {
  const filled = { ...options } as Record<string, unknown>
  for (const [option, variable] of Object.entries(variables)) {
    const { group, member = option } = variable
    const given = (group === undefined ? filled : filled[group] ?? {}) as Record<string, unknown>
    const name = namesOf(option, variable, prefix).find((name) => (env[name] ?? "").trim() !== "")
    if (given[member] !== undefined || name === undefined) continue
    const value = variable.parse(env[name]!.trim())
    if (value === undefined) {
      return variable.describe === undefined
        ? `${name} is "${printable(env[name]!, 128)}": expected ${variable.expected}`
        : `${name} ${variable.describe(env[name]!)}: expected ${variable.expected}`
    }
    if (value === null) continue
    if (group === undefined) filled[option] = value
    else filled[group] = { ...given, [member]: value }
  }
  return filled as O
}

/** The same for the prefix that is an option. `false` reads no variable. */
export const fillIn = <O extends object>(
  options: O,
  variables: Variables,
  env: { readonly [name: string]: string | undefined },
  prefix: string | false = defaultPrefix
): O | string => {
  if (prefix === false) return options
  return prefixFault(prefix) ?? readAll(options, variables, env, prefix)
}
