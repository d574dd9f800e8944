/** Known tokens, failures, proofs, streams and secrets of a protected server. */
import { describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as ReplayStore from "@skein/auth/ReplayStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Awaitable from "@skein/runtime/Awaitable"
import { McpRequest } from "@skein/server/McpRequest"
import type * as Http from "@skein/server/Http"
import * as Tool from "@skein/server/Tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from "jose"
import { createHash } from "node:crypto"
import { FailureBounds } from "@skein/server/AuthenticationFailures"
import {
  bearer,
  challengeOf,
  issuer,
  metadata,
  posting,
  protect,
  resource,
  revisions,
  send,
  type Sent,
  serve,
  Tokens
} from "./kit.ts"

const whoami = Tool.layer(Tool.make("whoami"), () =>
  Effect.map(McpRequest, ({ caller, origin }) => {
    const headers = ["authorization", "dpop"].map((name) => origin?.header?.(name))
    return `${caller.principal?.id} ${headers.join("")}`
  }))

const start = (options: Partial<Protect.Options> = {}) =>
  Effect.gen(function*() {
    const tokens = new Tokens()
    const server = yield* serve(protect(tokens, options), [whoami])
    const client = revisions.at(-1)![1](server)
    const call = (headers: Sent["headers"]) => client.request("tools/call", { name: "whoami", arguments: {} }, headers)
    return { call, server, tokens }
  })

describe("a known token", () => {
  it.effect("is verified once a minute, and expires at its time all the same", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, tokens } = yield* start()
      const now = (yield* Clock.currentTimeMillis) / 1000
      tokens.add("ada", { expiresAt: now + 90 })
      for (let n = 0; n < 3; n++) expect((yield* call(bearer("ada"))).status).toBe(200)
      expect(tokens.verifications).toBe(1)
      yield* TestClock.adjust("61 seconds")
      expect((yield* call(bearer("ada"))).status).toBe(200)
      expect(tokens.verifications).toBe(2)
      yield* TestClock.adjust("30 seconds")
      const expired = yield* call(bearer("ada"))
      expect([expired.status, challengeOf(expired)["error"]]).toEqual([401, "invalid_token"])
    })))

  it.effect("shares one verification among concurrent requests, and a failure is not stored", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, tokens } = yield* start()
      const gate = Latch.makeUnsafe(false)
      tokens.before = gate.await
      tokens.add("ada")
      const all = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 20 }, () => call(bearer("ada"))), { concurrency: "unbounded" })
      )
      while (tokens.verifications === 0) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      gate.openUnsafe()
      expect((yield* Fiber.join(all)).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
      expect(tokens.verifications).toBe(1)
      expect((yield* call(bearer("new"))).status).toBe(401)
      tokens.add("new")
      expect((yield* call(bearer("new"))).status).toBe(200)
    })))

  it.effect("2026-07-28 · subscriptions/listen ends when its token expires", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, tokens } = yield* start()
      tokens.add("ada", { expiresAt: (yield* Clock.currentTimeMillis) / 1000 + 300 })
      const listening = yield* Effect.forkChild(send(server, {
        headers: {
          ...posting,
          ...bearer("ada"),
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "subscriptions/listen"
        },
        body: {
          jsonrpc: "2.0",
          id: 1,
          method: "subscriptions/listen",
          params: {
            notifications: { toolsListChanged: true },
            _meta: {
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientCapabilities": {}
            }
          }
        }
      }))
      while (server.endpoint.streams === 0) {
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      }
      yield* TestClock.adjust("302 seconds")
      expect((yield* Fiber.join(listening)).json).toMatchObject({ id: 1, result: { resultType: "complete" } })
    })))
})

