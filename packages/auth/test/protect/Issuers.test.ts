/** Tokens whose `iss` is not the issuer that their authorization server publishes. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeKey, makeServer } from "./authorizationServer.ts"
import { problemOf, verify } from "./verify.ts"

const tenant = "9122040d-6c67-4c5b-b112-36a304b66dad"
const other = "3f1c0f56-6f0c-4a53-8f0e-5a1f0f1f9c11"
const [v2, v1] = ["https://login.example/{tenantid}/v2.0", "https://sts.example/{tenantid}/"]
const of = (template: string, tid: string): string => template.replace("{tenantid}", tid)

describe("tokenIssuers", () => {
  it.effect("accepts the tokens of these issuers only, as text, and says which one a token has", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const { issuer } = server
      const accounts = "accounts.example"
      const both = TokenVerifier.jwt({ issuer, tokenIssuers: [issuer, accounts] })
      const verified = yield* verify(both, yield* server.token({ iss: accounts }))
      expect([verified.issuer, verified.subject]).toEqual([accounts, "ada"])
      expect((yield* verify(both, yield* server.token())).issuer).toBe(issuer)
      for (const iss of [`${accounts}/`, accounts.toUpperCase(), `https://${accounts}`, undefined, [accounts]]) {
        expect([iss, yield* problemOf(both, yield* server.token({ iss }))]).toEqual([iss, "Issuer"])
      }
      const one = TokenVerifier.jwt({ issuer, tokenIssuers: [accounts] })
      expect(yield* problemOf(one, yield* server.token())).toBe("Issuer")
      // The metadata of the resource names the authorization server that clients know.
      expect(one.issuers).toEqual([issuer])
    }))

  it.effect("accepts {tenantid} for the tenants of the list, by the claim tid", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const options = { issuer: server.issuer, jwksUri: `${server.origin}/keys`, tokenIssuers: [v2, v1] }
      const verifier = TokenVerifier.jwt({ ...options, tenants: [tenant] })
      const token = (template: string, iss: string, tid?: unknown) => server.token({ iss: of(template, iss), tid })
      for (const template of [v2, v1]) {
        const good = yield* token(template, tenant, tenant)
        expect((yield* verify(verifier, good)).issuer).toBe(of(template, tenant))
        for (const [iss, tid] of [[other, other], [tenant, other], [other, tenant], [tenant, undefined], [tenant, 7]]) {
          const wrong = yield* token(template, String(iss), tid)
          expect([iss, tid, yield* problemOf(verifier, wrong)]).toEqual([iss, tid, "Issuer"])
        }
        expect(yield* problemOf(verifier, yield* token(template, "{tenantid}", tenant))).toBe("Issuer")
      }
      const any = TokenVerifier.jwt({ ...options, tenants: "any" })
      expect(yield* problemOf(any, yield* token(v2, other, other))).toBeUndefined()
      expect(yield* problemOf(any, yield* token(v2, "a/b", "a/b"))).toBe("Issuer")
      expect(yield* problemOf(any, yield* token(v2, tenant, other))).toBe("Issuer")
    }))

  it.effect("accepts a key for the tokens of its issuer only, where the key set names it", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const own = yield* makeKey("ES256", "own")
      const shared = yield* makeKey("ES256", "shared")
      const plain = yield* makeKey("ES256", "plain")
      const named = (key: typeof own, issuer: string) => ({ ...key, publicJwk: { ...key.publicJwk, issuer } })
      server.keys = [named(own, of(v2, tenant)), named(shared, v2), plain]
      const verifier = TokenVerifier.jwt({
        issuer: server.issuer,
        jwksUri: `${server.origin}/keys`,
        tokenIssuers: [v2, v1],
        tenants: "any"
      })
      const problem = (key: typeof own, template: string, tid: string) =>
        Effect.flatMap(server.token({ iss: of(template, tid), tid }, {}, key), (token) => problemOf(verifier, token))
      for (const template of [v2, v1]) {
        for (const key of [own, shared, plain]) expect(yield* problem(key, template, tenant)).toBeUndefined()
        expect(yield* problem(own, template, other)).toBe("Key")
        expect(yield* problem(shared, template, other)).toBeUndefined()
      }
      // A token without the name of its key could be of any of them.
      for (const kid of [undefined, 7]) {
        const token = yield* server.token({ iss: of(v2, other), tid: other }, { kid }, own)
        expect(yield* problemOf(verifier, token)).toBe("Key")
      }
    }))

  it.effect("leads anyOf to the verifier of a token", () =>
    Effect.gen(function*() {
      const [first, second] = [yield* makeServer, yield* makeServer]
      const verifier = TokenVerifier.anyOf(
        TokenVerifier.jwt({ issuer: first.issuer, tokenIssuers: ["accounts.example"] }),
        TokenVerifier.jwt({
          issuer: second.issuer,
          jwksUri: `${second.origin}/keys`,
          tokenIssuers: [v2],
          tenants: [tenant]
        })
      )
      expect(verifier.issuers).toEqual([first.issuer, second.issuer])
      expect(yield* problemOf(verifier, yield* first.token({ iss: "accounts.example" }))).toBeUndefined()
      const iss = of(v2, tenant)
      expect((yield* verify(verifier, yield* second.token({ iss, tid: tenant }))).issuer).toBe(iss)
      expect(yield* problemOf(verifier, yield* first.token())).toBe("Issuer")
      expect(yield* problemOf(verifier, yield* second.token({ iss: of(v2, other), tid: other }))).toBe("Issuer")
      // The choice by the text of the token proves nothing: the signature does.
      expect(yield* problemOf(verifier, yield* first.token({ iss, tid: tenant }))).not.toBeUndefined()
    }))

  it("throws for options that do not belong together", () => {
    const issuer = "https://login.example"
    const jwksUri = "https://login.example/keys"
    expect(() => TokenVerifier.jwt({ issuer, tokenIssuers: [] })).toThrow("tokenIssuers is empty")
    expect(() => TokenVerifier.jwt({ issuer, tenants: [tenant] })).toThrow("tenants needs {tenantid}")
    expect(() => TokenVerifier.jwt({ issuer, jwksUri, tokenIssuers: [v2] })).toThrow("needs tenants")
    expect(() => TokenVerifier.jwt({ issuer, tokenIssuers: [v2], tenants: "any" })).toThrow("needs jwksUri")
    const one = TokenVerifier.jwt({ issuer, tokenIssuers: ["accounts.example"] })
    const two = TokenVerifier.jwt({ issuer: "https://two.example", tokenIssuers: ["accounts.example"] })
    expect(() => TokenVerifier.anyOf(one, two)).toThrow("two verifiers have the issuer accounts.example")
  })
})
