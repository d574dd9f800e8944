/**
 * Reads the arguments of tools and writes their structured content, by a Standard Schema. It needs nothing of Effect's
 * Schema, so that a server whose schemas are of another library starts without it.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as Result from "effect/Result"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as jsonSchema from "./jsonSchema.ts"
import * as standardSchema from "./standardSchema.ts"

/** Reads the arguments of a call. */
export interface Reader<out A> {
  /** Makes the JSON Schema for clients. Throws if the schema has none. */
  readonly jsonSchema: () => ObjectSchema
  /** Compiles the function that decodes the arguments, or returns a message about their faults. */
  readonly compile: () => (value: unknown) => standardSchema.Later<Result.Result<A, string>>
  /**
   * Compiles the function that encodes arguments as a client sends them, for code that starts a call itself. Without it
   * they are sent as their JSON.
   */
  readonly encoder?: (() => (args: unknown) => Result.Result<unknown, string>) | undefined
}

/** Writes the structured content of a result. */
export interface Writer<in A> {
  /** Makes the JSON Schema for clients. Throws if the schema has none. */
  readonly jsonSchema: () => JsonObject
  /** Compiles the function that encodes or validates a value. It returns the value to send, or a message about its faults. */
  readonly compile: () => (value: A) => standardSchema.Later<Result.Result<unknown, string>>
  /** Compiles the function that decodes the structured content again. Without it the content is the value. */
  readonly decoder?: (() => (content: unknown) => Result.Result<unknown, string>) | undefined
}

/** The values that a schema of another library validates: it looks for every fault before it returns. */
const maxValues = 100_000

/** Makes the reader of arguments. */
export const standardReader = (schema: StandardSchemaV1): Reader<unknown> => {
  const isVerbatim = standardSchema.isVerbatim(schema)
  return {
    jsonSchema: () => jsonSchema.objectOf(standardSchema.jsonSchemaOf(schema, "input"), isVerbatim),
    compile: () => (value) =>
      isVerbatim || Nesting.holdsAtMost(value, maxValues)
        ? standardSchema.validateStandard(schema, value)
        : Result.fail(`the arguments have more than ${maxValues} values`)
  }
}

/** Makes the writer of structured content. */
export const standardWriter = (schema: StandardSchemaV1): Writer<unknown> => ({
  jsonSchema: () => jsonSchema.anyOf(standardSchema.jsonSchemaOf(schema, "output"), standardSchema.isVerbatim(schema)),
  compile: () => (value) => standardSchema.validateStandard(schema, value)
})
