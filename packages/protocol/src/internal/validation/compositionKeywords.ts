/**
 * The keywords that apply other schemas to the same value: `allOf`, `anyOf`, `oneOf`, `not`, `if` and references.
 */
import type { Keyword, NamedKeyword } from "./keywordReader.ts"
import { pathTo, type Rule, type SchemaNode } from "./schemaNode.ts"
import type { ValidationState } from "./validationState.ts"

const allOf: Keyword = (keywords) => {
  const nodes = keywords.list("allOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  return (value, state, evaluated) => state.every(nodes, (node) => node.check(value, state, evaluated))
}

/** Where a loop over alternatives continues after a pause. */
interface Position {
  readonly index: number
  /** The number of alternatives that the value matches. */
  readonly count: number
}

/**
 * Counts the alternatives that a value matches, until there are enough. `report` decides by the count, and reports the
 * problems of the value.
 */
const counting = (
  nodes: ReadonlyArray<SchemaNode>,
  enough: (isTracked: boolean) => number,
  report: (count: number, value: unknown, state: ValidationState) => boolean
): Rule =>
(value, state, evaluated) => {
  let index = 0
  let count = 0
  if (state.isResuming) ({ count, index } = state.resume<Position>())
  const { stopAtFirst } = state
  state.stopAtFirst = true
  try {
    const most = enough(evaluated !== undefined)
    for (; index < nodes.length && count < most; index++) if (nodes[index]!.check(value, state, evaluated)) count++
    state.stopAtFirst = stopAtFirst
    return report(count, value, state)
  } catch (error) {
    throw state.save(error, { count, index } satisfies Position)
  }
}

const anyOf: Keyword = (keywords) => {
  const nodes = keywords.list("anyOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  // Where evaluation is tracked, the schemas after the first match evaluate members and items too.
  return counting(
    nodes,
    (isTracked) => isTracked ? Infinity : 1,
    (count, value, state) =>
      count > 0 || reportNone(nodes, value, state, "Expected a value that matches at least one schema in `anyOf`")
  )
}

const oneOf: Keyword = (keywords) => {
  const nodes = keywords.list("oneOf")?.map((node) => keywords.inPlace(node))
  if (nodes === undefined) return undefined
  return counting(nodes, () => 2, (count, value, state) => {
    if (count === 1) return true
    return count > 1
      ? state.report("Expected a value that matches only one schema in `oneOf`")
      : reportNone(nodes, value, state, "Expected a value that matches one schema in `oneOf`")
  })
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
    let holds = state.isResuming ? state.resume<boolean | undefined>() : undefined
    try {
      holds ??= state.withoutProblems(() => condition.check(value, state, evaluated))
      const branch = holds ? then : otherwise
      return branch === undefined || branch.check(value, state, evaluated)
    } catch (error) {
      throw state.save(error, holds)
    }
  }
}

/** `$ref` and `$dynamicRef`. */
export const reference = (name: "$ref" | "$dynamicRef"): NamedKeyword => {
  const keyword: Keyword = ({ document, node, path, schema }) => {
    if (!Object.hasOwn(schema, name)) return undefined
    // A document is a single resource, so a dynamic reference has the same target as a plain one.
    return document.reference(schema[name], node, pathTo(path, name))
  }
  return [[name], keyword]
}

/**
 * `$defs` and `definitions`. Their schemas are compiled although nothing may refer to them, because they must be valid.
 */
export const definitions: NamedKeyword = [["$defs", "definitions"], (keywords) => {
  keywords.entries("$defs")
  keywords.entries("definitions")
  return undefined
}]

/** The keywords of this module except references and definitions. */
export const compositionKeywords: ReadonlyArray<NamedKeyword> = [
  [["allOf"], allOf],
  [["anyOf"], anyOf],
  [["oneOf"], oneOf],
  [["not"], not],
  [["if", "then", "else"], conditional]
]
