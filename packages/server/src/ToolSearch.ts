/**
 * Tool search: a server with hundreds of tools lists three of them, which find, describe and call the others.
 *
 * Models choose worse among many tools, and each listed tool costs context. The definitions that `ToolSearch.layer` wraps
 * are not listed. A model finds them with `search_tools`, reads the schema of one with `describe_tool`, and calls it with
 * `call_tool`.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "office", version: "1.0.0" },
 *   ToolSearch.layer({ always: ["today"] }, OpenApi.layer(mail), OpenApi.layer(calendar), Tool.layer(today, getToday))
 * )
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Catalog, ToolEntry } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as HiddenTools from "./HiddenTools.ts"
import * as Tool from "./Tool.ts"

/** The options of a tool search. */
export interface Options extends HiddenTools.Options {
  /** The names of the three tools: `search_tools`, `describe_tool` and `call_tool` by default. */
  readonly names?: {
    readonly search?: string | undefined
    readonly describe?: string | undefined
    readonly call?: string | undefined
  } | undefined
}

/**
 * Hides the tools of definitions behind a search. Resources, prompts and middleware among the definitions stay as they are.
 *
 * - `search_tools` ranks tools by BM25 over their names, titles, descriptions, arguments and tags. It returns only tools
 *   that the caller may see and call; disabled tools are not found.
 * - `describe_tool` returns the whole definition of one tool.
 * - `call_tool` is replaced by the call of the tool before any middleware runs. Middleware, limits by target, audit logs,
 *   guards, tasks, progress and input requests are those of a direct call, and the result is the tool's own. Only the
 *   headers that repeat params (`Mcp-Name`, `Mcp-Param-*`) are checked against the request that the client sent.
 * - In a mounted part the three tools have prefixed names, and use the names that the tools have in the part.
 *
 * Fails as the definitions do, and with `DefinitionError` `DuplicateName` if a name of the three tools is taken.
 *
 * @example
 * const office = ToolSearch.layer({ above: 50 }, ...tools)
 */
export const layer = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  options: Options,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  HiddenTools.layer(options, definitions, (hidden) => addTools(options, hidden), {
    [nameOf(options, "call")]: redirecting
  })

const nameOf = ({ names = {} }: Options, tool: "search" | "describe" | "call"): string =>
  names[tool] ?? (tool === "search" ? "search_tools" : `${tool}_tool`)

/** Makes the function that returns the params of the call that `call_tool` stands for. */
const redirecting = (hidden: HiddenTools.HiddenTools): ToolEntry["redirect"] => (params, caller) => {
  const { arguments: args = {}, name } = (params["arguments"] ?? {}) as { readonly [member: string]: unknown }
  if (typeof name !== "string" || !isObject(args) || hidden.find(name, caller) === undefined) return undefined
  return { ...params, name, arguments: args }
}

const addTools = (options: Options, hidden: HiddenTools.HiddenTools) => {
  const [search, describe, call] = (["search", "describe", "call"] as const).map((tool) => nameOf(options, tool))
  const callTool = Tool.make(call!, {
    description: `Calls a tool that ${search} has found.`,
    input: {
      name: Schema.String.annotate({ description: "The name of the tool" }),
      arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)).annotate({
        description: `The arguments, as ${describe} shows them`
      })
    }
  })
  return Effect.gen(function*() {
    yield* HiddenTools.addSearch(hidden, { ...options, search, describe, use: `call it with ${call}` })
    // A call of a tool that exists is redirected before it gets here, except if something else runs it, such as a task.
    yield* Tool.add(callTool, ({ arguments: args = {}, name }) =>
      Effect.flatMap(McpRequest, (request) => {
        const tool = hidden.find(name, request.caller)
        if (tool === undefined) return Effect.succeed(HiddenTools.unknownTool(name, search!))
        return Effect.map(
          tool.call(args as JsonObject, request),
          ({ structuredContent, ...result }) =>
            Tool.result({ ...result, structured: structuredContent }) as Tool.Result<undefined>
        )
      }))
  })
}
