import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Limits from "@skein/runtime/Limits"
import type * as Peer from "@skein/runtime/Peer"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { echo, failureOf, Handlers, logged, pair, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describe("the defaults", () => {
  it("match the documentation", () => {
    expect(Limits.resolve()).toEqual({
      maxInFlightRequests: 1024,
      maxQueuedRequests: 256,
      maxPendingRequests: 1024,
      maxRunningNotifications: 256,
      maxBatchMessages: 100,
      timeout: 60_000,
      maxTimeout: 3_600_000,
      drainTimeout: 5_000,
      interruptTimeout: 5_000
    })
  })

  it("are replaced by options", () => {
    expect(
      Limits.resolve({
        maxInFlightRequests: 1,
        maxQueuedRequests: 0,
        maxPendingRequests: 2,
        maxRunningNotifications: 3,
        maxBatchMessages: 4
      })
    ).toMatchObject({
      maxInFlightRequests: 1,
      maxQueuedRequests: 0,
      maxPendingRequests: 2,
      maxRunningNotifications: 3,
      maxBatchMessages: 4
    })
    expect(
      Limits.resolve({ timeout: "1 second", maxTimeout: "1 minute", drainTimeout: 7, interruptTimeout: "Infinity" })
    )
      .toMatchObject({ timeout: 1000, maxTimeout: 60_000, drainTimeout: 7, interruptTimeout: Infinity })
  })
})

describe("maxInFlightRequests", () => {
  it.effect("pauses the reader without a queue, and resumes it when a request ends", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ limits: { maxInFlightRequests: 2, maxQueuedRequests: 0 } })
      other.request(1)
      expect(other.paused).toBe(false)
      other.request(2)
      expect(other.paused).toBe(true)
      handlers.end(1)
      expect(other.paused).toBe(false)
      other.request(3)
      expect(other.paused).toBe(true)
      other.cancel(2)
      expect(other.paused).toBe(false)
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { done: 1 } }])
      expect(other.pauses).toBe(2)
    }))

  it.effect("is 1,024 by default, with 256 queued requests", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      for (let id = 0; id < 1024 + 255; id++) other.request(id)
      expect([handlers.started.length, peer.queued, other.paused]).toEqual([1024, 255, false])
      other.request("last")
      expect([handlers.started.length, peer.queued, other.paused]).toEqual([1024, 256, true])
    }))

  it.effect("handles requests one by one, in order, with 1", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ limits: { maxInFlightRequests: 1 } })
      for (const id of [1, 2, 3]) other.request(id)
      expect(handlers.started).toEqual([1])
      handlers.end(1)
      expect(handlers.started).toEqual([1, 2])
      handlers.end(2)
      handlers.end(3)
      expect(other.messages.map((json) => json.id)).toEqual([1, 2, 3])
    }))

  it.effect("cancels queued and running requests while the reader is not paused", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ limits: { maxInFlightRequests: 1 } })
      for (const id of [1, 2, 3]) other.request(id)
      other.cancel(2)
      expect(peer.queued).toBe(1)
      other.cancel(1)
      expect([handlers.started, handlers.interrupted]).toEqual([[1, 3], [1]])
      handlers.end(3)
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 3, result: { done: 3 } }])
    }))

  it.effect("2025-11-25 · the receiver MUST respond promptly: answers a ping at the bound", () =>
    Effect.gen(function*() {
      const handlers = new Handlers()
      const { other } = yield* raw({
        canPause: false,
        dispatch: (exchange) => exchange.method === "ping" ? Effect.succeed({}) : handlers.parked(exchange),
        limits: { maxInFlightRequests: 1, maxQueuedRequests: 1 }
      })
      for (const id of [1, 2, 3]) {
        other.request(id)
        other.request(`ping ${id}`, "ping")
        expect(other.answers(`ping ${id}`)).toEqual([{ jsonrpc: "2.0", id: `ping ${id}`, result: {} }])
      }
      expect(handlers.started).toEqual([1])
      expect(other.answers(3)[0].error.code).toBe(-32603)
    }))

  it.effect("does not cancel a queued initialize", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ limits: { maxInFlightRequests: 1 } })
      other.request(1)
      other.request(2, "initialize")
      other.cancel(2)
      handlers.end(1)
      expect(handlers.started).toEqual([1, 2])
    }))

  it.effect("refuses the id of a queued request with -32600, and continues the first request", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ limits: { maxInFlightRequests: 1 } })
      for (const id of [1, 2, 2]) other.request(id)
      expect(other.answers(2)[0].error.code).toBe(-32600)
      handlers.end(1)
      handlers.end(2)
      expect(other.answers(2)).toHaveLength(2)
    }))

  it.effect("handles queued requests after the peer has ended, and discards them when the session is closed", () =>
    Effect.gen(function*() {
      for (const _tag of ["ClosedByPeer", "ClosedByUs"] as const) {
        const { handlers, other, peer } = yield* raw({ limits: { maxInFlightRequests: 1 } })
        for (const id of [1, 2, 3]) other.request(id)
        if (_tag === "ClosedByPeer") other.end({ _tag })
        else peer.close({ _tag })
        yield* settle
        for (const id of _tag === "ClosedByPeer" ? [1, 2, 3] : []) handlers.end(id)
        expect((yield* peer.ended)._tag).toBe(_tag)
        expect(handlers.started).toEqual(_tag === "ClosedByPeer" ? [1, 2, 3] : [1])
        expect(other.messages).toHaveLength(_tag === "ClosedByPeer" ? 3 : 0)
        expect(peer.queued).toBe(0)
      }
    }))

  it.effect("does not count requests that do not suspend", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ dispatch: echo, limits: { maxInFlightRequests: 1 } })
      for (let id = 0; id < 100; id++) other.request(id, "ping")
      expect(other.pauses).toBe(0)
      expect(other.messages.every((json) => json.result !== undefined)).toBe(true)
    }))

  it.effect("refuses further requests with -32603 on a transport that cannot pause, and continues the others", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({
        canPause: false,
        limits: { maxInFlightRequests: 2, maxQueuedRequests: 0 }
      })
      other.request(1)
      other.request(2)
      other.request(3)
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        id: 3,
        error: { code: -32603, message: "Too many requests: at most 2 in flight and 0 queued" }
      }])
      expect(handlers.started).toEqual([1, 2])
      handlers.end(1)
      other.request(4)
      expect(handlers.started).toEqual([1, 2, 4])
    }))

  it.effect("keeps reading while a call waits, refuses further requests, and pauses after the response", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { maxInFlightRequests: 1, maxQueuedRequests: 0 } })
      const call = yield* fork(peer.request("roots/list"))
      other.request("a")
      expect(other.paused).toBe(false)
      other.request("b")
      expect(other.answers("b")[0].error.code).toBe(-32603)
      other.answer(1)
      yield* Fiber.join(call)
      expect(other.paused).toBe(true)
      yield* fork(peer.request("roots/list"))
      expect(other.paused).toBe(false)
      other.cancel("a")
      other.answer(2)
      expect(other.paused).toBe(false)
    }))

  it.effect("delivers the responses of calls that all handlers make at the bound", () =>
    Effect.gen(function*() {
      const limits = { maxInFlightRequests: 4 }
      const [left] = yield* pair({ limits, right: (exchange) => exchange.request("roots/list") as never })
      const answers = yield* Effect.forEach([1, 2, 3, 4], () => left.request("tools/call"), { concurrency: 4 })
      expect(answers).toHaveLength(4)
    }))

  it.effect("loses no message while the reader is paused, over an in-memory transport", () =>
    Effect.gen(function*() {
      const handlers = new Handlers()
      const [left, right] = yield* pair({ limits: { maxInFlightRequests: 3 }, right: handlers.parked })
      const calls = yield* Effect.forEach(Array.from({ length: 10 }), () => fork(left.request("a")))
      yield* settle
      expect([...right.requests]).toHaveLength(3)
      for (let id = 1; id <= 10; id++) {
        handlers.end(id)
        yield* settle
        expect([...right.requests].length).toBeLessThanOrEqual(3)
      }
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual(Array.from({ length: 10 }, (_, n) => ({ done: n + 1 })))
    }))
})

