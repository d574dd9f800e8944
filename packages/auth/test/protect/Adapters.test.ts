/** A protection behind each adapter, and what its traces have of a caller. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { describe, expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import * as Http from "@skein/server/Http"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { bearer, challengeOf, issuer, metadata, posting, protect, type Reply, resource, send, Tokens } from "./kit.ts"

const menu = Tool.layer(Tool.make("menu"), () => Effect.succeed("tea"))
const Server = McpServer.layer({ name: "tea", version: "1.0.0" }, menu)

/** Sends one request. */
type Send = (
  path: string,
  init: { readonly method: string; readonly headers: object; readonly body?: unknown }
) => Effect.Effect<Reply>

const over = ({ port }: { readonly port: number }): Send => (path, { body, headers, method }) =>
  send({ port }, { path, method, headers: headers as Record<string, string>, body })

const adapters: ReadonlyArray<readonly [string, (tokens: Tokens) => Effect.Effect<Send, never, Scope.Scope>]> = [
  ["NodeHttp", (tokens) =>
    Effect.map(
      Effect.orDie(Layer.build(Layer.provide(NodeHttp.layer({ port: 0, protection: protect(tokens) }), Server))),
      (context) => over(Context.get(context, NodeHttp.Server))
    )],
  ["a handler of node:http, mounted on Http.paths", (tokens) =>
    Effect.gen(function*() {
      const options = { protection: yield* protect(tokens) }
      const { close, handler } = yield* Effect.promise(() => NodeHttp.mount(Server, options))
      const paths = Http.paths(options)
      const host = createServer((request, response) =>
        paths.includes(request.url!.split("?")[0]!) ? handler(request, response) : void response.writeHead(404).end()
      )
      yield* Effect.promise(() => new Promise<void>((done) => void host.listen(0, "127.0.0.1", done)))
      yield* Effect.addFinalizer(() => Effect.promise(() => (host.close(), host.closeAllConnections(), close())))
      return over(host.address() as AddressInfo)
    })],
  ["WebHttp", (tokens) =>
    Effect.gen(function*() {
      const { close, handler } = WebHttp.mount(Server, { protection: protect(tokens) })
      yield* Effect.addFinalizer(() => Effect.promise(close))
      return (path, { body, headers, method }) =>
        Effect.promise(async () => {
          const init = {
            method,
            headers: headers as Record<string, string>,
            body: body === undefined ? null : JSON.stringify(body)
          }
          const response = await handler(new Request(`http://localhost${path}`, init))
          const text = await response.text()
          const json = text.startsWith("{") ? JSON.parse(text) : undefined
          return { status: response.status, headers: Object.fromEntries(response.headers), text, json }
        })
    })],
  ["HttpRoutes", (tokens) => {
    const routes = Layer.provide(HttpRoutes.layer({ protection: protect(tokens) }), Server)
    const served = HttpRoutes.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
    )
    return Effect.map(Effect.orDie(Layer.build(served)), (context) => {
      const { address } = Context.get(context, HttpServer.HttpServer)
      return over(address as { readonly port: number })
    })
  }]
]

const call = (token: string | undefined) => ({
  method: "POST",
  headers: {
    ...posting,
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "menu",
    ...(token === undefined ? {} : bearer(token))
  },
  body: {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "menu",
      arguments: {},
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
      }
    }
  }
})

describe.each(adapters)("%s", (_name, start) => {
  it.live("publishes the metadata, refuses requests without a token, and serves those with one", () =>
    Effect.scoped(Effect.gen(function*() {
      const tokens = new Tokens()
      tokens.add("ada")
      const request = yield* start(tokens)
      for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
        const page = yield* request(path, { method: "GET", headers: { origin: "https://elsewhere.example" } })
        expect([page.status, page.json.resource]).toEqual([200, resource])
      }
      const refused = yield* request("/mcp", call(undefined))
      expect([refused.status, challengeOf(refused)["resource_metadata"]]).toEqual([401, metadata])
      const page = "/.well-known/oauth-protected-resource"
      const others: ReadonlyArray<readonly [path: string, method: string, status: number]> = [
        [`${page}/mcp?a=b`, "GET", 200],
        [`${page}/mcp`, "HEAD", 200],
        [`${page}/mcp`, "OPTIONS", 204],
        [`${page}/mcp`, "POST", 405],
        [`${page}/mcp/`, "GET", 404],
        [`${page}/`, "GET", 404],
        [`/${page}/mcp`, "GET", 404],
        [`${page}/other`, "GET", 404],
        [`${page}/%6dcp`, "GET", 404]
      ]
      for (const [path, method, status] of others) {
        const reply = yield* request(path, { method, headers: {} })
        expect([path, method, reply.status]).toEqual([path, method, status])
        if (method === "HEAD") expect(reply.headers["content-type"]).toBe("application/json")
      }
      // No other path is the endpoint, also where a router takes it for that of a page.
      expect((yield* request(`${page}/mcp/`, call("ada"))).status).toBe(404)
      const accepted = yield* request("/mcp", call("ada"))
      expect([accepted.status, accepted.json.result.content[0].text]).toEqual([200, "tea"])
    })))
})

it.live("spans and audit entries have the id of the principal at most, and no token or claim", () =>
  Effect.scoped(Effect.gen(function*() {
    const seen: Array<unknown> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        seen.push(span)
        return span
      }
    })
    const tokens = new Tokens()
    tokens.add("planted-token", { claims: { email: "planted-claim" }, scopes: ["planted-scope"] })
    const audited: Array<AuditLog.Entry> = []
    const server = McpServer.layer(
      { name: "tea", version: "1.0.0" },
      Telemetry.layer(),
      AuditLog.layer({ sink: (entry) => Effect.sync(() => void audited.push(entry)) }),
      menu
    )
    const listening = NodeHttp.layer({
      port: 0,
      protection: protect(tokens, {
        principal: (token) => ({ id: `tea ${token.subject}`, email: token.claims["email"] })
      })
    })
    const context = yield* Effect.orDie(
      Layer.build(Layer.provide(listening, Layer.provide(server, Layer.succeed(Tracer.Tracer, tracer))))
    )
    const request = over(Context.get(context, NodeHttp.Server))
    expect((yield* request("/mcp", call("planted-token"))).status).toBe(200)
    expect(seen.length).toBeGreaterThan(0)
    expect(audited.map(({ principal }) => principal)).toEqual(["tea ada"])
    const attributes = (seen as ReadonlyArray<Tracer.NativeSpan>).map((span) => [
      span.name,
      [...span.attributes],
      span.events
    ])
    const text = JSON.stringify([attributes, audited], (_, value) => typeof value === "bigint" ? String(value) : value)
    expect(text).not.toContain("planted")
    expect(text).not.toContain(issuer)
  })))
