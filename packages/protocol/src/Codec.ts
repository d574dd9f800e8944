/**
 * Decodes and encodes params and results in one revision.
 *
 * Every function is synchronous and does not throw. Decoding lifts a message into the model and validates it; an error
 * is one line that names the path. Encoding lowers a value and does not validate it; it fails with
 * {@link Unrepresentable} where the revision cannot represent the value. The first use of a schema in a revision
 * compiles it; later uses reuse the result.
 *
 * @example
 * Codec.decodeParams(Method.CallTool, "2025-11-25", { name: "add", arguments: { a: 1 } })
 * Codec.encodeResult(Method.CallTool, "2024-11-05", { content: [{ type: "text", text: "3" }] })
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { compile } from "./Adapt.ts"
import { Unrepresentable } from "./Annotate.ts"
import { InputRequiredResult } from "./InputRequired.ts"
import { repair, validatorOf } from "./internal/revisions/repair.ts"
import { Encoded, isObject, type JsonObject } from "./JsonRpc.ts"
import * as LegacyTask from "./LegacyTask.ts"
import type { NotificationMethod, RequestMethod } from "./Method.ts"
import type { Revision } from "./Revision.ts"
import * as Task from "./Task.ts"
import { quote } from "./Text.ts"

/**
 * Decodes a value by a schema of the model. `root` is the first segment of the path in the error, `value` by default.
 * Use it for a value that is not a message of its own; {@link decodeParams} and {@link decodeAnswer} serve messages.
 *
 * `null` for an optional member reads as absent. With `ignored`, malformed optional members and malformed items of lists
 * are left out, and `ignored` receives one line for each, 64 at most. Members without which the value would have another
 * meaning are not left out: `Annotate` calls them `essential`.
 */
export const decode = <A>(
  schema: Schema.Codec<A, unknown>,
  revision: Revision,
  raw: unknown,
  root = "value",
  ignored?: Array<string>
): Result.Result<A, string> => {
  const { ast } = schema
  const lift = compile(ast, revision, "lift")
  const lifted = lift === undefined ? raw : lift(raw)
  // The model's schemas transform nothing. Returning the lifted value keeps the unknown members.
  return Result.isSuccess(validatorOf(ast)(lifted))
    ? Result.succeed(lifted as A)
    : repair(ast, revision, lifted, root, ignored) as Result.Result<A, string>
}

/** Encodes a value by a schema of the model. */
export const encode = <A>(
  schema: Schema.Codec<A, unknown>,
  revision: Revision,
  value: A
): Result.Result<unknown, Unrepresentable> => {
  const lower = compile(schema.ast, revision, "lower")
  if (lower === undefined) return Result.succeed(value)
  try {
    return Result.succeed(lower(value))
  } catch (error) {
    // A `degrade` or `lower` can throw another error when it gets a value outside its type.
    return Result.fail(
      error instanceof Unrepresentable ? error : new Unrepresentable({ message: `not a value of the model: ${error}` })
    )
  }
}

const empty: JsonObject = {}

/**
 * Decodes the params of a message. Absent params are read as `{}`. Decode a request without `ignored`: its sender
 * receives the error, and can correct the member. The sender of a notification does not.
 */
export const decodeParams = <P>(
  method: RequestMethod<P, unknown> | NotificationMethod<P>,
  revision: Revision,
  raw: JsonObject | undefined,
  ignored?: Array<string>
): Result.Result<P, string> => decode(method.params, revision, raw ?? empty, "params", ignored)

/** Encodes the params of a message. */
export const encodeParams = <P>(
  method: RequestMethod<P, unknown> | NotificationMethod<P>,
  revision: Revision,
  params: P
): Result.Result<JsonObject, Unrepresentable> =>
  encode(method.params, revision, params) as Result.Result<JsonObject, Unrepresentable>

/** A decoded response to a request: its result, a request for input, or a task. */
export type Answer<R> =
  | { readonly _tag: "Complete"; readonly result: R }
  | { readonly _tag: "InputRequired"; readonly result: InputRequiredResult }
  | { readonly _tag: "Task"; readonly result: Task.CreateTaskResult }
  | { readonly _tag: "LegacyTask"; readonly result: LegacyTask.CreateTaskResult }

