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

/** The tasks of one connection. */
export class Tasks {
  readonly peer: Peer
  readonly #bounds: FixedBounds
  /** The services of the handlers. It has no request, so that no request is retained as long as its task. */
  readonly #context: Context.Context<never>
  readonly #clock: Clock.Clock
  /** Oldest first. */
  readonly #tasks = new Map<string, Task>()
  #made = 0
  /** How many are running. */
  live = 0

  constructor(peer: Peer, context: Context.Context<never>) {
    this.peer = peer
    this.#bounds = Context.get(context, FixedBounds)
    this.#context = context
    this.#clock = Context.get(context, Clock.Clock)
  }

  get #now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  /** Runs an effect in the scope of the connection, from the next tick on: the response is sent first. */
  #fork(effect: Effect.Effect<unknown>): Effect.Effect<Fiber.Fiber<unknown>> {
    return Effect.updateContext(Effect.forkIn(effect, this.peer.scope), () => this.#context)
  }

  // ---- from an input request to its result

  /**
   * Creates a task for an input request, and runs its handler. "Receivers that accept a task-augmented request MUST
   * return a `CreateTaskResult` as the response. This result SHOULD be returned as soon as possible."
   */
  create(
    { method, params }: RequestContext,
    answered: Effect.Effect<JsonObject, McpError.McpError>
  ): Effect.Effect<Answer, McpError.McpError> {
    return Effect.gen({ self: this }, function*() {
      const refused = this.#refusal()
      if (refused !== undefined) return yield* Effect.fail(refused)
      // The parameters were decoded before.
      const { ttl } = params!["task"] as { readonly ttl?: number | undefined }
      const { maxTtl, suggestedPollInterval } = this.#bounds
      const lifetime = Math.min(Math.max(ttl ?? maxTtl, 0), maxTtl)
      const task = new Task(++this.#made, method, this.#now, lifetime, suggestedPollInterval)
      this.#tasks.set(task.id, task)
      this.live++
      // "Tasks MUST begin in the `working` status when created", even if the handler returns at once.
      const created = withRelated({ task: task.state }, task.id)
      if (task.expiresAt !== Infinity) task.life = yield* this.#fork(this.#expiring(task))
      task.work = yield* this.#fork(this.#work(task, answered))
      yield* Effect.logDebug(`${method} became a task`)
      return created
    })
  }

  /**
   * Waits for the end of the time to live. It is a method so that it does not retain the input request for that long.
   */
  #expiring(task: Task): Effect.Effect<void> {
    return Effect.delay(Effect.sync(() => this.#expire(task)), task.expiresAt - task.createdAt)
  }

  #work(task: Task, answered: Effect.Effect<JsonObject, McpError.McpError>): Effect.Effect<void> {
    return Effect.flatMap(Effect.exit(answered), (exit) => {
      // "Once a task is cancelled, it MUST remain in `cancelled` status even if execution continues to completion or
      // fails."
      if (task.over) return Effect.void
      this.live--
      const logged = task.end(exit, this.#now)
      const notified = this.peer.notify(Method.LegacyTaskStatus.name, task.state)
      return Effect.andThen(logged, notified)
    })
  }

  /** Why no further task can be created; undefined if one can. */
  #refusal(): McpError.McpError | undefined {
    const { maxRetained, maxRunningTasks } = this.#bounds
    if (this.live >= maxRunningTasks) return full(`Too many tasks: at most ${maxRunningTasks} may run`)
    if (this.#tasks.size < maxRetained) return undefined
    for (const task of this.#tasks.values()) {
      if (!task.settled) continue
      this.#remove(task)
      return undefined
    }
    return full(`Too many tasks: at most ${maxRetained} are stored, and no result of them was fetched`)
  }

  #remove(task: Task): void {
    this.#tasks.delete(task.id)
    task.life?.interruptUnsafe()
  }

  /**
   * "After a task's `ttl` lifetime has elapsed, receivers MAY delete the task and its results, regardless of the task
   * status."
   */
  #expire(task: Task): void {
    this.#tasks.delete(task.id)
    if (task.over) return
    this.live--
    task.drop(expired())
  }

