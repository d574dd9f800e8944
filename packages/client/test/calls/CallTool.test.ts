import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Json from "@skein/protocol/Json"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import type { ListToolsResult } from "@skein/protocol/Tool"
import * as Revision from "@skein/protocol/Revision"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import { type ClientError } from "../../src/ClientError.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "../support/fields.ts"

const Sum = Schema.Struct({ sum: Schema.NumberFromString })
const json = { type: "text", text: "{\"sum\":\"3\"}" }

const open = (revision: Revision.Revision, script: ScriptedServer.Script, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script))
    return { server, client: yield* Client.make(server.transport, options) }
  })

const answering = (revision: Revision.Revision, result: JsonObject) =>
  Effect.map(open(revision, () => ScriptedServer.success(result)), ({ client }) => client)

describe("a typed tool call", () => {
  for (const revision of Revision.all) {
    const structured = revision >= "2025-06-18" ? { structuredContent: { sum: "3" } } : {}

    it.effect(`${revision} · returns the structured content as decoded by the schema`, () =>
      Effect.gen(function*() {
        const client = yield* answering(revision, { content: [{ type: "text", text: "It is:" }, json], ...structured })
        assert.deepStrictEqual(yield* client.callTool("add", { a: 1, b: 2 }, { output: Sum }), { sum: 3 })
      }))
  }

  it.effect("2025-06-18 · falls back to text that is JSON when a server returns no structured content", () =>
    Effect.gen(function*() {
      const client = yield* answering("2025-06-18", { content: [json] })
      assert.deepStrictEqual(yield* client.callTool("add", {}, { output: Sum }), { sum: 3 })
    }))

  it.effect("2026-07-28 · accepts any JSON value as structured content, including null", () =>
    Effect.gen(function*() {
      const list = yield* answering("2026-07-28", { content: [], structuredContent: [1, 2] })
      assert.deepStrictEqual(yield* list.callTool("t", {}, { output: Schema.Array(Schema.Number) }), [1, 2])
      const nothing = yield* answering("2026-07-28", { content: [], structuredContent: null })
      assert.strictEqual(yield* nothing.callTool("t", {}, { output: Schema.Null }), null)
    }))

  it.effect("decodes values without a JSON type from their JSON form: dates, classes, sets", () =>
    Effect.gen(function*() {
      class Visit
        extends Schema.Class<Visit>("CallToolVisit")({ at: Schema.Date, by: Schema.ReadonlySet(Schema.String) })
      {}
      const at = "2026-07-28T12:00:00.000Z"
      const client = yield* answering("2025-11-25", { content: [], structuredContent: { at, by: ["Ada"] } })
      const visit = yield* client.callTool("visit", {}, { output: Visit })
      assert.deepStrictEqual(visit, new Visit({ at: new Date(at), by: new Set(["Ada"]) }))
    }))

  it.effect("fails with InvalidResponse for an integer that JavaScript rounds, and the error carries the result", () =>
    Effect.gen(function*() {
      const structured = `{"content":[],"structuredContent":{"ad":{"id":1915883588174806058}}}`
      const client = yield* answering("2025-11-25", Json.parse(structured) as JsonObject)
      const error = yield* Effect.flip(client.callTool("ad"))
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      const problem = "cannot be read exactly: structuredContent.ad.id is 1915883588174806058, an integer beyond 2^53"
      assert.strictEqual(error.message, `The result of the tool "ad" ${problem}`)
      assert.strictEqual(fieldsOf(error).result?.content.length, 0)
      const kept = yield* client.callTool("ad", {}, { roundedIntegers: "keep" })
      assert.strictEqual(Json.stringify(kept.structuredContent), `{"ad":{"id":1915883588174806058}}`)
      for (const text of ["1915883588174806058", `{"id":1915883588174806058}`]) {
        const client = yield* answering("2025-11-25", { content: [{ type: "text", text }] })
        const error = yield* Effect.flip(client.callTool("ad", {}, { output: Schema.Unknown }))
        assert.include(error.message, "cannot be read exactly: ")
        assert.include(error.message, "is 1915883588174806058")
      }
    }))

  it.effect("sends the digits of arguments that were read with Json.parse", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", () => ScriptedServer.success({ content: [] }))
      yield* client.callTool("ad", Json.parse(`{"id":1915883588174806058}`) as object)
      assert.strictEqual(
        Json.stringify(server.requests("tools/call")[0]?.params?.["arguments"]),
        `{"id":1915883588174806058}`
      )
    }))

  it.effect("fails with ToolFailed for a result with isError, and the error carries the result", () =>
    Effect.gen(function*() {
      const result = { content: [{ type: "text", text: "no such city" }], isError: true }
      const client = yield* answering("2025-11-25", result)
      const error = yield* Effect.flip(client.callTool("weather", {}, { output: Sum }))
      assert.strictEqual(error.reason._tag, "ToolFailed")
      assert.strictEqual(error.message, "The tool weather failed: no such city")
      assert.deepStrictEqual(fieldsOf(error).result as JsonObject, { resultType: "complete", ...result })
    }))

  it.effect("Effect.catchReason handles ToolFailed with its result and ProtocolError with its error", () =>
    Effect.gen(function*() {
      const replyOf = (result: ScriptedServer.Reply) =>
        Effect.gen(function*() {
          const { client } = yield* open("2025-11-25", () => result)
          return yield* client.callTool("weather", {}, { output: Sum }).pipe(
            Effect.catchReason("ClientError", "ToolFailed", ({ result }) => {
              expectTypeOf(result).toEqualTypeOf<CallToolResult>()
              return Effect.succeed(result.content[0])
            }),
            Effect.catchReason("ClientError", "ProtocolError", ({ error }) => {
              expectTypeOf(error).toEqualTypeOf<McpError>()
              return Effect.succeed(error.code)
            })
          )
        })
      const text = { type: "text", text: "no such city" }
      const received: unknown = yield* replyOf(ScriptedServer.success({ content: [text], isError: true }))
      assert.deepStrictEqual(received, text)
      assert.strictEqual(yield* replyOf(ScriptedServer.failure(-32602, "Unknown tool: weather")), -32602)
      assert.strictEqual(
        (yield* Effect.flip(replyOf(ScriptedServer.success({ content: [] })))).reason._tag,
        "InvalidResponse"
      )
    }))

  it.effect("returns a result with isError as a result without a schema", () =>
    Effect.gen(function*() {
      const client = yield* answering("2025-11-25", { content: [], isError: true })
      assert.strictEqual((yield* client.callTool("weather")).isError, true)
    }))

  it.effect("fails with an InvalidResponse that carries the result when the schema refuses it", () =>
    Effect.gen(function*() {
      const client = yield* answering("2025-11-25", { content: [], structuredContent: { sum: [] } })
      const error = yield* Effect.flip(client.callTool("add", {}, { output: Sum }))
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.deepStrictEqual(fieldsOf(error).result?.structuredContent, { sum: [] })
    }))

  it.effect("fails with InvalidResponse for a result with neither structured content nor JSON", () =>
    Effect.gen(function*() {
      const client = yield* answering("2025-11-25", { content: [{ type: "text", text: "three" }] })
      assert.strictEqual(
        (yield* Effect.flip(client.callTool("add", {}, { output: Sum }))).reason._tag,
        "InvalidResponse"
      )
    }))

  it("infers readable types", () => {
    class Rates extends Context.Service<Rates, { readonly euro: number }>()("test/Rates") {}
    const Priced = Schema.Struct({ price: Schema.Number }).pipe(
      Schema.middlewareDecoding((effect) => Effect.andThen(Rates, effect))
    )
    const check = (client: Client.Client) => {
      expectTypeOf(client.callTool("t")).toEqualTypeOf<Effect.Effect<CallToolResult, ClientError>>()
      expectTypeOf(client.callTool("t", { a: 1 }, { timeout: "1 second" }))
        .toEqualTypeOf<Effect.Effect<CallToolResult, ClientError>>()
      interface Place {
        readonly city: string
      }
      const place: Place = { city: "Anxi" }
      expectTypeOf(client.callTool("t", place)).toEqualTypeOf<Effect.Effect<CallToolResult, ClientError>>()
      expectTypeOf(client.callTool("t", undefined, { output: Sum }))
        .toEqualTypeOf<Effect.Effect<{ readonly sum: number }, ClientError>>()
      expectTypeOf(client.callTool("t", {}, { output: Priced }))
        .toEqualTypeOf<Effect.Effect<{ readonly price: number }, ClientError, Rates>>()
      expectTypeOf(client.listToolsPage()).toEqualTypeOf<Effect.Effect<ListToolsResult, ClientError>>()
      return [
        // @ts-expect-error a schema is not a tool name
        client.callTool(Sum),
        // @ts-expect-error arguments are an object
        client.callTool("t", 1),
        // @ts-expect-error the option does not exist
        client.callTool("t", {}, { outputs: Sum })
      ]
    }
    expectTypeOf(check).parameter(0).toEqualTypeOf<Client.Client>()
  })
})

