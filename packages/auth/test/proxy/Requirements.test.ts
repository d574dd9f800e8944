/** The requirements of the specification for a proxy and its authorization server that no other file here tests. */
import * as DevServer from "@skein/auth/DevServer"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as TestUser from "@skein/auth/TestUser"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

const { redirectUri } = kit
const minute = 60_000

afterEach(() => void vi.useRealTimers())

const begin = (running: kit.Running, params: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function*() {
    const client = yield* oauth.connect(running.origin, { redirectUri })
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource, ...params })
    return { client, url }
  })

/** Passes an amount of time for everything that reads the time of day. */
const pass = (millis: number) =>
  Effect.sync(() => {
    if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ["Date"] })
    vi.setSystemTime(Date.now() + millis)
  })

describe("the authorization server of a proxy", () => {
  it.live("2025-03-26 · requires PKCE with S256 (OAuth 2.1, 4.1.1)", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      for (const params of [{ code_challenge: "", code_challenge_method: "" }, { code_challenge_method: "plain" }]) {
        const { url } = yield* begin(running)
        for (const [name, value] of Object.entries(params)) {
          if (value === "") url.searchParams.delete(name)
          else url.searchParams.set(name, value)
        }
        const answer = yield* TestUser.make().signIn(url)
        assert.strictEqual(answer.get("error"), "invalid_request")
        assert.isNull(answer.get("code"))
      }
      const { client, url } = yield* begin(running)
      const answer = yield* TestUser.make().signIn(url)
      const wrong = yield* client.post("token", {
        grant_type: "authorization_code",
        code: answer.get("code")!,
        redirect_uri: redirectUri,
        code_verifier: "v".repeat(43)
      })
      assert.strictEqual(wrong.body["error"], "invalid_grant")
    }))

  it.live("2025-03-26 · has no implicit grant, no password grant, and no grant without a person", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const metadata = yield* oauth.getJson(`${running.origin}/.well-known/oauth-authorization-server`)
      assert.deepStrictEqual(metadata["grant_types_supported"], ["authorization_code", "refresh_token"])
      assert.deepStrictEqual(metadata["response_types_supported"], ["code"])
      const { client } = yield* begin(running)
      for (const grant_type of ["password", "client_credentials", "implicit"]) {
        const { status } = yield* client.post("token", {
          grant_type,
          username: "ada",
          password: "x",
          scope: "tea:read"
        })
        assert.strictEqual(status, 400)
      }
    }))

  it.live("2026-07-28 · returns `iss` with errors too, and advertises it", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const metadata = yield* oauth.getJson(`${running.origin}/.well-known/oauth-authorization-server`)
      assert.isTrue(metadata["authorization_response_iss_parameter_supported"])
      const denied = yield* begin(running)
      const answer = yield* TestUser.make({ answer: "deny" }).signIn(denied.url)
      assert.deepStrictEqual([answer.get("error"), answer.get("iss")], ["access_denied", running.origin])
      assert.strictEqual(answer.get("state"), denied.url.searchParams.get("state"))
      const invalid = yield* begin(running, { resource: "https://other.example" })
      const refused = yield* TestUser.make().signIn(invalid.url)
      assert.deepStrictEqual([refused.get("error"), refused.get("iss")], ["invalid_target", running.origin])
    }))

  it.live("2025-03-26 · issues access tokens of ten minutes, which are refused afterwards", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { client, url } = yield* begin(running)
      const { body } = yield* client.exchangeRaw(yield* TestUser.make().signIn(url))
      assert.strictEqual(body["expires_in"], 600)
      const { exp, iat } = oauth.claimsOf(String(body["access_token"]))
      assert.strictEqual(Number(exp) - Number(iat), 600)
      yield* pass(11 * minute)
      // Another instance has not seen the token before.
      const { origin, raw } = yield* kit.port
      yield* kit.instance(raw, running.origin, running.upstream, running.store)
      assert.strictEqual(yield* kit.statusOf(`${origin}/mcp`, String(body["access_token"])), 401)
      assert.strictEqual((yield* client.refresh(String(body["refresh_token"]))).status, 200)
    }))

  it.live("2025-03-26 · ends a sign-in that takes too long, before and after the consent", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { url } = yield* begin(running)
      const late = TestUser.make()
      assert.strictEqual((yield* late.open(url)).status, 200)
      const consent = late.visited.at(-1)!
      yield* pass(11 * minute)
      assert.strictEqual((yield* late.open(consent)).status, 403)
      const other = yield* begin(running)
      const answer = yield* TestUser.make().signIn(other.url)
      yield* pass(2 * minute)
      // A code lasts a minute.
      assert.strictEqual((yield* other.client.exchangeRaw(answer)).body["error"], "invalid_grant")
    }))

  it.live("2025-03-26 · ends the grant of a client when it revokes its token, with that of the upstream", () =>
    Effect.gen(function*() {
      const inner = ProxyStore.makeMemory()
      const running = yield* kit.start({ store: inner, proxy: { verifiedLifetime: 0 } })
      const { client, url } = yield* begin(running)
      const tokens = yield* client.exchange(yield* TestUser.make().signIn(url))
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 200)
      assert.strictEqual((yield* client.post("token/revocation", { token: tokens.refresh_token! })).status, 200)
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 401)
      // Another client cannot revoke it.
      const second = yield* begin(running)
      const others = yield* second.client.exchange(yield* TestUser.make().signIn(second.url))
      yield* client.post("token/revocation", { token: others.refresh_token! })
      assert.strictEqual(yield* kit.statusOf(running.resource, others.access_token), 200)
    }))

  it.live("2025-03-26 · ends a grant when the upstream's token expires and cannot be renewed", () =>
    Effect.gen(function*() {
      // The upstream gives no refresh tokens to this client.
      const { origin, raw } = yield* kit.port
      const upstream = yield* DevServer.make({
        accessTokenLifetime: "5 minutes",
        clients: [{
          clientId: "tea-proxy",
          clientSecret: kit.upstreamSecret,
          grantTypes: ["authorization_code"],
          tokenEndpointAuthMethod: "client_secret_post",
          redirectUris: [`${origin}/upstream/callback`]
        }]
      })
      const store = ProxyStore.makeMemory()
      const proxy = yield* kit.instance(raw, origin, upstream, store, { verifiedLifetime: 0 })
      const running: kit.Running = { origin, resource: `${origin}/mcp`, upstream, store, proxy, redirects: [] }
      const { client, url } = yield* begin(running)
      const tokens = yield* client.exchange(yield* TestUser.make().signIn(url))
      assert.strictEqual((yield* kit.call(running.resource, tokens.access_token)).user.sub, "ada")
      yield* pass(6 * minute)
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 401)
      // A new token would be refused as well, so there is none, and the client signs its user in.
      assert.strictEqual((yield* client.refresh(tokens.refresh_token!)).body["error"], "invalid_grant")
    }))
})
