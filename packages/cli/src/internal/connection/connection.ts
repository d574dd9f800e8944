/**
 * Connects a command to its server: the transport, the sign-in, the answers to questions, and the exit codes.
 */
import * as Client from "@skein/client/Client"
import { ClientError, InvalidResponse, NegotiationFailed, Timeout } from "@skein/client/ClientError"
import type { RequestOptions } from "@skein/client/Client"
import { isObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SignInOptions } from "../accounts/signInOptions.ts"
import type { GivenAnswers } from "./answers.ts"
import type { Server } from "./config.ts"
import { quoteLine, quoteName, sanitize, serverStderr } from "../base/format.ts"
import { CommandFailed, type Console, Process, version } from "../base/process.ts"
import { answeringOn, answeringWith } from "./modelAnswers.ts"
import { leaveOpen, stayOpen } from "./openQuestions.ts"
import { declineAll, onTerminal } from "./terminalElicitation.ts"

/** The server: a URL, a module to serve, a program to start, or an entry of a configuration. */
export type Target =
  | { readonly _tag: "Configured"; readonly file: string; readonly server: string | undefined }
  // Of a domain, the server is found by its catalog, which only `inspect` reads.
  | { readonly _tag: "Url"; readonly url: URL; readonly isDomain?: boolean }
  | { readonly _tag: "Module"; readonly file: string }
  | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }

/** How to reach a server: the part of a parsed command line that all commands have. */
export interface ServerInvocation {
  readonly target: Target
  /** The export of a module that is the server. Undefined: default, or the only one. */
  readonly exportName?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Variables for the server's process. One without a value is passed on from this process. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The values of inputs of the configuration. */
  readonly inputs: Readonly<Record<string, string>>
  /** In milliseconds. */
  readonly timeout: number | undefined
  /** The only revision of the protocol that the client accepts. Undefined: all. */
  readonly revision?: Revision.Revision | undefined
  readonly verbose: boolean
  /** Receives the stderr of a process that the command line starts, without `--verbose`. */
  readonly onStderr?: ((text: string) => void) | undefined
  readonly json: boolean
  /** How the person signs in when the server requires it. Undefined without `--login`. */
  readonly signIn: SignInOptions | undefined
  /** Undefined if the command line has no answers: the person answers forms, if there is a terminal. */
  readonly answers?: GivenAnswers | undefined
  /** The answers to sampling requests, in their order. Without them the person answers, if there is a terminal. */
  readonly sampling?: ReadonlyArray<string> | undefined
}

/**
 * The exit code for a failure: 3 without a connection or a result in time, 4 when the server refused or its answer was
 * invalid.
 */
export const exitCode = ({ reason }: ClientError): number => withoutResponse.has(reason._tag) ? 3 : 4

const withoutResponse: ReadonlySet<ClientError["reason"]["_tag"]> = /* @__PURE__ */ new Set(
  ["ConnectionFailed", "Closed", "HttpError", "Unauthorized", "Timeout", "NegotiationFailed"] as const
)

/**
 * Fails an effect that takes longer than `--timeout`. `what` is the beginning of the message: the action that was not completed. With `--login`
 * the timeouts of the client alone apply, since they do not count the time that a person takes to sign in.
 */
export const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { signIn, timeout }: Pick<ServerInvocation, "signIn" | "timeout">,
  what: string
): Effect.Effect<A, E | ClientError, R> =>
  timeout === undefined || signIn !== undefined ? effect : Effect.timeoutOrElse(effect, {
    duration: timeout,
    orElse: () => Effect.fail(new ClientError({ reason: new Timeout({ message: `${what} within ${timeout} ms` }) }))
  })

/** The timeouts of one request. Without `--timeout` progress keeps it alive. */
export const requestTime = ({ timeout }: ServerInvocation): Pick<RequestOptions, "timeout" | "maxTimeout"> => ({
  timeout,
  maxTimeout: timeout
})

/** Opens a client, which the scope closes. `name` is the name of this program, for the server. */
export const connect = (
  { options, transport }: Server,
  invocation: ServerInvocation,
  name = "skein",
  more: Client.Options = {}
): Effect.Effect<Client.Client, ClientError, Scope.Scope> => {
  const { revision } = invocation
  const revisions = revision === undefined ? {} : { revisions: [revision] }
  return within(
    Client.make(transport, { info: { name, version }, ...options, ...more, ...revisions }),
    invocation,
    "The client did not connect"
  )
}

/** Reports the server, with `--verbose`. */
export const reportServer = (client: Client.Client, { verbose }: ServerInvocation, { warn }: Console): void => {
  if (!verbose) return
  const { name = "an unnamed server", version = "" } = client.server ?? {}
  warn(sanitize(`Connected to ${name} ${version} (protocol ${client.revision})`))
}

