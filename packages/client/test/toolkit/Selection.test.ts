/** Which tools of a toolkit a model receives, how they are named and described, and which calls need approval. */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as AiTool from "effect/ai/Tool"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { counted } from "../../../protocol/test/reads.ts"
import { partsOf } from "../../src/internal/toolkit/content.ts"
import * as Client from "../../src/Client.ts"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Toolkit from "../../src/Toolkit.ts"
import { warnings } from "../calls/listed.ts"

const said = (text: string): JsonObject => ({ content: [{ type: "text", text }] })

/** A server with these tools, which responds to each call with `result`, and has `instructions`. */
const serverOf = (
  tools: ReadonlyArray<JsonObject & { readonly name: string }>,
  { instructions = "", result = said("done") }: { readonly instructions?: string; readonly result?: JsonObject } = {}
) => {
  const script = ScriptedServer.handshake("2025-11-25", ({ method }) =>
    method === "tools/list"
      ? ScriptedServer.success({ tools: tools.map((tool) => ({ inputSchema: { type: "object" }, ...tool })) })
      : method === "tools/call"
      ? ScriptedServer.success(result)
      : ScriptedServer.methodNotFound(method), { tools: { listChanged: true } })
  return ScriptedServer.make((request, server) => {
    const reply = script(request, server)
    return request.method === "initialize" && typeof reply === "object" && "result" in reply
      ? { result: { ...reply.result, instructions } }
      : reply
  })
}

const named = (...names: ReadonlyArray<string>) => names.map((name) => ({ name }))

const clientOf = (...server: Parameters<typeof serverOf>) => Client.make(serverOf(...server).transport)

const namesOf = ({ tools }: Toolkit.Toolkit) => Object.keys(tools)

const finish = { type: "finish", reason: "tool-calls", usage: { inputTokens: {}, outputTokens: {} } } as const

/** One generation, in which the model calls a tool. */
const generate = (toolkit: Effect.Effect<Toolkit.Toolkit>, name: string, params: unknown) => {
  const seen: Array<ReadonlyArray<string>> = []
  const model = LanguageModel.make({
    generateText: ({ tools }) => {
      seen.push(tools.map(({ name }) => name))
      const call = { type: "tool-call", id: "1", name, params } as const
      return Effect.succeed<Array<Response.PartEncoded>>(tools.length === 0 ? [finish] : [call, finish])
    },
    streamText: () => Stream.empty
  })
  return Effect.map(
    Effect.flatMap(model, ({ generateText }) => generateText({ prompt: "Do it", toolkit })),
    (response) => ({ response, seen: seen[0] ?? [] })
  )
}

describe("the schemas of a toolkit", () => {
  const tool = {
    name: "find",
    description: "Finds.",
    inputSchema: {
      type: "object",
      properties: {
        "filter[name]": { type: "string", format: "uri" },
        items: {
          type: "array",
          items: { type: "object", properties: { "@id": { type: "number", exclusiveMinimum: 0 } } }
        }
      },
      required: ["filter[name]"]
    }
  }
  const result = said("found")
  const listing = () => {
    const calls: Array<unknown> = []
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method, params }) => {
      if (method === "tools/list") return ScriptedServer.success({ tools: [tool] })
      calls.push(params?.["arguments"])
      return ScriptedServer.success(result)
    }, { tools: {} }))
    return { calls, server }
  }

  it.effect("are those that every provider accepts, and a call has the names of the server", () =>
    Effect.gen(function*() {
      const { calls, server } = listing()
      const approved: Array<JsonObject> = []
      const toolkit = yield* Client.toolkit(yield* Client.make(server.transport), {
        needsApproval: (_, __, args) => {
          approved.push(args)
          return false
        }
      })
      const shown = AiTool.getJsonSchema(toolkit.tools["find"]!) as any
      const [filter, items] = Object.keys(shown.properties)
      assert.match(filter!, /^filter_name__[0-9a-f]{8}$/)
      assert.deepStrictEqual([items, shown.required], ["items", [filter]])
      const [id] = Object.keys(shown.properties.items.items.properties)
      assert.match(id!, /^_id_[0-9a-f]{8}$/)
      assert.strictEqual(
        AiTool.getDescription(toolkit.tools["find"]!),
        "Finds.\n\nThe schema of the arguments is simplified. The server also requires or accepts:\n" +
          `- ${filter}: format "uri"\n- items[].${id}: greater than 0`
      )
      assert.isFalse(AiTool.getStrictMode(toolkit.tools["find"]!))
      yield* generate(Effect.succeed(toolkit), "find", { [filter!]: "a", items: [{ [id!]: 1 }] })
      assert.deepStrictEqual(calls, [{ "filter[name]": "a", items: [{ "@id": 1 }] }])
      assert.deepStrictEqual(approved, calls)
    }))

  it.effect("have the form of one provider, and count as the model receives them", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(listing().server.transport)
      const of = (schemas: Toolkit.SchemaForm) =>
        Effect.map(
          Client.toolkit(client, { schemas, countTokens: ({ inputSchema }) => JSON.stringify(inputSchema).length }),
          (kit) => {
            const schema = AiTool.getJsonSchema(kit.tools["find"]!)
            assert.strictEqual(kit.tokens, JSON.stringify(schema).length)
            return JSON.stringify(schema)
          }
        )
      assert.strictEqual(yield* of("none"), JSON.stringify(tool.inputSchema))
      assert.include(yield* of("anthropic"), "exclusiveMinimum")
      assert.include(yield* of("anthropic"), "uri")
      assert.notInclude(yield* of("openai"), "uri")
      assert.notInclude(yield* of("gemini"), "exclusiveMinimum")
    }))
})

