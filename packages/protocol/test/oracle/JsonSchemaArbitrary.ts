/**
 * Generates values from an official definition: every shape that the schema allows, with unknown members, unusual
 * strings and keys, and each optional member both present and absent. The same seed gives the same value.
 *
 * It supports the keywords that the official schemas use and throws for any other, so that a new keyword of a later
 * schema is noticed.
 */
import * as Json from "./Json.ts"
import * as Random from "./Random.ts"
import type { Document, Node } from "./Spec.ts"

/** How often optional members are present. */
type Presence = "none" | "all" | "some"

interface State {
  readonly random: Random.Random
  readonly presence: Presence
}

const annotations = new Set(["description", "title", "default", "$schema", "$id"])
const keywords = new Set([
  "$ref",
  "type",
  "enum",
  "const",
  "anyOf",
  "allOf",
  "not",
  "properties",
  "required",
  "additionalProperties",
  "propertyNames",
  "items",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "format"
])

/** Below this depth only required members are generated. */
const maxDepth = 7

const formats: Readonly<Record<string, ReadonlyArray<string>>> = {
  uri: [
    "file:///",
    "file:///home/user/a%20b.txt",
    "https://example.com/a?b=c#d",
    "ui://widget/1",
    "urn:example:a",
    "git://h/r.git",
    "x:y",
    "data:text/plain;base64,QQ=="
  ],
  "uri-template": ["file:///{path}", "x://{+a}/{b*}{?q,r}", "https://example.com/", "{id}"],
  byte: ["", "QQ==", "QUI=", "QUJD", "AAAA/+8="]
}

const clamp = (value: number, { minimum = -Infinity, maximum = Infinity }: Node): number =>
  Math.min(Math.max(value, minimum), maximum)

const merge = (left: Node, right: Node): Node => {
  const merged: Record<string, unknown> = { ...left }
  for (const [keyword, value] of Object.entries(right)) {
    const before = merged[keyword]
    if (before === undefined || annotations.has(keyword)) {
      merged[keyword] = value
    } else if (keyword === "properties") {
      const properties: Record<string, Node> = { ...(before as Record<string, Node>) }
      for (const [name, node] of Object.entries(value as Record<string, Node>)) {
        properties[name] = name in properties ? { allOf: [properties[name]!, node] } : node
      }
      merged[keyword] = properties
    } else if (keyword === "required") {
      merged[keyword] = [...new Set([...(before as Array<string>), ...(value as Array<string>)])]
    } else if (keyword === "minimum") {
      merged[keyword] = Math.max(before as number, value as number)
    } else if (keyword === "maximum") {
      merged[keyword] = Math.min(before as number, value as number)
    } else if (keyword === "additionalProperties") {
      merged[keyword] = Object.keys(value as object).length === 0 ? before : value
    } else if (keyword === "items") {
      merged[keyword] = { allOf: [before as Node, value as Node] }
    } else if (JSON.stringify(before) !== JSON.stringify(value)) {
      throw new Error(`cannot join two "${keyword}"`)
    }
  }
  return merged
}

const closed = (node: boolean | Node | undefined): boolean =>
  node === false || (typeof node === "object" && node.not !== undefined && Object.keys(node.not).length === 0)

/** A generator of values for the definitions of one document. */
export interface JsonSchemaArbitrary {
  /** Returns the value of a seed. Seed 0 has no optional member, seed 1 every optional member. */
  readonly value: (definition: string, seed: number) => unknown
}

