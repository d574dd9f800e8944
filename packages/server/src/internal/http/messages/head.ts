/**
 * The head of a request, for all adapters. On Node it is validated by the header lines that `node:http` has parsed.
 * Node's own view, `message.headers`, drops lines: the second `Host` or `Authorization`, and all lines after its limit.
 */
import { cut } from "@skein/protocol/Text"
import type { HeadFault } from "./adapter.ts"

/** The parts of an `IncomingMessage` that are read. */
export interface Message {
  readonly rawHeaders: ReadonlyArray<string>
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly socket: object | undefined
  /** The connection was taken from the parser, which reads no further request. */
  readonly upgrade?: boolean | undefined
}

/** The headers that have one value, each with a bit: in lower case, and as most clients write them. */
const singletons: ReadonlyMap<string, number> = new Map(
  [
    "host",
    "content-length",
    "transfer-encoding",
    "expect",
    "origin",
    "content-type",
    "authorization",
    "mcp-session-id",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name"
  ].flatMap((name, index) => {
    const title = name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
    return [name, title, title.replace("Mcp", "MCP"), title.replace("Id", "ID")].map((one) =>
      [one, 1 << index] as const
    )
  })
)
const host = 1
const contentLength = 2
const transferEncoding = 4
const expect = 8
/** The first header that repeats a part of the body, and those after it. */
const mirrored = 512
/** Headers whose values are lists. */
const lists = transferEncoding | expect

/** For each length, the bits of the first letters of these names: most other headers are not looked up. */
const letters: ReadonlyArray<number> = Array.from(
  { length: 32 },
  (_, length) =>
    [...singletons.keys()].filter((name) => name.length === length)
      .reduce((bits, name) => bits | 1 << (name.charCodeAt(0) & 31), 0)
)

const isParam = (name: string): boolean =>
  name.length > 10 && name.charCodeAt(3) === 45 && cut(name, 10).toLowerCase() === "mcp-param-"

/** The names of the `Mcp-Param-*` headers in lower case, in the order of their lines; undefined if there are none. */
export const paramsOf = (rawHeaders: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  let params: Array<string> | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (isParam(name)) (params ??= []).push(name.toLowerCase())
  }
  return params
}

/**
 * The number of names and values from which Node drops headers: twice `maxHeadersCount` of the server, and 2,000 by
 * default. 0 means that it drops none. Only the server has this number, and `socket.server` has no documentation.
 */
const maxRaw = (socket: object | undefined): number => {
  const { server } = (socket ?? {}) as { readonly server?: { readonly maxHeadersCount?: unknown } | undefined }
  const count = server?.maxHeadersCount
  return typeof count !== "number" ? 2_000 : count > 0 ? 2 * count : Infinity
}

const members = (list: string): ReadonlyArray<string> =>
  list.toLowerCase().split(",").map((member) => member.trim()).filter((member) => member !== "")

/**
 * The fault of a `Transfer-Encoding`. "If […] the chunked transfer coding is not the final encoding, […] the server MUST
 * respond with the 400" (RFC 9112, 6.3). "A server that receives a request message with a transfer coding it does not
 * understand SHOULD respond with 501" (6.1). `chunked` applies once.
 */
export const transferFault = (value: string): HeadFault | undefined => {
  if (value === "chunked") return undefined
  const codings = members(value)
  if (codings.at(-1) !== "chunked") return "Framing"
  if (codings.length === 1) return undefined
  return codings.indexOf("chunked") === codings.length - 1 ? "Coding" : "Framing"
}