describe("the principal of a token", () => {
  it("is named by issuer and subject, and a client by itself differs from a user of the same name", () => {
    const ids = [
      { issuer, subject: "ada", clientId: "app" },
      { issuer: "https://partner.example", subject: "ada", clientId: "app" },
      { issuer, subject: undefined, clientId: "ada" },
      { issuer, subject: "client ada", clientId: "app" },
      { issuer, subject: `client ${issuer} ada`, clientId: "app" }
    ].map((token) => Protect.idOf(token as TokenVerifier.VerifiedToken))
    expect(new Set(ids).size).toBe(ids.length)
    const per = (clientId: string) =>
      Protect.idOf({ issuer, subject: "ada", clientId } as TokenVerifier.VerifiedToken, { perClient: true })
    expect(per("one")).not.toBe(per("two"))
  })

  it.live("has the claims of the application, whose scopes replace those of the token", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, tokens } = yield* start({
        scopes: ["tea:read"],
        principal: (token) => ({
          id: `tea ${token.subject}`,
          scopes: token.claims["role"] === "brewer" ? ["tea:read"] : []
        })
      })
      tokens.add("ada", { claims: { role: "brewer" } })
      tokens.add("bob", { subject: "bob", scopes: ["tea:read"] })
      expect((yield* call(bearer("ada"))).json.result.content[0].text).toBe("tea ada ")
      expect((yield* call(bearer("bob"))).status).toBe(403)
    })))
})

describe("failed authentications", () => {
  it.effect("are counted by address: 429 without a verification, and known tokens pass", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, tokens } = yield* start({ maxFailures: 5 })
      tokens.add("ada")
      tokens.add("new")
      expect((yield* call(bearer("ada"))).status).toBe(200)
      // A request without a token is the usual beginning of a sign-in.
      for (let n = 0; n < 10; n++) expect((yield* call({})).status).toBe(401)
      for (let n = 0; n < 5; n++) expect((yield* call(bearer(`wrong-${n}`))).status).toBe(401)
      const { verifications } = tokens
      const refused = yield* call(bearer("new"))
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "10"])
      expect(tokens.verifications).toBe(verifications)
      expect((yield* call(bearer("ada"))).status).toBe(200)
      yield* TestClock.adjust("10 seconds")
      expect((yield* call(bearer("new"))).status).toBe(200)
    })))
})

describe("failed authentications of clients that disconnect", () => {
  it.effect("are counted: no client has tokens verified without a bound", () =>
    Effect.gen(function*() {
      const tokens = new Tokens()
      tokens.before = Effect.never
      const { identify } = yield* protect(tokens, { maxFailures: 5 })
      const verified = (token: string) => {
        const header = (name: string) => name === "authorization" ? `Bearer ${token}` : undefined
        const found = identify({ header, address: "192.0.2.1", method: "POST" } as Http.HttpRequest, {
          addHeaders: () => {}
        })
        return found as Effect.Effect<unknown, Http.Refusal>
      }
      for (let n = 0; n < 5; n++) {
        const fiber = yield* Effect.forkChild(verified(`wrong-${n}`))
        while (tokens.verifications === n) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
      }
      expect((yield* Effect.flip(verified("another"))).status).toBe(429)
    }))
})

describe("a burst of requests from one address", () => {
  it.effect("has no more tokens verified than maxFailures, and keeps the requests with one good token", () =>
    Effect.gen(function*() {
      const tokens = new Tokens()
      tokens.add("good")
      tokens.before = Effect.yieldNow
      const { identify } = yield* protect(tokens, { maxFailures: 5 })
      const statusOf = (token: string, address: string) =>
        Effect.suspend(() => {
          const header = (name: string) => name === "authorization" ? `Bearer ${token}` : undefined
          const found = identify({ header, address, method: "POST" } as Http.HttpRequest, { addHeaders: () => {} })
          const outcome = found as Effect.Effect<unknown, Http.Refusal>
          return Effect.isEffect(outcome)
            ? Effect.match(outcome, { onSuccess: () => 200, onFailure: ({ status }) => status })
            : Effect.succeed(200)
        })
      const burst = (tokenOf: (n: number) => string, address: string) =>
        Effect.forEach(Array.from({ length: 50 }), (_, n) => statusOf(tokenOf(n), address), {
          concurrency: "unbounded"
        })
      const wrong = yield* burst((n) => `wrong-${n}`, "192.0.2.1")
      expect(tokens.verifications).toBe(5)
      expect(wrong.filter((status) => status === 401)).toHaveLength(5)
      expect(wrong.filter((status) => status === 429)).toHaveLength(45)
      expect(new Set(yield* burst(() => "good", "198.51.100.1"))).toEqual(new Set([200]))
      expect(tokens.verifications).toBe(6)
    }))
})

