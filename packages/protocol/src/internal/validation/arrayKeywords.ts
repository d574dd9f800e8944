/**
 * The keywords for arrays.
 */
import { isBoolean, isList, type Keyword, type KeywordReader } from "./keywordReader.ts"
import type { SchemaNode } from "./schemaNode.ts"
import { countRule } from "./scalarKeywords.ts"
import { areUnique } from "./values.ts"
import type { ValidationState } from "./validationState.ts"

const itemCount: Keyword = (keywords) =>
  countRule((value) => isList(value) ? value.length : undefined, keywords, "minItems", "maxItems", "items")

const unique: Keyword = (keywords) => {
  if (keywords.read("uniqueItems", isBoolean, "a boolean") !== true) return undefined
  return (value, state) => !isList(value) || areUnique(value, state) || state.report("Expected unique items")
}

/** Checks the items from an index on. Stops at the first problem if only the outcome counts. */
const eachItem = (node: SchemaNode, value: ReadonlyArray<unknown>, from: number, state: ValidationState): boolean => {
  let ok = true
  for (let index = from; index < value.length && (ok || !state.stopAtFirst); index++) {
    if (!node.checkAt(index, value[index], state)) ok = false
  }
  return ok
}

const items: Keyword = (keywords) => {
  const old = keywords.document.dialect === "draft-07"
  const isTuple = old && isList(keywords.schema["items"])
  const first = isTuple ? tuple(keywords) : old ? undefined : keywords.list("prefixItems")
  const rest = keywords.schemaAt(isTuple ? "additionalItems" : "items")
  if (first === undefined && rest === undefined) return undefined
  const length = first?.length ?? 0
  return (value, state, evaluated) => {
    if (!isList(value)) return true
    let ok = true
    for (let index = 0; index < Math.min(length, value.length) && (ok || !state.stopAtFirst); index++) {
      if (!first![index]!.checkAt(index, value[index], state)) ok = false
    }
    if (rest !== undefined && (ok || !state.stopAtFirst) && !eachItem(rest, value, length, state)) ok = false
    if (evaluated !== undefined) evaluated.items = rest === undefined ? Math.max(evaluated.items, length) : Infinity
    return ok
  }
}

/** The schemas of a tuple in draft-07, which may be empty. */
const tuple = (keywords: KeywordReader): ReadonlyArray<SchemaNode> =>
  (keywords.schema["items"] as ReadonlyArray<unknown>).length === 0 ? [] : keywords.list("items")!

const contains: Keyword = (keywords) => {
  const node = keywords.schemaAt("contains")
  const old = keywords.document.dialect === "draft-07"
  const min = old ? 1 : keywords.count("minContains") ?? 1
  const max = old ? undefined : keywords.count("maxContains")
  if (node === undefined) return undefined
  return (value, state, evaluated) => {
    if (!isList(value)) return true
    let count = 0
    state.withoutProblems(() => {
      for (let index = 0; index < value.length; index++) {
        if (evaluated === undefined && max === undefined && count >= min) break
        if (!node.check(value[index], state)) continue
        count++
        evaluated?.indices.add(index)
      }
      return true
    })
    if (count < min) return state.report(`Expected at least ${min} items that match the schema in \`contains\``)
    return max === undefined || count <= max ||
      state.report(`Expected at most ${max} items that match the schema in \`contains\``)
  }
}

/** `unevaluatedItems`. It must come after all other keywords, because it skips the items that they evaluated. */
export const unevaluatedItems: Keyword = (keywords) => {
  const node = keywords.schemaAt("unevaluatedItems")
  if (node === undefined) return undefined
  keywords.node.tracksEvaluation = true
  return (value, state, evaluated) => {
    if (!isList(value)) return true
    let ok = true
    for (
      let index = Math.min(evaluated!.items, value.length);
      index < value.length && (ok || !state.stopAtFirst);
      index++
    ) {
      state.spend(1)
      if (!evaluated!.indices.has(index) && !node.checkAt(index, value[index], state)) ok = false
    }
    if (ok) evaluated!.items = Infinity
    return ok
  }
}

/** The keywords of this module except `unevaluatedItems`. */
export const arrayKeywords: ReadonlyArray<Keyword> = [itemCount, unique, items, contains]
