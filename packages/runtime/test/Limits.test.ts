import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Limits from "@skein/runtime/Limits"
import type * as Peer from "@skein/runtime/Peer"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { fixedBounds } from "../src/internal/base/fixedBounds.ts"
import { echo, failureOf, Handlers, logged, pair, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describe("the defaults", () => {
  it("match the documentation", () => {
    expect(Limits.resolve()).toEqual({
      maxInFlightRequests: 1024,
      maxQueuedRequests: 256,
      maxInFlightBytes: 64 * 1024 * 1024,
      timeout: 60_000,
      maxTimeout: 3_600_000,
      shutdownTimeout: 5_000
    })
    expect(fixedBounds).toEqual({
      maxPendingRequests: 1024,
      maxRunningNotifications: 256,
      interruptTimeout: 5_000,
      highWaterMark: 1024
    })
  })

  it("are replaced by options", () => {
    expect(
      Limits.resolve({
        maxInFlightRequests: 1,
        maxQueuedRequests: 0
      })
    ).toMatchObject({
      maxInFlightRequests: 1,
      maxQueuedRequests: 0
    })
    expect(
      Limits.resolve({ timeout: "1 second", maxTimeout: "Infinity", shutdownTimeout: 7 })
    )
      .toMatchObject({ timeout: 1000, maxTimeout: Infinity, shutdownTimeout: 7 })
  })
})

describe("maxInFlightRequests", () => {
  it.effect("receives cancellations, responses and the end while every handler hangs and the queue is full", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ limits: { maxInFlightRequests: 2, maxQueuedRequests: 1 } })
      const call = yield* fork(peer.request("roots/list"))
      for (const id of ["a", "b", "c", "d"]) other.request(id)
      expect(other.answers("d")[0].error.code).toBe(-32603)
      other.answer(1)
      yield* Fiber.join(call)
      other.cancel("a")
      expect([handlers.interrupted, handlers.started]).toEqual([["a"], ["a", "b", "c"]])
      other.end({ _tag: "ClosedByPeer" })
      yield* TestClock.adjust("5 seconds")
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByPeer" })
      expect(handlers.interrupted).toEqual(["a", "b", "c"])
    }))

  it.effect("is 1,024 by default, with 256 queued requests", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      for (let id = 0; id < 1024 + 256; id++) other.request(id)
      expect([handlers.started.length, peer.queued, other.sent.length]).toEqual([1024, 256, 0])
      other.request("next")
      expect([handlers.started.length, peer.queued, other.answers("next").length]).toEqual([1024, 256, 1])
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

  it.effect("cancels queued and running requests", () =>
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
      for (let id = 0; id < 100; id++) other.request(id, "work")
      expect(other.messages.every((json) => json.result !== undefined)).toBe(true)
    }))

  it.effect("refuses further requests with -32603, and continues the others", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({
        limits: { maxInFlightRequests: 2, maxQueuedRequests: 0 }
      })
      other.request(1)
      other.request(2)
      other.request(3)
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        id: 3,
        error: {
          code: -32603,
          message: "Too many requests: at most 2 in flight (maxInFlightRequests) and 0 queued (maxQueuedRequests)"
        }
      }])
      expect(handlers.started).toEqual([1, 2])
      handlers.end(1)
      other.request(4)
      expect(handlers.started).toEqual([1, 2, 4])
    }))

  it.effect("delivers the responses of calls that all handlers make at the bound", () =>
    Effect.gen(function*() {
      const limits = { maxInFlightRequests: 4 }
      const [left] = yield* pair({ limits, right: (exchange) => exchange.request("roots/list") as never })
      const answers = yield* Effect.forEach([1, 2, 3, 4], () => left.request("tools/call"), { concurrency: 4 })
      expect(answers).toHaveLength(4)
    }))

  it.effect("starts queued requests in order, over an in-memory transport", () =>
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

describe("maxInFlightBytes", () => {
  const large = (id: JsonRpc.Id, mib: number) =>
    [JSON.stringify({ jsonrpc: "2.0", id, method: "work" }), mib * 1024 * 1024] as const

  it.effect("refuses a request beyond 64 MiB with -32603, and accepts one when another ends", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      for (let id = 1; id <= 16; id++) other.text(...large(id, 4))
      other.text(...large(17, 1))
      expect(other.answers(17)).toEqual([{
        jsonrpc: "2.0",
        id: 17,
        error: {
          code: -32603,
          message: "Too many requests: more than 67108864 bytes in flight (maxInFlightBytes)"
        }
      }])
      other.cancel(1)
      other.text(...large(18, 4))
      handlers.end(2)
      other.text(...large(19, 4))
      other.text(...large(20, 4))
      expect(other.answers(20)).toHaveLength(1)
      expect(handlers.started).toEqual([...Array.from({ length: 16 }, (_, n) => n + 1), 18, 19])
    }))

  it.effect("counts queued requests, and releases those that are cancelled", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({
        limits: { maxInFlightBytes: 3 * 1024 * 1024, maxInFlightRequests: 1 }
      })
      for (const id of ["a", "b", "c", "d"]) other.text(...large(id, 1))
      expect(other.answers("d")).toHaveLength(1)
      other.cancel("b")
      other.text(...large("e", 1))
      handlers.end("a")
      handlers.end("c")
      handlers.end("e")
      expect(handlers.started).toEqual(["a", "c", "e"])
      other.text(...large("f", 3))
      expect(handlers.started).toEqual(["a", "c", "e", "f"])
    }))

  it.effect("accepts a request that is larger than the bound if no other large one is in flight", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ limits: { maxInFlightBytes: 1024 } })
      for (let id = 1; id <= 10; id++) other.text(JSON.stringify({ jsonrpc: "2.0", id, method: "work" }), 1000)
      other.text(...large("large", 4))
      other.text(...large("second", 4))
      expect(handlers.started).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "large"])
    }))

  it.effect("2025-03-26 · counts a batch once", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({
        revision: "2025-03-26",
        limits: { maxInFlightBytes: 3 * 1024 * 1024 }
      })
      const batch = (...ids: ReadonlyArray<number>) =>
        other.text(JSON.stringify(ids.map((id) => ({ jsonrpc: "2.0", id, method: "work" }))), 2 * 1024 * 1024)
      batch(1, 2)
      batch(3, 4)
      expect(handlers.started).toEqual([1, 2])
      handlers.end(1)
      handlers.end(2)
      batch(5, 6)
      expect(handlers.started).toEqual([1, 2, 5, 6])
    }))
})

