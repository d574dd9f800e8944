/**
 * JSON values in the data model of JSON Schema: types, equality, lengths and multiples.
 */
import { isObject } from "../../JsonRpc.ts"
import type { ValidationState } from "./validationState.ts"

/** Returns the type of a value. Integers are numbers here. */
export const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/**
 * Whether two values are equal. The order of an object's members does not matter. It takes at most as many steps as the
 * smaller value has parts.
 */
export const isSame = (a: unknown, b: unknown, state: ValidationState): boolean => {
  if (a === b) return true
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    return within(state, () => a.every((item, index) => isSame(item, b[index], state)))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return within(state, () => keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key], state)))
}

const within = <A>(state: ValidationState, f: () => A): A => {
  state.enter()
  const result = f()
  state.leave()
  return result
}

/** Returns a text that is equal for two values exactly if the values are equal. */
const textOf = (value: unknown, state: ValidationState): string => {
  state.spend(1)
  if (Array.isArray(value)) return within(state, () => `[${value.map((item) => textOf(item, state)).join()}]`)
  if (!isObject(value)) return JSON.stringify(value)
  return within(state, () => {
    const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${textOf(value[key], state)}`)
    return `{${members.join()}}`
  })
}

/** Whether all items are different, in time linear in their size. */
export const areUnique = (items: ReadonlyArray<unknown>, state: ValidationState): boolean => {
  const evaluated = new Set<unknown>()
  for (const item of items) {
    state.spend(1)
    // The quotes of a string keep it distinct from the text of an object.
    const key = typeof item === "object" || typeof item === "string" ? textOf(item, state) : item
    if (evaluated.has(key)) return false
    evaluated.add(key)
  }
  return true
}

/** Returns the length of a text in code points. */
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

/** Splits a number into its decimal digits and the power of ten to multiply them by. */
const scaled = (value: number): readonly [digits: bigint, exponent: number] => {
  const [digits, exponent = "0"] = String(Math.abs(value)).split("e") as [string, string?]
  const [whole, fraction = ""] = digits.split(".") as [string, string?]
  return [BigInt(whole + fraction), Number(exponent) - fraction.length]
}

/** Whether a number is a multiple of another one, by their decimal digits: 0.3 is a multiple of 0.1. */
export const isMultipleOf = (value: number, divisor: number, state: ValidationState): boolean => {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  state.spend(16)
  const [a, m] = scaled(value)
  const [b, n] = scaled(divisor)
  return m >= n ? (a * 10n ** BigInt(m - n)) % b === 0n : a % (b * 10n ** BigInt(n - m)) === 0n
}
