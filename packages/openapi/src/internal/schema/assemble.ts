/**
 * Assembles the schema of one tool: adds the definitions that it uses, and keeps its size within a bound.
 *
 * A definition that is used once, or that is short, is written in place, which models read more easily. A circular one
 * stays in `$defs`.
 */
import { clip } from "@skein/protocol/Text"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { maxDescriptionChars } from "./keywords.ts"
import type { Schema } from "./convert.ts"

const prefix = "#/$defs/"

/** A definition with at most as many characters is written in place, however often it is used. */
const maxInlineChars = 120

/** The deepest nesting for definitions in place, since validators bound the nesting of schemas. */
const maxInlineDepth = 24

const nameIn = (node: JsonObject): string | undefined => {
  const { $ref } = node
  return typeof $ref === "string" && $ref.startsWith(prefix) ? $ref.slice(prefix.length) : undefined
}

const visit = (node: unknown, use: (name: string) => void): void => {
  if (Array.isArray(node)) return node.forEach((child) => visit(child, use))
  if (!isObject(node)) return
  const name = nameIn(node)
  if (name !== undefined) use(name)
  for (const child of Object.values(node)) visit(child, use)
}

/** Remembers a value for each schema. The same definitions are used by hundreds of operations. */
const remembered = <A>(compute: (schema: JsonObject) => A): (schema: Schema) => A => {
  const known = new WeakMap<JsonObject, A>()
  return (schema) => {
    if (typeof schema === "boolean") return compute({})
    let value = known.get(schema)
    if (value === undefined) known.set(schema, value = compute(schema))
    return value
  }
}

/** The names that a schema refers to, each as often as it does. */
const referencesOf = /* @__PURE__ */ remembered((schema): ReadonlyArray<string> => {
  const names: Array<string> = []
  visit(schema, (name) => names.push(name))
  return names
})

const charsOf = /* @__PURE__ */ remembered((schema) => JSON.stringify(schema).length)

type Definitions = ReadonlyMap<string, Schema>

/** Counts the uses of each definition that a schema leads to, in the order of their distance, in at most `max` of them. */
const usesOf = (root: Schema, definitions: Definitions, max = Infinity): Map<string, number> => {
  const uses = new Map<string, number>()
  const left: Array<Schema> = [root]
  for (let at = 0; at < Math.min(left.length, max); at++) {
    for (const name of referencesOf(left[at]!)) {
      const count = uses.get(name)
      uses.set(name, (count ?? 0) + 1)
      if (count === undefined) left.push(definitions.get(name) ?? {})
    }
  }
  return uses
}

const circular = new WeakMap<Definitions, Map<string, boolean>>()

/** The most definitions in which a circle is looked for, so that the work for a long chain is bounded. */
const maxCircle = 1_000

/** Whether a definition leads back to itself, or to so many others that it may. */
const isCircular = (name: string, definitions: Definitions): boolean => {
  let known = circular.get(definitions)
  if (known === undefined) circular.set(definitions, known = new Map())
  let is = known.get(name)
  if (is === undefined) {
    const uses = usesOf(definitions.get(name) ?? {}, definitions, maxCircle)
    known.set(name, is = uses.size >= maxCircle || uses.has(name))
  }
  return is
}

/** Replaces the definitions that are farthest from the root, beyond a number of characters, so that the work is bounded. */
const nearest = (root: Schema, definitions: Definitions, maxChars: number): Definitions => {
  let chars = 0
  const near = new Map<string, Schema>()
  for (const name of usesOf(root, definitions).keys()) {
    const definition = definitions.get(name) ?? {}
    chars += charsOf(definition)
    near.set(name, chars > maxChars ? stub(definition) : definition)
  }
  return near
}

/** Keywords that assert nothing, so that the one beside a reference replaces that of its target. */
const annotations: ReadonlySet<string> = new Set(["title", "description", "default", "examples", "deprecated"])

