/**
 * The options of all commands that connect to a server: which server it is, how it is reached, and how its questions
 * are answered.
 */
import * as Revision from "@skein/protocol/Revision"
import * as Argument from "effect/cli/Argument"
import type * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import { hasAuthorization, isGiven, type SignInOptions } from "../accounts/signInOptions.ts"
import { parseWords } from "../base/givenArguments.ts"
import type { GivenAnswers } from "../connection/answers.ts"
import type { ServerInvocation, Target } from "../connection/connection.ts"
import {
  choice,
  invalid,
  isDomain,
  isUrl,
  last,
  maxTimeout,
  seconds,
  splitWords,
  text,
  texts,
  toggle,
  withScheme
} from "./commandLine.ts"
import { isModule, isProgramName } from "../base/nodeFiles.ts"
import { checkSignIn, signInFlags } from "./signInFlags.ts"

/** An option with a name and a value, which may be repeated. No message quotes it: the value can be a secret. */
const pairs = <A>(
  name: string,
  metavar: string,
  description: string,
  parse: (text: string) => readonly [string, A] | undefined,
  form = metavar
) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.mapEffect((text) => {
      const pair = parse(text)
      return pair === undefined ? invalid(`--${name} needs the form ${form}`) : Effect.succeed(pair)
    }),
    Flag.atLeast(0)
  )

/** Splits `key=value`. */
const assignment = (text: string): readonly [string, string] | undefined => {
  const [, key, value] = /^([^=]+)=([^]*)$/.exec(text) ?? []
  return key === undefined || value === undefined ? undefined : [key, value]
}

const toRecord = <A>(pairs: ReadonlyArray<readonly [string, A]>): Readonly<Record<string, A>> =>
  Object.fromEntries(pairs)

/** `--with`: the values of other arguments. */
export const withFlag = pairs(
  "with",
  "<name>=<value>",
  "The value of another argument that is already chosen; can be repeated",
  assignment
).pipe(Flag.map(toRecord))

/** `--header`, which may be repeated. */
export const headerFlag = pairs(
  "header",
  "'Name: value'",
  "Add a header to each HTTP request; can be repeated",
  (text) => {
    const [, name, value] = /^([^:]+):([^]*)$/.exec(text) ?? []
    return name === undefined || value === undefined ? undefined : [name.trim(), value.trim()]
  }
).pipe(Flag.map(toRecord))

/** `--env`, which may be repeated. */
export const envFlag = pairs(
  "env",
  "NAME[=value]",
  "Set a variable for the server's process; without a value, pass on that of this process; can be repeated",
  (text): readonly [string, string | undefined] | undefined => {
    const [, name, value] = /^([^=]+)(?:=([^]*))?$/.exec(text) ?? []
    return name === undefined ? undefined : [name, value]
  },
  "NAME or NAME=value"
).pipe(Flag.map(toRecord))

/** `--export`, for a server that is a module. */
export const exportFlag = text(
  "export",
  "<name>",
  "The export of a module that is the server: default, or the only server, by default"
)

/** The options of a server in a configuration, as members of a command. */
export const configFlags = {
  config: text(
    "config",
    "<file>",
    "Take the server from a file with mcpServers, or with servers as VS Code writes it; must be before the operands"
  ),
  server: text("server", "<name>", "The name of the server in the file of --config"),
  inputs: pairs(
    "input",
    "<id>=<value>",
    "The value of an input of the file of --config, which the terminal asks for otherwise",
    assignment
  ).pipe(Flag.map(toRecord))
}

/** The options of a command that can be asked, as members of a command. */
export const answeringFlags = {
  answer: pairs(
    "answer",
    "<key>=<value>",
    "The value of a field, for the forms that the server asks for; can be repeated. Forms are then answered without the " +
      "terminal, and a form that the values do not fit is declined",
    assignment
  ),
  answersFile: text(
    "answers",
    "<file>",
    "A JSON file with the values of fields: an object, or an array with one for each form"
  ),
  sampling: texts(
    "sampling",
    "<text>",
    "The answer to a sampling request of the server, in the place of a language model; can be repeated, for one request " +
      "after the other"
  )
}

/** The parsed options of {@link answeringFlags}. */
export interface AnsweringLine {
  readonly answer: GivenAnswers["values"]
  readonly answersFile: string | undefined
  readonly sampling: ReadonlyArray<string> | undefined
}

/** `--login`. */
export const loginFlag = toggle(
  "login",
  "Sign in when the server requires it, and store the tokens; without it, stored tokens are used"
)

/** The options, and the operand of the server, as members of a command. */
export const serverFlags = {
  headers: headerFlag,
  env: envFlag,
  exportName: exportFlag,
  ...configFlags,
  timeout: seconds(
    "timeout",
    `How long to wait for the connection, and then for the result; at most ${maxTimeout}. With --login, only for the ` +
      "result; the time of a sign-in does not count"
  ),
  revision: choice(
    "revision",
    Revision.all,
    "<date>",
    "The only revision of the protocol to accept; by default the newest one that the server has"
  ).pipe(last),
  verbose: toggle("verbose", "Report progress, logs and the server's stderr on stderr"),
  login: loginFlag,
  ...signInFlags
}

const moduleExtension = /\.[cm]?[jt]sx?$/

