import { expect, it } from "@effect/vitest"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Otlp from "effect/observability/Otlp"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as kit from "../kit.ts"

/** A collector that stores the received bodies by path. */
const collector = Effect.acquireRelease(
  Effect.promise(() => {
    const received: Array<{ readonly path: string; readonly body: any }> = []
    const server = http.createServer((request, response) => {
      let text = ""
      request.on("data", (chunk) => {
        text += chunk
      })
      request.on("end", () => {
        received.push({ path: request.url!, body: JSON.parse(text) })
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    return new Promise<{ readonly server: http.Server; readonly url: string; readonly received: typeof received }>(
      (resolve) =>
        server.listen(
          0,
          "127.0.0.1",
          () => resolve({ server, received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
        )
    )
  }),
  ({ server }) =>
    Effect.promise(() => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    })
)

const valueOf = (attributes: ReadonlyArray<any>, key: string): unknown =>
  attributes.find((attribute) => attribute.key === key)?.value.stringValue

it.live("2026-07-28 · an OTLP collector receives the span of a request below the client's and above the handler's", () =>
  Effect.gen(function*() {
    const { received, url } = yield* collector
    const otlp = Otlp.layer({ baseUrl: url, resource: { serviceName: "traced" }, loggerMergeWithExisting: false }).pipe(
      Layer.provide(FetchHttpClient.layer),
      Layer.provide(OtlpSerialization.layerJson),
      Layer.provideMerge(Layer.succeed(Metric.MetricRegistry, new Map()))
    )
    const tool = Tool.layer(
      Tool.make("greet"),
      () => Effect.succeed("hello").pipe(Effect.withSpan("work"), Effect.tap(Effect.logInfo("greeting")))
    )
    yield* Effect.scoped(
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(Telemetry.layer(), tool).pipe(Layer.provide(otlp)))
        const traceparent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
        yield* client.result("tools/call", { name: "greet", _meta: { traceparent } })
        yield* client.error("tools/call", { name: "none" })
      })
    )
    const bodies = (path: string) => received.filter((entry) => entry.path === path).map(({ body }) => body)
    const spans: ReadonlyArray<any> = bodies("/v1/traces").flatMap(({ resourceSpans }) =>
      resourceSpans[0].scopeSpans[0].spans
    )
    const greet = spans.find(({ name }) => name === "tools/call greet")
    expect(greet).toMatchObject({
      traceId: "0af7651916cd43dd8448eb211c80319c",
      parentSpanId: "00f067aa0ba902b7",
      kind: 2,
      status: { code: 1 }
    })
    expect(valueOf(greet.attributes, "gen_ai.tool.name")).toBe("greet")
    expect(spans.find(({ name }) => name === "work")).toMatchObject({
      traceId: greet.traceId,
      parentSpanId: greet.spanId
    })
    const failed = spans.find(({ name }) => name === "tools/call")
    expect(failed.status).toEqual({ code: 2, message: "Unknown tool: none" })
    expect(valueOf(failed.attributes, "error.type")).toBe("-32602")
    const metrics: ReadonlyArray<any> = bodies("/v1/metrics").flatMap(({ resourceMetrics }) =>
      resourceMetrics[0].scopeMetrics[0].metrics
    )
    expect(metrics.find(({ name }) => name === "mcp.server.operation.duration")).toMatchObject({ unit: "s" })
    const logs: ReadonlyArray<any> = bodies("/v1/logs").flatMap(({ resourceLogs }) =>
      resourceLogs[0].scopeLogs[0].logRecords
    )
    expect(logs.find(({ body }) => JSON.stringify(body).includes("greeting"))).toMatchObject({
      traceId: greet.traceId,
      spanId: greet.spanId
    })
  }))
