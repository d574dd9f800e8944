/** Enterprise-managed authorization at a proxy: assertions of an identity provider (ID-JAG) become tokens. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as jose from "jose"
import { randomUUID } from "node:crypto"
import { inspect } from "node:util"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

const grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
const secret = "the secret of the agent at the tea house"
const clientId = "agent-at-tea"
const basic = (id = clientId, password = secret) => ({ authorization: `Basic ${btoa(`${id}:${password}`)}` })

type Header = Readonly<Record<string, string | undefined>>
type Claims = Readonly<Record<string, unknown>>

/** The identity provider of a company, where Ada is signed in. */
const identityProvider = Effect.gen(function*() {
  const { privateKey, publicKey } = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
  const jwk = { ...(yield* Effect.promise(() => jose.exportJWK(publicKey))), kid: "k", alg: "ES256", use: "sig" }
  const sign = (claims: Claims, header: Header = {}, key = privateKey) =>
    new jose.SignJWT(claims).setProtectedHeader({ alg: "ES256", kid: "k", typ: "oauth-id-jag+jwt", ...header }).sign(
      key
    )
  let isAway = false
  const exchanged: Array<URLSearchParams> = []
  const claimsOf = (issuer: string, audience: string, resource: string, scope?: string): Claims => {
    const now = Math.floor(Date.now() / 1000)
    return {
      iss: issuer,
      sub: "u-1",
      aud: audience,
      resource,
      client_id: clientId,
      jti: randomUUID(),
      iat: now,
      exp: now + 300,
      scope
    }
  }
  const { url } = yield* RawServer.http((request, response) => {
    const issuer = `http://${request.headers.host}`
    const answer = (body: unknown) =>
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body))
    if (isAway) return void response.writeHead(503).end()
    if (request.url === "/keys") return void answer({ keys: [jwk] })
    if (request.url === "/token") {
      let body = ""
      request.on("data", (chunk: Buffer) => void (body += chunk.toString())).on("end", () => {
        const form = new URLSearchParams(body)
        exchanged.push(form)
        const claims = claimsOf(issuer, form.get("audience")!, form.get("resource")!, form.get("scope") ?? "tea:read")
        void sign(claims).then((jwt) =>
          answer({
            issued_token_type: "urn:ietf:params:oauth:token-type:id-jag",
            access_token: jwt,
            token_type: "N_A",
            expires_in: 300
          })
        )
      })
      return
    }
    if (!request.url!.startsWith("/.well-known/")) return void response.writeHead(404).end()
    answer({ issuer, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys` })
  })
  const issuer = url.origin
  return {
    issuer,
    sign,
    exchanged,
    claims: (running: kit.Running, more: Claims = {}): Claims => ({
      ...claimsOf(issuer, running.origin, running.resource, "tea:read"),
      ...more
    }),
    setAway: (away: boolean) => void (isAway = away)
  }
})

const start = (options: kit.StartOptions["proxy"] = {}) =>
  Effect.gen(function*() {
    const idp = yield* identityProvider
    const running = yield* kit.start({
      proxy: {
        clients: { [clientId]: { clientName: "Agent", clientSecret: Redacted.make(secret) } },
        identityProviders: [{ issuer: idp.issuer }],
        ...options
      }
    })
    const present = (
      assertion: string,
      form: Readonly<Record<string, string>> = {},
      headers: Readonly<Record<string, string>> = basic()
    ) => oauth.postForm(`${running.origin}/token`, { grant_type: grantType, assertion, ...form }, headers)
    const presentClaims = (more?: Claims, header?: Header, form?: Record<string, string>) =>
      Effect.flatMap(Effect.promise(() => idp.sign(idp.claims(running, more), header)), (jwt) => present(jwt, form))
    return { idp, running, present, presentClaims }
  })

describe("enterprise-managed authorization at a proxy", () => {
  it.live("exchanges the ID-JAG of a client of Skein for a token, and nobody is asked", () =>
    Effect.gen(function*() {
      const { idp, running } = yield* start()
      const grant = Grant.identityAssertion({
        clientId,
        clientSecret: Redacted.make(secret),
        issuer: running.origin,
        identityProvider: { issuer: idp.issuer, clientId: "agent", idToken: Redacted.make("the ID token") }
      })
      const credentials = yield* OAuth.make({ grant })
      const client = yield* Client.make(NodeHttp.transport({ url: running.resource, credentials }))
      assert.deepStrictEqual((yield* client.listTools()).map(({ name }) => name), ["whoami"])
      const [form] = idp.exchanged
      assert.strictEqual(form!.get("audience"), running.origin)
      assert.strictEqual(form!.get("resource"), running.resource)
      assert.deepInclude(yield* running.upstream.counts, { authorizations: 0, registrations: 0 })
    }).pipe(Effect.scoped, Effect.provide(TokenStore.layerMemory)))

  it.live("issues a token of the person for its resource, with the scopes of the assertion, and no refresh token", () =>
    Effect.gen(function*() {
      const { idp, presentClaims, running } = yield* start()
      const { body, headers, status } = yield* presentClaims({ scope: "tea:read tea:write other" })
      assert.strictEqual(status, 200)
      assert.strictEqual(headers.get("cache-control"), "no-store")
      assert.deepInclude(body, { token_type: "Bearer", scope: "tea:read tea:write" })
      assert.notProperty(body, "refresh_token")
      const claims = yield* oauth.verify(running.origin, String(body["access_token"]), running.resource)
      assert.deepInclude(claims, { sub: `${idp.issuer} u-1`, client_id: clientId, scope: "tea:read tea:write" })
      assert.strictEqual(yield* kit.statusOf(running.resource, String(body["access_token"])), 200)
      // The client can ask for less.
      const less = yield* presentClaims({ scope: "tea:read tea:write" }, {}, { scope: "tea:read" })
      assert.strictEqual(less.body["scope"], "tea:read")
      assert.strictEqual((yield* presentClaims({ scope: "other" })).body["error"], "invalid_scope")
      assert.strictEqual((yield* presentClaims({}, {}, { scope: "tea:write" })).body["error"], "invalid_scope")
      assert.strictEqual((yield* presentClaims({ scope: undefined })).body["error"], "invalid_scope")
    }))

  it.live("limits the scopes of an identity provider, and has default ones for assertions that name none", () =>
    Effect.gen(function*() {
      const idp = yield* identityProvider
      const { running, present } = yield* start({
        identityProviders: [{ issuer: idp.issuer, scopes: ["tea:read"], defaultScopes: ["tea:read"] }]
      })
      const presentClaims = (more: Claims) =>
        Effect.flatMap(Effect.promise(() => idp.sign(idp.claims(running, more))), (jwt) => present(jwt))
      assert.strictEqual((yield* presentClaims({ scope: "tea:read tea:write" })).body["scope"], "tea:read")
      assert.strictEqual((yield* presentClaims({ scope: undefined })).body["scope"], "tea:read")
      assert.strictEqual((yield* presentClaims({ scope: "tea:write" })).body["error"], "invalid_scope")
    }))

  it.live("5.1 · refuses assertions of another type, issuer, audience, client, resource, time, algorithm or key", () =>
    Effect.gen(function*() {
      const { idp, present, presentClaims, running } = yield* start()
      const now = Math.floor(Date.now() / 1000)
      const cases: ReadonlyArray<readonly [string, Claims, Header?]> = [
        ["no type", {}, { typ: undefined }],
        ["an ID token", {}, { typ: "JWT" }],
        ["an access token", {}, { typ: "at+jwt" }],
        ["another issuer", { iss: "https://idp.evil.example" }],
        ["an issuer with a slash", { iss: `${idp.issuer}/` }],
        ["no audience", { aud: undefined }],
        ["another audience", { aud: "https://other.example" }],
        ["an audience with a slash", { aud: `${running.origin}/` }],
        ["the resource as audience", { aud: running.resource }],
        ["another client", { client_id: "other" }],
        ["no client", { client_id: undefined }],
        ["no id", { jti: undefined }],
        ["no subject", { sub: undefined }],
        ["no resource", { resource: undefined }],
        ["no iat", { iat: undefined }],
        ["no exp", { exp: undefined }],
        ["expired", { iat: now - 600, exp: now - 300 }],
        ["not yet valid", { nbf: now + 300 }],
        ["valid for too long", { exp: now + 3_700 }],
        ["an unknown key", {}, { kid: "unknown" }]
      ]
      for (const [name, claims, header] of cases) {
        const { body, status } = yield* presentClaims(claims, header)
        assert.deepStrictEqual([name, status, body["error"]], [name, 400, "invalid_grant"])
      }
      assert.strictEqual((yield* presentClaims({ resource: `${running.resource}/` })).body["error"], "invalid_target")
      const elsewhere = yield* presentClaims({}, {}, { resource: "https://other.example" })
      assert.strictEqual(elsewhere.body["error"], "invalid_target")
      const stranger = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      const forged = yield* Effect.promise(() => idp.sign(idp.claims(running), {}, stranger.privateKey))
      assert.strictEqual((yield* present(forged)).body["error"], "invalid_grant")
      const none = new jose.UnsecuredJWT(idp.claims(running) as jose.JWTPayload).encode()
      assert.strictEqual((yield* present(none)).body["error"], "invalid_grant")
      for (const text of ["", "x", "a.b.c", "x".repeat(20_000)]) {
        const { body, status } = yield* present(text)
        assert.strictEqual(status, 400)
        assert.include(["invalid_grant", "invalid_request"], body["error"])
      }
    }))

  it.live("accepts an assertion once, also at several instances and at once", () =>
    Effect.gen(function*() {
      const { idp, present, running } = yield* start()
      const second = yield* kit.port
      yield* kit.instance(second.raw, running.origin, running.upstream, running.store, {
        clients: { [clientId]: { clientName: "Agent", clientSecret: Redacted.make(secret) } },
        identityProviders: [{ issuer: idp.issuer }]
      })
      const assertion = yield* Effect.promise(() => idp.sign(idp.claims(running)))
      const there = oauth.postForm(`${second.origin}/token`, { grant_type: grantType, assertion }, basic())
      const answers = yield* Effect.all([present(assertion), there, present(assertion), there], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 400, 400, 400])
      const errors = answers.flatMap(({ body }) => body["error"] ?? [])
      assert.deepStrictEqual(errors, ["invalid_grant", "invalid_grant", "invalid_grant"])
    }))

  it.live("authenticates the client: no secret, a wrong one, a public or an unknown client gets nothing", () =>
    Effect.gen(function*() {
      const { idp, present, running } = yield* start({
        clients: {
          [clientId]: { clientName: "Agent", clientSecret: Redacted.make(secret) },
          public: { clientName: "Public", redirectUris: [kit.redirectUri] }
        }
      })
      const assertion = yield* Effect.promise(() => idp.sign(idp.claims(running)))
      assert.strictEqual((yield* present(assertion, {}, basic(clientId, "wrong"))).body["error"], "invalid_client")
      assert.strictEqual((yield* present(assertion, {}, basic("unknown"))).body["error"], "invalid_client")
      assert.strictEqual((yield* present(assertion, { client_id: clientId }, {})).body["error"], "invalid_client")
      const ofPublic = yield* Effect.promise(() => idp.sign(idp.claims(running, { client_id: "public" })))
      const refused = yield* present(ofPublic, { client_id: "public" }, {})
      assert.strictEqual(refused.body["error_description"], "requested grant type is not allowed for this client")
      // A client that registers itself without a secret does not get further.
      const registered = yield* oauth.register(running.origin, {
        redirectUri: kit.redirectUri,
        metadata: { grant_types: ["authorization_code", grantType] }
      })
      const own = String(registered.body["client_id"])
      const ofOwn = yield* Effect.promise(() => idp.sign(idp.claims(running, { client_id: own })))
      assert.strictEqual((yield* present(ofOwn, { client_id: own }, {})).body["error"], "invalid_client")
      // The assertion is still good for its client.
      assert.strictEqual((yield* present(assertion)).status, 200)
    }))

  it.live("authenticates a client by its key (private_key_jwt)", () =>
    Effect.gen(function*() {
      const key = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      const jwk = yield* Effect.promise(() => jose.exportJWK(key.publicKey))
      const { idp, present, running } = yield* start({
        clients: { [clientId]: { clientName: "Agent", jwks: { keys: [{ ...jwk, alg: "ES256" }] } } }
      })
      const assertion = yield* Effect.promise(() => idp.sign(idp.claims(running)))
      const signed = (by?: typeof key) =>
        Effect.flatMap(oauth.assertion(clientId, running.origin, by), (client_assertion) =>
          present(assertion, {
            client_assertion,
            client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
          }, {}))
      assert.strictEqual((yield* signed()).body["error"], "invalid_client")
      assert.strictEqual((yield* signed(key)).status, 200)
    }))

  it.live("is off by default", () =>
    Effect.gen(function*() {
      const idp = yield* identityProvider
      const running = yield* kit.start({
        proxy: {
          clients: {
            [clientId]: {
              clientName: "Agent",
              clientSecret: Redacted.make(secret),
              redirectUris: ["https://agent.example/callback"]
            }
          }
        }
      })
      const metadata = yield* oauth.getJson(`${running.origin}/.well-known/oauth-authorization-server`)
      assert.notInclude(metadata["grant_types_supported"] as ReadonlyArray<string>, grantType)
      const assertion = yield* Effect.promise(() => idp.sign(idp.claims(running)))
      const refused = yield* oauth.postForm(`${running.origin}/token`, { grant_type: grantType, assertion }, basic())
      assert.strictEqual(refused.body["error"], "unsupported_grant_type")
      const on = yield* start()
      const published = yield* oauth.getJson(`${on.running.origin}/.well-known/oauth-authorization-server`)
      assert.include(published["grant_types_supported"] as ReadonlyArray<string>, grantType)
    }))

  it.live("reports an outage of the identity provider as such, and names no secret", () =>
    Effect.gen(function*() {
      const { idp, presentClaims } = yield* start()
      idp.setAway(true)
      const refused = yield* presentClaims()
      assert.strictEqual(refused.body["error"], "temporarily_unavailable")
      assert.notInclude(inspect(refused, { depth: 9 }), secret)
    }))

  it.live("gives no upstream token to a person who has not signed in upstream", () =>
    Effect.gen(function*() {
      const { presentClaims, running } = yield* start()
      const { body } = yield* presentClaims()
      const answer = yield* Effect.exit(kit.call(running.resource, String(body["access_token"])))
      assert.strictEqual(answer._tag, "Failure")
      assert.strictEqual(yield* kit.statusOf(running.resource, String(body["access_token"])), 200)
    }))
})

describe("a client that was registered by hand", () => {
  it.live("signs a person in with its secret, and has no other redirect URIs", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({
        proxy: {
          dynamicRegistration: false,
          clients: {
            desk: { clientName: "Desk", clientSecret: Redacted.make(secret), redirectUris: [kit.redirectUri] }
          }
        }
      })
      const client = yield* oauth.connect(running.origin, { clientId: "desk", redirectUri: kit.redirectUri })
      const { signIn } = TestUser.make()
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      const answer = yield* signIn(url)
      assert.strictEqual((yield* client.exchangeRaw(answer)).body["error"], "invalid_client")
      const again = yield* signIn(url)
      const { body, status } = yield* client.exchangeRaw(again, basic("desk"))
      assert.strictEqual(status, 200)
      assert.strictEqual((yield* kit.call(running.resource, String(body["access_token"]))).user.sub, "ada")
      const elsewhere = yield* client.authorizationUrl({
        resource: running.resource,
        redirect_uri: "https://evil.example"
      })
      const { status: refused } = yield* Effect.promise(() => fetch(elsewhere))
      assert.strictEqual(refused, 400)
    }))
})
