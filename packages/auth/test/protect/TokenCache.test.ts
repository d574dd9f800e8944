/** The cache of verified tokens. */
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { inspect } from "node:util"
import { claimsOf, makeKey, resource, sign } from "./authorizationServer.ts"
import { problemOf, verify } from "./verify.ts"
import { CacheBounds } from "../../src/server/tokens/tokenCache.ts"

/** A verifier of tokens that are their own subject, which counts its calls. */
const counting = (
  options: { readonly expiresAt?: number; readonly wait?: Effect.Effect<void> } = {}
) => {
  const calls: Array<string> = []
  const verifier = TokenVerifier.make({
    issuer: "https://a.example",
    verify: (token, context) =>
      Effect.suspend(() => {
        calls.push(token)
        const own = { audiences: [context.resource], expiresAt: options.expiresAt, subject: token }
        const result = token.startsWith("bad")
          ? Effect.fail(new TokenVerifier.InvalidToken({ message: "no", problem: "Inactive" }))
          : Effect.succeed(own)
        return Effect.andThen(options.wait ?? Effect.void, result)
      })
  })
  return { calls, verifier }
}

const bounded = (verifier: TokenVerifier.TokenVerifier, lower: Partial<CacheBounds>) =>
  Effect.updateService(TokenVerifier.cached(verifier), CacheBounds, (bounds) => ({ ...bounds, ...lower }))

