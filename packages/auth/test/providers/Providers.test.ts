/** The presets of providers with JWTs: a client with its part signs in at a server with its part. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Protect from "@skein/auth/Protect"
import * as Providers from "@skein/auth/Providers"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/Http"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import type { JWTPayload } from "jose"
import { person } from "../oauth/scriptedServers.ts"
import { resource } from "../protect/authorizationServer.ts"
import { serve } from "../protect/kit.ts"
import { problemOf, verify } from "../protect/verify.ts"
import { addKeys, addServer, makeWorld, type Script, sign, type World } from "./scriptedProviders.ts"

const tenant = "9122040d-6c67-4c5b-b112-36a304b66dad"
const api = "0c0c2b0d-3c0e-4f31-9a53-0b1b7a6f2d11"
const entra = Providers.entra({ tenant, clientId: api })
const okta = Providers.okta({ domain: "acme.okta.com", audiences: ["api://default"] })
const auth0 = Providers.auth0({ domain: "acme.eu.auth0.com", audience: "https://tea.example/api" })
const cognito = Providers.cognito({ region: "eu-central-1", userPoolId: "eu-central-1_AbC", clients: ["client"] })
const keycloak = Providers.keycloak({ url: "https://login.example", realm: "tea house" })
const workos = Providers.workos({ domain: "acme.authkit.app" })

interface Case {
  readonly provider: Providers.JwtProvider
  readonly script: Script
  /** The scopes that the server requires. */
  readonly scopes: ReadonlyArray<string>
  readonly principal: { readonly id: string; readonly scopes: ReadonlyArray<string> }
}

const entraErrors = (query: URLSearchParams) => {
  if (query.has("resource")) return { error: "invalid_target", error_description: "AADSTS9010010" }
  const short = query.get("scope")!.split(" ").filter((scope) => !scope.includes("://") && scope !== "offline_access")
  if (short.length > 0) return { error: "invalid_client", error_description: `AADSTS650053 ${short.join(" ")}` }
  return query.get("prompt") === "consent" ? { error: "access_denied", error_description: "AADSTS90094" } : undefined
}