/** A target in absolute form: its authority and its path. */
export const absolute = /^https?:\/\/([^/?#]*)([^?#]*)(?:\?[^#]*)?$/i

/**
 * The URL of a `Request`: its host, its path and its query. By the standard it always has a path, and no user.
 */
export const url = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?/i

/**
 * The host in the URL of a `Request`, which may come from its target or from its `Host`. Next.js writes the host that it
 * listens on into each URL, and passes a subclass with `nextUrl`.
 */
export const urlHostOf = (request: object, parts: RegExpExecArray | null): string | undefined =>
  "nextUrl" in request ? undefined : parts?.[1]

/**
 * Whether a target has one of the forms of its method. Only OPTIONS has the asterisk form. "A recipient SHOULD parse for
 * userinfo and treat its presence as an error" (RFC 9110, 4.2.4).
 */
const isTarget = (target: string, method: string | undefined): boolean => {
  if (target.charCodeAt(0) === 47) return !target.includes("#")
  if (target === "*") return method === "OPTIONS"
  const authority = absolute.exec(target)?.[1]
  return authority !== undefined && authority !== "" && !authority.includes("@")
}

const valueOf = ({ headers }: Message, name: string): string => String(headers[name] ?? "")

const repeated = (bit: number): HeadFault =>
  bit === host ? "Host" : bit === contentLength ? "Framing" : bit >= mirrored ? "Mirrored" : "Repeated"

/** The fault of a head, if it has one. */
export const faultOf = (message: Message): HeadFault | undefined => {
  const { httpVersionMajor: major, httpVersionMinor: minor, rawHeaders } = message
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (((letters[name.length] ?? 0) >>> (name.charCodeAt(0) & 31) & 1) === 0) continue
    const bit = singletons.get(name) ?? singletons.get(name.toLowerCase())
    if (bit === undefined) continue
    if ((seen & bit & ~lists) !== 0) return repeated(bit)
    seen |= bit
  }
  if (major > 1) {
    // "A server SHOULD treat a request as malformed if it contains a Host header field that identifies an entity that
    // differs from the entity in the ":authority" pseudo-header field" (RFC 9113, 8.3.1).
    const authority = message.headers[":authority"]
    return (seen & host) !== 0 && authority !== undefined && authority !== valueOf(message, "host") ? "Host" : undefined
  }
  if (rawHeaders.length >= maxRaw(message.socket)) return "TooManyHeaders"
  if (major < 1 || !isTarget(message.url ?? "/", message.method)) return "RequestLine"
  // "A server MUST respond with a 400 status code to any HTTP/1.1 request message that lacks a Host header field and to
  // any request message that contains more than one" (RFC 9112, 3.2).
  if (minor > 0 && message.headers["host"] === undefined) return "Host"
  if ((seen & transferEncoding) !== 0) {
    // "A server that receives an HTTP/1.0 message containing a Transfer-Encoding header field MUST treat the message as
    // if the framing is faulty" (RFC 9112, 6.1).
    if (minor === 0 || (seen & contentLength) !== 0) return "Framing"
    const fault = transferFault(valueOf(message, "transfer-encoding"))
    if (fault !== undefined) return fault
  }
  // "A server that receives a 100-continue expectation in an HTTP/1.0 request MUST ignore that expectation" (RFC 9110,
  // 10.1.1).
  const isUnmet = (seen & expect) !== 0 && minor > 0 &&
    members(valueOf(message, "expect")).some((member) => member !== "100-continue")
  return isUnmet ? "Expectation" : undefined
}

/** The connections on which an answer with `Connection: close` was sent. */
const ended = /* @__PURE__ */ new WeakSet<object>()

/**
 * Marks the connection of an answer with `Connection: close`. "The server MUST NOT process any further requests received
 * on that connection" (RFC 9112, 9.6), but Node parses and emits them until the connection is closed.
 */
export const endConnection = ({ httpVersionMajor, socket }: Pick<Message, "socket" | "httpVersionMajor">): void => {
  if (httpVersionMajor === 1 && socket !== undefined) ended.add(socket)
}

/** Whether a request follows an answer with `Connection: close` on its connection. */
export const isAfterEnd = ({ socket }: Pick<Message, "socket">): boolean => socket !== undefined && ended.has(socket)
