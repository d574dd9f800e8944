/** The forwarder of `skein conformance`, between real sockets. */
import { assert, describe, it } from "@effect/vitest"
import type { Credentials } from "@skein/client/Credentials"
import * as Effect from "effect/Effect"
import { request as httpRequest } from "node:http"
import { forward, type Forwarded } from "../src/internal/develop/nodeForward.ts"
import { listen } from "./serverKit.ts"

interface Received {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
}

/** A server that requires the token `second`, and a forwarder to it. */
const forwarding = (options: Partial<Forwarded> = {}) =>
  Effect.gen(function*() {
    const received: Array<Received> = []
    const server = new URL(
      yield* listen(async (request, response) => {
        let body = ""
        for await (const chunk of request) body += String(chunk)
        received.push({ method: request.method!, path: request.url!, headers: request.headers, body })
        if (request.headers.authorization !== "Bearer second") {
          return void response.writeHead(401, { "www-authenticate": "Bearer realm=\"tea\"" }).end("refused")
        }
        response.writeHead(201, { "content-type": "text/event-stream", "x-tea": "assam" })
        response.end(`data: ${body}\n\n`)
      })
    )
    const url = yield* forward({ url: server, headers: {}, credentials: undefined, maxBodyBytes: 100, ...options })
    return { received, server, url: new URL(url) }
  })

/** Sends a request with headers that `fetch` does not allow. */
const send = (url: URL, method: string, headers: Record<string, string>, body = "") =>
  Effect.promise(() =>
    new Promise<{ readonly status: number; readonly headers: object; readonly text: string }>((resolve, reject) => {
      const request = httpRequest(url, { method, headers }, async (response) => {
        let text = ""
        for await (const chunk of response) text += String(chunk)
        resolve({ status: response.statusCode!, headers: response.headers, text })
      })
      request.on("error", reject)
      request.end(body)
    })
  )

describe("the forwarder of skein conformance", () => {
  it.live("adds headers to each request, and changes nothing else", () =>
    Effect.gen(function*() {
      const headers = { Authorization: "Bearer second" }
      const { received, server, url } = yield* forwarding({ headers })
      const sent = { authorization: "Bearer first", "mcp-method": "ping", accept: "text/event-stream" }
      const { headers: answered, status, text } = yield* send(url, "POST", sent, "{\"id\":1}")
      assert.deepStrictEqual([status, text], [201, "data: {\"id\":1}\n\n"])
      assert.deepInclude(answered, { "content-type": "text/event-stream", "x-tea": "assam" })
      assert.deepInclude(received[0], { method: "POST", path: "/mcp", body: "{\"id\":1}" })
      assert.deepInclude(received[0]!.headers, {
        authorization: "Bearer second",
        "mcp-method": "ping",
        accept: "text/event-stream",
        host: server.host
      })
      yield* send(url, "DELETE", { origin: url.origin })
      assert.deepInclude(received[1], { method: "DELETE", body: "" })
      assert.deepInclude(received[1]!.headers, { origin: server.origin, host: server.host })
    }))

  it.live("passes on the Host and the Origin of a scenario about DNS rebinding", () =>
    Effect.gen(function*() {
      const { received, url } = yield* forwarding({ headers: { authorization: "Bearer second" } })
      yield* send(url, "POST", { host: "evil.example", origin: "http://evil.example" }, "{}")
      assert.deepInclude(received[0]!.headers, { host: "evil.example", origin: "http://evil.example" })
    }))

  it.live("sends a refused request again with other credentials", () =>
    Effect.gen(function*() {
      let token = "first"
      const challenges: Array<unknown> = []
      const statuses: Array<number> = []
      const credentials: Credentials["Service"] = {
        headers: () => Effect.sync(() => ({ authorization: `Bearer ${token}` })),
        refused: ({ attempt, authorization, status, wwwAuthenticate }) =>
          Effect.sync(() => {
            challenges.push([attempt, authorization, status, wwwAuthenticate])
            token = "second"
            return true
          }),
        replied: ({ status }) => void statuses.push(status)
      }
      const { received, url } = yield* forwarding({ credentials })
      const { status, text } = yield* send(url, "POST", {}, "{}")
      assert.deepStrictEqual([status, text], [201, "data: {}\n\n"])
      assert.deepStrictEqual(challenges, [[1, "Bearer first", 401, "Bearer realm=\"tea\""]])
      assert.deepStrictEqual([statuses, received.map(({ body }) => body)], [[401, 201], ["{}", "{}"]])
    }))

  it.live("returns the refusal of a server that refuses all credentials", () =>
    Effect.gen(function*() {
      const credentials: Credentials["Service"] = {
        headers: () => Effect.succeed({ authorization: "Bearer first" }),
        refused: () => Effect.succeed(true)
      }
      const { received, url } = yield* forwarding({ credentials })
      const { status, text } = yield* send(url, "POST", {}, "{}")
      assert.deepStrictEqual([status, text, received.length], [401, "refused", 3])
    }))

  it.live("refuses a body beyond its bound, a path without its random part, and a server that is gone", () =>
    Effect.gen(function*() {
      const { received, url } = yield* forwarding({ headers: { authorization: "Bearer second" }, maxBodyBytes: 5 })
      assert.strictEqual((yield* send(url, "POST", {}, "123456")).status, 413)
      assert.strictEqual((yield* send(new URL("/mcp", url), "POST", {}, "{}")).status, 404)
      assert.strictEqual(received.length, 0)
      assert.strictEqual((yield* send(url, "POST", {}, "12345")).status, 201)
      const gone = yield* forward({
        url: new URL("http://127.0.0.1:1/mcp"),
        headers: {},
        credentials: undefined,
        maxBodyBytes: 5
      })
      assert.strictEqual((yield* send(new URL(gone), "POST", {}, "{}")).status, 502)
    }))
})
