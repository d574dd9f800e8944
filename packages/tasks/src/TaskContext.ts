/**
 * The context of an async handler of a task, its second argument (`Task.async`): the context of any async handler, and
 * steps, sleeps and compensations that return promises.
 *
 * The rules of `Step` apply. In addition:
 *
 * - The handler starts from its beginning after each question, event, long sleep and each change of its process. Its
 *   context ends then: promises that are pending reject, and `signal` aborts, as `HandlerContext` describes. So a `catch`
 *   around a step, a sleep or a question must not act if `signal.aborted`.
 * - Results of steps are stored as JSON, and need no schema. You receive what JSON makes of them, also in the first run: a
 *   `Date` is its text, an instance of a class has its members and no methods, and members that are `undefined` are
 *   absent. A value that JSON cannot hold, such as a `bigint` or a `Map`, is an error of types, and fails the task at run
 *   time. The effect of the step has happened then, so its `compensate` runs too.
 * - A step that throws is recorded with the message of the error. In each
 *   run it rejects with that message: with a `VisibleError` if a client may see it, and otherwise with a `StepError`.
 * - `header` returns `undefined`: a task continues after its request, in other processes too. Pass what it needs of the
 *   request as an argument, or read it from `principal`.
 * - Start parallel steps with `Promise.all`. Await each promise.
 *
 * @example
 * const paying = Task.async(order, async ({ amount }, { sleep, step }) => {
 *   const id = await step("charge", ({ key }) => charge(amount, key), {
 *     retry: { times: 5, initialDelay: "1 second" },
 *     compensate: (id, { step }) => step("refund", ({ key }) => refund(id, key))
 *   })
 *   await sleep("cooling off", "3 days")
 *   return `Paid: ${id}`
 * })
 */
import type { Checked, JsonForm } from "@skein/protocol/JsonForm"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { HandlerContext } from "@skein/server/HandlerContext"
import type * as Tool from "@skein/server/Tool"
import type * as Duration from "effect/Duration"
import type { CurrentTask, EventOptions, UndoReason } from "./CurrentTask.ts"
import type { Child, ForEachOptions, StartOptions, ValueOf } from "./internal/base/child.ts"
import type { Retry } from "./internal/base/retry.ts"

export type { Retry } from "./internal/base/retry.ts"

/** The context of an async handler of a task. `R` are the services of its layer that `run` provides to effects. */
export interface TaskContext<R = never> extends HandlerContext<R | CurrentTask> {
  /** The id of the task. Keep it secret: it may be enough to read the task. */
  readonly taskId: string
  /** Sets the status message of the task, for people and models: see `Task.setStatusMessage`. */
  readonly setStatusMessage: (message: string) => Promise<void>
  /** Sets a label of the task, by which operators find it: see `Task.label`. Rejects with `TaskError` out of bounds. */
  readonly label: (name: string, value: string) => Promise<void>
  /**
   * Adds an item to the output of the task, which clients and the application read while it runs: see `Task.emit`. In the
   * function of a step it is added again if the step runs again; in a transaction it is not allowed. Rejects with a
   * `TaskError`: `InvalidOutput` or `TooMuchOutput`.
   *
   * @example
   * await emit({ chapter: 1, text: await step("chapter 1", () => write(1)) })
   */
  readonly emit: (value: unknown) => Promise<void>
  /**
   * Runs a step, or returns its recorded result: see `Step.run`. The name is unique in the task. Rejects with
   * `VisibleError` or `StepError` if the step throws and no retry is left, and with `StepTimeout` at its `timeout`.
   */
  readonly step: <A>(
    name: string,
    run: ((step: RunningStep) => A | Promise<A>) & Checked<A>,
    options?: StepOptions<A, R>
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
    run: ((sql: Sql, step: RunningStep) => A | Promise<A>) & Checked<A>,
    options?: StepOptions<A, R>
  ) => Promise<JsonForm<NoInfer<A>>>
  /** Sleeps, across restarts: see `Step.sleep`. */
  readonly sleep: (name: string, duration: Duration.Input) => Promise<void>
  /**
   * Waits for an event that the application sends with `AsyncTasks.send` or `sendAll`, and resolves with its value: see
   * `Task.awaitEvent`. Rejects with an `EventError`, whose `reason` is `Timeout` or `InvalidEvent`.
   *
   * @example
   * const { reference } = await awaitEvent("paid", { schema: Payment, timeout: "2 days" })
   */
  readonly awaitEvent: <A = unknown>(name: string, options?: EventOptions<A>) => Promise<A>
  /**
   * Adds a compensation, which runs when the task fails or is cancelled: see `Step.compensate`. It must use the context
   * that it receives, because that of the handler has ended.
   */
  readonly compensate: (undo: Compensation<R>) => Promise<void>
  /**
   * Whether this task runs with a change of the code: `false` in a task that has recorded more behind this point, because
   * it began with the code before: see `Task.patched`.
   *
   * @example
   * if (await patched("audit first")) await step("audit", () => audit(order))
   */
  readonly patched: (name: string) => Promise<boolean>
  /**
   * Runs a function that a cancellation of the task waits for: see `Task.nonCancellable`. Use the context that it receives: steps
   * and sleeps of the outer one are not part of the section.
   *
   * @example
   * await nonCancellable("transfer", async ({ step }) => {
   *   await step("debit", ({ key }) => debit(from, amount, key))
   *   await step("credit", ({ key }) => credit(to, amount, key))
   * })
   */
  readonly nonCancellable: <A>(name: string, run: (context: TaskContext<R>) => A | Promise<A>) => Promise<A>
  /**
   * Starts a branch that can be cancelled alone, with its compensations: see `Task.branch`. Use the context that the
   * function receives.
   *
   * @example
   * const hotel = await branch("hotel", ({ step }) => step("hotel", bookHotel, { compensate: giveHotelBack }))
   * if (await bookFlight() === undefined) await hotel.cancel()
   */
  readonly branch: <A>(name: string, run: (context: TaskContext<R>) => A | Promise<A>) => Promise<Branch<A>>
  /**
   * Lets a function answer the queries with this name, from the variables of the handler: see `Task.query`.
   *
   * @example
   * await query("progress", () => ({ done, of: files.length }))
   */
  readonly query: (name: string, answer: (args: JsonObject) => unknown) => Promise<void>
  /** Starts the handler again with other arguments and an empty log: see `Task.continueWith`. It never resolves. */
  readonly continueWith: (args: JsonObject) => Promise<never>
  /**
   * Starts a child task, once: see `Task.start`. Rejects with a `TaskError`.
   *
   * @example
   * const eu = await start(report, { region: "eu" }, { key: "eu" })
   * const { total } = await join(eu)
   */
  readonly start: <Input, Output>(
    task: Tool.Tool<string, Input, Output>,
    args: NoInfer<Input>,
    options?: StartOptions
  ) => Promise<Child<ValueOf<Output>>>
  /** Waits for the end of a child, and resolves with its value: see `Task.join`. Rejects with a `TaskError`. */
  readonly join: <Value>(child: Child<Value>) => Promise<Value>
  /**
   * Starts a child for each item, and waits for all of them: see `Task.forEach`. With `onFailure: "collect"` the results are
   * those of `Promise.allSettled`.
   *
   * @example
   * const totals = await forEach(report, regions.map((region) => ({ region })), { concurrency: 20 })
   */
  readonly forEach: {
    <Input, Output>(
      task: Tool.Tool<string, Input, Output>,
      items: ReadonlyArray<NoInfer<Input>>,
      options: ForEachOptions & { readonly onFailure: "collect" }
    ): Promise<ReadonlyArray<PromiseSettledResult<ValueOf<Output>>>>
    <Input, Output>(
      task: Tool.Tool<string, Input, Output>,
      items: ReadonlyArray<NoInfer<Input>>,
      options?: ForEachOptions & { readonly onFailure?: "fail" | undefined }
    ): Promise<ReadonlyArray<ValueOf<Output>>>
  }
}

