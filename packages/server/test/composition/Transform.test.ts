import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Transform from "@skein/server/Transform"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { counted, hostileSchemas, sizeOf } from "../../../protocol/test/reads.ts"
import * as Timed from "../../../protocol/test/timed.ts"
import { changeTool } from "../../src/internal/composition/toolChange.ts"
import * as kit from "../kit.ts"

const eras = ["2025-11-25", "2026-07-28"] as const

const search = Tool.layer(
  Tool.make("search", {
    description: "Searches",
    tags: ["read"],
    input: {
      q: Schema.String.annotate({ description: "The query" }),
      limit: Schema.optionalKey(Schema.Int),
      region: Schema.String.annotate({ "x-mcp-header": "Region" }),
      token: Schema.String
    }
  }),
  (input) => Effect.succeed(JSON.stringify(input))
)
const remove = Tool.layer(Tool.make("remove", { tags: ["write", "internal"] }), () => Effect.succeed("removed"))
const list = Tool.layer(Tool.make("list", { tags: ["read"] }), () => Effect.succeed("[]"))

const textOf = (result: kit.Json): kit.Json => JSON.parse(result.content[0].text)
const namesOf = (page: kit.Json): ReadonlyArray<string> => page.tools.map((tool: kit.Json) => tool.name)

const changed = Transform.tools({
  change: {
    search: {
      name: "find",
      title: "Find",
      description: "Finds tea",
      annotations: { readOnlyHint: true },
      arguments: {
        q: { name: "query", title: "Query", description: "Words" },
        limit: { default: 5 },
        region: { name: "area" },
        token: { value: "secret" }
      }
    }
  }
}, search)

