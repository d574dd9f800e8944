/**
 * The keywords for objects.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { areTexts, type Keyword, KeywordReader } from "./keywordReader.ts"
import type { Rule, SchemaNode } from "./schemaNode.ts"
import { countRule } from "./scalarKeywords.ts"
import type { ValidationState } from "./validationState.ts"

const memberCount: Keyword = (keywords) => {
  const of = (value: unknown) => isObject(value) ? Object.keys(value).length : undefined
  return countRule(of, keywords, "minProperties", "maxProperties", "members")
}

const members: Keyword = (keywords) => {
  const properties = keywords.map("properties")
  const named = [...keywords.map("patternProperties") ?? []].map(([source, node]) =>
    [keywords.pattern(source), node] as const
  )
  const others = keywords.schemaAt("additionalProperties")
  if (properties === undefined && named.length === 0 && others === undefined) return undefined
  return (value, state, evaluated) => {
    if (!isObject(value)) return true
    let ok = true
    for (const key of Object.keys(value)) {
      state.spend(1)
      const property = properties?.get(key)
      let known = property !== undefined
      if (known && !property!.checkAt(key, value[key], state)) ok = false
      for (const [test, node] of named) {
        state.spend(1)
        if (!test(key, state)) continue
        known = true
        if (!node.checkAt(key, value[key], state)) ok = false
      }
      if (!known && others !== undefined) {
        known = true
        if (!others.checkAt(key, value[key], state)) ok = false
      }
      if (!ok && state.stopAtFirst) return false
      if (known) evaluated?.keys.add(key)
    }
    return ok
  }
}

const required: Keyword = (keywords) => {
  const names = keywords.texts("required")
  if (names === undefined) return undefined
  return (value, state) => !isObject(value) || checkPresent(value, names, state)
}

const checkPresent = (value: JsonObject, names: ReadonlyArray<string>, state: ValidationState): boolean => {
  let ok = true
  state.spend(names.length >> 1)
  for (const name of names) {
    if (Object.hasOwn(value, name)) continue
    state.path.push(name)
    ok = state.report("Missing key")
    state.path.pop()
    if (state.stopAtFirst) break
  }
  return ok
}

const propertyNames: Keyword = (keywords) => {
  const node = keywords.schemaAt("propertyNames")
  if (node === undefined) return undefined
  return (value, state) => !isObject(value) || state.every(Object.keys(value), (key) => node.checkAt(key, key, state))
}

const dependentRequired: Keyword = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const given = keywords.read("dependentRequired", isObject, "an object of lists of strings")
  if (given === undefined) return undefined
  const inner = new KeywordReader(given, keywords.node, keywords.document, [...keywords.path, "dependentRequired"])
  const lists = Object.keys(given).map((key) => [key, inner.texts(key)!] as const)
  return (value, state) => !isObject(value) || checkAllPresent(value, lists, state)
}

const checkAllPresent = (
  value: JsonObject,
  lists: ReadonlyArray<readonly [string, ReadonlyArray<string>]>,
  state: ValidationState
): boolean => {
  state.spend(lists.length >> 1)
  return lists.every(([key, names]) => !Object.hasOwn(value, key) || checkPresent(value, names, state))
}

const dependentSchemas: Keyword = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const schemas = keywords.map("dependentSchemas")
  return schemas === undefined ? undefined : whenPresent(keywords, schemas)
}

const whenPresent = (keywords: KeywordReader, schemas: ReadonlyMap<string, SchemaNode>): Rule => {
  for (const node of schemas.values()) keywords.inPlace(node)
  return (value, state, evaluated) => {
    if (!isObject(value)) return true
    state.spend(schemas.size >> 1)
    return state.every(
      schemas,
      ([key, node]) => !Object.hasOwn(value, key) || node.check(value, state, evaluated)
    )
  }
}

/** `dependencies` of draft-07, whose values are lists of names or schemas. */
const dependencies: Keyword = (keywords) => {
  if (keywords.document.dialect !== "draft-07") return undefined
  const given = keywords.read("dependencies", isObject, "an object")
  if (given === undefined) return undefined
  const schemas = new Map<string, SchemaNode>()
  const lists: Array<readonly [string, ReadonlyArray<string>]> = []
  for (const [key, one] of Object.entries(given)) {
    if (areTexts(one)) lists.push([key, one])
    else schemas.set(key, keywords.document.node(one, [...keywords.path, "dependencies", key]))
  }
  const others = whenPresent(keywords, schemas)
  return (value, state, evaluated) =>
    others(value, state, evaluated) && (!isObject(value) || checkAllPresent(value, lists, state))
}

/** `unevaluatedProperties`. It must come after all other keywords, because it skips the members that they evaluated. */
export const unevaluatedProperties: Keyword = (keywords) => {
  const node = keywords.schemaAt("unevaluatedProperties")
  if (node === undefined) return undefined
  keywords.node.tracksEvaluation = true
  return (value, state, evaluated) => {
    if (!isObject(value)) return true
    return state.every(Object.keys(value), (key) => {
      state.spend(1)
      if (evaluated!.keys.has(key)) return true
      const ok = node.checkAt(key, value[key], state)
      if (ok || !state.stopAtFirst) evaluated!.keys.add(key)
      return ok
    })
  }
}

/** The keywords of this module except `unevaluatedProperties`. */
export const objectKeywords: ReadonlyArray<Keyword> = [
  memberCount,
  required,
  dependentRequired,
  propertyNames,
  members,
  dependentSchemas,
  dependencies
]
