/**
 * Servers of parts: definitions with prefixes, for some callers only, with other names, or behind a search.
 */
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import { define, defineLazily, type Definition, layerOf } from "../base/definition.ts"
import type { McpError } from "../base/errors.ts"
import type { Tool, ToolAnnotations } from "../base/messages.ts"
import { AsyncServer, coreOf } from "./asyncServer.ts"
import type { Caller, Visible } from "./request.ts"

/** The names of the tools, prompts and URIs of a part in the server around it. */
export interface MountOptions {
  /** The prefix of names and URIs. None by default: names and URIs stay as they are. */
  readonly prefix?: string | undefined
  /** The text between the prefix and a name: `_` by default. */
  readonly separator?: string | undefined
  /** Makes the name of a tool or of a prompt in the server, instead of the prefix and the separator. */
  readonly name?: ((name: string, kind: "tool" | "prompt") => string) | undefined
  /**
   * `false` leaves URIs as they are. Functions make the URI in the server, and find the URI in the part again: `remove(add(uri))`
   * must be `uri`, and `remove` returns `undefined` for other URIs. By default the prefix is inserted after the scheme.
   */
  readonly uri?: false | {
    readonly add: (uri: string) => string
    readonly remove: (uri: string) => string | undefined
  } | undefined
}

const layers = (definitions: ReadonlyArray<Definition>): ReadonlyArray<never> =>
  definitions.map((definition) => layerOf(definition) as never)

/**
 * Makes definitions, or whole servers, a part of a server, with a prefix before their names: `weather_forecast`, and
 * `data://weather/cities` for `data://cities`. Middleware in the part applies to the part only. A whole server keeps its own
 * stores and middleware.
 *
 * @example
 * server.use(mount("weather", forecast, cities), mount({ prefix: "shop", separator: "." }, shopServer))
 */
export const mount = (
  at: string | undefined | MountOptions,
  ...parts: ReadonlyArray<Definition | AsyncServer>
): Definition =>
  define(McpServer.mount(
    at,
    ...parts.map((part) => part instanceof AsyncServer ? coreOf(part).toLayer() : layerOf(part) as never)
  ))

/**
 * Shows definitions to some callers only. To all other callers they do not exist: not in lists, and not by name. The predicate
 * runs for each request, so it must be fast.
 *
 * @example
 * server.use(visibleTo(({ principal }) => principal?.["role"] === "admin", reset, shutDown))
 */
export const visibleTo = (visible: Visible, ...definitions: ReadonlyArray<Definition>): Definition =>
  define(Catalog.visibleTo(visible as never, ...layers(definitions)))

/**
 * Refuses the requests of some callers for definitions that all callers see in lists. The guard returns the error, or
 * `undefined`. It runs for each request, before its arguments are decoded, so it must be fast.
 *
 * @example
 * const closed = withHttp(invalidRequest("Forbidden: members only"), { status: 403 })
 * server.use(guarded(({ principal }) => principal === undefined ? closed : undefined, order))
 */
export const guarded = (
  guard: (caller: Caller) => McpError | undefined,
  ...definitions: ReadonlyArray<Definition>
): Definition => define(Catalog.guarded(guard as never, ...layers(definitions)))

/**
 * Makes definitions disabled until `setEnabled` of the server enables them.
 *
 * @example
 * server.use(disabled(cellar))
 * await server.setEnabled("tool", "cellar", true)
 */
export const disabled = (...definitions: ReadonlyArray<Definition>): Definition =>
  define(Catalog.disabled(...layers(definitions)))

/** Which tools a search hides, and the names of its own. */
export interface ToolSearchOptions {
  /** The names of tools that are listed all the same, or a predicate that runs once for each tool. None by default. */
  readonly always?: ReadonlyArray<string> | ((tool: Tool) => boolean) | undefined
  /** The number of tools up to which all are listed, and the search is not: 30 by default. */
  readonly above?: number | undefined
  /** Whether a tool that is not listed can be called by its own name, too: `true` by default. */
  readonly direct?: boolean | undefined
  /** The names of the three tools: `search_tools`, `describe_tool` and `call_tool` by default. */
  readonly names?: {
    readonly search?: string | undefined
    readonly describe?: string | undefined
    readonly call?: string | undefined
  } | undefined
}

/**
 * Hides the tools of definitions behind three tools, which find, describe and call them. Resources, prompts and middleware among
 * the definitions stay as they are. A call of `call_tool` is replaced by the call of the tool before any middleware runs.
 *
 * @example
 * server.use(toolSearch({ above: 50, always: ["today"] }, ...tools))
 */
