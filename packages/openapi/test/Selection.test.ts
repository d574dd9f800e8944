import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as ToolSearch from "@skein/server/ToolSearch"
import * as Transform from "@skein/server/Transform"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { connect, documentOf, json, MockApi, operation, textOf } from "./kit.ts"

const pets = documentOf({
  "/pets": {
    get: {
      operationId: "listPets",
      tags: ["pets"],
      summary: "Lists pets.",
      parameters: [{ name: "limit", in: "query", schema: { type: "integer" } }]
    },
    post: { operationId: "addPet", tags: ["pets"], description: "Adds a pet" }
  },
  "/pets/{id}": {
    parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
    get: {
      operationId: "getPet",
      tags: ["pets"],
      parameters: [{ name: "fields", in: "query", schema: { type: "array", items: { type: "string" } } }]
    },
    put: { operationId: "putPet", tags: ["pets"] },
    delete: { operationId: "deletePet", tags: ["admin"], deprecated: true, summary: "Deletes a pet" }
  }
})

const names = (document: OpenApi.Document, options: OpenApi.Options = {}) =>
  Effect.map(OpenApi.list(document, options), ({ definitions }) => definitions.map(({ name }) => name))

describe("the name of a tool", () => {
  it.effect.each([
    [{ operationId: "listPets" }, "listPets"],
    [{ operationId: "pets/list all:v1" }, "pets_list_all_v1"],
    [{ operationId: "x".repeat(70) }, "x".repeat(64)],
    [{ operationId: "日本" }, "get"],
    [{}, "get_a_id"]
  ])("is made of operationId, method and path: %s", ([node, name]) =>
    Effect.gen(function*() {
      expect(yield* names(documentOf({ "/a/{id}": { get: node } }))).toEqual([name])
    }))

  it.effect("is unique", () =>
    Effect.gen(function*() {
      const node = { operationId: "y".repeat(70) }
      const [first, second, third] = yield* names(documentOf({ "/a": { get: node, put: node, post: node } }))
      expect([first, second, third].map((name) => name!.length)).toEqual([64, 64, 64])
      expect([second, third].map((name) => name!.slice(-2))).toEqual(["_2", "_3"])
    }))

  it.effect("is chosen by an option", () =>
    Effect.gen(function*() {
      const name = ({ id, method }: OpenApi.Operation) => method === "GET" ? `pets.${id}` : undefined
      expect(yield* names(pets, { name })).toEqual(["pets.listPets", "addPet", "pets.getPet", "putPet", "deletePet"])
    }))
})

describe("a tool", () => {
  it.effect("has title, description and hints of its method", () =>
    Effect.gen(function*() {
      const client = yield* connect(pets)
      const tools = new Map((yield* client.listTools()).map((tool) => [tool.name, tool]))
      expect(tools.get("listPets")).toMatchObject({
        title: "Lists pets",
        description: "Lists pets.",
        annotations: { title: "Lists pets", readOnlyHint: true, openWorldHint: true }
      })
      expect(tools.get("addPet")!.annotations).toEqual({ readOnlyHint: false, openWorldHint: true })
      expect(tools.get("putPet")!.annotations).toMatchObject({ destructiveHint: true, idempotentHint: true })
      expect(tools.get("putPet")!.description).toBe("PUT /pets/{id}")
      expect(tools.get("deletePet")).toMatchObject({
        description: "Deprecated.\n\nDeletes a pet",
        annotations: { destructiveHint: true, idempotentHint: true }
      })
    }))

  it.effect("has a description of at most 1,024 characters", () =>
    Effect.gen(function*() {
      const document = operation("/", "get", { description: "x".repeat(2_000) })
      const [tool] = yield* Effect.flatMap(connect(document), (client) => client.listTools())
      expect(tool!.description).toBe(`${"x".repeat(1_024)}…`)
    }))

  it.effect("lists its output schema, which every object matches, with outputSchemas", () =>
    Effect.gen(function*() {
      const schema = { type: "object", properties: { id: { type: "integer" }, key: { writeOnly: true } } }
      const document = operation("/", "get", { responses: { "2XX": { content: { "application/json": { schema } } } } })
      const [tool] = yield* Effect.flatMap(connect(document, { outputSchemas: true }), (client) => client.listTools())
      expect(tool!.outputSchema).toEqual({
        type: "object",
        anyOf: [{ type: "object", properties: { id: { type: "integer" } } }, { description: expect.any(String) }]
      })
      const [without] = yield* Effect.flatMap(connect(document), (client) => client.listTools())
      expect(without!.outputSchema).toBeUndefined()
    }))

  it.effect("has no argument for hiddenParameters", () =>
    Effect.gen(function*() {
      const document = operation("/", "get", {
        parameters: [{ name: "X-Api-Key", in: "header", required: true }, { name: "q", in: "query" }]
      })
      const client = yield* connect(document, { hiddenParameters: ["x-api-key"] })
      expect(Object.keys((yield* client.listTools())[0]!.inputSchema.properties!)).toEqual(["q"])
    }))

  it.effect("has valid names of arguments", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const document = operation("/", "get", {
        parameters: ["$top", "filter[name]", "filter name", "a.b-c"].map((name) => ({ name, in: "query" }))
      })
      const client = yield* connect(document, {}, api)
      const { properties } = (yield* client.listTools())[0]!.inputSchema
      expect(Object.keys(properties!)).toEqual(["top", "filter_name", "filter_name_query", "a.b-c"])
      yield* client.callTool("it", { top: "1", filter_name: "2", filter_name_query: "3" })
      expect([...new URL(api.last.url).searchParams]).toEqual([["$top", "1"], ["filter[name]", "2"], [
        "filter name",
        "3"
      ]])
    }))
})

