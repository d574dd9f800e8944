import { describe, expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Tool from "@skein/server/Tool"
import * as ToolSearch from "@skein/server/ToolSearch"
import * as Transform from "@skein/server/Transform"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { counted } from "../../../protocol/test/reads.ts"
import { Bounds, fixedBounds } from "../../src/internal/base/fixedBounds.ts"
import * as input from "../input/kit.ts"
import * as kit from "../kit.ts"

const eras = ["2025-11-25", "2026-07-28"] as const

const many = Array.from(
  { length: 40 },
  (_, i) => Tool.layer(Tool.make(`filler${i}`, { description: "Does nothing" }), () => Effect.succeed(`${i}`))
)
const forecast = Tool.layer(
  Tool.make("getForecast", {
    description: "Returns the weather of the next days",
    input: { city: Schema.String.annotate({ description: "A town" }), days: Schema.optionalKey(Schema.Int) }
  }),
  ({ city }) => Effect.succeed(`Sun in ${city}`)
)
const order = Tool.layer(
  Tool.make("order_tea", { title: "Weather proof tea", tags: ["shop"] }),
  () =>
    Effect.map(
      Elicitation.form("Cups?", { cups: Schema.Int }),
      (answer) => answer.action === "accept" ? `${answer.content.cups} cups` : "none"
    )
)

const namesOf = (page: kit.Json): ReadonlyArray<string> => page.tools.map((tool: kit.Json) => tool.name)
const found = (result: kit.Json): ReadonlyArray<string> => namesOf(JSON.parse(result.content[0].text))

const office = (options: ToolSearch.Options = {}, ...more: ReadonlyArray<McpServer.Definitions>) =>
  ToolSearch.layer(options, forecast, order, ...many, ...more)

describe("a tool search", () => {
  for (const revision of eras) {
    it.effect(`${revision} · lists three tools, finds, describes and calls the others`, () =>
      Effect.gen(function*() {
        const server = kit.server(office({ always: ["filler7"] })) as kit.Server
        const client = yield* kit.client(server, revision)
        expect(namesOf(yield* client.result("tools/list"))).toEqual([
          "filler7",
          "search_tools",
          "describe_tool",
          "call_tool"
        ])
        const search = (query: string, limit?: number) =>
          client.call("search_tools", limit === undefined ? { query } : { query, limit })
        expect(found(yield* search("weather!"))).toEqual(["order_tea", "getForecast"])
        expect(found(yield* search("forecast"))).toEqual(["getForecast"])
        expect(found(yield* search("town"))).toEqual(["getForecast"])
        expect(found(yield* search("shop"))).toEqual(["order_tea"])
        expect(found(yield* search("fore"))).toEqual(["getForecast"])
        expect(found(yield* search("zebra"))).toEqual([])
        const { structuredContent } = yield* search("nothing", 100)
        expect(structuredContent.tools.length).toBe(10)
        expect(structuredContent.total).toBe(40)
        expect((yield* search("forecast")).structuredContent.tools[0]).toMatchObject({
          name: "getForecast",
          description: "Returns the weather of the next days",
          arguments: ["city", "days?"]
        })
        const described = JSON.parse((yield* client.call("describe_tool", { name: "getForecast" })).content[0].text)
        expect(described).toMatchObject({ name: "getForecast", inputSchema: { required: ["city"] } })
        const call = (name: string, args?: kit.Json) => client.call("call_tool", { name, arguments: args })
        expect((yield* call("getForecast", { city: "Delft" })).content[0].text).toBe("Sun in Delft")
        expect((yield* call("getForecast", {})).content[0].text).toContain("Invalid arguments for tool getForecast")
        for (const name of ["nothing", "search_tools"]) {
          expect(yield* call(name)).toMatchObject({
            isError: true,
            content: [{ text: `There is no tool "${name}". Find the names of the tools with search_tools.` }]
          })
        }
        expect((yield* client.call("getForecast", { city: "Delft" })).content[0].text).toBe("Sun in Delft")
      }))

    it.effect(`${revision} · runs the middleware, the guards and the questions of the tool itself`, () =>
      Effect.gen(function*() {
        const seen: Array<string | undefined> = []
        const guarded = Catalog.guarded(
          () => McpError.invalidRequest("Members only"),
          Tool.layer(Tool.make("closed", { description: "secret weather" }), () => Effect.succeed(""))
        )
        const server = kit.server(
          AuditLog.layer({ sink: ({ target }) => Effect.sync(() => void seen.push(target)) }),
          Middleware.callTool((call, next) => {
            seen.push(`${call.name}!`)
            return next()
          }),
          office({}, guarded)
        )
        const client = yield* input.client(server as kit.Server, {
          revision,
          answer: () => input.accept({ cups: 2 })
        })
        expect(yield* client.call("call_tool", { name: "order_tea" })).toBe("2 cups")
        expect(new Set(seen.filter((each) => each !== undefined))).toEqual(new Set(["order_tea", "order_tea!"]))
        expect(yield* client.call("search_tools", { query: "secret" })).toContain("\"total\":0")
        expect(yield* client.call("call_tool", { name: "closed" })).toContain("There is no tool \"closed\"")
      }))
  }

  it.effect("lists all tools and not its own up to `above`, and changes when tools come and go", () =>
    Effect.gen(function*() {
      const grow = Tool.layer(
        Tool.make("grow"),
        () => Effect.as(Catalog.persistent(Tool.add(Tool.make("extra"), () => Effect.succeed(""))), "grown")
      )
      const shrink = Tool.layer(Tool.make("shrink"), () => Effect.as(Catalog.setEnabled("tool", "a", false), "shrunk"))
      const a = Tool.layer(Tool.make("a"), () => Effect.succeed("a"))
      const client = yield* kit.client(
        kit.server(ToolSearch.layer({ above: 2 }, a, Catalog.visibleTo(() => true, grow)), shrink) as kit.Server
      )
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["a", "grow", "shrink"])
      expect((yield* client.call("grow")).content[0].text).toBe("grown")
      // A handler adds to the server: see `Catalog.visibleTo`.
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["a", "grow", "shrink", "extra"])
      yield* client.call("shrink")
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["grow", "shrink", "extra"])
      const more = yield* kit.client(kit.server(ToolSearch.layer({ above: 1 }, a, grow), shrink) as kit.Server)
      expect(namesOf(yield* more.result("tools/list"))).toEqual([
        "search_tools",
        "describe_tool",
        "call_tool",
        "shrink"
      ])
      yield* more.call("shrink")
      expect(namesOf(yield* more.result("tools/list"))).toEqual(["grow", "shrink"])
    }))

  it.effect("finds no tool that the caller may not see, or that is disabled, and refuses direct calls on request", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(
          office({ direct: false }, Catalog.visibleTo(() => false, Tool.layer(Tool.make("ghost"), () => Effect.void))),
          Tool.layer(Tool.make("hide"), () => Effect.as(Catalog.setEnabled("tool", "getForecast", false), "hidden"))
        ) as kit.Server
      )
      expect(found(yield* client.call("search_tools", { query: "ghost" }))).toEqual([])
      expect((yield* client.call("call_tool", { name: "ghost" })).isError).toBe(true)
      expect((yield* client.error("tools/call", { name: "filler1" })).message).toBe("Unknown tool: filler1")
      expect((yield* client.call("call_tool", { name: "filler1" })).content[0].text).toBe("1")
      expect(found(yield* client.call("search_tools", { query: "forecast" }))).toEqual(["getForecast"])
      yield* client.call("hide")
      expect(found(yield* client.call("search_tools", { query: "forecast" }))).toEqual([])
      expect((yield* client.call("describe_tool", { name: "getForecast" })).isError).toBe(true)
    }))

  it.effect("works in a mounted part and in a transform, with other names", () =>
    Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const noting = Middleware.layer((next) => (request) => {
        seen.push(request.target)
        return next(request)
      })
      const client = yield* kit.client(
        kit.server(
          McpServer.mount("o", noting, office({ names: { call: "run" } })),
          Transform.tools({ rename: (name) => `t_${name}` }, office())
        ) as kit.Server
      )
      expect(namesOf(yield* client.result("tools/list"))).toEqual([
        "o_search_tools",
        "o_describe_tool",
        "o_run",
        "t_search_tools",
        "t_describe_tool",
        "t_call_tool"
      ])
      const args = { name: "getForecast", arguments: { city: "Delft" } }
      expect((yield* client.call("o_run", args)).content[0].text).toBe("Sun in Delft")
      expect((yield* client.call("t_call_tool", args)).content[0].text).toBe("Sun in Delft")
      expect(seen).toEqual(["getForecast"])
    }))

  it.effect("reads a bounded part of a query and of a tool, and returns at most 10 tools", () =>
    Effect.gen(function*() {
      const bounds = Layer.succeed(Bounds, { ...fixedBounds, maxQueryChars: 8, maxIndexedChars: 20 })
      const server = Layer.provide(kit.server(office()) as kit.Server, bounds)
      const client = yield* kit.client(server)
      expect(found(yield* client.call("search_tools", { query: "forecast" }))).toEqual(["getForecast"])
      expect(found(yield* client.call("search_tools", { query: "nothing forecast" })).length).toBe(10)
      expect(found(yield* client.call("search_tools", { query: "next days" }))).toEqual([])
      const { structuredContent } = yield* client.call("search_tools", { query: "filler", limit: 0 })
      expect(structuredContent.tools.length).toBe(1)
    }))

  it.effect("lists at most 100 arguments of a tool, each of them cut, and reads its schema once", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 3_000 }, (_, at) => at === 0 ? "x".repeat(1_000) : `a${at}`)
      const { reads, value } = counted({
        type: "object",
        properties: Object.fromEntries(names.map((name) => [name, {}])),
        required: names.slice(0, 1_500)
      })
      const definition = { name: "wide", title: "t".repeat(1_000), inputSchema: value } as never
      const wide = Layer.effectDiscard(Effect.flatMap(
        Catalog.Catalog,
        ({ tools }) => tools.add("wide", { definition, call: () => Effect.succeed({ content: [] }) })
      ))
      const client = yield* kit.client(kit.server(office({}, wide as never)) as kit.Server)
      yield* client.call("search_tools", { query: "wide" })
      const before = reads()
      const { structuredContent } = yield* client.call("search_tools", { query: "wide" })
      expect(reads() - before).toBeLessThan(20_000)
      const [{ arguments: args, title }] = structuredContent.tools
      expect(args.length).toBe(101)
      expect([args[0].length, args[1], args[100]]).toEqual([129, "a1", "… (2900 more)"])
      expect(title.length).toBe(501)
    }))

  it.effect("reads a part of each tool, which is smaller the more tools there are", () =>
    Effect.gen(function*() {
      const words = Array.from({ length: 100 }, (_, at) => `w${at}w`).join(" ")
      const long = Tool.layer(Tool.make("long", { description: words }), () => Effect.succeed(""))
      const found100 = (maxIndexedCharsOfAll: number) =>
        Effect.gen(function*() {
          const bounds = Layer.succeed(Bounds, { ...fixedBounds, maxIndexedCharsOfAll })
          const client = yield* kit.client(Layer.provide(kit.server(office({}, long)) as kit.Server, bounds))
          return [
            found(yield* client.call("search_tools", { query: "w40w" })),
            found(yield* client.call("search_tools", { query: "w99w" }))
          ]
        })
      expect(yield* found100(1024 * 1024)).toEqual([["long"], ["long"]])
      // Of each of the 43 tools, 256 characters are read all the same.
      expect(yield* found100(1)).toEqual([["long"], []])
    }))

  it.effect("fails the server if one of its names is taken", () =>
    Effect.gen(function*() {
      const taken = Tool.layer(Tool.make("call_tool"), () => Effect.succeed(""))
      expect(yield* kit.failure(kit.server(taken, office()) as kit.Server)).toMatchObject({
        reason: { _tag: "DuplicateName" },
        definition: "call_tool"
      })
    }))
})
