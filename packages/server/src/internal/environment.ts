/**
 * The options of a server process that its environment sets: for each of them a variable, and how its value is read.
 *
 * `runMain` reads `process.env` with these functions, without `effect/Config`, which would double the time that a small
 * server takes to load. `HttpConfig` makes a `Config` of the same variables.
 */
import { printable } from "@skein/protocol/Text"
import * as Duration from "effect/Duration"
import type { LogLevel } from "effect/LogLevel"

/** The options that the environment may set. They are documented at `NodeHttp.MainOptions`. */
export interface Settings {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly allowedHosts: ReadonlyArray<string> | "any"
  readonly allowedOrigins: ReadonlyArray<string> | "any"
  readonly trustedProxies: number
  readonly maxBodyBytes: number
  readonly maxConnections: number
  readonly maxConcurrentRequests: number
  readonly keepAliveTimeout: Duration.Duration
  readonly health: boolean
  readonly drainDelay: Duration.Duration
  readonly shutdownTimeout: Duration.Duration
  readonly logFormat: "pretty" | "json" | "logfmt"
  readonly logLevel: LogLevel
}

/** The settings that are there. */
export type Given = { readonly [K in keyof Settings]?: Settings[K] | undefined }

/** How the value of a variable is read. */
interface Variable<A> {
  /** Its name without the prefix. */
  readonly name: string
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** Returns `undefined` if the value is not valid. */
  readonly parse: (text: string) => A | undefined
}

const integer = (text: string, max: number): number | undefined => {
  const value = Number(text)
  return /^\d+$/.test(text) && value <= max ? value : undefined
}

const count = (name: string): Variable<number> => ({
  name,
  expected: "a whole number",
  parse: (text) => integer(text, Number.MAX_SAFE_INTEGER)
})

const list = (name: string, expected: string): Variable<ReadonlyArray<string> | "any"> => ({
  name,
  expected: `${expected}, separated by commas, or any`,
  parse: (text) => {
    if (text === "any") return text
    const entries = text.split(",").map((entry) => entry.trim())
    return entries.every((entry) => entry !== "" && !/\s/.test(entry)) ? entries : undefined
  }
})

const units: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

const duration = (name: string): Variable<Duration.Duration> => ({
  name,
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
})

const oneOf = <const A extends string>(name: string, values: ReadonlyArray<A>): Variable<A> => ({
  name,
  expected: `one of ${values.join(", ")}`,
  parse: (text) => values.find((value) => value.toLowerCase() === text.toLowerCase())
})

const text = (name: string, expected: string, pattern: RegExp): Variable<string> => ({
  name,
  expected,
  parse: (value) => pattern.test(value) ? value : undefined
})

/** The variables, by their options. */
export const variables: { readonly [K in keyof Settings]: Variable<Settings[K]> } = {
  port: { name: "PORT", expected: "a port, from 0 to 65535", parse: (value) => integer(value, 65_535) },
  host: text("HOST", "an address or a name", /^\S+$/),
  path: text("PATH", "a path that begins with a slash", /^\/[^\s?#]*$/),
  allowedHosts: list("ALLOWED_HOSTS", "names"),
  allowedOrigins: list("ALLOWED_ORIGINS", "origins such as https://app.example.com"),
  trustedProxies: count("TRUSTED_PROXIES"),
  maxBodyBytes: count("MAX_BODY_BYTES"),
  maxConnections: count("MAX_CONNECTIONS"),
  maxConcurrentRequests: count("MAX_CONCURRENT_REQUESTS"),
  keepAliveTimeout: duration("KEEP_ALIVE_TIMEOUT"),
  health: {
    name: "HEALTH",
    expected: "true or false",
    parse: (value) => value === "true" ? true : value === "false" ? false : undefined
  },
  drainDelay: duration("DRAIN_DELAY"),
  shutdownTimeout: duration("SHUTDOWN_TIMEOUT"),
  logFormat: oneOf("LOG_FORMAT", ["pretty", "json", "logfmt"]),
  logLevel: oneOf("LOG_LEVEL", ["All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None"])
}

/** The options in the order of their variables. */
export const names = Object.keys(variables) as ReadonlyArray<keyof Settings>

/** The options of the logs, which a server on stdio has too. */
export const logNames: ReadonlyArray<keyof Settings> = ["logFormat", "logLevel"]

/** The beginning of the names of variables, unless the application sets another one. */
export const defaultPrefix = "SKEIN_"

/** A prefix that is an option, or the reason why it cannot be used: the variables PATH and HOST have other meanings. */
const prefixFault = (prefix: string): string | undefined =>
  /^[A-Za-z_]\w*$/.test(prefix)
    ? undefined
    : `The option environment is "${printable(prefix, 128)}": expected a prefix such as ${defaultPrefix}`

/** Reads the value of a variable. Returns the value, or a line for the user who started the process. */
export const parse = <K extends keyof Settings>(
  option: K,
  prefix: string,
  value: string
): { readonly value: Settings[K] } | { readonly fault: string } => {
  const { expected, name, parse } = variables[option]
  const parsed = parse(value.trim())
  if (parsed !== undefined) return { value: parsed }
  return { fault: `${prefix}${name} is "${printable(value, 128)}": expected ${expected}` }
}

/**
 * Fills in options from variables, where they are not set. An empty variable counts as missing. Returns the options, or
 * a line for the user who started the process, about the first variable that is not valid.
 */
export const fillIn = <O extends Given | Pick<Given, "logFormat" | "logLevel">>(
  options: O,
  env: { readonly [name: string]: string | undefined },
  prefix: string | false = defaultPrefix,
  read: ReadonlyArray<keyof Settings> = names
): O | string => {
  if (prefix === false) return options
  const fault = prefixFault(prefix)
  if (fault !== undefined) return fault
  const filled: Record<string, unknown> = { ...options }
  for (const option of read) {
    const value = env[prefix + variables[option].name]
    if (filled[option] !== undefined || value === undefined || value.trim() === "") continue
    const parsed = parse(option, prefix, value)
    if ("fault" in parsed) return parsed.fault
    filled[option] = parsed.value
  }
  return filled as O
}
