/**
 * The command line of `skein-call`: its options and operands, with their help.
 */
import type { Handle } from "@skein/client/RemoteTask"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { invalid, isUrl, last, splitWords, toggle, type ValueOptions } from "./commandLine.ts"
import { HelpText } from "./help.ts"
import {
  checkSignIn,
  hasAuthorization,
  isGiven,
  signInFlags,
  type SignInOptions,
  signInValueOptions
} from "./signInOptions.ts"

/** The server: a URL, a program to start, or an entry of a configuration. */
export type Target =
  | { readonly _tag: "Configured"; readonly file: string; readonly server: string | undefined }
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
  /** The values of inputs of the configuration. */
  readonly inputs: Readonly<Record<string, string>>
  /** In milliseconds. */
  readonly timeout: number | undefined
  /** Whether the task of a call continues at the server when this program stops waiting for it. */
  readonly leave: boolean
  /** The task to wait for, instead of a call of a tool. */
  readonly resume: Handle | undefined
  readonly verbose: boolean
  readonly json: boolean
  /** How the person signs in when the server requires it. Undefined without `--login`. */
  readonly signIn: SignInOptions | undefined
}

// A day, in seconds.
const maxTimeout = 86_400

const isHandle = (value: unknown): value is Handle => isObject(value) && typeof value["taskId"] === "string"

const parseJson = (text: string) => Result.try((): unknown => JSON.parse(text))

// The values of `--header`, `--env` and `--resume` can be secrets: no message quotes them.
/** `--header`, which may be repeated. */
export const headerFlag = Flag.String("header").pipe(
  Flag.withMetavar("'Name: value'"),
  Flag.withDescription("Add a header to each HTTP request; can be repeated"),
  Flag.mapEffect((text) => {
    const [, name, value] = /^([^:]+):([^]*)$/.exec(text) ?? []
    return name === undefined || value === undefined
      ? invalid("--header needs the form 'Name: value'")
      : Effect.succeed([name.trim(), value.trim()] as const)
  }),
  Flag.atLeast(0),
  Flag.map((headers): Readonly<Record<string, string>> => Object.fromEntries(headers))
)

const withValue = {
  header: headerFlag,
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
  config: Flag.String("config").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription(
      "Take the server from a file with mcpServers, or with servers as VS Code writes it; without --server, list the " +
        "servers of the file. Must be before the tool"
    ),
    last
  ),
  server: Flag.String("server").pipe(
    Flag.withMetavar("<name>"),
    Flag.withDescription("The name of the server in the file of --config"),
    last
  ),
  input: Flag.String("input").pipe(
    Flag.withMetavar("<id>=<value>"),
    Flag.withDescription("The value of an input of the file of --config, which the terminal asks for otherwise"),
    Flag.mapEffect((text) => {
      const [, id, value] = /^([^=]+)=([^]*)$/.exec(text) ?? []
      return id === undefined || value === undefined
        ? invalid("--input needs the form <id>=<value>")
        : Effect.succeed([id, value] as const)
    }),
    Flag.atLeast(0),
    Flag.map((inputs) => Object.fromEntries(inputs))
  ),
  timeout: Flag.String("timeout").pipe(
    Flag.withMetavar("<seconds>"),
    Flag.withDescription(
      `How long to wait for the connection, and then for the result; at most ${maxTimeout}. With --login, only for the ` +
        "result; the time of a sign-in does not count"
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
export const valueOptions: ValueOptions = /* @__PURE__ */ new Set([...Object.keys(withValue), ...signInValueOptions])

const operands = {
  target: Argument.String("server").pipe(
    Argument.optional,
    Argument.mapEffect((server) => {
      const text = Option.getOrElse(server, () => "")
      if (isUrl(text)) {
        return URL.canParse(text)
          ? Effect.succeed<Target | undefined>({ _tag: "Url", url: new URL(text) })
          : invalid(`The URL of the server is not valid: ${text}`)
      }
      const [command, ...args] = splitWords(text)
      return Effect.succeed<Target | undefined>(command === undefined ? undefined : { _tag: "Command", command, args })
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
    "[options] --resume <handle> <url or command>",
    "[options] --config <file> [--server <name> [<tool> [<json>]]]"
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
    config: withValue.config,
    server: withValue.server,
    inputs: withValue.input,
    timeout: withValue.timeout,
    leave: toggle(
      "leave",
      "When interrupted or out of time, leave the task of the call running and print its handle to stdout; " +
        "without this option the task is cancelled"
    ),
    resume: withValue.resume,
    json: toggle("json", "Print the whole result as JSON"),
    verbose: toggle("verbose", "Report progress, logs and the server's stderr on stderr"),
    login: toggle(
      "login",
      "Sign in when the server requires it, and store the tokens; without it, stored tokens are used"
    ),
    ...signInFlags,
    ...operands
  }).pipe(
    Command.withDescription("Calls a tool of an MCP server, or lists its tools."),
    Command.annotate(HelpText, help),
    Command.validate((line) => {
      const { config, env, headers, login, resume, server, target, tool } = line
      if (!login && isGiven(line)) return invalid("The options of a sign-in need --login, or the command skein login")
      if (login && target?._tag === "Command" && config === undefined) {
        return invalid("--login needs a server with a URL: a command has no sign-in")
      }
      if (login && hasAuthorization(headers)) {
        return invalid("--login cannot be used with --header 'Authorization: …'")
      }
      if (resume !== undefined && tool !== undefined) {
        return invalid(`--resume waits for a task and cannot call a tool: ${tool}`)
      }
      const hasHeaders = Object.keys(headers).length > 0
      if (config !== undefined) {
        if (hasHeaders) return invalid("--header cannot be used with --config: the file has the headers")
        if (Object.keys(env).length > 0) {
          return invalid("--env cannot be used with --config: the file has the variables")
        }
        return server === undefined && (tool !== undefined || resume !== undefined)
          ? invalid("--server is required: the name of the server in the file of --config")
          : Effect.void
      }
      if (server !== undefined) return invalid("--server needs --config, before the tool")
      if (target === undefined) return invalid("A server is required: its URL, or the command that starts it")
      return target._tag === "Command" && hasHeaders
        ? invalid("--header needs a server with a URL: a command has no headers")
        : Effect.void
    }),
    Command.validate((line) => checkSignIn(line))
  )

/** The invocation of a valid command line. */
export const invocationOf = (
  {
    assumePkce,
    clientId,
    config,
    issuer,
    login,
    noBrowser,
    omitResource,
    paste,
    port,
    redirectUri,
    scopes,
    server,
    target,
    ...line
  }:
    & Omit<Invocation, "target" | "signIn">
    & SignInOptions
    & {
      readonly config: string | undefined
      readonly login: boolean
      readonly server: string | undefined
      readonly target: Target | undefined
    }
): Invocation => ({
  ...line,
  target: config === undefined ? target! : { _tag: "Configured", file: config, server },
  signIn: login
    ? { assumePkce, clientId, issuer, noBrowser, omitResource, paste, port, redirectUri, scopes }
    : undefined
})

/** The command, which loads the client only when it runs. */
export const callCommand = <const Name extends string>(name: Name) =>
  callOptions(name).pipe(
    Command.withHandler((line) =>
      Effect.flatMap(Effect.promise(() => import("./call.ts")), ({ runCall }) => runCall(invocationOf(line)))
    )
  )
