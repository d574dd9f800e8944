/**
 * The metadata of MCP Apps: which page a tool has, who may call the tool, and what the page needs. For servers and hosts.
 *
 * `App` writes the metadata. A host reads it with the functions here, which never throw: a malformed member counts as
 * absent. See `docs/apps.md`, and the extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26.
 */
import { isObject } from "@skein/protocol/JsonRpc"

/**
 * The identifier of the extension, in the capabilities of clients and servers.
 *
 * @example
 * const declared = client.capabilities.extensions?.[UiMeta.extension]
 */
export const extension = "io.modelcontextprotocol/ui" as const

/**
 * The revision of the extension, as page and host negotiate it in `ui/initialize`.
 *
 * @example
 * const isNewest = result.protocolVersion === UiMeta.revision
 */
export const revision = "2026-01-26" as const

/**
 * The MIME type of a page: "`mimeType` MUST be `text/html;profile=mcp-app`" (content requirements).
 *
 * @example
 * const extensions = { [UiMeta.extension]: { mimeTypes: [UiMeta.mimeType] } }
 */
export const mimeType = "text/html;profile=mcp-app" as const

/**
 * The deprecated key of the link from a tool to its page. Hosts that were made before `_meta.ui` read it.
 *
 * @example
 * const old = tool._meta?.[UiMeta.deprecatedKey]
 */
export const deprecatedKey = "ui/resourceUri" as const

/**
 * The origins that a page uses. A host blocks all others. An origin is a scheme (`https`, `http`, `wss`, `ws`), a host,
 * and optionally a port: `https://api.example.com`, `https://*.example.com`, `http://localhost:3000`.
 */
export interface Csp {
  /** For `fetch`, `XMLHttpRequest` and `WebSocket`. Without it the page has no network. */
  readonly connectDomains?: ReadonlyArray<string> | undefined
  /** For images, scripts, styles, fonts and media. Without it only those inside of the page are loaded. */
  readonly resourceDomains?: ReadonlyArray<string> | undefined
  /** For frames inside of the page. Without it there are none. */
  readonly frameDomains?: ReadonlyArray<string> | undefined
  /** For the `base` element. Without it the page cannot set one to another origin. */
  readonly baseUriDomains?: ReadonlyArray<string> | undefined
}

/** A member of `Csp`. */
export type CspMember = keyof Csp

/**
 * The members of `Csp`, in the order in which a policy has them.
 *
 * @example
 * const all = UiMeta.cspMembers.flatMap((member) => csp[member] ?? [])
 */
export const cspMembers: ReadonlyArray<CspMember> = [
  "connectDomains",
  "resourceDomains",
  "frameDomains",
  "baseUriDomains"
]

/** A capability of the browser that a page asks for. The host decides. */
export type Permission = "camera" | "microphone" | "geolocation" | "clipboardWrite"

/**
 * The capabilities of the browser that the extension names.
 *
 * @example
 * const asked = UiMeta.permissions.filter((one) => meta.permissions?.[one] !== undefined)
 */
export const permissions: ReadonlyArray<Permission> = ["camera", "microphone", "geolocation", "clipboardWrite"]

/** The callers of a tool: the model, the page of the tool, or both. */
export type Visibility = "model" | "app"

/** The metadata of a page: `_meta.ui` of a resource and of its contents. */
export interface ResourceMeta {
  readonly csp?: Csp | undefined
  /** The capabilities that the page asks for, each with an empty object. */
  readonly permissions?: { readonly [P in Permission]?: {} | undefined } | undefined
  /** The origin that the host should give the page. Its form is defined by each host. */
  readonly domain?: string | undefined
  /** Whether the host should draw a border and a background. The host decides if it is absent. */
  readonly prefersBorder?: boolean | undefined
}

/** The metadata of a tool: `_meta.ui`. */
export interface ToolMeta {
  /** The URI of the page. It begins with `ui://`. */
  readonly resourceUri: string | undefined
  /** The callers of the tool. `["model", "app"]` by default. */
  readonly visibility: ReadonlyArray<Visibility>
}

/** Anything with a `_meta`: a tool, a resource, or its contents. */
export interface WithMeta {
  readonly _meta?: { readonly [key: string]: unknown } | undefined
}

