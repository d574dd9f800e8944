import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const server = fixtures.server(fixtures.echo)
const call = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const with_ = (headers: kit.Request["headers"]): kit.Request => ({ ...call, headers: { ...call.headers, ...headers } })

/** The response to each request. Every refusal is a JSON-RPC error without an id and without internal details. */
const statuses = (
  at: { readonly port: number },
  requests: ReadonlyArray<kit.Request>
): Effect.Effect<ReadonlyArray<number>> =>
  Effect.forEach(requests, (request) =>
    Effect.map(kit.send(at, request), ({ headers, json, status, text }) => {
      if (status >= 400 && request.method !== "HEAD") {
        expect(headers["content-type"]).toBe("application/json")
        expect(json).toMatchObject({ jsonrpc: "2.0", error: { code: expect.any(Number), message: expect.any(String) } })
        expect(Object.keys(json).toSorted()).toEqual(["error", "jsonrpc"])
        expect(text).not.toContain("_tag")
      }
      return status
    }))

/** The status of the response to bytes that are written to a bare connection. */
const bare = (at: { readonly port: number }, text: string): Effect.Effect<string> =>
  Effect.scoped(Effect.flatMap(kit.raw(at), (raw) => {
    raw.write(text)
    return Effect.map(raw.until("\r\n\r\n"), (head) => head.slice(0, 12))
  }))

const body = JSON.stringify(call.body)
const head = Object.entries(call.headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
const written = (line: string, hosts: string): string =>
  `${line}\r\n${hosts}${head}content-length: ${body.length}\r\n\r\n${body}`

describe("Host and Origin", () => {
  it.live("2026-07-28 · Servers MUST validate the Origin header; an invalid one is answered with 403", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const bad = [
        "http://evil.example.com",
        "null",
        "",
        "http://localhost.evil.com",
        "http://evil.com:localhost",
        "http://localhost@evil.com",
        "http://127.0.0.1.nip.io",
        "http://127.evil.com",
        "http://127.0.0.256",
        "http://tea.localhost",
        "http://0.0.0.0",
        "localhost",
        "http://localhost/x"
      ]
      expect(yield* statuses(at, bad.map((origin) => with_({ origin })))).toEqual(bad.map(() => 403))
      const good = [
        "http://localhost",
        "http://LOCALHOST:5173",
        `http://127.0.0.1:${at.port}`,
        "https://[::1]:3000",
        "http://127.0.0.2:3000",
        "http://localhost.:3000",
        "tauri://localhost"
      ]
      expect(yield* statuses(at, good.map((origin) => with_({ origin })))).toEqual(good.map(() => 200))
    })))

  it.live("refuses a page after DNS rebinding by its Host, on every verb and path", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const evil = { host: "evil.example.com" }
      const verbs = ["POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "PROPFIND"]
      for (const path of ["/mcp", "/", "/elsewhere", "/mcp?x=1", "/.well-known/x"]) {
        for (const method of verbs) {
          expect(yield* statuses(at, [{ ...with_(evil), method, path }]), `${method} ${path}`).toEqual([403])
          expect(yield* statuses(at, [{ method, path, headers: { origin: "https://evil.example.com" } }])).toEqual([
            403
          ])
        }
      }
    })))

  it.live("compares the name of Host regardless of its case, its port, and a trailing dot", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const good = [
        "localhost",
        "LocalHost:80",
        "localhost.",
        "localhost.:3000",
        `127.0.0.1:${at.port}`,
        "[::1]",
        "[::1]:3000"
      ]
      expect(yield* statuses(at, good.map((host) => with_({ host })))).toEqual(good.map(() => 200))
      const bad = ["localhost.evil.com", "localhost..", "[::2]", "127.0.0.2"]
      expect(yield* statuses(at, bad.map((host) => with_({ host })))).toEqual(bad.map(() => 403))
      const invalid = [
        "localhost:80@evil.com",
        "evil.com#localhost",
        "localhost:x",
        "[::1",
        "::1",
        "localhost, evil.com",
        "localhost/"
      ]
      expect(yield* statuses(at, invalid.map((host) => with_({ host })))).toEqual(invalid.map(() => 400))
    })))

  it.live("checks repeated and missing Host headers, and the host of an absolute target", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const good = "host: localhost\r\n"
      expect(yield* bare(at, written("POST /mcp HTTP/1.1", good))).toBe("HTTP/1.1 200")
      expect(yield* bare(at, written("POST /mcp HTTP/1.1", `${good}host: evil.com\r\n`))).toBe("HTTP/1.1 400")
      expect(yield* bare(at, written("POST /mcp HTTP/1.1", `host: evil.com\r\n${good}`))).toBe("HTTP/1.1 400")
      expect(yield* bare(at, written("POST /mcp HTTP/1.1", ""))).toBe("HTTP/1.1 400")
      expect(yield* bare(at, written("POST /mcp HTTP/1.0", ""))).toBe("HTTP/1.1 403")
      expect(yield* bare(at, written("POST /mcp HTTP/1.0", good))).toBe("HTTP/1.1 200")
      // RFC 9112, 3.2.2: the host of an absolute target takes precedence over the header.
      expect(yield* bare(at, written("POST http://localhost/mcp HTTP/1.1", "host: evil.com\r\n"))).toBe("HTTP/1.1 200")
      expect(yield* bare(at, written("POST http://evil.com/mcp HTTP/1.1", good))).toBe("HTTP/1.1 403")
      expect(yield* bare(at, written("POST http://localhost@evil.com/mcp HTTP/1.1", good))).toBe("HTTP/1.1 400")
      expect(yield* bare(at, written("OPTIONS * HTTP/1.1", "host: evil.com\r\n"))).toBe("HTTP/1.1 403")
    })))

  it.live("takes the allowed hosts and origins from the options", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server, {
        allowedHosts: ["api.example.com", "internal:8080"],
        allowedOrigins: ["https://App.example.com", "https://other.example.com:443"]
      })
      const hosts = ["API.example.com:443", "internal:8080", "internal", "internal:80", "localhost"]
      expect(yield* statuses(at, hosts.map((host) => with_({ host })))).toEqual([200, 200, 403, 403, 403])
      const host = "internal:8080"
      const origins = [
        "https://app.example.com",
        "https://other.example.com",
        "http://app.example.com",
        "http://localhost"
      ]
      expect(yield* statuses(at, origins.map((origin) => with_({ host, origin })))).toEqual([200, 200, 403, 403])
      const any = yield* kit.serve(server, { allowedHosts: "any", allowedOrigins: "any" })
      expect(yield* statuses(any, [with_({ host: "evil.com", origin: "https://evil.com" }), with_({ origin: "null" })]))
        .toEqual([200, 200])
    })))
})

