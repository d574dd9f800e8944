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
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as Http from "@skein/client/Http"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as SqlClient from "effect/sql/SqlClient"
import * as Tracer from "effect/Tracer"
import { createServer } from "node:http"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Stream from "effect/Stream"
import { AccountLive, Forwarded, Made, Selected, WithoutHttp } from "../programs/effectOptions.ts"
import { ApiLive, OrdersInMemory } from "../programs/effectOrders.ts"
import { Routes, Tea } from "../programs/effectOwnTool.ts"
import { App, Database, Stock } from "../programs/effectTasks.ts"
import { recipe, recipeOfServer, TeaServer, Weigh } from "../programs/effectToolkit.ts"
import { type Running, start } from "./runtime.ts"

const place = { tea: "Assam", grams: 50 }

describe("an application with tools", () => {
  let running: Running
  beforeAll(async () => {
    running = await start("effectAfter")
  })
  afterAll(() => void running.child.kill("SIGKILL"))

  it("programs/effectAfter.ts serves its endpoints", async () => {
    const orders = running.url.replace("/mcp", "/orders")
    const headers = { "content-type": "application/json" }
    const placed = await fetch(orders, { method: "POST", headers, body: JSON.stringify(place) })
    expect(await placed.json()).toEqual({ id: 1, ...place })
    expect((await fetch(`${orders}/9`)).status).toBe(404)
  })

  it("programs/effectAfter.ts serves its tools to the client of the official SDK 1", async () => {
    const client = new Client({ name: "sdk", version: "1.0.0" })
    await client.connect(new StreamableHTTPClientTransport(new URL(running.url)))
    const { tools } = await client.listTools()
    expect(tools.map(({ annotations, description, name }) => ({ annotations, description, name }))).toEqual([
      { name: "orders_find", description: "Returns an order", annotations: { readOnlyHint: true } },
      { name: "orders_place", description: "Orders tea", annotations: { readOnlyHint: false } }
    ])
    expect(tools[0]).toMatchObject({
      inputSchema: {
        properties: { id: { type: "integer", description: "The number of the order" } },
        required: ["id"]
      },
      outputSchema: { required: ["id", "tea", "grams"] }
    })
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
    await client.connect(new SdkV2.StreamableHTTPClientTransport(new URL(running.url)))
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

describe("programs/effectOwnTool.ts", () => {
  it.effect("serves a tool of its own beside the endpoints, with their service", () =>
    Effect.gen(function*() {
      const client = yield* connect(
        Tea.pipe(
          Layer.provide(ApiLive.pipe(HttpRouter.provideRequest(OrdersInMemory))),
          Layer.provide([OrdersInMemory, HttpRouter.layer, HttpServer.layerServices])
        )
      )
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["orders_find", "orders_place", "reorder"])
      yield* client.callTool("orders_place", place)
      expect((yield* client.callTool("reorder", { id: 1 })).structuredContent).toEqual({ id: 2, ...place })
      expect(yield* client.callTool("reorder", { id: 9 })).toMatchObject({
        isError: true,
        content: [{ text: "There is no order 9. Place one with orders_place" }]
      })
    }))

  it.live("finds the caller by the token of the HTTP request", () =>
    Effect.gen(function*() {
      const server = HttpRoutes.serve(Routes, { disableListenLog: true }).pipe(
        Layer.provide(OrdersInMemory),
        Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
      )
      const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
      const url = `http://127.0.0.1:${(address as { readonly port: number }).port}/mcp`
      const anonymous = yield* SkeinClient.make(Http.transport({ url }))
      expect(yield* anonymous.callTool("whoami")).toMatchObject({
        isError: true,
        content: [{ text: "Ask the user to set a bearer token in the MCP client" }]
      })
      const ada = yield* SkeinClient.make(
        Http.transport({ url, headers: { authorization: "Bearer the token of ada" } })
      )
      expect((yield* ada.listTools()).map(({ name }) => name)).toEqual([
        "orders_find",
        "orders_place",
        "account_name",
        "reorder",
        "whoami"
      ])
      expect((yield* ada.callTool("whoami")).content).toEqual([{ type: "text", text: "ada" }])
      expect((yield* ada.callTool("account_name")).structuredContent).toBe("ada")
    }))
})

describe("programs/effectToolkit.ts", () => {
  /** A model that calls one tool. */
  const calling = (name: string, params: unknown) =>
    LanguageModel.make({
      generateText: () =>
        Effect.succeed([
          { type: "tool-call", id: "1", name, params },
          { type: "finish", reason: "tool-calls", usage: { inputTokens: {}, outputTokens: {} } } as Response.PartEncoded
        ]),
      streamText: () => Stream.empty
    })

  it.effect("serves a toolkit", () =>
    Effect.gen(function*() {
      const client = yield* connect(TeaServer)
      const [brew] = yield* client.listTools()
      expect(brew).toMatchObject({ description: "Returns how to brew a tea", annotations: { readOnlyHint: true } })
      const { structuredContent } = yield* client.callTool("brew", { tea: "Sencha" })
      expect(structuredContent).toEqual({ minutes: 2, celsius: 70 })
    }))

  it.effect("gives tools to a model, without a server and of a whole server", () =>
    Effect.gen(function*() {
      const client = yield* connect(McpServer.layer({ name: "tea", version: "1.0.0" }, Weigh))
      expect((yield* client.callTool("weigh", { cups: 4 })).structuredContent).toEqual({ grams: 10 })
      const weighed = yield* Effect.provideServiceEffect(
        recipe,
        LanguageModel.LanguageModel,
        calling("weigh", { cups: 4 })
      )
      expect(weighed).toContainEqual(expect.objectContaining({ type: "tool-result", encodedResult: { grams: 10 } }))
      const brewed = yield* recipeOfServer.pipe(
        Effect.provideServiceEffect(LanguageModel.LanguageModel, calling("brew", { tea: "Sencha" })),
        Effect.provide(TeaServer)
      )
      expect(brewed).toContainEqual(expect.objectContaining({
        type: "tool-result",
        isFailure: false,
        encodedResult: expect.objectContaining({ structuredContent: { minutes: 2, celsius: 70 } })
      }))
    }))
})

describe("programs/effectTasks.ts", () => {
  it("has a layer for PostgreSQL", () => {
    // `packages/tasks/test/engine/SqlTasksPostgres.test.ts` runs tasks on it.
    expect(Layer.isLayer(Database)).toBe(true)
  })

  it.live("runs tasks with the client, the services, the configuration, the tracer and the logger of the application", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const spans: Array<Tracer.Span> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const createdTables = Layer.effectDiscard(Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.andThen(
          sql`CREATE TABLE stock (tea TEXT PRIMARY KEY, grams INTEGER NOT NULL)`,
          sql`INSERT INTO stock VALUES ('Assam', 100)`
        )))
      const server = HttpRoutes.serve(App, { disableListenLog: true }).pipe(
        Layer.provide(Stock.layer),
        Layer.provide(createdTables),
        Layer.provide(SqliteClient.layer({ filename: ":memory:" })),
        Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
        Layer.provide([
          Logger.layer([logger]),
          Layer.succeed(Tracer.Tracer, tracer),
          ConfigProvider.layer(ConfigProvider.fromUnknown({ BLENDING: "10 millis" }))
        ])
      )
      const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
      const url = `http://127.0.0.1:${(address as { readonly port: number }).port}`
      const client = yield* SkeinClient.make(Http.transport({ url: `${url}/mcp` }))
      const left = Effect.promise(() => fetch(`${url}/stock/Assam`).then((response) => response.json()))
      const ordered = yield* client.callTool("order", { tea: "Assam", grams: 60 })
      expect(ordered.structuredContent).toEqual({ left: 40 })
      expect(yield* left).toEqual({ left: 40 })
      const refused = yield* client.callTool("order", { tea: "Assam", grams: 60 })
      expect(refused).toMatchObject({ isError: true, content: [{ text: "There is not enough Assam" }] })
      expect(yield* left).toEqual({ left: 40 })
      expect(lines.filter((line) => line === "Blends 60 g of Assam")).toHaveLength(2)

      const named = (name: string) => spans.find((span) => span.name === name)!
      const ancestors = (span: Tracer.AnySpan): ReadonlyArray<string> => {
        const parent = span._tag === "Span" ? Option.getOrUndefined(span.parent) : undefined
        return parent === undefined ? [] : [parent._tag === "Span" ? parent.name : "external", ...ancestors(parent)]
      }
      expect(named("Stock.reserve")).toBeDefined()
      expect(ancestors(named("tools/call order"))).toEqual(["POST"])
    }))
})
