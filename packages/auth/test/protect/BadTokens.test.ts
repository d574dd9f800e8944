/** The cost of bad tokens: anyone can send a flood of them. */
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { claimsOf, makeKey, makeServer, resource, sign } from "./authorizationServer.ts"
import { verify } from "./verify.ts"
import { kinds, setup } from "./wrongTokenKinds.ts"

const issuer = "https://login.example"

const encode = (text: string): string => jose.base64url.encode(text)

/** A token of each kind that is refused without a key. */
const badTokens = Effect.gen(function*() {
  const key = yield* makeKey("ES256")
  const good = yield* sign(key, claimsOf(issuer))
  const [header, , signature] = good.split(".")
  return {
    "another issuer": yield* sign(key, claimsOf("https://evil.example")),
    "another audience": yield* sign(key, claimsOf(issuer, { aud: "https://coffee.example/mcp" })),
    "no audience": yield* sign(key, claimsOf(issuer, { aud: undefined })),
    expired: yield* sign(key, claimsOf(issuer, { exp: -60 })),
    "not valid yet": yield* sign(key, claimsOf(issuer, { nbf: 60 })),
    "another type": yield* sign(key, claimsOf(issuer), { typ: "logout+jwt" }),
    "another algorithm": `${encode("{\"alg\":\"none\"}")}.${good.split(".")[1]}.${signature}`,
    "not a JWT": "tea",
    "claims that are not JSON": `${header}.${encode("tea")}.${signature}`,
    "claims that are a list": `${header}.${encode("[1]")}.${signature}`,
    "claims that are not UTF-8": `${header}.${jose.base64url.encode(Uint8Array.of(0x7b, 0xff, 0x7d))}.${signature}`,
    "a length that base64url does not have": `${header}.eyJhb.${signature}`,
    "letters of base64": `${header}.ey+/.${signature}`,
    "too long": "x".repeat(16_385),
    "much too long": "x".repeat(1_000_000)
  }
})

const requestOf = (token: string, address: string, proof?: string): Http.HttpRequest => {
  const authorization = `${proof === undefined ? "Bearer" : "DPoP"} ${token}`
  const headers: Http.Headers = {
    // One piece of memory, as a header that was received.
    authorization: Buffer.from(authorization).toString(),
    ...(proof === undefined ? {} : { dpop: proof })
  }
  return {
    method: "POST",
    address,
    path: "/mcp",
    header: (name: string) => headers[name]
  } as unknown as Http.HttpRequest
}

const verifiers = (origin: string) => ({
  jwt: TokenVerifier.jwt({ issuer, jwksUri: `${origin}/keys`, algorithms: ["ES256"] }),
  anyOf: TokenVerifier.anyOf(
    TokenVerifier.jwt({ issuer, jwksUri: `${origin}/keys` }),
    TokenVerifier.jwt({ issuer: "https://partner.example", jwksUri: `${origin}/keys` })
  )
})

