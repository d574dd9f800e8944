/** Telemetry over real sockets, in both eras. */
import { expect, it, vi } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as LegacySse from "@skein/server/LegacySse"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as http from "../http/kit.ts"
import * as kit from "../kit.ts"

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
const httpTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"

const setUp = (options?: NodeHttp.Options) =>
  Effect.gen(function*() {
    const spans: Array<Tracer.Span> = []
    const registry: Context.Service.Shape<typeof Metric.MetricRegistry> = new Map()
    const tracer = Tracer.make({
      span(options) {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const greet = Tool.layer(Tool.make("greet"), () => Effect.succeed("hello"))
    const server = kit.server(Telemetry.layer(), greet).pipe(
      Layer.provide(Layer.merge(Layer.succeed(Tracer.Tracer, tracer), Layer.succeed(Metric.MetricRegistry, registry)))
    )
    const at = yield* http.serve(server, options)
    const read = (name: string) =>
      Effect.map(
        Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry),
        (all): ReadonlyArray<any> => all.filter(({ id }) => id === name)
      )
    const counted = (name: string) =>
      Effect.map(read(name), (all) => all.find(({ state }) => state.count > 0 || state.value !== undefined))
    return { at, spans, counted, read }
  })

const parentOf = (span: Tracer.Span): string | undefined => Option.getOrUndefined(span.parent)?.spanId

it.live("2026-07-28 · the trace of the header is the parent, or is linked if _meta has one", () =>
  Effect.scoped(Effect.gen(function*() {
    const { at, counted, spans } = yield* setUp()
    const call = (_meta: JsonRpc.JsonObject) =>
      http.send(at, http.modern("tools/call", { name: "greet" }, { _meta, headers: { traceparent: httpTrace } }))
    expect((yield* call({})).status).toBe(200)
    expect((yield* call({ traceparent })).status).toBe(200)
    expect(spans.map((span) => [span.name, parentOf(span), span.links.map((link) => link.span.spanId)])).toEqual([
      ["tools/call greet", "b7ad6b7169203331", []],
      ["tools/call greet", "00f067aa0ba902b7", ["b7ad6b7169203331"]]
    ])
    expect(spans[0]!.attributes.get("network.transport")).toBe("tcp")
    const duration = yield* counted("mcp.server.operation.duration")
    expect(duration.state.count).toBe(2)
    expect(duration.attributes["network.protocol.name"]).toBe("http")
  })))

it.live("2025-11-25 · the trace of the header is the parent in a session too; sessions and refusals are counted", () =>
  Effect.scoped(Effect.gen(function*() {
    const { at, counted, read, spans } = yield* setUp()
    const statuses = (yield* read("mcp.server.refusals")).map((
      { attributes, state }
    ) => [attributes["http.response.status_code"], state.count])
    expect(statuses).toEqual(expect.arrayContaining([["401", 0], ["403", 0], ["429", 0], ["503", 0]]))
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      traceparent: httpTrace
    }
    const body = { jsonrpc: "2.0", id: 1, method: "initialize", params: kit.hello("2025-11-25") }
    const hello = yield* http.send(at, { headers, body })
    const session = { ...headers, "mcp-session-id": String(hello.headers["mcp-session-id"]) }
    yield* http.send(at, { headers: session, body: { jsonrpc: "2.0", method: "notifications/initialized" } })
    const params = { name: "greet", _meta: { traceparent } }
    yield* http.send(at, { headers: session, body: { jsonrpc: "2.0", id: 2, method: "tools/call", params } })
    expect(spans.map((span) => [span.name, parentOf(span)])).toEqual([
      ["initialize", "b7ad6b7169203331"],
      ["tools/call greet", "00f067aa0ba902b7"]
    ])
    expect((yield* counted("mcp.server.sessions")).state.value).toBe(1)
    const requests = (yield* read("mcp.server.requests")).map((
      { attributes, state }
    ) => [attributes["mcp.method.name"], attributes.outcome, attributes["error.type"], state.count])
    expect(requests).toEqual(expect.arrayContaining([
      ["tools/call", "ok", undefined, 1],
      ["tools/call", "tool_error", "tool_error", 0],
      ["tools/call", "defect", "tool_error", 0],
      ["initialize", "defect", "-32603", 0]
    ]))
    const evil = yield* http.send(at, { headers: { ...headers, origin: "http://evil.example.com" }, body })
    expect(evil.status).toBe(403)
    expect(yield* counted("mcp.server.refusals")).toMatchObject({
      attributes: { "http.response.status_code": "403" },
      state: { count: 1 }
    })
    yield* http.send(at, { method: "DELETE", headers: session })
    yield* kit.settle
    expect((yield* counted("mcp.server.sessions")).state.value).toBe(0)
    expect((yield* counted("mcp.server.session.duration")).state.count).toBe(1)
  })))

it.live("2024-11-05 · counts a session that continues on a new stream without initialize", () =>
  Effect.scoped(Effect.gen(function*() {
    const { at, counted } = yield* setUp({ legacySse: LegacySse.make() })
    yield* Effect.scoped(Effect.gen(function*() {
      const stream = yield* http.open(at, { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } })
      const path = (yield* stream.next).data!
      const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "greet" } }
      yield* http.send(at, { path, headers: { "content-type": "application/json" }, body })
      expect((yield* stream.message).result.content).toEqual([{ type: "text", text: "hello" }])
      expect(yield* counted("mcp.server.sessions")).toMatchObject({
        attributes: { "mcp.protocol.version": "2024-11-05", "network.transport": "tcp" },
        state: { value: 1 }
      })
    }))
    yield* Effect.promise(() => vi.waitFor(() => expect(at.endpoint.streams).toBe(0), 60_000))
    yield* kit.settle
    expect((yield* counted("mcp.server.sessions")).state.value).toBe(0)
    expect((yield* counted("mcp.server.session.duration")).state.count).toBe(1)
  })))
