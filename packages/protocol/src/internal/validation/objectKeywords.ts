/**
 * The keywords for objects.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { areTexts, type Keyword, KeywordReader, type NamedKeyword } from "./keywordReader.ts"
import { pathTo, type Rule, type SchemaNode } from "./schemaNode.ts"
import { countRule } from "./scalarKeywords.ts"
import { hashable } from "./values.ts"
import type { ValidationState } from "./validationState.ts"

const memberCount: Keyword = (keywords) => {
  const of = (value: unknown, state: ValidationState) => isObject(value) ? state.keysOf(value).length : undefined
  return countRule(of, keywords, "minProperties", "maxProperties", "members")
}

/** Where the loop over members continues after a pause. */
interface Position {
  readonly keys: ReadonlyArray<string>
  /** The member. */
  readonly index: number
  /** The pattern for the member, and whether the key matches it. -1 is the schema in `properties`. */
  readonly pattern: number
  readonly matches: boolean
  /** Whether `properties` or a pattern applies to the member. */
  readonly known: boolean
  readonly ok: boolean
}

const members: Keyword = (keywords) => {
  const properties = keywords.entries("properties")
  const named = (keywords.entries("patternProperties") ?? []).map(([source, node]) =>
    [keywords.pattern(source), node] as const
  )
  const others = keywords.schemaAt("additionalProperties")
  if (properties === undefined && named.length === 0 && others === undefined) return undefined
  const find = properties === undefined ? undefined : finder(properties)
  const patterns = named.length
  return (value, state, evaluated) => {
    if (!isObject(value)) return true
    let keys: ReadonlyArray<string>
    let index = 0
    let pattern = -1
    let matches = false
    let known = false
    let ok = true
    if (state.isResuming) ({ index, keys, known, matches, ok, pattern } = state.resume<Position>())
    else keys = state.keysOf(value)
    try {
      for (; index < keys.length; index++) {
        const key = keys[index]!
        if (pattern < 0) {
          state.spend(1)
          const property = find?.(key)
          known = property !== undefined
          if (known && !property!.checkAt(key, value[key], state)) ok = false
          pattern = 0
        }
        for (; pattern < patterns; pattern++) {
          const [test, node] = named[pattern]!
          if (!matches) {
            state.spend(1)
            if (!test(key, state)) continue
          }
          matches = true
          known = true
          if (!node.checkAt(key, value[key], state)) ok = false
          matches = false
        }
        if (!known && others !== undefined) {
          if (!others.checkAt(key, value[key], state)) ok = false
          known = true
        }
        if (!ok && state.stopAtFirst) return false
        if (known) evaluated?.add(index, keys.length, state)
        pattern = -1
      }
    } catch (error) {
      throw state.save(error, { index, keys, known, matches, ok, pattern } satisfies Position)
    }
    return ok
  }
}

/** Makes the function that finds the schema of a member. */
const finder = (
  properties: ReadonlyArray<readonly [key: string, node: SchemaNode]>
): (key: string) => SchemaNode | undefined => {
  const nodes = new Map(properties.map(([key, node]) => [hashable(key), node]))
  return properties.every(([key]) => hashable(key) === key)
    ? (key) => nodes.get(key)
    : (key) => nodes.get(hashable(key))
}

const required: Keyword = (keywords) => {
  const names = keywords.texts("required")
  if (names === undefined) return undefined
  return (value, state) => !isObject(value) || checkPresent(value, names, state)
}

const checkPresent = (value: JsonObject, names: ReadonlyArray<string>, state: ValidationState): boolean => {
  let ok = true
  state.spend(names.length)
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
  return (value, state) => !isObject(value) || state.every(state.keysOf(value), (key) => node.checkAt(key, key, state))
}

type NameLists = ReadonlyArray<readonly [key: string, names: ReadonlyArray<string>]>

const dependentRequired: Keyword = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const given = keywords.read("dependentRequired", isObject, "an object of lists of strings")
  if (given === undefined) return undefined
  const inner = new KeywordReader(given, keywords.node, keywords.document, pathTo(keywords.path, "dependentRequired"))
  const lists: NameLists = Object.keys(given).map((key) => [key, inner.texts(key)!])
  return (value, state) => !isObject(value) || checkAllPresent(value, lists, state)
}

const checkAllPresent = (value: JsonObject, lists: NameLists, state: ValidationState): boolean =>
  state.every(lists, ([key, names]) => {
    state.spend(1)
    return !Object.hasOwn(value, key) || checkPresent(value, names, state)
  })

const dependentSchemas: Keyword = (keywords) => {
  if (keywords.document.dialect === "draft-07") return undefined
  const schemas = keywords.entries("dependentSchemas")
  return schemas === undefined ? undefined : whenPresent(keywords, schemas)
}

const whenPresent = (
  keywords: KeywordReader,
  schemas: ReadonlyArray<readonly [key: string, node: SchemaNode]>
): Rule => {
  for (const [, node] of schemas) keywords.inPlace(node)
  return (value, state, evaluated) =>
    !isObject(value) || state.every(schemas, ([key, node]) => {
      state.spend(1)
      return !Object.hasOwn(value, key) || node.check(value, state, evaluated)
    })
}

/** `dependencies` of draft-07, whose values are lists of names or schemas. */
const dependencies = (keywords: KeywordReader): JsonObject =>
  keywords.document.dialect === "draft-07" ? keywords.read("dependencies", isObject, "an object") ?? {} : {}

const dependencyLists: Keyword = (keywords) => {
  const lists = Object.entries(dependencies(keywords)).filter((entry): entry is [string, Array<string>] =>
    areTexts(entry[1])
  )
  return lists.length === 0 ? undefined : (value, state) => !isObject(value) || checkAllPresent(value, lists, state)
}

const dependencySchemas: Keyword = (keywords) => {
  const schemas = Object.entries(dependencies(keywords)).filter(([, one]) => !areTexts(one))
  if (schemas.length === 0) return undefined
  const { document, path } = keywords
  return whenPresent(
    keywords,
    schemas.map(([key, schema]) => [key, document.node(schema, pathTo(pathTo(path, "dependencies"), key))])
  )
}

/** `unevaluatedProperties`. It must come after all other keywords, because it skips the members that they evaluated. */
export const unevaluatedProperties: Keyword = (keywords) => {
  const node = keywords.schemaAt("unevaluatedProperties")
  if (node === undefined) return undefined
  keywords.node.tracksEvaluation = true
  return (value, state, evaluated) => {
    if (!isObject(value)) return true
    const keys = state.keysOf(value)
    return state.every(keys, (key, index) => {
      state.spend(1)
      if (evaluated!.has(index)) return true
      const ok = node.checkAt(key, value[key], state)
      if (ok || !state.stopAtFirst) evaluated!.add(index, keys.length, state)
      return ok
    })
  }
}

/** The keywords of this module except `unevaluatedProperties`. */
export const objectKeywords: ReadonlyArray<NamedKeyword> = [
  [["minProperties", "maxProperties"], memberCount],
  [["required"], required],
  [["dependentRequired"], dependentRequired],
  [["propertyNames"], propertyNames],
  [["properties", "patternProperties", "additionalProperties"], members],
  [["dependentSchemas"], dependentSchemas],
  [["dependencies"], dependencySchemas],
  [["dependencies"], dependencyLists]
]
