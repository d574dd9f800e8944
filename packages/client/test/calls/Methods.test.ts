import { assert, describe, it } from "@effect/vitest"
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "../support/fields.ts"

/** The result of a method as a server of the revision writes it. */
const written = <R>(method: Method.RequestMethod<unknown, R>, revision: Revision.Revision, result: R) =>
  ScriptedServer.success(Result.getOrThrow(Codec.encodeResult(method, revision, result)) as JsonObject)

const greet = { name: "greet", description: "Greets", inputSchema: { type: "object" as const } }
const readme = { name: "readme", uri: "file:///readme", mimeType: "text/plain" }
const notes = { name: "notes", uriTemplate: "file:///{name}" }
const hello = { name: "hello", arguments: [{ name: "who", required: true }] }
const greeting = { type: "text" as const, text: "Hello, Ada" }

/** Responds to each request that a server supports, in the form of the revision. */
const full = (revision: Revision.Revision): ScriptedServer.Script => ({ method }) => {
  switch (method) {
    case "tools/list":
      return written(Method.ListTools, revision, { tools: [greet], nextCursor: "more" })
    case "tools/call":
      return written(Method.CallTool, revision, { content: [greeting] })
    case "resources/list":
      return written(Method.ListResources, revision, { resources: [readme] })
    case "resources/templates/list":
      return written(Method.ListResourceTemplates, revision, { resourceTemplates: [notes] })
    case "resources/read":
      return written(Method.ReadResource, revision, { contents: [{ uri: "file:///readme", text: "Read me" }] })
    case "prompts/list":
      return written(Method.ListPrompts, revision, { prompts: [hello] })
    case "prompts/get":
      return written(Method.GetPrompt, revision, { messages: [{ role: "user", content: greeting }] })
    case "completion/complete":
      return written(Method.Complete, revision, { completion: { values: ["Ada"], hasMore: false } })
    case "logging/setLevel":
      return ScriptedServer.success({})
    default:
      return ScriptedServer.methodNotFound(method)
  }
}

/** The cache lifetime of a result, which only the newest revision has. */
const lasting = <A extends { readonly ttlMs?: number; readonly cacheScope?: string }>(result: A) => {
  const { cacheScope: _cacheScope, ttlMs: _ttlMs, ...rest } = result
  return rest
}

const resultType = "complete"

