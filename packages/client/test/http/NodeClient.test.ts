/** The HTTP client on node:http, against real sockets. */
import { assert, describe, it } from "@effect/vitest"
import { decodeUtf8 } from "@skein/runtime/ByteBuffer"
import * as RawServer from "@skein/testing/RawServer"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Http from "node:http"
import * as Https from "node:https"
import { Duplex } from "node:stream"
import * as NodeClient from "../../src/internal/http/nodeClient.ts"
import type { HttpClient, HttpRequest, HttpResponse } from "../../src/internal/http/httpClient.ts"
import { certificate, privateKey } from "./support/certificate.ts"
import { fieldsOf } from "../support/fields.ts"

const open = (options?: NodeClient.Options, bounds?: NodeClient.AgentBounds) =>
  Effect.acquireRelease(Effect.sync(() => NodeClient.make(options, bounds)), (httpClient) => httpClient.close)

const post = (url: URL, body = "{}"): HttpRequest => ({
  method: "POST",
  url,
  headers: { "Content-Type": "application/json", "Mcp-Method": "ping" },
  body
})

const read = (reply: HttpResponse) => reply.text(1_000_000)
const fetchText = (httpClient: HttpClient, url: URL, body?: string) => httpClient.exchange(post(url, body), read)

const failureOf = (httpClient: HttpClient, url: URL): Effect.Effect<TransportError, unknown> =>
  Effect.flip(fetchText(httpClient, url)) as Effect.Effect<TransportError, unknown>

