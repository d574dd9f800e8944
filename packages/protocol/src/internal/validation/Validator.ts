/**
 * JSON Schema, compiled once into functions; no `eval`. What each keyword does is in `scalars`, `arrays`, `objects` and `logic`.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import * as arrays from "./arrays.ts"
import { Keywords, type Part } from "./Keywords.ts"
import * as logic from "./logic.ts"
import { type Dialect, type Document, Node, type Place, type Rule, Unusable } from "./Node.ts"
import * as objects from "./objects.ts"
import * as scalars from "./scalars.ts"
import { GivenUp, type Problem, Work } from "./Work.ts"

/** The bounds of a schema and of a validation. */
export interface Limits {
  /** How deep a schema may be nested. */
  readonly maxDepth: number
  /** How many schemas it may hold, all in all. */
  readonly maxSchemas: number
  /** How many steps one validation may take. */
  readonly maxSteps: number
  /** Whether patterns that cannot be run in linear time are run by the engine of JavaScript. */
  readonly nativePatterns: boolean
}

const say = (place: Place): string => {
  const pointer = place.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")
  return pointer === "" ? "" : ` at #${pointer.length > 128 ? `${pointer.slice(0, 128)}…` : pointer}`
}

/** In draft-07 a reference stands alone, whatever is beside it. */
const alone = [logic.definitions, logic.reference("$ref")]

const shared = [...alone, ...scalars.parts, ...objects.parts, ...arrays.parts, ...logic.parts]

const parts: { readonly [D in Dialect]: ReadonlyArray<Part> } = {
  "draft-07": shared,
  // There is one resource, so that a dynamic reference leads where a plain one does.
  "2020-12": [...shared, logic.reference("$dynamicRef"), arrays.unevaluatedItems, objects.unevaluatedProperties]
}

const truth: Node = new Node()
const falsehood: Node = new Node([(_, work) => work.refuse("Unexpected value")])

/** Compiles the schemas of one document. */
export class Compiler implements Document {
  readonly dialect: Dialect
  readonly nativePatterns: boolean
  properties = 0
  readonly #root: unknown
  readonly #limits: Limits
  readonly #nodes = new Map<object, Node>()
  readonly #anchors = new Map<string, JsonObject>()
  readonly #references: Array<() => void> = []

  constructor(root: unknown, dialect: Dialect, limits: Limits) {
    this.#root = root
    this.dialect = dialect
    this.#limits = limits
    this.nativePatterns = limits.nativePatterns
  }

