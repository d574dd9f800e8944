/** The client that the authorization server knows: by hand, by its document, or by a dynamic registration. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError, RegistrationFailed } from "@skein/auth/OAuthError"
import { SignInError } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { errorOf, person, request, start } from "./scriptedServers.ts"

const document = "https://tea.example/client.json"
const dynamic = Grant.authorizationCode({ clientName: "Tea House" })

describe("registration", () => {
  it.effect("2025-11-25 · Client Registration · prefers the client of the configuration over everything", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.metadata["client_id_metadata_document_supported"] = true
      const client = { clientId: "known", clientSecret: Redacted.make("s"), issuer: servers.issuer }
      const oauth = yield* OAuth.make({
        grant: Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl: document, client })
      })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked[0]!.searchParams.get("client_id"), "known")
      assert.strictEqual(servers.count("/as/register"), 0)
      const token = servers.requests.find(({ path }) => path === "/as/token")!
      assert.strictEqual(token.headers.authorization, `Basic ${btoa("known:s")}`)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Authorization Server Binding · does not send configured credentials to another issuer", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const client = { clientId: "known", clientSecret: Redacted.make("s"), issuer: "https://login.example" }
      const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House", client }) })
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "IssuerMismatch")
      const job = yield* OAuth.make({ grant: Grant.clientCredentials(client) })
      assert.strictEqual(yield* errorOf(request(job, servers.url)), "IssuerMismatch")
      assert.strictEqual(asked.length, 0)
      assert.strictEqual(servers.count("/as/token") + servers.count("/as/register"), 0)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2025-11-25 · Client ID Metadata Documents · uses the document where the server supports it", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.metadata["client_id_metadata_document_supported"] = true
      const oauth = yield* OAuth.make({
        grant: Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl: document })
      })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked[0]!.searchParams.get("client_id"), document)
      assert.strictEqual(servers.count("/as/register"), 0)
      assert.strictEqual(servers.forms("/as/token")[0]!["client_id"], document)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Dynamic Client Registration · logs that it is deprecated where documents are supported", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      for (const isSupported of [true, false]) {
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ message }) => void lines.push(JSON.stringify(message)))
        const servers = yield* start
        servers.metadata["client_id_metadata_document_supported"] = isSupported
        const oauth = yield* OAuth.make({ grant: dynamic })
        yield* Effect.provide(request(oauth, servers.url), Logger.layer([logger]))
        assert.strictEqual(servers.count("/as/register"), 1)
        assert.strictEqual(lines.filter((line) => line.includes("clientMetadataUrl")).length, isSupported ? 1 : 0)
      }
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  for (
    const url of ["http://tea.example/client.json", "https://tea.example", "https://tea.example/#x", "client.json"]
  ) {
    it.effect(`2025-11-25 · Client ID Metadata Documents · refuses the URL ${url}`, () => {
      const grant = Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl: url })
      return Effect.gen(function*() {
        assert.strictEqual(yield* errorOf(OAuth.make({ grant })), "InvalidOptions")
      }).pipe(Effect.provide([person().layer, TokenStore.layerMemory]))
    })
  }

  it.effect("2025-03-26 · Dynamic Client Registration · registers once for several servers of one issuer", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const other = new URL("/b", servers.origin)
      servers.routes.set("/.well-known/oauth-protected-resource/b", () => ({
        body: { ...servers.resource, resource: other.href }
      }))
      servers.routes.set("/b", (request) => servers.ordinary["/mcp"]!(request))
      const oauth = yield* OAuth.make({ grant: dynamic })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.challenge = "Bearer"
      assert.strictEqual(yield* request(oauth, other), 200)
      assert.strictEqual(servers.count("/as/register"), 1)
      assert.deepEqual(servers.forms("/as/token").map(({ resource }) => resource), [servers.url.href, other.href])
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("registers again when the redirect URI changes", () => {
    const [first, second] = [person(), person({ redirectUri: "http://127.0.0.1:42000/callback" })]
    return Effect.gen(function*() {
      const servers = yield* start
      yield* Effect.provide(
        Effect.flatMap(OAuth.make({ grant: dynamic }), (oauth) => oauth.signIn(servers.url)),
        first.layer
      )
      yield* Effect.provide(
        Effect.flatMap(OAuth.make({ grant: dynamic }), (oauth) => oauth.signIn(servers.url)),
        second.layer
      )
      yield* Effect.provide(
        Effect.flatMap(OAuth.make({ grant: dynamic }), (oauth) => oauth.signIn(servers.url)),
        first.layer
      )
      assert.strictEqual(servers.count("/as/register"), 2)
    }).pipe(Effect.provide(TokenStore.layerMemory))
  })

  it.effect("2026-07-28 · Authorization Server Binding · registers and signs in anew when the issuer changes", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant: dynamic })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      const issuer = `${servers.origin}/new`
      servers.accepted.clear()
      servers.resource = { ...servers.resource, authorization_servers: [issuer] }
      servers.redirect["iss"] = issuer
      servers.routes.set("/.well-known/oauth-authorization-server/new", () => ({
        body: { ...servers.metadata, issuer }
      }))
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(servers.count("/as/register"), 2)
      assert.notStrictEqual(asked[0]!.searchParams.get("client_id"), asked[1]!.searchParams.get("client_id"))
      // The refresh token of the old issuer was not shown to the new one.
      assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
        "authorization_code",
        "authorization_code"
      ])
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Application Type · registers a web application as web", () => {
    const { layer } = person({ applicationType: "web", redirectUri: "https://app.example/callback" })
    return Effect.gen(function*() {
      const servers = yield* start
      yield* (yield* OAuth.make({ grant: dynamic })).signIn(servers.url)
      const sent = JSON.parse(servers.requests.find(({ path }) => path === "/as/register")!.body)
      assert.strictEqual(sent.application_type, "web")
      assert.deepEqual(sent.redirect_uris, ["https://app.example/callback"])
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Application Type · explains a refused registration, and asks nobody", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/as/register", () => ({
        status: 400,
        body: { error: "invalid_redirect_uri", error_description: "loopback is not allowed" }
      }))
      const oauth = yield* OAuth.make({ grant: dynamic })
      const error = yield* Effect.flip(request(oauth, servers.url))
      assert.instanceOf(error, OAuthError)
      const { reason } = error as OAuthError
      assert.instanceOf(reason, RegistrationFailed)
      assert.strictEqual((reason as RegistrationFailed).error, "invalid_redirect_uri")
      for (const part of ["400", "invalid_redirect_uri", "loopback is not allowed", "by hand"]) {
        assert.include(reason.message, part)
      }
      assert.strictEqual(asked.length, 0)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  for (
    const [applicationType, redirectUri, error] of [
      ["native", "http://127.0.0.1:41999/callback", "invalid_redirect_uri"],
      ["web", "https://app.example/callback", "invalid_client_metadata"]
    ] as const
  ) {
    const other = applicationType === "native" ? "web" : "native"
    it.effect(`2026-07-28 · Application Type · registers as ${other} where ${applicationType} is refused`, () => {
      const { layer } = person({ applicationType, redirectUri })
      return Effect.gen(function*() {
        const servers = yield* start
        servers.routes.set("/as/register", (arrived) =>
          JSON.parse(arrived.body).application_type === applicationType
            ? { status: 400, body: { error } }
            : servers.ordinary["/as/register"]!(arrived))
        const oauth = yield* OAuth.make({ grant: dynamic })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        assert.deepEqual(
          servers.requests.filter(({ path }) => path === "/as/register").map(({ body }) =>
            JSON.parse(body).application_type
          ),
          [applicationType, other]
        )
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  it.effect("2026-07-28 · Application Type · reports the first refusal when both types are refused", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/as/register", ({ body }) => ({
        status: 400,
        body: { error: "invalid_redirect_uri", error_description: `not for ${JSON.parse(body).application_type}` }
      }))
      const error = yield* Effect.flip(request(yield* OAuth.make({ grant: dynamic }), servers.url))
      for (const part of ["not for native", "\"web\" was refused as well"]) assert.include(String(error), part)
      assert.strictEqual(servers.count("/as/register"), 2)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Application Type · does not repeat a registration that is refused for another reason", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.routes.set("/as/register", () => ({ status: 401, body: { error: "invalid_token" } }))
      const oauth = yield* OAuth.make({ grant: dynamic })
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "RegistrationFailed")
      assert.strictEqual(servers.count("/as/register"), 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  for (
    const [title, members] of [
      ["a secret that is a number", { client_secret: 7 }],
      ["an empty secret", { client_secret: "" }],
      ["a secret that is null", { client_secret: null, client_secret_expires_at: null }],
      ["an end of the secret that is a word", { client_secret: "s", client_secret_expires_at: "never" }],
      ["an end of the secret as text", { client_secret: "s", client_secret_expires_at: "9999999999" }],
      ["an end of the secret that is negative", { client_secret: "s", client_secret_expires_at: -1 }],
      ["an authentication method that is a list", { client_secret: "s", token_endpoint_auth_method: ["none"] }],
      ["redirect URIs that are a text", { redirect_uris: "http://127.0.0.1:41999/callback" }]
    ] as const
  ) {
    it.effect(`RFC 7591, 3.2.1 · uses a registration with ${title}`, () => {
      const { layer } = person()
      return Effect.gen(function*() {
        const servers = yield* start
        servers.routes.set("/as/register", () => ({ status: 201, body: { client_id: "c", ...members } }))
        const oauth = yield* OAuth.make({ grant: dynamic })
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        // The registration is used again.
        yield* oauth.signIn(servers.url)
        assert.strictEqual(servers.count("/as/register"), 1)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  it.effect("2025-11-25 · Client Registration · says what to configure where nothing else is left", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      delete servers.metadata["registration_endpoint"]
      const oauth = yield* OAuth.make({ grant: dynamic })
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "RegistrationFailed")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("registers again after the server has forgotten the client", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant: dynamic, signInInterval: 0 })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      let refusals = 0
      servers.routes.set(
        "/as/token",
        (request) =>
          request.form.get("grant_type") === "refresh_token" && refusals++ === 0
            ? { status: 401, body: { error: "invalid_client" } }
            : servers.ordinary["/as/token"]!(request)
      )
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(servers.count("/as/register"), 2)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("registers again after a sign-in that nobody answered", () => {
    const failed = Effect.fail(new SignInError({ message: "closed" }))
    const [there, away, gone] = [person(), person({ before: failed }), person({ before: Effect.never })]
    return Effect.gen(function*() {
      const servers = yield* start
      const signIn = ({ layer }: typeof there) =>
        Effect.provide(Effect.flatMap(OAuth.make({ grant: dynamic }), (oauth) => oauth.signIn(servers.url)), layer)
      const clients = ({ asked }: typeof there) => asked.map(({ searchParams }) => searchParams.get("client_id"))
      yield* signIn(there)
      assert.strictEqual(yield* errorOf(signIn(away)), "SignInFailed")
      assert.strictEqual(servers.count("/as/register"), 1)
      // The tokens of the first sign-in are still renewed with its registration.
      const oauth = yield* Effect.provide(OAuth.make({ grant: dynamic, signInInterval: 0 }), there.layer)
      servers.accepted.clear()
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(servers.forms("/as/token").at(-1)!["client_id"], clients(there)[0])
      assert.strictEqual(there.asked.length, 1)
      // A new registration, which is not lost when its first page is not answered.
      for (let round = 0; round < 2; round++) {
        const fiber = yield* Effect.forkChild(signIn(gone))
        while (gone.asked.length === round) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
        yield* Fiber.interrupt(fiber)
      }
      assert.strictEqual(servers.count("/as/register"), 2)
      yield* signIn(there)
      assert.strictEqual(servers.count("/as/register"), 3)
      assert.strictEqual(new Set([...clients(there), ...clients(gone)]).size, 3)
    }).pipe(Effect.provide(TokenStore.layerMemory))
  })

  it.effect("keeps the secret of a registration for the token endpoint alone", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
      servers.routes.set("/as/register", ({ body }) => ({
        body: { client_id: "c", client_secret: "s", ...JSON.parse(body) }
      }))
      assert.strictEqual(yield* request(yield* OAuth.make({ grant: dynamic }), servers.url), 200)
      assert.strictEqual(servers.forms("/as/token")[0]!["client_secret"], "s")
      assert.isFalse(asked[0]!.searchParams.has("client_secret"))
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})
