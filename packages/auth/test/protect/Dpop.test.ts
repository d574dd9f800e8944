/** DPoP proofs at a resource (RFC 9449). */
import { describe, expect, it } from "@effect/vitest"
import * as ReplayStore from "@skein/auth/ReplayStore"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { bindingProblem } from "../../src/server/authenticate.ts"
import * as Dpop from "../../src/server/dpop.ts"
import type { Confirmation, VerifiedToken } from "../../src/server/tokens/verifiedToken.ts"
import { type Claims, makeKey, resource } from "./authorizationServer.ts"
import { type DpopClient, makeDpopClient } from "./dpopClient.ts"

const token = "the access token"

const check = (
  verifier: Dpop.DpopVerifier,
  client: DpopClient,
  proof: string | undefined,
  method = "POST"
): Effect.Effect<string> =>
  Effect.match(verifier.verify({ proof, method, token, jkt: client.jkt, owner: "ada" }), {
    onSuccess: () => "accepted",
    onFailure: (error) => error._tag === "InvalidProof" ? `${error.code}: ${error.message}` : error._tag
  })

describe("DPoP proofs", () => {
  for (const alg of ["ES256", "ES384", "EdDSA", "PS256", "RS256"]) {
    it.effect(`accepts a proof of ${alg}`, () =>
      Effect.gen(function*() {
        const client = yield* makeDpopClient(alg)
        const verifier = yield* Dpop.make(resource)
        expect(yield* check(verifier, client, yield* client.prove(token))).toBe("accepted")
      }))
  }

  const refused: ReadonlyArray<readonly [title: string, message: string, claims: Claims, header?: Claims]> = [
    ["(4) · rejects another typ", "typ", {}, { typ: "JWT" }],
    ["(4) · rejects a proof without typ", "typ", {}, { typ: undefined }],
    ["(8) · rejects another method", "htm", { htm: "GET" }],
    ["(8) · compares the method with its case", "htm", { htm: "post" }],
    ["(9) · rejects another resource", "htu", { htu: "https://other.example/mcp" }],
    ["(9) · rejects another path", "htu", { htu: "https://tea.example/other" }],
    ["(9) · rejects another scheme", "htu", { htu: "http://tea.example/mcp" }],
    ["(9) · rejects an htu that is no URL", "htu", { htu: "/mcp" }],
    ["(9) · rejects a huge htu", "htu", { htu: `https://tea.example/mcp#${"a".repeat(3_000)}` }],
    ["(3) · rejects a proof without htu", "htu", { htu: undefined }],
    ["(3) · rejects a proof without jti", "jti", { jti: undefined }],
    ["(3) · rejects an empty jti", "jti", { jti: "" }],
    ["rejects a jti of 513 characters", "jti", { jti: "a".repeat(513) }],
    ["(3) · rejects a proof without iat", "iat", { iat: undefined }],
    ["(3) · rejects an iat that is a text", "iat", { iat: "0" }],
    ["(11) · rejects a proof that is older than 60 seconds", "iat", { iat: -66 }],
    ["(11) · rejects a proof of the future", "iat", { iat: 6 }],
    ["(12) · rejects a proof for another token", "ath", { ath: "x" }],
    ["(12) · rejects a proof without ath", "ath", { ath: undefined }],
    ["(7) · rejects a proof without jwk", "jwk", {}, { jwk: undefined }],
    ["(7) · rejects a jwk that is a text", "jwk", {}, { jwk: "x" }]
  ]
  for (const [title, message, claims, header] of refused) {
    it.effect(`RFC 9449, 4.3 ${title}`, () =>
      Effect.gen(function*() {
        const client = yield* makeDpopClient()
        const verifier = yield* Dpop.make(resource)
        const proof = yield* client.prove(token, claims, header)
        const outcome = yield* check(verifier, client, proof)
        expect(outcome).toMatch(/^invalid_dpop_proof: /)
        expect(outcome).toContain(message)
      }))
  }

  it.effect("RFC 9449, 4.3 (1) and (2) · rejects no proof, several, and rubbish", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource)
      const [one, two] = [yield* client.prove(token), yield* client.prove(token)]
      for (const proof of [undefined, "", `${one}, ${two}`, "a.b.c", "rubbish", `${one}x`, one.slice(0, -10)]) {
        expect(yield* check(verifier, client, proof)).toMatch(/^invalid_dpop_proof: /)
      }
      expect(yield* check(verifier, client, "a".repeat(8_193))).toContain("longer than 8192 characters")
      // None of them has used it up.
      expect(yield* check(verifier, client, one)).toBe("accepted")
    }))

  it.effect("RFC 9449, 4.3 (5) · rejects none, HMAC, and an algorithm that is not in the list", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource, { algorithms: ["EdDSA"] })
      expect(yield* check(verifier, client, yield* client.prove(token))).toContain("alg")
      const every = yield* Dpop.make(resource)
      const [, body] = (yield* client.prove(token)).split(".")
      const { use: _use, ...jwk } = client.key.publicJwk
      const header = jose.base64url.encode(JSON.stringify({ typ: "dpop+jwt", alg: "none", jwk }))
      expect(yield* check(every, client, `${header}.${body}.`)).toContain("alg")
      const secret = yield* Effect.promise(() =>
        new jose.SignJWT({}).setProtectedHeader({
          typ: "dpop+jwt",
          alg: "HS256",
          jwk: { kty: "oct", k: "AAAA" } as never
        })
          .sign(new Uint8Array(32))
      )
      expect(yield* check(every, client, secret)).toContain("alg")
      expect(() => Effect.runSync(Dpop.make(resource, { algorithms: ["HS256"] }))).toThrow("not allowed")
    }))

  it.effect("RFC 9449, 4.3 (6) · rejects a signature of another key", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource)
      const forged = yield* client.prove(token, {}, {}, yield* makeKey("ES256"))
      expect(yield* check(verifier, client, forged)).toContain("signature")
    }))

  it.effect("RFC 9449, 4.3 (7) · rejects a private key in the header", () =>
    Effect.gen(function*() {
      for (const alg of ["ES256", "RS256", "EdDSA"]) {
        const client = yield* makeDpopClient(alg)
        const verifier = yield* Dpop.make(resource)
        const jwk = yield* Effect.promise(() => jose.exportJWK(client.key.privateKey))
        expect(yield* check(verifier, client, yield* client.prove(token, {}, { jwk }))).toContain("not a public key")
      }
    }))

  it.effect("RFC 9449, 4.3 (12) · rejects a proof of another key than that of the token", () =>
    Effect.gen(function*() {
      const [client, thief] = [yield* makeDpopClient(), yield* makeDpopClient()]
      const verifier = yield* Dpop.make(resource)
      expect(yield* check(verifier, client, yield* thief.prove(token))).toContain("not the key of the token")
    }))

  it.effect("rejects an RSA key whose verification would take seconds", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient("RS256")
      const verifier = yield* Dpop.make(resource)
      for (const long of [{ n: "A".repeat(1_367) }, { e: "A".repeat(7) }]) {
        const jwk: jose.JWK = { ...client.key.publicJwk, ...long }
        expect(yield* check(verifier, client, yield* client.prove(token, {}, { jwk }))).toContain("too long")
      }
    }))

  it.effect("RFC 9449, 4.3 · normalizes htu by syntax and scheme, and ignores its query and fragment", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make("https://tea.example/%7etea/mcp?x=1")
      for (
        const htu of [
          "https://tea.example/%7etea/mcp",
          "https://tea.example/~tea/mcp",
          "HTTPS://TEA.example:443/a/../%7Etea/mcp?y=2#z"
        ]
      ) {
        expect(yield* check(verifier, client, yield* client.prove(token, { htu }))).toBe("accepted")
      }
      expect(yield* check(verifier, client, yield* client.prove(token, { htu: "https://tea.example/~tea/MCP" })))
        .toContain("htu")
    }))

  it.effect("RFC 9449, 4.3 · accepts an htu with the path of the request at the origin of the resource", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make("https://tea.example/mcp")
      const outcome = (htu: string, path: string | undefined) =>
        Effect.flatMap(
          client.prove(token, { htu }),
          (proof) =>
            Effect.match(verifier.verify({ proof, method: "POST", path, token, jkt: client.jkt, owner: "ada" }), {
              onSuccess: () => "accepted",
              onFailure: ({ message }) => message
            })
        )
      expect(yield* outcome("https://tea.example/messages?sessionId=1", "/messages")).toBe("accepted")
      // A proxy may rewrite the path.
      expect(yield* outcome("https://tea.example/mcp", "/messages")).toBe("accepted")
      for (
        const [htu, path] of [
          ["https://tea.example/messages", "/mcp"],
          ["https://tea.example/messages", undefined],
          ["https://evil.example/messages", "/messages"],
          ["http://tea.example/messages", "/messages"],
          ["https://tea.example.evil.example/messages", ".evil.example/messages"],
          ["https://evil.example/", "@evil.example/"]
        ] as const
      ) {
        expect([htu, path, yield* outcome(htu, path)]).toEqual([htu, path, "htu of the DPoP proof is another resource"])
      }
    }))

  it.effect("RFC 9449, 11.1 · accepts a proof once, as long as its iat is accepted", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource)
      // The clock of the client is ahead: this proof is accepted for 70 seconds.
      const proof = yield* client.prove(token, { iat: 5, jti: "same" })
      expect(yield* check(verifier, client, proof)).toBe("accepted")
      for (let at = 0; at < 70; at += 10) {
        expect(yield* check(verifier, client, proof)).toContain("used before")
        yield* TestClock.adjust("10 seconds")
      }
      expect(yield* check(verifier, client, proof)).toContain("used before")
      yield* TestClock.adjust("1 second")
      expect(yield* check(verifier, client, proof)).toContain("iat")
      // The same jti of another key is another proof.
      const other = yield* makeDpopClient()
      expect(yield* check(verifier, other, yield* other.prove(token, { iat: 71, jti: "same" }))).toBe("accepted")
    }))

  it.effect("RFC 9449, 11.1 · accepts a proof once among verifiers that share a store", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const [one, two] = [yield* Dpop.make(resource), yield* Dpop.make(resource)]
      const proof = yield* client.prove(token)
      expect(yield* check(one, client, proof)).toBe("accepted")
      expect(yield* check(two, client, proof)).toContain("used before")
    }).pipe(Effect.provide(ReplayStore.layerMemory())))

  it.effect("is unavailable when the store fails", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource)
      expect(yield* check(verifier, client, yield* client.prove(token))).toBe("VerifierUnavailable")
    }).pipe(
      Effect.provideService(ReplayStore.ReplayStore, {
        add: () => Effect.fail(new ReplayStore.ReplayStoreError({ message: "no database" }))
      })
    ))
})

