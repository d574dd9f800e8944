/** Clients whose store fails, is locked by another process, or contains something else. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { LockLost, LockTimeout, TokenStoreError } from "@skein/auth/TokenStoreError"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { signInMarkKey, tokensKey } from "../../src/client/flow/records.ts"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })
const locked = new TokenStoreError({ message: "locked" })
const failure = new TokenStoreError({ message: "The disk is full" })
const lockLost = new TokenStoreError({ reason: new LockLost({ message: "lost" }) })
const lockTimeout = new TokenStoreError({ reason: new LockTimeout({ message: "too long" }) })

/** A store in memory of which a test replaces operations. */
const makeStore = Effect.gen(function*() {
  const inner = yield* TokenStore.TokenStore
  const state = {
    broken: false,
    inner,
    refusal: undefined as
      | ((key: string, value: string) => Effect.Effect<void, TokenStoreError>)
      | undefined,
    locked: 0,
    lockFailure: locked
  }
  const store: TokenStore.TokenStore["Service"] = {
    ...inner,
    set: (key, value) =>
      state.broken
        ? Effect.fail(failure)
        : state.refusal !== undefined && key.startsWith("\"tokens\"")
        ? state.refusal(key, Redacted.value(value))
        : inner.set(key, value),
    withLock: (key, effect) =>
      Effect.flatMap(
        Effect.suspend(() => state.locked-- > 0 ? Effect.fail(state.lockFailure) : Effect.void),
        () => inner.withLock(key, effect)
      )
  }
  return Object.assign(state, store)
}).pipe(Effect.provide(TokenStore.layerMemory))

/** Another process has taken the lock over, and has stored newer tokens. */
const tookOver = (inner: TokenStore.TokenStore["Service"]) => (key: string, value: string) =>
  Effect.andThen(
    inner.set(key, Redacted.make(JSON.stringify({ ...JSON.parse(value), accessToken: "newer" }))),
    Effect.fail(lockLost)
  )

