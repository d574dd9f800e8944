/**
 * Tools that no list shows, and a search over them: the base of `ToolSearch` and of `@skein/code-mode`.
 *
 * `HiddenTools.layer` hides the tools of definitions and adds tools that find and call them. `HiddenTools.addSearch` adds
 * the two that find and describe; how a model calls what it has found is up to the third. Use this module for another way
 * to offer many tools, and `ToolSearch` otherwise.
 */
import * as Json from "@skein/protocol/Json"
import { Encoded, isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type * as CallTool from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import { clip, cut, quote } from "@skein/protocol/Text"
import { type Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Catalog, type Handled, type ToolEntry } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { partLayer } from "./internal/composition/partLayer.ts"
import { roundOf } from "./internal/base/onceStore.ts"
import { Bounds } from "./internal/base/fixedBounds.ts"
import { InnerCalls, internals } from "./internal/catalog/catalogState.ts"
import { ToolIndex, wordsOf } from "./internal/composition/toolIndex.ts"
import * as Tool from "./Tool.ts"

/** Which tools are hidden. */
export interface Options {
  /** The names of tools that are listed all the same, or a predicate that runs once for each tool. None by default. */
  readonly always?: ReadonlyArray<string> | ((tool: ToolEntry["definition"]) => boolean) | undefined
  /**
   * The number of tools up to which all are listed, and the added tools are not: 30 by default. It counts the tools of
   * the definitions that are enabled now, for all callers.
   */
  readonly above?: number | undefined
  /** Whether a tool that is not listed can be called by its own name, too: `true` by default. */
  readonly direct?: boolean | undefined
}

/** Options of a call of a hidden tool. */
export interface CallOptions {
  /**
   * Distinguishes the call from the others of the same request: the keys of `Once.once` in the tool begin with it. It must
   * be the same when the handler runs again. By default the name of the tool.
   */
  readonly key?: string | undefined
  /** Wraps each request to the client, such as an elicitation, that the tool waits for. */
  readonly aroundInput?: (<A, E, R>(input: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** The tools of the definitions, as a caller may use them. */
export interface HiddenTools {
  /** Returns a tool that a caller may see and call. */
  readonly find: (name: string, caller: Caller) => ToolEntry | undefined
  /** Ranks tools by BM25. Returns the best ones that a caller may see and call, and how many match. */
  readonly search: (
    query: string,
    caller: Caller,
    limit: number
  ) => { readonly found: ReadonlyArray<ToolEntry>; readonly total: number }
  /**
   * Calls a tool for the caller of the present request, as if the client had called it: through all middleware, guards
   * and extensions. Its progress, its input requests and its cancellation are those of the present request. A tool that
   * supports tasks runs as an ordinary call. Fails with the JSON-RPC error that the client would receive.
   */
  readonly call: (name: string, args: JsonObject, options?: CallOptions) => Handled<CallTool.CallToolResult>
}

const maxDescriptionChars = 500

/** The most arguments of a tool that a search lists. A tool of another server can have any number of them. */
const maxArguments = 100

/** The characters of a tool that a search reads at least, however many tools there are. */
const minIndexedChars = 256

/** The most tools that one search returns. A caller may ask for fewer. */
const maxResults = 10

const Found = Schema.Struct({
  name: Schema.String,
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  arguments: Schema.Array(Schema.String),
  signature: Schema.optionalKey(Schema.String)
})

/**
 * The caller without the extension for tasks: an inner call needs its result now. In a session the client decides with
 * `task` in its params, which an inner call does not have.
 */
const withoutTasks = (caller: Caller): Caller => {
  const { extensions } = caller.capabilities
  if (Revision.era(caller.revision) === "session" || !isObject(extensions)) return caller
  const { [Task.extension]: _, ...others } = extensions
  return { ...caller, capabilities: { ...caller.capabilities, extensions: others } }
}

const makeHidden = (outside: Catalog["Service"], inside: Catalog["Service"]["tools"]): HiddenTools => {
  const { maxIndexedChars, maxIndexedCharsOfAll, maxQueryChars } = Context.get(outside[internals].base, Bounds)
  let index: { readonly version: number; readonly tools: ToolIndex } | undefined

  const find = (name: string, caller: Caller): ToolEntry | undefined => {
    if (inside.get(name) === undefined) return undefined
    const entry = outside.tools.seen(name, caller)
    return entry?.guard?.(caller) === undefined ? entry : undefined
  }

  const search: HiddenTools["search"] = (query, caller, limit) => {
    const { version } = inside
    if (index?.version !== version) {
      // Other servers can change their tools at any time, and each change needs a new index.
      const part = Math.max(minIndexedChars, Math.floor(maxIndexedCharsOfAll / inside.sorted.length))
      index = { version, tools: new ToolIndex(inside.sorted, Math.min(maxIndexedChars, part)) }
    }
    const found = index.tools.search(wordsOf(cut(query, maxQueryChars))).flatMap((name) => find(name, caller) ?? [])
    return { found: found.slice(0, limit), total: found.length }
  }

  const call: HiddenTools["call"] = Effect.fnUntraced(function*(name, args, options = {}) {
    const { caller, original } = yield* McpRequest
    if (find(name, caller) === undefined) {
      return yield* Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(name)}`))
    }
    const inner = yield* Effect.serviceOption(InnerCalls)
    if (Option.isNone(inner)) {
      return yield* Effect.fail(
        new McpError.McpError({ reason: "InternalError", message: "Tools cannot be called here" })
      )
    }
    const { aroundInput, key = name } = options
    const round = roundOf(original)
    const meta = original.params?.["_meta"]
    const answer = yield* inner.value.call(original.with({
      params: { name, arguments: args, ...(meta === undefined ? undefined : { _meta: meta }) },
      caller: withoutTasks(original.caller),
      round: { ask: round.ask.bind(round), once: (own, effect) => round.once(`${key}/${own}`, effect) },
      aroundInput
    }))
    return (answer instanceof Encoded ? Json.parse(answer.text) : answer) as CallTool.CallToolResult
  })

  return { find, search, call }
}

/**
 * Hides the tools of definitions, and adds tools that find and call them. Resources, prompts and middleware among the
 * definitions stay as they are. `redirects` has the redirect of an added tool, by its name.
 *
 * Fails as the definitions do, and with `DefinitionError` `DuplicateName` if a name of the added tools is taken.
 *
 * @example
 * const first = HiddenTools.layer({}, tools, (hidden) =>
 *   Tool.add(Tool.make("use_best", { input: { query: Schema.String } }), ({ query }) =>
 *     Effect.flatMap(McpRequest, ({ caller }) => {
 *       const [best] = hidden.search(query, caller, 1).found
 *       return best === undefined ? Effect.succeed("None") : callBest(hidden, best.definition.name)
 *     })))
 */
export const layer = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  options: Options,
  definitions: L,
  add: (hidden: HiddenTools) => Effect.Effect<void, DefinitionError, Catalog | Scope.Scope>,
  redirects: { readonly [name: string]: (hidden: HiddenTools) => ToolEntry["redirect"] } = {}
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  partLayer<DefinitionError>(definitions, (outside, place) => {
    const { above = 30, always = [], direct = true } = options
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
        const hiding = isAlways(entry.definition)
          ? undefined
          : { unlisted: isActive, ...(direct ? {} : { indirect: isActive }) }
        return Result.succeed({ ...entry, ...hiding })
      }
    }, place)
    const hidden = makeHidden(outside, inside)
    return Effect.as(
      Effect.provideService(add(hidden), Catalog, {
        ...outside,
        tools: outside.tools.part({
          name: (own) => own,
          entry: (entry, own) => {
            return Result.succeed({
              ...entry,
              unlisted: () => !isActive(),
              nameOf: (name) => name,
              redirect: redirects[own]?.(hidden)
            })
          }
        }, place)
      }),
      { inside: { ...outside, tools: inside } }
    )
    // The types of the definitions are lost while they are built in a loop: hence the cast.
  }) as never

/** The tools that find and describe. */
export interface SearchOptions {
  /** The name of the tool that finds. */
  readonly search?: string | undefined
  /** The name of the tool that describes. */
  readonly describe?: string | undefined
  /** How a model calls a tool, in the description of the search: "call it with call_tool". */
  readonly use: string
  /** Returns text on how a tool is called, for the results of the search. None by default. */
  readonly signature?: ((tool: ToolEntry["definition"]) => string | undefined) | undefined
}

const summary = ({ definition }: ToolEntry, { signature }: SearchOptions): typeof Found.Type => {
  const { description, inputSchema, name, title } = definition
  const required = new Set<unknown>(Array.isArray(inputSchema["required"]) ? inputSchema["required"] : [])
  const properties = isObject(inputSchema["properties"]) ? Object.keys(inputSchema["properties"]) : []
  const listed = properties.slice(0, maxArguments).map((name) => required.has(name) ? clip(name) : `${clip(name)}?`)
  const more = properties.length - listed.length
  const call = signature?.(definition)
  return {
    name,
    ...(title === undefined ? undefined : { title: clip(title, maxDescriptionChars) }),
    ...(description === undefined ? undefined : { description: clip(description, maxDescriptionChars) }),
    arguments: more > 0 ? [...listed, `… (${more} more)`] : listed,
    ...(call === undefined ? undefined : { signature: call })
  }
}

/**
 * The result of a call that names no tool. `search` is the name of the tool that finds.
 *
 * @example
 * HiddenTools.unknownTool("sned_mail", "search_tools")
 */
export const unknownTool = (name: string, search: string): Tool.Result<undefined> =>
  Tool.result({
    isError: true,
    content: `There is no tool ${quote(name)}. Find the names of the tools with ${search}.`
  }) as Tool.Result<undefined>

/**
 * Adds the tools `search_tools`, which finds tools, and `describe_tool`, which returns the whole definition of one.
 *
 * @example
 * HiddenTools.layer({}, tools, (hidden) =>
 *   Effect.andThen(HiddenTools.addSearch(hidden, { use: "call it with run" }), Tool.add(run, runTool(hidden))))
 */
export const addSearch = (
  hidden: HiddenTools,
  options: SearchOptions
): Effect.Effect<void, DefinitionError, Catalog | Scope.Scope> => {
  const { describe = "describe_tool", search = "search_tools", use } = options
  const searchTools = Tool.make(search, {
    description: `Finds tools by what they do. Read the arguments of a tool with ${describe}, and ${use}.`,
    input: {
      query: Schema.String.annotate({ description: "Words that describe the task" }),
      limit: Schema.optionalKey(Schema.Int).annotate({ description: `At most ${maxResults}` })
    },
    output: { tools: Schema.Array(Found), total: Schema.Int },
    annotations: { readOnlyHint: true, openWorldHint: false }
  })
  const describeTool = Tool.make(describe, {
    description: "Returns the description of a tool and the JSON Schema of its arguments.",
    input: { name: Schema.String.annotate({ description: "The name of the tool" }) },
    annotations: { readOnlyHint: true, openWorldHint: false }
  })
  return Effect.gen(function*() {
    yield* Tool.add(searchTools, ({ limit = maxResults, query }) =>
      Effect.map(McpRequest, ({ caller }) => {
        const most = Math.min(Math.max(1, limit), maxResults)
        const { found, total } = hidden.search(query, caller, most)
        return { tools: found.map((tool) => summary(tool, options)), total }
      }))
    yield* Tool.add(describeTool, ({ name }) =>
      Effect.map(McpRequest, ({ caller }) => {
        const tool = hidden.find(name, caller)
        if (tool === undefined) return unknownTool(name, search)
        const { definition, listedAs } = tool
        return JSON.stringify(listedAs === undefined ? definition : tool.listedAs!(definition, caller))
      }))
  })
}
