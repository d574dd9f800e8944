/** The presets of providers with opaque tokens, and presets as the upstream of a proxy. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Providers from "@skein/auth/Providers"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import type { JWTPayload } from "jose"
import { createHash } from "node:crypto"
import { makeUpstream } from "../../src/proxy/upstream.ts"
import * as oauth from "../devServer/kit.ts"
import { errorOf, person } from "../oauth/scriptedServers.ts"
import { problemOf, verify } from "../protect/verify.ts"
import * as proxies from "../proxy/kit.ts"
import { makeWorld, type Reply, sign, type World } from "./scriptedProviders.ts"

const clientSecret = Redacted.make("the secret of the app")
const redirectUri = "https://tea.example/upstream/callback"

/** GitHub: tokens by their code or refresh token, and errors with status 200. `at` is its address. */
const addGithub = (world: World, at = "https://github.com", api = "https://api.github.com") => {
  let challenge = ""
  let serial = 0
  const live = new Set<string>()
  const revoked = new Set<string>()
  const failed = (error: string): Reply => ({ body: { error, error_description: "It is incorrect.", error_uri: "x" } })
  world.routes.set(`GET ${at}/login/oauth/authorize`, ({ url }) => {
    challenge = url.searchParams.get("code_challenge")!
    const location = new URL(url.searchParams.get("redirect_uri")!)
    location.searchParams.set("code", "code")
    location.searchParams.set("state", url.searchParams.get("state")!)
    return { status: 302, headers: { location: location.href } }
  })
  world.routes.set(`POST ${at}/login/oauth/access_token`, ({ form, headers }) => {
    // Without this header it answers with a form.
    if (headers.accept !== "application/json") return { body: "access_token=x" }
    if (form.get("client_secret") !== Redacted.value(clientSecret)) return failed("incorrect_client_credentials")
    const isRefresh = form.get("grant_type") === "refresh_token"
    if (isRefresh && revoked.has(form.get("refresh_token")!)) return failed("bad_refresh_token")
    const verifier = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url")
    if (!isRefresh && (form.get("code") !== "code" || verifier !== challenge)) return failed("bad_verification_code")
    live.add(`gho_${++serial}`)
    return {
      body: {
        access_token: `gho_${serial}`,
        token_type: "bearer",
        scope: "read:user,repo",
        expires_in: 28_800,
        refresh_token: `ghr_${serial}`
      }
    }
  })
  world.routes.set(
    `GET ${api}/user`,
    ({ headers }) =>
      live.has(headers.authorization?.split(" ")[1] ?? "") && headers["user-agent"] !== undefined
        ? { body: { id: 583_231, login: "octocat", name: null } }
        : { status: 401 }
  )
  return { revoked }
}

const app = { clientId: "Iv1.tea", clientSecret }

describe("Providers.github", () => {
  const answer = {
    app: { client_id: "Iv1.tea" },
    scopes: ["repo"],
    expires_at: null as string | null,
    user: { id: 1, login: "ada" } as object | null
  }
  const github = Effect.gen(function*() {
    yield* TestClock.setTime(Date.now())
    const world = yield* makeWorld
    const seen: Array<{ readonly authorization: string | undefined; readonly body: string }> = []
    const script = { reply: { body: answer } as Reply }
    world.routes.set("POST https://api.github.com/applications/Iv1.tea/token", ({ body, headers }) => {
      seen.push({ authorization: headers.authorization, body })
      return script.reply
    })
    const verifier = TokenVerifier.make(Providers.github().verifier(app))
    return { script, seen, verifier }
  })

  it.effect("asks GitHub whether a token was issued to the application, as that application", () =>
    Effect.gen(function*() {
      const { seen, verifier } = yield* github
      const token = yield* verify(verifier, "gho_1")
      assert.deepInclude(token, {
        issuer: "https://github.com/login/oauth",
        subject: "1",
        clientId: "Iv1.tea",
        scopes: ["repo"],
        expiresAt: undefined
      })
      const basic = `Basic ${btoa("Iv1.tea:the secret of the app")}`
      assert.deepEqual(seen, [{ authorization: basic, body: "{\"access_token\":\"gho_1\"}" }])
    }))

  it.effect("refuses tokens of other applications, without a user, expired ones, and unknown ones", () =>
    Effect.gen(function*() {
      const { script, verifier } = yield* github
      const problem = (reply: Reply) => {
        script.reply = reply
        return problemOf(verifier, "gho_1")
      }
      assert.strictEqual(yield* problem({ body: { ...answer, app: { client_id: "other" } } }), "Audience")
      assert.strictEqual(yield* problem({ body: { ...answer, user: null } }), "Inactive")
      assert.strictEqual(yield* problem({ body: { ...answer, expires_at: "2020-01-01T00:00:00Z" } }), "Expired")
      assert.strictEqual(yield* problem({ body: { ...answer, expires_at: "soon" } }), "Expired")
      for (const status of [404, 422]) assert.strictEqual(yield* problem({ status }), "Inactive")
      // The secret of the verifier is wrong, or GitHub limits its requests: the client keeps its token.
      for (const status of [401, 403, 429, 500]) assert.strictEqual(yield* problem({ status }), "unavailable")
      const expires_at = new Date(Date.now() + 60_000).toISOString()
      assert.strictEqual(yield* problem({ body: { ...answer, scopes: null, expires_at } }), undefined)
    }))
})

