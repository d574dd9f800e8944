/**
 * The keywords for values of any type (`type`, `const`, `enum`), for numbers and for strings.
 */
import {
  isFilled,
  isList,
  isText,
  type Keyword,
  type KeywordReader,
  type NamedKeyword,
  quote
} from "./keywordReader.ts"
import type { Rule } from "./schemaNode.ts"
import { maxSetText } from "./uniqueItems.ts"
import { hashable, isMultipleOf, isSame, kindOf, lengthOf } from "./values.ts"
import type { ValidationState } from "./validationState.ts"

const kinds: ReadonlySet<unknown> = new Set(["null", "boolean", "object", "array", "number", "string", "integer"])

const type: Keyword = (keywords) => {
  const is = (value: unknown): value is string | ReadonlyArray<string> =>
    kinds.has(value) || (isFilled(value) && value.every((kind) => kinds.has(kind)))
  const given = keywords.read("type", is, "the name of a type, or a list of them")
  if (given === undefined) return undefined
  const allowed = new Set(isText(given) ? [given] : given)
  const expected = [...allowed].join(" or ")
  return (value, state) => {
    const kind = kindOf(value)
    return allowed.has(kind) || (kind === "number" && allowed.has("integer") && Number.isInteger(value)) ||
      state.report(`Expected ${expected}, got ${kind}`)
  }
}

const constant: Keyword = ({ schema }) => {
  if (!Object.hasOwn(schema, "const")) return undefined
  const only = schema["const"]
  const expected = `Expected ${quote(only)}`
  return (value, state) => isSame(only, value, state) || state.report(expected)
}

const enumeration: Keyword = (keywords) => {
  const values = keywords.read("enum", isList, "a list")
  if (values === undefined) return undefined
  const scalars = new Set<unknown>()
  const others: Array<unknown> = []
  let longTexts = 0
  for (const value of values) {
    if (typeof value === "object" && value !== null) others.push(value)
    else scalars.add(hashable(value))
    if (isText(value) && value.length > maxSetText) longTexts++
  }
  const expected = `Expected one of ${quote(values)}`
  return (value, state) => {
    if (typeof value !== "object" || value === null) {
      if (isText(value) && value.length > maxSetText) state.count((1 + longTexts) * (value.length >> 6))
      return scalars.has(hashable(value)) || state.report(expected)
    }
    return isOneOf(others, value, state) || state.report(expected)
  }
}

const isOneOf = (values: ReadonlyArray<unknown>, value: unknown, state: ValidationState): boolean => {
  let index = state.isResuming ? state.resume<number>() : 0
  try {
    for (; index < values.length; index++) {
      state.spend(1)
      if (isSame(values[index], value, state)) return true
    }
  } catch (error) {
    throw state.save(error, index)
  }
  return false
}

/** Makes a rule for numbers. Other values are valid. */
const forNumbers =
  (test: (value: number, state: ValidationState) => boolean, expected: string): Rule => (value, state) =>
    typeof value !== "number" || test(value, state) || state.report(`Expected a number ${expected}`)

const comparisons: ReadonlyArray<readonly [string, string, (value: number, limit: number) => boolean]> = [
  ["minimum", "of at least", (value, limit) => value >= limit],
  ["maximum", "of at most", (value, limit) => value <= limit],
  ["exclusiveMinimum", "above", (value, limit) => value > limit],
  ["exclusiveMaximum", "below", (value, limit) => value < limit]
]

const comparison = ([keyword, words, test]: typeof comparisons[number]): Keyword => (keywords) => {
  const limit = keywords.number(keyword)
  return limit === undefined ? undefined : forNumbers((value) => test(value, limit), `${words} ${limit}`)
}

const multipleOf: Keyword = (keywords) => {
  const divisor = keywords.number("multipleOf")
  if (divisor === undefined) return undefined
  if (divisor <= 0) keywords.document.refuse("multipleOf must be above 0", keywords.path)
  return forNumbers((value, state) => isMultipleOf(value, divisor, state), `that is a multiple of ${divisor}`)
}

const text: Keyword = (keywords) => {
  const of = (value: unknown, state: ValidationState): number | undefined => {
    if (!isText(value)) return undefined
    state.count(value.length >> 4)
    return lengthOf(value)
  }
  const exact = countRule(of, keywords, "minLength", "maxLength", "characters")
  if (exact === undefined) return undefined
  const least = (keywords.count("minLength") ?? 0) * 2
  const most = keywords.count("maxLength") ?? Infinity
  // A character has one or two units.
  return (value, state, evaluated) =>
    (isText(value) && value.length >= least && value.length <= most) || exact(value, state, evaluated)
}

const pattern: Keyword = (keywords) => {
  const source = keywords.read("pattern", isText, "a string")
  if (source === undefined) return undefined
  const test = keywords.pattern(source)
  const expected = `Expected a string that matches the pattern ${quote(source)}`
  return (value, state) => !isText(value) || test(value, state) || state.report(expected)
}

/** Makes a rule for the length of a value. `of` returns `undefined` for values that have none. */
export const countRule = (
  of: (value: unknown, state: ValidationState) => number | undefined,
  keywords: KeywordReader,
  min: string,
  max: string,
  unit: string
): Rule | undefined => {
  const least = keywords.count(min)
  const most = keywords.count(max)
  if (least === undefined && most === undefined) return undefined
  return (value, state) => {
    const count = of(value, state)
    if (count === undefined) return true
    if (least !== undefined && count < least) return state.report(`Expected at least ${least} ${unit}`)
    return most === undefined || count <= most || state.report(`Expected at most ${most} ${unit}`)
  }
}

/** The keywords of this module. */
export const scalarKeywords: ReadonlyArray<NamedKeyword> = [
  [["type"], type],
  [["const"], constant],
  [["enum"], enumeration],
  ...comparisons.map((one): NamedKeyword => [[one[0]], comparison(one)]),
  [["multipleOf"], multipleOf],
  [["minLength", "maxLength"], text],
  [["pattern"], pattern]
]
