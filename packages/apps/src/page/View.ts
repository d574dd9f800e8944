/**
 * The page side of an MCP App: connects the document in the frame to its host, receives the arguments and the result of
 * the tool, and calls tools of the server. For browsers, without Effect and without dependencies, so that it adds 6 KB
 * to a page.
 *
 * Import the tools as types, and the names, the arguments and the results of calls are checked. The values are not
 * validated again: a Skein host has validated them by the schemas of the server.
 *
 * A listener that is added after its event receives the last one, so no event is lost.
 *
 * @example
 * import * as View from "@skein/apps/View"
 * import type { addSale, sales } from "../../tools.ts"
 *
 * const view = View.make<typeof sales, typeof addSale>({ name: "sales", version: "1.0.0" })
 * view.on("result", ({ structured }) => draw(structured.months))
 * await view.connect()
 * form.onsubmit = async () => draw((await view.call("add_sale", { month: 3, amount: 12 })).structured.months)
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ContentBlock } from "@skein/protocol/Content"
import type { Implementation } from "@skein/protocol/Implementation"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { toolNames } from "@skein/protocol/MetaKey"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import type { CreateMessageRequestParams, CreateMessageResult } from "@skein/protocol/Sampling"
import { currentWindow } from "../shared/dom.ts"
import { makeViewPort, type Params } from "./viewPort.ts"
import { ViewStyle } from "./viewStyle.ts"
import type {
  DisplayMode,
  DownloadContent,
  HostCapabilities,
  HostContext,
  InitializeResult,
  Message,
  ModelContext,
  Size
} from "../shared/UiMessage.ts"
import { revision } from "../shared/UiMeta.ts"
import { ViewError } from "./ViewError.ts"

/** A tool as a type: what `App.tool` returns. */
export interface AnyTool {
  readonly name: string
  readonly json?: { readonly arguments: unknown; readonly structured: unknown } | undefined
}

/** The JSON of the arguments of a tool. */
export type ArgumentsOf<T extends AnyTool> = NonNullable<T["json"]>["arguments"]

/** The JSON of the structured content of a tool: `undefined` without an output schema. */
export type StructuredOf<T extends AnyTool> = NonNullable<T["json"]>["structured"]

/** The result of a tool. */
export interface Result<Structured> {
  readonly structured: Structured
  /** The text blocks of the content, one per line. */
  readonly text: string
  readonly content: ReadonlyArray<ContentBlock>
  /** Whether the tool failed. `call` rejects instead. */
  readonly isError: boolean
  readonly _meta: JsonObject | undefined
}

/** The events of a page, with the values that listeners receive. */
export interface Events<Tool extends AnyTool> {
  /** The arguments of the call that opened the page. */
  readonly input: ArgumentsOf<Tool>
  /** Incomplete arguments, while the model writes them. They may change, so do nothing final with them. */
  readonly partialInput: Partial<ArgumentsOf<Tool>>
  /** The result of the call that opened the page. */
  readonly result: Result<StructuredOf<Tool>>
  /** The call was cancelled, with the reason if the host gives one. */
  readonly cancelled: string | undefined
  /** The context of the host, after each change. */
  readonly context: HostContext
  /** The host closes the page. It waits until the promises of the listeners are settled, but not forever. */
  readonly teardown: string | undefined
}

/** The options of a page. */
export interface Options {
  /** The name of the page, for the host. */
  readonly name: string
  /** The version of the page. */
  readonly version: string
  /** The modes that the page supports: `["inline"]` by default. A host does not switch to another one. */
  readonly displayModes?: ReadonlyArray<DisplayMode> | undefined
  /**
   * Whether the theme, the variables and the fonts of the host are applied to the document: `data-theme`, `color-scheme`
   * and custom properties of the root element. `true` by default.
   */
  readonly applyStyles?: boolean | undefined
  /** Whether the size of the document is reported to the host after each change. `true` by default. */
  readonly autoResize?: boolean | undefined
}