/** A response that {@link encodeResult} can write. */
export type Writable<R> = R | InputRequiredResult | Task.CreateTaskResult | LegacyTask.CreateTaskResult | Encoded

type Kind = Answer<unknown>["_tag"]

const schemas = {
  InputRequired: InputRequiredResult,
  Task: Task.CreateTaskResult,
  LegacyTask: LegacyTask.CreateTaskResult
} as const

/** Returns the kind of a response, or a line that explains why the method does not allow it in the revision. */
const classify = (
  method: RequestMethod<unknown, unknown>,
  revision: Revision,
  raw: object
): Kind | { readonly error: string } => {
  if (revision < "2026-07-28") {
    const { action, content, task } = raw as JsonObject
    return revision === "2025-11-25" && method.taskAugmented && (task ?? undefined) !== undefined &&
        (content ?? action ?? undefined) === undefined
      ? "LegacyTask"
      : "Complete"
  }
  const type: unknown = (raw as JsonObject)["resultType"] ?? undefined
  if (type === undefined || type === "complete") return "Complete"
  if (type === "input_required" && method.inputRequired) return "InputRequired"
  if (type === "task" && method.taskAnswered) return "Task"
  // An example in the specification of the extension has this value, although its text requires `complete`.
  if (type === "task" && method.name === "tasks/get") return "Complete"
  // Only a string is quoted: another value can be nested too deep for `JSON.stringify`.
  const shown = typeof type === "string" ? quote(type) : `a value of type ${typeof type}`
  return { error: `result.resultType: ${shown} is not allowed for ${method.name}` }
}

/**
 * Decodes the result of a request, or the request for input or the task that came instead. See {@link decode} for
 * `ignored`. A request for input is a request, so nothing in it is ignored.
 */
export const decodeAnswer = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  raw: JsonObject,
  ignored?: Array<string>
): Result.Result<Answer<R>, string> => {
  const kind = classify(method, revision, raw)
  if (typeof kind === "object") return Result.fail(kind.error)
  const schema: Schema.Codec<unknown, unknown> = kind === "Complete" ? method.result : schemas[kind]
  return Result.map(
    decode(schema, revision, raw, "result", kind === "InputRequired" ? undefined : ignored),
    (result) => ({ _tag: kind, result }) as Answer<R>
  )
}

/**
 * Decodes the result of a request. It fails for a request for input or a task; use {@link decodeAnswer} where the
 * method allows them.
 */
export const decodeResult = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  raw: JsonObject,
  ignored?: Array<string>
): Result.Result<R, string> =>
  Result.flatMap(decodeAnswer(method, revision, raw, ignored), (answer) =>
    answer._tag === "Complete"
      ? Result.succeed(answer.result)
      : Result.fail(`result: Expected a result, got ${answer._tag}`))

/** Encodes a response. An `Encoded` result, which is JSON text already, is returned as it is. */
export const encodeResult = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  result: Writable<R>
): Result.Result<JsonObject | Encoded, Unrepresentable> => {
  if (result instanceof Encoded) return Result.succeed(result)
  if (!isObject(result)) return Result.fail(new Unrepresentable({ message: "a result must be an object" }))
  const type = result["resultType"]
  // Classified as 2026-07-28, so that such a response is not taken for a complete result of an older revision.
  const kind = classify(
    method,
    type === "input_required" || type === "task" ? "2026-07-28" : revision,
    result as object
  )
  if (typeof kind === "object") return Result.fail(new Unrepresentable({ message: kind.error }))
  if (revision < "2026-07-28" && (kind === "InputRequired" || kind === "Task")) {
    return Result.fail(
      new Unrepresentable({ message: `${revision} does not support results with resultType "${String(type)}"` })
    )
  }
  const schema: Schema.Codec<unknown, unknown> = kind === "Complete" ? method.result : schemas[kind]
  return encode(schema, revision, result) as Result.Result<JsonObject, Unrepresentable>
}
