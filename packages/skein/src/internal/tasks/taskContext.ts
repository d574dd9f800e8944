/**
 * The context of the handler of a task, its second argument.
 */
import type { JsonObject } from "../base/messages.ts"
import type { Awaitable, Duration, StandardSchema } from "../base/types.ts"
import type { CheckedJson, HandlerContext, JsonForm } from "../server/handlerContext.ts"
import type { TaskDefinition } from "./taskDefinition.ts"

/**
 * The second argument of the handler of a task: that of any handler, with steps, sleeps and compensations.
 *
 * - The handler starts from its beginning after each question, event, long sleep and each change of its process. Pending
 *   promises of its context reject then, and `signal` aborts: a `catch` around them must not act if `signal.aborted`. Put each
 *   effect into a step, and do the same between steps in each run.
 * - Results of steps are stored as JSON, and you receive what JSON makes of them, also in the first run: a `Date` is its text. A
 *   value that JSON cannot hold, such as a `bigint` or a `Map`, fails the task, and the `compensate` of its step runs.
 * - A step that throws rejects, in each run, with a `VisibleError` if the client may see it, and otherwise with a `StepError`.
 * - `header` returns `undefined`. Pass what the task needs of its request as an argument, or use the `id` of `principal`.
 * - Start parallel steps with `Promise.all`. Await each promise.
 */
