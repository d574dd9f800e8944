/**
 * Standard Schemas (https://standardschema.dev): validation, and their JSON Schema.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** The number of problems in one message. */
const maxProblems = 10

const formatIssue = ({ message, path = [] }: StandardSchemaV1.Issue): string => {
  if (path.length === 0) return message
  const at = path.map((segment) => JSON.stringify(keyOf(segment))).join("][")
  return `${message}\n  at [${at}]`
}

const keyOf = (segment: PropertyKey | StandardSchemaV1.PathSegment): string | number => {
  const key = typeof segment === "object" ? segment.key : segment
  return typeof key === "symbol" ? String(key) : key
}

const toResult = <A>(result: StandardSchemaV1.Result<A>): Result.Result<A, string> =>
  result.issues === undefined
    ? Result.succeed(result.value)
    : Result.fail(result.issues.slice(0, maxProblems).map(formatIssue).join("\n"))

/** The result for a value that a recursive schema cannot read because it is nested too deeply. Throws other errors. */
const refuseDepth = (error: unknown): Result.Result<never, string> => {
  if (Nesting.exceedsStack(error)) return Result.fail(`the value ${Nesting.problem}`)
  throw error
}

/** Validates a value: synchronously, or with a promise if the schema does so. */
export const validateStandard = <A>(
  schema: StandardSchemaV1<unknown, A>,
  value: unknown
): Result.Result<A, string> | PromiseLike<Result.Result<A, string>> => {
  try {
    const result = schema["~standard"].validate(value)
    return Predicate.isPromiseLike(result) ? result.then(toResult, refuseDepth) : toResult(result)
  } catch (error) {
    return refuseDepth(error)
  }
}

/** Whether a value is a Standard Schema. Some libraries implement it with functions. */
export const isStandardSchema = (value: unknown): value is StandardSchemaV1 => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  const standard: unknown = (value as { readonly "~standard"?: unknown })["~standard"]
  return isObject(standard) && typeof standard["validate"] === "function"
}

/** Whether a schema was made by `JsonSchema.make`. Clients receive such a schema unchanged. */
export const isVerbatim = (schema: StandardSchemaV1): boolean => schema["~standard"].vendor === "skein"

/** Returns the JSON Schema of the input or the output of a schema. Throws if the library does not provide it. */
export const jsonSchemaOf = (schema: StandardSchemaV1, direction: "input" | "output"): JsonObject | boolean => {
  const { jsonSchema, vendor } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props> & {
    readonly vendor: string
  }
  if (jsonSchema === undefined) {
    throw new TypeError(`${vendor} schemas do not provide JSON Schema; pass one with StandardSchema.withJsonSchema`)
  }
  const text: string | undefined = JSON.stringify(jsonSchema[direction]({ target: "draft-2020-12" }))
  const parsed: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isObject(parsed) || typeof parsed === "boolean") return parsed
  throw new TypeError(`the JSON Schema of the ${vendor} schema is neither an object nor a boolean`)
}
