/**
 * The messages between a page and its host, as types: the context of the host, its capabilities, and the params of the
 * methods of `ui/` (MCP Apps 2026-01-26, "MCP Apps Specific Messages"). `View` and `AppHost` send and receive them.
 */
import type { ContentBlock, EmbeddedResource, ResourceLink } from "@skein/protocol/Content"
import type { Implementation } from "@skein/protocol/Implementation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import type { Csp, ResourceMeta } from "./UiMeta.ts"

/** How a page is shown: in the conversation, over the whole window, or as a small window above it. */
export type DisplayMode = "inline" | "fullscreen" | "pip"

/** The size of the container of a page. Fixed (`height`), flexible (`maxHeight`), or without a bound. In CSS pixels. */
export interface ContainerDimensions {
  readonly height?: number | undefined
  readonly maxHeight?: number | undefined
  readonly width?: number | undefined
  readonly maxWidth?: number | undefined
}

/** The look of the host. */
export interface Styles {
  /** CSS custom properties with their values, `--color-text-primary` for example ("Theming"). */
  readonly variables?: { readonly [name: string]: string | undefined } | undefined
  /** CSS text that loads the fonts of the host. */
  readonly css?: { readonly fonts?: string | undefined } | undefined
}

/** The context of a host, for its pages. Every member is optional, and a host may add members. */
export interface HostContext {
  /** The tool whose call opened the page. */
  readonly toolInfo?: { readonly id?: string | number | undefined; readonly tool: Tool } | undefined
  readonly theme?: "light" | "dark" | undefined
  readonly styles?: Styles | undefined
  readonly displayMode?: DisplayMode | undefined
  readonly availableDisplayModes?: ReadonlyArray<DisplayMode> | undefined
  readonly containerDimensions?: ContainerDimensions | undefined
  /** A language tag, `en-US` for example. */
  readonly locale?: string | undefined
  /** A name of the IANA, `America/New_York` for example. */
  readonly timeZone?: string | undefined
  readonly userAgent?: string | undefined
  readonly platform?: "web" | "desktop" | "mobile" | undefined
  readonly deviceCapabilities?: {
    readonly touch?: boolean | undefined
    readonly hover?: boolean | undefined
  } | undefined
  /** The parts of the container that are covered, in CSS pixels. */
  readonly safeAreaInsets?: {
    readonly top: number
    readonly right: number
    readonly bottom: number
    readonly left: number
  } | undefined
  readonly [member: string]: unknown
}

/** The capabilities of a host. */
export interface HostCapabilities {
  /** The host opens links: `ui/open-link`. */
  readonly openLinks?: {} | undefined
  /** The host calls tools of the server for the page: `tools/call`. */
  readonly serverTools?: { readonly listChanged?: boolean | undefined } | undefined
  /** The host reads resources of the server for the page: `resources/read`. */
  readonly serverResources?: { readonly listChanged?: boolean | undefined } | undefined
  /** The host takes log messages: `notifications/message`. */
  readonly logging?: {} | undefined
  /** The granted origins and permissions. */
  readonly sandbox?: Pick<ResourceMeta, "csp" | "permissions"> | undefined
  /** The host adds content to the context of the model: `ui/update-model-context`. */
  readonly updateModelContext?: {} | undefined
  /** The host saves files for the page: `ui/download-file`. */
  readonly downloadFile?: {} | undefined
  /** The host asks its model for the page: `sampling/createMessage`; `tools` if the request may have tools. */
  readonly sampling?: { readonly tools?: {} | undefined } | undefined
  /** The host takes messages of the page: `ui/message`. */
  readonly message?: {} | undefined
  readonly [member: string]: unknown
}

/** The result of `ui/initialize`. */
export interface InitializeResult {
  readonly protocolVersion: string
  readonly hostInfo: Implementation
  readonly hostCapabilities: HostCapabilities
  readonly hostContext: HostContext
}

/** A message for the conversation: the params of `ui/message`. */
export interface Message {
  readonly role: "user"
  readonly content: ReadonlyArray<ContentBlock>
}

/** A file for the user: its content, or a link that the host follows. */
export type DownloadContent = EmbeddedResource | ResourceLink

/** Content for the context of the model, which replaces the previous one: the params of `ui/update-model-context`. */
export interface ModelContext {
  readonly content?: ReadonlyArray<ContentBlock> | undefined
  readonly structuredContent?: JsonObject | undefined
}

/** The size of a page in CSS pixels: the params of `ui/notifications/size-changed`. */
export interface Size {
  readonly width?: number | undefined
  readonly height?: number | undefined
}

/** A log message of a page: the params of `notifications/message`. */
export interface LogMessage {
  readonly level: string
  readonly logger?: string | undefined
  readonly data: unknown
}

/** The page that a host sends to the sandbox proxy: the params of `ui/notifications/sandbox-resource-ready`. */
export interface SandboxResource {
  readonly html: string
  /** The attribute `sandbox` of the frame of the page. */
  readonly sandbox?: string | undefined
  readonly csp?: Csp | undefined
  readonly permissions?: ResourceMeta["permissions"]
}
