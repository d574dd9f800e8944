/** Clauses of the specification that do not belong to a single feature, each with its text. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as catalog from "./catalog.ts"
import * as kit from "./kit.ts"

for (const revision of Revision.all) {
  describe(`${revision} · messages`, () => {
    it.effect(`${revision} · responses MUST include the same ID as the request they correspond to`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const params = Revision.era(revision) === "session" ? {} : { _meta: kit.meta() }
        const ids = ["", "0", "1", "a b", "é\ud83d\ude00", "\ud800", "__proto__", "x".repeat(1000), 0, -1, 2 ** 53 - 1]
        for (const id of ids) {
          for (const method of ["tools/list", "nonsense"]) {
            client.received.length = 0
            expect((yield* client.answer(client.sendRaw(method, params, id))).id).toBe(id)
            yield* kit.settle
            expect(client.received.length).toBe(1)
          }
        }
      }))

    it.effect(`${revision} · MUST NOT send a response to a notification: unknown ones, and names of requests, are ignored`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        client.received.length = 0
        for (
          const method of [
            "notifications/unknown",
            "com.example/told",
            "",
            "__proto__",
            "tools/call",
            "initialize",
            "ping"
          ]
        ) {
          client.notify(method)
          client.notify(method, { name: "show", _meta: kit.meta() })
        }
        client.notify("notifications/initialized")
        yield* kit.settle
        expect(client.received).toEqual([])
        expect((yield* client.result("tools/list")).tools.length).toBe(4)
      }))

    it.effect(`${revision} · ignores a response to an unknown request`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        client.received.length = 0
        for (const id of [0, 1, "x", undefined]) {
          client.answerRaw({ _tag: "Success", id: id ?? "y", result: { tools: [] } })
          client.answerRaw({ _tag: "Failure", id, error: { code: -32600, message: "no" } })
        }
        yield* kit.settle
        expect(client.received).toEqual([])
        expect((yield* client.result("tools/list")).tools.length).toBe(4)
      }))

    it.effect(`${revision} · responds with -32602 to tools/call without a name or with malformed arguments`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        for (
          const params of [{}, { name: 1 }, { name: null }, { name: "show", arguments: [] }, {
            name: "show",
            arguments: "x"
          }]
        ) {
          expect(yield* client.error("tools/call", params)).toMatchObject({ code: -32602 })
        }
        expect(yield* client.error("resources/read", { uri: 1 })).toMatchObject({ code: -32602 })
        expect(yield* client.error("prompts/get", { name: "review", arguments: { code: 1 } })).toMatchObject({
          code: -32602
        })
        expect(yield* client.error("tools/list", { cursor: 1 })).toMatchObject({ code: -32602 })
      }))

    it.effect(`${revision} · processes a request for a task normally if the server did not declare tasks`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const result = yield* client.result("tools/call", {
          name: "add",
          arguments: { a: 1, b: 2 },
          task: { ttl: 1000 }
        })
        expect(result.content).toEqual([{ type: "text", text: "{\"sum\":3}" }])
        expect("task" in result).toBe(false)
      }))

    it.effect(`${revision} · error codes MUST be integers, for any code of a handler`, () =>
      Effect.gen(function*() {
        const failing = Tool.make("fail", { input: { code: Schema.Unknown } })
        const server = kit.server(
          Tool.layer(failing, ({ code }) => Effect.fail(McpError.other(code as number, "m", { a: 1 })))
        )
        const client = yield* kit.client(server, revision)
        for (const code of [1.5, "1", null, 2 ** 60]) {
          const error = yield* client.error("tools/call", { name: "fail", arguments: { code } })
          expect(error).toEqual({ code: -32603, message: "m", data: { a: 1 } })
        }
        expect((yield* client.error("tools/call", { name: "fail", arguments: { code: 7 } })).code).toBe(7)
      }))
  })
}

for (const revision of Revision.sessionBased) {
  it.effect(`${revision} · requests may follow the initialize result, before notifications/initialized or without it`, () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(catalog.server)
      const client = yield* Effect.provide(kit.link(revision), context)
      const initialize = client.send("initialize", kit.hello(revision))
      const list = client.send("tools/list")
      expect((yield* client.answer(initialize)).result.protocolVersion).toBe(revision)
      expect((yield* client.answer(list)).result.tools.length).toBe(4)
      client.notify("notifications/initialized")
      client.notify("notifications/initialized")
      expect((yield* client.call("add", { a: 1, b: 2 })).content[0].text).toBe("{\"sum\":3}")
    }))
}

it.effect("2026-07-28 · MUST NOT emit the codes of earlier versions, nor reserved ones, for any failure of a handler", () =>
  Effect.gen(function*() {
    const codes = [-32002, -32042, -32020, -32021, -32022, -32023, -32099]
    const fail = (code: number) => Effect.fail(McpError.other(code, "m"))
    const layers = codes.flatMap((code) => [
      Tool.layer(Tool.make(`t${code}`), () => fail(code)),
      Prompt.layer(Prompt.make(`p${code}`), () => fail(code)),
      Resource.layer(Resource.make(`r:${code}`), fail(code))
    ])
    const client = yield* kit.client(kit.server(...layers))
    for (const code of codes) {
      const expected = { code: code === -32002 ? -32602 : -32603, message: "m" }
      expect(yield* client.error("tools/call", { name: `t${code}` })).toEqual(expected)
      expect(yield* client.error("prompts/get", { name: `p${code}` })).toEqual(expected)
      expect(yield* client.error("resources/read", { uri: `r:${code}` })).toEqual(expected)
    }
    client.revision = "2025-11-25"
    yield* client.result("initialize", kit.hello("2025-11-25"))
    for (const code of codes) {
      expect(yield* client.error("tools/call", { name: `t${code}` })).toEqual({ code, message: "m" })
    }
  }))

it.effect("2026-07-28 · servers MUST NOT rely on prior requests over the same connection", () =>
  Effect.gen(function*() {
    const whoami = Tool.layer(
      Tool.make("whoami"),
      () => Effect.map(McpRequest, ({ caller }) => JSON.stringify([caller.info?.["name"], caller.capabilities]))
    )
    const client = yield* kit.client(kit.server(whoami))
    const ask = (name: string | undefined, capabilities: object) =>
      Effect.map(
        client.requestRaw("tools/call", {
          name: "whoami",
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            ...(name === undefined ? {} : { "io.modelcontextprotocol/clientInfo": { name, version: "1" } })
          }
        }),
        ({ result }) => JSON.parse(result.content[0].text)
      )
    expect(yield* ask("a", { elicitation: {} })).toEqual(["a", { elicitation: {} }])
    expect(yield* ask("b", {})).toEqual(["b", {}])
    expect(yield* ask(undefined, {})).toEqual([null, {}])
    // A session on the same connection does not add capabilities either.
    client.revision = "2025-11-25"
    yield* client.result("initialize", kit.hello("2025-11-25"))
    expect(yield* ask(undefined, {})).toEqual([null, {}])
  }))

it.effect("2026-07-28 · lists MUST NOT vary per connection or as a side effect of other requests, in a deterministic order", () =>
  Effect.gen(function*() {
    const context = yield* Layer.build(catalog.server)
    const lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
    const all = (client: kit.Client) => Effect.forEach(lists, (method) => client.result(method))
    const first = yield* Effect.provide(kit.connect(), context)
    const before = yield* all(first)
    yield* first.call("add", { a: 1, b: 2 })
    yield* first.error("tools/call", { name: "nonsense" })
    yield* first.result("prompts/get", { name: "gallery" })
    expect(yield* all(first)).toEqual(before)
    yield* Effect.provide(kit.connect("2024-11-05"), context)
    const second = yield* Effect.provide(kit.connect(), context)
    expect(yield* all(second)).toEqual(before)
    expect(before[0].tools.map(({ name }: kit.Json) => name)).toEqual(["add", "numbers", "show", "steps"])
  }))

describe("tool names", () => {
  const good = ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a", "-", "0", "x".repeat(128)]
  const bad = ["", "x".repeat(129), "a b", "a,b", "a/b", "é", "a\n", "\u0000"]
  const offer = (names: ReadonlyArray<string>) =>
    kit.logged((lines) =>
      Effect.map(
        Layer.build(kit.server(...names.map((name) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))))),
        () => lines
      )
    )

  it.effect("2025-11-25 · names of 1 to 128 letters, digits, underscores, hyphens and dots", () =>
    Effect.gen(function*() {
      expect(yield* offer(good)).toEqual([])
    }))

  it.effect("2025-11-25 · SHOULD be the only allowed characters: other names are offered, and logged once each", () =>
    Effect.gen(function*() {
      const lines = yield* offer(bad)
      expect(lines.length).toBe(bad.length)
      for (const [at, name] of bad.entries()) {
        expect(lines[at]).toContain(name.length > 128 ? "xxx…" : JSON.stringify(name))
        expect(lines[at]!.length).toBeLessThan(300)
      }
    }))
})

describe("resource URIs", () => {
  const offer = (uri: string) => kit.server(Resource.layer(Resource.make(uri), Effect.succeed("ok")))

  it.effect("2025-06-18 · custom URI schemes MUST be in accordance with RFC3986: an invalid URI fails the layer", () =>
    Effect.gen(function*() {
      for (
        const uri of [
          "",
          "readme",
          "/readme",
          "docs/read:me",
          "1a:b",
          "a:b c",
          "a://é",
          "a:%",
          "a:%zz",
          "a:<b>",
          "a:b[c]",
          "a:b#c#d",
          "a:\n",
          ":a"
        ]
      ) {
        expect(yield* kit.failure(offer(uri))).toMatchObject({
          reason: { _tag: "InvalidUri" },
          kind: "resource",
          definition: uri
        })
      }
      const error = yield* kit.failure(offer("x".repeat(10_000))) as Effect.Effect<Error>
      expect(error.message.length).toBeLessThan(300)
    }))

  it.effect("2025-06-18 · lists and reads resources with valid URIs", () =>
    Effect.gen(function*() {
      const uris = [
        "file:///project/src/main.rs",
        "https://user@example.com:8080/a/b?c=d&e=f#g/?",
        "git://host/a~b;c='d'",
        "urn:isbn:0451450523",
        "x-custom+1.0:a%20b%C3%A9",
        "http://[::1]:80",
        "A:b"
      ]
      for (const revision of Revision.all) {
        for (const uri of uris) {
          const client = yield* kit.client(offer(uri), revision)
          expect((yield* client.result("resources/list")).resources).toEqual([{ uri, name: uri }])
          expect((yield* client.result("resources/read", { uri })).contents).toEqual([{ uri, text: "ok" }])
        }
      }
    }))
})
