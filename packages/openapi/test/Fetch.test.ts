import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { operation, textOf } from "./kit.ts"

const listen = (handler: RequestListener) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      new Promise<{ readonly url: string; readonly close: () => void }>((resolve) => {
        const server = createServer(handler).listen(0, "127.0.0.1", () => {
          const { port } = server.address() as AddressInfo
          resolve({ url: `http://127.0.0.1:${port}`, close: () => (server.closeAllConnections(), server.close()) })
        })
      })
    ),
    ({ close }) => Effect.sync(close)
  )

const document = operation("/{id}", "get", { parameters: [{ name: "q", in: "query" }] })

/** Calls the tool with the `fetch` of Node, since the environment has no `HttpClient`. */
const call = (baseUrl: string, options: OpenApi.Options = {}, id = "1") =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "api", version: "1" }, OpenApi.layer(document, { ...options, baseUrl }))
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    const client = yield* Client.make(InMemoryTransport.transport(serve))
    return yield* client.callTool("it", { id, q: "a b" })
  })

describe("a call with fetch", () => {
  it.live("sends the request and reads the answer", () =>
    Effect.gen(function*() {
      const { url } = yield* listen((request, response) => response.end(`${request.method} ${request.url}`))
      expect(textOf(yield* call(`${url}/base/`, {}, "ä/ö"))).toBe("GET /base/%C3%A4%2F%C3%B6?q=a%20b")
    }))

  it.live("does not follow a redirect to another origin", () =>
    Effect.gen(function*() {
      let isReached = false
      const other = yield* listen((_, response) => ((isReached = true), response.end()))
      const { url } = yield* listen((_, response) => response.writeHead(302, { location: other.url }).end())
      expect(textOf(yield* call(url))).toContain("The API redirects elsewhere, which is not followed")
      expect(isReached).toBe(false)
    }))

  it.live("stops reading an endless answer", () =>
    Effect.gen(function*() {
      let isClosed = false
      const { url } = yield* listen((_, response) => {
        const timer = setInterval(() => response.write("x".repeat(10_000)), 1)
        response.on("close", () => ((isClosed = true), clearInterval(timer)))
      })
      expect(textOf(yield* call(url, { maxResultBytes: 50_000 }))).toContain("more than 50000 bytes")
      for (let round = 0; !isClosed && round < 12_000; round++) yield* Effect.sleep(5)
      expect(isClosed).toBe(true)
    }))

  it.live("closes the connection after timeout", () =>
    Effect.gen(function*() {
      let isClosed = false
      const { url } = yield* listen((_, response) => {
        response.write("start")
        response.on("close", () => (isClosed = true))
      })
      expect(textOf(yield* call(url, { timeout: "100 millis" }))).toContain("no complete answer within 100ms")
      for (let round = 0; !isClosed && round < 12_000; round++) yield* Effect.sleep(5)
      expect(isClosed).toBe(true)
    }))

  it.live("reports a failed connection with its code", () =>
    Effect.gen(function*() {
      const { close, url } = yield* listen((_, response) => response.end())
      close()
      const { host } = new URL(url)
      expect(textOf(yield* call(url))).toBe(
        `GET /{id} failed: no answer from ${host}, the connection failed (ECONNREFUSED). Call again later.`
      )
    }))
})
