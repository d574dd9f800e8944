/** Makes values of schemas, for the calls of a sample and for the answers of the mock. */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"

/** Follows a local reference. */
export const follow = (root: JsonObject, node: unknown): JsonObject => {
  let value = node
  for (let count = 0; isObject(value) && typeof value["$ref"] === "string" && count < 20; count++) {
    value = value["$ref"].slice(2).split("/").reduce<unknown>(
      (at, key) => isObject(at) ? at[decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")] : undefined,
      root
    )
  }
  return isObject(value) ? value : {}
}

const text = ({ format, maxLength, minLength, pattern }: JsonObject): string => {
  // The ids of Twilio.
  const [, start, count] = /^\^(\w+)\[0-9a-fA-F\]\{(\d+)\}\$$/.exec(String(pattern)) ?? []
  if (start !== undefined) return start + "a".repeat(Number(count))
  const formats: Readonly<Record<string, string>> = {
    date: "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    email: "ada@example.com",
    uri: "https://example.com/a",
    uuid: "0f0e9bd4-6f1c-4b6e-9d43-1d7a9b1f8c11"
  }
  const plain = formats[String(format)] ?? "text"
  return plain.padEnd(typeof minLength === "number" ? minLength : 0, "x")
    .slice(0, typeof maxLength === "number" ? maxLength : undefined)
}

/** Makes a value with the required members of a schema. */
export const exampleOf = (root: JsonObject, node: unknown, depth = 0): unknown => {
  const schema = follow(root, node)
  const { allOf, anyOf, const: constant, default: initial, enum: values, examples, items, oneOf, required } = schema
  if (constant !== undefined) return constant
  if (Array.isArray(values) && values.length > 0) return values[0]
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  if (initial !== undefined && initial !== null) return initial
  const [choice] = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : []
  const [type] = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]]
  if (choice !== undefined && type === undefined) return exampleOf(root, choice, depth + 1)
  if (type === "array") {
    const count = Number(schema["minItems"] ?? 1)
    return Array.from({ length: Math.min(count, 5) }, () => depth > 8 ? null : exampleOf(root, items, depth + 1))
  }
  if (type === "boolean") return true
  if (type === "integer" || type === "number") {
    return Number(
      schema["minimum"] ?? (typeof schema["exclusiveMinimum"] === "number" ? schema["exclusiveMinimum"] + 1 : 1)
    )
  }
  if (type === "string") return text(schema)
  if (type === "null" || depth > 8) return null
  const all = Array.isArray(allOf) ? allOf.map((member) => exampleOf(root, member, depth + 1)) : []
  const plain = all.find((member) => !isObject(member) && member !== null)
  if (type === undefined && plain !== undefined) return plain
  const members = all.filter(isObject)
  const properties = isObject(schema["properties"]) ? schema["properties"] : {}
  const given = Array.isArray(required) ? required.map(String) : []
  // An argument of a path must not be empty.
  const names = given.length === 0 && depth === 1 ? Object.keys(properties).slice(0, 1) : given
  return Object.assign(
    {},
    ...members,
    Object.fromEntries(names.map((name) => [name, exampleOf(root, properties[name], depth + 1)]))
  )
}
