import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as SignIn from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as UpstreamToken from "@skein/auth/UpstreamToken"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createHash } from "node:crypto"
import { inspect } from "node:util"
import { makeSealedStore } from "../../src/proxy/sealedRecords.ts"
import { makeSealing } from "../../src/proxy/sealing.ts"
import { type Upstream, UpstreamError } from "../../src/proxy/upstream.ts"
import { makeUpstreamTokens } from "../../src/proxy/upstreamTokens.ts"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

const { redirectUri } = kit

/** Registers a client, signs a person in, and returns the client and its tokens. */
const signedIn = (running: kit.Running, person = TestUser.make()) =>
  Effect.gen(function*() {
    const client = yield* oauth.connect(running.origin, { redirectUri })
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
    const answer = yield* person.signIn(url)
    return { client, answer, tokens: yield* client.exchange(answer) }
  })

/** Everything that a store was given, as text. */
const recording = () => {
  const inner = ProxyStore.makeMemory()
  const written: Array<string> = []
  const store: ProxyStore.ProxyStore["Service"] = {
    ...inner,
    set: (key, value, options) => {
      written.push(key, value, options?.group ?? "")
      return inner.set(key, value, options)
    }
  }
  return { store, written }
}

afterEach(() => void vi.useRealTimers())

describe("Proxy", () => {
  it.effect("registers a client, asks for consent, signs in upstream, and issues a token of its own for its resource", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { answer, client, tokens } = yield* signedIn(running)
      assert.strictEqual(answer.get("iss"), running.origin)
      const claims = yield* oauth.verify(running.origin, tokens.access_token, running.resource)
      assert.deepInclude(claims, {
        iss: running.origin,
        aud: running.resource,
        scope: "tea:read",
        client_id: client.clientId,
        sub: `${running.upstream.issuer} ada`
      })
      const seen = yield* kit.call(running.resource, tokens.access_token)
      assert.strictEqual(seen.user.sub, "ada")
      assert.strictEqual(seen.principal, `${running.origin} ${running.upstream.issuer} ada`)
      assert.notStrictEqual(seen.token, tokens.access_token)
      // The client is registered with the proxy, and not with the upstream.
      assert.deepInclude(yield* running.upstream.counts, { registrations: 0, authorizations: 1 })
    }))

  it.effect("does not bind a client to the scopes that it registered with, known or not (RFC 7591, 2)", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      for (const issuer of [running.origin, running.upstream.issuer]) {
        for (const scope of ["tea:read", "openid email profile"]) {
          const { body, status } = yield* oauth.register(issuer, { redirectUri, metadata: { scope } })
          assert.strictEqual(status, 201)
          assert.notProperty(body, "scope")
        }
      }
      const client = yield* oauth.connect(running.origin, { redirectUri, metadata: { scope: "tea:read" } })
      const url = yield* client.authorizationUrl({ scope: "tea:read tea:write", resource: running.resource })
      const tokens = yield* client.exchange(yield* TestUser.make().signIn(url))
      const claims = yield* oauth.verify(running.origin, tokens.access_token, running.resource)
      assert.strictEqual(claims["scope"], "tea:read tea:write")
    }))

  it.effect("2025-06-18 · never passes a token through: the upstream's is not accepted here, nor ours there", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { tokens } = yield* signedIn(running)
      const { token } = yield* kit.call(running.resource, tokens.access_token)
      assert.strictEqual(yield* kit.statusOf(running.resource, token), 401)
      assert.strictEqual(yield* kit.statusOf(running.resource, undefined), 401)
      const there = yield* Effect.promise(() =>
        fetch(`${running.upstream.issuer}/me`, { headers: { authorization: `Bearer ${tokens.access_token}` } })
      )
      assert.strictEqual(there.status, 401)
    }))

  it.effect("stores no token, code or name in plain text, and binds each value to its key", () =>
    Effect.gen(function*() {
      const { store, written } = recording()
      const running = yield* kit.start({ store })
      const { client, tokens } = yield* signedIn(running)
      const { token } = yield* kit.call(running.resource, tokens.access_token)
      const all = written.join("\n")
      const { grant } = oauth.claimsOf(tokens.access_token)
      const secrets = [tokens.refresh_token!, tokens.access_token, token, client.clientId, String(grant)]
      // The name as a value has and as an id ends: the letters alone are in some encrypted values by chance.
      for (const secret of [...secrets, "\"ada\"", " ada"]) assert.notInclude(all, secret)
      // A value that is moved to another key is worth nothing there.
      const keys = written.filter((_, index) => index % 3 === 0)
      const upstreamKey = keys.find((one) => one.startsWith("Upstream "))!
      const other = Option.getOrThrow(yield* store.get(keys.find((one) => one.startsWith("Grant "))!))
      yield* store.set(upstreamKey, other.value)
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 200)
      const elsewhere = yield* kit.port
      const again = yield* kit.instance(elsewhere.raw, running.origin, running.upstream, store)
      assert.strictEqual(again.issuer, running.origin)
      assert.strictEqual(yield* kit.statusOf(`${elsewhere.origin}/mcp`, tokens.access_token), 401)
    }))

  it.effect("2025-03-26 · stores nothing without an end but its signing key", () =>
    Effect.gen(function*() {
      const inner = ProxyStore.makeMemory()
      const endless = new Set<string>()
      const store: ProxyStore.ProxyStore["Service"] = {
        ...inner,
        set: (key, value, options) => {
          if (options?.expiresAt === undefined) endless.add(key.split(" ")[0]!)
          return inner.set(key, value, options)
        }
      }
      const running = yield* kit.start({ store })
      const { client, tokens } = yield* signedIn(running)
      assert.strictEqual((yield* client.refresh(tokens.refresh_token!)).status, 200)
      assert.deepStrictEqual([...endless], ["Key"])
    }))

  it.effect("says on the page that the upstream does not answer, or refuses, and logs why", () =>
    Effect.gen(function*() {
      const messages: Array<unknown> = []
      const logger = Logger.layer([Logger.make(({ message }) => void messages.push(message))])
      const running = yield* Effect.provide(
        kit.start({
          proxy: {
            upstream: {
              name: "Accounts",
              issuer: "http://127.0.0.1:9",
              clientId: "tea",
              clientSecret: Redacted.make(kit.upstreamSecret)
            }
          }
        }),
        logger
      )
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const url = yield* client.authorizationUrl({ resource: running.resource })
      const page = yield* TestUser.make().visit(url)
      assert.strictEqual(page.status, 502)
      assert.include(page.html, "Accounts does not answer")
      assert.include(page.html, "tell the operator of Tea House")
      const logged = inspect(messages, { depth: 9 })
      assert.include(logged, "authorization proxy: the sign-in at Accounts failed")
      assert.notInclude(logged, kit.upstreamSecret)
    }))

  it.effect("renews the upstream's token when it is about to expire, once for many calls at once", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({ proxy: { minTokenLifetime: "20 minutes" } })
      const { tokens } = yield* signedIn(running)
      const seen = yield* Effect.all(
        Array.from({ length: 6 }, () => kit.call(running.resource, tokens.access_token)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([...new Set(seen.map(({ user }) => user.sub))], ["ada"])
      const { refreshReuses, refreshes } = yield* running.upstream.counts
      assert.strictEqual(refreshReuses, 0)
      assert.isAbove(refreshes, 0)
    }))

  it.effect("asks an upstream that does not answer once for many calls at once, not once for each of them", () =>
    Effect.gen(function*() {
      const store = makeSealedStore(
        ProxyStore.makeMemory(),
        yield* makeSealing(["a key of the proxy, for its tests only"])
      )
      const asked = yield* Deferred.make<void>()
      let refreshes = 0
      const refresh = () =>
        Effect.suspend(() => {
          refreshes++
          return Effect.andThen(
            Deferred.await(asked),
            Effect.fail(new UpstreamError({ message: "the upstream did not answer", isFinal: false }))
          )
        })
      const { begin, service } = makeUpstreamTokens({
        store,
        upstream: { refresh } as Partial<Upstream> as Upstream,
        renewBeforeMillis: 0,
        grantMillis: 86_400_000
      })
      yield* begin("grant", "ada", { access: "a", refresh: "r", expiresAt: Date.now() - 1 })
      const calls = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => Effect.forkChild(Effect.flip(service.ofGrant("grant")))
      )
      while (refreshes === 0) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      yield* Deferred.succeed(asked, undefined)
      for (const call of calls) assert.strictEqual((yield* Fiber.join(call)).reason._tag, "UpstreamUnavailable")
      // A call that comes after the failure asks again.
      assert.isBelow(refreshes, 10)
    }))

  it.effect("2025-03-26 · answers 401 when the grant at the upstream has ended, and 200 for others", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({ proxy: { minTokenLifetime: "20 minutes", verifiedLifetime: 0 } })
      const { tokens } = yield* signedIn(running)
      yield* running.upstream.revokeAll
      yield* Effect.exit(kit.call(running.resource, tokens.access_token))
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 401)
      const grace = yield* signedIn(running, TestUser.make({ name: "grace" }))
      assert.strictEqual(yield* kit.statusOf(running.resource, grace.tokens.access_token), 200)
    }))

  it.live("signs the user in and repeats the call when the sign-in upstream has ended, also while the token is known", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({ proxy: { minTokenLifetime: "20 minutes", verifiedLifetime: "5 minutes" } })
      let signIns = 0
      const person = Layer.succeed(SignIn.SignIn, {
        open: () =>
          Effect.succeed({
            redirectUri,
            authorize: (url: URL) => {
              signIns++
              return Effect.orDie(TestUser.make().signIn(url))
            }
          })
      })
      yield* Effect.gen(function*() {
        const credentials = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea client" }) })
        const client = yield* Client.make(NodeHttp.transport({ url: running.resource, credentials }))
        const whoami = Effect.map(
          client.callTool("whoami", {}),
          ({ content }) => JSON.parse((content as ReadonlyArray<{ readonly text: string }>)[0]!.text).user.sub as string
        )
        assert.strictEqual(yield* whoami, "ada")
        yield* running.upstream.revokeAll
        // A client does not believe that a token was refused that it got a moment ago.
        vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 })
        assert.strictEqual(yield* whoami, "ada")
        assert.strictEqual(signIns, 2)
      }).pipe(Effect.scoped, Effect.provide([person, TokenStore.layerMemory]))
    }))

  it.effect("2025-11-25 · rotates refresh tokens: two at once both work, and after the grace an old one ends the grant", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { client, tokens } = yield* signedIn(running)
      const both = yield* Effect.all([client.refresh(tokens.refresh_token!), client.refresh(tokens.refresh_token!)], {
        concurrency: 2
      })
      assert.deepStrictEqual(both.map(({ status }) => status), [200, 200])
      const later = yield* signedIn(running)
      const next = yield* later.client.refresh(later.tokens.refresh_token!)
      assert.strictEqual(next.status, 200)
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000 })
      assert.strictEqual((yield* later.client.refresh(later.tokens.refresh_token!)).body["error"], "invalid_grant")
      assert.strictEqual(
        (yield* later.client.refresh(String(next.body["refresh_token"]))).body["error"],
        "invalid_grant"
      )
    }))

  it.effect("reads what an earlier key encrypted after the keys were rotated, and does not start with other keys", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { client, tokens } = yield* signedIn(running)
      const next = Redacted.make("the next key of the proxy, for tests only")
      const at = (keys: ReadonlyArray<Redacted.Redacted>) =>
        Effect.gen(function*() {
          const { origin, raw } = yield* kit.port
          const proxy = yield* kit.instance(raw, running.origin, running.upstream, running.store, { keys })
          return { proxy, resource: `${origin}/mcp` }
        })
      const written = yield* running.store.get("Key " + createHash("sha256").update("signing").digest("base64url"))
      // A second signing key would end the tokens of the other instances.
      const wrong = yield* Effect.flip(at([next]))
      assert.include(wrong.message, "none of the keys decrypts the store")
      assert.deepStrictEqual(
        yield* running.store.get("Key " + createHash("sha256").update("signing").digest("base64url")),
        written
      )
      const both = yield* at([next, kit.key])
      assert.strictEqual(yield* kit.statusOf(both.resource, tokens.access_token), 200)
      assert.strictEqual((yield* client.refresh(tokens.refresh_token!)).status, 200)
      // The old key is gone: the sign-ins that it encrypted have ended, and people can sign in again.
      const after = yield* at([next])
      assert.strictEqual(yield* kit.statusOf(after.resource, tokens.access_token), 401)
      const later = yield* signedIn(running)
      assert.strictEqual(yield* kit.statusOf(running.resource, later.tokens.access_token), 200)
    }))

  it.effect("2025-11-25 · publishes its metadata: documents, S256, `iss`, and the scopes of its resource", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const metadata = yield* oauth.getJson(`${running.origin}/.well-known/oauth-authorization-server`)
      assert.isTrue(metadata["client_id_metadata_document_supported"])
      assert.deepStrictEqual(metadata["code_challenge_methods_supported"], ["S256"])
      assert.isTrue(metadata["authorization_response_iss_parameter_supported"])
      // Both ways of discovery have the same.
      const openid = yield* oauth.getJson(`${running.origin}/.well-known/openid-configuration`)
      assert.deepStrictEqual(openid["code_challenge_methods_supported"], ["S256"])
      assert.strictEqual(openid["issuer"], running.origin)
      const resource = yield* oauth.getJson(`${running.origin}/.well-known/oauth-protected-resource/mcp`)
      assert.deepInclude(resource, { resource: running.resource, authorization_servers: [running.origin] })
      assert.deepStrictEqual(resource["scopes_supported"], kit.scopes)
    }))

  it.effect("gives a principal the token of its latest sign-in that has not ended, and of none after the last was refused", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({ proxy: { verifiedLifetime: 0 } })
      const { tokens } = yield* signedIn(running)
      const { principal, token } = yield* kit.call(running.resource, tokens.access_token)
      const ofPrincipal = Effect.provide(UpstreamToken.ofPrincipal(principal), running.proxy.layer)
      assert.strictEqual(Redacted.value(yield* ofPrincipal), token)
      const later = yield* signedIn(running)
      const next = Redacted.value(yield* ofPrincipal)
      assert.notStrictEqual(next, token)
      const { grant } = oauth.claimsOf(later.tokens.access_token)
      yield* Effect.flatMap(UpstreamToken.UpstreamToken, ({ endGrant }) => endGrant(String(grant))).pipe(
        Effect.provide(running.proxy.layer)
      )
      // The sign-in before is still there.
      assert.strictEqual(Redacted.value(yield* ofPrincipal), token)
      const service = Effect.provide(UpstreamToken.UpstreamToken, running.proxy.layer)
      // A token that is not the current one of a sign-in ends nothing.
      yield* Effect.flatMap(service, ({ refused }) => refused(principal, Redacted.make(next)))
      assert.strictEqual(Redacted.value(yield* ofPrincipal), token)
      yield* Effect.flatMap(service, ({ refused }) => refused(principal, Redacted.make(token)))
      assert.strictEqual((yield* Effect.flip(ofPrincipal)).reason._tag, "SignInRequired")
      assert.strictEqual(yield* kit.statusOf(running.resource, tokens.access_token), 401)
      assert.strictEqual(yield* kit.statusOf(running.resource, later.tokens.access_token), 401)
      assert.strictEqual((yield* later.client.refresh(later.tokens.refresh_token!)).body["error"], "invalid_grant")
    }))

  it.effect("keeps the grant while the upstream is not available, and names no secret in the error", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { tokens } = yield* signedIn(running)
      const { principal, token } = yield* kit.call(running.resource, tokens.access_token)
      const away = yield* kit.port
      const proxy = yield* kit.instance(away.raw, running.origin, running.upstream, running.store, {
        minTokenLifetime: "20 minutes",
        upstream: {
          name: "Accounts",
          issuer: running.upstream.issuer,
          clientId: "tea-proxy",
          clientSecret: Redacted.make(kit.upstreamSecret),
          authorizationEndpoint: `${away.origin}/auth`,
          tokenEndpoint: `${away.origin}/nothing`
        }
      })
      const error = yield* Effect.flip(Effect.provide(UpstreamToken.ofPrincipal(principal), proxy.layer))
      assert.strictEqual(error.reason._tag, "UpstreamUnavailable")
      const text = inspect(error, { depth: Infinity })
      for (const secret of [kit.upstreamSecret, token, tokens.access_token]) assert.notInclude(text, secret)
      assert.strictEqual((yield* kit.call(running.resource, tokens.access_token)).user.sub, "ada")
    }))

  it.effect("does not start on a public host without https or without keys, and with short keys", () =>
    Effect.gen(function*() {
      const upstream = {
        name: "Accounts",
        issuer: "https://login.example",
        clientId: "tea",
        clientSecret: Redacted.make("secret")
      }
      const messageOf = (options: Partial<Proxy.Options>) =>
        Proxy.make({ resource: "https://tea.example/mcp", scopes: ["tea"], upstream, keys: [kit.key], ...options })
          .pipe(
            Effect.provide(ProxyStore.layerMemory),
            Effect.flip,
            Effect.map(({ message }) => message)
          )
      assert.include(yield* messageOf({ resource: "http://tea.example/mcp" }), "needs https")
      assert.include(yield* messageOf({ keys: undefined }), "needs keys")
      assert.include(
        yield* messageOf({ keys: [Redacted.make("short")] }),
        "key 1 for the encryption of tokens has less than 32 bytes"
      )
      assert.include(yield* messageOf({ upstream: { ...upstream, issuer: "http://login.example" } }), "https address")
      assert.include(yield* messageOf({ scopes: [] }), "scopes is empty")
      for (const requestTimeout of [15_001, 0, Number.NaN]) {
        assert.include(
          yield* messageOf({ upstream: { ...upstream, requestTimeout } }),
          "requestTimeout of the upstream must be"
        )
      }
    }))
})
