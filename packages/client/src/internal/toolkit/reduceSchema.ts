/**
 * Writes a schema with the keywords of OpenAPI 3.0 that Gemini accepts.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import { type Chain, type Found, gather, type Merged, merged, propertiesOf } from "./mergedSchema.ts"
import { allFormats, constraints, typed } from "./providerRules.ts"
import {
  below,
  change,
  type Entries,
  hasLookaround,
  nameOf,
  spend,
  spendAll,
  type Work,
  written
} from "./schemaWork.ts"

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
export const reduce = (
  work: Work,
  schema: unknown,
  at: string,
  depth: number,
  chain: Chain | undefined
): JsonObject => {
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
