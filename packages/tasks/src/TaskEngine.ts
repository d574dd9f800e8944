/**
 * Where tasks are kept and run: the service behind `Tasks`, with a layer for each store (`MemoryTasks`, `SqliteTasks`,
 * `PostgresTasks`). A host can look at tasks with it, cancel them and answer their questions, past all owners.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { CurrentTask } from "./CurrentTask.ts"
import type { TaskError } from "./TaskError.ts"
import type { NewTask, Outcome, Owner, Position, State } from "./TaskState.ts"

/** The request that a handler runs on. It is the task's own: what is asked through it is asked through the task. */
export interface TaskRequest extends RequestContext {
  readonly task: CurrentTask["Service"]
}

/**
 * What runs calls. Given the name of a tool, it gives what runs it; `undefined` where it has no such tool: the task waits, with a
 * message. `durable`: the handler is made of steps, and what stands between them may run again; otherwise it is one step.
 */
export type Handlers = (tool: string) =>
  | {
    readonly durable: boolean
    readonly run: (request: TaskRequest) => Effect.Effect<Outcome>
  }
  | undefined

/** See the module's text. */
export class TaskEngine extends Context.Service<TaskEngine, {
  /** Begins a task. It is durable when this succeeds: whoever looks finds it, and it runs whatever happens to this process. */
  readonly submit: (task: NewTask) => Effect.Effect<State, TaskError>
  /** A task; `undefined` for one that never was, is forgotten, or has expired by the clock, swept or not. */
  readonly get: (id: string) => Effect.Effect<State | undefined, TaskError>
  /** The tasks of these owners, newest first, without questions and outcome. */
  readonly list: (
    owners: ReadonlyArray<Owner>,
    options: { readonly after?: Position | undefined; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<State>, TaskError>
  /**
   * Cancels a task: its row at once, then what runs, which is interrupted and compensates. `false` where it was over, or is not
   * there.
   */
  readonly cancel: (id: string, message?: string) => Effect.Effect<boolean, TaskError>
  /** Answers an open question. The first answer wins; `false` for any other, and for what nobody asked. */
  readonly answer: (id: string, key: string, answer: JsonObject) => Effect.Effect<boolean, TaskError>
  /**
   * Forgets a task that is over, ten seconds from now instead of at the end of its `ttl`, and once it has undone what it has to. It
   * counts as retained until then. Does nothing to one that is not over.
   */
  readonly forget: (id: string) => Effect.Effect<void, TaskError>
  /** The task now, and after changes, the last one of those that came quickly; it ends after a final one, or when it is gone. */
  readonly watch: (id: string) => Stream.Stream<State, TaskError>
  /**
   * Runs tasks with these handlers, as long as the scope is open. On an engine that does no work it does nothing. When the scope
   * closes, what runs is interrupted, compensates nothing, and goes on elsewhere or later.
   */
  readonly work: (handlers: Handlers) => Effect.Effect<void, never, Scope.Scope>
}>()("@skein/tasks/TaskEngine") {}
