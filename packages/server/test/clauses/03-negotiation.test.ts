/**
 * Versions, eras and capabilities (2025-11-25, basic/lifecycle; 2026-07-28, basic/versioning), over every transport, and
 * over an HTTP endpoint without sessions.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as catalog from "../catalog.ts"
import * as http from "../http/kit.ts"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const ok = Effect.succeed("ok")
const tool = Tool.layer(Tool.make("t"), () => ok)
const resourceMethods = ["resources/list", "resources/templates/list", "resources/read"]
// Every definition may change while the server runs, and every handler's logs can be requested.
const tools = { tools: { listChanged: true }, logging: {} }
const resources = { resources: { subscribe: true, listChanged: true }, logging: {} }
const prompts = { prompts: { listChanged: true }, logging: {} }

/** The definitions of a server, with its capabilities and its methods. */
const offers: ReadonlyArray<readonly [string, McpServer.Definitions, object, ReadonlyArray<string>]> = [
  ["tools", tool, tools, ["tools/list", "tools/call"]],
  ["resources", Resource.layer(Resource.make("r://r"), ok), resources, resourceMethods],
  [
    "resource templates",
    ResourceTemplate.layer(ResourceTemplate.make("r://{id}", { name: "n" }), () => ok),
    resources,
    resourceMethods
  ],
  ["prompts", Prompt.layer(Prompt.make("t"), () => ok), prompts, ["prompts/list", "prompts/get"]],
  ["nothing", Layer.empty, { logging: {} }, []]
]
const methods = [...new Set(offers.flatMap(([, , , methods]) => methods))]

for (const [{ connect, name }, revision] of transports.each) {
  const session = Revision.era(revision) === "session"

  describe(`${revision} · ${name}`, () => {
    if (session) {
      it.live(`${revision} · ${name} · responds to requests before notifications/initialized, and without it`, () =>
        Effect.gen(function*() {
          const client = yield* connect(catalog.server, revision, { initialize: false })
          expect((yield* client.result("initialize", kit.hello(revision))).protocolVersion).toBe(revision)
          expect((yield* client.result("tools/list")).tools.length).toBe(4)
          yield* client.notify("notifications/initialized")
          yield* client.notify("notifications/initialized")
          const { content } = yield* client.result("tools/call", { name: "add", arguments: { a: 1, b: 2 } })
          expect(content[0].text).toBe("{\"sum\":3}")
        }))
    }

    for (const [offer, definitions, capabilities, offered] of offers) {
      it.live(`${revision} · ${name} · declares the offered capabilities, and has only their methods: ${offer}`, () =>
        Effect.gen(function*() {
          const client = yield* connect(kit.server(definitions) as kit.Server, revision, { initialize: false })
          const first = session ? "initialize" : "server/discover"
          expect((yield* client.result(first, kit.hello(revision))).capabilities).toEqual(capabilities)
          for (const method of methods) {
            const { error } = yield* client.request(
              method,
              method === "resources/read" ? { uri: "r://r" } : { name: "t" }
            )
            expect([method, error?.code]).toEqual([method, offered.includes(method) ? undefined : -32601])
          }
        }))
    }

    it.live(`${revision} · ${name} · responds with -32601 to methods of other revisions and of the other side`, () =>
      Effect.gen(function*() {
        const client = yield* connect(catalog.server, revision)
        const absent = [
          ...(session ? ["server/discover", "subscriptions/listen"] : ["ping", "initialize", "logging/setLevel"]),
          ...(session ? [] : ["resources/subscribe", "resources/unsubscribe"]),
          "sampling/createMessage",
          "elicitation/create",
          "roots/list",
          "completion/complete",
          "tasks/get",
          "tasks/list",
          "notifications/progress",
          "__proto__",
          ""
        ]
        for (const method of absent) {
          expect([method, (yield* client.request(method)).error?.code]).toEqual([method, -32601])
        }
        if (session) expect((yield* client.request("ping")).result).toEqual({})
      }))
  })
}

