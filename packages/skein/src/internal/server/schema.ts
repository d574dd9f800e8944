/**
 * Schemas of tools, prompts and templates: those of other libraries, and JSON Schema.
 */
import * as Core from "@skein/server/JsonSchema"
import * as CoreStandardSchema from "@skein/server/StandardSchema"
import type { InputOf, JsonSchema, OutputOf, StandardSchema } from "../base/types.ts"
import type { JsonObject } from "../base/messages.ts"

/**
 * The schema of a whole object, such as `z.object({ … })`, of a library with Standard Schema. The library must have the JSON
 * Schema of its schemas (Zod since 4.2, ArkType); `withJsonSchema` adds it for others, such as Valibot. `jsonSchema` makes one
 * of JSON Schema.
 */
export type AnySchema = StandardSchema | {
  /** Fields are accepted here, so that `CheckedSchema` can name the mistake. */
  readonly [name: string]: StandardSchema
}

/** The values that a schema reads, or `{}` without a schema. */
export type ReadBy<S> = S extends StandardSchema ? InputOf<S> : {}

/** The values that a schema of structured content takes, or `never` without a schema. */
export type WrittenBy<S> = [S] extends [never] ? never : S extends StandardSchema ? OutputOf<S> : never

/** Values that are not objects. */
type NoObject = string | number | boolean | bigint | symbol | null | undefined | ReadonlyArray<unknown>

/** A type that every schema has, or else a text that the compiler shows: what is wrong with the schema. */
export type CheckedSchema<S, Place extends "input" | "output"> = S extends StandardSchema
  ? CheckedObject<OutputOf<S>, Place>
  : {} extends S ? unknown
  : `Pass the schema of the whole \`${Place}\`, such as z.object({ … }), and not its fields`

type CheckedObject<A, Place extends "input" | "output"> = Place extends "output" ? unknown
  // `unknown`, `any` and `never` say nothing.
  : unknown extends A ? unknown
  : [A] extends [never] ? unknown
  : [A] extends [NoObject] ? "The `input` of a tool must be an object: its arguments have names"
  : unknown

/**
 * A type that every schema of named texts has, or else a text that the compiler shows. `Names` are the names that the values
 * may have, and `Value` is the type of a value before it is decoded.
 */
export type CheckedTexts<S, Place extends string, Names extends PropertyKey, Value> = S extends StandardSchema
  ? CheckedNames<OutputOf<S>, Place, Names, Value>
  : {} extends S ? unknown
  : `Pass the schema of the whole \`${Place}\`, such as z.object({ … }), and not its fields`

type CheckedNames<A, Place extends string, Names extends PropertyKey, Value> = unknown extends A ? unknown
  : [A] extends [NoObject] ? `The \`${Place}\` must be an object: they have names`
  : [Exclude<keyof A, Names>] extends [never] ? [NotText<A, Value>] extends [never] ? unknown
    : `\`${NotText<A, Value>}\` of \`${Place}\` does not read text: a client sends every value as text`
  : `The template has no variable ${Exclude<keyof A, Names> & string}`

/** The names of the values that do not accept text. `unknown` is the input of schemas that convert, such as z.coerce. */
type NotText<A, Value> = {
  [Name in keyof A]-?: unknown extends A[Name] ? never : A[Name] extends Value ? never : Name & string
}[keyof A]

/** The bounds of a JSON Schema and of the cost of a validation. */
export interface JsonSchemaOptions {
  /** The most characters of the schema as JSON text: 262,144 by default. A longer schema is refused. */
  readonly maxSchemaChars?: number | undefined
  /**
   * The most steps of one validation, about one for each subschema that is applied to a value: 1,000,000 by default, and 10 in
   * addition for each character of the schema and of the value as JSON text. A value that needs more is refused.
   */
  readonly maxSteps?: number | undefined
  /**
   * Allows a `pattern` with look-around or a back reference, which can take years for a short text: not by default. Allow it
   * only for schemas that you trust.
   */
  readonly nativePatterns?: boolean | undefined
}

/**
 * Makes a schema of a JSON Schema of 2020-12, or of draft-07 with the `$schema` of that draft. `T` is the type of the values,
 * which you assert: a JSON object by default. Clients receive the schema unchanged.
 *
 * A schema that cannot be used fails the start of the server: one that is not valid, has a reference out of itself, or a
 * `pattern` with look-around or a back reference. `format` is not checked. A validation takes bounded time.
 *
 * @example
 * const input = jsonSchema<{ readonly id: string }>({
 *   type: "object",
 *   properties: { id: { type: "string" } },
 *   required: ["id"]
 * })
 */
export const jsonSchema: <T = JsonObject>(
  schema: JsonSchema | boolean,
  options?: JsonSchemaOptions
) => StandardSchema<T> = Core.make as never

/**
 * Adds the JSON Schema for clients to a schema of a library that has none, such as Valibot. The validation does not change;
 * the author ensures that both mean the same. If the output type of the schema differs from its input type, pass the JSON
 * Schema of the output too: clients receive that one for the `output` of a tool.
 *
 * @example
 * const Input = v.object({ city: v.string() })
 * server.tool("forecast", { input: withJsonSchema(Input, toJsonSchema(Input)) }, ({ city }) => forecast(city))
 */
export const withJsonSchema: <Input, Output>(
  schema: StandardSchema<Input, Output>,
  input: JsonSchema,
  output?: JsonSchema
) => StandardSchema<Input, Output> = CoreStandardSchema.withJsonSchema as never
