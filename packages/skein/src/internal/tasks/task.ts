/**
 * Tasks: tools with a durable handler.
 */
import * as Core from "@skein/tasks/Task"
import type { TaskContext as CoreContext } from "@skein/tasks/TaskContext"
import { opaque } from "../base/definition.ts"
import type { JsonObject } from "../base/messages.ts"
import type { Awaitable, Duration, OutputOf, StandardSchema } from "../base/types.ts"
import type { CheckedJson, HandlerContext } from "../server/handlerContext.ts"
import type { Caller } from "../server/request.ts"
import type { AnySchema, ReadBy, WrittenBy } from "../server/schema.ts"
import type { CheckedSchemas, ToolOptions } from "../server/tool.ts"
import type { ToolAnswer } from "../server/toolAnswer.ts"
import type { ToolMistake } from "../server/toolMistake.ts"
import { coreOf, registerTask, type TaskDefinition } from "./taskDefinition.ts"
import type { PreparedTaskContext, StepRetry, TaskContext } from "./taskContext.ts"
import type { TaskOutcome, TaskOwner } from "./taskState.ts"

export type { TaskDefinition } from "./taskDefinition.ts"

/** The structured content of a task with `output`, and the text of the result of another one. */
export type TaskValue<Output> = [Output] extends [never] ? string : WrittenBy<Output>

/** The limits on numbers of tasks. A number that is `undefined` sets no limit. */
export interface TaskCounts {
  /** The number of tasks that have not ended. */
  readonly live?: number | undefined
  /** The number of stored tasks, ended or not. */
  readonly retained?: number | undefined
}

/** A call that becomes a task. */
export interface TaskCall {
  readonly args: JsonObject
  readonly caller: Caller
}

/** How many tasks start within any period. */
export interface TaskRate {
  /** A whole number from 1. */
  readonly limit: number
  readonly period: Duration
}

/** The options for tasks, of a server and of a task. Those of a task take precedence. */
export interface TaskPolicy {
  /**
   * The time to live of a task and its result, from its creation. Then it is cancelled if it has not ended, and deleted.
   * Default 24 hours; `null`: never. A client of 2025-11-25 may request another time, up to `maxTtl`.
   */
  readonly ttl?: Duration | null | undefined
  /** The longest time to live, even if `ttl` or a client requests more. Default 30 days; `null`: no limit. */
  readonly maxTtl?: Duration | null | undefined
  /** The interval at which clients are asked to poll a task. Default one second. */
  readonly pollInterval?: Duration | undefined
  /**
   * Returns the owner of a caller's tasks: all callers with the same owner see them, cancel them and answer their questions.
   * `null`: every caller that has the id. It must be fast, and return the same owner for the same caller at any time. Default:
   * the id of the principal, and `null` without one.
   */
  readonly owner?: ((caller: Caller) => TaskOwner) | undefined
}

/** The options of a task: those of a tool, and those for its tasks. `P` is the value of `prepare`. */
export interface TaskOptions<Input extends AnySchema = {}, Output extends AnySchema = never, P = never>
  extends Omit<ToolOptions<Input, Output>, "execution">, TaskPolicy
{
  /**
   * Whether a call may return a task: if the client can receive one (`optional`, the default), always (`required`: other calls
   * are rejected), or never (`forbidden`: each call waits for the result, and its execution is durable nevertheless).
   */
  readonly taskSupport?: "forbidden" | "optional" | "required" | undefined
  /**
   * Prepares a call before its task starts, while the client is connected: it has the claims of the principal, headers, and
   * questions of the call. The value is stored with the arguments, as JSON, and is `prepared` of the handler's context. If it
   * throws, no task starts. A task with `prepare` cannot be scheduled or started by the application.
   *
   * @example
   * prepare: async (_, { principal }) => ({ account: await accountOf(principal) })
   */
  readonly prepare?: (((input: ReadBy<Input>, context: HandlerContext) => Awaitable<P>) & CheckedJson<P>) | undefined
  /** The pool of workers that run its tasks. A task whose pool has no worker waits. Default `default`. */
  readonly pool?: string | undefined
  /**
   * Waiting tasks with the highest priority start first: a whole number from -1,000,000 to 1,000,000, or a function that returns
   * it and is fast; default 0.
   */
  readonly priority?: number | ((call: TaskCall) => number) | undefined
  /**
   * How many of its tasks run at the same time, in all processes of the store together: a whole number from 1. Others wait. A
   * task that waits for an answer, an event or a sleep of more than 5 seconds does not count. Default: no limit.
   */
  readonly concurrency?: number | undefined
  /**
   * How many of its tasks start within any period, in all processes of the store together. Others wait. Default: no limit.
   *
   * @example
   * rate: { limit: 10, period: "1 minute" }
   */
  readonly rate?: TaskRate | undefined
  /**
   * Whose task it is, for the queue: the tenant of the caller, for instance. The keys of a tool take turns, so that a key with
   * a thousand tasks does not delay the others; `priority` decides among the tasks of a key. Up to 512 characters; it must be
   * fast. Default: no turns.
   *
   * @example
   * queueKey: ({ caller }) => caller.principal?.id ?? ""
   */
  readonly queueKey?: ((call: TaskCall) => string) | undefined
  /** The limits on tasks with the same `queueKey`, beside `concurrency` and `rate` for all. Default: none. */
  readonly perKey?: { readonly concurrency?: number | undefined; readonly rate?: TaskRate | undefined } | undefined
  /**
   * Lets a task be the only one of its key that has not ended: `key` is up to 512 characters, must be fast, and is by default the
   * same for all. `onConflict` is the consequence for a call meanwhile: it is rejected with `-32603` (`fail`, the default), gets
   * that task if it is the caller's own (`useExisting`), or cancels it (`cancelExisting`). Default: any number of tasks.
   */
  readonly singleton?: {
    readonly key?: ((call: TaskCall) => string) | undefined
    readonly onConflict?: "fail" | "useExisting" | "cancelExisting" | undefined
  } | undefined
  /**
   * Lets a task begin when no further call of its owner and `key` has come for a `period`, or `timeout` after the first one.
   * Until then each call gets the same task, whose arguments are those of the last call, or what `merge` makes of both. Default: a
   * task begins at once.
   *
   * @example
   * debounce: { period: "10 seconds", timeout: "1 minute" }
   */
  readonly debounce?: {
    readonly key?: ((call: TaskCall) => string) | undefined
    readonly period: Duration
    readonly timeout?: Duration | undefined
    readonly merge?: ((stored: JsonObject, next: JsonObject) => JsonObject) | undefined
  } | undefined
  /**
   * How often a task that has failed begins again, from its beginning, after it has compensated: not after a person has declined.
   * It begins with an empty log, and its status message has the failure. Default: none.
   *
   * @example
   * retry: { times: 3, initialDelay: "1 minute" }
   */
  readonly retry?:
    | Omit<StepRetry, "while"> & { readonly while?: ((outcome: TaskOutcome) => boolean) | undefined }
    | undefined
  /**
   * Which workers continue a task after a deployment of changed code. `autoUpgrade` (default): any, with their own code.
   * `pinned`: those of the `deployment` of `postgresTasks` that began it, which must run until its tasks have ended, or until an
   * operator moves them to another pool (`skein tasks move`).
   */
  readonly versioning?: "autoUpgrade" | "pinned" | undefined
  /** The limits on its tasks, in place of `limits.perTool` of `tasks`. At a limit a call is rejected with `-32603`. */
  readonly limits?: TaskCounts | undefined
  /**
   * Decides whether a call becomes a task, since 2026-07-28 and for clients that can receive one. Default: always. With `false`
   * the call waits for its result. It must be fast.
   */
  readonly asTask?: ((call: TaskCall) => boolean) | undefined
  /**
   * The labels of a task, by which operators find it: at most ten, see `TaskContext.label`. It must be fast. Default: none.
   */
  readonly labels?: ((call: TaskCall) => { readonly [name: string]: string }) | undefined
  /**
   * The clients that a task may ask: `caller` (default), the one that made the call; or `anyone` that reads the task and
   * declares support, for which its questions wait.
   */
  readonly inputFrom?: "caller" | "anyone" | undefined
}

