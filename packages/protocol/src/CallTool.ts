/**
 * Calling a tool: `tools/call`.
 */
import * as Schema from "effect/Schema"
import { orNull } from "./Annotate.ts"
import { AnyObject, resultFields, structuredFields, taskFields } from "./Common.ts"
import { ContentBlock } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"

/** The params of `tools/call`. */
export class CallToolRequestParams extends Schema.Opaque<CallToolRequestParams>()(Schema.Struct({
  ...taskFields,
  ...inputResponseFields,
  name: Schema.String,
  arguments: orNull(Schema.optionalKey(AnyObject))
})) {}

/**
 * The answer to `tools/call`. A tool's own failure is an answer too, with `isError`.
 *
 * `structuredContent` may be any JSON value since 2026-07-28, and must be an object before: others are left out there, so
 * `content` should say the same.
 */
export class CallToolResult extends Schema.Opaque<CallToolResult>()(Schema.Struct({
  ...resultFields,
  content: Schema.Array(ContentBlock),
  ...structuredFields,
  isError: Schema.optionalKey(Schema.Boolean)
})) {}