/** The most calls that wait for the host. */
const maxPendingRequests = 256

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call. The promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/** A page that is connected, or will be. `Tool` opens the page, and the page calls `Callable`. */
export interface View<Tool extends AnyTool = AnyTool, Callable extends AnyTool = Tool> {
  /**
   * Connects to the host: `ui/initialize`, then `ui/notifications/initialized`. Call it once. Rejects with `Timeout` if
   * no host answers, and with `Unsupported` if the document is not in a frame.
   */
  readonly connect: () => Promise<InitializeResult>
  /**
   * Adds a listener, and returns a function that removes it. The listener receives the last event at once, if there was
   * one.
   */
  readonly on: <E extends keyof Events<Tool>>(
    event: E,
    listener: (value: Events<Tool>[E]) => void | Promise<void>
  ) => () => void
  /** The context of the host. Empty before `connect`. */
  readonly context: HostContext
  /** The capabilities of the host. Empty before `connect`. */
  readonly capabilities: HostCapabilities
  /**
   * Calls a tool of the server. The host refuses tools that are not for the page, and may ask the user first. Rejects
   * with `ToolFailed` if the result has `isError`.
   *
   * A server may have mounted or renamed the tools that are linked to the page. They are called by their own names here,
   * once the host has sent `toolInfo` in its context, or the result.
   */
  readonly call: <N extends Callable["name"]>(
    name: N,
    args: ArgumentsOf<Extract<Callable, { readonly name: N }>>,
    options?: CallOptions
  ) => Promise<Result<StructuredOf<Extract<Callable, { readonly name: N }>>>>
  /** Reads a resource of the server. */
  readonly readResource: (uri: string, options?: CallOptions) => Promise<ReadResourceResult>
  /** Asks the host to open a link: `ui/open-link`. Rejects with `Refused` if it does not. */
  readonly openLink: (url: string | URL, options?: CallOptions) => Promise<void>
  /**
   * Asks the host to save files for the user, since the frame of the page cannot: `ui/download-file`. A file is embedded, or a
   * link that the host follows. Rejects with `Refused` if the user or the host declines.
   *
   * @example
   * const resource = { uri: "file:///sales.csv", mimeType: "text/csv", text: csv }
   * await view.downloadFile([{ type: "resource", resource }])
   */
  readonly downloadFile: (contents: ReadonlyArray<DownloadContent>, options?: CallOptions) => Promise<void>
  /**
   * Asks the model of the host: `sampling/createMessage`. The host chooses the model, and may ask the user, change the request
   * or refuse it: `Refused`. Rejects with `Unsupported` if the host has no `sampling`, or no `sampling.tools` for a request with
   * tools.
   *
   * @example
   * const messages = [{ role: "user" as const, content: { type: "text" as const, text: `Summarize: ${notes}` } }]
   * const { content } = await view.sample({ messages, maxTokens: 200 })
   */
  readonly sample: (request: CreateMessageRequestParams, options?: CallOptions) => Promise<CreateMessageResult>
  /**
   * Asks the host to close the page: `ui/notifications/request-teardown`. If it agrees, the page receives the event
   * `teardown`, and is removed.
   */
  readonly requestTeardown: () => void
  /** Adds a message of the user to the conversation: `ui/message`. Rejects with `Refused` if the host does not. */
  readonly sendMessage: (content: string | Message["content"], options?: CallOptions) => Promise<void>
  /** Replaces what the page adds to the context of the model: `ui/update-model-context`. */
  readonly updateModelContext: (context: ModelContext, options?: CallOptions) => Promise<void>
  /**
   * Asks for another display mode, and returns the mode that the page has then. Rejects with `Unsupported` if the
   * context of the host does not list the mode.
   */
  readonly requestDisplayMode: (mode: DisplayMode, options?: CallOptions) => Promise<DisplayMode>
  /** Sends a log message to the host: `notifications/message`. */
  readonly log: (level: "debug" | "info" | "notice" | "warning" | "error" | "critical", data: unknown) => void
  /** Reports the size of the page in CSS pixels to the host, for `autoResize: false`. */
  readonly sendSize: (size: Size) => void
  /** Stops listening to the host. Waiting calls reject with `Closed`. */
  readonly close: () => void
}

/** Throws outside of the present call, so that the browser logs the error of a listener. */
const report = (error: unknown): void =>
  queueMicrotask(() => {
    throw error
  })

const textOf = (content: ReadonlyArray<ContentBlock>): string =>
  content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")

const resultOf = (raw: Params): Result<never> => {
  const { _meta, content, isError, structuredContent } = raw as object as CallToolResult
  const blocks = Array.isArray(content) ? content as ReadonlyArray<ContentBlock> : []
  return {
    structured: structuredContent as never,
    text: textOf(blocks),
    content: blocks,
    isError: isError === true,
    _meta: _meta as JsonObject | undefined
  }
}

/**
 * Makes a page. It listens to the host after `connect`.
 *
 * @example
 * const view = View.make<typeof sales, typeof addSale | typeof removeSale>({ name: "sales", version: "1.0.0" })
 */