describe("the bounds of a toolkit", () => {
  const large = (name: string, bytes: number) => ({ name, description: "x".repeat(bytes) })

  it.effect("let the servers take turns, so that none displaces the others", () =>
    Effect.gen(function*() {
      const clients = {
        many: yield* clientOf(named(...Array.from({ length: 20 }, (_, at) => `t${at}`))),
        few: yield* clientOf(named("x", "y"))
      }
      const toolkit = yield* Client.toolkit(clients, { maxTools: 6 })
      assert.deepStrictEqual(namesOf(toolkit), ["many_t0", "many_t1", "many_t2", "many_t3", "few_x", "few_y"])
      assert.deepStrictEqual(toolkit.omitted.length, 16)
      assert.deepInclude(toolkit.omitted[0], { server: "many", bound: "maxTools" })
    }))

  it.effect("maxTokens: leave out tools with more tokens than are left, 100,000 by default, and report them", () =>
    Effect.gen(function*() {
      const clients = {
        huge: yield* clientOf([large("a", 300_000), large("b", 200_000), large("c", 80)]),
        small: yield* clientOf(named("x"))
      }
      const toolkit = yield* Client.toolkit(clients)
      assert.deepStrictEqual(namesOf(toolkit), ["huge_a", "huge_c", "small_x"])
      assert.deepStrictEqual(toolkit.omitted.map(({ bound, tool, tokens }) => [bound, tool.name, tokens]), [
        ["maxTokens", "b", 50_021]
      ])
      assert.isTrue(toolkit.tokens > 75_000 && toolkit.tokens < 76_000)
      const none = yield* Client.toolkit(clients, { maxTokens: 10 })
      assert.deepStrictEqual([namesOf(none), none.omitted.length, none.tokens], [[], 4, 0])
    }))

  it.effect("log once that they leave out tools, and again when the number changes", () =>
    Effect.gen(function*() {
      const { layer, logged } = warnings()
      const pool = yield* ClientPool.make({ a: { transport: serverOf(named("x", "y", "z")).transport } })
      yield* pool.client("a")
      const toolkit = Effect.provide(Client.toolkit(pool, { maxTools: 2 }), layer)
      for (let turn = 0; turn < 3; turn++) yield* toolkit
      assert.deepStrictEqual(logged, ["1 of 3 tools were left out of a toolkit (maxTools)"])
      yield* pool.add("b", { transport: serverOf(named("x")).transport })
      yield* pool.client("b")
      for (let turn = 0; turn < 3; turn++) yield* toolkit
      assert.deepStrictEqual(logged.slice(1), ["2 of 4 tools were left out of a toolkit (maxTools)"])
    }))

  it.effect("countTokens: counts the tokens of the name, description and schema that the model receives", () =>
    Effect.gen(function*() {
      const counted: Array<Toolkit.ShownTool> = []
      const toolkit = yield* Client.toolkit({ s: yield* clientOf([large("a", 10), large("b", 10)]) }, {
        maxTokens: 1,
        countTokens: (tool) => (counted.push(tool), 1),
        override: () => ({ description: "Short" })
      })
      assert.deepStrictEqual(namesOf(toolkit), ["s_a"])
      assert.deepStrictEqual(counted[0], {
        name: "s_a",
        description: "Short",
        inputSchema: { type: "object", properties: {} }
      })
      const one = yield* Client.toolkit({ s: yield* clientOf(named("a", "b")) }, {
        countTokens: ({ name }) => name === "s_a" ? NaN : 5
      })
      assert.deepStrictEqual([namesOf(one), one.tokens], [["s_b"], 5])
    }))

  it("estimateTokens: counts one token for four bytes of JSON", () => {
    const tool = { name: "a", description: undefined, inputSchema: { type: "object" } } as const
    assert.strictEqual(Toolkit.estimateTokens(tool), Math.ceil(JSON.stringify(tool).length / 4))
    const japanese = { ...tool, description: "茶".repeat(400) }
    assert.isAtLeast(Toolkit.estimateTokens(japanese) - Toolkit.estimateTokens(tool), 300)
  })
})

