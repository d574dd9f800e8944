/**
 * The command line of `skein-call`: its options and operands, with their help.
 */
import type { Handle } from "@skein/client/RemoteTask"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { isUrl, splitWords, type ValueOptions } from "./commandLine.ts"
import { HelpText } from "./help.ts"

/** The server: a URL, or a program to start. */
export type Target =
  | { readonly _tag: "Url"; readonly url: URL }
  | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }

/** A parsed command line. */
export interface Invocation {
  readonly target: Target
  /** The tool to call. Without a tool and without `resume`, the tools are listed. */
  readonly tool: string | undefined
  readonly args: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Variables for the server's process. One without a value is passed on from this process. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** In milliseconds. */
  readonly timeout: number | undefined
  /** Whether the task of a call continues at the server when this program stops waiting for it. */
  readonly leave: boolean
  /** The task to wait for, instead of a call of a tool. */
  readonly resume: Handle | undefined
  readonly verbose: boolean
  readonly json: boolean
}

// A day, in seconds.
const maxTimeout = 86_400

const isHandle = (value: unknown): value is Handle => isObject(value) && typeof value["taskId"] === "string"

const parseJson = (text: string) => Result.try((): unknown => JSON.parse(text))

const invalid = (message: string) => Effect.fail(new CliError.ValidationError({ message }))

/** An option that may be repeated: the last one counts, so that a shell alias can set defaults. */
const last = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.atLeast(flag, 0), (values) => values.at(-1))

const toggle = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withoutNegation,
    Flag.withDescription(description),
    last,
    Flag.map((value) => value ?? false)
  )

// The values of `--header`, `--env` and `--resume` can be secrets: no message quotes them.
const withValue = {
  header: Flag.String("header").pipe(
    Flag.withMetavar("'Name: value'"),
    Flag.withDescription("Add a header to each HTTP request; can be repeated"),
    Flag.mapEffect((text) => {
      const [, name, value] = /^([^:]+):([^]*)$/.exec(text) ?? []
      return name === undefined || value === undefined
        ? invalid("--header needs the form 'Name: value'")
        : Effect.succeed([name.trim(), value.trim()] as const)
    }),
    Flag.atLeast(0),
    Flag.map((headers) => Object.fromEntries(headers))
  ),
  env: Flag.String("env").pipe(
    Flag.withMetavar("NAME[=value]"),
    Flag.withDescription(
      "Set a variable for the server's process; without a value, pass on that of this process; can be repeated"
    ),
    Flag.mapEffect((text) => {
      const [, name, value] = /^([^=]+)(?:=([^]*))?$/.exec(text) ?? []
      return name === undefined
        ? invalid("--env needs the form NAME or NAME=value")
        : Effect.succeed<readonly [string, string | undefined]>([name, value])
    }),
    Flag.atLeast(0),
    Flag.map((variables) => Object.fromEntries(variables))
  ),
  timeout: Flag.String("timeout").pipe(
    Flag.withMetavar("<seconds>"),
    Flag.withDescription(
      `How long to wait for the connection, and then for the result; at most ${maxTimeout}`
    ),
    Flag.mapEffect((text) => {
      const seconds = Number(text)
      return seconds > 0 && seconds <= maxTimeout
        ? Effect.succeed(seconds * 1_000)
        : invalid(`--timeout must be a number of seconds, at most ${maxTimeout}: ${JSON.stringify(text)}`)
    }),
    last
  ),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("<handle>"),
    Flag.withDescription(
      "Wait for the result of a task that was left running, and answer its questions; takes its handle or its id"
    ),
    Flag.mapEffect((text) => {
      if (!text.trimStart().startsWith("{")) return Effect.succeed<Handle>({ taskId: text })
      const handle = parseJson(text)
      return Result.isSuccess(handle) && isHandle(handle.success)
        ? Effect.succeed(handle.success)
        : invalid("--resume needs the handle of a task, or its id")
    }),
    last
  )
}

/** The options that are followed by a value. */
export const valueOptions: ValueOptions = /* @__PURE__ */ new Set(Object.keys(withValue))

const operands = {
  target: Argument.String("server").pipe(
    Argument.optional,
    Argument.mapEffect((server) => {
      const text = Option.getOrElse(server, () => "")
      if (isUrl(text)) {
        return URL.canParse(text)
          ? Effect.succeed<Target>({ _tag: "Url", url: new URL(text) })
          : invalid(`The URL of the server is not valid: ${text}`)
      }
      const [command, ...args] = splitWords(text)
      return command === undefined
        ? invalid("A server is required: its URL, or the command that starts it")
        : Effect.succeed<Target>({ _tag: "Command", command, args })
    })
  ),
  tool: Argument.String("tool").pipe(Argument.optional, Argument.map(Option.getOrUndefined)),
  args: Argument.String("json").pipe(
    Argument.mapEffect((text) => {
      const args = parseJson(text)
      if (Result.isFailure(args)) {
        const { failure: cause } = args
        return invalid(`The tool's arguments are not valid JSON: ${cause instanceof Error ? cause.message : cause}`)
      }
      return isObject(args.success)
        ? Effect.succeed(args.success)
        : invalid("The tool's arguments must be a JSON object")
    }),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )
}

const help = {
  usage: [
    "[options] <url> [<tool> [<json>]]",
    "[options] \"<command and its arguments>\" [<tool> [<json>]]",
    "[options] <command> <its arguments…> <tool> <json object>",
    "[options] <command> <its arguments…> -- [<tool> [<json>]]",
    "[options] --resume <handle> <url or command>"
  ],
  footer: "The result goes to stdout. Exit codes: 0 success, 1 the tool reported an error, 2 invalid command line, " +
    "3 no connection or no result in time, 4 the server refused the request or its answer was invalid, 130 interrupted."
}

/**
 * The options and operands of the command, without its handler. It parses a command line that `normalize` has
 * rewritten.
 */
export const callOptions = <const Name extends string>(name: Name) =>
  Command.make(name, {
    headers: withValue.header,
    env: withValue.env,
    timeout: withValue.timeout,
    leave: toggle(
      "leave",
      "When interrupted or out of time, leave the task of the call running and print its handle to stdout; " +
        "without this option the task is cancelled"
    ),
    resume: withValue.resume,
    json: toggle("json", "Print the whole result as JSON"),
    verbose: toggle("verbose", "Report progress, logs and the server's stderr on stderr"),
    ...operands
  }).pipe(
    Command.withDescription("Calls a tool of an MCP server, or lists its tools."),
    Command.annotate(HelpText, help),
    Command.validate(({ headers, resume, target, tool }) => {
      if (resume !== undefined && tool !== undefined) {
        return invalid(`--resume waits for a task and cannot call a tool: ${tool}`)
      }
      return target._tag === "Command" && Object.keys(headers).length > 0
        ? invalid("--header needs a server with a URL: a command has no headers")
        : Effect.void
    })
  )

/** The command, which loads the client only when it runs. */
export const callCommand = <const Name extends string>(name: Name) =>
  callOptions(name).pipe(
    Command.withHandler((invocation) =>
      Effect.flatMap(Effect.promise(() => import("./call.ts")), ({ runCall }) => runCall(invocation))
    )
  )
