/** One request and its response over `fetch`, in session-based and stateless revisions. */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { gzipSync } from "node:zlib"
import { answer, connected, entered, type Json, modern, note, settle, until } from "./support/connection.ts"

/** The connection was lost, and the request may have been delivered. */
const maybeDelivered = (error: TransportError): boolean =>
  error.reason._tag === "ConnectionLost" && error.undelivered === undefined

const call = modern({ name: "añadir", arguments: { a: 1 } })

describe("a stateless request", () => {
  it.effect("2026-07-28 · MUST include the request metadata headers, and an Accept header listing both content types", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const { connection, request, received } = yield* connected({ url: server.url })
      request(1, "tools/call", call)
      request(2, "resources/read", modern({ uri: "file:///a" }))
      request(3, "tools/list", modern())
      connection.send(
        { _tag: "Request", id: 4, method: "tools/call", params: modern({ name: "plain" }) },
        undefined,
        { "Mcp-Param-Region": "west" }
      )
      yield* until(() => received.messages.length === 4)
      const of = (id: number) => server.exchanges.find(({ json }) => json.id === id)!.headers
      expect(of(1)).toMatchObject({
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?YcOxYWRpcg==?=",
        "content-type": "application/json",
        accept: "application/json, text/event-stream"
      })
      expect(of(2)["mcp-name"]).toBe("file:///a")
      expect(of(3)["mcp-name"]).toBeUndefined()
      expect(of(4)).toMatchObject({ "mcp-name": "plain", "mcp-param-region": "west" })
      expect(
        server.exchanges.every(({ headers, method }) => method === "POST" && headers["mcp-session-id"] === undefined)
      )
        .toBe(true)
    }))

  it.effect("2026-07-28 · the client MUST support an SSE response stream: ignores comments and delivers each message", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.openStream(`: hello\n\n${ScriptedHttpServer.event(note(1))}:\r\n`)
      )
      const { request, received } = yield* connected({ url: server.url })
      request(1, "tools/call", call)
      yield* until(() => received.messages.length === 1)
      server.exchanges[0]!.end(ScriptedHttpServer.event(answer(1, { ok: true })))
      yield* until(() => received.messages.length === 2)
      expect(received.messages[1]).toEqual({ _tag: "Success", id: 1, result: { ok: true } })
      yield* settle
      expect(received.refusals).toEqual([])
    }))

  it.effect("2026-07-28 · keeps a subscription's stream open without a time limit", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.openStream(ScriptedHttpServer.event(note(1))))
      const { request, received } = yield* connected({ url: server.url })
      request(1, "subscriptions/listen", modern({ notifications: {} }))
      yield* until(() => received.messages.length === 1)
      yield* TestClock.adjust("1 day")
      server.exchanges[0]!.write(ScriptedHttpServer.event(note(2)))
      yield* until(() => received.messages.length === 2)
      expect(received.refusals).toEqual([])
    }))

  for (const broken of [false, true]) {
    it.effect(`2026-07-28 · resumable SSE streams are not supported: fails the request if its stream ${broken ? "breaks" : "ends"}`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.openStream(`id: 1\ndata:\n\n${ScriptedHttpServer.event(note(1))}`)
        )
        const { request, received } = yield* connected({ url: server.url })
        request(1, "tools/call", call)
        yield* until(() => received.messages.length === 1)
        if (broken) server.exchanges[0]!.cut()
        else server.exchanges[0]!.end()
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toSatisfy(maybeDelivered)
        yield* TestClock.adjust("1 hour")
        yield* settle
        expect(server.exchanges.length).toBe(1)
      }))
  }

  it.effect("2026-07-28 · closing the SSE response stream MUST be treated as cancellation: sends nothing else", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.openStream(ScriptedHttpServer.event(note(1))))
      const { notify, request, received } = yield* connected({ url: server.url })
      request(1, "tools/call", call)
      yield* until(() => received.messages.length === 1)
      notify("notifications/cancelled", { requestId: 1 })
      yield* until(() => server.exchanges[0]!.closedByClient)
      notify("notifications/cancelled", { requestId: 1 })
      yield* settle
      expect(server.exchanges.length).toBe(1)
      expect(received.refusals).toEqual([])
    }))

  it.effect("2026-07-28 · the client MUST NOT send JSON-RPC responses", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const { connection, request, received } = yield* connected({ url: server.url })
      request(1, "tools/list", modern())
      yield* until(() => received.messages.length === 1)
      connection.send({ _tag: "Success", id: "q", result: {} })
      yield* settle
      expect(server.exchanges.length).toBe(1)
    }))
})

