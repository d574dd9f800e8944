import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { type Answer, Exchange } from "@skein/runtime/RequestContext"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as listing from "../src/internal/dispatch/listing.ts"
import { MethodTable } from "../src/internal/dispatch/methodTable.ts"
import * as kit from "./kit.ts"

const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))

/** A server with tools of these names, and the catalog to change it. */
const offering = (names: ReadonlyArray<string>, pageSize: number, revision: Revision.Revision = "2026-07-28") =>
  Effect.gen(function*() {
    const context = yield* Layer.build(
      McpServer.layer({ name: "test", version: "1.0.0", pageSize }, ...names.map(tool))
    )
    const client = yield* Effect.provide(kit.connect(revision), context)
    const catalog = Context.get(context, Catalog.Catalog)
    /** Adds one tool, until the scope closes. */
    const offer = (name: string) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(Layer.build(Layer.provide(tool(name), Layer.succeedContext(context))), scope)
        return scope
      })
    return { client, catalog, offer }
  })

const namesOf = (page: kit.Json): ReadonlyArray<string> => page.tools.map((tool: kit.Json) => tool.name)

describe("pages", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · pages form the whole list in the order of the definitions, and only the last has no nextCursor`, () =>
      Effect.gen(function*() {
        const names = ["zeta", "Ärger", "alpha", "日本", "b", "😀", "a b", "__proto__", "\ufffd", "\uffff"]
        for (const pageSize of [1, 2, 3, 9, 10, 11]) {
          const { client } = yield* offering(names, pageSize, revision)
          const { entries, pages } = yield* client.all("tools/list", "tools")
          expect(entries.map((entry) => entry.name)).toEqual(names)
          expect(pages).toBe(Math.ceil(names.length / pageSize))
        }
      }))
  }

  it.effect("every kind of list has pages, with separate cursors", () =>
    Effect.gen(function*() {
      const many = ["1", "2", "3", "4", "5"]
      const server = McpServer.layer(
        { name: "test", version: "1.0.0", pageSize: 2 },
        ...many.flatMap((n): ReadonlyArray<McpServer.Definitions> => [
          tool(n),
          Prompt.layer(Prompt.make(n), () => Effect.succeed("")),
          Resource.layer(Resource.make(`r://${n}`), Effect.succeed("")),
          ResourceTemplate.layer(ResourceTemplate.make(`t${n}://{x}`, { name: n }), () => Effect.succeed(""))
        ])
      ) as kit.Server
      const lists = [
        ["tools/list", "tools"],
        ["prompts/list", "prompts"],
        ["resources/list", "resources"],
        ["resources/templates/list", "resourceTemplates"]
      ] as const
      for (const revision of Revision.all) {
        const client = yield* kit.client(server, revision)
        for (const [method, key] of lists) {
          expect(yield* client.all(method, key)).toMatchObject({ pages: 3, entries: { length: 5 } })
          const { nextCursor } = yield* client.result(method)
          for (const [other] of lists) {
            const { error } = yield* client.request(other, { cursor: nextCursor })
            expect(error?.code).toBe(other === method ? undefined : -32602)
          }
        }
      }
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · invalid cursors SHOULD result in an error with code -32602`, () =>
      Effect.gen(function*() {
        const { client } = yield* offering(["a", "b", "c"], 1, revision)
        for (const cursor of ["", "x", "null", "1", "=".repeat(10), "A".repeat(100_000), "日本"]) {
          expect(yield* client.error("tools/list", { cursor })).toMatchObject({ code: -32602 })
        }
        for (const cursor of [1, {}, false]) {
          expect(yield* client.error("tools/list", { cursor })).toMatchObject({ code: -32602 })
        }
      }))
  }

  it.effect("a page has 1,000 entries by default, and at least one", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 1001 }, (_, i) => `tool-${i}`)
      const client = yield* kit.client(kit.server(...names.map(tool)) as kit.Server)
      expect((yield* client.result("tools/list")).tools.length).toBe(1000)
      expect((yield* client.all("tools/list", "tools")).entries.length).toBe(1001)
      for (const pageSize of [0, -1, 0.5]) {
        const { client } = yield* offering(["a", "b", "c"], pageSize)
        expect(yield* client.all("tools/list", "tools")).toMatchObject({ pages: 3, entries: { length: 3 } })
      }
    }))

  it.effect("a cursor continues after the last returned entry, even if entries were added or removed meanwhile", () =>
    Effect.gen(function*() {
      const { client, offer } = yield* offering(["b", "d", "f", "h"], 2)
      const first = yield* client.result("tools/list")
      expect(namesOf(first)).toEqual(["b", "d"])
      const { nextCursor: cursor } = first
      const next = () => Effect.map(client.result("tools/list", { cursor }), namesOf)
      expect(yield* next()).toEqual(["f", "h"])
      const a = yield* offer("a")
      const e = yield* offer("e")
      expect(yield* next()).toEqual(["f", "h"])
      const atEnd = (yield* client.result("tools/list", { cursor })).nextCursor
      expect(namesOf(yield* client.result("tools/list", { cursor: atEnd }))).toEqual(["a", "e"])
      yield* Scope.close(a, Exit.void)
      expect(namesOf(yield* client.result("tools/list", { cursor: atEnd }))).toEqual(["e"])
      yield* Scope.close(e, Exit.void)
      expect(yield* next()).toEqual(["f", "h"])
      expect(namesOf(yield* client.result("tools/list", { cursor: atEnd }))).toEqual([])
    }))

  it.effect("a cursor continues after its own entry was removed, and ends if no entries follow", () =>
    Effect.gen(function*() {
      const { client, offer } = yield* offering(["a"], 1)
      yield* offer("z")
      const m = yield* offer("m")
      const { nextCursor } = yield* client.result("tools/list")
      const { nextCursor: atM, tools } = yield* client.result("tools/list", { cursor: nextCursor })
      expect(tools[0].name).toBe("m")
      yield* Scope.close(m, Exit.void)
      expect(namesOf(yield* client.result("tools/list", { cursor: atM }))).toEqual(["z"])
    }))

  it.effect("lists each of several very long, similar names once", () =>
    Effect.gen(function*() {
      const long = "日".repeat(2000)
      const names = ["a", `${long}1`, `${long}2`, `${long}3`, "日本"]
      const { client, offer } = yield* offering([], 1)
      for (const name of names.toReversed()) yield* offer(name)
      const { entries } = yield* client.all("tools/list", "tools")
      expect(entries.map((entry) => entry.name)).toEqual(names.toSorted())
    }))
})

describe("encoded listings", () => {
  /** Counts the pages that are encoded. */
  class Counting extends MethodTable {
    finished = 0

    override encodeResult: MethodTable["encodeResult"] = (method, result, exchange) => {
      this.finished++
      return MethodTable.prototype.encodeResult.call(this, method, result, exchange) as Answer
    }
  }

  const about = { serverInfo: { name: "test", version: "1.0.0" }, instructions: undefined, revisions: Revision.all }
  const setUp = (names: ReadonlyArray<string>, pageSize: number) => {
    const catalog = Catalog.make(Context.empty(), Scope.makeUnsafe())
    const registry = catalog.tools
    const methods = new Counting({ ...about, pageSize }, catalog, undefined as never)
    listing.installListing(methods, Method.ListTools, "tools", registry)
    const get = (revision: Revision.Revision, cursor?: string): Effect.Effect<kit.Json> => {
      const caller = { revision, info: undefined, capabilities: {} }
      const params = { ...(cursor === undefined ? {} : { cursor }), _meta: kit.meta() }
      const exchange = new Exchange(undefined as never, JsonRpc.request(1, "tools/list", params), caller)
      return Effect.orDie(methods.handlers.get("tools/list")!(exchange.received)) as Effect.Effect<kit.Json>
    }
    const offer = (name: string) =>
      registry.add(name, {
        definition: { name, inputSchema: { type: "object" } },
        call: () => Effect.succeed({ content: [] })
      })
    const fill = Effect.forEach(names, offer)
    return { offer, get, fill, finished: () => methods.finished }
  }

  it.effect("are encoded once per change and revision, not once per call, and so is each page", () =>
    Effect.gen(function*() {
      const { fill, finished, get, offer } = setUp(["a", "b", "c"], 2)
      yield* fill
      const first = yield* get("2026-07-28")
      expect(first).toBeInstanceOf(JsonRpc.Encoded)
      expect(yield* get("2026-07-28")).toBe(first)
      expect(finished()).toBe(1)
      const cursor = JSON.parse((first as JsonRpc.Encoded).text).nextCursor
      const second = yield* get("2026-07-28", cursor)
      expect(yield* get("2026-07-28", cursor)).toBe(second)
      expect(finished()).toBe(2)
      const old = yield* get("2024-11-05")
      expect(old).not.toBe(first)
      expect(yield* get("2024-11-05")).toBe(old)
      expect(finished()).toBe(3)
      yield* offer("d")
      const changed = yield* get("2026-07-28")
      expect(changed).not.toBe(first)
      expect(yield* get("2026-07-28")).toBe(changed)
      expect(finished()).toBe(4)
      expect(namesOf(JSON.parse((yield* get("2026-07-28", cursor)).text))).toEqual(["c", "d"])
      expect(finished()).toBe(5)
    }))

  it.effect("are encoded after an entry is removed, too", () =>
    Effect.gen(function*() {
      const { fill, get } = setUp(["a", "b"], 10)
      const scope = yield* Scope.make()
      yield* Scope.provide(fill, scope)
      expect(JSON.parse((yield* get("2026-07-28")).text).tools.length).toBe(2)
      yield* Scope.close(scope, Exit.void)
      expect(JSON.parse((yield* get("2026-07-28")).text).tools).toEqual([])
    }))

  it.effect("retain no page for a cursor of another version of the list, so that their number is bounded", () =>
    Effect.gen(function*() {
      const { fill, finished, get, offer } = setUp(["a", "b", "c", "d", "e"], 2)
      yield* fill
      const { nextCursor } = JSON.parse((yield* get("2026-07-28")).text)
      const extra = yield* Scope.make()
      yield* Scope.provide(offer("aa"), extra)
      const before = finished()
      const odd = yield* get("2026-07-28", nextCursor)
      expect(odd).not.toBeInstanceOf(JsonRpc.Encoded)
      yield* get("2026-07-28", nextCursor)
      expect(finished()).toBe(before + 2)
    }))

  it.effect("are the same text in each response of a server", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(tool("a")))
      const [near, far] = yield* InMemoryTransport.make()
      yield* Effect.provide(
        Effect.flatMap(McpServer.McpServer, (server) =>
          server.serve({
            ...near,
            open: (receiver) => near.open(receiver),
            drained: near.drained,
            close: near.close,
            send: (message) => {
              if (message._tag === "Success") sent.push(message.result)
              return true
            }
          })),
        context
      )
      const sent: Array<unknown> = []
      for (const id of [1, 2]) far.send({ _tag: "Request", id, method: "tools/list", params: { _meta: kit.meta() } })
      yield* kit.settle
      expect(sent.length).toBe(2)
      expect(sent[0]).toBeInstanceOf(JsonRpc.Encoded)
      expect(sent[0]).toBe(sent[1])
    }))
})
