/** Sign-in, refresh and the other grants, against scripted servers. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { person, request, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

describe("authorization code", () => {
  it.effect("signs a person in at the first refusal, and sends the token from then on", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked.length, 1)
      const registration = servers.requests.find(({ path }) => path === "/as/register")
      assert.deepEqual(JSON.parse(registration!.body), {
        client_name: "Tea House",
        redirect_uris: ["http://127.0.0.1:41999/callback"],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        application_type: "native",
        scope: "read"
      })
      const { searchParams } = asked[0]!
      assert.strictEqual(searchParams.get("code_challenge_method"), "S256")
      assert.strictEqual(searchParams.get("resource"), `${servers.origin}/mcp`)
      assert.strictEqual(searchParams.get("scope"), "read")
      const [form] = servers.forms("/as/token")
      assert.strictEqual(form!["grant_type"], "authorization_code")
      assert.strictEqual(form!["resource"], `${servers.origin}/mcp`)
      assert.strictEqual(form!["code"], "code-1")
      assert.isAbove(form!["code_verifier"]!.length, 42)
      assert.isTrue(Option.isSome(yield* oauth.state(servers.url)))
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("refreshes once before the token expires, for all requests at the time", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("3580 seconds")
      const all = Array.from({ length: 50 }, () => request(oauth, servers.url))
      assert.deepEqual(new Set(yield* Effect.all(all, { concurrency: "unbounded" })), new Set([200]))
      assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
        "authorization_code",
        "refresh_token"
      ])
      assert.strictEqual(servers.forms("/as/token")[1]!["resource"], `${servers.origin}/mcp`)
      assert.strictEqual(servers.reused, 0)
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("refreshes after a refusal, once for all requests that were refused", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      const all = Array.from({ length: 50 }, () => request(oauth, servers.url))
      assert.deepEqual(new Set(yield* Effect.all(all, { concurrency: "unbounded" })), new Set([200]))
      assert.strictEqual(servers.count("/as/token"), 2)
      assert.strictEqual(servers.reused, 0)
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})

describe("client credentials", () => {
  it.effect("obtains a token with the secret of the client", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({
        grant: Grant.clientCredentials({
          clientId: "job.one-two",
          clientSecret: Redacted.make("s_e-c.r"),
          issuer: servers.issuer
        })
      })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const sent = servers.requests.find(({ path }) => path === "/as/token")!
      assert.strictEqual(sent.headers.authorization, `Basic ${btoa("job.one-two:s_e-c.r")}`)
      assert.deepEqual(servers.forms("/as/token"), [{
        grant_type: "client_credentials",
        resource: `${servers.origin}/mcp`,
        scope: "read"
      }])
    }).pipe(Effect.provide(TokenStore.layerMemory)))
})