const uiOf = ({ _meta }: WithMeta): { readonly [key: string]: unknown } => {
  const ui = _meta?.["ui"]
  return isObject(ui) ? ui : {}
}

const isPageUri = (value: unknown): value is string => typeof value === "string" && value.startsWith("ui://")

const everyone: ReadonlyArray<Visibility> = ["model", "app"]

/**
 * Reads the metadata of a tool. The link is `_meta.ui.resourceUri`, else the deprecated `_meta["ui/resourceUri"]`. A URI
 * of another scheme is ignored.
 *
 * @example
 * const { resourceUri, visibility } = UiMeta.ofTool(tool)
 */
export const ofTool = (tool: WithMeta): ToolMeta => {
  const { resourceUri, visibility } = uiOf(tool)
  const old = tool._meta?.[deprecatedKey]
  return {
    resourceUri: isPageUri(resourceUri) ? resourceUri : isPageUri(old) ? old : undefined,
    visibility: Array.isArray(visibility) ? everyone.filter((one) => visibility.includes(one)) : everyone
  }
}

/**
 * Whether a model may get a tool. "Host MUST NOT include tools in the agent's tool list when their visibility does not
 * include `"model"`". `Client.toolkit` leaves such tools out.
 *
 * @example
 * const forModel = tools.filter(UiMeta.isForModel)
 */
export const isForModel = (tool: WithMeta): boolean => ofTool(tool).visibility.includes("model")

/**
 * Whether a page may call a tool. "Host MUST reject `tools/call` requests from apps for tools that don't include `"app"`
 * in visibility". `AppHost` does.
 *
 * @example
 * const forPage = tools.filter(UiMeta.isForApp)
 */
export const isForApp = (tool: WithMeta): boolean => ofTool(tool).visibility.includes("app")

const strings = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined

/**
 * Reads the metadata of a page from its contents, or else from its entry in `resources/list`. The first one that has
 * `_meta.ui` counts, as a whole.
 *
 * @example
 * const { csp, prefersBorder } = UiMeta.ofResource(contents, listed)
 */
export const ofResource = (...sources: ReadonlyArray<WithMeta | undefined>): ResourceMeta => {
  const source = sources.find((one) => isObject(one?._meta?.["ui"]))
  if (source === undefined) return {}
  const { csp, domain, permissions: asked, prefersBorder } = uiOf(source)
  return {
    ...(isObject(csp)
      ? {
        csp: Object.fromEntries(cspMembers.flatMap((member) => {
          const list = strings(csp[member])
          return list === undefined ? [] : [[member, list]]
        }))
      }
      : undefined),
    ...(isObject(asked)
      ? { permissions: Object.fromEntries(permissions.flatMap((one) => isObject(asked[one]) ? [[one, {}]] : [])) }
      : undefined),
    ...(typeof domain === "string" ? { domain } : undefined),
    ...(typeof prefersBorder === "boolean" ? { prefersBorder } : undefined)
  }
}

const normalised = (type: string): string => type.replaceAll(/[\s"]/g, "").toLowerCase()

/**
 * Whether a MIME type is that of a page. Case, spaces and quotes do not count.
 *
 * @example
 * UiMeta.isPageType("text/html; profile=mcp-app") // true
 */
export const isPageType = (type: string | undefined): boolean => type !== undefined && normalised(type) === mimeType

/**
 * Whether a client declares that its host shows pages: its capabilities have the extension with the MIME type of a page
 * ("Client (Host) Capabilities"). A declaration without `mimeTypes` counts, because some hosts send an empty object.
 *
 * @example
 * const withPage = UiMeta.isDeclared(request.caller.capabilities)
 */
export const isDeclared = (capabilities: { readonly [key: string]: unknown } | undefined): boolean => {
  const extensions = capabilities?.["extensions"]
  const declared = isObject(extensions) && Object.hasOwn(extensions, extension) ? extensions[extension] : undefined
  if (!isObject(declared)) return false
  const types = declared["mimeTypes"]
  return types === undefined ||
    (Array.isArray(types) && types.some((type) => typeof type === "string" && isPageType(type)))
}
