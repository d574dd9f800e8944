/** Options of HTTP servers that change how their bytes are read. */
import { describe, expect, it } from "@effect/vitest"
import { serve as serveHono } from "@hono/node-server"
import * as LegacySse from "@skein/server/LegacySse"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createServer, type Server, type ServerOptions } from "node:http"
import * as http2 from "node:http2"
import type { AddressInfo } from "node:net"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"
import { endpointSections, sections } from "./cases.ts"
import { chunked, next, post, streamableHttp } from "./requests.ts"

const mcp = fixtures.server(fixtures.echo)
const json = streamableHttp.call("first")

const listening = (server: Server | http2.Http2Server) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<typeof server>((resume) =>
        void server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      ),
      () => Effect.sync(() => void server.close())
    ),
    () => ({ port: (server.address() as AddressInfo).port })
  )

const node = (options: ServerOptions, change?: (server: Server) => void) =>
  Effect.gen(function*() {
    const context = yield* Effect.orDie(Layer.build(mcp))
    const handler = yield* Effect.provideContext(NodeHttp.handler(), context)
    const server = createServer(options, (request, response) => handler(request, response))
    change?.(server)
    return yield* listening(server)
  })

const statuses = (at: { readonly port: number }, bytes: string) =>
  Effect.scoped(Effect.gen(function*() {
    const raw = yield* kit.raw(at)
    raw.write(Buffer.from(bytes, "latin1"))
    raw.end()
    return [...(yield* raw.closed).text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  }))

describe("a node:http server", () => {
  it.live("with a lenient parser, refuses a request with two lengths, and ignores all bytes after it", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* node({ insecureHTTPParser: true })
      const next = post(streamableHttp)
      const both = post(streamableHttp, { last: ["Transfer-Encoding: chunked"], body: chunked(json) })
      expect(yield* statuses(at, both + next)).toEqual([400])
      const twice = post(streamableHttp, { first: [`Content-Length: ${json.length}`] })
      expect(yield* statuses(at, twice + next)).toEqual([400])
    })))

  it.live("with another maxHeadersCount, refuses requests with so many lines", () =>
    Effect.scoped(Effect.gen(function*() {
      const lines = (count: number) =>
        post(streamableHttp, { last: [...Array(count).fill("a:"), "Origin: https://evil.example"] })
      const few = yield* node({}, (server) => {
        server.maxHeadersCount = 50
      })
      expect(yield* statuses(few, lines(100))).toEqual([431])
      expect(yield* statuses(few, post(streamableHttp, { last: Array(30).fill("a:") }))).toEqual([200])
      const any = yield* node({}, (server) => {
        server.maxHeadersCount = 0
      })
      expect(yield* statuses(any, lines(2_100))).toEqual([403])
    })))

  it.live("of Hono with maxHeadersCount 0, reads every line", () =>
    Effect.scoped(Effect.gen(function*() {
      const context = yield* Effect.orDie(Layer.build(mcp))
      const handler = yield* Effect.provideContext(WebHttp.handler(), context)
      const server = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = serveHono(
            { fetch: (request) => handler(request), port: 0, hostname: "127.0.0.1" },
            () => resume(Effect.succeed(server))
          ) as Server
          server.maxHeadersCount = 0
        }),
        (server) => Effect.sync(() => void server.close())
      )
      const bytes = post(streamableHttp, { last: [...Array(2_100).fill("a:"), "Origin: https://evil.example"] })
      expect(yield* statuses({ port: (server.address() as AddressInfo).port }, bytes)).toEqual([403])
    })))
})

describe("NodeHttp", () => {
  // A connection that the server closes may be reset while the client still writes, so only the others are compared.
  it.live("answers the same however the bytes are split", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(mcp, { legacySse: LegacySse.make() })
      const cases = [...sections(streamableHttp), ...endpointSections(streamableHttp)]
        .flatMap((section) => section.cases)
        .filter((one) => one.answers.length > 1 && one.answers.at(-1) === 200 && one.next === undefined)
      expect(cases.length).toBeGreaterThan(80)
      for (const one of cases) {
        const bytes = Buffer.from(one.bytes + next(streamableHttp), "latin1")
        const size = Math.max(37, Math.ceil(bytes.length / 40))
        const text = yield* Effect.scoped(Effect.gen(function*() {
          const raw = yield* kit.raw(at)
          raw.socket.setNoDelay(true)
          for (let from = 0; from < bytes.length; from += size) {
            raw.write(bytes.subarray(from, from + size))
            yield* Effect.promise(() => new Promise(setImmediate))
          }
          return (yield* raw.closed).text
        }))
        const actual = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
        expect([one.what, actual]).toEqual([one.what, one.answers])
      }
    })))
})

describe("a node:http2 server", () => {
  const ask = (at: { readonly port: number }, headers: http2.OutgoingHttpHeaders) =>
    Effect.callback<number>((resume) => {
      const session = http2.connect(`http://localhost:${at.port}`)
      const request = session.request({
        ":method": "POST",
        ":path": "/mcp",
        ...kit.modern("tools/call", { name: "echo", arguments: { text: "a" } }).headers as http2.OutgoingHttpHeaders,
        ...headers
      })
      request.on("response", (received) => {
        request.resume()
        request.on("close", () => session.close(() => resume(Effect.succeed(Number(received[":status"])))))
      })
      request.end(json)
    })

  it.live("RFC 9113, 8.3.1 · refuses a Host that differs from the authority, and one that is not allowed", () =>
    Effect.scoped(Effect.gen(function*() {
      const context = yield* Effect.orDie(Layer.build(mcp))
      const handler = yield* Effect.provideContext(NodeHttp.handler(), context)
      const at = yield* listening(
        http2.createServer((request, response) => handler(request as never, response as never))
      )
      expect(yield* ask(at, {})).toBe(200)
      expect(yield* ask(at, { ":authority": "evil.example" })).toBe(403)
      expect(yield* ask(at, { ":authority": "localhost", host: "localhost" })).toBe(200)
      expect(yield* ask(at, { ":authority": "localhost", host: "evil.example" })).toBe(400)
      expect(yield* ask(at, { ":authority": "evil.example", host: "localhost" })).toBe(400)
      expect(yield* ask(at, { origin: "https://evil.example" })).toBe(403)
    })))
})
