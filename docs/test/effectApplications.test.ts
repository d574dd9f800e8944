/** The programs of `effect-applications.md`. */
import * as SdkV2 from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as SkeinClient from "@skein/client/Client"
import type { Principal } from "@skein/server/Principal"
import type * as Catalog from "@skein/server/Catalog"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { AccountLive, Forwarded, Made, Selected, WithoutHttp } from "../programs/effectOptions.ts"
import { ApiLive, OrdersInMemory } from "../programs/effectOrders.ts"
import { read, regionsOf } from "./blocks.ts"
import { type Running, start } from "./process.ts"

const place = { tea: "Assam", grams: 50 }

describe("an application before and after it has tools", () => {
  const running = new Map<string, Running>()
  beforeAll(async () => {
    for (const name of ["effectBefore", "effectAfter"]) running.set(name, await start(name))
  })
  afterAll(() => {
    for (const { child } of running.values()) child.kill("SIGKILL")
  })

  it("differs by five lines that are added", () => {
    const linesOf = (name: string) =>
      regionsOf(read(`programs/${name === "before" ? "effectBefore" : "effectAfter"}.ts`)).get(name)!.split("\n")
    const [before, after] = [linesOf("before"), linesOf("after")].map((lines) => lines.filter((line) => line !== ""))
    const isNew = (line: string) => !before!.includes(line)
    const changed = after!.filter((line) => isNew(line) && (/effectOrders|\.serve\(/.test(line)))
    expect(changed).toHaveLength(2)
    expect(after!.filter((line) => isNew(line) && !changed.includes(line))).toHaveLength(5)
  })

  it.each(["effectBefore", "effectAfter"])("programs/%s.ts serves its endpoints", async (name) => {
    const orders = running.get(name)!.url.replace("/mcp", "/orders")
    const headers = { "content-type": "application/json" }
    const placed = await fetch(orders, { method: "POST", headers, body: JSON.stringify(place) })
    expect(await placed.json()).toEqual({ id: 1, ...place })
    expect((await fetch(`${orders}/9`)).status).toBe(404)
    if (name === "effectBefore") expect((await fetch(running.get(name)!.url)).status).toBe(404)
  })

  it("programs/effectAfter.ts serves its tools to the client of the official SDK 1", async () => {
    const client = new Client({ name: "sdk", version: "1.0.0" })
    await client.connect(new StreamableHTTPClientTransport(new URL(running.get("effectAfter")!.url)))
    const { tools } = await client.listTools()
    expect(tools.map(({ annotations, description, name }) => ({ annotations, description, name }))).toEqual([
      { name: "orders_find", description: "Returns an order", annotations: { readOnlyHint: true } },
      { name: "orders_place", description: "Orders tea", annotations: { readOnlyHint: false } }
    ])
    const shown = JSON.parse(/```json\n([^]*?)```/.exec(read("effect-applications.md"))![1]!)
    expect(tools[0]).toEqual(shown)
    const placed = await client.callTool({ name: "orders_place", arguments: place })
    const { id } = placed.structuredContent as { readonly id: number }
    expect((await client.callTool({ name: "orders_find", arguments: { id } })).structuredContent).toEqual({
      id,
      ...place
    })
    const missing = await client.callTool({ name: "orders_find", arguments: { id: 99 } })
    expect(missing).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("\"NoSuchOrder\"") }] })
    await client.close()
  })

  it("programs/effectAfter.ts serves its tools to the client of the official SDK 2", async () => {
    const client = new SdkV2.Client({ name: "sdk", version: "2.0.0" }, {
      versionNegotiation: { mode: { pin: "2026-07-28" } }
    })
    await client.connect(new SdkV2.StreamableHTTPClientTransport(new URL(running.get("effectAfter")!.url)))
    const placed = await client.callTool({ name: "orders_place", arguments: place })
    expect(placed.structuredContent).toMatchObject(place)
    const wrong = await client.callTool({ name: "orders_place", arguments: { tea: "Assam", grams: "many" } })
    expect(wrong).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("Invalid arguments") }] })
    await client.close()
  })
})

const connect = <E>(server: Layer.Layer<McpServer.McpServer, E>, principal?: Principal) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* SkeinClient.make(InMemoryTransport.transport(serve, principal === undefined ? {} : { principal }))
  })

describe("programs/effectOptions.ts", () => {
  const within = <E>(tools: Layer.Layer<never, E, Catalog.Catalog | HttpRouter.HttpRouter>) =>
    McpServer.layer({ name: "tea", version: "1.0.0" }, tools).pipe(
      Layer.provide([ApiLive.pipe(HttpRouter.provideRequest(OrdersInMemory)), AccountLive]),
      Layer.provide([HttpRouter.layer, HttpServer.layerServices])
    )

  it.effect("selects and names endpoints", () =>
    Effect.gen(function*() {
      const client = yield* connect(within(Selected))
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["find_order"])
    }))

  it.effect("passes the security of the API with the principal, or with credentials that are made", () =>
    Effect.gen(function*() {
      const asAda = yield* connect(within(Forwarded), { id: "ada" })
      expect((yield* asAda.callTool("account_name")).structuredContent).toBe("ada")
      const anonymous = yield* connect(within(Forwarded))
      expect(yield* anonymous.callTool("account_name")).toMatchObject({ isError: true })
      const made = yield* connect(within(Made), { id: "ada" })
      expect((yield* made.callTool("account_name")).structuredContent).toBe("ada")
      const search = (yield* made.listTools()).find(({ name }) => name === "account_search")
      expect(search!.annotations).toEqual({ readOnlyHint: true })
    }))

  it.effect("serves the tools without an HTTP server", () =>
    Effect.gen(function*() {
      const client = yield* connect(WithoutHttp)
      const { structuredContent } = yield* client.callTool("orders_place", place)
      expect(structuredContent).toEqual({ id: 1, ...place })
    }))
})
