/**
 * Fits a schema to a provider that accepts most of JSON Schema.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import { constraints } from "./providerRules.ts"
import {
  below,
  change,
  type Entries,
  hasLookaround,
  nameOf,
  resolve,
  spend,
  spendAll,
  type Work,
  written
} from "./schemaWork.ts"

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

/** Copies a schema, with fitted names and without what the provider refuses. References to definitions stay. */
export const keep = (work: Work, schema: unknown, at: string, depth: number): unknown => {
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
