/**
 * Compiles a JSON Schema once into functions, without `eval`. The modules `scalarKeywords`, `arrayKeywords`,
 * `objectKeywords` and `compositionKeywords` compile the keywords.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { clip, quote } from "../../Text.ts"
import { arrayKeywords, unevaluatedItems } from "./arrayKeywords.ts"
import { compositionKeywords, definitions, reference } from "./compositionKeywords.ts"
import { type Keyword, KeywordReader } from "./keywordReader.ts"
import { objectKeywords, unevaluatedProperties } from "./objectKeywords.ts"
import { scalarKeywords } from "./scalarKeywords.ts"
import { type Dialect, type Rule, type SchemaDocument, SchemaNode, type SchemaPath, Unusable } from "./schemaNode.ts"
import { BudgetExceeded, type Problem, ValidationState } from "./validationState.ts"

/** The bounds of a schema and of one validation; `SchemaValidation.Options` describes them. */
export interface Limits {
  readonly maxDepth: number
  readonly maxSchemas: number
  readonly maxSteps: number
  readonly nativePatterns: boolean
}

/** Describes the position of a problem in the schema, as a JSON Pointer of at most 128 characters. */
const positionOf = (path: SchemaPath): string => {
  const pointer = path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")
  return pointer === "" ? "" : ` at #${clip(pointer)}`
}

/** The only keywords beside a `$ref` in draft-07, which ignores all others. */
const besideReference = [definitions, reference("$ref")]

const shared = [...besideReference, ...scalarKeywords, ...objectKeywords, ...arrayKeywords, ...compositionKeywords]

const keywordsOf: { readonly [D in Dialect]: ReadonlyArray<Keyword> } = {
  "draft-07": shared,
  "2020-12": [...shared, reference("$dynamicRef"), unevaluatedItems, unevaluatedProperties]
}

const acceptAll: SchemaNode = new SchemaNode()
const refuseAll: SchemaNode = new SchemaNode([(_, state) => state.report("Unexpected value")])

/** Compiles the schemas of one document. */
export class Compiler implements SchemaDocument {
  readonly dialect: Dialect
  readonly nativePatterns: boolean
  propertyEscapes = 0
  readonly #root: unknown
  readonly #limits: Limits
  readonly #nodes = new Map<object, SchemaNode>()
  readonly #anchors = new Map<string, JsonObject>()
  readonly #references: Array<() => void> = []

  constructor(root: unknown, dialect: Dialect, limits: Limits) {
    this.#root = root
    this.dialect = dialect
    this.#limits = limits
    this.nativePatterns = limits.nativePatterns
  }

  compile(): SchemaNode {
    const root = this.node(this.#root, [])
    // All anchors are known now. A reference can lead to an object that is not a subschema elsewhere, with references
    // of its own.
    for (let next = this.#references.shift(); next !== undefined; next = this.#references.shift()) next()
    this.#count(root)
    return root
  }

  refuse(problem: string, path: SchemaPath): never {
    throw new Unusable(`${problem}${positionOf(path)}`)
  }

  node(schema: unknown, path: SchemaPath): SchemaNode {
    if (schema === true) return acceptAll
    if (schema === false) return refuseAll
    if (!isObject(schema)) return this.refuse("A schema must be an object or a boolean", path)
    const known = this.#nodes.get(schema)
    if (known !== undefined) return known
    const { maxDepth, maxSchemas } = this.#limits
    if (path.length > maxDepth * 2) this.refuse(`The schema is nested deeper than ${maxDepth} levels (maxDepth)`, path)
    if (this.#nodes.size >= maxSchemas) {
      this.refuse(`The schema has more than ${maxSchemas} subschemas (maxSchemas)`, path)
    }
    const node = new SchemaNode()
    this.#nodes.set(schema, node)
    this.#identify(schema, path)
    const keywords = new KeywordReader(schema, node, this, path)
    const all = this.dialect === "draft-07" && Object.hasOwn(schema, "$ref")
      ? besideReference
      : keywordsOf[this.dialect]
    node.rules = all.map((keyword) => keyword(keywords)).filter((rule) => rule !== undefined)
    return node
  }

  // "Implementations MUST NOT automatically dereference `$ref` values that resolve to a network URI" (2026-07-28).
  reference(reference: unknown, from: SchemaNode, path: SchemaPath): Rule {
    if (typeof reference !== "string") return this.refuse("A reference must be a string", path)
    if (!reference.startsWith("#")) {
      return this.refuse(`A reference must lead to a place in the same schema ("#…")`, path)
    }
    let target: SchemaNode = acceptAll
    this.#references.push(() => {
      target = this.node(this.#resolve(reference, path), path)
      from.inPlace.push(target)
    })
    return (value, state, evaluated) => target.check(value, state, evaluated)
  }

  #identify(schema: JsonObject, path: SchemaPath): void {
    const { $anchor, $dynamicAnchor, $id } = schema
    if (path.length > 0 && $id !== undefined) {
      if (this.dialect === "draft-07" && typeof $id === "string" && $id.startsWith("#")) {
        this.#anchor($id.slice(1), schema, path)
      } else this.refuse("$id is supported only at the root", path)
    }
    if (this.dialect === "draft-07") return
    if ($anchor !== undefined) this.#anchor($anchor, schema, path)
    if ($dynamicAnchor !== undefined && $dynamicAnchor !== $anchor) this.#anchor($dynamicAnchor, schema, path)
  }

