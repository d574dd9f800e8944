import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { Bounds, fixedBounds } from "../../src/internal/base/fixedBounds.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"
import { internals } from "../../src/internal/catalog/catalogState.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "00f067aa0ba902b7"
const traceparent = `00-${traceId}-${spanId}-01`
const httpTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"

/** A tracer that stores its spans, as a layer. */
const double = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span(options) {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, tracer) }
}

const parentOf = (span: Tracer.Span): Tracer.AnySpan | undefined => Option.getOrUndefined(span.parent)
const exitOf = (span: Tracer.Span): Exit.Exit<unknown, unknown> | undefined =>
  span.status._tag === "Ended" ? span.status.exit : undefined
const attributes = (span: Tracer.Span) => Object.fromEntries(span.attributes)

const tools = [
  Tool.layer(Tool.make("ok"), () => Effect.withSpan(Effect.succeed("x"), "inner")),
  Tool.layer(Tool.make("fails"), () => Effect.succeed(Tool.result({ content: "no", isError: true }))),
  Tool.layer(Tool.make("refuses"), () => Effect.fail(McpError.other(7, "Not today"))),
  Tool.layer(Tool.make("dies"), () => Effect.die(new Error("dead"))),
  Tool.layer(Tool.make("slow"), () => Effect.as(Effect.sleep("3 seconds"), "x")),
  Prompt.layer(Prompt.make("p"), () => Effect.succeed("x")),
  Resource.layer(Resource.make("a://b"), Effect.succeed("x"))
] as const

const traced = (options: Telemetry.Options = {}) => {
  const { layer, spans } = double()
  const server = kit.server(Telemetry.layer(options), MaxResponseSize.layer(), ...tools).pipe(Layer.provide(layer))
  return { spans, server }
}

