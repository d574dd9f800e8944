/**
 * The tasks of one server: how a call becomes a task, and which callers see it. All methods about tasks use it.
 */
import * as McpError from "@skein/protocol/McpError"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as TraceContext from "@skein/protocol/TraceContext"
import * as ClientKey from "@skein/runtime/ClientKey"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import { type Catalog, type Handled, requestServices, type ToolEntry } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import type { ToolCall } from "@skein/server/Extension"
import * as Logging from "@skein/server/Logging"
import type { Visible } from "@skein/server/Registry"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { TaskEngine } from "../../TaskEngine.ts"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask, Owner, Question, State } from "../../TaskState.ts"
import { NotStarted, prepare, withoutPrepared } from "./beforeTask.ts"
import { withAllInputCapabilities } from "./inputCapability.ts"
import { capTtl, type Computed, type OwnerPolicy, policyOf, type TaskPolicy, type TaskSettings } from "./policy.ts"

/** How models use the tasks of a server that has `TaskTools`. */
export interface ModelTools {
  /** Which callers see the tools. */
  readonly visible: Visible
  /** Milliseconds that a call of one of the tools waits for its task, at most. */
  readonly waitTimeout: number
}

/** The tasks of one server. `Tasks.layer` provides it to the other extensions of the server: see `findTaskService`. */
export class TaskService extends Context.Service<TaskService, {
  readonly engine: TaskEngine["Service"]
  readonly catalog: Catalog["Service"]
  readonly settings: TaskSettings
  /** The tasks that run in this process now. */
  readonly running: Set<RequestContext>
  /** The options of `TaskTools`, if the server has them. */
  modelTools: ModelTools | undefined
  /** The policy for the tasks of a tool; `undefined` for a tool whose calls do not become tasks. */
  readonly policyFor: (tool: ToolEntry) => TaskPolicy | undefined
  /** The owners of the tasks that this caller may list, by all policies of the server; never `null`. */
  readonly ownersOf: (caller: Caller) => ReadonlyArray<string>
  /** Whether a caller may see a task. */
  readonly canSee: (caller: Caller, task: Pick<State, "owner" | "tool">) => boolean
  /**
   * The task with this id, if the caller may see it. All other ids have the same error, and each takes one read of the
   * store, so that a caller cannot find out about tasks of others.
   */
  readonly find: (id: string, caller: Caller) => Effect.Effect<State, McpError.McpError>
  /** Whether a caller may answer a question of a task that it sees, or is asked by others. */
  readonly mayAnswer: (caller: Caller, question: Question) => boolean
  /** A task as a caller sees it: without the questions that others answer. */
  readonly viewOf: (state: State, caller: Caller) => State
  /** The states of a task, as a caller sees them: see `TaskEngine.watch`. */
  readonly watch: (id: string, caller: Caller) => Stream.Stream<State, TaskError>
  /** Sets the limits of all tools at the engine. */
  readonly paceAll: Effect.Effect<void, TaskError>
  /** The arguments that the task of a call starts with, or the result of a call that ends before its task starts. */
  readonly prepare: (call: ToolCall) => Handled<JsonObject | NotStarted>
  /**
   * Creates the task of a prepared call. The task is durable when this succeeds. `inputCaller` is the client that the
   * task may ask for input: the caller by default.
   */
  readonly submit: (
    call: ToolCall,
    args: JsonObject,
    ttlMs?: number,
    inputCaller?: Caller
  ) => Effect.Effect<State, McpError.McpError>
  /**
   * Prepares and submits. `ttlMs` is the time to live that the client requests. A client that cancels its call during
   * this never receives the task id, so the task is cancelled too.
   */
  readonly start: (call: ToolCall, ttlMs?: number) => Handled<State | NotStarted>
}>()("@skein/tasks/TaskService") {}

/** The services of the servers that run on each engine. */
const onEngines = new WeakMap<TaskEngine["Service"], Set<TaskService["Service"]>>()

/** Lets code that has the engine find the policies of a server, until the scope closes. */
export const publishService = (service: TaskService["Service"]): Effect.Effect<void, never, Scope.Scope> => {
  const services = onEngines.get(service.engine) ?? new Set()
  onEngines.set(service.engine, services)
  return Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => services.add(service)),
    () => Effect.sync(() => services.delete(service))
  ))
}

/** The service of a server on this engine: one that has the tool, if there is any. */
export const findServiceOn = (engine: TaskEngine["Service"], tool: string): TaskService["Service"] | undefined => {
  const all = [...onEngines.get(engine) ?? []]
  return all.find(({ catalog }) => catalog.tools.get(tool) !== undefined) ?? all[0]
}

const serviceOf = ({ services }: Extension.Extension): TaskService["Service"] | undefined =>
  services && Context.getOrUndefined(services as Context.Context<TaskService>, TaskService)