describe("a transform of tools", () => {
  for (const revision of eras) {
    it.effect(`${revision} · changes the listed tool and its schema, and calls it with its own arguments`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(changed, list) as kit.Server, revision)
        const { tools } = yield* client.result("tools/list")
        expect(tools[0]).toMatchObject({
          name: "find",
          title: "Find",
          description: "Finds tea",
          annotations: { readOnlyHint: true }
        })
        const { properties, required } = tools[0].inputSchema
        expect(Object.keys(properties)).toEqual(["query", "limit", "area"])
        expect(properties).toMatchObject({
          query: { type: "string", title: "Query", description: "Words" },
          limit: { type: "integer", default: 5 },
          area: { type: "string", "x-mcp-header": "Region" }
        })
        expect(required).toEqual(["query", "area"])
        expect(textOf(yield* client.call("find", { query: "green", area: "eu" }))).toEqual({
          q: "green",
          limit: 5,
          region: "eu",
          token: "secret"
        })
        expect(textOf(yield* client.call("find", { query: "green", area: "eu", limit: 1 })).limit).toBe(1)
        expect((yield* client.error("tools/call", { name: "search" })).message).toBe("Unknown tool: search")
      }))
  }

  it.effect("refuses a hidden argument and the old name of an argument, as invalid arguments in each revision", () =>
    Effect.gen(function*() {
      for (const name of ["token", "q", "region"]) {
        const args = { query: "x", area: "eu", [name]: "mine" }
        const message = `Invalid arguments for tool find: there is no argument "${name}"`
        const now = yield* kit.client(kit.server(changed) as kit.Server, "2025-11-25")
        expect(yield* now.call("find", args)).toMatchObject({ isError: true, content: [{ text: message }] })
        const before = yield* kit.client(kit.server(changed) as kit.Server, "2025-06-18")
        expect(yield* before.error("tools/call", { name: "find", arguments: args })).toMatchObject({
          code: -32602,
          message
        })
      }
    }))

  it.effect("has the headers of the listed arguments", () =>
    Effect.gen(function*() {
      const catalog = Context.get(yield* Layer.build(kit.server(changed) as kit.Server), Catalog.Catalog)
      expect(catalog.tools.get("find")?.headers?.map(({ header, path }) => [header, path])).toEqual([
        ["Mcp-Param-Region", ["area"]]
      ])
    }))

  it.effect("selects tools by name, by pattern and by tag, and does not list the tags", () =>
    Effect.gen(function*() {
      const names = (options: Transform.Options) =>
        Effect.gen(function*() {
          const client = yield* kit.client(kit.server(Transform.tools(options, search, remove, list)) as kit.Server)
          const page = yield* client.result("tools/list")
          expect(JSON.stringify(page)).not.toContain("internal")
          return namesOf(page)
        })
      expect(yield* names({})).toEqual(["search", "remove", "list"])
      expect(yield* names({ only: { tags: ["read"] } })).toEqual(["search", "list"])
      expect(yield* names({ except: { tags: ["internal"] } })).toEqual(["search", "list"])
      expect(yield* names({ only: { names: ["list", /^rem/g] } })).toEqual(["remove", "list"])
      expect(yield* names({ only: { names: [/e/] }, except: { names: ["remove"] } })).toEqual(["search"])
      expect(yield* names({ rename: (name) => `x_${name}`, change: { list: { name: "all" }, remove: {} } })).toEqual([
        "x_search",
        "remove",
        "all"
      ])
    }))

  it.effect("changes tools of a source that is not known in advance", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(Transform.tools(
          {
            each: ({ inputSchema }) =>
              "token" in ((inputSchema["properties"] ?? {}) as object)
                ? { arguments: { token: { value: "secret" } } }
                : undefined
          },
          search,
          list
        )) as kit.Server
      )
      const { tools } = yield* client.result("tools/list")
      expect(Object.keys(tools[0].inputSchema.properties)).toEqual(["q", "limit", "region"])
      expect(textOf(yield* client.call("search", { q: "a", region: "eu" })).token).toBe("secret")
    }))

  it.effect("can be nested, and the same tool can be in several of them", () =>
    Effect.gen(function*() {
      const inner = Transform.tools({ change: { search: { name: "s", arguments: { token: { value: "t" } } } } }, search)
      const outer = Transform.tools({ change: { s: { name: "find", arguments: { q: { name: "query" } } } } }, inner)
      const client = yield* kit.client(kit.server(outer, inner, search) as kit.Server)
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["find", "s", "search"])
      expect(textOf(yield* client.call("find", { query: "a", region: "eu" }))).toMatchObject({ q: "a", token: "t" })
      expect(textOf(yield* client.call("s", { q: "a", region: "eu" }))).toMatchObject({ q: "a", token: "t" })
      expect((yield* client.call("search", { q: "a", region: "eu" })).isError).toBe(true)
    }))

  it.effect("changes tools of a mounted part, whose middleware still runs", () =>
    Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const noting = Middleware.layer((next) => (request) => {
        seen.push(request.target)
        return next(request)
      })
      const client = yield* kit.client(
        kit.server(
          Transform.tools(
            { change: { shop_search: { name: "find", arguments: { token: { value: "t" } } } } },
            McpServer.mount("shop", noting, search, Resource.layer(Resource.make("r://a"), Effect.succeed("a")))
          )
        ) as kit.Server
      )
      expect(textOf(yield* client.call("find", { q: "a", region: "eu" }))).toMatchObject({ token: "t" })
      expect((yield* client.result("resources/read", { uri: "r://shop/a" })).contents[0].text).toBe("a")
      expect(seen).toEqual(["search", "r://a"])
    }))

  const failing: ReadonlyArray<readonly [string, Transform.Options, kit.Json]> = [
    ["an argument that does not exist", { change: { search: { arguments: { x: {} } } } }, {
      reason: { _tag: "InvalidValue" },
      message: "The tool \"search\" cannot be changed: it has no argument \"x\""
    }],
    ["a required argument that is hidden without a value", {
      change: { search: { arguments: { q: { hidden: true } } } }
    }, {
      reason: { _tag: "InvalidValue" }
    }],
    ["two arguments with one name", { change: { search: { arguments: { q: { name: "limit" } } } } }, {
      reason: { _tag: "InvalidValue" },
      message: "The tool \"search\" cannot be changed: it would have two arguments \"limit\""
    }],
    ["a value that is not JSON", { change: { search: { arguments: { q: { value: 1n } } } } }, {
      reason: { _tag: "InvalidValue" }
    }],
    ["a tool that does not exist", { change: { find: {} } }, { reason: { _tag: "NotFound" }, definition: "find" }],
    ["a name that is taken", { change: { search: { name: "list" } } }, { reason: { _tag: "DuplicateName" } }],
    ["an argument that the schema names elsewhere", { change: { raw: { arguments: { a: { name: "b" } } } } }, {
      message: "The tool \"raw\" cannot be changed: its argument \"a\" may be named in the keyword anyOf of its schema"
    }]
  ]
  const raw = Tool.layer(
    Tool.make("raw", {
      input: JsonSchema.make<object>({
        type: "object",
        properties: { a: { type: "string" } },
        anyOf: [{ required: ["a"] }, {}]
      })
    }),
    () => Effect.succeed("")
  )
  for (const [what, options, expected] of failing) {
    it.effect(`fails the server for ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* kit.failure(kit.server(Transform.tools(options, search, raw), list) as kit.Server)
        expect(error).toMatchObject({ _tag: "DefinitionError", kind: "tool", ...expected })
      }))
  }

  it.effect("accepts a tool that does not exist yet with `missing: \"ignore\"`, and changes it later", () =>
    Effect.gen(function*() {
      const options: Transform.Options = { missing: "ignore", change: { later: { name: "now" } } }
      const adding = Tool.layer(Tool.make("add"), () => Effect.succeed(""))
      const client = yield* kit.client(kit.server(Transform.tools(options, adding)) as kit.Server)
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["add"])
    }))

  it.effect("hides an optional argument that the tool then never receives", () =>
    Effect.gen(function*() {
      const options = { change: { search: { arguments: { limit: { hidden: true } } } } }
      const client = yield* kit.client(kit.server(Transform.tools(options, search)) as kit.Server)
      expect(textOf(yield* client.call("search", { q: "a", region: "b", token: "c" }))).toEqual({
        q: "a",
        region: "b",
        token: "c"
      })
    }))
})

describe("the change of a tool of another server", () => {
  it.each(hostileSchemas)("reads its schema about once: %s", (_, schema) => {
    const { reads, value } = counted({ type: "object", ...schema })
    const entry = {
      definition: { name: "t", inputSchema: value as never },
      call: () => Effect.succeed({ content: [] })
    }
    changeTool(entry as never, "t", { arguments: { p0: { name: "q0" }, p1: { value: 1 }, p2: { name: "q2" } } })
    expect(reads()).toBeLessThan(30 * sizeOf(schema) + 1_000)
  })

  it("compares the names of many arguments in linear time", () => {
    const properties = Object.fromEntries(Array.from({ length: 99_000 }, (_, at) => [`p${at}`, {}]))
    const definition = { name: "t", inputSchema: { type: "object", properties } }
    const changed = (name: string) =>
      Timed.linear(() => changeTool({ definition } as never, "t", { arguments: { p0: { name } } }))
    expect(changed("other")).toMatchObject({ _tag: "Success" })
    expect(changed("p98999")).toMatchObject({ failure: { reason: { _tag: "InvalidValue" } } })
  })
})
