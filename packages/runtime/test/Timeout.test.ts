import * as Revision from "@skein/protocol/Revision"
import * as Inspect from "@skein/runtime/Inspect"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import { census, failureOf, logged, pair, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const timedOut = { _tag: "RequestError", reason: { _tag: "Timeout" } }

describe("timeouts", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · SHOULD issue a cancellation notification and stop waiting: after 60 seconds by default`, () =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw({ revision })
        const call = yield* fork(peer.request("tools/call"))
        yield* TestClock.adjust("59999 millis")
        expect(poll(call)).toBe("running")
        expect(other.messages).toHaveLength(1)
        yield* TestClock.adjust("1 millis")
        expect(failureOf(call)).toMatchObject({
          ...timedOut,
          method: "tools/call",
          message: "No response to tools/call within 60000 ms (timeout)"
        })
        expect(other.messages.slice(1)).toEqual([{
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: 1, reason: "No response to tools/call within 60000 ms" }
        }])
        expect([...peer.calls]).toEqual([])
      }))
  }

  it.effect("2025-11-25 · SHOULD allow timeouts per request: a call's own timeout is shorter, or longer, than the peer's", () =>
    Effect.gen(function*() {
      const { peer } = yield* raw({ limits: { timeout: "10 seconds" } })
      const short = yield* fork(peer.request("short", {}, { timeout: "1 second" }))
      const normal = yield* fork(peer.request("normal"))
      const long = yield* fork(peer.request("long", {}, { timeout: "20 seconds" }))
      yield* TestClock.adjust("1 second")
      expect([poll(short), poll(normal), poll(long)]).toEqual(["failed", "running", "running"])
      yield* TestClock.adjust("9 seconds")
      expect([poll(normal), poll(long)]).toEqual(["failed", "running"])
      yield* TestClock.adjust("9999 millis")
      expect(poll(long)).toBe("running")
      yield* TestClock.adjust("1 millis")
      expect(failureOf(long)).toMatchObject({ ...timedOut, message: "No response to long within 20000 ms (timeout)" })
    }))

  it.effect("expires a shorter timeout that starts later on time, and then the longer one", () =>
    Effect.gen(function*() {
      const { peer } = yield* raw()
      const long = yield* fork(peer.request("long", {}, { timeout: 1000 }))
      yield* TestClock.adjust(100)
      const short = yield* fork(peer.request("short", {}, { timeout: 10 }))
      yield* TestClock.adjust(10)
      expect([poll(short), poll(long)]).toEqual(["failed", "running"])
      yield* TestClock.adjust(889)
      expect(poll(long)).toBe("running")
      yield* TestClock.adjust(1)
      expect(poll(long)).toBe("failed")
    }))

  it.effect("a timer of an answered call does not end a later one early", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const first = yield* fork(peer.request("first"))
      other.answer(1)
      yield* Fiber.join(first)
      yield* TestClock.adjust(50)
      const second = yield* fork(peer.request("second"))
      yield* TestClock.adjust(99)
      expect(poll(second)).toBe("running")
      yield* TestClock.adjust(1)
      expect(poll(second)).toBe("failed")
    }))

  it.effect("2025-11-25 · MAY reset the timeout clock on progress: extends the wait of a call with progress", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const call = yield* fork(peer.request("a", {}, { onProgress: () => {} }))
      for (let n = 1; n <= 10; n++) {
        yield* TestClock.adjust(99)
        expect(poll(call)).toBe("running")
        other.progress(1, n)
      }
      yield* TestClock.adjust(99)
      expect(poll(call)).toBe("running")
      yield* TestClock.adjust(1)
      expect(failureOf(call)).toMatchObject(timedOut)
    }))

  it.effect("does not reset the timeout for progress that does not grow, is invalid, or belongs to another call", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const call = yield* fork(peer.request("a", {}, { onProgress: () => {} }))
      const silent = yield* fork(peer.request("b"))
      other.progress(1, 5)
      yield* TestClock.adjust(60)
      for (const [token, value] of [[1, 5], [1, 4], [1, "6"], [1, null], ["01", 7], [2, 1], [9, 9]] as const) {
        other.progress(token, value)
      }
      yield* TestClock.adjust(40)
      expect([poll(call), poll(silent)]).toEqual(["failed", "failed"])
    }))

  it.effect("2025-11-25 · SHOULD always enforce a maximum timeout, regardless of progress: 1 hour by default", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* fork(peer.request("a", {}, { onProgress: () => {} }))
      for (let n = 1; n < 120; n++) {
        yield* TestClock.adjust("30 seconds")
        other.progress(1, n)
      }
      yield* TestClock.adjust("29999 millis")
      expect(poll(call)).toBe("running")
      other.progress(1, 1000)
      yield* TestClock.adjust("1 millis")
      expect(failureOf(call)).toMatchObject({ ...timedOut, message: "No response to a within 3600000 ms (maxTimeout)" })
      expect(other.notices("notifications/cancelled")).toHaveLength(1)
    }))

  it.effect("accepts a maximum for the peer and for the call, which may be shorter than the timeout", () =>
    Effect.gen(function*() {
      const { peer } = yield* raw({ limits: { maxTimeout: 500 } })
      const first = yield* fork(peer.request("a"))
      const second = yield* fork(peer.request("b", {}, { maxTimeout: 200 }))
      yield* TestClock.adjust(200)
      expect([poll(first), poll(second)]).toEqual(["running", "failed"])
      yield* TestClock.adjust(300)
      expect(poll(first)).toBe("failed")
    }))

  it.effect("fails immediately with a timeout of zero, and never with an infinite one", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { maxTimeout: "Infinity" } })
      const none = yield* fork(peer.request("a", {}, { timeout: 0 }))
      expect(failureOf(none)).toMatchObject(timedOut)
      const ever = yield* fork(peer.request("b", {}, { timeout: "Infinity" }))
      yield* TestClock.adjust("3650 days")
      expect(poll(ever)).toBe("running")
      other.answer(2, { late: true })
      expect(yield* Fiber.join(ever)).toEqual({ late: true })
    }))

  it.effect("2025-11-25 · MUST NOT cancel initialize: sends nothing when it times out", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* fork(peer.request("initialize"))
      yield* TestClock.adjust("60 seconds")
      expect(failureOf(call)).toMatchObject(timedOut)
      expect(other.messages).toHaveLength(1)
    }))

  it.effect("settles once if the response arrives in the tick of the timeout", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const answered = yield* fork(peer.request("a"))
      yield* TestClock.adjust(99)
      other.answer(1, { first: true })
      yield* TestClock.adjust(1)
      expect(yield* Fiber.join(answered)).toEqual({ first: true })
      expect(other.notices("notifications/cancelled")).toEqual([])
      const late = yield* fork(peer.request("b"))
      yield* TestClock.adjust(100)
      other.answer(2)
      expect(failureOf(late)).toMatchObject(timedOut)
      expect(other.notices("notifications/cancelled")).toHaveLength(1)
    }))

  it.effect("cancels once if the interruption comes in the tick of the timeout", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const call = yield* fork(peer.request("a"))
      yield* TestClock.adjust(100)
      call.interruptUnsafe()
      yield* settle
      expect(other.notices("notifications/cancelled")).toHaveLength(1)
    }))

  it.effect("times many calls out in one tick, each once; one that an earlier failure ends is interrupted", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const second: { fiber: Fiber.Fiber<unknown, unknown> | undefined } = { fiber: undefined }
      const first = yield* fork(
        Effect.onError(peer.request("a"), () => Effect.sync(() => second.fiber!.interruptUnsafe()))
      )
      second.fiber = yield* fork(peer.request("b"))
      const third = yield* fork(peer.request("c"))
      yield* TestClock.adjust(100)
      expect([poll(first), poll(second.fiber), poll(third)]).toEqual(["failed", "failed", "failed"])
      expect(other.notices("notifications/cancelled").map((json) => json.params.requestId).sort()).toEqual([1, 2, 3])
      expect([...peer.calls]).toEqual([])
    }))

  it.effect("expires a call on time that is made while another one times out", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const again = yield* fork(Effect.catch(peer.request("a"), () => peer.request("again", {}, { timeout: 50 })))
      const long = yield* fork(peer.request("long", {}, { timeout: 1000 }))
      yield* TestClock.adjust(149)
      expect(poll(again)).toBe("running")
      yield* TestClock.adjust(1)
      expect(failureOf(again)).toMatchObject({ ...timedOut, method: "again" })
      yield* TestClock.adjust(849)
      expect(poll(long)).toBe("running")
      yield* TestClock.adjust(1)
      expect(poll(long)).toBe("failed")
      expect(other.notices("notifications/cancelled")).toHaveLength(3)
    }))

  it.effect("ends the other calls when a call that timed out closes the session, and leaves no timer", () =>
    Effect.gen(function*() {
      const { counts, service } = census()
      const { other, peer } = yield* raw({ limits: { timeout: 100 } }).pipe(
        Effect.provideService(Metric.FiberRuntimeMetrics, service)
      )
      const first = yield* fork(
        Effect.onError(peer.request("a"), () => Effect.sync(() => peer.close({ _tag: "Expired" })))
      )
      const second = yield* fork(peer.request("b", {}, { timeout: 200 }))
      yield* TestClock.adjust(100)
      expect(failureOf(first)).toMatchObject(timedOut)
      expect(failureOf(second)).toMatchObject({ reason: { _tag: "Closed", end: { _tag: "Expired" } } })
      yield* peer.ended
      expect(counts.alive).toBe(0)
      yield* TestClock.adjust("1 hour")
      expect(other.notices("notifications/cancelled")).toHaveLength(1)
    }))

  it.effect("interrupts the handler of the peer when a call times out, over an in-memory transport", () =>
    Effect.gen(function*() {
      const [left, right] = yield* pair({ right: () => Effect.never })
      const call = yield* fork(left.request("a", {}, { timeout: "1 second" }))
      yield* settle
      expect([...right.requests]).toHaveLength(1)
      yield* TestClock.adjust("1 second")
      yield* settle
      expect(failureOf(call)).toMatchObject(timedOut)
      expect([...right.requests]).toEqual([])
    }))
})

describe("a wall clock that is set", () => {
  /** Runs a test with the wall clock off by the given number of milliseconds. */
  const set = <A, E, R>(f: (wall: { offset: number }) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const wall = { offset: 0 }
    return Effect.updateService(f(wall), Clock.Clock, (clock) =>
      Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + wall.offset
      }))
  }

  for (const offset of [-3_600_000, 3_600_000]) {
    it.effect(`by ${offset / 1000} seconds changes neither a timeout nor an age`, () =>
      set((wall) =>
        Effect.gen(function*() {
          const { other, peer } = yield* raw({ limits: { timeout: "10 seconds" } })
          const silent = yield* fork(peer.request("silent"))
          const progressing = yield* fork(peer.request("heard", {}, { onProgress: () => {} }))
          other.request("r")
          yield* TestClock.adjust("5 seconds")
          wall.offset = offset
          const later = yield* fork(peer.request("later", {}, { timeout: "1 second" }))
          other.progress(2, 1)
          const tree = yield* Inspect.session(peer)
          expect(tree.requests.map((request) => request.age)).toEqual([5000])
          expect(tree.calls.map((call) => call.age)).toEqual([5000, 5000, 0])
          yield* TestClock.adjust("1 second")
          expect([poll(silent), poll(progressing), poll(later)]).toEqual(["running", "running", "failed"])
          yield* TestClock.adjust("4 seconds")
          expect(failureOf(silent)).toMatchObject({ message: "No response to silent within 10000 ms (timeout)" })
          yield* TestClock.adjust("4999 millis")
          expect(poll(progressing)).toBe("running")
          yield* TestClock.adjust("1 millis")
          expect(failureOf(progressing)).toMatchObject({ message: "No response to heard within 15000 ms (timeout)" })
        })
      ))
  }
})

describe("a handler's own timeout", () => {
  it.effect("ends the handler, whose outcome is the response", () =>
    logged(() =>
      Effect.gen(function*() {
        const { other } = yield* raw({
          dispatch: () =>
            Effect.map(
              Effect.timeoutOption(Effect.never, "1 second"),
              (option) => ({ timedOut: option._tag === "None" })
            )
        })
        other.request(1)
        yield* TestClock.adjust("1 second")
        expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { timedOut: true } }])
      })
    ))
})