/** Formats a result. One that is nested deeper than the stack cannot be formatted, which is the fault of the server. */
export const format = (name: string, text: () => string): Effect.Effect<string, ClientError> =>
  Effect.try({
    try: text,
    catch: (cause) => {
      const message = `The result of ${name} cannot be printed: ${cause instanceof Error ? cause.message : cause}`
      return new ClientError({ reason: new InvalidResponse({ message, cause }) })
    }
  })

/** The variables for the server's process. A variable without a value gets the value that it has in this process. */
export const resolveEnv = (
  env: ServerInvocation["env"],
  inherited: ServerInvocation["env"]
): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? inherited[name]]))

/** The variable that lets a server show the causes of its failures, which are those of the person who develops it. */
export const development = { SKEIN_DEVELOPMENT: "true" } as const

/** The command that starts a server on stdio: `skein run` for a module. */
export const commandOf = (
  target: Exclude<Target, { readonly _tag: "Configured" | "Url" }>,
  exportName: string | undefined
): Effect.Effect<{ readonly command: string; readonly args: ReadonlyArray<string> }> =>
  target._tag === "Command" ? Effect.succeed(target) : Effect.map(
    Effect.promise(() => import("../base/nodeProgram.ts")),
    ({ runCommandLine }) => runCommandLine({ module: target.file, exportName })
  )

/**
 * The server of the target, and its URL, if a sign-in there could help after a refusal. Only the module of its transport
 * is loaded, and what a sign-in needs if there is one.
 */
const serverOf = Effect.fnUntraced(function*(invocation: ServerInvocation, process: Process["Service"]) {
  const { env, headers, inputs, target, verbose } = invocation
  const { console, env: inherited, terminal } = process
  if (target._tag === "Command" || target._tag === "Module") {
    const { args, command } = yield* commandOf(target, invocation.exportName)
    const { transport } = yield* Effect.promise(() => import("@skein/client/Stdio"))
    const stderr = serverStderr(verbose, console, invocation.onStderr)
    const variables = { ...target._tag === "Module" ? development : {}, ...resolveEnv(env, inherited) }
    const started = transport({ command, args, env: variables, stderr })
    return { server: { transport: started }, signInUrl: () => undefined }
  }
  const { makeSignIns } = yield* Effect.promise(() => import("../accounts/callCredentials.ts"))
  const signIns = yield* makeSignIns(invocation.signIn)
  if (target._tag === "Configured") {
    const { configuredIn } = yield* Effect.promise(() => import("./config.ts"))
    const { credentials } = signIns
    const { server } = yield* configuredIn(target, {
      console,
      credentials,
      env: inherited,
      inputs,
      terminal,
      verbose
    })
    yield* signIns.prepared
    return { server, signInUrl: signIns.url }
  }
  const { url } = target
  const { transport } = yield* Effect.promise(() => import("@skein/client/NodeHttp"))
  const credentials = signIns.credentials(url, headers)
  yield* signIns.prepared
  return { server: { transport: transport({ url, headers, credentials }) }, signInUrl: signIns.url }
})

const serverName = ({ target }: ServerInvocation): string => {
  switch (target._tag) {
    case "Url":
      return target.url.host
    case "Configured":
      return target.server ?? ""
    case "Module":
      return target.file
    case "Command":
      return [target.command, ...target.args].join(" ")
  }
}

/** The end of the report of a failure: what the person can do about it. */
const adviceOf = ({ message, reason }: ClientError, { target, verbose }: ServerInvocation): string => {
  const error = "error" in reason ? reason.error : undefined
  const reference = error?.reason === "InternalError" && isObject(error.data) ? error.data["reference"] : undefined
  if (typeof reference === "string") {
    const isStarted = target._tag === "Command" || target._tag === "Module"
    const log = `the log of the server has the cause${isStarted && !verbose ? ": use --verbose" : ""}`
    return ` (reference ${quoteName(reference)}: ${log})`
  }
  if (target._tag !== "Url") return ""
  if (/ is not among the allowedHosts of the server/.test(message)) {
    const { hostname } = target.url
    return `. Add its name to the allowedHosts of the server: SKEIN_ALLOWED_HOSTS=${quoteLine(hostname)}`
  }
  const { pathname } = target.url
  // Other servers answer with a page of their own.
  const isMissing = message.includes("there is no such endpoint here") ||
    (pathname === "/" && reason._tag === "HttpError" && reason.status === 404)
  return isMissing && pathname !== "/mcp"
    ? `; did you mean ${quoteLine(new URL("/mcp", target.url).href)}?`
    : ""
}