describe("paths, verbs and media types", () => {
  it.live("responds with 404 to an unknown path, and with 405 and Allow to a wrong verb", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const paths = ["/", "/mcp/", "/MCP", "/mcpx", "//mcp", "/mcp/../mcp", "/%6dcp", "/x?/mcp"]
      expect(yield* statuses(at, paths.map((path) => ({ ...call, path })))).toEqual(paths.map(() => 404))
      expect(yield* statuses(at, [{ ...call, path: "/mcp?key=1" }])).toEqual([200])
      for (const method of ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"]) {
        const reply = yield* kit.send(at, { method })
        expect([method, reply.status, reply.headers.allow]).toEqual([method, 405, "GET, POST, DELETE"])
        if (method === "HEAD") expect(reply.text).toBe("")
      }
      const elsewhere = yield* kit.serve(server, { path: "/api/v1/mcp" })
      const messages = yield* Effect.forEach(
        [{ path: "/" }, { path: "/health" }, { path: "/api/v1/mcp", headers: { accept: "text/html,*/*;q=0.8" } }],
        (request) => kit.send(elsewhere, { method: "GET", ...request })
      )
      expect(messages.map(({ json, status }) => [status, json.error.message])).toEqual([
        [404, "Not Found: there is no such endpoint here: MCP clients connect to /api/v1/mcp"],
        [
          404,
          expect.stringContaining("probes are answered at /livez and /readyz, with the option health (SKEIN_HEALTH)")
        ],
        [400, "Bad Request: this is an endpoint for MCP clients, which a browser cannot open"]
      ])
      const stateless = yield* kit.serve(server, { stateless: true })
      const opened = yield* kit.send(stateless, { method: "GET", headers: { accept: "text/html,*/*;q=0.8" } })
      expect([opened.status, opened.headers.allow, opened.json.error.message]).toEqual([
        405,
        "POST",
        "Method Not Allowed: this is an endpoint for MCP clients, which a browser cannot open"
      ])
      expect(yield* statuses(elsewhere, [{ ...call, path: "/api/v1/mcp" }, call])).toEqual([200, 404])
      const anywhere = yield* kit.serve(server, { path: "*" })
      expect(yield* statuses(anywhere, [{ ...call, path: "/x" }, { ...call, path: "/" }])).toEqual([200, 200])
    })))

  it.live("refuses text/plain with 415, because a web page can send it without a preflight", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const bad = [
        undefined,
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "*/*",
        ""
      ]
      expect(yield* statuses(at, bad.map((type) => with_({ "content-type": type })))).toEqual(bad.map(() => 415))
      const good = [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"utf-8\""
      ]
      expect(yield* statuses(at, good.map((type) => with_({ "content-type": type })))).toEqual(good.map(() => 200))
      expect(yield* statuses(at, [with_({ "content-encoding": "gzip" }), with_({ "content-encoding": "identity" })]))
        .toEqual([415, 200])
    })))

  it.live("2026-07-28 · The client MUST include an Accept header, listing both application/json and text/event-stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const good = [
        undefined,
        "*/*",
        "text/event-stream, application/json",
        "application/json;q=0.9,text/event-stream;q=0.1",
        "APPLICATION/JSON, Text/Event-Stream",
        "application/*, text/*",
        "text/html, */*;q=0.1",
        "application/json, text/event-stream;charset=utf-8"
      ]
      expect(yield* statuses(at, good.map((accept) => with_({ accept })))).toEqual(good.map(() => 200))
      const bad = [
        "application/json",
        "text/event-stream",
        "text/html",
        "application/json, text/event-stream;q=0",
        "*/*, application/json;q=0.0",
        "application/jsonx, text/event-stream",
        ""
      ]
      expect(yield* statuses(at, bad.map((accept) => with_({ accept })))).toEqual(bad.map(() => 406))
      const get = (accept: string): kit.Request => ({ method: "GET", headers: { accept, "mcp-session-id": "none" } })
      expect(yield* statuses(at, [get("application/json"), get("text/event-stream"), get("*/*")])).toEqual([
        406,
        404,
        404
      ])
    })))
})

