/** One page and its host: the handshake, the messages in both directions, and their bounds. */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { Implementation } from "@skein/protocol/Implementation"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { latest } from "@skein/protocol/Revision"
import type { Tool } from "@skein/protocol/Tool"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { DisplayMode, HostContext, LogMessage, Size } from "../shared/UiMessage.ts"
import { revision } from "../shared/UiMeta.ts"
import type { Policy } from "../shared/UiPolicy.ts"
import { capabilitiesOf, makeMethods, type Settings } from "./pageMethods.ts"

/** Sends a message to a page. The message is JSON. */
export type Post = (message: JsonObject) => void

/** A page that is shown, or will be. It ends with the scope that opened it. */
export interface AppSession {
  readonly tool: Tool
  /** The URI of the page. */
  readonly uri: string
  /** The HTML of the page. Do not load it outside of a sandbox. */
  readonly html: string
  readonly policy: Policy
  /** Whether the page wants a border and a background. `undefined`: the host decides. */
  readonly prefersBorder: boolean | undefined
  /** The origin that the page asks for, in a form that the host defines. Untrusted. */
  readonly domain: string | undefined
  /**
   * Sets the function that sends a message to the page, until the scope closes. It must not throw. `resize` receives
   * the sizes that the page reports.
   */
  readonly attach: (post: Post, resize?: (size: Size) => void) => Effect.Effect<void, never, Scope.Scope>
  /** Handles a message of the page. Any value may be passed: what is not a message is ignored. */
  readonly receive: (message: unknown) => void
  /** Waits until the page has completed the handshake. */
  readonly initialized: Effect.Effect<void>
  /**
   * Calls the tool, and gives the page the arguments, then the result or the cancellation. It does not wait for the page.
   * Interrupting it cancels the call.
   */
  readonly call: (args: JsonObject) => Effect.Effect<CallToolResult, ClientError>
  /** Gives the page incomplete arguments, while the model writes them. Ignored after `input`. */
  readonly partialInput: (args: JsonObject) => Effect.Effect<void>
  /** Gives the page the arguments of a call that the host makes itself. The first ones count. */
  readonly input: (args: JsonObject) => Effect.Effect<void>
  /** Gives the page the result. The page receives empty arguments before, if `input` was not called. */
  readonly result: (result: CallToolResult) => Effect.Effect<void>
  /** Notifies the page that the call was cancelled. */
  readonly cancelled: (reason?: string) => Effect.Effect<void>
  /** Changes members of the context, such as the theme. */
  readonly setContext: (change: HostContext) => Effect.Effect<void>
  /** The present context. */
  readonly context: Effect.Effect<HostContext>
  /** Lets the page prepare for its end within 2 seconds. Remove the frame afterwards. */
  readonly teardown: (reason?: string) => Effect.Effect<void>
}

/** The most characters of a message of the page as JSON. */
const maxMessageChars = 1_048_576
/** The most requests of the page in progress. */
const maxInFlightRequests = 32
/** The most messages of the page in one second. */
const maxMessagesPerSecond = 200
/** The time of the page to prepare for its end. */
const shutdownTimeout = "2 seconds"

/** The options of a session, with their defaults. */
export interface SessionSettings extends Settings {
  readonly hostInfo: Implementation
  readonly context?: HostContext | undefined
}

type Page = Pick<AppSession, "domain" | "html" | "policy" | "prefersBorder" | "tool" | "uri">

const note = (method: string, params: JsonObject): JsonObject => ({ jsonrpc: "2.0", method, params })

const isSize = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0

const displayModes: ReadonlyArray<string> = ["inline", "fullscreen", "pip"] satisfies ReadonlyArray<DisplayMode>

let requests = 0
let logs = 0

