/**
 * Converts the schemas of a document to JSON Schema 2020-12, for arguments or for results.
 *
 * A reference becomes a reference to `$defs`, which `assemble` fills, so that circular schemas stay finite. Each part of
 * the document is converted once for all operations.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip, cut, quote } from "@skein/protocol/Text"
import { decodePart, find, resolve } from "../document/pointer.ts"
import { Names } from "../document/names.ts"
import type { Version } from "../document/pointer.ts"
import { annotationsOf, copyKeywords, isUsablePattern, requiredOf, schemasByName } from "./keywords.ts"

/** A JSON Schema. */
export type Schema = JsonObject | boolean

/** The deepest nesting of subschemas without a reference. Deeper ones accept every value. */
const maxDepth = 40

/** The most levels of `allOf` in which the properties of one object are looked for. */
const maxLevels = 8

const lists = ["allOf", "anyOf", "prefixItems"] as const
const single = ["contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "contentSchema"] as const

/** The schemas of one document. */
export class Schemas {
  readonly #root: JsonObject
  readonly #hides: "readOnly" | "writeOnly"
  readonly #names = new Map<string, string>()
  readonly #taken = new Names()
  /** The references whose targets are not converted yet. */
  #pending: Array<string> = []
  /** The converted targets of references, by their names in `$defs`. */
  readonly definitions = new Map<string, Schema>()

  /** The version of OpenAPI whose rules hold. */
  readonly version: Version

  constructor(root: JsonObject, use: "arguments" | "results", version: Version) {
    this.#root = root
    this.version = version
    this.#hides = use === "arguments" ? "readOnly" : "writeOnly"
  }

  /** Converts a schema, and the definitions that it leads to. Throws `OpenApiError` if it has a reference to nothing. */
  convert(node: unknown): Schema {
    const schema = this.#convert(node)
    // A chain of definitions may be longer than the stack.
    for (let at = 0; at < this.#pending.length; at++) {
      const reference = this.#pending[at]!
      try {
        this.definitions.set(this.#names.get(reference)!, this.#convert(find(this.#root, reference)))
      } catch (error) {
        // The definitions that lead to the fault fail again for another operation.
        for (const each of this.#pending) this.#names.delete(each)
        this.#pending = []
        throw error
      }
    }
    this.#pending = []
    return schema
  }

  #convert(node: unknown, depth = 0, hidden: ReadonlySet<string> = new Set()): Schema {
    if (typeof node === "boolean") return node
    if (!isObject(node) || depth > maxDepth) return {}
    if (typeof node["$ref"] === "string") return this.#reference(node, node["$ref"], depth, hidden)
    const out = copyKeywords(node)
    const nested = (child: unknown): Schema => this.#convert(child, depth + 1)
    const names = new Set([...hidden, ...this.hiddenNames(node)])
    this.#properties(node, out, nested, names)
    for (const key of lists) {
      const members = node[key]
      if (!Array.isArray(members) || members.length === 0) continue
      out[key] = members.map((member) => this.#convert(member, depth + 1, key === "allOf" ? names : hidden))
    }
    // An argument that several members allow is not an error of the caller. Without their read-only properties, members
    // are often equal.
    const { items, oneOf } = node
    if (Array.isArray(oneOf) && oneOf.length > 0) {
      const members = oneOf.map((member) => this.#convert(member, depth + 1, hidden))
      if (out["anyOf"] === undefined) out["anyOf"] = members
      else out["allOf"] = [...(out["allOf"] as ReadonlyArray<Schema> | undefined ?? []), { anyOf: members }]
    }
    for (const key of single) if (isSchema(node[key])) out[key] = nested(node[key])
    if (isSchema(items)) out["items"] = nested(items)
    else if (Array.isArray(items)) out["prefixItems"] = items.map(nested)
    if (isObject(node["dependentSchemas"])) {
      out["dependentSchemas"] = Object.fromEntries(
        schemasByName(node["dependentSchemas"]).map(([name, child]) => [name, nested(child)])
      )
    }
    const note = discriminatorNote(node)
    if (note !== undefined) {
      out["description"] = typeof out["description"] === "string" ? `${out["description"]}\n${note}` : note
    }
    return node["nullable"] === true ? withNull(out) : out
  }

  /** The properties that `readOnly` or `writeOnly` removes, also in the members of `allOf`. */
  hiddenNames(node: JsonObject, level = 0, seen: Set<JsonObject> = new Set()): ReadonlyArray<string> {
    if (level > maxLevels || seen.has(node)) return []
    seen.add(node)
    const { $ref, ...beside } = node
    if (typeof $ref === "string") {
      return this.hiddenNames({ allOf: [find(this.#root, $ref), beside] }, level, seen)
    }
    const own = schemasByName(node["properties"]).filter(([, property]) => this.isHidden(property)).map(([name]) =>
      name
    )
    const { allOf } = node
    const members = Array.isArray(allOf) ? allOf : []
    return [
      ...own,
      ...members.flatMap((member) => isObject(member) ? this.hiddenNames(member, level + 1, seen) : [])
    ]
  }

  /** Whether arguments, or results, do not have a property. */
  isHidden(property: unknown): boolean {
    if (!isObject(property)) return false
    if (property[this.#hides] === true) return true
    const target = resolve(this.#root, property)
    return isObject(target) && target[this.#hides] === true
  }

  #properties(
    node: JsonObject,
    out: Record<string, unknown>,
    nested: (child: unknown) => Schema,
    hidden: ReadonlySet<string>
  ): void {
    const properties = schemasByName(node["properties"]).filter(([, property]) => !this.isHidden(property))
    if (properties.length > 0) {
      out["properties"] = Object.fromEntries(properties.map(([name, property]) => [name, nested(property)]))
    }
    const required = requiredOf(node).filter((name) => !hidden.has(name))
    if (required.length > 0) out["required"] = required
    const patterns = schemasByName(node["patternProperties"])
    const usable = patterns.filter(([pattern]) => isUsablePattern(pattern))
    if (usable.length > 0) {
      out["patternProperties"] = Object.fromEntries(usable.map(([pattern, child]) => [pattern, nested(child)]))
    }
    for (const key of ["additionalProperties", "unevaluatedProperties"]) {
      // Properties of a pattern that cannot be checked would be refused.
      if (isSchema(node[key]) && usable.length === patterns.length) out[key] = nested(node[key])
    }
  }

  /**
   * Converts a reference with the keywords beside it. Since OpenAPI 3.1 they apply together. OpenAPI 3.0 ignores them;
   * the annotations and `nullable` are read in it too, because documents have them there in good faith.
   */
  #reference(node: JsonObject, reference: string, depth: number, hidden: ReadonlySet<string>): Schema {
    const known = this.#names.get(reference)
    const name = known ?? this.#nameOf(reference)
    if (known === undefined) {
      this.#names.set(reference, name)
      this.#pending.push(reference)
    }
    const { $ref: _, nullable, ...beside } = node
    const keywords = this.version === "3.0" ? annotationsOf(beside) : beside
    const names = Object.keys(keywords).length === 0 ? hidden : new Set([...hidden, ...this.hiddenNames(node)])
    const converted = this.#convert(keywords, depth + 1, names)
    const out = { $ref: `#/$defs/${name}`, ...(converted as JsonObject) }
    return nullable === true ? withNull(out) : out
  }

  #nameOf(reference: string): string {
    const last = reference.slice(reference.lastIndexOf("/") + 1)
    return this.#taken.take(cut(decodePart(last).replaceAll(/[^\w.-]+/g, "_"), 60) || "schema")
  }
}

/** The values of the property that selects one of several schemas: those of `mapping`, else the names of the schemas. */
const discriminatorNote = ({ anyOf, discriminator, oneOf }: JsonObject): string | undefined => {
  const members = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : undefined
  if (members === undefined || !isObject(discriminator) || typeof discriminator["propertyName"] !== "string") {
    return undefined
  }
  const { mapping, propertyName } = discriminator
  const names = isObject(mapping)
    ? Object.keys(mapping)
    : members.flatMap((member) => {
      const reference = isObject(member) ? member["$ref"] : undefined
      return typeof reference === "string" ? [decodePart(reference.slice(reference.lastIndexOf("/") + 1))] : []
    })
  if (names.length === 0) return undefined
  return clip(`${quote(propertyName)} selects the schema: ${names.map((name) => quote(name)).join(", ")}`, 300)
}

const isSchema = (value: unknown): boolean => typeof value === "boolean" || isObject(value)

/** Adds `null` to the values of a schema: `nullable` of OpenAPI 3.0. */
const withNull = (schema: Record<string, unknown>): Schema => {
  const { description, enum: values, type, ...rest } = schema
  const isPlain = !["$ref", "allOf", "anyOf", "const", "not", "if"].some((key) => key in rest)
  if (!isPlain) {
    const { title, default: initial, ...asserted } = schema
    const outer = { description, title, default: initial }
    delete asserted["description"]
    const given = Object.entries(outer).filter(([, value]) => value !== undefined)
    return { ...Object.fromEntries(given), anyOf: [asserted, { type: "null" }] }
  }
  const types = type === undefined ? [] : Array.isArray(type) ? type : [type]
  return {
    ...schema,
    ...(types.length === 0 ? undefined : { type: [...new Set([...types, "null"])] }),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : undefined)
  }
}
