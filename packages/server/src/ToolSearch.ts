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
import { clip, quote } from "@skein/protocol/Text"
import { type Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Catalog, type ToolEntry } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { partLayer } from "./internal/composition/partLayer.ts"
import { ToolIndex, wordsOf } from "./internal/composition/toolIndex.ts"
import * as Tool from "./Tool.ts"

/** The options of a tool search. */
export interface Options {
  /** The names of tools that are listed all the same, or a predicate that runs once for each tool. None by default. */
  readonly always?: ReadonlyArray<string> | ((tool: ToolEntry["definition"]) => boolean) | undefined
  /**
   * The number of tools up to which all are listed, and the three tools of the search are not: 30 by default. It counts
   * the tools of the definitions that are enabled now, for all callers.
   */
  readonly above?: number | undefined
  /** The most tools that one search returns: 10 by default. A caller may ask for fewer. */
  readonly maxResults?: number | undefined
  /** The most characters of a query that are read: 1,000 by default. */
  readonly maxQueryChars?: number | undefined
  /** The most characters of the texts of one tool that are indexed: 8,192 by default. */
  readonly maxIndexedChars?: number | undefined
  /** Whether a tool that is not listed can be called by its own name, too: `true` by default. */
  readonly direct?: boolean | undefined
  /** The names of the three tools: `search_tools`, `describe_tool` and `call_tool` by default. */
  readonly names?: {
    readonly search?: string | undefined
    readonly describe?: string | undefined
    readonly call?: string | undefined
  } | undefined
}

const maxDescriptionChars = 500

const Found = Schema.Struct({
  name: Schema.String,
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  arguments: Schema.Array(Schema.String)
})

/** The tools of the definitions, as a caller may use them. */
class Searched {
  readonly #outside: Catalog["Service"]
  readonly #inside: Catalog["Service"]["tools"]
  readonly #maxIndexedChars: number
  #index: { readonly version: number; readonly tools: ToolIndex } | undefined

  constructor(outside: Catalog["Service"], inside: Catalog["Service"]["tools"], maxIndexedChars: number) {
    this.#outside = outside
    this.#inside = inside
    this.#maxIndexedChars = maxIndexedChars
  }

