/**
 * Elicitation: the server asks the user, by a form or by an address to visit, `elicitation/create`. Since 2025-06-18. A
 * request of its own in the session era, an input request inside a result in the request era.
 */
import * as Schema from "effect/Schema"
import { member, only, since } from "./Annotate.ts"
import { answerFields, AnyNumber, notificationFields, taskFields, Uri } from "./Common.ts"

const labels = {
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String)
}

/** A text field. */
export class StringSchema extends Schema.Opaque<StringSchema>()(Schema.Struct({
  type: Schema.Literal("string"),
  ...labels,
  minLength: Schema.optionalKey(Schema.Int),
  maxLength: Schema.optionalKey(Schema.Int),
  format: Schema.optionalKey(Schema.Literals(["email", "uri", "date", "date-time"])),
  default: since("2025-11-25", Schema.optionalKey(Schema.String))
})) {}

/** A field for a number. */
export class NumberSchema extends Schema.Opaque<NumberSchema>()(Schema.Struct({
  type: Schema.Literals(["number", "integer"]),
  ...labels,
  minimum: Schema.optionalKey(AnyNumber),
  maximum: Schema.optionalKey(AnyNumber),
  default: since("2025-11-25", Schema.optionalKey(AnyNumber))
})) {}

/** A box to tick. */
export class BooleanSchema extends Schema.Opaque<BooleanSchema>()(Schema.Struct({
  type: Schema.Literal("boolean"),
  ...labels,
  default: Schema.optionalKey(Schema.Boolean)
})) {}

const choice = { type: Schema.Literal("string"), ...labels }
const chosen = { default: since("2025-11-25", Schema.optionalKey(Schema.String)) }
const Titled = Schema.Struct({ const: Schema.String, title: Schema.String })

/** One of several values. */
export class UntitledSingleSelectEnumSchema extends Schema.Opaque<UntitledSingleSelectEnumSchema>()(Schema.Struct({
  ...choice,
  enum: Schema.Array(Schema.String),
  ...chosen
})) {}

/**
 * One of several values that have titles, in the way that 2025-06-18 had for it.
 *
 * @deprecated since 2025-11-25, where {@link TitledSingleSelectEnumSchema} says the same
 */
export class LegacyTitledEnumSchema extends Schema.Opaque<LegacyTitledEnumSchema>()(Schema.Struct({
  ...choice,
  enum: Schema.Array(Schema.String),
  /** The titles, in the order of `enum`. */
  enumNames: Schema.optionalKey(Schema.Array(Schema.String)),
  ...chosen
})) {}

/** One of several values that have titles. Since 2025-11-25; to 2025-06-18 it is written in the older way. */
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
const multiSelect = { since: "2025-11-25", name: "choice of several values in a form" } as const

/** Several of several values. Since 2025-11-25; older peers cannot be asked. */
export class UntitledMultiSelectEnumSchema extends Schema.Opaque<UntitledMultiSelectEnumSchema>()(member(
  Schema.Struct({
    ...several,
    items: Schema.Struct({ type: Schema.Literal("string"), enum: Schema.Array(Schema.String) })
  }),
  multiSelect
)) {}

/** Several of several values that have titles. Since 2025-11-25; older peers cannot be asked. */
export class TitledMultiSelectEnumSchema extends Schema.Opaque<TitledMultiSelectEnumSchema>()(member(
  Schema.Struct({ ...several, items: Schema.Struct({ anyOf: Schema.Array(Titled) }) }),
  multiSelect
)) {}

/** One of several values. */
export const SingleSelectEnumSchema = Schema.Union([UntitledSingleSelectEnumSchema, TitledSingleSelectEnumSchema])
export type SingleSelectEnumSchema = typeof SingleSelectEnumSchema.Type

/** Several of several values. */
export const MultiSelectEnumSchema = Schema.Union([UntitledMultiSelectEnumSchema, TitledMultiSelectEnumSchema])
export type MultiSelectEnumSchema = typeof MultiSelectEnumSchema.Type

/** A choice. The legacy shape comes before the one without titles, of which it is a special case. */
export const EnumSchema = Schema.Union([
  LegacyTitledEnumSchema,
  UntitledSingleSelectEnumSchema,
  TitledSingleSelectEnumSchema,
  UntitledMultiSelectEnumSchema,
  TitledMultiSelectEnumSchema
])
export type EnumSchema = typeof EnumSchema.Type

/** One field of a form. The choices come first: a text field is what has no choices. */
export const PrimitiveSchemaDefinition = Schema.Union([
  ...EnumSchema.members,
  NumberSchema,
  BooleanSchema,
  StringSchema
])
export type PrimitiveSchemaDefinition = typeof PrimitiveSchemaDefinition.Type

/** The fields of a form, one level deep. */
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
  /** What to tell the user. */
  message: Schema.String,
  requestedSchema: RequestedSchema
})) {}

/** The params of `elicitation/create` for an address to visit. Since 2025-11-25; older peers cannot be asked. */
export class ElicitRequestURLParams extends Schema.Opaque<ElicitRequestURLParams>()(member(
  Schema.Struct({
    ...taskFields,
    mode: Schema.Literal("url"),
    /** Why the user should go there. */
    message: Schema.String,
    url: Uri,
    /** Ties the notice of completion to this elicitation, in 2025-11-25. Absent there, a random one is written. */
    elicitationId: only("2025-11-25", Schema.optionalKey(Schema.String), { fill: () => globalThis.crypto.randomUUID() })
  }),
  { since: "2025-11-25", name: "elicitation by URL" }
)) {}

/** The params of `elicitation/create`. */
export const ElicitRequestParams = Schema.Union([ElicitRequestURLParams, ElicitRequestFormParams])
export type ElicitRequestParams = typeof ElicitRequestParams.Type

/** What a user may enter into one field. */
export const ElicitValue = Schema.Union([
  Schema.String,
  AnyNumber,
  Schema.Boolean,
  member(Schema.Array(Schema.String), multiSelect)
])
export type ElicitValue = typeof ElicitValue.Type

/** The answer to `elicitation/create`. */
export class ElicitResult extends Schema.Opaque<ElicitResult>()(Schema.Struct({
  ...answerFields,
  /** The user agreed, said no, or dismissed the question. */
  action: Schema.Literals(["accept", "decline", "cancel"]),
  /** What was entered, when a form was accepted. */
  content: Schema.optionalKey(Schema.Record(Schema.String, ElicitValue))
})) {}

/** The params of `notifications/elicitation/complete`, in 2025-11-25. */
export class ElicitationCompleteNotificationParams
  extends Schema.Opaque<ElicitationCompleteNotificationParams>()(Schema.Struct({
    ...notificationFields,
    elicitationId: Schema.String
  }))
{}

/** The data of the error with which 2025-11-25 says that a URL elicitation must be completed first. */
export class URLElicitationRequiredErrorData extends Schema.Opaque<URLElicitationRequiredErrorData>()(Schema.Struct({
  elicitations: Schema.Array(ElicitRequestURLParams)
})) {}
