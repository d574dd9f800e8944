/**
 * Standard Schemas (https://standardschema.dev): how they validate, and the JSON Schema that they tell.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** How many problems are told. */
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

const outcome = <A>(result: StandardSchemaV1.Result<A>): Result.Result<A, string> =>
  result.issues === undefined
    ? Result.succeed(result.value)
    : Result.fail(result.issues.slice(0, maxProblems).map(formatIssue).join("\n"))

/** Validates at once, or later where the schema does. */
export const validateStandard = <A>(
  schema: StandardSchemaV1<unknown, A>,
  value: unknown
): Result.Result<A, string> | PromiseLike<Result.Result<A, string>> => {
  const result = schema["~standard"].validate(value)
  return Predicate.isPromiseLike(result) ? result.then(outcome) : outcome(result)
}

/** Whether a value is a Standard Schema; those of some libraries are functions. */
export const isStandardSchema = (value: unknown): value is StandardSchemaV1 => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  const standard: unknown = (value as { readonly "~standard"?: unknown })["~standard"]
  return isObject(standard) && typeof standard["validate"] === "function"
}

/** Whether it was made by `JsonSchema.make`: such a schema is told to the letter. */
export const isVerbatim = (schema: StandardSchemaV1): boolean => schema["~standard"].vendor === "skein"

/** The JSON Schema of what goes in, or comes out. Throws what stands in the way. */
export const jsonSchemaOf = (schema: StandardSchemaV1, direction: "input" | "output"): JsonObject | boolean => {
  const { jsonSchema, vendor } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props> & {
    readonly vendor: string
  }
  if (jsonSchema === undefined) {
    throw new TypeError(`${vendor} tells no JSON Schema by itself: give one with StandardSchema.withJsonSchema`)
  }
  const text: string | undefined = JSON.stringify(jsonSchema[direction]({ target: "draft-2020-12" }))
  const told: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isObject(told) || typeof told === "boolean") return told
  throw new TypeError(`${vendor} tells no JSON Schema`)
}
