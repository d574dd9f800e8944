/**
 * Effect Schemas as the JSON Schemas that definitions carry.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { DefinitionError } from "../DefinitionError.ts"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * `Schema.Number` allows the numbers that JSON cannot say, and names them as strings. A model is told the number alone:
 * it has no use for the others, and reading stays as lenient as the schema is.
 */
const withoutNonFinite = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(withoutNonFinite)
  if (!isObject(node)) return node
  const { anyOf, ...rest } = node
  if (Array.isArray(anyOf) && anyOf.length === 2 && isNonFinite(anyOf[1])) return { ...rest, ...anyOf[0] as JsonObject }
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withoutNonFinite(value)]))
}

const isNonFinite = (node: unknown): boolean =>
  isObject(node) && Array.isArray(node["enum"]) && node["enum"].join() === "Infinity,-Infinity,NaN"

/** The JSON Schema of what a schema reads and writes as JSON, with its definitions inside and no reference at its root. */
const document = (schema: Schema.Constraint): JsonObject => {
  const { schema: root, definitions } = Schema.toJsonSchemaDocument(schema)
  const reference = root["$ref"]
  const inner = typeof reference === "string" ? definitions[reference.slice("#/$defs/".length)] ?? root : root
  return Object.keys(definitions).length === 0 ? inner : { ...inner, $defs: definitions }
}

type Named = Pick<DefinitionError, "kind" | "name">

const convert = (schema: Schema.Constraint, what: string, named: Named): Effect.Effect<JsonObject, DefinitionError> =>
  Effect.try({
    try: () => document(schema),
    catch: (error) => refused(named, `The ${what} cannot be said as JSON Schema: ${String(error)}`)
  })

const refused = ({ kind, name }: Named, problem: string): DefinitionError =>
  new DefinitionError({ reason: "Schema", kind, name, message: `The ${kind} ${JSON.stringify(name)} cannot be offered. ${problem}` })

/** What describes the arguments of a tool: the root must be an object in every revision. */
export const input = (schema: Schema.Constraint, named: Named): Effect.Effect<ObjectSchema, DefinitionError> =>
  Effect.flatMap(convert(schema, "input schema", named), (json) => {
    // The empty struct is "anything but null" in JSON Schema.
    if (isObject(json["not"]) && Object.keys(json).length === 1) return Effect.succeed(none)
    const out = withoutNonFinite(json) as JsonObject
    return out["type"] === "object"
      ? Effect.succeed(out as ObjectSchema)
      : Effect.fail(refused(named, "Its arguments must be an object: give a struct, or the fields of one"))
  })

/** The schema of no arguments. */
export const none: ObjectSchema = { type: "object", additionalProperties: false }

/** What describes the structured content of a tool. */
export const output = (schema: Schema.Constraint, named: Named): Effect.Effect<JsonObject, DefinitionError> =>
  convert(schema, "output schema", named)