describe("nonces", () => {
  const nonceOf = (verifier: Dpop.DpopVerifier, client: DpopClient, proof: string) =>
    Effect.match(verifier.verify({ proof, method: "POST", token, jkt: client.jkt, owner: "ada" }), {
      onSuccess: ({ nonce }) => ({ code: "accepted", nonce }),
      onFailure: (error) =>
        error._tag === "InvalidProof"
          ? { code: error.code as string, nonce: error.nonce }
          : { code: error._tag, nonce: "" }
    })

  it.effect("RFC 9449, 9 · demands a nonce, and renews it after half of its lifetime", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource, { nonces: {} })
      const refusal = yield* nonceOf(verifier, client, yield* client.prove(token))
      expect(refusal.code).toBe("use_dpop_nonce")
      const nonce = refusal.nonce!
      // "nonce = 1*NQCHAR" (RFC 9449, 8.1).
      expect(nonce).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]+$/)
      expect(yield* nonceOf(verifier, client, yield* client.prove(token, { nonce }))).toEqual({
        code: "accepted",
        nonce: undefined
      })
      yield* TestClock.adjust("150 seconds")
      const renewed = yield* nonceOf(verifier, client, yield* client.prove(token, { nonce, iat: 150 }))
      expect(renewed.code).toBe("accepted")
      expect(renewed.nonce).toBeDefined()
      expect(renewed.nonce).not.toBe(nonce)
      yield* TestClock.adjust("150 seconds")
      const late = yield* nonceOf(verifier, client, yield* client.prove(token, { nonce, iat: 300 }))
      expect(late.code).toBe("use_dpop_nonce")
    }))

  it.effect("accepts the nonces of instances with the same secret, and no others", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const secret = Redacted.make("x".repeat(32))
      const one = yield* Dpop.make(resource, { nonces: { secret } })
      const two = yield* Dpop.make(resource, { nonces: { secret } })
      const other = yield* Dpop.make(resource, { nonces: {} })
      const { nonce } = yield* nonceOf(one, client, yield* client.prove(token))
      expect((yield* nonceOf(two, client, yield* client.prove(token, { nonce }))).code).toBe("accepted")
      expect((yield* nonceOf(other, client, yield* client.prove(token, { nonce }))).code).toBe("use_dpop_nonce")
      for (const wrong of ["", "x", 1, { a: 1 }, "a".repeat(1_000)]) {
        expect((yield* nonceOf(one, client, yield* client.prove(token, { nonce: wrong }))).code).toBe("use_dpop_nonce")
      }
      expect(() => Effect.runSync(Dpop.make(resource, { nonces: { secret: Redacted.make("short") } }))).toThrow(
        "at least 32"
      )
    }))

  it.effect("does not use up a proof that it refuses for its nonce", () =>
    Effect.gen(function*() {
      const client = yield* makeDpopClient()
      const verifier = yield* Dpop.make(resource, { nonces: {} })
      const { nonce } = yield* nonceOf(verifier, client, yield* client.prove(token, { jti: "a" }))
      expect((yield* nonceOf(verifier, client, yield* client.prove(token, { jti: "a", nonce }))).code).toBe("accepted")
    }))
})

