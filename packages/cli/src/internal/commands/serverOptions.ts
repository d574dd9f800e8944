/**
 * The options of all commands that connect to a server: which server it is, how it is reached, and how its questions
 * are answered.
 */
import * as Revision from "@skein/protocol/Revision"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { hasAuthorization, isGiven, type SignInOptions } from "../accounts/signInOptions.ts"
import { parseWords } from "../base/givenArguments.ts"
import type { GivenAnswers } from "../connection/answers.ts"
import type { ServerInvocation, Target } from "../connection/connection.ts"
import { choice, invalid, isUrl, last, splitWords, toggle } from "./commandLine.ts"
import { isModule } from "../base/nodeFiles.ts"
import { checkSignIn, signInFlags } from "./signInFlags.ts"

// A day, in seconds.
const maxTimeout = 86_400

/** An option with a name and a value, which may be repeated. No message quotes it: the value can be a secret. */
const pairs = (name: string, metavar: string, form: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.mapEffect((text) => {
      const [, key, value] = /^([^=]+)=([^]*)$/.exec(text) ?? []
      return key === undefined || value === undefined
        ? invalid(`--${name} needs the form ${form}`)
        : Effect.succeed([key, value] as const)
    }),
    Flag.atLeast(0)
  )

/** `--with`: the values of other arguments. */
export const withFlag = pairs(
  "with",
  "<name>=<value>",
  "<name>=<value>",
  "The value of another argument that is already chosen; can be repeated"
).pipe(Flag.map((values): Readonly<Record<string, string>> => Object.fromEntries(values)))

// The values of `--header` and `--env` can be secrets: no message quotes them.
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

/** `--env`, which may be repeated. */
export const envFlag = Flag.String("env").pipe(
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
  Flag.map((variables): Readonly<Record<string, string | undefined>> => Object.fromEntries(variables))
)

/** `--export`, for a server that is a module. */
export const exportFlag = Flag.String("export").pipe(
  Flag.withMetavar("<name>"),
  Flag.withDescription("The export of a module that is the server: default, or the only server, by default"),
  last
)

/** A positive number of seconds, in milliseconds. */
export const seconds = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("<seconds>"),
    Flag.withDescription(description),
    Flag.mapEffect((text) => {
      const seconds = Number(text)
      return seconds > 0 && seconds <= maxTimeout
        ? Effect.succeed(seconds * 1_000)
        : invalid(`--${name} must be a number of seconds, at most ${maxTimeout}: ${JSON.stringify(text)}`)
    }),
    last
  )

/** The options of a server in a configuration. */
export const configFlags = {
  config: Flag.String("config").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription(
      "Take the server from a file with mcpServers, or with servers as VS Code writes it; must be before the operands"
    ),
    last
  ),
  server: Flag.String("server").pipe(
    Flag.withMetavar("<name>"),
    Flag.withDescription("The name of the server in the file of --config"),
    last
  ),
  input: pairs(
    "input",
    "<id>=<value>",
    "<id>=<value>",
    "The value of an input of the file of --config, which the terminal asks for otherwise"
  ).pipe(Flag.map((inputs): Readonly<Record<string, string>> => Object.fromEntries(inputs)))
}

/** The options of a command that can be asked, as members of a command. */
export const answeringFlags = {
  answer: pairs(
    "answer",
    "<key>=<value>",
    "<key>=<value>",
    "The value of a field, for the forms that the server asks for; can be repeated. Forms are then answered without the " +
      "terminal, and a form that the values do not fit is declined"
  ),
  answersFile: Flag.String("answers").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("A JSON file with the values of fields: an object, or an array with one for each form"),
    last
  )
}

/** The parsed options of {@link answeringFlags}. */
export interface AnsweringLine {
  readonly answer: GivenAnswers["values"]
  readonly answersFile: string | undefined
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
  config: configFlags.config,
  server: configFlags.server,
  inputs: configFlags.input,
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

/** A word as a server: undefined for an empty one. */
export const parseTarget = (text: string) => {
  if (isUrl(text)) {
    return URL.canParse(text)
      ? Effect.succeed<Target | undefined>({ _tag: "Url", url: new URL(text) })
      : invalid(`The URL of the server is not valid: ${text}`)
  }
  if (isModule(text)) return Effect.succeed<Target | undefined>({ _tag: "Module", file: text })
  const [command, ...args] = splitWords(text)
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

/** The report about a command line without a server. */
export const serverRequired = "A server is required: its URL, its module, or the command that starts it"

/** The report about `--export` without a module. */
export const needsModule = "--export needs a module as the server: the path of a file that exists"

/** Fails if the options contradict each other, or name no server. */
export const checkServer = (
  line: LocatedLine & Pick<ServerLine, "env" | "exportName" | "headers">
): ReturnType<typeof invalid> | Effect.Effect<void> => {
  const { config, env, exportName, headers, login, server, target } = line
  if (!login && isGiven(line)) return invalid("The options of a sign-in need --login, or the command skein login")
  if (login && target !== undefined && target._tag !== "Url" && config === undefined) {
    return invalid("--login needs a server with a URL: a command has no sign-in")
  }
  if (exportName !== undefined && target?._tag !== "Module") return invalid(needsModule)
  if (login && hasAuthorization(headers)) {
    return invalid("--login cannot be used with --header 'Authorization: …'")
  }
  const hasHeaders = Object.keys(headers).length > 0
  if (config !== undefined) {
    if (hasHeaders) return invalid("--header cannot be used with --config: the file has the headers")
    if (Object.keys(env).length > 0) return invalid("--env cannot be used with --config: the file has the variables")
    return checkSignIn(line)
  }
  if (server !== undefined) return invalid("--server needs --config, before the operands")
  if (target === undefined) return invalid(serverRequired)
  return target._tag !== "Url" && hasHeaders
    ? invalid("--header needs a server with a URL: a command has no headers")
    : checkSignIn(line)
}

/** Fails without the name of a server in the configuration. */
export const checkNamed = ({ config, server }: LocatedLine): ReturnType<typeof invalid> | Effect.Effect<void> =>
  config !== undefined && server === undefined
    ? invalid("--server is required: the name of the server in the file of --config")
    : Effect.void

/** Turns the options of a valid command line into the invocation of its server. */
export const serverInvocationOf = <Line extends LocatedLine & Partial<AnsweringLine>>(
  {
    answer = [],
    answersFile: file,
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
  }: Line
) => ({
  ...line,
  target: config === undefined ? target! : { _tag: "Configured", file: config, server } as const,
  signIn: login
    ? { assumePkce, clientId, issuer, noBrowser, omitResource, paste, port, redirectUri, scopes }
    : undefined,
  answers: answer.length === 0 && file === undefined ? undefined : { values: answer, file }
})
