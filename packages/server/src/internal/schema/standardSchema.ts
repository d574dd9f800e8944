/**
 * Standard Schemas (https://standardschema.dev): validation, and their JSON Schema.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** The number of problems in one message. */
const maxProblems = 10

/** The number of keys in the path of one problem. */
const maxKeys = 64

/** A value, a promise of it, or an effect that computes it. */
export type Later<A> = A | PromiseLike<A> | Effect.Effect<A>

const formatIssue = ({ message, path = [] }: StandardSchemaV1.Issue): string => {
  if (path.length === 0) return message
  // Each key is shortened: together they may be as long as the value.
  const at = path.slice(0, maxKeys).map((segment) => writeKey(keyOf(segment))).join("][")
  return `${message}\n  at [${at}]`
}

const writeKey = (key: string | number): string => typeof key === "string" ? quote(key) : String(key)

const keyOf = (segment: PropertyKey | StandardSchemaV1.PathSegment): string | number => {
  const key = typeof segment === "object" ? segment.key : segment
  return typeof key === "symbol" ? String(key) : key
}

/** The issues of a value, never empty. */
export type Issues = ReadonlyArray<StandardSchemaV1.Issue>

/** Writes issues as lines. */
export const formatIssues = (issues: Issues): string => issues.slice(0, maxProblems).map(formatIssue).join("\n")

/** The first issue of each member of the value, by the key of the member. */
export const memberIssues = (issues: Issues): { readonly [key: string]: string } =>
  Object.fromEntries(
    issues.flatMap(({ message, path = [] }) => path.length === 0 ? [] : [[String(keyOf(path[0]!)), message]])
      .toReversed()
  )

const toResult = <A>(result: StandardSchemaV1.Result<A>): Result.Result<A, Issues> =>
  result.issues === undefined ? Result.succeed(result.value) : Result.fail(result.issues)

/** The result for a value that a recursive schema cannot read because it is nested too deeply. Throws other errors. */
const refuseDepth = (error: unknown): Result.Result<never, Issues> => {
  if (Nesting.exceedsStack(error)) return Result.fail([{ message: `the value ${Nesting.problem}` }])
  throw error
}

/** Starts the validation of a value. Returns an effect if the value is so large that the validation must pause. */
export type StartValidation<A> = (
  value: unknown
) => StandardSchemaV1.Result<A> | Effect.Effect<StandardSchemaV1.Result<A>>

/** The member of a schema from `JsonSchema.make` whose validation can be interrupted, unlike a promise. */
export const startValidation: unique symbol = Symbol.for("@skein/server/JsonSchema/startValidation")

/** A schema from `JsonSchema.make`. */
export interface Startable<A> {
  readonly [startValidation]: StartValidation<A>
}

/** Validates a value: synchronously, with a promise if the schema does so, or with an effect for `JsonSchema`. */
export const findIssues = <A>(
  schema: StandardSchemaV1<unknown, A> & Partial<Startable<A>>,
  value: unknown
): Later<Result.Result<A, Issues>> => {
  const start = schema[startValidation]
  if (start !== undefined) {
    return mapLater(start(value), toResult)
  }
  try {
    const result = schema["~standard"].validate(value)
    return Predicate.isPromiseLike(result) ? result.then(toResult, refuseDepth) : toResult(result)
  } catch (error) {
    return refuseDepth(error)
  }
}

const toText = <A>(result: Result.Result<A, Issues>): Result.Result<A, string> => Result.mapError(result, formatIssues)

/** Validates a value as `findIssues` does, and fails with the issues as lines. */
export const validateStandard = <A>(
  schema: StandardSchemaV1<unknown, A> & Partial<Startable<A>>,
  value: unknown
): Later<Result.Result<A, string>> => mapLater(findIssues(schema, value), toText)

/** Applies a function to a value, as soon as it is there. */
export const mapLater = <A, B>(value: Later<A>, change: (value: A) => B): Later<B> => {
  if (Effect.isEffect(value)) return Effect.map(value as Effect.Effect<A>, change)
  return Predicate.isPromiseLike(value) ? value.then(change) : change(value)
}

/** Waits for a value. A rejection is a defect. */
export const settle = <A>(value: Later<A>): Effect.Effect<A> =>
  Effect.isEffect(value)
    ? value as Effect.Effect<A>
    : Predicate.isPromiseLike(value)
    ? Effect.promise(() => value as Promise<A>)
    : Effect.succeed(value)

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
