/**
 * The keywords for objects.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { areTexts, Keywords, type Part } from "./Keywords.ts"
import type { Node, Rule } from "./Node.ts"
import { counted } from "./scalars.ts"
import type { Work } from "./Work.ts"

const memberCount: Part = (keywords) => {
  const of = (value: unknown) => isObject(value) ? Object.keys(value).length : undefined
  return counted(of, keywords, "minProperties", "maxProperties", "members")
}

const members: Part = (keywords) => {
  const properties = keywords.map("properties")
  const named = [...keywords.map("patternProperties") ?? []].map(([source, node]) =>
    [keywords.pattern(source), node] as const
  )
  const others = keywords.schemaAt("additionalProperties")
  if (properties === undefined && named.length === 0 && others === undefined) return undefined
  return (value, work, seen) => {
    if (!isObject(value)) return true
    let ok = true
    for (const key of Object.keys(value)) {
      work.spend(1)
      const property = properties?.get(key)
      let known = property !== undefined
      if (known && !property!.checkAt(key, value[key], work)) ok = false
      for (const [test, node] of named) {
        work.spend(1)
        if (!test(key, work)) continue
        known = true
        if (!node.checkAt(key, value[key], work)) ok = false
      }
      if (!known && others !== undefined) {
        known = true
        if (!others.checkAt(key, value[key], work)) ok = false
      }
      if (!ok && work.brief) return false
      if (known) seen?.keys.add(key)
    }
    return ok
  }
}

const required: Part = (keywords) => {
  const names = keywords.texts("required")
  if (names === undefined) return undefined
  return (value, work) => !isObject(value) || demand(value, names, work)
}

const demand = (value: JsonObject, names: ReadonlyArray<string>, work: Work): boolean => {
  let ok = true
  work.spend(names.length >> 1)
  for (const name of names) {
    if (Object.hasOwn(value, name)) continue
    work.path.push(name)
    ok = work.refuse("Missing key")
    work.path.pop()
    if (work.brief) break
  }
  return ok
}

const propertyNames: Part = (keywords) => {
  const node = keywords.schemaAt("propertyNames")
  if (node === undefined) return undefined
  return (value, work) => {
    if (!isObject(value)) return true
    let ok = true
    for (const key of Object.keys(value)) {
      if (!node.checkAt(key, key, work)) ok = false
      if (!ok && work.brief) return false
    }
    return ok
  }
}

const dependentRequired: Part = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const given = keywords.read("dependentRequired", isObject, "an object of lists of strings")
  if (given === undefined) return undefined
  const inner = new Keywords(given, keywords.node, keywords.document, [...keywords.place, "dependentRequired"])
  const lists = Object.keys(given).map((key) => [key, inner.texts(key)!] as const)
  return (value, work) => !isObject(value) || demandAll(value, lists, work)
}

const demandAll = (
  value: JsonObject,
  lists: ReadonlyArray<readonly [string, ReadonlyArray<string>]>,
  work: Work
): boolean => {
  work.spend(lists.length >> 1)
  return lists.every(([key, names]) => !Object.hasOwn(value, key) || demand(value, names, work))
}

const dependentSchemas: Part = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const schemas = keywords.map("dependentSchemas")
  return schemas === undefined ? undefined : whenPresent(keywords, schemas)
}

const whenPresent = (keywords: Keywords, schemas: ReadonlyMap<string, Node>): Rule => {
  for (const node of schemas.values()) keywords.same(node)
  return (value, work, seen) => {
    if (!isObject(value)) return true
    let ok = true
    work.spend(schemas.size >> 1)
    for (const [key, node] of schemas) {
      if (Object.hasOwn(value, key) && !node.check(value, work, seen)) ok = false
      if (!ok && work.brief) return false
    }
    return ok
  }
}

/** draft-07: lists of names and schemas, in one keyword. */
const dependencies: Part = (keywords) => {
  if (keywords.document.dialect !== "draft-07") return undefined
  const given = keywords.read("dependencies", isObject, "an object")
  if (given === undefined) return undefined
  const schemas = new Map<string, Node>()
  const lists: Array<readonly [string, ReadonlyArray<string>]> = []
  for (const [key, one] of Object.entries(given)) {
    if (areTexts(one)) lists.push([key, one])
    else schemas.set(key, keywords.document.node(one, [...keywords.place, "dependencies", key]))
  }
  const others = whenPresent(keywords, schemas)
  return (value, work, seen) => others(value, work, seen) && (!isObject(value) || demandAll(value, lists, work))
}

/** After all others: what they have looked at is done. */
export const unevaluatedProperties: Part = (keywords) => {
  const node = keywords.schemaAt("unevaluatedProperties")
  if (node === undefined) return undefined
  keywords.node.tracks = true
  return (value, work, seen) => {
    if (!isObject(value)) return true
    let ok = true
    for (const key of Object.keys(value)) {
      work.spend(1)
      if (seen!.keys.has(key)) continue
      if (!node.checkAt(key, value[key], work)) ok = false
      if (!ok && work.brief) return false
      seen!.keys.add(key)
    }
    return ok
  }
}

/** The other keywords. */
export const parts: ReadonlyArray<Part> = [
  memberCount,
  required,
  dependentRequired,
  propertyNames,
  members,
  dependentSchemas,
  dependencies
]
