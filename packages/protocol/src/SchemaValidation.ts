/**
 * Validating values with a JSON Schema that may be hostile: the schema of a tool, an elicitation, whatever a peer has sent.
 *
 * `compile` reads a schema once, within bounds, and gives what checks values by it. There is no `eval`; a reference that leads out
 * of the schema is refused and never followed ("Implementations MUST NOT automatically dereference `$ref` values that resolve to
 * a network URI", 2026-07-28); patterns take linear time, and one check takes no more than a bounded number of steps
 * ("Implementations SHOULD apply reasonable bounds").
 *
 * **Gotchas.** `format` and the `content…` keywords describe, and are not checked (2020-12, "Format-Annotation Vocabulary").
 *
 * @example
 * const { problems } = Result.getOrThrow(SchemaValidation.compile({ type: "object", required: ["sum"] }))
 * problems({ sum: 1 }) // []
 */
import * as Result from "effect/Result"
import { type Dialect, Unusable } from "./internal/validation/Node.ts"
import * as Validator from "./internal/validation/Validator.ts"
import type { Problem } from "./internal/validation/Work.ts"
import type { JsonObject } from "./JsonRpc.ts"

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

export {
  /** Something that is wrong with a value, and where. */
  type Problem,
  /** A schema that cannot be used; its message says why. */
  Unusable
}

/** A schema that was compiled. */
export interface Validation {
  /** The schema as JSON: a copy of what was given, without members that are `undefined`. */
  readonly schema: unknown
  /**
   * What is wrong with a value: the first ten faults, none where it is valid. A check that takes too many steps, or meets a
   * value that is nested too deeply, is given up, which is the one fault then.
   */
  readonly problems: (value: unknown) => ReadonlyArray<Problem>
}

/** The dialects by their `$schema`. "Clients and servers MUST support JSON Schema 2020-12 for schemas without an explicit `$schema`." */
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
    `Its dialect ${JSON.stringify(uri).slice(0, 128)} is not supported: 2020-12 (the default) and draft-07 are`
  )
}

const textOf = (given: unknown): string => {
  try {
    const text: string | undefined = JSON.stringify(given)
    if (text !== undefined) return text
  } catch {
    // It refers to itself, or is nested without measure.
  }
  throw new Unusable("It cannot be written as JSON")
}

/**
 * Compiles a schema of 2020-12, or of draft-07 where its `$schema` says so.
 *
 * It fails with what cannot be used: what breaks the rules of its dialect or says another one; a reference that leads out of the
 * schema (`#…` alone is followed) or nowhere, or round in a circle; an `$id` inside; a `pattern` with look-around or a reference
 * to a group (see `nativePatterns`); what is beyond the bounds of the options.
 */
export const compile = (given: unknown, options: Options = {}): Result.Result<Validation, Unusable> => {
  const { maxDepth = 64, maxSchemas = 10_000, maxSize = 262_144, maxSteps = 5_000_000, nativePatterns = false } =
    options
  const limits: Validator.Limits = { maxDepth, maxSchemas, maxSteps, nativePatterns }
  try {
    const text = textOf(given)
    if (text.length > maxSize) throw new Unusable(`It is longer than ${maxSize} characters`)
    // A copy: nobody changes it later, and a member that is `undefined` is none.
    const schema: unknown = JSON.parse(text)
    const node = new Validator.Compiler(schema, dialectOf(schema), limits).compile()
    return Result.succeed({ schema, problems: (value) => Validator.problemsOf(node, value, limits) })
  } catch (error) {
    if (error instanceof Unusable) return Result.fail(error)
    throw error
  }
}