for (const revision of support.eras) {
  describe(`${revision} · spans`, () => {
    it.effect("records one span of kind server for each request, with the conventional name and attributes", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const client = yield* support.connect(yield* support.build(server), revision, support.headers({}))
        spans.length = 0
        const id = client.send("tools/call", { name: "ok" })
        yield* client.answer(id)
        yield* client.result("prompts/get", { name: "p" })
        yield* client.result("resources/read", { uri: "a://b" })
        yield* client.result("tools/list")
        const server_ = spans.filter((span) => span.kind === "server")
        expect(server_.map((span) => span.name)).toEqual(
          ["tools/call ok", "prompts/get p", "resources/read", "tools/list"]
        )
        expect(attributes(server_[0]!)).toEqual({
          "mcp.method.name": "tools/call",
          "mcp.protocol.version": revision,
          "jsonrpc.request.id": String(id),
          "network.transport": "tcp",
          "network.protocol.name": "http",
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": "ok"
        })
        expect(attributes(server_[1]!)["gen_ai.prompt.name"]).toBe("p")
        expect(attributes(server_[2]!)["mcp.resource.uri"]).toBe("a://b")
        expect(server_.map((span) => exitOf(span)?._tag)).toEqual(["Success", "Success", "Success", "Success"])
        const inner = spans.find((span) => span.name === "inner")!
        expect(parentOf(inner)).toBe(server_[0])
      }))

    it.effect("sets error.type to the JSON-RPC code, tool_error, for a defect of a tool too", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const client = yield* kit.client(server, revision)
        spans.length = 0
        for (const name of ["fails", "refuses", "dies", "made up"]) yield* client.request("tools/call", { name })
        yield* client.request("no/such")
        expect(spans.map((span) => [span.name, span.attributes.get("error.type")])).toEqual([
          ["tools/call fails", "tool_error"],
          ["tools/call refuses", "7"],
          ["tools/call dies", "tool_error"],
          ["tools/call", "-32602"],
          ["_OTHER", "-32601"]
        ])
        expect(spans.map((span) => span.attributes.get("rpc.response.status_code"))).toEqual(
          [undefined, "7", undefined, "-32602", "-32601"]
        )
        expect(spans.map((span) => exitOf(span)?._tag)).toEqual(Array.from(spans, () => "Failure"))
        const refused = exitOf(spans[1]!) as Exit.Failure<unknown, unknown>
        expect(Cause.prettyErrors(refused.cause)[0]!.message).toBe("Not today")
        expect(spans[3]!.attributes.get("gen_ai.tool.name")).toBe("made up")
        expect(spans[4]!.attributes.get("mcp.method.name")).toBe("no/such")
      }))

    it.effect("ends the span of a cancelled request without an error", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const client = yield* kit.client(server, revision)
        spans.length = 0
        const id = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId: id })
        yield* kit.settle
        const exit = exitOf(spans[0]!)!
        expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
        expect(spans[0]!.attributes.has("error.type")).toBe(false)
      }))

    it.effect("2026-07-28 · the parent is the traceparent of _meta, with a link to the span of the HTTP request", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const origin = support.headers({ traceparent: httpTrace })
        const client = yield* support.connect(yield* support.build(server), revision, origin)
        spans.length = 0
        yield* client.result("tools/call", { name: "ok", _meta: { traceparent } })
        yield* client.call("ok")
        const [both, only] = spans.filter((span) => span.kind === "server")
        expect(parentOf(both!)).toMatchObject({ _tag: "ExternalSpan", traceId, spanId, sampled: true })
        expect(both!.traceId).toBe(traceId)
        expect(both!.links.map(({ span }) => span.spanId)).toEqual(["b7ad6b7169203331"])
        expect(parentOf(only!)?.spanId).toBe("b7ad6b7169203331")
        expect(only!.links).toEqual([])
      }))

    it.effect("does not sample a request that its caller does not sample, and ignores an invalid traceparent", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const client = yield* kit.client(server, revision)
        spans.length = 0
        for (const value of [`00-${traceId}-${spanId}-00`, "nonsense", `00-${"0".repeat(32)}-${spanId}-01`, 7]) {
          yield* client.result("tools/call", { name: "ok", _meta: { traceparent: value } })
        }
        const requests = spans.filter((span) => span.kind === "server")
        expect(requests.map((span) => span.sampled)).toEqual([false, true, true, true])
        expect(requests.map((span) => parentOf(span)?.spanId)).toEqual([spanId, undefined, undefined, undefined])
      }))

    it.effect("links or ignores the client's span with the option remote", () =>
      Effect.gen(function*() {
        const call = (remote: "link" | "ignore") =>
          Effect.gen(function*() {
            const { server, spans } = traced({ remote })
            const origin = support.headers({ traceparent: httpTrace })
            const client = yield* support.connect(yield* support.build(server), revision, origin)
            spans.length = 0
            yield* client.result("tools/call", { name: "ok", _meta: { traceparent } })
            return spans.find((span) => span.kind === "server")!
          })
        const linked = yield* call("link")
        expect(parentOf(linked)).toBeUndefined()
        expect(linked.links.map(({ span }) => span.spanId)).toEqual([spanId, "b7ad6b7169203331"])
        const ignored = yield* call("ignore")
        expect(parentOf(ignored)).toBeUndefined()
        expect(ignored.links).toEqual([])
      }))

    it.effect("the span in which the server was built is not the parent of requests", () =>
      Effect.gen(function*() {
        const { server, spans } = traced()
        const built = yield* support.build(server).pipe(Effect.withSpan("main"))
        const client = yield* support.connect(built, revision)
        yield* client.call("ok")
        expect(spans.filter((span) => span.kind === "server").map(parentOf)).toEqual(
          Array.from({ length: revision === "2026-07-28" ? 1 : 2 }, () => undefined)
        )
      }))

    it.effect("passes tracestate and baggage to the handler, and annotates logs with the ids of the span", () =>
      Effect.gen(function*() {
        const { layer, spans } = double()
        const logs: Array<object> = []
        const logger = Logger.make<unknown, void>(({ fiber }) => {
          logs.push(fiber.getRef(References.CurrentLogAnnotations))
        })
        const seen: Array<unknown> = []
        const look = Tool.layer(Tool.make("look"), () =>
          Effect.gen(function*() {
            seen.push(yield* Telemetry.Remote)
            yield* Effect.logInfo("hello")
            return "x"
          }))
        const server = kit.server(Telemetry.layer(), look).pipe(
          Layer.provide(Layer.merge(layer, Logger.layer([logger])))
        )
        const client = yield* kit.client(server, revision)
        spans.length = 0
        const _meta = { traceparent, tracestate: "vendor=1", baggage: "user=alice" }
        yield* client.result("tools/call", { name: "look", _meta })
        yield* client.call("look")
        expect(seen).toEqual([
          { parent: { traceId, spanId, sampled: true }, tracestate: "vendor=1", baggage: "user=alice" },
          undefined
        ])
        expect(logs[0]).toEqual({ trace_id: traceId, span_id: spans[0]!.spanId })
        const parent = parentOf(spans[0]!)!
        expect(Context.get(parent.annotations, Telemetry.Remote)?.tracestate).toBe("vendor=1")
      }))

    it.effect("clients receive the same logs with and without telemetry", () =>
      Effect.gen(function*() {
        const says = Tool.layer(Tool.make("says"), () => Effect.as(Effect.logInfo("hello"), "x"))
        const client = yield* kit.client(kit.server(Telemetry.layer(), says), revision)
        if (revision === "2025-11-25") yield* client.request("logging/setLevel", { level: "info" })
        const _meta = revision === "2025-11-25" ? {} : { "io.modelcontextprotocol/logLevel": "info" }
        yield* client.result("tools/call", { name: "says", _meta })
        yield* kit.settle
        expect(client.notices("notifications/message").map(({ params }) => params.data)).toEqual(["hello"])
      }))

    it.effect("adds mcp.session.id only with the option", () =>
      Effect.gen(function*() {
        const call = (options: Telemetry.Options) =>
          Effect.gen(function*() {
            const { server, spans } = traced(options)
            const origin = support.headers({ "mcp-session-id": "secret" })
            const client = yield* support.connect(yield* support.build(server), revision, origin)
            spans.length = 0
            yield* client.call("ok")
            return spans[0]!.attributes.get("mcp.session.id")
          })
        expect(yield* call({})).toBeUndefined()
        expect(yield* call({ sessionId: true })).toBe("secret")
      }))

    it.effect("records no spans and no metrics without the layer", () =>
      Effect.gen(function*() {
        const { layer, spans } = double()
        const registry = new Map()
        const provided = Layer.merge(layer, Layer.succeed(Metric.MetricRegistry, registry))
        const client = yield* kit.client(kit.server(...tools).pipe(Layer.provide(provided)), revision)
        yield* client.result("prompts/get", { name: "p", _meta: { traceparent } })
        expect(spans).toEqual([])
        expect(registry.size).toBe(0)
      }))
  })

  describe(`${revision} · metrics`, () => {
    const measured = (options: Telemetry.Options = {}, ...more: ReadonlyArray<McpServer.Definitions>) => {
      const registry: Context.Service.Shape<typeof Metric.MetricRegistry> = new Map()
      const definitions = kit.server(Telemetry.layer(options), ...more, ...tools)
      const server = definitions.pipe(Layer.provide(Layer.succeed(Metric.MetricRegistry, registry))) as kit.Server
      const snapshot = Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry)
      const read = (name: string) =>
        Effect.map(
          snapshot,
          (all) => all.filter(({ id }) => id === name).map(({ attributes, state }): any => ({ attributes, state }))
        )
      return { server, read }
    }

    it.effect("counts requests by method, target and outcome, and measures their duration", () =>
      Effect.gen(function*() {
        const { read, server } = measured()
        const client = yield* kit.client(server, revision)
        yield* client.call("ok")
        yield* client.call("ok")
        for (const name of ["fails", "refuses", "made up", "made up too"]) yield* client.request("tools/call", { name })
        const slow = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        yield* TestClock.adjust("3 seconds")
        yield* client.answer(slow)
        for (const method of ["no/such", "nor/this"]) yield* client.request(method)
        const counts = (yield* read("mcp.server.requests"))
          .map((
            { attributes, state }
          ) => [attributes["mcp.method.name"], attributes["gen_ai.tool.name"], attributes.outcome, state.count])
          .filter(([method, , , count]) => method !== "initialize" && count > 0)
        expect(counts).toEqual([
          ["tools/call", "ok", "ok", 2],
          ["tools/call", "fails", "tool_error", 1],
          ["tools/call", "refuses", "error", 1],
          ["tools/call", undefined, "error", 2],
          ["tools/call", "slow", "ok", 1],
          ["_OTHER", undefined, "error", 2]
        ])
        const durations = yield* read("mcp.server.operation.duration")
        const of = (name: string) => durations.find(({ attributes }) => attributes["gen_ai.tool.name"] === name)
        expect(of("slow").state).toMatchObject({ count: 1, min: 3, max: 3, sum: 3 })
        expect(of("slow").attributes).toMatchObject({
          unit: "s",
          "mcp.method.name": "tools/call",
          "mcp.protocol.version": revision,
          "gen_ai.operation.name": "execute_tool"
        })
        expect(of("refuses").attributes).toMatchObject({ "error.type": "7", "rpc.response.status_code": "7" })
        expect(of("slow").state.buckets.map(([boundary]: [number]) => boundary)).toEqual(
          [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
        )
      }))

    it.effect("counts requests that other middleware refuses", () =>
      Effect.gen(function*() {
        const { read, server } = measured({}, RateLimit.layer({ limit: 1 }))
        const client = yield* kit.client(server, revision)
        yield* client.call("ok")
        yield* client.request("tools/call", { name: "ok" })
        const codes = (yield* read("mcp.server.requests")).map(({ attributes }) =>
          attributes["rpc.response.status_code"]
        )
        expect(codes.filter((code) => code === "429")).toEqual(["429"])
      }))

    it.effect("counts requests together beyond a number of series", () =>
      Effect.gen(function*() {
        const many = Array.from({ length: 10 }, (_, i) => Tool.layer(Tool.make(`t${i}`), () => Effect.succeed("x")))
        const { read, server } = measured({}, ...many)
        const bounded = Layer.provide(server, Layer.succeed(Bounds, { ...fixedBounds, maxSeries: 4 }))
        const client = yield* kit.client(bounded, revision)
        for (let i = 0; i < 10; i++) yield* client.call(`t${i}`)
        const counts = yield* read("mcp.server.requests")
        expect(counts).toHaveLength(5)
        const handshake = revision === "2026-07-28" ? 0 : 1
        expect(counts.find(({ attributes }) => attributes["mcp.method.name"] === "_OTHER").state.count).toBe(
          8 + handshake
        )
      }))

    for (const spans of [true, false]) {
      it.effect(`has the requests in progress, ${spans ? "with" : "without"} spans`, () =>
        Effect.gen(function*() {
          const gates = { one: Latch.makeUnsafe(false), two: Latch.makeUnsafe(false) }
          const one = Tool.layer(Tool.make("one"), () => Effect.andThen(gates.one.await, Effect.die("it fails")))
          const two = Tool.layer(Tool.make("two"), () => Effect.as(gates.two.await, "done"))
          const { read, server } = measured({ spans }, one, two)
          const client = yield* kit.client(server, revision)
          const active = Effect.map(read("mcp.server.active_requests"), ([gauge]) => gauge?.state.value ?? 0)
          const calls = yield* Effect.forEach(["one", "two"], (name) => Effect.forkChild(client.call(name)))
          yield* kit.settle
          expect(yield* active).toBe(2)
          gates.one.openUnsafe()
          yield* Fiber.join(calls[0]!)
          expect(yield* active).toBe(1)
          gates.two.openUnsafe()
          yield* Fiber.join(calls[1]!)
          expect(yield* active).toBe(0)
        }))
    }

    it.effect("counts the streams and refusals that a transport reports", () =>
      Effect.gen(function*() {
        const { read, server } = measured()
        const { [internals]: core } = yield* support.build(server)
        const observer = core.observer!
        for (const status of [403, 403, 413]) observer.refused(status)
        observer.streamOpened()
        observer.streamOpened()
        observer.streamClosed()
        expect(
          (yield* read("mcp.server.refusals")).map((
            { attributes, state }
          ) => [attributes["http.response.status_code"], state.count])
        ).toEqual([["403", 2], ["413", 1]])
        expect((yield* read("mcp.server.streams"))[0].state.value).toBe(1)
      }))
  })
}

