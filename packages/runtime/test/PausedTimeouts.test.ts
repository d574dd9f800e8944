/** The timeouts of calls while this side handles requests of the peer. */
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { failureOf, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const timedOut = { _tag: "RequestError", reason: { _tag: "Timeout" } }

const open = (
  limits: { readonly timeout?: number; readonly maxTimeout?: number; readonly maxInFlightRequests?: number } = {}
) => raw({ patient: true, limits: { timeout: 100, ...limits } })

describe("pauseTimeoutsWhileHandling", () => {
  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · pauses the timeout of a call while the server waits for input, and restarts it afterwards`, () =>
      Effect.gen(function*() {
        const { handlers, other, peer } = yield* raw({ patient: true, revision, limits: { timeout: 100 } })
        const call = yield* fork(peer.request("tools/call"))
        yield* TestClock.adjust(50)
        other.request("q", "elicitation/create")
        yield* TestClock.adjust(10_000)
        expect(poll(call)).toBe("running")
        expect(other.notices("notifications/cancelled")).toEqual([])
        handlers.end("q")
        yield* TestClock.adjust(99)
        expect(poll(call)).toBe("running")
        yield* TestClock.adjust(1)
        expect(failureOf(call)).toMatchObject({
          ...timedOut,
          message: "No response to tools/call within 10150 ms (timeout)"
        })
        expect(other.notices("notifications/cancelled")).toHaveLength(1)
      }))
  }

  it.effect("lets a call time out by default", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { timeout: 100 } })
      const call = yield* fork(peer.request("tools/call"))
      other.request("q", "elicitation/create")
      yield* TestClock.adjust(100)
      expect(failureOf(call)).toMatchObject(timedOut)
    }))

  it.effect("2025-11-25 · SHOULD always enforce a maximum timeout: pauses a call no longer than its maxTimeout", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* open({ maxTimeout: 1000 })
      const call = yield* fork(peer.request("a"))
      const short = yield* fork(peer.request("b", {}, { maxTimeout: 300 }))
      other.request("q")
      yield* TestClock.adjust(299)
      expect([poll(call), poll(short)]).toEqual(["running", "running"])
      yield* TestClock.adjust(1)
      expect([poll(call), poll(short)]).toEqual(["running", "failed"])
      yield* TestClock.adjust(699)
      expect(poll(call)).toBe("running")
      yield* TestClock.adjust(1)
      expect(failureOf(call)).toMatchObject({ ...timedOut, message: "No response to a within 1000 ms (maxTimeout)" })
    }))

  it.effect("pauses a call no longer than an hour by default", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ patient: true })
      const call = yield* fork(peer.request("a"))
      other.request("q")
      yield* TestClock.adjust("3599999 millis")
      expect(poll(call)).toBe("running")
      yield* TestClock.adjust(1)
      expect(failureOf(call)).toMatchObject(timedOut)
    }))

  it.effect("pauses a call until the last of several input requests is answered", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* open()
      const call = yield* fork(peer.request("a"))
      other.request("1")
      other.request("2")
      yield* TestClock.adjust(150)
      handlers.end("1")
      yield* TestClock.adjust(150)
      expect(poll(call)).toBe("running")
      handlers.end("2")
      yield* TestClock.adjust(99)
      expect(poll(call)).toBe("running")
      yield* TestClock.adjust(1)
      expect(failureOf(call)).toMatchObject(timedOut)
    }))

  it.effect("pauses a call for a queued input request too", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* open({ maxInFlightRequests: 1 })
      const call = yield* fork(peer.request("a"))
      other.request("1")
      other.request("2")
      yield* TestClock.adjust(500)
      handlers.end("1")
      yield* settle
      expect(handlers.started).toEqual(["1", "2"])
      yield* TestClock.adjust(500)
      expect(poll(call)).toBe("running")
      handlers.end("2")
      yield* TestClock.adjust(100)
      expect(poll(call)).toBe("failed")
    }))

  it.effect("stops pausing when the server cancels its input request", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* open()
      const call = yield* fork(peer.request("a"))
      other.request("q")
      yield* TestClock.adjust(500)
      other.cancel("q")
      yield* settle
      expect(handlers.interrupted).toEqual(["q"])
      yield* TestClock.adjust(99)
      expect(poll(call)).toBe("running")
      yield* TestClock.adjust(1)
      expect(poll(call)).toBe("failed")
    }))

  it.effect("pauses a call that is made while an input request is open", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* open()
      other.request("q")
      const call = yield* fork(peer.request("a"))
      const long = yield* fork(peer.request("b", {}, { timeout: 1000 }))
      yield* TestClock.adjust(5000)
      expect([poll(call), poll(long)]).toEqual(["running", "running"])
      handlers.end("q")
      yield* TestClock.adjust(100)
      expect([poll(call), poll(long)]).toEqual(["failed", "running"])
      yield* TestClock.adjust(900)
      expect(poll(long)).toBe("failed")
    }))

  it.effect("settles a paused call with its response, and still counts progress", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* open()
      const seen: Array<number> = []
      const call = yield* fork(peer.request("a", {}, { onProgress: ({ progress }) => void seen.push(progress) }))
      other.request("q")
      yield* TestClock.adjust(500)
      other.progress(1, 1)
      other.answer(1, { ok: true })
      yield* settle
      expect(poll(call)).toBe("succeeded")
      expect(seen).toEqual([1])
    }))

  it.effect("does not restart timeouts for a request that is answered synchronously", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({
        patient: true,
        limits: { timeout: 100 },
        dispatch: () => Effect.succeed({})
      })
      const call = yield* fork(peer.request("a"))
      yield* TestClock.adjust(99)
      other.request("ping", "ping")
      yield* TestClock.adjust(1)
      expect(failureOf(call)).toMatchObject(timedOut)
    }))
})
