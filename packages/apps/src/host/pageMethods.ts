/** The requests that a page sends to its host, and their results. */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import { ContentBlock, EmbeddedResource, ResourceLink } from "@skein/protocol/Content"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { CreateMessageRequestParams, CreateMessageResult } from "@skein/protocol/Sampling"
import { problemOf } from "@skein/protocol/SamplingMessages"
import { clip, quote } from "@skein/protocol/Text"
import type { Tool } from "@skein/protocol/Tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type {
  DisplayMode,
  DownloadContent,
  HostCapabilities,
  LogMessage,
  Message,
  ModelContext
} from "../shared/UiMessage.ts"
import { isForApp } from "../shared/UiMeta.ts"
import type { Policy } from "../shared/UiPolicy.ts"

/** A failure of a decision of the host. The page receives the `message`. */
export interface Refusal {
  readonly message: string
}

/** A call of a tool by a page, before it is sent. */
export interface PageCall {
  readonly tool: Tool
  readonly arguments: JsonObject
}

/**
 * The actions of a page that a host permits. An action without a handler is not declared to the page, and refused.
 */
export interface Actions {
  /**
   * Decides whether the page may call a tool that is for it. All of them by default. It may ask the user, and is
   * interrupted when the page cancels the call.
   */
  readonly approveCall?: ((call: PageCall) => Effect.Effect<boolean, Refusal>) | undefined
  /** Whether the page may read resources of its server. `true` by default. */
  readonly serverResources?: boolean | undefined
  /** Opens a link of `http:` or `https:`. Ask the user, since the address may carry data. */
  readonly openLink?: ((url: URL) => Effect.Effect<void, Refusal>) | undefined
  /**
   * Saves files for the user: `ui/download-file`. A file is embedded, or a link to a resource of the server or to another
   * address, which the host reads. Names and links are texts of the page: ask the user, and make a file name of a URI yourself.
   */
  readonly downloadFile?: ((contents: ReadonlyArray<DownloadContent>) => Effect.Effect<void, Refusal>) | undefined
  /**
   * Asks the model of the host: `sampling/createMessage`. The prompt is a text of the page. Ask the user, and bound the number
   * of requests and their cost.
   */
  readonly sample?: ((request: CreateMessageRequestParams) => Effect.Effect<CreateMessageResult, Refusal>) | undefined
  /** Whether a request to `sample` may have `tools`. `false` by default. */
  readonly sampleWithTools?: boolean | undefined
  /**
   * The page asks for its end: `ui/notifications/request-teardown`. To agree, close the scope of the frame, or call `teardown`
   * of the session and remove the frame. Nothing happens by default.
   */
  readonly requestTeardown?: Effect.Effect<void> | undefined
  /** Adds a message to the conversation. It is a text of the page, not of the user. */
  readonly message?: ((message: Message) => Effect.Effect<void, Refusal>) | undefined
  /** Replaces what the page adds to the context of the model. */
  readonly updateModelContext?: ((context: ModelContext) => Effect.Effect<void, Refusal>) | undefined
  /**
   * Changes the display mode to one that the page and `context.availableDisplayModes` list, and returns the mode that
   * the page has then.
   */
  readonly requestDisplayMode?: ((mode: DisplayMode) => Effect.Effect<DisplayMode, Refusal>) | undefined
  /** Receives the log messages of the page. */
  readonly log?: ((message: LogMessage) => Effect.Effect<void>) | undefined
}

/** The actions, with their defaults. */
export type Settings = Actions & { readonly serverResources: boolean }

/** A method: its result, or the error for the page. */
export type Handled = Effect.Effect<JsonObject, McpError.McpError>

/** The display modes of a session. */
export interface Modes {
  readonly current: () => DisplayMode
  /** Whether both sides list the mode. */
  readonly isAvailable: (mode: string) => boolean
  readonly set: (mode: DisplayMode) => Effect.Effect<void>
}

/** "Implementation-defined error" (MCP Apps specific messages): the action was refused, or failed. */
const refused = (message: string): McpError.McpError => McpError.other(-32_000, clip(message, 1_000))

const refuse = ({ message }: Refusal): McpError.McpError => refused(message)

/** The error of the server, or that the call failed. */
const ofClient = ({ message, reason }: ClientError): McpError.McpError =>
  reason._tag === "ProtocolError" ? reason.error : refused(message)

