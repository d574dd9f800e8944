/**
 * A task as it is said in each revision. What is returned here is of the model: the entry of the method writes it, `ttlMs` as
 * `ttl` in 2025-11-25 for instance.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Codec from "@skein/protocol/Codec"
import type { InputRequest } from "@skein/protocol/InputRequired"
import { Encoded, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type * as Wire from "@skein/protocol/Task"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Question, State } from "../../TaskState.ts"
import { can } from "./inputCapability.ts"

/** Clients of the extension hear of progress only so. */
const messageOf = ({ message, progress, status }: State): string | undefined => {
  if (message !== undefined) return message
  if (status !== "working" || progress === undefined) return undefined
  return progress.message ?? `${progress.progress}${progress.total === undefined ? "" : ` of ${progress.total}`}`
}

/** A task, without what its status brings along. */
export const task = (state: State): Wire.Task => {
  const statusMessage = messageOf(state)
  return {
    taskId: state.id,
    status: state.status,
    ...(statusMessage === undefined ? undefined : { statusMessage }),
    createdAt: new Date(state.createdAt).toISOString(),
    lastUpdatedAt: new Date(state.updatedAt).toISOString(),
    ttlMs: state.ttl,
    pollIntervalMs: state.pollInterval
  }
}

/** In place of the result, since 2026-07-28. */
export const created = (state: State): Wire.CreateTaskResult => ({ resultType: "task", ...task(state) })

/**
 * What the extension says of a task, with what its status brings along, to whoever reads it. "Servers MUST NOT send an `inputRequests`
 * that the client has not declared support for in its capabilities" (2026-07-28, multi round-trip requests): such questions wait for
 * another client.
 */
export const detailed = (state: State, reader: Caller): Wire.DetailedTask => {
  const { revision } = reader
  const plain = task(state)
  switch (state.status) {
    case "input_required": {
      const shown = state.questions.filter((each) => can(reader, each))
      const hidden = state.questions.find((each) => !shown.includes(each))
      const waits = plain.statusMessage === undefined && hidden !== undefined && shown.length === 0
        ? { statusMessage: `Waits for an answer to ${hidden.method}, which this client has not declared` }
        : undefined
      return {
        ...plain,
        ...waits,
        status: state.status,
        inputRequests: Object.fromEntries(shown.map((each) => [each.key, question(state, each, revision)]))
      }
    }
    case "completed":
      return { ...plain, status: state.status, result: result(state, revision) }
    case "failed":
      return { ...plain, status: state.status, error: errorObject(state, revision) }
    default:
      return { ...plain, status: state.status }
  }
}

const methodOf = (name: string, revision: Revision): Method.AnyRequest | undefined =>
  Method.request(name, revision) ?? Method.inputRequest(name, revision)

const carried = <A>(result: Result.Result<A, { readonly message: string }>, what: string): A => {
  if (Result.isSuccess(result)) return result.success
  throw new Error(`${what} cannot be said: ${result.failure.message}`)
}

/** A question of a task, in the revision of its reader. It was written in the revision of who made the task. */
export const question = ({ caller }: State, { method: name, params }: Question, revision: Revision): InputRequest => {
  const asked = params === undefined ? { method: name } : { method: name, params }
  const method = methodOf(name, caller.revision)
  if (caller.revision === revision || method === undefined || params === undefined) return asked as InputRequest
  const read = Codec.decodeParams(method, caller.revision, params)
  if (Result.isFailure(read)) return asked as InputRequest
  return { method: name, params: carried(Codec.encodeParams(method, revision, read.success), name) } as InputRequest
}

/** An answer as it is kept, in the revision of who made the task; or a line that says why it is none. */
export const answer = (
  { caller }: State,
  { key, method: name }: Question,
  revision: Revision,
  given: unknown
): Result.Result<JsonObject, string> => {
  const method = methodOf(name, revision) ?? methodOf(name, caller.revision)
  if (method === undefined) return Result.fail(`${revision} has no ${name}`)
  const root = `params.inputResponses[${JSON.stringify(key)}]`
  const read = Codec.decode(method.result, revision, given, root)
  if (Result.isFailure(read) || revision === caller.revision) return read as Result.Result<JsonObject, string>
  const written = Codec.encode(method.result, caller.revision, read.success)
  return Result.isSuccess(written)
    ? Result.succeed(written.success as JsonObject)
    : Result.fail(`${root}: ${written.failure.message}`)
}

/** The error that ended a task, read as the one who made the task would have read it. */
export const error = ({ caller, outcome }: State): McpError.McpError =>
  outcome?._tag === "Error" ? McpError.fromErrorObject(outcome.error, caller.revision) : McpError.internal()

/** The same as it is written for a reader. */
export const errorObject = (state: State, revision: Revision): Wire.ErrorObject =>
  state.outcome?._tag === "Error" && revision === state.caller.revision
    ? state.outcome.error
    : McpError.toErrorObject(error(state), revision)

/** The result of a task as the call would have been answered with it, written for a reader. */
export const result = ({ outcome }: State, revision: Revision): JsonObject => {
  const kept = outcome?._tag === "Result" ? outcome.result : { content: [] }
  const written = Codec.encodeResult(Method.CallTool, revision, kept as unknown as CallToolResult)
  const value = carried(written, "The result of a task")
  return value instanceof Encoded ? kept : value
}

/** What a call is answered with whose task is over: its result, or its error. One that was cancelled is a failure of the tool. */
export const ended = (state: State): Effect.Effect<CallToolResult, McpError.McpError> => {
  const { message, outcome, status } = state
  if (outcome?._tag === "Result") return Effect.succeed(outcome.result as unknown as CallToolResult)
  if (status !== "cancelled") return Effect.fail(error(state))
  const text = message === undefined ? "The task was cancelled" : `The task was cancelled: ${message}`
  return Effect.succeed({ content: [Content.text(text)], isError: true })
}
