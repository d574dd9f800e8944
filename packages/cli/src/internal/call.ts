/**
 * One run of `skein-call`: connects, calls a tool or lists the tools, and prints the result.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Logging from "@skein/client/Logging"
import type { RemoteTask, State } from "@skein/client/RemoteTask"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Invocation } from "./callCommand.ts"
import type { Server } from "./config.ts"
import { connect, format, onServer, reportServer, requestTime, within } from "./connection.ts"
import { resultText, sanitize, toolLine } from "./format.ts"
import { type CommandFailed, type Console, Process } from "./process.ts"

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
  invocation: Invocation,
  { warn }: Console,
  onTask: (task: RemoteTask) => void
) => {
  const { args, leave: leaveRunning, resume, tool, verbose } = invocation
  // Without a timeout, progress keeps a call alive, and a task may take as long as the server allows.
  const time = requestTime(invocation)
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
    const client = yield* connect(server, invocation, "skein-call")
    reportServer(client, invocation, console)
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

/** Runs the command in this process. */
export const runCall = (invocation: Invocation): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console, env } = yield* Process
    const { json, target } = invocation
    if (target._tag === "Configured" && target.server === undefined) {
      const { listServers } = yield* Effect.promise(() => import("./config.ts"))
      return yield* Effect.flatMap(listServers(target.file, { env, json }, console), console.print)
    }
    return yield* onServer(invocation, (server, console) => call(server, invocation, console))
  })
