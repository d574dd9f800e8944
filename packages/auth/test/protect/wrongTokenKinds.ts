/** Wrong tokens of 20 kinds, with an authorization server, a client and a thief. Times begin at 0. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { bindingProblem } from "../../src/server/authenticate.ts"
import * as Dpop from "../../src/server/dpop.ts"
import {
  type AuthorizationServer,
  type Claims,
  claimsOf,
  type Key,
  makeKey,
  makeServer,
  resource
} from "./authorizationServer.ts"
import { type DpopClient, makeDpopClient } from "./dpopClient.ts"
import { verify } from "./verify.ts"

/** A token as a sender presents it. */
export interface Presented {
  readonly token: string
  readonly proof?: string | undefined
}

export interface Setup {
  readonly server: AuthorizationServer
  readonly verifier: TokenVerifier.TokenVerifier
  readonly dpop: Dpop.DpopVerifier
  readonly client: DpopClient
  readonly thief: DpopClient
  /** Keys with the ids of the keys of the server. */
  readonly strangers: ReadonlyArray<Key>
}

// RSA keys take a tenth of a second each, so all tests share the keys.
const shared = new Map<string, Key>()
const keyOnce = (name: string, alg: string): Effect.Effect<Key> =>
  Effect.suspend(() => {
    const known = shared.get(name + alg)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.tap(makeKey(alg), (made) => Effect.sync(() => shared.set(name + alg, made)))
  })

export const setup = Effect.gen(function*() {
  const server = yield* makeServer
  server.keys = yield* Effect.forEach(["ES256", "RS256", "EdDSA"], (alg) => keyOnce("own", alg))
  const setup: Setup = {
    server,
    verifier: TokenVerifier.jwt({ issuer: server.issuer, algorithms: ["ES256", "RS256", "EdDSA"] }),
    dpop: yield* Dpop.make(resource),
    client: yield* makeDpopClient(),
    thief: yield* makeDpopClient(),
    strangers: yield* Effect.forEach(["ES256", "RS256", "EdDSA"], (alg) => keyOnce("strange", alg))
  }
  return setup
})

/** Whether a resource accepts a token: the token itself, its binding, and the proof. */
export const isAccepted = ({ dpop, verifier }: Setup, { proof, token }: Presented): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const verified = yield* verify(verifier, token)
    const scheme = proof === undefined ? "Bearer" : "DPoP"
    const problem = bindingProblem(verified, { scheme, requireDpop: false, certificate: undefined })
    if (problem !== undefined) return yield* problem
    const jkt = verified.confirmation?.jkt
    if (jkt !== undefined) yield* dpop.verify({ proof, method: "POST", token, jkt, owner: "ada" })
    return true
  }).pipe(
    Effect.catchTag("VerifierUnavailable", (error) => Effect.die(error)),
    Effect.orElseSucceed(() => false)
  )

export const encode = (value: unknown): string => jose.base64url.encode(JSON.stringify(value))
const some = <A>(values: ReadonlyArray<A>, n: number): A => values[n % values.length]!
const key = ({ server }: Setup, n: number): Key => some(server.keys, n)
export const token = (setup: Setup, n: number, claims: Claims = {}, header: Claims = {}, by = key(setup, n)) =>
  setup.server.token({ jti: n, ...claims }, header, by)
const bearer = (token: Effect.Effect<string>): Effect.Effect<Presented> =>
  Effect.map(token, (text) => ({ token: text }))
const bound = (setup: Setup, n: number) => token(setup, n, { cnf: { jkt: setup.client.jkt } })
const withProof = (setup: Setup, n: number, prove: (token: string) => Effect.Effect<string>) =>
  Effect.flatMap(bound(setup, n), (text) => Effect.map(prove(text), (proof): Presented => ({ token: text, proof })))

