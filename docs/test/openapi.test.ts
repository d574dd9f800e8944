/** Runs `programs/openapi.ts` against a mock of the API. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type { Principal } from "@skein/server/Principal"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { ApiTokens, Pets, PetServer, PetsOfUsers, PetsToRead, report, throughClient } from "../programs/openapi.ts"
import { read } from "./blocks.ts"

const seen: Array<{ readonly line: string; readonly authorization: string | undefined }> = []

const Mock = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) =>
    Effect.sync(() => {
      seen.push({ line: `${request.method} ${request.url}`, authorization: request.headers["authorization"] })
      return HttpClientResponse.fromWeb(request, Response.json({ name: "Rex" }))
    })
  )
)

const Tokens = Layer.succeed(ApiTokens, { of: (user) => Effect.succeed(Redacted.make(`token of ${user}`)) })

const connect = <E>(server: Layer.Layer<McpServer.McpServer, E>, principal?: Principal) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve, principal === undefined ? {} : { principal }))
  })

it.effect("serves the selected operations with the token of the server", () =>
  Effect.gen(function*() {
    const client = yield* connect(throughClient(Mock))
    const tools = yield* client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(["listPets", "addPet", "getPet"])
    const shown = JSON.parse(/```json\n([^]*?)```/.exec(read("openapi.md"))![1]!)
    expect(tools.find(({ name }) => name === "addPet")).toEqual(shown)
    yield* client.callTool("listPets", { kind: "cat" })
    expect(seen.at(-1)).toEqual({
      line: "GET https://pets.example/v1/pets?kind=cat",
      authorization: "Bearer the token of this server"
    })
  }))

it.effect("serves reading operations as resources", () =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "pets", version: "1.0.0" }, PetsToRead)
    const client = yield* connect(Layer.provide(server, Mock))
    expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["addPet", "deletePet"])
    expect((yield* client.listResources()).map(({ uri }) => uri)).toEqual(["pets://shop/pets"])
    expect((yield* client.listResourceTemplates()).map(({ uriTemplate }) => uriTemplate)).toEqual([
      "pets://shop/pets/{id}"
    ])
    yield* client.readResource("pets://shop/pets/7")
    expect(seen.at(-1)!.line).toBe("GET https://pets.example/v1/pets/7")
  }))

it.effect("calls with the token of the user", () =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "pets", version: "1.0.0" }, PetsOfUsers)
    const provided = Layer.provide(server, [Mock, Tokens])
    const ada = yield* connect(provided, { id: "ada" })
    yield* ada.callTool("getPet", { id: 1 })
    expect(seen.at(-1)!.authorization).toBe("Bearer token of ada")
    const anonymous = yield* connect(provided)
    const refused = yield* anonymous.callTool("getPet", { id: 1 })
    expect(refused).toMatchObject({ isError: true, content: [{ text: "Sign in to the pet shop first" }] })
  }))

it.effect("lists the operations", () =>
  Effect.gen(function*() {
    expect(Layer.isLayer(Pets) && Layer.isLayer(PetServer)).toBe(true)
    expect(yield* report).toEqual([
      "tool listPets: GET /pets",
      "tool addPet: POST /pets",
      "tool getPet: GET /pets/{id}",
      "tool deletePet: DELETE /pets/{id}"
    ])
  }))
