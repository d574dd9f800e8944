/**
 * After thousands of sessions no resources remain. These tests use the real clock, because they count real fibers,
 * timers, listeners, table entries and heap bytes.
 */
import * as McpError from "@skein/protocol/McpError"
import type * as RequestContext from "@skein/runtime/RequestContext"
import * as Inspect from "@skein/runtime/Inspect"
import type * as Peer from "@skein/runtime/Peer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Bounds, fixedBounds } from "../src/internal/base/fixedBounds.ts"
import { census, pair, settle } from "./kit.ts"

/** A seeded random source (mulberry32), so that a failure can be reproduced. */
const chance = (seed: number) => (): number => {
  seed = (seed + 0x6d2b_79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

/**
 * Counts the timers that have neither fired nor been cleared. The test runner keeps the original functions, so its
 * timers are not counted.
 */
const timers = Effect.acquireRelease(
  Effect.sync(() => {
    const { clearTimeout, setTimeout } = globalThis
    const alive = new Set<unknown>()
    globalThis.setTimeout = ((f: (...args: ReadonlyArray<unknown>) => void, ms?: number, ...args: Array<unknown>) => {
      const timer = setTimeout(() => {
        alive.delete(timer)
        f(...args)
      }, ms)
      alive.add(timer)
      return timer
    }) as typeof setTimeout
    globalThis.clearTimeout = (timer) => {
      alive.delete(timer)
      clearTimeout(timer)
    }
    const restore = () => Object.assign(globalThis, { clearTimeout, setTimeout })
    return { alive, restore }
  }),
  ({ restore }) => Effect.sync(restore)
)

const listeners = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)

const silent = Effect.provide(Logger.layer([]))

const gc = globalThis.gc

const heap = (): number => {
  for (let n = 0; n < 3; n++) gc!()
  return process.memoryUsage().heapUsed
}

const turns = (n: number): Effect.Effect<void> => n === 0 ? Effect.void : Effect.andThen(Effect.yieldNow, turns(n - 1))

/** The method selects the behaviour of the handler, so that requests cover every kind of handler. */
const dispatch: RequestContext.Dispatcher = (exchange) => {
  switch (exchange.method) {
    case "at once":
      return Effect.succeed({})
    case "soon":
      return Effect.as(turns(3), {})
    case "never":
      return Effect.never
    case "sleeps":
      return Effect.as(Effect.sleep("1 hour"), {})
    case "masked":
      return Effect.as(Effect.uninterruptible(turns(5)), {})
    case "cleans up":
      return Effect.ensuring(Effect.never, turns(4))
    case "asks":
      return Effect.match(exchange.request("soon"), { onFailure: () => ({}), onSuccess: (answer) => answer })
    case "asks in vain":
      return Effect.match(exchange.request("never"), { onFailure: () => ({}), onSuccess: (answer) => answer })
    case "progress":
      return Effect.as(
        Effect.forEach([1, 2, 3], (progress) => Effect.andThen(exchange.progress({ progress }), turns(1))),
        {}
      )
    case "fails":
      return Effect.andThen(turns(1), Effect.fail(McpError.invalidParams()))
    case "dies":
      return Effect.andThen(turns(1), Effect.die("broken"))
    default:
      throw new Error("thrown")
  }
}

const methods = [
  "at once",
  "soon",
  "never",
  "sleeps",
  "masked",
  "cleans up",
  "asks",
  "asks in vain",
  "progress",
  "fails",
  "dies",
  "throws"
]

/** One session with calls in both directions, some of them cancelled, which ends while calls are pending. */
const oneSession = (seed: number, after: (peers: readonly [Peer.Peer, Peer.Peer]) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const random = chance(seed)
    const below = (n: number) => Math.floor(random() * n)
    const scope = yield* Scope.make()
    const peers = yield* pair({
      left: dispatch,
      right: dispatch,
      limits: {
        maxInFlightRequests: 1 + below(6),
        timeout: below(2) === 0 ? 0 : "1 minute"
      }
    }).pipe(
      Effect.provideService(Scope.Scope, scope),
      Effect.provideService(Bounds, {
        ...fixedBounds,
        highWaterMark: 1 + below(8),
        maxPendingRequests: 1 + below(8)
      })
    )
    const calls: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let n = below(8); n > 0; n--) {
      const peer = peers[below(2)]!
      const method = methods[below(methods.length)]!
      calls.push(
        yield* Effect.forkChild(
          below(3) === 0 ? peer.notify(`notifications/${method}`) : peer.request(method, {}, { onProgress: () => {} }),
          { startImmediately: true }
        )
      )
      if (below(3) === 0) yield* turns(1 + below(4))
      if (below(3) === 0) calls[below(calls.length)]!.interruptUnsafe()
    }
    if (below(4) === 0) yield* Scope.addFinalizer(peers[0].scope, turns(2))
    if (below(2) === 0) yield* turns(below(10))
    const first = peers[below(2)]!
    const end = below(4)
    if (end === 0) first.close({ _tag: "Expired" })
    if (end === 1) first.close({ _tag: "Refused", message: "no" })
    if (end === 2) yield* Effect.forkChild(first.ended, { startImmediately: true })
    if (below(2) === 0) yield* turns(below(10))
    yield* Scope.close(scope, Exit.void)
    yield* Fiber.awaitAll(calls)
    yield* after(peers)
  })

