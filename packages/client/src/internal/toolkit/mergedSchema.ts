/**
 * Merges a schema with the schemas that it refers to or consists of, for places where a provider accepts one plain object.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { constraints } from "./providerRules.ts"
import { change, nameOf, resolve, spend, type Work, written } from "./schemaWork.ts"

/** How deep references, parts and alternatives of one schema may be nested. */
const maxParts = 16

/** The definitions that contain a place. A reference to one of them is recursive. */
export interface Chain {
  readonly target: unknown
  readonly up: Chain | undefined
}

const contains = (chain: Chain | undefined, target: unknown): boolean => {
  for (let each = chain; each !== undefined; each = each.up) if (each.target === target) return true
  return false
}

/** A property, and the definitions that contain it. */
export interface Found {
  readonly schema: unknown
  readonly chain: Chain | undefined
}

/** A schema together with the schemas that it refers to or consists of. */
export interface Merged {
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

/** Gathers the keywords of a schema, of its parts and of its references. With `isFlat`, its alternatives become one object. */
export const gather = (
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

export const merged = (): Merged => ({
  own: new Map(),
  any: new Map(),
  required: new Set(),
  rest: new Map(),
  chains: new Map(),
  hasRefs: false,
  isRecursive: false
})

export const propertiesOf = ({ any, own }: Merged): Map<string, Found> => {
  const all = new Map(own)
  for (const [name, list] of any) {
    const [first] = list
    if (all.has(name) || first === undefined) continue
    all.set(name, list.length === 1 ? first : { ...first, schema: { anyOf: list.map(({ schema }) => schema) } })
  }
  return all
}
