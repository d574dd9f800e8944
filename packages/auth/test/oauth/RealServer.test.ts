/** The client with a real authorization server (`oidc-provider`), whose tokens the protected server verifies. */
import * as DevServer from "@skein/auth/DevServer"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

const ada = Layer.sync(SignIn, () => {
  const user = TestUser.make({ name: "ada" })
  return {
    open: () =>
      Effect.succeed({
        redirectUri: "http://127.0.0.1:41999/callback",
        authorize: (url: URL) => Effect.mapError(user.signIn(url), ({ message }) => new SignInError({ message }))
      })
  }
})

/** Starts both servers. The protected one requires `mcp:read`, and `required` where a test sets it. */
const startBoth = (options: DevServer.Options = {}) =>
  Effect.gen(function*() {
    const servers: Servers & { required?: string } = yield* start
    const dev = yield* DevServer.make(options)
    const keys = jose.createRemoteJWKSet(new URL(`${dev.issuer}/jwks`))
    const dpop = options.requireDpopNonce === true
    servers.resource = {
      ...servers.resource,
      authorization_servers: [dev.issuer],
      scopes_supported: ["mcp:read"],
      dpop_bound_access_tokens_required: dpop
    }
    servers.routes.set("/mcp", async ({ headers }) => {
      const [scheme, token] = (headers.authorization ?? "").split(" ")
      const refuse = (status: number, parameters: string) => ({
        status,
        headers: { "www-authenticate": `${dpop ? "DPoP" : "Bearer"} ${parameters}` }
      })
      if (token === undefined) return refuse(401, "scope=\"mcp:read\"")
      const verify = { issuer: dev.issuer, audience: servers.url.href }
      const verified = await jose.jwtVerify(token, keys, verify).catch(() => undefined)
      if (verified === undefined || servers.spent.has(token)) return refuse(401, "error=\"invalid_token\"")
      const { cnf, scope } = verified.payload as { readonly cnf?: unknown; readonly scope?: string }
      if ((cnf === undefined) !== (scheme === "Bearer")) return refuse(401, "error=\"invalid_token\"")
      if (servers.required !== undefined && scope?.split(" ").includes(servers.required) !== true) {
        return refuse(403, `error="insufficient_scope", scope="${servers.required}"`)
      }
      return { body: { scope } }
    })
    return { servers, dev }
  })

/** The tokens that the protected server has seen are no longer accepted. */
const expire = ({ requests, spent }: Servers) => {
  for (const { headers } of requests) spent.add(headers.authorization?.split(" ")[1] ?? "")
}

