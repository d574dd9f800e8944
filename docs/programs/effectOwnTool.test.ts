import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { expect, layer } from "@effect/vitest"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { OrdersInMemory } from "./effectOrders.ts"
import { Routes } from "./effectOwnTool.ts"

/** Connects a client of the official SDK, which sends the token with each request. */
const connect = Effect.fn(function*(token?: string) {
  const { address } = yield* HttpServer.HttpServer
  const port = "port" in address ? address.port : 0
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const url = new URL(`http://localhost:${port}/mcp`)
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  const client = new Client({ name: "test", version: "1.0.0" })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect(transport)),
    () => Effect.promise(() => client.close())
  )
  return (name: string, args: Record<string, unknown> = {}) =>
    Effect.promise(() => client.callTool({ name, arguments: args }))
})

layer(
  HttpRoutes.serve(Routes, { disableListenLog: true }).pipe(
    Layer.provide(OrdersInMemory),
    Layer.provideMerge(NodeHttpServer.layerTest)
  )
)("the MCP endpoint", (it) => {
  it.effect("reorders with the service of the endpoints", () =>
    Effect.gen(function*() {
      const call = yield* connect()
      yield* call("orders_place", { tea: "Assam", grams: 50 })
      expect((yield* call("reorder", { id: 1 })).structuredContent).toEqual({ id: 2, tea: "Assam", grams: 50 })
    }))

  it.effect("refuses an anonymous caller with advice, and accepts ada", () =>
    Effect.gen(function*() {
      const anonymous = yield* connect()
      expect(yield* anonymous("account_name")).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("ask the user to sign in") }]
      })
      const ada = yield* connect("the token of ada")
      expect((yield* ada("account_name")).content).toEqual([{ type: "text", text: "\"ada\"" }])
    }))
})
