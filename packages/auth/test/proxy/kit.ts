/** A protected server behind a proxy, with `DevServer` as the upstream. */
import * as DevServer from "@skein/auth/DevServer"
import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as UpstreamToken from "@skein/auth/UpstreamToken"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { IncomingMessage, ServerResponse } from "node:http"

export const scopes = ["tea:read", "tea:write"]
export const redirectUri = "http://127.0.0.1:4999/callback"
export const key = Redacted.make("a key of the proxy, for its tests only")
export const upstreamSecret = "the secret of the proxy at its upstream"

/** A tool that asks the upstream who the caller is. */
const whoami = (upstream: string) =>
  Tool.layer(Tool.make("whoami"), () =>
    Effect.gen(function*() {
      const principal = Option.getOrThrow(yield* Principal.current)
      const token = yield* UpstreamToken.current
      const headers = { authorization: `Bearer ${Redacted.value(token)}` }
      const user = yield* Effect.promise(() => fetch(`${upstream}/me`, { headers }).then((reply) => reply.json()))
      return JSON.stringify({ principal: principal.id, user, token: Redacted.value(token) })
    }).pipe(UpstreamToken.orSignIn))

export interface Running {
  readonly origin: string
  readonly resource: string
  readonly upstream: DevServer.Service
  readonly store: ProxyStore.ProxyStore["Service"]
  readonly proxy: Proxy.Proxy
  /** The addresses that the server has redirected browsers to. */
  readonly redirects: ReadonlyArray<string>
}

export interface StartOptions {
  readonly proxy?: Partial<Proxy.Options>
  readonly upstream?: DevServer.Options
  readonly store?: ProxyStore.ProxyStore["Service"]
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** Starts one instance at a given origin. */
export const instance = (
  raw: { listener: Listener },
  origin: string,
  upstream: DevServer.Service,
  store: ProxyStore.ProxyStore["Service"],
  options: Partial<Proxy.Options> = {}
) =>
  Effect.gen(function*() {
    const proxy = yield* Effect.provideService(
      Proxy.make({
        resource: `${origin}/mcp`,
        scopes,
        keys: [key],
        serverName: "Tea House",
        maxSignInsPerMinute: 3_000,
        upstream: {
          name: "Accounts",
          issuer: upstream.issuer,
          clientId: "tea-proxy",
          clientSecret: Redacted.make(upstreamSecret),
          scope: "openid offline_access"
        },
        ...options
      }),
      ProxyStore.ProxyStore,
      store
    )
    const Server = McpServer.layer({ name: "tea", version: "1.0.0" }, whoami(upstream.issuer)).pipe(
      Layer.provide(proxy.layer)
    )
    const mounted = yield* Effect.acquireRelease(
      Effect.promise(() => NodeHttp.mount(Server, { protection: proxy.protection })),
      ({ close }) => Effect.promise(() => close())
    )
    raw.listener = mounted.handler
    return proxy
  })

/** A port whose requests go to an instance that starts later. */
export const port = Effect.gen(function*() {
  const raw: { listener: Listener } = { listener: (_request, response) => response.writeHead(503).end() }
  const redirects: Array<string> = []
  const { url } = yield* RawServer.http((request, response) => {
    response.once("finish", () => {
      const location = response.getHeader("location") ??
        /^location: (.*)\r$/im.exec((response as unknown as { readonly _header: string })._header)?.[1]
      if (location !== undefined) redirects.push(String(location))
    })
    raw.listener(request, response)
  })
  return { raw, origin: url.origin, redirects }
})

/** Starts a server, its proxy and the upstream. */
export const start = (options: StartOptions = {}) =>
  Effect.gen(function*() {
    const { origin, raw, redirects } = yield* port
    const upstream = yield* DevServer.make({
      clients: [{
        clientId: "tea-proxy",
        clientSecret: upstreamSecret,
        tokenEndpointAuthMethod: "client_secret_post",
        redirectUris: [`${origin}/upstream/callback`]
      }],
      ...options.upstream
    })
    const store = options.store ?? ProxyStore.makeMemory()
    const proxy = yield* instance(raw, origin, upstream, store, options.proxy)
    return { origin, resource: `${origin}/mcp`, upstream, store, proxy, redirects } satisfies Running
  })

/** Returns the answer of the server about the caller of a token. */
export const call = (resource: string, token: string) =>
  Effect.scoped(
    Effect.gen(function*() {
      const client = yield* Client.make(
        Http.transport({ url: resource, headers: { authorization: `Bearer ${token}` } }),
        { revisions: ["2026-07-28"] }
      )
      const { content } = yield* client.callTool("whoami", {})
      const [first] = content as ReadonlyArray<{ readonly text: string }>
      return JSON.parse(first!.text) as {
        readonly principal: string
        readonly user: { readonly sub?: string }
        readonly token: string
      }
    })
  )

/** The status of a request with a token. */
export const statusOf = (resource: string, token: string | undefined) =>
  Effect.promise(() =>
    fetch(resource, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...token !== undefined && { authorization: `Bearer ${token}` }
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
      })
    }).then(async (reply) => {
      await reply.text()
      return reply.status
    })
  )
