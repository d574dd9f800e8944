/** The bounds of the client, and programs that share a store. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import { person, request, start } from "./scriptedServers.ts"
import { FlowBounds } from "../../src/client/flow/environment.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

describe("sharing", () => {
  it.effect("asks the person once for eight programs with one store that are refused at the same time", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const programs = yield* Effect.all(Array.from({ length: 8 }, () => OAuth.make({ grant })))
      const requests = programs.flatMap((oauth) => [request(oauth, servers.url), request(oauth, servers.url)])
      assert.deepEqual(new Set(yield* Effect.all(requests, { concurrency: "unbounded" })), new Set([200]))
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(servers.count("/as/register"), 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("keeps the tokens of two accounts apart", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      for (const account of ["kim", "eve"]) {
        assert.strictEqual(yield* request(yield* OAuth.make({ grant, account }), servers.url), 200)
      }
      assert.strictEqual(asked.length, 2)
      const kim = yield* OAuth.make({ grant, account: "kim" })
      yield* kim.signOut(servers.url)
      assert.isTrue(Option.isSome(yield* (yield* OAuth.make({ grant, account: "eve" })).state(servers.url)))
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})

describe("bounds", () => {
  it.effect("maxServers · drops the server that was used least recently, and reads its tokens from the store", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const [one, two] = [yield* start, yield* start]
      const oauth = yield* Effect.updateService(
        OAuth.make({ grant }),
        FlowBounds,
        (bounds) => ({ ...bounds, maxServers: 1 })
      )
      for (const { url } of [one, two, one, two]) assert.strictEqual(yield* request(oauth, url), 200)
      assert.strictEqual(asked.length, 2)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("minTokenLifetime · renews so early, and at half of a short lifetime", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant, minTokenLifetime: "10 minutes" })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* TestClock.adjust("49 minutes")
      yield* request(oauth, servers.url)
      assert.strictEqual(servers.count("/as/token"), 1)
      servers.token = { expires_in: 60 }
      yield* TestClock.adjust("2 minutes")
      yield* request(oauth, servers.url)
      assert.strictEqual(servers.count("/as/token"), 2)
      yield* TestClock.adjust("29 seconds")
      yield* request(oauth, servers.url)
      assert.strictEqual(servers.count("/as/token"), 2)
      yield* TestClock.adjust("2 seconds")
      yield* request(oauth, servers.url)
      assert.strictEqual(servers.count("/as/token"), 3)
      assert.strictEqual(servers.count("/mcp"), 6)
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))

  it.effect("returns the headers of a token that is not due as an exit, which needs no fiber and no timeout", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const headers = () => oauth.headers({ method: "POST", url: servers.url })
      assert.isDefined(Option.getOrThrow(yield* oauth.state(servers.url)).expiresAt)
      assert.isTrue(Exit.isExit(headers()))
      yield* TestClock.adjust("3580 seconds")
      assert.isFalse(Exit.isExit(headers()))
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))

  it.effect("keeps eight registrations of a client at an issuer, the newest ones", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const signIn = (port: number) =>
        Effect.flatMap(OAuth.make({ grant }), (oauth) => oauth.signIn(servers.url)).pipe(
          Effect.provide(person({ redirectUri: `http://127.0.0.1:${port}/callback` }).layer)
        )
      for (let port = 40_000; port < 40_009; port++) yield* signIn(port)
      assert.strictEqual(servers.count("/as/register"), 9)
      yield* signIn(40_008)
      yield* signIn(40_001)
      assert.strictEqual(servers.count("/as/register"), 9)
      yield* signIn(40_000)
      assert.strictEqual(servers.count("/as/register"), 10)
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it.effect("changes · does not wait for a slow reader", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const clientSecret = Redacted.make("s")
      const oauth = yield* OAuth.make({
        grant: Grant.clientCredentials({ clientId: "job", clientSecret, issuer: servers.issuer })
      })
      let seen = 0
      const reading = Stream.runForEach(Stream.take(oauth.changes, 10), () =>
        Effect.suspend(() => seen++ === 0 ? Effect.sleep("1 hour") : Effect.void))
      yield* Effect.forkChild(reading, { startImmediately: true })
      yield* Effect.yieldNow
      for (let at = 0; at < 50; at++) {
        yield* oauth.signIn(servers.url)
      }
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(seen, 10)
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it.effect("authorizationParameters · adds parameters, and replaces none of OAuth", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.metadata["authorization_endpoint"] = `${servers.issuer}/authorize?tenant=tea`
      const oauth = yield* OAuth.make({
        grant: Grant.authorizationCode({
          clientName: "Tea House",
          authorizationParameters: { access_type: "offline", state: "fixed", code_challenge_method: "plain" }
        })
      })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const { searchParams } = asked[0]!
      assert.strictEqual(searchParams.get("access_type"), "offline")
      assert.strictEqual(searchParams.get("tenant"), "tea")
      assert.notStrictEqual(searchParams.get("state"), "fixed")
      assert.deepEqual(searchParams.getAll("code_challenge_method"), ["S256"])
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})
