/**
 * MCP Apps: tools with a page that the host shows beside the conversation.
 *
 * A page is an HTML document at a `ui://` URI. A tool is linked to it. When a model calls the tool, a host that
 * supports the extension `io.modelcontextprotocol/ui` reads the page, shows it in a sandboxed frame, and gives it the
 * arguments and the result of the call. The page draws them, and calls further tools: see `View`.
 *
 * - `App.make` defines the page with the origins and the permissions that it needs; `App.tool` defines a tool that is
 *   linked to it; `App.layer` registers both.
 * - A client that does not declare the extension gets the same tool without the link, and no tool that is for the page
 *   only. Its model reads the content of the result, so every tool must return some.
 * - The declaration is in `resources/list` and in the contents of `resources/read`, where hosts look for it.
 *
 * @example
 * const page = App.make("ui://shop/sales", { html: salesHtml, prefersBorder: true })
 * const sales = App.tool("sales", {
 *   app: page,
 *   description: "Shows the sales of a year",
 *   input: { year: Schema.Int },
 *   output: { months: Schema.Array(Schema.Finite) }
 * })
 * const server = McpServer.layer({ name: "shop", version: "1.0.0" }, App.layer(sales, ({ year }) => salesOf(year)))
 */
import { quote } from "@skein/protocol/Text"
import type { Tool as WireTool } from "@skein/protocol/Tool"
import { type Caller, McpRequest } from "@skein/runtime/RequestContext"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import { DefinitionError, InvalidUri, InvalidValue } from "@skein/server/DefinitionError"
import * as Extension from "@skein/server/Extension"
import type { AsyncHandler } from "@skein/server/HandlerContext"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Csp, Permission, ResourceMeta, Visibility } from "../shared/UiMeta.ts"
import * as UiMeta from "../shared/UiMeta.ts"
import * as UiPolicy from "../shared/UiPolicy.ts"

/** The description of a page. Its caching hints limit how long, and by whom, it may be cached. */
export interface Options<E extends HandlerError = never, R = never>
  extends Omit<Resource.Options, "mimeType" | "_meta" | "size">
{
  /**
   * The document: HTML, or an effect that makes it for each read, such as `AppFile.read`. It must contain its scripts
   * and styles, or load them from `csp.resourceDomains`: see `AppHtml`.
   */
  readonly html: string | Effect.Effect<string, E, R>
  /** The origins that the page uses. None by default: then it has no network. */
  readonly csp?: Csp | undefined
  /** The capabilities of the browser that the page asks for. None by default. A host may refuse them. */
  readonly permissions?: ReadonlyArray<Permission> | undefined
  /** The origin that the host should give the page, in the form that the documentation of the host demands. */
  readonly domain?: string | undefined
  /** Whether the host should draw a border and a background. By default the host decides, and hosts differ. */
  readonly prefersBorder?: boolean | undefined
  /**
   * Whether only clients that declare the extension see the page, the links to it, and the tools that are for the page
   * only. `true` by default. With `false` every client sees them, for hosts that show pages without declaring it.
   */
  readonly requiresExtension?: boolean | undefined
  /** Other metadata of the resource. */
  readonly _meta?: Resource.Options["_meta"]
}

/** A page. Made by `App.make`. `R` are the services that its HTML needs. */
export interface App<out R = never> {
  readonly uri: string
  readonly requiresExtension: boolean
  /** Registers the page. A server that several tools bring it to registers it once. */
  readonly layer: Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>>
}

const metaOf = <E extends HandlerError, R>(
  { csp, domain, permissions, prefersBorder }: Options<E, R>
): ResourceMeta => ({
  ...(csp === undefined ? undefined : { csp }),
  ...(permissions === undefined
    ? undefined
    : { permissions: Object.fromEntries(permissions.map((one) => [one, {}])) }),
  ...(domain === undefined ? undefined : { domain }),
  ...(prefersBorder === undefined ? undefined : { prefersBorder })
})

