/** Step-up, the stops of loops, and refreshes that fail. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { SignInError } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const notReached = new SignInError({ message: "The browser was closed" })
const grant = Grant.authorizationCode({ clientName: "Tea House" })

const test = (
  body: (servers: Servers, oauth: OAuth.OAuth, asked: ReadonlyArray<URL>) => Effect.Effect<unknown, unknown>,
  options: Omit<OAuth.Options, "grant"> = {}
) => {
  const { asked, layer } = person()
  return Effect.gen(function*() {
    const servers = yield* start
    yield* body(servers, yield* OAuth.make({ grant, ...options }), asked)
  }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
}

/** Refuses tokens whose request lacked a scope, with the scopes of the challenge. */
const requires = (servers: Servers, asked: ReadonlyArray<URL>, scope: string, challenge = scope) =>
  servers.routes.set("/mcp", (arrived) => {
    const scopes = asked.at(-1)?.searchParams.get("scope")?.split(" ") ?? []
    return arrived.headers.authorization === undefined || scope.split(" ").every((each) => scopes.includes(each))
      ? servers.ordinary["/mcp"]!(arrived)
      : { status: 403, headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${challenge}"` } }
  })

const scopesOf = (asked: ReadonlyArray<URL>) => asked.map(({ searchParams }) => searchParams.get("scope"))

describe("step-up", () => {
  it.effect("2026-07-28 · Step-Up · requests the earlier scopes and those of the challenge", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        requires(servers, asked, "write")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(scopesOf(asked), ["read", "read write"])
        // Nothing was refreshed: a refresh cannot add scopes.
        assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
          "authorization_code",
          "authorization_code"
        ])
        requires(servers, asked, "admin")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(scopesOf(asked).at(-1), "read write admin")
      })
    ))

  it.effect("2025-11-25 · Scope Challenge Handling · stops when the scopes were requested and not granted", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        requires(servers, asked, "impossible", "write")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "InsufficientScope")
        assert.strictEqual(asked.length, 2)
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "InsufficientScope")
        assert.strictEqual(asked.length, 2)
      })
    ))

  it.effect("2026-07-28 · Step-Up · stops when a person has denied the scopes, until the next sign-in", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        requires(servers, asked, "write")
        servers.redirect = { ...servers.redirect, code: undefined, error: "access_denied" }
        requires(servers, [], "write")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "AuthorizationDenied")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "InsufficientScope")
        assert.strictEqual(asked.length, 2)
      })
    ))

  it.effect("stops when the challenge names no scopes", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        servers.routes.set("/mcp", () => ({
          status: 403,
          headers: { "www-authenticate": "Bearer error=\"insufficient_scope\"" }
        }))
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "InsufficientScope")
        assert.strictEqual(asked.length, 1)
      })
    ))

  it.effect("asks nobody after any other 403", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        servers.routes.set("/mcp", () => ({ status: 403, headers: { "www-authenticate": "Bearer scope=\"write\"" } }))
        assert.strictEqual(yield* request(oauth, servers.url), 403)
        assert.strictEqual(asked.length, 1)
      })
    ))

  it.effect("2026-07-28 · Refresh Tokens · requests offline_access where the server lists it, with consent", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        servers.metadata["scopes_supported"] = ["read", "offline_access"]
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(scopesOf(asked), ["read offline_access"])
        assert.strictEqual(asked[0]!.searchParams.get("prompt"), "consent")
      })
    ))

  it.effect("does not request offline_access with offlineAccess: false", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        servers.metadata["scopes_supported"] = ["read", "offline_access"]
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(scopesOf(asked), ["read"])
      }), { offlineAccess: false }))

  it.effect("sends the configured resource byte for byte, and none with omit", () =>
    Effect.all([
      test((servers, oauth, asked) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.strictEqual(asked[0]!.searchParams.get("resource"), "API://Tea")
          assert.strictEqual(servers.forms("/as/token")[0]!["resource"], "API://Tea")
        }), { resource: "API://Tea" }),
      test((servers, oauth, asked) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.isFalse(asked[0]!.searchParams.has("resource"))
          assert.isFalse("resource" in servers.forms("/as/token")[0]!)
        }), { resource: "omit" }),
      test((servers, oauth, asked) =>
        Effect.gen(function*() {
          // `new URL(resource).href` would add a slash.
          servers.resource["resource"] = servers.origin
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.strictEqual(asked[0]!.searchParams.get("resource"), servers.origin)
        })
      )
    ]))
})

