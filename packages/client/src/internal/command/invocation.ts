/**
 * What `skein-call` is asked to do, read from its arguments.
 */
import * as Result from "effect/Result"

/** The server: an address, or a program to start. */
export type Target =
  | { readonly _tag: "Url"; readonly url: URL }
  | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }

/** See the module's text. */
export interface Invocation {
  readonly target: Target
  /** Without one the tools are listed. */
  readonly tool: string | undefined
  readonly args: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** In milliseconds. */
  readonly timeout: number | undefined
  readonly verbose: boolean
  readonly json: boolean
}

/** What is printed for `--help`, and what is said about wrong arguments. */
export const usage = `Calls a tool of an MCP server, or lists its tools.

  skein-call [options] <url> [<tool> [<json>]]
  skein-call [options] "<command and its arguments>" [<tool> [<json>]]
  skein-call [options] <command> <its arguments…> <tool> <json object>
  skein-call [options] <command> <its arguments…> -- [<tool> [<json>]]

  --header 'Name: value'   a header for each request, over HTTP; may be repeated
  --env NAME[=value]       a variable for the server's process; without a value that of this one; may be repeated
  --timeout <seconds>      how long to wait for the connection, and then for the answer
  --json                   print the result as it is, as JSON
  --verbose                tell of progress, logs and the server's stderr, on stderr
  --help                   this text

The result goes to stdout. Exit codes: 0 done, 1 the tool says that it failed, 2 wrong arguments, 3 no connection or no
answer in time, 4 the server refused the request or answered it wrongly, 130 interrupted.
`

interface Options {
  readonly headers: Record<string, string>
  readonly env: Record<string, string | undefined>
  timeout: number | undefined
  verbose: boolean
  json: boolean
  help: boolean
}

class Wrong extends Error {}

const isUrl = (word: string): boolean => /^https?:\/\//i.test(word)

/** Reads the options at the start of the words, or all of them, and leaves the rest. */
const takeOptions = (words: Array<string>, options: Options, host: Host, anywhere: boolean): Array<string> => {
  const rest: Array<string> = []
  while (words.length > 0) {
    const word = words.shift()!
    const [name, inline] = /^--[a-z]+=/.test(word)
      ? [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]
      : [word, undefined]
    const value = (): string => {
      const value = inline ?? words.shift()
      if (value === undefined) throw new Wrong(`${name} needs a value`)
      return value
    }
    if (name === "--header") {
      const header = value()
      const at = header.indexOf(":")
      if (at < 1) throw new Wrong(`--header needs 'Name: value', and not ${JSON.stringify(header)}`)
      options.headers[header.slice(0, at).trim()] = header.slice(at + 1).trim()
    } else if (name === "--env") {
      const [, variable = "", given] = /^([^=]+)(?:=([^]*))?$/.exec(value()) ?? []
      if (variable === "") throw new Wrong("--env needs NAME or NAME=value")
      options.env[variable] = given ?? host.env[variable]
    } else if (name === "--timeout") {
      const seconds = Number(value())
      if (!(seconds > 0 && seconds <= maxTimeout)) throw new Wrong(`--timeout needs seconds, up to ${maxTimeout}`)
      options.timeout = seconds * 1_000
    } else if (word === "--verbose") options.verbose = true
    else if (word === "--json") options.json = true
    else if (word === "--help" || word === "-h") options.help = true
    else if (word !== "--" && word.startsWith("--") && (anywhere || rest.length === 0)) {
      throw new Wrong(`${word} is no option`)
    } else {
      rest.push(word)
      if (!anywhere) return [...rest, ...words]
    }
  }
  return rest
}

// A day.
const maxTimeout = 86_400

/** Splits a command as a shell would do it, as far as quotes go. Nothing is expanded, and no shell is run. */
const split = (text: string): ReadonlyArray<string> => {
  const words = text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? []
  return words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single))
}

const command = (words: ReadonlyArray<string>): Target => {
  const [command, ...args] = words
  if (command === undefined) throw new Wrong("There is no command before --")
  return { _tag: "Command", command, args }
}

const isObjectText = (word: string | undefined): boolean => word !== undefined && /^\s*\{/.test(word)

/** Where the server ends and the tool begins. */
const divide = (words: Array<string>, options: Options, host: Host) => {
  const [first] = words
  if (first === undefined) throw new Wrong("Which server?")
  if (isUrl(first)) {
    const [url, ...call] = takeOptions(words, options, host, true).filter((word) => word !== "--")
    if (!URL.canParse(url!)) throw new Wrong(`${url} is no address`)
    return { target: { _tag: "Url", url: new URL(url!) } satisfies Target as Target, call }
  }
  const dashes = words.indexOf("--")
  if (dashes >= 0) {
    const call = takeOptions(words.slice(dashes + 1), options, host, true)
    const before = words.slice(0, dashes)
    // What is one word is a program, or a whole command that was quoted.
    return { target: command(before.length === 1 ? split(before[0]!) : before), call }
  }
  if (/\s/.test(first.trim())) {
    const [quoted, ...call] = takeOptions(words, options, host, true)
    return { target: command(split(quoted!)), call }
  }
  return words.length >= 3 && isObjectText(words.at(-1))
    ? { target: command(words.slice(0, -2)), call: words.slice(-2) }
    : { target: command(words), call: [] }
}

const argumentsOf = (text: string | undefined): Readonly<Record<string, unknown>> | undefined => {
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Wrong(`The arguments of the tool are no JSON: ${(cause as Error).message}`, { cause })
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Wrong("The arguments of the tool have to be a JSON object")
}

/** What this program was started in. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Reads the arguments. `help` where help is asked for; a line that says what is wrong. */
export const parse = (argv: ReadonlyArray<string>, host: Host): Result.Result<Invocation | "help", string> => {
  const options: Options = { headers: {}, env: {}, timeout: undefined, verbose: false, json: false, help: false }
  try {
    const words = takeOptions([...argv], options, host, false)
    if (options.help || words.length === 0) return options.help ? Result.succeed("help") : Result.fail("Which server?")
    const { call: [tool, args, ...more], target } = divide(words, options, host)
    if (options.help) return Result.succeed("help")
    if (more.length > 0) throw new Wrong(`There is more after the tool and its arguments: ${more.join(" ")}`)
    if (target._tag === "Command" && Object.keys(options.headers).length > 0) {
      throw new Wrong("--header is for an address: a program has no headers")
    }
    return Result.succeed({ target, tool, args: argumentsOf(args), ...options })
  } catch (error) {
    if (error instanceof Wrong) return Result.fail(error.message)
    throw error
  }
}