describe("maxPendingRequests", () => {
  it.effect("fails a call with LimitExceeded at the bound, sends nothing, and accepts a call when one ends", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { maxPendingRequests: 2 } })
      yield* fork(peer.request("a"))
      const second = yield* fork(peer.request("b"))
      expect(yield* Effect.flip(peer.request("c"))).toMatchObject({
        _tag: "RequestError",
        reason: { _tag: "LimitExceeded" },
        method: "c",
        message: "2 requests wait for a response already (maxPendingRequests): c was not sent"
      })
      expect(other.requests().map((json) => json.method)).toEqual(["a", "b"])
      yield* Fiber.interrupt(second)
      yield* fork(peer.request("d"))
      expect([...peer.calls].map((call) => call.method)).toEqual(["a", "d"])
    }))

  it.effect("accepts a call when one times out", () =>
    Effect.gen(function*() {
      const { peer } = yield* raw({ limits: { maxPendingRequests: 1, timeout: 10 } })
      const first = yield* fork(peer.request("a"))
      yield* TestClock.adjust(10)
      expect(poll(first)).toBe("failed")
      const second = yield* fork(peer.request("b"))
      expect(poll(second)).toBe("running")
    }))
})

describe("maxRunningNotifications", () => {
  it.effect("pauses the reader at the bound, and resumes it when a handler ends", () =>
    Effect.gen(function*() {
      const gate = Deferred.makeUnsafe<void>()
      const { other } = yield* raw({
        limits: { maxRunningNotifications: 2 },
        onNotification: () => Deferred.await(gate)
      })
      other.notify("notifications/a")
      expect(other.paused).toBe(false)
      other.notify("notifications/b")
      expect(other.paused).toBe(true)
      Deferred.doneUnsafe(gate, Effect.void)
      expect(other.paused).toBe(false)
    }))

  it.effect("drops further notifications on a transport that cannot pause, and logs the first and their number", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const gate = Deferred.makeUnsafe<void>()
        const seen: Array<string> = []
        const { other } = yield* raw({
          canPause: false,
          limits: { maxRunningNotifications: 2 },
          onNotification: (_, { method }) => Effect.andThen(Effect.sync(() => seen.push(method)), Deferred.await(gate))
        })
        for (const name of ["a", "b", "c", "d", "e"]) other.notify(`notifications/${name}`)
        expect(seen).toEqual(["notifications/a", "notifications/b"])
        expect(lines.map((line) => line.text)).toEqual([
          "dropped notifications/c: 2 notifications are being handled (maxRunningNotifications)"
        ])
        Deferred.doneUnsafe(gate, Effect.void)
        expect(lines.slice(1).map((line) => line.text)).toEqual(["dropped 3 notifications"])
        other.notify("notifications/f")
        expect(seen).toEqual(["notifications/a", "notifications/b", "notifications/f"])
        expect(lines.every((line) => line.level === "Warn")).toBe(true)
        expect(lines).toHaveLength(2)
      })
    ))

  it.effect("delivers the responses of calls that notification handlers make at the bound", () =>
    logged(() =>
      Effect.gen(function*() {
        let answered = 0
        const peers: { right?: Peer.Peer } = {}
        const { other, peer } = yield* raw({
          limits: { maxRunningNotifications: 2 },
          onNotification: (peer) =>
            Effect.ignore(Effect.tap(peer.request("roots/list"), () => Effect.sync(() => answered++)))
        })
        peers.right = peer
        other.notify("notifications/roots/list_changed")
        other.notify("notifications/roots/list_changed")
        expect(other.paused).toBe(false)
        other.answer(1)
        other.answer(2)
        expect(answered).toBe(2)
        expect(other.paused).toBe(false)
      })
    ))

  it.effect("does not count progress and cancellations, which are handled immediately", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({
        canPause: false,
        limits: { maxRunningNotifications: 1 },
        onNotification: () => Effect.never
      })
      other.notify("notifications/a")
      const seen: Array<number> = []
      yield* fork(peer.request("a", {}, { onProgress: ({ progress }) => seen.push(progress) }))
      other.request(1)
      other.progress(1, 1)
      other.cancel(1)
      expect(seen).toEqual([1])
      expect(handlers.interrupted).toEqual([1])
    }))
})

