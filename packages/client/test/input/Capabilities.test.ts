/** The client capabilities that follow from the host's services, in the form of each revision. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Roots from "../../src/Roots.ts"
import * as Sampling from "../../src/Sampling.ts"
import { ask, done, type Json, open, textAnswer } from "./kit.ts"

const form = () => Effect.succeed(Elicitation.decline)
const url = () => Effect.succeed(Elicitation.decline)
const model = () => Effect.succeed(textAnswer("x"))
const place = Layer.orDie(Roots.layer([]))

const hosts: { readonly [name: string]: Layer.Layer<never> } = {
  nothing: Layer.empty,
  form: Elicitation.layer({ form }),
  url: Elicitation.layer({ url }),
  both: Elicitation.layer({ form, url }),
  neither: Elicitation.layer({}),
  sampling: Sampling.layer(model),
  tools: Sampling.layer(model, { tools: true }),
  context: Sampling.layer(model, { context: true }),
  roots: place,
  changing: Roots.layerStream(Stream.never),
  all: Layer.mergeAll(Elicitation.layer({ form, url }), Sampling.layer(model, { tools: true, context: true }), place)
} as never

/** For each host, the capabilities since 2025-11-25, in 2025-06-18, and before. */
const declared: { readonly [name: string]: readonly [Json, Json, Json] } = {
  nothing: [{}, {}, {}],
  form: [{ elicitation: { form: {} } }, { elicitation: {} }, {}],
  // There, an empty object would mean form mode.
  url: [{ elicitation: { url: {} } }, {}, {}],
  both: [{ elicitation: { form: {}, url: {} } }, { elicitation: {} }, {}],
  neither: [{}, {}, {}],
  sampling: [{ sampling: {} }, { sampling: {} }, { sampling: {} }],
  tools: [{ sampling: { tools: {} } }, { sampling: {} }, { sampling: {} }],
  context: [{ sampling: { context: {} } }, { sampling: {} }, { sampling: {} }],
  roots: [{ roots: {} }, { roots: {} }, { roots: {} }],
  changing: [{ roots: { listChanged: true } }, { roots: { listChanged: true } }, { roots: { listChanged: true } }],
  all: [
    { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} },
    { elicitation: {}, sampling: {}, roots: {} },
    { sampling: {}, roots: {} }
  ]
}

/** The task capabilities, which only 2025-11-25 has: the requests that may be task-augmented. */
const tasksOf = (expected: Json): Json => {
  const sampling = "sampling" in expected ? { sampling: { createMessage: {} } } : undefined
  const elicitation = "elicitation" in expected ? { elicitation: { create: {} } } : undefined
  return sampling === undefined && elicitation === undefined
    ? {}
    : { tasks: { list: {}, cancel: {}, requests: { ...sampling, ...elicitation } } }
}

const wordsOf = (revision: Revision.Revision): 0 | 1 | 2 =>
  revision >= "2025-11-25" ? 0 : revision === "2025-06-18" ? 1 : 2

for (const revision of Revision.all) {
  describe(revision, () => {
    for (const [name, host] of Object.entries(hosts)) {
      it.effect(`Clients that support it MUST declare it, and nothing else · ${name}`, () =>
        Effect.gen(function*() {
          const { client, server } = yield* open(revision, host, () => done, { revisions: [revision] })
          yield* client.callTool("t")
          const expected = declared[name]![wordsOf(revision)]
          if (revision !== "2026-07-28") {
            const tasks = revision === "2025-11-25" ? tasksOf(expected) : {}
            assert.deepStrictEqual(server.requests("initialize")[0]!.params!["capabilities"], { ...expected, ...tasks })
            return
          }
          for (const { params } of [...server.requests("server/discover"), ...server.requests("tools/call")]) {
            const { "io.modelcontextprotocol/clientCapabilities": declared } = params!["_meta"] as Json
            // The tasks extension does not depend on the host's services.
            const extensions = { "io.modelcontextprotocol/tasks": {} }
            assert.deepStrictEqual(declared, { ...name === "changing" ? { roots: {} } : expected, extensions })
          }
        }))
    }
  })
}

