/** `tools/list` and `tools/call`. */
import { isPlain } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import { clip } from "../clip.ts"
import * as extensions from "../dispatch/extensions.ts"
import * as listing from "../definitions/listing.ts"
import type { Methods } from "./handlers.ts"

export const install = (methods: Methods): void => {
  const { tools } = methods.catalog
  listing.install(methods, Method.ListTools, "tools", tools)
  methods.on(Method.CallTool, (params, exchange) => {
    const tool = tools.seen(params.name, exchange.caller)
    if (tool === undefined) return Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
    const { calling } = methods.catalog.extensions
    return calling.length === 0
      ? tool.call(params.arguments ?? {}, exchange)
      : extensions.call(calling, { tool, params, exchange })
  }, isPlain)
}