describe("bound tokens", () => {
  const verified = (confirmation: Confirmation | undefined): VerifiedToken => ({
    issuer: "",
    subject: "ada",
    clientId: undefined,
    scopes: [],
    audiences: [],
    expiresAt: undefined,
    confirmation,
    claims: {}
  })
  const problem = (
    confirmation: Confirmation | undefined,
    scheme: "Bearer" | "DPoP",
    certificate?: string,
    requireDpop = false
  ) => bindingProblem(verified(confirmation), { scheme, certificate, requireDpop })?.problem

  it("RFC 9449, 7.2 · rejects a token that is bound to a key as a bearer token", () => {
    expect(problem({ jkt: "a" }, "Bearer")).toBe("Binding")
    expect(problem({ jkt: "a" }, "DPoP")).toBeUndefined()
  })

  it("RFC 9449, 7.1 · rejects a token that is not bound with the scheme DPoP, and with requireDpop", () => {
    expect(problem(undefined, "DPoP")).toBe("Binding")
    expect(problem(undefined, "Bearer", undefined, true)).toBe("Binding")
    expect(problem(undefined, "Bearer")).toBeUndefined()
  })

  it("RFC 8705, 3 · rejects a token that is bound to another certificate, or without one", () => {
    expect(problem({ x5tS256: "a" }, "Bearer", "a")).toBeUndefined()
    expect(problem({ x5tS256: "a" }, "Bearer", "b")).toBe("Binding")
    expect(problem({ x5tS256: "a" }, "Bearer")).toBe("Binding")
    expect(problem({ jkt: "a", x5tS256: "a" }, "DPoP", "b")).toBe("Binding")
  })

  it("rejects a token that is bound by a method that is not supported", () => {
    expect(problem({ unsupported: "jwk" }, "Bearer")).toBe("Binding")
  })
})

