/** The methods of the catalog: `tools/*`, `resources/*` and `prompts/*`. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { clip } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { internals } from "../catalog/catalogState.ts"
import { installListing } from "./listing.ts"
import { callTool } from "./callTool.ts"
import { provideRequest } from "../catalog/hookList.ts"
import type { MethodTable } from "./methodTable.ts"
import { findReadable, findReader } from "../handlers/readResource.ts"

export const installTools = (methods: MethodTable): void => {
  installListing(methods, Method.ListTools, "tools", methods.catalog.tools)
  methods.handlers.set(Method.CallTool.name, callTool(methods))
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
        (changed) => provideRequest(request, changed.request, prompt.get(changed.arguments, changed.request))
      )
  })
}
