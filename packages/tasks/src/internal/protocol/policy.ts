/**
 * What is said of the tasks of a tool, and of all tasks: with defaults, in milliseconds.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Caller } from "@skein/runtime/RequestContext"
import type { ToolEntry } from "@skein/server/Catalog"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import type { Counted, Limits, Owner, State } from "../../TaskState.ts"

/**
 * Whose a task is, as a line of text; whoever the policy gives the same line for sees it, cancels it and answers its questions.
 * `null`: whoever knows its id. It must be quick, and say the same of the same caller at any time, in any process.
 *
 * Where tools have policies of their own, let no two of them mean different people by one line (`team:acme`, not `acme`): whoever is
 * so called by either is counted as one, and the tasks of a tool that is gone are whose the policy of `Tasks.layer` says.
 */
export type OwnerPolicy = (caller: Caller) => Owner

/** How tasks are kept. What a tool does not say is as `Tasks.layer` says. */
export interface TaskPolicyOptions {
  /**
   * From its creation until a task is ended, if it is not over, and forgotten: 24 hours by default; `null`: never. A client of
   * 2025-11-25 may ask for another time, up to `maxTtl`.
   */
  readonly ttl?: Duration.Input | null | undefined
  /** No task is kept longer than this, whatever is asked for: 30 days by default; `null`: no such bound. */
  readonly maxTtl?: Duration.Input | null | undefined
  /** How long clients are told to wait between two looks at a task: one second by default. Nobody is refused who looks earlier. */
  readonly pollInterval?: Duration.Input | undefined
  /** Whose the tasks are: the id of the caller's principal by default, and `null` where nobody was identified. */
  readonly owner?: OwnerPolicy | undefined
}

/** What a tool says of its tasks. */
export interface ToolPolicyOptions extends TaskPolicyOptions {
  /** The workers that its tasks must run on; `default` by default. A task whose pool has no worker waits for one. */
  readonly pool?: string | undefined
  /**
   * How many tasks of this tool there may be, in place of `Tasks.Options.limits.perTool`. At the bound the call is refused with
   * `-32603`, and nothing is begun.
   */
  readonly limits?: Limits | undefined
  /**
   * Since 2026-07-28 it is the server that decides whether a call becomes a task, of a client that has declared the extension:
   * always by default. `false` lets the call wait for its result. It must be quick. It is not asked where a task is the only way.
   */
  readonly asTask?: ((call: { readonly args: JsonObject; readonly caller: Caller }) => boolean) | undefined
  /**
   * Whom a task may ask. `caller`, the default: what the client that made the call can be asked, as it has declared; any other question
   * fails at once with `MissingCapability`, as it does in a call. `anyone`: it waits, for as long as the task lives, for a client that
   * looks at the task and has declared what it takes. A question is shown to no other in either case. A call that waits for its task
   * asks its own client alone.
   */
  readonly inputFrom?: "caller" | "anyone" | undefined
}

/** What a tool is annotated with (`Tool.Options.extensions`). */
export class TaskPolicyAnnotation
  extends Context.Service<TaskPolicyAnnotation, ToolPolicyOptions>()("@skein/tasks/TaskTerms")
{}

/** A tool is annotated with this whose handler is made of steps. */
export class Durable extends Context.Service<Durable, true>()("@skein/tasks/Durable") {}

/** A tool is annotated with this whose calls are prepared before their task begins. */
export class Prepares extends Context.Service<Prepares, true>()("@skein/tasks/Prepares") {}

/** How many tasks there may be, of whom. */
export interface Bounds {
  /** In all: 10,000 that are not over, and 100,000 that are kept, by default. */
  readonly all?: Limits | undefined
  /** Of one owner: 100 and 1,000 by default. Tasks of nobody (`null`) are not counted so. */
  readonly perPrincipal?: Limits | undefined
  /** Of one tool, where the tool itself says nothing: 1,000 and 10,000 by default. */
  readonly perTool?: Limits | undefined
}

/** What `Tasks.layer` says, with all defaults. */
export interface TaskSettings {
  readonly ttl: number | null
  readonly maxTtl: number | null
  readonly pollInterval: number
  readonly owner: OwnerPolicy
  readonly limits: Counted
  readonly maxWatched: number
  readonly list: "identified" | "always" | "never"
  readonly pageSize: number
  readonly immediateResponse: ((state: State) => string | undefined) | undefined
}