  /** Returns a tool of the definitions that a caller may see, and call. */
  find(name: string, caller: Caller): ToolEntry | undefined {
    if (this.#inside.get(name) === undefined) return undefined
    const entry = this.#outside.tools.seen(name, caller)
    return entry?.guard?.(caller) === undefined ? entry : undefined
  }

  search(query: string, caller: Caller, limit: number): { readonly found: ReadonlyArray<ToolEntry>; total: number } {
    const { version } = this.#inside
    if (this.#index?.version !== version) {
      this.#index = { version, tools: new ToolIndex(this.#inside.sorted, this.#maxIndexedChars) }
    }
    const found = this.#index.tools.search(wordsOf(query)).flatMap((name) => this.find(name, caller) ?? [])
    return { found: found.slice(0, limit), total: found.length }
  }
}

const summary = ({ definition: { description, inputSchema, name, title } }: ToolEntry): typeof Found.Type => {
  const required = Array.isArray(inputSchema["required"]) ? inputSchema["required"] : []
  const properties = isObject(inputSchema["properties"]) ? Object.keys(inputSchema["properties"]) : []
  return {
    name,
    ...(title === undefined ? undefined : { title }),
    ...(description === undefined ? undefined : { description: clip(description, maxDescriptionChars) }),
    arguments: properties.map((argument) => required.includes(argument) ? argument : `${argument}?`)
  }
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
 * const office = ToolSearch.layer({ above: 50, maxResults: 5 }, ...tools)
 */
export const layer = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  options: Options,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  partLayer<DefinitionError>(definitions, (outside, place) => {
    const { above = 30, always = [], direct = true, maxIndexedChars = 8192 } = options
    const isAlways = typeof always === "function"
      ? always
      : ({ name }: ToolEntry["definition"]) => always.includes(name)
    // Handlers disable tools in the catalog around the search. The number is the same for all entries of a list.
    let counted = { inside: -1, outside: -1, isActive: false }
    const isActive = (): boolean => {
      const { version } = outside.tools
      if (counted.inside !== inside.version || counted.outside !== version) {
        const enabled = inside.sorted.filter(([name]) => outside.tools.get(name) !== undefined)
        counted = { inside: inside.version, outside: version, isActive: enabled.length > above }
      }
      return counted.isActive
    }
    const inside: Catalog["Service"]["tools"] = outside.tools.part({
      name: (own) => own,
      entry: (entry) => {
        const hidden = isAlways(entry.definition)
          ? undefined
          : { unlisted: isActive, ...(direct ? {} : { indirect: isActive }) }
        return Result.succeed({ ...entry, ...hidden })
      }
    }, place)
    const searched = new Searched(outside, inside, maxIndexedChars)
    return Effect.as(
      Effect.provideService(addTools(options, searched), Catalog, {
        ...outside,
        tools: outside.tools.part({
          name: (own) => own,
          entry: (entry, own) =>
            Result.succeed({
              ...entry,
              unlisted: () => !isActive(),
              ...(own === nameOf(options, "call") ? { redirect: redirecting(searched) } : undefined)
            })
        }, place)
      }),
      { inside: { ...outside, tools: inside } }
    )
    // The types of the definitions are lost while they are built in a loop: hence the cast.
  }) as never

const nameOf = ({ names = {} }: Options, tool: "search" | "describe" | "call"): string =>
  names[tool] ?? (tool === "search" ? "search_tools" : `${tool}_tool`)

/** Makes the function that returns the params of the call that `call_tool` stands for. */
const redirecting = (searched: Searched): ToolEntry["redirect"] => (params, caller) => {
  const { arguments: args = {}, name } = (params["arguments"] ?? {}) as { readonly [member: string]: unknown }
  if (typeof name !== "string" || !isObject(args) || searched.find(name, caller) === undefined) return undefined
  return { ...params, name, arguments: args }
}

const addTools = (options: Options, searched: Searched) => {
  const { maxQueryChars = 1000, maxResults = 10 } = options
  const [search, describe, call] = (["search", "describe", "call"] as const).map((tool) => nameOf(options, tool))
  const unknown = (name: string) =>
    Tool.result({
      isError: true,
      content: `There is no tool ${quote(name)}. Find the names of the tools with ${search}.`
    })
  const searchTools = Tool.make(search!, {
    description:
      `Finds tools by what they do. Read the arguments of a tool with ${describe}, and call it with ${call}.`,
    input: {
      query: Schema.String.annotate({ description: "Words that describe the task" }),
      limit: Schema.optionalKey(Schema.Int).annotate({ description: `At most ${maxResults}` })
    },
    output: { tools: Schema.Array(Found), total: Schema.Int },
    annotations: { readOnlyHint: true, openWorldHint: false }
  })
  const describeTool = Tool.make(describe!, {
    description: "Returns the description of a tool and the JSON Schema of its arguments.",
    input: { name: Schema.String.annotate({ description: "The name of the tool" }) },
    annotations: { readOnlyHint: true, openWorldHint: false }
  })
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
    yield* Tool.add(searchTools, ({ limit = maxResults, query }) =>
      Effect.map(McpRequest, ({ caller }) => {
        const most = Math.min(Math.max(1, limit), maxResults)
        const { found, total } = searched.search(query.slice(0, maxQueryChars), caller, most)
        return { tools: found.map(summary), total }
      }))
    yield* Tool.add(describeTool, ({ name }) =>
      Effect.map(McpRequest, ({ caller }) => {
        const tool = searched.find(name, caller)
        if (tool === undefined) return unknown(name)
        const { definition, listedAs } = tool
        return JSON.stringify(listedAs === undefined ? definition : tool.listedAs!(definition, caller))
      }))
    // A call of a tool that exists is redirected before it gets here, except if something else runs it, such as a task.
    yield* Tool.add(callTool, ({ arguments: args = {}, name }) =>
      Effect.flatMap(McpRequest, (request) => {
        const tool = searched.find(name, request.caller)
        if (tool === undefined) return Effect.succeed(unknown(name))
        return Effect.map(
          tool.call(args as JsonObject, request),
          ({ structuredContent, ...result }) =>
            Tool.result({ ...result, structured: structuredContent }) as Tool.Result<undefined>
        )
      }))
  })
}