  /** Ends all tasks with the connection. */
  clear(): void {
    this.#tasks.clear()
    this.live = 0
  }

  // ---- requests about tasks

  /** Answers a request about tasks. */
  answer({ method, params }: RequestContext): Effect.Effect<Answer, McpError.McpError> {
    switch (method) {
      case Method.LegacyGetTask.name:
        return this.#with(params, (task) => Effect.succeed(task.state))
      case Method.LegacyGetTaskPayload.name:
        return this.#with(params, (task) => task.result)
      case Method.LegacyCancelTask.name:
        return this.#with(params, (task) => this.#cancel(task))
      default:
        return this.#list(params)
    }
  }

  /** "Invalid or nonexistent `taskId` in `tasks/get`, `tasks/result`, or `tasks/cancel`: `-32602`." */
  #with(
    params: JsonObject | undefined,
    f: (task: Task) => Effect.Effect<Answer, McpError.McpError>
  ): Effect.Effect<Answer, McpError.McpError> {
    return Effect.suspend(() => {
      const read = Codec.decodeParams(Method.LegacyGetTask, revision, params)
      if (Result.isFailure(read)) return Effect.fail(McpError.invalidParams(read.failure))
      const task = this.#tasks.get(read.success.taskId)
      return task === undefined || task.expiresAt <= this.#now ? Effect.fail(unknown()) : f(task)
    })
  }

  #cancel(task: Task): Effect.Effect<Answer, McpError.McpError> {
    if (task.over) {
      return Effect.fail(McpError.invalidParams(`Cannot cancel task: already in terminal status '${task.status}'`))
    }
    this.live--
    task.cancel(this.#now)
    return Effect.as(Effect.logDebug(`The task of ${task.method} was cancelled by the server`), task.state)
  }

  #list(params: JsonObject | undefined): Effect.Effect<Answer, McpError.McpError> {
    return Effect.suspend(() => {
      const read = Codec.decodeParams(Method.LegacyListTasks, revision, params)
      if (Result.isFailure(read)) return Effect.fail(McpError.invalidParams(read.failure))
      const last = this.#last(read.success.cursor)
      if (Result.isFailure(last)) return Effect.fail(last.failure)
      const pageSize = Math.max(1, this.#bounds.pageSize)
      const now = this.#now
      const page: Array<Task> = []
      for (const task of this.#tasks.values()) {
        if (task.number <= last.success || task.expiresAt <= now) continue
        if (page.length === pageSize) {
          const nextCursor = Cursor.encode(list, String(page.at(-1)!.number))
          return Effect.succeed({ tasks: page.map(({ state }) => state), nextCursor })
        }
        page.push(task)
      }
      return Effect.succeed({ tasks: page.map(({ state }) => state) })
    })
  }

  /** The number of the last task of the previous page. "Invalid or nonexistent cursor in `tasks/list`: `-32602`." */
  #last(cursor: string | undefined): Result.Result<number, McpError.McpError> {
    if (cursor === undefined) return Result.succeed(0)
    return Result.flatMap(Cursor.decode(list, cursor), (name) => {
      const number = Number(name)
      return Number.isSafeInteger(number) && number > 0 && number <= this.#made
        ? Result.succeed(number)
        : Result.fail(McpError.invalidParams("Invalid cursor"))
    })
  }
}

/** Makes the store for the tasks of a connection, which lasts as long as the connection. */
export const make = (peer: Peer): Effect.Effect<Tasks> =>
  Effect.withFiber(({ context }) => {
    const tasks = new Tasks(peer, Context.omit(McpRequest)(context as Context.Context<McpRequest>))
    return Effect.as(Scope.addFinalizer(peer.scope, Effect.sync(() => tasks.clear())), tasks)
  })
