/**
 * Validates values by an untrusted JSON Schema: the schema of a tool, of an elicitation, or any other that a peer sent.
 *
 * {@link compile} reads a schema once, within bounds, and returns a function that validates values. There is no `eval`.
 * A `$ref` to another document is refused and never loaded ("Implementations MUST NOT automatically dereference `$ref`
 * values that resolve to a network URI", 2026-07-28). Patterns take linear time, and one validation takes a bounded
 * number of steps ("Implementations SHOULD apply reasonable bounds").
 *
 * **Gotchas.** `format` and the `content…` keywords are annotations and are not checked (2020-12, "Format-Annotation
 * Vocabulary").
 *
 * @example
 * const { problems } = Result.getOrThrow(SchemaValidation.compile({ type: "object", required: ["sum"] }))
 * problems({ sum: 1 }) // []
 * problems({}) // [{ message: "Missing key", path: ["sum"] }]
 */
import * as Result from "effect/Result"
import { Compiler, type Limits, problemsOf } from "./internal/validation/compiler.ts"
import { type Dialect, Unusable } from "./internal/validation/schemaNode.ts"
import type { Problem } from "./internal/validation/validationState.ts"
import type { JsonObject } from "./JsonRpc.ts"
import { clip } from "./Text.ts"

/** The bounds of a schema and of one validation. */
export interface Options {
  /** The most characters (UTF-16 units) of the schema as JSON text; 262,144 by default. A longer schema is refused. */
  readonly maxSchemaChars?: number | undefined
  /** The deepest nesting of subschemas; 64 by default. A deeper schema is refused. */
  readonly maxDepth?: number | undefined
  /**
   * The most subschemas of the schema, and the most of them that apply to the same value; 10,000 by default. A schema
   * with more is refused.
   */
  readonly maxSchemas?: number | undefined
  /**
   * The most steps of one validation, about one for each subschema that is applied to a value; 5,000,000 by default,
   * which takes some tenths of a second. A value that needs more is refused.
   */
  readonly maxSteps?: number | undefined
  /**
   * Whether to allow a `pattern` with look-around or a back reference; not by default. The `RegExp` engine of
   * JavaScript runs such a pattern, and can take years for a short text. Allow it only for schemas that you trust.
   */
  readonly nativePatterns?: boolean | undefined
}

export {
  /** A problem of a value: a message, and the path to the part of the value that is wrong. */
  type Problem,
  /** The error for a schema that cannot be used. Its message is one line that explains why. */
  Unusable
}

/** A compiled schema. */
export interface Validation {
  /** A copy of the schema as JSON, without members that are `undefined`. */
  readonly schema: unknown
  /**
   * Validates a value and returns its problems, at most ten; none for a valid value. A validation that exceeds
   * `maxSteps`, or that nests more than 500 subschemas within each other, stops and returns this as its only problem.
   */
  readonly problems: (value: unknown) => ReadonlyArray<Problem>
}

/**
 * The dialects by `$schema`. "Clients and servers MUST support JSON Schema 2020-12 for schemas without an explicit
 * `$schema`."
 */
const dialects: ReadonlyMap<string, Dialect> = /* @__PURE__ */ new Map([
  ["json-schema.org/draft/2020-12/schema", "2020-12"],
  ["json-schema.org/draft-07/schema", "draft-07"]
])

const dialectOf = (schema: unknown): Dialect => {
  const uri = (schema as JsonObject | null)?.["$schema"]
  if (uri === undefined) return "2020-12"
  const dialect = dialects.get(String(uri).replace(/^https?:\/\//, "").replace(/#$/, ""))
  if (dialect !== undefined) return dialect
  throw new Unusable(
    `The dialect ${clip(JSON.stringify(uri))} is not supported; use 2020-12 (the default) or draft-07`
  )
}

const textOf = (given: unknown): string => {
  try {
    const text: string | undefined = JSON.stringify(given)
    if (text !== undefined) return text
  } catch {
    // A cycle, or nesting deeper than the stack.
  }
  throw new Unusable("The schema cannot be written as JSON")
}

/**
 * Compiles a schema of JSON Schema 2020-12, or of draft-07 where its `$schema` is draft-07.
 *
 * Fails with {@link Unusable} for a schema that
 * - is not valid in its dialect, or names another dialect;
 * - has a `$ref` to another document, to a place that does not exist, or in a cycle;
 * - has an `$id` below its root;
 * - has a `pattern` with look-around or a back reference (see `nativePatterns`);
 * - exceeds a bound of the options.
 *
 * @example
 * const compiled = SchemaValidation.compile(tool.outputSchema, { maxSteps: 100_000 })
 * if (Result.isSuccess(compiled)) console.log(compiled.success.problems(result.structuredContent))
 */
export const compile = (given: unknown, options: Options = {}): Result.Result<Validation, Unusable> => {
  const {
    maxDepth = 64,
    maxSchemaChars = 262_144,
    maxSchemas = 10_000,
    maxSteps = 5_000_000,
    nativePatterns = false
  } = options
  const limits: Limits = { maxDepth, maxSchemas, maxSteps, nativePatterns }
  try {
    const text = textOf(given)
    if (text.length > maxSchemaChars) {
      throw new Unusable(`The schema has more than ${maxSchemaChars} characters (maxSchemaChars)`)
    }
    // A copy, so that later changes by the caller have no effect, and members that are `undefined` are gone.
    const schema: unknown = JSON.parse(text)
    const node = new Compiler(schema, dialectOf(schema), limits).compile()
    return Result.succeed({ schema, problems: (value) => problemsOf(node, value, limits) })
  } catch (error) {
    if (error instanceof Unusable) return Result.fail(error)
    throw error
  }
}