describe("oidc-provider", () => {
  it.effect("signs in, renews once for 50 requests, steps up, and signs out", () =>
    Effect.gen(function*() {
      const { dev, servers } = yield* startBoth()
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const context = oauth.authorizationContext!(servers.url)
      const before = yield* context
      assert.match(before!, /^[\w-]{43}$/)
      const state = Option.getOrThrow(yield* oauth.state(servers.url))
      assert.deepInclude(state, { issuer: dev.issuer, isRenewable: true, registration: "dynamic" })
      expire(servers)
      yield* TestClock.adjust("2 minutes")
      const all = Array.from({ length: 50 }, () => request(oauth, servers.url))
      assert.deepEqual(new Set(yield* Effect.all(all, { concurrency: "unbounded" })), new Set([200]))
      assert.deepInclude(yield* dev.counts, { authorizations: 1, refreshes: 1, refreshReuses: 0 })
      assert.strictEqual(yield* context, before)
      servers.required = "mcp:write"
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.includeMembers([...Option.getOrThrow(yield* oauth.state(servers.url)).scopes], ["mcp:read", "mcp:write"])
      assert.strictEqual((yield* dev.counts).authorizations, 2)
      // The second sign-in may be that of another person: without an ID token nothing tells.
      assert.notStrictEqual(yield* context, before)
      // The access token is a JWT, which the server cannot revoke: its grant is revoked, which is not a failure.
      const warnings: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
        if (logLevel === "Warn") warnings.push(message)
      })
      yield* Effect.provide(oauth.signOut(servers.url), Logger.layer([logger]))
      assert.deepEqual(warnings, [])
      assert.isAbove((yield* dev.counts).revocations, 0)
      assert.isUndefined(yield* context)
    }).pipe(Effect.provide([ada, TokenStore.layerMemory])))

  it.effect("names the person of the ID token, and nobody without one", () =>
    Effect.gen(function*() {
      const { servers } = yield* startBoth({ users: [{ name: "ada", claims: { email: "ada@tea.example" } }] })
      for (
        const [scopes, person] of [
          [["openid", "mcp:read"], { subject: "ada", name: "ada@tea.example" }],
          [["mcp:read"], undefined]
        ] as const
      ) {
        const oauth = yield* OAuth.make({ grant, scopes })
        yield* oauth.signIn(servers.url)
        assert.deepEqual(Option.getOrThrow(yield* oauth.state(servers.url)).person, person)
      }
    }).pipe(Effect.provide([ada, TokenStore.layerMemory])))

  it.effect("uses a client ID metadata document", () => {
    const clientMetadataUrl = "https://tea.example/client.json"
    const document = {
      client_id: clientMetadataUrl,
      client_name: "Tea House",
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: ["authorization_code", "refresh_token"],
      token_endpoint_auth_method: "none",
      application_type: "native"
    }
    return Effect.gen(function*() {
      const { dev, servers } = yield* startBoth({ metadataDocuments: { [clientMetadataUrl]: document } })
      const oauth = yield* OAuth.make({
        grant: Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl })
      })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual((yield* dev.counts).registrations, 0)
      assert.strictEqual(Option.getOrThrow(yield* oauth.state(servers.url)).registration, "document")
    }).pipe(Effect.provide([ada, TokenStore.layerMemory]))
  })

  it.effect("binds tokens to a key with nonces, and renews them with it", () =>
    Effect.gen(function*() {
      const { dev, servers } = yield* startBoth({ requireDpopNonce: true })
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.requests.at(-1)!.headers.authorization?.slice(0, 5), "DPoP ")
      expire(servers)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.deepInclude(yield* dev.counts, { authorizations: 1, refreshes: 1 })
    }).pipe(Effect.provide([ada, TokenStore.layerMemory])))

  it.effect("obtains tokens for a job, with a secret and with a key", () =>
    Effect.gen(function*() {
      const { privateKey, publicKey } = yield* Effect.promise(() =>
        jose.generateKeyPair("ES256", { extractable: true })
      )
      const jwk = yield* Effect.promise(() => jose.exportJWK(publicKey))
      const { dev, servers } = yield* startBoth({
        clients: [
          { clientId: "with-secret", clientSecret: "s.e-c_r+e t" },
          { clientId: "with-key", jwks: { keys: [{ ...jwk, alg: "ES256", use: "sig", kid: "k" }] } }
        ]
      })
      const pem = Redacted.make(yield* Effect.promise(() => jose.exportPKCS8(privateKey)))
      const { issuer } = dev
      for (
        const options of [
          { clientId: "with-secret", clientSecret: Redacted.make("s.e-c_r+e t"), issuer },
          { clientId: "with-key", privateKey: { pem, algorithm: "ES256", keyId: "k" }, issuer }
        ]
      ) {
        const oauth = yield* OAuth.make({ grant: Grant.clientCredentials(options), account: options.clientId })
        assert.strictEqual(yield* request(oauth, servers.url), 200, options.clientId)
      }
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it.effect("presents the assertion of a platform", () =>
    Effect.gen(function*() {
      const { privateKey, publicKey } = yield* Effect.promise(() =>
        jose.generateKeyPair("ES256", { extractable: true })
      )
      const jwk = yield* Effect.promise(() => jose.exportJWK(publicKey))
      const platform = "https://platform.example"
      const { servers } = yield* startBoth({
        clients: [{ clientId: "pod", clientSecret: "s", grantTypes: ["urn:ietf:params:oauth:grant-type:jwt-bearer"] }],
        assertionIssuers: [{ issuer: platform, jwks: { keys: [{ ...jwk, alg: "ES256", kid: "p" }] } }]
      })
      const grant = Grant.jwtBearer({
        clientId: "pod",
        clientSecret: Redacted.make("s"),
        issuer: "discovered",
        assertion: ({ issuer }) =>
          Effect.map(
            Effect.promise(() =>
              new jose.SignJWT({ client_id: "pod", resource: servers.url.href, scope: "mcp:read" })
                .setProtectedHeader({ alg: "ES256", kid: "p" })
                .setIssuer(platform).setSubject("pod-1").setAudience(issuer).setJti("j")
                .setIssuedAt().setExpirationTime("1 minute").sign(privateKey)
            ),
            (jwt) => Redacted.make(jwt)
          )
      })
      assert.strictEqual(yield* request(yield* OAuth.make({ grant }), servers.url), 200)
    }).pipe(Effect.provide(TokenStore.layerMemory)))
})