/** A branch of a task. */
export interface Branch<A> {
  /** Its end. Rejects with a `TaskError`, `Cancelled`, when it is cancelled. */
  readonly result: Promise<A>
  /** Cancels it and runs its compensations, and waits for that. Further calls have no effect. */
  readonly cancel: () => Promise<void>
}

/** Undoes what the handler has done. */
export type Compensation<R> = (context: TaskContext<R>, reason: UndoReason) => unknown

/** The argument of the function of a step. */
export interface RunningStep {
  /** The same in each attempt of this step in this task, and different from all others: for receivers that compare keys. */
  readonly key: string
  /**
   * Reports that the step makes progress, with details for its next attempt and for operators: see `Step.heartbeat`. Rejects
   * with a `TaskError`, `InvalidOption`, for details out of bounds, and with the reason of the `signal` when it has aborted.
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
  /** The last details that this step has reported, in this attempt or an earlier one: see `Step.lastHeartbeat`. */
  readonly lastHeartbeat: () => Promise<unknown>
  /**
   * Aborts when the process stops and the step has not ended within `shutdownTimeout`, when the task is cancelled, and at the
   * `timeout` and the `heartbeatTimeout` of the step.
   */
  readonly signal: AbortSignal
}

/** A value in a statement. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array | Date

/** Runs a statement of a transaction, whose values become parameters, and resolves with its rows. */
export type Sql = <Row extends object = { readonly [column: string]: unknown }>(
  text: TemplateStringsArray,
  ...values: ReadonlyArray<SqlValue>
) => Promise<ReadonlyArray<Row>>

/** Options of a step. */
export interface StepOptions<A, R> {
  /**
   * Retries after the step has thrown. Without it there are none. `while` receives the thrown error, or the `StepTimeout`.
   *
   * @example
   * await step("charge", () => charge(order), { retry: { times: 5, while: (error) => !(error instanceof CardRefused) } })
   */
  readonly retry?: Retry | undefined
  /**
   * How long an attempt may take: without a limit by default. Then its `signal` aborts, and the attempt fails with
   * `StepTimeout`, which is retried like a thrown error: see `Step.run`. A function that ignores the `signal` goes on beside
   * the next attempt.
   */
  readonly timeout?: Duration.Input | undefined
  /** How long an attempt may go on without a `heartbeat`: without a limit by default. It fails as with `timeout`. */
  readonly heartbeatTimeout?: Duration.Input | undefined
  /**
   * Undoes the step when the task fails or is cancelled. It receives the result of the step as it is stored. It also runs
   * if the step has acted and its result cannot be stored; then it receives that result, and after a restart an excerpt
   * of it, in which long texts are cut.
   */
  readonly compensate?: ((value: JsonForm<A>, context: TaskContext<R>, reason: UndoReason) => unknown) | undefined
}

/** A step has thrown an error that no client may see, and no retry is left. The message is that of the error. */
export class StepError extends Error {
  override readonly name = "StepError"
  /** The name of the step. */
  readonly step: string

  constructor(step: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.step = step
  }
}
