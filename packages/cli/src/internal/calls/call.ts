/**
 * One run of `skein-call`: connects, calls a tool or lists the tools, and prints the result.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Logging from "@skein/client/Logging"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Json from "@skein/protocol/Json"
import * as MetaKey from "@skein/protocol/MetaKey"
import type { Handle, RemoteTask, State } from "@skein/client/RemoteTask"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { attachmentsOf, saveAttachments } from "./attachments.ts"
import { type GivenArguments, isWords } from "../base/givenArguments.ts"
import type { Server } from "../connection/config.ts"
import {
  connect,
  format,
  onServer,
  reportServer,
  requestTime,
  type ServerInvocation,
  within
} from "../connection/connection.ts"
import { quoteName, resultText, sanitize, taskStatus, toolLine } from "../base/format.ts"
import { type CommandFailed, type Console, failed, Process } from "../base/process.ts"
import { suggesting, suggestion } from "../connection/suggestion.ts"
import { ServerWarnings } from "./serverWarnings.ts"

/** A parsed command line of `call`. */
export interface Invocation extends ServerInvocation {
  /** The tool to call. Without a tool and without `resume`, the tools are listed. */
  readonly tool: string | undefined
  /** The arguments of the tool: JSON, or words that its input schema converts. */
  readonly args: GivenArguments | undefined
  /** Whether the task of a call continues at the server when this program stops waiting for it. */
  readonly leave: boolean
  /** Whether to print the id of the task of the call instead of waiting for it. */
  readonly task?: boolean | undefined
  /** The task to wait for, instead of a call of a tool. */
  readonly resume: Handle | undefined
  /** The file or the folder for the images, the audio and the binary resources of the result. */
  readonly output?: string | undefined
}

const listTools = Effect.fnUntraced(function*(client: Client.Client, invocation: Invocation, { print, warn }: Console) {
  const tools = yield* within(client.listTools(), invocation, "The server did not list its tools")
  if (invocation.json) yield* print(yield* format("tools/list", () => JSON.stringify(tools, undefined, 2)))
  else if (tools.length === 0) warn("The server has no tools")
  else yield* print(tools.map(toolLine).join("\n"))
  return 0
})

/** Writes the log messages of the server as they arrive, so that they come before the result. */
const tailLogs = Effect.fnUntraced(function*(client: Client.Client, { timeout }: Invocation) {
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

const toolNames = (client: Client.Client, invocation: Invocation) =>
  Effect.map(client.listTools(requestTime(invocation)), (tools) => tools.map(({ name }) => name))

/**
 * The arguments of the call. The tools are listed, and the schema of this one converts and checks words. One object of
 * JSON is sent as it is.
 */
const argumentsOf = Effect.fnUntraced(function*(client: Client.Client, name: string, invocation: Invocation) {
  const { args } = invocation
  if (args !== undefined && !isWords(args)) return args
  const listed = within(client.listTools(requestTime(invocation)), invocation, "The server did not list its tools")
  // A call without arguments is possible without the list.
  const tools = yield* args === undefined ? Effect.orElseSucceed(listed, () => []) : listed
  const tool = tools.find((each) => each.name === name)
  if (tool === undefined) {
    if (args === undefined) return undefined
    const like = suggestion(name, tools.map((each) => each.name))
    return yield* failed(4, `Unknown tool: ${quoteName(name)}${like}`)
  }
  const { argumentsProblem, toolArguments } = yield* Effect.promise(() => import("./toolArguments.ts"))
  const converted = toolArguments(tool, args ?? [])
  if (Result.isFailure(converted)) return yield* failed(2, sanitize(converted.failure))
  const problem = argumentsProblem(tool, converted.success)
  if (problem !== undefined) return yield* failed(2, sanitize(problem))
  return args === undefined ? undefined : converted.success
})

/**
 * The call of the tool, or the wait for a task: its name, and the effect that returns its result. `onTask` receives the
 * task as soon as it exists.
 */
const startCall = (
  client: Client.Client,
  invocation: Invocation,
  { showStatus, warn }: Console,
  onTask: (task: RemoteTask) => void
) => {
  const { leave: leaveRunning, resume, tool, verbose } = invocation
  // Without a timeout, progress keeps a call alive, and a task may take as long as the server allows.
  const time = requestTime(invocation)
  if (resume !== undefined) {
    // It was left running before: it goes on without this program, too.
    const result = Effect.flatMap(client.resumeTask(resume, time), (task) => {
      onTask(task)
      return task.result
    })
    return { name: "the task", result }
  }
  if (tool === undefined) return undefined
  const show = verbose ? warn : showStatus
  const onProgress = show && ((progress: Progress) => show(progressLine(progress)))
  const result = Effect.flatMap(
    argumentsOf(client, tool, invocation),
    (args) =>
      client.callTool(tool, args, {
        ...time,
        onProgress,
        // The result is printed with the digits that the server sent.
        roundedIntegers: "keep",
        task: { leaveRunning, onTask }
      })
  )
  return { name: tool, result: suggesting(result, tool, toolNames(client, invocation)) }
}

/** Starts a call as a task, and prints its id. Returns the exit code. */
const startTask = (client: Client.Client, tool: string, invocation: Invocation, console: Console) =>
  Effect.gen(function*() {
    const { json, timeout } = invocation
    const args = yield* argumentsOf(client, tool, invocation)
    // The time for the whole task is that of the command that waits for it.
    const started = yield* suggesting(
      client.startTask(tool, args, { timeout }),
      tool,
      toolNames(client, invocation)
    )
    if (started._tag === "RemoteTask") {
      yield* console.print(json ? JSON.stringify(started.handle) : started.id)
      return 0
    }
    console.warn("The server answered without a task")
    return yield* printResult(tool, yield* started.result, json, console)
  })

/** Prints a result. Returns the exit code: 1 when the tool reported an error, else 0. */
export const printResult = (name: string, result: CallToolResult, json: boolean, { print, warn }: Console) =>
  Effect.gen(function*() {
    const text = yield* format(name, () => json ? Json.stringify(result, undefined, 2)! : resultText(result))
    if (result.isError === true && !json) warn(sanitize(text))
    else yield* print(text)
    return result.isError === true ? 1 : 0
  })

/** Prints the handle of a task that is still running, for `--resume`. */
const printHandle = (
  task: RemoteTask | undefined,
  exit: Exit.Exit<unknown, ClientError | CommandFailed>,
  { print, warn }: Console
) => {
  if (task === undefined || Exit.isSuccess(exit)) return Effect.void
  const failure = Exit.findErrorOption(exit)
  // A failure without a handle means that the task has ended, or does not exist.
  const isOver = ({ value }: { readonly value: ClientError | CommandFailed }): boolean =>
    value._tag === "CommandFailed" || value.task === undefined
  if (failure._tag === "Some" && isOver(failure)) return Effect.void
  warn("The task is still running. To wait for its result, pass this handle to --resume:")
  return print(JSON.stringify(task.handle))
}

/** Shows what the server logged at its start, so that the author of a module sees it before the result. */
const showWarnings = (warnings: ServerWarnings, { warn }: Console) =>
  // The log that the process wrote before it answered has then been read.
  Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      for (const warning of warnings.list) warn(`The server warns: ${warning}`)
    })
  )