describe("a client at GitHub", () => {
  it.effect("finds its metadata, reads scopes that commas separate, and errors with status 200", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const { revoked } = addGithub(world)
      const preset = Providers.github({ scopes: ["read:user", "repo"] })
      const server = { resource: "https://tea.example/mcp", authorization_servers: [preset.issuer] }
      world.routes.set("GET https://tea.example/.well-known/oauth-protected-resource/mcp", () => ({ body: server }))
      world.routes.set("GET https://github.com/.well-known/oauth-authorization-server/login/oauth", () => ({
        body: {
          issuer: preset.issuer,
          authorization_endpoint: `${preset.issuer}/authorize`,
          token_endpoint: `${preset.issuer}/access_token`,
          // Its secret is accepted in the body.
          token_endpoint_auth_methods_supported: ["client_secret_post"]
        }
      }))
      const client = { ...app, issuer: preset.issuer }
      const grant = Grant.authorizationCode({ clientName: "Tea", ...preset.grant, client })
      const credentials = yield* OAuth.make({ ...preset.oauth, grant })
      yield* credentials.signIn(server.resource)
      const state = Option.getOrThrow(yield* credentials.state(server.resource))
      assert.deepInclude(state, { scopes: ["read:user", "repo"], isRenewable: true, registration: "given" })
      assert.isEmpty(revoked)
      const wrong = { ...client, clientSecret: Redacted.make("another") }
      const refused = yield* OAuth.make({
        ...preset.oauth,
        account: "another",
        grant: Grant.authorizationCode({ clientName: "Tea", client: wrong })
      })
      assert.strictEqual(yield* errorOf(refused.signIn(server.resource)), "TokenRequestFailed")
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))
})

describe("Providers.google", () => {
  it.effect("asks Google for the client and the user of a token, and refuses tokens of others", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.now())
      const world = yield* makeWorld
      const exp = String(Math.floor(Date.now() / 1000) + 60)
      const info = { aud: "tea", azp: "tea", sub: "109", scope: "openid https://www.googleapis.com/auth/drive", exp }
      const script: { reply: Reply } = { reply: { body: info } }
      world.routes.set("POST https://oauth2.googleapis.com/tokeninfo", ({ headers, url }) => {
        assert.deepEqual([headers.authorization, url.search], ["Bearer ya29.a", ""])
        return script.reply
      })
      const verifier = TokenVerifier.make(Providers.google().verifier({ clientIds: ["tea"] }))
      assert.deepInclude(yield* verify(verifier, "ya29.a"), {
        issuer: "https://accounts.google.com",
        subject: "109",
        clientId: "tea",
        scopes: ["openid", "https://www.googleapis.com/auth/drive"],
        expiresAt: Number(exp)
      })
      const problem = (reply: Reply) => {
        script.reply = reply
        return problemOf(verifier, "ya29.a")
      }
      assert.strictEqual(yield* problem({ body: { ...info, aud: "other" } }), "Audience")
      assert.strictEqual(yield* problem({ body: { ...info, sub: undefined } }), "Inactive")
      assert.strictEqual(yield* problem({ body: { ...info, exp: undefined } }), "Expired")
      assert.strictEqual(yield* problem({ body: { ...info, exp: "1" } }), "Expired")
      assert.strictEqual(yield* problem({ status: 400, body: { error: "invalid_token" } }), "Inactive")
      assert.strictEqual(yield* problem({ status: 503 }), "unavailable")
    }))
})