describe("bad tokens", () => {
  for (const name of ["jwt", "anyOf"] as const) {
    it.effect(`${name} · are refused at once, without a fiber or a request to the issuer`, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        const protection = yield* Protect.make({ resource, verify: verifiers(server.origin)[name] })
        yield* TestClock.adjust("10 seconds")
        for (const [kind, token] of Object.entries(yield* badTokens)) {
          const refusal = protection.identify(requestOf(token, "192.0.2.1"), { addHeaders: () => {} })
          expect([kind, Exit.isExit(refusal)]).toEqual([kind, true])
          const { headers, status } = yield* Effect.flip(refusal as Effect.Effect<never, Http.Refusal>)
          expect([kind, status]).toEqual([kind, 401])
          expect(headers?.["www-authenticate"]).toContain("error=\"invalid_token\"")
        }
        expect(server.requests).toEqual([])
      }))
  }

  it.effect("introspection · refuses JWTs of other issuers and expired ones at once", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = TokenVerifier.introspection({ issuer, endpoint: `${server.origin}/introspect`, clientId: "tea" })
      const protection = yield* Protect.make({ resource, verify: verifier })
      const tokens = yield* badTokens
      yield* TestClock.adjust("10 seconds")
      for (const token of [tokens["another issuer"], tokens.expired, tokens["not valid yet"], tokens["too long"]]) {
        expect(Exit.isExit(protection.identify(requestOf(token, "192.0.2.1"), { addHeaders: () => {} }))).toBe(true)
      }
      expect(server.requests).toEqual([])
    }))

  it.effect("are refused with errors that capture no stack, and have one for logs", () =>
    Effect.gen(function*() {
      const { jwt } = verifiers("http://127.0.0.1:1")
      const error = yield* Effect.flip(verify(jwt, (yield* badTokens)["another audience"]))
      expect(error).toBeInstanceOf(TokenVerifier.InvalidToken)
      expect(error).toBeInstanceOf(Error)
      expect(error.stack).toBe(`InvalidToken: the token was not issued for ${resource}`)
      expect(error).toMatchObject({
        _tag: "InvalidToken",
        problem: "Audience",
        received: "\"https://coffee.example/mcp\""
      })
    }))

  const timeOf = (work: () => Promise<void>): Effect.Effect<number> =>
    Effect.promise(async () => {
      const before = process.cpuUsage()
      await work()
      const { system, user } = process.cpuUsage(before)
      return user + system
    })
  const median = (times: ReadonlyArray<number>): number => times.toSorted((a, b) => a - b)[times.length >> 1]!

  /** Good calls of a tool of a protected server, with a token that it knows. */
  const goodCalls = (protection: Effect.Effect<Http.Protection>, token: string) =>
    Effect.gen(function*() {
      const pour = Tool.layer(Tool.make("pour"), () => Effect.succeed("tea"))
      const { close, handler } = WebHttp.mount(McpServer.layer({ name: "tea", version: "1.0.0" }, pour), { protection })
      yield* Effect.addFinalizer(() => Effect.promise(close))
      const body = JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: "pour",
          arguments: {},
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": {}
          }
        }
      })
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "pour",
        authorization: `Bearer ${token}`
      }
      return async (count: number): Promise<void> => {
        for (let n = 0; n < count; n++) {
          const response = await handler(new Request("http://localhost/mcp", { method: "POST", headers, body }))
          expect(response.status).toBe(200)
          await response.text()
        }
      }
    })

  // Behind `WebHttp` a `Request` and a `Response` cost more than either, so the refusal is measured without them.
  it.live("cost less processor time than good calls", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const now = Math.floor(Date.now() / 1000)
      const verifier = TokenVerifier.jwt({ issuer: server.issuer, jwksUri: `${server.origin}/keys` })
      const protection = Protect.make({ resource, verify: verifier })
      const callAll = yield* goodCalls(protection, yield* server.token({ exp: now + 3600 }))
      const bad = yield* Effect.forEach(Array.from({ length: 200 }), (_, n) => server.token({ exp: now - 60 - n }))
      const { identify } = yield* protection
      const refuseAll = async (): Promise<void> => {
        for (const [n, token] of bad.entries()) {
          const refusal = identify(requestOf(token, `192.0.${n}.1`), { addHeaders: () => {} })
          if (!Exit.isExit(refusal)) throw new Error("the token was not refused at once")
        }
      }
      const all = { good: [] as Array<number>, bad: [] as Array<number> }
      for (let round = 0; round < 11; round++) {
        all.good.push(yield* timeOf(() => callAll(bad.length)))
        all.bad.push(yield* timeOf(refuseAll))
      }
      expect(median(all.bad)).toBeLessThan(median(all.good))
    }))

  it.effect("of all 20 kinds, from one address, cost less processor time than as many good calls", () =>
    Effect.gen(function*() {
      const ready = yield* setup
      const server = yield* makeServer
      const live = TokenVerifier.jwt({ issuer: server.issuer, jwksUri: `${server.origin}/keys` })
      const good = yield* server.token({ exp: Math.floor(Date.now() / 1000) + 3600 })
      const call = yield* goodCalls(Protect.make({ resource, verify: live }), good)
      yield* Effect.promise(() => call(200))
      for (const [kind, make] of Object.entries(kinds)) {
        // The proofs of the last kind are good once.
        const isReplay = kind === "bound, with a proof that was used"
        const tokens = yield* Effect.forEach(Array.from({ length: isReplay ? 1 : 25 }), (_, n) => make(ready, n))
        const requests = tokens.map(({ proof, token }) => requestOf(token, "192.0.2.1", proof))
        const { identify } = yield* Protect.make({ resource, verify: ready.verifier, dpop: "accept" })
        let accepted = 0
        const flood = async (): Promise<void> => {
          for (let n = 0; n < 1_000; n++) {
            const found = identify(requests[n % requests.length]!, { addHeaders: () => {} })
            if (Exit.isExit(found) && Exit.isFailure(found)) continue
            const exit = await Effect.runPromiseExit(found as Effect.Effect<unknown>)
            if (Exit.isSuccess(exit)) accepted++
          }
        }
        // Other work of the process adds to either time.
        let isCheaper = false
        for (let round = 0; round < 5 && !isCheaper; round++) {
          isCheaper = (yield* timeOf(flood)) < (yield* timeOf(() => call(1_000)))
        }
        expect([kind, accepted]).toEqual([kind, isReplay ? 1 : 0])
        expect([kind, isCheaper]).toEqual([kind, true])
      }
    }))
})
