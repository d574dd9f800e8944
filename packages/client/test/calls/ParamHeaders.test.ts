/** Parameters that are mirrored into headers (2026-07-28, streamable HTTP, custom headers from tool parameters). */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import type * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { hints, mirroring, opened, page, tool, warnings } from "./listed.ts"
import { fieldsOf } from "../support/fields.ts"

const done = ScriptedServer.success({ resultType: "complete", content: [] })
const mismatch = ScriptedServer.failure(-32020, "Header mismatch: Mcp-Param-Region is missing")
const listing = (...tools: ReadonlyArray<JsonObject>): ScriptedServer.Reply => page("2026-07-28", ...tools)

/** A tool with a parameter that is mirrored into a header of the given name. */
const sql = (header: string, name = "sql") =>
  tool(name, { inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": header } } } })

describe("tools/list on Streamable HTTP", () => {
  const broken = sql("not a token", "broken")

  it.effect("2026-07-28 · MUST exclude the invalid tool from the result, SHOULD log its name and the reason; others stay", () => {
    const { layer, logged } = warnings()
    return Effect.gen(function*() {
      const { client } = yield* mirroring(() => listing(sql("Region"), broken, tool("plain")))
      for (let times = 0; times < 2; times++) {
        assert.deepStrictEqual((yield* client.listToolsPage()).tools.map(({ name }) => name), ["sql", "plain"])
      }
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["sql", "plain"])
      // Logged once for all three listings.
      assert.deepStrictEqual(logged, [
        "The tool \"broken\" is left out: x-mcp-header at 'region' must be an HTTP token"
      ])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("2026-07-28 · clients using other transports MAY ignore x-mcp-header annotations: the tool stays", () =>
    Effect.gen(function*() {
      const { client } = yield* opened("2026-07-28", () => listing(broken))
      assert.strictEqual((yield* client.listToolsPage()).tools.length, 1)
    }))

  it.effect("2025-11-25 · ignores x-mcp-header: the tool stays, and nothing is mirrored", () =>
    Effect.gen(function*() {
      const { calls, client } = yield* mirroring(
        ({ method }) =>
          method === "tools/list" ? page("2025-11-25", broken, sql("Region")) : ScriptedServer.success({ content: [] }),
        {},
        "2025-11-25"
      )
      assert.strictEqual((yield* client.listToolsPage()).tools.length, 2)
      yield* client.callTool("sql", { region: "eu" })
      assert.deepStrictEqual(calls.map(({ headers }) => headers), [undefined])
    }))
})

describe("tools/call on Streamable HTTP", () => {
  const inputSchema = {
    type: "object",
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      count: { type: "integer", "x-mcp-header": "Count" },
      dry: { type: "boolean", "x-mcp-header": "Dry" },
      nested: { type: "object", properties: { text: { type: "string", "x-mcp-header": "Text" } } },
      toString: { type: "string", "x-mcp-header": "Inherited" }
    }
  }
  const headersOf = (args: object | undefined) =>
    Effect.gen(function*() {
      const { calls, client } = yield* mirroring(({ method }) =>
        method === "tools/list" ? listing(tool("t", { inputSchema })) : done
      )
      yield* client.listToolsPage()
      yield* client.callTool("t", args)
      return calls[0]?.headers ?? {}
    })

  it.effect("2026-07-28 · MUST mirror the designated values: text as it is or in base64, integers, booleans, nested ones", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* headersOf({ region: "us-west1", count: 42, dry: false, nested: { text: "Hello, 世界" } }),
        {
          "Mcp-Param-Region": "us-west1",
          "Mcp-Param-Count": "42",
          "Mcp-Param-Dry": "false",
          "Mcp-Param-Text": "=?base64?SGVsbG8sIOS4lueVjA==?="
        }
      )
      assert.deepStrictEqual(yield* headersOf({ region: "=?base64?literal?=" }), {
        "Mcp-Param-Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="
      })
    }))

  it.effect("2026-07-28 · a parameter that is null or absent from the arguments: MUST omit the header", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* headersOf({ region: null, nested: {} }), {})
      assert.deepStrictEqual(yield* headersOf({}), {})
      assert.deepStrictEqual(yield* headersOf(undefined), {})
    }))

  it.effect("2026-07-28 · integer values MUST be within the safe range: refuses other integers, and sends nothing", () =>
    Effect.gen(function*() {
      const { calls, client } = yield* mirroring(() => listing(tool("t", { inputSchema })))
      yield* client.listToolsPage()
      const error = yield* Effect.flip(client.callTool("t", { count: 2 ** 53 }))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "Mcp-Param-Count")
      assert.strictEqual(calls.length, 0)
    }))

  it.effect("does not treat a tool named like a member of Object.prototype as listed", () =>
    Effect.gen(function*() {
      const { calls, client } = yield* mirroring(() => done)
      for (const name of ["__proto__", "constructor", "toString"]) yield* client.callTool(name, {})
      assert.deepStrictEqual(calls.map(({ headers }) => headers), [undefined, undefined, undefined])
    }))
})

