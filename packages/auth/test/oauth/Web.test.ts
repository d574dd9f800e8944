/** Web applications, signing out, and the state of servers. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError, SignInRequired } from "@skein/auth/OAuthError"
import { RedirectRequired, SignIn } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { pendingStatesKey, tokensKey } from "../../src/client/flow/records.ts"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

/** The sign-in of a web application: the person is redirected, and comes back by another request. */
const web = Layer.succeed(SignIn, {
  applicationType: "web",
  open: () =>
    Effect.succeed({
      redirectUri: "https://app.example/callback",
      authorize: (url) => Effect.fail(new RedirectRequired({ message: "redirect", url }))
    })
})

/** Returns the parameters that the browser of the person brings back. */
const visit = (url: URL) =>
  Effect.map(
    Effect.promise(() => fetch(url, { redirect: "manual" })),
    (response) => new URL(response.headers.get("location")!).searchParams
  )

const redirectOf = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.map(Effect.flip(effect), (error) => {
    assert.instanceOf(error, OAuthError)
    const { reason } = error as OAuthError
    assert.instanceOf(reason, SignInRequired)
    return (reason as SignInRequired).url
  })

const test = (body: (servers: Servers) => Effect.Effect<unknown, unknown, TokenStore.TokenStore | SignIn>) =>
  Effect.flatMap(start, body).pipe(Effect.provide([web, TokenStore.layerMemory]))