describe("a response", () => {
  const failure = (id: unknown, code = -32602) => ({ jsonrpc: "2.0", id, error: { code, message: "No" } })

  for (const status of [400, 404, 500]) {
    it.effect(`may be a JSON-RPC error with status ${status} and with the request's id, a null id or none`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit, count) =>
          hit.respondJson(failure([hit.json.id, null, undefined][count - 1]), {}, status)
        )
        const { request, received } = yield* connected({ url: server.url })
        for (const id of [1, 2, 3]) {
          request(id, "tools/list", modern())
          yield* until(() => received.messages.length === id)
          expect(received.messages[id - 1]).toEqual({ _tag: "Failure", id, error: { code: -32602, message: "No" } })
        }
      }))
  }

  const cases: ReadonlyArray<readonly [string, number, string, string, object]> = [
    ["202 to a request", 202, "", "", { status: 202, message: expect.stringContaining("empty body") }],
    ["an empty 200", 200, "", "application/json", { status: 200, message: expect.stringContaining("empty body") }],
    ["an HTML page", 200, "<html>hi</html>", "text/html", {
      status: 200,
      message: expect.stringContaining("text/html")
    }],
    ["broken JSON", 200, "{\"json", "application/json", {
      status: 200,
      message: expect.stringContaining("not a JSON-RPC message")
    }],
    ["JSON that is not JSON-RPC", 200, "{}", "application/json", {
      status: 200,
      message: expect.stringContaining("not a JSON-RPC message")
    }],
    ["a response to another request", 200, JSON.stringify(answer(99)), "application/json", {
      status: 200,
      message: expect.stringContaining("does not answer")
    }],
    ["401", 401, JSON.stringify(failure(1)), "application/json", { status: 401, undelivered: true }],
    ["403 without an id", 403, JSON.stringify(failure(null)), "application/json", {
      status: 403,
      undelivered: true,
      message: expect.stringContaining("No")
    }],
    ["404 with an HTML page", 404, "Cannot POST /mcp", "text/html", {
      status: 404,
      undelivered: true,
      message: expect.stringContaining("Cannot POST /mcp")
    }],
    ["500", 500, "oh", "text/plain", { status: 500, undelivered: undefined }]
  ]
  for (const [what, status, body, type, expected] of cases) {
    it.effect(`${what} fails that call with a typed error and never hangs`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.respond(status, body, type === "" ? {} : { "content-type": type })
        )
        const { request, received } = yield* connected({ url: server.url })
        request(1, "tools/list", modern())
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({
          _tag: "TransportError",
          reason: { _tag: "MessageRejected" },
          ...expected
        })
        expect(received.ends).toEqual([])
      }))
  }

  it.effect("returns Retry-After given in seconds or as a date, and quotes a part of a long body", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1))
      const after = ["7", "Thu, 01 Jan 2026 00:01:00 GMT", "soon"]
      const server = yield* ScriptedHttpServer.make<Json>((hit, count) =>
        hit.respond(503, "x".repeat(5_000), { "retry-after": after[count - 1]!, "content-type": "text/plain" })
      )
      const { request, received } = yield* connected({ url: server.url })
      for (const id of [1, 2, 3]) {
        request(id, "tools/list", modern())
        yield* until(() => received.refusals.length === id)
      }
      expect(received.refusals.map(([, error]) => [error.retryAfter, error.undelivered])).toEqual([
        [7_000, true],
        [60_000, true],
        // A gateway also responds 503 when it loses the server in the middle of the request.
        [undefined, undefined]
      ])
      expect(received.error(1)!.message.length).toBeLessThan(400)
    }))

  for (const [how, maxMessageBytes] of [["with a length", 1_000], ["in chunks", 1_000]] as const) {
    it.effect(`maxMessageBytes: a longer body ${how} fails its request`, () =>
      Effect.gen(function*() {
        const text = JSON.stringify(answer(1, { text: "x".repeat(2_000) }))
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          how === "in chunks"
            ? void hit.response.writeHead(200, { "content-type": "application/json" }).write(text)
            : hit.respond(200, text, { "content-type": "application/json" })
        )
        const { request, received } = yield* connected({ url: server.url, maxMessageBytes })
        request(1, "tools/list", modern())
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({
          reason: { _tag: "ConnectionLost" },
          message: expect.stringContaining("maxMessageBytes")
        })
      }))
  }

  it.effect("maxMessageBytes: a longer SSE event fails its request, whose stream is not resumed", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) =>
          hit.openStream(`id: 1\ndata: ${"x".repeat(500)}\ndata: ${"y".repeat(600)}`)
        )
      )
      const { request, received } = yield* entered({ url: server.url, maxMessageBytes: 1_000 })
      request(1, "tools/list")
      yield* until(() => received.refusals.length === 1)
      expect(received.error(1)).toMatchObject({
        reason: { _tag: "ConnectionLost" },
        message: expect.stringContaining("maxMessageBytes")
      })
      yield* until(() => server.exchanges.at(-1)!.closedByClient)
    }))

  it.effect("fails with OpenFailed and undelivered if no server listens", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      server.close()
      const { request, received } = yield* connected({ url: server.url })
      request(1, "tools/list", modern())
      yield* until(() => received.refusals.length === 1)
      expect(received.error(1)).toMatchObject({ reason: { _tag: "OpenFailed" }, undelivered: true })
    }))

  it.effect("fails with ConnectionLost, and possibly delivered, if the connection breaks before the response", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.cut())
      const { request, received } = yield* connected({ url: server.url })
      request(1, "tools/list", modern())
      yield* until(() => received.refusals.length === 1)
      expect(received.error(1)).toSatisfy(maybeDelivered)
    }))
})

