/**
 * Elicitation: the server asks the user for input, by a form or by a URL to visit (`elicitation/create`), since
 * 2025-06-18. In a session-based revision it is a request; in the stateless revision it is an input request inside a
 * result (see `InputRequired`).
 */
import * as Schema from "effect/Schema"
import { essential, member, only, since } from "./Annotate.ts"
import { answerFields, notificationFields } from "./Message.ts"
import { AnyNumber, Uri } from "./Primitive.ts"
import { taskFields } from "./TaskAugmentation.ts"

const labels = {
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String)
}

/** A text field of a form. */
export class StringSchema extends Schema.Opaque<StringSchema>()(Schema.Struct({
  type: Schema.Literal("string"),
  ...labels,
  minLength: Schema.optionalKey(Schema.Int),
  maxLength: Schema.optionalKey(Schema.Int),
  format: Schema.optionalKey(Schema.Literals(["email", "uri", "date", "date-time"])),
  default: since("2025-11-25", Schema.optionalKey(Schema.String))
})) {}

/** A number field of a form. */
export class NumberSchema extends Schema.Opaque<NumberSchema>()(Schema.Struct({
  type: Schema.Literals(["number", "integer"]),
  ...labels,
  minimum: Schema.optionalKey(AnyNumber),
  maximum: Schema.optionalKey(AnyNumber),
  default: since("2025-11-25", Schema.optionalKey(AnyNumber))
})) {}

/** A checkbox of a form. */
export class BooleanSchema extends Schema.Opaque<BooleanSchema>()(Schema.Struct({
  type: Schema.Literal("boolean"),
  ...labels,
  default: Schema.optionalKey(Schema.Boolean)
})) {}

const choice = { type: Schema.Literal("string"), ...labels }
const chosen = { default: since("2025-11-25", Schema.optionalKey(Schema.String)) }
const Titled = Schema.Struct({ const: Schema.String, title: Schema.String })

/** A choice of one value; the values are shown as they are. */
export class UntitledSingleSelectEnumSchema extends Schema.Opaque<UntitledSingleSelectEnumSchema>()(Schema.Struct({
  ...choice,
  enum: Schema.Array(Schema.String),
  ...chosen
})) {}

/**
 * A choice of one value with titles, in the form of 2025-06-18.
 *
 * @deprecated since 2025-11-25; use {@link TitledSingleSelectEnumSchema}
 */
export class LegacyTitledEnumSchema extends Schema.Opaque<LegacyTitledEnumSchema>()(Schema.Struct({
  ...choice,
  enum: Schema.Array(Schema.String),
  /** The titles, in the order of `enum`. */
  enumNames: Schema.optionalKey(Schema.Array(Schema.String)),
  ...chosen
})) {}

/** A choice of one value with titles, since 2025-11-25. For 2025-06-18 a {@link LegacyTitledEnumSchema} is written. */
export class TitledSingleSelectEnumSchema extends Schema.Opaque<TitledSingleSelectEnumSchema>()(member(
  Schema.Struct({ ...choice, oneOf: Schema.Array(Titled), ...chosen }),
  {
    since: "2025-11-25",
    degrade: ({ default: _default, oneOf, ...rest }) => ({
      ...rest,
      enum: oneOf.map((option) => option.const),
      enumNames: oneOf.map((option) => option.title)
    })
  }
)) {}

const several = {
  type: Schema.Literal("array"),
  ...labels,
  minItems: Schema.optionalKey(Schema.Int),
  maxItems: Schema.optionalKey(Schema.Int),
  default: Schema.optionalKey(Schema.Array(Schema.String))
}
const multiSelect = { since: "2025-11-25", name: "multiple choice in a form" } as const

/** A choice of several values, since 2025-11-25. Writing it for an older peer is refused. */
export class UntitledMultiSelectEnumSchema extends Schema.Opaque<UntitledMultiSelectEnumSchema>()(member(
  Schema.Struct({
    ...several,
    items: Schema.Struct({ type: Schema.Literal("string"), enum: Schema.Array(Schema.String) })
  }),
  multiSelect
)) {}

/** A choice of several values with titles, since 2025-11-25. Writing it for an older peer is refused. */
export class TitledMultiSelectEnumSchema extends Schema.Opaque<TitledMultiSelectEnumSchema>()(member(
  Schema.Struct({ ...several, items: Schema.Struct({ anyOf: Schema.Array(Titled) }) }),
  multiSelect
)) {}