describe("a peer that does not read its responses", () => {
  it.effect("is refused further requests with -32603, and its pings are answered", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.isOutputFull = true
      other.request(1)
      other.request(2, "ping")
      expect(other.answers(1)).toEqual([{
        jsonrpc: "2.0",
        id: 1,
        error: {
          code: -32603,
          message: "Too many requests: the responses to earlier requests have not been read (maxUnsentChars)"
        }
      }])
      expect(handlers.started).toEqual([2])
      other.isOutputFull = false
      other.request(3)
      expect(handlers.started).toEqual([2, 3])
    }))
})

describe("a session that replaces another one", () => {
  it.effect("may use the ids of requests that still run, which are answered and can be cancelled", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ limits: { maxInFlightRequests: 4 } })
      for (const id of [1, 2, 3]) other.request(id)
      peer.session = { revision: "2025-06-18", info: undefined, capabilities: {} }
      other.request(1)
      expect([...peer.requests].map(({ id }) => id)).toEqual([1, 2, 3, 1])
      handlers.end(1)
      expect(other.answers(1)).toHaveLength(1)
      other.request(1)
      expect([...peer.requests].map(({ id }) => id)).toEqual([1, 2, 3, 1])
      other.cancel(3)
      handlers.end(2)
      expect([...peer.requests].map(({ id }) => id)).toEqual([1, 1])
      expect(other.answers(2)).toHaveLength(1)
      expect(handlers.interrupted).toEqual([3])
      other.request(2)
      other.request(4)
      other.request(5)
      expect([[...peer.requests].length, peer.queued]).toEqual([4, 1])
      peer.close({ _tag: "ClosedByUs" })
      yield* peer.ended
      expect(handlers.interrupted.toSorted()).toEqual([1, 1, 2, 3, 4])
    }))
})

