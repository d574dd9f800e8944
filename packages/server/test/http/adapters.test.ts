/** One table of tests for the three adapters. Requests and responses are the same with each of them. */
import { describe, expect, it } from "@effect/vitest"
import * as Cors from "@skein/server/Cors"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { adapters, type Server } from "./adapters.ts"
import * as kit from "./kit.ts"

const echo = Tool.make("echo", { input: { text: Schema.String } })
const steps = Tool.make("steps")
const whoami = Tool.make("whoami")
const flood = Tool.make("flood")
const wait = Tool.make("wait")

/** A server whose tools report their progress and their interruption to the test. */
const make = Effect.gen(function*() {
  const waiting = yield* Deferred.make<void>()
  const interrupted = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  const reports = { count: 0 }
  const report = (n: number) =>
    Effect.tap(
      Progress.report({ progress: n, message: "x".repeat(32 * 1024) }),
      () => Effect.sync(() => void reports.count++)
    )
  const floods = Effect.suspend(() => {
    let n = 0
    return Effect.forever(Effect.suspend(() => report(++n)))
  })
  const waits = Effect.andThen(Deferred.succeed(waiting, undefined), Deferred.await(go)).pipe(
    Effect.as("waited"),
    Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
  )
  const server: Server = McpServer.layer(
    { name: "adapters", version: "1" },
    Tool.layer(echo, ({ text }) => Effect.succeed(text)),
    Tool.layer(steps, () =>
      Effect.gen(function*() {
        yield* Progress.report({ progress: 1 })
        yield* Progress.report({ progress: 2 })
        return "done"
      })),
    Tool.layer(
      whoami,
      () => Effect.map(Principal.current, Option.match({ onNone: () => "nobody", onSome: ({ id }) => id }))
    ),
    Tool.layer(flood, () => Effect.onInterrupt(floods, () => Deferred.succeed(interrupted, undefined))),
    Tool.layer(wait, () => waits)
  )
  return { server, waiting, interrupted, go, reports }
})

/** Methods that the server does not have in 2026-07-28. */
const unknownMethods = [
  "unknown/method",
  "initialize",
  "ping",
  "logging/setLevel",
  "resources/subscribe",
  "prompts/list",
  "__proto__"
]

const call = (name: string, args: kit.Json = {}, more: Parameters<typeof kit.modern>[2] = {}) =>
  kit.modern("tools/call", { name, arguments: args }, more)

const progress = { _meta: { progressToken: 7 } }

const initialize = (protocolVersion = "2025-11-25") => ({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "kit", version: "1" } }
})

/** Opens a session and returns the headers for requests in it. */
const session = Effect.fnUntraced(function*(
  port: { readonly port: number },
  headers: kit.Request["headers"] = {},
  revision = "2025-11-25"
) {
  const opened = yield* kit.post(port, initialize(revision), headers)
  const own = {
    ...headers,
    "mcp-session-id": opened.headers["mcp-session-id"] as string,
    "mcp-protocol-version": revision
  }
  yield* kit.post(port, { jsonrpc: "2.0", method: "notifications/initialized" }, own)
  return own
})

const text = (message: kit.Json) => message.result.content[0].text

