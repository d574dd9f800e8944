import * as OpenApi from "@skein/openapi/OpenApi"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

// #region document
export const document = `
openapi: 3.1.0
info: { title: Pet shop, version: "1" }
servers: [{ url: https://pets.example/v1 }]
paths:
  /pets:
    get:
      operationId: listPets
      summary: Lists the pets
      tags: [pets]
      parameters:
        - { name: kind, in: query, schema: { type: string, enum: [cat, dog] } }
    post:
      operationId: addPet
      summary: Adds a pet
      tags: [pets]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } }
  /pets/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
    get: { operationId: getPet, tags: [pets] }
    delete: { operationId: deletePet, tags: [admin] }
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string }
        parent: { $ref: "#/components/schemas/Pet" }
`
// #endregion

// #region tools
export const Pets = OpenApi.layer(document, {
  include: { tags: ["pets"] },
  headers: { authorization: Redacted.make("Bearer the token of this server") }
})

export const PetServer = McpServer.layer({ name: "pets", version: "1.0.0" }, Pets)
// #endregion

// #region resources
/** Reading operations are resources, or templates if they have arguments. The others are tools. */
export const PetsToRead = OpenApi.layer(document, {
  uriPrefix: "pets://shop",
  routeMap: ({ method, path }) => method !== "GET" ? "tool" : path.includes("{") ? "template" : "resource"
})
// #endregion

// #region credentials
/** Finds the token of a user at the API. */
export class ApiTokens extends Context.Service<ApiTokens, {
  readonly of: (user: string) => Effect.Effect<Redacted.Redacted, { readonly message: string }>
}>()("shop/ApiTokens") {}

const credentials = () =>
  Effect.gen(function*() {
    const { caller } = yield* McpRequest
    if (caller.principal === undefined) return yield* Effect.fail({ message: "Sign in to the pet shop first" })
    const token = yield* (yield* ApiTokens).of(caller.principal.id)
    return { headers: { authorization: Redacted.make(`Bearer ${Redacted.value(token)}`) } }
  })

export const PetsOfUsers = OpenApi.layer(document, { credentials })
// #endregion

// #region list
export const report = Effect.gen(function*() {
  const { definitions, leftOut } = yield* OpenApi.list(document)
  return [
    ...definitions.map(({ as, name, operation }) => `${as} ${name}: ${operation.method} ${operation.path}`),
    ...leftOut.map(({ message, place }) => `left out ${place}: ${message}`)
  ]
})
// #endregion

/** Requests go through a client of your own, with its retries, its proxy or its limits. */
export const throughClient = (client: Layer.Layer<HttpClient.HttpClient>) => Layer.provide(PetServer, client)
