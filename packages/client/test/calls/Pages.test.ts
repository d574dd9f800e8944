import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const tool = (name: string) => ({ name, inputSchema: { type: "object" } })

/** A server whose pages are a function of the cursor. */
const paged = (page: (cursor: unknown) => JsonObject, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(
      ScriptedServer.handshake("2025-11-25", ({ params }) => ScriptedServer.success(page(params?.["cursor"])))
    )
    return { server, client: yield* Client.make(server.transport, options) }
  })

const numbered = (total: number) => (cursor: unknown) => {
  const at = Number(cursor ?? 0)
  return { tools: [tool(`t${at}`)], ...(at + 1 < total ? { nextCursor: String(at + 1) } : {}) }
}

describe("listing all pages", () => {
  it.effect("returns all items in order", () =>
    Effect.gen(function*() {
      const { client, server } = yield* paged(numbered(3))
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["t0", "t1", "t2"])
      assert.strictEqual(server.requests("tools/list").length, 3)
    }))

  it.effect("lists all resources, templates and prompts as well", () =>
    Effect.gen(function*() {
      const { client } = yield* paged((cursor) => ({
        resources: [{ name: "r", uri: `r:${cursor}` }],
        resourceTemplates: [{ name: "t", uriTemplate: `t:${cursor}` }],
        prompts: [{ name: `p:${cursor}` }],
        ...(cursor === undefined ? { nextCursor: "b" } : {})
      }))
      assert.deepStrictEqual((yield* client.listResources()).map(({ uri }) => uri), ["r:undefined", "r:b"])
      assert.deepStrictEqual((yield* client.listResourceTemplates()).map((t) => t.uriTemplate), ["t:undefined", "t:b"])
      assert.deepStrictEqual((yield* client.listPrompts()).map(({ name }) => name), ["p:undefined", "p:b"])
    }))

  it.effect("requests each page with the given options; timeout applies to one page", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2025-11-25", ({ params }) =>
          params?.["cursor"] === undefined ? ScriptedServer.success({ ...numbered(2)(undefined) }) : "no response")
      )
      const client = yield* Client.make(server.transport)
      const listed = yield* Effect.forkChild(Effect.flip(client.listTools({ timeout: "2 seconds" })))
      yield* TestClock.adjust(1_999)
      assert.isUndefined(listed.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(listed)).reason._tag, "Timeout")
      assert.deepStrictEqual(
        server.requests("tools/list").map(({ params }) =>
          params?.["cursor"]
        ),
        [undefined, "1"]
      )
    }))

  it.effect("2026-07-28 · an empty string is a valid cursor and MUST NOT be treated as the end of results", () =>
    Effect.gen(function*() {
      const { client } = yield* paged((cursor) =>
        cursor === undefined ? { tools: [tool("a")], nextCursor: "" } : { tools: [tool(`b${cursor}`)] }
      )
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["a", "b"])
    }))

  it.effect("2026-07-28 · requests further pages while a non-null cursor is provided: null ends the list", () =>
    Effect.gen(function*() {
      const { client, server } = yield* paged(() => ({ tools: [tool("a")], nextCursor: null }))
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["a"])
      assert.strictEqual(server.requests("tools/list").length, 1)
      assert.isFalse("nextCursor" in (yield* client.listToolsPage()))
    }))

  it.effect("fails with InvalidResponse when a cursor repeats", () =>
    Effect.gen(function*() {
      const next: Record<string, string> = { undefined: "a", a: "b", b: "a" }
      const { client, server } = yield* paged((cursor) => ({ tools: [], nextCursor: next[String(cursor)] }))
      assert.strictEqual((yield* Effect.flip(client.listTools())).reason._tag, "InvalidResponse")
      assert.strictEqual(server.requests("tools/list").length, 3)
    }))

  it.effect("fails with LimitExceeded after maxPages pages; the default is 1,000", () =>
    Effect.gen(function*() {
      const exact = yield* paged(numbered(2), { maxPages: 2 })
      assert.strictEqual((yield* exact.client.listTools()).length, 2)
      const more = yield* paged(numbered(3), { maxPages: 2 })
      assert.strictEqual((yield* Effect.flip(more.client.listTools())).reason._tag, "LimitExceeded")
      assert.strictEqual(more.server.requests("tools/list").length, 2)
      const endless = yield* paged(numbered(Infinity))
      assert.strictEqual((yield* Effect.flip(endless.client.listTools())).reason._tag, "LimitExceeded")
      assert.strictEqual(endless.server.requests("tools/list").length, 1_000)
    }))

  it.effect("fails with LimitExceeded after maxItems items; the default is 10,000", () =>
    Effect.gen(function*() {
      const exact = yield* paged(numbered(2), { maxItems: 2 })
      assert.strictEqual((yield* exact.client.listTools()).length, 2)
      const more = yield* paged(numbered(3), { maxItems: 2 })
      assert.strictEqual((yield* Effect.flip(more.client.listTools())).reason._tag, "LimitExceeded")
      const many = (count: number) => () => ({ tools: Array.from({ length: count }, (_, index) => tool(`t${index}`)) })
      const full = yield* paged(many(10_000))
      assert.strictEqual((yield* full.client.listTools()).length, 10_000)
      const over = yield* paged(many(10_001))
      assert.strictEqual((yield* Effect.flip(over.client.listTools())).reason._tag, "LimitExceeded")
    }))
})
