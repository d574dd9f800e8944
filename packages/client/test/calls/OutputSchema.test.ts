/** Results of tools, checked against their outputSchema. */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Schema from "effect/Schema"
import type * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { opened, page, tool, warnings } from "./listed.ts"
import { fieldsOf } from "../support/fields.ts"

const outputSchema = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] }

/** A client that has listed a tool with the schema. The server returns the given result for each call. */
const answering = (
  revision: Revision.Revision,
  schema: unknown,
  answer: JsonObject,
  options?: Client.Options
) =>
  Effect.gen(function*() {
    const both = yield* opened(
      revision,
      ({ method }) =>
        method === "tools/list"
          ? page(revision, tool("add", { outputSchema: schema }))
          : ScriptedServer.success({
            ...(revision === "2026-07-28" ? { resultType: "complete" } : {}),
            content: [],
            ...answer
          }),
      options
    )
    yield* both.client.listToolsPage()
    return both
  })

describe("the result of a tool with an outputSchema", () => {
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · Clients SHOULD validate structured results against this schema`, () =>
      Effect.gen(function*() {
        const right = yield* answering(revision, outputSchema, { structuredContent: { sum: 3 } })
        assert.deepStrictEqual((yield* right.client.callTool("add")).structuredContent, { sum: 3 })
        const wrong = yield* answering(revision, outputSchema, { structuredContent: { sum: "3" } })
        const error = yield* Effect.flip(wrong.client.callTool("add"))
        assert.strictEqual(error.reason._tag, "InvalidResponse")
        assert.deepStrictEqual(fieldsOf(error).problems, [{ message: "Expected integer, got string", path: ["sum"] }])
        assert.deepStrictEqual(fieldsOf(error).result?.structuredContent, { sum: "3" })
        assert.include(error.message, "Expected integer, got string at [\"sum\"]")
      }))

    it.effect(`${revision} · returns a result without structured content, and logs a warning once`, () =>
      Effect.gen(function*() {
        const answer = { content: [{ type: "text", text: "{\"sum\":3}" }] }
        const { layer, logged } = warnings()
        yield* Effect.gen(function*() {
          const { client, server } = yield* answering(revision, outputSchema, answer)
          assert.strictEqual((yield* client.callTool("add")).content.length, 1)
          const output = Schema.Struct({ sum: Schema.Number })
          assert.deepStrictEqual(yield* client.callTool("add", {}, { output }), { sum: 3 })
          assert.strictEqual(server.requests("tools/list").length, 1)
        }).pipe(Effect.provide(layer))
        assert.deepStrictEqual(logged, [
          "The tool \"add\" returned no structured content, although it has an outputSchema"
        ])
      }))

    it.effect(`${revision} · Servers MUST provide structured results: requireStructuredContent rejects a result without it`, () =>
      Effect.gen(function*() {
        const answer = { content: [{ type: "text", text: "{\"sum\":3}" }] }
        const { client } = yield* answering(revision, outputSchema, answer, { requireStructuredContent: true })
        const error = yield* Effect.flip(client.callTool("add"))
        assert.deepStrictEqual([error.reason._tag, fieldsOf(error).problems], ["InvalidResponse", []])
        assert.strictEqual(fieldsOf(error).result?.content.length, 1)
      }))

    it.effect(`${revision} · does not check the result of a tool error (isError)`, () =>
      Effect.gen(function*() {
        const { client } = yield* answering(revision, outputSchema, { isError: true })
        assert.isTrue((yield* client.callTool("add")).isError)
      }))
  }

  for (const revision of ["2024-11-05", "2025-03-26"] as const) {
    it.effect(`${revision} · checks nothing, because the revision has neither outputSchema nor structured content`, () =>
      Effect.gen(function*() {
        const { client } = yield* answering(revision, outputSchema, {})
        assert.deepStrictEqual((yield* client.callTool("add")).content, [])
      }))
  }

  it.effect("2026-07-28 · accepts any JSON value that conforms: null, a list, a number", () =>
    Effect.gen(function*() {
      for (const [schema, value] of [[{ type: "null" }, null], [{ items: { type: "integer" } }, [1]], [{}, 0]]) {
        const { client } = yield* answering("2026-07-28", schema, { structuredContent: value })
        assert.deepStrictEqual((yield* client.callTool("add")).structuredContent, value)
      }
    }))

  it.effect("is checked before it is decoded with a schema of the caller, and through `request` as well", () =>
    Effect.gen(function*() {
      const { client } = yield* answering("2025-11-25", outputSchema, { structuredContent: { sum: "3" } })
      const output = Schema.Struct({ sum: Schema.NumberFromString })
      assert.isDefined(fieldsOf(yield* Effect.flip(client.callTool("add", {}, { output }))).problems)
      assert.isDefined(fieldsOf(yield* Effect.flip(client.request(Method.CallTool, { name: "add" }))).problems)
    }))

  it.effect("is not checked when the tool was not listed", () =>
    Effect.gen(function*() {
      const { client } = yield* answering("2025-11-25", outputSchema, {})
      assert.deepStrictEqual((yield* client.callTool("other")).content, [])
    }))

  it.effect("validateOutput: false disables the check", () =>
    Effect.gen(function*() {
      const { client } = yield* answering("2025-11-25", outputSchema, {}, { validateOutput: false })
      assert.deepStrictEqual((yield* client.callTool("add")).content, [])
    }))

  it.effect("validateOutput: rejects a result whose check exceeds the bounds", () =>
    Effect.gen(function*() {
      const schema = {
        type: "object",
        properties: { list: { items: { allOf: Array.from({ length: 60 }, () => ({})) } } }
      }
      const structuredContent = { list: Array.from({ length: 200 }, () => 1) }
      const free = yield* answering("2025-11-25", schema, { structuredContent })
      assert.isDefined((yield* free.client.callTool("add")).structuredContent)
      const { client } = yield* answering("2025-11-25", schema, { structuredContent }, {
        validateOutput: { maxSteps: 0 }
      })
      const error = yield* Effect.flip(client.callTool("add"))
      assert.match(
        fieldsOf(error).problems?.[0]?.message ?? "",
        /^The validation takes more than \d+ steps \(maxSteps\)$/
      )
    }))

  it.effect("list_changed: discards the listed schemas, and uses those of the next listing", () =>
    Effect.gen(function*() {
      let schema: JsonObject = outputSchema
      const { client, server } = yield* opened("2025-11-25", ({ method }) =>
        method === "tools/list"
          ? page("2025-11-25", tool("add", { outputSchema: schema }))
          : ScriptedServer.success({ content: [], structuredContent: { total: 3 } }))
      yield* client.listToolsPage()
      assert.strictEqual((yield* Effect.flip(client.callTool("add"))).reason._tag, "InvalidResponse")
      server.notify("notifications/tools/list_changed")
      assert.isDefined((yield* Effect.andThen(client.ping(), client.callTool("add"))).structuredContent)
      schema = { type: "object", required: ["total"] }
      yield* client.listToolsPage()
      assert.isDefined((yield* client.callTool("add")).structuredContent)
      schema = { type: "object", required: ["other"] }
      yield* client.listToolsPage()
      assert.strictEqual((yield* Effect.flip(client.callTool("add"))).reason._tag, "InvalidResponse")
    }))

  it.effect("reads the list again before it rejects a result, because a tool can change without a notification", () =>
    Effect.gen(function*() {
      let schema: JsonObject | undefined = outputSchema
      const { client, server } = yield* opened("2025-11-25", ({ method }) =>
        method === "tools/list"
          ? page("2025-11-25", tool("add", schema === undefined ? {} : { outputSchema: schema }))
          : ScriptedServer.success({ content: [], structuredContent: { total: 3 } }))
      yield* client.listToolsPage()
      schema = { type: "object", required: ["total"] }
      assert.isDefined((yield* client.callTool("add")).structuredContent)
      assert.strictEqual(server.requests("tools/list").length, 2)
      assert.strictEqual(server.requests("tools/call").length, 1)
      // Once: a tool that never conforms does not cost a listing for each call.
      schema = { type: "object", required: ["other"] }
      yield* client.listToolsPage()
      for (let times = 0; times < 3; times++) yield* Effect.flip(client.callTool("add"))
      assert.strictEqual(server.requests("tools/list").length, 3)
      server.notify("notifications/tools/list_changed")
      yield* client.ping()
      yield* client.listToolsPage()
      schema = undefined
      assert.isDefined((yield* client.callTool("add")).structuredContent)
    }))

  it.effect("rejects the result within one further timeout when the list does not arrive in time", () =>
    Effect.gen(function*() {
      let lists = 0
      const { client } = yield* opened("2025-11-25", ({ method }) =>
        method !== "tools/list"
          ? ScriptedServer.success({ content: [], structuredContent: { total: 3 } })
          : lists++ === 0
          ? page("2025-11-25", tool("add", { outputSchema }))
          : "no response")
      yield* client.listToolsPage()
      const call = yield* Effect.forkChild(Effect.flip(client.callTool("add", {}, { timeout: 300 })), {
        startImmediately: true
      })
      while (lists < 2) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust(299)
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(call)).reason._tag, "InvalidResponse")
    }))

  it.effect("maxItems: discards the schemas of the tools that were listed first", () =>
    Effect.gen(function*() {
      const open = (maxItems?: number) =>
        opened("2025-11-25", ({ method, params }) => {
          if (method !== "tools/list") return ScriptedServer.success({ content: [] })
          const cursor = params?.["cursor"]
          const names = cursor === undefined ? ["a"] : Array.from({ length: 9_999 }, (_, index) => `b${index}`)
          const { result } = page("2025-11-25", ...names.map((name) => tool(name, { outputSchema }))) as {
            readonly result: JsonObject
          }
          return ScriptedServer.success(cursor === undefined ? { ...result, nextCursor: "b" } : result)
        }, { limits: { maxItems }, requireStructuredContent: true })
      const all = yield* open()
      yield* all.client.listTools()
      assert.strictEqual((yield* Effect.flip(all.client.callTool("a"))).reason._tag, "InvalidResponse")
      const { client } = yield* open(9_999)
      yield* client.listToolsPage()
      yield* client.listToolsPage({ cursor: "b" })
      assert.deepStrictEqual((yield* client.callTool("a")).content, [])
      assert.strictEqual((yield* Effect.flip(client.callTool("b9998"))).reason._tag, "InvalidResponse")
    }))
})

describe("a hostile outputSchema", () => {
  const deep = JSON.parse("{\"items\":".repeat(500) + "{}" + "}".repeat(500)) as JsonObject
  const $defs = Object.fromEntries(
    Array.from({ length: 31 }, (_, i) => {
      const $ref = `#/$defs/a${i + 1}`
      return [`a${i}`, i === 30 ? {} : { allOf: [{ $ref }, { $ref }] }]
    })
  )
  const hostile: ReadonlyArray<readonly [string, JsonObject, string]> = [
    ["a $ref to a network URI", { $ref: "https://192.0.2.1/schema.json" }, "must lead to a place in the same schema"],
    ["alternatives that multiply", { $ref: "#/$defs/a0", $defs }, "subschemas apply to the same value"],
    ["a deeply nested schema", deep, "nested deeper than 64"],
    ["a pattern with look-around", { properties: { a: { pattern: "(?=a)*" } } }, "cannot be used"]
  ]
  for (const [what, schema, why] of hostile) {
    it.effect(`2026-07-28 · ${what}: fetches nothing, fails no call, and logs one warning that results are not checked`, () => {
      const { layer, logged } = warnings()
      return Effect.gen(function*() {
        const fetched: Array<unknown> = []
        const { fetch } = globalThis
        globalThis.fetch = (...input) => (fetched.push(input), Promise.reject(new Error("not in this test")))
        yield* Effect.addFinalizer(() => Effect.sync(() => void (globalThis.fetch = fetch)))
        const { client } = yield* answering("2026-07-28", schema, {})
        for (let times = 0; times < 3; times++) {
          assert.deepStrictEqual((yield* client.callTool("add")).content, [])
          // Listed again, the schema is the same.
          assert.strictEqual((yield* client.listToolsPage({ cache: "refresh" })).tools.length, 1)
        }
        assert.strictEqual(logged.length, 1)
        assert.include(logged[0], why)
        assert.include(logged[0], "\"add\"")
        assert.deepStrictEqual(fetched, [])
      }).pipe(Effect.scoped, Effect.provide(layer))
    })
  }

  it.effect("2026-07-28 · SHOULD apply reasonable bounds: stops a check whose cost multiplies with the value", () =>
    Effect.gen(function*() {
      const schema = { items: { allOf: [{ $ref: "#" }, { $ref: "#" }] } }
      const structuredContent = JSON.parse("[".repeat(100) + "]".repeat(100)) as unknown
      const { client } = yield* answering("2026-07-28", schema, { structuredContent })
      const error = yield* Effect.flip(client.callTool("add"))
      assert.strictEqual(
        fieldsOf(error).problems?.[0]?.message,
        "The validation takes more than 1002470 steps (maxSteps)"
      )
    }))
})
