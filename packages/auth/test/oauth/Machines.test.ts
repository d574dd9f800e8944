/** The grants without a person: client credentials, workload identity, enterprise-managed authorization. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { errorOf, request, type Servers, start } from "./scriptedServers.ts"

const withServers = (
  body: (servers: Servers) => Effect.Effect<unknown, unknown, TokenStore.TokenStore>
) => Effect.flatMap(start, body).pipe(Effect.provide(TokenStore.layerMemory))

describe("client credentials", () => {
  it.effect("oauth-client-credentials · signs an assertion for the issuer (private_key_jwt)", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const { privateKey, publicKey } = yield* Effect.promise(() =>
          jose.generateKeyPair("ES256", { extractable: true })
        )
        const pem = Redacted.make(yield* Effect.promise(() => jose.exportPKCS8(privateKey)))
        const oauth = yield* OAuth.make({
          grant: Grant.clientCredentials({
            clientId: "job",
            privateKey: { pem, algorithm: "ES256", keyId: "k1" },
            issuer: servers.issuer
          })
        })
        assert.deepEqual(oauth.extensions, { "io.modelcontextprotocol/oauth-client-credentials": {} })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const [form] = servers.forms("/as/token")
        assert.strictEqual(form!["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        const { payload, protectedHeader } = yield* Effect.promise(() =>
          jose.jwtVerify(form!["client_assertion"]!, publicKey, {
            audience: servers.issuer,
            issuer: "job",
            subject: "job"
          })
        )
        assert.strictEqual(protectedHeader.kid, "k1")
        // The clock of the server may be behind.
        assert.isAtMost(payload.iat!, Date.now() / 1_000 - 4)
      })
    ))

  it.effect("reads a secret from the configuration when it is needed, and reports a missing one without its value", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const grant = Grant.clientCredentials({
          clientId: "job",
          clientSecret: Config.Redacted("MCP_SECRET"),
          issuer: servers.issuer
        })
        const provider = (env: Record<string, string>) =>
          Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
        const with_ = yield* OAuth.make({ grant }).pipe(provider({ MCP_SECRET: "s" }))
        assert.strictEqual(yield* request(with_, servers.url), 200)
        yield* with_.signOut(servers.url)
        servers.accepted.clear()
        const without = yield* OAuth.make({ grant }).pipe(provider({}))
        assert.strictEqual(yield* errorOf(request(without, servers.url)), "CredentialUnavailable")
      })
    ))

  it.effect("obtains a new token before the old one expires, without a refresh token", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        servers.token = { expires_in: 600, refresh_token: undefined }
        const clientSecret = Redacted.make("s")
        const grant = Grant.clientCredentials({ clientId: "job", clientSecret, issuer: servers.issuer })
        const oauth = yield* OAuth.make({ grant })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        yield* TestClock.adjust("575 seconds")
        const before = servers.count("/mcp")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(servers.count("/mcp") - before, 1)
        assert.strictEqual(servers.count("/as/token"), 2)
      })
    ))

  it.effect("needs one of a secret and a key", () =>
    withServers(() =>
      Effect.gen(function*() {
        const grant = Grant.clientCredentials({ clientId: "job", issuer: "https://login.example" })
        assert.strictEqual(yield* errorOf(OAuth.make({ grant })), "InvalidOptions")
      })
    ))

  it.effect("reports a private key that cannot be read, without quoting it", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const pem = Redacted.make("-----BEGIN PRIVATE KEY-----\nMIIplanted\n-----END PRIVATE KEY-----")
        const grant = Grant.clientCredentials({
          clientId: "job",
          privateKey: { pem, algorithm: "ES256" },
          issuer: "discovered"
        })
        const error = yield* Effect.flip(request(yield* OAuth.make({ grant }), servers.url))
        assert.include(String(error), "PKCS #8")
        assert.notInclude(String(error), "planted")
      })
    ))
})

class Platform extends Context.Service<Platform, { readonly token: Redacted.Redacted }>()("test/Platform") {}

describe("workload identity", () => {
  it.effect("RFC 7523, 2.1 · presents the assertion of the platform, with the services it needs", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const requests: Array<Grant.AssertionRequest> = []
        const grant = Grant.jwtBearer({
          clientId: "pod",
          assertion: (request) =>
            Effect.map(Platform, ({ token }) => {
              requests.push(request)
              return token
            })
        })
        const make = OAuth.make({ grant })
        const oauth = yield* Effect.provideService(make, Platform, { token: Redacted.make("platform-jwt") })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(requests, [{ issuer: servers.issuer, resource: servers.url.href, scopes: ["read"] }])
        assert.deepEqual(servers.forms("/as/token"), [{
          grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
          assertion: "platform-jwt",
          resource: servers.url.href,
          scope: "read",
          client_id: "pod"
        }])
      })
    ))

  it.effect("takes secrets and assertions from async functions, and reports their errors without the text", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const { issuer } = servers
        const pod = (assertion: () => Promise<Redacted.Redacted>) =>
          OAuth.make({ grant: Grant.jwtBearer({ assertion, clientId: "pod", issuer }) })
        assert.strictEqual(yield* request(yield* pod(async () => Redacted.make("a1")), servers.url), 200)
        assert.strictEqual(servers.forms("/as/token")[0]!["assertion"], "a1")
        servers.accepted.clear()
        const job = (clientSecret: () => Redacted.Redacted | Promise<Redacted.Redacted>) =>
          OAuth.make({ grant: Grant.clientCredentials({ clientId: "job", clientSecret, issuer }), account: "job" })
        assert.strictEqual(yield* request(yield* job(async () => Redacted.make("s")), servers.url), 200)
        servers.accepted.clear()
        const throws = () => {
          throw new Error("planted")
        }
        for (const failing of [yield* job(throws), yield* pod(async () => throws())]) {
          const error = yield* Effect.flip(failing.signIn(servers.url))
          assert.strictEqual(error.reason._tag, "CredentialUnavailable")
          assert.notInclude(String(error), "planted")
        }
      })
    ))

  it.effect("leaves out the client of an assertion that names none", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const grant = Grant.jwtBearer({ assertion: () => Effect.succeed(Redacted.make("a")) })
        assert.strictEqual(yield* request(yield* OAuth.make({ grant }), servers.url), 200)
        assert.isFalse("client_id" in servers.forms("/as/token")[0]!)
      })
    ))

  it.effect("presents a refused assertion once, and tries no other grant", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        servers.routes.set("/as/token", () => ({ status: 400, body: { error: "invalid_grant" } }))
        const grant = Grant.jwtBearer({ clientId: "pod", assertion: () => Effect.succeed(Redacted.make("a")) })
        assert.strictEqual(yield* errorOf(request(yield* OAuth.make({ grant }), servers.url)), "TokenRequestFailed")
        assert.strictEqual(servers.count("/as/token"), 1)
        assert.strictEqual(servers.count("/as/register"), 0)
      })
    ))
})

describe("a client whose configuration has changed", () => {
  it.effect("sends its new secret neither in a refresh nor in a revocation to the issuer of the stored tokens", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const make = (clientSecret: string, issuer: string) =>
          OAuth.make({
            grant: Grant.clientCredentials({ clientId: "job", clientSecret: Redacted.make(clientSecret), issuer }),
            signInInterval: 0
          })
        const before = yield* make("old", servers.issuer)
        assert.strictEqual(yield* request(before, servers.url), 200)
        servers.accepted.clear()
        const after = yield* make("new", "https://other.example")
        assert.include(String(yield* Effect.flip(request(after, servers.url))), "is registered with")
        yield* after.signOut(servers.url)
        const sent = servers.requests.flatMap(({ headers }) => headers.authorization ?? [])
        assert.include(sent, `Basic ${btoa("job:old")}`)
        assert.notInclude(sent, `Basic ${btoa("job:new")}`)
      })
    ))
})

describe("enterprise-managed authorization", () => {
  const idJag = "urn:ietf:params:oauth:token-type:id-jag"
  const identityProvider = (servers: Servers) => {
    servers.routes.set("/.well-known/openid-configuration/idp", () => ({
      body: { issuer: `${servers.origin}/idp`, token_endpoint: `${servers.origin}/idp/token` }
    }))
    servers.routes.set("/idp/token", () => ({
      body: { access_token: "the-id-jag", issued_token_type: idJag, token_type: "N_A", expires_in: 300 }
    }))
    return { issuer: `${servers.origin}/idp`, clientId: "agent", idToken: Redacted.make("id-token") }
  }

  it.effect("enterprise-managed · exchanges the ID token for an ID-JAG, and that for a token", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const grant = Grant.identityAssertion({
          clientId: "agent-at-tea",
          clientSecret: Redacted.make("s"),
          issuer: servers.issuer,
          identityProvider: identityProvider(servers)
        })
        const oauth = yield* OAuth.make({ grant })
        assert.deepEqual(oauth.extensions, { "io.modelcontextprotocol/enterprise-managed-authorization": {} })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(servers.forms("/idp/token"), [{
          grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
          requested_token_type: idJag,
          audience: servers.issuer,
          resource: servers.url.href,
          scope: "read",
          subject_token: "id-token",
          subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
          client_id: "agent"
        }])
        const token = servers.requests.find(({ path }) => path === "/as/token")!
        assert.strictEqual(token.headers.authorization, `Basic ${btoa("agent-at-tea:s")}`)
        assert.strictEqual(token.form.get("assertion"), "the-id-jag")
        assert.strictEqual(token.form.get("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer")
      })
    ))

  it.effect("sends a secret to no authorization server but that of its issuer", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const client = { clientId: "a", clientSecret: Redacted.make("s") }
        const grantsOf = (issuer: string | undefined) => [
          Grant.identityAssertion({ ...client, issuer, identityProvider: identityProvider(servers) }),
          Grant.jwtBearer({ ...client, issuer, assertion: () => Effect.succeed(Redacted.make("a")) })
        ]
        for (const grant of grantsOf(undefined)) {
          assert.strictEqual((yield* Effect.flip(OAuth.make({ grant }))).reason._tag, "InvalidOptions")
        }
        for (const grant of grantsOf("https://other.example")) {
          const oauth = yield* OAuth.make({ grant })
          assert.include(String(yield* Effect.flip(request(oauth, servers.url))), "is registered with")
        }
        assert.deepEqual([servers.count("/as/token"), servers.count("/idp/token")], [0, 0])
      })
    ))

  it.effect("reports the refusal of the identity provider", () =>
    withServers((servers) =>
      Effect.gen(function*() {
        const grant = Grant.identityAssertion({ clientId: "a", identityProvider: identityProvider(servers) })
        servers.routes.set("/idp/token", () => ({ status: 400, body: { error: "invalid_target" } }))
        const error = yield* Effect.flip(request(yield* OAuth.make({ grant }), servers.url))
        assert.include(String(error), "invalid_target")
        assert.strictEqual(servers.count("/as/token"), 0)
      })
    ))
})
