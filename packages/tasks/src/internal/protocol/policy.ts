/**
 * The policies for tasks: the options of a server and of its tools, with their defaults.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Caller } from "@skein/runtime/RequestContext"
import type { ToolEntry } from "@skein/server/Catalog"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import { toLimitMillis } from "../base/bounds.ts"
import { type ResolvedRetry, resolveRetry, type Retry } from "../base/retry.ts"
import { invalidOption } from "../store/database.ts"
import type { CountLimits, Labels, NewTask, Outcome, Owner, Pace, PaceLimits, State } from "../../TaskState.ts"

/**
 * Returns the owner of a caller's tasks, as a text. All callers with the same owner see the task, cancel it and answer
 * its questions. `null`: every caller that has the task id. It must be fast, and return the same owner for the same
 * caller at any time, in any process.
 *
 * Two policies of one server must not use the same text for different owners (use `team:acme`, not `acme`): tasks are
 * counted and listed by that text. The policy of `Tasks.layer` decides about the tasks of tools that no longer exist.
 */
export type OwnerPolicy = (caller: Caller) => Owner

/** The options for tasks, of a server and of a tool. The options of a tool take precedence. */
export interface TaskPolicyOptions {
  /**
   * The time to live of a task and its result, from the creation of the task and not from its end. Then the task is
   * cancelled if it has not ended, and deleted. Default 24 hours; `null`: never. A client of 2025-11-25 may request
   * another time, up to `maxTtl`.
   */
  readonly ttl?: Duration.Input | null | undefined
  /**
   * The longest time to live, even if `ttl` or a client requests more. Default 30 days; `null`: no limit. Raise it for
   * tasks that wait longer for people.
   */
  readonly maxTtl?: Duration.Input | null | undefined
  /**
   * The interval at which clients are asked to poll a task. Clients that poll more often are not rejected. Default one
   * second. Raise it for tasks that take hours.
   */
  readonly pollInterval?: Duration.Input | undefined
  /** The owner of tasks. Default: the id of the caller's principal, and `null` for a caller without one. */
  readonly owner?: OwnerPolicy | undefined
}

/** A rate of tasks. */
export interface RateOptions {
  /** The number of tasks that start within a period, at most: a whole number from 1. */
  readonly limit: number
  readonly period: Duration.Input
}

/** The call that a task is created for. */
export interface TaskCall {
  /** The arguments as the client sends them. */
  readonly args: JsonObject
  readonly caller: Caller
}

/** The limits on tasks with the same queue key. */
export interface KeyLimits {
  /** How many of them run at the same time: a whole number from 1. Default: no limit of their own. */
  readonly concurrency?: number | undefined
  /** How many of them start within any period. Default: no limit of their own. */
  readonly rate?: RateOptions | undefined
}

/** A task that is the only one that has not ended. */
export interface SingletonOptions {
  /** The tasks among which it is the only one, up to 512 characters. It must be fast. Default: those of its tool. */
  readonly key?: ((call: TaskCall) => string) | undefined
  /**
   * The consequence for a call while another task with its key has not ended.
   *
   * - `fail`, the default: the call is rejected with `-32603`, and `Task.submit` fails with `NotStarted`.
   * - `useExisting`: the call gets that task, if it is the caller's own; otherwise it is rejected. Callers without an owner
   *   share no task over HTTP. A child (`Task.start`) fails.
   * - `cancelExisting`: that task is cancelled, also that of another owner. Its compensations may run beside the new task.
   */
  readonly onConflict?: "fail" | "useExisting" | "cancelExisting" | undefined
}

/** A task that begins when no further call has come for a while. */
export interface DebounceOptions {
  /** The calls that share a task, beside their owner: up to about 500 characters. It must be fast. Default: all of the tool. */
  readonly key?: ((call: TaskCall) => string) | undefined
  /** The time from the last call until the task begins. */
  readonly period: Duration.Input
  /** The time from the first call until the task begins, however many follow. Default: no limit. */
  readonly timeout?: Duration.Input | undefined
  /**
   * The arguments of the task after a further call, from those that it has and those of the call: for instance to collect
   * them to a batch. It must be fast, and return arguments that match `input`. Default: those of the call.
   */
  readonly merge?: ((stored: JsonObject, next: JsonObject) => JsonObject) | undefined
}

