/**
 * The providers as scripts: every request to an https address goes to one server on loopback, which answers as its
 * provider does. Presets are used with their own addresses.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { createHash } from "node:crypto"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"

export interface Sent {
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly form: URLSearchParams
}

export interface Reply {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
  /** A body that is not JSON. */
  readonly text?: string
}

export interface World {
  readonly origin: string
  /** The answers, by method and address without query. Others are 404. */
  readonly routes: Map<string, (sent: Sent) => Reply | Promise<Reply>>
  /** Origins that are other servers on loopback. */
  readonly hosts: Map<string, string>
  readonly requests: Array<string>
  readonly key: jose.GenerateKeyPairResult
}

/** Starts the world. Its `fetch` replaces the one of the process until the scope ends. */
export const makeWorld = Effect.gen(function*() {
  const real = globalThis.fetch
  const key = yield* Effect.promise(() => jose.generateKeyPair("RS256", { extractable: true }))
  const http = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => void (body += chunk.toString())).on("end", () => {
      const url = new URL(`https:/${request.url}`)
      const at = `${request.method} ${url.origin}${url.pathname}`
      world.requests.push(at)
      const handler = world.routes.get(at) ?? ((): Reply => ({ status: 404 }))
      const sent = { url, headers: request.headers, body, form: new URLSearchParams(body) }
      const answer = async (): Promise<void> => {
        const { body = {}, headers = {}, status = 200, text = JSON.stringify(body) }: Reply = await handler(sent)
        response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers })
        response.end(text)
      }
      void answer()
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((done) => void http.listen(0, "127.0.0.1", () => done(Effect.void))),
    () =>
      Effect.callback<void>((done) => {
        globalThis.fetch = real
        http.closeAllConnections()
        http.close(() => done(Effect.void))
      })
  )
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const world: World = { origin, routes: new Map(), hosts: new Map(), requests: [], key }
  globalThis.fetch = (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (url.protocol !== "https:") return real(input, init)
    const host = world.hosts.get(url.origin)
    const to = host === undefined ? `${origin}/${url.host}${url.pathname}` : `${host}${url.pathname}`
    return real(`${to}${url.search}`, init)
  }
  return world
})

/** An authorization server of the world. */
export interface Script {
  readonly issuer: string
  /** The address of its metadata. Others are 404. */
  readonly metadataUrl: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
  /** Members of its metadata; `undefined` removes one. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The error of an authorization request, if it is refused. */
  readonly refuse?: (
    query: URLSearchParams
  ) => { readonly error: string; readonly error_description: string } | undefined
  /** The claims of the access token, by the parameters of the authorization request. */
  readonly claims: (query: URLSearchParams) => jose.JWTPayload
  /** Members of the answer of the token endpoint. */
  readonly answer?: (query: URLSearchParams) => Readonly<Record<string, unknown>>
}

/** Signs an access token of an issuer of the world. */
export const sign = (world: World, issuer: string, claims: jose.JWTPayload, typ = "JWT"): Promise<string> =>
  new jose.SignJWT({ iss: issuer, ...claims })
    .setProtectedHeader({ alg: "RS256", kid: "1", typ })
    .setIssuedAt()
    .setExpirationTime("10 minutes")
    .sign(world.key.privateKey)

/** Adds the keys of the world at an address. */
export const addKeys = (world: World, jwksUri: string): void => {
  world.routes.set(`GET ${jwksUri}`, async () => ({
    body: { keys: [{ ...await jose.exportJWK(world.key.publicKey), kid: "1", alg: "RS256", use: "sig" }] }
  }))
}

/** Adds an authorization server, which demands PKCE with S256. Returns the queries of the authorization requests. */
export const addServer = (world: World, script: Script): ReadonlyArray<URLSearchParams> => {
  const { authorizationEndpoint, issuer, jwksUri, metadata, metadataUrl, tokenEndpoint } = script
  const queries: Array<URLSearchParams> = []
  addKeys(world, jwksUri)
  world.routes.set(`GET ${metadataUrl}`, () => ({
    body: {
      issuer,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint,
      jwks_uri: jwksUri,
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      ...metadata
    }
  }))
  world.routes.set(`GET ${authorizationEndpoint}`, ({ url }) => {
    queries.push(url.searchParams)
    const location = new URL(url.searchParams.get("redirect_uri")!)
    const answer = script.refuse?.(url.searchParams) ?? { code: `code-${queries.length}` }
    for (const [name, value] of Object.entries({ state: url.searchParams.get("state")!, ...answer })) {
      location.searchParams.set(name, value)
    }
    return { status: 302, headers: { location: location.href } }
  })
  world.routes.set(`POST ${tokenEndpoint}`, async ({ form }) => {
    const query = queries.at(-1)!
    assert.strictEqual(
      createHash("sha256").update(form.get("code_verifier")!).digest("base64url"),
      query.get("code_challenge")
    )
    const token = await sign(world, issuer, script.claims(query))
    return { body: { access_token: token, token_type: "Bearer", expires_in: 600, ...script.answer?.(query) } }
  })
  return queries
}