const problemOf = (uri: string, meta: ResourceMeta): DefinitionError["reason"] | undefined => {
  if (!uri.startsWith("ui://")) return new InvalidUri({ message: `The page ${quote(uri)} must have a URI of ui://` })
  for (const member of UiMeta.cspMembers) {
    const wrong = meta.csp?.[member]?.find((text) => UiPolicy.sourceOf(text) === undefined)
    if (wrong !== undefined) {
      return new InvalidValue({
        message: `The page ${quote(uri)} is invalid: ${quote(wrong)} in csp.${member} is not an origin such as ` +
          "https://api.example.com or https://*.example.com, with an optional path"
      })
    }
  }
  return undefined
}

const declaration = /* @__PURE__ */ Extension.layer({
  name: UiMeta.extension,
  capabilities: () => ({ extensions: { [UiMeta.extension]: {} } })
})

/**
 * Defines a page. The URI must begin with `ui://`.
 *
 * Registering it fails with `DefinitionError`: `InvalidUri`; `InvalidValue` if an origin of `csp` is not one;
 * `DuplicateName`.
 *
 * @example
 * const map = App.make("ui://shop/map", {
 *   html: AppFile.read(new URL("./map.html", import.meta.url)),
 *   csp: { resourceDomains: ["https://tiles.example.com"] },
 *   permissions: ["geolocation"],
 *   prefersBorder: false
 * })
 */
export const make = <E extends HandlerError = never, R = never>(uri: string, options: Options<E, R>): App<R> => {
  const { csp: _c, domain: _d, html, permissions: _p, prefersBorder: _b, requiresExtension = true, _meta, ...listed } =
    options
  const ui = metaOf(options)
  const own = Object.keys(ui).length === 0 ? undefined : { ui }
  const meta = own === undefined ? _meta : { ..._meta, ...own }
  const shown = listed.visible
  const definition = Resource.make(uri, {
    ...listed,
    mimeType: UiMeta.mimeType,
    ...(meta === undefined ? undefined : { _meta: meta }),
    visible: requiresExtension ? (caller) => isDeclaredBy(caller) && (shown?.(caller) ?? true) : shown
  })
  const read = Effect.map(
    typeof html === "string" ? Effect.succeed(html) : html,
    (text): Resource.Answer => [{
      ...Content.resourceContents(uri, text, UiMeta.mimeType),
      ...(own === undefined ? undefined : { _meta: own })
    }]
  )
  const problem = problemOf(uri, ui)
  return {
    uri,
    requiresExtension,
    layer: problem === undefined
      ? Layer.merge(declaration, Resource.layer(definition, read))
      : Layer.effectDiscard(Effect.fail(new DefinitionError({ reason: problem, kind: "resource", definition: uri })))
  }
}

/**
 * The arguments of a call as JSON, for a page that calls the tool. They are the encoded side of the schema: use schemas
 * whose encoded side is JSON.
 */
