/** `tools/list` and `tools/call`. */
import { isPlain } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as listing from "../definitions/listing.ts"
import * as extensions from "../dispatch/extensions.ts"
import { sessionOf } from "../dispatch/session.ts"
import type { MethodTable } from "./methodTable.ts"
import { clip } from "../text.ts"
import { findReader } from "../definitions/readResource.ts"

export const installTools = (methods: MethodTable): void => {
  const { tools } = methods.catalog
  listing.installListing(methods, Method.ListTools, "tools", tools)
  methods.on(Method.CallTool, (params, exchange) => {
    const tool = tools.seen(params.name, exchange.caller)
    return tool === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
      : extensions.call(methods.catalog, { tool, params, exchange })
  }, isPlain)
}

export const installResources = (methods: MethodTable): void => {
  const { catalog } = methods
  listing.installListing(methods, Method.ListResources, "resources", catalog.resources)
  listing.installListing(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.on(Method.ReadResource, ({ uri }, exchange) => {
    const read = findReader(catalog, uri, exchange.caller)
    return read === undefined ? Effect.fail(McpError.resourceNotFound(uri)) : read(exchange)
  })
}

export const installPrompts = (methods: MethodTable): void => {
  const { prompts } = methods.catalog
  listing.installListing(methods, Method.ListPrompts, "prompts", prompts)
  methods.on(Method.GetPrompt, (params, exchange) => {
    const prompt = prompts.seen(params.name, exchange.caller)
    return prompt === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
      : prompt.get(params.arguments ?? {}, exchange)
  })
}

/** "The server should send all logs at this level and higher"; from the next message on, of what is in flight too. */
export const installLogging = (methods: MethodTable): void => {
  const { hub } = methods
  methods.on(Method.SetLevel, ({ level }, { caller, method }) =>
    Effect.suspend(() => {
      const session = sessionOf(caller)
      // What would be forgotten at once is not offered.
      if (session === undefined || hub.alone.has(session.peer)) return Effect.fail(McpError.methodNotFound(method))
      session.logLevel = level
      return Effect.succeed({})
    }))
}
