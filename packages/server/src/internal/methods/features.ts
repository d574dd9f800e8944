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
    return tool === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
      : extensions.call(methods.catalog, { tool, params, exchange })
  }, isPlain)
}
