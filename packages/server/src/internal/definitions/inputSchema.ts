/**
 * What goes into a tool and what comes out, whatever describes it: an Effect Schema or a Standard Schema.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as jsonSchema from "./jsonSchema.ts"
import * as standard from "./standardSchema.ts"

/** What may be there later. */
export type Soon<A> = A | PromiseLike<A>

/** Reads the arguments of a call. */
export interface Reader<out A> {
  /** The JSON Schema that clients are told. Throws where there is none. */
  readonly jsonSchema: () => ObjectSchema
  /** Makes the function that reads, or says what is wrong. */
  readonly compile: () => (value: unknown) => Soon<Result.Result<A, string>>
}

/** Writes the structured content of a result. */
export interface Writer<in A> {
  /** The JSON Schema that clients are told. Throws where there is none. */
  readonly jsonSchema: () => JsonObject
  /** Whether it is of another library, and may take its time. */
  readonly foreign: boolean
  /** Makes the function that writes. It throws, or is rejected, where the value does not fit. */
  readonly compile: () => (value: A) => Soon<unknown>
}

type Codec = Schema.ConstraintCodec<unknown, unknown>

/** A schema of any kind, or the fields of a struct. */
export type AnySchema = Codec | StandardSchemaV1 | { readonly [name: string]: Codec }

/** The schema that is meant. Throws where there is none, for those who write without types. */
const schemaOf = (shape: Exclude<AnySchema, StandardSchemaV1>): Codec => {
  if (Schema.isSchema(shape)) return shape as Codec
  if (!isObject(shape)) throw new TypeError("This is neither a schema nor the fields of one")
  for (const [name, field] of Object.entries(shape)) {
    if (Schema.isSchema(field)) continue
    const advice = standard.isStandardSchema(field)
      ? "; of other libraries give the schema of the whole object"
      : name === "type" || name === "properties"
      ? "; give JSON Schema with JsonSchema.make"
      : ""
    throw new TypeError(`The field ${JSON.stringify(name)} is no Effect Schema${advice}`)
  }
  return Schema.Struct(shape as Schema.Struct.Fields) as unknown as Codec
}

/** An Effect Schema may be made a Standard Schema too, and stays what it is. */
const isForeign = (shape: AnySchema): shape is StandardSchemaV1 =>
  !Schema.isSchema(shape) && standard.isStandardSchema(shape)

/**
 * The reader of a shape. The libraries of others look for every fault before they answer, so what they read is bounded to
 * `maxValues`.
 */
export const reader = (shape: AnySchema, maxValues: number): Reader<unknown> => {
  if (isForeign(shape)) {
    const bound = standard.isVerbatim(shape) ? Infinity : maxValues
    return {
      jsonSchema: () => jsonSchema.objectOf(standard.jsonSchemaOf(shape, "input"), standard.isVerbatim(shape)),
      compile: () => (value) =>
        bound === Infinity || holdsAtMost(value, bound)
          ? standard.validateStandard(shape, value)
          : Result.fail(`They hold more than ${bound} values`)
    }
  }
  return {
    jsonSchema: () => jsonSchema.input(schemaOf(shape)),
    compile: () => decoder(Schema.toCodecJson(schemaOf(shape)))
  }
}

export const writer = (shape: AnySchema): Writer<unknown> => {
  if (isForeign(shape)) {
    return {
      foreign: true,
      jsonSchema: () => jsonSchema.anyOf(standard.jsonSchemaOf(shape, "output"), standard.isVerbatim(shape)),
      compile: () => (value) => {
        const validated = standard.validateStandard(shape, value)
        return Predicate.isPromiseLike(validated) ? validated.then(orThrow) : orThrow(validated)
      }
    }
  }
  return {
    foreign: false,
    jsonSchema: () => jsonSchema.output(schemaOf(shape)),
    compile: () => Schema.encodeUnknownSync(Schema.toCodecJson(schemaOf(shape)))
  }
}

const orThrow = (result: Result.Result<unknown, string>): unknown => {
  if (Result.isFailure(result)) throw new Error(result.failure)
  if (result.success === undefined) throw new Error("The structured content is undefined, which JSON cannot say")
  return result.success
}

/** How many values all problems are looked for in. Of more, the first problem is told. */
const few = 10_000

/** Whether a value holds, with itself and all that is inside, at most so many values. Takes no longer than that. */
export const holdsAtMost = (value: unknown, most: number): boolean => {
  const left = [value ?? null]
  let count = 1
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (Array.isArray(next)) {
      if ((count += next.length) > most) return false
      for (const item of next) left.push(item ?? null)
    } else if (isObject(next)) {
      for (const key in next) {
        if (++count > most) return false
        left.push(next[key] ?? null)
      }
    }
  }
  return true
}

/**
 * The function that reads a value, compiled once. Validation ends at the first problem: a body may hold a million of them. Only
 * a small value is read again, to tell all that is wrong with it.
 */
export const decoder = <A>(
  schema: Schema.ConstraintCodec<A, unknown>
): (value: unknown) => Result.Result<A, string> => {
  const decode = Schema.decodeUnknownResult(schema)
  let all: typeof decode | undefined
  return (value) => {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
    if (!holdsAtMost(value, few)) return Result.fail(decoded.failure.message)
    const again = (all ??= Schema.decodeUnknownResult(schema, { errors: "all" }))(value)
    return Result.fail((Result.isFailure(again) ? again : decoded).failure.message)
  }
}
