/** Versions, eras and capabilities, over a connection in memory. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as catalog from "./catalog.ts"
import * as kit from "./kit.ts"

// Every definition may change while the server runs, and every handler's logs can be requested.
const everyCapability = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {}
}

const tool = Tool.layer(Tool.make("t"), () => Effect.succeed("ok"))
const limited = (...revisions: ReadonlyArray<Revision.Revision>) =>
  McpServer.layer({ name: "test", version: "1.0.0", revisions }, tool)
const linked = (server: kit.Server, revision: Revision.Revision) =>
  Effect.flatMap(Effect.orDie(Layer.build(server)), (context) => Effect.provide(kit.link(revision), context))
const version = "io.modelcontextprotocol/protocolVersion"
const capabilities = "io.modelcontextprotocol/clientCapabilities"

describe("initialize", () => {
  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · if the server supports the requested version, it MUST respond with the same version`, () =>
      Effect.gen(function*() {
        const client = yield* linked(catalog.server, revision)
        const result = yield* client.result("initialize", kit.hello(revision))
        expect(result.protocolVersion).toBe(revision)
        expect(result.instructions).toBe("Ask for anything")
        expect(result.capabilities).toEqual(everyCapability)
        expect(result.serverInfo).toMatchObject({ name: "everything", version: "1.2.3" })
        expect("title" in result.serverInfo).toBe(revision >= "2025-06-18")
        expect("icons" in result.serverInfo).toBe(revision >= "2025-11-25")
        expect("description" in result.serverInfo).toBe(revision >= "2025-11-25")
        expect(client.peer.session).toMatchObject({ revision, info: { name: "kit", version: "1" }, capabilities: {} })
      }))
  }

  it.effect("2024-10-07 · is served as the oldest revision, under its own name", () =>
    Effect.gen(function*() {
      const client = yield* linked(catalog.server, "2024-11-05")
      const result = yield* client.result("initialize", kit.hello("2024-10-07"))
      expect(result.protocolVersion).toBe("2024-10-07")
      expect(client.peer.session?.revision).toBe("2024-11-05")
    }))

  for (const requested of ["1900-01-01", "2099-01-01", "draft", "", "2026-07-28"]) {
    it.effect(`2025-11-25 · MUST respond with another version it supports, SHOULD be the latest: ${requested}`, () =>
      Effect.gen(function*() {
        const client = yield* linked(catalog.server, "2025-11-25")
        const result = yield* client.result("initialize", kit.hello(requested))
        expect(result.protocolVersion).toBe("2025-11-25")
        expect(client.peer.session?.revision).toBe("2025-11-25")
      }))
  }

  it.effect("never agrees on a revision that the server does not have", () =>
    Effect.gen(function*() {
      for (
        const [asked, agreed] of [["2025-11-25", "2025-03-26"], ["2024-11-05", "2024-11-05"], [
          "2025-03-26",
          "2025-03-26"
        ]]
      ) {
        const client = yield* linked(limited("2024-11-05", "2025-03-26"), agreed as Revision.Revision)
        expect((yield* client.result("initialize", kit.hello(asked!))).protocolVersion).toBe(agreed)
      }
      const client = yield* linked(limited("2024-11-05", "2025-03-26"), "2026-07-28")
      expect(yield* client.error("tools/list")).toEqual({
        code: -32022,
        message: "Unsupported protocol version",
        data: { supported: ["2025-03-26", "2024-11-05"], requested: "2026-07-28" }
      })
    }))

  it.effect("2026-07-28 · a server that supports only modern versions SHOULD name them in the error to initialize", () =>
    Effect.gen(function*() {
      const client = yield* linked(limited("2026-07-28"), "2025-11-25")
      expect(yield* client.error("initialize", kit.hello("2025-11-25"))).toMatchObject({
        data: { supported: ["2026-07-28"], requested: "2025-11-25" }
      })
      expect(client.peer.session).toBeUndefined()
      expect(yield* client.error("tools/list")).toMatchObject({ code: -32602 })
      expect(yield* client.error("ping")).toMatchObject({ code: -32602 })
    }))

  it.effect("2026-07-28 · refuses a version that is an object without a string form like any other version", () =>
    Effect.gen(function*() {
      const client = yield* linked(limited("2026-07-28"), "2025-11-25")
      const hello = { ...kit.hello("2025-11-25"), protocolVersion: { toString: 1 } }
      expect(yield* client.error("initialize", hello)).toMatchObject({
        data: { supported: ["2026-07-28"], requested: "" }
      })
    }))

  it.effect("opens a new session in place of the old one with a second initialize on one connection", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(catalog.server, "2025-06-18")
      const before = client.peer.session
      expect((yield* client.result("initialize", kit.hello("2024-11-05"))).protocolVersion).toBe("2024-11-05")
      expect(client.peer.session).not.toBe(before)
      expect(client.peer.session?.revision).toBe("2024-11-05")
      expect((yield* client.call("add", { a: 1, b: 2 })).content).toBeDefined()
    }))

  it.effect("ends the subscriptions of a session that another one replaces, and finishes its requests", () =>
    Effect.gen(function*() {
      const gate = Latch.makeUnsafe(false)
      const waiting = Tool.layer(Tool.make("wait"), () => Effect.as(gate.await, "waited"))
      const menu = Resource.layer(Resource.make("menu://today"), Effect.succeed("soup"))
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, waiting, menu)
      const context = yield* Layer.build(server)
      const client = yield* Effect.provide(kit.connect("2025-11-25"), context)
      yield* client.result("resources/subscribe", { uri: "menu://today" })
      const changed = Effect.andThen(Effect.provide(Catalog.updated("menu://today"), context), kit.settle)
      yield* changed
      expect(client.notices("notifications/resources/updated")).toHaveLength(1)
      client.sendRaw("tools/call", { name: "wait" }, 100)

      client.revision = "2025-06-18"
      yield* client.result("initialize", kit.hello("2025-06-18"))
      yield* changed
      client.notify("notifications/initialized")
      yield* changed
      expect(client.notices("notifications/resources/updated")).toHaveLength(1)
      client.sendRaw("tools/call", { name: "wait" }, 100)
      yield* kit.settle
      expect((yield* Context.get(context, McpServer.McpServer).inspect).sessions[0]?.requests).toMatchObject([
        { id: 100, revision: "2025-11-25" },
        { id: 100, revision: "2025-06-18" }
      ])
      yield* gate.open
      yield* kit.settle
      expect(client.answers(100).map(({ result }) => result.content[0].text)).toEqual(["waited", "waited"])
      yield* client.result("resources/subscribe", { uri: "menu://today" })
      yield* changed
      expect(client.notices("notifications/resources/updated")).toHaveLength(2)
    }))

  for (
    const [what, params] of [
      ["no params", undefined],
      ["nothing in them", {}],
      ["no clientInfo", { protocolVersion: "2025-11-25", capabilities: {} }],
      ["no version", { capabilities: {}, clientInfo: { name: "kit", version: "1" } }],
      ["a version that is a number", { ...kit.hello("x"), protocolVersion: 1 }],
      ["capabilities that are a list", { ...kit.hello("2025-11-25"), capabilities: [] }]
    ] as ReadonlyArray<readonly [string, object | undefined]>
  ) {
    it.effect(`2025-11-25 · refuses bad params of initialize with -32602, and accepts another attempt: ${what}`, () =>
      Effect.gen(function*() {
        const client = yield* linked(catalog.server, "2025-11-25")
        expect((yield* client.requestRaw("initialize", params)).error).toMatchObject({ code: -32602 })
        expect(client.peer.session).toBeUndefined()
        expect((yield* client.result("initialize", kit.hello("2025-11-25"))).protocolVersion).toBe("2025-11-25")
      }))
  }

  it.effect("2025-11-25 · answers only ping before initialize", () =>
    Effect.gen(function*() {
      const client = yield* linked(catalog.server, "2025-11-25")
      expect(yield* client.result("ping")).toEqual({})
      for (const method of ["tools/list", "tools/call", "resources/read", "nonsense"]) {
        const error = yield* client.error(method)
        expect(error.code).toBe(-32602)
        expect(error.message).toContain(version)
        expect(error.message).toContain("the session is not initialized")
      }
      yield* client.result("initialize", kit.hello("2025-11-25"))
      expect(yield* client.result("ping")).toEqual({})
      expect((yield* client.result("tools/list")).tools.length).toBe(4)
    }))
})

describe("stateless requests", () => {
  it.effect("2026-07-28 · server/discover returns the supported versions and the capabilities", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(catalog.server)
      const result = yield* client.result("server/discover")
      expect(result).toMatchObject({
        resultType: "complete",
        supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        capabilities: everyCapability,
        instructions: "Ask for anything",
        ttlMs: 0,
        cacheScope: "private"
      })
      expect(result._meta["io.modelcontextprotocol/serverInfo"]).toMatchObject({
        name: "everything",
        title: "Everything"
      })
    }))

  it.effect("2026-07-28 · refuses a request without a required member of _meta with -32602, and names the member", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(catalog.server)
      for (
        const [meta, key] of [
          [undefined, version],
          [{}, version],
          [{ [capabilities]: {} }, version],
          [{ [version]: "2026-07-28" }, capabilities],
          [{ ...kit.meta(), [version]: 7 }, version],
          [{ ...kit.meta(), [capabilities]: [] }, capabilities],
          [{ ...kit.meta(), "io.modelcontextprotocol/clientInfo": "me" }, "io.modelcontextprotocol/clientInfo"],
          [{ ...kit.meta(), "io.modelcontextprotocol/logLevel": "loud" }, "io.modelcontextprotocol/logLevel"]
        ] as ReadonlyArray<readonly [object | undefined, string]>
      ) {
        const { error } = yield* client.requestRaw("tools/list", meta === undefined ? undefined : { _meta: meta })
        expect(error.code).toBe(-32602)
        expect(error.message).toContain(key)
      }
      // SHOULD, and so may be absent.
      const { [version]: v, [capabilities]: c } = kit.meta()
      expect(
        (yield* client.requestRaw("tools/list", { _meta: { [version]: v, [capabilities]: c } })).result.tools.length
      ).toBe(4)
    }))

  it.effect("2026-07-28 · MUST respond with UnsupportedProtocolVersion, supported and requested, before other errors", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(catalog.server)
      for (const requested of ["1900-01-01", "2099-01-01", "", "2025-11-25", "2024-11-05"]) {
        for (const meta of [kit.meta(requested), { [version]: requested }]) {
          for (const method of ["tools/list", "server/discover", "initialize", "nonsense"]) {
            const { error } = yield* client.requestRaw(method, { _meta: meta })
            expect(error).toEqual({
              code: -32022,
              message: "Unsupported protocol version",
              data: { supported: [...Revision.all].reverse(), requested }
            })
          }
        }
      }
    }))
})

describe("both eras on one connection", () => {
  it.effect("2026-07-28 · a dual-era server MAY serve both eras concurrently: each message is answered in its own era", () =>
    Effect.gen(function*() {
      const client = yield* linked(catalog.server, "2026-07-28")
      const ask = (revision: Revision.Revision, method: string, params?: kit.Json) => {
        client.revision = revision
        return client.request(method, params)
      }
      const isModern = (message: kit.Json) => message.result.resultType === "complete"
      expect(isModern(yield* ask("2026-07-28", "tools/list"))).toBe(true)
      expect((yield* ask("2024-11-05", "tools/list")).error.code).toBe(-32602)
      expect(isModern(yield* ask("2024-11-05", "initialize", kit.hello("2024-11-05")))).toBe(false)
      for (let i = 0; i < 3; i++) {
        const modern = yield* ask("2026-07-28", "tools/call", { name: "show" })
        const legacy = yield* ask("2024-11-05", "tools/call", { name: "show" })
        expect(isModern(modern)).toBe(true)
        expect(modern.result.content[2].type).toBe("audio")
        expect(isModern(legacy)).toBe(false)
        expect(legacy.result.content[2].type).toBe("text")
        expect((yield* ask("2026-07-28", "resources/read", { uri: "x://y" })).error.code).toBe(-32602)
        expect((yield* ask("2024-11-05", "resources/read", { uri: "x://y" })).error.code).toBe(-32002)
        expect((yield* ask("2026-07-28", "ping")).error.code).toBe(-32601)
        expect((yield* ask("2024-11-05", "ping")).result).toEqual({})
      }
      // Errors of stateless requests have the codes of their revision, also beside a session.
      const { error } = yield* client.requestRaw("tools/list", { _meta: kit.meta("1900-01-01") })
      expect(error.code).toBe(-32022)
      expect((yield* client.requestRaw("tools/list", { _meta: { [version]: "2026-07-28" } })).error.code).toBe(-32602)
    }))
})

describe("capabilities", () => {
  const definitions: ReadonlyArray<McpServer.Definitions> = [
    tool,
    Resource.layer(Resource.make("a://b"), Effect.succeed("")),
    ResourceTemplate.layer(ResourceTemplate.make("a://{b}", { name: "n" }), () => Effect.succeed("")),
    Prompt.layer(Prompt.make("p"), () => Effect.succeed(""))
  ]
  for (const revision of Revision.all) {
    it.effect(`${revision} · a server that declared tools MUST respond to tools/list; the set MAY be empty`, () =>
      Effect.gen(function*() {
        const context = yield* Layer.build(kit.server())
        const first = yield* Effect.provide(kit.connect(revision), context)
        expect(yield* first.error("tools/list")).toMatchObject({ code: -32601 })
        const scope = yield* Scope.make()
        for (const definition of definitions) {
          const added = Layer.provide(definition, Layer.succeedContext(context)) as Layer.Layer<never>
          yield* Scope.provide(Layer.build(added), scope)
        }
        yield* Scope.close(scope, Exit.void)
        const client = yield* Effect.provide(kit.link(revision), context)
        const hello = Revision.era(revision) === "session" ? "initialize" : "server/discover"
        expect((yield* client.result(hello, kit.hello(revision))).capabilities).toEqual(everyCapability)
        expect((yield* client.result("tools/list")).tools).toEqual([])
        expect((yield* client.result("resources/list")).resources).toEqual([])
        expect((yield* client.result("resources/templates/list")).resourceTemplates).toEqual([])
        expect((yield* client.result("prompts/list")).prompts).toEqual([])
        expect(yield* client.error("tools/call", { name: "t" })).toMatchObject({ code: -32602 })
      }))
  }
})
