/**
 * Sends tool calls as tasks in 2025-11-25 (tasks, tool-level negotiation).
 */
import { clientError, serverErrorOf } from "../../base/errors.ts"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { quote } from "@skein/protocol/Text"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { CallToolRequestParams } from "@skein/protocol/CallTool"
import { ClientError, Closed, Unsupported } from "../../../ClientError.ts"
import type { CallContext, CallHandler, CallLayer, CallResponse, ClientContext } from "../context.ts"
import { refreshTimedOut } from "../paramHeaders.ts"
import { send } from "../send.ts"
import { TaskProgress } from "../taskRegistry.ts"
import type { ToolCatalog } from "../toolCatalog.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"
import { type CallToolOptions, remainingTime } from "../../base/callOptions.ts"

const needed = { side: "server", path: ["tasks", "requests", "tools", "call"] } as const

/**
 * Whether calls may be augmented with a task: otherwise "clients MUST NOT attempt to use task augmentation on that
 * server's tools".
 */
export const mayAugment = ({ capabilities, revision }: NegotiatedConnection): boolean =>
  revision === "2025-11-25" && Method.has(capabilities, needed, revision)

/** The `task` parameter of a tool call, if it is sent as a task. A tool that is not known is called without. */
export const augmentation = (
  toolCatalog: ToolCatalog,
  connection: NegotiatedConnection,
  name: string,
  { task }: CallToolOptions
): { readonly ttl?: number | undefined } | undefined => {
  if (!mayAugment(connection)) return undefined
  const support = toolCatalog.taskSupport(name)
  if (support !== "required" && (support !== "optional" || task?.augment !== true)) return undefined
  const ttl = task?.ttl === undefined ? Infinity : Duration.toMillis(task.ttl)
  return Number.isSafeInteger(Math.round(ttl)) ? { ttl: Math.round(ttl) } : {}
}

/** The id of the task in the result of a call, in the form of either revision; undefined if there is no task. */
export const createdIn = ({ resultType, task, taskId }: JsonObject): string | undefined => {
  const id = resultType === "task" ? taskId : isObject(task) ? task["taskId"] : undefined
  return typeof id === "string" ? id : undefined
}

/**
 * Waits for the response to a call that is sent as a task. Interrupting it does not cancel the request: "for
 * task-augmented requests, the `tasks/cancel` request MUST be used instead of the `notifications/cancelled`
 * notification" (2025-11-25, cancellation). The task is cancelled once it is created. A server that does not create it
 * within `cancelTimeout` receives the notification.
 */
const untilCreated = (answer: ReturnType<CallHandler>, call: CallContext): ReturnType<CallHandler> => {
  const { client: { scope, tasks }, connection, method, options: { task } } = call
  const { cancelTimeout } = tasks.settings
  const time = { timeout: cancelTimeout, maxTimeout: cancelTimeout }
  const cancelled = (fiber: Fiber.Fiber<CallResponse, ClientError>) =>
    Effect.flatMap(Effect.timeoutOption(Fiber.await(fiber), cancelTimeout), (exit) => {
      if (exit._tag === "None") return Fiber.interrupt(fiber)
      const taskId = exit.value._tag === "Success" ? createdIn(exit.value.value.raw) : undefined
      return taskId === undefined || task?.leaveRunning === true
        ? Effect.void
        : Effect.ignore(send(connection, "tasks/cancel", { taskId }, time))
    })
  const ended = () => clientError(Closed, "The client ended before the call was answered", method.name)
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkIn(Effect.interruptible(answer), scope, { startImmediately: true }),
      (fiber) =>
        Effect.flatMap(
          Effect.onInterrupt(restore(Fiber.await(fiber)), () => cancelled(fiber)),
          // The owner of the fiber has ended; the caller was not interrupted.
          (exit) => Exit.hasInterrupts(exit) ? Effect.fail(ended()) : exit
        )
    )
  )
}

/**
 * Whether a server refuses a call because it is not a task: "servers MUST return a `-32601` (Method not found) error if
 * a client does not attempt to do so", and `-32600` for a type of request that requires a task.
 */
const wantsTask = (error: ClientError): boolean => {
  const reason = serverErrorOf(error)?.reason
  return reason === "MethodNotFound" || reason === "InvalidRequest"
}

/**
 * Whether a tool result is such a refusal: the official SDK of 2025-11-25 turns its `-32601` into a result with
 * `isError`, whose text begins like this.
 */
const saysTask = ({ content, isError }: JsonObject): boolean => {
  if (isError !== true || !Array.isArray(content)) return false
  const first: unknown = content[0]
  return isObject(first) && typeof first["text"] === "string" && first["text"].startsWith("MCP error -32601:")
}

/**
 * Sends a call as a task if the tool requires one, or if it allows one and the options ask for it (2025-11-25).
 *
 * Each attempt decides this for the server of its connection. An earlier attempt may have found that the server was
 * restarted: then the definitions of its tools were discarded, and the tools are listed again before the call is sent.
 */
