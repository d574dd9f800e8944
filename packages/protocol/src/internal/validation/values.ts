/**
 * JSON values in the data model of JSON Schema: types, equality, hashes, lengths and multiples.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import type { ValidationState } from "./validationState.ts"

/** Returns the type of a value. Integers are numbers here. */
export const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/**
 * Whether two values are equal. The order of an object's members does not matter. It takes about as many steps as the
 * smaller value has parts.
 */
export const isSame = (a: unknown, b: unknown, state: ValidationState): boolean => {
  const first: Array<unknown> = []
  if (!state.isResuming && !agree(a, b, first, state)) return false
  const open = state.isResuming ? state.resume<Array<unknown>>() : first
  try {
    // Without recursion: values of a peer may be nested deeper than the stack.
    while (open.length > 0) {
      state.spend(1)
      const right = open.pop()
      const left = open.pop()
      if (!(Array.isArray(left) ? areSameLists(left, right, open, state) : areSameObjects(left, right, open, state))) {
        return false
      }
    }
  } catch (error) {
    throw state.save(error, open)
  }
  return true
}

/** Compares two values except for the contents of arrays and objects, which it adds to the pairs to compare later. */
const agree = (a: unknown, b: unknown, open: Array<unknown>, state: ValidationState): boolean => {
  if (typeof a === "string" && typeof b === "string" && a.length === b.length) state.count(a.length >> 6)
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  open.push(a, b)
  return true
}

const areSameLists = (
  a: ReadonlyArray<unknown>,
  b: unknown,
  open: Array<unknown>,
  state: ValidationState
): boolean => {
  if (!Array.isArray(b) || a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) {
    state.count(1)
    if (!agree(a[index], b[index], open, state)) return false
  }
  return true
}

const areSameObjects = (a: unknown, b: unknown, open: Array<unknown>, state: ValidationState): boolean => {
  if (!isObject(a) || !isObject(b)) return false
  const keys = state.keysOf(a)
  if (keys.length !== state.keysOf(b).length) return false
  for (const key of keys) {
    state.count(1)
    if (!Object.hasOwn(b, key) || !agree(a[key], b[key], open, state)) return false
  }
  return true
}

// JavaScript engines hash strings with a secret seed, but not integers and the strings of array indices. Without a seed
// a peer can choose values with equal hashes, and each access to a set of them takes linear time.
const seed = (Math.random() * 0x1_0000_0000) | 0

// No text of a peer starts with it.
const secretPrefix = `~${seed}${Math.random()}`

// Engines hash integers in texts of up to 16 digits without a secret. Longer texts are not copied.
const maxDigits = 32

const isInt32 = (value: unknown): value is number => ((value as number) | 0) === value

/** Returns a key for a set or map that stands for a scalar value, and whose hash a peer cannot predict. */
export const hashable = (value: unknown): unknown => {
  if (typeof value === "string") {
    const first = value.charCodeAt(0)
    return first >= 48 && first <= 57 && value.length <= maxDigits ? secretPrefix + value : value
  }
  if (typeof value !== "number") return value
  return isInt32(value) ? value ^ seed : `${secretPrefix}#${value}`
}

/** Mixes two numbers to a hash. */
export const mix = (a: number, b: number): number => {
  let hash = Math.imul(a ^ b, 0x9e37_79b1)
  hash = Math.imul(hash ^ (hash >>> 15), 0x85eb_ca6b)
  return hash ^ (hash >>> 13)
}

// Longer texts count by their length and their ends. Where that is not enough, the values are compared.
const maxHashedEnd = 64

/** Returns a hash of the length and the ends of a text. */
const hashOfText = (text: string): number => {
  let hash = mix(seed, text.length)
  const end = Math.min(text.length, maxHashedEnd)
  for (let at = 0; at < end; at++) hash = mix(hash, text.charCodeAt(at))
  for (let at = Math.max(end, text.length - maxHashedEnd); at < text.length; at++) hash = mix(hash, text.charCodeAt(at))
  return hash
}

const hashSteps = (value: unknown): number =>
  typeof value === "string" ? Math.min(value.length, 2 * maxHashedEnd) >> 3 : isInt32(value) ? 0 : 8

const hashOfScalar = (value: unknown): number => isInt32(value) ? mix(seed, value | 0) : hashOfText(String(value))

/** An array or an object whose parts are hashed. */
interface Level {
  readonly value: unknown
  readonly keys: ReadonlyArray<string> | undefined
  /** The hash of the path to the value. */
  readonly path: number
  index: number
}

/** Returns a number that is the same for equal values: the sum of the hashes of all scalars and their paths. */
export const hashOf = (root: unknown, state: ValidationState): number => {
  let hash: number
  let levels: Array<Level>
  if (state.isResuming) ({ hash, levels } = state.resume<{ readonly hash: number; readonly levels: Array<Level> }>())
  else {
    hash = 0
    levels = []
    add(root, seed)
  }
  function add(value: unknown, path: number): void {
    if (typeof value !== "object" || value === null) {
      state.count(hashSteps(value))
      hash = (hash + mix(path, hashOfScalar(value))) | 0
    } else {
      const keys = isObject(value) ? state.keysOf(value) : undefined
      hash = (hash + mix(path, keys === undefined ? 1 : 2)) | 0
      levels.push({ value, keys, path, index: 0 })
    }
  }
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const { keys, path, value } = level
      if (level.index >= (keys ?? value as ReadonlyArray<unknown>).length) {
        levels.pop()
        continue
      }
      state.spend(4)
      const index = level.index++
      if (keys !== undefined) state.count(hashSteps(keys[index]))
      if (keys === undefined) add((value as ReadonlyArray<unknown>)[index], mix(path, index))
      else add((value as JsonObject)[keys[index]!], mix(path, hashOfText(keys[index]!)))
    }
  } catch (error) {
    throw state.save(error, { hash, levels })
  }
  return hash
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

/**
 * Whether a number is a multiple of another one, by their decimal digits: 0.3 is a multiple of 0.1. Infinity is not:
 * `JSON.parse` returns it for numbers as large as 1e999.
 */
export const isMultipleOf = (value: number, divisor: number, state: ValidationState): boolean => {
  if (!Number.isFinite(value)) return false
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  state.count(64)
  const [a, m] = scaled(value)
  const [b, n] = scaled(divisor)
  return m >= n ? (a * 10n ** BigInt(m - n)) % b === 0n : a % (b * 10n ** BigInt(n - m)) === 0n
}
