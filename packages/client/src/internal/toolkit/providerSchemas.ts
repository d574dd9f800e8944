/**
 * Fits the input schema of a tool to the API of a provider of models, which accepts a part of JSON Schema.
 *
 * A schema is from a server and untrusted. The work is linear in its size: each keyword, member and item costs a unit, a
 * long text costs more, and the copies that replace references may cost four times the schema together.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import { clip, quote } from "@skein/protocol/Text"
import { fittedName, restoreNames } from "./propertyNames.ts"
import { allFormats, constraints, type Form, type Rules, rulesOf, typed } from "./providerRules.ts"

/** A part of a schema that was changed because the provider refuses it. */
export interface Change {
  /** The place, as the model writes it: `items[].price`. It is empty for the arguments as a whole. */
  readonly at: string
  /** The keyword, or another short name for the part that the provider refuses. */
  readonly refused: string
  /** The part that the schema no longer says, in words for the model. It is undefined if the meaning is the same. */
  readonly weakened: string | undefined
}

/** A fitted schema. */
export interface Fitted {
  readonly schema: Tool["inputSchema"]
  /** The changes, at most 64. */
  readonly changes: ReadonlyArray<Change>
  /** How many changes are not in `changes`. */
  readonly more: number
  /** The description with a list of what was weakened, at most 16 parts. */
  readonly describe: (description: string | undefined) => string | undefined
  /** Replaces the names of properties that were changed by those of the server. */
  readonly restore: (args: object) => object
}

/** How many units of work one schema may cost, whatever its size. */
const maxWork = 10_000
/** How many changes of one schema are listed. */
const maxChanges = 64
/** How many weakened parts the description of a tool lists. */
const maxNotes = 16
/** How deep references, parts and alternatives of one schema may be nested. */
const maxParts = 16

interface Work {
  readonly rules: Rules
  readonly root: JsonObject
  left: number
  readonly changes: Array<Change>
  more: number
  /** The names of the server by their fitted names. */
  readonly originals: Map<string, string>
  readonly renamed: Map<string, string>
  /** The definitions that contain the present place, in a form that accepts most of JSON Schema. */
  readonly open: Set<unknown>
}

/** Pays for a value that is not a schema, such as a list of texts. False if it costs too much. */
const spendAll = (work: Work, value: unknown): boolean => {
  if (work.left >= 0) work.left -= unitsOf(value, work.left + 1)
  return work.left >= 0
}

type Entries = Array<readonly [string, unknown]>

const spend = (work: Work, value?: unknown): boolean => {
  work.left -= typeof value === "string" ? 1 + (value.length >> 5) : 1
  return work.left >= 0
}

const change = (work: Work, at: string, refused: string, weakened?: string): void => {
  if (work.changes.length < maxChanges) work.changes.push({ at: clip(at), refused, weakened })
  else work.more++
}

const nameOf = (work: Work, name: string, at: string): string => {
  if (work.rules.names.test(name)) return name
  const known = work.renamed.get(name)
  if (known !== undefined) return known
  const fitted = fittedName(name, work.originals)
  work.renamed.set(name, fitted)
  work.originals.set(fitted, name)
  change(work, below(at, fitted), `the property name ${quote(name, 64)}`)
  return fitted
}

const below = (at: string, name: string): string => clip(at === "" ? name : `${at}.${name}`, 256)

/** A value of a keyword in a note. Objects and lists are not written, so that a note costs little. */
const written = (value: unknown): string =>
  typeof value === "string"
    ? quote(value, 64)
    : Array.isArray(value)
    ? value.slice(0, 16).map((item) => typeof item === "object" && item !== null ? "…" : written(item)).join(", ") +
      (value.length > 16 ? ", …" : "")
    : typeof value === "object" && value !== null
    ? "an object of the server"
    : String(value)