describe("a token that is bound to a key", () => {
  const keys = Effect.promise(async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256")
    const jwk = await exportJWK(publicKey)
    return { jwk, privateKey, jkt: await calculateJwkThumbprint(jwk) }
  })
  let proofs = 0
  const prove = ({ jwk, privateKey }: Effect.Success<typeof keys>, token: string, claims: object = {}) =>
    Effect.promise(() =>
      new SignJWT({
        htm: "POST",
        htu: resource,
        jti: String(proofs++),
        ath: createHash("sha256").update(token).digest("base64url"),
        ...claims
      }).setIssuedAt().setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk }).sign(privateKey)
    )
  const dpop = (token: string, proof: string | undefined) => ({ authorization: `DPoP ${token}`, dpop: proof })

  it.live("needs a proof for each request: replays, thefts and proofs for others are 401", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = yield* keys
      const thief = yield* keys
      const { call, tokens } = yield* start({ dpop: "accept", scopes: ["tea:read"] })
      tokens.add("bound", { scopes: ["tea:read"], confirmation: { jkt: own.jkt } })
      tokens.add("plain", { scopes: ["tea:read"] })
      const proof = yield* prove(own, "bound")
      const accepted = yield* call(dpop("bound", proof))
      expect(accepted.json.result.content[0].text).toBe(`${issuer} ada `)
      expect((yield* call(dpop("bound", yield* prove(own, "bound")))).status).toBe(200)
      expect((yield* call(bearer("plain"))).status).toBe(200)
      const refusals = {
        replay: dpop("bound", proof),
        missing: dpop("bound", undefined),
        theft: dpop("bound", yield* prove(thief, "bound")),
        "another method": dpop("bound", yield* prove(own, "bound", { htm: "GET" })),
        "another resource": dpop("bound", yield* prove(own, "bound", { htu: "https://other.example/mcp" })),
        "another token": dpop("bound", yield* prove(own, "plain")),
        "as a bearer token": bearer("bound"),
        "a plain token with a proof": dpop("plain", yield* prove(own, "plain"))
      }
      for (const [name, headers] of Object.entries(refusals)) {
        const { headers: { "www-authenticate": challenge }, status } = yield* call(headers)
        expect([name, status]).toEqual([name, 401])
        expect(challenge).toContain(`resource_metadata="${metadata}"`)
        expect(challenge).toMatch(/DPoP .*algs="/)
        expect(challenge).toMatch(/error="(invalid_token|invalid_dpop_proof)"/)
      }
    })))

  it.live("gets 429 after 20 wrong proofs for its key, and others of the same address do not", () =>
    Effect.scoped(Effect.gen(function*() {
      const [own, other, thief] = [yield* keys, yield* keys, yield* keys]
      const { call, tokens } = yield* Effect.updateService(
        start({ dpop: "accept", maxFailures: 20 }),
        FailureBounds,
        (bounds) => ({ ...bounds, failureInterval: 3_600_000 })
      )
      tokens.add("bound", { confirmation: { jkt: own.jkt } })
      tokens.add("other", { confirmation: { jkt: other.jkt } })
      tokens.add("plain")
      const good = Effect.flatMap(prove(own, "bound"), (proof) => call(dpop("bound", proof)))
      const ofOther = Effect.flatMap(prove(other, "other"), (proof) => call(dpop("other", proof)))
      // All tokens are known.
      for (const reply of [yield* good, yield* ofOther, yield* call(bearer("plain"))]) expect(reply.status).toBe(200)
      for (let n = 0; n < 20; n++) {
        expect((yield* call(dpop("bound", yield* prove(thief, "bound")))).status).toBe(401)
      }
      expect((yield* call(dpop("bound", yield* prove(thief, "bound")))).status).toBe(429)
      expect((yield* good).status).toBe(429)
      expect((yield* ofOther).status).toBe(200)
      expect((yield* call(bearer("plain"))).status).toBe(200)
    })))

  it.live("gets 429 after as many proofs whose client disconnects before they are verified", () =>
    Effect.gen(function*() {
      const own = yield* keys
      const tokens = new Tokens()
      tokens.add("bound", { confirmation: { jkt: own.jkt } })
      let reached = 0
      const store = { add: () => Effect.andThen(Effect.sync(() => void reached++), Effect.never) }
      const { identify } = yield* Effect.provideService(
        protect(tokens, { dpop: "accept", maxFailures: 3 }),
        ReplayStore.ReplayStore,
        store
      )
      const identified = (proof: string) => {
        const headers: Http.Headers = dpop("bound", proof) as never
        const request = { method: "POST", path: "/mcp", address: "192.0.2.1", header: (name: string) => headers[name] }
        return identify(request as Http.HttpRequest, { addHeaders: () => {} }) as Effect.Effect<unknown, Http.Refusal>
      }
      for (let n = 0; n < 3; n++) {
        const fiber = yield* Effect.forkChild(identified(yield* prove(own, "bound")))
        while (reached === n) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
        yield* Fiber.interrupt(fiber)
      }
      expect((yield* Effect.flip(identified(yield* prove(own, "bound")))).status).toBe(429)
    }))

  it.live("2024-11-05 · is accepted on the paths of HTTP+SSE, with proofs for them", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = yield* keys
      const { server, tokens } = yield* start({ dpop: "require" })
      tokens.add("bound", { confirmation: { jkt: own.jkt } })
      const at = (path: string, htm = "POST") =>
        Effect.map(prove(own, "bound", { htm, htu: `https://tea.example${path}` }), (proof) => dpop("bound", proof))
      const refused = { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } }
      const wrong = yield* at("/other", "GET")
      expect((yield* send(server, { ...refused, headers: { ...refused.headers, ...wrong } })).status).toBe(401)
      const opened = yield* send(
        server,
        { ...refused, headers: { ...refused.headers, ...(yield* at("/sse", "GET")) } },
        (text) => text.includes("/messages")
      )
      expect(opened.status).toBe(200)
      const posted = yield* send(server, {
        path: "/messages?sessionId=none",
        headers: { ...posting, ...(yield* at("/messages?sessionId=none")) },
        body: { jsonrpc: "2.0", id: 1, method: "ping" }
      })
      // The token is accepted, and there is no such session.
      expect(posted.status).toBe(404)
    })))

  it.live("is refused where DPoP is off, and required where it is required", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = yield* keys
      const off = yield* start()
      off.tokens.add("bound", { confirmation: { jkt: own.jkt } })
      expect((yield* off.call(bearer("bound"))).status).toBe(401)
      const unsupported = yield* off.call(dpop("bound", yield* prove(own, "bound")))
      expect([unsupported.status, challengeOf(unsupported)["error"]]).toEqual([401, undefined])
      const required = yield* start({ dpop: "require" })
      required.tokens.add("plain")
      required.tokens.add("bound", { confirmation: { jkt: own.jkt } })
      const refused = yield* required.call(bearer("plain"))
      expect(refused.status).toBe(401)
      expect(refused.headers["www-authenticate"]).toMatch(/^DPoP error="invalid_token"/)
      expect((yield* required.call({})).headers["www-authenticate"]).toMatch(/^DPoP /)
      expect((yield* required.call(dpop("bound", yield* prove(own, "bound")))).status).toBe(200)
      const { json } = yield* send(required.server, { method: "GET", path: "/.well-known/oauth-protected-resource" })
      expect(json.dpop_bound_access_tokens_required).toBe(true)
      expect(json.dpop_signing_alg_values_supported).toContain("ES256")
    })))

  it.live("gets a nonce with the first refusal, and a newer one with a response", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = yield* keys
      const { call, tokens } = yield* start({ dpop: { nonces: {} }, maxFailures: 1 })
      tokens.add("bound", { confirmation: { jkt: own.jkt } })
      const first = yield* call(dpop("bound", yield* prove(own, "bound")))
      expect(first.status).toBe(401)
      expect(first.headers["www-authenticate"]).toContain("error=\"use_dpop_nonce\"")
      const nonce = first.headers["dpop-nonce"]
      expect(nonce).toBeDefined()
      const accepted = yield* call(dpop("bound", yield* prove(own, "bound", { nonce })))
      expect(accepted.status).toBe(200)
      expect((yield* call(dpop("bound", yield* prove(own, "bound", { nonce: "x" })))).status).toBe(401)
    })))
})

