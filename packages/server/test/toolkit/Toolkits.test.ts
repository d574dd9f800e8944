/** Toolkits of `effect/ai` as tools of a server, and tools as toolkits. */
import { describe, expect, it } from "@effect/vitest"
import * as Content from "@skein/server/Content"
import * as Tool from "@skein/server/Tool"
import * as ToolkitTools from "@skein/server/ToolkitTools"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as kit from "../kit.ts"

class SoldOut extends Schema.TaggedError<SoldOut>()("SoldOut", { tea: Schema.String }) {}
class Named extends Schema.TaggedError<Named>()("Named", { message: Schema.String }) {}
class Prices extends Context.Service<Prices, { readonly of: (tea: string) => number }>()("test/Prices") {}

const price = AiTool.make("price", {
  description: "Returns the price of a tea",
  parameters: Schema.Struct({
    tea: Schema.String.annotate({ description: "The tea" }),
    on: Schema.optionalKey(Schema.Date)
  }),
  success: Schema.Struct({ cents: Schema.Int, on: Schema.Date }),
  failure: SoldOut,
  dependencies: [Prices]
}).annotate(AiTool.Title, "Price").annotate(AiTool.Readonly, true).annotate(AiTool.OpenWorld, false)
  .annotate(AiTool.Meta, { "example.com/shelf": 3 })
const returning = AiTool.make("returning", { failure: Named, failureMode: "return" }).annotate(
  AiTool.Destructive,
  false
)
const wrong = AiTool.make("wrong", { success: Schema.Int })
const label = AiTool.make("label", {
  success: Schema.String,
  toModelOutput: (text) => [Prompt.textPart({ text }), Prompt.filePart({ mediaType: "image/png", data: "AAEC" })]
})
const raw = AiTool.dynamic("raw", {
  parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  success: Schema.String
})
const undeclared = AiTool.make("undeclared", { success: Schema.Int })
const slow = AiTool.make("slow", { success: Schema.String })
const pour = AiTool.make("pour", {
  parameters: Schema.Struct({ cups: Schema.Int }),
  success: Schema.String,
  needsApproval: ({ cups }) => cups > 2
})

const Teas = AiToolkit.make(price, returning, wrong, label, raw, slow, pour, undeclared)

const TeasLive = Teas.toLayer({
  price: ({ on, tea }) =>
    tea === "none"
      ? Effect.fail(new SoldOut({ tea }))
      : Effect.map(Prices, ({ of }) => ({ cents: of(tea), on: on ?? new Date(0) })),
  returning: () => Effect.fail(new Named({ message: "Come back tomorrow" })),
  wrong: () => Effect.succeed("not a number" as never),
  undeclared: () => Effect.fail(new Error("the secret cause") as never),
  label: () => Effect.succeed("Assam"),
  raw: (args) => Effect.succeed(JSON.stringify(args)),
  slow: (_, { preliminary }) => Effect.as(Effect.andThen(preliminary("half"), preliminary("nearly")), "done"),
  pour: ({ cups }) => Effect.succeed(`${cups} cups`)
})

const teas = (options: ToolkitTools.Options<AiToolkit.Tools<typeof Teas>> = {}) =>
  kit.server(ToolkitTools.layer(Teas, options)).pipe(
    Layer.provide(TeasLive),
    Layer.provide(Layer.succeed(Prices, { of: (tea) => tea.length * 100 }))
  )

const call = (client: kit.Client, name: string, args: kit.Json = {}, more: kit.Json = {}) =>
  client.result("tools/call", { name, arguments: args, ...more })

const text = (result: kit.Json): string => result.content[0].text

