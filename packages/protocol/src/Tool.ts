/**
 * Tools and their listing, `tools/list`. Calling one is in `CallTool`.
 */
import * as Schema from "effect/Schema"
import * as Getter from "effect/SchemaGetter"
import { field, only, since } from "./Annotate.ts"
import { AnyObject, cacheFields, iconFields, metaFields, nameFields, pageFields } from "./Common.ts"
import type { JsonObject } from "./JsonRpc.ts"

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
  readonly $schema?: string
  readonly type: "object"
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const Generated = Schema.Struct({
  type: Schema.Literal("object"),
  $schema: Schema.optionalKey(Schema.Literal("https://json-schema.org/draft/2020-12/schema")),
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.Boolean, AnyObject]))),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})

/** The schema of {@link ObjectSchema}: an object with `type: "object"`, by reference. */
export const ObjectSchema = Schema.declare<ObjectSchema>(
  (value): value is ObjectSchema =>
    isObject(value) && value["type"] === "object" &&
    (value["$schema"] === undefined || typeof value["$schema"] === "string"),
  {
    expected: "a JSON Schema with \"type\": \"object\"",
    toCodecArbitrary: () =>
      Schema.link<ObjectSchema>()(Generated, {
        decode: Getter.transform((value: typeof Generated.Type) => value as ObjectSchema),
        encode: Getter.transform((value) => value as unknown as typeof Generated.Type)
      })
  }
)

/**
 * Before 2026-07-28 a tool's schema was an object whose properties are described by objects: the boolean schemas there are
 * written as the objects that mean the same. Members of the wrong kind are left out.
 */
const lowerSchema = (schema: unknown, revision: string): unknown => {
  if (revision >= "2026-07-28" || !isObject(schema)) return schema
  const { properties, required } = schema
  const booleans = isObject(properties) && Object.values(properties).some((value) => !isObject(value))
  const badRequired = required !== undefined &&
    !(Array.isArray(required) && required.every((name) => typeof name === "string"))
  const badProperties = properties !== undefined && !isObject(properties)
  if (!booleans && !badRequired && !badProperties) return schema
  const { properties: _properties, required: _required, ...out } = schema as Record<string, unknown>
  if (isObject(properties)) {
    // By entries, so that a property that is called `__proto__` stays one.
    out["properties"] = Object.fromEntries(
      Object.entries(properties).map(([name, value]) => [name, isObject(value) ? value : value === false ? { not: {} } : {}])
    )
  }
  if (required !== undefined && !badRequired) out["required"] = required
  return out
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