const head = (rest: string) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${rest}\r\n\r\n`

/** A response in which each byte is its own chunk, so that `node:http` delivers each separately. */
const chunked = (text: string) =>
  Buffer.concat([
    Buffer.from(head("Transfer-Encoding: chunked")),
    ...[...Buffer.from(text)].flatMap((byte) => [Buffer.from("1\r\n"), Buffer.of(byte), Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n")
  ])

const tricky = "\ufeffaä€😀 end"

describe("the HTTP client on node:http", () => {
  it.live("sends head and body in one write, with Content-Length in bytes, and adds only Host and Connection", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const { url } = yield* RawServer.tcp((socket) =>
        socket.on("data", (bytes) => {
          seen.push(bytes.toString())
          socket.write(`${head("Content-Length: 2")}{}`)
        })
      )
      assert.strictEqual(yield* fetchText(yield* open(), url, `{"a":"é"}`), "{}")
      assert.deepStrictEqual(seen, [
        `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nMcp-Method: ping\r\n` +
        `Content-Length: 10\r\nConnection: keep-alive\r\n\r\n{"a":"é"}`
      ])
    }))

  it.live("returns status, headers and text, and joins repeated headers", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.http((_, response) => {
        response.writeHead(404, ["X-A", "1", "X-A", "2", "Set-Cookie", "a=1", "Set-Cookie", "b=2"])
        response.end("not here")
      })
      const seen = yield* (yield* open()).exchange({ method: "GET", url, headers: {} }, (reply) =>
        Effect.map(read(reply), (text) => [
          reply.status,
          reply.header("x-a"),
          reply.header("set-cookie"),
          reply.header("x-b"),
          text
        ]))
      assert.deepStrictEqual(seen, [404, "1, 2", "a=1, b=2", undefined, "not here"])
    }))

  it.live("text() decodes UTF-8 across chunk boundaries and drops a byte order mark", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) => socket.once("data", () => socket.write(chunked(tricky))))
      assert.strictEqual(yield* fetchText(yield* open(), url), tricky.slice(1))
    }))

  it.live("chunks() delivers the bytes of a body as they arrive", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) => socket.once("data", () => socket.write(chunked(tricky))))
      const pieces: Array<Uint8Array> = []
      yield* (yield* open()).exchange(post(url), (reply) => reply.chunks((chunk) => void pieces.push(chunk)))
      assert.strictEqual(Buffer.concat(pieces).toString("utf8"), tricky)
      assert.isTrue(pieces.length > 5)
    }))

  it.live("delivers pieces as they arrive, before the body ends", () =>
    Effect.gen(function*() {
      const first = yield* Deferred.make<void>()
      const { url } = yield* RawServer.http(async (_, response) => {
        response.write("one")
        await Effect.runPromise(Deferred.await(first))
        response.end("two")
      })
      const pieces: Array<string> = []
      yield* (yield* open()).exchange(post(url), (reply) =>
        reply.chunks((chunk) => {
          pieces.push(decodeUtf8(chunk))
          Effect.runSync(Deferred.succeed(first, undefined))
          return undefined
        }))
      assert.deepStrictEqual(pieces, ["one", "two"])
    }))

  for (const length of ["declared", "not declared"]) {
    it.live(`fails with ConnectionLost on a body above maxBytes, and closes its connection: length ${length}`, () =>
      Effect.gen(function*() {
        const { closed, url } = yield* RawServer.http((_, response) => {
          if (length === "declared") response.setHeader("Content-Length", 101)
          response.write("x".repeat(60))
          if (length === "not declared") response.write("x".repeat(41))
        })
        const error = yield* Effect.flip((yield* open()).exchange(post(url), (reply) => reply.text(100)))
        assert.strictEqual(error.reason._tag, "ConnectionLost")
        assert.match(error.message, /exceeds maxMessageBytes \(100\)/)
        assert.isUndefined(error.undelivered)
        yield* closed
      }))
  }

  for (const how of ["text", "pieces"] as const) {
    it.live(`fails with ConnectionLost if the body breaks off: ${how}`, () =>
      Effect.gen(function*() {
        const { url } = yield* RawServer.tcp((socket) =>
          socket.once("data", () => socket.end(`${head("Content-Length: 9")}{`))
        )
        const error = yield* Effect.flip((yield* open()).exchange(
          post(url),
          (reply) => how === "text" ? reply.text(100) : reply.chunks(() => undefined)
        ))
        assert.strictEqual(error.reason._tag, "ConnectionLost")
        assert.isUndefined(error.undelivered)
      }))
  }

  it.live("fails with ConnectionLost if the body broke off before it was read", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.tcp((socket) =>
        socket.once("data", () => socket.write(`${head("Content-Length: 9")}{`))
      )
      const error = yield* Effect.flip((yield* open()).exchange(post(url), (reply) =>
        Effect.gen(function*() {
          const gone = new Promise((resolve) => sockets[0]!.once("close", resolve))
          sockets[0]!.destroy()
          yield* Effect.promise(() => gone)
          // The other end notices it in a later turn.
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
          return yield* reply.text(100)
        })))
      assert.strictEqual(error.reason._tag, "ConnectionLost")
    }))

  it.live("rejects a body in an encoding that was not requested instead of decoding it as text", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.http((_, response) => {
        response.writeHead(200, { "Content-Encoding": "gzip" })
        response.end("not read")
      })
      assert.match((yield* failureOf(yield* open(), url)).message, /content coding gzip/)
    }))

  it.live("fails with the error that a reader returns, and reads nothing after it", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.tcp((socket) =>
        socket.once("data", () => socket.write(`${head("Transfer-Encoding: chunked")}1\r\na\r\n1\r\nb\r\n`))
      )
      const wrong = new TransportError({ reason: new ConnectionLost({ message: "no more" }) })
      const pieces: Array<string> = []
      const error = yield* Effect.flip((yield* open()).exchange(post(url), (reply) =>
        reply.chunks((chunk) => {
          pieces.push(decodeUtf8(chunk))
          return wrong
        })))
      assert.strictEqual(error, wrong)
      yield* closed
      assert.deepStrictEqual(pieces, ["a"])
    }))

  it.live("dies with a defect if a reader throws", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.http((_, response) => void response.write("one"))
      const exit = yield* Effect.exit((yield* open()).exchange(post(url), (reply) =>
        reply.chunks(() => {
          throw new Error("a bug")
        })))
      assert.match(String(exit), /a bug/)
      yield* closed
    }))
})

describe("an undelivered request", () => {
  it.live("fails with OpenFailed if the connection is refused", () =>
    Effect.gen(function*() {
      const { url } = yield* Effect.scoped(RawServer.tcp(() => {}))
      const error = yield* failureOf(yield* open(), url)
      assert.deepInclude(fieldsOf(error), { reason: "OpenFailed", undelivered: true })
      assert.match(error.message, /ECONNREFUSED/)
    }))

  it.live("fails with OpenFailed if the name does not resolve, or if all its addresses refuse", () =>
    Effect.gen(function*() {
      const { url: { port } } = yield* Effect.scoped(RawServer.tcp(() => {}))
      const httpClient = yield* open({
        agent: new Http.Agent({
          lookup: (name, _, answer) =>
            name === "nobody.test"
              ? answer(Object.assign(new Error("getaddrinfo ENOTFOUND"), { syscall: "getaddrinfo" }), [])
              : answer(null, [{ address: "127.0.0.1", family: 4 }, { address: "127.0.0.2", family: 4 }])
        })
      })
      for (const host of ["nobody.test", "two.test"]) {
        const error = yield* failureOf(httpClient, new URL(`http://${host}:${port}/`))
        assert.deepInclude(fieldsOf(error), { reason: "OpenFailed", undelivered: true })
        assert.match(error.message, /ENOTFOUND|ECONNREFUSED/)
      }
    }))

  it.live("fails with OpenFailed if the server breaks off the TLS handshake", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) => socket.once("data", () => socket.destroy()))
      const error = yield* failureOf(yield* open(), new URL(`https://${url.host}/`))
      assert.deepInclude(fieldsOf(error), { reason: "OpenFailed", undelivered: true })
    }))

  it.live("fails with ConnectionLost and undelivered if the write fails, because the request was not sent completely", () =>
    Effect.gen(function*() {
      const agent = new Http.Agent()
      agent.createConnection = () =>
        new Duplex({
          read() {},
          write: (_, __, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" }))
        })
      const error = yield* failureOf(yield* open({ agent }), new URL("http://127.0.0.1:9/"))
      assert.deepInclude(fieldsOf(error), { reason: "ConnectionLost", undelivered: true })
    }))

  it.live("is not assumed if the server closes the connection after it received the request", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.http((request, response) => {
        if (request.headers["mcp-method"] === undefined) return response.end()
        request.socket.destroy()
      })
      const httpClient = yield* open()
      assert.deepInclude(fieldsOf(yield* failureOf(httpClient, url)), {
        reason: "ConnectionLost",
        undelivered: undefined
      })
      // The same on a connection that was used before.
      yield* httpClient.exchange({ method: "GET", url, headers: {} }, read)
      assert.deepInclude(fieldsOf(yield* failureOf(httpClient, url)), {
        reason: "ConnectionLost",
        undelivered: undefined
      })
    }))

  it.live("is not assumed if the request cannot be written: OpenFailed without undelivered", () =>
    Effect.gen(function*() {
      const httpClient = yield* open()
      const request = { ...post(new URL("http://127.0.0.1:9/")), headers: { "X-A": "a\r\nX-B: b" } }
      const error = yield* Effect.flip(httpClient.exchange(request, read))
      assert.strictEqual(error.reason._tag, "OpenFailed")
      assert.isUndefined(error.undelivered)
    }))

  it.live("is not assumed if the server switches protocols: ConnectionLost", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) =>
        socket.once("data", () => socket.write("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
      )
      assert.strictEqual((yield* failureOf(yield* open(), url)).reason._tag, "ConnectionLost")
    }))

  it.live("is not assumed if the server does not respond with HTTP: ConnectionLost", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) =>
        socket.once("data", () => socket.write("220 mail.test ESMTP\r\n"))
      )
      assert.strictEqual((yield* failureOf(yield* open(), url)).reason._tag, "ConnectionLost")
    }))
})