/** The options for the tasks of a tool. */
export interface ToolPolicyOptions extends TaskPolicyOptions {
  /**
   * The pool of workers that run its tasks (`PostgresTasks.Options.pools`). A task whose pool has no worker waits for
   * one. Default `default`.
   */
  readonly pool?: string | undefined
  /**
   * Of the tasks that wait for a worker of their pool, those with the highest priority start first, and of these the one
   * that has waited longest. A whole number from -1,000,000 to 1,000,000, or a function that returns it and is fast; default 0.
   * A task that waits for an answer, an event or sleeps continues in the same order. Tasks that run are not interrupted.
   */
  readonly priority?: number | ((call: TaskCall) => number) | undefined
  /**
   * How many tasks of this tool run at the same time, in all processes of the store together: a whole number from 1.
   * Others wait in the queue. A task that waits for an answer, an event or a sleep of more than 5 seconds does not count. Default:
   * no limit other than those of the workers. When programs with different numbers run, that of the one which has
   * started last holds.
   */
  readonly concurrency?: number | undefined
  /**
   * How many tasks of this tool start within any period, in all processes of the store together: for instance
   * `{ limit: 10, period: "1 minute" }` for a service with such a limit. Others wait in the queue. Only the start of a task
   * counts: not what it does after a sleep, an answer, or the end of its worker. Default: no limit.
   */
  readonly rate?: RateOptions | undefined
  /**
   * Whose task it is, for the queue: for instance the tenant of the caller. The keys of a tool take turns: one task of each
   * starts after the other, so that a key with a thousand tasks does not delay the others. `priority` decides among the tasks
   * of a key. Up to 512 characters, readable in the store also if tasks are encrypted; it must be fast. Default: no turns.
   *
   * @example
   * const report = Task.make("report", { queueKey: ({ caller }) => tenantOf(caller), perKey: { concurrency: 2 } })
   */
  readonly queueKey?: ((call: TaskCall) => string) | undefined
  /** The limits on tasks with the same `queueKey`, beside `concurrency` and `rate` for all of the tool. Default: none. */
  readonly perKey?: KeyLimits | undefined
  /** Whether a task is the only one that has not ended. Default: any number of tasks. */
  readonly singleton?: SingletonOptions | undefined
  /**
   * Lets a task begin when no further call has come for a while. Each call of an owner gets the same task until it begins.
   * Callers without an owner share no task over HTTP. Default: a task begins at once.
   *
   * @example
   * const index = Task.make("index", { input: { page: Schema.String }, debounce: { period: "10 seconds", timeout: "1 minute" } })
   */
  readonly debounce?: DebounceOptions | undefined
  /**
   * How often a task that has failed begins again, from its beginning: after a result with `isError`, a JSON-RPC error or a
   * defect, and not after a person has declined. It compensates, and then begins with an empty log and new keys of its steps; its
   * status message has the failure, and its output stays. It applies to tasks with steps (`Task.layer`); the pauses are those of a
   * step. Default: none. `skein tasks list --failed` lists the tasks that have used up their attempts.
   *
   * @example
   * const sync = Task.make("sync", { retry: { times: 3, initialDelay: "1 minute" } })
   */
  readonly retry?: Retry<Outcome> | undefined
  /**
   * Which workers continue a task after a deployment of changed code. `autoUpgrade`, the default: any, with their own code.
   * `pinned`: those of the `deployment` that began it (`PostgresTasks.Options`), which must run until its tasks have ended, or
   * until an operator moves them to another pool (`skein tasks move`). It has no effect in memory and with `SqliteTasks`,
   * where all processes run one program.
   */
  readonly versioning?: "autoUpgrade" | "pinned" | undefined
  /**
   * The limits on tasks of this tool, in place of `Tasks.Options.limits.perTool`. At a limit a call is rejected with
   * `-32603`, and no task is created.
   */
  readonly limits?: CountLimits | undefined
  /**
   * Decides whether a call becomes a task, since 2026-07-28 and for clients that declare the extension. Default:
   * always. With `false` the call waits for its result. It must be fast. It is not called for a tool that requires
   * tasks.
   */
  readonly asTask?: ((call: TaskCall) => boolean) | undefined
  /**
   * The labels of a task, by which operators find it, from the arguments as the client sends them: see `Task.label`. At most
   * ten; others are an error of the call. It must be fast. Default: none.
   */
  readonly labels?: ((call: TaskCall) => Labels) | undefined
  /**
   * The clients that a task may ask for input. `caller`, the default: only the client that made the call; a question
   * that it has not declared support for fails immediately with `MissingCapability`, as in an ordinary call. `anyone`:
   * such a question waits, while the task exists, for a client that reads the task and declares support. In either case
   * only clients that declare support receive a question. A call that waits for its task asks its own client only.
   */
  readonly inputFrom?: "caller" | "anyone" | undefined
}

/** The annotation of a tool with its policy options (`Tool.Options.metadata`). */
export class TaskPolicyAnnotation
  extends Context.Service<TaskPolicyAnnotation, ToolPolicyOptions>()("@skein/tasks/TaskPolicy")
{}

