/** The methods of the catalog: `tools/*`, `resources/*` and `prompts/*`. */
import { isPlain } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { clip } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { internals } from "../catalogState.ts"
import { installListing } from "../definitions/listing.ts"
import * as extensions from "../dispatch/extensions.ts"
import type { MethodTable } from "./methodTable.ts"
import { findReader } from "../definitions/readResource.ts"

export const installTools = (methods: MethodTable): void => {
  const { tools } = methods.catalog
  installListing(methods, Method.ListTools, "tools", tools)
  methods.add(Method.CallTool, (params, request) => {
    const tool = tools.seen(params.name, request.caller)
    if (tool === undefined) return Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
    const refused = tool.guard?.(request.caller)
    if (refused !== undefined) return Effect.fail(refused)
    const { calling } = methods.catalog[internals].extensions
    return calling.length === 0
      ? tool.call(params.arguments ?? {}, request)
      : extensions.call(calling, { tool, params, request })
  }, isPlain)
}

export const installResources = (methods: MethodTable): void => {
  const { catalog } = methods
  installListing(methods, Method.ListResources, "resources", catalog.resources)
  installListing(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.add(Method.ReadResource, ({ uri }, request) => {
    const read = findReader(catalog, uri, request.caller)
    if (read === undefined) return Effect.fail(McpError.resourceNotFound(uri))
    return McpError.isMcpError(read) ? Effect.fail(read) : read(request)
  })
}

export const installPrompts = (methods: MethodTable): void => {
  const { prompts } = methods.catalog
  installListing(methods, Method.ListPrompts, "prompts", prompts)
  methods.add(Method.GetPrompt, (params, request) => {
    const prompt = prompts.seen(params.name, request.caller)
    if (prompt === undefined) return Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
    const refused = prompt.guard?.(request.caller)
    return refused === undefined ? prompt.get(params.arguments ?? {}, request) : Effect.fail(refused)
  })
}
