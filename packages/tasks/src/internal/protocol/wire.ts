/**
 * Converts tasks, questions and outcomes to the protocol's types for the revision of their reader. `Method` encodes
 * these types: it writes `ttlMs` as `ttl` in 2025-11-25, for instance.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Codec from "@skein/protocol/Codec"
import type { InputRequest } from "@skein/protocol/InputRequired"
import * as Json from "@skein/protocol/Json"
import { Encoded, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type * as Wire from "@skein/protocol/Task"
import type { Caller, Progress } from "@skein/runtime/RequestContext"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Question, State } from "../../TaskState.ts"
import { canAsk } from "./inputCapability.ts"

/** How far a task has come, as a text. */
export const amountOf = ({ progress, total }: Progress): string =>
  `${progress}${total === undefined ? "" : ` of ${total}`}`

/** The status message, or the progress of a task without one: the extension has no progress notifications for tasks. */
const statusMessageOf = ({ progress, status, statusMessage }: State): string | undefined => {
  if (statusMessage !== undefined) return statusMessage
  if (status !== "working" || progress === undefined) return undefined
  return progress.message ?? amountOf(progress)
}

/** A task without the members that depend on its status. */
const toTask = (state: State): Wire.Task => {
  const statusMessage = statusMessageOf(state)
  return {
    taskId: state.id,
    status: state.status,
    ...(statusMessage === undefined ? undefined : { statusMessage }),
    createdAt: new Date(state.createdAt).toISOString(),
    lastUpdatedAt: new Date(state.updatedAt).toISOString(),
    ttlMs: state.ttlMs,
    pollIntervalMs: state.pollIntervalMs
  }
}

/**
 * A task as 2025-11-25 and the tools for models show it: a result with `isError` makes it `failed`. "For `tools/call`
 * specifically, this includes cases where the tool call result has `isError` set to true".
 */
export const taskOf = (state: State): Wire.Task => {
  const task = toTask(state)
  return state.isError ? { ...task, status: "failed" } : task
}

/** The response in place of a tool result, since 2026-07-28. */
export const toCreateTaskResult = (state: State): Wire.CreateTaskResult => ({ resultType: "task", ...toTask(state) })

/**
 * A task with the members that depend on its status, for a reader. "Servers MUST NOT send an `inputRequests` that the
 * client has not declared support for in its capabilities" (2026-07-28, multi round-trip requests): such questions wait
 * for another client.
 */
export const toDetailedTask = (state: State, reader: Caller): Wire.DetailedTask => {
  const { revision } = reader
  const plain = toTask(state)
  switch (state.status) {
    case "input_required": {
      const shown = state.questions.filter((each) => canAsk(reader, each))
      const hidden = state.questions.find((each) => !shown.includes(each))
      const waiting = plain.statusMessage === undefined && hidden !== undefined && shown.length === 0
        ? { statusMessage: `Waiting for an answer to ${hidden.method}, which this client has not declared` }
        : undefined
      return {
        ...plain,
        ...waiting,
        status: state.status,
        inputRequests: Object.fromEntries(shown.map((each) => [each.key, toInputRequest(state, each, revision)]))
      }
    }
    case "completed":
      return { ...plain, status: state.status, result: resultOf(state, revision) }
    case "failed":
      return { ...plain, status: state.status, error: errorObjectOf(state, revision) }
    default:
      return { ...plain, status: state.status }
  }
}

const methodOf = (name: string, revision: Revision): Method.AnyRequest | undefined =>
  Method.request(name, revision) ?? Method.inputRequest(name, revision)

/** The encoded value. Throws if `subject` cannot be encoded: that is a defect. */
export const encodedOrThrow = <A>(result: Result.Result<A, { readonly message: string }>, subject: string): A => {
  if (Result.isSuccess(result)) return result.success
  throw new Error(`cannot encode ${subject}: ${result.failure.message}`)
}

/** A question in the revision of its reader. It is stored in the revision of the caller that created the task. */
export const toInputRequest = (
  { caller }: State,
  { method: name, params }: Question,
  revision: Revision
): InputRequest => {
  const asked = params === undefined ? { method: name } : { method: name, params }
  const method = methodOf(name, caller.revision)
  if (caller.revision === revision || method === undefined || params === undefined) return asked as InputRequest
  const read = Codec.decodeParams(method, caller.revision, params)
  if (Result.isFailure(read)) return asked as InputRequest
  return {
    method: name,
    params: encodedOrThrow(Codec.encodeParams(method, revision, read.success), name)
  } as InputRequest
}

/** An answer as it is stored, in the revision of the caller that created the task; or the reason why it is invalid. */
export const toStoredAnswer = (
  { caller }: State,
  { key, method: name }: Question,
  revision: Revision,
  given: unknown
): Result.Result<JsonObject, string> => {
  const method = methodOf(name, revision) ?? methodOf(name, caller.revision)
  if (method === undefined) return Result.fail(`${revision} has no ${name}`)
  const root = `params.inputResponses[${JSON.stringify(key)}]`
  const rounded = Json.integerIn(given, "content")
  if (rounded !== undefined) return Result.fail(`${root}: ${rounded.path} ${Json.problem(rounded)}`)
  const read = Codec.decode(method.result, revision, given, root)
  if (Result.isFailure(read) || revision === caller.revision) return read as Result.Result<JsonObject, string>
  const written = Codec.encode(method.result, caller.revision, read.success)
  return Result.isSuccess(written)
    ? Result.succeed(written.success as JsonObject)
    : Result.fail(`${root}: ${written.failure.message}`)
}

/** The error of a task, decoded in the revision of the caller that created the task. */
const mcpErrorOf = ({ caller, outcome }: State): McpError.McpError =>
  outcome?._tag === "Error" ? McpError.fromErrorObject(outcome.error, caller.revision) : McpError.internal()

/** The error of a task, encoded in the revision of its reader. */
const errorObjectOf = (state: State, revision: Revision): Wire.ErrorObject =>
  state.outcome?._tag === "Error" && revision === state.caller.revision
    ? state.outcome.error
    : McpError.toErrorObject(mcpErrorOf(state), revision)

/** The result of a task as the call would have returned it, encoded in the revision of its reader. */
export const resultOf = ({ outcome }: State, revision: Revision): JsonObject => {
  const stored = outcome?._tag === "Result" ? outcome.result : { content: [] }
  const written = Codec.encodeResult(Method.CallTool, revision, stored as unknown as CallToolResult)
  const value = encodedOrThrow(written, "the result of a task")
  return value instanceof Encoded ? stored : value
}

/**
 * The response to a call whose task has ended: its result or its error. A cancelled task is a result with `isError`.
 */
export const callOutcome = (state: State): Effect.Effect<CallToolResult, McpError.McpError> => {
  const { statusMessage, outcome, status } = state
  if (outcome?._tag === "Result") return Effect.succeed(outcome.result as unknown as CallToolResult)
  if (status !== "cancelled") return Effect.fail(mcpErrorOf(state))
  const text = statusMessage === undefined ? "The task was cancelled" : `The task was cancelled: ${statusMessage}`
  return Effect.succeed({ content: [Content.text(text)], isError: true })
}
