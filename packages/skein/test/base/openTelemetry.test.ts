import { assert, describe, it } from "@effect/vitest"
import * as api from "@opentelemetry/api"
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { AsyncServer, type Logger, VisibleError } from "skein"
import { AsyncClient } from "skein/client"
import { nodeHandler } from "skein/http"
import { memoryTasks, task, tasks } from "skein/tasks"
import { afterAll, afterEach, beforeAll } from "vitest"
import type { ObservedClient, ObservedServer } from "../../src/internal/base/observed.ts"
import type { HandlerContext } from "../../src/internal/server/handlerContext.ts"

const exporter = new InMemorySpanExporter()
const tracer = api.trace.getTracer("test")

// The setup of an application, once per process.
beforeAll(() => {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
})
afterEach(() => exporter.reset())
afterAll(() => {
  api.trace.disable()
  api.context.disable()
})

type Handler = (input: {}, context: HandlerContext) => string | Promise<string>

const serverOf = (options: ObservedServer, handler: Handler) =>
  new AsyncServer({ name: "shop", version: "1.0.0", ...options }).tool("price", {}, handler)

/** Serves a tool over HTTP. */
const serve = async (options: ObservedServer, handler: Handler) => {
  const { close, url } = await serverOf(options, handler).listen({ port: 0 })
  return { url, [Symbol.asyncDispose]: close }
}

/** Serves a tool in a server of an application whose requests have spans, and baggage. */
const serveTraced = async (options: ObservedServer, handler: Handler) => {
  const mounted = await nodeHandler(serverOf(options, handler))
  const server = createServer((request, response) => {
    const baggage = api.propagation.createBaggage({ tenant: { value: "ada" } })
    api.context.with(
      api.propagation.setBaggage(api.context.active(), baggage),
      () =>
        tracer.startActiveSpan(`${request.method}`, (span) => {
          response.on("close", () => span.end())
          mounted.handler(request, response)
        })
    )
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      await mounted.close()
      server.closeAllConnections()
      await once(server.close(), "close")
    }
  }
}

const connect = (url: string, options: ObservedClient = { telemetry: { api } }) => AsyncClient.connect(url, options)

const named = (name: string, kind?: api.SpanKind): ReadableSpan => {
  const found = exporter.getFinishedSpans().filter((span) =>
    span.name === name && (kind === undefined || span.kind === kind)
  )
  assert.strictEqual(found.length, 1, `${found.length} spans ${name}`)
  return found[0]!
}

const idOf = (span: ReadableSpan): string => span.spanContext().spanId

const inSpan = <A>(name: string, run: (span: api.Span) => Promise<A>): Promise<A> =>
  tracer.startActiveSpan(name, async (span) => {
    try {
      return await run(span)
    } finally {
      span.end()
    }
  })

/** A meter that reports the names of the instruments that are updated. */
const metersOf = (updated: (name: string) => void): api.Meter => {
  const meter = api.createNoopMeter()
  return Object.assign(Object.create(meter), {
    createCounter: (name: string) => ({ add: () => updated(name) }),
    createHistogram: (name: string) => ({ record: () => updated(name) })
  })
}

const pause = () => new Promise((resolve) => setImmediate(resolve))

