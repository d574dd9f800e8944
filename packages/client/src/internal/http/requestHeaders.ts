/**
 * The headers that the protocol defines.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { Headers } from "@skein/runtime/Connection"

/** The headers of each POST request. */
export const posted: Headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" }

/**
 * The headers of a request in a stateless revision. They repeat parts of the request (2026-07-28, streamable HTTP,
 * request metadata).
 */
export const requestHeaders = (request: JsonRpc.Request, version: string, extra: Headers | undefined): Headers => {
  const key = Method.request(request.method, Revision.latest)?.nameHeader
  const name = key === undefined ? undefined : request.params?.[key]
  return {
    ...posted,
    ...Header.standard({
      protocolVersion: version,
      method: request.method,
      name: typeof name === "string" ? name : undefined
    }),
    ...extra
  }
}

/** The headers of a notification in a stateless revision. No revision defines any for it. */
export const notificationHeaders = (notification: JsonRpc.Notification, version: string): Headers => ({
  ...posted,
  ...Header.standard({ protocolVersion: version, method: notification.method })
})

// 4,096 characters are enough for any kind of token. There is no option: the id is sent with every request, and most
// servers and proxies refuse headers with a longer one.
const sessionId = /^[\x21-\x7e]{1,4096}$/
const version = /^[\x21-\x7e]{1,64}$/

/** Whether a session id is valid: "visible ASCII characters (ranging from 0x21 to 0x7E)", and at most 4,096 of them. */
export const isSessionId = (id: string): boolean => sessionId.test(id)

/** Whether a revision that a server names can be sent in a header. */
export const isVersion = (value: unknown): value is string => typeof value === "string" && version.test(value)
