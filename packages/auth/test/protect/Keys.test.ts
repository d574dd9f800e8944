/** The keys of an issuer: found in its metadata, fetched, kept, and fetched again. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { KeySet } from "../../src/server/tokens/keySet.ts"
import { type AuthorizationServer, json, makeKey, makeServer } from "./authorizationServer.ts"
import { problemOf, verify } from "./verify.ts"

const known = "/.well-known/oauth-authorization-server"
const openid = "/.well-known/openid-configuration"
const fail = (server: AuthorizationServer, path: string, status = 503) =>
  server.overrides.set(path, (_request, response) => json(response, status, {}))

describe("discovery", () => {
  for (
    const [path, metadataPath] of [
      ["", known],
      ["", openid],
      ["/tenant", `${known}/tenant`],
      ["/tenant", `${openid}/tenant`],
      ["/tenant", `/tenant${openid}`],
      ["/tenant/", `${openid}/tenant`]
    ] as const
  ) {
    it.effect(`finds the keys of an issuer with the path "${path}" at ${metadataPath}`, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        server.path = path
        server.metadataPath = metadataPath
        const verifier = TokenVerifier.jwt({ issuer: server.issuer })
        expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      }))
  }

  it.effect("RFC 8414, 3.3 · uses no metadata of another issuer, compared as text", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.metadata = { issuer: `${server.issuer}/` }
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const error = yield* Effect.flip(verify(verifier, yield* server.token()))
      expect(error).toMatchObject({ _tag: "VerifierUnavailable" })
      expect(error.message).toContain("the option issuer must be equal")
      expect(server.count("/keys")).toBe(0)
    }))

  it.effect("goes on after metadata of another issuer and after a status of 500, and names the status if nothing is found", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.metadataPath = openid
      server.overrides.set(known, (_request, response) => json(response, 200, { issuer: "https://other.example" }))
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      fail(server, known, 500)
      const other = TokenVerifier.jwt({ issuer: server.issuer })
      expect(yield* problemOf(other, yield* server.token())).toBeUndefined()
      fail(server, openid, 404)
      const none = TokenVerifier.jwt({ issuer: server.issuer })
      const error = yield* Effect.flip(verify(none, yield* server.token()))
      expect(error.message).toContain(`${server.origin}${known} has status 500`)
    }))

  it.effect("uses jwksUri without discovery", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, jwksUri: `${server.origin}/keys` })
      expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      expect(server.requests).toEqual(["/keys"])
    }))

  it.effect("follows three redirects of one origin and none to another, of metadata and keys", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const elsewhere = yield* makeServer
      const redirect = (path: string, location: string) =>
        server.overrides.set(path, (_request, response) => void response.writeHead(307, { location }).end())
      redirect(known, `${known}/`)
      server.overrides.set(
        `${known}/`,
        (_request, response) => json(response, 200, { issuer: server.issuer, jwks_uri: `${server.origin}/old-keys` })
      )
      redirect("/old-keys", `${server.origin}/keys`)
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      redirect("/old-keys", `${elsewhere.origin}/keys`)
      const changed = TokenVerifier.jwt({ issuer: server.issuer })
      const moved = yield* Effect.flip(verify(changed, yield* server.token()))
      expect(moved.message).toContain(`a redirect to ${elsewhere.origin}/keys that is not followed`)
      expect(elsewhere.requests).toEqual([])
      redirect("/old-keys", "/old-keys")
      const before = server.count("/old-keys")
      expect(yield* problemOf(TokenVerifier.jwt({ issuer: server.issuer }), yield* server.token())).toBe("unavailable")
      expect(server.count("/old-keys") - before).toBe(4)
      server.overrides.delete(known)
      server.metadata = { jwks_uri: "http://keys.example/keys" }
      const other = TokenVerifier.jwt({ issuer: server.issuer })
      const error = yield* Effect.flip(verify(other, yield* server.token()))
      expect(error.message).toContain("not an https address")
    }))
})

describe("keys", () => {
  it.effect("fetches the keys once for many tokens", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const tokens = yield* Effect.forEach(Array.from({ length: 20 }, (_, jti) => jti), (jti) => server.token({ jti }))
      const problems = yield* Effect.forEach(tokens, (token) => problemOf(verifier, token), {
        concurrency: "unbounded"
      })
      expect(problems).toEqual(tokens.map(() => undefined))
      expect(server.requests).toEqual([known, "/keys"])
    }))

  it.effect("fetches the keys for an unknown kid, at most every 30 seconds", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const first = yield* server.token()
      expect(yield* problemOf(verifier, first)).toBeUndefined()
      server.keys = [yield* makeKey("ES256", "rotated"), ...server.keys]
      const rotated = yield* server.token()
      expect(yield* problemOf(verifier, rotated)).toBe("Key")
      yield* TestClock.adjust("30 seconds")
      expect(yield* problemOf(verifier, rotated)).toBeUndefined()
      expect(yield* problemOf(verifier, first)).toBeUndefined()
      const stranger = yield* makeKey("ES256", "stranger")
      for (let i = 0; i < 50; i++) {
        expect(yield* problemOf(verifier, yield* server.token({ jti: i }, { kid: `s${i}` }, stranger))).toBe("Key")
      }
      expect(server.count("/keys")).toBe(2)
    }))

  it.live("fetches the keys once for clients that disconnect before they arrive", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const stranger = yield* makeKey("ES256", "stranger")
      const requested = yield* Deferred.make<void>()
      const waiting: Array<() => void> = []
      server.overrides.set("/keys", (_request, response) => {
        waiting.push(() => json(response, 200, { keys: server.keys.map(({ publicJwk }) => publicJwk) }))
        Deferred.doneUnsafe(requested, Effect.void)
      })
      const time = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 3600 }
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, jwksUri: `${server.origin}/keys` })
      for (let jti = 0; jti < 20; jti++) {
        const token = yield* server.token({ ...time, jti }, { kid: `s${jti}` }, stranger)
        const fiber = yield* Effect.forkChild(Effect.exit(verify(verifier, token)), { startImmediately: true })
        yield* Deferred.await(requested)
        yield* Fiber.interrupt(fiber)
      }
      const good = yield* Effect.forkChild(problemOf(verifier, yield* server.token(time)), { startImmediately: true })
      for (const answer of waiting) answer()
      expect([yield* Fiber.join(good), server.count("/keys")]).toEqual([undefined, 1])
    }))

  it.effect("forgets a key that the issuer has removed, after ten minutes", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token()
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      server.keys = [yield* makeKey("ES256", "other")]
      yield* TestClock.adjust("599 seconds")
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      expect(server.count("/keys")).toBe(1)
      yield* TestClock.adjust("1 second")
      // The token that starts the fetch does not wait for it.
      const arrival = yield* Effect.forkChild(server.arrival("/keys"), { startImmediately: true })
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      yield* Fiber.join(arrival)
      // A token with the new key waits for the same fetch.
      expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      expect(yield* problemOf(verifier, token)).toBe("Key")
      expect(server.count("/keys")).toBe(2)
    }))

  it.effect("uses the last keys while the issuer is unavailable, for a day", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token({ exp: 1_000_000 })
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      fail(server, known)
      for (let hour = 1; hour < 24; hour++) {
        yield* TestClock.adjust("1 hour")
        expect(yield* problemOf(verifier, token)).toBeUndefined()
      }
      // A key that the issuer may have added meanwhile cannot be judged.
      const rotated = yield* server.token({ exp: 1_000_000 }, { kid: "rotated" })
      expect(yield* problemOf(verifier, rotated)).toBe("unavailable")
      yield* TestClock.adjust("1 hour")
      expect(yield* problemOf(verifier, token)).toBe("unavailable")
      server.overrides.clear()
      yield* TestClock.adjust("30 seconds")
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      expect(yield* problemOf(verifier, rotated)).toBe("Key")
    }))

  it.effect("fails with the time of the next attempt, and tries again later each time", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      fail(server, "/keys")
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token()
      const waits: Array<number> = []
      for (let attempt = 1; attempt <= 8; attempt++) {
        expect(yield* problemOf(verifier, token)).toBe("unavailable")
        const error = yield* Effect.flip(verify(verifier, token))
        if (error._tag !== "VerifierUnavailable") throw error
        expect(server.count("/keys")).toBe(attempt)
        waits.push(error.retryAfterSeconds)
        yield* TestClock.adjust(`${error.retryAfterSeconds} seconds`)
      }
      expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30])
      server.overrides.clear()
      expect(yield* problemOf(verifier, token)).toBeUndefined()
    }))

  it.effect("gives up after requestTimeout, and the others that wait with it", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.overrides.set("/keys", () => {})
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token()
      const arrival = yield* Effect.forkChild(server.arrival("/keys"), { startImmediately: true })
      const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.flip(verify(verifier, token))))
      yield* Fiber.join(arrival)
      yield* TestClock.adjust("5 seconds")
      for (const fiber of fibers) expect((yield* Fiber.join(fiber)).message).toContain("requestTimeout (5s)")
      expect(server.count("/keys")).toBe(1)
    }))

  it.effect("leaves the fetch to others when its first caller is interrupted", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      let release = (): void => {}
      server.overrides.set("/keys", (request, response) => {
        release = () => {
          server.overrides.clear()
          server.handle(request, response, "")
        }
      })
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token()
      const arrival = yield* Effect.forkChild(server.arrival("/keys"), { startImmediately: true })
      const first = yield* Effect.forkChild(verify(verifier, token), { startImmediately: true })
      const second = yield* Effect.forkChild(verify(verifier, token), { startImmediately: true })
      yield* Fiber.join(arrival)
      yield* Fiber.interrupt(first)
      release()
      expect((yield* Fiber.join(second)).subject).toBe("ada")
    }))

  it.effect("refuses a document that is larger than maxDocumentBytes, or not a key set", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const token = yield* server.token()
      const answers = [
        JSON.stringify({ keys: [], filler: "x".repeat(300_000) }),
        "{",
        "[]",
        "{\"keys\":1}",
        "null",
        "{\"keys\":[1]}"
      ]
      for (const answer of answers) {
        server.overrides.set("/keys", (_request, response) => void response.end(answer))
        const verifier = TokenVerifier.jwt({ issuer: server.issuer })
        expect([answer.slice(0, 20), yield* problemOf(verifier, token)]).toEqual([answer.slice(0, 20), "unavailable"])
      }
    }))

  it.effect("skips malformed keys, secret keys and keys of another use", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const key = server.keys[0]!
      const publish = (...keys: ReadonlyArray<object>) =>
        server.overrides.set("/keys", (_request, response) => json(response, 200, { keys }))
      const token = yield* server.token()
      publish({ kty: "EC", kid: "broken", crv: "P-256" }, { kty: "oct", k: "AAAA", kid: "key-ES256" }, key.publicJwk)
      expect(yield* problemOf(TokenVerifier.jwt({ issuer: server.issuer }), token)).toBeUndefined()
      for (const changed of [{ use: "enc" }, { alg: "ES384" }, { key_ops: ["sign"] }, { x: "AA" }]) {
        publish({ ...key.publicJwk, ...changed })
        expect(yield* problemOf(TokenVerifier.jwt({ issuer: server.issuer }), token)).toBe("Key")
      }
    }))

  it.effect("finds a key at once when it was found before, and none by a kid that is not a text", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const keys = new KeySet(Effect.succeed(`${server.origin}/keys`), {})
      const find = (kid: unknown) => keys.find({ alg: "ES256", kid } as never, 0)
      const [key] = server.keys
      for (const kid of [key!.kid, undefined, 7, { kid: 1 }]) {
        const first = find(kid)
        expect(Effect.isEffect(first)).toBe(true)
        const isName = kid === undefined || typeof kid === "string"
        expect(yield* first as Effect.Effect<ReadonlyArray<unknown>, unknown>).toHaveLength(isName ? 1 : 0)
        expect([kid, Effect.isEffect(find(kid))]).toEqual([kid, !isName])
      }
    }))

  it.effect("tries the keys of a token without kid, at most eight", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const keys = yield* Effect.forEach(Array.from({ length: 9 }, (_, at) => at), (at) => makeKey("ES256", `k${at}`))
      server.keys = keys
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const problems = yield* Effect.forEach(keys, (key) =>
        Effect.flatMap(server.token({}, { kid: undefined }, key), (token) => problemOf(verifier, token)))
      expect(problems).toEqual([
        ...Array.from({ length: 8 }, () =>
          undefined),
        "Signature"
      ])
    }))
})
