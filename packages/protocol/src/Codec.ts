/**
 * Reading and writing params and results in one revision.
 *
 * Every function is synchronous and total. Reading lifts a message into the model and validates it there; an error is one
 * line that names the path. Writing lowers, and does not validate; it refuses what the revision cannot carry. What has to be
 * compiled is compiled at the first use of a schema in a revision, and kept.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as AST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { compile } from "./Adapt.ts"
import { Unrepresentable } from "./Annotate.ts"
import { InputRequiredResult } from "./InputRequired.ts"
import { clip } from "./internal/clip.ts"
import { Encoded, isObject, type JsonObject } from "./JsonRpc.ts"
import * as LegacyTask from "./LegacyTask.ts"
import type { NotificationMethod, RequestMethod } from "./Method.ts"
import type { Revision } from "./Revision.ts"
import * as Task from "./Task.ts"

export { Unrepresentable } from "./Annotate.ts"

type Validate = (value: unknown) => Result.Result<unknown, SchemaIssue.Issue>

const validators = new WeakMap<AST.AST, Validate>()

const validatorOf = (schema: Schema.Codec<unknown, unknown>): Validate => {
  let validate = validators.get(schema.ast)
  if (validate === undefined) {
    validate = SchemaParser.decodeUnknownResult(schema) as Validate
    validators.set(schema.ast, validate)
  }
  return validate
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const showPath = (root: string, path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((shown, key) => {
    if (typeof key === "number") return `${shown}[${key}]`
    const name = clip(String(key))
    return /^[A-Za-z_$][\w$]*$/.test(name) ? `${shown}.${name}` : `${shown}[${JSON.stringify(name)}]`
  }, root)

/** One line about what is wrong, with the path of the deepest fault. */
const describe = (issue: SchemaIssue.Issue, root: string): string => {
  let worst: { readonly path: ReadonlyArray<PropertyKey>; readonly message: string } | undefined
  for (const { message, path } of format(issue).issues) {
    const keys = (path ?? []).map((segment) => typeof segment === "object" ? segment.key : segment)
    if (worst === undefined || keys.length > worst.path.length) worst = { path: keys, message }
  }
  return worst === undefined ? `${root}: invalid` : `${showPath(root, worst.path)}: ${worst.message.split("\n")[0]}`
}

/** Reads a value by a schema of the model. `root` names it in the error. */
export const decode = <A>(
  schema: Schema.Codec<A, unknown>,
  revision: Revision,
  raw: unknown,
  root = "value"
): Result.Result<A, string> => {
  const lift = compile(schema.ast, revision, "lift")
  const lifted = lift === undefined ? raw : lift(raw)
  const validated = validatorOf(schema)(lifted)
  // The model's schemas transform nothing: what was lifted is the value, with the members that the model does not know.
  return Result.isSuccess(validated) ? Result.succeed(lifted as A) : Result.fail(describe(validated.failure, root))
}

/** Writes a value by a schema of the model. */
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
    // A `degrade` or `lower` that is given what the types do not allow may fail in other ways: that too is a refusal.
    return Result.fail(
      error instanceof Unrepresentable ? error : new Unrepresentable({ message: `not a value of the model: ${error}` })
    )
  }
}

const empty: JsonObject = {}

/** Reads the params of a message. Params that are absent are read as `{}`. */
export const decodeParams = <P>(
  method: RequestMethod<P, unknown> | NotificationMethod<P>,
  revision: Revision,
  raw: JsonObject | undefined
): Result.Result<P, string> => decode(method.params, revision, raw ?? empty, "params")

/** Writes the params of a message. */
export const encodeParams = <P>(
  method: RequestMethod<P, unknown> | NotificationMethod<P>,
  revision: Revision,
  params: P
): Result.Result<JsonObject, Unrepresentable> =>
  encode(method.params, revision, params) as Result.Result<JsonObject, Unrepresentable>

