/**
 * The keywords that apply other schemas to the same value: `allOf`, `anyOf`, `oneOf`, `not`, `if` and references.
 */
import type { Keyword } from "./keywordReader.ts"
import type { SchemaNode } from "./schemaNode.ts"
import type { ValidationState } from "./validationState.ts"

const allOf: Keyword = (keywords) => {
  const nodes = keywords.list("allOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  return (value, state, evaluated) => state.every(nodes, (node) => node.check(value, state, evaluated))
}

const anyOf: Keyword = (keywords) => {
  const nodes = keywords.list("anyOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  return (value, state, evaluated) => {
    let ok = false
    state.withoutProblems(() => {
      for (const node of nodes) {
        if (node.check(value, state, evaluated)) ok = true
        // The other schemas evaluate members and items too, which counts where evaluation is tracked.
        if (ok && evaluated === undefined) break
      }
      return ok
    })
    return ok || reportNone(nodes, value, state, "Expected a value that matches at least one schema in `anyOf`")
  }
}

const oneOf: Keyword = (keywords) => {
  const nodes = keywords.list("oneOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  return (value, state, evaluated) => {
    let count = 0
    state.withoutProblems(() => {
      for (const node of nodes) if (count < 2 && node.check(value, state, evaluated)) count++
      return true
    })
    if (count === 1) return true
    return count > 1
      ? state.report("Expected a value that matches only one schema in `oneOf`")
      : reportNone(nodes, value, state, "Expected a value that matches one schema in `oneOf`")
  }
}

/** Reports that the value matches no alternative. If there is only one alternative, its own problems are reported. */
const reportNone = (
  nodes: ReadonlyArray<SchemaNode>,
  value: unknown,
  state: ValidationState,
  message: string
): false => {
  if (state.stopAtFirst) return false
  if (nodes.length === 1) nodes[0]!.check(value, state)
  else state.report(message)
  return false
}

const not: Keyword = (keywords) => {
  const node = keywords.schemaAt("not")
  if (node === undefined) return undefined
  keywords.inPlace(node)
  return (value, state) =>
    !state.withoutProblems(() => node.check(value, state)) ||
    state.report("Expected a value that does not match the schema in `not`")
}

const conditional: Keyword = (keywords) => {
  const condition = keywords.schemaAt("if")
  const then = keywords.schemaAt("then")
  const otherwise = keywords.schemaAt("else")
  if (condition === undefined) return undefined
  for (const node of [condition, then, otherwise]) if (node !== undefined) keywords.inPlace(node)
  return (value, state, evaluated) => {
    const branch = state.withoutProblems(() => condition.check(value, state, evaluated)) ? then : otherwise
    return branch === undefined || branch.check(value, state, evaluated)
  }
}

/** `$ref` and `$dynamicRef`. */
export const reference = (keyword: "$ref" | "$dynamicRef"): Keyword => (keywords) => {
  const { document, node, path, schema } = keywords
  if (!Object.hasOwn(schema, keyword)) return undefined
  // A document is a single resource, so a dynamic reference has the same target as a plain one.
  return document.reference(schema[keyword], node, [...path, keyword])
}

/**
 * `$defs` and `definitions`. Their schemas are compiled although nothing may refer to them, because they must be valid.
 */
export const definitions: Keyword = (keywords) => {
  keywords.map("$defs")
  keywords.map("definitions")
  return undefined
}

/** The keywords of this module except references and definitions. */
export const compositionKeywords: ReadonlyArray<Keyword> = [allOf, anyOf, oneOf, not, conditional]
