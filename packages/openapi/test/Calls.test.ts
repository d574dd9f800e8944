import { describe, expect, it } from "@effect/vitest"
import type * as OpenApi from "@skein/openapi/OpenApi"
import { VisibleError } from "@skein/server/HandlerError"
import { McpRequest } from "@skein/server/McpRequest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { connect, json, MockApi, operation, textOf } from "./kit.ts"

const parameter = (name: string, place: string, more: object = {}) => ({
  name,
  in: place,
  schema: { type: "string" },
  ...more
})

const get = (more: object = {}) => operation("/pets/{id}", "get", { parameters: [parameter("id", "path")], ...more })

describe("a request", () => {
  it.effect("has the arguments in their places", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(
        operation("/pets/{id}", "post", {
          parameters: [
            parameter("id", "path"),
            parameter("id", "query"),
            parameter("X-Trace", "header"),
            parameter("session", "cookie")
          ],
          requestBody: {
            required: true,
            content: {
              "application/json": {
                schema: {
                  type: "object",
                  properties: { id: { type: "integer" }, name: { type: "string" }, made: { readOnly: true } },
                  required: ["name", "made"]
                }
              }
            }
          }
        }),
        {},
        api
      )
      const [tool] = yield* client.listTools()
      expect(tool!.inputSchema).toEqual({
        type: "object",
        properties: {
          id: { type: "string" },
          id_query: { type: "string" },
          "X-Trace": { type: "string" },
          session: { type: "string" },
          id_body: { type: "integer" },
          name: { type: "string" }
        },
        required: ["id", "name"],
        additionalProperties: false
      })
      yield* client.callTool("it", {
        id: "a/b?c#d",
        id_query: "x&y=z",
        "X-Trace": "t1",
        session: "s;1",
        id_body: 7,
        name: "Rex"
      })
      expect(api.last).toMatchObject({
        method: "POST",
        url: "https://pets.example/v1/pets/a%2Fb%3Fc%23d?id=x%26y%3Dz",
        headers: { "x-trace": "t1", cookie: "session=s%3B1", "content-type": "application/json" },
        body: JSON.stringify({ id: 7, name: "Rex" })
      })
    }))

  it.effect.each(["..", ".", "../admin", "a/../../b", "%2e%2e", "%2e%2e/x", "..\\x", "..;/x", "%252e%252e"])(
    "is refused if a path argument leaves its segment: %s",
    (id) =>
      Effect.gen(function*() {
        const api = new MockApi()
        const client = yield* connect(get(), {}, api)
        const result = yield* client.callTool("it", { id })
        expect(result.isError).toBe(true)
        expect(textOf(result)).toContain("path segment")
        expect(api.seen).toEqual([])
      })
  )

  it.effect.each([[], [""], {}, { a: "" }])(
    "is refused if a path argument leaves its segment empty, since the path would be that of another operation: %j",
    (id) =>
      Effect.gen(function*() {
        const api = new MockApi()
        const document = operation("/pets/{id}", "get", {
          parameters: [{ name: "id", in: "path", required: true, schema: { type: ["array", "object"] } }]
        })
        const client = yield* connect(document, {}, api)
        expect(textOf(yield* client.callTool("it", { id }))).toBe("The argument \"id\" must not be empty")
        expect(api.seen).toEqual([])
      })
  )

  it.effect("sends JSON where a document has no media type for a body", () =>
    Effect.gen(function*() {
      for (const key of ["", "applicationjson; version=1"]) {
        const api = new MockApi()
        const schema = { type: "object", properties: { name: { type: "string" } } }
        const client = yield* connect(
          operation("/", "post", { requestBody: { content: { [key]: { schema } } } }),
          {},
          api
        )
        yield* client.callTool("it", { name: "Rex" })
        expect(api.last).toMatchObject({ headers: { "content-type": "application/json" }, body: "{\"name\":\"Rex\"}" })
      }
      const bytes = operation("/", "post", { requestBody: { content: { "audio/ogg": {}, "codecs=opus": {} } } })
      const client = yield* connect(bytes)
      expect((yield* client.listTools())[0]!.inputSchema.properties).toMatchObject({
        body: { contentEncoding: "base64" }
      })
    }))

  it.effect("keeps other dots and slashes inside of the segment", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(get(), {}, api)
      for (const id of ["a.b", "...", ".env", "v1..v2", "a/b", "%", "é", "a b"]) {
        yield* client.callTool("it", { id })
        const { pathname } = new URL(api.last.url)
        expect([id, decodeURIComponent(pathname.slice("/v1/pets/".length))]).toEqual([id, id])
        expect(pathname.split("/")).toHaveLength(4)
      }
    }))

  it.effect("refuses a header value with a line break", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(operation("/", "get", { parameters: [parameter("X-A", "header")] }), {}, api)
      const result = yield* client.callTool("it", { "X-A": "a\r\nHost: evil.example" })
      expect(textOf(result)).toContain("without line breaks")
      expect(api.seen).toEqual([])
    }))

  it.effect("does not let arguments replace credentials", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(
        operation("/", "get", {
          parameters: [
            { name: "filter", in: "query", schema: { type: "object" } },
            parameter("X-Key", "header"),
            parameter("Authorization", "header"),
            parameter("Host", "header")
          ]
        }),
        {
          headers: { "x-key": Redacted.make("fixed") },
          credentials: () => Effect.succeed({ query: { key: Redacted.make("a&b") } })
        },
        api
      )
      expect(Object.keys((yield* client.listTools())[0]!.inputSchema.properties!)).toEqual(["filter", "X-Key"])
      yield* client.callTool("it", { filter: { key: "mine", a: "1" }, "X-Key": "mine" })
      expect(api.last.url).toBe("https://pets.example/v1/?a=1&key=a%26b")
      expect(api.last.headers["x-key"]).toBe("fixed")
    }))

  it.effect("has the credentials of the principal of its call", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const credentials = () =>
        Effect.map(McpRequest, ({ caller }) => ({ headers: { authorization: `Bearer ${caller.principal?.id}` } }))
      for (const id of ["ada", "bob"]) {
        const client = yield* connect(get(), { credentials: credentials as never }, api, { id })
        yield* client.callTool("it", { id: "1" })
        expect(api.last.headers["authorization"]).toBe(`Bearer ${id}`)
      }
    }))

  it.effect("awaits credentials, and shows the model only what clients may see of a rejection", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const credentials: OpenApi.Options["credentials"] = async (_, { caller: { principal } }) => {
        if (principal?.id === "bob") throw new VisibleError("Sign in to the shop first")
        if (principal?.id === "eve") throw new Error("the password of the vault")
        return { headers: { authorization: `Bearer ${principal?.id}` } }
      }
      const as = (id: string) => connect(get(), { credentials }, api, { id })
      yield* (yield* as("ada")).callTool("it", { id: "1" })
      expect(api.last.headers["authorization"]).toBe("Bearer ada")
      const refused = yield* (yield* as("bob")).callTool("it", { id: "1" })
      expect([refused.isError, textOf(refused)]).toEqual([true, "Sign in to the shop first"])
      const failed = yield* (yield* as("eve")).callTool("it", { id: "1" })
      expect(failed.isError).toBe(true)
      expect(textOf(failed)).not.toContain("vault")
      expect(api.seen).toHaveLength(1)
    }))

  it.effect("is not sent if there are no credentials", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(
        get(),
        { credentials: () => Effect.fail({ message: "Sign in to the shop first" }) },
        api
      )
      const result = yield* client.callTool("it", { id: "1" })
      expect([result.isError, textOf(result)]).toEqual([true, "Sign in to the shop first"])
      expect(api.seen).toEqual([])
    }))
})