/** What holds for the tasks of one tool. */
export interface TaskPolicy extends Pick<TaskSettings, "ttl" | "maxTtl" | "pollInterval" | "owner" | "limits"> {
  /** `forbidden` is a tool of which clients never see a task. */
  readonly support: "forbidden" | "optional" | "required"
  readonly durable: boolean
  /** Something has to happen in the call before its task begins. */
  readonly prepares: boolean
  readonly pool: string
  readonly asTask: ToolPolicyOptions["asTask"]
  readonly inputFrom: NonNullable<ToolPolicyOptions["inputFrom"]>
}

const day = 24 * 60 * 60 * 1000

/** Whole milliseconds; what is for ever is `null`. */
const millis = (input: Duration.Input | null): number | null => {
  const value = input === null ? Infinity : Duration.toMillis(input)
  return Number.isFinite(value) ? Math.max(0, Math.floor(value)) : null
}

const both = (given: Limits | undefined, live: number, retained: number): Limits => ({ live, retained, ...given })

/** The principal, where there is one. */
const principal: OwnerPolicy = ({ principal }) => principal?.id ?? null

/** The options of `Tasks.layer`, resolved. */
export const settings = (
  options: TaskPolicyOptions & {
    readonly limits?: Bounds | undefined
    readonly maxWatched?: number | undefined
    readonly list?: TaskSettings["list"] | undefined
    readonly pageSize?: number | undefined
    readonly immediateResponse?: TaskSettings["immediateResponse"] | undefined
  }
): TaskSettings => {
  const { limits = {}, owner = principal, pollInterval = 1000 } = options
  const maxTtl = options.maxTtl === undefined ? 30 * day : millis(options.maxTtl)
  return {
    ttl: within(options.ttl === undefined ? day : millis(options.ttl), maxTtl),
    maxTtl,
    pollInterval: Math.floor(Duration.toMillis(pollInterval)),
    owner,
    limits: {
      all: both(limits.all, 10_000, 100_000),
      owner: both(limits.perPrincipal, 100, 1000),
      tool: both(limits.perTool, 1000, 10_000)
    },
    maxWatched: Math.max(0, options.maxWatched ?? 100),
    list: options.list ?? "identified",
    // One more is read, and a database counts no further.
    pageSize: Math.min(Math.max(1, Math.floor(options.pageSize ?? 100)), 2 ** 31 - 2),
    immediateResponse: options.immediateResponse
  }
}

/** A time, but no longer than the bound. */
export const within = (ttl: number | null, maxTtl: number | null): number | null =>
  maxTtl === null ? ttl : Math.min(ttl ?? Infinity, maxTtl)

const find = <I, S>({ metadata }: ToolEntry, key: Context.Key<I, S>): S | undefined =>
  metadata === undefined ? undefined : Context.getOrUndefined(metadata as Context.Context<I>, key)

/** What holds for a tool; `undefined` for one whose calls are no tasks. */
export const policyOf = (tool: ToolEntry, settings: TaskSettings): TaskPolicy | undefined => {
  const durable = find(tool, Durable) === true
  const support = tool.definition.execution?.taskSupport ?? "forbidden"
  if (!durable && support === "forbidden") return undefined
  const said = find(tool, TaskPolicyAnnotation) ?? {}
  const maxTtl = said.maxTtl === undefined ? settings.maxTtl : within(millis(said.maxTtl), settings.maxTtl)
  return {
    support,
    durable,
    prepares: find(tool, Prepares) === true,
    pool: said.pool ?? "default",
    ttl: within(said.ttl === undefined ? settings.ttl : millis(said.ttl), maxTtl),
    maxTtl,
    pollInterval: said.pollInterval === undefined
      ? settings.pollInterval
      : Math.floor(Duration.toMillis(said.pollInterval)),
    owner: said.owner ?? settings.owner,
    limits: said.limits === undefined ? settings.limits : { ...settings.limits, tool: said.limits },
    asTask: said.asTask,
    inputFrom: said.inputFrom ?? "caller"
  }
}