export interface TaskContext extends HandlerContext {
  /** The id of the task. Keep it secret: it may be enough to read the task. */
  readonly taskId: string
  /** Sets the status message of the task, for people and models. It is cut at 4,096 characters. */
  readonly setStatusMessage: (message: string) => Promise<void>
  /**
   * Sets a label of the task, by which operators find it (`admin.list({ labels })`), or changes its value: at most ten, with
   * names of 1 to 200 characters and values of up to 200. Rejects with a `TaskError` otherwise.
   */
  readonly label: (name: string, value: string) => Promise<void>
  /**
   * Adds an item to the output of the task, which the application reads while it runs (`tasks().followOutput`), and its owner as
   * the resource `task-output://<id>?from=<offset>`. `value` is JSON. Between steps each item is added once, however often the
   * handler runs again; in the function of a step it is added again if the step runs again. It is not allowed in a
   * transaction and in a compensation. Rejects with a `TaskError`: `InvalidOutput` for a value without a JSON form or of more
   * than 262,144 bytes, and `TooMuchOutput` for more than 10,000 items or 16 MiB in a task.
   *
   * @example
   * await emit({ chapter: 1, text: await step("chapter 1", () => write(1)) })
   */
  readonly emit: (value: unknown) => Promise<void>
  /**
   * Runs a step, or returns its recorded result. The name is unique in the task: in a loop, each iteration needs its own. The
   * step runs at least once: give its `key` to services that compare such keys. It must not contain another step, a sleep, a
   * compensation or a question. Rejects with `VisibleError` or `StepError` if it throws and no retry is left, and with
   * `StepTimeout` at its `timeout`.
   *
   * @example
   * const payment = await step("charge", ({ key }) => charge(cents, key), { retry: { times: 5 } })
   */
  readonly step: <A>(
    name: string,
    run: ((step: RunningStep) => A | Promise<A>) & CheckedJson<A>,
    options?: StepOptions<A>
  ) => Promise<JsonForm<NoInfer<A>>>
  /**
   * Runs a step whose statements and whose record are one transaction of the store, so that it runs exactly once. If the
   * function throws, its writes are rolled back. It must be short and do nothing but SQL: on SQLite all other statements wait
   * for it. The tables are in the database of the tasks.
   *
   * @example
   * await transaction("book", (sql) => sql`INSERT INTO orders (id, tea) VALUES (${id}, ${tea})`)
   */
  readonly transaction: <A>(
    name: string,
    run: ((sql: Sql, step: RunningStep) => A | Promise<A>) & CheckedJson<A>,
    options?: StepOptions<A>
  ) => Promise<JsonForm<NoInfer<A>>>
  /** Sleeps, across restarts. The task takes no memory meanwhile, except for a sleep of up to 5 seconds. */
  readonly sleep: (name: string, duration: Duration) => Promise<void>
  /**
   * Waits for an event that the application sends with `tasks().send`, such as a webhook, and resolves with its value. No client
   * sees or answers it. An event that was sent before is received at once. Events with one name are received in the order of
   * sending, each by one `awaitEvent`. Rejects with an `EventError`.
   *
   * @example
   * const { reference } = await awaitEvent("paid", { schema: z.object({ reference: z.string() }), timeout: "2 days" })
   */
  readonly awaitEvent: <A = unknown>(name: string, options?: EventOptions<A>) => Promise<A>
  /**
   * Adds a compensation, which runs when the task fails or is cancelled, after those that were added later. It must use the
   * context that it receives, and cannot ask the client.
   */
  readonly compensate: (undo: Compensation) => Promise<void>
  /**
   * Whether this task runs with a change of the code: `false` in a task that has recorded more behind this point, because
   * it began with the code before. The decision is recorded under the name of the change, so that it stays the same. Call it
   * before parallel branches.
   *
   * @example
   * if (await patched("audit first")) await step("audit", () => audit(order))
   */
  readonly patched: (name: string) => Promise<boolean>
  /**
   * Starts the handler again with other arguments and an empty log, in the same task: for tasks that work for months. It never
   * resolves. The task fails if it has compensations.
   */
  readonly continueWith: (args: JsonObject) => Promise<never>
  /**
   * Runs a function that a cancellation of the task waits for, also if its process ends meanwhile: a section that must not stop
   * in its middle. The name is unique in the task. Use the context that the function receives. It may have steps and sleeps; to
   * wait for a question, an event or a child fails in it.
   *
   * @example
   * await nonCancellable("transfer", async ({ step }) => {
   *   await step("debit", ({ key }) => debit(from, amount, key))
   *   await step("credit", ({ key }) => credit(to, amount, key))
   * })
   */
  readonly nonCancellable: <A>(name: string, run: (context: TaskContext) => A | Promise<A>) => Promise<A>
  /**
   * Starts a branch that can be cancelled alone: its steps are interrupted, and its compensations run. The name is unique in
   * the task. Use the context that the function receives.
   *
   * @example
   * const hotel = await branch("hotel", ({ step }) => step("hotel", bookHotel, { compensate: giveHotelBack }))
   * if (await bookFlight() === undefined) await hotel.cancel()
   */
  readonly branch: <A>(name: string, run: (context: TaskContext) => A | Promise<A>) => Promise<TaskBranch<A>>
  /**
   * Lets a function answer the queries with this name (`tasks().query`), from the variables of the handler. It must change
   * nothing, and answers with JSON, or throws. In other processes the variables are those of the last record: set them from the results of
   * steps.
   *
   * @example
   * await query("progress", () => ({ done, of: files.length }))
   */
  readonly query: (name: string, answer: (args: JsonObject) => unknown) => Promise<void>
  /**
   * Starts a child task, once, also if the handler runs again. `key` is its name in this task. A child that has not ended when
   * this task ends is cancelled, unless it is `detached`. Rejects with a `TaskError`.
   *
   * @example
   * const eu = await start(report, { region: "eu" }, { key: "eu" })
   * const { total } = await join(eu)
   */
  readonly start: <Args, Value>(
    task: TaskDefinition<Args, Value>,
    args: NoInfer<Args>,
    options?: ChildOptions
  ) => Promise<ChildTask<Value>>
  /**
   * Waits for the end of a child, and resolves with its value. This task takes no memory meanwhile. Rejects with a `TaskError`
   * whose reason is `Failed`, `Cancelled` or `Expired`.
   */
  readonly join: <Value>(child: ChildTask<Value>) => Promise<Value>
  /**
   * Starts a child for each item, some at a time, and waits for all of them. The values have the order of the items, of which
   * there are at most 10,000, the same in each run. The first failure cancels the others and rejects; with
   * `onFailure: "collect"` the results are those of `Promise.allSettled`.
   *
   * @example
   * const totals = await forEach(report, regions.map((region) => ({ region })), { concurrency: 20 })
   */
  readonly forEach: {
    <Args, Value>(
      task: TaskDefinition<Args, Value>,
      items: ReadonlyArray<NoInfer<Args>>,
      options: ForEachTaskOptions & { readonly onFailure: "collect" }
    ): Promise<ReadonlyArray<PromiseSettledResult<Value>>>
    <Args, Value>(
      task: TaskDefinition<Args, Value>,
      items: ReadonlyArray<NoInfer<Args>>,
      options?: ForEachTaskOptions & { readonly onFailure?: "fail" | undefined }
    ): Promise<ReadonlyArray<Value>>
  }
}

/** A branch of a task. */
export interface TaskBranch<A> {
  /** Its end. Rejects with a `TaskError`, `Cancelled`, when it is cancelled. */
  readonly result: Promise<A>
  /** Cancels it and runs its compensations, and waits for that. Further calls have no effect. */
  readonly cancel: () => Promise<void>
}

/** How a handler starts a child. */
export interface ChildOptions {
  /** Its name among the children of the task: unique, and the same in each run. Default: the name of the task. */
  readonly key?: string | undefined
  /** Whether it continues when its parent ends. Default `false`: it is cancelled then. */
  readonly detached?: boolean | undefined
}

/** A child that a handler has started. */
export interface ChildTask<Value> {
  /** Keep it secret: it may be enough to read the task. */
  readonly id: string
  /** Its name among the children of its parent. */
  readonly key: string
  readonly "~end": (end: never) => unknown
  readonly "~value"?: Value
}

/** How a handler starts a child for each item. */
export interface ForEachTaskOptions {
  /** The name of the group among the children of the task: unique, and the same in each run. Default: the name of the task. */
  readonly key?: string | undefined
  /** How many of them run or wait at the same time: a whole number from 1. Default 100. */
  readonly concurrency?: number | undefined
  /** Whether the first failure cancels the others and rejects (`fail`, the default), or each item has its own result. */
  readonly onFailure?: "fail" | "collect" | undefined
}

