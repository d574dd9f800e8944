/**
 * The keywords for arrays.
 */
import { isBoolean, isList, type Keyword, type KeywordReader, type NamedKeyword } from "./keywordReader.ts"
import type { SchemaNode } from "./schemaNode.ts"
import { countRule } from "./scalarKeywords.ts"
import { areUnique } from "./uniqueItems.ts"

const itemCount: Keyword = (keywords) =>
  countRule((value) => isList(value) ? value.length : undefined, keywords, "minItems", "maxItems", "items")

const unique: Keyword = (keywords) => {
  if (keywords.read("uniqueItems", isBoolean, "a boolean") !== true) return undefined
  return (value, state) => !isList(value) || areUnique(value, state) || state.report("Expected unique items")
}

/** Where a loop over items continues after a pause. */
interface Position {
  readonly index: number
  readonly ok: boolean
}

const items: Keyword = (keywords) => {
  const old = keywords.document.dialect === "draft-07"
  const isTuple = old && isList(keywords.schema["items"])
  const first = (isTuple ? tuple(keywords) : old ? undefined : keywords.list("prefixItems")) ?? []
  const rest = keywords.schemaAt(isTuple ? "additionalItems" : "items")
  if (first.length === 0 && rest === undefined) return undefined
  return (value, state, evaluated) => {
    if (!isList(value)) return true
    const end = rest === undefined ? Math.min(first.length, value.length) : value.length
    let index = 0
    let ok = true
    if (state.isResuming) ({ index, ok } = state.resume<Position>())
    try {
      for (; index < end && (ok || !state.stopAtFirst); index++) {
        const node = index < first.length ? first[index]! : rest!
        if (!node.checkAt(index, value[index], state)) ok = false
      }
    } catch (error) {
      throw state.save(error, { index, ok } satisfies Position)
    }
    if (evaluated !== undefined) {
      evaluated.items = rest === undefined
        ? Math.max(evaluated.items, first.length)
        : Infinity
    }
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
    let index = 0
    let count = 0
    if (state.isResuming) ({ count, index } = state.resume<{ readonly count: number; readonly index: number }>())
    const { stopAtFirst } = state
    state.stopAtFirst = true
    try {
      for (; index < value.length; index++) {
        if (evaluated === undefined && max === undefined && count >= min) break
        if (!node.check(value[index], state)) continue
        count++
        evaluated?.add(index, value.length, state)
      }
    } catch (error) {
      throw state.save(error, { count, index })
    }
    state.stopAtFirst = stopAtFirst
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
    let index = Math.min(evaluated!.items, value.length)
    let ok = true
    if (state.isResuming) ({ index, ok } = state.resume<Position>())
    try {
      for (; index < value.length && (ok || !state.stopAtFirst); index++) {
        state.spend(1)
        if (!evaluated!.has(index) && !node.checkAt(index, value[index], state)) ok = false
      }
    } catch (error) {
      throw state.save(error, { index, ok } satisfies Position)
    }
    if (ok) evaluated!.items = Infinity
    return ok
  }
}

/** The keywords of this module except `unevaluatedItems`. */
export const arrayKeywords: ReadonlyArray<NamedKeyword> = [
  [["minItems", "maxItems"], itemCount],
  [["uniqueItems"], unique],
  [["items", "prefixItems", "additionalItems"], items],
  [["contains", "minContains", "maxContains"], contains]
]
