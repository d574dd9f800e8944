/**
 * JSON in one form: the same text for the same value, whatever order its members came in.
 */
import { isObject } from "@skein/protocol/JsonRpc"

const sorted = (_key: string, value: unknown): unknown =>
  // A plain object could not hold a member `__proto__`.
  isObject(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))
    : value

/** The text of a value that has a JSON form. Throws where it nests too deep for `JSON.stringify`. */
export const canonical = (value: unknown): string => JSON.stringify(value, sorted) ?? "null"
