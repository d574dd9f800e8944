/** The programs of `composing.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ForToolsOnly, Home, Office, ReadOnly } from "../programs/composing.ts"

const connect = <E>(server: Layer.Layer<McpServer.McpServer, E>) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve))
  })

const call = (client: Client.Client, name: string, args = {}) =>
  Effect.map(client.callTool(name, args), ({ content }) => {
    const [block] = content
    return block?.type === "text" ? block.text : undefined
  })

describe("programs/composing.ts", () => {
  it.effect("mounts definitions and a server under prefixes", () =>
    Effect.gen(function*() {
      const client = yield* connect(Home)
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual([
        "weather_forecast",
        "weather_addCity",
        "shop.order"
      ])
      expect(yield* call(client, "weather_forecast", { city: "Delft" })).toBe("Sun in Delft")
      yield* call(client, "weather_addCity", { city: "Dakar" })
      const { contents } = yield* client.readResource("data://weather/cities")
      expect(contents).toMatchObject([{ uri: "data://weather/cities", text: "Delft\nDakar" }])
      expect((yield* client.callTool("shop.order"))._meta).toMatchObject({ "example.com/shop": "Delft" })
    }))

  it.effect("offers a tool with another name, fewer arguments and a default", () =>
    Effect.gen(function*() {
      const client = yield* connect(ReadOnly)
      const tools = yield* client.listTools()
      expect(tools.map(({ name }) => name)).toEqual(["find_tea"])
      expect(Object.keys(tools[0]!.inputSchema["properties"] as object)).toEqual(["query", "limit"])
      expect(JSON.parse((yield* call(client, "find_tea", { query: "green" }))!)).toEqual({
        q: "green",
        tenant: "tea-shop",
        limit: 10
      })
    }))

  it.effect("lists the tools of the search, which find and call the others", () =>
    Effect.gen(function*() {
      const client = yield* connect(Office)
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual([
        "forecast",
        "search_tools",
        "describe_tool",
        "call_tool"
      ])
      expect(yield* call(client, "search_tools", { query: "invoice" })).toContain("Writes an invoice")
      expect(yield* call(client, "call_tool", { name: "invoice" })).toBe("Written")
    }))

  it.effect("reads a resource through a tool", () =>
    Effect.gen(function*() {
      const client = yield* connect(ForToolsOnly)
      expect(yield* call(client, "list_resources")).toContain("data://cities")
      expect(yield* call(client, "read_resource", { uri: "data://cities" })).toContain("Delft")
    }))
})
