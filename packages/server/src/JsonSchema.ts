/**
 * JSON Schema for definitions that have one already: from a file, another server, or a generator.
 *
 * A tool accepts it like any other schema. Clients receive it unchanged. Arguments and results are validated by it,
 * without `eval`.
 *
 * @example
 * const forecast = Tool.make("forecast", {
 *   input: JsonSchema.make<{ readonly city: string }>({
 *     type: "object",
 *     properties: { city: { type: "string", minLength: 1 } },
 *     required: ["city"]
 *   })
 * })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as effectSchema from "./internal/schema/effectSchema.ts"
import { type Startable, type StartValidation, startValidation } from "./internal/schema/standardSchema.ts"

/** The bounds of a schema and of the cost of a validation. */
export type Options = SchemaValidation.Options

/** A JSON Schema that validates. It is also a Standard Schema, for use with other libraries. */
export interface JsonSchema<in out T> {
  readonly "~standard": StandardSchemaV1.Props<T, T> & StandardJSONSchemaV1.Props<T, T>
}

/**
 * Makes a schema from a JSON Schema of 2020-12, or of draft-07 with the `$schema` of that draft. `T` is the type of the
 * values, which you assert: a JSON object by default.
 *
 * A schema that cannot be used fails the layer of its definition with `DefinitionError` `InvalidSchema`. Such a schema
 * - is invalid in its dialect, or has another dialect;
 * - has a reference out of the schema (only `#…` is followed), to nothing, or in a circle;
 * - has a nested `$id`;
 * - has a `pattern` with look-around or a back reference (see `nativePatterns`);
 * - or exceeds a bound of the options.
 *
 * `format` and the `content…` keywords are annotations and not checked (2020-12, "Format-Annotation Vocabulary").
 *
 * An invalid value is refused with its first ten faults. A validation, including patterns and `uniqueItems`, takes
 * bounded time, in proportion to the sizes of the schema and the value. For a large value it yields to the event loop.
 *
 * @example
 * const schema = JsonSchema.make<{ readonly id: string }>({
 *   type: "object",
 *   properties: { id: { type: "string" } },
 *   required: ["id"]
 * })
 */
export const make = <T = JsonObject>(schema: JsonObject | boolean, options: Options = {}): JsonSchema<T> => {
  let compiled: SchemaValidation.Validation | undefined
  const compile = () => compiled ??= Result.getOrThrow(SchemaValidation.compile(schema, options))

  const resultOf = (value: unknown, issues: ReadonlyArray<SchemaValidation.Problem>): StandardSchemaV1.Result<T> =>
    issues.length === 0 ? { value: value as T } : { issues }
  const start: StartValidation<T> = (value) => {
    const found = compile().start(value)
    return Effect.isEffect(found) ? Effect.map(found, (issues) => resultOf(value, issues)) : resultOf(value, found)
  }
  const validate = (value: unknown): StandardSchemaV1.Result<T> | Promise<StandardSchemaV1.Result<T>> => {
    const found = start(value)
    return Effect.isEffect(found) ? Effect.runPromise(found) : found
  }
  const toJsonSchema = () => compile().schema as Record<string, unknown>
  const made: JsonSchema<T> & Startable<T> = {
    [startValidation]: start,
    "~standard": { version: 1, vendor: "skein", validate, jsonSchema: { input: toJsonSchema, output: toJsonSchema } }
  }
  return made
}

/**
 * Returns the JSON Schema of the arguments that an Effect Schema reads, as lists of tools have it. Throws a `TypeError` if
 * the schema has no JSON Schema, or is not that of an object.
 *
 * @example
 * const { properties } = JsonSchema.ofArguments(Schema.Struct({ id: Schema.Int }))
 */
export const ofArguments = (schema: Schema.Constraint): ObjectSchema => effectSchema.input(schema)

/**
 * Returns the JSON Schema of the structured content that an Effect Schema writes, as lists of tools have it. Throws a
 * `TypeError` if the schema has no JSON Schema.
 *
 * @example
 * const described = JsonSchema.ofResult(Schema.Struct({ total: Schema.Number }))
 */
export const ofResult = (schema: Schema.Constraint): JsonObject => effectSchema.output(schema)