/** The annotation of a tool whose handler is durable: it consists of steps. */
export class Durable extends Context.Service<Durable, true>()("@skein/tasks/Durable") {}

/** The annotation of a tool whose calls are prepared before their task starts. */
export class Prepares extends Context.Service<Prepares, true>()("@skein/tasks/Prepares") {}

/** The limits on tasks of a server. */
export interface LimitOptions {
  /** Of all tasks. Default: 10,000 that have not ended, and 100,000 stored ones. */
  readonly all?: CountLimits | undefined
  /**
   * Of the tasks of one owner. Default: 100 and 1,000. The tasks of a caller without an owner (`null`) are counted by the
   * network of its address, or by its session; those of a caller without either count in the other limits only.
   */
  readonly perClient?: CountLimits | undefined
  /** Of the tasks of one tool without limits of its own. Default: 1,000 and 10,000. */
  readonly perTool?: CountLimits | undefined
}

/** The tasks of a server. */
export interface TasksOptions extends TaskPolicyOptions {
  /** The numbers of tasks. At a limit a call is rejected with `-32603`, and no task is created. */
  readonly limits?: LimitOptions | undefined
  /**
   * Which clients of 2025-11-25 may list tasks (`tasks/list`).
   *
   * - `identified`, the default: callers with an owner, by their principal for instance. They list their own tasks.
   * - `always`: callers without an owner too. **They list the tasks of all callers without an owner**: for a server
   *   with one user, on stdio.
   * - `never`: no client.
   */
  readonly list?: "identified" | "always" | "never" | undefined
  /**
   * The names by which questions of tasks are addressed to a caller (`to` of an elicitation): its groups, for instance. Default:
   * the id of its principal. It must be fast. A caller sees and answers such a question only with one of its names, also in a
   * task of its own.
   *
   * @example
   * Tasks.layer({ addresses: ({ principal }) => principal === undefined ? [] : [principal.id, ...groupsOf(principal)] })
   */
  readonly addresses?: ((caller: Caller) => ReadonlyArray<string>) | undefined
  /** How many tasks a page of a listing holds: 100 by default. */
  readonly pageSize?: number | undefined
  /**
   * The text that a model receives in place of the result while a task runs, in 2025-11-25
   * (`io.modelcontextprotocol/model-immediate-response` of "Creating Tasks"). Without it the host chooses the text.
   */
  readonly immediateResponse?: ((state: State) => string | undefined) | undefined
}

/** The options of `Tasks.layer` with their defaults. */
export interface TaskSettings extends ReturnType<typeof resolveSettings> {}

/** The policy for the tasks of one tool. */
export type TaskPolicy = NonNullable<ReturnType<typeof policyOf>>

const day = 24 * 60 * 60 * 1000

/** Whole milliseconds; `null` for an infinite duration. */
const toMillis = (input: Duration.Input | null): number | null => {
  const value = input === null ? Infinity : Duration.toMillis(input)
  return Number.isFinite(value) ? Math.max(0, Math.floor(value)) : null
}

const withDefaults = (given: CountLimits | undefined, live: number, retained: number): CountLimits => ({
  live,
  retained,
  ...given
})

/** The default owner policy. */
const ownerByPrincipal: OwnerPolicy = ({ principal }) => principal?.id ?? null

/** The default addresses. */
const ownAddress = ({ principal }: Caller): ReadonlyArray<string> => principal === undefined ? [] : [principal.id]

/** The options of `Tasks.layer` with their defaults. Times are in milliseconds. */
export const resolveSettings = (options: TasksOptions) => {
  const { limits = {}, owner = ownerByPrincipal, pollInterval = 1000 } = options
  const maxTtl = options.maxTtl === undefined ? 30 * day : toMillis(options.maxTtl)
  return {
    ttlMs: capTtl(options.ttl === undefined ? day : toMillis(options.ttl), maxTtl),
    maxTtlMs: maxTtl,
    pollIntervalMs: Math.floor(Duration.toMillis(pollInterval)),
    owner,
    limits: {
      all: withDefaults(limits.all, 10_000, 100_000),
      client: withDefaults(limits.perClient, 100, 1000),
      tool: withDefaults(limits.perTool, 1000, 10_000)
    },
    addresses: options.addresses ?? ownAddress,
    list: options.list ?? "identified",
    // A page reads one task more, and PostgreSQL takes a 32-bit number.
    pageSize: Math.min(Math.max(1, Math.floor(options.pageSize ?? 100)), 2 ** 31 - 2),
    immediateResponse: options.immediateResponse
  }
}