describe("finish", () => {
  it.effect("finishes a sign-in that another process has begun", () =>
    test((servers) =>
      Effect.gen(function*() {
        const one = yield* OAuth.make({ grant, account: "kim" })
        const url = yield* redirectOf(request(one, servers.url))
        const two = yield* OAuth.make({ grant, account: "kim" })
        assert.strictEqual((yield* two.finish(yield* visit(url))).href, servers.url.href)
        assert.strictEqual(yield* request(two, servers.url), 200)
        assert.strictEqual(yield* request(one, servers.url), 200)
        assert.strictEqual(servers.count("/as/token"), 1)
      })
    ))

  for (const isRecorded of [true, false]) {
    it.effect(
      `2026-07-28 · Authorization Response Validation · ${isRecorded ? "accepts" : "refuses"} the issuer ` +
        `of ${isRecorded ? "the redirect" : "metadata that has changed since"}`,
      () =>
        test((servers) =>
          Effect.gen(function*() {
            const oauth = yield* OAuth.make({ grant, account: "kim" })
            const url = yield* redirectOf(request(oauth, servers.url))
            // From now on everything names another authorization server.
            const other = `${servers.origin}/other`
            servers.metadata["issuer"] = other
            servers.metadata["token_endpoint"] = `${other}/token`
            servers.resource["authorization_servers"] = [other]
            if (!isRecorded) servers.redirect["iss"] = other
            const outcome = yield* errorOf(oauth.finish(yield* visit(url)))
            assert.strictEqual(outcome.startsWith("success"), isRecorded)
            if (!isRecorded) assert.strictEqual(outcome, "InvalidAuthorizationResponse")
            assert.strictEqual(servers.count("/as/token"), isRecorded ? 1 : 0)
            assert.strictEqual(servers.count("/other/token"), 0)
          })
        )
    )
  }

  it.effect("2025-11-25 · Open Redirection · accepts an answer once", () =>
    test((servers) =>
      Effect.gen(function*() {
        const oauth = yield* OAuth.make({ grant, account: "kim" })
        const answer = yield* visit(yield* redirectOf(request(oauth, servers.url)))
        const all = yield* Effect.all([1, 2, 3].map(() => errorOf(oauth.finish(answer))), { concurrency: 3 })
        assert.strictEqual(all.filter((tag) => tag.startsWith("success")).length, 1)
        assert.strictEqual(all.filter((tag) => tag === "InvalidAuthorizationResponse").length, 2)
        assert.strictEqual(servers.count("/as/token"), 1)
      })
    ))

  it.effect("refuses the answer of another account, which its own account can still use", () =>
    test((servers) =>
      Effect.gen(function*() {
        const kim = yield* OAuth.make({ grant, account: "kim" })
        const eve = yield* OAuth.make({ grant, account: "eve" })
        const answer = yield* visit(yield* redirectOf(request(kim, servers.url)))
        assert.strictEqual(yield* errorOf(eve.finish(answer)), "InvalidAuthorizationResponse")
        assert.isTrue(Option.isNone(yield* eve.state(servers.url)))
        yield* kim.finish(answer)
      })
    ))

  it.effect("2025-11-25 · Open Redirection · refuses an answer after signInTimeout, without a state, and with a guessed one", () =>
    test((servers) =>
      Effect.gen(function*() {
        const oauth = yield* OAuth.make({ grant, account: "kim" })
        const answer = yield* visit(yield* redirectOf(request(oauth, servers.url)))
        for (const params of ["code=c", "code=c&state=", "code=c&state=guess"]) {
          assert.strictEqual(yield* errorOf(oauth.finish(new URLSearchParams(params))), "InvalidAuthorizationResponse")
        }
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* errorOf(oauth.finish(answer)), "InvalidAuthorizationResponse")
        assert.strictEqual(servers.count("/as/token"), 0)
      })
    ))

  for (const way of ["a timeout of the lock", "an interruption"]) {
    it.effect(`finishes a sign-in at the second attempt, after ${way} while another one held the tokens`, () =>
      test((servers) =>
        Effect.gen(function*() {
          const store = yield* TokenStore.TokenStore
          const oauth = yield* OAuth.make({ grant, account: "kim" })
          const answer = yield* visit(yield* redirectOf(request(oauth, servers.url)))
          const locked = store.withLock(tokensKey("kim", servers.url), Effect.never)
          const holder = yield* Effect.forkChild(locked, { startImmediately: true })
          const finishing = yield* Effect.forkChild(errorOf(oauth.finish(answer)), { startImmediately: true })
          // Longer than two waits for the lock (lockTimeout).
          if (way === "an interruption") yield* Fiber.interrupt(finishing)
          else {
            yield* TestClock.adjust("61 seconds")
            assert.strictEqual(yield* Fiber.join(finishing), "StoreFailed")
          }
          yield* Fiber.interrupt(holder)
          yield* oauth.finish(answer)
          assert.strictEqual(servers.count("/as/token"), 1)
          assert.strictEqual(yield* request(oauth, servers.url), 200)
        })
      ))
  }

  it.effect("finishes a sign-in at the second attempt, after the secret of the client was not available", () =>
    test((servers) =>
      Effect.gen(function*() {
        let isAvailable = true
        const clientSecret = Effect.suspend(() =>
          isAvailable ? Effect.succeed(Redacted.make("tea")) : Effect.fail("the vault is closed")
        )
        const client = { clientId: "tea-house", clientSecret, issuer: servers.issuer }
        const given = Grant.authorizationCode({ clientName: "Tea House", client })
        const oauth = yield* OAuth.make({ grant: given, account: "kim" })
        const answer = yield* visit(yield* redirectOf(request(oauth, servers.url)))
        isAvailable = false
        assert.notInclude(yield* errorOf(oauth.finish(answer)), "success")
        assert.strictEqual(servers.count("/as/token"), 0)
        isAvailable = true
        yield* oauth.finish(answer)
        assert.strictEqual(servers.count("/as/token"), 1)
        assert.strictEqual(yield* errorOf(oauth.finish(answer)), "InvalidAuthorizationResponse")
      })
    ))

  it.effect("keeps five sign-ins of an account at a server, and drops the oldest", () =>
    test((servers) =>
      Effect.gen(function*() {
        const oauth = yield* OAuth.make({ grant })
        const urls: Array<URL> = []
        for (let at = 0; at < 7; at++) urls.push(yield* redirectOf(request(oauth, servers.url)))
        assert.strictEqual(
          yield* errorOf(Effect.flatMap(visit(urls[0]!), oauth.finish)),
          "InvalidAuthorizationResponse"
        )
        yield* oauth.finish(yield* visit(urls[3]!))
      })
    ))
})

/** The states and records of sign-ins in a store that was made with `counting`. */
const counting = Effect.gen(function*() {
  const store = yield* TokenStore.makeMemory()
  const keys = new Set<string>()
  let holders = 0
  const unlocked: Array<string> = []
  const counted = TokenStore.TokenStore.of({
    get: store.get,
    set: (key, value) => {
      if (key === pendingStatesKey && holders === 0) unlocked.push(key)
      return Effect.tap(store.set(key, value), () => Effect.sync(() => keys.add(key)))
    },
    remove: (key) => Effect.tap(store.remove(key), () => Effect.sync(() => keys.delete(key))),
    withLock: (key, effect, options) => {
      if (key !== pendingStatesKey) return store.withLock(key, effect, options)
      const counted = Effect.ensuring(
        Effect.andThen(Effect.sync(() => void holders++), effect),
        Effect.sync(() => void holders--)
      )
      return store.withLock(key, counted, options)
    }
  })
  return { store: counted, unlocked, records: () => [...keys].filter((key) => key.startsWith("\"sign-in\"")).length }
})

