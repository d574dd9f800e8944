/**
 * Shows the page of a session in a browser: loads the sandbox proxy into an `iframe` at another origin, gives it the page,
 * and passes the messages between the page and the session. See `AppHost` and `SandboxProxy`.
 *
 * @example
 * const iframe = document.createElement("iframe")
 * panel.append(iframe)
 * yield* AppFrame.mount(iframe, session, { sandboxUrl: "https://sandbox.example.net/" })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { isObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { AppError, SameOrigin, SandboxTimeout } from "./AppError.ts"
import type { AppSession } from "./AppHost.ts"
import { currentWindow, type FrameElement, type MessageEvent } from "../shared/dom.ts"
import * as SandboxProxy from "./SandboxProxy.ts"
import type { SandboxResource, Size } from "../shared/UiMessage.ts"

/** The part of an `iframe` element that is used. */
export type Frame = FrameElement

/** Options of `mount`. */
export interface Options {
  /** The address of the sandbox proxy, at another origin than this page. */
  readonly sandboxUrl: string | URL
  /**
   * The attribute `sandbox` of the page; `allow-scripts allow-forms` by default, with which it has an opaque origin. With
   * `allow-same-origin` it has the origin of the proxy, and shares its storage with all other apps there: use it with
   * an origin per app only.
   */
  readonly sandbox?: string | undefined
  /**
   * Whether the height of the frame follows the page, up to `context.containerDimensions.maxHeight`, or 2,000 pixels.
   * `true` by default, unless the context has a fixed `height`.
   */
  readonly autoResize?: boolean | undefined
}

/** The time of the sandbox proxy to load. */
const readyTimeout = "10 seconds"

const maxHeightOfContext = 2_000

/**
 * Loads a page into an `iframe` that is a part of the document. Returns when the sandbox has the page; `session.initialized`
 * waits for its handshake. When the scope closes, the page prepares for its end, and the frame becomes empty.
 *
 * Fails with `AppError`: `SameOrigin` if the sandbox has the origin of this page, `SandboxTimeout`.
 *
 * @example
 * yield* Effect.scoped(Effect.andThen(AppFrame.mount(iframe, session, { sandboxUrl }), session.call({ year: 2026 })))
 */
export const mount = Effect.fnUntraced(function*(
  frame: Frame,
  session: AppSession,
  options: Options
): Effect.fn.Return<void, AppError, Scope.Scope> {
  const window = currentWindow()
  const url = new URL(options.sandboxUrl, window.location.origin)
  if (url.origin === window.location.origin) {
    const message = `The sandbox ${quote(url.origin)} must have another origin than the host`
    return yield* Effect.fail(new AppError(new SameOrigin({ message })))
  }
  const { policy } = session
  const added = SandboxProxy.query(policy)
  if (added !== "") url.search = url.search === "" ? added : `${url.search}&${added}`
  const ready = Deferred.makeUnsafe<void>()
  const post = (message: JsonObject): void => frame.contentWindow?.postMessage(message, url.origin)
  const { containerDimensions } = yield* session.context
  const isResized = options.autoResize ?? containerDimensions?.height === undefined
  const maxHeight = containerDimensions?.maxHeight ?? maxHeightOfContext
  const resize = ({ height }: Size): void => {
    if (isResized && height !== undefined) frame.style.height = `${Math.min(height, maxHeight)}px`
  }
  const receive = ({ data, origin, source }: MessageEvent): void => {
    if (source !== frame.contentWindow || origin !== url.origin) return
    if (isObject(data) && data["method"] === "ui/notifications/sandbox-proxy-ready") {
      Deferred.doneUnsafe(ready, Effect.void)
    } else session.receive(data)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      window.addEventListener("message", receive)
      frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms")
      frame.setAttribute("allow", policy.allow)
      frame.setAttribute("referrerpolicy", "no-referrer")
      frame.setAttribute("src", url.href)
    }),
    () =>
      Effect.sync(() => {
        window.removeEventListener("message", receive)
        frame.setAttribute("src", "about:blank")
      })
  )
  yield* session.attach(post, resize)
  yield* Effect.addFinalizer(() => session.teardown())
  yield* Effect.timeoutOrElse(Deferred.await(ready), {
    duration: readyTimeout,
    orElse: () =>
      Effect.fail(
        new AppError(
          new SandboxTimeout({ message: `The sandbox ${quote(url.origin)} was not ready within ${readyTimeout}` })
        )
      )
  })
  const params: SandboxResource = {
    html: session.html,
    ...(options.sandbox === undefined ? undefined : { sandbox: options.sandbox }),
    csp: policy.csp,
    permissions: Object.fromEntries(policy.permissions.map((one) => [one, {}]))
  }
  post({ jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params })
})
