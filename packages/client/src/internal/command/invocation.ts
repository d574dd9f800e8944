/**
 * What `skein-call` is asked to do, read from its arguments.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as Result from "effect/Result"
import type { Handle } from "../tasks/handle.ts"

/** The server: an address, or a program to start. */
export type Target =
  | { readonly _tag: "Url"; readonly url: URL }
  | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }

/** See the module's text. */
export interface Invocation {
  readonly target: Target
  /** Without one, and without a task, the tools are listed. */
  readonly tool: string | undefined
  readonly args: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** In milliseconds. */
  readonly timeout: number | undefined
  /** Whether a task goes on that is not waited for any more. */
  readonly leave: boolean
  /** A task that goes on, in a tool's stead. */
  readonly resume: Handle | undefined
  readonly verbose: boolean
  readonly json: boolean
}

/** What is printed for `--help`, and what is said about wrong arguments. */
export const usage = `Calls a tool of an MCP server, or lists its tools.

  skein-call [options] <url> [<tool> [<json>]]
  skein-call [options] "<command and its arguments>" [<tool> [<json>]]
  skein-call [options] <command> <its arguments…> <tool> <json object>
  skein-call [options] <command> <its arguments…> -- [<tool> [<json>]]
  skein-call [options] --resume <handle> <url or command>

  --header 'Name: value'   a header for each request, over HTTP; may be repeated
  --env NAME[=value]       a variable for the server's process; without a value that of this one; may be repeated
  --timeout <seconds>      how long to wait for the connection, and then for the answer
  --leave                  leave the task of a call running that is interrupted, or not answered in time, and print its handle
                           to stdout; without it the task is cancelled
  --resume <handle>        wait for the result of a task that was left, by its handle or its id, and answer its questions
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
  leave: boolean
  resume: Handle | undefined
  verbose: boolean
  json: boolean
  help: boolean
}

/** What this program was started in. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
}

// A day.
const maxTimeout = 86_400

const isUrl = (word: string): boolean => /^https?:\/\//i.test(word)

const handleOf = (text: string): Result.Result<Handle, string> => {
  if (!text.trimStart().startsWith("{")) return Result.succeed({ taskId: text })
  try {
    const handle: unknown = JSON.parse(text)
    if (isObject(handle) && typeof handle["taskId"] === "string") return Result.succeed(handle as unknown as Handle)
  } catch {
    // It is none then.
  }
  return Result.fail("--resume needs the handle of a task, or its id")
}

/** Reads the options at the start of the words, or wherever they are, and gives the other words. */
const takeOptions = (given: ReadonlyArray<string>, options: Options, { env }: Host, anywhere: boolean) =>
  Result.gen(function*() {
    const words = [...given]
    const rest: Array<string> = []
    while (words.length > 0) {
      const word = words.shift()!
      if (!word.startsWith("-") || word === "-" || word === "--") {
        rest.push(word)
        if (anywhere) continue
        return [...rest, ...words]
      }
      const [, name = word, inline] = /^(--[a-z]+)=([^]*)$/.exec(word) ?? []
      const needed = (): Result.Result<string, string> => {
        const value = inline ?? words.shift()
        return value === undefined ? Result.fail(`${name} needs a value`) : Result.succeed(value)
      }
      switch (name) {
        case "--header": {
          const [, header, value] = /^([^:]+):([^]*)$/.exec(yield* needed()) ?? []
          if (header === undefined || value === undefined) return yield* Result.fail("--header needs 'Name: value'")
          options.headers[header.trim()] = value.trim()
          break
        }
        case "--env": {
          const [, variable, value] = /^([^=]+)(?:=([^]*))?$/.exec(yield* needed()) ?? []
          if (variable === undefined) return yield* Result.fail("--env needs NAME or NAME=value")
          options.env[variable] = value ?? env[variable]
          break
        }
        case "--timeout": {
          const seconds = Number(yield* needed())
          if (!(seconds > 0 && seconds <= maxTimeout)) {
            return yield* Result.fail(`--timeout needs seconds, at most ${maxTimeout}`)
          }
          options.timeout = seconds * 1_000
          break
        }
        case "--leave":
          options.leave = true
          break
        case "--resume":
          options.resume = yield* handleOf(yield* needed())
          break
        case "--verbose":
          options.verbose = true
          break
        case "--json":
          options.json = true
          break
        case "-h":
        case "--help":
          options.help = true
          break
        default:
          return yield* Result.fail(`${word} is no option`)
      }
    }
    return rest
  })

/** Splits a command as a shell would do it, as far as quotes go. Nothing is expanded, and no shell is run. */
const split = (text: string): ReadonlyArray<string> => {
  const words = text.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? []
  return words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single))
}

const commandOf = ([command, ...args]: ReadonlyArray<string>): Result.Result<Target, string> =>
  command === undefined ? Result.fail("Which server?") : Result.succeed({ _tag: "Command", command, args })

/** Where the server ends and the tool begins. */
const divide = (words: ReadonlyArray<string>, options: Options, host: Host) =>
  Result.gen(function*() {
    const first = words[0] ?? ""
    if (isUrl(first)) {
      const [text = "", ...call] = yield* takeOptions(words, options, host, true)
      if (!URL.canParse(text)) return yield* Result.fail(`${text} is no address`)
      const target: Target = { _tag: "Url", url: new URL(text) }
      return { target, call: call.filter((word) => word !== "--") }
    }
    const dashes = words.indexOf("--")
    if (dashes >= 0) {
      const before = words.slice(0, dashes)
      const target = yield* commandOf(before)
      return { target, call: yield* takeOptions(words.slice(dashes + 1), options, host, true) }
    }
    if (/\s/.test(first.trim())) {
      const [, ...call] = yield* takeOptions(words, options, host, true)
      return { target: yield* commandOf(split(first)), call }
    }
    const isCall = words.length >= 3 && /^\s*\{/.test(words.at(-1)!)
    return isCall
      ? { target: yield* commandOf(words.slice(0, -2)), call: words.slice(-2) }
      : { target: yield* commandOf(words), call: [] }
  })

const argumentsOf = (text: string | undefined): Result.Result<Invocation["args"], string> => {
  if (text === undefined) return Result.succeed(undefined)
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? Result.succeed(value) : Result.fail("The arguments of the tool have to be a JSON object")
  } catch (cause) {
    return Result.fail(`The arguments of the tool are no JSON: ${(cause as Error).message}`)
  }
}

/** Reads the arguments. `help` where help is asked for; a line that says what is wrong. */
export const parse = (argv: ReadonlyArray<string>, host: Host): Result.Result<Invocation | "help", string> =>
  Result.gen(function*() {
    const options: Options = {
      headers: {},
      env: {},
      timeout: undefined,
      leave: false,
      resume: undefined,
      verbose: false,
      json: false,
      help: false
    }
    const words = yield* takeOptions(argv, options, host, false)
    if (options.help) return "help"
    const { call: [tool, args, ...more], target } = yield* divide(words, options, host)
    if (options.help) return "help"
    if (more.length > 0) return yield* Result.fail(`There is more after the tool and its arguments: ${more.join(" ")}`)
    const { headers, env, timeout, leave, resume, verbose, json } = options
    if (resume !== undefined && tool !== undefined) {
      return yield* Result.fail(`--resume goes on with a task, and calls no tool: ${tool}`)
    }
    if (target._tag === "Command" && Object.keys(headers).length > 0) {
      return yield* Result.fail("--header is for an address: a program has no headers")
    }
    return { target, tool, args: yield* argumentsOf(args), headers, env, timeout, leave, resume, verbose, json }
  })
