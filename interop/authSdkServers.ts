/** Protected servers of the official SDKs, for Skein's client: with an authorization server in memory, and others. */
import { getRequestListener } from "@hono/node-server"
import * as V2 from "@modelcontextprotocol/server"
import { InvalidGrantError, InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js"
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js"
import type { AuthorizationParams, OAuthServerProvider } from "@modelcontextprotocol/sdk/server/auth/provider.js"
import { ProxyOAuthServerProvider } from "@modelcontextprotocol/sdk/server/auth/providers/proxyProvider.js"
import { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } from "@modelcontextprotocol/sdk/server/auth/router.js"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { OAuthClientInformationFull, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as DevServer from "@skein/auth/DevServer"
import * as Effect from "effect/Effect"
import express from "express"
import * as jose from "jose"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { port } from "../packages/auth/test/proxy/kit.ts"

const scopes = ["mcp:read", "mcp:write"]

interface Message {
  readonly params?: { readonly name?: string }
}
type Handler = (
  request: IncomingMessage & { readonly body?: Message },
  response: ServerResponse,
  next: () => void
) => void

/** The parts of Express that this module uses, because `@types/express` is not installed. */
interface App extends RequestListener {
  readonly use: (handler: Handler) => void
  readonly post: (path: string, ...handlers: ReadonlyArray<Handler>) => void
}

/** A code, an access token or a refresh token of `MemoryAuthorization`. */
interface Grant {
  readonly clientId: string
  readonly scopes: ReadonlyArray<string>
  readonly resource: URL | undefined
  readonly challenge: string
  readonly expiresAt: number
  /** The sign-in that it belongs to. */
  readonly id: string
}

/**
 * An `OAuthServerProvider` of SDK v1 that stores everything in memory, agrees for the person, and rotates refresh
 * tokens: the second use of one ends its sign-in.
 */
export class MemoryAuthorization implements OAuthServerProvider {
  readonly clients = new Map<string, OAuthClientInformationFull>()
  readonly clientsStore = {
    getClient: (id: string) => this.clients.get(id),
    registerClient: (client: object) => {
      const full = client as OAuthClientInformationFull
      this.clients.set(full.client_id, full)
      return full
    }
  }
  readonly counts = { authorizations: 0, refreshes: 0, refreshReuses: 0, revocations: 0 }
  readonly #codes = new Map<string, Grant>()
  readonly #access = new Map<string, Grant>()
  readonly #refresh = new Map<string, Grant>()
  readonly #used = new Set<string>()
  readonly #ttlSeconds: number

  constructor(ttlSeconds = 600) {
    this.#ttlSeconds = ttlSeconds
  }

  async authorize(client: OAuthClientInformationFull, params: AuthorizationParams, response: {
    readonly redirect: (url: string) => void
  }): Promise<void> {
    const code = randomUUID()
    this.counts.authorizations++
    this.#codes.set(code, {
      clientId: client.client_id,
      scopes: params.scopes ?? [],
      resource: params.resource,
      challenge: params.codeChallenge,
      expiresAt: 0,
      id: randomUUID()
    })
    const url = new URL(params.redirectUri)
    url.searchParams.set("code", code)
    if (params.state !== undefined) url.searchParams.set("state", params.state)
    response.redirect(url.href)
  }

  async challengeForAuthorizationCode(_client: OAuthClientInformationFull, code: string): Promise<string> {
    const found = this.#codes.get(code)
    if (found === undefined) throw new InvalidGrantError("the code is unknown")
    return found.challenge
  }

  #issue(grant: Grant): OAuthTokens {
    const [access, refresh] = [randomUUID(), randomUUID()]
    this.#access.set(access, { ...grant, expiresAt: Math.floor(Date.now() / 1000) + this.#ttlSeconds })
    this.#refresh.set(refresh, grant)
    return {
      access_token: access,
      refresh_token: refresh,
      token_type: "bearer",
      expires_in: this.#ttlSeconds,
      scope: grant.scopes.join(" ")
    }
  }

  async exchangeAuthorizationCode(client: OAuthClientInformationFull, code: string): Promise<OAuthTokens> {
    const grant = this.#codes.get(code)
    this.#codes.delete(code)
    if (grant?.clientId !== client.client_id) throw new InvalidGrantError("the code is of another client")
    return this.#issue(grant)
  }

  async exchangeRefreshToken(client: OAuthClientInformationFull, token: string): Promise<OAuthTokens> {
    const grant = this.#refresh.get(token)
    if (this.#used.has(token)) this.counts.refreshReuses++
    if (grant?.clientId !== client.client_id) throw new InvalidGrantError("the refresh token is unknown")
    this.#refresh.delete(token)
    this.#used.add(token)
    this.counts.refreshes++
    return this.#issue(grant)
  }

  async verifyAccessToken(token: string) {
    const grant = this.#access.get(token)
    if (grant === undefined) throw new InvalidTokenError("the token is unknown")
    const { clientId, expiresAt, resource, scopes } = grant
    return { token, clientId, scopes: [...scopes], expiresAt, ...resource !== undefined && { resource } }
  }

  async revokeToken(_client: OAuthClientInformationFull, { token }: { readonly token: string }): Promise<void> {
    const grant = this.#refresh.get(token) ?? this.#access.get(token)
    if (grant === undefined) return
    this.counts.revocations++
    this.revoke(grant.id)
  }

  /** Ends a sign-in, or all of them. */
  revoke(id?: string): void {
    for (const tokens of [this.#access, this.#refresh]) {
      for (const [token, grant] of tokens) if (id === undefined || grant.id === id) tokens.delete(token)
    }
  }
}

/** The tools of all servers of this module. `brew` needs `mcp:write`. */
const tools = {
  whoami: (clientId: string | undefined) => ({ content: [{ type: "text" as const, text: clientId ?? "nobody" }] }),
  brew: () => ({ content: [{ type: "text" as const, text: "tea" }] })
}

/** Answers one request with a new server, without a session. */
const serve = async (request: IncomingMessage & { readonly body?: Message }, response: ServerResponse) => {
  const server = new McpServer({ name: "sdk-v1", version: "1.0.0" })
  server.registerTool("whoami", {}, ({ authInfo }) => tools.whoami(authInfo?.clientId))
  server.registerTool("brew", {}, tools.brew)
  const transport = new StreamableHTTPServerTransport({})
  response.on("close", () => void server.close())
  await server.connect(transport as Transport)
  await transport.handleRequest(request, response, request.body)
}

/** Serves a server of SDK v1 with its own router of an authorization server. */
const serveV1 = (provider: OAuthServerProvider) =>
  Effect.gen(function*() {
    const { origin, raw } = yield* port
    const url = new URL(`${origin}/mcp`)
    const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url)
    const gate = { verifier: provider, resourceMetadataUrl, expectedResource: url }
    const app = express() as unknown as App
    app.use(mcpAuthRouter({
      provider,
      issuerUrl: new URL(origin),
      resourceServerUrl: url,
      scopesSupported: ["mcp:read"]
    }))
    const stepUp = requireBearerAuth({ ...gate, requiredScopes: scopes })
    app.post(
      "/mcp",
      (express as unknown as { readonly json: () => Handler }).json(),
      requireBearerAuth({ ...gate, requiredScopes: ["mcp:read"] }),
      (request, response, next) =>
        request.body?.params?.name === "brew" ? void stepUp(request, response, next) : next(),
      (request, response) => void serve(request, response)
    )
    raw.listener = app
    return { origin, resource: url.href }
  })