describe("the connections of node:http", () => {
  it.live("reuse a connection for a request directly after a response", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.http((request, response) => {
        request.resume()
        response.end("{}")
      })
      const httpClient = yield* open()
      for (let i = 0; i < 5; i++) {
        yield* fetchText(httpClient, url)
        yield* httpClient.exchange(post(url), (reply) => reply.chunks(() => undefined))
      }
      assert.strictEqual(sockets.length, 1)
    }))

  it.live("reuse one connection for many requests without accumulating listeners", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.http((request, response) => {
        request.resume()
        response.end("{}")
      })
      const agent = new Http.Agent({ keepAlive: true })
      const httpClient = yield* open({ agent })
      const counts = new Set<number>()
      for (let i = 0; i < 20; i++) {
        yield* fetchText(httpClient, url)
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        const socket = Object.values(agent.freeSockets)[0]![0]!
        counts.add(socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0))
      }
      assert.strictEqual(counts.size, 1)
      assert.strictEqual(sockets.length, 1)
      agent.destroy()
    }))

  for (const [body, how] of [["no body", "202"], ["an empty chunked body", "202 chunked"], ["a short body", "400"]]) {
    it.live(`reuse a connection after an unread response with ${body}`, () =>
      Effect.gen(function*() {
        const { sockets, url } = yield* RawServer.http((request, response) => {
          request.resume()
          if (how === "202 chunked") response.writeHead(202).end()
          else response.writeHead(Number(how)).end(how === "400" ? "a word" : undefined)
        })
        const httpClient = yield* open()
        for (let i = 0; i < 3; i++) {
          yield* httpClient.exchange(post(url), () => Effect.void)
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        }
        assert.strictEqual(sockets.length, 1)
      }))
  }

  it.live("abort a response whose remaining body is not read", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.http((_, response) => void response.write("so far"))
      assert.strictEqual(yield* (yield* open()).exchange(post(url), ({ status }) => Effect.succeed(status)), 200)
      yield* closed
    }))

  it.live("destroy the request if it is interrupted before the response", () =>
    Effect.gen(function*() {
      const taken = yield* Deferred.make<void>()
      const { closed, url } = yield* RawServer.http(() => Effect.runSync(Deferred.succeed(taken, undefined)))
      const fiber = yield* Effect.forkChild(fetchText(yield* open(), url))
      yield* Deferred.await(taken)
      yield* Fiber.interrupt(fiber)
      yield* closed
    }))

  it.live("destroy the request if it is interrupted during the body, and deliver no more pieces", () =>
    Effect.gen(function*() {
      const taken = yield* Deferred.make<void>()
      const { closed, url } = yield* RawServer.http((_, response) => {
        response.write("one")
        response.write("two")
      })
      const pieces: Array<string> = []
      const fiber = yield* Effect.forkChild((yield* open()).exchange(post(url), (reply) =>
        reply.chunks((chunk) => {
          pieces.push(decodeUtf8(chunk))
          Effect.runSync(Deferred.succeed(taken, undefined))
          return undefined
        })))
      yield* Deferred.await(taken)
      yield* Fiber.interrupt(fiber)
      const { length } = pieces
      yield* closed
      assert.strictEqual(pieces.length, length)
    }))

  it.live("maxSockets: queue a request until a connection is free", () =>
    Effect.gen(function*() {
      const waiting: Array<Http.ServerResponse> = []
      const two = yield* Deferred.make<void>()
      const { sockets, url } = yield* RawServer.http((request, response) => {
        request.resume()
        waiting.push(response)
        if (waiting.length === 2) Effect.runSync(Deferred.succeed(two, undefined))
        if (waiting.length > 2) response.end("late")
      })
      const httpClient = yield* open({}, { maxSockets: 2, idleTimeout: 4_000 })
      const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(fetchText(httpClient, url)))
      yield* Deferred.await(two)
      assert.strictEqual(waiting.length, 2)
      for (const response of waiting.slice(0, 2)) response.end("first")
      assert.deepStrictEqual((yield* Effect.forEach(fibers, Fiber.join)).sort(), ["first", "first", "late"])
      assert.strictEqual(sockets.length, 2)
    }))

  it.live("idleTimeout: close an unused connection", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.http((request, response) => {
        request.resume()
        response.end("{}")
      })
      yield* fetchText(yield* open({}, { maxSockets: 256, idleTimeout: 20 }), url)
      yield* closed
    }))

  it.live("do not reuse a connection that the server is about to close according to Keep-Alive", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.http((request, response) => {
        request.resume()
        response.setHeader("Connection", "keep-alive")
        response.setHeader("Keep-Alive", "timeout=1")
        response.end("{}")
      })
      const httpClient = yield* open()
      yield* fetchText(httpClient, url)
      yield* fetchText(httpClient, url)
      assert.strictEqual(sockets.length, 2)
    }))

  it.live("do not reuse a connection that the server has closed", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.http((request, response) => {
        request.resume()
        response.end("{}")
      })
      const agent = new Http.Agent({ keepAlive: true })
      const httpClient = yield* open({ agent })
      yield* fetchText(httpClient, url)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const mine = Object.values(agent.freeSockets)[0]![0]!
      const gone = new Promise((resolve) => mine.once("close", resolve))
      sockets[0]!.end()
      yield* Effect.promise(() => gone)
      assert.strictEqual(yield* fetchText(httpClient, url), "{}")
      assert.strictEqual(sockets.length, 2)
      agent.destroy()
    }))

  it.live("leave no socket open after close", () =>
    Effect.gen(function*() {
      const count = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length
      const before = count()
      const raw = yield* RawServer.http((request, response) => {
        request.resume()
        response.end("{}")
      })
      const httpClient = NodeClient.make()
      yield* Effect.forEach([1, 2, 3], () => fetchText(httpClient, raw.url), { concurrency: 3 })
      assert.strictEqual(raw.sockets.length, 3)
      assert.isTrue(count() > before)
      yield* httpClient.close
      yield* raw.closed
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.isAtMost(count(), before)
    }))

  it.live("are made by a configured agent, including TLS, and close does not close the agent", () =>
    Effect.gen(function*() {
      const server = Https.createServer({ cert: certificate, key: privateKey }, (request, response) => {
        request.resume()
        response.end("{}")
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve())))
      yield* Effect.addFinalizer(() =>
        Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve())))
      )
      const url = new URL(`https://localhost:${(server.address() as { readonly port: number }).port}/`)
      const lookup: NonNullable<Https.AgentOptions["lookup"]> = (_, __, answer) =>
        answer(null, [{ address: "127.0.0.1", family: 4 }])
      const agent = new Https.Agent({ ca: certificate, keepAlive: true, lookup })
      const httpClient = NodeClient.make({ agent })
      assert.strictEqual(yield* fetchText(httpClient, url), "{}")
      yield* httpClient.close
      assert.strictEqual(yield* fetchText(httpClient, url), "{}")
      agent.destroy()
      // Without `ca` the certificate is not trusted, and nothing is sent.
      const strict = new Https.Agent({ lookup })
      assert.deepInclude(fieldsOf(yield* failureOf(NodeClient.make({ agent: strict }), url)), {
        reason: "OpenFailed",
        undelivered: true
      })
    }))
})