/** Makes the session of a page. Closing the scope interrupts the requests of the page. */
export const makeSession = Effect.fnUntraced(function*(
  client: Client,
  page: Page,
  settings: SessionSettings
): Effect.fn.Return<AppSession, never, Scope.Scope> {
  const running = yield* FiberMap.make<string>()
  const run = yield* FiberMap.runtime(running)()
  const clock = yield* Clock.Clock
  const initialized = Latch.makeUnsafe()
  const answers = new Map<string, Deferred.Deferred<void>>()
  let post: Post | undefined
  let resize: ((size: Size) => void) | undefined
  let context: HostContext = { ...settings.context, toolInfo: { tool: page.tool } }
  let isInitialized = false
  // The members of the context that the page does not have yet.
  let changed: HostContext = {}
  // The modes that the page supports, if it declares them.
  let pageModes: ReadonlyArray<unknown> | undefined
  // The notifications of incomplete and of complete arguments.
  let partial: JsonObject | undefined
  let complete: JsonObject | undefined
  // The notification of the result or of the cancellation.
  let ended: JsonObject | undefined
  let currentSecond = 0
  let messages = 0
  let tasks = 0

  const send = (message: JsonObject): void => post?.(message)

  const notify = (message: JsonObject): void => {
    if (isInitialized) send(message)
  }

  /** "The Host MUST NOT send any request or notification to the View before it receives an `initialized` notification". */
  const flush = (): void => {
    if (Object.keys(changed).length > 0) {
      send(note("ui/notifications/host-context-changed", changed as JsonObject))
      changed = {}
    }
    const given = complete ?? partial
    if (given !== undefined) send(given)
    if (ended !== undefined) send(ended)
  }

  const setContext = (change: HostContext): void => {
    context = { ...context, ...change }
    if (isInitialized) send(note("ui/notifications/host-context-changed", change as JsonObject))
    else changed = { ...changed, ...change }
  }

  const methods = makeMethods(client, page.tool, settings, {
    current: () => context.displayMode ?? "inline",
    isAvailable: (mode) =>
      displayModes.includes(mode) &&
      context.availableDisplayModes?.includes(mode as DisplayMode) === true &&
      (pageModes?.includes(mode) ?? true),
    set: (displayMode) => Effect.sync(() => setContext({ displayMode }))
  })

  /** "This notification is sent at most once and is required before sending `ui/notifications/tool-result`". */
  const input = (args: JsonObject): void => {
    if (complete !== undefined) return
    complete = note("ui/notifications/tool-input", { arguments: args })
    notify(complete)
  }

  const end = (message: JsonObject): void => {
    ended = message
    notify(message)
  }

  /** Whether the page may send another message in this second. */
  const counts = (): boolean => {
    const second = Math.floor(clock.currentTimeMillisUnsafe() / 1000)
    if (second !== currentSecond) {
      currentSecond = second
      messages = 0
    }
    return ++messages <= maxMessagesPerSecond
  }

  const respond = (id: JsonRpc.Id, exit: Exit.Exit<JsonObject, McpError.McpError>): void => {
    if (Exit.isSuccess(exit)) return send({ jsonrpc: "2.0", id, result: exit.value })
    // The page has cancelled the request, or is gone.
    if (Cause.hasInterruptsOnly(exit.cause)) return
    const fail = exit.cause.reasons.find(Cause.isFailReason)
    const error = fail?.error ?? McpError.internal()
    send({ jsonrpc: "2.0", id, error: { ...McpError.toErrorObject(error, latest) } })
  }

  const initialize = (id: JsonRpc.Id, { appCapabilities }: JsonObject): void => {
    const modes = isObject(appCapabilities) ? appCapabilities["availableDisplayModes"] : undefined
    pageModes = Array.isArray(modes) ? modes : undefined
    // A page that was reloaded repeats the handshake, and needs everything again.
    isInitialized = false
    changed = {}
    const { hostInfo } = settings
    const hostCapabilities = capabilitiesOf(settings, page.policy)
    respond(id, Exit.succeed({ protocolVersion: revision, hostInfo, hostCapabilities, hostContext: context }))
  }

  const requested = (id: JsonRpc.Id, method: string, params: JsonObject): void => {
    if (method === "ui/initialize") return initialize(id, params)
    const handler = methods.get(method)
    if (handler === undefined) return respond(id, Exit.fail(McpError.methodNotFound(method)))
    const key = `${typeof id} ${id}`
    if (FiberMap.hasUnsafe(running, key)) {
      return respond(id, Exit.fail(McpError.invalidRequest("The id of the request is in use")))
    }
    if (tasks >= maxInFlightRequests) {
      const message = `${maxInFlightRequests} requests are in progress`
      return respond(id, Exit.fail(McpError.other(-32_000, message)))
    }
    tasks++
    run(
      key,
      Effect.suspend(() => handler(params)).pipe(
        Effect.tapCause((cause) =>
          cause.reasons.some(Cause.isDieReason) ? Effect.logError(`${method} of a page failed`, cause) : Effect.void
        ),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            tasks--
            respond(id, exit)
          })
        ),
        Effect.exit,
        Effect.asVoid
      )
    )
  }

  const notified = (method: string, params: JsonObject): void => {
    if (method === "ui/notifications/initialized") {
      if (isInitialized) return
      isInitialized = true
      flush()
      initialized.openUnsafe()
    } else if (method === "ui/notifications/size-changed") {
      const { height, width } = params
      resize?.({ ...(isSize(width) ? { width } : undefined), ...(isSize(height) ? { height } : undefined) })
    } else if (method === "notifications/cancelled") {
      const id = params["requestId"]
      if (JsonRpc.isId(id)) run(`cancel ${typeof id} ${id}`, FiberMap.remove(running, `${typeof id} ${id}`))
    } else if (method === "ui/notifications/request-teardown") {
      // Repeated while the host decides, it is one request.
      const { requestTeardown } = settings
      if (requestTeardown === undefined || FiberMap.hasUnsafe(running, "teardown")) return
      run("teardown", requestTeardown)
    } else if (method === "notifications/message") {
      const { data, level, logger } = params
      const { log } = settings
      if (log === undefined || typeof level !== "string" || tasks >= maxInFlightRequests) return
      const message: LogMessage = { level, data, ...(typeof logger === "string" ? { logger } : undefined) }
      tasks++
      run(`log ${++logs}`, Effect.ensuring(log(message), Effect.sync(() => void tasks--)))
    }
  }

  const receive = (received: unknown): void => {
    const isInTime = counts()
    if (!isObject(received)) return
    if (!isInTime && (received["id"] === undefined || messages > 2 * maxMessagesPerSecond)) return
    let text: string | undefined
    try {
      text = JSON.stringify(received)
    } catch {
      // Not JSON: a cycle or a bigint.
    }
    if (text === undefined) return
    const isTooLarge = text.length > maxMessageChars
    // A message by structured clone may have values that JSON lacks: dates, maps, typed arrays.
    const message = JsonRpc.parse(isTooLarge ? { ...received, params: {} } : JSON.parse(text))
    if (message._tag === "Request") {
      const { id } = message
      const fail = (error: McpError.McpError): void => respond(id, Exit.fail(error))
      if (isTooLarge) fail(McpError.invalidRequest(`The message is larger than ${maxMessageChars} characters`))
      else if (!isInTime) fail(McpError.other(-32_000, `More than ${maxMessagesPerSecond} messages in a second`))
      else requested(id, message.method, message.params ?? {})
    } else if (isTooLarge || message._tag === "Invalid") {
      if (message._tag === "Invalid" && !message.answer && message.id !== undefined) {
        send({ jsonrpc: "2.0", id: message.id, error: message.error })
      }
    } else if (message._tag === "Notification") notified(message.method, message.params ?? {})
    else {
      const answered = answers.get(String(message.id))
      if (answered !== undefined) Deferred.doneUnsafe(answered, Effect.void)
    }
  }

  /** The page receives empty arguments before the result, if it has no others. */
  const result = (value: CallToolResult) =>
    Effect.sync(() => {
      input({})
      end(note("ui/notifications/tool-result", value as object as JsonObject))
    })

  /** A cancellation may come before the arguments are complete. */
  const stop = (reason?: string) =>
    Effect.sync(() => end(note("ui/notifications/tool-cancelled", reason === undefined ? {} : { reason })))

  return {
    ...page,
    attach: (to, resized) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          post = to
          resize = resized
        }),
        () =>
          Effect.sync(() => {
            if (post !== to) return
            post = undefined
            resize = undefined
          })
      )),
    receive,
    initialized: initialized.await,
    call: (args) =>
      Effect.suspend(() => {
        input(args)
        return client.callTool(page.tool.name, args)
      }).pipe(
        Effect.tap(result),
        // "Host MUST send this notification if the tool execution was cancelled, for any reason".
        Effect.onExit((exit) =>
          Exit.isSuccess(exit)
            ? Effect.void
            : stop(Cause.hasInterruptsOnly(exit.cause) ? "the call was cancelled" : "the call failed")
        )
      ),
    partialInput: (args) =>
      Effect.sync(() => {
        if (complete !== undefined) return
        partial = note("ui/notifications/tool-input-partial", { arguments: args })
        notify(partial)
      }),
    input: (args) => Effect.sync(() => input(args)),
    result,
    cancelled: stop,
    setContext: (change) => Effect.sync(() => setContext(change)),
    context: Effect.sync(() => context),
    teardown: (reason) =>
      Effect.suspend(() => {
        if (!isInitialized || post === undefined) return Effect.void
        const id = `host-${++requests}`
        const answered = Deferred.makeUnsafe<void>()
        answers.set(id, answered)
        const params = reason === undefined ? {} : { reason }
        send({ jsonrpc: "2.0", id, method: "ui/resource-teardown", params })
        return Deferred.await(answered).pipe(
          Effect.timeoutOption(shutdownTimeout),
          Effect.ensuring(Effect.sync(() => {
            answers.delete(id)
            isInitialized = false
          })),
          Effect.asVoid
        )
      })
  }
})