export const make = <Tool extends AnyTool = AnyTool, Callable extends AnyTool = Tool>(
  options: Options
): View<Tool, Callable> => {
  const { applyStyles = true, autoResize = true, displayModes = ["inline"] } = options
  const window = currentWindow()
  const style = new ViewStyle(window)
  const listeners = new Map<string, Set<(value: never) => unknown>>()
  const last = new Map<string, unknown>()
  let context: HostContext = {}
  let capabilities: HostCapabilities = {}
  let stopResizing = (): void => {}

  const emit = async (event: keyof Events<Tool>, value: unknown): Promise<void> => {
    last.set(event, value)
    const results = await Promise.allSettled(
      Array.from(listeners.get(event) ?? [], async (listener) => listener(value as never))
    )
    for (const result of results) if (result.status === "rejected") report(result.reason)
  }

  /** The names of tools in a server around their own. */
  const names = new Map<string, string>()
  const learnNames = (meta: unknown): void => {
    const given = isObject(meta) ? meta[toolNames] : undefined
    for (const [own, name] of Object.entries(isObject(given) ? given : {})) {
      if (typeof name === "string") names.set(own, name)
    }
  }

  const contextChanged = (change: HostContext): void => {
    context = { ...context, ...change }
    learnNames(context.toolInfo?.tool?._meta)
    if (applyStyles) style.applyLook(context)
    style.applyDimensions(context)
    void emit("context", context)
  }

  const port = makeViewPort(window, maxPendingRequests, {
    notified: (method, params) => {
      if (method === "ui/notifications/tool-input") void emit("input", params["arguments"] ?? {})
      else if (method === "ui/notifications/tool-input-partial") void emit("partialInput", params["arguments"] ?? {})
      else if (method === "ui/notifications/tool-result") {
        learnNames(params["_meta"])
        void emit("result", resultOf(params))
      } else if (method === "ui/notifications/tool-cancelled") void emit("cancelled", params["reason"])
      else if (method === "ui/notifications/host-context-changed") contextChanged(params)
    },
    requested: async (method, params) => {
      if (method === "ping") return {}
      if (method !== "ui/resource-teardown") return undefined
      await emit("teardown", params["reason"])
      return {}
    }
  })

  const watchSize = (): void => {
    let sent = ""
    let isWaiting = false
    const send = (): void => {
      isWaiting = false
      const size = style.measure()
      const text = `${size.width} ${size.height}`
      if (text === sent) return
      sent = text
      port.notify("ui/notifications/size-changed", size)
    }
    const observer = new window.ResizeObserver(() => {
      if (isWaiting) return
      isWaiting = true
      window.requestAnimationFrame(send)
    })
    observer.observe(window.document.documentElement)
    stopResizing = () => observer.disconnect()
    send()
  }

  const supported = (member: keyof HostCapabilities & string, what: string): void => {
    // Older hosts do not declare these two, and offer them.
    if (capabilities[member] === undefined && member !== "message" && member !== "updateModelContext") {
      throw new ViewError("Unsupported", `The host does not ${what}`)
    }
  }

  return {
    connect: async () => {
      port.open()
      const result = await port.request("ui/initialize", {
        appInfo: { name: options.name, version: options.version } satisfies Implementation,
        appCapabilities: { availableDisplayModes: displayModes },
        protocolVersion: revision
      }) as unknown as InitializeResult
      capabilities = result.hostCapabilities ?? {}
      contextChanged(result.hostContext ?? {})
      port.notify("ui/notifications/initialized", {})
      if (autoResize) watchSize()
      return result
    },
    on: (event, listener) => {
      const set = listeners.get(event) ?? new Set()
      listeners.set(event, set.add(listener))
      if (last.has(event)) {
        const value = last.get(event) as never
        Promise.resolve().then(() => listener(value)).catch(report)
      }
      return () => set.delete(listener)
    },
    get context() {
      return context
    },
    get capabilities() {
      return capabilities
    },
    call: async (name, args, { signal } = {}) => {
      supported("serverTools", "call tools")
      const params = { name: names.get(name) ?? name, arguments: args }
      const result = resultOf(await port.request("tools/call", params, signal))
      if (result.isError) throw new ViewError("ToolFailed", result.text || `The tool ${name} failed`, { result })
      return result
    },
    readResource: async (uri, { signal } = {}) => {
      supported("serverResources", "read resources")
      return await port.request("resources/read", { uri }, signal) as unknown as ReadResourceResult
    },
    openLink: async (url, { signal } = {}) => {
      supported("openLinks", "open links")
      await port.accepted("ui/open-link", { url: String(url) }, signal)
    },
    downloadFile: async (contents, { signal } = {}) => {
      supported("downloadFile", "save files")
      await port.accepted("ui/download-file", { contents }, signal)
    },
    sample: async (request, { signal } = {}) => {
      supported("sampling", "ask its model for pages")
      if (request.tools !== undefined && capabilities.sampling?.tools === undefined) {
        throw new ViewError("Unsupported", "The host does not take tools when it asks its model")
      }
      return await port.request("sampling/createMessage", { ...request }, signal) as unknown as CreateMessageResult
    },
    requestTeardown: () => port.notify("ui/notifications/request-teardown", {}),
    sendMessage: async (content, { signal } = {}) => {
      supported("message", "take messages")
      const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content
      await port.accepted("ui/message", { role: "user", content: blocks }, signal)
    },
    updateModelContext: async (context, { signal } = {}) => {
      supported("updateModelContext", "take context for the model")
      await port.accepted("ui/update-model-context", { ...context }, signal)
    },
    requestDisplayMode: async (mode, { signal } = {}) => {
      // "View MUST check if the requested mode is in `availableDisplayModes` from host context" (display modes).
      if (context.availableDisplayModes?.includes(mode) !== true) {
        throw new ViewError("Unsupported", `The host does not offer the display mode ${mode}`)
      }
      const result = await port.request("ui/request-display-mode", { mode }, signal)
      return result["mode"] as DisplayMode
    },
    log: (level, data) => port.notify("notifications/message", { level, logger: options.name, data }),
    sendSize: (size) => port.notify("ui/notifications/size-changed", { ...size }),
    close: () => {
      stopResizing()
      port.close()
    }
  }
}
