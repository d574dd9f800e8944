import * as DevServer from "@skein/auth/DevServer"
import * as TestUser from "@skein/auth/TestUser"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as jose from "jose"
import * as oauth from "oauth4webapi"
import * as kit from "./kit.ts"

const resource = "http://127.0.0.1:9/mcp"
const redirectUri = "http://127.0.0.1:4999/callback"

describe("DevServer", () => {
  it.effect("signs a person in: registration, consent, code with PKCE, and a token for the resource, byte for byte", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ scopes: ["tea:read", "tea:write"] })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const ada = TestUser.make({ name: "ada" })
      const answer = yield* ada.signIn(yield* client.authorizationUrl({ scope: "tea:read", resource }))
      assert.strictEqual(answer.get("iss"), server.issuer)
      const tokens = yield* client.exchange(answer)
      const claims = yield* kit.verify(server.issuer, tokens.access_token, resource)
      assert.strictEqual(claims.aud, resource)
      assert.strictEqual(claims.iss, server.issuer)
      assert.strictEqual(claims.sub, "ada")
      assert.strictEqual(claims["scope"], "tea:read")
      assert.strictEqual(claims["email"], "ada@example.com")
      assert.strictEqual(claims["client_id"], client.clientId)
      assert.deepStrictEqual(yield* server.counts, {
        registrations: 1,
        authorizations: 1,
        tokens: 1,
        refreshes: 0,
        refreshReuses: 0,
        revocations: 0
      })
    }))

  it.effect("keeps the resource as text: a slash at the end stays, and another text is another resource", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ resources: ["http://127.0.0.1:9", "http://127.0.0.1:9/mcp/"] })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      for (const one of ["http://127.0.0.1:9", "http://127.0.0.1:9/mcp/"]) {
        const answer = yield* TestUser.make().signIn(
          yield* client.authorizationUrl({ scope: "mcp:read", resource: one })
        )
        const { access_token } = yield* client.exchange(answer, { resource: one })
        assert.strictEqual(kit.claimsOf(access_token).aud, one)
      }
      const refused = yield* TestUser.make().signIn(
        yield* client.authorizationUrl({ scope: "mcp:read", resource: "http://127.0.0.1:9/" })
      )
      assert.strictEqual(refused.get("error"), "invalid_target")
      assert.strictEqual(refused.get("iss"), server.issuer)
    }))

  it.effect("gives a request without scope the default scopes, and one without resource the only resource", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({
        scopes: ["a", "b", "c"],
        defaultScopes: ["a", "b"],
        resources: [resource]
      })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const answer = yield* TestUser.make().signIn(yield* client.authorizationUrl({}))
      const { access_token } = yield* client.exchange(answer)
      const claims = kit.claimsOf(access_token)
      assert.strictEqual(claims["scope"], "a b")
      assert.strictEqual(claims.aud, resource)
    }))

  it.effect("answers access_denied with iss if the person denies, and error pages where it must not redirect", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make()
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const answer = yield* TestUser.make({ answer: "deny" }).signIn(yield* client.authorizationUrl({ resource }))
      assert.strictEqual(answer.get("error"), "access_denied")
      assert.strictEqual(answer.get("iss"), server.issuer)
      const elsewhere = yield* client.authorizationUrl({ resource, redirect_uri: "http://127.0.0.1:4999/elsewhere" })
      const page = yield* TestUser.make().visit(elsewhere)
      assert.strictEqual(page.status, 400)
      assert.include(page.html, "invalid_redirect_uri")
      const lost = yield* client.authorizationUrl({ resource, client_id: "lost" })
      assert.include((yield* TestUser.make().visit(lost)).html, "It is not registered here, or no longer.")
    }))

  it.effect("says on the consent page what is allowed, also without a scope of the server", () =>
    Effect.gen(function*() {
      const { issuer } = yield* DevServer.make()
      const client = yield* kit.connect(issuer, { redirectUri })
      for (
        const [scope, lines] of [
          ["mcp:read mcp:write", ["mcp:read", "mcp:write", "to stay signed in until you sign out of it"]],
          ["openid offline_access", [
            "to use the server in your name",
            "to know who you are",
            "to stay signed in until you sign out of it"
          ]]
        ] as const
      ) {
        const url = yield* client.authorizationUrl({ resource, scope, login_hint: "ada" })
        const { html } = yield* TestUser.make().open(url)
        assert.include(html, `<ul>${lines.map((line) => `<li>${line}</li>`).join("")}</ul>`)
      }
      // A client that gets no refresh token does not stay signed in.
      const once = yield* kit.connect(issuer, { redirectUri, metadata: { grant_types: ["authorization_code"] } })
      const url = yield* once.authorizationUrl({ resource, login_hint: "ada" })
      assert.notInclude((yield* TestUser.make().open(url)).html, "stay signed in")
    }))

  it.effect("refuses an authorization request without PKCE, and a code with the wrong verifier", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make()
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const url = yield* client.authorizationUrl({ resource })
      const without = new URL(url)
      without.searchParams.delete("code_challenge")
      without.searchParams.delete("code_challenge_method")
      assert.strictEqual((yield* TestUser.make().signIn(without)).get("error"), "invalid_request")
      const plain = new URL(url)
      plain.searchParams.set("code_challenge_method", "plain")
      assert.strictEqual((yield* TestUser.make().signIn(plain)).get("error"), "invalid_request")
      const answer = yield* TestUser.make().signIn(url)
      const refused = yield* client.post("token", {
        grant_type: "authorization_code",
        code: answer.get("code")!,
        redirect_uri: redirectUri,
        code_verifier: "w".repeat(43)
      })
      assert.strictEqual(refused.body["error"], "invalid_grant")
    }))

  it.effect("rotates refresh tokens, and ends the grant when one is used twice", () =>
    Effect.gen(function*() {
      const events: Array<DevServer.Event> = []
      const server = yield* DevServer.make({ onEvent: (event) => events.push(event) })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const first = yield* kit.signIn(client, resource)
      const second = yield* client.refresh(first.refresh_token!)
      assert.notStrictEqual(second.body["refresh_token"], first.refresh_token)
      const reused = yield* client.refresh(first.refresh_token!)
      assert.strictEqual(reused.body["error"], "invalid_grant")
      const ended = yield* client.refresh(String(second.body["refresh_token"]))
      assert.strictEqual(ended.body["error"], "invalid_grant")
      const counts = yield* server.counts
      assert.deepInclude(counts, { tokens: 2, refreshes: 1, refreshReuses: 1 })
      assert.deepInclude(events, { type: "refreshReuse", clientId: client.clientId })
    }))

  it.effect("keeps a refresh token if rotation is off", () =>
    Effect.gen(function*() {
      const fixed = yield* DevServer.make({ rotateRefreshTokens: false })
      const other = yield* kit.connect(fixed.issuer, { redirectUri })
      const tokens = yield* kit.signIn(other, resource)
      assert.strictEqual((yield* other.refresh(tokens.refresh_token!)).body["refresh_token"], tokens.refresh_token)
    }))

  it.effect("registers web pages of any origin, with a preflight request", () =>
    Effect.gen(function*() {
      const { issuer } = yield* DevServer.make()
      const headers = { origin: "https://tea.example", "content-type": "application/json" }
      for (const [method, status] of [["OPTIONS", 204], ["POST", 201]] as const) {
        const body = method === "POST" ? JSON.stringify({ redirect_uris: ["https://tea.example/"] }) : null
        const reply = yield* Effect.promise(() => fetch(`${issuer}/reg`, { method, headers, body }))
        assert.deepEqual([method, reply.status], [method, status])
        assert.strictEqual(reply.headers.get("access-control-allow-origin"), "*")
        assert.strictEqual(
          reply.headers.get("access-control-allow-headers"),
          method === "OPTIONS" ? "content-type" : null
        )
      }
    }))

  it.effect("revokes: a refresh token at the endpoint, and all grants at once", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make()
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const one = yield* kit.signIn(client, resource)
      const two = yield* kit.signIn(client, resource)
      assert.strictEqual((yield* client.post("token/revocation", { token: one.refresh_token! })).status, 200)
      assert.strictEqual((yield* client.refresh(one.refresh_token!)).body["error"], "invalid_grant")
      assert.deepInclude(yield* server.counts, { revocations: 1 })
      yield* server.revokeAll
      assert.strictEqual((yield* client.refresh(two.refresh_token!)).body["error"], "invalid_grant")
    }))

  it.effect("introspects opaque tokens for clients with a secret, and for nobody else", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({
        accessTokenFormat: "opaque",
        clients: [{ clientId: "tea-server", clientSecret: "a secret of the tea server" }]
      })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const { access_token } = yield* kit.signIn(client, resource)
      const authorization = `Basic ${Buffer.from("tea-server:a+secret+of+the+tea+server").toString("base64")}`
      const seen = yield* kit.postForm(`${server.issuer}/token/introspection`, { token: access_token }, {
        authorization
      })
      assert.deepInclude(seen.body, { active: true, aud: resource, sub: "ada", scope: "mcp:read" })
      const own = yield* client.post("token/introspection", { token: access_token })
      assert.deepStrictEqual(own.body, { active: false })
    }))

  it.effect("serves client credentials, with a secret and with a key", () =>
    Effect.gen(function*() {
      const { privateKey, publicKey } = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      const jwk = yield* Effect.promise(() => jose.exportJWK(publicKey))
      const server = yield* DevServer.make({
        clients: [
          { clientId: "job", clientSecret: "a secret of the job" },
          { clientId: "signed", jwks: { keys: [{ ...jwk, kid: "k", alg: "ES256", use: "sig" }] } }
        ]
      })
      const grant = { grant_type: "client_credentials", scope: "mcp:read", resource }
      const authorization = `Basic ${Buffer.from("job:a+secret+of+the+job").toString("base64")}`
      const job = yield* kit.postForm(`${server.issuer}/token`, grant, { authorization })
      assert.deepInclude(kit.claimsOf(String(job.body["access_token"])), { sub: "job", aud: resource })
      const assertion = yield* Effect.promise(() =>
        new jose.SignJWT({ jti: "1" }).setProtectedHeader({ alg: "ES256", kid: "k" }).setIssuer("signed").setSubject(
          "signed"
        )
          .setAudience(server.issuer).setIssuedAt().setExpirationTime("1 minute").sign(privateKey)
      )
      const signed = yield* kit.postForm(`${server.issuer}/token`, {
        ...grant,
        client_assertion: assertion,
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
      })
      assert.deepInclude(kit.claimsOf(String(signed.body["access_token"])), { sub: "signed", aud: resource })
    }))

  it.effect("serves the JWT bearer grant: workloads and ID-JAGs of a known issuer, and no others", () =>
    Effect.gen(function*() {
      const { privateKey, publicKey } = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      const jwk = { ...(yield* Effect.promise(() => jose.exportJWK(publicKey))), kid: "k", alg: "ES256" }
      const grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
      const server = yield* DevServer.make({
        assertionIssuers: [{ issuer: "https://platform.example", jwks: { keys: [jwk] } }],
        clients: [{ clientId: "pod", grantTypes: [grantType] }]
      })
      const assert_ = (claims: jose.JWTPayload, typ = "JWT", key: jose.CryptoKey = privateKey) =>
        Effect.flatMap(
          Effect.promise(() =>
            new jose.SignJWT({ iss: "https://platform.example", aud: server.issuer, sub: "workload-1", ...claims })
              .setProtectedHeader({ alg: "ES256", kid: "k", typ }).setExpirationTime(claims.exp ?? "1 minute").sign(key)
          ),
          (assertion) =>
            kit.postForm(`${server.issuer}/token`, {
              grant_type: grantType,
              client_id: "pod",
              scope: "mcp:read",
              resource,
              assertion
            })
        )
      const good = yield* assert_({})
      assert.deepInclude(kit.claimsOf(String(good.body["access_token"])), {
        sub: "workload-1",
        aud: resource,
        scope: "mcp:read",
        client_id: "pod"
      })
      assert.strictEqual((yield* assert_({ aud: "https://other.example" })).body["error"], "invalid_grant")
      assert.strictEqual((yield* assert_({ iss: "https://other.example" })).body["error"], "invalid_grant")
      assert.strictEqual((yield* assert_({ exp: 1 })).body["error"], "invalid_grant")
      const stranger = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      assert.strictEqual((yield* assert_({}, "JWT", stranger.privateKey)).body["error"], "invalid_grant")
      assert.strictEqual((yield* assert_({ client_id: "pod" }, "oauth-id-jag+jwt")).status, 200)
      assert.strictEqual((yield* assert_({ client_id: "other" }, "oauth-id-jag+jwt")).body["error"], "invalid_grant")
    }))

  it.effect("accepts a metadata document as a client, and refuses one with another client_id", () =>
    Effect.gen(function*() {
      const id = "https://teahouse.example/client.json"
      const document = {
        client_id: id,
        client_name: "Tea House",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        application_type: "native"
      }
      const server = yield* DevServer.make({
        metadataDocuments: { [id]: document, "https://evil.example/client.json": document }
      })
      const client = yield* kit.connect(server.issuer, { redirectUri, clientId: id })
      const { access_token } = yield* kit.signIn(client, resource)
      assert.strictEqual(kit.claimsOf(access_token)["client_id"], id)
      const evil = yield* kit.connect(server.issuer, { redirectUri, clientId: "https://evil.example/client.json" })
      const page = yield* TestUser.make().visit(yield* evil.authorizationUrl({ resource }))
      assert.strictEqual(page.status, 400)
    }))

  it.effect("binds tokens to a key with DPoP, and asks for a nonce if told to", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ requireDpopNonce: true })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const answer = yield* TestUser.make().signIn(yield* client.authorizationUrl({ scope: "mcp:read", resource }))
      const key = yield* Effect.promise(() => jose.generateKeyPair("ES256"))
      const jwk = yield* Effect.promise(() => jose.exportJWK(key.publicKey))
      const proof = (nonce: string | undefined) =>
        Effect.promise(() =>
          new jose.SignJWT({
            htm: "POST",
            htu: `${server.issuer}/token`,
            jti: String(Math.random()),
            ...nonce && { nonce }
          })
            .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk }).setIssuedAt().sign(key.privateKey)
        )
      const without = yield* client.exchangeRaw(answer, { dpop: yield* proof(undefined) })
      assert.strictEqual(without.body["error"], "use_dpop_nonce")
      const withNonce = yield* client.exchangeRaw(answer, { dpop: yield* proof(without.headers.get("dpop-nonce")!) })
      assert.strictEqual(withNonce.body["token_type"], "DPoP")
      const { cnf } = kit.claimsOf(String(withNonce.body["access_token"]))
      assert.deepStrictEqual(cnf, { jkt: yield* Effect.promise(() => jose.calculateJwkThumbprint(jwk)) })
    }))

  it.effect("2025-11-25 · publishes RFC 8414 and OpenID metadata, with S256, iss, and its grants", () =>
    Effect.gen(function*() {
      const { issuer } = yield* DevServer.make()
      for (const name of ["oauth-authorization-server", "openid-configuration"]) {
        const metadata = yield* kit.getJson(`${issuer}/.well-known/${name}`)
        assert.strictEqual(metadata["issuer"], issuer)
        assert.deepStrictEqual(metadata["code_challenge_methods_supported"], ["S256"])
        assert.isTrue(metadata["authorization_response_iss_parameter_supported"])
        assert.isTrue(metadata["client_id_metadata_document_supported"])
        for (const endpoint of ["authorization", "token", "registration", "revocation", "introspection"]) {
          assert.isTrue(String(metadata[`${endpoint}_endpoint`]).startsWith(`${issuer}/`), endpoint)
        }
        assert.includeMembers(metadata["scopes_supported"] as Array<string>, [
          "mcp:read",
          "mcp:write",
          "offline_access"
        ])
      }
      const closed = yield* DevServer.make({ dynamicRegistration: false, clientIdMetadataDocuments: false })
      const metadata = yield* kit.getJson(`${closed.issuer}/.well-known/oauth-authorization-server`)
      assert.isUndefined(metadata["registration_endpoint"])
      assert.isUndefined(metadata["client_id_metadata_document_supported"])
    }))

  it.effect("signs with a new key after rotateKeys, and still publishes the old one", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ signingAlgorithm: "RS256" })
      const before = yield* server.issueToken({ resource, claims: { team: "tea" } })
      yield* server.rotateKeys
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const after = (yield* kit.signIn(client, resource)).access_token
      assert.notStrictEqual(jose.decodeProtectedHeader(after).kid, jose.decodeProtectedHeader(before).kid)
      assert.deepInclude(yield* kit.verify(server.issuer, before, resource), { sub: "ada", team: "tea" })
      yield* kit.verify(server.issuer, after, resource)
    }))

  it.effect("signs in without a page as signInAs, and refuses a user that it does not have", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ signInAs: "grace" })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const ada = TestUser.make({ name: "ada" })
      const tokens = yield* client.exchange(yield* ada.signIn(yield* client.authorizationUrl({ resource })))
      assert.strictEqual(kit.claimsOf(tokens.access_token).sub, "grace")
      const error = yield* Effect.flip(DevServer.make({ signInAs: "nobody" }))
      assert.include(error.message, "signInAs must be the name of a user: nobody")
    }))

  it.effect("asks each person: a second one in the same browser is not the first", () =>
    Effect.gen(function*() {
      const server = yield* DevServer.make({ users: [{ name: "ada" }, { name: "grace" }] })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const browser = TestUser.make({ name: "ada" })
      yield* client.exchange(yield* browser.signIn(yield* client.authorizationUrl({ resource })))
      const page = yield* browser.open(yield* client.authorizationUrl({ resource }))
      assert.include(page.html, "Who are you?")
    }))

  it.effect("refuses every address but loopback, and a Host header of another name", () =>
    Effect.gen(function*() {
      for (const host of ["0.0.0.0", "::", "192.168.1.4", "tea.example", "127.0.0.1.nip.io"]) {
        const error = yield* Effect.flip(DevServer.make({ host }))
        assert.strictEqual(error._tag, "DevServerError")
        assert.include(error.message, "loopback only")
      }
      const { issuer } = yield* DevServer.make()
      const status = yield* kit.statusWithHost(`${issuer}/.well-known/oauth-authorization-server`, "tea.example")
      assert.strictEqual(status, 421)
      for (const host of ["localhost", "::1"]) {
        const named = yield* DevServer.make({ host })
        assert.strictEqual(
          (yield* kit.getJson(`${named.issuer}/.well-known/openid-configuration`))["issuer"],
          named.issuer
        )
      }
    }))

  it.effect("fails with DevServerError if the port is taken, a duration is too short, or the engine refuses a client", () =>
    Effect.gen(function*() {
      const { issuer } = yield* DevServer.make()
      const taken = yield* Effect.flip(DevServer.make({ port: Number(new URL(issuer).port) }))
      assert.include(taken.message, "EADDRINUSE")
      const short = yield* Effect.flip(DevServer.make({ accessTokenLifetime: 0 }))
      assert.strictEqual(short.message, "accessTokenLifetime must be at least one second")
      const refused = yield* Effect.flip(
        DevServer.make({ clients: [{ clientId: "x", redirectUris: ["javascript:alert(1)"] }] }).pipe(
          Effect.flatMap(({ issuer }) => kit.connect(issuer, { redirectUri, clientId: "x" })),
          Effect.flatMap((client) => client.authorizationUrl({ resource })),
          Effect.flatMap((url) => TestUser.make().signIn(url))
        )
      )
      assert.match(refused.message, /redirect_uris|400/)
    }))

  it.effect("writes nothing to the console, and its problems to the log at Debug", () =>
    Effect.gen(function*() {
      const written: Array<unknown> = []
      const before = { info: console.info, warn: console.warn, error: console.error, log: console.log }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          for (const name of ["info", "warn", "error", "log"] as const) {
            console[name] = (...args: Array<unknown>) => void written.push(args)
          }
        }),
        () => Effect.sync(() => Object.assign(console, before))
      )
      const logged: Array<{ readonly level: string; readonly message: unknown }> = []
      const logger = Logger.make(({ logLevel, message }) => void logged.push({ level: logLevel, message }))
      yield* Effect.gen(function*() {
        const server = yield* DevServer.make()
        const client = yield* kit.connect(server.issuer, { redirectUri })
        const tokens = yield* kit.signIn(client, resource)
        yield* client.refresh(tokens.refresh_token!)
        yield* client.refresh(tokens.refresh_token!)
        yield* TestUser.make().visit(`${server.issuer}/interaction/unknown`)
        yield* TestUser.make().visit(`${server.issuer}/auth?client_id=unknown`)
        yield* Effect.promise(() =>
          fetch(`${server.issuer}/token`, { method: "POST", body: "{" }).then((r) => r.text())
        )
        const text = JSON.stringify(logged)
        assert.notInclude(text, tokens.refresh_token!)
        assert.notInclude(text, tokens.access_token)
      }).pipe(
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(References.MinimumLogLevel, "All")
      )
      assert.deepStrictEqual(written, [])
      assert.isAbove(logged.length, 2)
      assert.deepStrictEqual([...new Set(logged.map(({ level }) => level))], ["Debug"])
    }))

  it.effect("ends with its scope: open connections are closed, and no timer is left", () =>
    Effect.gen(function*() {
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
      const before = timers()
      const issuer = yield* Effect.scoped(
        Effect.gen(function*() {
          const server = yield* DevServer.make()
          const client = yield* kit.connect(server.issuer, { redirectUri })
          yield* kit.signIn(client, resource)
          return server.issuer
        })
      )
      const exit = yield* Effect.exit(kit.getJson(`${issuer}/.well-known/openid-configuration`))
      assert.isTrue(exit._tag === "Failure")
      assert.isAtMost(timers(), before)
    }))

  it.effect("runs as a plain function and as a layer", () =>
    Effect.gen(function*() {
      const plain = yield* Effect.promise(() => DevServer.start({ users: [{ name: "mary" }] }))
      assert.deepStrictEqual(plain.users.map(({ name }) => name), ["mary"])
      assert.strictEqual(
        (yield* kit.getJson(`${plain.issuer}/.well-known/openid-configuration`))["issuer"],
        plain.issuer
      )
      const token = yield* Effect.promise(() => plain.issueToken({ resource, subject: "mary" }))
      assert.strictEqual(kit.claimsOf(token).sub, "mary")
      const keys = Effect.map(
        kit.getJson(`${plain.issuer}/jwks`),
        ({ keys }) => (keys as ReadonlyArray<unknown>).length
      )
      assert.strictEqual(yield* keys, 1)
      yield* Effect.promise(plain.rotateKeys)
      assert.strictEqual(yield* keys, 2)
      const client = yield* kit.connect(plain.issuer, { redirectUri })
      yield* kit.signIn(client, resource)
      assert.strictEqual(plain.counts().authorizations, 1)
      yield* Effect.promise(plain.revokeAll)
      yield* Effect.promise(plain.close)
      yield* Effect.gen(function*() {
        const { issuer, scopes } = yield* DevServer.DevServer
        assert.deepStrictEqual(scopes, ["tea"])
        yield* kit.getJson(`${issuer}/.well-known/openid-configuration`)
      }).pipe(Effect.provide(DevServer.layer({ scopes: ["tea"] })))
    }))

  it.effect("serves parallel sign-ins of several people without mixing them up", () =>
    Effect.gen(function*() {
      const users = Array.from({ length: 8 }, (_, index) => ({ name: `user${index}` }))
      const server = yield* DevServer.make({ users })
      const client = yield* kit.connect(server.issuer, { redirectUri })
      const fibers = yield* Effect.forEach(users, ({ name }) =>
        Effect.forkChild(Effect.gen(function*() {
          const person = yield* kit.connect(server.issuer, { redirectUri, clientId: client.clientId })
          const url = yield* person.authorizationUrl({ resource })
          const tokens = yield* person.exchange(yield* TestUser.make({ name }).signIn(url))
          return kit.claimsOf(tokens.access_token).sub
        })))
      const subjects = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(subjects, users.map(({ name }) => name))
    }))

  it("discovers with oauth4webapi", async () => {
    const server = await DevServer.start()
    const issuer = new URL(server.issuer)
    const reply = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", [oauth.allowInsecureRequests]: true })
    const metadata = await oauth.processDiscoveryResponse(issuer, reply)
    assert.strictEqual(metadata.issuer, server.issuer)
    await server.close()
  })
})
