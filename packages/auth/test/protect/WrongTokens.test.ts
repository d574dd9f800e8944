/** Wrong tokens of 20 kinds, 25 of each: all of them are refused, and the right ones among them are accepted. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as jose from "jose"
import { claimsOf, makeServer, sign } from "./authorizationServer.ts"
import { problemOf } from "./verify.ts"
import { encode, isAccepted, kinds, setup, token } from "./wrongTokenKinds.ts"

const perKind = 25

describe("wrong tokens", () => {
  it("are of 20 kinds, 500 in all", () => {
    expect(Object.keys(kinds)).toHaveLength(20)
    expect(Object.keys(kinds).length * perKind).toBe(500)
  })

  for (const [kind, make] of Object.entries(kinds)) {
    it.effect(`S5, S6 · rejects ${perKind} tokens: ${kind}`, () =>
      Effect.gen(function*() {
        const ready = yield* setup
        for (let n = 0; n < perKind; n++) {
          const presented = yield* make(ready, n)
          expect([n, yield* isAccepted(ready, presented)]).toEqual([n, false])
          // The verifier still accepts the right ones.
          expect(yield* isAccepted(ready, { token: yield* token(ready, n) })).toBe(true)
        }
        expect(ready.server.count("/strangers")).toBe(0)
      }))
  }

  it.effect("cost less processor time than a verification, where no key is needed", () =>
    Effect.gen(function*() {
      const ready = yield* setup
      /** The least of several measurements, because the collector of garbage runs in some of them. */
      const cpu = Effect.fnUntraced(function*(text: string) {
        const times: Array<number> = []
        for (let round = 0; round < 6; round++) {
          const before = process.cpuUsage()
          for (let i = 0; i < 100; i++) yield* problemOf(ready.verifier, text)
          const { system, user } = process.cpuUsage(before)
          times.push(user + system)
        }
        return Math.min(...times)
      })
      const full = yield* cpu(yield* token(ready, 0))
      for (const claims of [{ iss: "https://other.example" }, { aud: "x" }, { exp: -6 }]) {
        expect(yield* cpu(yield* token(ready, 0, claims))).toBeLessThan(full)
      }
    }))
})

describe("any token", () => {
  const bytes = (text: string): string | undefined => {
    try {
      return text.split(".").map((part) => jose.base64url.decode(part).join()).join(".")
    } catch {
      return undefined
    }
  }
  const Change = Schema.Struct({
    at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })),
    character: Schema.Literals([..."AZaz09-_.=+/ \n\u00e9"]),
    by: Schema.Literals(["replace", "insert", "remove"])
  })

  it.effect.prop(
    "is refused after a change of any character that changes its bytes",
    [Schema.Array(Change)],
    ([changes]) =>
      Effect.gen(function*() {
        const { server, verifier } = yield* one
        const good = yield* server.token()
        for (const { at, by, character } of changes) {
          const place = at % good.length
          const end = by === "insert" ? place : place + 1
          const text = good.slice(0, place) + (by === "remove" ? "" : character) + good.slice(end)
          if ((yield* problemOf(verifier, text)) === undefined) expect(bytes(text)).toBe(bytes(good))
        }
      })
  )

  it.effect.prop("fails with a typed error if it is any text", [Schema.String], ([text]) =>
    Effect.gen(function*() {
      const { server, verifier } = yield* one
      expect(yield* problemOf(verifier, text)).toBeDefined()
      const part = jose.base64url.encode(text)
      const iss = jose.base64url.encode(JSON.stringify(claimsOf(server.issuer)))
      for (const forged of [`${part}.${part}.${part}`, `${part}.${iss}.`, `${encode({ alg: text })}.${iss}.${part}`]) {
        expect(yield* problemOf(verifier, forged)).toBeDefined()
      }
    }))

  it.effect.prop(
    "fails with a typed error if its claims are any JSON",
    [Schema.Record(Schema.String, Schema.Json)],
    ([claims]) =>
      Effect.gen(function*() {
        const { server, verifier } = yield* one
        const wrong = yield* sign(server.keys[0]!, { ...claims, iss: "https://other.example" })
        expect(yield* problemOf(verifier, wrong)).toBe("Issuer")
        const right = yield* sign(
          server.keys[0]!,
          { ...claims, ...claimsOf(server.issuer), cnf: claims["cnf"] } as never
        )
        const problem = yield* problemOf(verifier, right)
        expect([undefined, "Type", "NotYetValid", "Malformed"]).toContain(problem)
      })
  )

  const one = Effect.map(makeServer, (server) => ({
    server,
    verifier: TokenVerifier.jwt({ issuer: server.issuer, jwksUri: `${server.origin}/keys` })
  }))
})
