import { assert, describe, it } from "@effect/vitest"
import * as TokenStore from "@skein/auth/TokenStore"
import { TokenStoreError } from "@skein/auth/TokenStoreError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { holdLock, reasonOf, storeTests } from "./conformance.ts"

storeTests(
  "TokenStore.makeMemory",
  (options) => Effect.map(TokenStore.makeMemory(options), (store) => [store, store] as const)
)

it("an error without a reason is StoreUnavailable, with the message and the cause", () => {
  const cause = new Error("no connection")
  const { message, reason } = new TokenStoreError({ message: "cannot read", cause })
  assert.deepEqual([message, reason._tag, reason.cause], ["cannot read", "StoreUnavailable", cause])
})

describe("TokenStore.layerMemory", () => {
  it.effect("waits 30 seconds for a lock by default", () =>
    Effect.gen(function*() {
      const store = yield* TokenStore.TokenStore
      const release = yield* holdLock(store, "a")
      const waiting = yield* Effect.forkChild(reasonOf(store.withLock("a", Effect.void)), { startImmediately: true })
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(waiting), "LockTimeout")
      yield* release
    }).pipe(Effect.provide(TokenStore.layerMemory)))

  it.effect("gives the lock to the fibers in the order in which they asked for it", () =>
    Effect.gen(function*() {
      const store = yield* TokenStore.makeMemory({ lockTimeout: Infinity })
      const release = yield* holdLock(store, "a")
      const order: Array<number> = []
      const waiting = yield* Effect.forEach(
        [1, 2, 3, 4],
        (number) =>
          Effect.forkChild(store.withLock("a", Effect.sync(() => void order.push(number))), { startImmediately: true })
      )
      yield* Fiber.interrupt(waiting[1]!)
      yield* release
      yield* Fiber.joinAll([waiting[0]!, waiting[2]!, waiting[3]!])
      assert.deepEqual(order, [1, 3, 4])
    }))

  it.effect("shares nothing between two layers", () =>
    Effect.gen(function*() {
      const [first, second] = yield* Effect.all([TokenStore.makeMemory(), TokenStore.makeMemory()])
      const release = yield* holdLock(first, "a")
      assert.strictEqual(yield* second.withLock("a", Effect.succeed("free")), "free")
      yield* release
    }))
})
