import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as ServerProgress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as AiTool from "effect/ai/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Toolkit from "../../src/Toolkit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const usage = { inputTokens: {}, outputTokens: {} }

/** A model that calls one tool, and records the tools and results that it receives. */
const model = (name: string, params: unknown) => {
  const shown: Array<AiTool.Any> = []
  const call = { type: "tool-call", id: "call_1", name, params } as const
  const make = LanguageModel.make({
    generateText: ({ tools }) => {
      shown.push(...tools)
      return Effect.succeed([call, { type: "finish", reason: "tool-calls", usage } as Response.PartEncoded])
    },
    streamText: () => Stream.make(call, { type: "finish", reason: "tool-calls", usage } as Response.StreamPartEncoded)
  })
  return { shown, service: make }
}

const ask = <Mode extends AiTool.FailureMode>(
  toolkit: Toolkit.Toolkit<Mode>,
  name: string,
  params: unknown
) => {
  const { service } = model(name, params)
  return Effect.flatMap(service, (languageModel) => languageModel.generateText({ prompt: "Do it", toolkit }))
}

/** The only result of the model's call. */
const resultOf = (response: { readonly toolResults: ReadonlyArray<unknown> }) =>
  response.toolResults[0] as Response.ToolResultPart<string, any, any>

const Server = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  Tool.layer(
    Tool.make("greet", { description: "Greets a person", title: "Greet", input: { name: Schema.String } }),
    ({ name }) => Effect.succeed(`Hello, ${name}!`)
  ),
  Tool.layer(
    Tool.make("add", { input: { a: Schema.Finite, b: Schema.Finite }, output: { sum: Schema.Finite } }),
    ({ a, b }) => Effect.succeed({ sum: a + b })
  ),
  Tool.layer(Tool.make("brew"), () =>
    Effect.gen(function*() {
      yield* ServerProgress.report({ progress: 1, total: 2, message: "Heating" })
      yield* ServerProgress.report({ progress: 2, total: 2, message: "Steeping" })
      return "Tea"
    }))
)

const connect = Effect.gen(function*() {
  const server = yield* McpServer.McpServer
  return yield* Client.make(InMemoryTransport.transport(server.serve))
})

// Values that a model must receive exactly as the server wrote them.
const inputSchema = {
  type: "object",
  $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
  properties: {
    list: { $ref: "#/$defs/node" },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
    when: { not: { contains: { const: 1 } }, "x-vendor": ["kept"] }
  },
  required: ["list"],
  additionalProperties: false
}

const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** A server with these tools. It responds to a call with the value under the tool's name. */
const answers = (
  tools: ReadonlyArray<JsonObject & { readonly name: string }>,
  results: Readonly<Record<string, JsonObject>> = {}
) =>
  ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method, params }) => {
    if (method === "tools/list") {
      return ScriptedServer.success({ tools: tools.map((tool) => ({ inputSchema: { type: "object" }, ...tool })) })
    }
    const result = method === "tools/call" ? results[String(params?.["name"])] : undefined
    return result === undefined ? ScriptedServer.methodNotFound(method) : ScriptedServer.success(result)
  }, { tools: {} }))