it.effect("2025-11-25 · counts open sessions and measures their duration", () =>
  Effect.gen(function*() {
    const registry: Context.Service.Shape<typeof Metric.MetricRegistry> = new Map()
    const server = yield* support.build(
      kit.server(Telemetry.layer({ transport: "pipe" }), ...tools).pipe(
        Layer.provide(Layer.succeed(Metric.MetricRegistry, registry))
      )
    )
    const snapshot = (name: string) =>
      Effect.map(
        Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry),
        (all): any => all.find(({ id }) => id === name)
      )
    const scope = yield* Scope.make()
    yield* Effect.provideService(support.connect(server, "2025-11-25"), Scope.Scope, scope)
    const other = yield* support.connect(server, "2025-11-25")
    yield* support.connect(server, "2026-07-28")
    expect((yield* snapshot("mcp.server.sessions")).state.value).toBe(2)
    yield* TestClock.adjust("90 seconds")
    yield* Scope.close(scope, Exit.void)
    expect((yield* snapshot("mcp.server.sessions")).state.value).toBe(1)
    const duration = yield* snapshot("mcp.server.session.duration")
    expect(duration.state).toMatchObject({ count: 1, sum: 90 })
    expect(duration.attributes).toEqual({
      unit: "s",
      "mcp.protocol.version": "2025-11-25",
      "network.transport": "pipe"
    })
    // A second `initialize` ends the earlier session.
    yield* TestClock.adjust("10 seconds")
    yield* other.result("initialize", kit.hello("2025-11-25"))
    expect((yield* snapshot("mcp.server.sessions")).state.value).toBe(1)
    expect((yield* snapshot("mcp.server.session.duration")).state).toMatchObject({ count: 2, sum: 190 })
  }))

