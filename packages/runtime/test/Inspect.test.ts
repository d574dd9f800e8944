import * as Inspect from "@skein/runtime/Inspect"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { echo, logged, raw } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

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
      const tree = yield* Inspect.server({ name: "garden", version: "1.2.3", peers: [first.peer, second.peer] })
      expect(tree).toEqual({
        name: "garden",
        version: "1.2.3",
        requests: [],
        streams: 0,
        tasks: [],
        sessions: [
          {
            revision: "2025-06-18",
            info: { name: "kit", version: "1" },
            requests: [
              {
                id: 1,
                method: "tools/call",
                target: "dig",
                revision: "2025-06-18",
                age: 2000,
                progress: { progress: 2, total: 8, message: "digging" },
                cancelled: false
              },
              {
                id: "r",
                method: "resources/read",
                target: "file:///a",
                revision: "2025-06-18",
                age: 500,
                progress: undefined,
                cancelled: false
              }
            ],
            queued: 0,
            calls: [{ id: 1, method: "roots/list", age: 500 }],
            subscriptions: []
          },
          {
            revision: undefined,
            info: undefined,
            requests: [{
              id: 1,
              method: "subscriptions/listen",
              target: undefined,
              revision: "2026-07-28",
              age: 500,
              progress: undefined,
              cancelled: false
            }],
            queued: 0,
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
      expect(yield* Inspect.session(peer)).toMatchObject({ requests: [{ id: 1 }], queued: 2 })
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
