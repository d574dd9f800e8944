/**
 * Excerpts of values that cannot be recorded as they are. A compensation receives one after a restart.
 */
import { clip } from "@skein/protocol/Text"

/** The characters of a text that an excerpt keeps. */
const maxExcerptChars = 1000

/** The members and items that an excerpt keeps in all. */
const maxExcerptParts = 1000

/** The levels of objects and arrays that an excerpt keeps. */
const maxExcerptDepth = 8

/**
 * A value as JSON, as far as it can be written: a `bigint` is its digits, texts are cut to 1,000 characters, and values
 * without a JSON form are left out, as is everything beyond 1,000 members or 8 levels. It never throws.
 */
export const excerptOf = (value: unknown): unknown => {
  let parts = 0
  const write = (value: unknown, depth: number): unknown => {
    if (typeof value === "bigint") return String(value)
    if (typeof value === "string") return clip(value, maxExcerptChars)
    if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
    if (typeof value === "boolean" || value === null) return value
    if (typeof value !== "object" || depth >= maxExcerptDepth) return undefined
    const { toJSON } = value as { readonly toJSON?: unknown }
    const written: unknown = typeof toJSON === "function" ? toJSON.call(value, "") : value
    if (written !== value) return write(written, depth + 1)
    const isArray = Array.isArray(value)
    const kept: Array<readonly [string, unknown]> = []
    for (const key of Object.keys(value)) {
      if (++parts > maxExcerptParts) break
      const member = writeSafely(() => (value as Record<string, unknown>)[key], depth + 1)
      if (member !== undefined || isArray) kept.push([key, member ?? null])
    }
    return isArray ? kept.map(([, item]) => item) : Object.fromEntries(kept)
  }
  const writeSafely = (read: () => unknown, depth: number): unknown => {
    try {
      return write(read(), depth)
    } catch {
      return undefined
    }
  }
  return writeSafely(() => value, 0) ?? null
}