it.effect("removes its observer when its scope closes", () =>
  Effect.gen(function*() {
    const context = yield* Effect.orDie(Layer.build(kit.server(...tools)))
    const { [internals]: core } = Context.get(context, McpServer.McpServer)
    expect(core.observer).toBeUndefined()
    const scope = yield* Scope.make()
    yield* Effect.orDie(Layer.buildWithScope(Telemetry.layer(), scope)).pipe(Effect.provide(context))
    expect(core.observer).toBeDefined()
    yield* Scope.close(scope, Exit.void)
    expect(core.observer).toBeUndefined()
  }))

it.effect("2026-07-28 · a handler that is interrupted for its input requests is not an error", () =>
  Effect.gen(function*() {
    const { layer, spans } = double()
    const asks = Tool.layer(
      Tool.make("asks"),
      () =>
        Effect.flatMap(McpRequest, (exchange) =>
          Effect.callback<string>(() => {
            queueMicrotask(() => {
              exchange.exchange.replaceWith(Effect.succeed({ resultType: "complete", content: [] }))
            })
          }))
    )
    const server = kit.server(Telemetry.layer(), asks).pipe(Layer.provide(layer))
    yield* (yield* kit.client(server, "2026-07-28")).call("asks")
    expect(exitOf(spans[0]!)?._tag).toBe("Success")
  }))