describe("the transport", () => {
  const wrong = ["no url", "ftp://example.com/", "file:///etc", "http://user:secret@example.com/"]
  for (const url of wrong) {
    it.effect(`rejects the URL ${url} with OpenFailed`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(connected({ url }))
        expect(error).toMatchObject({ _tag: "TransportError", reason: { _tag: "OpenFailed" } })
        expect(error.message).not.toContain("secret")
      }))
  }

  it.effect("sends the configured headers with every request, except those of the protocol, and rejects a bad header without its value", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult()))
      const headers = { "X-Team": "a", "MCP-Session-Id": "forged", Accept: "text/html" }
      yield* Effect.scoped(Effect.gen(function*() {
        const { request, received } = yield* entered({ url: server.url, headers, shutdownTimeout: "1 second" })
        request(1, "ping")
        yield* until(() => received.answer(1) !== undefined)
      }))
      expect(server.exchanges.map(({ method }) => method).sort()).toEqual(["DELETE", "GET", "POST", "POST", "POST"])
      for (const hit of server.exchanges) {
        expect(hit.headers["x-team"]).toBe("a")
        expect(hit.headers["mcp-session-id"]).not.toBe("forged")
        expect(hit.headers.accept).not.toBe("text/html")
      }
      let n = 0
      const counted = yield* connected({ url: server.url, headers: Effect.sync(() => ({ "x-count": String(++n) })) })
      for (const id of [1, 2]) {
        counted.request(id, "ping", modern())
        yield* until(() => counted.received.messages.length === id)
      }
      expect(server.exchanges.slice(-2).map(({ headers }) => headers["x-count"])).toEqual(["1", "2"])
      const error = yield* Effect.flip(connected({ url: server.url, headers: { "x-key": "sec\nret" } }))
      expect(error.message).toContain("x-key")
      expect(error.message).not.toContain("sec")
    }))

  it.effect("2025-03-26 · delivers the members of a batch one by one", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondJson([note(1), answer(hit.json.id, { n: 2 })]), {
          revision: "2025-03-26"
        })
      )
      const { request, received } = yield* entered({ url: server.url })
      request(1, "tools/list")
      yield* until(() => received.messages.length === 3)
      expect(received.messages.slice(1).map(({ _tag }) => _tag)).toEqual(["Notification", "Success"])
    }))
})

