/**
 * Validates the headers that repeat parts of a body (2026-07-28, streamable HTTP, server validation).
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Caller } from "@skein/runtime/RequestContext"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Catalog, ToolEntry } from "../../../Catalog.ts"
import type { HttpRequest } from "./adapter.ts"

/** The member of the params that `Mcp-Name` repeats, by method. */
const named: ReadonlyMap<string, string> = new Map(
  Method.requests.flatMap(({ name, nameHeader }) => nameHeader === undefined ? [] : [[name, nameHeader] as const])
)

const ofMethod = (header: string | undefined, method: string, required: boolean): string | undefined =>
  header === method || (header === undefined && !required)
    ? undefined
    : Header.mismatch(Header.names.method, header, method)

const ofName = (header: string | undefined, name: unknown, required: boolean): string | undefined => {
  const text = typeof name === "string" ? name : undefined
  return header === undefined && !required ? undefined : Header.mismatch(Header.names.name, header, text)
}

/**
 * "A header value contains invalid characters", or the header is repeated, so that a gateway may have read another
 * value; whether or not it belongs to a parameter of the tool.
 */
const malformed = (request: HttpRequest): string | undefined => {
  const { params } = request
  if (params === undefined) return undefined
  const bad = params.find((key) => Header.decode(request.header(key)!) === undefined)
  if (bad !== undefined) return `${bad} header is malformed`
  return new Set(params).size < params.length ? "a header that has one value is repeated" : undefined
}

/** A tool that the caller may see; without a caller, a tool that all callers may see. */
const seen = (tools: Catalog["Service"]["tools"], name: string, caller: Caller | undefined): ToolEntry | undefined => {
  if (caller !== undefined) return tools.seen(name, caller)
  const tool = tools.get(name)
  return tool?.visible === undefined ? tool : undefined
}

/**
 * The mismatch between a message and its headers, as `McpError.headerMismatch` takes it; undefined if there is none.
 * Unless headers are `required`, only those that are present are compared. A tool that the caller may not see has no
 * parameters.
 */
export const mismatch = (
  { tools }: Catalog["Service"],
  { method, params }: JsonRpc.Request | JsonRpc.Notification,
  request: HttpRequest,
  caller: Caller | undefined,
  required: boolean
): string | undefined => {
  const wrong = ofMethod(request.header(Header.keys.method), method, required)
  if (wrong !== undefined) return wrong
  const member = named.get(method)
  if (member === undefined) return undefined
  const name = params?.[member]
  const wrongName = ofName(request.header(Header.keys.name), name, required)
  if (wrongName !== undefined || method !== "tools/call") return wrongName
  const bad = malformed(request)
  if (bad !== undefined || typeof name !== "string") return bad
  const headers = seen(tools, name, caller)?.headers
  if (headers === undefined || headers.length === 0) return undefined
  const compared = required ? headers : headers.filter(({ key }) => request.header(key) !== undefined)
  return XMcpHeader.mismatch(compared, params?.["arguments"], (key) => request.header(key))
}

/**
 * The same for a batch: no header can repeat the methods of several messages, so a batch with these headers, or that
 * requires them, is invalid.
 */
export const mismatchOfBatch = (
  { members }: JsonRpc.Batch<JsonRpc.Message | JsonRpc.Invalid>,
  request: HttpRequest,
  required: boolean
): string | undefined => {
  const sent = [Header.keys.method, Header.keys.name].find((key) => request.header(key) !== undefined) ??
    request.params?.[0]
  if (sent !== undefined) return `${sent} header cannot describe the messages of a batch`
  return required && members.some(({ _tag }) => _tag === "Request")
    ? `${Header.names.method} header is required, and cannot describe the messages of a batch`
    : undefined
}