describe("bodies", () => {
  it.live("refuses malformed JSON with 400 and -32700", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const deep = "[".repeat(100_000)
      const texts = [
        "",
        " ",
        "{",
        "nonsense",
        "{\"jsonrpc\":\"2.0\",}",
        deep,
        Buffer.from([0x22, 0xff, 0xfe, 0x22]),
        "\ufeff{}"
      ]
      for (const text of texts) {
        const { json, status } = yield* kit.send(at, { ...call, body: text })
        expect([status, json.error.code]).toEqual([400, -32700])
        expect(json).not.toHaveProperty("id")
      }
    })))

  it.live("refuses JSON that is not a message with 400 and -32600, and the id if it can be read", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const bodies: ReadonlyArray<readonly [unknown, unknown]> = [
        [null, undefined],
        [1, undefined],
        ["\"text\"", undefined],
        [[], undefined],
        [{}, undefined],
        [{ jsonrpc: "1.0", id: 7, method: "ping" }, 7],
        [{ jsonrpc: "2.0", id: "a", method: 1 }, "a"],
        [{ jsonrpc: "2.0", id: null, method: "ping" }, undefined],
        [{ jsonrpc: "2.0", id: 1.5, method: "ping" }, undefined],
        [{ jsonrpc: "2.0", id: 1, method: "ping", params: [] }, 1],
        [`{"__proto__":{"jsonrpc":"2.0","id":1,"method":"ping"}}`, undefined]
      ]
      for (const [body, id] of bodies) {
        const { json, status } = yield* kit.send(at, {
          ...call,
          body: typeof body === "string" ? body : JSON.stringify(body)
        })
        expect([status, json.error.code, json.id]).toEqual([400, -32600, id])
      }
    })))

  it.live("uses the same one of duplicate members for the headers and for the call", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const twice = body.replace("\"name\":\"echo\"", "\"name\":\"other\",\"name\":\"echo\"")
      expect((yield* kit.send(at, { ...call, body: twice })).json.result.content).toEqual([{
        type: "text",
        text: "hi"
      }])
      const hidden = body.replace("\"name\":\"echo\"", "\"name\":\"echo\",\"name\":\"other\"")
      expect((yield* kit.send(at, { ...call, body: hidden })).json.error.code).toBe(-32020)
      const proto = body.replace(
        "\"arguments\":{",
        "\"__proto__\":{\"name\":\"x\"},\"arguments\":{\"__proto__\":{\"text\":\"y\"},"
      )
      expect((yield* kit.send(at, { ...call, body: proto })).json.result.content).toEqual([{
        type: "text",
        text: "hi"
      }])
    })))

  it.live("counts a body while it is read, responds with 413 and closes the connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server, { limits: { maxMessageBytes: 1_000 } })
      const padded = (size: number): string => body.padEnd(size, " ")
      expect(yield* statuses(at, [{ ...call, body: padded(1_000) }])).toEqual([200])
      const reply = yield* kit.send(at, { ...call, body: padded(1_001) })
      expect([reply.status, reply.headers.connection, reply.json.error.code]).toEqual([413, "close", -32600])
      // A chunked body does not declare its size.
      const raw = yield* kit.raw(at)
      raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}transfer-encoding: chunked\r\n\r\n`)
      raw.write(`200\r\n${"x".repeat(512)}\r\n`)
      raw.write(`200\r\n${"x".repeat(512)}\r\n`)
      expect(yield* raw.until("\r\n\r\n")).toContain("HTTP/1.1 413")
      raw.write("0\r\n\r\n")
      expect((yield* raw.closed).reset).toBe(false)
    })))

  it.live("disconnects a refused upload of gigabytes, for any reason of the refusal", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server, { limits: { maxMessageBytes: 1_000 } })
      for (const line of ["POST /mcp HTTP/1.1", "POST /elsewhere HTTP/1.1", "PUT /mcp HTTP/1.1"]) {
        const raw = yield* kit.raw(at)
        raw.write(`${line}\r\nhost: localhost\r\n${head}content-length: 4000000000\r\n\r\n`)
        const chunk = Buffer.alloc(64 * 1024, 32)
        let written = 0
        const push = (): void => {
          while (!raw.socket.destroyed && written < 64 * 1024 * 1024) {
            written += chunk.length
            if (!raw.socket.write(chunk)) return void raw.socket.once("drain", push)
          }
        }
        push()
        expect((yield* raw.closed).text).toMatch(/^HTTP\/1.1 4/)
        expect(written).toBeLessThan(32 * 1024 * 1024)
      }
    })))

  it.live("answers `Expect: 100-continue` before the client sends its body", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const lines = (line: string, length: number): string =>
        `${line}\r\nhost: localhost\r\n${head}expect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`
      const good = yield* kit.raw(at)
      good.write(lines("POST /mcp HTTP/1.1", body.length))
      expect(yield* good.until("\r\n\r\n")).toMatch(/^HTTP\/1.1 100/)
      good.write(body)
      expect(yield* good.until("hi")).toContain("HTTP/1.1 200")
      for (
        const [line, length, status] of [["POST /x HTTP/1.1", 10, 404], ["POST /mcp HTTP/1.1", 5_000_000, 413]] as const
      ) {
        const bad = yield* kit.raw(at)
        bad.write(lines(line, length))
        expect((yield* bad.closed).text).toMatch(new RegExp(`^HTTP/1.1 ${status}`))
      }
    })))

  it.live("releases an aborted upload", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const raw = yield* kit.raw(at)
      raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: 1000\r\n\r\n{"jsonrpc"`)
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      raw.socket.resetAndDestroy()
      expect(yield* statuses(at, [call])).toEqual([200])
    })))
})
