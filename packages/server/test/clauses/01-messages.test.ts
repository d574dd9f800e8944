/** The base protocol (basic): ids, errors, notifications and statelessness, over every transport. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as catalog from "../catalog.ts"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const ids = ["", "0", "1", "a b", "é\ud83d\ude00", "\ud800", "__proto__", "x".repeat(1000), 0, -1, 2 ** 53 - 1]

const raise = Tool.make("raise", { input: { code: Schema.Unknown } })
const raising = kit.server(
  Tool.layer(raise, ({ code }) => Effect.fail(McpError.other(code as number, "m", { a: 1 })))
)

const reserved = [-32002, -32042, -32020, -32021, -32022, -32023, -32099]
const reservedFailures = kit.server(...reserved.flatMap((code) => {
  const failure = Effect.fail(McpError.other(code, "m"))
  return [
    Tool.layer(Tool.make(`t${code}`), () => failure),
    Prompt.layer(Prompt.make(`p${code}`), () => failure),
    Resource.layer(Resource.make(`r:${code}`), failure)
  ]
}))

const tool = Tool.layer(Tool.make("t"), () => Effect.succeed("ok"))

const whoami = kit.server(Tool.layer(
  Tool.make("whoami"),
  () => Effect.map(McpRequest, ({ caller }) => JSON.stringify([caller.info?.["name"], caller.capabilities]))
))

for (const [{ connect, isDuplex, name }, revision] of transports.each) {
  const session = Revision.era(revision) === "session"

  describe(`${revision} · ${name}`, () => {
    // Responses
    it.live(`${revision} · ${name} · responses MUST include the same ID as the request they correspond to`, () =>
      Effect.gen(function*() {
        for (const method of ["tools/list", "nonsense"]) {
          const client = yield* connect(catalog.server, revision, { initialize: !session })
          // An id may be used once in a session, and these include the default ids.
          if (session) yield* client.request("initialize", kit.hello(revision), "first")
          for (const id of ids) expect((yield* client.request(method, {}, id)).id).toBe(id)
        }
      }))

    // "Streamable HTTP: clients MUST NOT send JSON-RPC responses" (2026-07-28).
    if (session || isDuplex) {
      it.live(`${revision} · ${name} · ignores a response to an unknown request`, () =>
        Effect.gen(function*() {
          const client = yield* connect(catalog.server, revision)
          for (const id of [0, 1, "x", "y"]) {
            yield* client.respond({ id, result: { tools: [] } })
            yield* client.respond({ id, error: { code: -32600, message: "no" } })
          }
          expect((yield* client.result("tools/list")).tools.length).toBe(4)
          expect(client.received).toEqual([])
        }))
    }

    // Error responses
    it.live(`${revision} · ${name} · error codes MUST be integers, for any code of a handler`, () =>
      Effect.gen(function*() {
        const client = yield* connect(raising, revision)
        for (const code of [1.5, "1", null, 2 ** 60]) {
          const error = yield* client.error("tools/call", { name: "raise", arguments: { code } })
          expect(error).toEqual({ code: -32603, message: "m", data: { a: 1 } })
        }
        expect((yield* client.error("tools/call", { name: "raise", arguments: { code: 7 } })).code).toBe(7)
      }))

    it.live(`${revision} · ${name} · ${session ? "sends any code" : "MUST NOT emit the codes of earlier versions, nor reserved ones"}, for any failure of a handler`, () =>
      Effect.gen(function*() {
        const client = yield* connect(reservedFailures, revision)
        for (const code of reserved) {
          const stateless = { code: code === -32002 ? -32602 : -32603, message: "m" }
          const expected = session ? { code, message: "m" } : stateless
          expect(yield* client.error("tools/call", { name: `t${code}` })).toEqual(expected)
          expect(yield* client.error("prompts/get", { name: `p${code}` })).toEqual(expected)
          expect(yield* client.error("resources/read", { uri: `r:${code}` })).toEqual(expected)
        }
      }))

    it.live(`${revision} · ${name} · responds with -32602 to requests with malformed params`, () =>
      Effect.gen(function*() {
        const client = yield* connect(catalog.server, revision)
        for (
          const [method, params] of [
            ["tools/call", {}],
            ["tools/call", { name: 1 }],
            ["tools/call", { name: null }],
            ["tools/call", { name: "show", arguments: [] }],
            ["tools/call", { name: "show", arguments: "x" }],
            ["resources/read", { uri: 1 }],
            ["prompts/get", { name: "review", arguments: { code: 1 } }],
            ["tools/list", { cursor: 1 }]
          ] as const
        ) {
          expect([params, (yield* client.error(method, params)).code]).toEqual([params, -32602])
        }
      }))

    // Notifications
    it.live(`${revision} · ${name} · MUST NOT send a response to a notification: ignores unknown ones, and names of requests`, () =>
      Effect.gen(function*() {
        const client = yield* connect(catalog.server, revision)
        for (
          const method of [
            "notifications/unknown",
            "notifications/roots/list_changed",
            "notifications/initialized",
            "com.example/x",
            "",
            "__proto__",
            "tools/call",
            "initialize",
            "ping"
          ]
        ) {
          yield* client.notify(method)
          // Over Streamable HTTP the metadata of another era would contradict the header of the session.
          const _meta = session && !isDuplex ? undefined : kit.meta()
          yield* client.notify(method, { name: "show", requestId: "none", reason: 1, _meta })
        }
        yield* client.notify("notifications/cancelled", { requestId: "none" })
        expect((yield* client.result("tools/list")).tools.length).toBe(4)
        expect(client.received).toEqual([])
      }))

    // Statelessness
    if (!session) {
      it.live(`${revision} · ${name} · servers MUST NOT rely on prior requests over the same connection`, () =>
        Effect.gen(function*() {
          const client = yield* connect(whoami, revision)
          const call = (name: string | undefined, capabilities: object) =>
            Effect.map(
              client.result("tools/call", {
                name: "whoami",
                _meta: {
                  "io.modelcontextprotocol/clientCapabilities": capabilities,
                  "io.modelcontextprotocol/clientInfo": name === undefined ? undefined : { name, version: "1" }
                }
              }),
              ({ content }) => JSON.parse(content[0].text)
            )
          expect(yield* call("a", { elicitation: {} })).toEqual(["a", { elicitation: {} }])
          expect(yield* call("b", {})).toEqual(["b", {}])
          expect(yield* call(undefined, {})).toEqual([null, {}])
        }))
    }

    // Schema
    it.live(`${revision} · ${name} · reads members of null as absent, and ignores unknown members`, () =>
      Effect.gen(function*() {
        const client = yield* connect(catalog.server, revision)
        const odd = { "x-unknown": [null], task: null }
        const list = yield* client.request("tools/list", { cursor: null, ...odd })
        expect(list.result.tools.length).toBe(4)
        const call = yield* client.request("tools/call", { name: "numbers", arguments: null, ...odd })
        expect(call.result.content).toEqual([{ type: "text", text: "[1,2.5,3]" }])
        const prompt = yield* client.request("prompts/get", { name: "gallery", arguments: null, ...odd })
        expect(prompt.result.messages.length).toBe(6)
        // A required member of null counts as missing.
        const add = yield* client.request("tools/call", { name: "add", arguments: null })
        expect(add.error?.code ?? add.result.isError).toBe(revision < "2025-11-25" ? -32602 : true)
        if (Revision.era(revision) === "session") expect((yield* client.request("ping", null)).result).toEqual({})
      }))
  })
}

it.effect("2026-07-28 · servers MUST NOT rely on prior requests: a session on the same connection does not add capabilities", () =>
  Effect.gen(function*() {
    const client = yield* kit.client(whoami)
    const call = Effect.map(
      client.requestRaw("tools/call", {
        name: "whoami",
        _meta: { ...kit.meta(), "io.modelcontextprotocol/clientInfo": undefined }
      }),
      ({ result }) => JSON.parse(result.content[0].text)
    )
    expect(yield* call).toEqual([null, {}])
    client.revision = "2025-11-25"
    yield* client.result("initialize", { ...kit.hello("2025-11-25"), capabilities: { elicitation: {} } })
    expect(yield* call).toEqual([null, {}])
  }))

it.effect("2026-07-28 · servers SHOULD identify themselves in every result, also in a complete result of a middleware", () =>
  Effect.gen(function*() {
    for (const partial of [{}, { resultType: "complete" }, { _meta: { "a.b/c": 1 } }]) {
      const answers = Middleware.layer(() => () => Effect.succeed({ content: [], ...partial }))
      const { _meta, resultType } = yield* (yield* kit.client(kit.server(tool, answers))).call("t")
      expect(resultType).toBe("complete")
      expect(_meta).toMatchObject({ ...partial._meta, "io.modelcontextprotocol/serverInfo": { name: "test" } })
    }
  }))
