/**
 * The service that stores and runs tasks. Its layers are `MemoryTasks`, `SqliteTasks` and `PostgresTasks`. An
 * application uses it to read and cancel tasks, to answer their questions and to send them events, without regard to their
 * owners.
 *
 * @example
 * const cancelOldest = Effect.gen(function*() {
 *   const engine = yield* TaskEngine.TaskEngine
 *   const [task] = yield* engine.list(["team:acme"], { limit: 1 })
 *   if (task !== undefined) yield* engine.cancel(task.id, "Cancelled by an operator")
 * })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { CurrentTask } from "./CurrentTask.ts"
import type { ResolvedRetry } from "./internal/base/retry.ts"
import type { TaskError } from "./TaskError.ts"
import type {
  AddressedQuestion,
  ListPosition,
  NewTask,
  Outcome,
  OutputItem,
  OutputOptions,
  OutputPage,
  Owner,
  Pace,
  State
} from "./TaskState.ts"

/** Options of every engine, for each of the stores. A layer fails with `InvalidOption` for a value out of bounds. */
export interface Options {
  /**
   * How often the engine reads its store for events that no notification reports, such as the end of a durable sleep:
   * 500 milliseconds by default. Raise it where the database is far away or shared, and tasks may start later.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * How long an expired task may take to run its compensations: 1 hour by default. Then the engine deletes it with a
   * log line, even if it has not compensated: for instance because its pool has no workers, or no worker has its tool. A
   * task that needs attention (`TaskAdmin`) is kept.
   * Raise it for compensations that wait for people or for other systems.
   */
  readonly undoTimeout?: Duration.Input | undefined
  /**
   * How many tasks a process runs at the same time: 1,000 by default, at least 1. Others wait in the queue, for this process or
   * another. A task that waits for an answer, an event or a sleep of more than 5 seconds does not count.
   */
  readonly concurrency?: number | undefined
  /**
   * After how many lost workers a task is given up, without a step of it that ends in between: 5 by default. A worker is
   * lost if its process is killed or crashes, or if it does not renew its lease (`PostgresTasks`). A task that is given up
   * starts no further step, its compensations run, and it fails. So a task that ends its process does not end one process
   * after the other. From the second loss on, the task waits before it starts again, for a second, and then twice as long
   * each time, up to a minute. From the third loss on, a worker runs it beside no other task that was lost. If as many
   * workers again are lost during the compensations, the task fails without the rest of them, and the log reports it.
   * Raise it for steps that take longer than your processes usually run.
   */
  readonly maxAttempts?: number | undefined
  /**
   * Whether a worker compares its code with unsettled tasks when handlers are added: true by default. See
   * `TaskAdmin.check`. It reads 1,000 tasks, replays 20 of each tool, and logs a warning for each tool and kind of
   * difference. Set `false` if a check before each deployment does it (`skein tasks check`).
   */
  readonly checkCode?: boolean | undefined
  /**
   * How long a worker that stops waits for running steps before it interrupts them: 2 seconds by default. A step that
   * has not ended by then runs again, elsewhere or later. Raise it for longer steps, up to the time that the platform
   * gives a process to stop.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
  /**
   * The name and version of the program, such as `shop 1.4.2`, which operators see beside the tasks that it runs: up to 512
   * characters. Default: none.
   */
  readonly application?: string | undefined
}

/** The request of a handler. Requests for input through it become questions of the task. */
export interface TaskRequest extends RequestContext {
  readonly task: CurrentTask["Service"]
}

/**
 * Returns the handler for the name of a tool; `undefined` for an unknown tool, whose tasks then wait with a status
 * message. A `durable` handler consists of steps, and the code between them may run again. Any other handler is one
 * step.
 */
export type Handlers = (tool: string) =>
  | {
    readonly durable: boolean
    /** How often a durable handler whose task has failed runs again, from its beginning: see `Task.Options.retry`. */
    readonly retry?: ResolvedRetry<Outcome> | undefined
    /** Whether a task stays with the deployment that began it: see `Task.Options.versioning`. */
    readonly pinned?: boolean | undefined
    readonly run: (request: TaskRequest) => Effect.Effect<Outcome>
  }
  | undefined

