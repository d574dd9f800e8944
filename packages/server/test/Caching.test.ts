/** Caching hints: `ttlMs` and `cacheScope` (2026-07-28, caching). */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

const lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"] as const

const definitions = [
  Tool.layer(Tool.make("t"), () => Effect.void),
  Prompt.layer(Prompt.make("p"), () => Effect.succeed("")),
  Resource.layer(Resource.make("a://plain"), Effect.succeed("")),
  Resource.layer(Resource.make("a://kept", { ttlMs: 1500.7, cacheScope: "public" }), Effect.succeed("")),
  Resource.layer(Resource.make("a://bytes", { ttlMs: -5 }), Effect.succeed(new Uint8Array([1]))),
  Resource.layer(
    Resource.make("a://whole", { ttlMs: 10, cacheScope: "public" }),
    Effect.succeed({ contents: [Content.resourceContents("a://whole", "x")], ttlMs: 20 })
  ),
  Resource.layer(
    Resource.make("a://some", { visible: () => true, ttlMs: 10, cacheScope: "public" }),
    Effect.succeed("")
  ),
  ResourceTemplate.layer(ResourceTemplate.make("b://{x}", { name: "b", ttlMs: 7 }), () => Effect.succeed(""))
] as const

const server = (caching?: McpServer.Options["caching"]) =>
  McpServer.layer(
    { name: "test", version: "1.0.0", ...(caching === undefined ? undefined : { caching }) },
    ...definitions
  )

const hints = ({ cacheScope, ttlMs }: kit.Json) => ({ cacheScope, ttlMs })

describe("defaults", () => {
  it.effect("2026-07-28 · results are stale immediately and private", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server())
      for (const method of lists) {
        expect(hints(yield* client.result(method))).toEqual({ ttlMs: 0, cacheScope: "private" })
      }
      expect(hints(yield* client.result("resources/read", { uri: "a://plain" }))).toEqual({
        ttlMs: 0,
        cacheScope: "private"
      })
    }))

  for (const revision of Revision.all.filter((revision) => revision < "2026-07-28")) {
    it.effect(`${revision} · sends no hints`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server({ "tools/list": { ttlMs: 1, cacheScope: "public" } }), revision)
        for (const [method, params] of [["tools/list", {}], ["resources/read", { uri: "a://kept" }]] as const) {
          expect(Object.keys(yield* client.result(method, params))).not.toContain("ttlMs")
          expect(Object.keys(yield* client.result(method, params))).not.toContain("cacheScope")
        }
      }))
  }
})

describe("the option caching", () => {
  it.effect("sets the hints of each method, and leaves the others at the default", () =>
    Effect.gen(function*() {
      for (const method of lists) {
        const client = yield* kit.client(server({ [method]: { ttlMs: 60_000, cacheScope: "public" } }))
        for (const other of lists) {
          // A resource with restricted visibility is in the list of resources.
          const cacheScope = other === method && method !== "resources/list" ? "public" : "private"
          expect([other, hints(yield* client.result(other))]).toEqual([
            other,
            { ttlMs: other === method ? 60_000 : 0, cacheScope }
          ])
        }
      }
    }))

  it.effect("applies to resources/read if the resource has no hints", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server({ "resources/read": { ttlMs: 1, cacheScope: "public" } }))
      const read = (uri: string) => Effect.map(client.result("resources/read", { uri }), hints)
      expect(yield* read("a://plain")).toEqual({ ttlMs: 1, cacheScope: "public" })
      expect(yield* read("b://x")).toEqual({ ttlMs: 7, cacheScope: "public" })
    }))

  it.effect("\"Servers MUST provide a ttlMs value that is >= 0\", and an integer", () =>
    Effect.gen(function*() {
      for (const [ttlMs, written] of [[-1, 0], [1.9, 1], [NaN, 0], [Infinity, Number.MAX_SAFE_INTEGER]] as const) {
        const client = yield* kit.client(server({ "tools/list": { ttlMs } }))
        expect((yield* client.result("tools/list")).ttlMs).toBe(written)
      }
    }))
})

describe("the hints of a resource", () => {
  it.effect("takes hints from the definition of a resource, or from the result of its reader", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server())
      const read = (uri: string) => Effect.map(client.result("resources/read", { uri }), hints)
      expect(yield* read("a://kept")).toEqual({ ttlMs: 1500, cacheScope: "public" })
      expect(yield* read("a://bytes")).toEqual({ ttlMs: 0, cacheScope: "private" })
      expect(yield* read("a://whole")).toEqual({ ttlMs: 20, cacheScope: "public" })
      expect(yield* read("b://x")).toEqual({ ttlMs: 7, cacheScope: "private" })
      // The hints apply to the result of the read, and not to the list.
      const { resources } = yield* client.result("resources/list")
      expect(JSON.stringify(resources)).not.toMatch(/ttlMs|cacheScope|visible/)
      expect(JSON.stringify(yield* client.result("resources/templates/list"))).not.toContain("\"ttlMs\":7")
    }))

  it.effect("sends a private hint for an entry that only some callers may see, and for its list", () =>
    Effect.gen(function*() {
      const caching = {
        "tools/list": { cacheScope: "public", ttlMs: 5 },
        "resources/list": { cacheScope: "public" }
      } as const
      const client = yield* kit.client(server(caching))
      expect((yield* client.result("resources/read", { uri: "a://some" })).cacheScope).toBe("private")
      expect((yield* client.result("resources/list")).cacheScope).toBe("private")
      expect((yield* client.result("tools/list")).cacheScope).toBe("public")
      const scoped = yield* kit.client(McpServer.layer(
        { name: "test", version: "1.0.0", caching },
        Catalog.visibleTo(() => true, ...definitions)
      ))
      expect(hints(yield* scoped.result("tools/list"))).toEqual({ cacheScope: "private", ttlMs: 5 })
      expect((yield* scoped.result("resources/read", { uri: "a://kept" })).cacheScope).toBe("private")
    }))

  it.effect("\"Servers MUST apply the same cacheScope to all response pages for a given list\"", () =>
    Effect.gen(function*() {
      const tools = ["a", "b", "c"].map((name) =>
        Tool.layer(Tool.make(name, name === "c" ? { visible: () => true } : {}), () => Effect.void)
      )
      const client = yield* kit.client(McpServer.layer(
        { name: "test", version: "1.0.0", pageSize: 1, caching: { "tools/list": { cacheScope: "public" } } },
        ...tools
      ))
      let cursor: string | undefined
      for (let page = 0; page < 3; page++) {
        const result: kit.Json = yield* client.result("tools/list", cursor === undefined ? {} : { cursor })
        expect(result.cacheScope).toBe("private")
        cursor = result.nextCursor
      }
      expect(cursor).toBeUndefined()
    }))
})
