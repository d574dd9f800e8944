/** Verifiers of JWTs, with an authorization server on loopback. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { type Claims, claimsOf, makeKey, makeServer, resource, sign } from "./authorizationServer.ts"
import { problemOf, verify } from "./verify.ts"

const encode = (value: unknown): string => jose.base64url.encode(JSON.stringify(value))

describe("TokenVerifier.jwt", () => {
  it.effect("returns the facts of a token", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const token = yield* server.token({ cnf: { jkt: "thumbprint" }, tenant: "leaf" })
      expect(yield* verify(verifier, token)).toMatchObject({
        issuer: server.issuer,
        subject: "ada",
        clientId: "kettle",
        scopes: ["tea:read", "tea:write"],
        audiences: [resource],
        // An hour, and the tolerance.
        expiresAt: 3605,
        confirmation: { jkt: "thumbprint" },
        claims: { tenant: "leaf" }
      })
    }))

  it.effect("reads scopes of scp, as a list and as text", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      for (const scp of [["tea:read", "tea:write"], "tea:read tea:write"]) {
        const token = yield* server.token({ scope: undefined, scp })
        expect((yield* verify(verifier, token)).scopes).toEqual(["tea:read", "tea:write"])
      }
      const without = yield* server.token({ scope: undefined })
      expect((yield* verify(verifier, without)).scopes).toEqual([])
    }))

  for (const alg of ["ES256", "ES384", "ES512", "EdDSA", "Ed25519", "PS256", "RS256", "RS512"]) {
    it.effect(`RFC 9068, 2.1 · accepts ${alg}`, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        server.keys = [yield* makeKey(alg)]
        const verifier = TokenVerifier.jwt({ issuer: server.issuer })
        expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
      }))
  }

  it.effect("RFC 7515, 2 · rejects the other spellings of a signature, which decoders accept", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
      for (const alg of ["ES256", "ES384", "ES512", "RS256"]) {
        server.keys = [yield* makeKey(alg)]
        const verifier = TokenVerifier.jwt({ issuer: server.issuer })
        const token = yield* server.token()
        expect(yield* problemOf(verifier, token)).toBeUndefined()
        const bytes = (text: string) => Buffer.from(text.slice(text.lastIndexOf(".") + 1), "base64url").toString("hex")
        const last = [...alphabet].map((character) => token.slice(0, -1) + character)
        const same = [`${token}=`, `${token}==`, ...last].filter((one) => one !== token && bytes(one) === bytes(token))
        expect(same.length).toBeGreaterThan(1)
        for (const one of same) expect(yield* problemOf(verifier, one)).toBe("Malformed")
      }
    }))

  const refused: ReadonlyArray<readonly [title: string, problem: string, claims: Claims, header?: Claims]> = [
    ["RFC 9068, 4 · rejects another issuer", "Issuer", { iss: "https://other.example" }],
    ["RFC 8725, 3.8 · compares the issuer as text", "Issuer", { iss: "HTTP://127.0.0.1" }],
    ["rejects a token without an issuer", "Issuer", { iss: undefined }],
    ["2025-06-18 · S6 · RFC 8725, 3.9 · rejects another audience", "Audience", { aud: "https://other.example/mcp" }],
    ["2025-06-18 · S6 · compares the audience as text: a slash", "Audience", { aud: `${resource}/` }],
    ["2025-06-18 · S6 · compares the audience as text: the case of the host", "Audience", {
      aud: "https://TEA.example/mcp"
    }],
    ["2025-06-18 · S6 · rejects an audience that starts with the resource", "Audience", { aud: `${resource}2` }],
    ["2025-06-18 · S6 · rejects an empty list of audiences", "Audience", { aud: [] }],
    ["2025-06-18 · S6 · rejects a token without an audience", "Audience", { aud: undefined }],
    ["rejects an audience of another type", "Malformed", { aud: { 0: resource } }],
    ["RFC 9068, 4 · S13 · rejects an expired token", "Expired", { exp: -5 }],
    ["rejects a token without exp", "Malformed", { exp: undefined }],
    ["rejects an exp that is a text", "Malformed", { exp: "3600" }],
    ["rejects a token before nbf", "NotYetValid", { nbf: 6 }],
    ["RFC 8725, 3.11 · rejects the type of an ID token of a logout", "Type", {}, { typ: "logout+jwt" }],
    ["RFC 8725, 3.11 · rejects a DPoP proof as a token", "Type", {}, { typ: "dpop+jwt" }],
    ["RFC 8725, 3.12 · rejects an ID token with the audience of the resource", "Type", { at_hash: "x" }, {
      typ: "JWT"
    }],
    ["RFC 8725, 3.12 · rejects an ID token of Cognito", "Type", { token_use: "id" }, { typ: undefined }],
    ["RFC 8725, 3.12 · rejects a refresh token of Keycloak", "Type", { typ: "Refresh" }, { typ: "JWT" }],
    ["rejects a token of nobody", "Malformed", { sub: undefined, client_id: undefined }],
    ["rejects an empty sub, which is not an absent one", "Malformed", { sub: "" }],
    ["rejects a sub that is not a text", "Malformed", { sub: 7 }],
    ["rejects a sub that is null", "Malformed", { sub: null }],
    ["rejects a sub that is a list", "Malformed", { sub: ["ada"] }],
    ["rejects a client that is not a text, for which another claim would count", "Malformed", {
      client_id: 7,
      azp: "b"
    }]
  ]
  for (const [title, problem, claims, header] of refused) {
    it.effect(title, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        const verifier = TokenVerifier.jwt({ issuer: server.issuer })
        expect(yield* problemOf(verifier, yield* server.token(claims, header))).toBe(problem)
      }))
  }

  it.effect("S5 · reads issuer, audience and expiry before it fetches keys", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      for (const claims of [{ iss: "https://other.example" }, { aud: "x" }, { exp: -6 }]) {
        expect(yield* problemOf(verifier, yield* server.token(claims))).toBeDefined()
      }
      expect(server.requests).toEqual([])
    }))

  it.effect("accepts exp and nbf within the tolerance, and no longer", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const strict = TokenVerifier.jwt({ issuer: server.issuer, clockTolerance: 0 })
      const token = yield* server.token({ nbf: 5, exp: 20 })
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      expect(yield* problemOf(strict, token)).toBe("NotYetValid")
      yield* TestClock.adjust("24 seconds")
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      expect(yield* problemOf(strict, token)).toBe("Expired")
      yield* TestClock.adjust("1 second")
      expect(yield* problemOf(verifier, token)).toBe("Expired")
    }))

  it.effect("accepts one of several audiences, and those of the options", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, audiences: ["api://tea"] })
      expect(yield* problemOf(verifier, yield* server.token({ aud: ["a", resource] }))).toBeUndefined()
      expect(yield* problemOf(verifier, yield* server.token({ aud: "api://tea" }))).toBeUndefined()
      expect(yield* problemOf(verifier, yield* server.token({ aud: "api://tea/" }))).toBe("Audience")
    }))

  it.effect("accepts a token without an audience of the clients of the options only", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, clients: ["kettle"] })
      expect(yield* problemOf(verifier, yield* server.token({ aud: undefined }))).toBeUndefined()
      expect(yield* problemOf(verifier, yield* server.token({ aud: undefined, client_id: "pot" }))).toBe("Audience")
      expect(yield* problemOf(verifier, yield* server.token({ aud: "https://other.example" }))).toBe("Audience")
    }))

  it.effect("RFC 9068, 4 · demands the type at+jwt with requireType", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, requireType: true })
      for (const typ of ["at+jwt", "AT+JWT", "application/at+jwt"]) {
        expect(yield* problemOf(verifier, yield* server.token({}, { typ }))).toBeUndefined()
      }
      for (const typ of ["JWT", undefined]) {
        expect(yield* problemOf(verifier, yield* server.token({}, { typ }))).toBe("Type")
      }
    }))

  it.effect("RFC 8725, 3.1 · rejects none, HMAC with the public key, and an algorithm that is not in the list", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const rsa = yield* makeKey("RS256")
      server.keys = [rsa, yield* makeKey("ES256")]
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, algorithms: ["RS256"] })
      const claims = claimsOf(server.issuer)
      for (const alg of ["none", "None", "NONE", ""]) {
        const unsigned = `${encode({ alg, typ: "at+jwt" })}.${encode(claims)}.`
        expect(yield* problemOf(verifier, unsigned)).toBe("Algorithm")
      }
      const publicKey = yield* Effect.promise(async () =>
        jose.exportSPKI(await jose.importJWK(rsa.publicJwk, "RS256") as jose.CryptoKey)
      )
      for (const secret of [publicKey, JSON.stringify(rsa.publicJwk), rsa.publicJwk.n!]) {
        const forged = yield* Effect.promise(() =>
          new jose.SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "key-RS256" })
            .sign(new TextEncoder().encode(secret))
        )
        expect(yield* problemOf(verifier, forged)).toBe("Algorithm")
      }
      expect(yield* problemOf(verifier, yield* server.token({}, {}, server.keys[1]))).toBe("Algorithm")
      expect(yield* problemOf(verifier, yield* server.token())).toBeUndefined()
    }))

  it("RFC 8725, 3.2 · throws for algorithms without a public key", () => {
    for (const algorithm of ["none", "HS256", "dir", ""]) {
      expect(() => TokenVerifier.jwt({ issuer: "https://a.example", algorithms: [algorithm] })).toThrow("not allowed")
    }
    expect(() => TokenVerifier.jwt({ issuer: "https://a.example", algorithms: [] })).toThrow("empty")
  })

  it("throws for an issuer that is not https, unless it is on loopback or allowed", () => {
    expect(() => TokenVerifier.jwt({ issuer: "http://login.example" })).toThrow("https")
    expect(() => TokenVerifier.jwt({ issuer: "https://a.example", jwksUri: "http://a.example" })).toThrow("https")
    expect(() => TokenVerifier.jwt({ issuer: "a.example" })).toThrow("https")
    expect(TokenVerifier.jwt({ issuer: "http://keycloak:8080", allowHttp: true }).issuers).toEqual([
      "http://keycloak:8080"
    ])
  })

  it.effect("RFC 8725, 3.10 · uses no key and no address in the header of a token", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const thief = yield* makeKey("ES256", "thief")
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      for (
        const header of [
          { jwk: thief.publicJwk },
          { jku: `${server.origin}/thief` },
          { x5u: `${server.origin}/thief` },
          { x5c: ["MIIB"] },
          { kid: "../../thief" },
          { kid: "key-ES256" }
        ]
      ) {
        const problem = yield* problemOf(verifier, yield* server.token({}, header, thief))
        expect(["Key", "Signature"]).toContain(problem)
      }
      expect(server.count("/thief")).toBe(0)
    }))

  it.effect("RFC 8725, 3.3 · rejects critical headers that it does not know", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const header = encode({ alg: "ES256", kid: "key-ES256", crit: ["exp"], exp: 1 })
      const body = encode(claimsOf(server.issuer))
      const signature = yield* Effect.promise(async () =>
        new Uint8Array(
          await crypto.subtle.sign(
            { name: "ECDSA", hash: "SHA-256" },
            server.keys[0]!.privateKey,
            new TextEncoder().encode(`${header}.${body}`)
          )
        )
      )
      expect(yield* problemOf(verifier, `${header}.${body}.${jose.base64url.encode(signature)}`)).toBe("Malformed")
    }))

  it.effect("refuses a token of a megabyte without reading it", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const long = `${yield* server.token()}${"A".repeat(1024 * 1024)}`
      const before = process.cpuUsage()
      for (let i = 0; i < 1_000; i++) expect(yield* problemOf(verifier, long)).toBe("TooLong")
      const { system, user } = process.cpuUsage(before)
      // To decode one takes more than a millisecond.
      expect(user + system).toBeLessThan(500_000)
      expect(server.requests).toEqual([])
    }))

  it.effect("accepts a token of 16,384 characters, and none that is longer", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      const tokenWith = (padding: number) => server.token({ padding: "x".repeat(padding) })
      // Three characters of a claim are four of the token.
      let padding = 11_500
      let token = yield* tokenWith(padding)
      for (; token.length < 16_384; padding++) token = yield* tokenWith(padding)
      expect(token.length).toBe(16_384)
      expect(yield* problemOf(verifier, token)).toBeUndefined()
      expect(yield* problemOf(verifier, `${token}x`)).toBe("TooLong")
    }))

  it.effect("writes no part of the token into messages", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.jwt({ issuer: server.issuer })
      for (const claims of [{ iss: "planted" }, { aud: "planted" }, { sub: undefined, client_id: undefined }]) {
        const token = yield* server.token(claims)
        const error = yield* Effect.flip(verify(verifier, token))
        expect(error.message).not.toContain("planted")
        expect(error.message).not.toContain(token.slice(0, 20))
      }
    }))
})

describe("TokenVerifier.anyOf", () => {
  it.effect("asks the verifier of the token's issuer only", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* makeServer, yield* makeServer]
      const verifier = TokenVerifier.anyOf(
        TokenVerifier.jwt({ issuer: one.issuer }),
        TokenVerifier.jwt({ issuer: two.issuer })
      )
      expect(verifier.issuers).toEqual([one.issuer, two.issuer])
      expect((yield* verify(verifier, yield* two.token())).issuer).toBe(two.issuer)
      expect(one.requests).toEqual([])
      // Each issuer signs for itself only.
      const confused = yield* sign(one.keys[0]!, claimsOf(two.issuer))
      expect(yield* problemOf(verifier, confused)).toBe("Signature")
      expect(one.requests).toEqual([])
      expect(yield* problemOf(verifier, yield* one.token({ iss: "https://other.example" }))).toBe("Issuer")
      expect(yield* problemOf(verifier, "opaque")).toBe("Malformed")
    }))

  it.effect("gives opaque tokens to the verifier that accepts them", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const own = TokenVerifier.make({
        issuer: "https://own.example",
        verify: () => Effect.succeed({ audiences: [resource], expiresAt: undefined, subject: "own" })
      })
      const verifier = TokenVerifier.anyOf(TokenVerifier.jwt({ issuer: server.issuer }), own)
      expect((yield* verify(verifier, "opaque")).subject).toBe("own")
      expect((yield* verify(verifier, "a.b.c.d.e")).subject).toBe("own")
      expect((yield* verify(verifier, yield* server.token())).subject).toBe("ada")
    }))

  it("throws for two verifiers of one issuer, and of opaque tokens", () => {
    const own = (issuer: string) =>
      TokenVerifier.make({
        issuer,
        verify: () => Effect.succeed({ audiences: [], expiresAt: undefined, subject: "a" })
      })
    expect(() => TokenVerifier.anyOf(own("https://a.example"), own("https://a.example"))).toThrow("two verifiers")
    expect(() => TokenVerifier.anyOf(own("https://a.example"), own("https://b.example"))).toThrow("acceptsOpaque")
    expect(() => TokenVerifier.anyOf()).toThrow("no verifier")
  })
})

describe("TokenVerifier.make", () => {
  it.effect("awaits the promise of a verification", () =>
    Effect.gen(function*() {
      const own = TokenVerifier.make({
        issuer: "https://own.example",
        verify: async (token) => {
          if (token === "revoked") throw new TokenVerifier.InvalidToken({ problem: "Inactive", message: "revoked" })
          return { audiences: [resource], expiresAt: undefined, subject: token }
        }
      })
      expect((yield* verify(own, "ada")).subject).toBe("ada")
      expect(yield* problemOf(own, "revoked")).toBe("Inactive")
    }))

  it.effect("2025-06-18 · S6 · accepts a token only if it says that it is for this server", () =>
    Effect.gen(function*() {
      const own = (audiences: ReadonlyArray<string>, expiresAt: number | undefined = undefined) =>
        TokenVerifier.make({
          issuer: "https://own.example",
          audiences: ["app"],
          verify: () => Effect.succeed({ audiences, expiresAt, subject: "ada" })
        })
      expect(yield* problemOf(own(["app"]), "x")).toBeUndefined()
      expect(yield* problemOf(own([resource]), "x")).toBeUndefined()
      expect(yield* problemOf(own(["other"]), "x")).toBe("Audience")
      expect(yield* problemOf(own([]), "x")).toBe("Audience")
      expect(yield* problemOf(own(["app"], 1), "x")).toBeUndefined()
      yield* TestClock.adjust("1 second")
      expect(yield* problemOf(own(["app"], 1), "x")).toBe("Expired")
      expect(yield* problemOf(own(["app"], Number.NaN), "x")).toBe("Expired")
    }))
})