describe("a token that is bound to a certificate", () => {
  const certificate = new TextEncoder().encode("the certificate of ada")
  const x5tS256 = createHash("sha256").update(certificate).digest("base64url")
  const identify = (
    options: Partial<Protect.Options>,
    request: Partial<Http.HttpRequest>,
    headers: Http.Headers = {}
  ) =>
    Effect.gen(function*() {
      const tokens = new Tokens()
      tokens.add("bound", { confirmation: { x5tS256 } })
      const { credentialHeaders, identify } = yield* protect(tokens, options)
      const all: Http.Headers = { authorization: "Bearer bound", ...headers }
      const sent = { method: "POST", ...request, header: (name: string) => all[name] } as Http.HttpRequest
      const found = Awaitable.settle(identify(sent, { addHeaders: () => {} }))
      const result = yield* Effect.result(Effect.isEffect(found) ? found : Effect.succeed(found))
      const outcome = Result.match(result, {
        onSuccess: (principal) => principal?.id,
        onFailure: (error) => (error as Http.Refusal).status
      })
      return { outcome, credentialHeaders }
    })
  const forwarded = `:${Buffer.from(certificate).toString("base64")}:`

  it.effect("RFC 8705 · is accepted with this certificate only, of the connection or forwarded by a proxy", () =>
    Effect.gen(function*() {
      const id = `${issuer} ada`
      const outcome = (...args: Parameters<typeof identify>) => Effect.map(identify(...args), ({ outcome }) => outcome)
      expect(yield* outcome({}, { clientCertificate: certificate })).toBe(id)
      expect(yield* outcome({}, {})).toBe(401)
      expect(yield* outcome({}, { clientCertificate: new Uint8Array([1]) })).toBe(401)
      expect(yield* outcome({}, {}, { "client-cert": forwarded })).toBe(401)
      const options = { forwardedCertificate: { proxies: ["10.0.0.0/8"] } }
      const behind = yield* identify(options, { peerAddress: "10.1.1.1" }, { "client-cert": forwarded })
      expect(behind).toEqual({ outcome: id, credentialHeaders: ["client-cert"] })
      expect(yield* outcome(options, { peerAddress: "10.1.1.1" }, { "client-cert": "malformed" })).toBe(401)
      expect(yield* outcome(options, { peerAddress: "192.0.2.1" }, { "client-cert": forwarded })).toBe(401)
    }))
})

describe("secrets", () => {
  it.live("no token, proof or claim is in a log, an answer or a principal of a log", () =>
    Effect.scoped(Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make((options) =>
        void logged.push(JSON.stringify([options.message, String(options.cause)]))
      )
      const tokens = new Tokens()
      const logs = Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Trace"))
      const server = yield* Effect.provide(serve(protect(tokens), [whoami]), logs)
      const client = revisions.at(-1)![1](server)
      tokens.add("planted-good", { claims: { email: "planted-claim" } })
      tokens.add("planted-down")
      const call = (token: string) =>
        client.request("tools/call", { name: "whoami", arguments: {} }, { ...bearer(token), dpop: "planted-proof" })
      const replies = [yield* call("planted-good"), yield* call("planted-bad"), yield* call("planted bad")]
      tokens.before = Effect.fail(new TokenVerifier.VerifierUnavailable({ message: "down", retryAfterSeconds: 1 }))
      replies.push(yield* call("planted-down"))
      expect(replies.map(({ status }) => status)).toEqual([200, 401, 400, 503])
      expect(logged.length).toBeGreaterThan(0)
      expect(JSON.stringify(replies)).not.toContain("planted")
      expect(logged.join("\n")).not.toContain("planted")
    })))
})
