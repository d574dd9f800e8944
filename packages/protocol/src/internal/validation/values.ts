/**
 * JSON values, as JSON Schema sees them.
 */
import { isObject } from "../../JsonRpc.ts"
import type { Work } from "./Work.ts"

/** What a value is. Integers are numbers here. */
export const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/** Whether two values are the same; members of objects have no order. It takes no more steps than the smaller one has parts. */
export const isSame = (a: unknown, b: unknown, work: Work): boolean => {
  if (a === b) return true
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    return within(work, () => a.every((item, index) => isSame(item, b[index], work)))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return within(work, () => keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key], work)))
}

const within = <A>(work: Work, f: () => A): A => {
  work.enter()
  const result = f()
  work.leave()
  return result
}

/** A text that two values share if, and only if, they are the same. */
const textOf = (value: unknown, work: Work): string => {
  work.spend(1)
  if (Array.isArray(value)) return within(work, () => `[${value.map((item) => textOf(item, work)).join()}]`)
  if (!isObject(value)) return JSON.stringify(value)
  return within(work, () => {
    const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${textOf(value[key], work)}`)
    return `{${members.join()}}`
  })
}

/** Whether no two items are the same, in time linear in their size. */
export const areUnique = (items: ReadonlyArray<unknown>, work: Work): boolean => {
  const seen = new Set<unknown>()
  for (const item of items) {
    work.spend(1)
    // A text in a list is told from the text of an object by its quotes.
    const key = typeof item === "object" || typeof item === "string" ? textOf(item, work) : item
    if (seen.has(key)) return false
    seen.add(key)
  }
  return true
}

/** How many characters a text has, in code points; counted only where it matters. */
export const lengthOf = (text: string): number => {
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      length--
      at++
    }
  }
  return length
}

/** A number as its digits and the power of ten that they are multiplied with. */
const scaled = (value: number): readonly [digits: bigint, exponent: number] => {
  const [digits, exponent = "0"] = String(Math.abs(value)).split("e") as [string, string?]
  const [whole, fraction = ""] = digits.split(".") as [string, string?]
  return [BigInt(whole + fraction), Number(exponent) - fraction.length]
}

/** Whether a number is a multiple of another, by their decimal digits: 0.3 is one of 0.1. */
export const isMultipleOf = (value: number, divisor: number, work: Work): boolean => {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  work.spend(16)
  const [a, m] = scaled(value)
  const [b, n] = scaled(divisor)
  return m >= n ? (a * 10n ** BigInt(m - n)) % b === 0n : a % (b * 10n ** BigInt(n - m)) === 0n
}
