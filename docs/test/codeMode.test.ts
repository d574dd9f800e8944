/** The programs of `code-mode.md`. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncClient } from "@skein/client/AsyncClient"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { code, Shop, shop, ShopOfLists } from "../programs/codeMode.ts"

const connect = <E>(server: Layer.Layer<McpServer.McpServer, E>) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve))
  })

describe("programs/codeMode.ts", () => {
  it.live("runs the program", () =>
    Effect.gen(function*() {
      const client = yield* connect(Shop)
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["search_tools", "describe_tool", "execute"])
      const { structuredContent } = yield* client.callTool("execute", { code })
      expect(structuredContent).toEqual({ result: { ada: 42.5, bob: 80 }, log: ["orders: 3"] })
      const failed = yield* client.callTool("execute", { code: "const a = 1\n\nreturn order" })
      expect(failed.content).toEqual([
        { type: "text", text: "ReferenceError: 'order' is not defined (line 3, column 8)" }
      ])
    }))

  it.live("runs lists of names in another sandbox", () =>
    Effect.gen(function*() {
      const client = yield* connect(ShopOfLists)
      const { structuredContent } = yield* client.callTool("execute", { code: "list_orders" })
      expect(structuredContent).toMatchObject({ result: [{ orders: [{ id: "o-1" }, {}, {}] }] })
      expect((yield* client.callTool("execute", { code: "refund" })).content).toEqual([
        { type: "text", text: "There is no tool \"refund\". Find tools with search_tools" }
      ])
    }))

  it("runs a program in a server that is a class", async () => {
    const client = await AsyncClient.connect(shop.transport())
    const { structuredContent } = await client.callTool("execute", { code: "return tools.today()" })
    expect(structuredContent).toEqual({ result: "A rainy day" })
    await client.close()
  })
})