/** The context of a task that is prepared in its call (`prepare`). */
export interface PreparedTaskContext<P> extends TaskContext {
  /** The value that `prepare` returned, as JSON makes it. */
  readonly prepared: JsonForm<P>
}

/** How a task awaits an event. */
export interface EventOptions<A> {
  /**
   * The schema of the value, which the sender sends as JSON. Default: any JSON value. It must stay able to read the values that
   * existing tasks have received.
   */
  readonly schema?: StandardSchema<unknown, A> | undefined
  /**
   * Awaits an event for all tasks of a topic (`tasks().sendAll`), such as `order/4711`. The first such wait subscribes the task:
   * from then on it has each event of this name and topic, and those of the day before, up to 100. Default: an event for this
   * task alone (`tasks().send`).
   */
  readonly topic?: string | undefined
  /** How long the task waits, across restarts: as long as it lives by default. */
  readonly timeout?: Duration | undefined
}

/** The reason for which a task runs its compensations. */
export type UndoReason = "failed" | "cancelled"

/** Undoes what the handler has done. */
export type Compensation = (context: TaskContext, reason: UndoReason) => Awaitable<unknown>

/** The argument of the function of a step. */
export interface RunningStep {
  /** The same in each attempt of this step in this task, and different from all others. */
  readonly key: string
  /**
   * Reports that the step makes progress: before its `heartbeatTimeout` ends, and with details such as a position in a list. The
   * next attempt of the step reads the last details, also in another process, and operators see them until the step ends.
   * They are JSON, of up to 8,192 characters, and written at most once in two seconds: a process that dies loses those of its
   * last two seconds. Rejects with a `TaskError`, `InvalidOption`, for details out of bounds, and with the reason of the
   * `signal` when it has aborted.
   *
   * @example
   * await step("import", async ({ heartbeat, lastHeartbeat }) => {
   *   for (let line = Number(await lastHeartbeat() ?? 0); line < lines.length; line++) {
   *     await importLine(lines[line])
   *     await heartbeat(line + 1)
   *   }
   * }, { heartbeatTimeout: "1 minute", retry: { times: 3 } })
   */
  readonly heartbeat: (details?: unknown) => Promise<void>
  /** The last details that this step has reported, in this attempt or an earlier one; `undefined`: there are none. */
  readonly lastHeartbeat: () => Promise<unknown>
  /**
   * Aborts when the process stops and the step has not ended within `shutdownTimeout`, when the task is cancelled, and at the
   * `timeout` and the `heartbeatTimeout` of the step.
   */
  readonly signal: AbortSignal
}

/** Options of a step. */
export interface StepOptions<A> {
  /** Retries after the step has thrown. Without it there are none. `while` receives the thrown error, or the `StepTimeout`. */
  readonly retry?: StepRetry | undefined
  /**
   * How long an attempt may take: without a limit by default. Then its `signal` aborts, and the attempt fails with
   * `StepTimeout`, which is retried like a thrown error. A function that ignores the `signal` goes on beside the next attempt.
   * `Infinity`, and anything that is not more than 0, rejects with a `TaskError`, `InvalidOption`.
   */
  readonly timeout?: Duration | undefined
  /** How long an attempt may go on without a `heartbeat`: without a limit by default. It fails as with `timeout`. */
  readonly heartbeatTimeout?: Duration | undefined
  /**
   * Undoes the step when the task fails or is cancelled. It receives the result of the step as it is stored. It also runs if
   * the step has acted and its result cannot be stored; after a restart it then receives an excerpt of it.
   */
  readonly compensate?:
    | ((value: JsonForm<A>, context: TaskContext, reason: UndoReason) => Awaitable<unknown>)
    | undefined
}

/** How a step is retried. Pauses of more than 5 seconds are durable, and the number of attempts survives a restart. */
export interface StepRetry {
  /** The number of retries: a whole number, or `Infinity`. */
  readonly times: number
  /** The pause before the first retry: 1 second by default. */
  readonly initialDelay?: Duration | undefined
  /** The factor from one pause to the next: 2 by default. */
  readonly factor?: number | undefined
  /** The longest pause: 1 hour by default. */
  readonly maxDelay?: Duration | undefined
  /**
   * Whether an error is retried. Default: each one is. Otherwise the step fails at once. The decision is recorded with the
   * error: later runs do not ask again.
   *
   * @example
   * const payment = await step("charge", charge, { retry: { times: 5, while: (error) => !(error instanceof CardRefused) } })
   */
  readonly while?: ((error: unknown) => boolean) | undefined
}

/** A value in a statement. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array | Date

/** Runs a statement of a transaction, whose values become parameters, and resolves with its rows. */
export type Sql = <Row extends object = { readonly [column: string]: unknown }>(
  text: TemplateStringsArray,
  ...values: ReadonlyArray<SqlValue>
) => Promise<ReadonlyArray<Row>>