export type ArgumentsOf<S extends Tool.AnySchema> = S extends Tool.Codec ? S["Encoded"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Encoded<S>
  : never

/** The structured content of a result as JSON, as a page receives it. */
export type StructuredOf<S extends Tool.AnySchema> = S extends Tool.Codec ? S["Encoded"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Encoded<S>
  : never

/**
 * A tool that is linked to a page. It is a `Tool`, so `Tool.add`, middleware and tasks take it. `Arguments` and
 * `Structured` are the types of its JSON, for the page: see `View`.
 */
export interface AppTool<Name extends string, Input, Output, Arguments, Structured, R = never>
  extends Tool.Tool<Name, Input, Output>
{
  readonly app: App<R>
  /** Exists as a type only. */
  readonly json?: { readonly arguments: Arguments; readonly structured: Structured } | undefined
}

/** The description of a tool that is linked to a page. */
export interface ToolOptions<Input extends Tool.AnySchema, Output extends Tool.AnySchema, R = never>
  extends Tool.Options<Input, Output>
{
  /** The page that the host shows for a call. */
  readonly app: App<R>
  /**
   * The callers of the tool: `["model", "app"]` by default. `["app"]` makes a tool for the page, which models do not
   * get. Hosts enforce it. It does not protect the tool: any client of the server can call it.
   */
  readonly visibility?: ReadonlyArray<Visibility> | undefined
}

const isDeclaredBy = ({ capabilities }: Caller): boolean => UiMeta.isDeclared(capabilities)

/** The tool as a client without the extension receives it. */
const withoutLink = ({ _meta, ...tool }: WireTool): WireTool => {
  const { ui: _u, [UiMeta.deprecatedKey]: _d, ...rest } = _meta ?? {}
  return Object.keys(rest).length === 0 ? tool : { ...tool, _meta: rest }
}

/**
 * Defines a tool that is linked to a page. The options are those of `Tool.make`, and two more.
 *
 * The link is `_meta.ui.resourceUri`, and the deprecated `_meta["ui/resourceUri"]` for hosts that were made before.
 *
 * @example
 * const addSale = App.tool("add_sale", {
 *   app: page,
 *   visibility: ["app"],
 *   description: "Adds a sale",
 *   input: { month: Schema.Int, amount: Schema.Finite },
 *   output: { months: Schema.Array(Schema.Finite) }
 * })
 */
export const tool = <
  const Name extends string,
  Input extends Tool.AnySchema = {},
  Output extends Tool.AnySchema = never,
  R = never
>(
  name: Name,
  options: ToolOptions<Input, Output, R> & Tool.CheckedSchemas<Input, Output>
): AppTool<
  Name,
  Tool.InputOf<Input>,
  [Output] extends [never] ? never : Tool.OutputOf<Output>,
  ArgumentsOf<Input>,
  [Output] extends [never] ? undefined : StructuredOf<Output>,
  R
> => {
  const { app, visibility, ...rest } = options
  const { listedAs, visible } = rest
  const negotiated = app.requiresExtension
  const isForPageOnly = visibility !== undefined && !visibility.includes("model")
  const made = Tool.make<Name, Input, Output>(name, {
    ...rest as Tool.Options<Input, Output> & Tool.CheckedSchemas<Input, Output>,
    _meta: {
      ...rest._meta,
      ui: { resourceUri: app.uri, ...(visibility === undefined ? undefined : { visibility }) },
      [UiMeta.deprecatedKey]: app.uri
    },
    visible: negotiated && isForPageOnly ? (caller) => isDeclaredBy(caller) && (visible?.(caller) ?? true) : visible,
    listedAs: negotiated
      ? (tool, caller) => {
        const own = listedAs?.(tool, caller) ?? tool
        return isDeclaredBy(caller) ? own : withoutLink(own)
      }
      : listedAs
  })
  return { ...made, app }
}

/**
 * Registers a tool with its handler, and its page. Tools may share a page, which is registered once. Fails as
 * `Tool.layer` and `App.make` do.
 *
 * For a tool that is added while the server runs, register the page with `app.layer`, and the tool with `Tool.add`.
 *
 * @example
 * const live = App.layer(sales, ({ year }) =>
 *   Effect.map(salesOf(year), (months) =>
 *     Tool.result({ structured: { months }, content: `${sum(months)} pots of tea were sold in ${year}` })))
 */
export const layer = <
  Name extends string,
  Input,
  Output,
  Arguments,
  Structured,
  Page = never,
  E extends HandlerError = never,
  R = never
>(
  tool: AppTool<Name, Input, Output, Arguments, Structured, Page>,
  handler: (input: Input) => Effect.Effect<Tool.Answer<NoInfer<Output>>, E, R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R> | HandlerServices<Page>> =>
  Layer.merge(tool.app.layer, Tool.layer(tool, handler))

/**
 * Registers a tool with a handler that returns a value or a promise, and its page: see `Tool.async`.
 *
 * @example
 * const live = App.async(sales, async ({ year }, { signal }) => ({ months: await fetchSales(year, signal) }))
 */
const async_ = <Name extends string, Input, Output, Arguments, Structured, Page = never, R = never>(
  tool: AppTool<Name, Input, Output, Arguments, Structured, Page>,
  handler: AsyncHandler<Input, Tool.Answer<NoInfer<Output>>, R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R> | HandlerServices<Page>> =>
  Layer.merge(tool.app.layer, Tool.async(tool, handler))
export { async_ as async }

/**
 * Whether the client of this request declares the extension, so that a person sees the page. A handler may return a
 * longer text for a client without pages.
 *
 * @example
 * const text = (yield* App.isSupported) ? "The chart is shown." : table(months)
 */
export const isSupported: Effect.Effect<boolean, never, McpRequest> = /* @__PURE__ */ Effect.map(
  McpRequest,
  ({ caller }) => isDeclaredBy(caller)
)