describe("TokenVerifier.cached", () => {
  it.effect("returns a known token without an effect, for 60 seconds", () =>
    Effect.gen(function*() {
      const { calls, verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier)
      expect(cached.known("a", { resource })).toBeUndefined()
      const verified = yield* verify(cached, "a")
      expect(cached.known("a", { resource })).toBe(verified)
      expect(cached.verify("a", { resource })).toBe(verified)
      yield* TestClock.adjust("59999 millis")
      expect(cached.known("a", { resource })).toBe(verified)
      yield* TestClock.adjust("1 millis")
      expect(cached.known("a", { resource })).toBeUndefined()
      yield* verify(cached, "a")
      expect(calls).toEqual(["a", "a"])
    }))

  it.effect("S13 · keeps no token beyond its expiry", () =>
    Effect.gen(function*() {
      const { verifier } = counting({ expiresAt: 10 })
      const cached = yield* TokenVerifier.cached(verifier)
      yield* verify(cached, "a")
      yield* TestClock.adjust("9999 millis")
      expect(cached.known("a", { resource })).toBeDefined()
      yield* TestClock.adjust("1 millis")
      expect(cached.known("a", { resource })).toBeUndefined()
      expect(yield* problemOf(cached, "a")).toBe("Expired")
    }))

  it.effect("2025-06-18 · S6 · knows a token for one resource only", () =>
    Effect.gen(function*() {
      const { calls, verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier)
      yield* verify(cached, "a")
      expect(cached.known("a", { resource: "https://other.example" })).toBeUndefined()
      expect((yield* verify(cached, "a", "https://other.example")).audiences).toEqual(["https://other.example"])
      expect(calls).toHaveLength(2)
    }))

  it.effect("shares one verification among requests with the same token", () =>
    Effect.gen(function*() {
      const release = yield* Deferred.make<void>()
      const { calls, verifier } = counting({ wait: Deferred.await(release) })
      const cached = yield* TokenVerifier.cached(verifier)
      const fibers = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => Effect.forkChild(verify(cached, "a"), { startImmediately: true })
      )
      yield* Fiber.interrupt(fibers[0]!)
      yield* Deferred.succeed(release, undefined)
      for (const fiber of fibers.slice(1)) expect((yield* Fiber.join(fiber)).subject).toBe("a")
      expect(calls).toEqual(["a"])
    }))

  it.effect("stores no failure", () =>
    Effect.gen(function*() {
      const { calls, verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier)
      for (let i = 0; i < 3; i++) expect(yield* problemOf(cached, "bad")).toBe("Inactive")
      expect(calls).toHaveLength(3)
    }))

  it.effect("forgets the oldest tokens at maxTokens", () =>
    Effect.gen(function*() {
      const { verifier } = counting()
      const cached = yield* bounded(verifier, { maxTokens: 3 })
      for (const token of ["a", "b", "c", "d", "bad1", "bad2", "bad3"]) yield* problemOf(cached, token)
      const known = ["a", "b", "c", "d"].filter((token) => cached.known(token, { resource }) !== undefined)
      expect(known).toEqual(["b", "c", "d"])
    }))

  it.effect("forgets the oldest tokens at maxTotalChars", () =>
    Effect.gen(function*() {
      const { verifier } = counting()
      const cached = yield* bounded(verifier, { maxTotalChars: 100 })
      const tokens = ["a", "b", "c"].map((letter) => letter.repeat(40))
      for (const token of tokens) yield* verify(cached, token)
      expect(tokens.map((token) => cached.known(token, { resource }) !== undefined)).toEqual([false, true, true])
    }))

  it.effect("verifies each token each time without trust", () =>
    Effect.gen(function*() {
      const { calls, verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier, { verifiedLifetime: 0 })
      yield* verify(cached, "a")
      yield* verify(cached, "a")
      expect(calls).toHaveLength(2)
    }))

  it.effect("refuses a token that is too long before it hashes it", () =>
    Effect.gen(function*() {
      const { calls, verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier)
      const long = "a".repeat(1024 * 1024)
      const before = process.cpuUsage()
      for (let i = 0; i < 1_000; i++) {
        expect(cached.known(long, { resource })).toBeUndefined()
        expect(yield* problemOf(cached, long)).toBe("TooLong")
      }
      const { system, user } = process.cpuUsage(before)
      // A hash of one takes about a millisecond.
      expect(user + system).toBeLessThan(500_000)
      expect(calls).toEqual([])
    }))

  it.effect("stores the hash of a token, and not the token", () =>
    Effect.gen(function*() {
      const key = yield* makeKey("ES256")
      const token = yield* sign(key, claimsOf("https://a.example"))
      const verifier = TokenVerifier.make({
        issuer: "https://a.example",
        verify: () => Effect.succeed({ audiences: [resource], expiresAt: undefined, subject: "ada" })
      })
      const cached = yield* TokenVerifier.cached(verifier)
      yield* verify(cached, token)
      expect(cached.known(token, { resource })).toBeDefined()
      expect(inspect(cached, { depth: Infinity, showHidden: true })).not.toContain(token.slice(-20))
    }))

  it.effect("verifies where the platform has no synchronous hash", () =>
    Effect.gen(function*() {
      const { getBuiltinModule } = process
      const { calls, verifier } = counting()
      process.getBuiltinModule = undefined as never
      const cached = yield* TokenVerifier.cached(verifier)
      process.getBuiltinModule = getBuiltinModule
      expect((yield* verify(cached, "a")).subject).toBe("a")
      expect((yield* verify(cached, "a")).subject).toBe("a")
      expect(cached.known("a", { resource })).toBeUndefined()
      expect(calls).toEqual(["a"])
    }))

  it.effect("costs less than 30 µs of processor time for a known token", () =>
    Effect.gen(function*() {
      const { verifier } = counting()
      const cached = yield* TokenVerifier.cached(verifier)
      const tokens = Array.from({ length: 100 }, (_, at) => `${at}${"x".repeat(800)}`)
      for (const token of tokens) yield* verify(cached, token)
      const rounds = 20_000
      for (let i = 0; i < rounds; i++) cached.known(tokens[i % 100]!, { resource })
      const before = process.cpuUsage()
      for (let i = 0; i < rounds; i++) cached.known(tokens[i % 100]!, { resource })
      const { system, user } = process.cpuUsage(before)
      // It takes 2 µs; the bound holds on a machine under load.
      expect((user + system) / rounds).toBeLessThan(30)
    }))
})
