/**
 * Tools and their listing, `tools/list`. `CallTool` has the messages of a call.
 */
import * as Schema from "effect/Schema"
import { fallback, field, only, since } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { cacheFields } from "./Caching.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { metaFields } from "./Message.ts"
import { pageFields } from "./Pagination.ts"
import { AnyObject, guarded } from "./Primitive.ts"
import type { Revision } from "./Revision.ts"

/** Hints about the behavior of a tool. A client must not trust them unless it trusts the server. */
export class ToolAnnotations extends Schema.Opaque<ToolAnnotations>()(Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  readOnlyHint: Schema.optionalKey(Schema.Boolean),
  destructiveHint: Schema.optionalKey(Schema.Boolean),
  idempotentHint: Schema.optionalKey(Schema.Boolean),
  openWorldHint: Schema.optionalKey(Schema.Boolean)
})) {}

/** How a tool may be called, in 2025-11-25. */
export class ToolExecution extends Schema.Opaque<ToolExecution>()(Schema.Struct({
  /** Whether a call may, must or must not be augmented with a task. The default is `forbidden`. */
  taskSupport: Schema.optionalKey(Schema.Literals(["forbidden", "optional", "required"]))
})) {}

/** A JSON Schema whose `type` is `object`. The model does not interpret its other keywords; `SchemaValidation` does. */
export interface ObjectSchema extends JsonObject {
  readonly type: "object"
}

const Generated = Schema.Struct({
  type: Schema.Literal("object"),
  $schema: Schema.optionalKey(Schema.Literal("https://json-schema.org/draft/2020-12/schema")),
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.Boolean, AnyObject]))),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})

/** The schema of {@link ObjectSchema}. It accepts an object with `type: "object"` and returns it by reference. */
export const ObjectSchema = guarded<ObjectSchema, typeof Generated>(
  "a JSON Schema with \"type\": \"object\"",
  (value): value is ObjectSchema => isObject(value) && value["type"] === "object",
  Generated,
  (value) => value as ObjectSchema
)

const keepIf = (schema: JsonObject, key: string, isValid: (value: unknown) => boolean): JsonObject => {
  if (schema[key] === undefined || isValid(schema[key])) return schema
  const { [key]: _removed, ...rest } = schema
  return rest
}

const areStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === "string")

/**
 * Changes a tool's schema to the form that the official schemas require: `$schema` is a string and, before 2026-07-28,
 * `properties` holds objects and `required` holds strings. A keyword of another type is left out. A property described
 * by a boolean is written as the equivalent object.
 */
const lowerSchema = (value: unknown, revision: Revision): unknown => {
  if (!isObject(value)) return value
  let schema = keepIf(value, "$schema", (value) => typeof value === "string")
  if (revision >= "2026-07-28") return schema
  schema = keepIf(keepIf(schema, "properties", isObject), "required", areStrings)
  const properties = schema["properties"]
  if (!isObject(properties) || Object.values(properties).every(isObject)) return schema
  return {
    ...schema,
    // `fromEntries` defines members, so that a property named `__proto__` stays a property.
    properties: Object.fromEntries(
      Object.entries(properties).map((
        [name, value]
      ) => [name, isObject(value) ? value : value === false ? { not: {} } : {}])
    )
  }
}

/**
 * The schema of arguments that is read where malformed members may be ignored: a tool without a schema takes any
 * arguments, and a schema without `type` describes an object.
 */
const lenientSchema = fallback(ObjectSchema, (value) =>
  (value ?? undefined) === undefined
    ? { type: "object" as const }
    : isObject(value) && (value["type"] ?? undefined) === undefined
    ? { ...value, type: "object" as const }
    : undefined)

/** A tool, as a server lists it. */
export class Tool extends Schema.Opaque<Tool>()(Schema.Struct({
  ...nameFields,
  ...iconFields,
  description: Schema.optionalKey(Schema.String),
  /** The schema of the arguments: any JSON Schema 2020-12 of an object since 2026-07-28. */
  inputSchema: field(lenientSchema, { lower: lowerSchema }),
  /**
   * The schema of `structuredContent`. Before 2026-07-28 it must be of an object; another one is left out when writing.
   */
  outputSchema: since("2025-06-18", Schema.optionalKey(AnyObject), {
    lower: (schema, revision) =>
      revision >= "2026-07-28" || (isObject(schema) && schema["type"] === "object")
        ? lowerSchema(schema, revision)
        : undefined
  }),
  annotations: since("2025-03-26", Schema.optionalKey(ToolAnnotations)),
  execution: only("2025-11-25", Schema.optionalKey(ToolExecution)),
  ...metaFields
})) {}

/** The result of `tools/list`. */
export class ListToolsResult extends Schema.Opaque<ListToolsResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  tools: Schema.Array(Tool)
})) {}