/** A server of SDK v1, whose authorization server is that of the SDK, with a provider in memory. */
export const v1Router = (ttlSeconds?: number) =>
  Effect.gen(function*() {
    const provider = new MemoryAuthorization(ttlSeconds)
    return { ...yield* serveV1(provider), provider }
  })

/** The endpoints of an authorization server, and a verifier of its tokens. */
interface Upstream {
  readonly authorizationUrl: string
  readonly tokenUrl: string
  readonly registrationUrl: string
  readonly revocationUrl: string
  readonly verify: (token: string) => ReturnType<OAuthServerProvider["verifyAccessToken"]>
}

/** A server of SDK v1 whose authorization server passes everything on to another one (`ProxyOAuthServerProvider`). */
const v1Proxy = (upstream: Upstream, redirectUri: string) => {
  const { verify, ...endpoints } = upstream
  return serveV1(
    new ProxyOAuthServerProvider({
      endpoints,
      verifyAccessToken: verify,
      getClient: (id) => Promise.resolve({ client_id: id, redirect_uris: [redirectUri] })
    })
  )
}

/** The proxy of SDK v1 in front of SDK v1. */
export const v1ProxyOfV1 = (redirectUri: string) =>
  Effect.gen(function*() {
    const { origin, provider } = yield* v1Router()
    const proxied = yield* v1Proxy({
      authorizationUrl: `${origin}/authorize`,
      tokenUrl: `${origin}/token`,
      registrationUrl: `${origin}/register`,
      revocationUrl: `${origin}/revoke`,
      verify: (token) => provider.verifyAccessToken(token)
    }, redirectUri)
    return { ...proxied, provider }
  })