const isContent = Schema.is(Schema.Array(ContentBlock))

const isDownload = Schema.is(Schema.NonEmptyArray(Schema.Union([EmbeddedResource, ResourceLink])))

const decodeSampling = Schema.decodeUnknownResult(CreateMessageRequestParams)
const encodeSample = Schema.encodeUnknownResult(CreateMessageResult)

/** The specification shows one block, and SDKs send a list. */
const contentOf = (value: unknown): Result.Result<ReadonlyArray<ContentBlock>, McpError.McpError> => {
  const list = Array.isArray(value) ? value : [value]
  return isContent(list)
    ? Result.succeed(list)
    : Result.fail(McpError.invalidParams("content is not a list of content blocks"))
}

/** How long a list of tools counts, when a page calls a tool that is not in it. */
const listingPauseMs = 2_000

/** The capabilities of the host, as a page receives them. */
export const capabilitiesOf = (settings: Settings, policy: Policy): HostCapabilities => {
  const blocks = { text: {}, image: {}, audio: {}, resource: {}, resourceLink: {} }
  return {
    serverTools: {},
    ...(settings.serverResources ? { serverResources: {} } : undefined),
    ...(settings.openLink === undefined ? undefined : { openLinks: {} }),
    ...(settings.downloadFile === undefined ? undefined : { downloadFile: {} }),
    ...(settings.sample === undefined
      ? undefined
      : { sampling: settings.sampleWithTools === true ? { tools: {} } : {} }),
    ...(settings.log === undefined ? undefined : { logging: {} }),
    ...(settings.message === undefined ? undefined : { message: blocks }),
    ...(settings.updateModelContext === undefined
      ? undefined
      : { updateModelContext: { ...blocks, structuredContent: {} } }),
    sandbox: {
      csp: policy.csp,
      permissions: Object.fromEntries(policy.permissions.map((one) => [one, {}]))
    }
  }
}