const many = (count: number, at: number, after: (peers: readonly [Peer.Peer, Peer.Peer]) => Effect.Effect<void>) =>
  Effect.forEach(Array.from({ length: count }, (_, n) => at + n), (seed) => oneSession(seed, after), {
    concurrency: 20,
    discard: true
  })

describe("after 2,500 sessions with random calls, cancellations and disconnects", () => {
  it.live("no fiber, timer, listener or table entry is left, and the heap is back where it was", () =>
    silent(
      Effect.gen(function*() {
        expect(gc, "run with --expose-gc").toBeTypeOf("function")
        const { counts, service } = census()
        const { alive } = yield* timers
        const peers: Array<WeakRef<Peer.Peer>> = []
        const ends: Record<string, number> = {}
        const after = ([left, right]: readonly [Peer.Peer, Peer.Peer]) =>
          Effect.gen(function*() {
            for (const peer of [left, right]) {
              peers.push(new WeakRef(peer))
              const end = yield* peer.ended
              ends[end._tag] = (ends[end._tag] ?? 0) + 1
              const { calls, requests } = yield* Inspect.session(peer)
              expect([calls, requests]).toEqual([[], []])
            }
          })
        const run = (count: number, at: number) =>
          Effect.provideService(many(count, at, after), Metric.FiberRuntimeMetrics, service)
        // Code and values that are compiled or cached once are not a leak.
        yield* run(500, 1_000_000)
        yield* settle
        peers.length = 0
        expect([counts.alive, alive.size]).toEqual([0, 0])
        const before = { listeners: listeners(), heap: heap() }

        yield* run(2_500, 0)
        yield* settle

        expect(counts.started).toBeGreaterThan(25_000)
        expect(counts.alive).toBe(0)
        expect(alive.size).toBe(0)
        expect(listeners()).toBe(before.listeners)
        expect(peers).toHaveLength(5_000)
        for (const tag of ["ClosedByUs", "ClosedByPeer", "Expired", "Refused"]) expect(ends[tag]).toBeGreaterThan(100)
        // No peer is referenced any more. The last ones may still be in a queue of the JavaScript engine, which needs
        // some turns.
        const held = () => peers.reduce((sum, peer) => peer.deref() === undefined ? sum : sum + 1, 0)
        let heapNow = heap()
        for (let turn = 0; turn < 50 && held() > 0; turn++) {
          yield* settle
          heapNow = heap()
        }
        expect(held()).toBe(0)
        // Each weak reference takes about 50 bytes itself.
        expect(heapNow - before.heap).toBeLessThan(750_000)
      })
    ), 60_000)
})

describe("an idle session", () => {
  it.live("adds one timer per call and no fiber, and removes everything at the end", () =>
    Effect.gen(function*() {
      const { counts, service } = census()
      const { alive } = yield* timers
      const scope = yield* Scope.make()
      const [left, right] = yield* pair().pipe(
        Effect.provideService(Scope.Scope, scope),
        Effect.provideService(Metric.FiberRuntimeMetrics, service)
      )
      expect([counts.alive, alive.size]).toEqual([0, 0])
      for (let n = 0; n < 100; n++) yield* left.request("ping")
      expect([counts.alive, alive.size]).toEqual([1, 1])
      yield* right.request("ping")
      expect([counts.alive, alive.size]).toEqual([2, 2])
      yield* Scope.close(scope, Exit.void)
      yield* settle
      expect([counts.alive, alive.size]).toEqual([0, 0])
    }))

  it.effect("stops the timer of its calls five seconds after the first call, regardless of their timeouts", () =>
    Effect.gen(function*() {
      const { counts, service } = census()
      const [left] = yield* Effect.provideService(pair(), Metric.FiberRuntimeMetrics, service)
      yield* left.request("ping")
      yield* TestClock.adjust(4_999)
      expect(counts.alive).toBe(1)
      yield* TestClock.adjust(1)
      expect(counts.alive).toBe(0)
      yield* left.request("ping")
      expect(counts.alive).toBe(1)
    }))
})
