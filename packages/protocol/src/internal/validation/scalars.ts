/**
 * The keywords that look at a value as a whole, at numbers and at texts.
 */
import { isFilled, isList, isText, type Keywords, type Part, quote } from "./Keywords.ts"
import type { Rule } from "./Node.ts"
import { isMultipleOf, isSame, kindOf, lengthOf } from "./values.ts"
import type { Work } from "./Work.ts"

const kinds: ReadonlySet<unknown> = new Set(["null", "boolean", "object", "array", "number", "string", "integer"])

const type: Part = (keywords) => {
  const is = (value: unknown): value is string | ReadonlyArray<string> =>
    kinds.has(value) || (isFilled(value) && value.every((kind) => kinds.has(kind)))
  const given = keywords.read("type", is, "the name of a type, or a list of them")
  if (given === undefined) return undefined
  const allowed = new Set(isText(given) ? [given] : given)
  const expected = [...allowed].join(" or ")
  return (value, work) => {
    const kind = kindOf(value)
    return allowed.has(kind) || (kind === "number" && allowed.has("integer") && Number.isInteger(value)) ||
      work.refuse(`Expected ${expected}, got ${kind}`)
  }
}

const constant: Part = ({ schema }) => {
  if (!Object.hasOwn(schema, "const")) return undefined
  const only = schema["const"]
  const expected = `Expected ${quote(only)}`
  return (value, work) => isSame(only, value, work) || work.refuse(expected)
}

const enumeration: Part = (keywords) => {
  const values = keywords.read("enum", isList, "a list")
  if (values === undefined) return undefined
  const plain = new Set(values.filter((value) => typeof value !== "object" || value === null))
  const others = values.filter((value) => typeof value === "object" && value !== null)
  const expected = `Expected one of ${quote(values)}`
  const isOther = (value: unknown, work: Work): boolean => {
    work.spend(others.length)
    return others.some((other) => isSame(other, value, work))
  }
  return (value, work) => plain.has(value) || isOther(value, work) || work.refuse(expected)
}

/** A rule for one kind of value; it says nothing of others. */
const forNumbers = (test: (value: number, work: Work) => boolean, expected: string): Rule => (value, work) =>
  typeof value !== "number" || test(value, work) || work.refuse(`Expected a number ${expected}`)

const comparisons: ReadonlyArray<readonly [string, string, (value: number, limit: number) => boolean]> = [
  ["minimum", "of at least", (value, limit) => value >= limit],
  ["maximum", "of at most", (value, limit) => value <= limit],
  ["exclusiveMinimum", "above", (value, limit) => value > limit],
  ["exclusiveMaximum", "below", (value, limit) => value < limit]
]

const comparison = ([keyword, said, test]: typeof comparisons[number]): Part => (keywords) => {
  const limit = keywords.number(keyword)
  return limit === undefined ? undefined : forNumbers((value) => test(value, limit), `${said} ${limit}`)
}

const multipleOf: Part = (keywords) => {
  const divisor = keywords.number("multipleOf")
  if (divisor === undefined) return undefined
  if (divisor <= 0) keywords.document.refuse("multipleOf must be above 0", keywords.place)
  return forNumbers((value, work) => isMultipleOf(value, divisor, work), `that is a multiple of ${divisor}`)
}

const text: Part = (keywords) => {
  const min = keywords.count("minLength")
  const max = keywords.count("maxLength")
  if (min === undefined && max === undefined) return undefined
  return (value, work) => {
    if (!isText(value)) return true
    work.spend(value.length >> 6)
    const length = lengthOf(value)
    if (min !== undefined && length < min) return work.refuse(`Expected at least ${min} characters`)
    return max === undefined || length <= max || work.refuse(`Expected at most ${max} characters`)
  }
}

const pattern: Part = (keywords) => {
  const source = keywords.read("pattern", isText, "a string")
  if (source === undefined) return undefined
  const test = keywords.pattern(source)
  const expected = `Expected a text like ${quote(source)}`
  return (value, work) => !isText(value) || test(value, work) || work.refuse(expected)
}

/** A rule for how many parts a value has. */
export const counted = (
  of: (value: unknown) => number | undefined,
  keywords: Keywords,
  min: string,
  max: string,
  what: string
): Rule | undefined => {
  const least = keywords.count(min)
  const most = keywords.count(max)
  if (least === undefined && most === undefined) return undefined
  return (value, work) => {
    const count = of(value)
    if (count === undefined) return true
    if (least !== undefined && count < least) return work.refuse(`Expected at least ${least} ${what}`)
    return most === undefined || count <= most || work.refuse(`Expected at most ${most} ${what}`)
  }
}

/** These keywords. */
export const parts: ReadonlyArray<Part> = [
  type,
  constant,
  enumeration,
  ...comparisons.map(comparison),
  multipleOf,
  text,
  pattern
]
