/** The authorization server without Skein's client: what it does without faults, and each fault. */
import * as AuthorizationScenario from "@skein/testing/AuthorizationScenario"
import * as FaultyAuthorizationServer from "@skein/testing/FaultyAuthorizationServer"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"

const { members, respond, rule } = AuthorizationScenario
const redirectUri = "http://127.0.0.1:41999/callback"
const verifier = "a".repeat(43)

const get = (url: string, init?: RequestInit) => Effect.promise(() => fetch(url, { redirect: "manual", ...init }))
const json = (response: Response) => Effect.promise(() => response.json() as Promise<Record<string, string>>)

const post = (url: string, form: Record<string, string>) =>
  get(url, { method: "POST", body: new URLSearchParams(form) })

/** Signs in by hand, and returns the answer of the token endpoint. */
const signIn = Effect.fnUntraced(function*(server: FaultyAuthorizationServer.FaultyAuthorizationServer) {
  const url = new URL(`${server.issuer}/authorize`)
  url.search = new URLSearchParams({
    client_id: "c",
    redirect_uri: redirectUri,
    state: "s",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256"
  }).toString()
  const location = new URL((yield* get(url.href)).headers.get("location")!)
  assert.strictEqual(location.searchParams.get("state"), "s")
  assert.strictEqual(location.searchParams.get("iss"), server.issuer)
  const form = { grant_type: "authorization_code", redirect_uri: redirectUri, code_verifier: verifier }
  return yield* post(`${server.issuer}/token`, { ...form, code: location.searchParams.get("code")! })
})

const call = (url: string, token?: string) =>
  get(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params: {} })
  })

describe("a faulty authorization server", () => {
  it.effect("is correct without faults: PKCE, rotation, detection of reuse", () =>
    Effect.gen(function*() {
      const server = yield* FaultyAuthorizationServer.make({ faults: [] })
      const refused = yield* call(server.url)
      assert.strictEqual(refused.status, 401)
      assert.include(refused.headers.get("www-authenticate"), "/.well-known/oauth-protected-resource/mcp")
      const { access_token, refresh_token } = yield* json(yield* signIn(server))
      assert.notStrictEqual((yield* call(server.url, access_token)).status, 401)
      const refresh = () =>
        post(`${server.issuer}/token`, { grant_type: "refresh_token", refresh_token: refresh_token! })
      assert.strictEqual((yield* refresh()).status, 200)
      assert.strictEqual((yield* refresh()).status, 400)
      assert.strictEqual(server.reuseCount, 1)
      assert.strictEqual((yield* call(server.url, access_token)).status, 401)
      assert.includeMembers([...server.secrets], [access_token!, refresh_token!, verifier])
      assert.strictEqual(server.requestCount("refresh"), 2)
    }))

  it.effect("refuses access tokens after expireTokens, and no refresh token", () =>
    Effect.gen(function*() {
      const server = yield* FaultyAuthorizationServer.make({ faults: [] })
      const { access_token, refresh_token } = yield* json(yield* signIn(server))
      yield* server.expireTokens
      assert.strictEqual((yield* call(server.url, access_token)).status, 401)
      const answer = yield* post(`${server.issuer}/token`, {
        grant_type: "refresh_token",
        refresh_token: refresh_token!
      })
      assert.strictEqual(answer.status, 200)
    }))

  it.effect("changes members, with its addresses, and counts requests per endpoint", () =>
    Effect.gen(function*() {
      const server = yield* FaultyAuthorizationServer.make({
        faults: [
          rule("server metadata", members({ issuer: "{issuer}/{n}" }, ["token_endpoint"]), { nth: 1, times: 1 })
        ]
      })
      const read = Effect.flatMap(get(`${server.issuer}/.well-known/oauth-authorization-server`), json)
      assert.strictEqual((yield* read)["issuer"], server.issuer)
      const changed = yield* read
      assert.strictEqual(changed["issuer"], `${server.issuer}/1`)
      assert.notProperty(changed, "token_endpoint")
      assert.strictEqual((yield* read)["issuer"], server.issuer)
      yield* server.use([rule("server metadata", respond(307, "", { location: "{server}" }))])
      const redirect = yield* get(`${server.issuer}/.well-known/oauth-authorization-server`)
      assert.strictEqual(redirect.headers.get("location"), server.url)
    }))

  it.effect("carries a request out and loses its answer", () =>
    Effect.gen(function*() {
      const server = yield* FaultyAuthorizationServer.make({ faults: [] })
      const { refresh_token } = yield* json(yield* signIn(server))
      yield* server.use([rule("refresh", { _tag: "Cut", isHandled: true }, { times: 1 })])
      const form = { grant_type: "refresh_token", refresh_token: refresh_token! }
      const lost = yield* Effect.exit(
        Effect.tryPromise(() => fetch(`${server.issuer}/token`, { method: "POST", body: new URLSearchParams(form) }))
      )
      assert.strictEqual(lost._tag, "Failure")
      assert.strictEqual((yield* post(`${server.issuer}/token`, form)).status, 400)
      assert.strictEqual(server.reuseCount, 1)
    }))

  it.effect("sends large, deep and endless bodies", () =>
    Effect.gen(function*() {
      const server = yield* FaultyAuthorizationServer.make({
        faults: [
          rule("resource metadata", { _tag: "LargeBody", bytes: 1_000 }, { times: 1 }),
          rule("resource metadata", { _tag: "DeepBody", depth: 500 }, { nth: 1, times: 1 }),
          rule("resource metadata", { _tag: "EndlessBody" }, { nth: 2 })
        ]
      })
      const url = new URL("/.well-known/oauth-protected-resource/mcp", server.url).href
      const text = Effect.flatMap(get(url), (response) => Effect.promise(() => response.text()))
      assert.strictEqual((yield* text).length, 1_000)
      assert.strictEqual((yield* text).length, 1_000)
      const body = (yield* get(url)).body!.getReader()
      let bytes = 0
      while (bytes < 1_000_000) bytes += (yield* Effect.promise(() => body.read())).value!.byteLength
      yield* Effect.promise(() => body.cancel())
    }))

  it("describes a scenario as JSON", () => {
    const scenario: AuthorizationScenario.AuthorizationScenario = {
      revision: "2025-11-25",
      tokenLifetimeSeconds: 60,
      faults: [rule("token", respond(400, { error: "invalid_grant" })), rule("authorization", members({ iss: "x" }))]
    }
    const read = Schema.decodeUnknownSync(AuthorizationScenario.AuthorizationScenario)
    assert.deepEqual(read(JSON.parse(JSON.stringify(scenario))), scenario)
  })
})