/** The schema that a local reference points to. */
const resolve = (work: Work, ref: unknown): JsonObject | undefined => {
  if (typeof ref !== "string" || ref.length > 512 || !/^#(?:\/|$)/.test(ref)) return undefined
  let found: unknown = work.root
  for (const part of ref.split("/").slice(1)) {
    if (typeof found !== "object" || found === null) return undefined
    let name: string
    try {
      name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")
    } catch {
      return undefined
    }
    if (!Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return isObject(found) ? found : undefined
}

/** The definitions that contain a place. A reference to one of them is recursive. */
interface Chain {
  readonly target: unknown
  readonly up: Chain | undefined
}

const contains = (chain: Chain | undefined, target: unknown): boolean => {
  for (let each = chain; each !== undefined; each = each.up) if (each.target === target) return true
  return false
}

/** A property, and the definitions that contain it. */
interface Found {
  readonly schema: unknown
  readonly chain: Chain | undefined
}

/** A schema together with the schemas that it refers to or consists of. */
interface Merged {
  readonly own: Map<string, Found>
  /** The properties of alternatives. */
  readonly any: Map<string, Array<Found>>
  readonly required: Set<string>
  /** The other keywords. The first schema that has one decides. */
  readonly rest: Map<string, unknown>
  readonly chains: Map<string, Chain | undefined>
  hasRefs: boolean
  isRecursive: boolean
}

const annotations = new Set(["title", "description", "$schema", "$id", "$defs", "definitions", "$comment", "examples"])

const gather = (
  work: Work,
  schema: JsonObject,
  into: Merged,
  at: string,
  isFlat: boolean,
  depth: number,
  chain: Chain | undefined
): void => {
  if (depth > maxParts || work.left <= 0) return change(work, at, "its size", "a part that is not shown")
  const parts: Array<JsonObject> = []
  const targets: Array<JsonObject> = []
  const unions: Array<readonly [string, ReadonlyArray<unknown>]> = []
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (!spend(work, value)) break
    if (key === "properties" && isObject(value)) {
      for (const name of Object.keys(value)) {
        if (!spend(work, name)) break
        const before = into.own.get(name)
        const schema = before === undefined || before.schema === value[name]
          ? value[name]
          : { allOf: [before.schema, value[name]] }
        into.own.set(name, { schema, chain })
      }
    } else if (key === "required" && Array.isArray(value)) {
      for (const name of value) {
        if (!spend(work, name)) break
        if (typeof name === "string") into.required.add(name)
      }
    } else if (key === "allOf" && Array.isArray(value)) {
      for (const part of value) {
        if (!spend(work)) break
        if (isObject(part)) parts.push(part)
      }
    } else if (key === "$ref") {
      const target = resolve(work, value)
      if (target === undefined) change(work, at, "$ref", "a part that cannot be found")
      else if (contains(chain, target)) into.isRecursive = true
      else targets.push(target)
    } else if (isFlat && (key === "anyOf" || key === "oneOf") && Array.isArray(value)) unions.push([key, value])
    else if (!into.rest.has(key)) {
      into.rest.set(key, value)
      into.chains.set(key, chain)
    } else if (constraints.has(key) && into.rest.get(key) !== value) {
      change(work, at, `${key} in allOf`, `${key}: ${written(value)}`)
    }
  }
  for (const part of parts) gather(work, part, into, at, isFlat, depth + 1, chain)
  for (const target of targets) {
    into.hasRefs = true
    gather(work, target, into, at, isFlat, depth + 1, { target, up: chain })
  }
  for (const [key, list] of unions) join(work, key, list, into, at, depth, chain)
}

/** Makes one object of alternatives: it has the properties of all, and requires those that all require. */
const join = (
  work: Work,
  key: string,
  list: ReadonlyArray<unknown>,
  into: Merged,
  at: string,
  depth: number,
  chain: Chain | undefined
): void => {
  let shared: Set<string> | undefined
  const sets: Array<string> = []
  for (const branch of list) {
    if (!spend(work)) break
    if (!isObject(branch) || branch["type"] === "null") continue
    const part = merged()
    gather(work, branch, part, at, true, depth + 1, chain)
    const properties = propertiesOf(part)
    for (const [name, found] of properties) {
      const before = into.any.get(name)
      if (before === undefined) into.any.set(name, [found])
      else before.push(found)
    }
    const { required } = part
    shared = shared === undefined ? required : new Set(Array.from(shared).filter((name) => required.has(name)))
    if (sets.length < 8) {
      const names = Array.from(required).slice(0, 8).map((name) => {
        const schema = properties.get(name)?.schema
        const value = isObject(schema) ? schema["const"] : undefined
        return `${nameOf(work, name, at)}${value === undefined ? "" : `: ${written(value)}`}`
      })
      sets.push(`(${names.join(", ")}${required.size > 8 ? ", …" : ""})`)
    } else if (sets.length === 8) sets.push("…")
  }
  for (const name of shared ?? []) into.required.add(name)
  change(
    work,
    at,
    key,
    `${key === "oneOf" ? "exactly" : "at least"} one of these sets of properties: ${sets.join(" or ")}`
  )
}

const merged = (): Merged => ({
  own: new Map(),
  any: new Map(),
  required: new Set(),
  rest: new Map(),
  chains: new Map(),
  hasRefs: false,
  isRecursive: false
})

const propertiesOf = ({ any, own }: Merged): Map<string, Found> => {
  const all = new Map(own)
  for (const [name, list] of any) {
    const [first] = list
    if (all.has(name) || first === undefined) continue
    all.set(name, list.length === 1 ? first : { ...first, schema: { anyOf: list.map(({ schema }) => schema) } })
  }
  return all
}

// ---- forms that accept most of JSON Schema

const maps = new Set(["$defs", "definitions", "patternProperties", "dependentSchemas"])
const lists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"])
const singles = new Set([
  "additionalProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "additionalItems",
  "propertyNames",
  "contains",
  "items",
  "not",
  "if",
  "then",
  "else"
])
const definition = /^#\/(?:\$defs|definitions)\/[^/]+$/

const hasLookaround = (pattern: unknown): boolean => typeof pattern === "string" && /\(\?<?[=!]/.test(pattern)

/** Copies a schema, with fitted names and without what the provider refuses. References to definitions stay. */
const keep = (work: Work, schema: unknown, at: string, depth: number): unknown => {
  if (!isObject(schema)) return schema === false ? false : {}
  if (depth > work.rules.maxDepth || work.left <= 0) {
    change(work, at, "its size", "a part that is not shown")
    return {}
  }
  const entries: Entries = []
  const each = (value: ReadonlyArray<unknown>, place: string) => {
    const copies: Array<unknown> = []
    for (const item of value) {
      if (!spend(work)) break
      copies.push(keep(work, item, place, depth + 1))
    }
    return copies
  }
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (!spend(work, value)) {
      change(work, at, "its size", "a part that is not shown")
      break
    }
    if (key === "properties" && isObject(value)) {
      const copies: Entries = []
      for (const name of Object.keys(value)) {
        if (!spend(work, name)) break
        const fitted = nameOf(work, name, at)
        copies.push([fitted, keep(work, value[name], below(at, fitted), depth + 1)])
      }
      entries.push([key, Object.fromEntries(copies)])
    } else if (maps.has(key) && isObject(value)) {
      const copies: Entries = []
      for (const name of Object.keys(value)) {
        if (!spend(work, name)) break
        copies.push([
          key === "dependentSchemas" ? nameOf(work, name, at) : name,
          keep(work, value[name], at, depth + 1)
        ])
      }
      entries.push([key, Object.fromEntries(copies)])
    } else if (key === "items" && Array.isArray(value)) {
      change(work, `${at}[]`, "a list as items")
      entries.push(["prefixItems", each(value, `${at}[]`)])
      const further = schema["additionalItems"]
      if (further !== undefined) entries.push(["items", keep(work, further, `${at}[]`, depth + 1)])
    } else if (key === "additionalItems") {
      if (!Array.isArray(schema["items"])) entries.push([key, keep(work, value, at, depth + 1)])
    } else if (lists.has(key) && Array.isArray(value)) entries.push([key, each(value, at)])
    else if (singles.has(key)) entries.push([key, keep(work, value, key === "items" ? `${at}[]` : at, depth + 1)])
    else if (key === "required") {
      if (!Array.isArray(value)) {
        change(work, at, "required that is not a list")
        continue
      }
      const names: Array<string> = []
      for (const name of value) {
        if (!spend(work, name)) break
        if (typeof name === "string") names.push(nameOf(work, name, at))
      }
      entries.push([key, names])
    } else if (key === "dependentRequired" && isObject(value)) {
      const copies: Entries = []
      for (const name of Object.keys(value)) {
        const needed = value[name]
        if (!spend(work, name)) break
        if (!Array.isArray(needed)) continue
        const names: Array<string> = []
        for (const other of needed) {
          if (spend(work, other) && typeof other === "string") names.push(nameOf(work, other, at))
        }
        copies.push([nameOf(work, name, at), names])
      }
      entries.push([key, Object.fromEntries(copies)])
    } else if ((key === "exclusiveMinimum" || key === "exclusiveMaximum") && typeof value === "boolean") {
      const bound = schema[key === "exclusiveMinimum" ? "minimum" : "maximum"]
      change(work, at, `${key} that is not a number`)
      if (value && bound !== undefined) entries.push([key, bound])
    } else if (key === "$ref") {
      const target = resolve(work, value)
      if (target === undefined) change(work, at, "$ref", "a part that cannot be found")
      else if (!work.rules.inline && (value === "#" || definition.test(String(value)))) entries.push([key, value])
      else if (work.open.has(target)) change(work, at, "a recursive $ref", "the form of a part above")
      else {
        change(work, at, "$ref")
        work.open.add(target)
        const copy = keep(work, target, at, depth + 1)
        work.open.delete(target)
        // A keyword beside a reference counts too. One of both replaces that of the definition.
        for (const [key, value] of Object.entries(copy as JsonObject)) {
          if (!Object.hasOwn(schema, key)) entries.push([key, value])
          else if (constraints.has(key) && schema[key] !== target[key]) {
            change(work, at, `${key} beside $ref`, `${key}: ${written(target[key])}`)
          }
        }
      }
    } else if (key === "format" && work.rules.formats?.has(String(value)) === false) {
      change(work, at, `the format ${quote(String(value), 32)}`, `format ${quote(String(value), 32)}`)
    } else if (key === "pattern" && work.rules.formats !== undefined && hasLookaround(value)) {
      change(work, at, "a pattern with lookaround", `pattern ${written(value)}`)
    } else if (key !== "$schema" && spendAll(work, value)) entries.push([key, value])
  }
  if (work.rules.needsItems && schema["type"] === "array" && schema["items"] === undefined) {
    change(work, at, "a list without items")
    entries.push(["items", {}])
  }
  return Object.fromEntries(entries)
}

// ---- forms that accept the part of OpenAPI 3.0

/** The description of a schema, with its default. A default of null only says that the value may be absent. */
const describedBy = (rest: ReadonlyMap<string, unknown>): string | undefined => {
  const description = rest.get("description")
  const value = rest.get("default")
  const parts = [
    ...typeof description === "string" ? [description] : [],
    ...value === undefined || value === null ? [] : [`Default: ${written(value)}`]
  ]
  return parts.length === 0 ? undefined : parts.join("\n")
}

const anyValue = (description: string | undefined, isNullable: boolean): JsonObject => ({
  ...description === undefined ? undefined : { description },
  ...isNullable ? { nullable: true } : undefined,
  anyOf: [
    { type: "string" },
    { type: "number" },
    { type: "boolean" },
    { type: "object" },
    { type: "array", items: { type: "string" } }
  ]
})

const jsonTypes = new Set(["string", "number", "integer", "boolean", "object", "array", "null"])

/** The types of a schema, or those that its keywords are for. */
const typesOf = (work: Work, { rest }: Merged, properties: ReadonlyMap<string, Found>): ReadonlyArray<string> => {
  const type = rest.get("type")
  const given: Array<string> = []
  for (const each of Array.isArray(type) ? type : [type]) {
    if (given.length === jsonTypes.size || !spend(work)) break
    if (typeof each === "string" && jsonTypes.has(each) && !given.includes(each)) given.push(each)
  }
  if (given.length > 0) return given
  if (properties.size > 0 || rest.has("additionalProperties") || rest.has("patternProperties")) return ["object"]
  const values = rest.has("const") ? [rest.get("const")] : rest.get("enum")
  if (Array.isArray(values) && values.length > 0 && spendAll(work, values)) {
    return Array.from(
      new Set(values.map((each) => each === null ? "null" : Array.isArray(each) ? "array" : typeof each))
    )
  }
  for (const type of ["string", "array", "number"] as const) {
    if (Array.from(typed[type].keys()).some((key) => rest.has(key))) return [type]
  }
  return []
}

/** Writes a schema with the keywords of OpenAPI 3.0 that Gemini accepts. */
const reduce = (work: Work, schema: unknown, at: string, depth: number, chain: Chain | undefined): JsonObject => {
  if (!isObject(schema)) {
    if (work.left > 0) change(work, at, "a schema without a type")
    return anyValue(undefined, false)
  }
  if (depth > work.rules.maxDepth || work.left <= 0) {
    change(work, at, "its size", "a part that is not shown")
    return { type: "object" }
  }
  const all = merged()
  gather(work, schema, all, at, depth === 0 || isObject(schema["properties"]), 0, chain)
  if (all.hasRefs) change(work, at, "$ref")
  return reduceMerged(work, all, at, depth)
}

const reduceMerged = (work: Work, all: Merged, at: string, depth: number): JsonObject => {
  const { rest } = all
  const properties = propertiesOf(all)
  const description = describedBy(rest)
  if (all.isRecursive) change(work, at, "a recursive $ref", "the form of a part above")
  const types = depth === 0 ? ["object"] : typesOf(work, all, properties)
  let isNullable = types.includes("null") || rest.get("nullable") === true
  const unionKey = rest.has("anyOf") ? "anyOf" : "oneOf"
  const union = rest.get(unionKey)
  if (Array.isArray(union) && properties.size === 0) {
    const branches = new Map<string, JsonObject>()
    for (const branch of union) {
      if (!spend(work)) break
      if (isObject(branch) && branch["type"] === "null") isNullable = true
      else {
        const type = rest.get("type")
        const whole = isObject(branch) && branch["type"] === undefined && type !== undefined
          ? { type, ...branch }
          : branch
        const copy = reduce(work, whole, at, depth + 1, all.chains.get(unionKey))
        branches.set(JSON.stringify(copy), copy)
      }
    }
    for (const key of rest.keys()) {
      if (constraints.has(key)) {
        change(work, at, `${key} beside anyOf`, `${key}: ${written(rest.get(key))}`)
      }
    }
    if (rest.has("oneOf")) change(work, at, "oneOf")
    const choices = oneEnum(Array.from(branches.values()))
    if (isNullable && rest.get("default") !== null) nullNote(work, at)
    return {
      ...choices.length === 1 ? choices[0] : choices.length === 0 ? { type: "string" } : { anyOf: choices },
      ...description === undefined ? undefined : { description },
      ...isNullable ? { nullable: true } : undefined
    }
  }
  if (Array.isArray(union)) change(work, at, "anyOf beside properties", "one of several alternatives of the server")
  if (isNullable && rest.get("default") !== null) nullNote(work, at)
  const values = types.filter((type) => type !== "null")
  if (values.length === 0 && types.length > 0) return { type: "string", nullable: true }
  if (values.length === 0) {
    if (!all.isRecursive) change(work, at, "a schema without a type")
    return all.isRecursive
      ? { type: "object", ...description === undefined ? undefined : { description } }
      : anyValue(description, isNullable)
  }
  if (values.length > 1) change(work, at, "a list of types")
  const copies = values.map((type) => ofType(work, all, properties, type, at, depth))
  return {
    ...description === undefined ? undefined : { description },
    ...isNullable ? { nullable: true } : undefined,
    ...copies.length === 1 ? copies[0] : { anyOf: copies }
  }
}

const nullNote = (work: Work, at: string): void =>
  change(work, at, "the type null", work.rules.hasNullable ? undefined : "may also be null")

/** Alternatives that are all texts of a list are one list. */
const oneEnum = (branches: ReadonlyArray<JsonObject>): ReadonlyArray<JsonObject> =>
  branches.length > 1 && branches.every((each) => each["type"] === "string" && Array.isArray(each["enum"]))
    ? [{ type: "string", enum: Array.from(new Set(branches.flatMap((each) => each["enum"] as Array<string>))) }]
    : branches

const ofType = (
  work: Work,
  all: Merged,
  properties: ReadonlyMap<string, Found>,
  type: string,
  at: string,
  depth: number
): JsonObject => {
  const { required, rest } = all
  const entries: Entries = [["type", type]]
  const keywords = typed[type === "integer" ? "number" : type as keyof typeof typed] ?? new Map()
  for (const [key, value] of rest) {
    if (!spend(work, value)) break
    if (key === "const" || key === "enum") {
      const list = key === "const" ? [value] : Array.isArray(value) ? value : []
      if (!spendAll(work, list)) {
        change(work, at, "its size", "a part that is not shown")
        continue
      }
      const texts = list.filter((each): each is string => typeof each === "string" && each !== "")
      if (type === "string" && texts.length > 0) entries.push(["enum", Array.from(new Set(texts))])
      if (texts.length < list.length || key === "const") {
        const isSame = type === "string" && texts.length === list.length
        change(
          work,
          at,
          key === "const" ? "const" : "values that are not texts",
          isSame ? undefined : `one of: ${written(list)}`
        )
      }
      continue
    }
    if (key === "format" && keywords.has("format")) {
      const format = String(value)
      if (allFormats[type]?.includes(format) === true) entries.push([key, format])
      else change(work, at, `the format ${quote(format, 32)}`, `format ${quote(format, 32)}`)
      continue
    }
    const treatment = keywords.get(key)
    if (treatment === "keep" && (typeof value === "string" || typeof value === "number")) {
      if (key === "pattern" && hasLookaround(value)) {
        change(work, at, "a pattern with lookaround", `pattern ${written(value)}`)
      } else entries.push([key, value])
    } else if (treatment === "keep" || treatment === undefined) continue
    else if (type === "integer" && Number.isSafeInteger(value) && key.startsWith("exclusive")) {
      change(work, at, key)
      entries.push(key === "exclusiveMinimum" ? ["minimum", Number(value) + 1] : ["maximum", Number(value) - 1])
    } else if (key === "additionalProperties" && (value === false || (value === true && properties.size > 0))) continue
    else if (value !== false) change(work, at, key, noteOf(treatment, value))
  }
  for (const key of ["not", "if", "$dynamicRef"]) {
    if (rest.has(key)) change(work, at, key, `the rule ${quote(key)} of the server`)
  }
  if (type === "array") entries.push(["items", itemsOf(work, all, at, depth)])
  if (type === "object") {
    const copies: Entries = []
    for (const [name, { chain, schema: value }] of properties) {
      if (!spend(work, name)) {
        change(work, at, "its size", "a part that is not shown")
        break
      }
      if (value === false) continue
      const fitted = nameOf(work, name, at)
      copies.push([fitted, reduce(work, value, below(at, fitted), depth + 1, chain)])
    }
    const known = new Set(copies.map(([name]) => name))
    const names: Array<string> = []
    for (const name of required) {
      if (!spend(work, name)) break
      const fitted = nameOf(work, name, at)
      if (!known.has(fitted)) {
        change(work, below(at, fitted), "a required property without a schema")
        copies.push([fitted, anyValue(undefined, false)])
      }
      names.push(fitted)
    }
    if (copies.length > 0 || depth === 0) entries.push(["properties", Object.fromEntries(copies)])
    if (names.length > 0) entries.push(["required", names])
  }
  return Object.fromEntries(entries)
}

/** A note on a keyword that is left out. */
const noteOf = (label: string, value: unknown): string =>
  isObject(value) && typeof value["type"] === "string"
    ? `${label}, of the type ${quote(value["type"], 32)}`
    : typeof value === "object" || typeof value === "boolean"
    ? label
    : `${label} ${written(value)}`

const itemsOf = (work: Work, { chains, rest }: Merged, at: string, depth: number): JsonObject => {
  const items = rest.get("items")
  const place = `${at}[]`
  const tuple = Array.isArray(items) ? items : rest.get("prefixItems")
  if (Array.isArray(tuple)) {
    change(work, place, "items by position", "each item has its own form, by its position")
    return reduce(work, { anyOf: tuple }, place, depth + 1, chains.get(Array.isArray(items) ? "items" : "prefixItems"))
  }
  if (isObject(items)) return reduce(work, items, place, depth + 1, chains.get("items"))
  change(work, place, "a list without items")
  return anyValue(undefined, false)
}

// ---- the whole

/** How many units a schema has, and at most `most`. */
const unitsOf = (root: unknown, most: number): number => {
  let units = 0
  const open = [root]
  while (open.length > 0 && units < most) {
    const value = open.pop()
    units += typeof value === "string" ? 1 + (value.length >> 5) : 1
    if (typeof value !== "object" || value === null) continue
    for (const key of Object.keys(value)) {
      if (open.length + units > most) break
      open.push((value as Record<string, unknown>)[key])
    }
  }
  return units
}

const note = (changes: ReadonlyArray<Change>, more: number): string | undefined => {
  const weakened = changes.flatMap(({ at, weakened }) => weakened === undefined ? [] : [{ at, weakened }])
  if (weakened.length === 0) return undefined
  const lines = weakened.slice(0, maxNotes).map(({ at, weakened }) =>
    `- ${at === "" ? "the arguments" : at}: ${weakened}`
  )
  const others = weakened.length - lines.length + more
  return [
    "The schema of the arguments is simplified. The server also requires or accepts:",
    ...lines,
    ...others === 0 ? [] : [`- and ${others} more, which errors of the tool name`]
  ].join("\n")
}

const whole = (work: Work): JsonObject => {
  const { root, rules } = work
  work.open.add(root)
  if (rules.isSubset) return reduce(work, root, "", 0, { target: root, up: undefined })
  const composed = ["$ref", "allOf", "anyOf", "oneOf"].filter((key) => Object.hasOwn(root, key))
  let base: JsonObject = root
  if (composed.length > 0) {
    const all = merged()
    gather(work, root, all, "", true, 0, { target: root, up: undefined })
    for (const key of composed) if (key === "allOf" || key === "$ref") change(work, "", `${key} at the root`)
    // A closed root would refuse the properties of its parts.
    all.rest.delete("additionalProperties")
    all.rest.delete("unevaluatedProperties")
    base = {
      ...Object.fromEntries(all.rest),
      properties: Object.fromEntries(Array.from(propertiesOf(all), ([name, { schema }]) => [name, schema])),
      ...all.required.size === 0 ? undefined : { required: Array.from(all.required) }
    }
  }
  if (base["type"] !== "object") change(work, "", "a root that is not of the type object")
  const entries: Entries = [["type", "object"]]
  let hasProperties = false
  for (const key of Object.keys(base)) {
    if (!spend(work)) break
    if (key === "type") continue
    if (rules.root !== undefined ? rules.root.has(key) : !rules.refusedAtRoot.has(key)) {
      hasProperties ||= key === "properties"
      entries.push([key, base[key]])
    } else if (!annotations.has(key)) {
      change(
        work,
        "",
        `${key} at the root`,
        base[key] === false ? undefined : `the rule ${quote(key, 32)} of the server`
      )
    }
  }
  if (!hasProperties) entries.push(["properties", {}])
  return keep(work, Object.fromEntries(entries), "", 0) as JsonObject
}

const cache = new WeakMap<object, Map<Form, Fitted>>()

/**
 * Fits the input schema of a tool to a provider. The result for the same object is stored, so that each toolkit does not
 * repeat the work.
 *
 * @example
 * const { schema, describe } = fitSchema(tool.inputSchema, "gemini")
 */
export const fitSchema = (schema: Tool["inputSchema"], form: Form): Fitted => {
  const stored = cache.get(schema)?.get(form)
  if (stored !== undefined) return stored
  const fitted = form === "none" ? unchanged(schema) : fitNow(schema, rulesOf[form])
  const forms = cache.get(schema) ?? new Map<Form, Fitted>()
  cache.set(schema, forms.set(form, fitted))
  return fitted
}

const unchanged = (schema: Tool["inputSchema"]): Fitted => ({
  schema,
  changes: [],
  more: 0,
  describe: (description) => description,
  restore: (args) => args
})

const fitNow = (root: JsonObject, rules: Rules): Fitted => {
  const work: Work = {
    rules,
    root,
    left: Math.min(maxWork, 4 * unitsOf(root, maxWork) + 1_000),
    changes: [],
    more: 0,
    originals: new Map(),
    renamed: new Map(),
    open: new Set()
  }
  // The root of each form has this type.
  const schema = whole(work) as Tool["inputSchema"]
  const text = note(work.changes, work.more)
  return {
    schema,
    changes: work.changes,
    more: work.more,
    describe: (description) =>
      text === undefined ? description : description === undefined ? text : `${description}\n\n${text}`,
    restore: (args) => work.originals.size === 0 ? args : restoreNames(args, work.originals)
  }
}
