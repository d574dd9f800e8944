/**
 * Reads the arguments of tools and writes their structured content, by an Effect Schema or a Standard Schema.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as effectSchema from "./effectSchema.ts"
import { type Reader, standardReader, standardWriter, type Writer } from "./standardReader.ts"
import * as standardSchema from "./standardSchema.ts"

export type { Reader, Writer } from "./standardReader.ts"

/** An Effect Schema that reads or writes JSON and needs no services. */
export type Codec = Schema.ConstraintCodec<unknown, unknown>

/**
 * A schema of arguments or structured content: an Effect Schema, the fields of a struct, a Standard Schema of another
 * library that has a JSON Schema (see `StandardSchema`), or JSON Schema itself (see `JsonSchema.make`).
 */
export type AnySchema = Codec | StandardSchemaV1 | {
  /** Fields of other libraries are accepted here, so that `Checked` can name the mistake. */
  readonly [name: string]: Codec | StandardSchemaV1
}

/** The values that a schema, or the fields of a struct, read. */
export type TypeOf<S> = S extends Codec ? S["Type"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/** Values that are not objects. */
export type NoObject = string | number | boolean | bigint | symbol | null | undefined | ReadonlyArray<unknown>

/** A type that every schema has, or else a text that the compiler shows: what is wrong with the schema. */
export type Checked<S, Place extends "input" | "output"> = S extends Codec ? CheckedObject<S["Encoded"], Place>
  : S extends StandardSchemaV1 ? CheckedObject<StandardSchemaV1.InferInput<S>, Place>
  : S extends { readonly [name: string]: Codec } ? unknown
  : `The fields of \`${Place}\` are not all Effect Schemas. For another library, pass the schema of the whole object, such as z.object({ … })`

type CheckedObject<A, Place extends "input" | "output"> = Place extends "output" ? unknown
  // `unknown`, `any` and `never` say nothing.
  : unknown extends A ? unknown
  : [A] extends [never] ? unknown
  : [A] extends [NoObject] ? "The `input` of a tool must be an object: its arguments have names"
  : unknown

/**
 * Returns the Effect Schema for a schema or the fields of a struct. Throws for other values, which untyped programs may
 * pass.
 */
export const schemaOf = (schema: unknown): Codec => {
  if (Schema.isSchema(schema)) return schema as unknown as Codec
  if (!isObject(schema)) throw new TypeError("expected a schema or the fields of a struct")
  for (const [name, field] of Object.entries(schema)) {
    if (Schema.isSchema(field)) continue
    const problem = standardSchema.isStandardSchema(field)
      ? "is a schema of its own: pass the schema of the whole object, such as z.object({ … })"
      : name === "type" || name === "properties"
      ? "is not a schema: for JSON Schema, use jsonSchema of skein, or JsonSchema.make of @skein/server"
      : "is not a schema"
    throw new TypeError(`the field ${JSON.stringify(name)} ${problem}`)
  }
  return Schema.Struct(schema as Schema.Struct.Fields) as unknown as Codec
}

/** An Effect Schema that was also made a Standard Schema counts as an Effect Schema. */
export const isForeign = (schema: unknown): schema is StandardSchemaV1 =>
  !Schema.isSchema(schema) && standardSchema.isStandardSchema(schema)

/** Makes the reader of arguments. */
export const reader = (schema: AnySchema): Reader<unknown> =>
  isForeign(schema) ? standardReader(schema) : {
    jsonSchema: () => effectSchema.input(schemaOf(schema)),
    compile: () => decoder(Schema.toCodecJson(schemaOf(schema))),
    encoder: () => encoder(schema)
  }

export const writer = (schema: AnySchema): Writer<unknown> =>
  isForeign(schema) ? standardWriter(schema) : {
    jsonSchema: () => effectSchema.output(schemaOf(schema)),
    compile: () => encoder(schema),
    decoder: () => decoder(Schema.toCodecJson(schemaOf(schema)))
  }

/** Compiles the function that encodes a value, or returns a message about its faults. */
const encoder = (schema: AnySchema): (value: unknown) => Result.Result<unknown, string> => {
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(schemaOf(schema)))
  return (value) => Result.mapError(encode(value), ({ message }) => message)
}

/**
 * The largest number of values in which all problems are searched for. Larger inputs are reported with their first
 * problem.
 */
const maxValuesForAllProblems = 10_000

/**
 * Compiles the function that decodes a value. Validation stops at the first problem, because a body may have a million
 * of them. Only a small value is decoded a second time, to report all of its problems.
 */
export const decoder = <A>(
  schema: Schema.ConstraintCodec<A, unknown>
): (value: unknown) => Result.Result<A, string> => {
  const decode = Schema.decodeUnknownResult(schema)
  let all: typeof decode | undefined
  return Nesting.refusing((value: unknown): Result.Result<A, string> => {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
    if (!Nesting.holdsAtMost(value, maxValuesForAllProblems)) return Result.fail(decoded.failure.message)
    const again = (all ??= Schema.decodeUnknownResult(schema, { errors: "all" }))(value)
    return Result.fail((Result.isFailure(again) ? again : decoded).failure.message)
  }, () => Result.fail(`the value ${Nesting.problem}`))
}