const listOf = (store: TokenStore.TokenStore["Service"]) =>
  Effect.map(
    store.get(pendingStatesKey),
    (text) => JSON.parse(Redacted.value(Option.getOrThrow(text))) as Array<object>
  )

describe("the records of sign-ins", () => {
  it.effect("are removed when they have expired and another account signs in", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const { records, store, unlocked } = yield* counting
      const begin = (account: string) =>
        Effect.flatMap(OAuth.make({ grant, account }), (oauth) => redirectOf(request(oauth, servers.url))).pipe(
          Effect.provide([web, Layer.succeed(TokenStore.TokenStore, store)])
        )
      yield* Effect.forEach(Array.from({ length: 25 }, (_, at) => `user ${at}`), begin, { concurrency: "unbounded" })
      assert.strictEqual(records(), 25)
      assert.lengthOf(yield* listOf(store), 25)
      yield* TestClock.adjust("9 minutes")
      yield* begin("kim")
      assert.strictEqual(records(), 26)
      yield* TestClock.adjust("1 minute")
      // 20 at most at a time.
      yield* begin("lee")
      assert.strictEqual(records(), 7)
      yield* begin("ada")
      assert.strictEqual(records(), 3)
      assert.lengthOf(yield* listOf(store), 3)
      assert.deepEqual(unlocked, [])
    }))

  it.effect("do not count any longer among five of an account when they were finished", () =>
    test((servers) =>
      Effect.gen(function*() {
        const oauth = yield* OAuth.make({ grant, account: "kim" })
        const first = yield* redirectOf(request(oauth, servers.url))
        for (let at = 0; at < 6; at++) {
          yield* oauth.finish(yield* visit(yield* redirectOf(oauth.signIn(servers.url))))
        }
        yield* oauth.finish(yield* visit(first))
      })
    ))
})

describe("signing in and out", () => {
  it.effect("2025-03-26 · signs in before the first request, at the metadata that the challenge names", () =>
    Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/.well-known/oauth-protected-resource/mcp", () => ({ status: 404 }))
      servers.routes.set("/meta", () => ({ body: servers.resource }))
      servers.challenge = `Bearer resource_metadata="${servers.origin}/meta"`
      const oauth = yield* OAuth.make({ grant })
      yield* oauth.signIn(servers.url)
      const before = servers.count("/mcp")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.count("/mcp") - before, 1)
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))

  it.effect("RFC 7009 · revokes both tokens on sign-out, and forgets them", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      yield* oauth.signIn(servers.url)
      const state = Option.getOrThrow(yield* oauth.state(servers.url))
      assert.deepInclude(state, {
        issuer: servers.issuer,
        scopes: ["read"],
        isRenewable: true,
        registration: "dynamic"
      })
      yield* oauth.signOut(servers.url)
      assert.deepEqual(
        servers.forms("/as/revoke").map(({ token, token_type_hint }) => [token, token_type_hint]),
        [["refresh-2", "refresh_token"], ["access-2", "access_token"]]
      )
      assert.isTrue(Option.isNone(yield* oauth.state(servers.url)))
      assert.deepEqual(yield* oauth.headers({ method: "POST", url: servers.url }), {})
      yield* oauth.signOut(servers.url)
      assert.strictEqual(servers.count("/as/revoke"), 2)
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))

  it.effect("forgets the tokens although the revocation fails", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      yield* oauth.signIn(servers.url)
      servers.routes.set("/as/revoke", () => ({ status: 503 }))
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(JSON.stringify(message)))
      yield* Effect.provide(oauth.signOut(servers.url), Logger.layer([logger]))
      assert.isTrue(Option.isNone(yield* oauth.state(servers.url)))
      assert.include(lines.join("\n"), "did not revoke the token: it answered 503")
      assert.notInclude(lines.join("\n"), "gave no token")
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))

  it.effect("emits the changes of each server", () =>
    Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      const reading = yield* Effect.forkChild(Stream.runCollect(Stream.take(oauth.changes, 6)), {
        startImmediately: true
      })
      yield* Effect.yieldNow
      yield* oauth.signIn(servers.url)
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      yield* request(oauth, servers.url)
      servers.metadata["issuer"] = "https://evil.example"
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      yield* Effect.ignore(request(oauth, servers.url))
      yield* oauth.signOut(servers.url)
      const changes = yield* Fiber.join(reading)
      assert.deepEqual(changes.map(({ status }) => status), [
        "signing-in",
        "signed-in",
        "refreshing",
        "signed-in",
        "failed",
        "signed-out"
      ])
      assert.strictEqual(changes[4]!.error?.reason._tag, "IssuerMismatch")
    }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))
})
