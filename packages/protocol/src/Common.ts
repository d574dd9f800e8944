/**
 * The small shapes that many messages share.
 *
 * The model's schemas have the same type on both sides (`Type` is `Encoded`), so that a value that was validated is the value
 * that was read. All objects are open: members that the model does not know stay where they are.
 */
import * as Schema from "effect/Schema"
import * as Getter from "effect/SchemaGetter"
import { field, guard, only, orNull, since } from "./Annotate.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

// What generators make of an open object. A declaration validates by a guard alone, and so keeps the object by reference.
const Scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])
const Tree = Schema.Record(
  Schema.String,
  Schema.Union([Scalar, Schema.Array(Scalar), Schema.Record(Schema.String, Scalar)])
)

/** A schema that is a guard. `from` and `make` are for generators only: they say how to come by a value. */
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

/** Any JSON object, kept by reference. */
export const AnyObject = guarded<JsonObject, typeof Tree>("an object", isObject, Tree, (value) => value)

const Generated = Schema.Union([Scalar, Tree])

/** Any JSON value, kept by reference. */
export const AnyValue = guarded<unknown, typeof Generated>(
  "a JSON value",
  (value): value is unknown => value !== undefined,
  Generated,
  (value) => value
)

/** A finite number. The official schemas say `integer` where the specification's TypeScript says `number`; both are read. */
export const AnyNumber = guarded<number, typeof Schema.Finite>(
  "a finite number",
  (value): value is number => Number.isFinite(value),
  Schema.Finite,
  (value) => value
)

const isString = (value: unknown): value is string => typeof value === "string"

/** A string that is meant to be base64. What it decodes to is the business of whoever uses it. */
export const Base64 = guarded<string, typeof Schema.String>(
  "a base64 string",
  isString,
  Schema.String,
  (value) => btoa(String.fromCharCode(...new TextEncoder().encode(value)))
)

/** A string that is meant to be a URI. It is not checked: peers send what they like, and it is only compared and shown. */
export const Uri = guarded<string, typeof Schema.String>(
  "a URI",
  isString,
  Schema.String,
  (value) => `urn:example:${encodeURIComponent(value.replace(/[\ud800-\udfff]/g, "")).replaceAll("'", "")}`
)

/** Free metadata, by reserved or prefixed keys. */
export const Meta = AnyObject
export type Meta = JsonObject

/** Who said it, or who it is for. */
export const Role = Schema.Literals(["user", "assistant"])
export type Role = typeof Role.Type

/** An opaque place in a listing. */
export const Cursor = Schema.String
export type Cursor = string

/** Ties progress notifications to a request. */
export const ProgressToken = Schema.Union([Schema.String, Schema.Int])
export type ProgressToken = typeof ProgressToken.Type

/** The id of a request. */
export const RequestId = Schema.Union([Schema.String, Schema.Int])
export type RequestId = typeof RequestId.Type

/** How severe a log message is, as in syslog; least severe first. */
export const LoggingLevel = Schema.Literals([
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency"
])
export type LoggingLevel = typeof LoggingLevel.Type

/** Hints about who a thing is for and how much it matters. */
export class Annotations extends Schema.Opaque<Annotations>()(Schema.Struct({
  audience: Schema.optionalKey(Schema.Array(Role)),
  /** From 0, the least important, to 1, effectively required. */
  priority: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  /** An ISO 8601 date and time. */
  lastModified: since("2025-06-18", Schema.optionalKey(Schema.String))
})) {}

/** An image to show beside a thing. */
export class Icon extends Schema.Opaque<Icon>()(Schema.Struct({
  src: Uri,
  mimeType: Schema.optionalKey(Schema.String),
  sizes: Schema.optionalKey(Schema.Array(Schema.String)),
  theme: Schema.optionalKey(Schema.Literals(["light", "dark"]))
})) {}

/** The field of what has icons. */
export const iconFields = { icons: since("2025-11-25", Schema.optionalKey(Schema.Array(Icon))) }

/** The fields of what has a name for programs and a title for people. */
export const nameFields = {
  name: Schema.String,
  title: since("2025-06-18", Schema.optionalKey(Schema.String))
}

/** The `_meta` of what got one in 2025-06-18. */
export const metaFields = { _meta: since("2025-06-18", Schema.optionalKey(Meta)) }

/** What a program is called. */
export class BaseMetadata extends Schema.Opaque<BaseMetadata>()(Schema.Struct(nameFields)) {}

/** The name and version of an implementation. */
export class Implementation extends Schema.Opaque<Implementation>()(Schema.Struct({
  ...nameFields,
  version: Schema.String,
  description: since("2025-11-25", Schema.optionalKey(Schema.String)),
  websiteUrl: since("2025-11-25", Schema.optionalKey(Uri)),
  ...iconFields
})) {}