/** Makes the generator of a document. `unknown` has the names of unknown members. */
export const make = (document: Document, unknown: ReadonlyArray<string> = Json.keys): JsonSchemaArbitrary => {
  const { definitions, prefix } = document

  const resolve = (reference: string): Node => {
    const node = definitions[reference.slice(prefix.length)]
    if (!reference.startsWith(prefix) || node === undefined) {
      throw new Error(`${document.name}: unknown reference ${reference}`)
    }
    return node
  }

  /** Resolves `$ref`, `allOf` and `anyOf` of a node: follows references, chooses a branch, merges conjunctions. */
  const flatten = (state: State, node: Node): Node => {
    for (const keyword of Object.keys(node)) {
      if (!keywords.has(keyword) && !annotations.has(keyword)) {
        throw new Error(`${document.name}: unknown keyword "${keyword}"`)
      }
    }
    if (node.$ref === undefined && node.allOf === undefined && node.anyOf === undefined) return node
    const { $ref, allOf, anyOf, ...rest } = node
    const parts: Array<Node> = []
    if ($ref !== undefined) parts.push(resolve($ref))
    if (allOf !== undefined) parts.push(...allOf)
    if (anyOf !== undefined) parts.push(state.random.pick(anyOf))
    return parts.map((part) => flatten(state, part)).reduce(merge, rest)
  }

  const object = (state: State, node: Node, depth: number): unknown => {
    const { random } = state
    const value: Record<string, unknown> = {}
    const properties = node.properties ?? {}
    const required = new Set(node.required)
    for (const [name, property] of Object.entries(properties)) {
      const present = required.has(name) ||
        (depth <= maxDepth && (state.presence === "some" ? random.chance(0.5) : state.presence === "all"))
      if (present) Json.put(value, name, generate(state, property, depth + 1))
    }
    for (const name of required) if (!Object.hasOwn(value, name)) Json.put(value, name, Json.value(random))
    const additional = node.additionalProperties
    if (closed(additional) || depth > maxDepth) return value
    const record = typeof additional === "object" && Object.keys(additional).length > 0
    const count = record || node.properties === undefined
      ? random.below(4)
      : random.chance(0.2)
      ? 1 + random.below(2)
      : 0
    for (let index = 0; index < count; index++) {
      const key = record && random.chance(0.5) ? Json.key(random) : random.pick(unknown)
      if (Object.hasOwn(properties, key)) continue
      Json.put(value, key, generate(state, record ? additional as Node : {}, depth + 1))
    }
    return value
  }

  const generate = (state: State, unresolved: Node, depth: number): unknown => {
    const { random } = state
    const node = flatten(state, unresolved)
    if (node.not !== undefined) throw new Error(`${document.name}: "not" is supported only in additionalProperties`)
    if ("const" in node) return node.const
    if (node.enum !== undefined) return random.pick(node.enum)
    const shaped = node.properties !== undefined || node.required !== undefined
    if (node.type === undefined && !shaped) return Json.value(random, depth > maxDepth ? 0 : 3)
    const types = typeof node.type === "object" ? node.type : [node.type ?? "object"]
    const type = depth > maxDepth + 2 && types.length > 1
      ? random.pick(types.filter((type) => type !== "array" && type !== "object"))
      : random.pick(types)
    switch (type) {
      case "string": {
        if (node.format === undefined) return Json.string(random)
        const known = formats[node.format]
        if (known === undefined) throw new Error(`${document.name}: unknown format "${node.format}"`)
        return random.pick(known)
      }
      case "integer":
        return clamp(Json.integer(random), node)
      case "number":
        return clamp(Json.number(random), node)
      case "boolean":
        return random.chance(0.5)
      case "null":
        return null
      case "array": {
        const length = Math.min(
          Math.max(depth > maxDepth ? 0 : random.below(depth > 3 ? 3 : 4), node.minItems ?? 0),
          node.maxItems ?? Number.POSITIVE_INFINITY
        )
        return Array.from({ length }, () => generate(state, node.items ?? {}, depth + 1))
      }
      case "object":
        return object(state, node, depth)
      default:
        throw new Error(`${document.name}: unknown type "${type}"`)
    }
  }

  return {
    value: (definition, seed) => {
      const node = definitions[definition]
      if (node === undefined) throw new Error(`${document.name} has no definition ${definition}`)
      const presence = seed === 0 ? "none" : seed === 1 ? "all" : "some"
      return generate({ random: Random.make(Random.hash(`${document.name} ${definition} ${seed}`)), presence }, node, 0)
    }
  }
}