/** Keywords whose meaning does not depend on others. */
const independent: ReadonlySet<string> = new Set([
  ...["type", "enum", "const", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ...["multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"],
  ...["required", "contentEncoding", "contentMediaType", "$ref"]
])

/** Makes one schema of the target of a reference and of the keywords beside it, which both apply. */
const together = (target: unknown, beside: JsonObject): unknown => {
  const keys = Object.keys(beside)
  if (keys.length === 0) return target
  const canMerge = (key: string): boolean =>
    annotations.has(key) || (independent.has(key) && isObject(target) && !Object.hasOwn(target, key))
  if (target === true || (isObject(target) && keys.every(canMerge))) return { ...(target as JsonObject), ...beside }
  if (!isObject(target)) return target
  const { allOf, ...rest } = beside
  return { ...rest, allOf: [target, ...(Array.isArray(allOf) ? allOf : [])] }
}

/** Makes the schema with all definitions that it uses. */
const complete = (root: JsonObject, definitions: Definitions, all: Definitions): JsonObject => {
  const uses = usesOf(root, definitions)
  const isInline = (name: string): boolean =>
    (uses.get(name) === 1 || charsOf(definitions.get(name) ?? {}) <= maxInlineChars) && !isCircular(name, all)
  const kept = new Set<string>()
  const expand = (node: unknown, depth: number): unknown => {
    if (Array.isArray(node)) return node.map((child) => expand(child, depth + 1))
    if (!isObject(node)) return node
    const name = nameIn(node)
    if (name !== undefined && depth < maxInlineDepth && isInline(name)) {
      const { $ref: _, ...beside } = node
      return together(expand(definitions.get(name) ?? {}, depth), expand(beside, depth) as JsonObject)
    }
    if (name !== undefined) kept.add(name)
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, expand(child, depth + 1)]))
  }
  const out = expand(root, 0) as JsonObject
  const $defs: Record<string, unknown> = {}
  // `expand` adds to the set while it is read.
  for (const name of kept) $defs[name] = expand(definitions.get(name) ?? {}, 1)
  return kept.size === 0 ? out : { ...out, $defs }
}

/** Removes the annotations below the arguments themselves. */
const withoutAnnotations = (node: unknown, level = 0): unknown => {
  if (Array.isArray(node)) return node.map((child) => withoutAnnotations(child, level))
  if (!isObject(node)) return node
  const isText = (key: string): boolean => level > 1 && ["description", "title", "examples"].includes(key)
  return Object.fromEntries(
    Object.entries(node).filter(([key, value]) => !(isText(key) && !isObject(value))).map(([key, child]) => [
      key,
      key === "properties" && isObject(child)
        ? Object.fromEntries(Object.entries(child).map(([name, each]) => [name, withoutAnnotations(each, level + 1)]))
        : ["enum", "const", "default", "required"].includes(key)
        ? child
        : withoutAnnotations(child, key === "$defs" ? 2 : level + (level === 0 ? 0 : 1))
    ])
  )
}

const leftOut = "Left out of this schema because of its size: see the documentation of the API"

const stub = (schema: unknown): JsonObject => {
  const { description, type } = isObject(schema) ? schema : {}
  return {
    ...(type === undefined ? undefined : { type }),
    description: typeof description === "string"
      ? `${clip(description, maxDescriptionChars / 5)} (${leftOut})`
      : leftOut
  }
}

/**
 * Makes the schema of a tool with its definitions. A schema with more than `maxChars` characters as JSON text is made
 * smaller, until it fits or nothing is left: first the annotations of nested parts go, then the definitions that are
 * farthest from the root, then the largest properties.
 */
export const assemble = (root: JsonObject, definitions: Definitions, maxChars: number): JsonObject => {
  const whole = complete(root, nearest(root, definitions, 4 * maxChars), definitions)
  if (charsOf(whole) <= maxChars) return whole
  const bare = withoutAnnotations(whole) as JsonObject
  if (charsOf(bare) <= maxChars) return bare
  return smaller(bare, maxChars)
}

const smaller = (schema: JsonObject, maxChars: number): JsonObject => {
  const { $defs, ...root } = schema
  const definitions = new Map(Object.entries(isObject($defs) ? $defs as Record<string, Schema> : {}))
  const properties = isObject(root["properties"]) ? { ...root["properties"] as Record<string, Schema> } : {}
  let size = charsOf(root)
  // The largest properties are replaced until half of the space is left for definitions, if there are any.
  const space = definitions.size === 0 ? maxChars : maxChars / 2
  const bySize = Object.entries(properties).map(([name, property]) => ({ name, chars: charsOf(property) }))
    .toSorted((a, b) => b.chars - a.chars)
  for (const { chars, name } of bySize) {
    if (size <= space) break
    const replaced = stub(properties[name])
    if (charsOf(replaced) >= chars) continue
    properties[name] = replaced
    size += charsOf(replaced) - chars
  }
  const out = Object.keys(properties).length === 0 ? root : { ...root, properties }
  const kept: Record<string, Schema> = {}
  for (const name of usesOf(out, definitions).keys()) {
    const definition = definitions.get(name) ?? {}
    const chars = charsOf(definition) + name.length + 4
    const fits = size + chars <= maxChars
    kept[name] = fits ? definition : stub(definition)
    size += fits ? chars : charsOf(kept[name]) + name.length + 4
  }
  return used({ ...out, $defs: kept })
}

/** Removes the definitions that no longer have a use, since others were replaced. */
const used = (schema: JsonObject): JsonObject => {
  const { $defs, ...root } = schema
  const definitions = new Map(Object.entries($defs as Record<string, Schema>))
  const names = [...usesOf(root, definitions).keys()]
  if (names.length === 0) return root
  return { ...root, $defs: Object.fromEntries(names.map((name) => [name, definitions.get(name) ?? {}])) }
}