describe("a toolkit", () => {
  it.effect("MCP Apps 2026-01-26 · MUST NOT include tools whose visibility does not include the model", () =>
    Effect.gen(function*() {
      const listed = (name: string, visibility?: unknown) => ({
        name,
        inputSchema: { type: "object" },
        ...(visibility === undefined ? undefined : { _meta: { ui: { visibility } } })
      })
      const tools = [
        listed("plain"),
        listed("both", ["model", "app"]),
        listed("page", ["app"]),
        listed("none", []),
        listed("malformed", "app")
      ]
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ tools }), { tools: {} })
      )
      const toolkit = yield* Client.toolkit(yield* Client.make(server.transport), { include: () => true })
      assert.deepStrictEqual(Object.keys(toolkit.tools), ["plain", "both", "malformed"])
    }))

  it.effect("lets a model call a remote tool of a Skein server, end to end", () =>
    Effect.gen(function*() {
      const toolkit = yield* Client.toolkit(yield* connect)
      const { shown, service } = model("greet", { name: "Ada" })
      const response = yield* (yield* service).generateText({ prompt: "Greet Ada", toolkit })
      assert.deepStrictEqual(shown.map(({ name }) => name), ["greet", "add", "brew"])
      const part = resultOf(response)
      assert.isFalse(part.isFailure)
      assert.deepStrictEqual(part.result.content, [Content.text("Hello, Ada!")])
      const parts = part.modelOutput!.map((part) => part.type === "text" ? part.text : part.mediaType)
      assert.deepStrictEqual(parts, ["Hello, Ada!"])
      const sum = resultOf(yield* ask(toolkit, "add", { a: 1, b: 2 }))
      assert.deepStrictEqual(sum.result.structuredContent, { sum: 3 })
    }).pipe(Effect.provide(Server)))

  it.effect("passes the server's JSON Schema, description and hints to the model unchanged with schemas: none", () =>
    Effect.gen(function*() {
      const tool = {
        name: "walk",
        title: "Walk",
        description: "Walks a list",
        inputSchema,
        annotations,
        _meta: { a: 1 }
      }
      const client = yield* Client.make(answers([tool]).transport)
      const { service, shown } = model("walk", {})
      const toolkit = yield* Client.toolkit(client, { schemas: "none" })
      yield* Effect.exit((yield* service).generateText({ prompt: "Walk", toolkit }))
      assert.isUndefined(AiTool.getStrictMode(shown[0]!))
      assert.deepStrictEqual(AiTool.getJsonSchema(shown[0]!), inputSchema)
      assert.strictEqual(AiTool.getDescription(shown[0]!), "Walks a list")
      const hints = shown[0]!.annotations
      assert.strictEqual(Context.get(hints as Context.Context<AiTool.Title>, AiTool.Title), "Walk")
      assert.deepStrictEqual(Context.get(hints as Context.Context<AiTool.Meta>, AiTool.Meta), { a: 1 })
      assert.deepStrictEqual(
        [AiTool.Readonly, AiTool.Destructive, AiTool.Idempotent, AiTool.OpenWorld].map((hint) =>
          Context.get(hints, hint)
        ),
        [true, false, true, false]
      )
    }))

  it.effect("combines several servers with prefixed names, and omits a broken one", () =>
    Effect.gen(function*() {
      const replyOf = (text: string) => ({ content: [{ type: "text", text }] })
      const one = yield* Client.make(answers([{ name: "read" }], { read: replyOf("one") }).transport)
      const two = yield* Client.make(answers([{ name: "read" }], { read: replyOf("two") }).transport)
      const broken = yield* Client.make(ScriptedServer.make(ScriptedServer.handshake("2025-11-25")).transport)
      const toolkit = yield* Client.toolkit({ one, two, broken })
      assert.deepStrictEqual(Object.keys(toolkit.tools), ["one_read", "two_read"])
      assert.deepStrictEqual(toolkit.missing.map(({ error, server }) => [server, error.reason._tag]), [[
        "broken",
        "ProtocolError"
      ]])
      assert.strictEqual(toolkit.origins.get("two_read")?.server, "two")
      assert.deepStrictEqual(resultOf(yield* ask(toolkit, "two_read", {})).result.content, [Content.text("two")])
    }))

  it.effect("fails when a single client cannot list its tools, and is empty when the client has none", () =>
    Effect.gen(function*() {
      const broken = yield* Client.make(ScriptedServer.make(ScriptedServer.handshake("2025-11-25")).transport)
      assert.strictEqual((yield* Effect.flip(Client.toolkit(broken))).reason._tag, "ProtocolError")
      const mute = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2025-11-25", undefined, {})).transport
      )
      assert.deepStrictEqual((yield* Client.toolkit(mute)).tools, {})
    }))

  it.effect("omits a server that does not list its tools within 30 seconds", () =>
    Effect.gen(function*() {
      const slow = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response", { tools: {} })).transport
      )
      const quick = yield* Client.make(answers([{ name: "read" }]).transport)
      const making = yield* Effect.forkChild(Client.toolkit({ slow, quick }), { startImmediately: true })
      yield* Effect.promise(() => import("../../src/Toolkit.ts"))
      yield* TestClock.adjust("30 seconds")
      const toolkit = yield* Fiber.join(making)
      assert.deepStrictEqual(Object.keys(toolkit.tools), ["quick_read"])
      assert.strictEqual(toolkit.missing[0]?.error.reason._tag, "Timeout")
    }))

  it.effect("sends a call to the current client of a pool entry", () =>
    Effect.gen(function*() {
      const server = answers([{ name: "read" }], { read: { content: [] } })
      const pool = yield* ClientPool.make({ files: { transport: server.transport } })
      const toolkit = yield* Client.toolkit(pool)
      yield* pool.restart("files")
      assert.isFalse(resultOf(yield* ask(toolkit, "files_read", {})).isFailure)
      assert.strictEqual(server.connections, 2)
      yield* pool.remove("files")
      const { isFailure, result } = resultOf(yield* ask(toolkit, "files_read", {}))
      assert.deepStrictEqual([isFailure, result.reason], [true, "ServerNotFound"])
    }))

  it.effect("contains the included tools, up to `maxTools`, 512 by default", () =>
    Effect.gen(function*() {
      const tools = Array.from({ length: 600 }, (_, at) => ({ name: `t${at}` }))
      const client = yield* Client.make(answers(tools).transport)
      const whole = yield* Client.toolkit(client)
      assert.deepStrictEqual([Object.keys(whole.tools).length, whole.omitted.length], [512, 88])
      assert.strictEqual(whole.omitted[0]?.tool.name, "t512")
      const some = yield* Client.toolkit(client, { include: (_, { name }) => name.endsWith("99"), maxTools: 4 })
      assert.deepStrictEqual(Object.keys(some.tools), ["t99", "t199", "t299", "t399"])
    }))

  it.effect("can require the host's approval for a tool", () =>
    Effect.gen(function*() {
      const server = answers([{ name: "read" }, { name: "delete" }], { delete: { content: [] } })
      const toolkit = yield* Client.toolkit(yield* Client.make(server.transport), {
        needsApproval: (_, { name }) => name === "delete"
      })
      const { content } = yield* ask(toolkit, "delete", {})
      assert.include(content.map(({ type }) => type), "tool-approval-request")
      assert.strictEqual(server.requests("tools/call").length, 0)
    }))

  it.effect("ends a call at the request timeout", () =>
    Effect.gen(function*() {
      const called = yield* Deferred.make<void>()
      const { transport } = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method }) => {
        if (method === "tools/list") {
          return ScriptedServer.success({ tools: [{ name: "t", inputSchema: { type: "object" } }] })
        }
        Deferred.doneUnsafe(called, Exit.void)
        return "no response"
      }))
      const toolkit = yield* Client.toolkit(yield* Client.make(transport), { request: { timeout: "5 seconds" } })
      const asking = yield* Effect.forkChild(ask(toolkit, "t", {}))
      yield* Deferred.await(called)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(resultOf(yield* Fiber.join(asking)).result.reason, "Timeout")
    }))

  it.effect("contains the current tools when it is rebuilt on each change", () =>
    Effect.gen(function*() {
      let tools = ["a"]
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method }) =>
        method === "tools/list"
          ? ScriptedServer.success({ tools: tools.map((name) => ({ name, inputSchema: { type: "object" } })) })
          : ScriptedServer.methodNotFound(method)))
      const client = yield* Client.make(server.transport)
      const seen: Array<ReadonlyArray<string>> = []
      const watching = client.changes({ tools: true }).pipe(
        Stream.mapEffect(() => Client.toolkit(client)),
        Stream.take(2),
        Stream.runForEach((toolkit) => {
          seen.push(Object.keys(toolkit.tools))
          tools = ["a", "b"]
          server.notify("notifications/tools/list_changed")
          return Effect.void
        })
      )
      yield* watching
      assert.deepStrictEqual(seen, [["a"], ["a", "b"]])
    }))

  it.effect("supports a tool named like a member of Object.prototype", () =>
    Effect.gen(function*() {
      const names = ["__proto__", "constructor", "toString"]
      const results = Object.fromEntries(names.map((name) => [name, { content: [{ type: "text", text: name }] }]))
      const client = yield* Client.make(answers(names.map((name) => ({ name })), results).transport)
      const toolkit = yield* Client.toolkit(client)
      for (const name of names) {
        assert.deepStrictEqual(resultOf(yield* ask(toolkit, name, {})).result.content, [Content.text(name)])
      }
    }))
})

