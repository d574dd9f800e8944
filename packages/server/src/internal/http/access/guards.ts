/**
 * Validates the `Host`, `Origin` and media types of each HTTP request before its body is read.
 *
 * A header value that has passed is remembered, since a client sends the same values with every request. Only the
 * latest is stored.
 */
import { isLoopback } from "@skein/protocol/Hostname"
import * as McpError from "@skein/protocol/McpError"
import { logValue } from "@skein/protocol/Text"
import type { HeadFault, HttpRequest } from "../messages/adapter.ts"
import { transferFault } from "../messages/head.ts"
import type { Resolved } from "./options.ts"
import { fromError, type HttpRefusal, invalid } from "../messages/refusals.ts"

// A name or an IPv6 literal, and a port if there is one. A `Host` has no user and no path. A comma would be valid, but is
// what an adapter joins two lines with.
const authority = /^(\[[0-9a-f:.]+\]|[a-z0-9\-._~!$&'()*+;=%]+)(?::(\d{0,5}))?$/

// `application/json` with any parameters: "no charset parameter is defined […] adding one really has no effect" (RFC
// 8259, 11). Each space can be matched in one way only, so that the time is linear.
const jsonType =
  /^application\/json(?:[ \t]*;(?:[ \t]*[!#$%&'*+.^_`|~\w-]+=(?:[!#$%&'*+.^_`|~\w-]+|"(?:[^"\\]|\\.)*"))?)*[ \t]*$/i

const originOf = /^([a-z][a-z0-9+.-]*):\/\/(.+)$/

/** The name without a trailing dot. */
const relative = (name: string): string => name.endsWith(".") ? name.slice(0, -1) : name

// The dot is one that the browser resolved. Pages of names below `localhost` must be listed: Safari asks the network for
// them.
const isOfLoopback = (origin: string): boolean => {
  const parts = originOf.exec(origin)
  const name = parts === null ? undefined : authority.exec(parts[2]!)?.[1]
  return name !== undefined && isLoopback(relative(name))
}

/** An origin as browsers write it: in lower case and without the default port of its scheme. */
const canonical = (origin: string): string => {
  const lower = origin.toLowerCase()
  const written = URL.canParse(lower) ? new URL(lower).origin : "null"
  return written === "null" ? lower : written
}

// The most media ranges that are read. Real clients list fewer, and a longer list must not cost more time.
const maxRanges = 64

/** The preference of a client for a media type, by the most specific range that matches it: 0 if it is not accepted. */
const quality = (accept: string, type: string): number => {
  const any = `${type.slice(0, type.indexOf("/"))}/*`
  let found = 0
  let specific = 0
  for (const part of accept.toLowerCase().split(",", maxRanges)) {
    const [range = "", ...params] = part.split(";")
    const name = range.trim()
    const rank = name === type ? 3 : name === any ? 2 : name === "*/*" ? 1 : 0
    if (rank === 0 || rank < specific) continue
    const q = params.find((param) => param.trimStart().startsWith("q="))
    const value = q === undefined ? 1 : Number(q.trim().slice(2))
    found = Number.isFinite(value) ? Math.max(value, rank === specific ? found : 0) : found
    specific = rank
  }
  return found
}

// The reader is usually the author who has just deployed the server: the message names the option, and contains nothing
// of the request.
const wrongHost = invalid(403, "Forbidden: the Host of this request is not among the allowedHosts of the server")
const wrongOrigin = invalid(403, "Forbidden: the Origin of this request is not among the allowedOrigins of the server")
const wrongType = invalid(415, "Unsupported Media Type: the body is application/json")
const encoded = invalid(415, "Unsupported Media Type: the body is not compressed", { "accept-encoding": "identity" })
const wrongAccept = invalid(406, "Not Acceptable: accept both application/json and text/event-stream")
const noStream = invalid(406, "Not Acceptable: accept text/event-stream")

const wrongUrl = invalid(403, "Forbidden: the host of this URL is not among the allowedHosts of the server")

const close = { connection: "close" }

const headFaults: { readonly [fault in HeadFault]: HttpRefusal } = {
  Host: invalid(400, "Bad Request: the request needs exactly one valid Host"),
  Repeated: invalid(400, "Bad Request: a header that has one value is repeated"),
  Mirrored: fromError(McpError.headerMismatch("a header that has one value is repeated")),
  TooManyHeaders: invalid(431, "Request Header Fields Too Large: there are too many headers"),
  Framing: invalid(400, "Bad Request: the length of the body is ambiguous", close),
  Coding: invalid(501, "Not Implemented: the transfer coding is not chunked", close),
  RequestLine: invalid(400, "Bad Request: the request line is not valid"),
  Expectation: invalid(417, "Expectation Failed: the server supports 100-continue only")
}

const quote = (what: string, value: string | undefined): string =>
  value === undefined ? `without a ${what}` : `with the ${what} ${logValue(value)}`

/** Describes a request that an option would allow, and names the option; undefined for any other refusal. */
export const describeSource = (refused: HttpRefusal, request: HttpRequest): string | undefined => {
  const describe = (source: string, option: "allowedHosts" | "allowedOrigins"): string =>
    `${source}, which is not among the ${option} of the server: add it there to allow it`
  if (refused === wrongHost) return describe(quote("Host", request.header("host")), "allowedHosts")
  if (refused === wrongUrl) return describe(quote("URL host", request.urlHost), "allowedHosts")
  if (refused === wrongOrigin) return describe(quote("Origin", request.header("origin")), "allowedOrigins")
  return undefined
}

// The most different warnings about refused requests. Their values come from clients.
const maxWarnings = 16

/** Tells which of the warnings about refused requests are new. */
export class Warnings {
  readonly #texts = new Set<string>()

  /** Whether a text is new, and is to be logged as a warning. */
  isNew(text: string): boolean {
    if (this.#texts.has(text) || this.#texts.size >= maxWarnings) return false
    this.#texts.add(text)
    return true
  }
}

const isIdentity = (encoding: string): boolean =>
  encoding.toLowerCase().split(",").every((coding) => coding.trim() === "" || coding.trim() === "identity")

/** The names that requests may come from. */
export type Sources = Pick<Resolved, "allowedHosts" | "allowedOrigins">

/** The guards of an endpoint. Each returns the reason to refuse a request, or undefined. */
export class Guards {
  readonly #hosts: ReadonlySet<string> | undefined
  readonly #origins: ReadonlySet<string> | undefined
  readonly #local: boolean
  #host: string | undefined
  #urlHost: string | undefined
  #origin: string | undefined
  #type = "application/json"
  #accept = "application/json, text/event-stream"

  constructor({ allowedHosts, allowedOrigins }: Sources) {
    this.#hosts = allowedHosts === "any" ? undefined : new Set(allowedHosts.map((host) => host.toLowerCase()))
    this.#local = allowedOrigins === "loopback"
    this.#origins = typeof allowedOrigins === "string" ? undefined : new Set(allowedOrigins.map(canonical))
  }

  /**
   * Validates the head, and `Host`, which a page after DNS rebinding cannot choose. "A server MUST respond with a 400
   * status code to […] a Host header field with an invalid field value" (RFC 9112, 3.2).
   */
  host(request: HttpRequest): HttpRefusal | undefined {
    const { headFault, urlHost } = request
    if (headFault !== undefined) return headFaults[headFault]
    const host = request.header("host")
    if (host === undefined ? this.#hosts !== undefined : host !== this.#host) {
      if (host === undefined) return wrongHost
      const parts = authority.exec(host.toLowerCase())
      if (parts === null) return headFaults.Host
      if (!this.#serves(parts)) return wrongHost
      this.#host = host
    }
    if (urlHost !== undefined && urlHost !== host && urlHost !== this.#urlHost) {
      const parts = authority.exec(urlHost.toLowerCase())
      if (parts === null || !this.#serves(parts)) return wrongUrl
      this.#urlHost = urlHost
    }
    return undefined
  }

  /**
   * Validates `Origin`: "Servers MUST validate the `Origin` header on all incoming connections"; "if the `Origin` header
   * is present and invalid, servers MUST respond with HTTP 403".
   */
  origin(request: HttpRequest): HttpRefusal | undefined {
    const origin = request.header("origin")
    if (origin === undefined || origin === this.#origin) return undefined
    if (this.#local ? !isOfLoopback(origin.toLowerCase()) : this.#origins?.has(origin.toLowerCase()) === false) {
      return wrongOrigin
    }
    this.#origin = origin
    return undefined
  }

  #serves([, host, port]: RegExpExecArray): boolean {
    if (this.#hosts === undefined) return true
    const name = relative(host!)
    return this.#hosts.has(name) || this.#hosts.has(`${name}:${port ?? ""}`)
  }

  /**
   * Validates the type of a posted body: JSON without compression. A web page cannot send that without a preflight
   * (2026-07-28, streamable HTTP, sending messages).
   */
  content(request: HttpRequest): HttpRefusal | undefined {
    const type = request.header("content-type")
    if (type !== this.#type) {
      if (type === undefined || !jsonType.test(type)) return wrongType
      this.#type = type
    }
    const coding = request.header("content-length") === undefined ? request.header("transfer-encoding") : undefined
    const fault = coding === undefined ? undefined : transferFault(coding)
    if (fault !== undefined) return headFaults[fault]
    const encoding = request.header("content-encoding")
    return encoding === undefined || encoding === "identity" || isIdentity(encoding) ? undefined : encoded
  }

  /**
   * "The client MUST include an `Accept` header, listing both `application/json` and `text/event-stream`". Without the
   * header, a client accepts any type.
   */
  accept(request: HttpRequest): HttpRefusal | undefined {
    const accept = request.header("accept")
    if (accept === undefined || accept === this.#accept) return undefined
    if (quality(accept, "application/json") === 0 || quality(accept, "text/event-stream") === 0) return wrongAccept
    this.#accept = accept
    return undefined
  }

  /**
   * Validates `Accept` of a GET: "listing `text/event-stream` as a supported content type" (2025-11-25, listening for
   * messages).
   */
  acceptStream(request: HttpRequest): HttpRefusal | undefined {
    const accept = request.header("accept")
    return accept === undefined || quality(accept, "text/event-stream") > 0 ? undefined : noStream
  }
}
