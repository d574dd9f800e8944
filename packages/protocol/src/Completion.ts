/**
 * Completion of an argument: `completion/complete`.
 */
import * as Schema from "effect/Schema"
import { field, since } from "./Annotate.ts"
import { nameFields } from "./BaseMetadata.ts"
import { requestFields, resultFields } from "./Message.ts"
import { Uri } from "./Primitive.ts"

/** A reference to a prompt, by name. */
export class PromptReference extends Schema.Opaque<PromptReference>()(Schema.Struct({
  type: Schema.Literal("ref/prompt"),
  ...nameFields
})) {}

/** A reference to a resource template, by URI template. Its official name was `ResourceReference` before 2025-06-18. */
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
    /** The text typed so far. */
    value: Schema.String
  }),
  /** The values of the other arguments. */
  context: since(
    "2025-06-18",
    Schema.optionalKey(Schema.Struct({
      arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
    }))
  )
})) {}

/** The result of `completion/complete`. */
export class CompleteResult extends Schema.Opaque<CompleteResult>()(Schema.Struct({
  ...resultFields,
  completion: Schema.Struct({
    /** The suggestions, the best first. At most 100 are allowed; writing leaves out the rest. */
    values: field(Schema.Array(Schema.String), {
      lower: (values) => Array.isArray(values) && values.length > 100 ? values.slice(0, 100) : values
    }),
    /** The number of all suggestions, which can exceed the length of `values`. */
    total: Schema.optionalKey(Schema.Int),
    hasMore: Schema.optionalKey(Schema.Boolean)
  })
})) {}