const cases: ReadonlyArray<Case> = [
  {
    provider: entra,
    scopes: [entra.scope("tea.read")],
    principal: { id: `${entra.issuer} oid-of-ada`, scopes: [`api://${api}/tea.read`] },
    script: {
      issuer: entra.issuer,
      metadataUrl: `${entra.issuer}/.well-known/openid-configuration`,
      authorizationEndpoint: `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/authorize`,
      tokenEndpoint: `https://login.microsoftonline.com/${tenant}/oauth2/v2.0/token`,
      jwksUri: `https://login.microsoftonline.com/${tenant}/discovery/v2.0/keys`,
      metadata: { code_challenge_methods_supported: undefined, scopes_supported: ["openid", "offline_access"] },
      refuse: entraErrors,
      claims: () => ({ aud: api, sub: "pairwise", oid: "oid-of-ada", tid: tenant, azp: "client", scp: "tea.read" }),
      answer: () => ({ scope: `api://${api}/tea.read` })
    }
  },
  {
    provider: okta,
    scopes: ["tea.read"],
    principal: { id: `${okta.issuer} 00u1`, scopes: ["tea.read", "offline_access"] },
    script: {
      issuer: "https://acme.okta.com/oauth2/default",
      metadataUrl: "https://acme.okta.com/.well-known/oauth-authorization-server/oauth2/default",
      authorizationEndpoint: "https://acme.okta.com/oauth2/default/v1/authorize",
      tokenEndpoint: "https://acme.okta.com/oauth2/default/v1/token",
      jwksUri: "https://acme.okta.com/oauth2/default/v1/keys",
      claims: () => ({
        aud: "api://default",
        sub: "ada@acme.example",
        uid: "00u1",
        cid: "client",
        scp: ["tea.read", "offline_access"]
      })
    }
  },
  {
    provider: auth0,
    scopes: ["tea:read"],
    principal: { id: "https://acme.eu.auth0.com/ auth0|1", scopes: ["openid", "tea:read"] },
    script: {
      issuer: "https://acme.eu.auth0.com/",
      metadataUrl: "https://acme.eu.auth0.com/.well-known/openid-configuration",
      authorizationEndpoint: "https://acme.eu.auth0.com/authorize",
      tokenEndpoint: "https://acme.eu.auth0.com/oauth/token",
      jwksUri: "https://acme.eu.auth0.com/.well-known/jwks.json",
      // Without the compatibility profile `resource` is ignored.
      claims: (query) => ({
        aud: [query.get("audience") ?? "none", "https://acme.eu.auth0.com/userinfo"],
        sub: "auth0|1",
        azp: "client",
        scope: "openid tea:read"
      })
    }
  },
  {
    provider: cognito,
    scopes: ["tea/read"],
    principal: { id: `${cognito.issuer} 7f2`, scopes: ["tea/read"] },
    script: {
      issuer: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC",
      metadataUrl: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC/.well-known/openid-configuration",
      authorizationEndpoint: "https://tea.auth.eu-central-1.amazoncognito.com/oauth2/authorize",
      tokenEndpoint: "https://tea.auth.eu-central-1.amazoncognito.com/oauth2/token",
      jwksUri: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC/.well-known/jwks.json",
      metadata: { code_challenge_methods_supported: undefined },
      claims: () => ({ sub: "7f2", client_id: "client", token_use: "access", scope: "tea/read" })
    }
  },
  {
    provider: keycloak,
    scopes: ["tea"],
    principal: { id: "https://login.example/realms/tea%20house 5a1", scopes: ["profile", "tea"] },
    script: {
      issuer: "https://login.example/realms/tea%20house",
      metadataUrl: "https://login.example/realms/tea%20house/.well-known/openid-configuration",
      authorizationEndpoint: "https://login.example/realms/tea%20house/protocol/openid-connect/auth",
      tokenEndpoint: "https://login.example/realms/tea%20house/protocol/openid-connect/token",
      jwksUri: "https://login.example/realms/tea%20house/protocol/openid-connect/certs",
      claims: () => ({ aud: [resource, "account"], sub: "5a1", azp: "client", typ: "Bearer", scope: "profile tea" })
    }
  },
  {
    provider: workos,
    scopes: [],
    principal: { id: "https://acme.authkit.app user_01", scopes: ["openid"] },
    script: {
      issuer: "https://acme.authkit.app",
      metadataUrl: "https://acme.authkit.app/.well-known/oauth-authorization-server",
      authorizationEndpoint: "https://acme.authkit.app/oauth2/authorize",
      tokenEndpoint: "https://acme.authkit.app/oauth2/token",
      jwksUri: "https://acme.authkit.app/oauth2/jwks",
      claims: (query) => ({ aud: query.get("resource")!, sub: "user_01", client_id: "client", scope: "openid" })
    }
  }
]

const whoami = Tool.layer(Tool.make("whoami"), () =>
  Effect.map(Principal.current, (principal) => {
    const { client, id, scopes } = Option.getOrThrow(principal)
    return JSON.stringify({ id, client, scopes })
  }))

/** Serves a server with a preset at `resource`, and its provider. */
const start = ({ provider, scopes, script }: Case) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(Date.now())
    const world = yield* makeWorld
    const queries = addServer(world, script)
    const verify = TokenVerifier.jwt(provider.jwt)
    const protection = yield* Protect.make({ resource, verify, scopes, maxFailures: 0, ...provider.protect })
    const { port } = yield* serve(protection, [whoami])
    world.hosts.set("https://tea.example", `http://127.0.0.1:${port}`)
    return { world, queries }
  })

/** Calls the tool as a client with these options. */
const call = (provider: Providers.Provider, oauth: Partial<OAuth.Options>) =>
  Effect.gen(function*() {
    const client = { clientId: "client", issuer: provider.issuer }
    const grant = Grant.authorizationCode({ clientName: "Tea", ...provider.grant, client })
    const credentials = yield* OAuth.make({ ...oauth, grant })
    const mcp = yield* Client.make(ClientHttp.transport({ url: resource, credentials }))
    const { content } = yield* mcp.callTool("whoami")
    return JSON.parse((content as ReadonlyArray<{ readonly text: string }>)[0]!.text) as unknown
  }).pipe(Effect.provide([person().layer, TokenStore.layerMemory]))

const messageOf = <A, R>(effect: Effect.Effect<A, unknown, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, {
    onSuccess: () => "success",
    onFailure: (error) => {
      let text = ""
      for (let at: unknown = error; at instanceof Error; at = (at as { reason?: unknown }).reason ?? at.cause) {
        text += `${(at as { readonly _tag?: string })._tag ?? ""} ${at.message}\n`
      }
      return text
    }
  })

