import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import { bounded } from "../support/fixedBounds.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const tool = (name: string) => ({ name, inputSchema: { type: "object" } })

/** A server whose pages are a function of the cursor. */
const paged = (
  page: (cursor: unknown) => JsonObject,
  options?: Client.Options,
  revision: Revision.Revision = "2025-11-25"
) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(
      ScriptedServer.handshake(revision, ({ params }) => ScriptedServer.success(page(params?.["cursor"])))
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
      const { client } = yield* paged(
        (cursor) => cursor === undefined ? { tools: [tool("a")], nextCursor: "" } : { tools: [tool(`b${cursor}`)] },
        {},
        "2026-07-28"
      )
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["a", "b"])
    }))

  /** The names that are listed, and the log. */
  const listed = (page: (cursor: unknown) => JsonObject, revision?: Revision.Revision) => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    return Effect.gen(function*() {
      const { client, server } = yield* paged(page, undefined, revision)
      const names = (yield* client.listTools()).map(({ name }) => name)
      yield* client.listTools()
      return { names, lines, requests: server.requests("tools/list").length }
    }).pipe(Effect.provide(Logger.layer([logger])))
  }

  it.effect("until 2025-11-25 · ends the list at an empty cursor, and says so once", () =>
    Effect.gen(function*() {
      const { lines, names, requests } = yield* listed(() => ({ tools: [tool("a")], nextCursor: "" }))
      assert.deepStrictEqual(names, ["a"])
      assert.strictEqual(requests, 2)
      assert.deepStrictEqual(lines, ["tools/list returned an empty cursor. The list ends there."])
    }))

  it.effect("2026-07-28 · ends the list at an empty cursor that the server does not advance or refuses", () =>
    Effect.gen(function*() {
      const stuck = yield* listed(() => ({ tools: [tool("a")], nextCursor: "" }), "2026-07-28")
      assert.deepStrictEqual(stuck.names, ["a"])
      assert.strictEqual(stuck.lines.length, 1)
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2026-07-28", ({ params }) =>
          params?.["cursor"] === ""
            ? ScriptedServer.failure(-32602, "Invalid cursor")
            : ScriptedServer.success({ tools: [tool("a")], nextCursor: "" }))
      )
      const client = yield* Client.make(server.transport)
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["a"])
      assert.strictEqual(server.requests("tools/list").length, 2)
    }))

  it.effect("ends the list of a server that ignores cursors, without its repeated items, and says so once", () =>
    Effect.gen(function*() {
      const { lines, names, requests } = yield* listed(() => ({ tools: [tool("a"), tool("b")], nextCursor: "more" }))
      assert.deepStrictEqual(names, ["a", "b"])
      assert.strictEqual(requests, 4)
      assert.deepStrictEqual(lines, [
        "tools/list returned the same cursor twice, the second time with page 2. The list ends there."
      ])
    }))

  it.effect("2026-07-28 · requests further pages while a non-null cursor is provided: null ends the list", () =>
    Effect.gen(function*() {
      const { client, server } = yield* paged(() => ({ tools: [tool("a")], nextCursor: null }))
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["a"])
      assert.strictEqual(server.requests("tools/list").length, 1)
      assert.isFalse("nextCursor" in (yield* client.listToolsPage()))
    }))

  it.effect("returns the items of all pages when a cursor repeats", () =>
    Effect.gen(function*() {
      const next: Record<string, string> = { undefined: "a", a: "b", b: "a" }
      const { client, server } = yield* paged((cursor) => ({
        tools: [tool(`t${cursor}`)],
        nextCursor: next[String(cursor)]
      }))
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["tundefined", "ta", "tb"])
      assert.strictEqual(server.requests("tools/list").length, 3)
    }))

  it.effect("fails with LimitExceeded after maxPages pages; the default is 1,000", () =>
    Effect.gen(function*() {
      const exact = yield* bounded({ maxPages: 2 }, paged(numbered(2)))
      assert.strictEqual((yield* exact.client.listTools()).length, 2)
      const more = yield* bounded({ maxPages: 2 }, paged(numbered(3)))
      assert.strictEqual((yield* Effect.flip(more.client.listTools())).reason._tag, "LimitExceeded")
      assert.strictEqual(more.server.requests("tools/list").length, 2)
      const endless = yield* paged(numbered(Infinity))
      assert.strictEqual((yield* Effect.flip(endless.client.listTools())).reason._tag, "LimitExceeded")
      assert.strictEqual(endless.server.requests("tools/list").length, 1_000)
    }))

  it.effect("fails with LimitExceeded after maxItems items; the default is 10,000", () =>
    Effect.gen(function*() {
      const exact = yield* paged(numbered(2), { limits: { maxItems: 2 } })
      assert.strictEqual((yield* exact.client.listTools()).length, 2)
      const more = yield* paged(numbered(3), { limits: { maxItems: 2 } })
      assert.strictEqual((yield* Effect.flip(more.client.listTools())).reason._tag, "LimitExceeded")
      const many = (count: number) => () => ({ tools: Array.from({ length: count }, (_, index) => tool(`t${index}`)) })
      const full = yield* paged(many(10_000))
      assert.strictEqual((yield* full.client.listTools()).length, 10_000)
      const over = yield* paged(many(10_001))
      assert.strictEqual((yield* Effect.flip(over.client.listTools())).reason._tag, "LimitExceeded")
    }))
})
