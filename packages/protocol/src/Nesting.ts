/**
 * Values that are nested deeper than the stack. JSON allows any depth and `JSON.parse` reads it, but recursive code
 * fails for it: `JSON.stringify`, and the parser of a recursive schema, which needs many frames for each level.
 *
 * Code that reads or writes a value of a peer recursively catches that error, and refuses the value.
 */
import { isObject } from "./JsonRpc.ts"

interface CauseLike {
  readonly cause?: unknown
  readonly reasons?: ReadonlyArray<{ readonly defect?: unknown }> | undefined
}

/**
 * Whether an error means that the stack was exceeded. It also finds that error as the `cause` of another error, and as
 * a defect in an Effect `Cause`, which is how schemas report it.
 *
 * @example
 * try {
 *   return JSON.stringify(value)
 * } catch (error) {
 *   if (Nesting.exceedsStack(error)) return undefined
 *   throw error
 * }
 */
export const exceedsStack = (error: unknown): boolean => {
  let at = error
  // The depth is bounded because an error may be its own cause.
  for (let depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
    // V8 and JavaScriptCore, then SpiderMonkey.
    if (at instanceof RangeError && /\bcall stack\b/i.test(at.message)) return true
    if (at instanceof Error && at.name === "InternalError" && /\brecursion\b/i.test(at.message)) return true
    const { cause, reasons } = at as CauseLike
    at = Array.isArray(reasons) ? reasons.find(({ defect }) => defect !== undefined)?.defect : cause
  }
  return false
}

/**
 * Makes a function that reads or writes a value recursively, and returns what `refuse` returns where that exceeds the
 * stack. Other errors are thrown.
 *
 * @example
 * const lengthOf = Nesting.refusing((value: unknown) => JSON.stringify(value).length, () => Infinity)
 */
export const refusing = <A, B>(use: (value: A) => B, refuse: () => B) => (value: A): B => {
  try {
    return use(value)
  } catch (error) {
    if (exceedsStack(error)) return refuse()
    throw error
  }
}

/** Describes the fault of a value for which `exceedsStack` holds, as the predicate of a sentence. */
export const problem = "is nested too deeply"

/**
 * Whether a JSON value has at most `most` values, itself and all nested values included. It stops at the bound, and does
 * not recurse.
 *
 * @example
 * Nesting.holdsAtMost({ ids: [1, 2] }, 10) // true
 */
export const holdsAtMost = (value: unknown, most: number): boolean => {
  const left = [value ?? null]
  let count = 1
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (Array.isArray(next)) {
      if ((count += next.length) > most) return false
      for (const item of next) left.push(item ?? null)
    } else if (isObject(next)) {
      for (const key in next) {
        if (++count > most) return false
        left.push(next[key] ?? null)
      }
    }
  }
  return true
}

const scalar = (value: unknown): number => typeof value === "string" ? value.length + 2 : 1

/**
 * A lower bound for the UTF-16 units of a value as JSON: escapes and long numbers are counted as shorter than they are.
 * It stops once the size is larger than `max`, and does not recurse.
 *
 * @example
 * Nesting.sizeUpTo({ ids: [1, 2] }, 100) > 100 // false
 */
export const sizeUpTo = (value: unknown, max: number): number => {
  if (typeof value !== "object" || value === null) return scalar(value)
  // Without recursion: the value may be nested deeper than the stack.
  const open: Array<object> = [value]
  let size = 0
  for (let next = open.pop(); next !== undefined && size <= max; next = open.pop()) {
    const isList = Array.isArray(next)
    // Two brackets, and a comma after each member but the last.
    size += 1
    for (const key in next) {
      const member = (next as { readonly [key: string]: unknown })[key]
      size += isList ? 1 : key.length + 4
      if (typeof member === "object" && member !== null) open.push(member)
      else size += scalar(member)
      if (size > max) break
    }
  }
  return size
}