const byName = (name: string): Case => cases.find(({ provider }) => provider.name === name)!

/** Returns the principal, or the refusal, of a token at a server with a preset. */
const judge = (provider: Providers.JwtProvider, claims: JWTPayload, world: World) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(Date.now())
    addKeys(world, provider.jwt.jwksUri ?? "")
    const token = yield* Effect.promise(() => sign(world, provider.jwt.issuer, claims))
    return yield* verify(TokenVerifier.jwt(provider.jwt), token)
  })

describe("Providers", () => {
  for (const one of cases) {
    it.effect(`signs a client in at a server behind ${one.provider.name}`, () =>
      Effect.gen(function*() {
        yield* start(one)
        assert.deepEqual(yield* call(one.provider, one.provider.oauth), { client: "client", ...one.principal })
      }))
  }

  for (const name of ["Microsoft", "Cognito"]) {
    it.effect(`fails at ${name} without the preset, because it does not announce PKCE`, () =>
      Effect.gen(function*() {
        const one = byName(name)
        yield* start(one)
        assert.include(yield* messageOf(call(one.provider, {})), "PKCE")
      }))
  }

  it.effect("fails at Entra with a resource, with a scope without its application, and where consent is forced", () =>
    Effect.gen(function*() {
      const one = byName("Microsoft")
      yield* start(one)
      const { assumePkce } = entra.oauth
      assert.include(yield* messageOf(call(entra, { assumePkce })), "AADSTS9010010")
      assert.include(yield* messageOf(call(entra, { ...entra.oauth, scopes: ["tea.read"] })), "AADSTS650053")
      assert.include(yield* messageOf(call({ ...entra, grant: {} }, entra.oauth)), "AADSTS90094")
    }))

  it.effect("requests the scopes of Entra with the URI of the application", () =>
    Effect.gen(function*() {
      const { queries } = yield* start(byName("Microsoft"))
      const preset = Providers.entra({ tenant, clientId: api, scopes: ["tea.read", "api://other/x"] })
      yield* call(preset, preset.oauth)
      assert.strictEqual(queries[0]!.get("scope"), `api://${api}/tea.read api://other/x offline_access`)
    }))

  it.effect("takes the permissions of an application at Entra from its roles, and not those of a user", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const job = { aud: api, sub: "job", oid: "job", azp: "job", roles: ["Tea.Brew", 7] as never }
      const principal = entra.protect.principal(yield* judge(entra, job, world))
      assert.deepEqual(principal, { id: `${entra.issuer} job`, scopes: [`api://${api}/Tea.Brew`] })
      const user = { ...job, scp: "tea.read" }
      assert.deepEqual(entra.protect.principal(yield* judge(entra, user, world))["scopes"], [`api://${api}/tea.read`])
    }))

  it.effect("accepts tokens of Entra of both versions, for one person, and no other application's", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const claims = { oid: "o", tid: tenant, scp: "x" }
      const first = { ...claims, iss: `https://sts.windows.net/${tenant}/`, aud: `api://${api}`, appid: "client" }
      const second = { ...claims, aud: api, sub: "b" }
      const token = yield* judge(entra, { ...first, sub: "a" }, world)
      assert.deepInclude(token, { issuer: first.iss, clientId: "client" })
      const ids = [token, yield* judge(entra, second, world)].map((one) => entra.protect.principal(one).id)
      assert.deepEqual(ids, [`${entra.issuer} o`, `${entra.issuer} o`])
      const [v1, v2] = ([1, 2] as const).map((tokenVersion) => Providers.entra({ tenant, clientId: api, tokenVersion }))
      assert.deepInclude(yield* Effect.flip(judge(v1!, second, world)), { problem: "Issuer" })
      assert.deepInclude(yield* Effect.flip(judge(v2!, first, world)), { problem: "Issuer" })
      assert.deepInclude(yield* judge(v1!, first, world), { issuer: first.iss })
      const other = yield* Effect.flip(judge(entra, { ...second, aud: "another" }, world))
      assert.deepInclude(other, { problem: "Audience" })
      // Clients sign in at the endpoints of version 2 in both cases.
      const verifier = TokenVerifier.jwt(v1!.jwt)
      const protection = yield* Protect.make({ resource, verify: verifier, maxFailures: 0, ...v1!.protect })
      const { port } = yield* serve(protection, [whoami])
      world.hosts.set("https://tea.example", `http://127.0.0.1:${port}`)
      const metadata = yield* Effect.promise(() =>
        fetch("https://tea.example/.well-known/oauth-protected-resource/mcp").then((reply) => reply.json())
      )
      assert.deepInclude(metadata, { authorization_servers: [entra.issuer] })
    }))

  it.effect("accepts tokens of several directories of Entra, whose people differ, and of no others", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const partner = "3f1c0f56-6f0c-4a53-8f0e-5a1f0f1f9c11"
      const shared = Providers.entra({ tenant: "organizations", tenants: [tenant, partner], clientId: api })
      const issuerOf = (tid: string) => `https://login.microsoftonline.com/${tid}/v2.0`
      const of = (tid: string) =>
        judge(shared, { iss: issuerOf(tid), aud: api, sub: "a", oid: "o", tid, scp: "x" }, world)
      const ids = [yield* of(tenant), yield* of(partner)].map((token) => shared.protect.principal(token).id)
      assert.deepEqual(ids, [`${issuerOf(tenant)} o`, `${issuerOf(partner)} o`])
      const outsider = "0c0c2b0d-3c0e-4f31-9a53-0b1b7a6f2d11"
      assert.deepInclude(yield* Effect.flip(of(outsider)), { problem: "Issuer" })
      assert.strictEqual(shared.jwt.jwksUri, "https://login.microsoftonline.com/organizations/discovery/v2.0/keys")
    }))

  it.effect("refuses tokens without an audience: of other clients at Cognito, and of Keycloak without a mapper", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const facts = { sub: "a", client_id: "other", token_use: "access" }
      assert.deepInclude(yield* Effect.flip(judge(cognito, facts, world)), { problem: "Audience" })
      const id = { sub: "a", aud: "client", token_use: "id" }
      assert.deepInclude(yield* Effect.flip(judge(cognito, id, world)), { problem: "Audience" })
      const mapperless = Providers.keycloak({ url: "https://login.example/", realm: "tea" })
      const withKeys = { ...mapperless, jwt: { ...mapperless.jwt, jwksUri: "https://login.example/keys" } }
      for (const aud of [undefined, "account"]) {
        const claims = { sub: "a", azp: "client", ...(aud === undefined ? {} : { aud }) }
        assert.deepInclude(yield* Effect.flip(judge(withKeys, claims, world)), { problem: "Audience" })
      }
    }))

  it.effect("refuses an opaque token of Auth0, which it issues without an audience", () =>
    Effect.gen(function*() {
      const verifier = TokenVerifier.jwt(Providers.auth0({ domain: "acme.eu.auth0.com" }).jwt)
      assert.strictEqual(yield* problemOf(verifier, "eyJhbGciOiJkaXIifQ..iv.text.tag"), "Malformed")
    }))

  it.effect("keeps users apart whose login at Okta was given to somebody else", () =>
    Effect.sync(() => {
      const token = { issuer: okta.issuer, subject: "ada@acme.example", clientId: "c", claims: { uid: "00u1" } }
      const id = (facts: object) => okta.protect.principal!({ ...token, ...facts } as never).id
      assert.strictEqual(id({}), `${okta.issuer} 00u1`)
      assert.strictEqual(id({ claims: {} }), `${okta.issuer} ada@acme.example`)
      assert.strictEqual(id({ claims: {}, subject: undefined }), `client ${okta.issuer} c`)
      assert.strictEqual(id({ claims: {}, subject: undefined, clientId: undefined }), "")
    }))

  it("rejects options that make an issuer which no token has", () => {
    const wrong = [
      () => Providers.entra({ tenant: "common", clientId: api }),
      () => Providers.entra({ tenant: "acme.onmicrosoft.com", clientId: api }),
      () => Providers.entra({ tenant: "organizations", clientId: api }),
      () => Providers.entra({ tenant, tenants: [tenant], clientId: api }),
      () => Providers.okta({ domain: "https://acme.okta.com" }),
      () => Providers.okta({ domain: "acme.okta.com", authorizationServer: "a/b" }),
      () => Providers.auth0({ domain: "acme.eu.auth0.com/" }),
      () => Providers.workos({ domain: "Acme.authkit.app" }),
      () => Providers.cognito({ region: "eu/central", userPoolId: "x" }),
      () => Providers.keycloak({ url: "login.example", realm: "tea" }),
      () => Providers.github({ url: "https://github.example?x" })
    ]
    for (const make of wrong) assert.throws(make, /^Providers\.\w+: \w+ must be /)
  })
})
