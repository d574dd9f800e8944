import * as Inspect from "@skein/runtime/Inspect"
import { describe, expect, it } from "@effect/vitest"
import type { Exchange } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { echo, logged, raw } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** The members of a request that nothing sets in these tests. */
const of = (requests: Iterable<Exchange>, at: number) => ({
  key: Inspect.keyOf([...requests][at]!),
  principal: undefined,
  client: undefined,
  traceId: undefined,
  span: undefined,
  streaming: false
})

describe("Inspect", () => {
  it.effect("returns a server, its sessions, and the method, age and progress of their requests", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 day")
      const first = yield* raw({ revision: "2025-06-18" })
      const second = yield* raw({ revision: "2026-07-28" })
      first.other.request(1, "tools/call", { name: "dig", _meta: { progressToken: "p" } })
      yield* TestClock.adjust(1500)
      first.other.request("r", "resources/read", { uri: "file:///a" })
      second.other.request(1, "subscriptions/listen", { notifications: {} })
      yield* fork(first.peer.request("roots/list"))
      yield* first.handlers.exchanges.get(1)!.progress({ progress: 2, total: 8, message: "digging" })
      yield* TestClock.adjust(500)
      const tally = { requests: 7, failures: 0, last: [] }
      const tree = yield* Inspect.server({ name: "garden", version: "1.2.3", peers: [first.peer, second.peer], tally })
      expect(tree).toEqual({
        name: "garden",
        version: "1.2.3",
        now: 86_402_000,
        requests: [],
        streams: 0,
        tally,
        tasks: [],
        sessions: [
          {
            key: Inspect.keyOf(first.peer),
            principal: undefined,
            connection: undefined,
            revision: "2025-06-18",
            info: { name: "kit", version: "1" },
            requests: [
              {
                id: 1,
                method: "tools/call",
                target: "dig",
                revision: "2025-06-18",
                age: 2000,
                startedAt: 86_400_000,
                ...of(first.peer.requests, 0),
                progress: { progress: 2, total: 8, message: "digging" },
                cancelled: false
              },
              {
                id: "r",
                method: "resources/read",
                target: "file:///a",
                revision: "2025-06-18",
                age: 500,
                startedAt: 86_401_500,
                ...of(first.peer.requests, 1),
                progress: undefined,
                cancelled: false
              }
            ],
            queued: 0,
            queuedRequests: [],
            calls: [{ id: 1, method: "roots/list", age: 500, startedAt: 86_401_500, about: undefined }],
            subscriptions: []
          },
          {
            key: Inspect.keyOf(second.peer),
            principal: undefined,
            connection: undefined,
            revision: undefined,
            info: undefined,
            requests: [{
              id: 1,
              method: "subscriptions/listen",
              target: undefined,
              revision: "2026-07-28",
              age: 500,
              startedAt: 86_401_500,
              ...of(second.peer.requests, 0),
              progress: undefined,
              cancelled: false
            }],
            queued: 0,
            queuedRequests: [],
            calls: [],
            subscriptions: []
          }
        ]
      })
      expect(JSON.parse(JSON.stringify(tree)).sessions[0].requests[0].progress.total).toBe(8)
    }))

  it.effect("returns the number of queued requests", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ limits: { maxInFlightRequests: 1 } })
      for (const id of [1, 2, 3]) other.request(id)
      expect(yield* Inspect.session(peer)).toMatchObject({
        requests: [{ id: 1 }],
        queued: 2,
        queuedRequests: [{ id: 2, method: "work" }, { id: 3 }]
      })
    }))

  it.effect("returns the trace of the span that a handler is in, or else that of the client", () =>
    Effect.gen(function*() {
      const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
      const _meta = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
      const { other, peer } = yield* raw()
      other.request(1, "tools/call", { name: "dig", _meta })
      const inSpan = yield* raw({ dispatch: () => Effect.withSpan(Effect.never, "dig deeper") })
      inSpan.other.request(1, "tools/call", { name: "dig", _meta })
      expect((yield* Inspect.session(peer)).requests[0]).toMatchObject({ traceId, span: undefined })
      const [request] = (yield* Inspect.session(inSpan.peer)).requests
      expect(request).toMatchObject({ traceId: expect.stringMatching(/^\w{32}$/), span: "dig deeper" })
      expect(request!.traceId).not.toBe(traceId)
    }))

  it.effect("returns the request that a call of this side belongs to, and params only if asked", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ revision: "2025-11-25" })
      other.request(7, "tools/call", { name: "dig" })
      yield* fork(handlers.exchanges.get(7)!.request("roots/list"))
      expect((yield* Inspect.session(peer)).calls).toMatchObject([{ method: "roots/list", about: 7 }])
      expect((yield* Inspect.session(peer)).requests[0]).not.toHaveProperty("params")
      expect((yield* Inspect.session(peer, { params: true })).requests[0]!.params).toEqual({ name: "dig" })
    }))

  it.effect("returns the same keys in each snapshot, and another one for each request", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      for (const id of [1, 2]) other.request(id)
      const keys = ({ key, requests }: Inspect.SessionInfo) => [key, ...requests.map(({ key }) => key)]
      const all = keys(yield* Inspect.session(peer))
      expect(new Set(all).size).toBe(3)
      expect(keys(yield* Inspect.session(peer))).toEqual(all)
    }))

  it.effect("returns progress without a progress token, which is not sent", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      other.request(1)
      yield* handlers.exchanges.get(1)!.progress({ progress: 3 })
      expect((yield* Inspect.session(peer)).requests[0]!.progress).toEqual({ progress: 3 })
      expect(other.messages).toEqual([])
    }))

  it.effect("returns a cancelled request until its handler has ended", () =>
    logged(() =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw({ dispatch: () => Effect.uninterruptible(Effect.sleep(100)) as never })
        other.request(1)
        other.cancel(1)
        expect((yield* Inspect.session(peer)).requests.map(({ id, cancelled }) => ({ id, cancelled }))).toEqual([
          { id: 1, cancelled: true }
        ])
        yield* TestClock.adjust(100)
        expect((yield* Inspect.session(peer)).requests).toEqual([])
      })
    ))

  it.effect("returns a snapshot that does not change later", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      other.request(1)
      const before = yield* Inspect.session(peer)
      handlers.end(1)
      expect(before.requests).toHaveLength(1)
      expect((yield* Inspect.session(peer)).requests).toEqual([])
    }))

  it.effect("costs a request nothing: one that does not suspend reads no clock", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ dispatch: echo })
      const seen: Array<string> = []
      const reading = peer as unknown as { now: () => number }
      const read = reading.now
      reading.now = () => {
        seen.push("clock")
        return read.call(peer)
      }
      for (let id = 0; id < 10; id++) other.request(id, "ping")
      reading.now = read
      expect(seen).toEqual([])
      expect(other.messages).toHaveLength(10)
    }))
})