describe("telemetry", () => {
  it("makes one trace of the caller's span, the client's, the server's and those of the handler", async () => {
    await using server = await serve({ telemetry: { api } }, async () => {
      await pause()
      return inSpan("brew", async () => "4 €")
    })
    await using client = await connect(server.url)
    await inSpan("agent", () => client.callTool("price"))
    const sent = named("tools/call price", api.SpanKind.CLIENT)
    const received = named("tools/call price", api.SpanKind.SERVER)
    assert.strictEqual(sent.parentSpanContext?.spanId, idOf(named("agent")))
    assert.strictEqual(received.parentSpanContext?.spanId, idOf(sent))
    assert.isTrue(received.parentSpanContext?.isRemote)
    assert.strictEqual(named("brew").parentSpanContext?.spanId, idOf(received))
    assert.strictEqual(named("brew").spanContext().traceId, named("agent").spanContext().traceId)
    assert.deepEqual(received.attributes, {
      "mcp.method.name": "tools/call",
      "mcp.protocol.version": client.revision,
      "jsonrpc.request.id": received.attributes["jsonrpc.request.id"]!,
      "network.transport": "tcp",
      "network.protocol.name": "http",
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "price"
    })
    assert.strictEqual(sent.attributes["gen_ai.tool.name"], "price")
    assert.strictEqual(received.status.code, api.SpanStatusCode.UNSET)
    assert.isAbove(received.duration[0] * 1e9 + received.duration[1], 0)
  })

  it("has the span of its own request active in each of many handlers that run at once", async () => {
    const active: Array<readonly [request: unknown, span: string]> = []
    await using server = await serve({ telemetry: { api } }, async (_, { progress, request }) => {
      for (let round = 0; round < 3; round++) {
        await progress({ progress: round })
        await pause()
        active.push([request.id, api.trace.getActiveSpan()!.spanContext().spanId])
      }
      return "4 €"
    })
    await using client = await connect(server.url)
    const calls = Array.from({ length: 10 }, (_, index) => inSpan(`agent ${index}`, () => client.callTool("price")))
    await Promise.all(calls)
    const received = exporter.getFinishedSpans().filter(({ kind, name }) =>
      name === "tools/call price" && kind === api.SpanKind.SERVER
    )
    assert.strictEqual(received.length, 10)
    const ids = new Map(received.map((span) => [span.attributes["jsonrpc.request.id"], idOf(span)]))
    assert.strictEqual(active.length, 30)
    for (const [request, span] of active) assert.strictEqual(span, ids.get(String(request)))
  })

  it("has the active span of the application as its parent, and its context in the handler", async () => {
    let tenant: string | undefined
    await using server = await serveTraced({ telemetry: { api } }, async () => {
      await pause()
      tenant = api.propagation.getActiveBaggage()?.getEntry("tenant")?.value
      return "4 €"
    })
    await using client = await AsyncClient.connect(server.url)
    exporter.reset()
    await client.callTool("price")
    await client.close()
    const received = named("tools/call price")
    const posts = exporter.getFinishedSpans().filter(({ name }) => name === "POST").map(idOf)
    assert.include(posts, received.parentSpanContext?.spanId)
    assert.deepEqual(received.links, [])
    assert.strictEqual(tenant, "ada")
  })

  it("has the caller's span as its parent, and a link to that of the application", async () => {
    let tenant: string | undefined
    await using server = await serveTraced({ telemetry: { api } }, async () => {
      tenant = api.propagation.getActiveBaggage()?.getEntry("tenant")?.value
      return "4 €"
    })
    await using client = await connect(server.url)
    await client.callTool("price")
    const received = named("tools/call price", api.SpanKind.SERVER)
    assert.strictEqual(received.parentSpanContext?.spanId, idOf(named("tools/call price", api.SpanKind.CLIENT)))
    assert.strictEqual(received.links.length, 1)
    assert.notStrictEqual(received.links[0]!.context.traceId, received.spanContext().traceId)
    assert.strictEqual(tenant, "ada")
  })

  it("has a trace of its own with a link to the caller's span if remote is link", async () => {
    await using server = await serve({ telemetry: { api, remote: "link" } }, () => "4 €")
    await using client = await connect(server.url)
    await client.callTool("price")
    const sent = named("tools/call price", api.SpanKind.CLIENT)
    const received = named("tools/call price", api.SpanKind.SERVER)
    assert.isUndefined(received.parentSpanContext)
    assert.notStrictEqual(received.spanContext().traceId, sent.spanContext().traceId)
    assert.deepEqual(received.links.map(({ context }) => context.spanId), [idOf(sent)])
  })

  it("passes the tracestate of a trace from the caller to the handler", async () => {
    let state: string | undefined
    await using server = await serve({ telemetry: { api } }, () => {
      state = api.trace.getActiveSpan()?.spanContext().traceState?.serialize()
      return "4 €"
    })
    await using client = await connect(server.url)
    const remote = {
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      spanId: "00f067aa0ba902b7",
      traceFlags: 1,
      traceState: api.createTraceState("vendor=tea")
    }
    await api.context.with(api.trace.setSpanContext(api.ROOT_CONTEXT, remote), () => client.callTool("price"))
    assert.strictEqual(state, "vendor=tea")
    assert.strictEqual(named("tools/call price", api.SpanKind.SERVER).spanContext().traceId, remote.traceId)
  })

  it("records the failure of a tool as an error, and no cancelled request", async () => {
    let began: () => void
    const running = new Promise<void>((resolve) => began = resolve)
    let calls = 0
    await using server = await serve({ telemetry: { api } }, async (_, { signal }) => {
      if (++calls === 1) throw new VisibleError("no tea is left")
      began()
      await once(signal, "abort")
      return "too late"
    })
    await using client = await connect(server.url)
    await client.callTool("price")
    const [received, sent] = [api.SpanKind.SERVER, api.SpanKind.CLIENT].map((kind) => named("tools/call price", kind))
    for (const { attributes, events, status } of [received!, sent!]) {
      assert.strictEqual(status.code, api.SpanStatusCode.ERROR)
      assert.match(status.message!, /^the tool failed$/i)
      assert.strictEqual(attributes["error.type"], "tool_error")
      assert.deepEqual(events.map(({ name }) => name), ["exception"])
    }
    exporter.reset()
    const controller = new AbortController()
    const call = client.callTool("price", undefined, { signal: controller.signal })
    await running
    controller.abort()
    await call.catch(() => {})
    await client.close()
    await server[Symbol.asyncDispose]()
    const cancelled = exporter.getFinishedSpans().filter(({ name }) => name === "tools/call price")
    assert.strictEqual(cancelled.length, 2)
    for (const { attributes, status } of cancelled) {
      assert.strictEqual(status.code, api.SpanStatusCode.UNSET)
      assert.isUndefined(attributes["error.type"])
    }
  })

  it("has the ids of the span in the logs of handlers, and the logs as its events", async () => {
    const fields: Array<Readonly<Record<string, unknown>>> = []
    const logger = {
      info: (_: string, logged: Readonly<Record<string, unknown>>) => fields.push(logged),
      error: () => {}
    }
    await using server = await serve({ logger, telemetry: { api } }, (_, { log }) => {
      log.info("an order", { tea: "sencha" })
      return "4 €"
    })
    await using client = await connect(server.url)
    await client.callTool("price")
    const received = named("tools/call price", api.SpanKind.SERVER)
    const { spanId, traceId } = received.spanContext()
    assert.deepEqual(fields.filter(({ tea }) => tea !== undefined), [{
      tea: "sencha",
      trace_id: traceId,
      span_id: spanId
    }])
    assert.deepEqual(received.events.map(({ name }) => name.includes("an order")), [true])
  })

  it("records nothing, and sends no traceparent, without telemetry or without a span", async () => {
    const seen: Array<unknown> = []
    await using server = await serve({}, (_, { request }) => {
      seen.push((request.params?.["_meta"] as Readonly<Record<string, unknown>> | undefined)?.["traceparent"])
      return "4 €"
    })
    await using plain = await connect(server.url, {})
    await inSpan("agent", () => plain.callTool("price"))
    const silent = new TracerProvider().getTracer("unused")
    await using sampled = await connect(server.url, { telemetry: { api, tracer: silent } })
    await sampled.callTool("price")
    assert.strictEqual(seen[0], undefined)
    assert.match(String(seen[1]), /^00-[\da-f]{32}-[\da-f]{16}-01$/)
    assert.deepEqual(exporter.getFinishedSpans().map(({ name }) => name), ["agent"])
  })

  it("sends no traceparent before the application has set up a tracer", async () => {
    const seen: Array<unknown> = []
    await using server = await serve({ telemetry: { api } }, (_, { request }) => {
      seen.push((request.params?.["_meta"] as Readonly<Record<string, unknown>> | undefined)?.["traceparent"])
      return "4 €"
    })
    const noop = new api.ProxyTracerProvider().getTracer("noop")
    await using client = await connect(server.url, { telemetry: { api, tracer: noop } })
    const { content } = await client.callTool("price")
    assert.deepEqual(content, [{ type: "text", text: "4 €" }])
    assert.deepEqual(seen, [undefined])
  })

  it("records the metrics of a server with the meter, until the server ends", async () => {
    const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 1_000_000 })
    const provider = new MeterProvider({ readers: [reader] })
    const read = async () => {
      metrics.reset()
      await reader.forceFlush()
      const all = metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics).flatMap(({ metrics }) => metrics)
      return Object.fromEntries(all.map((metric) => [metric.descriptor.name, metric]))
    }
    const meter = provider.getMeter("shop")
    // A gauge of the SDK repeats its last value after its callback was removed.
    let callbacks = 0
    const counted: api.Meter = Object.assign(Object.create(meter), {
      createObservableGauge: (name: string, options: api.MetricOptions) => {
        const gauge = meter.createObservableGauge(name, options)
        return {
          addCallback: (callback: api.ObservableCallback) => {
            callbacks++
            gauge.addCallback(callback)
          },
          removeCallback: (callback: api.ObservableCallback) => {
            callbacks--
            gauge.removeCallback(callback)
          }
        }
      }
    })
    const server = await serve({ telemetry: { api, spans: false, meter: counted } }, () => {
      assert.isUndefined(api.trace.getActiveSpan())
      return "4 €"
    })
    const client = await AsyncClient.connect(server.url, { revisions: ["2025-11-25"] })
    await client.callTool("price")
    await client.callTool("price")
    const open = await read()
    const duration = open["mcp.server.operation.duration"]!
    assert.strictEqual(duration.descriptor.unit, "s")
    const calls = duration.dataPoints.find(({ attributes }) => attributes["gen_ai.tool.name"] === "price")!
    const { buckets, count } = calls.value as { buckets: { boundaries: Array<number> }; count: number }
    assert.strictEqual(count, 2)
    assert.deepEqual(buckets.boundaries.slice(0, 3), [0.01, 0.02, 0.05])
    assert.deepEqual(
      open["mcp.server.requests"]!.dataPoints.filter(({ attributes }) => attributes["gen_ai.tool.name"] === "price")
        .map(({ attributes, value }) => [attributes["outcome"], attributes["unit"], value]),
      [["tool_error", undefined, 0], ["defect", undefined, 0], ["ok", undefined, 2]]
    )
    assert.isAbove(callbacks, 0)
    assert.deepEqual(open["mcp.server.sessions"]!.dataPoints.map(({ value }) => value), [1])
    await client.close()
    await server[Symbol.asyncDispose]()
    assert.strictEqual(callbacks, 0)
    await provider.shutdown()
    assert.deepEqual(exporter.getFinishedSpans(), [])
  })

  it("records no metrics if metrics is false", async () => {
    const meter = new Proxy({}, { get: () => assert.fail("the meter was used") })
    await using server = await serve({ telemetry: { api, metrics: false, meter: meter as api.Meter } }, () => "4 €")
    await using client = await connect(server.url)
    assert.deepEqual((await client.callTool("price")).content, [{ type: "text", text: "4 €" }])
  })

  it("records the runs of tasks, with a link to the call, and their metrics", async () => {
    const updated = new Set<string>()
    const meter = metersOf((name) => updated.add(name))
    const shop = tasks(memoryTasks(), [
      task("bake", {}, async (_, { step }) => {
        await step("heat", async () => inSpan("oven", async () => 200))
        return "baked"
      })
    ])
    const server = new AsyncServer({ name: "shop", version: "1.0.0", telemetry: { api, meter } }).use(shop)
    await using client = await AsyncClient.connect(server.transport())
    assert.deepEqual((await client.callTool("bake")).content, [{ type: "text", text: "baked" }])
    await client.close()
    const run = named("task bake")
    assert.strictEqual(run.kind, api.SpanKind.CONSUMER)
    assert.strictEqual(named("heat").parentSpanContext?.spanId, idOf(run))
    assert.strictEqual(named("oven").parentSpanContext?.spanId, idOf(named("heat")))
    assert.deepEqual(run.links.map(({ context }) => context.spanId), [idOf(named("tools/call bake"))])
    assert.isTrue(updated.has("mcp.server.task.ends"))
  })

  it("records the tasks of a worker, whose logs reach its logger", async () => {
    const messages: Array<string> = []
    const logger: Logger = { info: (message) => messages.push(message), error: () => {} }
    const shop = tasks(memoryTasks(), [task("bake", {}, () => "baked")])
    await using worker = await shop.startWorker({ logger, telemetry: { api, metrics: false } })
    const { id } = await shop.start("bake")
    assert.strictEqual((await shop.wait(id))?.status, "completed")
    await worker.close()
    assert.strictEqual(named("task bake").kind, api.SpanKind.CONSUMER)
    assert.deepEqual(messages, ["tasks are stored in memory and end with this process"])
  })

  it("rejects an option that is not an object with the API", async () => {
    const wrong: ReadonlyArray<unknown> = [{}, api, { api: { trace: api.trace } }]
    for (const telemetry of wrong) {
      const options = { name: "shop", version: "1.0.0", telemetry: telemetry as { readonly api: typeof api } }
      assert.throws(() => new AsyncServer(options), /^the option telemetry needs OpenTelemetry's API: \{ api \}/)
      const url = "http://127.0.0.1:1/mcp"
      const error = await AsyncClient.connect(url, { telemetry: options.telemetry }).catch((error: unknown) => error)
      assert.match(String(error), /the option telemetry needs OpenTelemetry's API/)
    }
  })
})
