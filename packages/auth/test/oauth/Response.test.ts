/** The answer of the authorization server: `iss`, `state`, errors, codes, and the tokens for them. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Outbound from "@skein/auth/Outbound"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as oauth from "oauth4webapi"
import { requestToken } from "../../src/client/protocol/tokenEndpoint.ts"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

const outcome = (
  change: (servers: Servers) => void,
  then: (servers: Servers, outcome: string, error: string) => void
) => {
  const { layer } = person()
  return Effect.gen(function*() {
    const servers = yield* start
    change(servers)
    const oauth = yield* OAuth.make({ grant })
    const exit = yield* Effect.result(request(oauth, servers.url))
    const tag = yield* errorOf(Effect.fromResult(exit))
    then(servers, tag, exit._tag === "Failure" ? String((exit.failure as Error).message) : "")
  }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
}

const advertised = "authorization_response_iss_parameter_supported"

describe("iss", () => {
  for (
    const [title, announces, iss, expected] of [
      ["accepts the same issuer that is announced", true, "same", "success: 200"],
      ["accepts the same issuer that is not announced", undefined, "same", "success: 200"],
      ["accepts no issuer where none is announced", undefined, undefined, "success: 200"],
      ["refuses no issuer where one is announced", true, undefined, "InvalidAuthorizationResponse"],
      ["refuses another issuer that is announced", true, "https://evil.example", "InvalidAuthorizationResponse"],
      [
        "refuses another issuer that is not announced",
        undefined,
        "https://evil.example",
        "InvalidAuthorizationResponse"
      ],
      ["refuses an empty issuer", undefined, "", "InvalidAuthorizationResponse"],
      ["refuses an issuer that differs by a slash", true, "slash", "InvalidAuthorizationResponse"]
    ] as const
  ) {
    it.effect(`2026-07-28 · Authorization Response Validation · ${title}`, () =>
      outcome((servers) => {
        servers.metadata[advertised] = announces
        servers.redirect["iss"] = iss === "same" ? servers.issuer : iss === "slash" ? `${servers.issuer}/` : iss
      }, (servers, tag) => {
        assert.strictEqual(tag, expected)
        // A code of another issuer goes nowhere.
        assert.strictEqual(servers.count("/as/token"), expected === "success: 200" ? 1 : 0)
      }))
  }

  it.effect("2026-07-28 · Mix-Up · neither shows nor acts on an error of another issuer", () =>
    outcome((servers) => {
      servers.redirect = {
        code: undefined,
        iss: "https://evil.example",
        error: "access_denied",
        error_description: "call 0900-EVIL",
        error_uri: "https://evil.example/help"
      }
    }, (_, tag, message) => {
      assert.strictEqual(tag, "InvalidAuthorizationResponse")
      for (const word of ["EVIL", "access_denied", "evil.example/help"]) assert.notInclude(message, word)
    }))
})

describe("state and errors", () => {
  it.effect("2025-06-18 · Open Redirection · refuses an answer with another state", () =>
    outcome((servers) => void (servers.redirect["state"] = "guessed"), (servers, tag) => {
      assert.strictEqual(tag, "InvalidAuthorizationResponse")
      assert.strictEqual(servers.count("/as/token"), 0)
    }))

  it.effect("reports the error of the authorization server", () =>
    outcome((servers) => {
      servers.redirect = {
        ...servers.redirect,
        code: undefined,
        error: "access_denied",
        error_description: "No tea\u001b[31m"
      }
    }, (_, tag, message) => {
      assert.strictEqual(tag, "AuthorizationDenied")
      assert.include(message, "access_denied")
      assert.include(message, "No tea\\u001b[31m")
    }))

  it.effect("refuses an answer without a code, and one with a token in it", () =>
    Effect.all([
      outcome((servers) => void (servers.redirect["code"] = undefined), (_, tag) =>
        assert.strictEqual(tag, "InvalidAuthorizationResponse")),
      outcome((servers) =>
        void (servers.redirect["id_token"] = "x"), (_, tag) =>
        assert.strictEqual(tag, "InvalidAuthorizationResponse"))
    ]))
})

describe("the token endpoint", () => {
  const answers = (body: unknown, status = 200, headers: Record<string, string> = {}) => (servers: Servers) =>
    void servers.routes.set("/as/token", () => ({ body, status, headers }))
  const good = { access_token: "a", token_type: "Bearer" }

  for (
    const [title, body, status] of [
      ["an unknown token type", { ...good, token_type: "mac" }, 200],
      ["a token type that was not requested", { ...good, token_type: "DPoP" }, 200],
      ["no token type", { access_token: "a" }, 200],
      ["no access token", { token_type: "Bearer" }, 200],
      ["a page", "<!doctype html>", 200],
      ["an error with the status 200", { error: "bad_verification_code", error_description: "old" }, 200],
      ["an error", { error: "invalid_grant" }, 400],
      ["a status of 5xx", "", 503],
      ["a redirect", "", 307]
    ] as const
  ) {
    it.effect(`fails after ${title}, and requests the token once`, () =>
      outcome(answers(body, status), (servers, tag, message) => {
        assert.strictEqual(tag, "TokenRequestFailed")
        assert.strictEqual(servers.count("/as/token"), 1)
        if (typeof body === "object" && "error" in body) assert.include(message, body.error)
      }))
  }

  it.effect("reads an answer without a media type, with 201, an ID token and a lifetime as text", () =>
    outcome((servers) => {
      servers.accepted.add("a")
      servers.routes.set("/as/token", () => ({
        status: 201,
        headers: { "content-type": "text/plain" },
        body: { ...good, id_token: "not.a.jwt", expires_in: "1e300" }
      }))
    }, (_, tag) => assert.strictEqual(tag, "success: 200")))

  for (
    const [title, members, lifetime] of [
      ["a lifetime as text", { expires_in: "3600" }, 3_600],
      ["a lifetime with a fraction", { expires_in: 0.5 }, 0.5],
      ["a lifetime of 1e99", { expires_in: 1e99 }, 1e9],
      ["a lifetime that is a word", { expires_in: "soon" }, undefined],
      ["a lifetime with a unit", { expires_in: "3600s" }, undefined],
      ["a negative lifetime", { expires_in: -1 }, undefined],
      ["a lifetime of 0, which is over", { expires_in: 0 }, 0],
      ["a lifetime of 0 as text", { expires_in: "0" }, 0],
      ["a lifetime that is an object", { expires_in: {} }, undefined],
      ["a lifetime that is a list", { expires_in: [3_600] }, undefined],
      ["a lifetime that is null", { expires_in: null }, undefined],
      ["a refresh token that is a number", { refresh_token: 7 }, undefined],
      ["an empty refresh token", { refresh_token: "" }, undefined],
      ["a refresh token that is an object", { refresh_token: {} }, undefined],
      ["scopes that are a number", { scope: 7 }, undefined],
      ["scopes that are an object", { scope: {} }, undefined],
      ["scopes that are a list", { scope: ["read", 1, "write"] }, undefined],
      ["an ID token that is a number", { id_token: 7 }, undefined],
      ["an error that is null", { error: null }, undefined]
    ] as const
  ) {
    it.effect(`RFC 6749, 5.1 · uses the code for its token with ${title}`, () => {
      const { asked, layer } = person()
      return Effect.gen(function*() {
        const servers = yield* start
        servers.accepted.add("a")
        answers({ ...good, ...members })(servers)
        const oauth = yield* OAuth.make({ grant })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const state = Option.getOrThrow(yield* oauth.state(servers.url))
        assert.strictEqual(state.expiresAt, lifetime === undefined ? undefined : lifetime * 1_000)
        assert.deepEqual(state.scopes, title === "scopes that are a list" ? ["read", "write"] : ["read"])
        assert.isFalse(state.isRenewable)
        assert.strictEqual(asked.length, 1)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  const json = Schema.Json
  it.effect.prop(
    "RFC 6749, 5.1 · uses the token whatever its optional members are",
    { expires_in: json, refresh_token: json, scope: json, id_token: json, other: json },
    (members) => {
      const outbound = Outbound.make({ fetch: () => Promise.resolve(Response.json({ ...good, ...members })) })
      const server = { issuer: "https://login.example", token_endpoint: "https://login.example/token" }
      const client = { clientId: "c", authenticate: oauth.None(), secrets: [] }
      return Effect.map(
        requestToken(outbound, server, client, "authorization_code", { code: "c" }, undefined),
        ({ accessToken, expiresIn, refreshToken, scope }) => {
          assert.strictEqual(accessToken, "a")
          assert.isTrue(expiresIn === undefined || (Number.isFinite(expiresIn) && expiresIn >= 0))
          assert.isTrue(refreshToken === undefined || refreshToken !== "")
          assert.isTrue(scope === undefined || typeof scope === "string")
        }
      )
    }
  )

  it.effect("a raw lifetime beyond all numbers counts as absent", () =>
    outcome((servers) => {
      servers.accepted.add("a")
      answers("{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":1e999}")(servers)
    }, (_, tag) => assert.strictEqual(tag, "success: 200")))

  for (const type of ["application/x-www-form-urlencoded", "text/plain"]) {
    it.effect(`reads tokens and errors that are a form (${type})`, () => {
      const { layer } = person()
      const headers = { "content-type": type }
      return Effect.gen(function*() {
        const servers = yield* start
        servers.accepted.add("a")
        answers("access_token=a&token_type=bearer&scope=read%20write&expires_in=60&refresh_token=r", 200, headers)(
          servers
        )
        const oauth = yield* OAuth.make({ grant })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        const state = Option.getOrThrow(yield* oauth.state(servers.url))
        assert.deepInclude(state, { expiresAt: 60_000, scopes: ["read", "write"], isRenewable: true })
        answers("error=invalid_grant&error_description=the+code+is+old", 200, headers)(servers)
        const error = yield* Effect.flip(oauth.signIn(servers.url))
        assert.deepInclude(error.reason, { _tag: "TokenRequestFailed", error: "invalid_grant" })
        assert.include(error.message, "the code is old")
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  for (const text of ["access_token=a&token_type=bearer&access_token=b", "access_token=a&x=<p>", "token=a"]) {
    it.effect(`does not read ${text} as tokens`, () =>
      outcome(answers(text), (_, tag) => assert.strictEqual(tag, "TokenRequestFailed")))
  }

  it.effect("says where a token endpoint leads that redirects, and does not go there", () =>
    outcome((servers) => {
      servers.routes.set("/as/token", () => ({ status: 308, headers: { location: "/as/token/" } }))
    }, (servers, tag, message) => {
      assert.strictEqual(tag, "TokenRequestFailed")
      assert.include(message, `it answered 308, which leads to "${servers.origin}/as/token/"`)
      assert.strictEqual(servers.count("/as/token/"), 0)
    }))

  it.effect("refreshes tokens with expires_in: 0 before they are used, and asks a person once although they are refused", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.token = { expires_in: 0 }
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const grants = servers.forms("/as/token").map((form) => form["grant_type"])
      assert.deepEqual([...new Set(grants)], ["authorization_code", "refresh_token"])
      assert.strictEqual(servers.reused, 0)
      servers.routes.set("/mcp", () => ({ status: 401, headers: { "www-authenticate": servers.challenge } }))
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "TokenRefused")
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("sends the parameters that a provider requires, and scope in a refresh that is refused without it", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.token = { expires_in: 60, scope: "read" }
      servers.routes.set(
        "/as/token",
        (request) =>
          request.form.get("grant_type") === "refresh_token" && !request.form.has("scope")
            ? { status: 400, body: { error: "invalid_request", error_description: "AADSTS900144: 'scope'" } }
            : servers.ordinary["/as/token"]!(request)
      )
      const tokenParameters = { audience: "tea", code: "mine", refresh_token: "mine", resource: "mine" }
      const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House", tokenParameters }) })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const forms = servers.forms("/as/token")
      assert.deepEqual(forms.map(({ audience, scope }) => [audience, scope]), [
        ["tea", undefined],
        ["tea", undefined],
        ["tea", "read"]
      ])
      assert.isTrue(forms.every(({ resource }) => resource === servers.url.href))
      assert.deepEqual([forms[0]!["code"], forms[2]!["refresh_token"]], ["code-1", "refresh-2"])
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("does not use a dead refresh token again because a secret is a part of the error code", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.token = { expires_in: 60 }
      // The secret and the refresh token are words of the answer.
      servers.token["refresh_token"] = "grant"
      const client = { clientId: "c", clientSecret: Redacted.make("invalid"), issuer: servers.issuer }
      const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House", client }) })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      servers.redirect = { ...servers.redirect, code: undefined, error: "access_denied" }
      const refreshes = () => servers.forms("/as/token").filter((form) => form["refresh_token"] === "grant").length
      for (let attempt = 0; attempt < 3; attempt++) {
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "AuthorizationDenied")
      }
      assert.strictEqual(refreshes(), 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("understands a challenge although the token is a part of its words", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.accepted.add("scope")
      answers({ access_token: "scope", token_type: "Bearer", scope: "read" })(servers)
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const challenge = "Bearer error=\"insufficient_scope\", scope=\"write\""
      servers.routes.set("/mcp", () => ({ status: 403, headers: { "www-authenticate": challenge } }))
      answers({ access_token: "wide", token_type: "Bearer", scope: "read write" })(servers)
      yield* Effect.exit(request(oauth, servers.url))
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(asked[1]!.searchParams.get("scope"), "read write")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("reports the error although a challenge comes with it", () =>
    outcome(answers({ error: "invalid_client" }, 401, { "www-authenticate": "Basic" }), (_, tag, message) => {
      assert.strictEqual(tag, "TokenRequestFailed")
      assert.include(message, "invalid_client")
    }))
})
