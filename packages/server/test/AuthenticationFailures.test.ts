/** The counts of failed authentications. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Failures from "@skein/server/AuthenticationFailures"

const fail = (failures: Failures.Failures, address: string | undefined, times: number): void => {
  for (let i = 0; i < times; i++) failures.add(address)
}

describe("Failures", () => {
  it.effect("refuses an address after 20 failures in 10 seconds, until the window is over", () =>
    Effect.gen(function*() {
      const failures = yield* Failures.make({})
      fail(failures, "192.0.2.1", 19)
      expect(failures.retryAfter("192.0.2.1")).toBeUndefined()
      yield* TestClock.adjust("4500 millis")
      fail(failures, "192.0.2.1", 1)
      expect(failures.retryAfter("192.0.2.1")).toBe(6)
      expect(failures.retryAfter("192.0.2.2")).toBeUndefined()
      yield* TestClock.adjust("5499 millis")
      expect(failures.retryAfter("192.0.2.1")).toBe(1)
      yield* TestClock.adjust("1 millis")
      expect(failures.retryAfter("192.0.2.1")).toBeUndefined()
      fail(failures, "192.0.2.1", 19)
      expect(failures.retryAfter("192.0.2.1")).toBeUndefined()
    }))

  it.effect("counts the proofs for a key by themselves, from each address", () =>
    Effect.gen(function*() {
      const failures = yield* Failures.make({})
      for (let i = 0; i < 20; i++) failures.add("192.0.2.1", "key")
      expect(failures.retryAfter("192.0.2.1", "key")).toBe(10)
      expect(failures.retryAfter("192.0.2.1", "other")).toBeUndefined()
      expect(failures.retryAfter("192.0.2.2", "key")).toBeUndefined()
      expect(failures.retryAfter("192.0.2.1")).toBeUndefined()
    }))

  it.effect("counts an IPv6 address by its first 64 bits", () =>
    Effect.gen(function*() {
      const failures = yield* Failures.make({})
      for (let i = 0; i < 20; i++) failures.add(`2001:db8:0:1::${i}`)
      expect(failures.retryAfter("2001:db8:0:1:ffff::1")).toBe(10)
      expect(failures.retryAfter("2001:db8:0:2::1")).toBeUndefined()
    }))

  it.effect("counts a mapped IPv4 address as IPv4, and no sender without an address", () =>
    Effect.gen(function*() {
      const failures = yield* Failures.make({})
      fail(failures, "::ffff:192.0.2.1", 20)
      expect(failures.retryAfter("192.0.2.1")).toBe(10)
      fail(failures, undefined, 100)
      expect(failures.retryAfter(undefined)).toBeUndefined()
    }))

  it.effect("forgets the oldest address at maxFailureAddresses, and those whose window is over", () =>
    Effect.gen(function*() {
      const failures = yield* Effect.provideService(
        Failures.make({ maxFailures: 1 }),
        Failures.FailureBounds,
        { failureInterval: 1_000, maxFailureAddresses: 2 }
      )
      for (const address of ["a", "b", "c"]) failures.add(address)
      expect(["a", "b", "c"].map((address) => failures.retryAfter(address))).toEqual([undefined, 1, 1])
    }))

  it.effect("counts nothing with maxFailures 0", () =>
    Effect.gen(function*() {
      const failures = yield* Failures.make({ maxFailures: 0 })
      fail(failures, "a", 100)
      expect(failures.retryAfter("a")).toBeUndefined()
    }))
})
