/**
 * The clients of the official SDKs, with their own OAuth code, at a server that is protected by `Protect`, with
 * `DevServer` as the authorization server.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Sdk1 from "@modelcontextprotocol/sdk/client/auth-extensions.js"
import * as Sdk2 from "@modelcontextprotocol/client"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import { exportJWK, exportPKCS8, generateKeyPair, SignJWT } from "jose"
import * as Sdks from "../authSdkClients.ts"
import * as Servers from "../authServers.ts"

const sdks = [Sdks.v1, Sdks.v2]

/** Closes a connection at the end of a test. */
const open = (connect: () => Promise<Sdks.Connection>) =>
  Effect.acquireRelease(Effect.promise(connect), (connection) => Effect.promise(connection.close))

const scopesOf = (url: URL | undefined) => url?.searchParams.get("scope")?.split(" ").toSorted()

for (const sdk of sdks) {
  const providers = sdk === Sdks.v1 ? Sdk1 : Sdk2
  for (const revision of sdk.revisions) {
    describe(`${sdk.name} in ${revision}`, () => {
      it.live("registers, signs in with PKCE, calls a tool, and refreshes after its token has expired", () =>
        Effect.gen(function*() {
          const { dev, requests, resource } = yield* Servers.start()
          const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
          const connection = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person, revision }))
          expect(connection.revision()).toBe(revision)
          expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
          expect(provider.redirects.map((url) => url.searchParams.get("resource"))).toEqual([resource])
          expect(scopesOf(provider.redirects[0])).toContain("mcp:read")
          expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 1, tokens: 1, refreshes: 0 })

          const expired = yield* dev.issueToken({ resource, accessTokenLifetime: "-1 minute" })
          provider.stored = { ...provider.stored!, access_token: expired }
          expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
          expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshes: 1, refreshReuses: 0 })
          expect(provider.stored.access_token).not.toBe(expired)
          expect(provider.invalidated).toEqual([])
          expect(requests.filter(({ status }) => status >= 400 && status !== 401)).toEqual([])
        }))

      it.live("asks the person for more scopes after 403, and repeats the call", () =>
        Effect.gen(function*() {
          const { dev, resource } = yield* Servers.start()
          // SDK v1 refreshes instead of asking if it has a refresh token: see below.
          const provider = new Sdks.MemoryProvider(sdk === Sdks.v1 ? { grantTypes: ["authorization_code"] } : {})
          const person = TestUser.make()
          const connection = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person, revision }))
          expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
          const brew = () => Sdks.callWithStepUp(sdk, connection, provider, person, "brew")
          expect(yield* Effect.promise(brew)).toBe("tea")
          expect(scopesOf(provider.redirects[1])).toEqual(expect.arrayContaining(["mcp:read", "mcp:write"]))
          expect(yield* Effect.promise(brew)).toBe("tea")
          expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
          expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2 })
        }))

      it.live("signs in as itself, with a secret and with a private key", () =>
        Effect.gen(function*() {
          const keys = yield* Effect.promise(() => generateKeyPair("ES256", { extractable: true }))
          const jwk = { ...yield* Effect.promise(() => exportJWK(keys.publicKey)), alg: "ES256", use: "sig" }
          const { dev, resource } = yield* Servers.start({
            dev: {
              clients: [
                { clientId: "job", clientSecret: "a secret of the job" },
                { clientId: "robot", jwks: { keys: [jwk] } }
              ]
            }
          })
          // SDK v1 requests the scopes of its options only, whatever a challenge requires (`fetchToken` in its
          // `client/auth.js`). SDK v2 requests those of the challenge.
          const scope = sdk === Sdks.v1 ? "mcp:read mcp:write" : "mcp:read"
          const shared = { expectedIssuer: dev.issuer, scope }
          const privateKey = yield* Effect.promise(() => exportPKCS8(keys.privateKey))
          const jobs = {
            job: new providers.ClientCredentialsProvider({
              ...shared,
              clientId: "job",
              clientSecret: "a secret of the job"
            }),
            robot: new providers.PrivateKeyJwtProvider({
              ...shared,
              clientId: "robot",
              privateKey,
              algorithm: "ES256"
            })
          }
          for (const [clientId, provider] of Object.entries(jobs)) {
            const connection = yield* open(async () => {
              const connection = sdk.open(resource, provider, revision)
              await connection.connect()
              return connection
            })
            expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ${clientId}`)
            expect(yield* Effect.promise(() => connection.call("brew"))).toBe("tea")
          }
          expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 0, refreshes: 0 })
        }))
    })
  }

  describe(sdk.name, () => {
    it.live("signs in with its client ID metadata document, without a registration", () =>
      Effect.gen(function*() {
        const clientMetadataUrl = "https://desk.example/client.json"
        const { dev, resource } = yield* Servers.start({
          dev: {
            metadataDocuments: {
              [clientMetadataUrl]: {
                client_id: clientMetadataUrl,
                client_name: "Desk",
                redirect_uris: [Sdks.redirectUri],
                grant_types: ["authorization_code", "refresh_token"],
                response_types: ["code"],
                token_endpoint_auth_method: "none"
              }
            }
          }
        })
        const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider({ clientMetadataUrl })]
        const connection = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person }))
        expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
        expect(provider.redirects[0]!.searchParams.get("client_id")).toBe(clientMetadataUrl)
        expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 1 })
      }))

    it.live("2024-11-05 · signs in over HTTP+SSE, and refreshes after its token has expired", () =>
      Effect.gen(function*() {
        const { dev, resource, sse } = yield* Servers.start()
        const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
        const connection = yield* open(() => Sdks.signIn(sdk, { url: sse, provider, person, revision: "2024-11-05" }))
        expect(connection.revision()).toBe("2024-11-05")
        expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
        const expired = yield* dev.issueToken({ resource, accessTokenLifetime: "-1 minute" })
        provider.stored = { ...provider.stored!, access_token: expired }
        expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
        expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshes: 1, refreshReuses: 0 })
      }))

    it.live("gets a working token again after the person's sign-in was revoked", () =>
      Effect.gen(function*() {
        const { dev, resource } = yield* Servers.start()
        const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
        const first = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person }))
        expect(yield* Effect.promise(() => first.call("whoami"))).toBe(`${dev.issuer} ada`)
        yield* dev.revokeAll
        const expired = yield* dev.issueToken({ resource, accessTokenLifetime: "-1 minute" })
        provider.stored = { ...provider.stored!, access_token: expired }
        const second = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person }))
        expect(yield* Effect.promise(() => second.call("whoami"))).toBe(`${dev.issuer} ada`)
        // `invalid_grant` ends the tokens, not the client.
        expect(provider.invalidated).toEqual(["tokens"])
        expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2 })
      }))
  })
}

describe("sdk-v1", () => {
  it.live("refreshes instead of asking for more scopes if it has a refresh token, and reports 403", () =>
    Effect.gen(function*() {
      const { dev, resource } = yield* Servers.start()
      const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
      const connection = yield* open(() => Sdks.signIn(Sdks.v1, { url: resource, provider, person }))
      // `auth` of its `client/auth.js` refreshes whenever there is a refresh token, and a refresh never adds a scope
      // (RFC 6749, 6). This is a limit of the SDK: without the refresh token it asks, as above.
      const refused = yield* Effect.promise(() => connection.call("brew").catch(String))
      expect(refused).toContain("Server returned 403 after trying upscoping")
      expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshes: 1, refreshReuses: 0 })
      const { refresh_token: _, ...tokens } = provider.stored!
      provider.stored = tokens
      // A refusal with the same challenge is final until another request succeeds.
      expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
      const brew = () => Sdks.callWithStepUp(Sdks.v1, connection, provider, person, "brew")
      expect(yield* Effect.promise(brew)).toBe("tea")
    }))
})

describe("sdk-v2", () => {
  for (const revision of Sdks.v2.revisions) {
    it.live(`${revision} · sends DPoP proofs with the server's nonces, and steps up with them`, () =>
      Effect.gen(function*() {
        const { dev, requests, resource } = yield* Servers.start({
          dev: { requireDpopNonce: true },
          protection: { dpop: { require: true, nonces: {} } }
        })
        const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider({ dpop: true })]
        const connection = yield* open(() => Sdks.signIn(Sdks.v2, { url: resource, provider, person, revision }))
        expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
        const brew = () => Sdks.callWithStepUp(Sdks.v2, connection, provider, person, "brew")
        expect(yield* Effect.promise(brew)).toBe("tea")
        expect(provider.stored!.token_type).toBe("DPoP")
        expect(new Set(requests.map(({ scheme }) => scheme))).toEqual(new Set(["", "DPoP"]))
        expect(yield* dev.counts).toMatchObject({ registrations: 1, authorizations: 2 })
      }))
  }

  it.live("presents the assertion of an identity provider (ID-JAG) without a person", () =>
    Effect.gen(function*() {
      const issuer = "https://accounts.acme.example"
      const keys = yield* Effect.promise(() => generateKeyPair("ES256"))
      const jwk = { ...yield* Effect.promise(() => exportJWK(keys.publicKey)), alg: "ES256" }
      const { dev, resource } = yield* Servers.start({
        dev: {
          assertionIssuers: [{ issuer, jwks: { keys: [jwk] } }],
          clients: [{
            clientId: "agent",
            clientSecret: "a secret of the agent",
            grantTypes: ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
          }]
        }
      })
      const provider = new Sdk2.CrossAppAccessProvider({
        clientId: "agent",
        clientSecret: "a secret of the agent",
        expectedIssuer: dev.issuer,
        assertion: ({ authorizationServerUrl, resourceUrl }) =>
          new SignJWT({ client_id: "agent", resource: resourceUrl, scope: "mcp:read" })
            .setProtectedHeader({ alg: "ES256", typ: "oauth-id-jag+jwt" })
            .setIssuer(issuer)
            .setSubject("grace")
            .setAudience(authorizationServerUrl)
            .setJti("1")
            .setIssuedAt()
            .setExpirationTime("5m")
            .sign(keys.privateKey)
      })
      const connection = yield* open(async () => {
        const connection = Sdks.v2.open(resource, provider)
        await connection.connect()
        return connection
      })
      expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} grace`)
      expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 0 })
    }))
})