describe("the result of a tool", () => {
  const content = [
    { type: "text", text: "Look" },
    { type: "image", data: "aW1n", mimeType: "image/png" },
    { type: "audio", data: "c25k", mimeType: "audio/wav" },
    { type: "resource", resource: { uri: "file:///a", text: "inside" } },
    { type: "resource", resource: { uri: "file:///b", mimeType: "application/pdf", blob: "cGRm" } },
    { type: "resource_link", uri: "file:///c", name: "c" }
  ]

  const callOf = (result: JsonObject, options?: Toolkit.Options<"return">) =>
    Effect.gen(function*() {
      const client = yield* Client.make(answers([{ name: "t" }], { t: result }).transport)
      return resultOf(yield* ask(yield* Client.toolkit(client, options), "t", {}))
    })

  it.effect("reaches the host complete, and the model as separate blocks", () =>
    Effect.gen(function*() {
      const result = { content, structuredContent: { a: [1] }, _meta: { "example.com/x": true } }
      const part = yield* callOf(result)
      const whole = { ...result, resultType: "complete" }
      assert.deepStrictEqual(part.result, whole)
      assert.deepStrictEqual(part.encodedResult, whole)
      assert.deepStrictEqual(
        part.modelOutput!.map((part) => part.type === "text" ? part.text : [part.mediaType, part.fileName, part.data]),
        [
          "Look",
          ["image/png", undefined, "aW1n"],
          ["audio/wav", undefined, "c25k"],
          "inside",
          ["application/pdf", "file:///b", "cGRm"],
          "[resource: c] file:///c"
        ]
      )
    }))

  it.effect("is shown as text when it has only structured content", () =>
    Effect.gen(function*() {
      const part = yield* callOf({ content: [], structuredContent: { sum: 3 } })
      assert.deepStrictEqual(part.modelOutput!.map((part) => part.type === "text" && part.text), ["{\"sum\":3}"])
    }))

  it.effect("is a failure to the model with `isError`", () =>
    Effect.gen(function*() {
      const part = yield* callOf({ content, isError: true })
      assert.isTrue(part.isFailure)
      assert.deepStrictEqual(part.encodedResult, {
        _tag: "ToolFailure",
        tool: "t",
        reason: "ToolFailed",
        message: "Look\n[image/png]\n[audio/wav]\ninside\n[application/pdf]\n[resource: c] file:///c"
      })
      assert.deepStrictEqual(part.result.result.content, content)
    }))

  it.effect("is a failure to the model when the server responds with an error, which the host receives", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(answers([{ name: "t" }]).transport)
      const toolkit = yield* Client.toolkit({ s: client })
      const { encodedResult, isFailure, result } = resultOf(yield* ask(toolkit, "s_t", {}))
      assert.isTrue(isFailure)
      assert.strictEqual((encodedResult as JsonObject)["reason"], "ProtocolError")
      assert.strictEqual((encodedResult as JsonObject)["server"], "s")
      assert.isUndefined((encodedResult as JsonObject)["error"])
      const reason = result instanceof Toolkit.ToolFailure ? result.error?.reason : undefined
      assert.isTrue(reason?._tag === "ProtocolError" && reason.error.code === -32601)
    }))

  it.effect("is a failure without a request when the arguments are not an object", () =>
    Effect.gen(function*() {
      const server = answers([{ name: "t" }], { t: { content: [] } })
      const toolkit = yield* Client.toolkit(yield* Client.make(server.transport))
      const { isFailure, result } = resultOf(yield* ask(toolkit, "t", ["a"]))
      assert.deepStrictEqual([isFailure, result.reason], [true, "Arguments"])
      assert.strictEqual(server.requests("tools/call").length, 0)
    }))

  it.effect("failureMode error: an error of the server fails the generation, and `isError` does not", () =>
    Effect.gen(function*() {
      const results = { bad: { content: [Content.text("no")], isError: true } }
      const client = yield* Client.make(answers([{ name: "bad" }, { name: "gone" }], results).transport)
      const toolkit = yield* Client.toolkit(client, { failureMode: "error" })
      const error = yield* Effect.flip(ask(toolkit, "gone", {}))
      assert.isTrue(error instanceof Toolkit.ToolFailure && error.reason === "ProtocolError")
      const { isFailure, result } = resultOf(yield* ask(toolkit, "bad", {}))
      assert.deepStrictEqual([isFailure, result.isError], [false, true])
    }))
})