for (const revision of Revision.all) {
  describe(`${revision} · the methods`, () => {
    const open = Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake(revision, full(revision)))
      return { server, client: yield* Client.make(server.transport) }
    })

    it.effect("listTools returns one page, and requests the page after a cursor", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        const page = yield* client.listToolsPage()
        assert.deepStrictEqual(lasting(page), { resultType, tools: [greet], nextCursor: "more" })
        yield* client.listToolsPage({ cursor: "more" })
        assert.deepStrictEqual(server.requests("tools/list").map(({ params }) => params?.["cursor"]), [
          undefined,
          "more"
        ])
      }))

    it.effect("callTool sends the name and the arguments, and returns the result", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        assert.deepStrictEqual(yield* client.callTool("greet", { name: "Ada" }), { resultType, content: [greeting] })
        const { _meta, ...params } = server.requests("tools/call")[0]!.params!
        assert.deepStrictEqual(params, { name: "greet", arguments: { name: "Ada" } })
      }))

    it.effect("lists resources and resource templates, and reads resources", () =>
      Effect.gen(function*() {
        const { client } = yield* open
        assert.deepStrictEqual(lasting(yield* client.listResourcesPage()), { resultType, resources: [readme] })
        assert.deepStrictEqual(lasting(yield* client.listResourceTemplatesPage()), {
          resultType,
          resourceTemplates: [notes]
        })
        const read = yield* client.readResource("file:///readme")
        assert.deepStrictEqual(lasting(read), { resultType, contents: [{ uri: "file:///readme", text: "Read me" }] })
      }))

    it.effect("lists and gets prompts", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        assert.deepStrictEqual(lasting(yield* client.listPromptsPage()), { resultType, prompts: [hello] })
        const prompt = yield* client.getPrompt("hello", { who: "Ada" })
        assert.deepStrictEqual(prompt, { resultType, messages: [{ role: "user", content: greeting }] })
        assert.deepStrictEqual(server.requests("prompts/get")[0]?.params?.["arguments"], { who: "Ada" })
      }))

    it.effect("complete returns the suggestions; sends the known arguments since 2025-06-18", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        const ref = { type: "ref/prompt" as const, name: "hello" }
        const result = yield* client.complete({
          ref,
          argument: { name: "who", value: "A" },
          contextArguments: { language: "en" }
        })
        assert.deepStrictEqual(result, { resultType, completion: { values: ["Ada"], hasMore: false } })
        const { context } = server.requests("completion/complete")[0]!.params!
        assert.deepStrictEqual(context, revision < "2025-06-18" ? undefined : { arguments: { language: "en" } })
      }))

    it.effect("ping sends ping, or server/discover in revisions without ping", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        yield* client.ping()
        assert.strictEqual(server.methods.at(-1), revision === "2026-07-28" ? "server/discover" : "ping")
      }))

    it.effect("setLoggingLevel sends logging/setLevel, or sets the level of later requests", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        yield* client.setLoggingLevel("warning")
        yield* client.callTool("greet")
        const level = (server.requests("tools/call")[0]?.params?.["_meta"] as JsonObject | undefined)
          ?.["io.modelcontextprotocol/logLevel"]
        if (revision === "2026-07-28") {
          assert.strictEqual(level, "warning")
          assert.notInclude(server.methods, "logging/setLevel")
        } else {
          assert.strictEqual(level, undefined)
          assert.strictEqual(server.requests("logging/setLevel")[0]?.params?.["level"], "warning")
        }
      }))

    it.effect("request sends any known method, and does not send a method that the revision lacks", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open
        const result = yield* client.request(Method.GetPrompt, { name: "hello" })
        assert.strictEqual(result.messages.length, 1)
        const missing = revision === "2026-07-28" ? Method.Ping : Method.Discover
        const before = server.methods.length
        const error = yield* Effect.flip(client.request<{}, unknown>(missing, {}))
        assert.strictEqual(error.reason._tag, "Unsupported")
        assert.strictEqual(error.method, missing.name)
        assert.strictEqual(server.methods.length, before)
      }))

    it.effect("ignores unknown members", () =>
      Effect.gen(function*() {
        const strange = { ...greet, "x-color": { deep: [1] }, inputSchema: { type: "object" as const, "x-odd": null } }
        const server = ScriptedServer.make(
          ScriptedServer.handshake(revision, () =>
            ScriptedServer.success({ tools: [strange], "x-page": 1, _meta: { "example.com/a": 1 } }))
        )
        const client = yield* Client.make(server.transport)
        const { tools } = yield* client.listToolsPage()
        assert.deepStrictEqual(tools, [strange])
      }))

    it.effect("fails with a ProtocolError that carries the error of the server", () =>
      Effect.gen(function*() {
        const code = revision === "2026-07-28" ? -32602 : -32002
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () =>
          ScriptedServer.failure(code, "Resource not found", { uri: "file:///x" })))
        const client = yield* Client.make(server.transport)
        const error = yield* Effect.flip(client.readResource("file:///x"))
        assert.strictEqual(error.reason._tag, "ProtocolError")
        assert.strictEqual(error.method, "resources/read")
        assert.strictEqual(fieldsOf(error).error?.reason, "ResourceNotFound")
      }))
  })
}