describe("HeaderMismatch", () => {
  /** Responds to a call without the header with a mismatch. */
  const strict = (
    header: () => string,
    rest: (method: string) => ScriptedServer.Reply = () => listing(sql(header())),
    options?: Client.Options
  ) =>
    mirroring(
      ({ method }, headers) =>
        method === "tools/call" ? headers?.[`Mcp-Param-${header()}`] === undefined ? mismatch : done : rest(method),
      options
    )

  it.effect("2026-07-28 · SHOULD call tools/list, then retry the original request with the appropriate headers", () =>
    Effect.gen(function*() {
      const { calls, client, server } = yield* strict(() => "Region")
      // The tool is not listed, so the client sends the call without the header.
      yield* client.callTool("sql", { region: "eu" })
      assert.deepStrictEqual(calls.map(({ headers }) => headers), [undefined, { "Mcp-Param-Region": "eu" }])
      yield* client.callTool("sql", { region: "us" })
      assert.strictEqual(calls.length, 3)
      assert.strictEqual(server.requests("tools/list").length, 1)
    }))

  it.effect("retries once, and returns the error when the server repeats it", () =>
    Effect.gen(function*() {
      const { calls, client, server } = yield* mirroring(({ method }) =>
        method === "tools/call" ? mismatch : listing(sql("Region"))
      )
      const error = yield* Effect.flip(client.callTool("sql", { region: "eu" }))
      assert.deepStrictEqual([error.reason._tag, fieldsOf(error).error?.reason], ["ProtocolError", "HeaderMismatch"])
      assert.deepStrictEqual([calls.length, server.requests("tools/list").length], [2, 1])
    }))

  it.effect("reads the list once for calls that are refused at the same time", () =>
    Effect.gen(function*() {
      const { calls, client, server } = yield* strict(() => "Region")
      yield* Effect.all(Array.from({ length: 8 }, () => client.callTool("sql", { region: "eu" })), { concurrency: 8 })
      assert.deepStrictEqual([calls.length, server.requests("tools/list").length], [16, 1])
    }))

  it.effect("completes the listing for the other calls when the call that started it is interrupted", () =>
    Effect.gen(function*() {
      const { client, server } = yield* strict(() => "Region", () => "no response")
      const call = Effect.forkChild(client.callTool("sql", { region: "eu" }), { startImmediately: true })
      const first = yield* call
      const second = yield* call
      while (server.requests("tools/list").length === 0) yield* Effect.yieldNow
      const { id } = server.requests("tools/list")[0]!
      yield* Fiber.interrupt(first)
      server.send({ _tag: "Success", id, result: { ...hints, tools: [sql("Region")] } })
      assert.deepStrictEqual((yield* Fiber.join(second)).content, [])
      assert.strictEqual(server.requests("tools/list").length, 1)
    }))

  it.effect("ends the call within its own timeout when the list does not arrive in time", () =>
    Effect.gen(function*() {
      const { calls, client } = yield* strict(() => "Region", () => "no response", { limits: { timeout: "1 minute" } })
      for (const options of [{ timeout: 300 }, { maxTimeout: 300 }]) {
        const call = yield* Effect.forkChild(Effect.flip(client.callTool("sql", {}, options)), {
          startImmediately: true
        })
        yield* TestClock.adjust(299)
        assert.isUndefined(call.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.strictEqual(fieldsOf(yield* Fiber.join(call)).error?.reason, "HeaderMismatch")
      }
      assert.strictEqual(calls.length, 2)
    }))

  it.effect("gives a retried call the remaining time", () =>
    Effect.gen(function*() {
      const { client, server } = yield* mirroring(({ method }, headers) =>
        method === "tools/call" && headers === undefined ? mismatch : "no response"
      )
      const call = yield* Effect.forkChild(Effect.flip(client.callTool("sql", { region: "eu" }, { timeout: 300 })), {
        startImmediately: true
      })
      while (server.requests("tools/list").length === 0) yield* Effect.yieldNow
      yield* TestClock.adjust(200)
      const { id } = server.requests("tools/list")[0]!
      server.send({ _tag: "Success", id, result: { ...hints, tools: [sql("Region")] } })
      while (server.requests("tools/call").length < 2) yield* Effect.yieldNow
      yield* TestClock.adjust(99)
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(call)).reason._tag, "Timeout")
    }))

  it.effect("fails with the original error when the list cannot be read", () => {
    const { layer, logged } = warnings()
    return Effect.gen(function*() {
      const { calls, client } = yield* strict(() => "Region", () => ScriptedServer.failure(-32603, "no"))
      assert.strictEqual(fieldsOf(yield* Effect.flip(client.callTool("sql", {}))).error?.reason, "HeaderMismatch")
      assert.strictEqual(calls.length, 2)
      assert.strictEqual(logged.length, 1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("2026-07-28 · MUST mirror: after list_changed reads the headers before the next call, not after a failure", () =>
    Effect.gen(function*() {
      let header = "Region"
      const { calls, client, server } = yield* strict(() => header)
      yield* client.listToolsPage()
      yield* client.callTool("sql", { region: "eu" })
      header = "Area"
      server.notify("notifications/tools/list_changed")
      yield* client.ping()
      yield* Effect.all([client.callTool("sql", { region: "eu" }), client.callTool("sql", { region: "us" })], {
        concurrency: 2
      })
      assert.deepStrictEqual(calls.map(({ headers }) => headers), [
        { "Mcp-Param-Region": "eu" },
        { "Mcp-Param-Area": "eu" },
        { "Mcp-Param-Area": "us" }
      ])
      assert.strictEqual(server.requests("tools/list").length, 2)
    }))

  it.effect("reads the list once for a tool that is no longer listed, and then sends its calls without headers", () =>
    Effect.gen(function*() {
      let tools = [sql("Region")]
      const { calls, client, server } = yield* mirroring(({ method }) =>
        method === "tools/call" ? done : listing(...tools)
      )
      yield* client.listToolsPage()
      tools = []
      server.notify("notifications/tools/list_changed")
      yield* client.ping()
      for (let times = 0; times < 3; times++) yield* client.callTool("sql", { region: "eu" })
      assert.deepStrictEqual(calls.map(({ headers }) => headers), [undefined, undefined, undefined])
      assert.strictEqual(server.requests("tools/list").length, 2)
    }))

  it.effect("returns the error of the server on other transports, which have no headers to correct", () =>
    Effect.gen(function*() {
      const { client, server } = yield* opened("2026-07-28", () => mismatch)
      assert.strictEqual(fieldsOf(yield* Effect.flip(client.callTool("sql"))).error?.reason, "HeaderMismatch")
      assert.strictEqual(server.requests("tools/call").length, 1)
    }))
})