describe("ReplayStore.layerMemory", () => {
  const add = (
    store: ReplayStore.ReplayStore["Service"],
    id: string,
    owner: string,
    now: number,
    expiresAt = now + 10
  ) =>
    Effect.match(store.add({ id, owner, now, expiresAt }), {
      onSuccess: (isFirst) => isFirst,
      onFailure: ({ message }) => message
    })

  it.effect("refuses at maxProofs and at a tenth of it for one user, and has room again after their expiry", () =>
    Effect.gen(function*() {
      const store = ReplayStore.makeMemory({ maxProofs: 11 })
      expect(yield* add(store, "a1", "a", 0)).toBe(true)
      expect(yield* add(store, "a2", "a", 0)).toBe(true)
      expect(yield* add(store, "a3", "a", 0)).toContain("a tenth of maxProofs (2)")
      for (const owner of ["b", "c", "d", "e", "f", "g", "h", "i", "j"]) {
        expect(yield* add(store, `${owner}1`, owner, 5)).toBe(true)
      }
      expect(yield* add(store, "b2", "b", 5)).toContain("maxProofs (11)")
      // A replay is still recognized.
      expect(yield* add(store, "a1", "a", 9)).toBe(false)
      expect(yield* add(store, "a3", "a", 10)).toBe(true)
      expect(yield* add(store, "a1", "a", 10)).toBe(true)
    }))
})
