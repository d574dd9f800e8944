import { describe, expect, it } from "@effect/vitest"
import * as Middleware from "@skein/server/Middleware"
import * as RateLimit from "@skein/server/RateLimit"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as TestClock from "effect/testing/TestClock"
import { Bounds, fixedBounds } from "../../src/internal/base/fixedBounds.ts"
import * as limiterStore from "../../src/internal/middleware/rateLimitStore.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const echo = Tool.layer(Tool.make("echo"), () => Effect.succeed("said"))
const other = Tool.layer(Tool.make("other"), () => Effect.succeed("said"))

/** The number of calls that are allowed, of the given number. */
const let_ = (client: kit.Client, count: number, name = "echo") =>
  Effect.map(
    Effect.forEach(Array.from({ length: count }), () => client.request("tools/call", { name })),
    (answers) => answers.filter((answer) => answer.result !== undefined).length
  )

for (const revision of support.eras) {
  describe(`${revision} · rate limit`, () => {
    it.effect("2026-07-28 · Servers MUST rate limit tool invocations: the error contains the time of the next try", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(RateLimit.layer({ limit: 2, interval: "10 seconds" }), echo),
          revision
        )
        expect(yield* let_(client, 2)).toBe(2)
        expect(yield* client.error("tools/call", { name: "echo" })).toEqual({
          code: RateLimit.code,
          message: "Too many requests: at most 2 in 10 s for tools/call echo. Try again in 5 s",
          data: { retryAfterMs: 5000 }
        })
        yield* TestClock.adjust("4999 millis")
        expect((yield* client.error("tools/call", { name: "echo" })).data).toEqual({ retryAfterMs: 1 })
        yield* TestClock.adjust("1 millis")
        expect(yield* let_(client, 3)).toBe(1)
        yield* TestClock.adjust("1 hour")
        expect(yield* let_(client, 3)).toBe(2)
      }))

    it.effect("fixed-window refuses requests until the window is over", () =>
      Effect.gen(function*() {
        const limit = RateLimit.layer({ limit: 3, interval: "9 seconds", algorithm: "fixed-window" })
        const client = yield* kit.client(kit.server(limit, echo), revision)
        expect(yield* let_(client, 5)).toBe(3)
        expect((yield* client.error("tools/call", { name: "echo" })).data).toEqual({ retryAfterMs: 9000 })
        yield* TestClock.adjust("8999 millis")
        expect(yield* let_(client, 1)).toBe(0)
        yield* TestClock.adjust("1 millis")
        expect(yield* let_(client, 5)).toBe(3)
      }))

    it.effect("counts principals and tools separately, and anonymous callers together", () =>
      Effect.gen(function*() {
        const server = yield* support.build(kit.server(RateLimit.layer({ limit: 1 }), echo, other))
        const alice = yield* support.connect(server, revision, support.as("alice"))
        const bob = yield* support.connect(server, revision, support.as("bob"))
        const anonymous = yield* support.connect(server, revision)
        const nobody = yield* support.connect(server, revision)
        const both = (client: kit.Client) => Effect.all([let_(client, 2), let_(client, 2, "other")])
        expect(yield* both(alice)).toEqual([1, 1])
        expect(yield* both(bob)).toEqual([1, 1])
        expect(yield* both(anonymous)).toEqual([1, 1])
        expect(yield* both(nobody)).toEqual([0, 0])
      }))

    it.effect("counts tools/call only by default; \"all\" counts unknown methods under one key", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(RateLimit.layer({ limit: 1 }), echo), revision)
        for (let i = 0; i < 5; i++) yield* client.result("tools/list")
        const all = RateLimit.layer({ limit: 2, methods: "all", key: Middleware.perTarget })
        const strict = yield* kit.client(kit.server(all, echo), revision)
        const codes: Array<number> = []
        for (let i = 0; i < 4; i++) codes.push((yield* strict.error(`no/such${i}`)).code)
        expect(codes).toEqual([-32601, -32601, 429, 429])
        const names: Array<number> = []
        for (let i = 0; i < 4; i++) names.push((yield* strict.error("tools/call", { name: `made up ${i}` })).code)
        expect(names).toEqual([-32602, -32602, 429, 429])
      }))

    it.effect("layerStore counts in a store that servers with the same prefix share", () =>
      Effect.gen(function*() {
        const limiter = Layer.provide(RateLimiter.layer, RateLimiter.layerStoreMemory)
        const context = yield* Layer.build(limiter)
        const server = (prefix?: string) =>
          kit.server(
            RateLimit.layerStore({ limit: 2, ...(prefix === undefined ? undefined : { prefix }) }).pipe(
              Layer.provide(Layer.succeedContext(context))
            ),
            echo
          )
        expect(yield* let_(yield* kit.client(server(), revision), 1)).toBe(1)
        expect(yield* let_(yield* kit.client(server(), revision), 2)).toBe(1)
        expect(yield* let_(yield* kit.client(server("other:"), revision), 3)).toBe(2)
      }))

    it.effect("refuses or allows if the store fails, and logs the cause without sending it to the client", () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const reason = new RateLimiter.RateLimitStoreError({ message: "redis.internal is down" })
          const broken = Layer.succeed(RateLimiter.RateLimiter, {
            [RateLimiter.TypeId]: RateLimiter.TypeId,
            consume: () => Effect.fail(new RateLimiter.RateLimiterError({ reason })),
            adaptiveConsume: () => Effect.die("unused"),
            adaptiveFeedback: () => Effect.die("unused")
          })
          const refuse = RateLimit.layerStore().pipe(Layer.provide(broken))
          const client = yield* kit.client(kit.server(refuse, echo), revision)
          expect(yield* client.error("tools/call", { name: "echo" })).toEqual({
            code: -32603,
            message: "The rate limit cannot be checked. Try again later"
          })
          expect(lines.some((line) => line.includes("redis.internal is down"))).toBe(true)
          const allow = RateLimit.layerStore({ onStoreError: "allow" }).pipe(Layer.provide(broken))
          expect(yield* let_(yield* kit.client(kit.server(allow, echo), revision), 1)).toBe(1)
        })
      ))
  })
}

