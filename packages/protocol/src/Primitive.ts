/**
 * Schemas for single JSON values: any object, any value, a number, a URI, base64.
 *
 * They validate with a type guard and return the value itself, never a copy. The schemas of the model have the same
 * type on both sides (`Type` equals `Encoded`), so a validated value is the received value, unknown members included.
 */
import * as Schema from "effect/Schema"
import * as Getter from "effect/SchemaGetter"
import { guard } from "./Annotate.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

// For generators of test values only. A declaration validates by its guard alone.
const Scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])
const Tree = Schema.Record(
  Schema.String,
  Schema.Union([Scalar, Schema.Array(Scalar), Schema.Record(Schema.String, Scalar)])
)

/**
 * Makes a schema from a type guard. Use it for values that the model passes through without looking inside.
 *
 * `expected` completes the error message "Expected …". `from` and `make` serve generators of test values only: `make`
 * turns a value of the schema `from` into a value of the new schema.
 *
 * @example
 * const isText = (value: unknown): value is string => typeof value === "string"
 * const Token = Primitive.guarded("a token", isText, Schema.String, (text) => text)
 */
export const guarded = <T, S extends Schema.Codec<unknown>>(
  expected: string,
  is: (value: unknown) => value is T,
  from: S,
  make: (value: S["Type"]) => T
): Schema.declare<T> =>
  Schema.declare<T>(is, {
    expected,
    ...guard(is),
    toCodecArbitrary: () =>
      Schema.link<T>()(from, { decode: Getter.transform(make), encode: Getter.forbidden(() => "only generated") })
  })

/** Any JSON object (`JSONObject` in 2026-07-28), returned by reference. */
export const AnyObject = guarded<JsonObject, typeof Tree>("an object", isObject, Tree, (value) => value)

const Generated = Schema.Union([Scalar, Tree])

/** Any JSON value (`JSONValue` in 2026-07-28), returned by reference. Only `undefined` is refused. */
export const AnyValue = guarded<unknown, typeof Generated>(
  "a JSON value",
  (value): value is unknown => value !== undefined,
  Generated,
  (value) => value
)

/**
 * A finite number. Some official JSON Schemas require an `integer` where the TypeScript schema of the specification has
 * `number`; this accepts both.
 */
export const AnyNumber = guarded<number, typeof Schema.Finite>(
  "a finite number",
  (value): value is number => Number.isFinite(value),
  Schema.Finite,
  (value) => value
)

const isString = (value: unknown): value is string => typeof value === "string"

/** A string that should be base64. The content is not checked; the code that decodes it handles errors. */
export const Base64 = guarded<string, typeof Schema.String>(
  "a base64 string",
  isString,
  Schema.String,
  (value) => btoa(String.fromCharCode(...new TextEncoder().encode(value)))
)

/** A string that should be a URI. It is not checked: real peers send invalid ones, and the model only passes it on. */
export const Uri = guarded<string, typeof Schema.String>(
  "a URI",
  isString,
  Schema.String,
  (value) => `urn:example:${encodeURIComponent(value.replace(/[\ud800-\udfff]/g, "")).replaceAll("'", "")}`
)