describe("a body", () => {
  const upload = (mediaType: string, schema: object, encoding: object = {}) =>
    operation("/", "post", { requestBody: { required: true, content: { [mediaType]: { schema, encoding } } } })

  it.effect("is a form", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const document = upload("application/x-www-form-urlencoded", {
        type: "object",
        properties: { name: { type: "string" }, tags: { type: "array" }, card: { type: "object" } }
      }, { card: { style: "deepObject", explode: true } })
      const client = yield* connect(document, {}, api)
      yield* client.callTool("it", { name: "a & b", tags: ["x", "y"], card: { number: "1", owner: { name: "Ada" } } })
      expect(api.last.headers["content-type"]).toBe("application/x-www-form-urlencoded")
      expect(api.last.body).toBe("name=a%20%26%20b&tags=x&tags=y&card%5Bnumber%5D=1&card%5Bowner%5D%5Bname%5D=Ada")
    }))

  it.effect("is multipart, with bytes as base64 and objects as JSON", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const document = upload("multipart/form-data", {
        type: "object",
        properties: {
          note: { type: "string" },
          file: { type: "string", format: "binary" },
          meta: { type: "object" },
          tags: { type: "array", items: { type: "string" } }
        }
      }, { file: { contentType: "image/png" } })
      const client = yield* connect(document, {}, api)
      yield* client.callTool("it", { note: "n", file: btoa("bytes"), meta: { a: 1 }, tags: ["x", "y"] })
      const form = api.last.form!
      expect([form.get("note"), form.getAll("tags")]).toEqual(["n", ["x", "y"]])
      const file = form.get("file") as File
      expect([file.type, yield* Effect.promise(() => file.text())]).toEqual(["image/png", "bytes"])
      const meta = form.get("meta") as File
      expect([meta.type, yield* Effect.promise(() => meta.text())]).toEqual(["application/json", "{\"a\":1}"])
      const refused = yield* client.callTool("it", { file: "no base64!" })
      expect(textOf(refused)).toBe("The argument \"file\" must be base64")
    }))

  it.effect("is text, or bytes", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const text = yield* connect(upload("text/csv", { type: "string" }), {}, api)
      yield* text.callTool("it", { body: "a,b" })
      expect([api.last.headers["content-type"], api.last.body]).toEqual(["text/csv", "a,b"])
      const bytes = yield* connect(upload("application/zip", { type: "string", format: "binary" }), {}, api)
      yield* bytes.callTool("it", { body: btoa("zip") })
      expect([api.last.headers["content-type"], api.last.body]).toEqual(["application/zip", "zip"])
    }))

  it.effect("is one argument if it is a list, a choice or a map", () =>
    Effect.gen(function*() {
      const schemas = [
        { type: "array", items: { type: "string" } },
        { oneOf: [{ type: "object", properties: { a: {} } }, { type: "string" }] },
        { type: "object", additionalProperties: { type: "string" } }
      ]
      for (const [at, value] of [["x"], "x", { any: "x" }].entries()) {
        const api = new MockApi()
        const client = yield* connect(upload("application/json", schemas[at]!), {}, api)
        yield* client.callTool("it", { body: value })
        expect(JSON.parse(api.last.body)).toEqual(value)
      }
    }))

  it.effect("takes further arguments if the document allows further members", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(
        upload("application/json", {
          type: "object",
          properties: { a: { type: "string" } },
          additionalProperties: { type: "integer" }
        }),
        {},
        api
      )
      yield* client.callTool("it", { a: "x", b: 1 })
      expect(JSON.parse(api.last.body)).toEqual({ a: "x", b: 1 })
      expect((yield* client.callTool("it", { b: "no" })).isError).toBe(true)
    }))
})

