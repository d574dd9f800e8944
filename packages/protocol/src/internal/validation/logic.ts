/**
 * The keywords that apply other schemas to the same value.
 */
import type { Part } from "./Keywords.ts"
import type { Node } from "./Node.ts"
import type { Work } from "./Work.ts"

const allOf: Part = (keywords) => {
  const nodes = keywords.list("allOf")?.map((node) => keywords.same(node))
  if (nodes === undefined) return undefined
  return (value, work, seen) => {
    let ok = true
    for (const node of nodes) {
      if (!node.check(value, work, seen)) ok = false
      if (!ok && work.brief) return false
    }
    return ok
  }
}

const anyOf: Part = (keywords) => {
  const nodes = keywords.list("anyOf")?.map((node) => keywords.same(node))
  if (nodes === undefined) return undefined
  return (value, work, seen) => {
    let ok = false
    work.quietly(() => {
      for (const node of nodes) {
        if (node.check(value, work, seen)) ok = true
        // What the others look at counts too, where somebody asks for it.
        if (ok && seen === undefined) break
      }
      return ok
    })
    return ok || explain(nodes, value, work, "Expected one of several forms, and it fits none")
  }
}

const oneOf: Part = (keywords) => {
  const nodes = keywords.list("oneOf")?.map((node) => keywords.same(node))
  if (nodes === undefined) return undefined
  return (value, work, seen) => {
    let count = 0
    work.quietly(() => {
      for (const node of nodes) if (count < 2 && node.check(value, work, seen)) count++
      return true
    })
    if (count === 1) return true
    return count > 1
      ? work.refuse("Expected exactly one of several forms, and it fits more")
      : explain(nodes, value, work, "Expected one of several forms, and it fits none")
  }
}

/** Says that no alternative fits; of an only one, why. */
const explain = (nodes: ReadonlyArray<Node>, value: unknown, work: Work, message: string): false => {
  if (work.brief) return false
  if (nodes.length === 1) nodes[0]!.check(value, work)
  else work.refuse(message)
  return false
}

const not: Part = (keywords) => {
  const node = keywords.schemaAt("not")
  if (node === undefined) return undefined
  keywords.same(node)
  return (value, work) => !work.quietly(() => node.check(value, work)) || work.refuse("This value is excluded")
}

const conditional: Part = (keywords) => {
  const condition = keywords.schemaAt("if")
  const then = keywords.schemaAt("then")
  const otherwise = keywords.schemaAt("else")
  if (condition === undefined) return undefined
  for (const node of [condition, then, otherwise]) if (node !== undefined) keywords.same(node)
  return (value, work, seen) => {
    const branch = work.quietly(() => condition.check(value, work, seen)) ? then : otherwise
    return branch === undefined || branch.check(value, work, seen)
  }
}

/** What another schema says. */
export const reference = (keyword: "$ref" | "$dynamicRef"): Part => (keywords) => {
  const { document, node, place, schema } = keywords
  if (!Object.hasOwn(schema, keyword)) return undefined
  // There is one resource, so that a dynamic reference leads where a plain one does.
  return document.reference(schema[keyword], node, [...place, keyword])
}

/** Schemas that are there to be referred to. They are read all the same: a schema must be valid. */
export const definitions: Part = (keywords) => {
  keywords.map("$defs")
  keywords.map("definitions")
  return undefined
}

/** The other keywords. */
export const parts: ReadonlyArray<Part> = [allOf, anyOf, oneOf, not, conditional]
