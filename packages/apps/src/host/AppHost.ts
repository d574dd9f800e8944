/**
 * The host side of MCP Apps: reads the page of a tool with its policy, and handles the messages of the page. It has no
 * DOM: `AppFrame` shows the page in a browser, and a desktop host connects its own web view with `attach` and `receive`.
 *
 * - The page calls tools of its own server only, and those whose `visibility` includes `"app"`. `approveCall` asks the
 *   user first.
 * - The page gets its origins and permissions as `allowSource` and `allowPermission` decide.
 * - Every message is validated and bounded. A page that floods the host is answered with errors, then ignored.
 * - Nothing is sent to the page before it has sent `ui/notifications/initialized`.
 *
 * @example
 * const client = yield* Client.make(transport, { extensions: AppHost.extensions })
 * const session = yield* AppHost.open(client, tool, {
 *   context: { theme: "dark" },
 *   openLink: (url) => askUser(`Open ${url}?`)
 * })
 * yield* AppFrame.mount(iframe, session, { sandboxUrl: "https://sandbox.example.net/" })
 * const result = yield* session.call({ year: 2026 })
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import type { AnyResourceContents } from "@skein/protocol/Content"
import type { Tool } from "@skein/protocol/Tool"
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { AppError, InvalidPage, NoPage, PageTooLarge } from "./AppError.ts"
import { type AppSession, makeSession } from "./appSession.ts"
import type { Actions } from "./pageMethods.ts"
import type { HostContext } from "../shared/UiMessage.ts"
import * as UiMeta from "../shared/UiMeta.ts"
import * as UiPolicy from "../shared/UiPolicy.ts"

export type { AppSession, Post } from "./appSession.ts"
export type { Actions, PageCall, Refusal } from "./pageMethods.ts"

/**
 * Options of a session. An action without a handler is not declared to the page, and refused. A handler that fails
 * refuses the action with its message.
 */
export interface Options extends UiPolicy.Options, Actions {
  /** Name and version of the host, for the page. Default `{ name: "skein", version: "0.2.0" }`. */
  readonly hostInfo?: Implementation | undefined
  /** The context of the host, for the page. It contains the tool alone by default. */
  readonly context?: HostContext | undefined
}

/**
 * The declaration of a host that shows pages, for the option `extensions` of its clients.
 *
 * @example
 * const client = yield* Client.make(transport, { extensions: AppHost.extensions })
 */
export const extensions: { readonly [extension: string]: JsonObject } = {
  [UiMeta.extension]: { mimeTypes: [UiMeta.mimeType] }
}

const invalid = (uri: string, problem: string): AppError =>
  new AppError(new InvalidPage({ message: `The page ${quote(uri)} of the server cannot be shown: ${problem}` }))

/** The most characters of a page. A larger one is not shown. */
const maxHtmlChars = 4_194_304

const htmlOf = (uri: string, contents: AnyResourceContents): Result.Result<string, AppError> => {
  const tooLarge = () =>
    Result.fail(
      new AppError(
        new PageTooLarge({ message: `The page ${quote(uri)} has more than ${maxHtmlChars} characters` })
      )
    )
  if ("text" in contents) return contents.text.length > maxHtmlChars ? tooLarge() : Result.succeed(contents.text)
  // Four characters of base64 are three bytes, and a character has three bytes at most per UTF-16 unit.
  if (contents.blob.length > maxHtmlChars * 4 + 4) return tooLarge()
  const bytes = Base64.decode(contents.blob)
  if (Result.isFailure(bytes)) return Result.fail(invalid(uri, "its base64 is malformed"))
  const text = new TextDecoder().decode(bytes.success)
  return text.length > maxHtmlChars ? tooLarge() : Result.succeed(text)
}

/**
 * Reads the page of a tool, and opens a session for it. The page is the `ui://` resource that the tool names, which the
 * client may have cached. Its metadata is that of the contents, or else of `resources/list`.
 *
 * Fails with `AppError` (`NoPage`, `InvalidPage`, `PageTooLarge`) and with the `ClientError` of `resources/read`. Refused
 * origins and permissions are in `policy.rejected`, and are logged as a warning.
 *
 * @example
 * const session = yield* AppHost.open(client, tool, {
 *   allowPermission: (permission) => permission === "clipboardWrite",
 *   approveCall: ({ tool }) => tool.annotations?.readOnlyHint === true ? Effect.succeed(true) : askUser(tool)
 * })
 */
export const open = Effect.fnUntraced(function*(
  client: Client,
  tool: Tool,
  options: Options = {}
): Effect.fn.Return<AppSession, AppError | ClientError, Scope.Scope> {
  const { resourceUri: uri } = UiMeta.ofTool(tool)
  if (uri === undefined) {
    return yield* Effect.fail(new AppError(new NoPage({ message: `The tool ${quote(tool.name)} has no page` })))
  }
  const { contents } = yield* client.readResource(uri)
  const page = contents.find((one) => one.uri === uri) ?? contents[0]
  if (page === undefined) return yield* Effect.fail(invalid(uri, "it has no contents"))
  if (!UiMeta.isPageType(page.mimeType)) {
    return yield* Effect.fail(invalid(uri, `its MIME type is ${quote(page.mimeType ?? "absent")}`))
  }
  const html = yield* Effect.fromResult(htmlOf(uri, page))
  const isComplete = page._meta?.["ui"] !== undefined
  // The list is a fallback, so its failure is not one of the page.
  const listed = isComplete ? [] : yield* Effect.orElseSucceed(client.listResources(), () => [])
  const meta = UiMeta.ofResource(page, listed.find((one) => one.uri === uri))
  const policy = UiPolicy.make(meta, options)
  if (policy.rejected.length > 0) {
    const list = policy.rejected.slice(0, 10).map(({ member, reason, value }) => `${member} ${value} (${reason})`)
    yield* Effect.logWarning(`The page ${quote(uri)} does not get everything that it declares: ${list.join(", ")}`)
  }
  return yield* makeSession(client, {
    tool,
    uri,
    html,
    policy,
    prefersBorder: meta.prefersBorder,
    domain: meta.domain
  }, {
    ...options,
    hostInfo: options.hostInfo ?? { name: "skein", version: "0.2.0" },
    serverResources: options.serverResources ?? true
  })
})