/** The arguments of a task, as a client sends them. */
type ArgumentsOf<Input> = Input extends StandardSchema ? OutputOf<Input> : {}

/** The handler of a task. */
export type TaskHandler<Input extends AnySchema, Output extends AnySchema, P, A> = (
  input: ReadBy<Input>,
  context: [P] extends [never] ? TaskContext : PreparedTaskContext<P>
) =>
  | ToolAnswer<NoInfer<WrittenBy<Output>>>
  | Promise<ToolAnswer<NoInfer<WrittenBy<Output>>>>
  | (ToolMistake<A, WrittenBy<Output>> & A)

/**
 * Makes a task: a tool whose handler survives the end of its process. Pass it to `tasks(store, […])`; a server without
 * `tasks` does not start with it.
 *
 * - Its value is the result of the call. A `VisibleError` becomes a result with `isError`, and an `McpError` a JSON-RPC error.
 * - When it is cancelled, by its client or at the end of its `ttl`, its compensations run. When its process stops, the handler
 *   starts again where another process, or the next one, continues it.
 *
 * @example
 * const buy = task("buy", { input: z.object({ tea: z.string() }), ttl: "3 days" }, async ({ tea }, { sleep, step }) => {
 *   const payment = await step("charge", ({ key }) => charge(tea, key), {
 *     compensate: (payment, { step }) => step("refund", ({ key }) => refund(payment, key))
 *   })
 *   await sleep("cooling off", "1 hour")
 *   return await step("ship", ({ key }) => ship(tea, payment, key))
 * })
 */
export const task = <Input extends AnySchema = {}, Output extends AnySchema = never, P = never, A = never>(
  name: string,
  options: TaskOptions<Input, Output, P> & CheckedSchemas<Input, Output>,
  handler: TaskHandler<Input, Output, P, A>
): TaskDefinition<ArgumentsOf<Input>, TaskValue<Output>> => {
  if (typeof name !== "string" || typeof handler !== "function") throw new TypeError(usage)
  const { prepare, ...described } = options as TaskOptions
  const made = Core.make(name, described as {})
  const body = handler as unknown as (input: object, context: unknown) => string
  const run = (input: object, context: CoreContext) => body(input, withChildren(context))
  const definition: TaskDefinition<ArgumentsOf<Input>, TaskValue<Output>> = opaque(
    prepare === undefined
      ? Core.async(made, run)
      : Core.asyncPrepared(
        made,
        prepare as () => unknown,
        (input, prepared, context) => body(input, { ...withChildren(context), prepared })
      ),
    { name }
  )
  registerTask(definition, made)
  return definition
}

/** The context of a handler, whose children are tasks of this package. */
const withChildren = (context: CoreContext) => ({
  ...context,
  start: (task: TaskDefinition, args: object, options?: object) => context.start(coreOf(task), args as never, options),
  forEach: (task: TaskDefinition, items: ReadonlyArray<object>, options?: object) =>
    context.forEach(coreOf(task), items as never, options)
})

const usage = "A task needs a name, options and a handler: task(\"name\", { input }, async ({ … }, { step }) => …)"