/** Makes the methods of a session, by name. `ui/initialize` is a part of the session. */
export const makeMethods = (
  client: Client,
  tool: Tool,
  settings: Settings,
  modes: Modes
): ReadonlyMap<string, (params: JsonObject) => Handled> => {
  // The tool that was called is known. The others are listed when the page calls one that is not known, but not for each
  // name that a page makes up.
  let tools: ReadonlyMap<string, Tool> = new Map([[tool.name, tool]])
  let listedAt = -Infinity

  const find = (name: string): Effect.Effect<Tool | undefined, McpError.McpError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (tools.has(name) || now - listedAt < listingPauseMs) return Effect.succeed(tools.get(name))
      listedAt = now
      return Effect.map(Effect.mapError(client.listTools(), ofClient), (listed) => {
        tools = new Map(listed.map((one) => [one.name, one]))
        return tools.get(name)
      })
    })

  const callTool = (params: JsonObject): Handled =>
    Effect.gen(function*() {
      const { arguments: args = {}, name } = params
      if (typeof name !== "string" || !isObject(args)) {
        return yield* Effect.fail(McpError.invalidParams("tools/call needs a name, and arguments that are an object"))
      }
      const called = yield* find(name)
      if (called === undefined) return yield* Effect.fail(McpError.invalidParams(`Unknown tool: ${clip(name)}`))
      // "Host MUST reject `tools/call` requests from apps for tools that don't include `"app"` in visibility".
      if (!isForApp(called)) {
        return yield* Effect.fail(refused(`The tool ${quote(name)} is not for apps: its visibility lacks "app"`))
      }
      const approved = settings.approveCall?.({ tool: called, arguments: args }) ?? Effect.succeed(true)
      if (!(yield* Effect.mapError(approved, refuse))) {
        return yield* Effect.fail(refused(`The call of ${quote(name)} was not approved`))
      }
      return (yield* Effect.mapError(client.callTool(name, args), ofClient)) as object as JsonObject
    })

  const readResource = ({ uri }: JsonObject): Handled =>
    typeof uri === "string"
      ? Effect.map(Effect.mapError(client.readResource(uri), ofClient), (result) => result as object as JsonObject)
      : Effect.fail(McpError.invalidParams("resources/read needs a uri"))

  const openLink = (open: NonNullable<Settings["openLink"]>) => ({ url }: JsonObject): Handled => {
    const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined
    return parsed?.protocol === "https:" || parsed?.protocol === "http:"
      ? Effect.as(Effect.mapError(open(parsed), refuse), {})
      : Effect.fail(McpError.invalidParams("ui/open-link needs a URL of https: or http:"))
  }

  const downloadFile = (download: NonNullable<Settings["downloadFile"]>) => ({ contents }: JsonObject): Handled =>
    isDownload(contents)
      ? Effect.as(Effect.mapError(download(contents), refuse), {})
      : Effect.fail(McpError.invalidParams("ui/download-file needs contents: embedded resources and resource links"))

  const sample = (ask: NonNullable<Settings["sample"]>) => (params: JsonObject): Handled => {
    const request = decodeSampling(params)
    if (Result.isFailure(request)) {
      return Effect.fail(
        McpError.invalidParams(`sampling/createMessage is malformed: ${clip(String(request.failure), 500)}`)
      )
    }
    const { messages, toolChoice, tools } = request.success
    // "The client MUST return an error if this field is provided but ClientCapabilities.sampling.tools is not declared".
    if (settings.sampleWithTools !== true && (tools !== undefined || toolChoice !== undefined)) {
      return Effect.fail(McpError.invalidParams("The host does not support tools in sampling/createMessage"))
    }
    const problem = problemOf(messages)
    if (problem !== undefined) return Effect.fail(McpError.invalidParams(problem))
    return Effect.flatMap(Effect.mapError(ask(request.success), refuse), (result) => {
      const encoded = encodeSample(result)
      return Result.isSuccess(encoded)
        ? Effect.succeed(encoded.success as JsonObject)
        : Effect.die(new Error(`sample returned no result of sampling/createMessage: ${String(encoded.failure)}`))
    })
  }

  const message = (add: NonNullable<Settings["message"]>) => ({ content, role }: JsonObject): Handled => {
    if (role !== "user") return Effect.fail(McpError.invalidParams("ui/message needs the role \"user\""))
    return Effect.flatMap(
      Effect.fromResult(contentOf(content)),
      (content) => Effect.as(Effect.mapError(add({ role, content }), refuse), {})
    )
  }

  const updateModelContext =
    (update: NonNullable<Settings["updateModelContext"]>) => ({ content, structuredContent }: JsonObject): Handled => {
      if (structuredContent !== undefined && !isObject(structuredContent)) {
        return Effect.fail(McpError.invalidParams("structuredContent is not an object"))
      }
      const blocks = content === undefined ? Result.succeed(undefined) : contentOf(content)
      return Effect.flatMap(Effect.fromResult(blocks), (content) =>
        Effect.as(
          Effect.mapError(
            update({
              ...(content === undefined ? undefined : { content }),
              ...(structuredContent === undefined ? undefined : { structuredContent })
            }),
            refuse
          ),
          {}
        ))
    }

  const requestDisplayMode = ({ mode }: JsonObject): Handled => {
    const { requestDisplayMode: request } = settings
    const current = modes.current()
    // "If the requested mode is not available, Host SHOULD return the current display mode in the response".
    if (request === undefined || typeof mode !== "string" || !modes.isAvailable(mode)) {
      return Effect.succeed({ mode: current })
    }
    return Effect.gen(function*() {
      const next = yield* Effect.mapError(request(mode as DisplayMode), refuse)
      if (next !== current) yield* modes.set(next)
      return { mode: next }
    })
  }

  const { downloadFile: download, message: add, openLink: open, sample: ask, serverResources } = settings
  const { updateModelContext: update } = settings
  return new Map<string, (params: JsonObject) => Handled>([
    ["ping", () => Effect.succeed({})],
    ["tools/call", callTool],
    ["ui/request-display-mode", requestDisplayMode],
    ...(serverResources ? [["resources/read", readResource] as const] : []),
    ...(open === undefined ? [] : [["ui/open-link", openLink(open)] as const]),
    ...(download === undefined ? [] : [["ui/download-file", downloadFile(download)] as const]),
    ...(ask === undefined ? [] : [["sampling/createMessage", sample(ask)] as const]),
    ...(add === undefined ? [] : [["ui/message", message(add)] as const]),
    ...(update === undefined ? [] : [["ui/update-model-context", updateModelContext(update)] as const])
  ])
}