export const augmentWithTask: CallLayer = (next) => (call) => {
  const { client, connection, method, options: { startsTask, task }, params } = call
  if (method.name !== Method.CallTool.name || !client.tasks.enabled || !mayAugment(connection)) return next(call)
  const { toolCatalog } = client
  const { name } = params as CallToolRequestParams
  const isUndecided = task?.augment === true && toolCatalog.taskSupport(name) === undefined
  return isUndecided && (startsTask === true || mayList(client, name))
    ? Effect.flatMap(listAgain(call, name), (listed) => augmentIfSupported(next, listed, name))
    : augmentIfSupported(next, call, name)
}

/**
 * Whether a call waits until the tools are listed again. They are listed once for a tool that does not exist, and other
 * calls of the tool wait for that.
 */
const mayList = ({ toolCatalog, toolListRefresh }: ClientContext, name: string): boolean =>
  toolCatalog.doubt(`task ${name}`) || toolListRefresh.isRunning

const augmentIfSupported = (next: CallHandler, call: CallContext, name: string): ReturnType<CallHandler> => {
  const { client: { toolCatalog }, connection, options, params } = call
  const task = augmentation(toolCatalog, connection, name, options)
  return task === undefined ? next(call) : sendAugmented(next, { ...call, params: { ...params as object, task } })
}

/**
 * How often the tools are listed for one attempt: each further time because the server reported a change of the list, or
 * was restarted, while they were listed. Not an option, since the time of the call bounds it too.
 */
const maxListings = 3

/**
 * Lists the tools until it is known whether a tool supports tasks, within the time of the call. Returns the call with
 * its remaining time. A call of `startTask` fails if that remains unknown: sent without a task, it could wait for the
 * result for as long as the task takes.
 */
const listAgain = (call: CallContext, name: string): Effect.Effect<CallContext, ClientError> =>
  Effect.gen(function*() {
    const { client: { supervisor, toolCatalog, toolListRefresh }, options, sentAt } = call
    const left = () => remainingTime(supervisor.timeouts, options, supervisor.now() - sentAt)
    for (let listings = 0; listings < maxListings; listings++) {
      const { generation } = toolCatalog
      yield* toolListRefresh.within(left())
      if (toolCatalog.taskSupport(name) !== undefined || toolCatalog.generation === generation) break
    }
    const time = left()
    if (Math.min(time.timeout, time.maxTimeout) <= 0) return yield* refreshTimedOut(name)
    if (options.startsTask === true && toolCatalog.taskSupport(name) === undefined) {
      const message = `${quote(name)} was not called: the server does not list it, so its taskSupport is unknown`
      const error = toolListRefresh.failure ?? clientError(Unsupported, message, Method.CallTool.name)
      return yield* new ClientError({ ...error, undelivered: true })
    }
    return { ...call, options: { ...options, ...time } }
  })

/** Sends a call as a task. Its progress continues after the response. */
const sendAugmented = (next: CallHandler, call: CallContext): ReturnType<CallHandler> =>
  Effect.suspend(() => {
    const { client: { tasks }, connection, options: { startsTask } } = call
    // The states of a `RemoteTask` contain the progress.
    const { onProgress = startsTask === true ? () => {} : undefined } = call.options
    const reports = onProgress === undefined ? undefined : new TaskProgress(onProgress)
    const listening = reports === undefined ? undefined : {
      onProgress: reports.report,
      onSend: (token: number) => tasks.expect(connection.peer, token, reports)
    }
    const sent = next({ ...call, options: { ...call.options, ...listening } })
    return untilCreated(sent, call).pipe(
      Effect.map((response) => {
        response.augmented = { reports }
        return response
      }),
      Effect.onError(() => Effect.sync(() => tasks.dismiss(reports)))
    )
  })

/** Repeats a call as a task if the tool requires one and was not listed when the call was sent (2025-11-25). */
export const retryAsTask: CallLayer = (next) => (call) => {
  const { client, method, options, params } = call
  const { supervisor, tasks, toolCatalog } = client
  if (method.name !== Method.CallTool.name || !tasks.enabled) return next(call)
  const { name } = params as CallToolRequestParams
  const { generation } = toolCatalog
  const isKnown = toolCatalog.taskSupport(name) !== undefined
  const again = (otherwise: ReturnType<CallHandler>): ReturnType<CallHandler> => {
    // If the definitions were discarded since, the call was sent to a server that was restarted, or has other tools.
    if (!mayAugment(supervisor.last) || (isKnown && toolCatalog.generation === generation)) return otherwise
    const isUndecided = toolCatalog.taskSupport(name) === undefined
    const { timeout } = remainingTime(supervisor.timeouts, options, 0)
    return Effect.flatMap(
      isUndecided && mayList(client, name)
        ? client.toolListRefresh.within({ timeout, maxTimeout: timeout })
        : Effect.void,
      () => {
        if (toolCatalog.taskSupport(name) !== "required") return otherwise
        const now = supervisor.now()
        return next({ ...call, startedAt: now, sentAt: now })
      }
    )
  }
  return Effect.matchEffect(next(call), {
    onFailure: (refused) => wantsTask(refused) ? again(Effect.fail(refused)) : Effect.fail(refused),
    onSuccess: (response) => saysTask(response.raw) ? again(Effect.succeed(response)) : Effect.succeed(response)
  })
}