describe("a result", () => {
  const object = { responses: { 200: { content: { "application/json": { schema: { type: "object" } } } } } }
  const call = (api: MockApi, document: object = get(object), options: OpenApi.Options = {}) =>
    Effect.flatMap(connect(document, options, api), (client) => client.callTool("it", { id: "1" }))

  it.effect("has structured content for a declared object, and text", () =>
    Effect.gen(function*() {
      const result = yield* call(new MockApi(() => json({ name: "Rex" })))
      expect(result.structuredContent).toEqual({ name: "Rex" })
      expect(textOf(result)).toBe("{\"name\":\"Rex\"}")
    }))

  it.effect("is text if the answer is not what the document declares", () =>
    Effect.gen(function*() {
      for (const [answer, text] of [[json(["a"]), "[\"a\"]"], [new Response("{oops"), "{oops"]] as const) {
        const result = yield* call(new MockApi(() => answer))
        expect([result.isError, result.structuredContent, textOf(result)]).toEqual([undefined, undefined, text])
      }
    }))

  it.effect("has structured content of every kind with an output schema", () =>
    Effect.gen(function*() {
      const options = { outputSchemas: true }
      const result = yield* call(new MockApi(() => json({ other: 1 })), get(object), options)
      expect(result.structuredContent).toEqual({ other: 1 })
      const text = yield* call(new MockApi(() => new Response("plain")), get(object), options)
      expect(text.structuredContent).toEqual({ status: 200, text: "plain" })
      const none = yield* call(new MockApi(() => new Response(null, { status: 204 })), get(object), options)
      expect(none.structuredContent).toEqual({ status: 204 })
      expect(textOf(none)).toBe("The API answered with status 204 and without content")
    }))

  it.effect("has images, audio and other bytes as blocks", () =>
    Effect.gen(function*() {
      const bytes = new Uint8Array([0, 255, 1])
      for (
        const [mediaType, block] of [
          ["image/png", { type: "image", mimeType: "image/png", data: "AP8B" }],
          ["audio/wav", { type: "audio", mimeType: "audio/wav", data: "AP8B" }],
          ["application/pdf", {
            type: "resource",
            resource: { uri: "openapi://pets/pets/%7Bid%7D", mimeType: "application/pdf", blob: "AP8B" }
          }]
        ] as const
      ) {
        const result = yield* call(new MockApi(() => new Response(bytes, { headers: { "content-type": mediaType } })))
        expect(result.content).toEqual([block])
      }
    }))

  it.effect("is a failure with status, advice and body for another status", () =>
    Effect.gen(function*() {
      const result = yield* call(
        new MockApi(() => json({ error: "slow \u001b[31mdown" }, { status: 429, headers: { "retry-after": "7" } }))
      )
      expect(result.isError).toBe(true)
      expect(textOf(result)).toBe(
        "GET /pets/{id} failed with HTTP status 429. Too many requests. Wait before you call again. Call again after 7 " +
          "seconds at the earliest. The API answered:\n{\"error\":\"slow \\u001b[31mdown\"}"
      )
    }))

  it.effect("does not contain credentials that the API repeats", () =>
    Effect.gen(function*() {
      const api = new MockApi(({ headers, url }) =>
        new Response(`${headers["authorization"]} at ${url}`, { status: 400 })
      )
      const result = yield* call(api, get(), {
        headers: { authorization: "Bearer secret-token" },
        credentials: () => Effect.succeed({ query: { key: "query-secret" } })
      })
      expect(textOf(result)).not.toMatch(/secret-token|query-secret/)
      expect(textOf(result)).toContain("<redacted>")
    }))

  it.effect("has the words of headers that are not secrets, and no secret", () =>
    Effect.gen(function*() {
      const headers = {
        authorization: "Bearer k3yk3yk3yk3y",
        "x-app": "inventory",
        "x-client": "inventory service",
        accept: "application/json",
        "user-agent": "orders-bot",
        "x-tenant-number": "tenant-4711",
        cookie: "session=s3cr3ts3cr3t; theme=a1b2c3d4",
        "x-plain": Redacted.make("letters")
      }
      const kept = "The Bearer token of the inventory service for orders-bot with application/json and session"
      const api = new MockApi(() =>
        new Response(`${kept}: k3yk3yk3yk3y tenant-4711 s3cr3ts3cr3t a1b2c3d4 letters a%26b%26c%26d`, { status: 401 })
      )
      const credentials = () => Effect.succeed({ query: { sig: "a&b&c&d" } })
      expect(textOf(yield* call(api, get(), { headers, credentials }))).toContain(
        `${kept}: <redacted> <redacted> <redacted> <redacted> <redacted> <redacted>`
      )
    }))

  it.effect("is a failure with its beginning if the answer exceeds maxResultBytes", () =>
    Effect.gen(function*() {
      const document = operation("/", "get", { parameters: [parameter("limit", "query"), parameter("id", "query")] })
      const result = yield* call(new MockApi(() => new Response("x".repeat(1_001))), document, {
        maxResultBytes: 1_000
      })
      expect(result.isError).toBe(true)
      expect(textOf(result)).toContain(
        "more than 1000 bytes, which is too large. Ask for less with the arguments limit."
      )
      const fits = yield* call(new MockApi(() => new Response("x".repeat(1_000))), document, { maxResultBytes: 1_000 })
      expect(textOf(fits)).toHaveLength(1_000)
    }))

  it.effect("is a failure after timeout", () =>
    Effect.gen(function*() {
      const arrived = yield* Deferred.make<void>()
      const api = new MockApi(() => Effect.andThen(Deferred.succeed(arrived, undefined), Effect.never))
      const client = yield* connect(get(), { timeout: "3 seconds" }, api)
      const calling = yield* Effect.forkChild(client.callTool("it", { id: "1" }))
      yield* Deferred.await(arrived)
      yield* TestClock.adjust("3 seconds")
      const result = yield* Fiber.join(calling)
      expect(textOf(result)).toBe(
        "GET /pets/{id} failed: no complete answer within 3s. Call again later, or ask for less."
      )
    }))

  it.effect("follows a redirect to the same origin only", () =>
    Effect.gen(function*() {
      const to = (location: string) =>
        new MockApi(({ url }) =>
          url.endsWith("/1") ? new Response(null, { status: 307, headers: { location } }) : new Response("there")
        )
      expect(textOf(yield* call(to("/v2")))).toBe("there")
      const away = to("https://evil.example/")
      expect(textOf(yield* call(away))).toContain("redirects elsewhere, which is not followed")
      expect(away.seen).toHaveLength(1)
    }))
})
