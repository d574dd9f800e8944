/** Verifiers by introspection, with an authorization server on loopback. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { type Claims, json, makeServer, resource } from "./authorizationServer.ts"
import { problemOf, verify } from "./verify.ts"

const active: Claims = { active: true, sub: "ada", client_id: "kettle", aud: resource, scope: "tea:read", exp: 60 }
const clientSecret = Redacted.make("s3cret")

describe("TokenVerifier.introspection", () => {
  it.effect("RFC 7662, 2.1 · posts the token with the client's credentials, and returns the facts", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.introspected.set("op aque+&=", active)
      const verifier = TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", clientSecret })
      expect(yield* verify(verifier, "op aque+&=")).toMatchObject({
        issuer: server.issuer,
        subject: "ada",
        clientId: "kettle",
        scopes: ["tea:read"],
        audiences: [resource],
        // A minute, and the tolerance.
        expiresAt: 65
      })
      expect(Object.fromEntries(new URLSearchParams(server.bodies.at(-1)))).toEqual({
        token: "op aque+&=",
        token_type_hint: "access_token"
      })
      expect(server.authorizations.at(-1)).toBe(`Basic ${btoa("tea:s3cret")}`)
    }))

  it.effect("RFC 6749, 2.3.1 · encodes the credentials as a form before base64", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.introspected.set("t", active)
      const verifier = TokenVerifier.introspection({
        issuer: server.issuer,
        clientId: "https://tea.example/a:b",
        clientSecret: Redacted.make("a b+c%d:é-._~*")
      })
      yield* verify(verifier, "t")
      const [id, secret] = atob(server.authorizations.at(-1)!.slice(6)).split(":")
      expect(id).toBe("https%3A%2F%2Ftea.example%2Fa%3Ab")
      expect(secret).toBe("a+b%2Bc%25d%3A%C3%A9-._%7E*")
    }))

  it.effect("authenticates in the body, by a signed assertion, and as a public client", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.introspected.set("t", active)
      const { privateKey, publicKey } = yield* Effect.promise(() =>
        jose.generateKeyPair("ES256", { extractable: true })
      )
      const pem = Redacted.make(yield* Effect.promise(() => jose.exportPKCS8(privateKey)))
      const body = Effect.fnUntraced(function*(options: Partial<TokenVerifier.IntrospectionOptions>) {
        yield* verify(TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", ...options }), "t")
        expect(server.authorizations.at(-1)).toBeUndefined()
        return new URLSearchParams(server.bodies.at(-1))
      })
      const posted = yield* body({ clientSecret, authenticationMethod: "client_secret_post" })
      expect([posted.get("client_id"), posted.get("client_secret")]).toEqual(["tea", "s3cret"])
      expect((yield* body({})).get("client_id")).toBe("tea")
      const signed = yield* body({ privateKey: { pem: Effect.succeed(pem), algorithm: "ES256", keyId: "k" } })
      expect(signed.get("client_assertion_type")).toBe("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
      const { payload, protectedHeader } = yield* Effect.promise(() =>
        jose.jwtVerify(signed.get("client_assertion")!, publicKey, { currentDate: new Date(0) })
      )
      expect(payload).toMatchObject({ iss: "tea", sub: "tea", aud: server.issuer, iat: 0, exp: 60 })
      expect(protectedHeader.kid).toBe("k")
    }))

  const refused: ReadonlyArray<readonly [title: string, problem: string, answer: Claims]> = [
    ["RFC 7662, 2.2 · rejects a token that is not active", "Inactive", { active: false }],
    ["RFC 7662, 2.2 · rejects a response without active", "Inactive", { sub: "ada", aud: resource }],
    ["RFC 7662, 2.2 · rejects active as a text", "Inactive", { ...active, active: "true" }],
    ["2025-06-18 · S6 · rejects another audience", "Audience", { ...active, aud: "https://other.example" }],
    ["2025-06-18 · S6 · rejects a token without an audience", "Audience", { ...active, aud: undefined }],
    ["rejects another issuer", "Issuer", { ...active, iss: "https://other.example" }],
    ["RFC 7662, 4 · rejects an expired token that is said to be active", "Expired", { ...active, exp: -5 }],
    ["RFC 7662, 4 · rejects a token before nbf", "NotYetValid", { ...active, nbf: 6 }],
    ["rejects an ID token", "Type", { ...active, at_hash: "x" }],
    ["rejects a token of nobody", "Malformed", { active: true, aud: resource }]
  ]
  for (const [title, problem, answer] of refused) {
    it.effect(title, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        server.introspected.set("t", answer)
        const verifier = TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", clientSecret })
        expect(yield* problemOf(verifier, "t")).toBe(problem)
      }))
  }

  it.effect("asks nothing about a JWT of another issuer, or an expired one", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", clientSecret })
      expect(yield* problemOf(verifier, yield* server.token({ iss: "https://other.example" }))).toBe("Issuer")
      expect(yield* problemOf(verifier, yield* server.token({ exp: -5 }))).toBe("Expired")
      expect(yield* problemOf(verifier, "x".repeat(16_385))).toBe("TooLong")
      expect(server.requests).toEqual([])
    }))

  it.effect("is unavailable while the server fails, does not answer, or refuses the client", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      server.introspected.set("t", active)
      const verifier = TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", clientSecret })
      for (const status of [500, 503, 429, 401, 400, 404]) {
        server.overrides.set(
          "/introspect",
          (_request, response) => json(response, status, { active: true, aud: resource })
        )
        const error = yield* Effect.flip(verify(verifier, "t"))
        expect([error._tag, error.message.includes(`status ${status}`)]).toEqual(["VerifierUnavailable", true])
        expect(error.message).not.toContain("s3cret")
      }
      server.overrides.set("/introspect", (_request, response) => void response.end("[]"))
      expect(yield* problemOf(verifier, "t")).toBe("unavailable")
      server.overrides.set("/introspect", (_request, response) => void response.destroy())
      expect(yield* problemOf(verifier, "t")).toBe("unavailable")
      server.overrides.set("/introspect", () => {})
      const arrival = yield* Effect.forkChild(server.arrival("/introspect"), { startImmediately: true })
      const late = yield* Effect.forkChild(problemOf(verifier, "t"))
      yield* Fiber.join(arrival)
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(late)).toBe("unavailable")
      server.overrides.clear()
      expect(yield* problemOf(verifier, "t")).toBeUndefined()
    }))

  it.effect("keeps a secret that cannot be read out of the error", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      for (
        const options of [
          { clientSecret: Effect.fail("planted") },
          { privateKey: { pem: Redacted.make("planted"), algorithm: "ES256" } }
        ]
      ) {
        const verifier = TokenVerifier.introspection({ issuer: server.issuer, clientId: "tea", ...options })
        const error = yield* Effect.flip(verify(verifier, "t"))
        expect(error._tag).toBe("VerifierUnavailable")
        expect(JSON.stringify(error) + String((error as { cause?: unknown }).cause)).not.toContain("planted")
      }
    }))

  it.effect("sends at most maxInFlightRequests at the same time", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const waiting: Array<() => void> = []
      server.overrides.set("/introspect", (_request, response) => {
        waiting.push(() => json(response, 200, active))
      })
      const verifier = TokenVerifier.introspection({
        issuer: server.issuer,
        endpoint: `${server.origin}/introspect`,
        clientId: "tea",
        clientSecret,
        maxInFlightRequests: 2
      })
      const fibers = yield* Effect.forEach(["a", "b", "c"], (token) => Effect.forkChild(problemOf(verifier, token)))
      const until = (count: number): Effect.Effect<void> =>
        Effect.suspend(() =>
          server.requests.length >= count
            ? Effect.void
            : Effect.andThen(Effect.promise(() => new Promise((done) => setImmediate(done))), until(count))
        )
      yield* until(2)
      for (let i = 0; i < 20; i++) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
      expect(server.requests).toHaveLength(2)
      waiting[0]!()
      yield* until(3)
      waiting[1]!()
      waiting[2]!()
      for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toBeUndefined()
    }))
})