export const toolSearch = (options: ToolSearchOptions, ...definitions: ReadonlyArray<Definition>): Definition =>
  defineLazily(() => import("@skein/server/ToolSearch"), ({ layer }) => layer(options as never, ...layers(definitions)))

/**
 * Serves several versions of a tool under one name: tools with the option `version`. Clients see the newest version, and the
 * names of all in its `_meta`. A client that was written for an older one names it in the `_meta` of its call, under
 * `io.github.skein-mcp/version`.
 *
 * @example
 * server.use(toolVersions(
 *   tool("bill", { version: "1.0", input: z.object({ cups: z.int() }) }, billOf),
 *   tool("bill", { version: "2.0", input: z.object({ tea: z.string(), cups: z.int() }) }, billOfTea)
 * ))
 */
export const toolVersions = (...versions: ReadonlyArray<Definition>): Definition =>
  defineLazily(() => import("@skein/server/ToolVersions"), ({ layer }) => layer(...layers(versions)))

/** The change of an argument of a tool. */
export interface ArgumentChange {
  /** The name that callers use. */
  readonly name?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The value that the tool always receives. Callers do not see the argument. It must be JSON. */
  readonly value?: unknown
  /** The value that the tool receives if a caller leaves the argument out, which then is not required. It must be JSON. */
  readonly default?: unknown
  /** Whether callers do not see the argument. Without a `value` and a `default` the tool never receives it. */
  readonly hidden?: boolean | undefined
}

/** The change of a tool. */
export interface ToolChange {
  readonly name?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** Hints that are added to those of the tool, or replace them one by one. */
  readonly annotations?: ToolAnnotations | undefined
  /** The changes of arguments, by the names that the tool has for them. */
  readonly arguments?: { readonly [name: string]: ArgumentChange } | undefined
}

/** Selects tools. A tool is selected if its name or one of its tags is. */
export interface ToolSelection {
  /** Names, and patterns that are tested against the names. */
  readonly names?: ReadonlyArray<string | RegExp> | undefined
  /** Labels: the option `tags` of a tool. */
  readonly tags?: ReadonlyArray<string> | undefined
}

/** The changes of tools. Names are those that the definitions have, before any change. */
export interface TransformOptions {
  /** The tools that the server has. All by default. */
  readonly only?: ToolSelection | undefined
  /** The tools that the server does not have. None by default. */
  readonly except?: ToolSelection | undefined
  /** Makes the names of the tools that `change` does not name. */
  readonly rename?: ((name: string) => string) | undefined
  /** The changes of single tools, by their names. */
  readonly change?: { readonly [name: string]: ToolChange } | undefined
  /** Returns the change of a tool that `change` does not have, for tools that are not known in advance. */
  readonly each?: ((tool: Tool, tags: ReadonlyArray<string>) => Omit<ToolChange, "name"> | undefined) | undefined
  /** `ignore` accepts a name in `change` that no tool has at the start. By default the server fails to start. */
  readonly missing?: "fail" | "ignore" | undefined
}

/**
 * Changes the names, descriptions and arguments of the tools of definitions, from any source. Calls are changed back before they
 * reach the handler.
 *
 * @example
 * server.use(transformTools(
 *   { change: { createOrder: { name: "order", arguments: { shop: { value: "delft" }, cups: { default: 1 } } } } },
 *   ...tools
 * ))
 */
export const transformTools = (options: TransformOptions, ...definitions: ReadonlyArray<Definition>): Definition =>
  defineLazily(
    () => import("@skein/server/Transform"),
    ({ tools }) => tools(options as never, ...layers(definitions))
  )

/** The names of the tools that return resources and prompts. `false` leaves a tool out. */
export interface CatalogToolsOptions {
  /** `list_resources` by default. It returns resources, and templates on request, in pages. */
  readonly listResources?: string | false | undefined
  /** `read_resource` by default. */
  readonly readResource?: string | false | undefined
  /** `list_prompts` by default. It returns pages, too. */
  readonly listPrompts?: string | false | undefined
  /** `get_prompt` by default. */
  readonly getPrompt?: string | false | undefined
}

/**
 * Adds tools that list and return the resources and prompts of the server, for hosts that support tools only.
 *
 * @example
 * server.use(catalogTools({ listPrompts: false, getPrompt: false }))
 */
export const catalogTools = (options?: CatalogToolsOptions): Definition =>
  defineLazily(() => import("@skein/server/CatalogTools"), ({ layer }) => layer(options))