/** The task service of a server; `undefined` if `Tasks.layer` is not among its definitions. */
export const findTaskService = (catalog: Catalog["Service"]): TaskService["Service"] | undefined =>
  Extension.list(catalog).map(serviceOf).find((service) => service !== undefined)

/** Whether the calls of tools in this catalog can become tasks. Those of a mounted part have a service of their own. */
export const hasTasks = (catalog: Catalog["Service"]): boolean =>
  Extension.list(catalog).some((each) => each.call !== undefined && serviceOf(each) !== undefined)

/** One error for ids that never existed, for expired tasks and for tasks of others. */
export const taskNotFound = Effect.fail(
  McpError.invalidParams("Task not found: the id is unknown, or the task has expired")
)

/**
 * The client receives a limit as an error, and so it does for a value of its own that is nested too deeply to be stored.
 * Any other failure is a defect: the log has it, and the client receives a reference.
 */
const toMcpError = (error: TaskError): Effect.Effect<never, McpError.McpError> =>
  Nesting.exceedsStack(error)
    ? Effect.fail(McpError.invalidParams(`Invalid params: a value ${Nesting.problem}`))
    : error.reason._tag === "LimitExceeded"
    ? rejected("Too many tasks: the call was not started. Try again after other tasks have ended")
    : error.reason._tag === "NotStarted"
    ? rejected("Another task of this tool has not ended: the call was not started. Try again after its end")
    : Effect.die(error)

const rejected = (message: string) => Effect.fail(new McpError.McpError({ reason: "InternalError", message }))

/** The options of the task of a caller that cannot be told from others: it shares no task. */
const withoutSharing = ({ debounce, singleton, ...others }: Computed): Partial<NewTask> => ({
  ...others,
  delayMs: debounce?.periodMs,
  singleton: singleton?.onConflict === "useExisting" ? { ...singleton, onConflict: "fail" } : singleton
})

/** Converts the errors of the engine to errors for the client. */
export const withMcpErrors = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, McpError.McpError, R> =>
  Effect.catch(effect, toMcpError)

/**
 * Cancels a task whose caller has gone, and lets it expire soon. Waits at most 5 seconds: when the store does not
 * respond, the task continues.
 */
export const cancelUnwanted = ({ engine }: TaskService["Service"], id: string): Effect.Effect<void> =>
  Effect.catchCause(
    Effect.timeout(
      Effect.andThen(engine.cancel(id, "The call that created the task was cancelled"), engine.expireSoon(id)),
      "5 seconds"
    ),
    (cause) =>
      Logging.withheld(Effect.logWarning("failed to cancel the task of a cancelled call; the task continues", cause))
  )

