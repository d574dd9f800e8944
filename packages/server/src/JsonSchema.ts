/**
 * JSON Schema as it is, for definitions that have one already: from a file, another server, or a generator.
 *
 * A tool takes it like any other schema. It is told to clients as it was given, and what comes in and goes out is validated by
 * it, with no `eval`.
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
import * as Result from "effect/Result"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** The bounds of a schema, and of what it costs to validate with it. */
export interface Options extends SchemaValidation.Options {}

/** A JSON Schema that validates. It is a Standard Schema too, so that whatever takes one takes it. */
export interface JsonSchema<in out T> {
  readonly "~standard": StandardSchemaV1.Props<T, T> & StandardJSONSchemaV1.Props<T, T>
}

/**
 * Takes a JSON Schema of 2020-12, or of draft-07 where its `$schema` says so. `T` is what the values are by your word: a JSON
 * object unless it is given.
 *
 * What cannot be used fails the layer of the definition, with its name: what breaks the rules of its dialect or says another
 * one; a reference that leads out of the schema (`#…` alone is followed) or nowhere, or round in a circle; an `$id` inside; a
 * `pattern` with look-around or a reference to a group (see `nativePatterns`); what is beyond the bounds of the options.
 * `format` and the `content…` keywords describe, and are not checked (2020-12, "Format-Annotation Vocabulary").
 *
 * Values are refused with the first ten faults. Patterns, `uniqueItems` and all else take time linear in the value.
 */
export const make = <T = JsonObject>(schema: JsonObject | boolean, options: Options = {}): JsonSchema<T> => {
  let known: SchemaValidation.Validation | undefined
  const compiled = () => known ??= Result.getOrThrow(SchemaValidation.compile(schema, options))

  const validate = (value: unknown): StandardSchemaV1.Result<T> => {
    const issues = compiled().problems(value)
    return issues.length === 0 ? { value: value as T } : { issues }
  }
  const tell = () => compiled().schema as Record<string, unknown>
  return { "~standard": { version: 1, vendor: "skein", validate, jsonSchema: { input: tell, output: tell } } }
}