  #anchor(name: unknown, schema: JsonObject, path: SchemaPath): void {
    if (typeof name !== "string") this.refuse("An anchor must be a string", path)
    else if (this.#anchors.has(name)) this.refuse(`The anchor ${quote(name)} occurs twice`, path)
    else this.#anchors.set(name, schema)
  }

  #resolve(reference: string, path: SchemaPath): unknown {
    let fragment: string
    try {
      fragment = decodeURIComponent(reference.slice(1))
    } catch {
      return this.refuse(`The reference ${quote(reference)} is malformed`, path)
    }
    const missing = () => this.refuse(`The target of the reference ${quote(reference)} does not exist`, path)
    if (fragment === "") return this.#root
    if (!fragment.startsWith("/")) return this.#anchors.get(fragment) ?? missing()
    let at: unknown = this.#root
    for (const step of fragment.slice(1).split("/")) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return missing()
      at = (at as JsonObject)[key]
    }
    return at
  }

  /**
   * Refuses a schema that applies too many subschemas to one value: alternatives that refer to alternatives multiply,
   * so that a few lines can demand any amount of work. Refuses a schema that applies itself to the same value, which
   * would not end.
   */
  #count(root: SchemaNode): void {
    const counts = new Map<SchemaNode, number>()
    const open = new Set<SchemaNode>()
    const visit = (node: SchemaNode): number => {
      const known = counts.get(node)
      if (known !== undefined) return known
      if (open.has(node)) return this.refuse("A cycle of references applies a schema to the same value", [])
      if (open.size > maxChain) return this.refuse(`A chain has more than ${maxChain} references`, [])
      open.add(node)
      const count = node.inPlace.reduce((sum, other) => sum + visit(other), 1)
      open.delete(node)
      counts.set(node, count)
      return count
    }
    for (const node of [root, ...this.#nodes.values()]) {
      if (visit(node) > this.#limits.maxSchemas) {
        this.refuse(`More than ${this.#limits.maxSchemas} subschemas apply to the same value (maxSchemas)`, [])
      }
    }
  }
}

// Less than the nesting that a validation allows (`maxDepth` of `validationState`).
const maxChain = 200

/** Validates a value and returns its problems. If the validation exceeds its budget, that is the only problem. */
export const problemsOf = (node: SchemaNode, value: unknown, { maxSteps }: Limits): ReadonlyArray<Problem> => {
  try {
    if (node.check(value, new ValidationState(maxSteps, true))) return []
    // The second run collects the problems. The first one only decides, and needs no messages.
    const state = new ValidationState(maxSteps, false)
    node.check(value, state)
    return state.problems
  } catch (error) {
    if (error instanceof BudgetExceeded) return [{ message: error.message, path: [] }]
    throw error
  }
}
