/**
 * The HTTP headers of the Streamable HTTP transport, and the encoding of values that mirror a request's body
 * (2026-07-28, streamable HTTP, request metadata).
 *
 * Nothing here bounds a value: the HTTP server's own limit on headers does, 16 KiB in Node. All work is linear.
 */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { wellFormed } from "./internal/percent.ts"
import { clip } from "./internal/clip.ts"

/** The headers' names as the specification writes them. */
export const names = {
  protocolVersion: "MCP-Protocol-Version",
  method: "Mcp-Method",
  name: "Mcp-Name",
  sessionId: "Mcp-Session-Id",
  lastEventId: "Last-Event-ID"
} as const

/** The same names in lower case, to look them up with: header names are case-insensitive. */
export const keys = {
  protocolVersion: "mcp-protocol-version",
  method: "mcp-method",
  name: "mcp-name",
  sessionId: "mcp-session-id",
  lastEventId: "last-event-id"
} as const

/** What the name of a mirrored tool parameter starts with; {@link paramKeyPrefix} is the same in lower case. */
export const paramPrefix = "Mcp-Param-"

/** {@link paramPrefix} in lower case. */
export const paramKeyPrefix = "mcp-param-"

/** Reads a header by its name in lower case. Repeated headers are joined by a comma, as HTTP servers do. */
export type Lookup = (key: string) => string | undefined

const prefix = "=?base64?"
const suffix = "?="

// Printable ASCII and nothing else: what may stand in a header as it is, once its ends are not blank.
const isPlain = (value: string): boolean => {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code < 0x20 || code > 0x7e) return false
  }
  return true
}

/**
 * Encodes a value of `Mcp-Name` or `Mcp-Param-*`. What is printable ASCII and neither starts nor ends with a space stands as it
 * is; everything else, and what looks like the sentinel itself, becomes `=?base64?…?=` over its UTF-8.
 */
export const encode = (value: string): string =>
  isPlain(value) && !value.startsWith(" ") && !value.endsWith(" ") &&
    !(value.startsWith(prefix) && value.endsWith(suffix))
    ? value
    : `${prefix}${Base64.encode(value)}${suffix}`

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** Strips what HTTP parsers strip: spaces and tabs at both ends. */
const trim = (value: string): string => {
  let start = 0
  let end = value.length
  while (start < end && isBlank(value.charCodeAt(start))) start++
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--
  return start === 0 && end === value.length ? value : value.slice(start, end)
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Decodes a value of `Mcp-Name` or `Mcp-Param-*`; `undefined` where it is malformed: characters that a header may not hold, or
 * base64 that does not decode (its padding is required) or is not UTF-8. Without both markers, in lower case, a value is taken
 * literally.
 */
export const decode = (header: string): string | undefined => {
  const value = trim(header)
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if ((code < 0x20 && code !== 0x09) || code > 0x7e) return undefined
  }
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

/** Whether a decoded header says the same as a value of the body. Numbers are compared as numbers: `42.0` is `42`. */
const equals = (header: string, body: string | number | boolean): boolean => {
  switch (typeof body) {
    case "string":
      // A surrogate without its partner was encoded as U+FFFD.
      return header === body || header === wellFormed(body)
    case "boolean":
      return header === (body ? "true" : "false")
    case "number":
      return decimal.test(header) && Number(header) === body && (!Number.isInteger(body) || Number.isSafeInteger(body))
  }
}

// How much of a value a refusal quotes, in characters.
const quoted = 64

const quote = (value: string): string => `'${clip(value, quoted)}'`

/**
 * Compares a header with the body value that it mirrors: `undefined` where they agree, otherwise what is wrong, as
 * `McpError.headerMismatch` takes it. A body value of `undefined` asks that the header be absent. `Mcp-Name` and `Mcp-Param-*`
 * are decoded first; the method and the version are taken literally. Values are quoted up to 64 characters.
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

/** What the standard headers mirror. `name` is what names the target: `params.name`, `params.uri` or `params.taskId`. */
export interface Mirrored {
  readonly protocolVersion: string
  readonly method: string
  readonly name?: string | undefined
}

/** The standard headers of a request: the version, the method and, where the method has one, the name of its target. */
export const standard = (body: Mirrored): Record<string, string> => {
  const headers: Record<string, string> = {
    [names.protocolVersion]: body.protocolVersion,
    [names.method]: body.method
  }
  if (body.name !== undefined) headers[names.name] = encode(body.name)
  return headers
}

/**
 * Compares the standard headers with the body: the first thing that is wrong, or `undefined`. All three are required; where
 * `name` is `undefined`, `Mcp-Name` is not looked at, as no clause gives it a meaning there.
 */
export const standardMismatch = (lookup: Lookup, body: Mirrored): string | undefined =>
  mismatch(names.protocolVersion, lookup(keys.protocolVersion), body.protocolVersion) ??
    mismatch(names.method, lookup(keys.method), body.method) ??
    (body.name === undefined ? undefined : mismatch(names.name, lookup(keys.name), body.name))
