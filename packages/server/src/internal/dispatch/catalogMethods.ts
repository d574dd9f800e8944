/** The methods of the catalog: `tools/*`, `resources/*` and `prompts/*`. */
import { type CallToolRequestParams, isPlain } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { clip } from "@skein/protocol/Text"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import { internals, type ToolCallResult, type ToolEntry } from "../catalog/catalogState.ts"
import { installListing } from "./listing.ts"
import * as extensions from "./extensions.ts"
import * as hooks from "../catalog/hookList.ts"
import type { MethodTable } from "./methodTable.ts"
import { findReadable, findReader } from "../handlers/readResource.ts"

export const installTools = (methods: MethodTable): void => {
  const { tools } = methods.catalog
  installListing(methods, Method.ListTools, "tools", tools)
  methods.add(Method.CallTool, (params, request) => {
    const tool = tools.seen(params.name, request.caller)
    if (tool === undefined) return Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
    const refused = tool.guard?.(request.caller)
    if (refused !== undefined) return Effect.fail(refused)
    const { extensions: { calling }, operations: { calls } } = methods.catalog[internals]
    if (calls.all.length > 0) return callThroughHooks(methods, tool, params, request)
    return calling.length === 0
      ? tool.call(params.arguments ?? {}, request)
      : extensions.call(calling, { tool, params, request })
  }, isPlain)
}

const callThroughHooks = (
  { catalog: { [internals]: { extensions: { calling }, operations: { calls } } } }: MethodTable,
  entry: ToolEntry,
  params: CallToolRequestParams,
  dispatched: RequestContext
): ToolCallResult => {
  const operation = { entry, arguments: params.arguments ?? {}, caller: dispatched.caller, request: dispatched }
  return calls.run(operation, ({ arguments: args, request }) =>
    hooks.handle(
      dispatched,
      request,
      extensions.call(calling, { tool: entry, params: { ...params, arguments: args }, request })
    ))
}

export const installResources = (methods: MethodTable): void => {
  const { catalog } = methods
  installListing(methods, Method.ListResources, "resources", catalog.resources)
  installListing(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.add(Method.ReadResource, ({ uri }, request) => {
    const read = findReader(catalog, uri, request.caller)
    if (read === undefined) return Effect.fail(McpError.resourceNotFound(uri))
    if (McpError.isMcpError(read)) return Effect.fail(read)
    const { reads } = catalog[internals].operations
    const entry = reads.all.length === 0 ? undefined : findReadable(catalog, uri, request.caller)
    return entry === undefined
      ? read(request)
      : reads.run({ entry, uri, caller: request.caller, request }, ({ request }) => read(request))
  })
}

export const installPrompts = (methods: MethodTable): void => {
  const { [internals]: { operations }, prompts } = methods.catalog
  installListing(methods, Method.ListPrompts, "prompts", prompts)
  methods.add(Method.GetPrompt, (params, request) => {
    const prompt = prompts.seen(params.name, request.caller)
    if (prompt === undefined) return Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
    const refused = prompt.guard?.(request.caller)
    if (refused !== undefined) return Effect.fail(refused)
    const args: JsonObject = params.arguments ?? {}
    return operations.prompts.all.length === 0
      ? prompt.get(args, request)
      : operations.prompts.run(
        { entry: prompt, arguments: args, caller: request.caller, request },
        (changed) => hooks.handle(request, changed.request, prompt.get(changed.arguments, changed.request))
      )
  })
}
