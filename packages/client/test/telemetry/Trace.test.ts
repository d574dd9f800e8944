/** The trace context of requests, and the spans of a client. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as TraceContext from "@skein/protocol/TraceContext"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as ServerTelemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as Client from "../../src/Client.ts"
import * as Telemetry from "../../src/Telemetry.ts"
import { acceptSubscriptions, metaOf, open, run, settle } from "../subscriptions/kit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "00f067aa0ba902b7"
const remote = Tracer.externalSpan({ traceId, spanId, sampled: true })

const metas = (server: ScriptedServer.ScriptedServer, method = "tools/call"): ReadonlyArray<JsonRpc.JsonObject> =>
  server.requests(method).map(metaOf)

const complete: ScriptedServer.Reply = ScriptedServer.success({ resultType: "complete", content: [] })

/** A tracer that records its spans. */
const recorder = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, provide: Effect.provideService(Tracer.Tracer, tracer) }
}

const shown = ({ attributes, kind, name, status }: Tracer.NativeSpan) => ({
  name,
  kind,
  attributes: Object.fromEntries(attributes),
  ended: status._tag === "Ended" ? status.exit._tag : undefined
})

describe("_meta", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · has the traceparent of the caller's span, and none without a span`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision, () => complete)
        yield* client.callTool("t")
        yield* Effect.withSpan(client.callTool("t"), "host", { parent: remote })
        yield* Effect.withParentSpan(client.callTool("t"), remote)
        const [none, inside, external] = metas(server)
        assert.notProperty(none, "traceparent")
        assert.match(String(inside!["traceparent"]), new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
        assert.strictEqual(external!["traceparent"], `00-${traceId}-${spanId}-01`)
        assert.deepStrictEqual(Object.keys(external!).filter((key) => key !== "traceparent"), Object.keys(none!))
        // The progress token of the same request stays in _meta.
        yield* Effect.withParentSpan(client.callTool("t", {}, { onProgress: () => {} }), remote)
        assert.containsAllKeys(metas(server)[3]!, ["progressToken", "traceparent"])
      }))
  }

  it.effect("2026-07-28 · their values MUST follow W3C Trace Context: omits spans with invalid ids or with propagation disabled", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2026-07-28", () => complete)
      const call = client.callTool("t")
      yield* Effect.withParentSpan(call, Tracer.externalSpan({ traceId: "noop", spanId: "noop" }))
      yield* Effect.withParentSpan(call, Tracer.externalSpan({ traceId: "0".repeat(32), spanId }))
      yield* Effect.provideService(Effect.withParentSpan(call, remote), Tracer.DisablePropagation, true)
      for (const meta of metas(server)) assert.notProperty(meta, "traceparent")
      // A span that is not traced is skipped in favour of its parent.
      const hidden = Effect.withTracerEnabled(Effect.withSpan(call, "hidden"), false)
      yield* Effect.withParentSpan(hidden, remote)
      assert.strictEqual(metas(server)[3]!["traceparent"], `00-${traceId}-${spanId}-01`)
      yield* Effect.withParentSpan(call, Tracer.externalSpan({ traceId, spanId, sampled: false }))
      assert.strictEqual(metas(server)[4]!["traceparent"], `00-${traceId}-${spanId}-00`)
    }))

  it.effect("2026-07-28 · forwards the tracestate of a handler's request to its own requests, but not the baggage", () =>
    Effect.gen(function*() {
      const upstream = yield* open("2026-07-28", () => complete)
      const call = Effect.orDie(upstream.client.callTool("t"))
      // The second call belongs to another trace.
      const calls = Effect.andThen(call, Effect.withSpan(call, "apart", { root: true }))
      const proxy = Tool.layer(Tool.make("proxy"), () => Effect.as(calls, "ok"))
      const layer = McpServer.layer(
        { name: "proxy", version: "1.0.0" },
        ServerTelemetry.layer({ metrics: false }),
        proxy
      )
      const { serve } = Context.get(yield* Layer.build(layer), McpServer.McpServer)
      const [near, far] = yield* InMemoryTransport.make()
      yield* serve(far)
      near.open({ message: () => {}, end: () => {} })
      const about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
      }
      const trace = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "vendor=1", baggage: "user=7" }
      near.send({
        _tag: "Request",
        id: 1,
        method: "tools/call",
        params: { name: "proxy", _meta: { ...about, ...trace } }
      })
      yield* settle
      const [meta, apart] = metas(upstream.server)
      assert.isDefined(TraceContext.parseParent(apart!["traceparent"]))
      assert.notStrictEqual(TraceContext.parseParent(apart!["traceparent"])?.traceId, traceId)
      assert.notProperty(apart, "tracestate")
      assert.strictEqual(TraceContext.parseParent(meta!["traceparent"])?.traceId, traceId)
      assert.notStrictEqual(meta!["traceparent"], trace.traceparent)
      assert.strictEqual(meta!["tracestate"], "vendor=1")
      assert.notProperty(meta, "baggage")
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · makes the span of a Skein server a child of the client's span`, () => {
      const { provide, spans } = recorder()
      return Effect.gen(function*() {
        const tool = Tool.layer(Tool.make("t"), () => Effect.succeed("ok"))
        const layer = McpServer.layer(
          { name: "traced", version: "1.0.0" },
          ServerTelemetry.layer({ metrics: false }),
          tool
        )
        const { serve } = Context.get(yield* Layer.build(layer), McpServer.McpServer)
        const options = { revisions: [revision], telemetry: Telemetry.make() }
        const client = yield* Client.make(InMemoryTransport.transport(serve), options)
        yield* Effect.withSpan(client.callTool("t"), "host")
        const [host, sent, handled] = ["host", "client", "server"].map((wanted) =>
          spans.find(({ kind, name }) => name === wanted || (name === "tools/call t" && kind === wanted))!
        )
        assert.strictEqual(sent!.traceId, host!.traceId)
        assert.strictEqual(handled!.traceId, host!.traceId)
        const parentOf = ({ parent }: Tracer.NativeSpan) => parent._tag === "Some" ? parent.value.spanId : undefined
        assert.strictEqual(parentOf(sent!), host!.spanId)
        assert.strictEqual(parentOf(handled!), sent!.spanId)
      }).pipe(provide)
    })
  }
})

