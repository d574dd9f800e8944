/**
 * The HTTP headers of the Streamable HTTP transport, and the encoding of header values that mirror a request's body
 * (2026-07-28, basic/transports/streamable-http, request metadata).
 *
 * This module does not limit the length of a value. The HTTP server limits its headers: 16 KiB in Node. Every function
 * takes linear time.
 */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { clip, wellFormed } from "./Text.ts"

/** The names of the headers as the specification writes them. */
export const names = {
  protocolVersion: "MCP-Protocol-Version",
  method: "Mcp-Method",
  name: "Mcp-Name",
  sessionId: "Mcp-Session-Id",
  lastEventId: "Last-Event-ID"
} as const

/** The names in lower case, for lookups: header names are case-insensitive. */
export const keys = {
  protocolVersion: "mcp-protocol-version",
  method: "mcp-method",
  name: "mcp-name",
  sessionId: "mcp-session-id",
  lastEventId: "last-event-id"
} as const

/** The start of the name of a header that mirrors a tool parameter (see `XMcpHeader`). */
export const paramPrefix = "Mcp-Param-"

/** {@link paramPrefix} in lower case. */
export const paramKeyPrefix = "mcp-param-"

/**
 * Returns the value of a header by its name in lower case. Repeated headers must be joined by a comma, as HTTP servers
 * do.
 */
export type Lookup = (key: string) => string | undefined

const prefix = "=?base64?"
const suffix = "?="

// Printable ASCII: a header can contain it as it is, if it neither starts nor ends with a space.
const isPlain = (value: string): boolean => /^[\x20-\x7e]*$/.test(value)

/**
 * Encodes a value for `Mcp-Name` or `Mcp-Param-*`. Printable ASCII without a space at either end stays as it is. Any
 * other value, and one that looks like the sentinel, becomes `=?base64?…?=` over its UTF-8.
 *
 * @example
 * Header.encode("add") // add
 * Header.encode("héllo") // =?base64?aMOpbGxv?=
 */
export const encode = (value: string): string =>
  isPlain(value) && !value.startsWith(" ") && !value.endsWith(" ") &&
    !(value.startsWith(prefix) && value.endsWith(suffix))
    ? value
    : `${prefix}${Base64.encode(value)}${suffix}`

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** Removes spaces and tabs at both ends, as HTTP parsers do. */
const trim = (value: string): string => {
  let start = 0
  let end = value.length
  while (start < end && isBlank(value.charCodeAt(start))) start++
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--
  return start === 0 && end === value.length ? value : value.slice(start, end)
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Decodes a value of `Mcp-Name` or `Mcp-Param-*`. A value without both markers of the sentinel (`=?base64?` and `?=`,
 * in lower case) is taken literally.
 *
 * Returns `undefined` for a malformed value: one with characters that a header may not contain, or with base64 that
 * does not decode (padding is required) or is not UTF-8.
 */
export const decode = (header: string): string | undefined => {
  const value = trim(header)
  if (/[^\t\x20-\x7e]/.test(value)) return undefined
  if (value.length < prefix.length + suffix.length || !value.startsWith(prefix) || !value.endsWith(suffix)) return value
  const bytes = Base64.decode(value.slice(prefix.length, -suffix.length))
  if (Result.isFailure(bytes)) return undefined
  try {
    return utf8.decode(bytes.success)
  } catch {
    return undefined
  }
}

const decimal = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Whether a decoded header equals a value of the body. Numbers are compared as numbers: `42.0` equals `42`. */
const equals = (header: string, body: string | number | boolean): boolean => {
  switch (typeof body) {
    case "string":
      // A surrogate without a partner was encoded as U+FFFD.
      return header === body || header === wellFormed(body)
    case "boolean":
      return header === (body ? "true" : "false")
    case "number":
      return decimal.test(header) && Number(header) === body && (!Number.isInteger(body) || Number.isSafeInteger(body))
  }
}

// The quotation marks are those of the example on the specification's page.
const quote = (value: string): string => `'${clip(value, 64)}'`

/**
 * Compares a header with the value of the body that it mirrors. Returns `undefined` where they agree, else a
 * description of the problem for `McpError.headerMismatch`.
 *
 * A body value of `undefined` requires the header to be absent. `Mcp-Name` and `Mcp-Param-*` are decoded first; the
 * method and the version are compared literally. The description quotes at most 64 characters of each value.
 *
 * @example
 * Header.mismatch("Mcp-Name", "add", "sub") // Mcp-Name header value 'add' does not match body value 'sub'
 */
export const mismatch = (
  name: string,
  header: string | undefined,
  body: string | number | boolean | undefined
): string | undefined => {
  if (header === undefined) return body === undefined ? undefined : `${name} header is missing`
  if (body === undefined) return `${name} header has no corresponding body value`
  const literal = name === names.method || name === names.protocolVersion
  const value = literal ? trim(header) : decode(header)
  if (value === undefined) return `${name} header is malformed`
  return equals(value, body)
    ? undefined
    : `${name} header value ${quote(value)} does not match body value ${quote(String(body))}`
}

/** The values of a request's body that the standard headers mirror. */
export interface Mirrored {
  readonly protocolVersion: string
  readonly method: string
  /** The name of the target: `params.name`, `params.uri` or `params.taskId`, depending on the method. */
  readonly name?: string | undefined
}

/**
 * Makes the standard headers of a request: the version, the method and, where the method has a target, its name.
 *
 * @example
 * Header.standard({ protocolVersion: "2026-07-28", method: "tools/call", name: "add" })
 */
export const standard = (body: Mirrored): Record<string, string> => {
  const headers: Record<string, string> = {
    [names.protocolVersion]: body.protocolVersion,
    [names.method]: body.method
  }
  if (body.name !== undefined) headers[names.name] = encode(body.name)
  return headers
}