describe("a preset as the upstream of a proxy", () => {
  it.effect("signs in at GitHub, whose token endpoint answers errors with status 200", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const { revoked } = addGithub(world)
      const upstream = makeUpstream(
        { ...Providers.github({ scopes: ["read:user", "repo"] }).upstream, ...app },
        redirectUri
      )
      const url = yield* upstream.authorizationUrl("state", "v".repeat(43))
      assert.strictEqual(url.origin + url.pathname, "https://github.com/login/oauth/authorize")
      assert.strictEqual(url.searchParams.get("scope"), "read:user repo")
      yield* Effect.promise(() => fetch(url, { redirect: "manual" }))
      const query = new URLSearchParams({ code: "code", state: "state" })
      const { user, ...tokens } = yield* upstream.exchange(query, "state", "v".repeat(43))
      assert.deepEqual(user, { id: "583231", name: "octocat" })
      const renewed = yield* upstream.refresh(tokens)
      assert.deepEqual([tokens.access, renewed.access, renewed.refresh], ["gho_1", "gho_2", "ghr_2"])
      // A status of 200 with an error is final: the person has to sign in again.
      revoked.add("ghr_2")
      const refused = yield* Effect.flip(upstream.refresh(renewed))
      assert.deepInclude(refused, { isFinal: true, message: "the upstream answered bad_refresh_token" })
      const wrong = yield* Effect.flip(
        upstream.exchange(new URLSearchParams({ code: "x", state: "s" }), "s", "v".repeat(43))
      )
      assert.deepInclude(wrong, { isFinal: true, message: "the upstream answered bad_verification_code" })
    }))

  it.effect("reads a form and a lifetime as text, and finds metadata behind a redirect of one origin", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      const issuer = "https://old.example"
      const metadata = { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` }
      world.routes.set(`GET ${issuer}/.well-known/openid-configuration`, () => ({
        status: 307,
        headers: { location: `${issuer}/.well-known/openid-configuration/` }
      }))
      world.routes.set(`GET ${issuer}/.well-known/openid-configuration/`, () => ({ body: metadata }))
      let answer: Reply = { body: { access_token: "a", token_type: "bearer", expires_in: "60", refresh_token: null } }
      world.routes.set(`POST ${issuer}/token`, () => answer)
      const upstream = makeUpstream({ name: "Old", issuer, clientId: "tea", clientSecret }, redirectUri)
      const tokens = { access: "x", refresh: "r", expiresAt: 0 }
      const read = yield* upstream.refresh(tokens)
      assert.deepInclude(read, { access: "a", refresh: "r" })
      assert.isAbove(read.expiresAt!, Date.now())
      answer = {
        headers: { "content-type": "application/x-www-form-urlencoded" },
        text: "access_token=b&token_type=bearer"
      }
      assert.deepInclude(yield* upstream.refresh(tokens), { access: "b", refresh: "r", expiresAt: undefined })
      answer = { status: 401, headers: { "www-authenticate": "Basic" }, body: { error: "invalid_client" } }
      // The operator has to repair the secret. The sign-ins of all people are still good.
      const wrong = yield* Effect.flip(upstream.refresh(tokens))
      assert.deepInclude(wrong, { isFinal: false, message: "the upstream answered invalid_client" })
      answer = { text: "error=invalid_grant" }
      assert.isTrue((yield* Effect.flip(upstream.refresh(tokens))).isFinal)
    }))

  it.effect("keeps the tokens when a token endpoint answers neither tokens nor an error", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      world.routes.set("POST https://github.com/login/oauth/access_token", () => ({ body: { maintenance: true } }))
      const upstream = makeUpstream({ ...Providers.github().upstream, ...app }, redirectUri)
      const error = yield* Effect.flip(upstream.refresh({ access: "a", refresh: "r", expiresAt: 0 }))
      assert.isFalse(error.isFinal)
    }))

  it.effect("puts a complete proxy in front of a GitHub Enterprise Server", () =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      // The address is on loopback, where the browser of a test may go.
      addGithub(world, "https://enterprise", "https://enterprise/api/v3")
      const preset = Providers.github({ url: `${world.origin}/enterprise` })
      const running = yield* proxies.start({ proxy: { upstream: { ...preset.upstream, ...app } } })
      const client = yield* oauth.connect(running.origin, { redirectUri: proxies.redirectUri })
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      const tokens = yield* client.exchange(yield* TestUser.make().signIn(url))
      assert.strictEqual(oauth.claimsOf(tokens.access_token)["sub"], `${preset.issuer} 583231`)
    }))

  const others = [
    Providers.google(),
    Providers.entra({ tenant: "9122040d-6c67-4c5b-b112-36a304b66dad", clientId: "api" }),
    Providers.okta({ domain: "acme.okta.com" }),
    Providers.auth0({ domain: "acme.eu.auth0.com", audience: "https://tea.example/api" }),
    Providers.cognito({ region: "eu-central-1", userPoolId: "eu-central-1_AbC" }),
    Providers.keycloak({ url: "https://login.example", realm: "tea" }),
    Providers.workos({ domain: "acme.authkit.app" })
  ]
  for (const { issuer, name, upstream: preset } of others) {
    it.effect(`signs in at ${name} by its metadata, and verifies its ID token`, () =>
      Effect.gen(function*() {
        const world = yield* makeWorld
        world.routes.set(`GET ${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, () => ({
          body: {
            issuer,
            authorization_endpoint: "https://provider.example/authorize",
            token_endpoint: "https://provider.example/token",
            userinfo_endpoint: "https://provider.example/me"
          }
        }))
        world.routes.set("POST https://provider.example/token", async ({ form }) => {
          const tokens = { access_token: "a", refresh_token: "r", token_type: "Bearer", expires_in: 60 }
          if (form.get("grant_type") === "refresh_token") return { body: tokens }
          const claims = name === "Microsoft" ? { sub: "pairwise", oid: "ada", name: "Ada" } : { sub: "ada" }
          return { body: { ...tokens, id_token: await sign(world, issuer, { aud: "tea", ...claims }) } }
        })
        // The userinfo endpoint of Entra is that of Microsoft Graph, which refuses tokens of other APIs.
        world.routes.set("GET https://provider.example/me", () =>
          name === "Microsoft" ? { status: 401 } : { body: { sub: "ada", name: "Ada" } })
        const upstream = makeUpstream({ ...preset, clientId: "tea", clientSecret }, redirectUri)
        const { searchParams } = yield* upstream.authorizationUrl("state", "v".repeat(43))
        assert.include(searchParams.get("scope")!.split(" "), "openid")
        assert.deepEqual(
          ["access_type", "audience"].map((parameter) =>
            searchParams.get(parameter)
          ),
          [name === "Google" ? "offline" : null, name === "Auth0" ? "https://tea.example/api" : null]
        )
        const query = new URLSearchParams({ code: "code", state: "state" })
        const { user, ...tokens } = yield* upstream.exchange(query, "state", "v".repeat(43))
        assert.deepEqual(user, { id: "ada", name: "Ada" })
        assert.strictEqual((yield* upstream.refresh(tokens)).access, "a")
      }))
  }

  const directory = "9122040d-6c67-4c5b-b112-36a304b66dad"
  const shared = Providers.entra({ tenant: "organizations", tenants: [directory], clientId: "api" }).upstream
  const login = "https://login.microsoftonline.com"
  /** Signs in at Entra for several directories, with an ID token of these claims. */
  const signInAtEntra = (claims: JWTPayload, issuer = `${login}/${claims["tid"] as string}/v2.0`) =>
    Effect.gen(function*() {
      const world = yield* makeWorld
      world.routes.set(`POST ${login}/organizations/oauth2/v2.0/token`, async () => {
        const id_token = await sign(world, issuer, { aud: "tea", sub: "pairwise", ...claims })
        return { body: { access_token: "a", refresh_token: "r", token_type: "Bearer", expires_in: 60, id_token } }
      })
      const upstream = makeUpstream({ ...shared, clientId: "tea", clientSecret }, redirectUri)
      const url = yield* upstream.authorizationUrl("state", "v".repeat(43))
      assert.strictEqual(url.pathname, "/organizations/oauth2/v2.0/authorize")
      const { user, ...tokens } = yield* upstream.exchange(
        new URLSearchParams({ code: "code", state: "state" }),
        "state",
        "v".repeat(43)
      )
      assert.strictEqual((yield* upstream.refresh(tokens)).access, "a")
      return user
    })

  it.effect("signs people of several directories in at Entra, and refuses those of others", () =>
    Effect.gen(function*() {
      const user = yield* signInAtEntra({ tid: directory, oid: "ada", name: "Ada" })
      assert.deepEqual(user, { id: `${directory} ada`, name: "Ada" })
      const other = "3f1c0f56-6f0c-4a53-8f0e-5a1f0f1f9c11"
      const refused = [
        yield* Effect.flip(signInAtEntra({ tid: other, oid: "ada" })),
        yield* Effect.flip(signInAtEntra({ tid: directory, oid: "ada" }, `${login}/${other}/v2.0`)),
        yield* Effect.flip(signInAtEntra({ tid: "../evil", oid: "ada" })),
        yield* Effect.flip(signInAtEntra({ tid: directory }))
      ]
      assert.deepEqual(refused.map(({ _tag }) => _tag), refused.map(() => "UpstreamError"))
    }))
})