describe("the duration of a call", () => {
  const quiet = open("2025-11-25", () => "no response", { limits: { timeout: "10 seconds", maxTimeout: "25 seconds" } })

  it.effect("fails with Timeout when a call gets no response in time, and cancels it at the server", () =>
    Effect.gen(function*() {
      const { client, server } = yield* quiet
      const fiber = yield* Effect.forkChild(Effect.flip(client.callTool("slow")), { startImmediately: true })
      yield* TestClock.adjust(9_999)
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.reason._tag, "Timeout")
      assert.strictEqual(error.method, "tools/call")
      assert.strictEqual(server.methods.at(-1), "notifications/cancelled")
    }))

  it.effect("prefers the timeout of one call to the timeout of the client", () =>
    Effect.gen(function*() {
      const { client } = yield* quiet
      const call = client.callTool("slow", {}, { timeout: "1 second" })
      const fiber = yield* Effect.forkChild(Effect.flip(call), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Timeout")
    }))

  it.effect("reports progress, and restarts the timeout on it up to maxTimeout", () =>
    Effect.gen(function*() {
      const { client, server } = yield* quiet
      const seen: Array<unknown> = []
      const call = client.callTool("slow", {}, {
        onProgress: (progress) => seen.push(progress.progress),
        maxTimeout: "15 seconds"
      })
      const fiber = yield* Effect.forkChild(Effect.flip(call), { startImmediately: true })
      yield* TestClock.adjust("8 seconds")
      const { progressToken } = server.requests("tools/call")[0]!.params!["_meta"] as JsonObject
      server.notify("notifications/progress", { progressToken, progress: 1 })
      yield* TestClock.adjust("6 seconds")
      assert.deepStrictEqual(seen, [1])
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Timeout")
    }))

  it.effect("continues the call when onProgress throws", () =>
    Effect.gen(function*() {
      const { client } = yield* open("2026-07-28", (request, server) => {
        const { progressToken } = request.params!["_meta"] as JsonObject
        server.notify("notifications/progress", { progressToken, progress: 1 })
        return ScriptedServer.success({ content: [] })
      })
      const onProgress = () => {
        throw new Error("the host's")
      }
      assert.deepStrictEqual((yield* client.callTool("t", {}, { onProgress })).content, [])
      yield* client.callTool("t")
    }))

  it.effect("cancels a call on the wire when it is interrupted", () =>
    Effect.gen(function*() {
      const { client, server } = yield* quiet
      const fiber = yield* Effect.forkChild(client.callTool("slow"), { startImmediately: true })
      yield* TestClock.adjust(1)
      const { id } = server.requests("tools/call")[0]!
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust(1)
      const last = server.received.at(-1)
      assert.deepStrictEqual(last?._tag === "Notification" ? [last.method, last.params?.["requestId"]] : [], [
        "notifications/cancelled",
        id
      ])
    }))

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · applies the timeout that is given to a ping`, () =>
      Effect.gen(function*() {
        let silent = false
        const answers = ScriptedServer.handshake(revision)
        const server = ScriptedServer.make((request, server) => silent ? "no response" : answers(request, server))
        const client = yield* Client.make(server.transport)
        silent = true
        const pinged = yield* Effect.forkChild(Effect.flip(client.ping({ timeout: "3 seconds" })))
        yield* TestClock.adjust(2_999)
        assert.isUndefined(pinged.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Fiber.join(pinged)).reason._tag, "Timeout")
      }))
  }

  it.effect("fails with LimitExceeded when too many calls are pending", () =>
    Effect.gen(function*() {
      const { client } = yield* open("2025-11-25", () => "no response")
      for (let calls = 0; calls < 1_024; calls++) {
        yield* Effect.forkChild(client.callTool("slow"), { startImmediately: true })
      }
      assert.strictEqual((yield* Effect.flip(client.callTool("slow"))).reason._tag, "LimitExceeded")
    }))

  it.effect("fails pending and later calls with Closed when the connection ends", () =>
    Effect.gen(function*() {
      const { client } = yield* open("2025-11-25", () => "disconnect")
      const error = yield* Effect.flip(client.callTool("last"))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(fieldsOf(error).end?._tag, "ClosedByPeer")
      assert.strictEqual((yield* client.ended)._tag, "ClosedByPeer")
      assert.strictEqual((yield* Effect.flip(client.ping())).reason._tag, "Closed")
    }))
})