describe("maxPendingRequests", () => {
  it.effect("fails a call with LimitExceeded at the bound, sends nothing, and accepts a call when one ends", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ bounds: { maxPendingRequests: 2 } })
      yield* fork(peer.request("a"))
      const second = yield* fork(peer.request("b"))
      expect(yield* Effect.flip(peer.request("c"))).toMatchObject({
        _tag: "RequestError",
        reason: { _tag: "LimitExceeded" },
        method: "c",
        message: "2 requests wait for a response already: c was not sent"
      })
      expect(other.requests().map((json) => json.method)).toEqual(["a", "b"])
      yield* Fiber.interrupt(second)
      yield* fork(peer.request("d"))
      expect([...peer.calls].map((call) => call.method)).toEqual(["a", "d"])
    }))

  it.effect("accepts a call when one times out", () =>
    Effect.gen(function*() {
      const { peer } = yield* raw({ bounds: { maxPendingRequests: 1 }, limits: { timeout: 10 } })
      const first = yield* fork(peer.request("a"))
      yield* TestClock.adjust(10)
      expect(poll(first)).toBe("failed")
      const second = yield* fork(peer.request("b"))
      expect(poll(second)).toBe("running")
    }))
})

describe("maxRunningNotifications", () => {
  it.effect("runs the synchronous part of every notification at the bound, and receives requests", () =>
    logged(() =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const { other } = yield* raw({
          dispatch: echo,
          bounds: { maxRunningNotifications: 1 },
          onNotification: (_, { method }) => {
            seen.push(method)
            return method === "notifications/sync" ? undefined : Effect.never
          }
        })
        for (const name of ["a", "b", "sync"]) other.notify(`notifications/${name}`)
        other.request(1, "ping")
        expect(seen).toEqual(["notifications/a", "notifications/b", "notifications/sync"])
        expect(other.answers(1)).toHaveLength(1)
      })
    ))

  it.effect("drops further notifications, and logs the first and their number", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const gate = Deferred.makeUnsafe<void>()
        const seen: Array<string> = []
        const { other } = yield* raw({
          bounds: { maxRunningNotifications: 2 },
          onNotification: (_, { method }) => Effect.andThen(Effect.sync(() => seen.push(method)), Deferred.await(gate))
        })
        for (const name of ["a", "b", "c", "d", "e"]) other.notify(`notifications/${name}`)
        expect(seen).toEqual(["notifications/a", "notifications/b"])
        expect(lines.map((line) => line.text)).toEqual([
          "dropped notifications/c: 2 notifications are being handled already"
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
          bounds: { maxRunningNotifications: 2 },
          onNotification: (peer) =>
            Effect.ignore(Effect.tap(peer.request("roots/list"), () => Effect.sync(() => answered++)))
        })
        peers.right = peer
        other.notify("notifications/roots/list_changed")
        other.notify("notifications/roots/list_changed")
        other.answer(1)
        other.answer(2)
        expect(answered).toBe(2)
      })
    ))

  it.effect("does not count progress and cancellations, which are handled immediately", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({
        bounds: { maxRunningNotifications: 1 },
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
      const { other } = yield* raw({ revision: "2025-03-26", dispatch: echo })
      other.json(Array.from({ length: 101 }, (_, id) => ping(id)))
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        error: { code: -32600, message: "Invalid Request: A batch holds at most 100 messages" }
      }])
      other.json([ping(1), ping(2)])
      expect(other.messages[1]).toHaveLength(2)
    }))

  it.effect("is 100", () =>
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
