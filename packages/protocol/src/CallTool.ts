/**
 * Calling a tool: `tools/call`.
 */
import * as Schema from "effect/Schema"
import { orNull } from "./Annotate.ts"
import { AnyObject, resultFields, structuredFields, taskFields } from "./Common.ts"
import { ContentBlock } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** The params of `tools/call`. */
export class CallToolRequestParams extends Schema.Opaque<CallToolRequestParams>()(Schema.Struct({
  ...taskFields,
  ...inputResponseFields,
  name: Schema.String,
  arguments: orNull(Schema.optionalKey(AnyObject))
})) {}

/**
 * Whether the params of a call are a name, an object of arguments and `_meta`, and nothing else: they are valid then, in every
 * revision. Most calls are so, and reading them by the model would be a good part of what they cost.
 */
export const isPlain = (params: JsonObject | undefined): params is CallToolRequestParams & JsonObject => {
  if (params === undefined || typeof params["name"] !== "string") return false
  for (const key in params) {
    if (key === "arguments" || key === "_meta") {
      if (!isObject(params[key])) return false
    } else if (key !== "name") return false
  }
  return true
}

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