describe("permitted calls", () => {
  const bare = (options?: Client.Options) =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", full("2025-11-25"), {}))
      return { server, client: yield* Client.make(server.transport, options) }
    })

  it.effect("2025-11-25 · both parties MUST only use capabilities that were successfully negotiated", () =>
    Effect.gen(function*() {
      const { client, server } = yield* bare()
      yield* client.ping()
      const before = server.methods.length
      for (
        const effect of [
          client.listToolsPage(),
          client.listTools(),
          client.callTool("greet"),
          client.listResourcesPage(),
          client.listPromptsPage(),
          client.complete({ ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }),
          client.setLoggingLevel("info"),
          client.request(Method.Subscribe, { uri: "file:///x" })
        ]
      ) {
        const error = yield* Effect.flip<unknown, ClientError, never>(effect)
        assert.strictEqual(error.reason._tag, "Unsupported")
      }
      assert.strictEqual(server.methods.length, before)
    }))

  it.effect("2026-07-28 · setLoggingLevel requires the capability too", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2026-07-28", undefined, {})).transport
      )
      assert.strictEqual((yield* Effect.flip(client.setLoggingLevel("info"))).reason._tag, "Unsupported")
    }))

  it.effect("2024-11-05 · completion needs no capability, because the revision does not define one", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2024-11-05", full("2024-11-05"), {})).transport
      )
      const { completion } = yield* client.complete({
        ref: { type: "ref/prompt", name: "p" },
        argument: { name: "a", value: "" }
      })
      assert.deepStrictEqual(completion.values, ["Ada"])
    }))

  it.effect("sends every method when enforceCapabilities is off", () =>
    Effect.gen(function*() {
      const { client } = yield* bare({ enforceCapabilities: false })
      assert.strictEqual((yield* client.listToolsPage()).tools.length, 1)
    }))

  it.effect("reads true as a capability without settings, and omits a malformed capability", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2025-11-25", full("2025-11-25"), {
          tools: true,
          prompts: {},
          resources: 7,
          "x-vendor": 1
        })
      )
      const client = yield* Client.make(server.transport)
      assert.deepStrictEqual(client.capabilities as {}, { tools: {}, prompts: {}, "x-vendor": 1 })
      assert.strictEqual((yield* client.listToolsPage()).tools.length, 1)
    }))

  it.effect("fails with Unsupported and sends nothing when the revision cannot carry the params", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", full("2025-11-25")))
      const client = yield* Client.make(server.transport)
      const error = yield* Effect.flip(client.callTool("greet", { big: 1n }))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.notInclude(server.methods, "tools/call")
    }))
})

