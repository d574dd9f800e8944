/**
 * A protected server with a real authorization server (`oidc-provider`), and a person who signs in, in all revisions:
 * 2024-11-05 is HTTP+SSE, 2025-03-26 to 2025-11-25 have sessions, and 2026-07-28 is stateless.
 */
import { describe, expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { bearer, challengeOf, type Client as RawClient, freePort, revisions, serve } from "./kit.ts"

const whoami = Tool.layer(
  Tool.make("whoami"),
  () => Effect.map(Principal.current, (found) => Option.getOrThrow(found).id)
)
const brew = Scopes.required(["mcp:write"], Tool.layer(Tool.make("brew"), () => Effect.succeed("tea")))

/** Starts both servers. The protected one requires `mcp:read`, and `mcp:write` for `brew`. */
const start = (options: DevServer.Options = {}, protection: Partial<Protect.Options> = {}) =>
  Effect.gen(function*() {
    const secret = "s3cret"
    const dev = yield* DevServer.make({ clients: [{ clientId: "tea", clientSecret: secret }], ...options })
    const port = yield* freePort
    const resource = `http://127.0.0.1:${port}/mcp`
    const { issuer } = dev
    const verify = options.accessTokenFormat === "opaque"
      ? TokenVerifier.introspection({ issuer, clientId: "tea", clientSecret: Redacted.make(secret) })
      : TokenVerifier.jwt({ issuer })
    const protect = Protect.make({ resource, verify, scopes: ["mcp:read"], maxFailures: 0, ...protection })
    const server = yield* serve(protect, [whoami, brew], { port })
    return { dev, resource, server, user: `${issuer} ada` }
  })

/** Ada signs in wherever she is asked to. */
const ada = Layer.sync(SignIn, () => {
  const user = TestUser.make({ name: "ada" })
  return {
    open: () =>
      Effect.succeed({
        redirectUri: "http://127.0.0.1:41998/callback",
        authorize: (url: URL) => Effect.mapError(user.signIn(url), ({ message }) => new SignInError({ message }))
      })
  }
})

const grant = Grant.authorizationCode({ clientName: "Tea House" })
const services = Layer.merge(ada, TokenStore.layerMemory)

/** Opens a client of one revision, with the text of each tool's result. */
const connect = (resource: string, revision: string, credentials: OAuth.OAuth) =>
  Effect.map(
    Client.make(ClientHttp.transport({ url: resource, credentials }), { revisions: [revision as never] }),
    (client) => (name: string) => Effect.map(client.callTool(name), ({ content }) => (content as any)[0].text as string)
  )

/** The clock of a client that is ahead by some milliseconds. */
const aheadBy = (millis: () => number) =>
  Effect.map(Clock.Clock, (clock): Clock.Clock => {
    const now = () => clock.currentTimeMillisUnsafe() + millis()
    return Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
  })

describe.each(revisions)("%s, with tokens of oidc-provider", (revision, clientOf) => {
  it.live(`${revision} · MUST validate tokens: accepts those for this server, and no others`, () =>
    Effect.scoped(Effect.gen(function*() {
      let ahead = 0
      const clock = yield* aheadBy(() => ahead)
      const { dev, resource, server, user } = yield* Effect.provideService(start(), Clock.Clock, clock)
      const client: RawClient = clientOf(server)
      const good = yield* dev.issueToken({ resource })
      expect(yield* client.open(bearer(good))).toBeUndefined()
      const call = (name: string, token: string | undefined) =>
        client.request("tools/call", { name, arguments: {} }, bearer(token))
      expect((yield* call("whoami", good)).json.result.content[0].text).toBe(user)
      const wrong = {
        "another audience": yield* dev.issueToken({ resource: "https://coffee.example/mcp" }),
        "a path above": yield* dev.issueToken({ resource: resource.replace("/mcp", "") }),
        "a slash more": yield* dev.issueToken({ resource: `${resource}/` }),
        "another issuer": yield* dev.issueToken({ resource, claims: { iss: "https://evil.example" } }),
        expired: yield* dev.issueToken({ resource, accessTokenLifetime: "-1 minute" }),
        changed: `${good.slice(0, -4)}AAAA`
      }
      for (const [kind, token] of Object.entries(wrong)) {
        const refused = yield* call("whoami", token)
        expect([kind, refused.status, challengeOf(refused)["error"]]).toEqual([kind, 401, "invalid_token"])
      }
      expect((yield* call("whoami", undefined)).status).toBe(401)
      // The keys change, and tokens of both keys are accepted.
      yield* dev.rotateKeys
      // Keys are fetched again after 30 seconds.
      ahead = 30_000
      expect((yield* call("whoami", good)).json.result.content[0].text).toBe(user)
      const narrow = yield* dev.issueToken({ resource, scopes: ["mcp:read"], subject: "ada" })
      const stepUp = yield* call("brew", narrow)
      if (revision === "2024-11-05") {
        // The status was sent before the call was handled.
        expect(JSON.stringify(stepUp.json.error)).toContain("mcp:write")
      } else {
        expect([stepUp.status, challengeOf(stepUp)["error"]]).toEqual([403, "insufficient_scope"])
        expect(challengeOf(stepUp)["scope"]?.split(" ").toSorted()).toEqual(["mcp:read", "mcp:write"])
      }
      expect((yield* call("brew", good)).json.result.content[0].text).toBe("tea")
    })))
})

describe.each(revisions.slice(1))("%s, with a person who signs in", (revision) => {
  it.live(`${revision} · signs in at the first refusal, steps up for a tool, and renews a token that expires`, () => {
    let ahead = 0
    return Effect.scoped(Effect.gen(function*() {
      const { dev, resource, user } = yield* start()
      const clock = yield* aheadBy(() => ahead)
      yield* Effect.provideService(
        Effect.gen(function*() {
          const oauth = yield* OAuth.make({ grant, scopes: ["mcp:read"] })
          const call = yield* connect(resource, revision, oauth)
          expect(yield* call("whoami")).toBe(user)
          expect(Option.getOrThrow(yield* oauth.state(resource)).scopes).not.toContain("mcp:write")
          expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshes: 0 })
          expect(yield* call("brew")).toBe("tea")
          expect(Option.getOrThrow(yield* oauth.state(resource)).scopes).toEqual(
            expect.arrayContaining(["mcp:read", "mcp:write"])
          )
          expect(yield* dev.counts).toMatchObject({ authorizations: 2, refreshes: 0 })
          ahead = 10 * 60_000 - 10_000
          expect(yield* call("brew")).toBe("tea")
          expect(yield* dev.counts).toMatchObject({ authorizations: 2, refreshes: 1, refreshReuses: 0 })
        }),
        Clock.Clock,
        clock
      )
    })).pipe(Effect.provide(services))
  })

  it.live(`${revision} · refuses a token that was revoked, and the person signs in again`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { dev, resource, user } = yield* start({ accessTokenFormat: "opaque" }, { verifiedLifetime: "0 seconds" })
      const oauth = yield* OAuth.make({ grant, signInInterval: "0 seconds" })
      const call = yield* connect(resource, revision, oauth)
      expect(yield* call("whoami")).toBe(user)
      expect(yield* call("whoami")).toBe(user)
      expect((yield* dev.counts).authorizations).toBe(1)
      yield* dev.revokeAll
      expect(yield* call("whoami")).toBe(user)
      expect((yield* dev.counts).authorizations).toBe(2)
    })).pipe(Effect.provide(services)))

  it.live(`${revision} · accepts only tokens that are bound to the client's key, with a proof for each request`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { dev, resource, user } = yield* start({}, { dpop: { require: true, nonces: {} } })
      const oauth = yield* OAuth.make({ grant })
      const call = yield* connect(resource, revision, oauth)
      const calls = Array.from({ length: 10 }, () => call("whoami"))
      expect(yield* Effect.all(calls, { concurrency: "unbounded" })).toEqual(calls.map(() => user))
      expect(yield* call("brew")).toBe("tea")
      expect((yield* dev.counts).refreshes).toBe(0)
      const plain = yield* dev.issueToken({ resource })
      const headers = { authorization: `Bearer ${plain}`, "content-type": "application/json" }
      const refused = yield* Effect.promise(() => fetch(resource, { method: "POST", headers, body: "{}" }))
      expect(refused.status).toBe(401)
      expect(refused.headers.get("www-authenticate")).toMatch(/^DPoP .*error="invalid_token"/)
      // A bound token that is sent as a bearer token may have been stolen.
      const sent = yield* oauth.headers({ method: "POST", url: new URL(resource) })
      const stolen = { ...headers, authorization: sent["authorization"]!.replace("DPoP ", "Bearer ") }
      const theft = yield* Effect.promise(() => fetch(resource, { method: "POST", headers: stolen, body: "{}" }))
      expect(theft.status).toBe(401)
    })).pipe(Effect.provide(services)))
})
