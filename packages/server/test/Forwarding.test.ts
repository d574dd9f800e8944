/** The functions for a server that stands before another one, and entries of the catalog that only such a server needs. */
import { describe, expect, it } from "@effect/vitest"
import type { InputRequest } from "@skein/protocol/InputRequired"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Forwarding from "@skein/server/Forwarding"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as kit from "./kit.ts"

const serve = (...definitions: ReadonlyArray<McpServer.Definitions>) =>
  McpServer.layer({ name: "front", version: "1.0.0" }, ...definitions) as kit.Server

const form: InputRequest = {
  method: "elicitation/create",
  params: { mode: "form", message: "Who?", requestedSchema: { type: "object", properties: {} } }
}
const questions: ReadonlyArray<InputRequest> = [
  form,
  { method: "elicitation/create", params: { mode: "url", message: "Go", url: "https://shop.example" } },
  { method: "sampling/createMessage", params: { messages: [], maxTokens: 1, tools: [] } },
  { method: "roots/list" }
]

const asking = (question: InputRequest, key?: string) =>
  Tool.layer(Tool.make("ask"), () =>
    Effect.match(Forwarding.inputRequest(question, { key }), {
      onFailure: ({ message, reason }) => `${reason._tag}: ${message}`,
      onSuccess: (response) => JSON.stringify(response)
    }))

describe("Forwarding.inputRequest", () => {
  it.effect("2026-07-28 · sends the question under its key, and returns the response as it is", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2026-07-28")
      const capabilities = { elicitation: { form: {} } }
      const _meta = { "io.modelcontextprotocol/clientCapabilities": capabilities }
      const first = (yield* client.request("tools/call", { name: "ask", _meta })).result
      expect(first.inputRequests).toEqual({ who: form })
      const { result } = yield* client.request("tools/call", {
        name: "ask",
        _meta,
        requestState: first.requestState,
        inputResponses: { who: { action: "decline", _meta: { "x.example/y": 1 } } }
      })
      expect(JSON.parse(result.content[0].text)).toEqual({ action: "decline", _meta: { "x.example/y": 1 } })
    }).pipe(Effect.provide(serve(asking(form, "who")))))

  for (const question of questions) {
    const mode = "mode" in (question.params ?? {}) ? ` (${(question.params as { mode: string }).mode})` : ""
    it.effect(`fails with MissingCapability for ${question.method}${mode} to a client without it`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect("2025-11-25")
        const { result } = yield* client.request("tools/call", { name: "ask" })
        expect(result.content[0].text).toMatch(/^MissingCapability: /)
      }).pipe(Effect.provide(serve(asking(question)))))
  }
})

describe("Forwarding.logMessage", () => {
  const logging = Tool.layer(Tool.make("log"), () =>
    Effect.gen(function*() {
      const catalog = yield* Catalog.Catalog
      const request = yield* McpRequest
      Forwarding.logMessage(catalog, request, { level: "debug", data: "hidden" })
      Forwarding.logMessage(catalog, request, { level: "critical", logger: "index", data: { stale: true } })
      return "ok"
    }))

  it.effect("2025-11-25 · sends the message to the client of the request, from the level that it requested", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2025-11-25")
      yield* client.request("tools/call", { name: "log" })
      const logs = client.received.filter(({ method }) => method === "notifications/message")
      expect(logs.map(({ params }) => params)).toEqual([{ level: "critical", logger: "index", data: { stale: true } }])
    }).pipe(Effect.provide(serve(logging))))

  it.effect("sends nothing if the server does not declare logging", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2026-07-28")
      const _meta = { "io.modelcontextprotocol/logLevel": "debug" }
      yield* client.request("tools/call", { name: "log", _meta })
      expect(client.received.filter(({ method }) => method === "notifications/message")).toEqual([])
    }).pipe(Effect.provide(
      McpServer.layer({ name: "front", version: "1.0.0", logging: false }, logging) as kit.Server
    )))
})

/** An unlisted entry for all URIs, whose resources are those of `uris`. */
const unlisted = (text: string, uris: ReadonlyArray<string>) =>
  Layer.effectDiscard(Effect.flatMap(Catalog.Catalog, ({ templates }) =>
    templates.add(text, {
      definition: { uriTemplate: text, name: text },
      names: [],
      unlisted: true,
      match: (uri) => () =>
        uris.includes(uri)
          ? Effect.succeed({ contents: [{ uri, text }] })
          : Effect.fail(McpError.resourceNotFound(uri))
    })))

describe("an unlisted template", () => {
  it.effect("is read but not listed, and the next one is tried after ResourceNotFound", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2026-07-28")
      const { result } = yield* client.request("resources/templates/list", {})
      expect(result.resourceTemplates).toEqual([])
      for (const [uri, text] of [["x://1", "{+a}"], ["x://2", "{+b}"]] as const) {
        expect((yield* client.request("resources/read", { uri })).result.contents).toEqual([{ uri, text }])
      }
      expect((yield* client.error("resources/read", { uri: "x://3" })).code).toBe(-32602)
    }).pipe(Effect.provide(serve(unlisted("{+a}", ["x://1"]), unlisted("{+b}", ["x://2"])))))
})

describe("an extension with lists", () => {
  it.effect("makes the server declare the lists while it has no entries", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2026-07-28")
      const { result } = yield* client.request("server/discover", {})
      expect(result.capabilities).toEqual({ tools: { listChanged: true }, prompts: { listChanged: true }, logging: {} })
      expect((yield* client.request("tools/list", {})).result.tools).toEqual([])
    }).pipe(Effect.provide(serve(Extension.layer({ name: "later", lists: ["tools", "prompts"] })))))
})

describe("a completer", () => {
  it.effect("returns a completion with its own total and hasMore", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect("2025-11-25")
      const params = { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }
      expect((yield* client.request("completion/complete", params)).result.completion).toEqual({
        values: ["one"],
        total: 700,
        hasMore: true
      })
    }).pipe(Effect.provide(serve(
      Prompt.layer(Prompt.make("other"), () => Effect.succeed("ok")),
      Layer.effectDiscard(Effect.flatMap(Catalog.Catalog, ({ prompts }) =>
        prompts.add("p", {
          definition: { name: "p", arguments: [{ name: "a" }] },
          get: () => Effect.succeed({ messages: [] }),
          complete: new Map([["a", () => Effect.succeed({ values: ["one"], total: 700, hasMore: true })]])
        })))
    ))))
})