describe("the use of `fetch`", () => {
  it.effect("maxMessageBytes: bounds the decompressed size of a compressed body", () =>
    Effect.gen(function*() {
      const text = JSON.stringify(answer(1, { text: "x".repeat(100_000) }))
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        const body = gzipSync(text)
        hit.response.writeHead(200, {
          "content-type": "application/json",
          "content-encoding": "gzip",
          "content-length": body.length
        }).end(body)
      })
      const small = yield* connected({ url: server.url, maxMessageBytes: 50_000 })
      small.request(1, "tools/list", modern())
      yield* until(() => small.received.refusals.length === 1)
      expect(small.received.error(1)).toMatchObject({
        reason: { _tag: "ConnectionLost" },
        message: expect.stringContaining("maxMessageBytes")
      })
      const large = yield* connected({ url: server.url, maxMessageBytes: 200_000 })
      large.request(1, "tools/list", modern())
      yield* until(() => large.received.answer(1) !== undefined)
    }))

  const never = (cause: unknown) => () => Promise.reject(new TypeError("fetch failed", { cause }))
  const refusals: ReadonlyArray<readonly [string, string, typeof globalThis.fetch | undefined, string]> = [
    [
      "a blocked port, with advice",
      "http://127.0.0.1:25/mcp",
      undefined,
      "port 25 is blocked (bad port); use NodeHttp"
    ],
    [
      "a header that fetch rejects",
      "http://127.0.0.1:9/mcp",
      never(Object.assign(new Error("invalid upgrade header"), { code: "UND_ERR_INVALID_ARG" })),
      "invalid upgrade header"
    ],
    [
      "an exception",
      "http://127.0.0.1:9/mcp",
      () => {
        throw new Error("not in this worker")
      },
      "not in this worker"
    ]
  ]
  for (const [what, url, fetch, says] of refusals) {
    it.live(`a request that fetch does not send fails with OpenFailed and undelivered: ${what}`, () =>
      Effect.gen(function*() {
        const { request, received } = yield* connected({ url, fetch })
        request(1, "tools/call", modern())
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({
          reason: { _tag: "OpenFailed" },
          undelivered: true,
          message: expect.stringContaining(says)
        })
      }))
  }

  it.effect("calls the configured `fetch` with plain values", () =>
    Effect.gen(function*() {
      const calls: Array<readonly [unknown, RequestInit | undefined]> = []
      const fetch: typeof globalThis.fetch = (input, init) => {
        calls.push([input, init])
        return Promise.resolve(Response.json(answer(1, { mine: true })))
      }
      const { request, received } = yield* connected({ url: "https://example.com/mcp#part", fetch })
      request(1, "tools/list", modern())
      yield* until(() => received.answer(1) !== undefined)
      expect([String(calls[0]![0]), calls[0]![1]!.method, calls[0]![1]!.redirect]).toEqual([
        "https://example.com/mcp",
        "POST",
        "manual"
      ])
    }))

  it.effect("joins a character whose bytes arrive in separate chunks", () =>
    Effect.gen(function*() {
      const bytes = Buffer.from(ScriptedHttpServer.event(answer(1, { text: "añ世界😀" })))
      const server = yield* ScriptedHttpServer.make<Json>((hit) => void hit.openStream())
      const { request, received } = yield* connected({ url: server.url })
      request(1, "tools/list", modern())
      yield* until(() => server.exchanges.length === 1)
      for (const byte of bytes) {
        server.exchanges[0]!.response.write(Uint8Array.of(byte))
        yield* until(() => false, 3).pipe(Effect.exit)
      }
      yield* until(() => received.answer(1) !== undefined)
      expect(received.answer(1).result).toEqual({ text: "añ世界😀" })
    }))

  it.effect("fails the request, and sends nothing, if the effect for headers fails", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      for (const headers of [Effect.fail("secret"), Effect.die("secret"), Effect.succeed({ "bad name": "x" })]) {
        const { request, received } = yield* connected({ url: server.url, headers })
        request(1, "tools/list", modern())
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({ reason: { _tag: "MessageRejected" }, undelivered: true })
        expect(received.error(1)!.message).not.toContain("secret")
      }
      expect(server.exchanges).toEqual([])
    }))
})
