/**
 * Schemas of other libraries with the Standard Schema interface, such as Zod, Valibot and ArkType.
 *
 * A tool accepts such a schema directly if it also provides JSON Schema (Standard JSON Schema: Zod since 4.2, ArkType).
 * For other libraries pass the JSON Schema with `withJsonSchema`. A schema may validate asynchronously; the call waits
 * for it.
 *
 * Most of these libraries look for every fault before they return. For a list with a million invalid items some of them
 * need seconds, where Effect Schema and `JsonSchema` stop after the first few. A tool therefore refuses arguments of more
 * than 100,000 values for such a schema.
 *
 * @example
 * const Input = v.object({ city: v.string() })
 * const tool = Tool.make("forecast", { input: StandardSchema.withJsonSchema(Input, toJsonSchema(Input)) })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** A Standard Schema that provides its JSON Schema. */
export interface WithJsonSchema<in out Input, in out Output> {
  readonly "~standard": StandardSchemaV1.Props<Input, Output> & StandardJSONSchemaV1.Props<Input, Output>
}

/**
 * Adds the JSON Schema for clients to a Standard Schema. The validation does not change; the author ensures that both
 * mean the same. If the output type of the schema differs from its input type, pass the JSON Schema of the output too.
 * Clients receive that one for the `output` of a tool.
 *
 * @example
 * const tool = Tool.make("forecast", { input: StandardSchema.withJsonSchema(Input, toJsonSchema(Input)) })
 */
export const withJsonSchema = <Input, Output>(
  schema: StandardSchemaV1<Input, Output>,
  input: JsonObject,
  output: JsonObject = input
): WithJsonSchema<Input, Output> => {
  const standard = schema["~standard"]
  return {
    "~standard": {
      version: 1,
      vendor: standard.vendor,
      validate: (value, options) => standard.validate(value, options),
      jsonSchema: { input: () => ({ ...input }), output: () => ({ ...output }) }
    }
  }
}
