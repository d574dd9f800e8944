/** Protected servers of Skein for the clients of other authors: with `DevServer`, and behind a `Proxy`. */
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as UpstreamToken from "@skein/auth/UpstreamToken"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { port } from "../packages/auth/test/proxy/kit.ts"

/** A tool with the id of the caller. */
const whoami = Tool.layer(
  Tool.make("whoami"),
  () => Effect.map(Principal.current, (found) => Option.getOrThrow(found).id)
)

/** A tool whose calls need one more scope. */
const brew = Scopes.required(["mcp:write"], Tool.layer(Tool.make("brew"), () => Effect.succeed("tea")))

// Clients accept the metadata of a resource for the paths below it.
const legacySse = LegacySse.make({ path: "/mcp/sse", messages: "/mcp/messages" })

export interface ProtectedServer {
  /** The authorization server, or the upstream of the proxy. */
  readonly dev: DevServer.Service
  /** The URL of the endpoint, which is the audience of its tokens. */
  readonly resource: string
  /** The URL of the server for HTTP+SSE. */
  readonly sse: string
  /** The requests to the endpoint, in order, with the scheme of their `Authorization` header. */
  readonly requests: ReadonlyArray<{ readonly verb: string; readonly scheme: string; readonly status: number }>
}

type Port = Effect.Success<typeof port>

const serve = <E>(
  { origin, raw }: Port,
  dev: DevServer.Service,
  server: Layer.Layer<McpServer.McpServer, E>,
  protection: Http.Options["protection"]
) =>
  Effect.gen(function*() {
    const { handler } = yield* Effect.acquireRelease(
      Effect.promise(() => NodeHttp.mount(server, { protection, legacySse })),
      ({ close }) => Effect.promise(() => close())
    )
    const requests: Array<ProtectedServer["requests"][number]> = []
    raw.listener = (request, response) => {
      const scheme = request.headers.authorization?.split(" ")[0] ?? ""
      response.once("finish", () => {
        if (request.url === "/mcp") requests.push({ verb: request.method!, scheme, status: response.statusCode })
      })
      handler(request, response)
    }
    return { dev, resource: `${origin}/mcp`, sse: `${origin}/mcp/sse`, requests } satisfies ProtectedServer
  })

export interface StartOptions {
  readonly dev?: DevServer.Options
  readonly protection?: Partial<Protect.Options>
  readonly verifier?: Partial<TokenVerifier.JwtOptions>
  /** Whether clients that only know 2025-03-26 can sign in: they name no resource, and read no metadata of it. */
  readonly knowsOldClients?: boolean
}

/** Starts a server that requires `mcp:read`, and `mcp:write` for the tool `brew`, and its authorization server. */
export const start = ({ dev: devOptions, knowsOldClients = false, protection, verifier }: StartOptions = {}) =>
  Effect.gen(function*() {
    const open = yield* port
    const resource = `${open.origin}/mcp`
    const dev = yield* DevServer.make({ ...devOptions, ...knowsOldClients && { resources: [resource] } })
    const protect = Protect.make({
      resource,
      authorizationServerMetadata: knowsOldClients,
      verify: TokenVerifier.jwt({ issuer: dev.issuer, ...verifier }),
      scopes: ["mcp:read"],
      ...protection
    })
    const Server = McpServer.layer({ name: "tea", version: "1.0.0" }, whoami, brew)
    return yield* serve(open, dev, Server, protect)
  })

/** A tool with the name of the caller at the upstream. */
const upstreamName = (issuer: string) =>
  Tool.layer(Tool.make("upstream"), () =>
    Effect.gen(function*() {
      const token = yield* Effect.orDie(UpstreamToken.current)
      const headers = { authorization: `Bearer ${Redacted.value(token)}` }
      const user = yield* Effect.promise(() => fetch(`${issuer}/me`, { headers }).then((reply) => reply.json()))
      return String((user as { readonly sub: string }).sub)
    }))

/** Starts a server behind a proxy, whose upstream registers no clients. */
export const startProxied = (proxyOptions: Partial<Proxy.Options> = {}) =>
  Effect.gen(function*() {
    const open = yield* port
    const client = { clientId: "tea-proxy", clientSecret: "the secret of the proxy" }
    const dev = yield* DevServer.make({
      dynamicRegistration: false,
      clientIdMetadataDocuments: false,
      clients: [{ ...client, redirectUris: [`${open.origin}/upstream/callback`] }]
    })
    const proxy = yield* Effect.provide(
      Proxy.make({
        resource: `${open.origin}/mcp`,
        scopes: ["mcp:read", "mcp:write"],
        scopesSupported: ["mcp:read"],
        keys: [Redacted.make("a key of the proxy, for its tests only")],
        serverName: "Tea House",
        upstream: {
          name: "Accounts",
          issuer: dev.issuer,
          clientId: client.clientId,
          clientSecret: Redacted.make(client.clientSecret),
          scope: "openid offline_access"
        },
        ...proxyOptions
      }),
      ProxyStore.layerMemory
    )
    const Server = McpServer.layer({ name: "tea", version: "1.0.0" }, whoami, brew, upstreamName(dev.issuer)).pipe(
      Layer.provide(proxy.layer)
    )
    return yield* serve(open, dev, Server, proxy.protection)
  })
