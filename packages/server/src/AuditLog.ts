/**
 * An audit log: who called what, and how it ended. Arguments are not in it unless they are asked for, and results never are.
 *
 * There is one entry for each request, when it is over, whatever ended it. By default it is a line of Effect's log at the level
 * `Info` with everything as annotations; it never goes to the client. List it first: then it also has what other middleware
 * refused. Requests that are refused before they are dispatched are not in it.
 *
 * @example
 * const log = AuditLog.layer({ methods: ["tools/call"], sink: (entry) => Database.insert(entry) })
 */
import { Encoded, type Id, isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { clip, logged } from "./internal/text.ts"
import { errorOf, type Outcome, outcomeOf } from "./internal/observability/outcome.ts"
import { withoutRequest } from "./internal/limits/failRequest.ts"
import { namedBy } from "./internal/dispatch/target.ts"
import * as Middleware from "./Middleware.ts"

/** One request. What the client made up is cut at 128 characters. */
export interface Entry {
  readonly method: string
  /** The tool or prompt by its name, the resource by its URI, where the method has one; as the client wrote it. */
  readonly target: string | undefined
  /**
   * The task that the request is about, or has become: the first eight characters of its id, since who has all of them may be able
   * to use it. `undefined` for every other request.
   */
  readonly task: string | undefined
  readonly id: Id
  /** Who called: the id of the principal; `undefined` for a caller without one. */
  readonly principal: string | undefined
  /** What the client says that it is. Not to be trusted. */
  readonly client: string | undefined
  readonly revision: Revision.Revision
  /**
   * `ok`, or `tool_error`: a tool's result with `isError`. `input_required`: the client was asked something, and asks again with
   * the answers. `error`: a JSON-RPC error, with its `code`. `cancelled`: by the client, or by the end of its connection.
   * `defect`: something broke, and the log has its cause.
   */
  readonly outcome: Outcome
  /** The code of the JSON-RPC error. */
  readonly code: number | undefined
  readonly durationMs: number
  /** What was asked for with the option `arguments`; absent without. */
  readonly arguments?: unknown
}

/** What is written, and where to. */
export interface Options<R> {
  /**
   * Where entries go instead of Effect's log. The answer waits for it. If it dies, the log says so, and the answer is sent. It
   * does not have the `McpRequest`: what is logged there may be meant for the client.
   */
  readonly sink?: ((entry: Entry) => Effect.Effect<void, never, R>) | undefined
  /** The methods that are written: `all` by default, and here `subscriptions/listen` is one of them: it is written when it ends. */
  readonly methods?: Middleware.Methods | undefined
  /** `true` adds `params.arguments` as they came; a function adds what it makes of the request. `false` by default. */
  readonly arguments?: boolean | ((exchange: RequestContext) => unknown) | undefined
}

/** Writes who called what, and how it ended. */
export const layer = <R = never>(
  options: Options<R> = {}
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<Exclude<R, McpRequest>> | Extract<R, McpRequest>> =>
  captured.layer<Exclude<R, McpRequest>>((catalog, provide) => {
    const sink = options.sink ?? log
    const { methods = "all" } = options
    // Who listened is asked of an audit log, and no bound is at stake.
    const counts = methods === "all" ? () => true : Middleware.includes(methods)
    const args = options.arguments === true ? argumentsOf : options.arguments === false ? undefined : options.arguments
    const write = (entry: () => Entry): Effect.Effect<void> =>
      withoutRequest(Effect.catchCause(
        provide(
          Effect.suspend(() => sink(entry())) as Effect.Effect<void, never, Exclude<R, McpRequest>>
        ) as Effect.Effect<void>,
        (cause) => Effect.logError("An entry of the audit log was lost", cause)
      ))
    return catalog.middleware.add((next) => (exchange) =>
      counts(exchange.method)
        ? Effect.clockWith((clock) => {
          const start = clock.monotonicTimeNanosUnsafe()
          return Effect.onExit(next(exchange), (exit) => {
            const durationMs = Number(clock.monotonicTimeNanosUnsafe() - start) / 1e6
            return write(() => entryOf(exchange, exit, durationMs, args))
          })
        })
        : next(exchange)
    )
  })

const argumentsOf = (exchange: RequestContext): unknown => exchange.params?.["arguments"]

const nameOf = ({ info }: RequestContext["caller"]): string | undefined => {
  const name = info?.["name"]
  const version = info?.["version"]
  return typeof name !== "string" ? undefined : clip(typeof version === "string" ? `${name} ${version}` : name)
}

const entryOf = (
  exchange: RequestContext,
  exit: Exit.Exit<Answer, McpError.McpError>,
  durationMs: number,
  args: ((exchange: RequestContext) => unknown) | undefined
): Entry => {
  const { caller, id, method } = exchange
  const target = namedBy(exchange)
  const outcome = outcomeOf(exchange, exit)
  const error = outcome === "error" ? errorOf(exit) : undefined
  return {
    method: clip(method),
    target: target === undefined ? undefined : clip(target),
    task: taskOf(exchange, exit),
    id: typeof id === "string" ? clip(id) : id,
    principal: caller.principal?.id,
    client: nameOf(caller),
    revision: caller.revision,
    outcome,
    code: error === undefined ? undefined : McpError.codeOf(error, caller.revision),
    durationMs,
    ...(args === undefined ? undefined : { arguments: args(exchange) })
  }
}

/** "Log task creation, completion, and retrieval events for audit purposes" (2025-11-25, tasks, "Audit and Logging"). */
const taskOf = ({ method, params }: RequestContext, exit: Exit.Exit<Answer, McpError.McpError>): string | undefined => {
  const id = method.startsWith("tasks/") ? params?.["taskId"] : method === "tools/call" ? madeBy(exit) : undefined
  return typeof id === "string" ? clip(id, 8) : undefined
}

/** The id of the task that a call was answered with, in either shape. */
const madeBy = (exit: Exit.Exit<Answer, McpError.McpError>): unknown => {
  if (exit._tag === "Failure" || exit.value instanceof Encoded) return undefined
  const { resultType, task, taskId } = exit.value
  return resultType === "task" ? taskId : isObject(task) ? task["taskId"] : undefined
}

const log = (entry: Entry): Effect.Effect<void> => {
  const named = entry.target === undefined ? logged(entry.method) : `${logged(entry.method)} ${logged(entry.target)}`
  const told = Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined))
  return Effect.annotateLogs(Effect.logInfo(`${named}: ${entry.outcome}`), told)
}
