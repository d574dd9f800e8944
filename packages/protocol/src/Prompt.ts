/**
 * Prompts: `prompts/list` and `prompts/get`.
 */
import * as Schema from "effect/Schema"
import { essential } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { cacheFields } from "./Caching.ts"
import { ContentBlock, Role } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"
import { metaFields, requestFields, resultFields } from "./Message.ts"
import { pageFields } from "./Pagination.ts"

/** An argument of a prompt. Its value is a string. */
export class PromptArgument extends Schema.Opaque<PromptArgument>()(Schema.Struct({
  ...nameFields,
  description: Schema.optionalKey(Schema.String),
  required: Schema.optionalKey(Schema.Boolean)
})) {}

/** A prompt, as a server lists it. */
export class Prompt extends Schema.Opaque<Prompt>()(Schema.Struct({
  ...nameFields,
  ...iconFields,
  description: Schema.optionalKey(Schema.String),
  arguments: Schema.optionalKey(Schema.Array(PromptArgument)),
  ...metaFields
})) {}

/** The result of `prompts/list`. */
export class ListPromptsResult extends Schema.Opaque<ListPromptsResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  prompts: Schema.Array(Prompt)
})) {}

/** The params of `prompts/get`. */
export class GetPromptRequestParams extends Schema.Opaque<GetPromptRequestParams>()(Schema.Struct({
  ...requestFields,
  ...inputResponseFields,
  name: Schema.String,
  arguments: essential(Schema.optionalKey(Schema.Record(Schema.String, Schema.String)))
})) {}

/** A message of a prompt. */
export class PromptMessage extends Schema.Opaque<PromptMessage>()(Schema.Struct({
  role: Role,
  content: ContentBlock
})) {}

/** The result of `prompts/get`. */
export class GetPromptResult extends Schema.Opaque<GetPromptResult>()(Schema.Struct({
  ...resultFields,
  description: Schema.optionalKey(Schema.String),
  messages: essential(Schema.Array(PromptMessage))
})) {}
