/**
 * A compiled schema: the rules of its keywords.
 */
import type { Patterns } from "./pattern.ts"
import type { ValidationState } from "./validationState.ts"

/** A supported dialect of JSON Schema. */
export type Dialect = "2020-12" | "draft-07"

/** The error for a schema that cannot be used. Its message is one line that explains why. */
export class Unusable extends Error {}

/** The keys that lead to a subschema, for error messages. Linked: thousands of subschemas share their first keys. */
export interface SchemaPath {
  readonly parent: SchemaPath | undefined
  readonly key: string
  readonly length: number
}

/** The path of a schema that is not a subschema. */
export const rootPath: SchemaPath = { parent: undefined, key: "", length: 0 }

export const pathTo = (parent: SchemaPath, key: string): SchemaPath => ({ parent, key, length: parent.length + 1 })

/**
 * The items of an array that subschemas have evaluated, or the members of an object by the positions of their keys.
 * Tracked only for the `unevaluated…` keywords.
 */
export class Evaluated {
  /** The number of evaluated items from the start of the array. */
  items = 0
  #marks: Uint8Array | undefined = undefined

  /** Adds an item or a member of a value that has `size` of them. */
  add(index: number, size: number, state: ValidationState): void {
    if (this.#marks === undefined) {
      state.count(size >> 4)
      this.#marks = new Uint8Array(size)
    }
    this.#marks[index] = 1
  }

  has(index: number): boolean {
    return this.#marks !== undefined && this.#marks[index] === 1
  }

  /** Adds what another one has. The other one must not be used afterwards. */
  merge(other: Evaluated, state: ValidationState): void {
    this.items = Math.max(this.items, other.items)
    const added = other.#marks
    if (added === undefined) return
    const marks = this.#marks ??= added
    if (marks === added) return
    state.count(added.length >> 3)
    for (let index = 0; index < added.length; index++) if (added[index] === 1) marks[index] = 1
  }
}

/**
 * Applies one keyword, or several that depend on each other. Returns whether the value is valid, and reports problems.
 */
export type Rule = (value: unknown, state: ValidationState, evaluated: Evaluated | undefined) => boolean

/** Where a check continues after a pause. */
interface Position {
  readonly index: number
  readonly ok: boolean
  readonly own: Evaluated | undefined
}

/** A compiled schema. */
export class SchemaNode {
  /** The rules to apply to a value; set when the schema is compiled. */
  rules: ReadonlyArray<Rule>
  /** Whether it tracks the evaluated parts of a value. */
  tracksEvaluation = false
  /** The schemas that it applies to the same value ("in-place applicators"). */
  readonly inPlace: Array<SchemaNode> = []
  /** The number of schemas that apply to the same value, with this one; 0 until it is counted, -1 while it is. */
  applied = 0

  constructor(rules: ReadonlyArray<Rule> = []) {
    this.rules = rules
  }

  check(value: unknown, state: ValidationState, evaluated?: Evaluated): boolean {
    let index = 0
    let ok = true
    let own: Evaluated | undefined
    if (state.isResuming) {
      ;({ index, ok, own } = state.resume<Position>())
      state.reenter()
    } else {
      state.enter()
      own = this.tracksEvaluation || evaluated !== undefined ? new Evaluated() : undefined
    }
    const { rules } = this
    try {
      for (; index < rules.length; index++) {
        if (rules[index]!(value, state, own)) continue
        ok = false
        if (state.stopAtFirst) break
      }
      if (ok && evaluated !== undefined) evaluated.merge(own!, state)
    } catch (error) {
      throw state.save(error, { index, ok, own } satisfies Position)
    }
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
  /** Compiles its patterns. */
  readonly patterns: Patterns
  /** Returns the compiled schema at a path. */
  readonly node: (schema: unknown, path: SchemaPath) => SchemaNode
  /** Returns the rule of a reference. The target is resolved when the whole document is compiled. */
  readonly reference: (reference: unknown, from: SchemaNode, path: SchemaPath) => Rule
  /** Throws {@link Unusable}. */
  readonly refuse: (problem: string, path: SchemaPath) => never
}