describe("the selection", () => {
  it.effect("includes and excludes by tag, id and function", () =>
    Effect.gen(function*() {
      expect(yield* names(pets, { include: { tags: ["admin"], ids: ["addPet"] } })).toEqual(["addPet", "deletePet"])
      expect(yield* names(pets, { include: { tags: ["pets"] }, exclude: { ids: ["addPet"] } }))
        .toEqual(["listPets", "getPet", "putPet"])
      expect(yield* names(pets, { exclude: ({ method }) => method !== "GET" })).toEqual(["listPets", "getPet"])
      expect(yield* names(pets, { routeMap: ({ method }) => method === "PUT" ? "tool" : "exclude" })).toEqual([
        "putPet"
      ])
    }))

  it.effect("fails above maxOperations, and counts selected operations only", () =>
    Effect.gen(function*() {
      const { reason } = yield* Effect.flip(OpenApi.list(pets, { maxOperations: 4 }))
      expect(reason).toMatchObject({ _tag: "LimitExceeded", limit: "maxOperations" })
      expect(yield* names(pets, { maxOperations: 4, exclude: { ids: ["addPet"] } })).toHaveLength(4)
    }))

  it.effect("fails with DefinitionError for a name that another tool has", () =>
    Effect.gen(function*() {
      const own = Tool.layer(Tool.make("addPet"), () => Effect.succeed("own"))
      const server = McpServer.layer({ name: "api", version: "1" }, own, OpenApi.layer(pets))
      expect(yield* Effect.flip(Layer.build(server))).toMatchObject({
        _tag: "DefinitionError",
        reason: { _tag: "DuplicateName" }
      })
    }))
})

describe("the tags of operations", () => {
  const served = <E>(definitions: Layer.Layer<never, E, Catalog | HttpClient>) =>
    Effect.gen(function*() {
      const server = McpServer.layer({ name: "api", version: "1" }, definitions)
      const context = yield* Layer.build(Layer.provide(server, new MockApi().layer))
      return yield* Client.make(InMemoryTransport.transport(Context.get(context, McpServer.McpServer).serve))
    })

  it.effect("select tools for a transform", () =>
    Effect.gen(function*() {
      const client = yield* served(Transform.tools({ except: { tags: ["admin"] } }, OpenApi.layer(pets)))
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["listPets", "addPet", "getPet", "putPet"])
    }))

  it.effect("are found by a search for tools", () =>
    Effect.gen(function*() {
      const client = yield* served(ToolSearch.layer({ above: 0 }, OpenApi.layer(pets)))
      const found = yield* client.callTool("search_tools", { query: "admin" })
      expect(found.structuredContent).toMatchObject({ tools: [{ name: "deletePet" }] })
    }))
})

describe("resources and templates", () => {
  const routed: OpenApi.Options = {
    routeMap: ({ id, method }) => method !== "GET" ? "tool" : id === "listPets" ? "resource" : "template"
  }

  it.effect("are read by their URIs", () =>
    Effect.gen(function*() {
      const api = new MockApi(({ url }) => url.endsWith("/404") ? new Response(null, { status: 404 }) : json({ url }))
      const client = yield* connect(pets, routed, api)
      expect((yield* client.listResources()).map(({ name, uri }) => [name, uri])).toEqual([[
        "listPets",
        "openapi://pets/pets"
      ]])
      expect((yield* client.listResourceTemplates()).map(({ uriTemplate }) => uriTemplate))
        .toEqual(["openapi://pets/pets/{id}{?fields}"])
      const read = (uri: string) =>
        Effect.map(client.readResource(uri), ({ contents }) => contents[0] as { readonly text: string })
      expect(yield* read("openapi://pets/pets")).toEqual({
        uri: "openapi://pets/pets",
        mimeType: "application/json",
        text: JSON.stringify({ url: "https://pets.example/v1/pets" })
      })
      expect((yield* read("openapi://pets/pets/7?fields=name,age")).text)
        .toBe(JSON.stringify({ url: "https://pets.example/v1/pets/7?fields=name&fields=age" }))
      expect((yield* Effect.flip(client.readResource("openapi://pets/pets/404"))).message).toContain(
        "Resource not found"
      )
      const invalid = yield* Effect.flip(client.readResource("openapi://pets/pets/rex"))
      expect(invalid.message).toContain("invalid argument: id")
      expect(textOf(yield* client.callTool("addPet"))).toContain("/v1/pets")
    }))

  it.effect.each(
    [
      ["resource", { method: "post" }, "its method is POST, not GET"],
      ["resource", { method: "get", path: "/{id}" }, "the required arguments id"],
      [
        "template",
        { method: "get", parameters: [{ name: "a", in: "header", required: true }] },
        "the required arguments a"
      ],
      ["template", { method: "get" }, "Make it a resource"],
      ["template", { method: "get", path: "/{a}{b}" }, "It cannot be a resource template"]
    ] as ReadonlyArray<
      readonly [
        OpenApi.Route,
        { readonly method: string; readonly path?: string; readonly parameters?: unknown },
        string
      ]
    >
  )(
    "leave out an operation that has no URI: %s %s",
    ([as, { method, path = "/", ...node }, text]) =>
      Effect.gen(function*() {
        const { leftOut } = yield* OpenApi.list(operation(path, method, node), { routeMap: () => as })
        expect(leftOut[0]?.message).toContain(text)
      })
  )
})
