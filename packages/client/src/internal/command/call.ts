/**
 * One run of `skein-call`: connect, call or list, print.
 */
import type { Transport } from "@skein/runtime/Connection"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Client from "../../Client.ts"
import { ClientError, InvalidResponse, Timeout } from "../../ClientError.ts"
import * as Logs from "../../Logs.ts"
import type { RemoteTask, State } from "../../RemoteTask.ts"
import type { Invocation } from "./invocation.ts"
import { resultText, tame, toolLine } from "./words.ts"

/** Where words go. */
export interface Out {
  readonly print: (text: string) => Effect.Effect<void>
  /** On stderr. */
  readonly tell: (line: string) => void
}

/** What the exit code says of a failure: nobody was reached in time, or the server would not. */
export const exitCode = ({ reason }: ClientError): number => {
  switch (reason._tag) {
    case "ConnectionFailed":
    case "Closed":
    case "HttpError":
    case "Unauthorized":
    case "Timeout":
    case "NegotiationFailed":
      return 3
    default:
      return 4
  }
}

const open = (transport: Transport, { timeout }: Invocation) => {
  const opening = Client.make(transport, { info: { name: "skein-call", version: "0.1.0" } })
  if (timeout === undefined) return opening
  return Effect.timeoutOrElse(opening, {
    duration: timeout,
    orElse: () =>
      Effect.fail(new ClientError({ reason: new Timeout({ message: `There was no connection within ${timeout} ms` }) }))
  })
}

/** A text that cannot be made, of what is nested deeper than the stack, is the server's fault. */
const written = (name: string, text: () => string): Effect.Effect<string, ClientError> =>
  Effect.try({
    try: text,
    catch: (cause) => {
      const message = `What ${name} answered cannot be written: ${cause instanceof Error ? cause.message : cause}`
      return new ClientError({ reason: new InvalidResponse({ message, cause }) })
    }
  })

const list = (client: Client.Client, { json }: Invocation, { print, tell }: Out) =>
  Effect.gen(function*() {
    const tools = yield* client.listTools()
    if (json) yield* print(yield* written("tools/list", () => JSON.stringify(tools, undefined, 2)))
    else if (tools.length === 0) tell("The server has no tools")
    else yield* print(tools.map(toolLine).join("\n"))
    return 0
  })

/** What was heard on the way, told before the result is printed. */
const overhear = (client: Client.Client) =>
  Effect.gen(function*() {
    yield* Effect.ignore(client.setLoggingLevel("debug"))
    return yield* Effect.forkScoped(Logs.forward(client), { startImmediately: true })
  })

/** Tells of a call's task, once it is one. */
const follow = (begun: Deferred.Deferred<RemoteTask>, { tell }: Out) =>
  Effect.flatMap(Deferred.await(begun), ({ id, states }) => {
    tell(tame(`Task ${id}`))
    // What it asks is on the terminal by then.
    const lines = Stream.map(Stream.filter(states, ({ status }) => status !== "input_required"), stateLine)
    return Effect.ignore(Stream.runForEach(Stream.changes(lines), (line) => Effect.sync(() => tell(line))))
  })

/** What is called, or gone on with: its name, and its result. `onTask` hears of the task, as soon as there is one. */
const work = (client: Client.Client, invocation: Invocation, { tell }: Out, onTask: (task: RemoteTask) => void) => {
  const { args, leave: leaveRunning, resume, timeout, tool, verbose } = invocation
  // A task may take as long as it lives, but for this.
  const time = { timeout, maxTimeout: timeout }
  if (resume !== undefined) {
    const result = Effect.flatMap(client.resumeTask(resume, { ...time, leaveRunning }), (task) => {
      onTask(task)
      return task.result
    })
    return { name: "the task", result }
  }
  if (tool === undefined) return undefined
  const onProgress = verbose ? (report: Progress) => tell(progressLine(report)) : undefined
  return { name: tool, result: client.callTool(tool, args, { ...time, onProgress, task: { leaveRunning, onTask } }) }
}

/** Says how a task is picked up again that was left. */
const left = (task: RemoteTask | undefined, exit: Exit.Exit<unknown, ClientError>, { print, tell }: Out) => {
  if (task === undefined || Exit.isSuccess(exit)) return Effect.void
  const failure = Exit.findErrorOption(exit)
  // It has ended, or is not there.
  if (failure._tag === "Some" && failure.value.task === undefined) return Effect.void
  tell("The task goes on. --resume takes it up again, with this handle:")
  return print(JSON.stringify(task.handle))
}

/** Calls the tool, or lists the tools: the exit code. */
export const call = (transport: Transport, invocation: Invocation, out: Out) =>
  Effect.scoped(Effect.gen(function*() {
    const { json, leave, verbose } = invocation
    const client = yield* open(transport, invocation)
    if (verbose) {
      const { name = "a server without a name", version = "" } = client.server ?? {}
      out.tell(tame(`Connected to ${name} ${version} in ${client.revision}`))
    }
    const hearing = verbose ? yield* overhear(client) : undefined
    const begun = yield* Deferred.make<RemoteTask>()
    let task: RemoteTask | undefined
    const working = work(client, invocation, out, (made) => {
      task = made
      Deferred.doneUnsafe(begun, Effect.succeed(made))
    })
    if (working === undefined) return yield* list(client, invocation, out)
    if (verbose) yield* Effect.forkScoped(follow(begun, out))
    const result = yield* Effect.onExit(working.result, (exit) => leave ? left(task, exit, out) : Effect.void)
    if (hearing !== undefined) yield* Effect.andThen(Effect.yieldNow, Fiber.interrupt(hearing))
    const text = yield* written(working.name, () => json ? JSON.stringify(result, undefined, 2) : resultText(result))
    if (result.isError === true && !json) out.tell(tame(text))
    else yield* out.print(text)
    return result.isError === true ? 1 : 0
  }))

const progressLine = ({ message, progress, total }: Progress): string => {
  const far = total === undefined ? String(progress) : `${progress}/${total}`
  return tame(message === undefined ? far : `${far} ${message}`)
}

const stateLine = ({ status, statusMessage }: State): string =>
  tame(statusMessage === undefined ? status : `${status}: ${statusMessage}`)
