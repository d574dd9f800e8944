/**
 * A protected server and its authorization server on one port of the loopback interface, for tests of the client. Every
 * answer can be replaced; every request is recorded.
 */
import type * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import { SignIn, type SignInError } from "@skein/auth/SignIn"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"

/** A request that arrived. */
export interface Arrived {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly form: URLSearchParams
}

/** An answer. A body that is not a string is written as JSON. */
export interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

type Handler = (request: Arrived) => Answer | Promise<Answer>

/** The servers, and what a test changes of them. */
export interface Servers {
  readonly origin: string
  readonly url: URL
  readonly issuer: string
  readonly requests: Array<Arrived>
  /** Answers by path, which replace the ordinary ones. */
  readonly routes: Map<string, Handler>
  /** The ordinary answers by path. */
  readonly ordinary: Readonly<Record<string, Handler>>
  /** Members of the two documents; `undefined` removes one. */
  resource: Record<string, unknown>
  metadata: Record<string, unknown>
  /** The parameters of the challenge of a 401, and whether it names the metadata. */
  challenge: string
  /** The tokens that the protected server accepts. */
  readonly accepted: Set<string>
  /** The refresh tokens that were used or replaced: to see one again is reuse. */
  readonly spent: Set<string>
  reused: number
  /** A real server in the place of the scripted protected one. */
  server: RequestListener | undefined
  /** Members of each answer of the token endpoint. */
  token: Record<string, unknown>
  /** Parameters of the redirect, added to or replacing `code` and `state`. */
  redirect: Record<string, string | undefined>
  readonly count: (path: string) => number
  readonly forms: (path: string) => ReadonlyArray<Record<string, string>>
}

const json = { "content-type": "application/json" }

