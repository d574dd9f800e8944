/**
 * The tasks of one connection: input requests of the server that were answered with a task, and their results
 * (2025-11-25, tasks: what a receiver does).
 */
import * as Codec from "@skein/protocol/Codec"
import * as Cursor from "@skein/protocol/Cursor"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { type Answer, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { FixedBounds } from "../../base/fixedBounds.ts"
import { type Settled, Task } from "./task.ts"

const revision = "2025-11-25"
const list = "tasks"

const unknown = (): McpError.McpError => McpError.invalidParams("Failed to retrieve task: Task not found")

const expired = (): Settled => Effect.fail(McpError.invalidParams("Failed to retrieve task: Task has expired"))

const full = (message: string): McpError.McpError => new McpError.McpError({ reason: "InternalError", message })

export type Tasks = ReturnType<typeof makeTasks>

/**
 * The tasks of one connection. The context has the services of the handlers. It has no request, so that no request is
 * retained as long as its task.
 */
export const makeTasks = (peer: Peer, context: Context.Context<never>) => {
  const bounds: FixedBounds = Context.get(context, FixedBounds)
  const clock: Clock.Clock = Context.get(context, Clock.Clock)
  /** Oldest first. */
  const tasks = new Map<string, Task>()
  let made = 0
  /** How many are running. */
  let live = 0

  const now = (): number => clock.currentTimeMillisUnsafe()

  /** Runs an effect in the scope of the connection, from the next tick on: the response is sent first. */
  const fork = (effect: Effect.Effect<unknown>): Effect.Effect<Fiber.Fiber<unknown>> =>
    Effect.updateContext(Effect.forkIn(effect, peer.scope), () => context)

  // ---- from an input request to its result

  /**
   * Creates a task for an input request, and runs its handler. "Receivers that accept a task-augmented request MUST
   * return a `CreateTaskResult` as the response. This result SHOULD be returned as soon as possible."
   */
  const create = Effect.fnUntraced(function*(
    { method, params }: RequestContext,
    answered: Effect.Effect<JsonObject, McpError.McpError>
  ): Effect.fn.Return<Answer, McpError.McpError> {
    const refused = refusal()
    if (refused !== undefined) return yield* Effect.fail(refused)
    // The parameters were decoded before.
    const { ttl } = params!["task"] as { readonly ttl?: number | undefined }
    const { maxTtl, suggestedPollInterval } = bounds
    const lifetime = Math.min(Math.max(ttl ?? maxTtl, 0), maxTtl)
    const task = new Task(++made, method, now(), lifetime, suggestedPollInterval)
    tasks.set(task.id, task)
    live++
    // "Tasks MUST begin in the `working` status when created", even if the handler returns at once.
    const created = withRelated({ task: task.state }, task.id)
    if (task.expiresAt !== Infinity) task.life = yield* fork(expiring(task))
    task.work = yield* fork(work(task, answered))
    yield* Effect.logDebug(`${method} became a task`)
    return created
  })

  /**
   * Waits for the end of the time to live. It is a function so that it does not retain the input request for that long.
   */
  const expiring = (task: Task): Effect.Effect<void> =>
    Effect.delay(Effect.sync(() => expire(task)), task.expiresAt - task.createdAt)

  const work = (task: Task, answered: Effect.Effect<JsonObject, McpError.McpError>): Effect.Effect<void> =>
    Effect.flatMap(Effect.exit(answered), (exit) => {
      // "Once a task is cancelled, it MUST remain in `cancelled` status even if execution continues to completion or
      // fails."
      if (task.over) return Effect.void
      live--
      const logged = task.end(exit, now())
      const notified = peer.notify(Method.LegacyTaskStatus.name, task.state)
      return Effect.andThen(logged, notified)
    })

  /** Why no further task can be created; undefined if one can. */
  const refusal = (): McpError.McpError | undefined => {
    const { maxRetained, maxRunningTasks } = bounds
    if (live >= maxRunningTasks) return full(`Too many tasks: at most ${maxRunningTasks} may run`)
    if (tasks.size < maxRetained) return undefined
    for (const task of tasks.values()) {
      if (!task.settled) continue
      remove(task)
      return undefined
    }
    return full(`Too many tasks: at most ${maxRetained} are stored, and no result of them was fetched`)
  }

  const remove = (task: Task): void => {
    tasks.delete(task.id)
    task.life?.interruptUnsafe()
  }

  /**
   * "After a task's `ttl` lifetime has elapsed, receivers MAY delete the task and its results, regardless of the task
   * status."
   */
  const expire = (task: Task): void => {
    tasks.delete(task.id)
    if (task.over) return
    live--
    task.drop(expired())
  }

  /** Ends all tasks with the connection. */
  const clear = (): void => {
    tasks.clear()
    live = 0
  }

  // ---- requests about tasks

  /** Answers a request about tasks. */
  const answer = ({ method, params }: RequestContext): Effect.Effect<Answer, McpError.McpError> => {
    switch (method) {
      case Method.LegacyGetTask.name:
        return withTask(params, (task) => Effect.succeed(task.state))
      case Method.LegacyGetTaskPayload.name:
        return withTask(params, (task) => task.result)
      case Method.LegacyCancelTask.name:
        return withTask(params, (task) => cancel(task))
      default:
        return listTasks(params)
    }
  }

  /** "Invalid or nonexistent `taskId` in `tasks/get`, `tasks/result`, or `tasks/cancel`: `-32602`." */
  const withTask = (
    params: JsonObject | undefined,
    f: (task: Task) => Effect.Effect<Answer, McpError.McpError>
  ): Effect.Effect<Answer, McpError.McpError> =>
    Effect.suspend(() => {
      const read = Codec.decodeParams(Method.LegacyGetTask, revision, params)
      if (Result.isFailure(read)) return Effect.fail(McpError.invalidParams(read.failure))
      const task = tasks.get(read.success.taskId)
      return task === undefined || task.expiresAt <= now() ? Effect.fail(unknown()) : f(task)
    })

  const cancel = (task: Task): Effect.Effect<Answer, McpError.McpError> => {
    if (task.over) {
      return Effect.fail(McpError.invalidParams(`Cannot cancel task: already in terminal status '${task.status}'`))
    }
    live--
    task.cancel(now())
    return Effect.as(Effect.logDebug(`The task of ${task.method} was cancelled by the server`), task.state)
  }

  const listTasks = (params: JsonObject | undefined): Effect.Effect<Answer, McpError.McpError> =>
    Effect.suspend(() => {
      const read = Codec.decodeParams(Method.LegacyListTasks, revision, params)
      if (Result.isFailure(read)) return Effect.fail(McpError.invalidParams(read.failure))
      const last = lastOf(read.success.cursor)
      if (Result.isFailure(last)) return Effect.fail(last.failure)
      const pageSize = Math.max(1, bounds.pageSize)
      const time = now()
      const page: Array<Task> = []
      for (const task of tasks.values()) {
        if (task.number <= last.success || task.expiresAt <= time) continue
        if (page.length === pageSize) {
          const nextCursor = Cursor.encode(list, String(page.at(-1)!.number))
          return Effect.succeed({ tasks: page.map(({ state }) => state), nextCursor })
        }
        page.push(task)
      }
      return Effect.succeed({ tasks: page.map(({ state }) => state) })
    })

  /** The number of the last task of the previous page. "Invalid or nonexistent cursor in `tasks/list`: `-32602`." */
  const lastOf = (cursor: string | undefined): Result.Result<number, McpError.McpError> => {
    if (cursor === undefined) return Result.succeed(0)
    return Result.flatMap(Cursor.decode(list, cursor), (name) => {
      const number = Number(name)
      return Number.isSafeInteger(number) && number > 0 && number <= made
        ? Result.succeed(number)
        : Result.fail(McpError.invalidParams("Invalid cursor"))
    })
  }

  return { peer, isRunning: () => live > 0, create, clear, answer }
}

/** Makes the store for the tasks of a connection, which lasts as long as the connection. */
export const make = (peer: Peer): Effect.Effect<Tasks> =>
  Effect.withFiber(({ context }) => {
    const tasks = makeTasks(peer, Context.omit(McpRequest)(context as Context.Context<McpRequest>))
    return Effect.as(Scope.addFinalizer(peer.scope, Effect.sync(() => tasks.clear())), tasks)
  })
