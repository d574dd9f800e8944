/**
 * The tasks of a server or of a worker, and the tools with which a model uses them.
 */
import { AsyncTasks } from "@skein/tasks/AsyncTasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { define, type Definition, layerOf, lazily, opaque } from "../base/definition.ts"
import { CurrentTelemetry, observed, type ObservedServer } from "../base/observed.ts"
import type { JsonObject } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { Caller, Visible } from "../server/request.ts"
import type { TaskCounts, TaskPolicy } from "./task.ts"
import type { TaskAlert, TaskAlertsOptions } from "./taskAlerts.ts"
import { coreOf, type TaskDefinition } from "./taskDefinition.ts"
import type { TaskAdmin } from "./taskAdmin.ts"
import type { TaskSchedules } from "./taskSchedule.ts"
import type {
  AddressedQuestion,
  TaskListPosition,
  TaskOutputItem,
  TaskOutputOptions,
  TaskOutputPage,
  TaskOwner,
  TaskState
} from "./taskState.ts"
import type { TaskStore } from "./taskStore.ts"

/** The options of the tasks of a server. */
export interface TasksOptions extends TaskPolicy {
  /** The numbers of tasks. At a limit a call is rejected with `-32603`, and no task is created. */
  readonly limits?: {
    /** Of all tasks. Default: 10,000 that have not ended, and 100,000 stored ones. */
    readonly all?: TaskCounts | undefined
    /** Of the tasks of one owner, or of the network of a caller without one. Default: 100 and 1,000. */
    readonly perClient?: TaskCounts | undefined
    /** Of a task without limits of its own. Default: 1,000 and 10,000. */
    readonly perTool?: TaskCounts | undefined
  } | undefined
  /**
   * Which clients of 2025-11-25 may list tasks: callers with an owner, their own (`identified`, the default); callers without an
   * owner too, who then **list the tasks of all callers without an owner** (`always`); or no client (`never`).
   */
  readonly list?: "identified" | "always" | "never" | undefined
  /**
   * The names by which questions are addressed to a caller (`to` of `elicit`): its groups, for instance. A caller sees and answers
   * such a question only with one of its names, also in a task of its own. Default: the id of its principal.
   *
   * @example
   * addresses: ({ principal }) => principal === undefined ? [] : [principal.id, "finance"]
   */
  readonly addresses?: ((caller: Caller) => ReadonlyArray<string>) | undefined
  /** How many tasks a page of a listing has: 100 by default. */
  readonly pageSize?: number | undefined
  /** The text that a model receives in place of the result while a task runs, in 2025-11-25. Without it the host chooses. */
  readonly immediateResponse?: ((state: TaskState) => string | undefined) | undefined
  /**
   * Whom to alert of tasks that have failed, were given up or need attention, and of old queues. Default: no alerts.
   *
   * @example
   * tasks(store, [buy], { alerts: { notify: async (alert) => alert._tag === "GivenUp" ? page(alert.task.tool) : undefined } })
   */
  readonly alerts?: TaskAlertsOptions | undefined
}

/** How the application starts a task. */
export interface StartOptions {
  /** The user for whom it runs: the `principal` of its handler, which determines its owner. Default: none. */
  readonly principal?: { readonly id: string } | undefined
  /**
   * A key of up to 512 characters. While a task of the same owner and name with this key exists, `start` returns that task and
   * creates none, so that a start can be repeated. Default: none.
   */
  readonly key?: string | undefined
  /** In place of the `priority` of its definition. */
  readonly priority?: number | undefined
  /** The time until it may begin: its `ttl` begins then. Default 0. */
  readonly delay?: Duration | undefined
  /** When it may begin, by the clock of the store, in place of `delay`. */
  readonly startAt?: Date | string | number | undefined
}

/** A signal that ends a wait. */
export interface WaitOptions {
  /** When it aborts, the promise rejects with its reason, and the task continues. */
  readonly signal?: AbortSignal | undefined
}

