/**
 * A compiled schema: the rules of its keywords.
 */
import type { ValidationState } from "./validationState.ts"

/** A supported dialect of JSON Schema. */
export type Dialect = "2020-12" | "draft-07"

/** The error for a schema that cannot be used. Its message is one line that explains why. */
export class Unusable extends Error {}

/** The keys that lead to a subschema, for error messages. */
export type SchemaPath = ReadonlyArray<string>

/** The members and items of a value that subschemas have evaluated. Tracked only for the `unevaluated…` keywords. */
export class Evaluated {
  readonly keys = new Set<string>()
  readonly indices = new Set<number>()
  /** The number of evaluated items from the start of the array. */
  items = 0

  merge(other: Evaluated, state: ValidationState): void {
    state.spend(other.keys.size + other.indices.size)
    for (const key of other.keys) this.keys.add(key)
    for (const index of other.indices) this.indices.add(index)
    this.items = Math.max(this.items, other.items)
  }
}

/**
 * Applies one keyword, or several that depend on each other. Returns whether the value is valid, and reports problems.
 */
export type Rule = (value: unknown, state: ValidationState, evaluated: Evaluated | undefined) => boolean

/** A compiled schema. */
export class SchemaNode {
  /** The rules to apply to a value; set when the schema is compiled. */
  rules: ReadonlyArray<Rule>
  /** Whether it tracks the evaluated parts of a value. */
  tracksEvaluation = false
  /** The schemas that it applies to the same value ("in-place applicators"). */
  readonly inPlace: Array<SchemaNode> = []

  constructor(rules: ReadonlyArray<Rule> = []) {
    this.rules = rules
  }

  check(value: unknown, state: ValidationState, evaluated?: Evaluated): boolean {
    state.enter()
    const own = this.tracksEvaluation || evaluated !== undefined ? new Evaluated() : undefined
    let ok = true
    for (const rule of this.rules) {
      if (rule(value, state, own)) continue
      ok = false
      if (state.stopAtFirst) break
    }
    if (ok && evaluated !== undefined) evaluated.merge(own!, state)
    state.leave()
    return ok
  }

  /** Checks a member or an item of the value. */
  checkAt(key: string | number, value: unknown, state: ValidationState): boolean {
    state.path.push(key)
    const ok = this.check(value, state)
    state.path.pop()
    return ok
  }
}

/** The document of a schema while it is compiled. */
export interface SchemaDocument {
  readonly dialect: Dialect
  /** Whether `RegExp` runs the patterns that cannot be run in linear time. */
  readonly nativePatterns: boolean
  /** The number of Unicode property escapes (`\p{…}`) in its patterns so far. */
  propertyEscapes: number
  /** Returns the compiled schema at a path. */
  readonly node: (schema: unknown, path: SchemaPath) => SchemaNode
  /** Returns the rule of a reference. The target is resolved when the whole document is compiled. */
  readonly reference: (reference: unknown, from: SchemaNode, path: SchemaPath) => Rule
  /** Throws {@link Unusable}. */
  readonly refuse: (problem: string, path: SchemaPath) => never
}