/** A word as a server: undefined for an empty one. */
export const parseTarget = (text: string) => {
  if (isUrl(text)) {
    return URL.canParse(text)
      ? Effect.succeed<Target | undefined>({ _tag: "Url", url: new URL(text) })
      : invalid(`The URL of the server is not valid: ${text}`)
  }
  if (isModule(text)) return Effect.succeed<Target | undefined>({ _tag: "Module", file: text })
  if (isDomain(text)) {
    const url = new URL(withScheme(text))
    return Effect.succeed<Target | undefined>({ _tag: "Url", url, isDomain: true })
  }
  const [command, ...args] = splitWords(text)
  if (command !== undefined && moduleExtension.test(command) && !isProgramName(command)) {
    return invalid(`The module ${command} does not exist`)
  }
  return Effect.succeed<Target | undefined>(command === undefined ? undefined : { _tag: "Command", command, args })
}

/** The operand of the server. */
export const targetArgument = Argument.String("server").pipe(
  Argument.optional,
  Argument.mapEffect((server) => parseTarget(Option.getOrElse(server, () => "")))
)

/** The operands after the name of a tool or a prompt. See {@link parseWords}. */
export const argumentWords = (owner: string) =>
  Argument.String("arguments").pipe(
    Argument.variadic(),
    Argument.mapEffect((words) => {
      const parsed = parseWords(owner, words)
      return Result.isSuccess(parsed) ? Effect.succeed(parsed.success) : invalid(parsed.failure)
    })
  )

/** The parsed options of {@link serverFlags} and {@link targetArgument}. */
export interface ServerLine extends Omit<ServerInvocation, "target" | "signIn" | "json" | "answers">, SignInOptions {
  readonly config: string | undefined
  readonly login: boolean
  readonly server: string | undefined
  readonly target: Target | undefined
}

/** The part of {@link ServerLine} that decides which server it is, and how a person signs in to it. */
export type LocatedLine = Pick<ServerLine, "config" | "login" | "server" | "target"> & SignInOptions

/** The part of {@link ServerLine} with the options that not every server has. */
type TargetLine = Pick<ServerLine, "config" | "env" | "exportName" | "headers" | "server" | "target">

/** Fails if the options are not those of the server, or name no server. A domain is one for `inspect` only. */
export const checkTarget = (
  { config, env, exportName, headers, server, target }: TargetLine,
  acceptsDomain = false
): Effect.Effect<void, CliError.ValidationError> => {
  if (exportName !== undefined && target?._tag !== "Module") {
    return invalid("--export needs a module as the server: the path of a file that exists")
  }
  const hasHeaders = Object.keys(headers).length > 0
  if (config !== undefined) {
    if (hasHeaders) return invalid("--header cannot be used with --config: the file has the headers")
    return Object.keys(env).length > 0
      ? invalid("--env cannot be used with --config: the file has the variables")
      : Effect.void
  }
  if (server !== undefined) return invalid("--server needs --config, before the operands")
  if (target === undefined) {
    return invalid("A server is required: its URL, its module, or the command that starts it")
  }
  if (target._tag === "Url" && target.isDomain === true) {
    const { host } = target.url
    if (!acceptsDomain) {
      const at = new URL("/mcp", target.url).href
      return invalid(`${host} is a domain: give the URL of its server, such as ${at}. skein inspect ${host} finds it`)
    }
    // The catalog of the domain decides where the server is, and must not decide who receives a secret.
    if (hasHeaders) return invalid(`--header needs the URL of the server: skein inspect ${host} prints it`)
  }
  return target._tag !== "Url" && hasHeaders
    ? invalid("--header needs a server with a URL: a command has no headers")
    : Effect.void
}

/** Fails if the options contradict each other, or name no server. */
export const checkServer = (
  line: LocatedLine & TargetLine,
  acceptsDomain = false
): Effect.Effect<void, CliError.ValidationError> => {
  const { config, headers, login, target } = line
  if (!login && isGiven(line)) return invalid("The options of a sign-in need --login, or the command skein login")
  if (login && target !== undefined && target._tag !== "Url" && config === undefined) {
    return invalid("--login needs a server with a URL: a command has no sign-in")
  }
  return login && hasAuthorization(headers)
    ? invalid("--login cannot be used with --header 'Authorization: …'")
    : Effect.andThen(checkTarget(line, acceptsDomain), checkSignIn(line))
}

/** Fails without the name of a server in the configuration. */
export const checkNamed = (
  { config, server }: Pick<ServerLine, "config" | "server">
): Effect.Effect<void, CliError.ValidationError> =>
  config !== undefined && server === undefined
    ? invalid("--server is required: the name of the server in the file of --config")
    : Effect.void

/** As {@link checkServer}, and fails without the name of a server in the configuration. */
export const checkOneServer = (line: LocatedLine & TargetLine, acceptsDomain = false) =>
  Effect.andThen(checkServer(line, acceptsDomain), checkNamed(line))

const signInNames = Object.keys(signInFlags) as ReadonlyArray<keyof SignInOptions>

/** Turns the options of a valid command line into the invocation of its server. */
export const serverInvocationOf = <Line extends LocatedLine & Partial<AnsweringLine>>(line: Line) => {
  const { answer = [], answersFile: file, config, login, server, target, ...rest } = line
  return {
    ...rest,
    target: config === undefined ? target! : { _tag: "Configured", file: config, server } as const,
    signIn: login ? Struct.pick<SignInOptions, typeof signInNames>(line, signInNames) : undefined,
    answers: answer.length === 0 && file === undefined ? undefined : { values: answer, file }
  }
}
