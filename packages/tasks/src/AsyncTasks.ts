/**
 * The tasks of a program as a class, for programs that do not use Effect: a part of an `AsyncServer`, or a worker without a
 * server. Its methods start tasks, wait for them, and are those of an operator, with promises.
 *
 * They use the engine of the server or the worker that has started last, and reject with an `Error` while none runs. So
 * call them after `await server.listen()`, or from handlers. They do not check owners: a caller reads and cancels the tasks
 * of all owners. A promise rejects with a `TaskError`, whose `reason` is tagged.
 *
 * @example
 * const tasks = new AsyncTasks(SqliteTasks.layer({ filename: "tasks.db" }), [Task.async(bake, baking)])
 * const server = await new AsyncServer({ name: "bakery", version: "1.0.0" }).use(tasks.layer).listen()
 * const { id } = await tasks.start("bake", { cakes: 2 })
 * const { outcome } = await tasks.wait(id) ?? {}
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { makeTask } from "./internal/protocol/applicationTask.ts"
import { beginOf } from "./internal/protocol/startedTask.ts"
import {
  makeRunner,
  type Promised,
  promisedAdmin,
  promisedSchedules,
  type Runner,
  type Services
} from "./internal/protocol/asyncServices.ts"
import { invalidOption } from "./internal/store/database.ts"
import * as Task from "./Task.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import { TaskEngine } from "./TaskEngine.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"
import * as Tasks from "./Tasks.ts"
import {
  type AddressedQuestion,
  isFinal,
  type ListPosition,
  type OutputItem,
  type OutputOptions,
  type OutputPage,
  type Owner,
  type State
} from "./TaskState.ts"

/** A part of a server with tasks: a task, a schedule, `TaskTools`. */
export type Definition = Layer.Layer<never, unknown, Services>

/** The service of an operator, with promises: see `TaskAdmin`. */
export interface AsyncTaskAdmin extends Promised<TaskAdmin["Service"]> {}

/** The schedules of a store, with promises: see `TaskSchedules`. */
export interface AsyncTaskSchedules extends Promised<TaskSchedules["Service"]> {}

/** How the application starts a task. */
export interface StartOptions extends Omit<Task.SubmitOptions, "owner"> {}

/** A signal that ends a wait. */
export interface WaitOptions {
  /** When it aborts, the promise rejects with its reason, and the task continues. */
  readonly signal?: AbortSignal | undefined
}

/** A task that `submit` has started. */
export interface Submitted<Value> {
  /** The id of the task. Keep it secret: it may be enough to read the task. */
  readonly id: string
  /**
   * Waits for its end, and resolves with its value: the structured content, or the text of a task without `output`. Rejects
   * with a `TaskError` whose reason is `Failed`, `Cancelled` or `Expired`.
   */
  readonly wait: (options?: WaitOptions) => Promise<Value>
  /** Its current state; `undefined` if it is deleted or has expired. */
  readonly status: () => Promise<State | undefined>
  /** Cancels it, and it compensates. Resolves with `false` if it has ended or does not exist. */
  readonly cancel: (statusMessage?: string) => Promise<boolean>
}

/** A process that runs tasks and serves no client. */
export interface Worker extends AsyncDisposable {
  /** Stops: running steps have `shutdownTimeout` to end, and the tasks continue in other processes or later. */
  readonly close: () => Promise<void>
}

/** An operator's access to a store beside the server that has it. */
export interface Operator extends AsyncDisposable {
  readonly admin: AsyncTaskAdmin
  readonly schedules: AsyncTaskSchedules
  readonly close: () => Promise<void>
}

