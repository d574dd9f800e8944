/** The HTTP transport for Node, used by a client. */
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import * as Https from "node:https"
import type { AddressInfo } from "node:net"
import * as Client from "../../src/Client.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { patient } from "./support/patient.ts"
import { certificate, privateKey } from "./support/certificate.ts"
import { type Json, until } from "./support/connection.ts"
import { discovered } from "./support/servers.ts"
import { fieldsOf } from "../support/fields.ts"

/** Responds to each tool call with the name of the tool. */
const answer = ({ id, method, params }: Json): string => {
  const result = method === "server/discover"
    ? discovered()
    : { resultType: "complete", content: [{ type: "text", text: params.name }] }
  return JSON.stringify({ jsonrpc: "2.0", id, result })
}

const server = RawServer.http(async (request, response) => {
  const text = await RawServer.readBody(request)
  response.writeHead(200, { "Content-Type": "application/json" }).end(answer(JSON.parse(text)))
})

/** The server over TLS. Returns its port. */
const tlsServer = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const tls = Https.createServer({ cert: certificate, key: privateKey }, async (request, response) => {
        const text = await RawServer.readBody(request)
        response.writeHead(200, { "Content-Type": "application/json" }).end(answer(JSON.parse(text)))
      })
      await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve))
      return tls
    }),
    (tls) => Effect.sync(() => tls.close().closeAllConnections())
  ),
  (tls) => (tls.address() as AddressInfo).port
)

const call = (client: Client.Client, name: string) =>
  Effect.map(client.callTool(name), ({ content }) => (content[0] as { readonly text: string }).text)

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

describe("NodeHttp.transport", () => {
  it.live("opens at most 256 connections, and each call gets its own response", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* server
      const client = yield* Client.make(NodeHttp.transport({ url }))
      const names = Array.from({ length: 600 }, (_, i) => `tool-${i}`)
      const answers = yield* Effect.forEach(names, (name) => call(client, name), { concurrency: "unbounded" })
      assert.deepStrictEqual(answers, names)
      assert.strictEqual(sockets.length, 256)
    }))

  it.live("leaves no socket open after its clients close", () =>
    Effect.gen(function*() {
      const before = sockets()
      const raw = yield* server
      const use = Effect.scoped(Effect.flatMap(Client.make(patient(raw.url)), (client) => call(client, "once")))
      yield* Effect.forEach(Array(200), () => use, { concurrency: 8, discard: true })
      assert.strictEqual(raw.sockets.length, 200)
      yield* raw.closed
      yield* until(() => sockets() <= before)
    }))

  describe("with the proxy of the environment (NODE_USE_ENV_PROXY)", () => {
    const http = process.getBuiltinModule("node:http")
    const https = process.getBuiltinModule("node:https")

    /** Gives the global agent of Node a proxy, as the environment does when Node starts. */
    const proxied = <Agent extends typeof http | typeof https>(module: Agent, proxyEnv: Record<string, string>) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const { globalAgent } = module
          ;(module as typeof http).globalAgent = new module.Agent({ proxyEnv })
          return globalAgent
        }),
        (globalAgent) => Effect.sync(() => void ((module as typeof http).globalAgent = globalAgent))
      )

    it.live("sends requests to it, with its credentials", () =>
      Effect.gen(function*() {
        const targets: Array<unknown> = []
        const { url } = yield* RawServer.http(async (request, response) => {
          targets.push([request.url, request.headers["host"], request.headers["proxy-authorization"]])
          const text = await RawServer.readBody(request)
          response.writeHead(200, { "Content-Type": "application/json" }).end(answer(JSON.parse(text)))
        })
        yield* proxied(http, { HTTP_PROXY: `http://a:b@${url.host}` })
        const client = yield* Client.make(NodeHttp.transport({ url: "http://mcp.example.invalid:81/mcp?a=1" }))
        assert.strictEqual(yield* call(client, "add"), "add")
        const target = ["http://mcp.example.invalid:81/mcp?a=1", "mcp.example.invalid:81", `Basic ${btoa("a:b")}`]
        assert.deepStrictEqual(targets, [target, target])
      }))

    it.live("sends requests to a host of NO_PROXY directly", () =>
      Effect.gen(function*() {
        const { url } = yield* server
        yield* proxied(http, { HTTP_PROXY: "http://127.0.0.1:1", NO_PROXY: "127.0.0.1" })
        const client = yield* Client.make(NodeHttp.transport({ url }))
        assert.strictEqual(yield* call(client, "add"), "add")
      }))

    it.live("opens a tunnel for https, and trusts the certificates that Node trusts", () =>
      Effect.gen(function*() {
        const port = yield* tlsServer
        const { connect } = process.getBuiltinModule("node:net")
        const { getCACertificates, setDefaultCACertificates } = process.getBuiltinModule("node:tls")
        const tunnels: Array<string | undefined> = []
        const proxy = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const proxy = http.createServer().on("connect", (request, socket) => {
              tunnels.push(request.url)
              const inner = connect(port, "127.0.0.1", () => {
                socket.write("HTTP/1.1 200 OK\r\n\r\n")
                inner.pipe(socket).pipe(inner)
              })
              inner.on("error", () => socket.destroy())
              socket.on("error", () => inner.destroy())
            })
            await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
            return proxy
          }),
          (proxy) => Effect.sync(() => proxy.close().closeAllConnections())
        )
        yield* proxied(https, { HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            const before = getCACertificates("default")
            setDefaultCACertificates([...before, certificate])
            return before
          }),
          (before) => Effect.sync(() => setDefaultCACertificates(before))
        )
        const client = yield* Client.make(NodeHttp.transport({ url: "https://localhost/mcp" }))
        assert.strictEqual(yield* call(client, "add"), "add")
        assert.strictEqual(tunnels[0], "localhost:443")
      }))
  })

  it.live("agent: connects with TLS if the agent trusts the server's certificate", () =>
    Effect.gen(function*() {
      const port = yield* tlsServer
      const url = `https://localhost:${port}/mcp`
      const agent = new Https.Agent({
        ca: certificate,
        lookup: (_, __, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }])
      })
      const client = yield* Client.make(NodeHttp.transport({ url, agent }))
      assert.strictEqual(yield* call(client, "safe"), "safe")
      const error = yield* Effect.flip(Client.make(NodeHttp.transport({ url: `https://127.0.0.1:${port}/mcp` })))
      assert.deepInclude(fieldsOf(error), { reason: "ConnectionFailed", undelivered: true })
      assert.match(error.message, /certificate/)
    }))
})
