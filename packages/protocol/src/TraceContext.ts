/**
 * The trace context of a request: where it stands in a trace that began elsewhere.
 *
 * "The keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation. When present, their
 * values MUST follow W3C Trace Context and W3C Baggage formats respectively" (2026-07-28, basic/index, `_meta`). The headers of the
 * same names carry the context of the HTTP request, which is another one: an HTTP request may be repeated, and may carry several
 * messages.
 *
 * What does not follow the format is ignored, as W3C Trace Context asks: it never fails a request. All reading takes time linear in
 * the length of the text.
 */
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** The span that a request comes from. */
export interface Parent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string
  /** Whether the caller may have recorded it. */
  readonly sampled: boolean
}

/** What a request says of its trace. */
export interface TraceContext {
  readonly parent: Parent | undefined
  /** What tracing systems add for themselves, as it came. Only beside a `parent`. */
  readonly tracestate: string | undefined
  /** What the application adds, as it came. */
  readonly baggage: string | undefined
}

/** A longer `tracestate` is ignored: "vendors SHOULD propagate at least 512 characters" (W3C Trace Context, 3.3.1.5). */
export const maxTracestate = 512
/** A `baggage` of more bytes is ignored: 8,192 is what a platform must propagate (W3C Baggage, 3.3.2). */
export const maxBaggage = 8192
/** A `tracestate` with more members is ignored (W3C Trace Context, 3.3.1.1). */
export const maxTracestateMembers = 32
/** A `baggage` with more members is ignored (W3C Baggage, 3.3.2). */
export const maxBaggageMembers = 64

// A version that is not known here may have more behind the flags, up to this many characters.
const maxTraceparent = 256
const traceparent = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const zero = /^0+$/

/**
 * Reads a `traceparent`: version 00 exactly, a later one as far as it is the same, version `ff` never (W3C Trace Context, 3.2.2
 * and 4.2).
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

/** Writes a `traceparent`, in version 00. */
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

const readTracestate = (value: unknown): string | undefined => {
  if (typeof value !== "string" || value.length > maxTracestate) return undefined
  const members = value.split(",")
  return members.length <= maxTracestateMembers && value.trim() !== "" && members.every(isStateMember)
    ? value
    : undefined
}

// A token, an equals sign, and a value of percent-encoded octets; properties behind semicolons are made of the same characters.
const baggageMember = /^[\t ]*[!#$%&'*+.^_`|~\dA-Za-z-]+[\t ]*=[\t\x20\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]*$/

const readBaggage = (value: unknown): string | undefined => {
  if (typeof value !== "string" || value.length > maxBaggage) return undefined
  const members = value.split(",")
  return members.length <= maxBaggageMembers && members.every((member) => baggageMember.test(member))
    ? value
    : undefined
}

/** Reads the three values; `undefined` where nothing of them counts. */
export const parse = (values: {
  readonly traceparent: unknown
  readonly tracestate: unknown
  readonly baggage: unknown
}): TraceContext | undefined => {
  const parent = parseParent(values.traceparent)
  // "If the vendor failed to parse traceparent, it MUST NOT attempt to parse tracestate."
  const tracestate = parent === undefined ? undefined : readTracestate(values.tracestate)
  const baggage = readBaggage(values.baggage)
  return parent === undefined && baggage === undefined ? undefined : { parent, tracestate, baggage }
}

/** What the `_meta` of a request's params says. */
export const fromParams = (params: JsonObject | undefined): TraceContext | undefined => {
  const meta = params?.["_meta"]
  return isObject(meta)
    ? parse({ traceparent: meta["traceparent"], tracestate: meta["tracestate"], baggage: meta["baggage"] })
    : undefined
}

/** What the headers of an HTTP request say. `header` reads one by its name in lower case. */
export const fromHeaders = (header: (name: string) => string | undefined): TraceContext | undefined =>
  parse({ traceparent: header("traceparent"), tracestate: header("tracestate"), baggage: header("baggage") })