/** Starts the servers. The scope stops them. */
export const start: Effect.Effect<Servers, never, Scope> = Effect.gen(function*() {
  let serial = 0
  let current = ""
  const routes = new Map<string, Handler>()
  const requests: Array<Arrived> = []
  const http = createServer((request, response) => {
    if (servers.server !== undefined && request.url === "/mcp") return servers.server(request, response)
    let body = ""
    request.on("data", (chunk: Buffer) => void (body += chunk.toString())).on("end", () => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost")
      const arrived: Arrived = {
        method: String(request.method),
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body,
        form: new URLSearchParams(body)
      }
      requests.push(arrived)
      const handler = routes.get(pathname) ?? ordinary[pathname] ?? (() => ({ status: 404 }))
      const answer = async (): Promise<void> => {
        const { body = "", headers = {}, status = 200 } = await handler(arrived)
        response.writeHead(status, { ...(typeof body === "string" ? {} : json), ...headers })
        response.end(typeof body === "string" ? body : JSON.stringify(body))
      }
      void answer()
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((done) => void http.listen(0, "127.0.0.1", () => done(Effect.void))),
    () =>
      Effect.callback<void>((done) => {
        http.closeAllConnections()
        http.close(() => done(Effect.void))
      })
  )
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const servers: Servers = {
    origin,
    url: new URL("/mcp", origin),
    issuer: `${origin}/as`,
    requests,
    routes,
    get ordinary() {
      return ordinary
    },
    resource: { resource: `${origin}/mcp`, authorization_servers: [`${origin}/as`], scopes_supported: ["read"] },
    metadata: {
      issuer: `${origin}/as`,
      authorization_endpoint: `${origin}/as/authorize`,
      token_endpoint: `${origin}/as/token`,
      registration_endpoint: `${origin}/as/register`,
      revocation_endpoint: `${origin}/as/revoke`,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "private_key_jwt"],
      authorization_response_iss_parameter_supported: true
    },
    challenge: `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
    accepted: new Set(),
    spent: new Set(),
    reused: 0,
    server: undefined,
    token: { expires_in: 3_600 },
    redirect: { iss: `${origin}/as` },
    count: (path) => requests.filter((request) => request.path === path).length,
    forms: (path) =>
      requests.filter((request) => request.path === path).map(({ form }) => Object.fromEntries(form.entries()))
  }
  const issue = (): Answer => {
    serial++
    servers.accepted.add(`access-${serial}`)
    current = `refresh-${serial}`
    return {
      body: { access_token: `access-${serial}`, token_type: "Bearer", refresh_token: current, ...servers.token }
    }
  }
  const ordinary: Record<string, Handler> = {
    "/.well-known/oauth-protected-resource/mcp": () => ({ body: servers.resource }),
    "/.well-known/oauth-authorization-server/as": () => ({ body: servers.metadata }),
    "/as/register": ({ body }) => ({ status: 201, body: { client_id: `client-${++serial}`, ...JSON.parse(body) } }),
    "/as/authorize": ({ query }) => {
      const location = new URL(query.get("redirect_uri")!)
      for (const [name, value] of Object.entries({ code: "code-1", state: query.get("state")!, ...servers.redirect })) {
        if (value !== undefined) location.searchParams.set(name, value)
      }
      return { status: 302, headers: { location: location.href } }
    },
    "/as/token": ({ form }) => {
      if (form.get("grant_type") !== "refresh_token") return issue()
      const used = form.get("refresh_token")!
      if (used !== current || servers.spent.has(used)) {
        servers.reused++
        return { status: 400, body: { error: "invalid_grant", error_description: `reused ${used}` } }
      }
      servers.spent.add(used)
      return issue()
    },
    "/as/revoke": () => ({}),
    "/mcp": ({ headers }) => {
      const token = headers.authorization?.split(" ")[1]
      return token !== undefined && servers.accepted.has(token)
        ? { body: { ok: true } }
        : { status: 401, headers: { "www-authenticate": servers.challenge } }
    }
  }
  return servers
})

/** Makes a request as a transport does: asks for headers, reports refusals, and sends the request again. */
export const request = (
  oauth: OAuth.OAuth,
  url: URL,
  maxChallenges = 4
): Effect.Effect<number, unknown> => {
  const attempt = (count: number): Effect.Effect<number, unknown> =>
    Effect.gen(function*() {
      const headers = yield* oauth.headers({ method: "POST", url })
      const response = yield* Effect.promise(() => fetch(url, { method: "POST", headers, body: "{}" }))
      yield* Effect.promise(() => response.text())
      const { status } = response
      const header = (name: string): string | undefined => response.headers.get(name) ?? undefined
      oauth.replied?.({ url, status, header })
      if ((status !== 401 && status !== 403) || count > maxChallenges) return status
      const again = yield* oauth.refused({
        status,
        url,
        attempt: count,
        wwwAuthenticate: header("www-authenticate"),
        header,
        authorization: headers["authorization"]
      })
      return again ? yield* attempt(count + 1) : status
    })
  return attempt(1)
}

/** A person who opens the URL and agrees at once. `asked` is the URLs. */
export const person = (
  options: {
    readonly redirectUri?: string
    readonly applicationType?: "native" | "web"
    readonly before?: Effect.Effect<unknown, SignInError>
  } = {}
): { readonly asked: Array<URL>; readonly layer: Layer.Layer<SignIn> } => {
  const asked: Array<URL> = []
  const { applicationType, before = Effect.void, redirectUri = "http://127.0.0.1:41999/callback" } = options
  const layer = Layer.succeed(SignIn, {
    applicationType,
    open: () =>
      Effect.succeed({
        redirectUri,
        authorize: (url) =>
          Effect.gen(function*() {
            asked.push(url)
            yield* before
            const response = yield* Effect.promise(() => fetch(url, { redirect: "manual" }))
            return new URL(response.headers.get("location") ?? "http://none.invalid").searchParams
          })
      })
  })
  return { asked, layer }
}

/** The tag of the reason with which an effect fails. */
export const errorOf = <R>(effect: Effect.Effect<unknown, unknown, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, {
    onFailure: (error) => error instanceof OAuthError ? error.reason._tag : String(error),
    onSuccess: (value) => `success: ${String(value)}`
  })
