import { describe, expect, it } from "@effect/vitest"
import * as TraceContext from "@skein/protocol/TraceContext"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "00f067aa0ba902b7"
const traceparent = `00-${traceId}-${spanId}-01`
const read = (values: object) => TraceContext.fromParams({ _meta: { traceparent, ...values } })

describe("W3C Trace Context", () => {
  it("2026-07-28 · reads traceparent in _meta as the parent", () => {
    expect(TraceContext.fromParams({ _meta: { traceparent } })).toEqual({
      parent: { traceId, spanId, sampled: true },
      tracestate: undefined,
      baggage: undefined
    })
    expect(TraceContext.parseParent(`00-${traceId}-${spanId}-00`)?.sampled).toBe(false)
    expect(TraceContext.parseParent(`00-${traceId}-${spanId}-03`)?.sampled).toBe(true)
    expect(TraceContext.formatParent({ traceId, spanId, sampled: true })).toBe(traceparent)
  })

  it("ignores an invalid traceparent, and tracestate with it", () => {
    const bad: ReadonlyArray<unknown> = [
      undefined,
      null,
      1,
      {},
      "",
      `ff-${traceId}-${spanId}-01`,
      `00-${"0".repeat(32)}-${spanId}-01`,
      `00-${traceId}-${"0".repeat(16)}-01`,
      `00-${traceId.toUpperCase()}-${spanId}-01`,
      `00-${traceId}-${spanId}-01-more`,
      `00-${traceId}-${spanId}-01\n`,
      `00-${traceId}-${spanId}`,
      ` ${traceparent}`,
      `0-${traceId}-${spanId}-01`,
      `01-${traceId}-${spanId}-01.more`,
      `01-${traceId}-${spanId}-01-${"x".repeat(300)}`
    ]
    expect(bad.filter((value) => read({ traceparent: value, tracestate: "a=1" }) !== undefined)).toEqual([])
  })

  it("reads a later version of traceparent, ignoring text after the flags", () => {
    expect(TraceContext.parseParent(`01-${traceId}-${spanId}-01-what-ever`)).toEqual({ traceId, spanId, sampled: true })
  })

  it("reads a tracestate of at most 512 characters and 32 valid members", () => {
    const state = (value: unknown) => read({ tracestate: value })?.tracestate
    for (const good of ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, b=2", "tenant@vendor=x", "a=1,,b=2"]) {
      expect(state(good)).toBe(good)
    }
    const bad = ["", "A=1", "a", "a=", "=1", "a=1\r\nx: y", "a=b=c", "a=\u00e9", 7, ["a=1"]]
    expect(bad.filter((value) => state(value) !== undefined)).toEqual([])
    const members = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=1`).join(",")
    expect(state(members(TraceContext.maxTracestateMembers))).toBeDefined()
    expect(state(members(TraceContext.maxTracestateMembers + 1))).toBeUndefined()
    const long = (length: number) => `a=${"x".repeat(250)},b=${"y".repeat(250)},c=${"z".repeat(length - 508)}`
    expect(state(long(TraceContext.maxTracestateLength))).toHaveLength(TraceContext.maxTracestateLength)
    expect(state(`${long(TraceContext.maxTracestateLength)}z`)).toBeUndefined()
  })

  it("reads a baggage of at most 8,192 bytes and 64 valid members, with or without a traceparent", () => {
    const baggage = (value: unknown) => TraceContext.fromParams({ _meta: { baggage: value } })?.baggage
    const good = "userId=alice,serverNode=DF%2028,isProduction=false;ttl=1"
    expect(baggage(good)).toBe(good)
    expect(read({ baggage: good })).toMatchObject({ parent: { traceId }, baggage: good })
    const bad = ["", "a", "=1", "a=\"x\"", "a=1\r\nx: y", "a=\u00e9", "a b=1", 7]
    expect(bad.filter((value) => baggage(value) !== undefined)).toEqual([])
    const members = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=1`).join(",")
    expect(baggage(members(TraceContext.maxBaggageMembers))).toBeDefined()
    expect(baggage(members(TraceContext.maxBaggageMembers + 1))).toBeUndefined()
    expect(baggage(`a=${"x".repeat(TraceContext.maxBaggageBytes - 2)}`)).toHaveLength(TraceContext.maxBaggageBytes)
    expect(baggage(`a=${"x".repeat(TraceContext.maxBaggageBytes - 1)}`)).toBeUndefined()
  })

  it("reads headers of the same names, and returns undefined without a _meta object", () => {
    expect(TraceContext.fromHeaders((name) => name === "traceparent" ? traceparent : undefined)?.parent?.spanId).toBe(
      spanId
    )
    for (const params of [undefined, {}, { _meta: null }, { _meta: [traceparent] }, { _meta: {} }]) {
      expect(TraceContext.fromParams(params)).toBeUndefined()
    }
  })
})
