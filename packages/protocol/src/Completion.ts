/**
 * Completion: suggestions for an argument, `completion/complete`.
 */
import * as Schema from "effect/Schema"
import { field, since } from "./Annotate.ts"
import { nameFields, requestFields, resultFields, Uri } from "./Common.ts"

/** A prompt, by its name. */
export class PromptReference extends Schema.Opaque<PromptReference>()(Schema.Struct({
  type: Schema.Literal("ref/prompt"),
  ...nameFields
})) {}

/** A resource template, by its URI template (`ResourceReference` until 2025-06-18). */
export class ResourceTemplateReference extends Schema.Opaque<ResourceTemplateReference>()(Schema.Struct({
  type: Schema.Literal("ref/resource"),
  uri: Uri
})) {}

/** The params of `completion/complete`. */
export class CompleteRequestParams extends Schema.Opaque<CompleteRequestParams>()(Schema.Struct({
  ...requestFields,
  ref: Schema.Union([PromptReference, ResourceTemplateReference]),
  argument: Schema.Struct({
    name: Schema.String,
    /** What was typed so far. */
    value: Schema.String
  }),
  /** What the other arguments are already. */
  context: since(
    "2025-06-18",
    Schema.optionalKey(Schema.Struct({
      arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
    }))
  )
})) {}

/** The answer to `completion/complete`. */
export class CompleteResult extends Schema.Opaque<CompleteResult>()(Schema.Struct({
  ...resultFields,
  completion: Schema.Struct({
    /** The best first, 100 at most: writing leaves out what is beyond. */
    values: field(Schema.Array(Schema.String), {
      lower: (values) => Array.isArray(values) && values.length > 100 ? values.slice(0, 100) : values
    }),
    /** How many there are in all, which may be more than were given. */
    total: Schema.optionalKey(Schema.Int),
    hasMore: Schema.optionalKey(Schema.Boolean)
  })
})) {}