describe("stops", () => {
  it.effect("does not ask again for a token that was just granted and is refused", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        servers.routes.set("/mcp", () => ({ status: 401, headers: { "www-authenticate": servers.challenge } }))
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRefused")
        assert.strictEqual(asked.length, 1)
        assert.strictEqual(servers.count("/as/token"), 1)
        yield* TestClock.adjust("59 seconds")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRefused")
        assert.strictEqual(asked.length, 1)
        yield* TestClock.adjust("2 seconds")
        // The grant is old now: it is renewed, and then a person is asked once more.
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRefused")
        assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
          "authorization_code",
          "refresh_token",
          "authorization_code"
        ])
        assert.strictEqual(asked.length, 2)
      })
    ))

  it.effect("does not ask a person who has just denied, in no process that shares the store, until signIn", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.redirect = { iss: servers.issuer, error: "access_denied", code: undefined }
      const all = [yield* OAuth.make({ grant }), yield* OAuth.make({ grant })]
      assert.strictEqual(yield* errorOf(request(all[0]!, servers.url)), "AuthorizationDenied")
      for (const oauth of all) assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "SignInFailed")
      assert.strictEqual(asked.length, 1)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* errorOf(request(all[1]!, servers.url)), "AuthorizationDenied")
      servers.redirect = { iss: servers.issuer }
      yield* all[1]!.signIn(servers.url)
      assert.strictEqual(yield* request(all[0]!, servers.url), 200)
      assert.strictEqual(asked.length, 3)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("asks again for scopes when the person was not reached", () => {
    let fails = false
    const { asked, layer } = person({ before: Effect.suspend(() => fails ? Effect.fail(notReached) : Effect.void) })
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      requires(servers, [], "write")
      fails = true
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "SignInFailed")
      fails = false
      requires(servers, asked, "write")
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "success: 200")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("discovers once in discoveryInterval when it leads to no tokens", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        const path = "/.well-known/oauth-protected-resource/mcp"
        servers.metadata["code_challenge_methods_supported"] = []
        for (let at = 0; at < 20; at++) {
          assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "PkceUnsupported")
        }
        assert.strictEqual(servers.count(path), 1)
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "PkceUnsupported")
        assert.strictEqual(servers.count(path), 2)
      })
    ))

  it.effect("2026-07-28 · Step-Up · stops a server that requires another scope with each request after three challenges", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        let count = 0
        servers.routes.set("/mcp", ({ headers }) =>
          headers.authorization === undefined
            ? { status: 401, headers: { "www-authenticate": servers.challenge } }
            : {
              status: 403,
              headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="s${count++}"` }
            })
        assert.strictEqual(yield* request(oauth, servers.url, 3), 403)
        assert.strictEqual(asked.length, 3)
      })
    ))
})

describe("refresh", () => {
  const signedIn = (servers: Servers, oauth: OAuth.OAuth) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
    })

  for (
    const [title, answer] of [
      ["a status of 5xx", { status: 503 }],
      ["a status of 429", { status: 429, body: { error: "slow_down" } }],
      ["a page of a proxy", { status: 200, body: "<html>" }]
    ] as const
  ) {
    it.effect(`keeps everything and asks nobody after ${title}`, () =>
      test((servers, oauth, asked) =>
        Effect.gen(function*() {
          yield* signedIn(servers, oauth)
          servers.routes.set("/as/token", () => answer)
          assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
          servers.routes.delete("/as/token")
          yield* TestClock.adjust("1 second")
          assert.strictEqual(yield* request(oauth, servers.url), 200)
          assert.strictEqual(asked.length, 1)
          assert.strictEqual(servers.reused, 0)
        })
      ))
  }

  it.effect("keeps everything and asks nobody when the authorization server cannot be reached", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        yield* signedIn(servers, oauth)
        servers.metadata["token_endpoint"] = "http://127.0.0.1:1/token"
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRequestFailed")
        servers.metadata["token_endpoint"] = `${servers.issuer}/token`
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.strictEqual(asked.length, 1)
      })
    ))

  it.effect("RFC 6749, 5.2 · forgets a refresh token after invalid_grant, and asks the person", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        yield* signedIn(servers, oauth)
        servers.routes.set("/as/token", (arrived) =>
          arrived.form.get("grant_type") === "refresh_token"
            ? { status: 400, body: { error: "invalid_grant" } }
            : servers.ordinary["/as/token"]!(arrived))
        servers.redirect = { ...servers.redirect, error: "access_denied", code: undefined }
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "AuthorizationDenied")
        assert.strictEqual(asked.length, 2)
        servers.redirect = { iss: servers.issuer }
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const refreshes = servers.forms("/as/token").filter((form) => form["grant_type"] === "refresh_token")
        assert.strictEqual(refreshes.length, 1)
      })
    ))

  it.effect("keeps a refresh token that is not rotated", () =>
    test((servers, oauth, asked) =>
      Effect.gen(function*() {
        const token = (arrived: { readonly form: URLSearchParams }) => {
          servers.accepted.add("b")
          return arrived.form.get("grant_type") === "refresh_token"
            ? { body: { access_token: "b", token_type: "bearer", expires_in: 100 } }
            : { body: { access_token: "b", token_type: "bearer", expires_in: 100, refresh_token: "same" } }
        }
        servers.routes.set("/as/token", token)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        for (let at = 0; at < 3; at++) {
          yield* TestClock.adjust("90 seconds")
          assert.strictEqual(yield* request(oauth, servers.url), 200)
        }
        assert.deepEqual(servers.forms("/as/token").map((form) => form["refresh_token"]), [
          undefined,
          "same",
          "same",
          "same"
        ])
        assert.strictEqual(asked.length, 1)
      })
    ))

  it.effect("uses tokens that another process has stored", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const [one, two] = [yield* OAuth.make({ grant }), yield* OAuth.make({ grant })]
      assert.strictEqual(yield* request(one, servers.url), 200)
      assert.strictEqual(yield* request(two, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      yield* Effect.all([request(one, servers.url), request(two, servers.url)], { concurrency: 2 })
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(servers.reused, 0)
      assert.strictEqual(servers.count("/as/token"), 2)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})