describe("an override", () => {
  it.effect("renames and describes a tool for the model, and calls it by its own name", () =>
    Effect.gen(function*() {
      const server = serverOf([{ name: "q", description: "Does things" }, { name: "other" }])
      const toolkit = Client.toolkit({ notes: yield* Client.make(server.transport) }, {
        override: (name, tool) =>
          tool.name === "q" ? { name: `search ${name}`, description: "Searches my notes" } : undefined
      })
      const { seen } = yield* generate(toolkit, "search_notes", { text: "tea" })
      assert.deepStrictEqual(seen, ["search_notes", "notes_other"])
      assert.strictEqual(AiTool.getDescription((yield* toolkit).tools["search_notes"]!), "Searches my notes")
      assert.deepStrictEqual(server.requests("tools/call").map(({ params }) => params?.["name"]), ["q"])
      assert.strictEqual((yield* toolkit).origins.get("search_notes")?.tool.name, "q")
    }))

  it.effect("cannot give two tools one name", () =>
    Effect.gen(function*() {
      const toolkit = yield* Client.toolkit({ s: yield* clientOf(named("a", "b", "c")) }, {
        override: (_, { name }) => name === "c" ? undefined : { name: "s_c" }
      })
      assert.strictEqual(namesOf(toolkit).length, 3)
      for (const name of namesOf(toolkit)) assert.match(name, /^s_c_[0-9a-f]{8}$/)
    }))
})

describe("approval", () => {
  const asksFor = (needsApproval: NonNullable<Toolkit.Options["needsApproval"]>, args: unknown) =>
    Effect.gen(function*() {
      const server = serverOf(named("write"))
      const toolkit = Client.toolkit({ s: yield* Client.make(server.transport) }, { needsApproval })
      const { response } = yield* generate(toolkit, "s_write", args)
      const asked = response.content.some(({ type }) => type === "tool-approval-request")
      assert.strictEqual(server.requests("tools/call").length, asked ? 0 : 1)
      return asked
    })

  it.effect("is decided by the arguments, with a value, a promise or an effect", () =>
    Effect.gen(function*() {
      const outside = (path: unknown) => !String(path).startsWith("/tmp/")
      for (
        const decide of [
          outside,
          async (path: unknown) => outside(path),
          (path: unknown) => Effect.succeed(outside(path))
        ]
      ) {
        const needsApproval: Toolkit.Options["needsApproval"] = (_, __, { path }) => decide(path)
        assert.isFalse(yield* asksFor(needsApproval, { path: "/tmp/a" }))
        assert.isTrue(yield* asksFor(needsApproval, { path: "/etc/passwd" }))
      }
    }))

  it.effect("is needed when the decision fails", () =>
    Effect.gen(function*() {
      assert.isTrue(yield* asksFor(() => Effect.fail("no"), {}))
      assert.isTrue(yield* asksFor(() => Effect.die("a bug"), {}))
      assert.isTrue(yield* asksFor(() => Promise.reject(new Error("a bug")), {}))
      assert.isTrue(
        yield* asksFor(() => {
          throw new Error("a bug")
        }, {})
      )
    }))
})

describe("structured content", () => {
  const shown = (result: JsonObject, options?: Toolkit.Options<"return">) =>
    Effect.gen(function*() {
      const toolkit = Client.toolkit({ s: yield* clientOf(named("t"), { result }) }, options)
      const { response } = yield* generate(toolkit, "s_t", {})
      const { modelOutput } = response.toolResults[0] as Response.ToolResultPart<string, any, any>
      return modelOutput!.map((part) => part.type === "text" && part.text)
    })

  it.effect("is shown beside other content with `beside`, unless a text has the same JSON", () =>
    Effect.gen(function*() {
      const result = { ...said("3 notes"), structuredContent: { notes: [1, 2, 3], total: 3 } }
      assert.deepStrictEqual(yield* shown(result), ["3 notes"])
      const beside = { structuredContent: "beside" } as const
      assert.deepStrictEqual(yield* shown(result, beside), ["3 notes", "{\"notes\":[1,2,3],\"total\":3}"])
      const repeated = { ...result, ...said("{ \"total\": 3, \"notes\": [1, 2, 3] }") }
      assert.strictEqual((yield* shown(repeated, beside)).length, 1)
      assert.deepStrictEqual(yield* shown(said("{"), beside), ["{"])
    }))
})

it("the structured content is read once for all texts that could repeat it", () => {
  const { reads, value } = counted({ values: Array.from({ length: 1_000 }, (_, at) => at) })
  const content = Array.from({ length: 500 }, () => ({ type: "text" as const, text: "1" }))
  assert.strictEqual(partsOf({ content, structuredContent: value as never }, true).length, 501)
  assert.isBelow(reads(), 10_000)
})