// A `_meta` that is no object says nothing: it is ignored rather than refused. What the request era needs of it is checked by
// `RequestMeta`.
const paramsMeta = field(Schema.optionalKey(Meta), { lift: (value) => isObject(value) ? value : undefined })

/** Whether the value has what every revision asks of an implementation. For where there is no time for the schema. */
export const isImplementation = (value: unknown): value is Implementation =>
  isObject(value) && typeof value["name"] === "string" && typeof value["version"] === "string"

/** The `_meta` of any request's params. Its reserved keys are read by `RequestMeta`. */
export const requestFields = { _meta: paramsMeta }

/** The `_meta` of any notification's params. */
export const notificationFields = { _meta: paramsMeta }

/** The `_meta` of what is a result in the session era, and part of the params in the request era. */
export const answerFields = { _meta: paramsMeta }

/** How long a task is to be kept, as 2025-11-25 asks for one: the presence of the object asks for a task. */
export class TaskMetadata extends Schema.Opaque<TaskMetadata>()(Schema.Struct({
  /** Milliseconds from its creation. */
  ttl: Schema.optionalKey(Schema.Int)
})) {}

/** The fields of a request's params that 2025-11-25 can augment with a task. */
export const taskFields = { ...requestFields, task: orNull(only("2025-11-25", Schema.optionalKey(TaskMetadata))) }

/** The fields of every result. `resultType` is filled in on both sides: a result without one is complete. */
export const resultFields = {
  _meta: Schema.optionalKey(Meta),
  resultType: since("2026-07-28", Schema.optionalKey(Schema.String), { default: "complete" })
}

const atLeastZero = (ttl: unknown): number => typeof ttl === "number" && ttl < 0 ? 0 : ttl as number

const liftTtl = (ttl: unknown): number | undefined => {
  const read = atLeastZero(ttl)
  return Number.isSafeInteger(read) ? read : undefined
}

const scopes: ReadonlySet<unknown> = new Set(["public", "private"])

const liftScope = (scope: unknown): "public" | "private" | undefined =>
  scopes.has(scope) ? scope as "public" | "private" : undefined

/**
 * The fields of a result that may be cached. Writing fills in the safe values, stale at once and for one principal; reading
 * fills in nothing, so that silence can be told from 0. A negative `ttlMs` is written, and read, as 0.
 *
 * They are hints: one that cannot be read is ignored, and the result is read all the same.
 */
export const cacheFields = {
  /** Milliseconds for which the result may be taken as fresh. */
  ttlMs: since("2026-07-28", Schema.optionalKey(Schema.Int), {
    fill: () => 0,
    lower: atLeastZero,
    lift: liftTtl
  }),
  /** Whether caches that several principals share may keep it. */
  cacheScope: since("2026-07-28", Schema.optionalKey(Schema.Literals(["public", "private"])), {
    fill: () => "private" as const,
    lift: liftScope
  })
}

/** Params that hold nothing but `_meta`. */
export class RequestParams extends Schema.Opaque<RequestParams>()(Schema.Struct(requestFields)) {}

/** Params that hold nothing but `_meta`. */
export class NotificationParams extends Schema.Opaque<NotificationParams>()(Schema.Struct(notificationFields)) {}

/** The params of a request for a page of a listing. */
export class PaginatedRequestParams extends Schema.Opaque<PaginatedRequestParams>()(Schema.Struct({
  ...requestFields,
  cursor: orNull(Schema.optionalKey(Cursor))
})) {}

/** A result that says nothing but that it worked. */
export class EmptyResult extends Schema.Opaque<EmptyResult>()(Schema.Struct(resultFields)) {}

/**
 * The fields of a page of a listing. A `nextCursor` of `null` is the end as its absence is: what counts is "whether a non-null
 * value was provided" (2026-07-28, pagination).
 */
export const pageFields = {
  ...resultFields,
  nextCursor: orNull(Schema.optionalKey(Cursor))
}

/** What all pages of listings have. */
export class PaginatedResult extends Schema.Opaque<PaginatedResult>()(Schema.Struct(pageFields)) {}

/** What all results that may be cached have. */
export class CacheableResult extends Schema.Opaque<CacheableResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields
})) {}

/** Structured content: any JSON value since 2026-07-28; before that an object, and what is not one is left out. */
export const structuredFields = {
  structuredContent: since("2025-06-18", Schema.optionalKey(AnyValue), {
    lower: (value, revision) => revision >= "2026-07-28" || isObject(value) ? value : undefined
  })
}