/** A task that `submit` has started. */
export interface SubmittedTask<Value> {
  /** Keep it secret: it may be enough to read the task. */
  readonly id: string
  /**
   * Waits for its end, and resolves with its value: the structured content, or the text of a task without `output`. Rejects
   * with a `TaskError` whose reason is `Failed`, `Cancelled` or `Expired`.
   */
  readonly wait: (options?: WaitOptions) => Promise<Value>
  /** Its current state; `undefined` if it is deleted or has expired. */
  readonly status: () => Promise<TaskState | undefined>
  /** Cancels it, and it compensates. Resolves with `false` if it has ended or does not exist. */
  readonly cancel: (statusMessage?: string) => Promise<boolean>
}

/** A process that runs tasks and serves no client. */
export interface TaskWorker extends AsyncDisposable {
  /** Stops: running steps have `shutdownTimeout` to end, and the tasks continue in other processes or later. */
  readonly close: () => Promise<void>
}

/**
 * The tasks of a server, or of a worker without one. The methods use the server or the worker that has started last, and
 * reject with an `Error` while none runs: await `listen` or `startWorker`, or call them from handlers. They do not check
 * owners. Promises reject with a `TaskError`.
 */
export interface Tasks extends Definition {
  /**
   * Starts a task, and resolves when it is stored. Its questions fail, unless its `inputFrom` is `"anyone"`: then a client or
   * `answer` answers them. Rejects with `LimitExceeded` at a limit, and with `InvalidOption` if it is not one of these tasks.
   *
   * @example
   * const { id } = await shop.start(buy, { tea: "sencha" }, { key: order.id })
   */
  readonly start: {
    <Args>(task: TaskDefinition<Args>, args: NoInfer<Args>, options?: StartOptions): Promise<TaskState>
    /** By its name. */
    (task: string, args?: JsonObject, options?: StartOptions): Promise<TaskState>
  }
  /**
   * Starts a task, and resolves when it is stored, with typed arguments and a typed value. Rejects with `InvalidArguments`
   * before anything is stored.
   *
   * @example
   * const { wait } = await shop.submit(report, { customer: 7 }, { key: "report/7" })
   * const { total } = await wait()
   */
  readonly submit: <Args, Value>(
    task: TaskDefinition<Args, Value>,
    args: NoInfer<Args>,
    options?: StartOptions
  ) => Promise<SubmittedTask<Value>>
  /**
   * Waits until a task has ended, and returns its final state. Returns `undefined` for an unknown id, and if it is deleted before
   * it ends.
   *
   * @example
   * const end = await shop.wait(id, { signal: AbortSignal.timeout(60_000) })
   */
  readonly wait: (id: string, options?: WaitOptions) => Promise<TaskState | undefined>
  /**
   * The current state of a task, and its later states; of several quick changes, only the last one. The loop ends after a final
   * state, when the task is deleted, and when the server stops.
   *
   * @example
   * for await (const { status, statusMessage } of shop.watch(id)) show(status, statusMessage)
   */
  readonly watch: (id: string, options?: WaitOptions) => AsyncIterable<TaskState>
  /**
   * The items that a task has emitted, and those that it emits later, in this process or another one. The loop ends with the
   * task, when it is deleted, and when the server stops. A reader that was cut off goes on from the offset behind its last item.
   *
   * @example
   * for await (const { offset, value } of shop.followOutput(id, { from: 12 })) show(offset, value)
   */
  readonly followOutput: (id: string, options?: TaskOutputOptions & WaitOptions) => AsyncIterable<TaskOutputItem>
  /** A page of the items that a task has emitted; `undefined` for an unknown id, and for a task that has expired. */
  readonly readOutput: (id: string, options?: TaskOutputOptions) => Promise<TaskOutputPage | undefined>
  /** The state of a task; `undefined` for an unknown id, and for a task that was deleted or has expired. */
  readonly get: (id: string) => Promise<TaskState | undefined>
  /** The tasks of these owners, newest first, without questions and outcomes. `limit` is 100 by default. */
  readonly list: (
    owners: ReadonlyArray<TaskOwner>,
    options?: { readonly after?: TaskListPosition | undefined; readonly limit?: number | undefined }
  ) => Promise<ReadonlyArray<TaskState>>
  /** Cancels a task, which then compensates. Returns `false` if it has ended or does not exist. */
  readonly cancel: (id: string, statusMessage?: string) => Promise<boolean>
  /**
   * Answers an open question of a task. The first answer counts. Returns `false` for a question that is not open.
   *
   * @example
   * await shop.answer(id, question.key, { action: "accept", content: { address: "Hafen 1" } })
   */
  readonly answer: (id: string, key: string, answer: JsonObject) => Promise<boolean>
  /**
   * The open questions that name one of these persons and groups (`to` of `elicit`), those of the oldest tasks first: 100 by
   * default, at most 1,000.
   *
   * @example
   * for (const { question, task } of await shop.questionsFor(["ada", "finance"])) show(task.tool, question.params)
   */
  readonly questionsFor: (
    addresses: ReadonlyArray<string>,
    options?: { readonly limit?: number | undefined }
  ) => Promise<ReadonlyArray<AddressedQuestion>>
  /**
   * Sends an event to a task, which receives it with `awaitEvent`. The event is stored when the promise resolves, also before the
   * task waits for it. `value` is JSON, up to 262,144 bytes. `key`: returns `false`, and sends nothing, if an event with this
   * key was sent to the task before. Rejects with `UnknownTask`, `AlreadyEnded`, `InvalidEvent` or `TooManyEvents`.
   *
   * @example
   * await shop.send(order.task, "paid", { reference: "4711" }, { key: webhook.id })
   */
  readonly send: (
    id: string,
    name: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Promise<boolean>
  /**
   * Sends an event to all tasks that await it with this `topic`, and to those that do so within a day: the last 100 of a topic and
   * a name are stored for them. Returns the number of tasks that have it now.
   *
   * @example
   * await shop.sendAll("paid", "order/4711", { receipt: "R1" }, { key: webhook.id })
   */
  readonly sendAll: (
    name: string,
    topic: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Promise<number>
  /**
   * Asks the handler of a task, which answers with a function of its own (`query` of its context), and resolves with the JSON of
   * the answer: also while the task waits or runs elsewhere, and after it has ended. Rejects with a `TaskError`: `UnknownTask`,
   * `UnknownTool` without the handler in this process, `QueryError` without such a query, or if it throws, and `InvalidOption`.
   *
   * @example
   * const { done } = await shop.query(id, "progress") as { done: number }
   */
  readonly query: (id: string, name: string, args?: JsonObject) => Promise<unknown>
  /** Lets a task that has ended expire in ten seconds. Does nothing for another task. */
  readonly expireSoon: (id: string) => Promise<void>
  /** The methods of an operator. */
  readonly admin: TaskAdmin
  /** The schedules of the store. */
  readonly schedules: TaskSchedules
  /**
   * Runs the tasks in this process without a server, until `close`. `options` are the logs and the telemetry of the process:
   * those of a server. Rejects if the store cannot be opened.
   *
   * @example
   * const worker = await shop.startWorker()
   * process.once("SIGTERM", () => void worker.close())
   */
  readonly startWorker: (options?: ObservedServer) => Promise<TaskWorker>
}

/** Records the tasks of a store if its server has telemetry. */
const recorded = (store: Layer.Layer<never, unknown, unknown>) =>
  Layer.unwrap(Effect.map(CurrentTelemetry, (telemetry) => {
    if (telemetry === undefined) return store
    const { metrics, spans } = telemetry
    const observer = lazily(() => import("@skein/tasks/TaskTelemetry"), ({ layer }) => layer({ metrics, spans }))
    return Layer.provide(store, observer)
  }))

/** The store with the alerts of its tasks. */
const alerting = (store: Layer.Layer<never, unknown, unknown>, alerts: TaskAlertsOptions | undefined) => {
  if (alerts === undefined) return store
  const { notify, queueOlderThan } = alerts
  const asEffect = (alert: TaskAlert) => Effect.tryPromise(async () => notify(alert))
  const layer = lazily(
    () => import("@skein/tasks/TaskAlerts"),
    ({ layer }) => layer({ notify: asEffect, queueOlderThan })
  )
  return Layer.provide(store, layer)
}

/**
 * Makes the tasks of a server: pass the value to `use` of an `AsyncServer`. `definitions` are those of `task` and
 * `taskSchedule`. A server has one of it.
 *
 * @example
 * const shop = tasks(sqliteTasks({ filename: "tasks.db" }), [buy])
 * new AsyncServer({ name: "shop", version: "1.0.0" }).use(shop).runHttp({ port: 3000 })
 */
export const tasks = (
  store: TaskStore,
  definitions: ReadonlyArray<Definition>,
  { alerts, ...options }: TasksOptions = {}
): Tasks => {
  if (!Array.isArray(definitions)) throw new TypeError("The tasks after the store are an array: tasks(store, [order])")
  const core = new AsyncTasks(
    alerting(recorded(layerOf(store)), alerts) as never,
    definitions.map((each) => layerOf(each) as never),
    options as never
  )
  const start = (task: string | TaskDefinition, args?: JsonObject, options?: StartOptions) =>
    core.start(typeof task === "string" ? task : task.name, args, options)
  return opaque<Tasks>(core.layer, {
    start: start as Tasks["start"],
    submit: ((task, args, options) => core.submit(coreOf(task), args as {}, options)) as Tasks["submit"],
    wait: ((id, options) => core.wait(id, options)) as Tasks["wait"],
    watch: ((id, options) => core.watch(id, options)) as Tasks["watch"],
    followOutput: (id, options) => core.followOutput(id, options),
    readOutput: (id, options) => core.readOutput(id, options),
    get: ((id) => core.get(id)) as Tasks["get"],
    list: ((owners, options) => core.list(owners, options)) as Tasks["list"],
    cancel: (id, statusMessage) => core.cancel(id, statusMessage),
    answer: (id, key, answer) => core.answer(id, key, answer),
    questionsFor: ((addresses, options) => core.questionsFor(addresses, options)) as Tasks["questionsFor"],
    send: (id, name, value, options) => core.send(id, name, value, options),
    sendAll: (name, topic, value, options) => core.sendAll(name, topic, value, options),
    query: (id, name, args) => core.query(id, name, args),
    expireSoon: (id) => core.expireSoon(id),
    admin: core.admin as TaskAdmin,
    schedules: core.schedules as TaskSchedules,
    startWorker: (options = {}) => core.startWorker(observed(options))
  })
}

/** The tools for models. */
export interface TaskToolsOptions {
  /**
   * How long a call of a task waits for the result, and `task_status` for a change: 20 seconds by default, at most one hour. It
   * must be shorter than the request timeouts of clients, which often are one minute.
   */
  readonly waitTimeout?: Duration | undefined
  /** Which callers see the tools. Default: those whose client has no tasks. */
  readonly visible?: Visible | undefined
}

/**
 * Adds `task_status`, `task_answer`, `task_cancel` and `task_list`, for a model in a client without tasks. A call of a task
 * then waits no longer than `waitTimeout`, and returns a text with the id of the task and how to continue. The server needs
 * `tasks` too. The tools respect the owners of tasks.
 *
 * @example
 * server.use(tasks(sqliteTasks({ filename: "tasks.db" }), [buy]), taskTools({ waitTimeout: "10 seconds" }))
 */
export const taskTools = (options?: TaskToolsOptions): Definition =>
  define(TaskTools.layer(options as TaskTools.Options))