describe.each(adapters)("$name", ({ serve }) => {
  it.live("2026-07-28 · responds with one JSON object if the result is the first message", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const reply = yield* kit.send(port, call("echo", { text: "grüezi ✓" }))
      expect(reply.status).toBe(200)
      expect(reply.headers["content-type"]).toBe("application/json")
      expect(reply.headers).not.toHaveProperty("mcp-session-id")
      expect(text(reply.json)).toBe("grüezi ✓")
      expect(reply.json.id).toBe(1)
    }))

  it.live("2026-07-28 · responds with a stream from the first message that precedes the result", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const reply = yield* kit.send(port, call("steps", {}, { ...progress, id: "r" }))
      expect(reply.status).toBe(200)
      expect(reply.headers["content-type"]).toBe("text/event-stream")
      // "Servers SHOULD include the `X-Accel-Buffering: no` header"
      expect(reply.headers["x-accel-buffering"]).toBe("no")
      expect(reply.messages.map(({ method }) => method))
        .toEqual(["notifications/progress", "notifications/progress", undefined])
      expect([reply.messages[2].id, text(reply.messages[2])]).toEqual(["r", "done"])
      expect(reply.events.every(({ id }) => id === undefined)).toBe(true)
      // Without a token there is no message before the result.
      expect((yield* kit.send(port, call("steps"))).headers["content-type"]).toBe("application/json")
    }))

  it.live("2026-07-28 · an unknown method MUST be answered with 404, and a wrong header with 400 and -32020", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      for (const method of unknownMethods) {
        const { json, status } = yield* kit.send(port, kit.modern(method, {}, { id: method }))
        expect([status, json.error.code, json.id]).toEqual([404, -32601, method])
      }
      const wrong = yield* kit.send(port, call("echo", { text: "" }, { headers: { "mcp-name": "other" } }))
      expect([wrong.status, wrong.json.error.code]).toEqual([400, -32020])
      const param = yield* kit.send(
        port,
        call("echo", { text: "" }, { headers: { "mcp-param-x": "=?base64?%%%?=" } })
      )
      expect([param.status, param.json.error.code]).toEqual([400, -32020])
    }))

  it.live("2026-07-28 · closing the response stream MUST be treated as cancellation, before and after its head", () =>
    Effect.gen(function*() {
      for (const name of ["wait", "flood"]) {
        const { interrupted, server, waiting } = yield* make
        const port = yield* serve(server)
        if (name === "wait") {
          const raw = yield* kit.raw(port)
          const { body, headers } = call("wait")
          const json = JSON.stringify(body)
          const head = Object.entries({ ...headers, host: "127.0.0.1", "content-length": json.length })
          raw.write(
            `POST /mcp HTTP/1.1\r\n${head.map(([key, value]) => `${key}: ${value}`).join("\r\n")}\r\n\r\n${json}`
          )
          yield* Deferred.await(waiting)
          raw.socket.destroy()
        } else {
          const stream = yield* kit.open(port, call("flood", {}, progress))
          yield* stream.message
          stream.leave()
        }
        yield* Deferred.await(interrupted)
      }
    }))

  it.live("2026-07-28 · acknowledges a subscription first on its stream", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const stream = yield* kit.open(
        port,
        kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
      )
      expect(stream.status).toBe(200)
      expect((yield* stream.message).method).toBe("notifications/subscriptions/acknowledged")
      stream.leave()
    }))

  it.live("slows only the handler of a slow reader, and bounds the buffered messages", () =>
    Effect.gen(function*() {
      const { interrupted, reports, server } = yield* make
      const port = yield* serve(server)
      const slow = yield* kit.open(port, call("flood", {}, progress))
      yield* slow.message
      slow.pause()
      // While the count grows, other requests are answered. Then the handler is suspended.
      let before = -1
      let still = 0
      while (still < 20) {
        const reply = yield* kit.send(port, call("echo", { text: "me" }))
        expect(text(reply.json)).toBe("me")
        still = reports.count === before ? still + 1 : 0
        before = reports.count
      }
      // The buffers of the two sockets hold some megabytes, at 32 KiB for each message.
      expect(before).toBeLessThan(1000)
      slow.resume()
      while (reports.count < before + 100) yield* slow.message
      slow.leave()
      yield* Deferred.await(interrupted)
    }))

  it.live("2025-11-25 · serves a session: id, JSON and streams on POST, 202 for a notification, 404 after DELETE", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const opened = yield* kit.post(port, initialize())
      expect(opened.status).toBe(200)
      const id = opened.headers["mcp-session-id"] as string
      expect(id).toMatch(/^[\x21-\x7e]{22,}$/)
      const own = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" }
      const noted = yield* kit.post(port, { jsonrpc: "2.0", method: "notifications/initialized" }, own)
      expect([noted.status, noted.text]).toEqual([202, ""])
      const echoed = yield* kit.post(
        port,
        { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hi" } } },
        own
      )
      expect([echoed.status, text(echoed.json)]).toEqual([200, "hi"])
      const stepped = yield* kit.post(
        port,
        { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "steps", ...progress } },
        own
      )
      expect(stepped.headers["content-type"]).toBe("text/event-stream")
      expect(stepped.messages.length).toBe(3)
      const ended = yield* kit.send(port, { method: "DELETE", headers: own })
      expect([ended.status, ended.text]).toEqual([204, ""])
      const gone = yield* kit.post(port, { jsonrpc: "2.0", id: 3, method: "ping" }, own)
      expect([gone.status, typeof gone.json.error.code]).toEqual([404, "number"])
    }))

  it.live("2025-06-18 · sends the head of a GET stream at once, before there is a message", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const own = yield* session(port, {}, "2025-06-18")
      const stream = yield* kit.open(port, { method: "GET", headers: { ...own, accept: "text/event-stream" } })
      expect(stream.status).toBe(200)
      expect(stream.headers["content-type"]).toBe("text/event-stream")
      expect(stream.waiting()).toEqual([])
    }))

  it.live("2025-11-25 · a disconnect SHOULD NOT be interpreted as the client cancelling its request", () =>
    Effect.gen(function*() {
      const { go, server, waiting } = yield* make
      const port = yield* serve(server)
      const own = yield* session(port)
      const raw = yield* kit.raw(port)
      const json = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "wait" } })
      const head = Object.entries({ ...kit.posting, ...own, host: "127.0.0.1", "content-length": json.length })
      raw.write(`POST /mcp HTTP/1.1\r\n${head.map(([key, value]) => `${key}: ${value}`).join("\r\n")}\r\n\r\n${json}`)
      yield* Deferred.await(waiting)
      raw.socket.destroy()
      // The handler was not interrupted: another request can still let it finish.
      const reply = yield* kit.post(port, { jsonrpc: "2.0", id: 2, method: "ping" }, own)
      expect(reply.json.result).toEqual({})
      expect(yield* Deferred.succeed(go, undefined)).toBe(true)
    }))

  it.live("2024-11-05 · serves HTTP+SSE: the endpoint event, messages by POST, responses on the stream", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server, { legacySse: LegacySse.make() })
      const stream = yield* kit.open(port, { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } })
      const { data, event } = yield* stream.next
      expect(event).toBe("endpoint")
      const post = (body: unknown) => kit.send(port, { path: data!, headers: kit.posting, body })
      expect(yield* post(initialize("2024-11-05"))).toMatchObject({ status: 202, text: "" })
      expect((yield* stream.message).result.protocolVersion).toBe("2024-11-05")
      yield* post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "old" } } })
      expect(text(yield* stream.message)).toBe("old")
      stream.leave()
      expect((yield* kit.send(port, { method: "DELETE", path: "/sse" })).status).toBe(405)
    }))

  it.live("takes the principal from the application, and refuses a session to any other principal", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const stateless = yield* kit.send(port, call("whoami", {}, { headers: { "x-user": "ada" } }))
      expect(text(stateless.json)).toBe("ada")
      expect(text((yield* kit.send(port, call("whoami"))).json)).toBe("nobody")
      const own = yield* session(port, { "x-user": "ada" })
      const whoamiCall = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }
      expect(text((yield* kit.post(port, whoamiCall, own)).json)).toBe("ada")
      expect((yield* kit.post(port, whoamiCall, { ...own, "x-user": "eve" })).status).toBe(404)
    }))

  it.live("responds to a refused request with a status and a JSON-RPC error", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server, { limits: { maxMessageBytes: 2000 } })
      const good = call("echo", { text: "" })
      const having = (headers: kit.Request["headers"]) => ({ ...good, headers: { ...good.headers, ...headers } })
      const refused: ReadonlyArray<readonly [string, kit.Request, number, number]> = [
        ["a foreign host", having({ host: "evil.example" }), 403, -32600],
        ["a foreign origin", having({ origin: "https://evil.example" }), 403, -32600],
        ["another verb", { ...good, method: "PUT" }, 405, -32600],
        ["OPTIONS, without CORS", { method: "OPTIONS" }, 405, -32600],
        ["another media type", having({ "content-type": "text/plain" }), 415, -32600],
        ["another Accept", having({ accept: "text/html" }), 406, -32600],
        ["invalid JSON", { ...good, body: "{" }, 400, -32700],
        ["an empty body", { ...good, body: undefined }, 400, -32700],
        ["a byte order mark", { ...good, body: `\uFEFF${JSON.stringify(good.body)}` }, 400, -32700],
        ["invalid UTF-8", { ...good, body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, -32700],
        ["a declared body that is too large", { ...good, body: " ".repeat(2001) }, 413, -32600],
        [
          "a chunked body that is too large",
          { ...having({ "transfer-encoding": "chunked" }), body: " ".repeat(2001) },
          413,
          -32600
        ]
      ]
      for (const [what, request, status, code] of refused) {
        const reply = yield* kit.send(port, request)
        expect([what, reply.status, reply.json?.error?.code]).toEqual([what, status, code])
        expect(reply.headers["content-type"]).toBe("application/json")
        if (status === 405) expect(reply.headers["allow"]).toBe("GET, POST, DELETE")
      }
      expect((yield* kit.send(port, good)).status).toBe(200)
      // A body of exactly the maximum size.
      const json = JSON.stringify(good.body)
      expect((yield* kit.send(port, { ...good, body: json + " ".repeat(2000 - json.length) })).status).toBe(200)
    }))

  it.live("responds to a HEAD request with 405 and no body", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const reply = yield* kit.send(port, { method: "HEAD" })
      expect([reply.status, reply.text]).toEqual([405, ""])
    }))

  it.live("reads a body in many pieces that are split within a character", () =>
    Effect.gen(function*() {
      const port = yield* serve((yield* make).server)
      const raw = yield* kit.raw(port)
      const { body, headers } = call("echo", { text: "✓✓✓" })
      const head = { ...headers, host: "127.0.0.1", "transfer-encoding": "chunked", connection: "close" }
      const lines = Object.entries(head).map(([key, value]) => `${key}: ${value}`)
      raw.write(`POST /mcp HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`)
      for (const byte of Buffer.from(JSON.stringify(body))) {
        raw.write(Buffer.concat([Buffer.from("1\r\n"), Buffer.from([byte]), Buffer.from("\r\n")]))
      }
      raw.write("0\r\n\r\n")
      expect((yield* raw.closed).text).toContain("✓✓✓")
    }))

  it.live("lets the page of an allowed origin send and read with CORS, errors included, and no other page", () =>
    Effect.gen(function*() {
      const origin = "https://app.example.com"
      const port = yield* serve((yield* make).server, {
        allowedOrigins: [origin],
        cors: Cors.make()
      })
      const asking = {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,mcp-param-region"
      }
      const preflight = yield* kit.send(port, { method: "OPTIONS", headers: asking })
      expect([preflight.status, preflight.text]).toEqual([204, ""])
      expect(preflight.headers).toMatchObject({
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-max-age": "7200",
        vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
      })
      expect(preflight.headers["access-control-allow-headers"]).toContain("mcp-param-region")
      const readable = { "access-control-allow-origin": origin, vary: "Origin" }
      const reply = yield* kit.send(port, call("echo", { text: "" }, { headers: { origin } }))
      expect(reply.headers).toMatchObject(readable)
      expect(reply.headers["access-control-expose-headers"]).toContain("mcp-session-id")
      const stream = yield* kit.send(port, call("steps", {}, { ...progress, headers: { origin } }))
      expect([stream.status, stream.headers]).toMatchObject([200, readable])
      const refused = yield* kit.send(port, kit.modern("no/such", {}, { headers: { origin } }))
      expect([refused.status, refused.headers]).toMatchObject([404, readable])
      const foreign = yield* kit.send(port, {
        method: "OPTIONS",
        headers: { ...asking, origin: "https://evil.example" }
      })
      expect(foreign.status).toBe(403)
      expect(foreign.headers).not.toHaveProperty("access-control-allow-origin")
      const notPreflight = yield* kit.send(port, { method: "OPTIONS", headers: { origin } })
      expect([notPreflight.status, notPreflight.headers["allow"]]).toEqual([405, "GET, POST, DELETE, OPTIONS"])
    }))

  it.live("ends subscriptions with a result and streams cleanly at shutdown", () =>
    Effect.gen(function*() {
      const { server } = yield* make
      const outer = yield* Effect.scope
      const { idle, listening } = yield* Effect.gen(function*() {
        const port = yield* serve(server, { shutdownTimeout: "60 seconds" })
        const listening = yield* kit.open(
          port,
          kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
        ).pipe(Effect.provideService(Scope.Scope, outer))
        yield* listening.message
        const own = yield* session(port)
        const idle = yield* kit.open(port, { method: "GET", headers: { ...own, accept: "text/event-stream" } }).pipe(
          Effect.provideService(Scope.Scope, outer)
        )
        return { idle, listening }
      }).pipe(Effect.scoped)
      expect((yield* listening.message).id).toBe(1)
      expect(yield* listening.ended).toBe("end")
      // With a request that waits, the test would reach its own timeout before shutdownTimeout.
      expect(yield* idle.ended).toBe("end")
    }))
})
