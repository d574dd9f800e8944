import type * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"

/**
 * The built-in types without a codec in `@effect/sql-pg` whose binary form is not text: geometry, ranges, bit strings,
 * search vectors, `money`, `record`, `pg_lsn`, `xid8`, `regtype` and so on. `SELECT oid, typname FROM pg_type` names them.
 */
const binaryTypes =
  "22 24 27 28 29 30 600 601 602 603 604 628 718 774 790 829 1560 1562 2202 2203 2204 2206 2249 2970 3220 3614 3615 3734 " +
  "3769 3904 3906 3908 3910 3912 3926 4072 4089 4096 4191 4451 4532 4533 4534 4535 4536 5038 5069"

const int8 = 20
const time = 1083

/**
 * Makes the codecs of a client. `@effect/sql-pg` reads all values in their binary form, and a type without a codec as
 * UTF-8: it returns garbage, or closes the connection. Here such a built-in type is read as its bytes. The types of
 * extensions have no fixed numbers, so they cannot be listed.
 */
export const makeRegistry = (types: Pick<typeof PgTypes, "makeRegistry">): PgTypes.Registry => {
  const registry = types.makeRegistry()
  const bytes: PgTypes.Codec<Uint8Array> = { decode: (bytes) => Result.succeed(bytes.slice()), encode: Result.succeed }
  for (const oid of binaryTypes.split(" ")) registry.register(Number(oid), bytes)
  return registry
}

/** Whether `@effect/sql-pg` reads the values of a type as a `bigint`. */
export const isBigint = (oid: number): boolean => oid === int8 || oid === time

/** Converts a `bigint` to a number if it is a safe integer. Other values stay. */
export const toSafeInteger = (value: unknown): unknown => {
  if (typeof value !== "bigint") return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/**
 * Writes a value as text, whose type the server infers from the statement. `@effect/sql-pg` would give numbers and
 * arrays a type, which does not fit each place, and does not write objects. Dates and bytes have one type.
 */
export const toParameter = (value: unknown): unknown => {
  switch (typeof value) {
    case "number":
    case "bigint":
    case "boolean":
      return String(value)
    case "object":
      if (value === null || value instanceof Date || value instanceof Uint8Array || isParameter(value)) return value
      return Array.isArray(value) ? arrayText(value) : JSON.stringify(value)
    default:
      return value
  }
}

/** Whether the value is a parameter that a constructor of `PgTypes` has made. */
const isParameter = (value: object): value is PgTypes.Parameter => "~@effect/sql-pg/PgTypes/Parameter" in value

/** Writes an array as PostgreSQL does: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
const arrayText = (array: ReadonlyArray<unknown>): string => `{${array.map(elementText).join(",")}}`

const elementText = (value: unknown): string => {
  if (value === null || value === undefined) return "NULL"
  if (Array.isArray(value)) return arrayText(value)
  return `"${scalarText(value).replace(/["\\]/g, "\\$&")}"`
}

const scalarText = (value: unknown): string => {
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString("hex")}`
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}