const questions: { readonly [method: string]: Json } = {
  "sampling/createMessage": { messages: [], maxTokens: 1 },
  "roots/list": {},
  "elicitation/create": { message: "?", requestedSchema: { type: "object", properties: {} } }
}

for (const revision of Revision.sessionBased) {
  describe(revision, () => {
    it.effect("Client does not support roots: -32601 (Method not found), as for every method without a service", () =>
      Effect.gen(function*() {
        const { server } = yield* open(revision, Layer.empty)
        for (const [method, params] of Object.entries({ ...questions, "tools/list": {}, "vendor/thing": {} })) {
          const { error } = yield* ask(server, method, params, method)
          assert.deepInclude(error, { code: -32601, message: `Method not found: ${method}` })
        }
        const { error } = yield* ask(server, "roots/list", {}, "again")
        assert.deepStrictEqual(error.data, { reason: "Client does not have roots capability" })
      }))

    it.effect("responds -32601 without a service before it checks the params, and -32602 to invalid params with one", () =>
      Effect.gen(function*() {
        const { server } = yield* open(revision, hosts["sampling"]!)
        assert.strictEqual((yield* ask(server, "elicitation/create", { mode: 7 }, 2)).error.code, -32601)
        const { error } = yield* ask(server, "sampling/createMessage", { messages: "hi", maxTokens: 1 }, 3)
        assert.strictEqual(error.code, -32602)
        assert.include(error.message, "messages")
      }))

    it.effect("responds to a ping without any service", () =>
      Effect.gen(function*() {
        const { server } = yield* open(revision, Layer.empty)
        assert.deepStrictEqual((yield* ask(server, "ping")).result, {})
      }))
  })
}

describe("before 2025-06-18", () => {
  for (const revision of ["2024-11-05", "2025-03-26"] as const) {
    it.effect(`${revision} · responds -32601 to elicitation even if the host provides it`, () =>
      Effect.gen(function*() {
        const { server } = yield* open(revision, hosts["both"]!)
        const { error } = yield* ask(server, "elicitation/create", questions["elicitation/create"])
        assert.strictEqual(error.code, -32601)
      }))
  }
})

describe("modes", () => {
  const address = { mode: "url", message: "?", url: "https://example.com", elicitationId: "1" }
  it.effect("2025-11-25 · a mode not declared in client capabilities: -32602 (Invalid params)", () =>
    Effect.gen(function*() {
      const { server: forms } = yield* open("2025-11-25", hosts["form"]!)
      const wanted = (yield* ask(forms, "elicitation/create", address, 1)).error
      assert.deepInclude(wanted, { code: -32602, message: "The client did not declare elicitation.url" })
      const { server: urls } = yield* open("2025-11-25", hosts["url"]!)
      const unwanted = (yield* ask(urls, "elicitation/create", questions["elicitation/create"], 1)).error
      assert.deepInclude(unwanted, { code: -32602, message: "The client did not declare elicitation.form" })
      const { server } = yield* open("2025-11-25", hosts["both"]!)
      assert.strictEqual((yield* ask(server, "elicitation/create", { ...address, mode: "fax" }, 1)).error.code, -32602)
    }))

  it.effect("2025-06-18 · responds -32601 to elicitation if the host provides no form mode", () =>
    Effect.gen(function*() {
      const { server } = yield* open("2025-06-18", hosts["url"]!)
      assert.strictEqual((yield* ask(server, "elicitation/create", questions["elicitation/create"])).error.code, -32601)
    }))

  it.effect("2025-11-25 · declares no elicitation, and responds -32601, if the host provides no mode", () =>
    Effect.gen(function*() {
      const { server } = yield* open("2025-11-25", hosts["neither"]!)
      assert.strictEqual((yield* ask(server, "elicitation/create", address)).error.code, -32601)
    }))
})