describe("the structured content of a failed call", () => {
  const messageOf = (options?: Toolkit.Options<"return">) =>
    Effect.gen(function*() {
      const result = { ...said("No notes"), structuredContent: { code: 7 }, isError: true }
      const toolkit = yield* Client.toolkit({ s: yield* clientOf(named("t"), { result }) }, options)
      const [part] = yield* Stream.runCollect(yield* toolkit.handle("s_t", {}))
      return (part!.encodedResult as JsonObject)["message"]
    })

  it.effect("follows the message with `beside`", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* messageOf(), "No notes")
      assert.strictEqual(yield* messageOf({ structuredContent: "beside" }), "No notes\n{\"code\":7}")
    }))
})

describe("instructions", () => {
  it.effect("are collected from the servers whose tools the toolkit has, each cut at 8,192 characters", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        files: { transport: serverOf(named("read"), { instructions: " Read first. \n" }).transport },
        empty: { transport: serverOf([], { instructions: "Unused" }).transport },
        long: { transport: serverOf(named("x"), { instructions: "y".repeat(9_000) }).transport },
        none: { transport: serverOf(named("z")).transport }
      })
      const { instructions } = yield* Client.toolkit(pool)
      assert.strictEqual(
        instructions,
        `Instructions of the server "files" for its tools:\nRead first.\n\n` +
          `Instructions of the server "long" for its tools:\n${"y".repeat(8_192)}…`
      )
      const single = yield* Client.toolkit(yield* clientOf(named("a"), { instructions: "Be kind" }))
      assert.strictEqual(single.instructions, "Instructions of the server for its tools:\nBe kind")
      assert.strictEqual((yield* Client.toolkit(yield* clientOf(named("a")))).instructions, "")
    }))
})

describe("the toolkit of a pool", () => {
  it.effect("has the tools that are ready now, and more in the next generation", () =>
    Effect.gen(function*() {
      const a = serverOf(named("x"))
      const pool = yield* ClientPool.make({
        hanging: { transport: ScriptedServer.make(() => "no response").transport, timeout: "1 hour" },
        a: { transport: a.transport }
      })
      yield* pool.tools.pipe(Effect.timeoutOption(0))
      const toolkit = Client.toolkit(pool, { readyTimeout: 0 })
      yield* pool.client("a")
      yield* toolkit
      yield* TestClock.adjust(0)
      const first = yield* toolkit
      assert.deepStrictEqual([namesOf(first), first.pending], [["a_x"], ["hanging"]])
      const { seen } = yield* generate(toolkit, "a_x", {})
      assert.deepStrictEqual(seen, ["a_x"])
      const requests = a.requests("tools/list").length
      yield* pool.add("b", { transport: serverOf(named("y")).transport })
      yield* pool.client("b")
      assert.deepStrictEqual((yield* toolkit).pending, ["hanging", "b"])
      yield* Effect.repeat(TestClock.adjust(0), { times: 5 })
      assert.deepStrictEqual((yield* generate(toolkit, "a_x", {})).seen, ["a_x", "b_y"])
      yield* pool.remove("a")
      assert.deepStrictEqual((yield* generate(toolkit, "b_y", {})).seen, ["b_y"])
      assert.strictEqual(a.requests("tools/list").length, requests)
    }))

  it.effect("waits up to readyTimeout, 2 seconds by default, once", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        hanging: { transport: ScriptedServer.make(() => "no response").transport },
        a: { transport: serverOf(named("x")).transport }
      }, { timeout: "1 hour" })
      yield* Effect.promise(() => import("../../src/Toolkit.ts"))
      const making = yield* Effect.forkChild(Client.toolkit(pool))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(making.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Effect.promise(() => Promise.resolve())
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(namesOf(yield* Client.toolkit(pool)), ["a_x"])
      assert.isDefined(making.pollUnsafe())
    }))

  it.effect("servers: excludes servers before they are listed and waited for", () =>
    Effect.gen(function*() {
      const excluded = serverOf(named("secret"))
      const pool = yield* ClientPool.make({
        hanging: { transport: ScriptedServer.make(() => "no response").transport },
        excluded: { transport: excluded.transport },
        a: { transport: serverOf(named("x")).transport }
      })
      const toolkit = yield* Client.toolkit(pool, { servers: (name) => name === "a", readyTimeout: "1 hour" })
      assert.deepStrictEqual([namesOf(toolkit), toolkit.pending], [["a_x"], []])
      yield* pool.client("excluded")
      yield* TestClock.adjust(0)
      assert.strictEqual(excluded.requests("tools/list").length, 0)
      const one = yield* Client.make(excluded.transport)
      const record = yield* Client.toolkit({ one }, { servers: () => false })
      assert.deepStrictEqual(namesOf(record), [])
    }))
})