/** What a request may be answered with, read. */
export type Answer<R> =
  | { readonly _tag: "Complete"; readonly result: R }
  | { readonly _tag: "InputRequired"; readonly result: InputRequiredResult }
  | { readonly _tag: "Task"; readonly result: Task.CreateTaskResult }
  | { readonly _tag: "LegacyTask"; readonly result: LegacyTask.CreateTaskResult }

/** What a request may be answered with, to be written. */
export type Writable<R> = R | InputRequiredResult | Task.CreateTaskResult | LegacyTask.CreateTaskResult | Encoded

type Kind = Answer<unknown>["_tag"]

const schemas = {
  InputRequired: InputRequiredResult,
  Task: Task.CreateTaskResult,
  LegacyTask: LegacyTask.CreateTaskResult
} as const

/** Which kind of answer it is, or a line that says why it is none that the method may have in the revision. */
const classify = (
  method: RequestMethod<unknown, unknown>,
  revision: Revision,
  raw: object
): Kind | { readonly error: string } => {
  if (revision < "2026-07-28") {
    return revision === "2025-11-25" && method.taskAugmented && "task" in raw && !("content" in raw) &&
        !("action" in raw)
      ? "LegacyTask"
      : "Complete"
  }
  const type: unknown = (raw as JsonObject)["resultType"]
  if (type === undefined || type === "complete") return "Complete"
  if (type === "input_required" && method.inputRequired) return "InputRequired"
  if (type === "task" && method.taskAnswered) return "Task"
  // An example of the extension's own shows this; its text says `complete`.
  if (type === "task" && method.name === "tasks/get") return "Complete"
  // Anything can stand there, and nest deeper than it could be shown.
  const shown = typeof type === "string" ? JSON.stringify(clip(type)) : `a value of type ${typeof type}`
  return { error: `result.resultType: ${shown} is no answer to ${method.name}` }
}

/** Reads an answer: the result, or what came in its place. */
export const decodeAnswer = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  raw: JsonObject
): Result.Result<Answer<R>, string> => {
  const kind = classify(method, revision, raw)
  if (typeof kind === "object") return Result.fail(kind.error)
  const schema: Schema.Codec<unknown, unknown> = kind === "Complete" ? method.result : schemas[kind]
  return Result.map(
    decode(schema, revision, raw, "result"),
    (result) => ({ _tag: kind, result }) as Answer<R>
  )
}

/** Reads the result of a request. Any other kind of answer is an error here: use {@link decodeAnswer} where one may come. */
export const decodeResult = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  raw: JsonObject
): Result.Result<R, string> =>
  Result.flatMap(decodeAnswer(method, revision, raw), (answer) =>
    answer._tag === "Complete"
      ? Result.succeed(answer.result)
      : Result.fail(`result: a result was expected, not an answer of the kind ${answer._tag}`))

/** Writes an answer. What is JSON text already passes through. */
export const encodeResult = <R>(
  method: RequestMethod<unknown, R>,
  revision: Revision,
  result: Writable<R>
): Result.Result<JsonObject | Encoded, Unrepresentable> => {
  if (result instanceof Encoded) return Result.succeed(result)
  if (!isObject(result)) return Result.fail(new Unrepresentable({ message: "a result is an object" }))
  const type = result["resultType"]
  // An answer that only the newest revision has must not be mistaken for a result of an older one.
  const kind = classify(
    method,
    type === "input_required" || type === "task" ? "2026-07-28" : revision,
    result as object
  )
  if (typeof kind === "object") return Result.fail(new Unrepresentable({ message: kind.error }))
  if (revision < "2026-07-28" && (kind === "InputRequired" || kind === "Task")) {
    return Result.fail(new Unrepresentable({ message: `${revision} has no answer with resultType "${String(type)}"` }))
  }
  const schema: Schema.Codec<unknown, unknown> = kind === "Complete" ? method.result : schemas[kind]
  return encode(schema, revision, result) as Result.Result<JsonObject, Unrepresentable>
}