describe("progress", () => {
  const streamed = (toolkit: Toolkit.Toolkit) =>
    Effect.gen(function*() {
      const { service } = model("brew", {})
      const parts = yield* Stream.runCollect((yield* service).streamText({ prompt: "Brew", toolkit }))
      return Array.from(parts).flatMap((part) => part.type === "tool-result" ? [part] : []) as ReadonlyArray<
        Response.ToolResultPart<string, any, any>
      >
    })

  it.effect("arrives as preliminary results, in order and before the result", () =>
    Effect.gen(function*() {
      const results = yield* streamed(yield* Client.toolkit(yield* connect))
      assert.deepStrictEqual(
        results.map(({ preliminary, result }) => [preliminary, result.content[0].text, result.structuredContent]),
        [
          [true, "Heating", { progress: 1, total: 2, message: "Heating" }],
          [true, "Steeping", { progress: 2, total: 2, message: "Steeping" }],
          [false, "Tea", undefined]
        ]
      )
    }).pipe(Effect.provide(Server)))

  it.effect("drops the oldest reports when more than 16 wait for the model's stream, and never the result", () =>
    Effect.gen(function*() {
      const client = yield* connect
      const many: Toolkit.ToolClient = {
        listTools: () => client.listTools(),
        callTool: (_name, _args, options) =>
          Effect.sync(() => {
            for (let progress = 1; progress <= 20; progress++) options?.onProgress?.({ progress })
            return { content: [{ type: "text", text: "Tea" }] }
          })
      }
      const texts = (results: ReadonlyArray<Response.ToolResultPart<string, any, any>>) =>
        results.map(({ result }) => result.content[0].text)
      assert.deepStrictEqual(texts(yield* streamed(yield* Client.toolkit(many))), [
        ...Array.from({ length: 16 }, (_, at) => String(at + 5)),
        "Tea"
      ])
    }).pipe(Effect.provide(Server)))

  it.effect("is not requested with `progress: false`", () =>
    Effect.gen(function*() {
      const results = yield* streamed(yield* Client.toolkit(yield* connect, { progress: false }))
      assert.deepStrictEqual(results.map(({ preliminary }) => preliminary), [false])
    }).pipe(Effect.provide(Server)))
})