export const kinds: { readonly [kind: string]: (setup: Setup, n: number) => Effect.Effect<Presented> } = {
  "another issuer": (setup, n) =>
    bearer(token(setup, n, {
      iss: some([`${setup.server.issuer}/`, `${setup.server.issuer}${n}`, "https://other.example", "", null, n, [
        setup.server.issuer
      ]], n)
    })),
  "another audience": (setup, n) =>
    bearer(token(setup, n, {
      aud: some([
        `${resource}/`,
        `${resource}${n}`,
        resource.toUpperCase(),
        "https://tea.example",
        [],
        [""],
        "",
        n,
        null,
        {},
        [[
          resource
        ]]
      ], n)
    })),
  "no audience": (setup, n) => bearer(token(setup, n, { aud: undefined })),
  expired: (setup, n) => bearer(token(setup, n, { exp: -5 - n })),
  "without a usable exp": (setup, n) =>
    bearer(token(setup, n, { exp: some([undefined, null, "3600", true, [3600], {}], n) })),
  "not valid yet": (setup, n) => bearer(token(setup, n, { nbf: 6 + n })),
  none: (setup, n) => {
    const header = { alg: some(["none", "None", "NONE", "nOnE", ""], n), kid: key(setup, n).kid, typ: "at+jwt" }
    const text = `${encode(header)}.${encode(claimsOf(setup.server.issuer, { jti: n }))}.`
    return Effect.succeed({ token: n % 2 === 0 ? text : `${text}${encode(n)}` })
  },
  "HMAC with the public key": (setup, n) => {
    const { kid, publicJwk } = key(setup, n)
    return bearer(Effect.promise(async () => {
      const pem = await jose.exportSPKI(await jose.importJWK(publicJwk) as jose.CryptoKey)
      const secret = some([pem, pem.trim(), JSON.stringify(publicJwk), publicJwk.x ?? publicJwk.n!], n)
      return new jose.SignJWT(claimsOf(setup.server.issuer)).setProtectedHeader({
        alg: some(["HS256", "HS384", "HS512"], n),
        typ: "at+jwt",
        ...(n % 2 === 0 ? { kid: kid! } : {})
      }).sign(new TextEncoder().encode(secret))
    }))
  },
  "an algorithm that is not in the list": (setup, n) =>
    Effect.flatMap(keyOnce("other", some(["ES384", "PS256"], n)), (other) => bearer(token(setup, n, {}, {}, other))),
  "the header of another algorithm": (setup, n) =>
    Effect.map(token(setup, n), (text) => {
      const [header, body, signature] = text.split(".")
      const changed = {
        ...JSON.parse(new TextDecoder().decode(jose.base64url.decode(header!))),
        alg: key(setup, n + 1).alg
      }
      return { token: `${encode(changed)}.${body}.${signature}` }
    }),
  "a key of somebody else": (setup, n) =>
    bearer(token(setup, n, {}, {
      ...(n % 2 === 0 ? { jwk: some(setup.strangers, n).publicJwk } : { jku: `${setup.server.origin}/strangers` })
    }, some(setup.strangers, n))),
  "an unknown key": (setup, n) => bearer(token(setup, n, {}, { kid: `unknown ${n}` })),
  "changed claims": (setup, n) =>
    Effect.map(token(setup, n, { sub: "eve" }), (text) => {
      const [header, , signature] = text.split(".")
      return {
        token: `${header}.${encode(claimsOf(setup.server.issuer, { jti: n, scope: "tea:admin" }))}.${signature}`
      }
    }),
  truncated: (setup, n) => Effect.map(token(setup, n), (text) => ({ token: text.slice(0, -2 - n * 20) })),
  "too long or not a JWT": (setup, n) =>
    Effect.map(token(setup, n), (text) => ({
      token: some([
        `${text}${"A".repeat(1024 * 1024)}`,
        `${text}.`,
        `.${text}`,
        "",
        ".",
        "..",
        text.replaceAll(".", ""),
        `${text}.${text}`
      ], n)
    })),
  "another kind of token": (setup, n) =>
    bearer(some([
      token(setup, n, { at_hash: "x", nonce: "y" }, { typ: "JWT" }),
      token(setup, n, {}, { typ: "logout+jwt" }),
      token(setup, n, { token_use: "id" }, { typ: undefined }),
      token(setup, n, { typ: "Refresh" }, { typ: "JWT" }),
      token(setup, n, { events: {} }, { typ: "JWT" })
    ], n)),
  "bound, as a bearer token": (setup, n) =>
    bearer(token(setup, n, {
      cnf: some([{ jkt: setup.client.jkt }, { "x5t#S256": "a" }, { jwk: setup.client.key.publicJwk }, {}, "x", {
        jkt: 1
      }, []], n)
    })),
  "bound, with the proof of a thief": (setup, n) => withProof(setup, n, setup.thief.prove),
  "bound, with a proof for something else": (setup, n) =>
    withProof(setup, n, (text) =>
      some([
        setup.client.prove("another token"),
        setup.client.prove(text, { htm: "GET" }),
        setup.client.prove(text, { htu: "https://other.example/mcp" }),
        setup.client.prove(text, { iat: -100 - n }),
        setup.client.prove(text, {}, {}, setup.thief.key)
      ], n)),
  "bound, with a proof that was used": (setup, n) =>
    Effect.gen(function*() {
      const presented = yield* withProof(setup, n, setup.client.prove)
      expect(yield* isAccepted(setup, presented)).toBe(true)
      return presented
    })
}