/** A choice of one value. */
export const SingleSelectEnumSchema = Schema.Union([UntitledSingleSelectEnumSchema, TitledSingleSelectEnumSchema])
export type SingleSelectEnumSchema = typeof SingleSelectEnumSchema.Type

/** A choice of several values. */
export const MultiSelectEnumSchema = Schema.Union([UntitledMultiSelectEnumSchema, TitledMultiSelectEnumSchema])
export type MultiSelectEnumSchema = typeof MultiSelectEnumSchema.Type

// The order matters: the legacy shape is a special case of the untitled one, so it comes first.
/** A choice of one or several values. */
export const EnumSchema = Schema.Union([
  LegacyTitledEnumSchema,
  UntitledSingleSelectEnumSchema,
  TitledSingleSelectEnumSchema,
  UntitledMultiSelectEnumSchema,
  TitledMultiSelectEnumSchema
])
export type EnumSchema = typeof EnumSchema.Type

// The order matters: a choice of one value also matches the schema of a text field, so choices come first.
/** A field of a form. */
export const PrimitiveSchemaDefinition = Schema.Union([
  ...EnumSchema.members,
  NumberSchema,
  BooleanSchema,
  StringSchema
])
export type PrimitiveSchemaDefinition = typeof PrimitiveSchemaDefinition.Type

/** A form: a JSON Schema of an object whose properties are fields. Nested objects are not allowed. */
export class RequestedSchema extends Schema.Opaque<RequestedSchema>()(Schema.Struct({
  $schema: since("2025-11-25", Schema.optionalKey(Schema.String)),
  type: Schema.Literal("object"),
  properties: Schema.Record(Schema.String, PrimitiveSchemaDefinition),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})) {}

/** The params of `elicitation/create` for a form. */
export class ElicitRequestFormParams extends Schema.Opaque<ElicitRequestFormParams>()(Schema.Struct({
  ...taskFields,
  mode: since("2025-11-25", Schema.optionalKey(Schema.Literal("form"))),
  /** The text to show the user. */
  message: Schema.String,
  requestedSchema: RequestedSchema
})) {}

/**
 * The params of `elicitation/create` for a URL to visit, since 2025-11-25. Writing them for an older peer is refused.
 */
export class ElicitRequestURLParams extends Schema.Opaque<ElicitRequestURLParams>()(member(
  Schema.Struct({
    ...taskFields,
    mode: Schema.Literal("url"),
    /** The reason for the visit, to show the user. */
    message: Schema.String,
    url: Uri,
    /** Ties `notifications/elicitation/complete` to this elicitation, in 2025-11-25. Writing fills in a random UUID. */
    elicitationId: only("2025-11-25", Schema.optionalKey(Schema.String), { fill: () => globalThis.crypto.randomUUID() })
  }),
  { since: "2025-11-25", name: "elicitation by URL" }
)) {}

/** The params of `elicitation/create`. */
export const ElicitRequestParams = Schema.Union([ElicitRequestURLParams, ElicitRequestFormParams])
export type ElicitRequestParams = typeof ElicitRequestParams.Type

/** The value of one field of a submitted form. */
export const ElicitValue = Schema.Union([
  Schema.String,
  AnyNumber,
  Schema.Boolean,
  member(Schema.Array(Schema.String), multiSelect)
])
export type ElicitValue = typeof ElicitValue.Type

/** The result of `elicitation/create`. */
export class ElicitResult extends Schema.Opaque<ElicitResult>()(Schema.Struct({
  ...answerFields,
  /** Whether the user accepted, declined, or closed the form without a choice. */
  action: Schema.Literals(["accept", "decline", "cancel"]),
  /** The submitted values, where a form was accepted. */
  content: essential(Schema.optionalKey(Schema.Record(Schema.String, ElicitValue)))
})) {}

/** The params of `notifications/elicitation/complete`, in 2025-11-25. */
export class ElicitationCompleteNotificationParams
  extends Schema.Opaque<ElicitationCompleteNotificationParams>()(Schema.Struct({
    ...notificationFields,
    elicitationId: Schema.String
  }))
{}

/** The data of the error -32042 of 2025-11-25: the URL elicitations to complete before the request is sent again. */
export class URLElicitationRequiredErrorData extends Schema.Opaque<URLElicitationRequiredErrorData>()(Schema.Struct({
  elicitations: Schema.Array(ElicitRequestURLParams)
})) {}
