/** Runs that several callers share. */
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { SharedEffects } from "../../src/server/tokens/sharedEffects.ts"

const start = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("SharedEffects", () => {
  it.effect("runs once for all callers, and again afterwards", () =>
    Effect.gen(function*() {
      const shared = new SharedEffects<number, never>()
      let runs = 0
      const done = yield* Deferred.make<void>()
      const effect = Effect.suspend(() => {
        runs++
        return Effect.as(Deferred.await(done), runs)
      })
      const fibers = [yield* start(shared.run("a", effect)), yield* start(shared.run("a", effect))]
      yield* Deferred.succeed(done, undefined)
      for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toBe(1)
      expect(shared.size).toBe(0)
      expect(yield* shared.run("a", effect)).toBe(2)
    }))

  it.effect("leaves the run to the others when a caller is interrupted", () =>
    Effect.gen(function*() {
      const shared = new SharedEffects<number, never>()
      const done = yield* Deferred.make<number>()
      const first = yield* start(shared.run("a", Deferred.await(done)))
      const second = yield* start(shared.run("a", Deferred.await(done)))
      yield* Fiber.interrupt(first)
      expect(shared.size).toBe(1)
      yield* Deferred.succeed(done, 1)
      expect(yield* Fiber.join(second)).toBe(1)
    }))

  it.effect("ends the run with its last caller", () =>
    Effect.gen(function*() {
      const shared = new SharedEffects<never, never>()
      const ended = yield* Deferred.make<void>()
      const effect = Effect.onInterrupt(Effect.never, () => Deferred.succeed(ended, undefined))
      const fibers = [yield* start(shared.run("a", effect)), yield* start(shared.run("a", effect))]
      // The run has begun.
      yield* Effect.yieldNow
      for (const fiber of fibers) yield* Fiber.interrupt(fiber)
      yield* Deferred.await(ended)
      expect(shared.size).toBe(0)
    }))

  it.effect("gives a failure and a defect to all callers", () =>
    Effect.gen(function*() {
      const shared = new SharedEffects<never, string>()
      for (const effect of [Effect.fail("no"), Effect.die("no")]) {
        const later = Effect.andThen(Effect.yieldNow, effect)
        const fibers = [yield* start(shared.run("a", later)), yield* start(shared.run("a", later))]
        for (const fiber of fibers) expect((yield* Fiber.await(fiber))._tag).toBe("Failure")
        expect(shared.size).toBe(0)
      }
    }))
})
