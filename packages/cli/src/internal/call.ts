/**
 * One run of `skein-call`: connects, calls a tool or lists the tools, and prints the result.
 */
import * as Client from "@skein/client/Client"
import { ClientError, InvalidResponse, Timeout } from "@skein/client/ClientError"
import * as Logging from "@skein/client/Logging"
import type { RemoteTask, State } from "@skein/client/RemoteTask"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Invocation } from "./callCommand.ts"
import type { Server } from "./config.ts"
import { resultText, sanitize, serverStderr, toolLine } from "./format.ts"
import { CommandFailed, type Console, Process, version } from "./process.ts"
import { declineAll, onTerminal } from "./terminalElicitation.ts"

/**
 * The exit code for a failure: 3 without a connection or a result in time, 4 when the server refused or its answer was
 * invalid.
 */
const exitCode = ({ reason }: ClientError): number => withoutResponse.has(reason._tag) ? 3 : 4

const withoutResponse: ReadonlySet<ClientError["reason"]["_tag"]> = /* @__PURE__ */ new Set(
  ["ConnectionFailed", "Closed", "HttpError", "Unauthorized", "Timeout", "NegotiationFailed"] as const
)

/**
 * Fails an effect that takes longer than `--timeout`. `what` was not done: the beginning of the message. With `--login`
 * the timeouts of the client alone apply, since they do not count the time that a person takes to sign in.
 */
const within = <A, R>(effect: Effect.Effect<A, ClientError, R>, { signIn, timeout }: Invocation, what: string) =>
  timeout === undefined || signIn !== undefined ? effect : Effect.timeoutOrElse(effect, {
    duration: timeout,
    orElse: () => Effect.fail(new ClientError({ reason: new Timeout({ message: `${what} within ${timeout} ms` }) }))
  })

const connect = ({ options, transport }: Server, invocation: Invocation) =>
  within(
    Client.make(transport, { info: { name: "skein-call", version }, ...options }),
    invocation,
    "The client did not connect"
  )

/** Formats a result. One that is nested deeper than the stack cannot be formatted, which is the fault of the server. */
const format = (name: string, text: () => string): Effect.Effect<string, ClientError> =>
  Effect.try({
    try: text,
    catch: (cause) => {
      const message = `The result of ${name} cannot be printed: ${cause instanceof Error ? cause.message : cause}`
      return new ClientError({ reason: new InvalidResponse({ message, cause }) })
    }
  })

const listTools = (client: Client.Client, invocation: Invocation, { print, warn }: Console) =>
  Effect.gen(function*() {
    const tools = yield* within(client.listTools(), invocation, "The server did not list its tools")
    if (invocation.json) yield* print(yield* format("tools/list", () => JSON.stringify(tools, undefined, 2)))
    else if (tools.length === 0) warn("The server has no tools")
    else yield* print(tools.map(toolLine).join("\n"))
    return 0
  })

/** Writes the log messages of the server as they arrive, so that they come before the result. */
const tailLogs = (client: Client.Client, { timeout }: Invocation) =>
  Effect.gen(function*() {
    yield* Effect.ignore(client.setLoggingLevel("debug", { timeout, maxTimeout: timeout }))
    return yield* Effect.forkScoped(Logging.forward(client), { startImmediately: true })
  })

/** Reports the id and the states of a call's task, once the call has become a task. */
const reportTask = (created: Deferred.Deferred<RemoteTask>, { warn }: Console) =>
  Effect.flatMap(Deferred.await(created), ({ id, states }) => {
    warn(sanitize(`Task ${id}`))
    // The terminal already shows the question that the task waits for.
    const lines = Stream.map(Stream.filter(states, ({ status }) => status !== "input_required"), stateLine)
    return Effect.ignore(Stream.runForEach(Stream.changes(lines), (line) => Effect.sync(() => warn(line))))
  })

/**
 * The call of the tool, or the wait for a task: its name, and the effect that returns its result. `onTask` receives the
 * task as soon as it exists.
 */
const startCall = (
  client: Client.Client,
  { args, leave: leaveRunning, resume, timeout, tool, verbose }: Invocation,
  { warn }: Console,
  onTask: (task: RemoteTask) => void
) => {
  // Without a timeout, progress keeps a call alive, and a task may take as long as the server allows.
  const time = { timeout, maxTimeout: timeout }
  if (resume !== undefined) {
    const result = Effect.flatMap(client.resumeTask(resume, { ...time, leaveRunning }), (task) => {
      onTask(task)
      return task.result
    })
    return { name: "the task", result }
  }
  if (tool === undefined) return undefined
  const onProgress = verbose ? (progress: Progress) => warn(progressLine(progress)) : undefined
  return { name: tool, result: client.callTool(tool, args, { ...time, onProgress, task: { leaveRunning, onTask } }) }
}

/** Prints the handle of a task that is still running, for `--resume`. */
const printHandle = (
  task: RemoteTask | undefined,
  exit: Exit.Exit<unknown, ClientError>,
  { print, warn }: Console
) => {
  if (task === undefined || Exit.isSuccess(exit)) return Effect.void
  const failure = Exit.findErrorOption(exit)
  // A failure without a handle means that the task has ended, or does not exist.
  if (failure._tag === "Some" && failure.value.task === undefined) return Effect.void
  warn("The task is still running. To wait for its result, pass this handle to --resume:")
  return print(JSON.stringify(task.handle))
}

/**
 * Calls the tool, waits for the task, or lists the tools. Returns the exit code: 1 when the tool reported an error,
 * else 0.
 */
