import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import fastify from "fastify"
import { createServer, type RequestListener, type Server } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { logged } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const whoami = Tool.layer(
  Tool.make("whoami", { description: "Tells who asks." }),
  () =>
    Effect.map(
      Principal.current,
      (principal) => Option.match(principal, { onNone: () => "nobody", onSome: ({ id }) => id })
    )
)
const server = fixtures.server(fixtures.echo, whoami)
const echo = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const who = kit.modern("tools/call", { name: "whoami", arguments: {} })

const text = (reply: kit.Reply): string => reply.json.result.content[0].text

const head = Object.entries(echo.headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
const body = JSON.stringify(echo.body)
const whole = `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${body.length}\r\n\r\n${body}`

/** Listens with a server of the application. */
const host = (listener: RequestListener): Effect.Effect<{ readonly port: number }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly own: Server }>((resume) => {
      const own = createServer(listener).listen(
        0,
        "127.0.0.1",
        () => resume(Effect.succeed({ port: (own.address() as AddressInfo).port, own }))
      )
    }),
    ({ own }) =>
      Effect.sync(() => {
        own.close()
        own.closeAllConnections()
      })
  )

/** Builds the handler for the duration of the test. */
const handler = (options?: NodeHttp.HandlerOptions): Effect.Effect<NodeHttp.Handler, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.orDie(Layer.build(server)),
    (context) => Effect.provideContext(NodeHttp.handler(options), context)
  ) as Effect.Effect<NodeHttp.Handler, never, Scope.Scope>

describe("within an application", () => {
  it.live("serves on a plain node:http server", () =>
    Effect.scoped(Effect.gen(function*() {
      const mcp = yield* handler()
      const at = yield* host((request, response) =>
        request.url === "/health" ? void response.end("ok") : mcp(request, response)
      )
      expect(text(yield* kit.send(at, echo))).toBe("hi")
      expect((yield* kit.send(at, { method: "GET", path: "/health" })).text).toBe("ok")
      expect((yield* kit.send(at, { path: "/x" })).status).toBe(404)
    })))

  it.live("logs an error of the application if its parser has read the body without passing it on", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const mcp = yield* handler()
        const at = yield* host((request, response) => {
          request.resume().once("end", () => mcp(request, response))
        })
        const reply = yield* kit.send(at, echo)
        expect([reply.status, reply.json.error.code]).toEqual([500, -32603])
        expect(lines.join()).toContain("the body of the request was already read: pass it as `body`")
      }))
    ))

  it.live("serves on Fastify, with its own parser", () =>
    Effect.scoped(Effect.gen(function*() {
      const mcp = yield* handler()
      const app = fastify()
      app.all("/mcp", (request, reply) => {
        reply.hijack()
        mcp(request.raw, reply.raw, { body: request.body })
      })
      yield* Effect.promise(async () => app.listen({ port: 0, host: "127.0.0.1" }))
      yield* Effect.addFinalizer(() => Effect.promise(async () => app.close()))
      const at = app.server.address() as AddressInfo
      expect(text(yield* kit.send(at, echo))).toBe("hi")
      const listening = yield* kit.open(at, kit.modern("subscriptions/listen", { notifications: {} }))
      expect((yield* listening.message).method).toBe("notifications/subscriptions/acknowledged")
      listening.leave()
    })))

  it.live("takes the principal from the application: with the request, from its middleware, or by an effect", () =>
    Effect.scoped(Effect.gen(function*() {
      const mcp = yield* handler()
      const given = yield* host((request, response) => mcp(request, response, { principal: { id: "ada" } }))
      expect(text(yield* kit.send(given, who))).toBe("ada")
      expect(text(yield* kit.send(yield* host(mcp), who))).toBe("nobody")
      const left = yield* handler({ principal: (request) => (request as { auth?: { id: string } }).auth })
      const at = yield* host((request, response) => {
        left(Object.assign(request, { auth: { id: request.headers["x-user"] } }), response)
      })
      const as = (user: string): kit.Request => ({ ...who, headers: { ...who.headers, "x-user": user } })
      expect(text(yield* kit.send(at, as("bob")))).toBe("bob")
      const found = yield* handler({
        principal: ({ headers }) => Effect.as(Effect.yieldNow, { id: `${String(headers["x-user"])}!` })
      })
      expect(text(yield* kit.send(yield* host(found), as("eve")))).toBe("eve!")
      // The client cannot set the principal with its message.
      const meta = { _meta: { principal: { id: "root" } } }
      expect(text(yield* kit.send(given, kit.modern("tools/call", { name: "whoami", arguments: {} }, meta)))).toBe(
        "ada"
      )
    })))

  it.live("responds with 500 if the principal cannot be determined, and reports the cause in the log only", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const failing: ReadonlyArray<NodeHttp.HandlerOptions["principal"]> = [
          () => Effect.fail("the secret"),
          () => Effect.die("the secret"),
          () => {
            throw new Error("the secret")
          }
        ]
        for (const principal of failing) {
          const reply = yield* kit.send(yield* host(yield* handler({ principal })), who)
          expect([reply.status, reply.json.error.code]).toEqual([500, -32603])
          expect(reply.text).not.toContain("secret")
        }
        expect(lines.filter((line) => line.includes("the secret"))).toHaveLength(3)
      }))
    ))

  it.live("mounts and closes a server in an application without Effect", () =>
    Effect.scoped(Effect.gen(function*() {
      const mounted = yield* Effect.promise(() => NodeHttp.mount(server))
      const at = yield* host(mounted.handler)
      expect(text(yield* kit.send(at, echo))).toBe("hi")
      const listening = yield* kit.open(at, kit.modern("subscriptions/listen", { notifications: {} }))
      yield* listening.message
      yield* Effect.promise(mounted.close)
      expect((yield* listening.message).result).toMatchObject({ resultType: "complete" })
      expect((yield* kit.send(at, echo)).status).toBe(503)
      const broken = McpServer.layer({ name: "x", version: "1" }, fixtures.stubborn(), fixtures.stubborn())
      expect(yield* Effect.exit(Effect.tryPromise(() => NodeHttp.mount(broken)))).toMatchObject({ _tag: "Failure" })
    })))
})

