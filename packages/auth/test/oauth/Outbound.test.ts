/** The way out: private addresses are refused when the socket is opened. */
import * as Grant from "@skein/auth/Grant"
import * as NodeOutbound from "@skein/auth/NodeOutbound"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { spawn } from "node:child_process"
import type { lookup } from "node:dns"
import { createServer as createProxy, globalAgent } from "node:http"
import { type AddressInfo, createServer, isIP } from "node:net"
import { join } from "node:path"
import { isPrivate, makeFetch } from "../../src/shared/node/guardedFetch.ts"
import { request, start } from "./scriptedServers.ts"

const clientSecret = Redacted.make("secret")

describe("NodeOutbound", () => {
  it("2026-07-28 · SSRF · knows private and special addresses, mapped ones too", () => {
    const bad = [
      "127.0.0.1",
      "10.1.2.3",
      "172.31.0.1",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "255.255.255.255",
      "::1",
      "::",
      "::ffff:10.0.0.1",
      "::ffff:7f00:1",
      "fd00::1",
      "fe80::1",
      "fec0::1",
      "64:ff9b::a00:1",
      "2002:a00:1::"
    ]
    for (const address of bad) assert.isTrue(isPrivate(address), address)
    for (const address of ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111"]) {
      assert.isFalse(isPrivate(address), address)
    }
  })

  it.effect("refuses a loopback address by default, and sends nothing to it", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const grant = Grant.clientCredentials({ clientId: "job", clientSecret, issuer: servers.issuer })
      const oauth = yield* OAuth.make({ grant, outbound: NodeOutbound.make() })
      const error = yield* Effect.flip(request(oauth, servers.url))
      assert.include(String(error), "refusePrivateAddresses")
      assert.strictEqual(servers.requests.length, 1)
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it("2026-07-28 · SSRF · refuses a name that resolves to private addresses when the socket is opened", async () => {
    const init = { method: "GET", headers: {}, redirect: "manual", signal: AbortSignal.timeout(20_000) } as const
    for (const addresses of [["10.0.0.1"], ["127.0.0.1", "::1"], ["169.254.169.254", "fd00::1"]]) {
      const resolved = addresses.map((address) => ({ address, family: isIP(address) }))
      const resolve = ((_host: string, _options: unknown, done: (error: null, all: typeof resolved) => void) =>
        done(null, resolved)) as unknown as typeof lookup
      for (const url of ["https://tea.example/", "http://tea.example/"]) {
        const error: unknown = await makeFetch(true, resolve)(url, init).catch((error: unknown) =>
          error
        )
        assert.strictEqual((error as Error).name, "AddressRefused", `${url} ${addresses}`)
      }
    }
  })

  const supportsProxies = Number(process.versions.node.split(".")[0]) >= 25 ||
    process.versions.node.localeCompare("24.5.0", undefined, { numeric: true }) >= 0

  it.live.runIf(supportsProxies)(
    "uses the proxy of the environment with Node's switch, and keeps private addresses out",
    () =>
      Effect.gen(function*() {
        const via: Array<string> = []
        const proxy = createProxy((request, response) => {
          via.push(`${request.method} ${request.url}`)
          response.writeHead(204).end()
        })
        proxy.on("connect", ({ url }, socket) => {
          via.push(`CONNECT ${url}`)
          socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")
        })
        yield* Effect.acquireRelease(
          Effect.promise(() => new Promise<void>((done) => void proxy.listen(0, "127.0.0.1", done))),
          () => Effect.sync(() => void proxy.close())
        )
        const { port } = proxy.address() as AddressInfo
        const run = (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
          Effect.promise(async () => {
            const program = join(import.meta.dirname, "outboundProgram.ts")
            const child = spawn(process.execPath, ["--conditions=@skein/source", "--no-warnings", program, ...args], {
              env: { ...env, PATH: process.env["PATH"] },
              stdio: ["ignore", "pipe", "inherit"]
            })
            return (await child.stdout.toArray()).join("").trim().split("\n")
          })
        const address = `http://127.0.0.1:${port}`
        const proxies = { HTTP_PROXY: address, HTTPS_PROXY: address, NO_PROXY: "direct.invalid" }
        const urls = ["http://as.invalid/x", "https://as.invalid/y", "http://direct.invalid/z"]
        assert.deepEqual(yield* run({ ...proxies, NODE_USE_ENV_PROXY: "1" }, "refuse", ...urls), [
          "204",
          "ERR_PROXY_TUNNEL",
          "ENOTFOUND"
        ])
        assert.deepEqual(via.splice(0), ["GET http://as.invalid/x", "CONNECT as.invalid:443"])
        // The proxy could reach the neighbours of this process.
        const near = ["http://localhost/", "http://tea.localhost/", "http://10.0.0.1/", "http://[::1]/"]
        assert.deepEqual(yield* run({ ...proxies, NODE_USE_ENV_PROXY: "1" }, "refuse", ...near), [
          "AddressRefused",
          "AddressRefused",
          "AddressRefused",
          "AddressRefused"
        ])
        assert.deepEqual(yield* run(proxies, "allow", urls[0]!), ["ENOTFOUND"])
        assert.deepEqual(via, [])
      })
  )

  it.effect("2026-07-28 · SSRF · refuses a name that is private here before a proxy could resolve it", () =>
    Effect.gen(function*() {
      const { options } = globalAgent as unknown as { readonly options: { proxyEnv?: object | undefined } }
      const before = options.proxyEnv
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          options.proxyEnv = { HTTP_PROXY: "http://127.0.0.1:1" }
        }),
        () =>
          Effect.sync(() => {
            options.proxyEnv = before
          })
      )
      const resolve = ((_host: string, _options: unknown, done: (error: null, all: unknown) => void) =>
        done(null, [{ address: "10.0.0.1", family: 4 }])) as unknown as typeof lookup
      const init = { method: "GET", headers: {}, redirect: "manual", signal: AbortSignal.timeout(20_000) } as const
      const error = yield* Effect.promise(() =>
        makeFetch(true, resolve)("http://tea.example/", init).catch((error: unknown) =>
          error
        )
      )
      assert.strictEqual((error as Error).name, "AddressRefused")
    }))

  it.live("rejects an answer that no Response can have, and the process goes on", () =>
    Effect.gen(function*() {
      // As Hono's: it has any status until it is read.
      const { Response } = globalThis
      class LazyResponse {
        readonly ok = true
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(globalThis, { Response: LazyResponse })),
        () => Effect.sync(() => Object.assign(globalThis, { Response }))
      )
      const heads = ["HTTP/1.1 999 X\r\ncontent-length: 0", "HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade"]
      const server = createServer((socket) => {
        socket.on("error", () => {})
        socket.once("data", () => void socket.write(`${heads.shift()}\r\n\r\n`))
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((done) => void server.listen(0, "127.0.0.1", done))),
        () => Effect.sync(() => void server.close())
      )
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      const init = { method: "GET", headers: {}, redirect: "manual", signal: AbortSignal.timeout(20_000) } as const
      for (const reason of ["status", "closed"]) {
        const error = yield* Effect.promise(() => makeFetch(false)(url, init).then(() => undefined, String))
        assert.include(error, reason)
      }
    }))

  it.effect("makes requests without the guard, within the same bounds", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const grant = Grant.clientCredentials({ clientId: "job", clientSecret, issuer: servers.issuer })
      const outbound = NodeOutbound.make({ refusePrivateAddresses: false })
      assert.strictEqual(yield* request(yield* OAuth.make({ grant, outbound }), servers.url), 200)
    }).pipe(Effect.provide(TokenStore.layerMemory)))
})
