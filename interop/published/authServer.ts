/**
 * A protected server with a published library that has an authorization server of its own, on a port of 127.0.0.1:
 * `node authServer.ts <library> <port> [upstream issuer]`. Its tool `whoami` returns the name of the caller, and `brew`
 * needs the scope `mcp:write` where the library has scopes for tools.
 */
import { registerHooks } from "node:module"
import { type Any, load } from "./clients/library.ts"

const info = { name: "published", version: "1.0.0" }

/** Workers KV, in memory. */
const memoryKv = () => {
  const values = new Map<string, { readonly value: string; readonly metadata: unknown }>()
  const read = (key: string, type: unknown) => {
    const found = values.get(key)
    const isJson = type === "json" || (type as { readonly type?: string } | undefined)?.type === "json"
    return found === undefined ? null : isJson ? JSON.parse(found.value) : found.value
  }
  return {
    get: async (key: string, type?: unknown) => read(key, type),
    getWithMetadata: async (key: string, type?: unknown) => ({
      value: read(key, type),
      metadata: values.get(key)?.metadata ?? null
    }),
    put: async (key: string, value: string, options?: { readonly metadata?: unknown }) =>
      void values.set(key, { value, metadata: options?.metadata ?? null }),
    delete: async (key: string) => void values.delete(key),
    list: async ({ prefix = "" }: { readonly prefix?: string } = {}) => ({
      keys: [...values.keys()].filter((name) => name.startsWith(prefix)).map((name) => ({ name })),
      list_complete: true
    })
  }
}

const text = (value: string) => ({ content: [{ type: "text", text: value }] })

const makers: Readonly<Record<string, (port: number, upstream: string) => Promise<unknown>>> = {
  "@cloudflare/workers-oauth-provider": async (port) => {
    // Its only import of the platform is a base class, for handlers that this program does not use.
    registerHooks({
      resolve: (name, context, next) =>
        name === "cloudflare:workers"
          ? { url: "data:text/javascript,export class WorkerEntrypoint {}", shortCircuit: true }
          : next(name, context)
    })
    const { insufficientScope, OAuthProvider } = await load("@cloudflare/workers-oauth-provider")
    const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js")
    const { WebStandardStreamableHTTPServerTransport } = await load(
      "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"
    )
    const { serve } = await load("@hono/node-server")
    const origin = `http://127.0.0.1:${port}`
    const api = async (request: Request, ctx: Any): Promise<Response> => {
      if (request.method !== "POST") return new Response(null, { status: 405 })
      const parsedBody = await request.json() as Any
      if (parsedBody?.params?.name === "brew" && !ctx.auth.scope.includes("mcp:write")) {
        return insufficientScope(ctx.auth, ["mcp:read", "mcp:write"])
      }
      const server = new McpServer(info)
      server.registerTool("whoami", {}, () => text(ctx.props.name))
      server.registerTool("brew", {}, () => text("tea"))
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
      await server.connect(transport)
      return transport.handleRequest(request, { parsedBody })
    }
    const provider = new OAuthProvider({
      apiRoute: "/mcp",
      apiHandler: { fetch: (request: Request, _env: Any, ctx: Any) => api(request, ctx) },
      defaultHandler: {
        fetch: async (request: Request, env: Any) => {
          if (new URL(request.url).pathname !== "/authorize") return new Response(null, { status: 404 })
          const asked = await env.OAUTH_PROVIDER.parseAuthRequest(request)
          const { redirectTo } = await env.OAUTH_PROVIDER.completeAuthorization({
            request: asked,
            userId: "ada",
            metadata: {},
            scope: asked.scope,
            props: { name: "ada" }
          })
          return Response.redirect(redirectTo, 302)
        }
      },
      authorizeEndpoint: "/authorize",
      tokenEndpoint: "/token",
      clientRegistrationEndpoint: "/register",
      scopesSupported: ["mcp:read", "mcp:write"],
      requiredScopes: ["mcp:read"],
      resourceMetadata: { resource: `${origin}/mcp` }
    })
    const env = { OAUTH_KV: memoryKv() }
    const context = () => ({ waitUntil: () => {}, passThroughOnException: () => {}, props: {} })
    serve({ fetch: (request: Request) => provider.fetch(request, env, context()), port, hostname: "127.0.0.1" })
  },
  fastmcp: async (port, upstream) => {
    const { FastMCP, getAuthSession, OAuthProvider, requireAuth } = await load("fastmcp")
    const server = new FastMCP({
      ...info,
      auth: new OAuthProvider({
        authorizationEndpoint: `${upstream}/auth`,
        tokenEndpoint: `${upstream}/token`,
        baseUrl: `http://127.0.0.1:${port}`,
        clientId: "published",
        clientSecret: "a secret of the published server",
        scopes: ["openid", "offline_access"]
      })
    })
    server.addTool({
      name: "whoami",
      description: "Returns the name of the caller at the upstream",
      canAccess: requireAuth,
      execute: async (_: unknown, { session }: Any) => {
        const { accessToken } = getAuthSession(session)
        const headers = { authorization: `Bearer ${accessToken}` }
        return (await (await fetch(`${upstream}/me`, { headers })).json() as Any).sub ?? "nobody"
      }
    })
    await server.start({ transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } })
  }
}

const [, , library, port, upstream = ""] = process.argv
await makers[library!]!(Number(port), upstream)