describe("its own server", () => {
  it.live("listens on 127.0.0.1 and returns its address", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      expect(at.url).toBe(`http://127.0.0.1:${at.port}/mcp`)
      expect(at.host).toBe("127.0.0.1")
      const wild = yield* kit.serve(server, { host: "0.0.0.0", path: "/x" })
      expect(wild.url).toBe(`http://localhost:${wild.port}/x`)
    })))

  it.live("fails with a TransportError and the reason OpenFailed if the port is in use", () =>
    Effect.scoped(Effect.gen(function*() {
      const { port } = yield* kit.serve(server)
      const second = Layer.build(Layer.provide(NodeHttp.layer({ port }), server))
      expect(yield* Effect.flip(second)).toMatchObject({ _tag: "TransportError", reason: { _tag: "OpenFailed" } })
    })))

  it.live("answers the requests of one connection in their order", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const raw = yield* kit.raw(at)
      const numbered = (id: number): string => {
        const numbered = body.replace("\"id\":1", `"id":${id}`)
        return `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${numbered.length}\r\n\r\n${numbered}`
      }
      raw.write(numbered(1) + numbered(2) + numbered(3))
      const all = yield* raw.until("\"id\":3")
      expect([...all.matchAll(/"id":(\d)/g)].map(([, id]) => id)).toEqual(["1", "2", "3"])
    })))

  it.live("refuses bytes that are not HTTP with a JSON-RPC error", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const bad: ReadonlyArray<readonly [string, number]> = [
        ["nonsense\r\n\r\n", 400],
        [`GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(20_000)}\r\n\r\n`, 431],
        [whole.replace(/content-length: \d+/, "content-length: 1\r\ncontent-length: 2"), 400],
        [whole.replace(/content-length: \d+/, "transfer-encoding: chunked\r\ncontent-length: 2"), 400],
        [whole.replace("host: localhost", "host: localhost\r\nx: a\0b"), 400]
      ]
      for (const [bytes, status] of bad) {
        const raw = yield* kit.raw(at)
        raw.write(bytes)
        const { text } = yield* raw.closed
        expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
        expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({
          jsonrpc: "2.0",
          error: { code: -32600 }
        })
      }
    })))

  it.live("responds with 408 to an incomplete head and to a missing body", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.bounded({ headersTimeout: 100 })(kit.serve(server, { limits: { requestTimeout: 200 } }))
      for (const bytes of ["POST /mcp HTTP/1.1\r\nhost: local", whole.slice(0, -10)]) {
        const raw = yield* kit.raw(at)
        raw.write(bytes)
        expect((yield* raw.closed).text).toMatch(/^HTTP\/1.1 408/)
      }
      expect((yield* kit.send(at, echo)).status).toBe(200)
    })))

  it.live("closes an idle connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server, { limits: { keepAliveTimeout: 50 } })
      const raw = yield* kit.raw(at)
      raw.write(whole)
      expect((yield* raw.closed).text).toContain("200 OK")
    })))

  it.live("closes an idle connection at maxConnections, or the new one if all have requests in progress", () =>
    Effect.scoped(Effect.gen(function*() {
      const waiting = fixtures.waiting()
      const at = yield* kit.serve(fixtures.server(fixtures.echo, waiting.layer), { limits: { maxConnections: 1 } })
      const first = yield* kit.raw(at)
      first.write(whole)
      yield* first.until("hi")
      const second = yield* kit.raw(at)
      expect((yield* first.closed).text).toContain("200 OK")
      second.write(whole.replaceAll("echo", "wait"))
      yield* waiting.running(1)
      const third = yield* kit.raw(at)
      expect((yield* third.closed).text).toBe("")
      yield* waiting.go
      expect(yield* second.until("waited")).toContain("200 OK")
    })))

  it.live("refuses upgrades and CONNECT", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const upgrade = yield* kit.raw(at)
      upgrade.write("GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
      expect(yield* upgrade.until("\r\n\r\n")).toMatch(/^HTTP\/1.1 400/)
      const tunnel = yield* kit.raw(at)
      tunnel.write("CONNECT evil.com:443 HTTP/1.1\r\nhost: localhost\r\n\r\n")
      expect((yield* tunnel.closed).text).not.toContain("200")
    })))

  it.live("survives clients that reset their connection after CONNECT, and after bytes that are not HTTP", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      for (
        const text of [
          "CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
          "?\r\n\r\n",
          `${whole}CONNECT a:1 HTTP/1.1\r\n\r\n`
        ]
      ) {
        yield* Effect.promise(() =>
          Promise.all(Array.from({ length: 50 }, () =>
            new Promise<void>((resolve) => {
              const socket = connect(at.port, "127.0.0.1", () => {
                socket.write(text)
                socket.resetAndDestroy()
              })
              socket.once("close", () => resolve())
            })))
        )
      }
      // An error without a listener would have ended the process, and fails the run of the tests.
      expect((yield* kit.send(at, echo)).status).toBe(200)
    })))

  it.live("2025-11-25 · compares mirrored headers if they are sent, and requires them with an option", () =>
    Effect.scoped(Effect.gen(function*() {
      const region = Tool.layer(
        Tool.make("query", {
          description: "Asks.",
          input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) }
        }),
        ({ region }) => Effect.succeed(region)
      )
      const hidden = Catalog.visibleTo((caller) => caller.info?.["name"] === "ada", region)
      const open = (at: { readonly port: number }, name: string) =>
        kit.post(at, {
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } }
        }, { "mcp-method": "initialize" })
      const query = {
        jsonrpc: "2.0",
        id: 2,
        method: "tools/call",
        params: { name: "query", arguments: { region: "eu" } }
      }

      const at = yield* kit.serve(fixtures.server(hidden))
      const wrong = yield* kit.post(at, { ...query, method: "initialize" }, { "mcp-method": "tools/call" })
      expect([wrong.status, wrong.json.error.code, wrong.json.id, at.endpoint.sessions]).toEqual([400, -32600, 2, 0])
      const ada = { "mcp-session-id": (yield* open(at, "ada")).headers["mcp-session-id"] as string }
      expect((yield* kit.post(at, query, ada)).status).toBe(200)
      expect((yield* kit.post(at, query, { ...ada, "mcp-name": "query", "mcp-param-region": "eu" })).status).toBe(200)
      for (const headers of [{ "mcp-name": "other" }, { "mcp-method": "x" }, { "mcp-param-region": "us" }]) {
        const { json, status } = yield* kit.post(at, query, { ...ada, ...headers })
        expect([status, json.error.code, json.id]).toEqual([400, -32600, 2])
      }
      // A caller without access to the tool cannot find out by its headers that it exists.
      const eve = { "mcp-session-id": (yield* open(at, "eve")).headers["mcp-session-id"] as string }
      const unknown = yield* kit.post(at, query, { ...eve, "mcp-param-region": "us" })
      expect(unknown.json ?? unknown.messages[0]).toMatchObject({
        error: { code: -32602, message: "Unknown tool: query" }
      })

      const strict = yield* kit.serve(fixtures.server(region), { requireMcpHeaders: true })
      const bob = { "mcp-session-id": (yield* open(strict, "bob")).headers["mcp-session-id"] as string }
      expect((yield* kit.post(strict, query, bob)).status).toBe(400)
      expect((yield* kit.post(strict, query, { ...bob, "mcp-method": "tools/call", "mcp-name": "query" })).status).toBe(
        400
      )
      const all = { ...bob, "mcp-method": "tools/call", "mcp-name": "query", "mcp-param-region": "eu" }
      expect((yield* kit.post(strict, query, all)).status).toBe(200)
    })))

  it.live("leaves no memory behind after refused requests", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const raw = yield* kit.raw(at)
      const bad = "x".repeat(2_000)
      const requests = [
        whole.replace("localhost", "evil.com"),
        whole.replace("/mcp", `/${bad}`),
        whole.replace("Mcp-Name: echo", `Mcp-Name: ${bad}`),
        whole.replace("\"method\"", "\"metho_\""),
        whole.replaceAll("2026-07-28", "2026-07-29")
      ]
      const round = (count: number) =>
        Effect.gen(function*() {
          for (let at = 0; at < count; at++) raw.write(requests.join("").replaceAll("evil.com", `evil-${at}.com`))
          raw.write(
            whole.replace("\"hi\"", `"round ${count}"`).replace(
              /content-length: \d+/,
              `content-length: ${body.length + `round ${count}`.length - 2}`
            )
          )
          yield* raw.until(`round ${count}`)
          gc!()
          return process.memoryUsage().heapUsed
        })
      const before = yield* round(200)
      const after = yield* round(1_000)
      expect([...at.endpoint.requests]).toEqual([])
      // The test retains the responses: half a kilobyte each.
      expect((after - before) / 5_000).toBeLessThan(1_000)
    })))
})