  compile(): Node {
    const root = this.node(this.#root, [])
    // By now all anchors are known. A reference may lead to what was no schema before, with references of its own.
    for (let next = this.#references.shift(); next !== undefined; next = this.#references.shift()) next()
    this.#count(root)
    return root
  }

  /** Fails the compilation. */
  refuse(problem: string, place: Place): never {
    throw new Unusable(`${problem}${say(place)}`)
  }

  /** The schema at a place. */
  node(schema: unknown, place: Place): Node {
    if (schema === true) return truth
    if (schema === false) return falsehood
    if (!isObject(schema)) return this.refuse("A schema must be an object or a boolean", place)
    const known = this.#nodes.get(schema)
    if (known !== undefined) return known
    const { maxDepth, maxSchemas } = this.#limits
    if (place.length > maxDepth * 2) this.refuse(`It is nested deeper than ${maxDepth} schemas`, place)
    if (this.#nodes.size >= maxSchemas) this.refuse(`It holds more than ${maxSchemas} schemas`, place)
    const node = new Node()
    this.#nodes.set(schema, node)
    this.#identify(schema, place)
    const keywords = new Keywords(schema, node, this, place)
    const all = this.dialect === "draft-07" && Object.hasOwn(schema, "$ref") ? alone : parts[this.dialect]
    node.rules = all.map((part) => part(keywords)).filter((rule) => rule !== undefined)
    return node
  }

  /**
   * Resolves a reference, when all is compiled. "Implementations MUST NOT automatically dereference `$ref` values that resolve to
   * a network URI" (2026-07-28).
   */
  reference(reference: unknown, from: Node, place: Place): Rule {
    if (typeof reference !== "string") return this.refuse("A reference must be a string", place)
    if (!reference.startsWith("#")) {
      return this.refuse(`A reference must lead to a place in the schema itself, "#…", and not elsewhere`, place)
    }
    let target: Node = truth
    this.#references.push(() => {
      target = this.node(this.#resolve(reference, place), place)
      from.same.push(target)
    })
    return (value, work, seen) => target.check(value, work, seen)
  }

  #identify(schema: JsonObject, place: Place): void {
    const { $anchor, $dynamicAnchor, $id } = schema
    if (place.length > 0 && $id !== undefined) {
      if (this.dialect === "draft-07" && typeof $id === "string" && $id.startsWith("#")) {
        this.#anchor($id.slice(1), schema, place)
      } else this.refuse("$id is supported at the root alone", place)
    }
    if (this.dialect === "draft-07") return
    if ($anchor !== undefined) this.#anchor($anchor, schema, place)
    if ($dynamicAnchor !== undefined && $dynamicAnchor !== $anchor) this.#anchor($dynamicAnchor, schema, place)
  }

  #anchor(name: unknown, schema: JsonObject, place: Place): void {
    if (typeof name !== "string") this.refuse("An anchor must be a string", place)
    else if (this.#anchors.has(name)) this.refuse(`There are two anchors ${JSON.stringify(name)}`, place)
    else this.#anchors.set(name, schema)
  }

  #resolve(reference: string, place: Place): unknown {
    let fragment: string
    try {
      fragment = decodeURIComponent(reference.slice(1))
    } catch {
      return this.refuse(`The reference ${JSON.stringify(reference)} is malformed`, place)
    }
    const nowhere = () => this.refuse(`The reference ${JSON.stringify(reference)} leads nowhere`, place)
    if (fragment === "") return this.#root
    if (!fragment.startsWith("/")) return this.#anchors.get(fragment) ?? nowhere()
    let at: unknown = this.#root
    for (const step of fragment.slice(1).split("/")) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return nowhere()
      at = (at as JsonObject)[key]
    }
    return at
  }

  /**
   * How many schemas are applied to one value: alternatives that refer to alternatives multiply, so that a schema of a few lines
   * can ask for more than can be done. One that applies itself to the same value has no end.
   */
  #count(root: Node): void {
    const counts = new Map<Node, number>()
    const open = new Set<Node>()
    const visit = (node: Node): number => {
      const known = counts.get(node)
      if (known !== undefined) return known
      if (open.has(node)) return this.refuse("A schema refers to itself without an end", [])
      if (open.size > maxChain) return this.refuse(`More than ${maxChain} references follow each other`, [])
      open.add(node)
      const count = node.same.reduce((sum, other) => sum + visit(other), 1)
      open.delete(node)
      counts.set(node, count)
      return count
    }
    for (const node of [root, ...this.#nodes.values()]) {
      if (visit(node) > this.#limits.maxSchemas) {
        this.refuse(`More than ${this.#limits.maxSchemas} schemas would be applied to one value`, [])
      }
    }
  }
}

// Well within the frames that a validation may enter.
const maxChain = 200

/** What is wrong with a value, or nothing; a validation that is given up is what is wrong. */
export const problemsOf = (node: Node, value: unknown, { maxSteps }: Limits): ReadonlyArray<Problem> => {
  try {
    if (node.check(value, new Work(maxSteps, true))) return []
    // Only now, and for the first few faults, is it worth to find out what to say.
    const work = new Work(maxSteps, false)
    node.check(value, work)
    return work.problems
  } catch (error) {
    if (error instanceof GivenUp) return [{ message: error.message, path: [] }]
    throw error
  }
}
