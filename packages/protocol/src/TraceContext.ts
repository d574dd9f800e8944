/**
 * The trace context of a request: its position in a trace that started elsewhere.
 *
 * "The keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation. When
 * present, their values MUST follow W3C Trace Context and W3C Baggage formats respectively" (2026-07-28, basic/index,
 * `_meta`). The HTTP headers of the same names are the context of the HTTP request, which can differ: an HTTP request
 * may be repeated, and may carry several messages.
 *
 * A malformed value is ignored, as W3C Trace Context requires, and never fails a request. Every function takes linear
 * time.
 *
 * @example
 * TraceContext.parseParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
 */
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** The span of the sender, as in `traceparent`. */
export interface Parent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string
  /** Whether the sender may have recorded the span. */
  readonly sampled: boolean
}

/** The trace context of a request. */
export interface TraceContext {
  readonly parent: Parent | undefined
  /** Data of tracing systems, as received. Present only with a `parent`. */
  readonly tracestate: string | undefined
  /** Data of the application, as received. */
  readonly baggage: string | undefined
}

/**
 * The most characters of a `tracestate`; a longer one is ignored: "vendors SHOULD propagate at least 512 characters"
 * (W3C Trace Context, 3.3.1.5).
 */
export const maxTracestateLength = 512
/**
 * The most bytes of a `baggage`; a longer one is ignored. A platform must propagate 8,192 bytes (W3C Baggage, 3.3.2).
 */
export const maxBaggageBytes = 8192
/** The most members of a `tracestate`; one with more is ignored (W3C Trace Context, 3.3.1.1). */
export const maxTracestateMembers = 32
/** The most members of a `baggage`; one with more is ignored (W3C Baggage, 3.3.2). */
export const maxBaggageMembers = 64

// The most characters of a `traceparent`. A future version may have further fields after the flags.
const maxTraceparent = 256
const traceparent = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const zero = /^0+$/

/**
 * Reads a `traceparent`. Version 00 must match exactly. A later version may have more characters after the flags.
 * Version `ff` is invalid (W3C Trace Context, 3.2.2 and 4.2). Returns `undefined` for an invalid value.
 */
export const parseParent = (value: unknown): Parent | undefined => {
  if (typeof value !== "string" || value.length < 55 || value.length > maxTraceparent) return undefined
  const found = traceparent.exec(value)
  if (found === null) return undefined
  const [, version, traceId, spanId, flags, rest] = found as unknown as ReadonlyArray<string>
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined
  if (zero.test(traceId!) || zero.test(spanId!)) return undefined
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & 1) === 1 }
}

/** Writes a `traceparent` of version 00. */
export const formatParent = ({ sampled, spanId, traceId }: Parent): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

const stateKey = /^[a-z\d][\w*/@-]{0,255}$/
// Printable ASCII without comma and equals sign, and no space at the end.
const stateValue = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

const isStateMember = (text: string): boolean => {
  const member = text.trim()
  const at = member.indexOf("=")
  const key = member.slice(0, at)
  return member === "" ||
    (at > 0 && stateKey.test(key) && key === key.toLowerCase() && stateValue.test(member.slice(at + 1)))
}

// A token, an equals sign, and a value of percent-encoded octets. Properties after semicolons consist of the same
// characters.
const baggageMember = /^[\t ]*[!#$%&'*+.^_`|~\dA-Za-z-]+[\t ]*=[\t\x20\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]*$/

const isBaggageMember = (text: string): boolean => baggageMember.test(text)

/** Returns a list of members if it is valid and within the bounds. */
const readList = (
  value: unknown,
  maxLength: number,
  maxMembers: number,
  isMember: (text: string) => boolean
): string | undefined => {
  if (typeof value !== "string" || value.length > maxLength || value.trim() === "") return undefined
  const members = value.split(",")
  return members.length <= maxMembers && members.every(isMember) ? value : undefined
}

/** Reads the three values of a trace context. Returns `undefined` where all of them are absent or invalid. */
export const parse = (values: {
  readonly traceparent: unknown
  readonly tracestate: unknown
  readonly baggage: unknown
}): TraceContext | undefined => {
  const parent = parseParent(values.traceparent)
  // "If the vendor failed to parse traceparent, it MUST NOT attempt to parse tracestate."
  const tracestate = parent && readList(values.tracestate, maxTracestateLength, maxTracestateMembers, isStateMember)
  const baggage = readList(values.baggage, maxBaggageBytes, maxBaggageMembers, isBaggageMember)
  return parent === undefined && baggage === undefined ? undefined : { parent, tracestate, baggage }
}

/** Reads the trace context in the `_meta` of a request's params. */
export const fromParams = (params: JsonObject | undefined): TraceContext | undefined => {
  const meta = params?.["_meta"]
  return isObject(meta)
    ? parse({ traceparent: meta["traceparent"], tracestate: meta["tracestate"], baggage: meta["baggage"] })
    : undefined
}

/** Reads the trace context in the headers of an HTTP request. `header` returns a header by its name in lower case. */
export const fromHeaders = (header: (name: string) => string | undefined): TraceContext | undefined =>
  parse({ traceparent: header("traceparent"), tracestate: header("tracestate"), baggage: header("baggage") })
