/**
 * Tools and their listing, `tools/list`. Calling one is in `CallTool`.
 */
import * as Schema from "effect/Schema"
import { field, only, since } from "./Annotate.ts"
import { AnyObject, cacheFields, guarded, iconFields, metaFields, nameFields, pageFields } from "./Common.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import type { Revision } from "./Revision.ts"

/** Hints about what a tool does. They are not to be trusted. */
export class ToolAnnotations extends Schema.Opaque<ToolAnnotations>()(Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  readOnlyHint: Schema.optionalKey(Schema.Boolean),
  destructiveHint: Schema.optionalKey(Schema.Boolean),
  idempotentHint: Schema.optionalKey(Schema.Boolean),
  openWorldHint: Schema.optionalKey(Schema.Boolean)
})) {}

/** How 2025-11-25 lets a tool be called. */
export class ToolExecution extends Schema.Opaque<ToolExecution>()(Schema.Struct({
  /** Whether a call may be a task, must be one, or (the default) must not. */
  taskSupport: Schema.optionalKey(Schema.Literals(["forbidden", "optional", "required"]))
})) {}

/** A JSON Schema of an object. It is carried as it is; what its keywords mean is for whoever validates with it. */
export interface ObjectSchema extends JsonObject {
  readonly type: "object"
}

const Generated = Schema.Struct({
  type: Schema.Literal("object"),
  $schema: Schema.optionalKey(Schema.Literal("https://json-schema.org/draft/2020-12/schema")),
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.Boolean, AnyObject]))),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})

/** The schema of {@link ObjectSchema}: an object with `type: "object"`, by reference. */
export const ObjectSchema = guarded<ObjectSchema, typeof Generated>(
  "a JSON Schema with \"type\": \"object\"",
  (value): value is ObjectSchema => isObject(value) && value["type"] === "object",
  Generated,
  (value) => value as ObjectSchema
)

const keep = (schema: JsonObject, key: string, isRight: (value: unknown) => boolean): JsonObject => {
  if (schema[key] === undefined || isRight(schema[key])) return schema
  const { [key]: _left, ...rest } = schema
  return rest
}

const areStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === "string")

/**
 * What the official schemas ask of a tool's schema: `$schema` is a string, and, before 2026-07-28, `properties` holds objects
 * and `required` strings. What is of the wrong kind is left out; a property that is described by a boolean is written with
 * the object that means the same.
 */
const lowerSchema = (value: unknown, revision: Revision): unknown => {
  if (!isObject(value)) return value
  let schema = keep(value, "$schema", (value) => typeof value === "string")
  if (revision >= "2026-07-28") return schema
  schema = keep(keep(schema, "properties", isObject), "required", areStrings)
  const properties = schema["properties"]
  if (!isObject(properties) || Object.values(properties).every(isObject)) return schema
  return {
    ...schema,
    // By entries, so that a property that is called `__proto__` stays one.
    properties: Object.fromEntries(
      Object.entries(properties).map((
        [name, value]
      ) => [name, isObject(value) ? value : value === false ? { not: {} } : {}])
    )
  }
}

/** A tool. */
export class Tool extends Schema.Opaque<Tool>()(Schema.Struct({
  ...nameFields,
  ...iconFields,
  description: Schema.optionalKey(Schema.String),
  /** Describes the arguments. Any JSON Schema 2020-12 since 2026-07-28. */
  inputSchema: field(ObjectSchema, { lower: lowerSchema }),
  /** Describes `structuredContent`. Before 2026-07-28 it must be of an object: others are left out there. */
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

/** The answer to `tools/list`. */
export class ListToolsResult extends Schema.Opaque<ListToolsResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  tools: Schema.Array(Tool)
})) {}