describe("the memory of a rate limit", () => {
  it.effect("forgets keys that are idle for a window, and stores a bounded number", () =>
    Effect.gen(function*() {
      const memory = new limiterStore.RateLimitMemory(100)
      const store = limiterStore.makeStore(memory)
      const limiter = yield* Effect.provideService(RateLimiter.make, RateLimiter.RateLimiterStore, store)
      const use = (key: string) =>
        Effect.exit(
          limiter.consume({ key, limit: 2, window: "1 minute", algorithm: "token-bucket", onExceeded: "fail" })
        )
      for (let i = 0; i < 1000; i++) yield* use(`key ${i}`)
      expect(memory.size).toBe(100)
      yield* TestClock.adjust("1 minute")
      yield* use("last")
      expect(memory.size).toBe(1)
    }))

  it.effect("allows 60 calls in a minute by default", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(RateLimit.layer(), echo), "2026-07-28")
      expect(yield* let_(client, 70)).toBe(60)
      yield* TestClock.adjust("1 second")
      expect(yield* let_(client, 2)).toBe(1)
    }))

  it.effect("forgets the least recently used key beyond the bound", () =>
    Effect.gen(function*() {
      const server = yield* support.build(
        Layer.provide(
          kit.server(RateLimit.layer({ limit: 1 }), echo),
          Layer.succeed(Bounds, { ...fixedBounds, maxKeys: 2 })
        )
      )
      const clients = yield* Effect.forEach(["a", "b", "c"], (id) =>
        support.connect(server, "2026-07-28", support.as(id)))
      for (const client of clients) {
        expect(yield* let_(client, 2)).toBe(1)
      }
      expect(yield* let_(clients[2]!, 1)).toBe(0)
      expect(yield* let_(clients[0]!, 1)).toBe(1)
    }))
})
