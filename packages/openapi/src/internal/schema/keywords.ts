/**
 * The keywords of JSON Schema 2020-12 that a converted schema may have, with the check of each value.
 *
 * Documents contain keywords of OpenAPI, of older drafts and of generators, and values of wrong types. A tool with such a
 * schema would be refused by clients that compile it, so that only known keywords with valid values are taken over.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { clip } from "@skein/protocol/Text"
import * as Result from "effect/Result"

/** The longest description of an argument, or of a part of one, in UTF-16 units. */
export const maxDescriptionChars = 500

/** The longest example and the longest default value, as JSON text. */
const maxExampleChars = 200

const maxExamples = 3

const types: ReadonlySet<string> = new Set(["array", "boolean", "integer", "null", "number", "object", "string"])

/** The formats of JSON Schema and of OpenAPI. Strict validators refuse schemas with others. */
const formats: ReadonlySet<unknown> = new Set([
  ...["date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri"],
  ...[
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex"
  ],
  ...["int32", "int64", "float", "double", "password"]
])

const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value)
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

/** Keywords whose values are copied if they pass the check. */
const copied: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: (value) => typeof value === "string",
  deprecated: (value) => value === true,
  const: (value) => value !== undefined,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minContains: isCount,
  maxContains: isCount,
  uniqueItems: (value) => value === true,
  minProperties: isCount,
  maxProperties: isCount,
  dependentRequired: (value) =>
    isObject(value) &&
    Object.values(value).every((names) => Array.isArray(names) && names.every((name) => typeof name === "string")),
  format: (value) => formats.has(value),
  contentEncoding: (value) => typeof value === "string",
  contentMediaType: (value) => typeof value === "string"
}

const isSmall = (value: unknown): boolean =>
  value !== undefined && (JSON.stringify(value)?.length ?? Infinity) <= maxExampleChars

const examplesOf = ({ example, examples }: JsonObject): ReadonlyArray<unknown> =>
  [...Array.isArray(examples) ? examples : [], ...example === undefined ? [] : [example]]
    .filter(isSmall)
    .slice(0, maxExamples)

/** The types of a schema. Unknown ones, such as `file` of Swagger 2.0, are left out. */
export const typesOf = ({ type }: JsonObject): ReadonlyArray<string> =>
  [...new Set(Array.isArray(type) ? type : [type])].filter((each) => types.has(each as string)) as ReadonlyArray<string>

/** The values of `enum`, each once, with the type that the schema demands: YAML reads `1.0` as a number. */
const enumOf = (schema: JsonObject): ReadonlyArray<unknown> | undefined => {
  const { enum: values } = schema
  if (!Array.isArray(values) || values.length === 0) return undefined
  const [type, ...others] = typesOf(schema)
  const toType = (value: unknown): unknown =>
    type === "string" && others.length === 0 && ["number", "boolean"].includes(typeof value)
      ? String(value)
      : (type === "integer" || type === "number") && typeof value === "string" && isNumber(Number(value)) &&
          value !== ""
      ? Number(value)
      : value
  const seen = new Map(values.map(toType).map((value) => [JSON.stringify(value), value]))
  return [...seen.values()]
}

const usable = new Map<string, boolean>()

/** The most patterns whose check is remembered. */
const maxPatterns = 1_000

/**
 * Whether a pattern can be checked in linear time: without look-around and back references, and valid at all. Others would
 * make the schema of the tool invalid.
 */
export const isUsablePattern = (pattern: string): boolean => {
  let known = usable.get(pattern)
  if (known === undefined) {
    known = Result.isSuccess(SchemaValidation.compile({ type: "string", pattern })) && isUnicodePattern(pattern)
    if (usable.size >= maxPatterns) usable.clear()
    usable.set(pattern, known)
  }
  return known
}

/** Clients compile patterns with the flag `u`, where `\-` outside of a class, for example, is an error. */
const isUnicodePattern = (pattern: string): boolean => {
  try {
    return new RegExp(pattern, "u").source !== ""
  } catch {
    return false
  }
}

/** The keywords beside a reference that OpenAPI 3.0 documents have in good faith: those that assert nothing. */
export const annotationsOf = (schema: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(schema).filter(([key]) => ["title", "description", "default", "example", "deprecated"].includes(key))
  )

/** Copies the keywords of a schema that have no subschemas. */
export const copyKeywords = (schema: JsonObject): Record<string, unknown> => {
  const out: Record<string, unknown> = {}
  const found = typesOf(schema)
  if (found.length > 0) out["type"] = found.length === 1 ? found[0] : found
  for (const [key, isValid] of Object.entries(copied)) if (isValid(schema[key])) out[key] = schema[key]
  const values = enumOf(schema)
  if (values !== undefined) out["enum"] = values
  if (isSmall(schema["default"])) out["default"] = schema["default"]
  const examples = examplesOf(schema)
  if (examples.length > 0) out["examples"] = examples
  exclusiveBounds(schema, out)
  binary(schema, out)
  const { description, format, pattern } = schema
  const isNamed = typeof format === "string" && !formats.has(format) && !["binary", "byte"].includes(format)
  const isRefused = typeof pattern === "string" && !isUsablePattern(pattern)
  if (typeof pattern === "string" && !isRefused) out["pattern"] = pattern
  const text = [
    typeof description === "string" ? clip(description.trim(), maxDescriptionChars) : "",
    isNamed ? `Format: ${clip(format, 100)}` : "",
    isRefused ? `Pattern: ${clip(pattern, 100)}` : ""
  ].filter((part) => part !== "").join("\n")
  if (text !== "") out["description"] = text
  return out
}

/** In OpenAPI 3.0, `exclusiveMinimum` is a boolean beside `minimum`. */
const exclusiveBounds = (schema: JsonObject, out: Record<string, unknown>): void => {
  for (const [inclusive, exclusive] of [["minimum", "exclusiveMinimum"], ["maximum", "exclusiveMaximum"]] as const) {
    if (schema[exclusive] !== true || out[inclusive] === undefined) continue
    out[exclusive] = out[inclusive]
    delete out[inclusive]
  }
}

/** Bytes are given as base64, since JSON has none. */
const binary = ({ format, type }: JsonObject, out: Record<string, unknown>): void => {
  if (type === "file") out["type"] = "string"
  if (type !== "file" && !(type === "string" && (format === "binary" || format === "byte"))) return
  out["contentEncoding"] = "base64"
  delete out["format"]
}

/** The names in `required`, each once. */
export const requiredOf = ({ required }: JsonObject): ReadonlyArray<string> =>
  Array.isArray(required) ? [...new Set(required)].filter((name): name is string => typeof name === "string") : []

/** The members of a schema that are schemas by name. */
export const schemasByName = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  isObject(value) ? Object.entries(value) : []
