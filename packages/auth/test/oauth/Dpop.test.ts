/** Tokens that are bound to a key (DPoP, RFC 9449). */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { createHash } from "node:crypto"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

/** Makes both servers use DPoP, with nonces. Returns the proofs that they saw, by path. */
const bind = (servers: Servers, nonces = true) => {
  servers.challenge =
    `DPoP algs="ES256", resource_metadata="${servers.origin}/.well-known/oauth-protected-resource/mcp"`
  servers.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
  servers.token = { token_type: "DPoP", expires_in: 600 }
  const proofs: Array<{ path: string; claims: jose.JWTPayload; jwk: jose.JWK; authorization: string | undefined }> = []
  let serial = 0
  for (const path of ["/mcp", "/as/token"]) {
    servers.routes.set(path, async (arrived) => {
      const proof = arrived.headers["dpop"]
      if (typeof proof !== "string") return servers.ordinary[path]!(arrived)
      const { jwk, typ } = jose.decodeProtectedHeader(proof)
      assert.strictEqual(typ, "dpop+jwt")
      const { payload } = await jose.jwtVerify(proof, await jose.importJWK(jwk!, "ES256"))
      const expected = `${path}-${serial}`
      if (nonces && payload["nonce"] !== expected) {
        const headers = { "dpop-nonce": expected }
        return path === "/mcp"
          ? { status: 401, headers: { ...headers, "www-authenticate": "DPoP error=\"use_dpop_nonce\"" } }
          : { status: 400, headers, body: { error: "use_dpop_nonce" } }
      }
      proofs.push({ path, claims: payload, jwk: jwk!, authorization: arrived.headers.authorization })
      return servers.ordinary[path]!(arrived)
    })
  }
  return { proofs, rotate: () => void serial++ }
}

const test = (
  body: (servers: Servers, oauth: OAuth.OAuth) => Effect.Effect<unknown, unknown>,
  options: Omit<OAuth.Options, "grant"> = {}
) =>
  Effect.gen(function*() {
    const servers = yield* start
    yield* body(servers, yield* OAuth.make({ grant, ...options }))
  }).pipe(Effect.provide([person().layer, TokenStore.layerMemory]))

describe("DPoP", () => {
  it.effect("RFC 9449 · proves possession at both servers, with their nonces and a fresh proof each", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        const { proofs, rotate } = bind(servers)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        rotate()
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const [token, first, second] = proofs
        assert.deepInclude(token!.claims, { htm: "POST", htu: `${servers.issuer}/token`, nonce: "/as/token-0" })
        assert.deepInclude(first!.claims, { htm: "POST", htu: servers.url.href, nonce: "/mcp-0" })
        assert.strictEqual(second!.claims["nonce"], "/mcp-1")
        const ath = createHash("sha256").update(first!.authorization!.replace("DPoP ", "")).digest("base64url")
        assert.strictEqual(first!.claims["ath"], ath)
        assert.strictEqual(new Set(proofs.map(({ claims }) => claims.jti)).size, 3)
        assert.strictEqual(new Set(proofs.map(({ jwk }) => jwk.x)).size, 1)
        assert.isUndefined(token!.jwk["d"])
      })
    ))

  it.effect("RFC 9449, 5 · refreshes with the key of the grant", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        const { proofs } = bind(servers)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        yield* TestClock.adjust("9 minutes")
        yield* TestClock.adjust("35 seconds")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const tokens = proofs.filter(({ path }) => path === "/as/token")
        assert.strictEqual(tokens.length, 2)
        assert.deepEqual(tokens[0]!.jwk, tokens[1]!.jwk)
      })
    ))

  it.effect("proves possession from the refresh on in which the server begins to bind its tokens", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        bind(servers, false)
        servers.token = { expires_in: 600 }
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        servers.token = { token_type: "DPoP", expires_in: 600 }
        yield* TestClock.adjust("575 seconds")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const { authorization, dpop } = servers.requests.at(-1)!.headers
        assert.deepEqual([authorization?.slice(0, 5), typeof dpop], ["DPoP ", "string"])
      })
    ))

  it.effect("stops a server that wants another nonce with each request", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        bind(servers, false)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        let count = 0
        servers.routes.set("/mcp", () => ({
          status: 401,
          headers: { "dpop-nonce": `n${count++}`, "www-authenticate": "DPoP error=\"use_dpop_nonce\"" }
        }))
        assert.strictEqual(yield* request(oauth, servers.url, 10), 401)
        assert.strictEqual(count, 3)
      })
    ))

  it.effect("uses bearer tokens where only one side supports DPoP, and with never", () =>
    Effect.all([
      test((servers, oauth) =>
        Effect.gen(function*() {
          servers.challenge = `DPoP, ${servers.challenge}`
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.isTrue(servers.requests.every(({ headers }) => headers["dpop"] === undefined))
        })
      ),
      test((servers, oauth) =>
        Effect.gen(function*() {
          servers.challenge = `DPoP, ${servers.challenge}`
          servers.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.isTrue(servers.requests.every(({ headers }) => headers["dpop"] === undefined))
        }), { dpop: "never" })
    ]))

  it.effect("sends the token as a bearer token where the server gave one, and fails with always", () =>
    Effect.all([
      test((servers, oauth) =>
        Effect.gen(function*() {
          bind(servers, false)
          servers.token = {}
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.strictEqual(servers.requests.at(-1)!.headers.authorization?.slice(0, 7), "Bearer ")
        })
      ),
      test((servers, oauth) =>
        Effect.gen(function*() {
          bind(servers, false)
          servers.token = {}
          assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
        }), { dpop: "always" })
    ]))
})
