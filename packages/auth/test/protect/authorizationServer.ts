/** An authorization server on loopback: metadata, keys and introspection, and tokens of any kind. Times are of the caller. */
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export const resource = "https://tea.example/mcp"

export interface Key {
  readonly kid: string | undefined
  readonly alg: string
  readonly privateKey: jose.CryptoKey
  readonly publicJwk: jose.JWK
}

export const makeKey = (alg: string, kid: string | undefined = `key-${alg}`): Effect.Effect<Key> =>
  Effect.promise(async () => {
    const { privateKey, publicKey } = await jose.generateKeyPair(alg, { extractable: true })
    const jwk = await jose.exportJWK(publicKey)
    return { kid, alg, privateKey, publicJwk: { ...jwk, ...(kid === undefined ? {} : { kid }), alg, use: "sig" } }
  })

export type Claims = { readonly [claim: string]: unknown }

export const claimsOf = (issuer: string, claims: Claims = {}): jose.JWTPayload =>
  JSON.parse(JSON.stringify({
    iss: issuer,
    aud: resource,
    sub: "ada",
    client_id: "kettle",
    scope: "tea:read tea:write",
    iat: 0,
    exp: 3600,
    jti: "1",
    ...claims
  })) as jose.JWTPayload

export const sign = (key: Key, claims: jose.JWTPayload, header: Claims = {}): Effect.Effect<string> =>
  Effect.promise(() =>
    new jose.SignJWT(claims).setProtectedHeader({
      alg: key.alg,
      typ: "at+jwt",
      ...(key.kid === undefined ? {} : { kid: key.kid }),
      ...header
    } as jose.JWTHeaderParameters).sign(key.privateKey)
  )

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void

export class AuthorizationServer {
  /** The paths of all requests. */
  readonly requests: Array<string> = []
  readonly bodies: Array<string> = []
  readonly authorizations: Array<string | undefined> = []
  keys: ReadonlyArray<Key> = []
  /** Replaces the response at a path. */
  readonly overrides = new Map<string, Handler>()
  /** The answers of the introspection, by token. */
  readonly introspected = new Map<string, Claims>()
  /** The path of the issuer. */
  path = ""
  origin = ""
  metadataPath = "/.well-known/oauth-authorization-server"
  metadata: Claims = {}
  #arrivals: Array<{ readonly path: string; readonly done: () => void }> = []

  get issuer(): string {
    return this.origin + this.path
  }

  count(path: string): number {
    return this.requests.filter((one) => one === path).length
  }

  /** Waits for the next request at a path. */
  arrival(path: string): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      this.#arrivals.push({ path, done: () => resume(Effect.void) })
    })
  }

  token(claims: Claims = {}, header: Claims = {}, key: Key = this.keys[0]!): Effect.Effect<string> {
    return sign(key, claimsOf(this.issuer, claims), header)
  }

  handle(request: IncomingMessage, response: ServerResponse, body: string): void {
    const path = request.url ?? ""
    this.requests.push(path)
    this.bodies.push(body)
    this.authorizations.push(request.headers.authorization)
    const arrived = this.#arrivals.filter((one) => one.path === path)
    this.#arrivals = this.#arrivals.filter((one) => one.path !== path)
    const override = this.overrides.get(path)
    if (override === undefined) this.#answer(path, response, body)
    else override(request, response, body)
    for (const { done } of arrived) done()
  }

  #answer(path: string, response: ServerResponse, body: string): void {
    if (path === this.metadataPath) {
      return json(response, 200, {
        issuer: this.issuer,
        jwks_uri: `${this.origin}/keys`,
        introspection_endpoint: `${this.origin}/introspect`,
        ...this.metadata
      })
    }
    if (path === "/keys") return json(response, 200, { keys: this.keys.map(({ publicJwk }) => publicJwk) })
    if (path === "/introspect") {
      return json(
        response,
        200,
        this.introspected.get(new URLSearchParams(body).get("token") ?? "") ?? { active: false }
      )
    }
    json(response, 404, {})
  }
}

export const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
}

/** Starts a server, which ends with the scope. It has one key, of ES256. */
export const makeServer = Effect.gen(function*() {
  const server = new AuthorizationServer()
  server.keys = [yield* makeKey("ES256")]
  const http = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on("end", () => server.handle(request, response, body))
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      http.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        http.closeAllConnections()
        http.close(() => resume(Effect.void))
      })
  )
  server.origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  return server
})