describe("a toolkit as tools", () => {
  it.effect("keeps schemas, descriptions and annotations", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(teas({ exclude: ["slow"], name: (name) => `tea_${name}` }))
      const { tools } = yield* client.result("tools/list")
      const byName = Object.fromEntries(tools.map((tool: kit.Json) => [tool.name, tool]))
      expect(Object.keys(byName).toSorted()).toEqual(
        ["label", "pour", "price", "raw", "returning", "undeclared", "wrong"].map((name) => `tea_${name}`)
      )
      expect(byName["tea_price"]).toMatchObject({
        title: "Price",
        description: "Returns the price of a tea",
        annotations: { readOnlyHint: true, openWorldHint: false },
        _meta: { "example.com/shelf": 3 },
        inputSchema: { type: "object", properties: { tea: { description: "The tea" }, on: {} }, required: ["tea"] },
        outputSchema: { type: "object", properties: { cents: { type: "integer" }, on: { type: "string" } } }
      })
      expect(byName["tea_returning"].annotations).toEqual({ destructiveHint: false })
      expect(byName["tea_returning"].inputSchema).toEqual({ type: "object", additionalProperties: false })
      expect(byName["tea_raw"].inputSchema.required).toEqual(["n"])
      expect(byName["tea_label"].outputSchema).toBeUndefined()
    }))

  it.effect("runs the handlers of the toolkit, with their services", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(teas())
      const on = "2026-01-02T00:00:00.000Z"
      expect((yield* call(client, "price", { tea: "Assam", on })).structuredContent).toEqual({ cents: 500, on })
      expect((yield* call(client, "label")).content).toEqual([
        { type: "text", text: "Assam" },
        { type: "image", data: "AAEC", mimeType: "image/png" }
      ])
      expect(text(yield* call(client, "raw", { n: 3 }))).toBe(`"{\\"n\\":3}"`)
    }))

  it.effect("returns failures in both modes to the model, and hides defects", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(teas())
      const soldOut = yield* call(client, "price", { tea: "none" })
      expect([soldOut.isError, text(soldOut)]).toEqual([true, `{"_tag":"SoldOut","tea":"none"}`])
      const named = yield* call(client, "returning")
      expect([named.isError, text(named)]).toEqual([true, "Come back tomorrow"])
      for (const [name, args] of [["price", { tea: 1 }], ["raw", { n: "x" }]] as const) {
        const invalid = yield* call(client, name, args)
        expect([invalid.isError, text(invalid)]).toEqual([
          true,
          expect.stringMatching(new RegExp(`^Invalid arguments for tool ${name}: `))
        ])
      }
      for (const name of ["wrong", "undeclared"]) {
        yield* client.defect(name, {})
      }
      const old = yield* kit.client(teas(), "2025-06-18")
      expect((yield* old.error("tools/call", { name: "price", arguments: { tea: 1 } })).code).toBe(-32602)
    }))

  it.effect("logs a result that does not match its schema in one line", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const client = yield* kit.client(teas())
        yield* client.defect("wrong", {})
        expect(lines).toEqual([
          expect.stringMatching(/ Error: The result of the tool wrong does not match its output schema: .+$/)
        ])
      })
    ))

  it.effect("reports preliminary results as progress", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(teas())
      const done = yield* call(client, "slow", {}, { _meta: { progressToken: "p" } })
      expect(done.structuredContent).toBe("done")
      const reports = client.received.filter(({ method }) => method === "notifications/progress")
      expect(reports.map(({ params }) => [params.progress, params.message])).toEqual([[1, "half"], [2, "nearly"]])
    }))

  it.effect("asks the user before a call that needs approval, unless the client does", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(teas())
      expect((yield* call(client, "pour", { cups: 2 })).structuredContent).toBe("2 cups")
      const capable = { _meta: { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } } }
      const asked = yield* call(client, "pour", { cups: 3 }, capable)
      const [key, question] = Object.entries<kit.Json>(asked.inputRequests)[0]!
      expect(question.params.message).toBe(`Allow the tool pour with these arguments? {"cups":3}`)
      const answer = (content: kit.Json) => ({
        requestState: asked.requestState,
        inputResponses: { [key]: content },
        ...capable
      })
      const allowed = { action: "accept", content: { approve: true } }
      expect((yield* call(client, "pour", { cups: 3 }, answer(allowed))).structuredContent).toBe("3 cups")
      const declined = yield* call(client, "pour", { cups: 3 }, answer({ action: "decline" }))
      expect([declined.isError, text(declined)]).toEqual([true, "The user did not allow the tool pour"])
      const trusting = yield* kit.client(teas({ approval: "client" }))
      expect((yield* call(trusting, "pour", { cups: 3 })).structuredContent).toBe("3 cups")
    }))

  it.effect("refuses tools that a provider defines", () =>
    Effect.gen(function*() {
      const search = AiTool.providerDefined({ id: "test.search", customName: "search", providerName: "web_search" })
      const toolkit = AiToolkit.make(search(undefined as never), slow)
      const handlers = toolkit.toLayer({ slow: () => Effect.succeed("done") })
      const error = yield* kit.failure(kit.server(ToolkitTools.layer(toolkit)).pipe(Layer.provide(handlers)))
      expect(error).toMatchObject({
        _tag: "DefinitionError",
        reason: { _tag: "InvalidValue" },
        message:
          "The tool \"search\" is defined by a provider of models, and only runs there: leave it out with exclude"
      })
      const rest = kit.server(ToolkitTools.layer(toolkit, { exclude: ["search"] })).pipe(Layer.provide(handlers))
      const client = yield* kit.client(rest)
      expect((yield* call(client, "slow")).structuredContent).toBe("done")
    }))
})