describe("Telemetry", () => {
  const traced = (script: Parameters<typeof open>[1], options?: Telemetry.Options) =>
    Effect.map(open("2025-11-25", script, { telemetry: Telemetry.make(options) }), ({ client }) => client)

  it.effect("records a span for each request according to the semantic conventions", () => {
    const { provide, spans } = recorder()
    const base = { "mcp.protocol.version": "2025-11-25", "server.address": "here", "network.transport": "pipe" }
    return Effect.gen(function*() {
      const script = ({ method }: JsonRpc.Request) =>
        method === "prompts/get"
          ? ScriptedServer.success({ messages: [] })
          : method === "resources/read"
          ? ScriptedServer.success({ contents: [] })
          : ScriptedServer.success({ content: [] })
      const client = yield* traced(script, { transport: "pipe", attributes: { "server.address": "here" } })
      assert.strictEqual(spans.length, 0)
      yield* client.callTool("search", { q: "secret" })
      yield* client.getPrompt("p")
      yield* client.readResource("file:///x")
      yield* client.ping()
      assert.deepStrictEqual(spans.map(shown), [
        {
          name: "tools/call search",
          kind: "client",
          attributes: {
            ...base,
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search"
          },
          ended: "Success"
        },
        {
          name: "prompts/get p",
          kind: "client",
          attributes: { ...base, "mcp.method.name": "prompts/get", "gen_ai.prompt.name": "p" },
          ended: "Success"
        },
        {
          name: "resources/read",
          kind: "client",
          attributes: { ...base, "mcp.method.name": "resources/read", "mcp.resource.uri": "file:///x" },
          ended: "Success"
        },
        { name: "ping", kind: "client", attributes: { ...base, "mcp.method.name": "ping" }, ended: "Success" }
      ])
    }).pipe(provide)
  })

  it.effect("error.type: the code of the error, tool_error or the client's reason; absent after an interruption", () => {
    const { provide, spans } = recorder()
    return Effect.gen(function*() {
      const replies: Array<ScriptedServer.Reply> = [
        ScriptedServer.failure(-32602, "No"),
        ScriptedServer.failure(-32002, "Gone"),
        ScriptedServer.success({ content: [], isError: true }),
        "no response",
        "no response"
      ]
      const client = yield* traced(() => replies.shift()!)
      yield* Effect.flip(client.callTool("t"))
      yield* Effect.flip(client.readResource("a:b"))
      yield* client.callTool("t")
      yield* Effect.flip(client.callTool("t", {}, { timeout: 0 })).pipe(
        Effect.forkChild,
        Effect.tap(settle),
        Effect.flatMap(Fiber.join)
      )
      yield* Fiber.interrupt(yield* Effect.forkChild(client.callTool("t"), { startImmediately: true }))
      const errors = spans.map((span) => {
        const { attributes, ended } = shown(span)
        return [attributes["error.type"], attributes["rpc.response.status_code"], ended]
      })
      assert.deepStrictEqual(errors, [
        ["-32602", "-32602", "Failure"],
        ["-32002", "-32002", "Failure"],
        ["tool_error", undefined, "Failure"],
        ["Timeout", undefined, "Failure"],
        [undefined, undefined, "Failure"]
      ])
    }).pipe(provide)
  })

  it.effect("truncates names and URIs", () => {
    const { provide, spans } = recorder()
    return Effect.gen(function*() {
      const client = yield* traced(({ method }) =>
        method === "resources/read" ? ScriptedServer.success({ contents: [] }) : ScriptedServer.success({ content: [] })
      )
      yield* client.callTool("t".repeat(1000))
      yield* client.readResource(`a:${"b".repeat(5000)}`)
      assert.strictEqual(spans[0]!.name.length, "tools/call ".length + 129)
      assert.strictEqual((spans[0]!.attributes.get("gen_ai.tool.name") as string).length, 129)
      assert.strictEqual((spans[1]!.attributes.get("mcp.resource.uri") as string).length, 1025)
    }).pipe(provide)
  })

  it.effect("records no span for a subscription, which has no end, and none without telemetry", () => {
    const { provide, spans } = recorder()
    return Effect.gen(function*() {
      const one = yield* open("2026-07-28", acceptSubscriptions, { telemetry: Telemetry.make() })
      const seen = yield* run(one.client, { tools: true })
      assert.deepStrictEqual(seen.tags, ["Subscribed"])
      const two = yield* open("2026-07-28", () => complete)
      yield* two.client.callTool("t")
      assert.strictEqual(spans.length, 0)
    }).pipe(provide)
  })
})