/** Bounds a time to live by `maxTtl`. */
export const capTtl = (ttl: number | null, maxTtl: number | null): number | null =>
  maxTtl === null ? ttl : Math.min(ttl ?? Infinity, maxTtl)

/** The part of a tool that decides about its tasks. */
export interface PolicyTool extends Pick<ToolEntry, "metadata"> {
  readonly definition: Partial<Pick<ToolEntry["definition"], "execution" | "name">>
}

const annotationOf = <I, S>({ metadata }: PolicyTool, key: Context.Key<I, S>): S | undefined =>
  metadata === undefined ? undefined : Context.getOrUndefined(metadata as Context.Context<I>, key)

const limitsOf = ({ concurrency, rate }: KeyLimits): PaceLimits => ({
  concurrency,
  rate: rate === undefined ? undefined : { limit: rate.limit, periodMs: Math.ceil(Duration.toMillis(rate.period)) }
})

/** The limits of a tool for all workers; `undefined` if it has none. */
const paceOf = ({ concurrency, perKey, queueKey, rate }: ToolPolicyOptions): Pace | undefined => {
  const ofKeys = queueKey === undefined ? perKey : perKey ?? {}
  return concurrency === undefined && rate === undefined && ofKeys === undefined
    ? undefined
    : { ...limitsOf({ concurrency, rate }), perKey: ofKeys && limitsOf(ofKeys) }
}

/** The part of a new task that the options of its tool compute from the call. */
export type Computed = Pick<NewTask, "priority" | "queueKey" | "labels" | "singleton" | "debounce">

/** The milliseconds of an option. It throws for another value, so that the server does not start. */
const millisOf = (tool: string | undefined, option: string, input: Duration.Input): number =>
  Result.getOrThrowWith(
    toLimitMillis(input),
    (problem) => invalidOption(`${option} of ${tool} ${problem}`)
  )

/** The retries of a task. It throws for a value out of bounds, so that the server does not start. */
const retryOf = (tool: string | undefined, retry: Retry<Outcome>): ResolvedRetry<Outcome> => {
  const resolved = resolveRetry(retry)
  if (typeof resolved !== "string") return resolved
  throw invalidOption(`retry of ${tool}: ${resolved}`)
}

const computedOf = (
  { debounce, labels, priority, queueKey, singleton }: ToolPolicyOptions,
  tool: string | undefined
): (call: TaskCall) => Computed => {
  const debounced = debounce && {
    periodMs: millisOf(tool, "debounce.period", debounce.period),
    timeoutMs: debounce.timeout === undefined ? undefined : millisOf(tool, "debounce.timeout", debounce.timeout),
    merge: debounce.merge
  }
  return (call) => ({
    priority: typeof priority === "function" ? priority(call) : priority,
    queueKey: queueKey?.(call),
    labels: labels?.(call),
    singleton: singleton && { key: singleton.key?.(call) ?? "", onConflict: singleton.onConflict ?? "fail" },
    debounce: debounced && { key: debounce?.key?.(call) ?? "", ...debounced }
  })
}

/** The policy for the tasks of a tool; `undefined` for a tool whose calls do not become tasks. */
export const policyOf = (tool: PolicyTool, settings: TaskSettings) => {
  const durable = annotationOf(tool, Durable) === true
  const support = tool.definition.execution?.taskSupport ?? "forbidden"
  if (!durable && support === "forbidden") return undefined
  const options = annotationOf(tool, TaskPolicyAnnotation) ?? {}
  const maxTtl = options.maxTtl === undefined ? settings.maxTtlMs : capTtl(toMillis(options.maxTtl), settings.maxTtlMs)
  return {
    /** With `forbidden`, clients never see a task of the tool. */
    support,
    durable,
    /** Whether calls are prepared before their task starts. */
    prepares: annotationOf(tool, Prepares) === true,
    pool: options.pool ?? "default",
    pace: paceOf(options),
    compute: computedOf(options, tool.definition.name),
    ttlMs: capTtl(options.ttl === undefined ? settings.ttlMs : toMillis(options.ttl), maxTtl),
    maxTtlMs: maxTtl,
    pollIntervalMs: options.pollInterval === undefined
      ? settings.pollIntervalMs
      : Math.floor(Duration.toMillis(options.pollInterval)),
    owner: options.owner ?? settings.owner,
    limits: options.limits === undefined ? settings.limits : { ...settings.limits, tool: options.limits },
    asTask: options.asTask,
    retry: options.retry && retryOf(tool.definition.name, options.retry),
    pinned: durable && options.versioning === "pinned",
    inputFrom: options.inputFrom ?? "caller"
  }
}
