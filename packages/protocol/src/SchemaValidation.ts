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
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Compiler } from "./internal/validation/compiler.ts"
import { type Dialect, Unusable } from "./internal/validation/schemaNode.ts"
import { runAll, start } from "./internal/validation/validationRun.ts"
import type { Problem } from "./internal/validation/validationState.ts"
import type { JsonObject } from "./JsonRpc.ts"
import { clip } from "./Text.ts"

/** The bounds of a schema and of one validation. */
export interface Options {
  /**
   * The most characters (UTF-16 units) of the schema as JSON text; 262,144 by default. A longer schema is refused.
   * Raise it for generated schemas.
   */
  readonly maxSchemaChars?: number | undefined
  /**
   * The most steps of one validation, about one for each subschema that is applied to a value; 1,000,000 by default,
   * and 10 in addition for each character of the schema and of the value as JSON text. A step takes up to 120 ns. A value
   * that needs more is refused. Raise it for schemas with many alternatives, lower it where many strangers send values.
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
   * Validates a value and returns its problems, at most ten; none for a valid value. A validation that exceeds its
   * steps (see `Options`), or that nests more than 500 subschemas within each other, stops. If it has found no problem
   * before, this is its only problem.
   *
   * It does not pause. Use {@link Validation.start} for values of unknown size, or give `maxSteps`, which then are all
   * steps of this validation.
   */
  readonly problems: (value: unknown, maxSteps?: number) => ReadonlyArray<Problem>
  /**
   * Validates a value as `problems` does, but for at most 10 ms at a time. For a value that needs less time, it returns
   * the problems. For other values it returns an effect, which continues, yields to the event loop as often as needed,
   * and can be interrupted. Run the effect once.
   *
   * @example
   * const found = validation.start(value)
   * const problems = Effect.isEffect(found) ? yield* found : found
   */
  readonly start: (value: unknown) => ReadonlyArray<Problem> | Effect.Effect<ReadonlyArray<Problem>>
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

// `JSON.stringify` writes them as `null`, a different value.
const refuseInfinite = (_: string, value: unknown): unknown => {
  if (typeof value !== "number" || Number.isFinite(value)) return value
  throw new Unusable("The schema has a number without a JSON form (an infinity or NaN)")
}

const textOf = (given: unknown): string => {
  try {
    const text: string | undefined = JSON.stringify(given)
    if (text?.includes("null") === true) JSON.stringify(given, refuseInfinite)
    if (text !== undefined) return text
  } catch (error) {
    if (error instanceof Unusable) throw error
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
 * - exceeds `maxSchemaChars`, or has more than 64 levels or 10,000 subschemas, or applies that many to the same value.
 *
 * @example
 * const compiled = SchemaValidation.compile(tool.outputSchema, { maxSteps: 100_000 })
 * if (Result.isSuccess(compiled)) console.log(compiled.success.problems(result.structuredContent))
 */
export const compile = (given: unknown, options: Options = {}): Result.Result<Validation, Unusable> =>
  Result.try({
    try: () => {
      const slices = compileInSlices(given, options)
      let slice = slices.next()
      while (slice.done !== true) slice = slices.next()
      return slice.value
    },
    catch: unusable
  })

/**
 * Compiles a schema as {@link compile} does, and yields to the event loop while it compiles a large one. Use it for
 * schemas of a peer.
 *
 * @example
 * const validation = yield* SchemaValidation.compileEffect(tool.outputSchema)
 */
export const compileEffect = (given: unknown, options: Options = {}): Effect.Effect<Validation, Unusable> =>
  Effect.suspend(() => {
    const slices = compileInSlices(given, options)
    const next: Effect.Effect<Validation, Unusable> = Effect.flatMap(
      Effect.suspend(() => Effect.fromResult(Result.try({ try: () => slices.next(), catch: unusable }))),
      (slice) => slice.done === true ? Effect.succeed(slice.value) : Effect.andThen(Effect.yieldNow, next)
    )
    return next
  })

const unusable = (error: unknown): Unusable => {
  if (error instanceof Unusable) return error
  throw error
}

// The steps that a validation may take in addition, for each character of the schema and of the value.
const stepsPerChar = 10

// The characters of a schema that are read or written in far less than 10 ms.
const maxCharsAtOnce = 32_768

function* compileInSlices(given: unknown, options: Options): Generator<undefined, Validation> {
  const { maxSchemaChars = 262_144, maxSteps = 1_000_000, nativePatterns = false } = options
  const text = textOf(given)
  if (text.length > maxSchemaChars) {
    throw new Unusable(`The schema has more than ${maxSchemaChars} characters (maxSchemaChars)`)
  }
  if (text.length > maxCharsAtOnce) yield
  // A copy, so that later changes by the caller have no effect, and members that are `undefined` are gone.
  const schema: unknown = JSON.parse(text)
  if (text.length > maxCharsAtOnce) yield
  const node = yield* new Compiler(schema, dialectOf(schema), nativePatterns).compile()
  const budget = { steps: maxSteps + stepsPerChar * text.length, stepsPerChar }
  return {
    schema,
    problems: (value, steps) => runAll(node, value, steps === undefined ? budget : { steps, stepsPerChar: 0 }),
    start: (value) => start(node, value, budget)
  }
}