describe("tools as a toolkit", () => {
  const add = Tool.make("add", {
    title: "Add",
    description: "Adds two numbers",
    input: { a: Schema.Finite, b: Schema.Finite },
    output: { sum: Schema.Finite },
    annotations: { readOnlyHint: true, idempotentHint: true }
  })
  const toolkit = ToolkitTools.make(
    ToolkitTools.bind(
      add,
      ({ a, b }) => a < 0 ? Effect.fail(new Named({ message: "Not below 0" })) : Effect.succeed({ sum: a + b })
    ),
    ToolkitTools.bind(Tool.make("hello"), () => Effect.map(Prices, ({ of }) => `Hello, ${of("Assam")}`)),
    ToolkitTools.bind(Tool.make("count"), () => Effect.succeed(3)),
    ToolkitTools.bind(Tool.make("wrong"), () => Effect.succeed((() => 1) as unknown as number)),
    ToolkitTools.bind(
      Tool.make("picture"),
      () => Effect.succeed([Content.text("A picture"), Content.image(new Uint8Array([0, 1, 2]), "image/png")])
    )
  ).pipe(Effect.provideService(Prices, { of: (tea) => tea.length }))

  const handle = (name: "add" | "count" | "hello" | "picture" | "wrong", args: unknown) =>
    Effect.flatMap(
      toolkit,
      (kit) => Effect.map(Stream.runCollect(Stream.unwrap(kit.handle(name, args as never))), ([one]) => one!)
    )

  it.effect("keeps schemas and annotations", () =>
    Effect.gen(function*() {
      const { tools: { add, hello } } = yield* toolkit
      expect(AiTool.getJsonSchema(add)).toMatchObject({ type: "object", required: ["a", "b"] })
      expect(AiTool.getJsonSchema(hello)).toEqual({ type: "object", additionalProperties: false })
      expect(AiTool.getDescription(add)).toBe("Adds two numbers")
      expect(Context.getOrUndefined(add.annotations, AiTool.Title)).toBe("Add")
      expect([AiTool.Readonly, AiTool.Idempotent, AiTool.Destructive].map((key) => Context.get(add.annotations, key)))
        .toEqual([true, true, true])
    }))

  it.effect("runs the handlers, with their services", () =>
    Effect.gen(function*() {
      const added = yield* handle("add", { a: 2, b: 3 })
      expect(added).toMatchObject({ isFailure: false, result: { sum: 5 }, encodedResult: { sum: 5 } })
      expect(added.modelOutput).toMatchObject([{ type: "text", text: `{"sum":5}` }])
      expect((yield* handle("hello", {})).modelOutput).toMatchObject([{ type: "text", text: "Hello, 5" }])
      expect((yield* handle("count", {})).modelOutput).toMatchObject([{ type: "text", text: "3" }])
      expect((yield* handle("picture", {})).modelOutput).toMatchObject([
        { type: "text", text: "A picture" },
        { type: "file", mediaType: "image/png", data: "AAEC" }
      ])
    }))

  it.effect("returns failures and invalid arguments to the model", () =>
    Effect.gen(function*() {
      expect(yield* handle("add", { a: -1, b: 3 })).toMatchObject({
        isFailure: true,
        encodedResult: { _tag: "ToolFailed", tool: "add", message: "Not below 0" }
      })
      expect(yield* handle("add", { a: "x", b: 3 })).toMatchObject({
        isFailure: true,
        encodedResult: { message: expect.stringContaining("Invalid arguments for tool add") }
      })
      expect(yield* handle("wrong", {})).toMatchObject({
        isFailure: true,
        encodedResult: { message: expect.stringContaining("The handler of the tool wrong returned a function") }
      })
      expect(yield* handle("add", 7)).toMatchObject({
        isFailure: true,
        encodedResult: { message: "The arguments of a tool must be a JSON object" }
      })
    }))
})
