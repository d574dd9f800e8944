/** Caching (2026-07-28, server/utilities/caching). */
import { expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as kit from "../kit.ts"

const tool = (name: string, options = {}) => Tool.layer(Tool.make(name, options), () => Effect.succeed("ok"))
const pages = { pageSize: 1, caching: { "tools/list": { ttlMs: 1000, cacheScope: "public" } } } as const

it.effect("2026-07-28 · servers MUST apply the same cacheScope to all pages, also after the private entry is removed", () =>
  Effect.gen(function*() {
    const server = McpServer.layer(
      { name: "test", version: "1", ...pages },
      tool("a", { visible: () => true }),
      tool("b")
    )
    const context = yield* Layer.build(server)
    const client = yield* Effect.provide(kit.connect(), context)
    const first = yield* client.result("tools/list")
    expect([first.tools.length, first.ttlMs, first.cacheScope]).toEqual([1, 1000, "private"])
    yield* Effect.provide(Catalog.remove("tool", "a"), context)
    const second = yield* client.result("tools/list", { cursor: first.nextCursor })
    expect([second.tools[0].name, second.cacheScope]).toEqual(["b", "private"])
  }))

it.effect("2026-07-28 · servers MUST include caching hints on each list, read and discovery, with a ttlMs that is >= 0", () =>
  Effect.gen(function*() {
    const hint = { ttlMs: -5, cacheScope: "public" } as const
    const methods = [
      "server/discover",
      "tools/list",
      "prompts/list",
      "resources/list",
      "resources/templates/list"
    ] as const
    const caching = Object.fromEntries(methods.map((method) => [method, hint]))
    const offers = ["tools", "prompts", "resources"] as const
    const client = yield* kit.client(
      McpServer.layer({ name: "test", version: "1", caching, declareListChanged: offers })
    )
    for (const method of methods) expect(yield* client.result(method)).toMatchObject({ ttlMs: 0, cacheScope: "public" })
  }))
