/** How long the token endpoint is left alone after it failed. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { failureMarkKey, tokensKey } from "../../src/client/flow/records.ts"
import { type Answer, errorOf, person, request, type Servers, start } from "./scriptedServers.ts"
import { FlowBounds } from "../../src/client/flow/environment.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

/** A person who has signed in, and whose token is refused since. */
const test = (
  body: (servers: Servers, oauth: OAuth.OAuth, asked: ReadonlyArray<URL>) => Effect.Effect<unknown, unknown>,
  lowered: Partial<FlowBounds> = {}
) => {
  const { asked, layer } = person()
  return Effect.gen(function*() {
    yield* TestClock.setTime(1_700_000_000_000)
    const servers = yield* start
    const oauth = yield* Effect.updateService(
      OAuth.make({ grant }),
      FlowBounds,
      (bounds) => ({ ...bounds, ...lowered })
    )
    assert.strictEqual(yield* request(oauth, servers.url), 200)
    servers.accepted.clear()
    yield* TestClock.adjust("2 minutes")
    yield* body(servers, oauth, asked)
    assert.strictEqual(servers.reused, 0)
  }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
}

const refreshes = (servers: Servers) =>
  servers.forms("/as/token").filter((form) => form["grant_type"] === "refresh_token").length

const refuse = (servers: Servers, answer: Answer) => void servers.routes.set("/as/token", () => answer)

const reasonOf = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.map(Effect.flip(effect), (error) => {
    assert.instanceOf(error, OAuthError)
    return (error as OAuthError).reason
  })

describe("token requests that fail", () => {
  it.effect("sends one refresh for 20 calls, which fail with the same error", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503 })
        const first = yield* reasonOf(request(oauth, servers.url))
        assert.deepInclude(first, { _tag: "TokenRequestFailed", status: 503, retryable: true })
        for (let call = 1; call < 20; call++) assert.strictEqual(yield* reasonOf(request(oauth, servers.url)), first)
        yield* Effect.all(Array.from({ length: 20 }, () => Effect.exit(request(oauth, servers.url))), {
          concurrency: "unbounded"
        })
        assert.strictEqual(refreshes(servers), 1)
        assert.strictEqual(asked.length, 1)
        servers.routes.delete("/as/token")
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(asked.length, 1)
      })
    ))

  it.effect("publishes each failure once", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        const failed: Array<string> = []
        yield* Effect.forkChild(
          Stream.runForEach(
            oauth.changes,
            ({ status }) => Effect.sync(() => void (status === "failed" && failed.push(status)))
          ),
          { startImmediately: true }
        )
        refuse(servers, { status: 503 })
        for (let call = 0; call < 20; call++) yield* Effect.exit(request(oauth, servers.url))
        assert.strictEqual(failed.length, 1)
        yield* TestClock.adjust("1 second")
        for (let call = 0; call < 20; call++) yield* Effect.exit(request(oauth, servers.url))
        assert.strictEqual(failed.length, 2)
      })
    ))

  it.effect("maxRetryDelay · waits twice as long after each failure, at most a minute by default", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503 })
        const times: Array<number> = []
        for (let second = 0; second < 250; second++) {
          const before = refreshes(servers)
          yield* Effect.exit(request(oauth, servers.url))
          if (refreshes(servers) > before) times.push(second)
          yield* TestClock.adjust("1 second")
        }
        assert.deepEqual(times, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243])
        // A success begins again with one second.
        yield* TestClock.adjust("1 minute")
        servers.routes.delete("/as/token")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        servers.accepted.clear()
        refuse(servers, { status: 503 })
        yield* TestClock.adjust("2 minutes")
        const before = refreshes(servers)
        yield* Effect.exit(request(oauth, servers.url))
        yield* TestClock.adjust("1 second")
        yield* Effect.exit(request(oauth, servers.url))
        assert.strictEqual(refreshes(servers) - before, 2)
      })
    ))

  it.effect("maxRetryDelay · bounds the delay", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503 })
        for (let second = 0; second < 10; second++) {
          yield* Effect.exit(request(oauth, servers.url))
          yield* TestClock.adjust("1 second")
        }
        // At 0, 1, 3, 5, 7 and 9 seconds.
        assert.strictEqual(refreshes(servers), 6)
      }), { maxRetryDelay: 2_000 }))

  for (
    const [title, status, body] of [
      ["seconds", 503, ""],
      ["seconds with an error of OAuth", 429, { error: "slow_down" }]
    ] as const
  ) {
    it.effect(`RFC 9110, 10.2.3 · waits as long as the server asks (${title})`, () =>
      test((servers, oauth) =>
        Effect.gen(function*() {
          refuse(servers, { status, body, headers: { "retry-after": "90" } })
          assert.deepInclude(yield* reasonOf(request(oauth, servers.url)), { retryAfter: 90_000 })
          servers.routes.delete("/as/token")
          yield* TestClock.adjust("89 seconds")
          assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
          assert.strictEqual(refreshes(servers), 1)
          yield* TestClock.adjust("1 second")
          assert.strictEqual(yield* request(oauth, servers.url), 200)
        })
      ))
  }

  it.effect("RFC 9110, 10.2.3 · waits as long as the server asks (a date, by the clock of the server)", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        const at = (seconds: number) => new Date(Date.UTC(2001, 1, 1, 0, 0, seconds)).toUTCString()
        refuse(servers, { status: 503, headers: { date: at(0), "retry-after": at(90) } })
        assert.deepInclude(yield* reasonOf(request(oauth, servers.url)), { retryAfter: 90_000 })
      })
    ))

  for (const value of ["soon", "-5", "", "0", "Mon, 01 Jan 1990 00:00:00 GMT"]) {
    it.effect(`waits a second after the Retry-After ${JSON.stringify(value)}`, () =>
      test((servers, oauth) =>
        Effect.gen(function*() {
          refuse(servers, { status: 503, headers: { "retry-after": value } })
          assert.deepInclude(yield* reasonOf(request(oauth, servers.url)), { retryAfter: undefined })
          servers.routes.delete("/as/token")
          yield* TestClock.adjust("1 second")
          assert.strictEqual(yield* request(oauth, servers.url), 200)
        })
      ))
  }

  it.effect("waits for at most 10 minutes as the server asks", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503, headers: { "retry-after": "99999999999" } })
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
        servers.routes.delete("/as/token")
        yield* TestClock.adjust("599 seconds")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
      })
    ))

  it.effect("uses a token that is still valid, and tries to renew it after the delay alone", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        servers.routes.delete("/as/token")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const before = refreshes(servers)
        refuse(servers, { status: 503, headers: { "retry-after": "20" } })
        yield* TestClock.adjust("3575 seconds")
        for (let call = 0; call < 20; call++) assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(refreshes(servers) - before, 1)
        yield* TestClock.adjust("20 seconds")
        for (let call = 0; call < 20; call++) assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(refreshes(servers) - before, 2)
      })
    ))

  /** Two processes that share a store, and whose token is refused. */
  const two = (
    body: (servers: Servers, one: OAuth.OAuth, other: OAuth.OAuth) => Effect.Effect<
      unknown,
      unknown,
      TokenStore.TokenStore
    >
  ) => {
    const { layer } = person()
    return Effect.gen(function*() {
      yield* TestClock.setTime(1_700_000_000_000)
      const servers = yield* start
      const [one, other] = [yield* OAuth.make({ grant }), yield* OAuth.make({ grant })]
      assert.strictEqual(yield* request(one, servers.url), 200)
      assert.strictEqual(yield* request(other, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      yield* body(servers, one, other)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  }

  it.effect("uses the tokens that another process has stored meanwhile", () =>
    two((servers, one, other) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503, headers: { "retry-after": "90" } })
        assert.strictEqual(yield* errorOf(request(one, servers.url)), "TokenRequestFailed")
        servers.routes.delete("/as/token")
        yield* other.signIn(servers.url)
        assert.strictEqual(yield* request(one, servers.url), 200)
      })
    ))

  it.effect("leaves the token endpoint alone in all processes that share the store", () =>
    two((servers, one, other) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503, headers: { "retry-after": "0" } })
        const first = yield* reasonOf(request(one, servers.url))
        for (let call = 0; call < 20; call++) {
          const { _tag, message } = yield* reasonOf(request(other, servers.url))
          assert.deepEqual([_tag, message], [first._tag, first.message])
        }
        assert.strictEqual(refreshes(servers), 1)
        // The second failure, of the other process, doubles the delay of both.
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* errorOf(request(other, servers.url)), "TokenRequestFailed")
        assert.strictEqual(refreshes(servers), 2)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* errorOf(request(one, servers.url)), "TokenRequestFailed")
        assert.strictEqual(refreshes(servers), 2)
        servers.routes.delete("/as/token")
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* request(one, servers.url), 200)
        // A success ends the delay of both.
        servers.accepted.clear()
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* request(other, servers.url), 200)
      })
    ))

  it.effect("tries at once in another process whose configuration may differ from that of a refused job", () =>
    Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/as/token", (arrived) =>
        arrived.headers.authorization === `Basic ${btoa("job:right")}`
          ? servers.ordinary["/as/token"]!(arrived)
          : { status: 401, body: { error: "invalid_client" } })
      const make = (secret: string) =>
        OAuth.make({
          grant: Grant.clientCredentials({
            clientId: "job",
            clientSecret: Redacted.make(secret),
            issuer: servers.issuer
          })
        })
      assert.strictEqual(yield* errorOf(request(yield* make("wrong"), servers.url)), "TokenRequestFailed")
      assert.strictEqual(yield* request(yield* make("right"), servers.url), 200)
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  for (
    const [title, value] of [
      ["of a clock that is an hour ahead", { failures: 1, until: 1_700_003_720_000, reason: { message: "m" } }],
      ["that cannot be read", { failures: "many" }],
      ["that is over", { failures: 1e9, until: 0, reason: { message: "m" } }]
    ] as const
  ) {
    it.effect(`sends a request after a failure ${title}`, () =>
      two((servers, one) =>
        Effect.gen(function*() {
          const store = yield* TokenStore.TokenStore
          const key = failureMarkKey(tokensKey("", servers.url))
          yield* store.set(key, Redacted.make(JSON.stringify(value)))
          assert.strictEqual(yield* request(one, servers.url), 200)
        })
      ))
  }

  it.effect("signs in at any time, and begins again", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        refuse(servers, { status: 503, headers: { "retry-after": "90" } })
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
        servers.routes.delete("/as/token")
        yield* oauth.signIn(servers.url)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(asked.length, 2)
      })
    ))

  it.effect("asks a person once for 20 calls whose code cannot be redeemed", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      refuse(servers, { status: 503 })
      const oauth = yield* OAuth.make({ grant })
      for (let call = 0; call < 20; call++) {
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
      }
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("sends one token request for 20 calls of a job whose secret is refused", () =>
    Effect.gen(function*() {
      const servers = yield* start
      refuse(servers, { status: 401, body: { error: "invalid_client" } })
      const clientSecret = Redacted.make("wrong")
      const job = Grant.clientCredentials({ clientId: "job", clientSecret, issuer: servers.issuer })
      const oauth = yield* OAuth.make({ grant: job })
      for (let call = 0; call < 20; call++) {
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
      }
      assert.strictEqual(servers.count("/as/token"), 1)
      servers.routes.delete("/as/token")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it.effect("sends one registration for 20 calls whose client is refused", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/as/register", () => ({ status: 503 }))
      const oauth = yield* OAuth.make({ grant })
      for (let call = 0; call < 20; call++) {
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "RegistrationFailed")
      }
      assert.strictEqual(servers.count("/as/register"), 1)
      servers.routes.delete("/as/register")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})