describe("maxBatchMessages", () => {
  const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" })

  it.effect("refuses a longer batch with -32600, and runs none of its requests", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ revision: "2025-03-26", dispatch: echo, limits: { maxBatchMessages: 2 } })
      other.json([ping(1), ping(2), ping(3)])
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        error: { code: -32600, message: "Invalid Request: A batch holds at most 2 messages" }
      }])
      other.json([ping(1), ping(2)])
      expect(other.messages[1]).toHaveLength(2)
    }))

  it.effect("is 100 by default", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ revision: "2025-03-26", dispatch: echo })
      other.json(Array.from({ length: 100 }, (_, id) => ping(id)))
      other.json(Array.from({ length: 101 }, (_, id) => ping(id)))
      expect(other.messages.map((json) => Array.isArray(json) ? json.length : json.error.code)).toEqual([100, -32600])
    }))
})

describe("a refused request", () => {
  it.effect("releases any number of refused requests", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({
        canPause: false,
        limits: { maxInFlightRequests: 1, maxQueuedRequests: 0 }
      })
      other.request("first")
      for (let id = 0; id < 10_000; id++) other.request(id)
      expect([...peer.requests]).toHaveLength(1)
      expect(other.messages).toHaveLength(10_000)
      expect(new Set(other.messages.map((json) => json.error.code))).toEqual(new Set([-32603]))
      handlers.end("first")
      expect(failureOf(yield* fork(Effect.fail("x")))).toBe("x")
      expect(other.answers("first")).toEqual([JSON.parse(JsonRpc.encode(JsonRpc.success("first", { done: "first" })))])
    }))
})
