/**
 * Schemas of other libraries, by the Standard Schema interface: Zod, Valibot, ArkType and many more.
 *
 * A tool takes them as they are where they tell their JSON Schema too (Standard JSON Schema: Zod since 4.2, ArkType). For the
 * others the JSON Schema is given beside. What takes its time to validate may: a call waits for it.
 *
 * Most of these libraries look for every fault before they answer: a million wrong members of a list take some of them seconds,
 * where Effect Schema and `JsonSchema` end at the first few. So arguments that they read are bounded by the tool's `maxValues`.
 *
 * @example
 * const Input = v.object({ city: v.string() })
 * const tool = Tool.make("forecast", { input: StandardSchema.withJsonSchema(Input, toJsonSchema(Input)) })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"

/** A Standard Schema that tells its JSON Schema. */
export interface WithJsonSchema<in out Input, in out Output> {
  readonly "~standard": StandardSchemaV1.Props<Input, Output> & StandardJSONSchemaV1.Props<Input, Output>
}

/**
 * Gives a Standard Schema the JSON Schema that clients are told. It validates as before: that both mean the same is for whoever
 * writes them. Where what comes out of the schema is not what goes in, `output` describes it; for the `output` of a tool that is
 * what clients get.
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
