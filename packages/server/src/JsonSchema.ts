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
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "effect/StandardSchema"
import * as Validator from "./internal/validation/Validator.ts"

/** The bounds of a schema, and of what it costs to validate with it. */
export interface Options {
  /** How long the schema may be as JSON text, in UTF-16 units; 262,144 by default. */
  readonly maxSize?: number
  /** How deep its schemas may be nested; 64 by default. */
  readonly maxDepth?: number
  /** How many schemas it may hold, and how many of them may apply to one and the same value; 10,000 by default. */
  readonly maxSchemas?: number
  /**
   * How many steps one validation may take, about one for each schema that is applied to a value; 5,000,000 by default, which
   * is some tenths of a second. A value that needs more is refused.
   */
  readonly maxSteps?: number
  /**
   * Whether a `pattern` with look-around or a reference to a group is allowed; not by default. It is run by the engine of
   * JavaScript, which some such patterns keep busy for years with a short text: only for schemas that you trust.
   */
  readonly nativePatterns?: boolean
}

/** A JSON Schema that validates. It is a Standard Schema too, so that whatever takes one takes it. */
export interface JsonSchema<in out T> {
  readonly "~standard": StandardSchemaV1.Props<T, T> & StandardJSONSchemaV1.Props<T, T>
}

/** The dialects by their `$schema`. "Clients and servers MUST support JSON Schema 2020-12 for schemas without an explicit `$schema`." */
const dialects: ReadonlyMap<string, Validator.Dialect> = /* @__PURE__ */ new Map([
  ["json-schema.org/draft/2020-12/schema", "2020-12"],
  ["json-schema.org/draft-07/schema", "draft-07"]
])

const dialectOf = (schema: unknown): Validator.Dialect => {
  const uri = (schema as JsonObject | null)?.["$schema"]
  if (uri === undefined) return "2020-12"
  const dialect = dialects.get(String(uri).replace(/^https?:\/\//, "").replace(/#$/, ""))
  if (dialect !== undefined) return dialect
  throw new Validator.Unusable(
    `Its dialect ${JSON.stringify(uri).slice(0, 128)} is not supported: 2020-12 (the default) and draft-07 are`
  )
}

interface Compiled {
  /** What was given, as JSON. */
  readonly schema: Record<string, unknown>
  readonly node: Validator.Node
}

const textOf = (given: unknown): string => {
  try {
    const text: string | undefined = JSON.stringify(given)
    if (text !== undefined) return text
  } catch {
    // It refers to itself, or is nested without measure.
  }
  throw new Validator.Unusable("It cannot be written as JSON")
}

const compile = (given: unknown, maxSize: number, limits: Validator.Limits): Compiled => {
  const text = textOf(given)
  if (text.length > maxSize) throw new Validator.Unusable(`It is longer than ${maxSize} characters`)
  // A copy: nobody changes it later, and a member that is `undefined` is none.
  const schema = JSON.parse(text)
  return { schema, node: new Validator.Compiler(schema, dialectOf(schema), limits).compile() }
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
  const { maxDepth = 64, maxSchemas = 10_000, maxSize = 262_144, maxSteps = 5_000_000, nativePatterns = false } =
    options
  const limits: Validator.Limits = { maxDepth, maxSchemas, maxSteps, nativePatterns }
  let known: Compiled | undefined
  const compiled = (): Compiled => known ??= compile(schema, maxSize, limits)

  const validate = (value: unknown): StandardSchemaV1.Result<T> => {
    const issues = Validator.problemsOf(compiled().node, value, limits)
    return issues.length === 0 ? { value: value as T } : { issues }
  }
  const tell = () => compiled().schema
  return { "~standard": { version: 1, vendor: "skein", validate, jsonSchema: { input: tell, output: tell } } }
}
