/**
 * Calling a tool: `tools/call`.
 */
import * as Schema from "effect/Schema"
import { essential, field } from "./Annotate.ts"
import { ContentBlock, structuredFields } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { resultFields } from "./Message.ts"
import { AnyObject } from "./Primitive.ts"
import { taskFields } from "./TaskAugmentation.ts"

/** The params of `tools/call`. */
export class CallToolRequestParams extends Schema.Opaque<CallToolRequestParams>()(Schema.Struct({
  ...taskFields,
  ...inputResponseFields,
  name: Schema.String,
  arguments: essential(Schema.optionalKey(AnyObject))
})) {}

/**
 * Whether the params are a name, an object of arguments and `_meta`, and nothing else. Such params are valid in every
 * revision. Use it to skip decoding: most calls have these params, and decoding them costs a large part of the time of
 * a call.
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
 * The result of `tools/call`. A failure of the tool itself is a result with `isError`, not a JSON-RPC error.
 *
 * Before 2026-07-28 a `structuredContent` that is not an object is left out, so `content` should carry the same
 * information.
 */
export class CallToolResult extends Schema.Opaque<CallToolResult>()(Schema.Struct({
  ...resultFields,
  // Some servers send structured content alone.
  content: field(Schema.Array(ContentBlock), { absent: [] }),
  ...structuredFields,
  isError: essential(Schema.optionalKey(Schema.Boolean))
})) {}