describe("permitted results", () => {
  const answers = (revision: Revision.Revision, result: JsonObject) =>
    Effect.flatMap(
      Client.make(
        ScriptedServer.make(ScriptedServer.handshake(revision, () => ScriptedServer.success(result))).transport
      ),
      (client) => Effect.result(client.callTool("greet"))
    )

  it.effect("2026-07-28 · a resultType unrecognized by the client MUST be considered invalid", () =>
    Effect.gen(function*() {
      const result = yield* answers("2026-07-28", { resultType: "later", content: [] })
      assert.strictEqual(Result.getOrThrow(Result.flip(result)).reason._tag, "InvalidResponse")
    }))

  it.effect("2026-07-28 · clients MUST treat an absent resultType as complete", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* answers("2026-07-28", { content: [] }), Result.succeed({ resultType, content: [] }))
    }))

  it.effect("2026-07-28 · fails with Unsupported for input_required, and names the requested input", () =>
    Effect.gen(function*() {
      const asked = {
        method: "elicitation/create",
        params: { message: "Who?", requestedSchema: { type: "object", properties: {} } }
      }
      const result = yield* answers("2026-07-28", { resultType: "input_required", inputRequests: { who: asked } })
      const error = Result.getOrThrow(Result.flip(result))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "elicitation/create")
    }))

  it.effect("2026-07-28 · a ping accepts any response to server/discover", () =>
    Effect.gen(function*() {
      const handshake = ScriptedServer.handshake("2026-07-28")
      const server = ScriptedServer.make((request, server) =>
        server.requests("server/discover").length > 1
          ? ScriptedServer.success({ capabilities: 7 })
          : handshake(request, server)
      )
      const client = yield* Client.make(server.transport)
      yield* client.ping()
      assert.strictEqual(server.requests("server/discover").length, 2)
    }))

  it.effect("2025-11-25 · fails with InvalidResponse for a task that was not requested", () =>
    Effect.gen(function*() {
      const now = "2026-01-01T00:00:00Z"
      const task = { taskId: "1", status: "working", createdAt: now, lastUpdatedAt: now, ttl: null }
      const result = yield* answers("2025-11-25", { task })
      assert.strictEqual(Result.getOrThrow(Result.flip(result)).reason._tag, "InvalidResponse")
    }))

  it.effect("fails with an InvalidResponse that names the path when a required member is missing", () =>
    Effect.gen(function*() {
      const error = Result.getOrThrow(Result.flip(yield* answers("2025-06-18", { content: "none" })))
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.include(error.message, "result.content")
    }))

  it.effect("keeps the rest of a result with a malformed block, and names the block in its place", () =>
    Effect.gen(function*() {
      const text = { type: "text", text: "a" } as const
      const read = Result.getOrThrow(yield* answers("2025-06-18", { content: [{ type: "hologram" }, text] }))
      assert.deepStrictEqual<unknown>(read, {
        resultType,
        content: [{ type: "text", text: "[content that could not be read, of type \"hologram\"]" }, text]
      })
    }))

  it.effect("reads a result without content, as servers with structured content alone send it", () =>
    Effect.gen(function*() {
      for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18"] as const) {
        const read = Result.getOrThrow(yield* answers(revision, { structuredContent: { sum: 3 } }))
        assert.deepStrictEqual(read, { resultType, content: [], structuredContent: { sum: 3 } })
      }
    }))

  it.effect("logs malformed parts of responses once", () => {
    const lines: Array<unknown> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(message))
    return Effect.gen(function*() {
      const resource = { uri: "file:///a", name: "a" }
      const server = ScriptedServer.make(
        ScriptedServer.handshake(
          "2025-11-25",
          () =>
            ScriptedServer.success({ resources: [resource, { ...resource, size: 1.5 }, { ...resource, size: "1" }] })
        )
      )
      const client = yield* Client.make(server.transport)
      for (let n = 0; n < 3; n++) {
        assert.deepStrictEqual(yield* client.listResources(), [resource, resource, resource])
      }
      assert.strictEqual(lines.length, 1)
      assert.include(JSON.stringify(lines), "result.resources[1].size")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("validates structured content against the outputSchema in revisions that are older than both", () =>
    Effect.gen(function*() {
      const results = [{ structuredContent: { a: 1 } }, { structuredContent: { a: "1" } }, { content: [] }]
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2025-03-26", ({ method, params }) =>
          ScriptedServer.success(
            method === "tools/list"
              ? { tools: [{ ...greet, outputSchema: { type: "object", properties: { a: { type: "number" } } } }] }
              : results[(params!["arguments"] as { readonly n: number }).n]!
          ))
      )
      const client = yield* Client.make(server.transport)
      yield* client.listTools()
      assert.deepStrictEqual((yield* client.callTool(greet.name, { n: 0 })).structuredContent, { a: 1 })
      const refused = yield* Effect.flip(client.callTool(greet.name, { n: 1 }))
      assert.strictEqual(refused.reason._tag, "InvalidResponse")
      assert.deepStrictEqual((yield* client.callTool(greet.name, { n: 2 })).content, [])
    }))

  it.effect("returns the valid tools of a listing with one malformed tool", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () =>
        ScriptedServer.success({ tools: [greet, { name: 7 }, null], nextCursor: "more" })))
      const client = yield* Client.make(server.transport)
      assert.deepStrictEqual(yield* client.listToolsPage(), { resultType, tools: [greet], nextCursor: "more" })
    }))

  it.effect("fails with InvalidResponse for a result that is not a listing", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ tools: "none" })))
          .transport
      )
      assert.strictEqual((yield* Effect.flip(client.listToolsPage())).reason._tag, "InvalidResponse")
    }))
})
