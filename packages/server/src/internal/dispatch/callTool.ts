/**
 * The call of a tool: what happens between the dispatcher and the handler, in this order.
 */
import { type CallToolRequestParams, isPlain } from "@skein/protocol/CallTool"
import * as Codec from "@skein/protocol/Codec"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { clip } from "@skein/protocol/Text"
import { compose } from "@skein/runtime/Compose"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Catalog } from "../../Catalog.ts"
import { internals, type ToolCall, type ToolCallResult } from "../catalog/catalogState.ts"
import { provideRequest } from "../catalog/hookList.ts"
import { offered } from "../subscriptions/capabilities.ts"
import type { Handler, MethodTable } from "./methodTable.ts"

/** Makes the handler of `tools/call`. */
export const callTool = (methods: MethodTable): Handler => {
  const { catalog } = methods
  const { [internals]: { extensions, operations: { calls } }, tools } = catalog

  // A server that has the tool declares the capability, so only refusals check it.
  const refuse = (error: McpError.McpError) =>
    Effect.fail(offered(catalog, Method.CallTool) ? error : McpError.methodNotFound(Method.CallTool.name))

  return (request) => {
    const { caller, params: sent } = request
    let params: CallToolRequestParams
    if (isPlain(sent)) params = sent
    else {
      const decoded = Codec.decodeParams(Method.CallTool, caller.revision, sent)
      if (Result.isFailure(decoded)) return refuse(McpError.invalidParams(`Invalid params: ${decoded.failure}`))
      params = decoded.success
    }
    // Find the tool among those that the caller may see.
    const tool = tools.seen(params.name, caller)
    if (tool === undefined) return refuse(McpError.invalidParams(`Unknown tool: ${clip(params.name)}`))
    // Guard it.
    const refused = tool.guard?.(caller)
    if (refused !== undefined) return Effect.fail(refused)
    // Pass the hooks and the extensions, if there are any. The tool decodes the arguments, and runs its handler.
    const result = calls.all.length === 0 && extensions.calling.length === 0
      ? tool.call(params.arguments ?? {}, request)
      : callThrough(catalog, { tool, params, request }, request)
    // Encode the result for the revision of the caller.
    return Effect.map(result, (result) => methods.encodeResult(Method.CallTool, result, request))
  }
}

/**
 * Calls a tool through the hooks and the extensions of a catalog, the first ones outermost. `provided` is the request that
 * the effect finds in its services.
 */
export const callThrough = (
  { [internals]: { extensions: { calling }, operations: { calls } } }: Catalog["Service"],
  { params, request, tool }: ToolCall,
  provided: RequestContext
): ToolCallResult => {
  const operation = { entry: tool, arguments: params.arguments ?? {}, caller: request.caller, request }
  const run = compose(calling, ({ params, request, tool }: ToolCall) => tool.call(params.arguments ?? {}, request))
  return calls.run(
    operation,
    ({ arguments: args, request }) =>
      provideRequest(provided, request, run({ tool, params: { ...params, arguments: args }, request }))
  )
}