describe("2026-07-28 · the client's first message determines the era", () => {
  it.live("serves both eras at one endpoint and from one catalog, each message in its own era", () =>
    Effect.gen(function*() {
      const at = yield* http.serve(catalog.server)
      const opened = yield* http.post(at, {
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: kit.hello("2025-06-18")
      })
      const session = { "mcp-session-id": opened.headers["mcp-session-id"] as string }
      const list = { jsonrpc: "2.0", id: 1, method: "tools/list" }
      const [old, modern] = yield* Effect.all([
        http.post(at, list, session),
        // "An Mcp-Session-Id header on a request: ignore it … A Last-Event-ID header: ignore it"
        http.send(at, http.modern("tools/list", {}, { headers: { ...session, "last-event-id": "1-1" } }))
      ], { concurrency: 2 })
      expect([old.status, modern.status]).toEqual([200, 200])
      expect([old.json.result.resultType, modern.json.result.resultType]).toEqual([undefined, "complete"])
      expect(modern.headers["mcp-session-id"]).toBeUndefined()
    }))

  it.live("an initialize request selects legacy semantics, regardless of the version in the header", () =>
    Effect.gen(function*() {
      const at = yield* http.serve(catalog.server)
      const body = { jsonrpc: "2.0", id: 0, method: "initialize", params: kit.hello("2025-11-25") }
      const { headers, json, status } = yield* http.post(at, body, { "mcp-protocol-version": "2026-07-28" })
      expect([status, json.result.protocolVersion, typeof headers["mcp-session-id"]]).toEqual([
        200,
        "2025-11-25",
        "string"
      ])
    }))

  it.live("responds with 405 to GET and DELETE, and refuses initialize, on a server of this revision only", () =>
    Effect.gen(function*() {
      const at = yield* http.serve(
        McpServer.layer({ name: "m", version: "1", revisions: ["2026-07-28"] }, tool)
      )
      for (const method of ["GET", "DELETE"]) {
        const { headers, status } = yield* http.send(at, { method, headers: { "mcp-session-id": "s" } })
        expect([status, headers.allow]).toEqual([405, "POST"])
      }
      const body = { jsonrpc: "2.0", id: 0, method: "initialize", params: kit.hello("2025-11-25") }
      for (const version of [undefined, "2025-11-25", "2026-07-28"]) {
        const { json, status } = yield* http.post(at, body, { "mcp-protocol-version": version })
        expect(status).toBe(400)
        expect(json.error).toMatchObject({ code: -32022, data: { supported: ["2026-07-28"], requested: "2025-11-25" } })
      }
    }))
})

const serveStateless = http.serve(catalog.server, { stateless: true })

for (const revision of Revision.sessionBased) {
  it.live(`${revision} · only use capabilities that were successfully negotiated: an endpoint without sessions declares no later notifications`, () =>
    Effect.gen(function*() {
      const at = yield* serveStateless
      const ask = (method: string, params: object) =>
        Effect.map(
          http.post(at, { jsonrpc: "2.0", id: 1, method, params }, { "mcp-protocol-version": revision }),
          ({ json }) => json
        )
      const { result } = yield* ask("initialize", kit.hello(revision))
      expect(result.capabilities).toEqual({ tools: {}, resources: {}, prompts: {} })
      for (
        const [method, params] of [
          ["resources/subscribe", { uri: "docs://readme" }],
          ["resources/unsubscribe", { uri: "docs://readme" }],
          ["logging/setLevel", { level: "debug" }]
        ] as const
      ) {
        expect([method, (yield* ask(method, params)).error?.code]).toEqual([method, -32601])
      }
      expect((yield* ask("tools/list", {})).result.tools.length).toBe(4)
    }))
}

it.live("2026-07-28 · an endpoint without sessions declares the same capabilities", () =>
  Effect.gen(function*() {
    const withSessions = yield* http.send(yield* http.serve(catalog.server), http.modern("server/discover"))
    const without = yield* http.send(yield* serveStateless, http.modern("server/discover"))
    expect(without.json.result).toEqual(withSessions.json.result)
  }))