export const call = (
  server: Server,
  invocation: Invocation,
  console: Console
): Effect.Effect<number, ClientError> =>
  Effect.scoped(Effect.gen(function*() {
    const { json, leave, verbose } = invocation
    const client = yield* connect(server, invocation)
    if (verbose) {
      const { name = "an unnamed server", version = "" } = client.server ?? {}
      console.warn(sanitize(`Connected to ${name} ${version} (protocol ${client.revision})`))
    }
    const logs = verbose ? yield* tailLogs(client, invocation) : undefined
    const created = yield* Deferred.make<RemoteTask>()
    let task: RemoteTask | undefined
    const started = startCall(client, invocation, console, (made) => {
      task = made
      Deferred.doneUnsafe(created, Effect.succeed(made))
    })
    if (started === undefined) return yield* listTools(client, invocation, console)
    if (verbose) yield* Effect.forkScoped(reportTask(created, console))
    const result = yield* Effect.onExit(
      started.result,
      (exit) => leave ? printHandle(task, exit, console) : Effect.void
    )
    // Logs that arrived with the result are written first.
    if (logs !== undefined) yield* Effect.andThen(Effect.yieldNow, Fiber.interrupt(logs))
    const text = yield* format(started.name, () => json ? JSON.stringify(result, undefined, 2) : resultText(result))
    if (result.isError === true && !json) console.warn(sanitize(text))
    else yield* console.print(text)
    return result.isError === true ? 1 : 0
  }))

const progressLine = ({ message, progress, total }: Progress): string => {
  const count = total === undefined ? String(progress) : `${progress}/${total}`
  return sanitize(message === undefined ? count : `${count} ${message}`)
}

const stateLine = ({ status, statusMessage }: State): string =>
  sanitize(statusMessage === undefined ? status : `${status}: ${statusMessage}`)

/** The variables for the server's process. A variable without a value gets the value that it has in this process. */
export const resolveEnv = (
  env: Invocation["env"],
  inherited: Invocation["env"]
): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? inherited[name]]))

/** The server of a call, and its URL if a sign-in there could help. */
interface Found {
  readonly server: Server
  readonly signInUrl: URL | undefined
}

/** The server of the target. Only the module of its transport is loaded, and what a sign-in needs if there is one. */
const serverOf = (
  invocation: Invocation,
  process: Process["Service"]
): Effect.Effect<Found, CommandFailed, Process | Scope.Scope> =>
  Effect.gen(function*() {
    const { env, headers, inputs, target, verbose } = invocation
    const { console, env: inherited, terminal } = process
    if (target._tag === "Command") {
      const { args, command } = target
      const { transport } = yield* Effect.promise(() => import("@skein/client/Stdio"))
      const stderr = serverStderr(verbose, console)
      const started = transport({ command, args, env: resolveEnv(env, inherited), stderr })
      return { server: { transport: started }, signInUrl: undefined }
    }
    const { makeSignIns } = yield* Effect.promise(() => import("./callCredentials.ts"))
    const signIns = yield* makeSignIns(invocation.signIn)
    if (target._tag === "Configured") {
      const { serverIn } = yield* Effect.promise(() => import("./config.ts"))
      const { credentials } = signIns
      const server = yield* serverIn(target, { console, credentials, env: inherited, inputs, terminal, verbose })
      yield* signIns.prepared
      return { server, signInUrl: signIns.url() }
    }
    const { url } = target
    const { transport } = yield* Effect.promise(() => import("@skein/client/NodeHttp"))
    const credentials = signIns.credentials(url, headers)
    yield* signIns.prepared
    return { server: { transport: transport({ url, headers, credentials }) }, signInUrl: signIns.url() }
  })

const serverName = ({ target }: Invocation): string => {
  switch (target._tag) {
    case "Url":
      return target.url.host
    case "Configured":
      return target.server ?? ""
    case "Command":
      return [target.command, ...target.args].join(" ")
  }
}

/** The failure of the call as that of the command. A refusal says how to sign in. */
const failed = (error: ClientError, signInUrl: URL | undefined): Effect.Effect<never, CommandFailed> => {
  const { message, reason } = error
  return reason._tag === "Unauthorized"
    ? Effect.flatMap(
      Effect.promise(() => import("./callCredentials.ts")),
      ({ unauthorized }) => Effect.fail(unauthorized(reason, signInUrl))
    )
    : Effect.fail(new CommandFailed({ exitCode: exitCode(error), report: message }))
}

/** Runs the command in this process. */
export const runCall = (invocation: Invocation): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const process = yield* Process
    const { console, env, terminal } = process
    const { json, target } = invocation
    if (target._tag === "Configured" && target.server === undefined) {
      const { listServers } = yield* Effect.promise(() => import("./config.ts"))
      return yield* Effect.flatMap(listServers(target.file, { env, json }, console), console.print)
    }
    const { server, signInUrl } = yield* serverOf(invocation, process)
    const elicitation = terminal === undefined
      ? declineAll(console)
      : onTerminal(terminal, sanitize(serverName(invocation)))
    const code = yield* call(server, invocation, console).pipe(
      Effect.provide(elicitation),
      Effect.provideService(References.LogToStderr, true),
      Effect.provideService(References.MinimumLogLevel, invocation.verbose ? "Debug" : "None"),
      Effect.catch((error) => failed(error, signInUrl))
    )
    if (code !== 0) return yield* new CommandFailed({ exitCode: code })
  }).pipe(Effect.scoped)