/** Verifies the tokens of a `DevServer`, as a resource server of an SDK. */
const verifierOf = (issuer: string, resource: string) => {
  const keys = jose.createRemoteJWKSet(new URL(`${issuer}/jwks`))
  return async (token: string) => {
    const { payload } = await jose.jwtVerify(token, keys, { issuer, audience: resource })
    return {
      token,
      clientId: String(payload["client_id"]),
      scopes: String(payload["scope"]).split(" "),
      expiresAt: payload.exp!,
      resource: new URL(resource)
    }
  }
}

/** The proxy of SDK v1 in front of `DevServer`. */
export const v1ProxyOfDevServer = (redirectUri: string) =>
  Effect.gen(function*() {
    const dev = yield* DevServer.make()
    const proxied = yield* v1Proxy({
      authorizationUrl: `${dev.issuer}/auth`,
      tokenUrl: `${dev.issuer}/token`,
      registrationUrl: `${dev.issuer}/reg`,
      revocationUrl: `${dev.issuer}/token/revocation`,
      verify: () => Promise.reject(new InvalidTokenError("no token gets here"))
    }, redirectUri)
    return { ...proxied, dev }
  })

/** A server of SDK v2 with `requireBearerAuth` and `requireScopes`, and `DevServer` as its authorization server. */
export const v2 = (options?: DevServer.Options) =>
  Effect.gen(function*() {
    const dev = yield* DevServer.make(options)
    const { origin, raw } = yield* port
    const url = new URL(`${origin}/mcp`)
    const verify = verifierOf(dev.issuer, url.href)
    const oauthMetadata = yield* Effect.promise(() =>
      fetch(`${dev.issuer}/.well-known/oauth-authorization-server`).then((reply) =>
        reply.json() as Promise<V2.OAuthMetadata>
      )
    )
    const gate = V2.requireBearerAuth({
      verifier: {
        verifyAccessToken: (token) =>
          verify(token).catch((error: unknown) => {
            throw new V2.OAuthError(V2.OAuthErrorCode.InvalidToken, String(error))
          })
      },
      requiredScopes: ["mcp:read"],
      resourceMetadataUrl: V2.getOAuthProtectedResourceMetadataUrl(url),
      expectedResource: url
    })
    const handler = V2.createMcpHandler(() => {
      const server = new V2.McpServer({ name: "sdk-v2", version: "1.0.0" })
      server.registerTool("whoami", {}, ({ http }) => tools.whoami(http?.authInfo?.clientId))
      server.registerTool("brew", { scopeChallenge: V2.requireScopes("mcp:read", "mcp:write") }, tools.brew)
      return server
    }, { legacy: "stateless" })
    const listener = getRequestListener(async (request) => {
      const metadata = V2.oauthMetadataResponse(request, {
        oauthMetadata,
        resourceServerUrl: url,
        scopesSupported: ["mcp:read"]
      })
      if (metadata !== undefined) return metadata
      const authInfo = await gate(request)
      return authInfo instanceof globalThis.Response ? authInfo : handler.fetch(request, { authInfo })
    }, { overrideGlobalObjects: false })
    raw.listener = (request, response) => void listener(request, response)
    yield* Effect.addFinalizer(() => Effect.promise(() => handler.close()))
    return { origin, resource: url.href, dev }
  })