/** Builds a layer, with the function that closes it. */
const open = async <A>(layer: Layer.Layer<A, unknown>) => {
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    return { context: await Effect.runPromise(Layer.buildWithScope(layer, scope)), scope, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Opens a store for an operator, such as `SqliteTasks.layerAdmin({ filename })`, in a program beside the server. Rejects
 * with a `TaskError`.
 *
 * @example
 * await using operator = await AsyncTasks.openAdmin(SqliteTasks.layerAdmin({ filename: "tasks.db" }))
 * const failed = await operator.admin.list({ hasFailed: true })
 */
export const openAdmin = async (store: Layer.Layer<TaskAdmin | TaskSchedules, unknown>): Promise<Operator> => {
  const { close, context, scope } = await open(store)
  const runner = await Effect.runPromise(
    Scope.provide(Effect.provideContext(makeRunner<TaskAdmin | TaskSchedules>(), context), scope)
  )
  return { admin: promisedAdmin(runner), schedules: promisedSchedules(runner), close, [Symbol.asyncDispose]: close }
}

/** The tasks of a server or of a worker: see the module. */
export class AsyncTasks {
  /** The runners of the servers that run now, the last one last. */
  readonly #runners = new Set<Runner<Services>>()
  /** The tasks with their engine, as one definition of a server: `server.use(tasks.layer)`. */
  readonly layer: Layer.Layer<never, unknown, Catalog>
  /** The methods of an operator. */
  readonly admin: AsyncTaskAdmin
  /** The schedules of the store. */
  readonly schedules: AsyncTaskSchedules

  /**
   * The engine is `MemoryTasks.layer()`, `SqliteTasks.layer({ filename })` or `PostgresTasks.layer({ url })`. `options` are
   * those of `Tasks.layer`.
   */
  constructor(
    engine: Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, unknown>,
    definitions: ReadonlyArray<Definition>,
    options?: Tasks.Options
  ) {
    const running = Layer.effectDiscard(Effect.flatMap(makeRunner<Services>(), (runner) =>
      Effect.acquireRelease(
        Effect.sync(() => this.#runners.add(runner)),
        () => Effect.sync(() => this.#runners.delete(runner))
      )))
    this.layer = Layer.provide(Layer.mergeAll(Tasks.layer(options), running, ...definitions), engine)
    const current: Runner<Services> = {
      run: (effect, signal) => this.#run(effect, signal),
      iterate: (stream, signal) => this.#runner.iterate(stream, signal)
    }
    this.admin = promisedAdmin(current)
    this.schedules = promisedSchedules(current)
  }

  /**
   * Runs the tasks in this process without a server, until `close`, with services such as loggers. Rejects if the engine
   * cannot be opened.
   *
   * @example
   * const worker = await tasks.startWorker()
   * process.once("SIGTERM", () => void worker.close())
   */
  async startWorker(services: Layer.Layer<never> = Layer.empty): Promise<Worker> {
    const worker = McpServer.layer({ name: "worker", version: "0.0.0" }, this.layer)
    const { close } = await open(Layer.provide(worker, services))
    return { close, [Symbol.asyncDispose]: close }
  }

  /**
   * Starts a task of these definitions by the name of its tool, and resolves when it is stored. `args` are the arguments as
   * a client sends them. Its questions fail, unless its `inputFrom` is `"anyone"`: then a client or `answer` answers them.
   * Rejects with `LimitExceeded` at a limit, and with `InvalidOption` for a tool that is not one of these tasks.
   *
   * @example
   * const { id } = await tasks.start("bake", { cakes: 2 }, { key: order.id })
   */
  start(
    tool: string,
    args: JsonObject = {},
    { key, principal, priority, ...begin }: StartOptions = {}
  ): Promise<State> {
    return this.#run(Effect.gen(function*() {
      const made = makeTask(yield* Catalog, { tool, args, principal, priority, ...yield* beginOf(begin) })
      if (Result.isFailure(made)) return yield* Effect.fail(invalidOption(`the task cannot start: ${made.failure}`))
      return yield* (yield* TaskEngine).submit({ ...made.success, key })
    }))
  }

  /**
   * Starts a task by its definition, with typed arguments and a typed value: see `Task.submit`. Resolves when it is stored.
   *
   * @example
   * const { wait } = await tasks.submit(report, { customer: 7 }, { key: "report/7" })
   * const { total } = await wait()
   */
  submit<Input, Output>(
    task: Tool.Tool<string, Input, Output>,
    args: NoInfer<Input>,
    options?: Task.SubmitOptions
  ): Promise<Submitted<Task.ValueOf<Output>>> {
    return this.#run(Effect.map(Task.submit(task, args, options), (handle): Submitted<Task.ValueOf<Output>> => ({
      id: handle.id,
      wait: ({ signal } = {}) => this.#run(handle.await, signal),
      status: () => this.#run(handle.status),
      cancel: (statusMessage) => this.#run(handle.cancel(statusMessage))
    })))
  }

  /**
   * Waits until a task has ended, and returns its final state. Returns `undefined` for an unknown id, and if the task is
   * deleted before it ends.
   *
   * @example
   * const end = await tasks.wait(id, { signal: AbortSignal.timeout(60_000) })
   */
  wait(id: string, { signal }: WaitOptions = {}): Promise<State | undefined> {
    const ended = Stream.runHead(Stream.filter(watched(id), isFinal))
    return this.#run(Effect.map(ended, Option.getOrUndefined), signal)
  }

  /**
   * The current state of a task, and its later states; of several quick changes, only the last state. The loop ends after a
   * final state, when the task is deleted, and when the server stops.
   *
   * @example
   * for await (const { status, statusMessage } of tasks.watch(id)) show(status, statusMessage)
   */
  watch(id: string, { signal }: WaitOptions = {}): AsyncIterable<State> {
    return this.#runner.iterate(watched(id), signal)
  }

  /**
   * The items that a task has emitted, and those that it emits later: see `TaskEngine.followOutput`. The loop ends with the
   * task, and when the server stops.
   *
   * @example
   * for await (const { offset, value } of tasks.followOutput(id, { from: 12 })) show(offset, value)
   */
  followOutput(id: string, { signal, ...options }: OutputOptions & WaitOptions = {}): AsyncIterable<OutputItem> {
    return this.#runner.iterate(
      Stream.unwrap(Effect.map(TaskEngine, (engine) => engine.followOutput(id, options))),
      signal
    )
  }

  /** A page of the items that a task has emitted: see `TaskEngine.readOutput`. */
  readOutput(id: string, options?: OutputOptions): Promise<OutputPage | undefined> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.readOutput(id, options)))
  }

  /** The state of a task; `undefined` for an unknown id, and for a task that was deleted or has expired. */
  get(id: string): Promise<State | undefined> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.get(id)))
  }

  /** The tasks of these owners, newest first, without questions and outcomes. `limit` is 100 by default. */
  list(
    owners: ReadonlyArray<Owner>,
    { after, limit = 100 }: { readonly after?: ListPosition | undefined; readonly limit?: number | undefined } = {}
  ): Promise<ReadonlyArray<State>> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.list(owners, { after, limit })))
  }

  /** Cancels a task, which then compensates. Returns `false` if it has ended or does not exist. */
  cancel(id: string, statusMessage?: string): Promise<boolean> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.cancel(id, statusMessage)))
  }

  /**
   * Answers an open question of a task (`State.questions`). The first answer counts. Returns `false` for a question that is
   * not open.
   *
   * @example
   * await tasks.answer(id, question.key, { action: "accept", content: { address: "Hafen 1" } })
   */
  answer(id: string, key: string, answer: JsonObject): Promise<boolean> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.answer(id, key, answer)))
  }

  /**
   * The open questions that name one of these persons and groups (`to` of an elicitation): 100 by default.
   *
   * @example
   * for (const { question, task } of await tasks.questionsFor(["ada", "finance"])) show(task.tool, question.params)
   */
  questionsFor(
    addresses: ReadonlyArray<string>,
    options?: { readonly limit?: number | undefined }
  ): Promise<ReadonlyArray<AddressedQuestion>> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.questionsFor(addresses, options)))
  }

  /**
   * Sends an event to a task, which receives it with `awaitEvent`: see `TaskEngine.send`. Returns `false` if an event with this
   * `key` was sent to it before. Rejects with a `TaskError`: `UnknownTask`, `AlreadyEnded`, `InvalidEvent` or `TooManyEvents`.
   *
   * @example
   * await tasks.send(order.task, "paid", { reference: "4711" }, { key: webhook.id })
   */
  send(id: string, name: string, value: unknown, options?: { readonly key?: string | undefined }): Promise<boolean> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.send(id, name, value, options)))
  }

  /**
   * Sends an event to all tasks that await it with this `topic`, and to those that do so within a day: see
   * `TaskEngine.sendAll`. Returns the number of tasks that have it now.
   *
   * @example
   * await tasks.sendAll("paid", "order/4711", { receipt: "R1" }, { key: webhook.id })
   */
  sendAll(
    name: string,
    topic: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ): Promise<number> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.sendAll(name, topic, value, options)))
  }

  /**
   * Asks the handler of a task, which answers with a function of its own (`query`), and resolves with the JSON of the answer: see
   * `TaskEngine.query`. Rejects with a `TaskError`: `UnknownTask`, `UnknownTool`, `QueryError` or `InvalidOption`.
   *
   * @example
   * const { done } = await tasks.query(id, "progress") as { done: number }
   */
  query(id: string, name: string, args?: JsonObject): Promise<unknown> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.query(id, name, args)))
  }

  /** Lets a task that has ended expire in ten seconds. Does nothing for another task. */
  expireSoon(id: string): Promise<void> {
    return this.#run(Effect.flatMap(TaskEngine, (engine) => engine.expireSoon(id)))
  }

  get #runner(): Runner<Services> {
    const runner = [...this.#runners].at(-1)
    if (runner === undefined) {
      throw new Error(
        "no server and no worker of these tasks runs: pass them to `use` and await `listen`, or start a worker"
      )
    }
    return runner
  }

  async #run<A, E>(effect: Effect.Effect<A, E, Services>, signal?: AbortSignal): Promise<A> {
    return await this.#runner.run(effect, signal)
  }
}

const watched = (id: string) => Stream.unwrap(Effect.map(TaskEngine, (engine) => engine.watch(id)))