/** The failure of the client as that of the command. A refusal says how to sign in. */
const failed = (
  error: ClientError,
  invocation: ServerInvocation,
  signInUrl: URL | undefined
): Effect.Effect<never, CommandFailed> => {
  const { message, reason } = error
  const advice = adviceOf(error, invocation)
  return reason._tag === "Unauthorized"
    ? Effect.flatMap(
      Effect.promise(() => import("../accounts/callCredentials.ts")),
      ({ unauthorized }) => Effect.fail(unauthorized(reason, signInUrl, advice))
    )
    : Effect.fail(new CommandFailed({ exitCode: exitCode(error), report: message + advice }))
}

/**
 * Runs a command on its server, with the answers to its questions. `use` returns the exit code. A form that was
 * declined because of the answers of the command line decides the exit code in any case. With `keepsQuestions` a
 * question that has no answer stays open, and ends the command.
 */
export const onServer = (
  invocation: ServerInvocation,
  use: (
    server: Server,
    console: Console
  ) => Effect.Effect<number, ClientError | CommandFailed, Process>,
  { keepsQuestions = false }: { readonly keepsQuestions?: boolean | undefined } = {}
): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const process = yield* Process
    const { console, terminal } = process
    const leftOpen = yield* Deferred.make<never, CommandFailed>()
    const turn = Semaphore.makeUnsafe(1)
    const name = sanitize(serverName(invocation))
    const atEnd = keepsQuestions
      ? stayOpen(leftOpen, "The task waits for an answer: run the command again to give it")
      : undefined
    const onPerson = terminal !== undefined
      ? onTerminal(terminal, name, turn, atEnd)
      : keepsQuestions
      ? leaveOpen(console, leftOpen)
      : declineAll(console)
    const { answers, sampling = [] } = invocation
    const model = sampling.length > 0
      ? answeringWith(sampling, console, atEnd)
      : terminal === undefined
      ? Layer.empty
      : answeringOn(terminal, name, turn, atEnd)
    const given = answers === undefined ? undefined : yield* Effect.flatMap(
      Effect.promise(() => import("./answers.ts")),
      ({ answering, doNotFit }) =>
        Effect.map(
          answering(answers, console, onPerson, keepsQuestions ? leftOpen : undefined),
          (answering) => ({ ...answering, doNotFit })
        )
    )
    const { server, signInUrl } = yield* serverOf(invocation, process)
    const exit = yield* use(server, console).pipe(
      Effect.raceFirst(Deferred.await(leftOpen)),
      Effect.provide([given?.layer ?? onPerson, model]),
      Effect.provideService(References.LogToStderr, true),
      Effect.provideService(References.MinimumLogLevel, invocation.verbose ? "Debug" : "None"),
      Effect.catchTag("ClientError", (error) => failed(error, invocation, signInUrl())),
      Effect.result
    )
    const declined = given?.hasDeclined() === true ? given.doNotFit : undefined
    if (exit._tag === "Failure") {
      const { exitCode, report } = exit.failure
      return yield* new CommandFailed({ exitCode: declined ?? exitCode, report })
    }
    const code = declined ?? exit.success
    if (code !== 0) return yield* new CommandFailed({ exitCode: code })
  }).pipe(Effect.scoped)

/** The options of a command for its client. */
interface ClientNeeds {
  /** Options of the client, beside those of the command line. */
  readonly client?: Client.Options | undefined
  /** The advice at the end of the message, if the server has none of the revisions. */
  readonly negotiationAdvice?: string | undefined
  /** Whether a question that has no answer stays open, and ends the command. */
  readonly keepsQuestions?: boolean | undefined
}

/** Runs a command on a client of its server. */
export const onClient = (
  invocation: ServerInvocation,
  use: (client: Client.Client, console: Console, server: Server) => Effect.fn.Return<
    number | void,
    ClientError | CommandFailed,
    Process | Scope.Scope
  >,
  { client: more, keepsQuestions, negotiationAdvice }: ClientNeeds = {}
): Effect.Effect<void, CommandFailed, Process> =>
  onServer(invocation, (server, console) =>
    Effect.scoped(Effect.gen(function*() {
      const connecting = connect(server, invocation, "skein", more)
      const client = yield* negotiationAdvice === undefined ? connecting : Effect.mapError(
        connecting,
        (error) =>
          error.reason._tag === "NegotiationFailed"
            ? new ClientError({
              reason: new NegotiationFailed({ ...error.reason, message: `${error.message}. ${negotiationAdvice}` })
            })
            : error
      )
      reportServer(client, invocation, console)
      return (yield* use(client, console, server)) ?? 0
    })), { keepsQuestions })
