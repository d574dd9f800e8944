/**
 * Compiles a JSON Schema once into functions, without `eval`. The modules `scalarKeywords`, `arrayKeywords`,
 * `objectKeywords` and `compositionKeywords` compile the keywords.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { clip, quote } from "../../Text.ts"
import { arrayKeywords, unevaluatedItems } from "./arrayKeywords.ts"
import { compositionKeywords, definitions, reference } from "./compositionKeywords.ts"
import { type Keyword, KeywordReader, type NamedKeyword } from "./keywordReader.ts"
import { Patterns } from "./pattern.ts"
import { objectKeywords, unevaluatedProperties } from "./objectKeywords.ts"
import { scalarKeywords } from "./scalarKeywords.ts"
import { hashable } from "./values.ts"
import {
  type Dialect,
  rootPath,
  type Rule,
  type SchemaDocument,
  SchemaNode,
  type SchemaPath,
  Unusable
} from "./schemaNode.ts"

// The deepest nesting of subschemas.
const maxDepth = 64

// The most subschemas of a schema, and the most of them that apply to the same value.
const maxSchemas = 10_000

/** Describes the position of a problem in the schema, as a JSON Pointer of at most 128 characters. */
const positionOf = (path: SchemaPath): string => {
  let pointer = ""
  for (let at = path; at.parent !== undefined; at = at.parent) {
    pointer = `/${at.key.replaceAll("~", "~0").replaceAll("/", "~1")}${pointer}`
  }
  return pointer === "" ? "" : ` at #${clip(pointer)}`
}

/** The keywords of a dialect in the order in which they apply, and their positions in it by their names. */
interface Vocabulary {
  readonly keywords: ReadonlyArray<Keyword>
  readonly positions: ReadonlyMap<string, ReadonlyArray<number>>
}

const vocabulary = (named: ReadonlyArray<NamedKeyword>): Vocabulary => {
  const positions = new Map<string, Array<number>>()
  for (const [position, [names]] of named.entries()) {
    for (const name of names) positions.set(name, [...positions.get(name) ?? [], position])
  }
  return { keywords: named.map(([, keyword]) => keyword), positions }
}

const shared: ReadonlyArray<NamedKeyword> = [
  definitions,
  reference("$ref"),
  ...scalarKeywords,
  ...objectKeywords,
  ...arrayKeywords,
  ...compositionKeywords
]

const vocabularies: { readonly [D in Dialect]: Vocabulary } = {
  "draft-07": vocabulary(shared),
  "2020-12": vocabulary([
    ...shared,
    reference("$dynamicRef"),
    [["unevaluatedItems"], unevaluatedItems],
    [["unevaluatedProperties"], unevaluatedProperties]
  ])
}

/** In draft-07 all other keywords beside a `$ref` are ignored. */
const besideReference = vocabulary([definitions, reference("$ref")])

const none: ReadonlyArray<number> = []

const acceptAll: SchemaNode = new SchemaNode()
const refuseAll: SchemaNode = new SchemaNode([(_, state) => state.report("Unexpected value")])

/** A schema whose rules are not compiled yet. */
interface Pending {
  readonly node: SchemaNode
  readonly path: SchemaPath
  readonly schema: JsonObject
}

// This many subschemas take a few milliseconds.
const nodesPerSlice = 500

// The work to compile a pattern that takes as long as a subschema.
const workPerNode = 50

/** Compiles the schemas of one document. */
export class Compiler implements SchemaDocument {
  readonly dialect: Dialect
  readonly patterns: Patterns
  readonly #root: unknown
  readonly #nodes = new Map<object, SchemaNode>()
  readonly #anchors = new Map<unknown, JsonObject>()
  readonly #pending: Array<Pending> = []
  #compiled = 0
  readonly #references: Array<() => void> = []

  constructor(root: unknown, dialect: Dialect, nativePatterns: boolean) {
    this.#root = root
    this.dialect = dialect
    this.patterns = new Patterns(nativePatterns)
  }

  /** Compiles the schema. It yields when it has worked for some milliseconds. */
  *compile(): Generator<undefined, SchemaNode> {
    const root = this.node(this.#root, rootPath)
    yield* this.#compilePending()
    // All anchors are known now. A reference can lead to an object that is not a subschema elsewhere, with references
    // of its own.
    for (const resolve of this.#references) {
      resolve()
      yield* this.#compilePending()
      if (this.#addWork(1)) yield
    }
    if (this.#nodes.size >= nodesPerSlice) yield
    this.#count(root)
    return root
  }

  *#compilePending(): Generator<undefined, void> {
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      const before = this.#nodes.size
      const { work } = this.patterns
      this.#compileRules(next)
      // A keyword makes all nodes of its subschemas at once.
      if (this.#addWork(1 + ((this.#nodes.size - before) >> 3) + (this.patterns.work - work) / workPerNode)) yield
    }
  }

  /** Adds work, in subschemas. Returns whether it is time for a pause. */
  #addWork(nodes: number): boolean {
    this.#compiled += nodes
    if (this.#compiled < nodesPerSlice) return false
    this.#compiled = 0
    return true
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
    if (path.length > maxDepth * 2) this.refuse(`The schema is nested deeper than ${maxDepth} levels`, path)
    if (this.#nodes.size >= maxSchemas) this.refuse(`The schema has more than ${maxSchemas} subschemas`, path)
    const node = new SchemaNode()
    this.#nodes.set(schema, node)
    this.#pending.push({ node, path, schema })
    return node
  }

  #compileRules({ node, path, schema }: Pending): void {
    this.#identify(schema, path)
    const reader = new KeywordReader(schema, node, this, path)
    const { keywords, positions } = this.dialect === "draft-07" && Object.hasOwn(schema, "$ref")
      ? besideReference
      : vocabularies[this.dialect]
    const present = new Set<number>()
    for (const name of Object.keys(schema)) for (const position of positions.get(name) ?? none) present.add(position)
    const rules: Array<Rule> = []
    for (const position of present.size > 1 ? [...present].sort((a, b) => a - b) : present) {
      const rule = keywords[position]!(reader)
      if (rule !== undefined) rules.push(rule)
    }
    node.rules = rules
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
    else if (this.#anchors.has(hashable(name))) this.refuse(`The anchor ${quote(name)} occurs twice`, path)
    else this.#anchors.set(hashable(name), schema)
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
    if (!fragment.startsWith("/")) return this.#anchors.get(hashable(fragment)) ?? missing()
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
    let depth = 0
    const visit = (node: SchemaNode): number => {
      if (node.applied > 0) return node.applied
      if (node.applied < 0) return this.refuse("A cycle of references applies a schema to the same value", rootPath)
      if (depth > maxChain) return this.refuse(`A chain has more than ${maxChain} references`, rootPath)
      depth++
      node.applied = -1
      let count = 1
      for (const other of node.inPlace) count += visit(other)
      depth--
      node.applied = count
      return count
    }
    for (const node of [root, ...this.#nodes.values()]) {
      if (visit(node) > maxSchemas) {
        this.refuse(`More than ${maxSchemas} subschemas apply to the same value`, rootPath)
      }
    }
  }
}

// Less than the nesting that a validation allows (`maxDepth` of `validationState`).
const maxChain = 200
