/**
 * An audit log: who called what, and how it ended. It contains arguments only with the option `arguments`, and never
 * contains results.
 *
 * Each request makes one entry when it ends, in any way. By default the entry is a line of Effect's log at the level
 * `Info`, with all members as annotations. It is never sent to the client. List the audit log first, so that it also
 * contains the requests that other middleware refuses. It does not contain requests that are refused before dispatch.
 *
 * @example
 * const log = AuditLog.layer({ methods: ["tools/call"], sink: (entry) => Database.insert(entry) })
 */
import { Encoded, type Id, isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import { clip, printable } from "@skein/protocol/Text"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import { errorOf } from "@skein/runtime/RequestRunner"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { type Outcome, outcomeOf } from "./internal/base/outcome.ts"
import { omitUndefined } from "./internal/base/json.ts"
import { describeRequest, withoutRequest } from "./internal/middleware/failureAnswer.ts"
import * as Middleware from "./Middleware.ts"

/** The entry of one request. Values that the client chose are cut at 128 characters. */
export interface Entry {
  readonly method: string
  /**
   * The name of the tool or prompt, or the URI of the resource, as the client sent it. `undefined` for methods without
   * one.
   */
  readonly target: string | undefined
  /**
   * The task that the request is about, or has become: the first eight characters of its id, because the whole id may
   * grant access to the task. `undefined` for every other request.
   */
  readonly task: string | undefined
  readonly id: Id
  /** The id of the principal. `undefined` for an anonymous caller. */
  readonly principal: string | undefined
  /** The name and version that the client claims to have. Do not trust it. */
  readonly client: string | undefined
  readonly revision: Revision.Revision
  /**
   * `ok`: a result. `tool_error`: a tool's result with `isError`. `input_required`: input requests, which the client
   * answers when it sends the request again. `error`: a JSON-RPC error, with its `code`. `cancelled`: by the client, or
   * by the end of its connection. `defect`: an exception, whose cause is in the log.
   */
  readonly outcome: Outcome
  /** The code of the JSON-RPC error. */
  readonly code: number | undefined
  readonly durationMs: number
  /** The value of the option `arguments`. Absent without the option. */
  readonly arguments?: unknown
}

/** The entries, and where they go. */
export interface Options<R> {
  /**
   * Receives the entries instead of Effect's log. The answer waits for it. If it dies, an error is logged and the
   * answer is sent. It runs outside of the request, without `McpRequest`, so that its logs are not sent to the client.
   */
  readonly sink?: ((entry: Entry) => Effect.Effect<void, never, R>) | undefined
  /**
   * The methods that are recorded: `all` by default. Here `all` includes `subscriptions/listen`, which is recorded when
   * it ends.
   */
  readonly methods?: Middleware.Methods | undefined
  /** `true` adds the raw `params.arguments`. A function adds its return value. `false` by default. */
  readonly arguments?: boolean | ((request: RequestContext) => unknown) | undefined
}

/**
 * Records each request.
 *
 * @example
 * AuditLog.layer({ arguments: ({ params }) => Object.keys(params?.["arguments"] ?? {}) })
 */
export const layer = <R = never>(
  options: Options<R> = {}
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<Exclude<R, McpRequest>> | Extract<R, McpRequest>> =>
  registerLayer<Exclude<R, McpRequest>>((catalog, provide) => {
    const sink = options.sink ?? log
    const { methods = "all" } = options
    // `Middleware.includes` excludes `subscriptions/listen` from `all` for limits. An audit log should contain it.
    const appliesTo = methods === "all" ? () => true : Middleware.includes(methods)
    const args = options.arguments === true ? argumentsOf : options.arguments === false ? undefined : options.arguments
    const write = (entry: () => Entry): Effect.Effect<void> =>
      withoutRequest(Effect.catchCause(
        provide(
          Effect.suspend(() => sink(entry())) as Effect.Effect<void, never, Exclude<R, McpRequest>>
        ) as Effect.Effect<void>,
        (cause) => Effect.logError("audit log entry lost: the sink died", cause)
      ))
    return catalog[internals].middleware.add((next) => (request) =>
      appliesTo(request.method)
        ? Effect.clockWith((clock) => {
          const start = clock.monotonicTimeNanosUnsafe()
          return Effect.onExit(next(request), (exit) => {
            const durationMs = Number(clock.monotonicTimeNanosUnsafe() - start) / 1e6
            return write(() => entryOf(request, exit, durationMs, args))
          })
        })
        : next(request)
    )
  })

const argumentsOf = (request: RequestContext): unknown => request.params?.["arguments"]

const nameOf = ({ info }: RequestContext["caller"]): string | undefined => {
  const name = info?.["name"]
  const version = info?.["version"]
  return typeof name !== "string" ? undefined : clip(typeof version === "string" ? `${name} ${version}` : name)
}

const entryOf = (
  request: RequestContext,
  exit: Exit.Exit<Answer, McpError.McpError>,
  durationMs: number,
  args: ((request: RequestContext) => unknown) | undefined
): Entry => {
  const { caller, id, method } = request
  const target = request.target
  const outcome = outcomeOf(request, exit)
  const error = outcome === "error" ? errorOf(exit) : undefined
  return {
    method: clip(method),
    target: target === undefined ? undefined : clip(target),
    task: taskOf(request, exit),
    id: typeof id === "string" ? clip(id) : id,
    principal: caller.principal?.id,
    client: nameOf(caller),
    revision: caller.revision,
    outcome,
    code: error === undefined ? undefined : McpError.codeOf(error, caller.revision),
    durationMs,
    ...(args === undefined ? undefined : { arguments: args(request) })
  }
}

/**
 * "Log task creation, completion, and retrieval events for audit purposes" (2025-11-25, tasks, "Audit and Logging").
 */
const taskOf = ({ method, params }: RequestContext, exit: Exit.Exit<Answer, McpError.McpError>): string | undefined => {
  const id = method.startsWith("tasks/") ? params?.["taskId"] : method === "tools/call" ? createdTask(exit) : undefined
  return typeof id === "string" ? clip(id, 8) : undefined
}

/** Returns the id of the task that a call became, in the form of either revision. */
const createdTask = (exit: Exit.Exit<Answer, McpError.McpError>): unknown => {
  if (exit._tag === "Failure" || exit.value instanceof Encoded) return undefined
  const { resultType, task, taskId } = exit.value
  return resultType === "task" ? taskId : isObject(task) ? task["taskId"] : undefined
}

// Names of a client are in the entry, and some loggers write annotations as they are: one could look like another line.
const asAnnotation = (value: unknown): unknown => typeof value === "string" ? printable(value, Infinity) : value

const log = (entry: Entry): Effect.Effect<void> =>
  Effect.annotateLogs(
    Effect.logInfo(`${describeRequest(entry)}: ${entry.outcome}`),
    Object.fromEntries(Object.entries(omitUndefined(entry)).map(([name, value]) => [name, asAnnotation(value)]))
  )
