/** Sign-ins of a web application and of hosts with a window of their own. */
import { assert, describe, it } from "@effect/vitest"
import * as SignIn from "@skein/auth/SignIn"
import * as WebSignIn from "@skein/auth/WebSignIn"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { page, registered, unregistered } from "./kit.ts"

const redirectUri = "https://app.example/oauth/callback"

const open = (uri: string, opening: SignIn.OpenOptions = unregistered) =>
  Effect.scoped(WebSignIn.make({ redirectUri: uri }).open(opening))

describe("WebSignIn", () => {
  it.effect("has the redirect URI of the application, and fails with the page to redirect the user to", () =>
    Effect.gen(function*() {
      const service = yield* SignIn.SignIn
      assert.strictEqual(service.applicationType, "web")
      const { authorize, redirectUri: uri } = yield* Effect.scoped(service.open(unregistered))
      assert.strictEqual(uri, redirectUri)
      const error = yield* Effect.flip(authorize(page, "s1"))
      if (error._tag !== "RedirectRequired") return assert.fail(error._tag)
      assert.strictEqual(error.url.href, page.href)
      assert.include(error.message, "https://tea.example/mcp")
      // A log has the message: the address with the state of the user stays out of it.
      assert.notInclude(error.message, "login.example")
    }).pipe(Effect.provide(WebSignIn.layer({ redirectUri }))))

  it.effect("2026-07-28 · communication security · redirect URIs are https or on the loopback interface", () =>
    Effect.gen(function*() {
      for (const uri of ["http://localhost:3000/cb", "http://127.0.0.1/cb", "http://[::1]:3000/cb"]) {
        assert.strictEqual((yield* open(uri)).redirectUri, uri)
      }
      for (
        const uri of [
          "http://app.example/cb",
          "",
          "app",
          "javascript:1",
          "http://localhost.evil.example/",
          `${redirectUri}#x`
        ]
      ) {
        assert.include((yield* Effect.flip(open(uri))).message, "redirectUri must be an https URL")
      }
    }))

  it.effect("fails if the client is registered with other redirect URIs, compared as text", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* open(redirectUri, registered(redirectUri))).redirectUri, redirectUri)
      assert.strictEqual((yield* open(redirectUri, registered())).redirectUri, redirectUri)
      const error = yield* Effect.flip(open(redirectUri, registered(`${redirectUri}/`)))
      assert.include(error.message, `but with "${redirectUri}/"`)
    }))
})

describe("a SignIn of a host", () => {
  it.effect("is a redirect URI and a window", () =>
    Effect.gen(function*() {
      const shown: Array<string> = []
      const showWindow = (url: URL): Effect.Effect<URLSearchParams, SignIn.SignInError> =>
        Effect.sync(() => {
          shown.push(url.href)
          return new URLSearchParams({ code: "c1", state: url.searchParams.get("state")! })
        })
      // The example in the documentation of `SignIn`.
      const Embedded = Layer.succeed(SignIn.SignIn, {
        open: () => Effect.succeed({ redirectUri: "teahouse://callback", authorize: (url) => showWindow(url) })
      })
      const params = yield* Effect.scoped(Effect.gen(function*() {
        const { authorize } = yield* (yield* SignIn.SignIn).open(unregistered)
        return yield* authorize(page, "s1")
      })).pipe(Effect.provide(Embedded))
      assert.deepStrictEqual([params.get("code"), shown], ["c1", [page.href]])
    }))
})