/**
 * Calls the tool, waits for the task, or lists the tools. Returns the exit code: 1 when the tool reported an error,
 * else 0.
 */
export const call = (
  server: Server,
  invocation: Invocation,
  console: Console,
  warnings?: ServerWarnings
): Effect.Effect<number, ClientError | CommandFailed> =>
  Effect.scoped(Effect.gen(function*() {
    const { json, leave, output, tool, verbose } = invocation
    const client = yield* connect(server, invocation, "skein-call")
    reportServer(client, invocation, console)
    if (warnings !== undefined) yield* showWarnings(warnings, console)
    if (invocation.task === true && tool !== undefined) return yield* startTask(client, tool, invocation, console)
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
    console.showStatus?.("")
    // Logs that arrived with the result are written first.
    if (logs !== undefined) yield* Effect.andThen(Effect.yieldNow, Fiber.interrupt(logs))
    const code = yield* printResult(started.name, result, json, console)
    const isUnexpected = result.isError === true && result._meta?.[MetaKey.reference] !== undefined
    if (isUnexpected && !verbose && invocation.target._tag === "Command") {
      console.warn("Use --verbose to see the log of the server")
    }
    if (output !== undefined) yield* saveAttachments(output, result, console)
    else if (!json && console.isTerminal === true && attachmentsOf(result).length > 0) {
      console.warn("Use --output <file or folder> to save what is not text")
    }
    return code
  }))

const progressLine = ({ message, progress, total }: Progress): string => {
  const count = total === undefined ? String(progress) : `${progress}/${total}`
  return sanitize(message === undefined ? count : `${count} ${message}`)
}

const stateLine = (state: State): string => {
  const { statusMessage } = state
  const status = taskStatus(state.status, state.status === "completed" && state.result.isError === true)
  return sanitize(statusMessage === undefined ? status : `${status}: ${statusMessage}`)
}

/** Runs the command in this process. */
export const runCall = (invocation: Invocation): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console, env } = yield* Process
    const { json, target } = invocation
    if (target._tag === "Configured" && target.server === undefined) {
      const { listServers } = yield* Effect.promise(() => import("../connection/config.ts"))
      return yield* Effect.flatMap(listServers(target.file, { env, json }, console), console.print)
    }
    // The person who calls a module is its author. With --verbose the whole log is shown.
    const warnings = target._tag === "Module" && !invocation.verbose ? new ServerWarnings() : undefined
    return yield* onServer(
      { ...invocation, onStderr: warnings?.read },
      (server, console) => call(server, invocation, console, warnings),
      { keepsQuestions: invocation.resume !== undefined }
    )
  })