/** The service that stores and runs tasks. */
export class TaskEngine extends Context.Service<TaskEngine, {
  /**
   * Creates a task. When this succeeds the task is durable: it can be read, and it runs even if this process ends.
   * Fails with `LimitExceeded` at a limit of `NewTask.limits`. With a `NewTask.key` that a task of the same owner and tool
   * has, it returns that task and creates none.
   */
  readonly submit: (task: NewTask) => Effect.Effect<State, TaskError>
  /**
   * The state of a task; `undefined` for an unknown id, and for a task that was deleted or has expired by the clock.
   */
  readonly get: (id: string) => Effect.Effect<State | undefined, TaskError>
  /** The tasks of these owners, newest first, without questions and outcomes. */
  readonly list: (
    owners: ReadonlyArray<Owner>,
    options: { readonly after?: ListPosition | undefined; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<State>, TaskError>
  /**
   * Cancels a task: first its stored status, then its run, which is interrupted and compensates. Returns `false` if the
   * task has already ended or does not exist.
   */
  readonly cancel: (id: string, statusMessage?: string) => Effect.Effect<boolean, TaskError>
  /** Answers an open question. The first answer counts. Returns `false` for a question that is not open. */
  readonly answer: (id: string, key: string, answer: JsonObject) => Effect.Effect<boolean, TaskError>
  /**
   * The open questions that name one of these persons and groups (`to` of an elicitation), those of the oldest tasks first:
   * 100 by default, at most 1,000.
   *
   * @example
   * const mine = engine.questionsFor(["ada", "finance"])
   */
  readonly questionsFor: (
    addresses: ReadonlyArray<string>,
    options?: { readonly limit?: number | undefined }
  ) => Effect.Effect<ReadonlyArray<AddressedQuestion>, TaskError>
  /**
   * Sends an event to a task, which receives it with `Task.awaitEvent`: for webhooks, other services and other tasks. It is
   * stored when this succeeds, also before the task waits for it. No client can send one.
   *
   * - `value` is JSON, up to 262,144 bytes. A task has at most 1,000 events that it has not received.
   * - `key`: an idempotency key. Returns `false`, and sends nothing, if an event with this key was sent to the task before.
   *   The store has it as long as the task.
   *
   * Fails with `UnknownTask`, `AlreadyEnded`, `InvalidEvent` or `TooManyEvents`.
   *
   * @example
   * const paid = engine.send(order.task, "paid", { reference: "4711" }, { key: webhook.id })
   */
  readonly send: (
    id: string,
    name: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Effect.Effect<boolean, TaskError>
  /**
   * Sends an event to all tasks that await it with this `topic` (`Task.awaitEvent`), in one transaction, and to those that do
   * so within a day: the last 100 of a topic and a name are stored for them. Returns the number of tasks that have it now. Use
   * it where the sender knows an order, for example, and no task ids.
   *
   * Bounds, `key` and failures are those of `send`. A task with 1,000 events that it has not received fails it for all.
   *
   * @example
   * const paid = engine.sendAll("paid", "order/4711", { receipt: "R1" }, { key: webhook.id })
   */
  readonly sendAll: (
    name: string,
    topic: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Effect.Effect<number, TaskError>
  /**
   * Asks the body of a task, which answers with a function of its own (`Task.query`), and changes nothing. Resolves with the JSON of
   * the answer. The body sees its state of now if the task runs in this process. Otherwise its log is replayed here, which
   * takes a tenth of a second, to the place that is recorded: also while it waits, and after it has ended.
   *
   * Fails with `UnknownTask`; with `UnknownTool` in a process without the code of the task; with `QueryError` if the body has
   * no such query at its place, or if the query has failed; and with `InvalidOption` for arguments that are not an object.
   *
   * @example
   * const loaded = engine.query(id, "progress", { region: "eu" })
   */
  readonly query: (id: string, name: string, args?: JsonObject) => Effect.Effect<unknown, TaskError>
  /**
   * Lets a task that has ended expire ten seconds from now instead of at the end of its time to live. It is deleted
   * after its compensations, and counts as retained until then. Does nothing for a task that has not ended.
   */
  readonly expireSoon: (id: string) => Effect.Effect<void, TaskError>
  /**
   * The current state of a task, and its later states; of several quick changes, only the last state. It ends after a
   * final state, or when the task is deleted.
   */
  readonly watch: (id: string) => Stream.Stream<State, TaskError>
  /**
   * A page of the items that a task has emitted (`Task.emit`); `undefined` for an unknown id, and for a task that has expired.
   * Fails with `InvalidOption` for an offset that is not a whole number from 0.
   *
   * @example
   * const page = engine.readOutput(id, { from: 12 })
   */
  readonly readOutput: (id: string, options?: OutputOptions) => Effect.Effect<OutputPage | undefined, TaskError>
  /**
   * The items that a task has emitted, and those that it emits later, in this process or another one. It ends with the task, and
   * when that is deleted. A reader that was cut off goes on from the offset behind its last item. Fails as `readOutput` does.
   *
   * @example
   * const shown = Stream.runForEach(engine.followOutput(id), ({ value }) => Effect.sync(() => show(value)))
   */
  readonly followOutput: (id: string, options?: OutputOptions) => Stream.Stream<OutputItem, TaskError>
  /**
   * Sets how fast tasks of tools may run, by the name of the tool, in all processes of the store and until the next call;
   * `undefined`: without a limit. Fails with `InvalidOption` for a number out of bounds. `Tasks.layer` calls it with the
   * options of its tools.
   */
  readonly pace: (paces: ReadonlyMap<string, Pace | undefined>) => Effect.Effect<void, TaskError>
  /**
   * Runs tasks with these handlers until the scope closes. Then the runs are interrupted without compensations, and
   * continue elsewhere or later. On an engine that runs no tasks (`PostgresTasks.Options.runTasks`), only
   * `TaskAdmin.check` uses them.
   *
   * `tools`: the names of the tools with the pools of their tasks, for `TaskTelemetry`: their counters are 0 from the start.
   */
  readonly runTasks: (
    handlers: Handlers,
    options?: { readonly tools?: ReadonlyArray<Pick<NewTask, "tool" | "pool">> | undefined }
  ) => Effect.Effect<void, never, Scope.Scope>
}>()("@skein/tasks/TaskEngine") {}
