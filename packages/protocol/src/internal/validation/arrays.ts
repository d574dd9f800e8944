/**
 * The keywords for lists.
 */
import { isBoolean, isList, type Keywords, type Part } from "./Keywords.ts"
import type { Node } from "./Node.ts"
import { counted } from "./scalars.ts"
import { areUnique } from "./values.ts"
import type { Work } from "./Work.ts"

const itemCount: Part = (keywords) =>
  counted((value) => isList(value) ? value.length : undefined, keywords, "minItems", "maxItems", "items")

const unique: Part = (keywords) => {
  if (keywords.read("uniqueItems", isBoolean, "a boolean") !== true) return undefined
  return (value, work) =>
    !isList(value) || areUnique(value, work) || work.refuse("Expected items that are all different")
}

/** All of a value's parts from one on, until the first that is wrong and nobody wants to hear of more. */
const eachItem = (node: Node, value: ReadonlyArray<unknown>, from: number, work: Work): boolean => {
  let ok = true
  for (let index = from; index < value.length && (ok || !work.brief); index++) {
    if (!node.checkAt(index, value[index], work)) ok = false
  }
  return ok
}

const items: Part = (keywords) => {
  const old = keywords.document.dialect === "draft-07"
  const isTuple = old && isList(keywords.schema["items"])
  const first = isTuple ? tuple(keywords) : old ? undefined : keywords.list("prefixItems")
  const rest = keywords.schemaAt(isTuple ? "additionalItems" : "items")
  if (first === undefined && rest === undefined) return undefined
  const length = first?.length ?? 0
  return (value, work, seen) => {
    if (!isList(value)) return true
    let ok = true
    for (let index = 0; index < Math.min(length, value.length) && (ok || !work.brief); index++) {
      if (!first![index]!.checkAt(index, value[index], work)) ok = false
    }
    if (rest !== undefined && (ok || !work.brief) && !eachItem(rest, value, length, work)) ok = false
    if (seen !== undefined) seen.items = rest === undefined ? Math.max(seen.items, length) : Infinity
    return ok
  }
}

/** In draft-07 a tuple may be empty. */
const tuple = (keywords: Keywords): ReadonlyArray<Node> =>
  (keywords.schema["items"] as ReadonlyArray<unknown>).length === 0 ? [] : keywords.list("items")!

const contains: Part = (keywords) => {
  const node = keywords.schemaAt("contains")
  const old = keywords.document.dialect === "draft-07"
  const min = old ? 1 : keywords.count("minContains") ?? 1
  const max = old ? undefined : keywords.count("maxContains")
  if (node === undefined) return undefined
  return (value, work, seen) => {
    if (!isList(value)) return true
    let count = 0
    work.quietly(() => {
      for (let index = 0; index < value.length; index++) {
        if (seen === undefined && max === undefined && count >= min) break
        if (!node.check(value[index], work)) continue
        count++
        seen?.indices.add(index)
      }
      return true
    })
    if (count < min) return work.refuse(`Expected at least ${min} items of those that \`contains\` asks for`)
    return max === undefined || count <= max ||
      work.refuse(`Expected at most ${max} items of those that \`contains\` asks for`)
  }
}

/** After all others: what they have looked at is done. */
export const unevaluatedItems: Part = (keywords) => {
  const node = keywords.schemaAt("unevaluatedItems")
  if (node === undefined) return undefined
  keywords.node.tracks = true
  return (value, work, seen) => {
    if (!isList(value)) return true
    let ok = true
    for (let index = Math.min(seen!.items, value.length); index < value.length && (ok || !work.brief); index++) {
      work.spend(1)
      if (!seen!.indices.has(index) && !node.checkAt(index, value[index], work)) ok = false
    }
    if (ok) seen!.items = Infinity
    return ok
  }
}

/** The other keywords. */
export const parts: ReadonlyArray<Part> = [itemCount, unique, items, contains]
