/**
 * Follows calls that the server answers with a task. It is loaded with the first of them.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { quote } from "@skein/protocol/Text"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ClientError, InvalidResponse, Unsupported } from "../../../ClientError.ts"
import { clientError } from "../../base/errors.ts"
import type { Handle, RemoteTask, ResumeOptions, Started } from "../../../RemoteTask.ts"
import type { ClientContext } from "../context.ts"
import { type NegotiatedConnection, serverOf } from "../../connection/connection.ts"
import type { CallToolOptions } from "../../base/callOptions.ts"
import { mayAugment } from "../legacyTasks/requestTask.ts"
import { TaskFollower } from "./taskStream.ts"
import type { CreatedTask } from "../taskRegistry.ts"
import { bare, isTaskId } from "./statusStream.ts"

const handleOf = (connection: NegotiatedConnection, taskId: string, tool: string | undefined): Handle => {
  const server = serverOf(connection)?.name
  return {
    taskId,
    ...(tool === undefined ? undefined : { tool }),
    ...(server === undefined ? undefined : { server }),
    revision: connection.revision
  }
}

/** Returns the follower of the task that a call was answered with, or fails if the task cannot be followed. */
const follow = (
  client: ClientContext,
  { connection, deadline, options, reports, seed, tool }: CreatedTask,
  leaveRunning: boolean
): Effect.Effect<TaskFollower, ClientError> => {
  if (!isTaskId(seed.taskId)) {
    const message = "The server answered with a task whose id is not valid"
    return Effect.fail(clientError(InvalidResponse, message, Method.CallTool.name))
  }
  const handle = handleOf(connection, seed.taskId, tool)
  const { roundedIntegers, timeout } = options
  const settings = { client, handle, deadline, reports, roundedIntegers, timeout }
  // In the stateless revision only `tasks/get` returns the details of a status.
  const unseen = connection.isStateless && seed.status !== "working"
  const follower = new TaskFollower(
    { ...settings, unseen, leaveRunning: options.task?.leaveRunning ?? leaveRunning },
    unseen ? { ...bare(seed), status: "working" } : bare(seed)
  )
  try {
    options.task?.onTask?.(follower)
  } catch (defect) {
    client.warn("onTask threw an error", defect)
  }
  return Effect.succeed(follower)
}

/**
 * Follows a task to the result of the call. If the wait is interrupted, the task is cancelled, unless it should be left
 * running.
 */
export const finish = (
  client: ClientContext,
  created: CreatedTask,
  restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
): Effect.Effect<CallToolResult, ClientError> =>
  Effect.flatMap(
    follow(client, created, false),
    (follower) => Effect.onInterrupt(restore(follower.awaited), () => follower.left)
  )

/** Calls a tool, and returns the task as soon as it is created. */
export const start = (
  client: ClientContext,
  name: string,
  args: object | undefined,
  options: CallToolOptions
): Effect.Effect<Started, ClientError> =>
  Effect.suspend(() => {
    const { toolCatalog, supervisor: { last }, toolListRefresh, tasks } = client
    const params = args === undefined ? { name } : { name, arguments: args as JsonObject }
    const asked: CallToolOptions = {
      ...options,
      task: { ...options.task, augment: options.task?.augment ?? true }
    }
    const called = client.call(
      Method.CallTool as Method.RequestMethod<typeof params, CallToolResult | TaskFollower>,
      params,
      { ...asked, handleTask: (created) => follow(client, created, true), startsTask: true }
    )
    const started = Effect.map(called, (answered): Started =>
      answered instanceof TaskFollower ? answered : { _tag: "Finished", result: Effect.succeed(answered) })
    // Only for listed tools is it known whether they support tasks, and whether they may be called twice.
    const unknown = tasks.enabled && mayAugment(last) && toolCatalog.taskSupport(name) === undefined
    return unknown ? Effect.andThen(toolListRefresh.within(client.supervisor.timeouts), started) : started
  })

const refused = (message: string): ClientError => clientError(Unsupported, message, "tasks/get")

/** Follows a task that was started before. */
export const resume = (
  client: ClientContext,
  given: Handle,
  options: ResumeOptions
): Effect.Effect<RemoteTask, ClientError> =>
  Effect.suspend(() => {
    // The handle may come from a file, and be any value.
    const { server, taskId, tool }: { readonly [key in keyof Handle]?: unknown } = given ?? {}
    if (typeof taskId !== "string" || !isTaskId(taskId)) {
      return Effect.fail(refused("The handle of the task is malformed"))
    }
    const { supervisor } = client
    const name = serverOf(supervisor.last)?.name
    if (typeof server === "string" && name !== undefined && name !== server) {
      return Effect.fail(refused(`The task belongs to the server ${quote(server)}, and this server has another name`))
    }
    const handle = handleOf(supervisor.last, taskId, typeof tool === "string" ? tool : undefined)
    const { leaveRunning = true, maxTimeout, timeout } = options
    const deadline = maxTimeout === undefined ? Infinity : supervisor.now() + Duration.toMillis(maxTimeout)
    return TaskFollower.resume({ client, handle, deadline, leaveRunning, timeout, reports: undefined, unseen: false })
  })
