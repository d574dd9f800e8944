/** The requirements of several instances of a proxy over one database. The tests run it on SQLite and on PostgreSQL. */
import * as DevServer from "@skein/auth/DevServer"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as TestUser from "@skein/auth/TestUser"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as SqlClient from "effect/sql/SqlClient"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

/** A store with a connection of its own. */
const storeOf = <E>(database: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.map(
    Layer.build(Layer.fresh(Layer.provide(ProxyStore.layerSql, database))),
    (context) => ProxyStore.ProxyStore.pipe(Effect.provide(context))
  ).pipe(Effect.flatten)

/** The operations of a store, between two clients of one database. */
export const storesAgree = <E>(database: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.gen(function*() {
    const [one, two] = [yield* storeOf(database), yield* storeOf(database)]
    yield* one.set("a", "first", { group: "g" })
    yield* one.set("b", "second", { group: "g", expiresAt: Date.now() + 60_000 })
    yield* one.set("gone", "expired", { expiresAt: Date.now() - 1 })
    assert.deepStrictEqual(yield* two.get("a"), Option.some({ value: "first", usedAt: undefined }))
    assert.isTrue(Option.isNone(yield* two.get("gone")))
    assert.isTrue(Option.isNone(yield* two.take("gone")))
    const uses = yield* Effect.all([one.use("a", 5), two.use("a", 6), one.use("a", 7)], { concurrency: 3 })
    assert.strictEqual(uses.filter((first) => first).length, 1)
    assert.isDefined(Option.getOrThrow(yield* one.get("a")).usedAt)
    const taken = yield* Effect.all([one.take("b"), two.take("b")], { concurrency: 2 })
    assert.strictEqual(taken.filter(Option.isSome).length, 1)
    yield* two.removeGroup("g")
    assert.isTrue(Option.isNone(yield* one.get("a")))
    let running = 0
    const alone = (store: typeof one) =>
      store.withLock(
        "l",
        Effect.gen(function*() {
          assert.strictEqual(++running, 1)
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
          running--
        })
      )
    yield* Effect.all([alone(one), alone(two), alone(one), alone(two)], { concurrency: "unbounded" })
  })

/** A sign-in that begins at one instance, ends at another, and is used at all of them. */
export const instancesShare = <E>(database: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.gen(function*() {
    const { origin, raw } = yield* kit.port
    const upstream = yield* DevServer.make({
      clients: [{
        clientId: "tea-proxy",
        clientSecret: kit.upstreamSecret,
        tokenEndpointAuthMethod: "client_secret_post",
        redirectUris: [`${origin}/upstream/callback`]
      }]
    })
    const slots = [{ listener: raw.listener }, { listener: raw.listener }, { listener: raw.listener }]
    // All start at once: one of them makes the signing key.
    yield* Effect.all(
      slots.map((slot) =>
        Effect.flatMap(storeOf(database), (store) =>
          kit.instance(slot, origin, upstream, store, { minTokenLifetime: "20 minutes" }))
      ),
      { concurrency: "unbounded" }
    )
    // A load balancer without sticky sessions.
    let next = 0
    raw.listener = (request, response) =>
      slots[next++ % slots.length]!.listener(request, response)
    const resource = `${origin}/mcp`
    const client = yield* oauth.connect(origin, { redirectUri: kit.redirectUri })
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource })
    const tokens = yield* client.exchange(yield* TestUser.make().signIn(url))
    const seen = yield* Effect.all(Array.from({ length: 9 }, () => kit.call(resource, tokens.access_token)), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual([...new Set(seen.map(({ user }) => user.sub))], ["ada"])
    assert.strictEqual((yield* upstream.counts).refreshReuses, 0)
    const refreshed = yield* Effect.all(
      Array.from({ length: 3 }, () => client.refresh(tokens.refresh_token!)),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(refreshed.map(({ status }) => status), [200, 200, 200])
    const revoked = yield* client.post("token/revocation", { token: String(refreshed[0]!.body["refresh_token"]) })
    assert.strictEqual(revoked.status, 200)
    assert.strictEqual(
      (yield* client.refresh(String(refreshed[1]!.body["refresh_token"]))).body["error"],
      "invalid_grant"
    )
  })
