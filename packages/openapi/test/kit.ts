/** A mock API, and a client of a server with the tools of a document. */
import * as Client from "@skein/client/Client"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type { Principal } from "@skein/server/Principal"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"

/** A request that the mock API received. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly form: FormData | undefined
}

export const json = (value: unknown, init: ResponseInit = {}): Response =>
  new Response(JSON.stringify(value), {
    ...init,
    headers: { "content-type": "application/json", ...init.headers as Record<string, string> }
  })

export class MockApi {
  readonly seen: Array<Seen> = []
  answer: (request: Seen) => Response | Effect.Effect<Response>

  constructor(answer: MockApi["answer"] = () => json({})) {
    this.answer = answer
  }

  get last(): Seen {
    return this.seen.at(-1)!
  }

  readonly layer: Layer.Layer<HttpClient.HttpClient> = Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.gen({ self: this }, function*() {
        const web = yield* Effect.orDie(HttpClientRequest.toWeb(request))
        const isForm = web.headers.get("content-type")?.startsWith("multipart/") === true
        const form = isForm ? yield* Effect.promise(() => web.clone().formData()) : undefined
        const body = yield* Effect.promise(() => web.text())
        const seen = { method: request.method, url: request.url, headers: request.headers, body, form }
        this.seen.push(seen)
        const answer = this.answer(seen)
        return HttpClientResponse.fromWeb(request, Effect.isEffect(answer) ? yield* answer : answer)
      })
    )
  )
}

/** A document of OpenAPI 3.1 with these paths. */
export const documentOf = (paths: object, more: object = {}): object => ({
  openapi: "3.1.0",
  info: { title: "Pets", version: "1" },
  servers: [{ url: "https://pets.example/v1" }],
  paths,
  ...more
})

/** A document with one operation. */
export const operation = (path: string, method: string, node: object, more: object = {}): object =>
  documentOf({ [path]: { [method]: { operationId: "it", ...node } } }, more)

/** Connects a client to a server with the tools of a document. */
export const connect = <E extends { readonly message: string }>(
  document: OpenApi.Document,
  options: OpenApi.Options<E, never> = {},
  api: MockApi = new MockApi(),
  principal?: Principal
) =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "api", version: "1" }, OpenApi.layer(document, options))
    const context = yield* Layer.build(Layer.provide(server, api.layer))
    const { serve } = Context.get(context, McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve, principal === undefined ? {} : { principal }))
  })

/** The texts of a result. */
export const textOf = ({ content }: { readonly content: ReadonlyArray<unknown> }): string =>
  content.map((block) => (block as { readonly text?: string }).text ?? "").join("\n")
