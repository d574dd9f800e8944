import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Catalog from "@skein/server/Catalog"
import * as CatalogTools from "@skein/server/CatalogTools"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "../kit.ts"

const resource = (uri: string) => Resource.layer(Resource.make(uri), Effect.succeed(`text of ${uri}`))
const image = Resource.layer(Resource.make("r://i", { mimeType: "image/png" }), Effect.succeed(new Uint8Array([1])))
const template = ResourceTemplate.layer(
  ResourceTemplate.make("t://{id}", { name: "t" }),
  ({ id }) => Effect.succeed(id)
)
const prompt = Prompt.layer(
  Prompt.make("greet", { arguments: { name: Schema.String } }),
  ({ name }) => Effect.succeed(`Greet ${name}`)
)
const definitions = [
  resource("r://a"),
  resource("r://b"),
  image,
  template,
  prompt,
  Catalog.visibleTo(() => false, resource("r://hidden")),
  Catalog.guarded(() => McpError.invalidRequest("Members only"), resource("r://closed"))
] as const

const jsonOf = (result: kit.Json): kit.Json => JSON.parse(result.content[0].text)

describe("resources and prompts as tools", () => {
  for (const revision of ["2024-11-05", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · return what the caller's own requests return, in pages`, () =>
      Effect.gen(function*() {
        const server = McpServer.layer(
          { name: "test", version: "1.0.0", pageSize: 3 },
          ...definitions,
          CatalogTools.layer()
        ) as kit.Server
        const client = yield* kit.client(server, revision)
        const first = jsonOf(yield* client.call("list_resources"))
        expect(first.resources.map(({ uri }: kit.Json) => uri)).toEqual(["r://a", "r://b", "r://i"])
        const second = jsonOf(yield* client.call("list_resources", { cursor: first.nextCursor }))
        expect(second).toMatchObject({ resources: [{ uri: "r://closed" }] })
        expect(second.nextCursor).toBeUndefined()
        expect(jsonOf(yield* client.call("list_resources", { kind: "templates" }))).toMatchObject({
          resourceTemplates: [{ uriTemplate: "t://{id}" }]
        })
        const read = (uri: string) => client.call("read_resource", { uri })
        expect((yield* read("r://a")).content).toEqual([{ type: "text", text: "text of r://a" }])
        expect((yield* read("t://7")).content[0].text).toBe("7")
        expect((yield* read("r://i")).content[0]).toEqual({ type: "image", data: "AQ==", mimeType: "image/png" })
        expect(yield* read("r://closed")).toMatchObject({ isError: true, content: [{ text: "Members only" }] })
        expect(yield* read("r://hidden")).toMatchObject({ isError: true, content: [{ text: "Resource not found" }] })
        expect(jsonOf(yield* client.call("list_prompts"))).toMatchObject({ prompts: [{ name: "greet" }] })
        const got = yield* client.call("get_prompt", { name: "greet", arguments: { name: "Ada" } })
        expect(jsonOf(got)).toEqual({ messages: [{ role: "user", content: { type: "text", text: "Greet Ada" } }] })
        expect((yield* client.call("get_prompt", { name: "greet" })).isError).toBe(true)
        expect((yield* client.call("list_resources", { cursor: "x" })).content[0].text).toBe("Invalid cursor")
      }))
  }

  it.effect("run the middleware of reads, and of the mounted part that a resource is in", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const noting = Middleware.layer((next) => (request) => {
        seen.push(`${request.method} ${request.target}`)
        return request.target === "r://b" ? Effect.fail(McpError.invalidRequest("no")) : next(request)
      })
      const reads = Middleware.readResource((read, next) => {
        seen.push(read.uri)
        return next()
      })
      const client = yield* kit.client(
        kit.server(McpServer.mount("p", noting, ...definitions), reads, CatalogTools.layer()) as kit.Server
      )
      expect((yield* client.call("read_resource", { uri: "r://p/a" })).content[0].text).toBe("text of r://a")
      expect((yield* client.call("read_resource", { uri: "r://p/b" })).content[0].text).toBe("no")
      expect(seen).toEqual(["resources/read r://a", "r://p/a", "resources/read r://b"])
    }))

  it.effect("have other names, or are left out, and report a server without resources", () =>
    Effect.gen(function*() {
      const tools = CatalogTools.layer({
        listPrompts: false,
        getPrompt: false,
        listResources: "ls",
        readResource: "cat"
      })
      const client = yield* kit.client(kit.server(tools, Tool.layer(Tool.make("t"), () => Effect.void)) as kit.Server)
      const listed = yield* client.result("tools/list")
      expect(listed.tools.map(({ name }: kit.Json) => name)).toEqual(["ls", "cat", "t"])
      expect((yield* client.call("ls")).isError).toBe(true)
    }))
})
