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

/** The schemas to use instead of those that have no JSON Schema, by the type that Zod gives them. */
const remedies: { readonly [type: string]: string } = {
  date: "use z.iso.datetime(), or z.codec(z.iso.datetime(), z.date(), …) to have a Date in the handler",
  bigint: "use z.int(), or z.string() for larger numbers",
  map: "use z.record()",
  set: "use z.array()",
  undefined: "use .optional() of another schema",
  symbol: "use z.string()",
  function: "leave it out",
  nan: "use z.number()",
  custom: "use a schema of a type that JSON has",
  transform: "add .pipe() with the schema of the result"
}

/** The place of a schema in a JSON Schema, as the member of the value: `order.at`, `list[].at`. */
const memberOf = (path: ReadonlyArray<string | number>): string => {
  let member = ""
  for (let at = 0; at < path.length; at++) {
    if (path[at] === "properties") member += `${member === "" ? "" : "."}${String(path[++at])}`
    else if (path[at] === "items" || path[at] === "prefixItems") member += "[]"
    else if (path[at] === "additionalProperties") member += ".*"
  }
  return member
}

/**
 * Finds the first part of a schema that has no JSON Schema, and says what to use instead. The error of Zod names the type and
 * not the place, so that the schema is converted again with an observer of its parts. `undefined` for other libraries.
 */
const findUnrepresentable = (
  jsonSchema: StandardJSONSchemaV1.Props["jsonSchema"],
  direction: "input" | "output"
): string | undefined => {
  let found: string | undefined
  const override = (part: {
    readonly zodSchema?: { readonly _zod?: { readonly def?: { readonly type?: string } } }
    readonly jsonSchema?: unknown
    readonly path?: ReadonlyArray<string | number>
  }): void => {
    const type = part.zodSchema?._zod?.def?.type
    if (type === undefined || !Object.hasOwn(remedies, type)) return
    if (!isObject(part.jsonSchema) || Object.keys(part.jsonSchema).length > 0) return
    const member = memberOf(part.path ?? [])
    found = member === "" ? remedies[type] : `at ${quote(member)}, ${remedies[type]}`
  }
  try {
    jsonSchema[direction]({ target: "draft-2020-12", libraryOptions: { unrepresentable: "any", override } })
  } catch {
    return undefined
  }
  return found
}

/** Returns the JSON Schema of the input or the output of a schema. Throws if the library does not provide it. */
export const jsonSchemaOf = (schema: StandardSchemaV1, direction: "input" | "output"): JsonObject | boolean => {
  const { jsonSchema, vendor } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props> & {
    readonly vendor: string
  }
  if (jsonSchema === undefined) {
    throw new TypeError(`${vendor} schemas do not provide JSON Schema; pass one with withJsonSchema`)
  }
  let made: unknown
  try {
    made = jsonSchema[direction]({ target: "draft-2020-12" })
  } catch (error) {
    const place = findUnrepresentable(jsonSchema, direction)
    if (place === undefined) throw error
    throw new TypeError(`${(error as Error).message}: ${place}`, { cause: error })
  }
  const text: string | undefined = JSON.stringify(made)
  const parsed: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isObject(parsed) || typeof parsed === "boolean") return parsed
  throw new TypeError(`the JSON Schema of the ${vendor} schema is neither an object nor a boolean`)
}