/** Makes the service of a server. */
export const makeTaskService = (
  engine: TaskEngine["Service"],
  catalog: Catalog["Service"],
  settings: TaskSettings
): TaskService["Service"] => {
  /** The policy of each tool, computed once. */
  const policies = new WeakMap<ToolEntry, { readonly policy: TaskPolicy | undefined }>()
  /** The owner policies of single tools, by name: a tool that is disabled for a while may still have tasks. */
  const ownerPolicies = new Map<string, OwnerPolicy>()

  const policyFor = (tool: ToolEntry): TaskPolicy | undefined => {
    let known = policies.get(tool)
    if (known === undefined) {
      policies.set(tool, known = { policy: policyOf(tool, settings) })
      const { owner = settings.owner } = known.policy ?? {}
      if (owner !== settings.owner) ownerPolicies.set(tool.definition.name, owner)
    }
    return known.policy
  }

  /** The tools whose limits are known to the engine. */
  const paced = new WeakSet<ToolEntry>()

  const pace = (tools: ReadonlyArray<ToolEntry>): Effect.Effect<void, TaskError> => {
    const paces = new Map(tools.flatMap((tool) => {
      const policy = policyFor(tool)
      return policy === undefined ? [] : [[tool.definition.name, policy.pace] as const]
    }))
    if (paces.size === 0) return Effect.void
    return Effect.andThen(
      engine.pace(paces),
      Effect.sync(() => {
        for (const tool of tools) paced.add(tool)
      })
    )
  }

  const paceAll = Effect.suspend(() => pace(catalog.tools.sorted.map(([, tool]) => tool)))

  const ownerOf = (tool: string, caller: Caller): Owner => {
    const entry = catalog.tools.get(tool)
    const policy = (entry === undefined ? undefined : policyFor(entry)?.owner) ?? ownerPolicies.get(tool)
    return (policy ?? settings.owner)(caller)
  }

  const ownersOf = (caller: Caller): ReadonlyArray<string> => {
    for (const [, tool] of catalog.tools.sorted) policyFor(tool)
    const all = new Set([settings.owner, ...ownerPolicies.values()])
    return [...new Set([...all].map((policy) => policy(caller)))].filter((owner) => owner !== null)
  }

  const canSee: TaskService["Service"]["canSee"] = (caller, { owner, tool }) =>
    owner === null || owner === ownerOf(tool, caller)

  const mayAnswer: TaskService["Service"]["mayAnswer"] = (caller, { to }) =>
    to === undefined || settings.addresses(caller).includes(to)

  const viewOf: TaskService["Service"]["viewOf"] = (state, caller) => {
    if (!state.questions.some(({ to }) => to !== undefined)) return state
    const questions = state.questions.filter((question) => mayAnswer(caller, question))
    const hidden = state.questions.find((question) => !questions.includes(question))
    const isWaiting = hidden !== undefined && questions.length === 0 && state.statusMessage === undefined
    return { ...state, questions, ...isWaiting && { statusMessage: `Waiting for an answer of ${hidden.to}` } }
  }

  const find: TaskService["Service"]["find"] = (id, caller) =>
    Effect.flatMap(
      withMcpErrors(engine.get(id)),
      (state) => state !== undefined && canSee(caller, state) ? Effect.succeed(viewOf(state, caller)) : taskNotFound
    )

  const prepareCall: TaskService["Service"]["prepare"] = (call) => {
    const { arguments: args = noArguments } = call.params
    return policyFor(call.tool)?.prepares === true ? prepare(call) : Effect.succeed(withoutPrepared(args))
  }

  const submit: TaskService["Service"]["submit"] = (
    { params, request, tool },
    args,
    ttlMs,
    inputCaller = request.caller
  ) =>
    Effect.flatMap(traceparentOf(catalog, request), (traceparent) => {
      const { caller } = request
      const policy = policyFor(tool)
      if (policy === undefined) return Effect.die(new Error(`calls of ${params.name} cannot become tasks`))
      const owner = policy.owner(caller)
      const client = owner === null ? ClientKey.ofRequest(request) : undefined
      const computed = policy.compute({ args: params.arguments ?? noArguments, caller })
      const submitted = withMcpErrors(engine.submit({
        tool: params.name,
        args,
        pool: policy.pool,
        ...client === undefined ? computed : withoutSharing(computed),
        owner,
        client,
        caller: storedCaller(inputCaller, traceparent),
        ttlMs: ttlMs === undefined ? policy.ttlMs : capTtl(Math.max(0, Math.floor(ttlMs)), policy.maxTtlMs),
        pollIntervalMs: policy.pollIntervalMs,
        limits: owner === null && client === undefined ? { ...policy.limits, client: {} } : policy.limits
      }))
      return paced.has(tool) ? submitted : Effect.andThen(withMcpErrors(pace([tool])), submitted)
    })

  const start: TaskService["Service"]["start"] = (call, ttlMs) => {
    const { request, tool } = call
    const inputCaller = policyFor(tool)?.inputFrom === "anyone"
      ? withAllInputCapabilities(request.caller)
      : request.caller
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(prepareCall(call)), (args): Handled<State | NotStarted> =>
        args instanceof NotStarted
          ? Effect.succeed(args)
          : Effect.tap(
            submit(call, args, ttlMs, inputCaller),
            ({ id }) => request.cancelled ? cancelUnwanted(service, id) : Effect.void
          ))
    )
  }

  const service: TaskService["Service"] = {
    engine,
    catalog,
    settings,
    running: new Set(),
    modelTools: undefined,
    policyFor,
    ownersOf,
    canSee,
    find,
    mayAnswer,
    viewOf,
    watch: (id, caller) => Stream.map(engine.watch(id), (state) => viewOf(state, caller)),
    prepare: prepareCall,
    paceAll,
    submit,
    start
  }
  return service
}

const noArguments: JsonObject = {}

/** The stored part of a caller: without the claims of its principal and without credentials. */
const storedCaller = (
  { capabilities, info, principal, revision }: Caller,
  traceparent: string | undefined
): NewTask["caller"] => ({
  revision,
  capabilities,
  info,
  principal: principal === undefined ? undefined : { id: principal.id },
  ...(traceparent === undefined ? undefined : { traceparent })
})

/**
 * The `traceparent` of a call: that of the span in which the call is handled, or else the one that the client has sent
 * (`_meta`, or the headers of the HTTP request).
 */
const traceparentOf = (
  catalog: Catalog["Service"],
  { origin, params }: RequestContext
): Effect.Effect<string | undefined> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    // The span in which the server was built is not that of a call.
    const outer = Context.getOrUndefined(requestServices(catalog), Tracer.ParentSpan)
    const own = span === undefined || span === outer ? undefined : TraceContext.formatParent(span)
    // A span without valid ids is not recorded.
    if (own !== undefined && TraceContext.parseParent(own) !== undefined) return Effect.succeed(own)
    const sent = TraceContext.fromParams(params)?.parent ??
      (origin?.header === undefined ? undefined : TraceContext.fromHeaders((name) => origin.header!(name))?.parent)
    return Effect.succeed(sent === undefined ? undefined : TraceContext.formatParent(sent))
  })