describe("stores", () => {
  it.effect("keeps rotated tokens that the store did not take, and stores them later", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const { asked, layer } = person()
      const make = Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      const oauth = yield* make
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* TestClock.adjust("3590 seconds")
      servers.accepted.clear()
      store.broken = true
      // The new token is used from memory although it could not be stored.
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.count("/as/token"), 2)
      store.broken = false
      yield* TestClock.adjust("3590 seconds")
      servers.accepted.clear()
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.reused, 0)
      assert.strictEqual(asked.length, 1)
      // Another process reads the newest ones.
      const other = yield* make
      assert.strictEqual(yield* request(other, servers.url), 200)
      assert.strictEqual(asked.length, 1)
    }))

  /** Renews the tokens of one `OAuth` while the store fails. Returns it, and another one that shares the store. */
  const renewUnsaved = (servers: Servers) =>
    Effect.gen(function*() {
      const store = yield* makeStore
      const { asked, layer } = person()
      const make = Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      const [one, two] = [yield* make, yield* make]
      assert.strictEqual(yield* request(one, servers.url), 200)
      assert.strictEqual(yield* request(two, servers.url), 200)
      yield* TestClock.adjust("3590 seconds")
      servers.accepted.clear()
      store.broken = true
      assert.strictEqual(yield* request(one, servers.url), 200)
      store.broken = false
      yield* TestClock.adjust("1 minute")
      return { asked, one, two, store }
    })
  const bearer = (servers: Servers) => servers.requests.findLast(({ path }) => path === "/mcp")!.headers.authorization

  it.effect("does not replace the tokens of another process by those that the store did not take", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const { asked, one, store, two } = yield* renewUnsaved(servers)
      // The other process signs in again: the refresh token that it has read was used.
      yield* two.signIn(servers.url)
      const saved = Redacted.value(Option.getOrThrow(yield* store.get(tokensKey("", servers.url))))
      const { accessToken } = JSON.parse(saved)
      servers.accepted.clear()
      servers.accepted.add(accessToken)
      assert.strictEqual(yield* request(one, servers.url), 200)
      assert.strictEqual(bearer(servers), `Bearer ${accessToken}`)
      assert.strictEqual(Redacted.value(Option.getOrThrow(yield* store.get(tokensKey("", servers.url)))), saved)
      assert.deepEqual([asked.length, servers.reused], [2, 0])
    }))

  it.effect("stays signed out when another process has signed out after the store did not take tokens", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const { asked, one, store, two } = yield* renewUnsaved(servers)
      yield* two.signOut(servers.url)
      servers.accepted.clear()
      servers.redirect = { ...servers.redirect, code: undefined, error: "access_denied" }
      assert.strictEqual(yield* errorOf(request(one, servers.url)), "AuthorizationDenied")
      assert.isTrue(Option.isNone(yield* store.get(tokensKey("", servers.url))))
      assert.deepEqual([asked.length, servers.reused], [2, 0])
    }))

  it.effect("revokes the tokens that the store did not take on sign-out, or those that replaced them", () =>
    Effect.gen(function*() {
      for (const isReplaced of [false, true]) {
        const servers = yield* start
        const { one, store, two } = yield* renewUnsaved(servers)
        if (isReplaced) yield* two.signIn(servers.url)
        yield* one.signOut(servers.url)
        const revoked = servers.forms("/as/revoke").map(({ token }) => token)
        assert.deepEqual(revoked, isReplaced ? ["refresh-4", "access-4"] : ["refresh-3", "access-3"])
        assert.isTrue(Option.isNone(yield* store.get(tokensKey("", servers.url))))
      }
    }))

  it.effect("drops tokens that the store refused after the lock was lost, and uses the newer ones of it", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const { asked, layer } = person()
      const make = Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      const oauth = yield* make
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* TestClock.adjust("3590 seconds")
      servers.accepted.clear()
      servers.accepted.add("newer")
      // Another process took the lock over, and has stored tokens before this one wants to.
      store.refusal = tookOver(store.inner)
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      store.refusal = undefined
      // Neither this request nor the next writes the lost tokens.
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.requests.at(-1)!.headers.authorization, "Bearer newer")
      const saved = Redacted.value(Option.getOrThrow(yield* store.get(tokensKey("", servers.url))))
      assert.strictEqual(JSON.parse(saved).accessToken, "newer")
      assert.deepEqual([servers.reused, asked.length], [0, 1])
    }))

  it.effect("handles a refusal once more after the lock was lost, with the tokens of the process that took it over", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const { asked, layer } = person()
      const oauth = yield* Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* TestClock.adjust("2 minutes")
      servers.accepted.clear()
      servers.accepted.add("newer")
      store.refusal = tookOver(store.inner)
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(bearer(servers), "Bearer newer")
      assert.deepEqual([servers.reused, asked.length, servers.count("/as/token")], [0, 1, 2])
      // A lock that is lost while it is held, and while a request waits for it.
      servers.accepted.clear()
      store.refusal = undefined
      store.lockFailure = lockLost
      store.locked = 1
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      store.locked = 2
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "StoreFailed")
    }))

  it.effect("takes a lock once more after a wait that no sign-in explains, and fails the second time", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const { asked, layer } = person()
      const oauth = yield* Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      store.lockFailure = lockTimeout
      store.locked = 2
      assert.strictEqual(yield* errorOf(oauth.signIn(servers.url)), "StoreFailed")
      assert.strictEqual(asked.length, 0)
      store.locked = 1
      yield* oauth.signIn(servers.url)
      assert.strictEqual(asked.length, 1)
      store.lockFailure = lockLost
      store.locked = 1
      assert.strictEqual(yield* errorOf(oauth.signIn(servers.url)), "StoreFailed")
    }))

  it.effect("reports a store that fails", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      store.broken = true
      const oauth = yield* Effect.provide(OAuth.make({ grant }), [
        person().layer,
        Layer.succeed(TokenStore.TokenStore, store)
      ])
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "StoreFailed")
    }))

  it.effect("waits for a process in which a person is being asked, and fails for any other lock", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const { asked, layer } = person()
      const oauth = yield* Effect.provide(OAuth.make({ grant }), [layer, Layer.succeed(TokenStore.TokenStore, store)])
      store.locked = 1
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "StoreFailed")
      assert.strictEqual(asked.length, 0)
      const key = tokensKey("", servers.url)
      yield* store.set(signInMarkKey(key), Redacted.make(JSON.stringify({ expiresAt: 60_000 })))
      store.locked = 3
      const waiting = yield* Effect.forkChild(request(oauth, servers.url))
      while (store.locked > -1) {
        yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
        yield* TestClock.adjust("1 second")
      }
      assert.strictEqual(yield* Fiber.join(waiting), 200)
    }))

  it.effect("ignores values that are not its own", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const oauth = yield* Effect.provide(OAuth.make({ grant }), [
        person().layer,
        Layer.succeed(TokenStore.TokenStore, store)
      ])
      for (const text of ["", "null", "{}", "not json", "[1]", "{\"accessToken\":1}"]) {
        yield* store.set(tokensKey("", servers.url), Redacted.make(text))
        assert.deepEqual(yield* oauth.state(servers.url).pipe(Effect.map(({ _tag }) => _tag)), "None")
      }
      assert.strictEqual(yield* request(oauth, servers.url), 200)
    }))

  it.effect("signs in and out although the key of the stored tokens cannot be read", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const store = yield* makeStore
      const layer = Layer.merge(person().layer, Layer.succeed(TokenStore.TokenStore, store))
      const make = Effect.provide(OAuth.make({ grant }), layer)
      const key = tokensKey("", servers.url)
      const spoil = Effect.gen(function*() {
        yield* (yield* make).signIn(servers.url)
        const saved = JSON.parse(Redacted.value(Option.getOrThrow(yield* store.get(key))))
        const dpop = { algorithm: "ES256", privateJwk: { kty: "EC" }, publicJwk: {} }
        yield* store.set(key, Redacted.make(JSON.stringify({ ...saved, tokenType: "DPoP", dpop })))
      })
      yield* spoil
      const oauth = yield* make
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "CredentialUnavailable")
      yield* oauth.signIn(servers.url)
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* spoil
      yield* (yield* make).signOut(servers.url)
      assert.isTrue(Option.isNone(yield* store.get(key)))
    }))

  it.effect("keeps the tokens of accounts, servers and odd names apart", () =>
    Effect.sync(() => {
      const url = (text: string) => new URL(text)
      const keys = [
        tokensKey("a", url("https://tea.example/mcp")),
        tokensKey("a https://tea.example/mcp", url("https://tea.example/mcp")),
        tokensKey("", url("https://tea.example/mcp")),
        tokensKey("a", url("https://tea.example/mcp?x=1")),
        tokensKey("a", url("https://tea.example/mcp/")),
        tokensKey("%61", url("https://tea.example/mcp"))
      ]
      assert.strictEqual(new Set(keys).size, keys.length)
      assert.strictEqual(tokensKey("a", url("https://tea.example/mcp#x")), keys[0])
    }))
})
