/**
 * Canonical JSON: one text for all values that are equal as JSON. Use it for cache keys and digests.
 *
 * The text is not RFC 8785. Members are sorted by UTF-16 units, but members whose names are array indices ("0", "10")
 * come first, in numeric order. Digests of this text are stored, so it must not change between versions.
 */
import * as Json from "./Json.ts"
import { isObject } from "./JsonRpc.ts"

const sortMembers = (_key: string, value: unknown): unknown =>
  // `fromEntries` defines members, so that a member named `__proto__` stays a member.
  isObject(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))
    : value

/**
 * Writes a value as canonical JSON: the order of an object's members does not matter, and members that are `undefined`
 * are left out, as `JSON.stringify` does. A value without a JSON form (`undefined`, a function) gives `null`.
 *
 * Throws a `TypeError` for a `bigint`, a `RangeError` for a value nested deeper than the stack, and one of both for a
 * cycle.
 *
 * @example
 * CanonicalJson.stringify({ b: 1, a: { d: 2, c: 3 } }) // {"a":{"c":3,"d":2},"b":1}
 */
export const stringify = (value: unknown): string => Json.exactText(value, sortMembers) ?? "null"
