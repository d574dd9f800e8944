import * as Revision from "@skein/protocol/Revision"
import type * as RequestContext from "@skein/runtime/RequestContext"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Handlers, logged, pair, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describe("progress that a handler reports", () => {
  const reports: ReadonlyArray<RequestContext.Progress> = [
    { progress: 0 },
    { progress: 0.5, total: 10, message: "half of one" },
    { progress: 0.5, message: "not more" },
    { progress: 0.25 },
    { progress: NaN },
    { progress: Infinity },
    { progress: 3, total: Infinity },
    { progress: 10, total: 10 },
    { progress: 11, total: NaN, message: "" }
  ]

  for (const revision of Revision.all) {
    it.effect(`${revision} · the progress value MUST increase with each notification; it MAY be floating point`, () =>
      Effect.gen(function*() {
        const { other } = yield* raw({
          revision,
          dispatch: (exchange) => Effect.as(Effect.forEach(reports, (report) => exchange.progress(report)), {})
        })
        other.request(1, "tools/call", { _meta: { progressToken: "t" } })
        const message = (text: string) => revision === "2024-11-05" ? {} : { message: text }
        expect(other.notices("notifications/progress").map((json) => json.params)).toEqual([
          { progressToken: "t", progress: 0 },
          { progressToken: "t", progress: 0.5, total: 10, ...message("half of one") },
          { progressToken: "t", progress: 3 },
          { progressToken: "t", progress: 10, total: 10 },
          { progressToken: "t", progress: 11, ...message("") }
        ])
        expect(other.sent.every((sent) => sent.about === 1)).toBe(true)
      }))
  }

  it.effect("2025-11-25 · progress tokens MUST be a string or integer: with another, or without, nothing is sent", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ dispatch: (exchange) => Effect.as(exchange.progress({ progress: 1 }), {}) })
      const metas = [undefined, null, 7, [], {}, { progressToken: null }, { progressToken: 1.5 }, { progressToken: {} }]
      for (const [id, _meta] of metas.entries()) other.request(id, "a", { _meta })
      other.request("without")
      expect(other.notices("notifications/progress")).toEqual([])
      other.request("integer", "a", { _meta: { progressToken: 0 } })
      other.request("empty", "a", { _meta: { progressToken: "" } })
      expect(other.notices("notifications/progress").map((json) => json.params.progressToken)).toEqual([0, ""])
      expect(other.messages.filter((json) => json.method === undefined)).toHaveLength(metas.length + 3)
    }))

  it.effect("2025-11-25 · progress notifications MUST stop after completion", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1, "a", { _meta: { progressToken: 1 } })
      const exchange = handlers.exchanges.get(1)!
      yield* exchange.progress({ progress: 1 })
      handlers.end(1)
      yield* exchange.progress({ progress: 2 })
      yield* exchange.notify("notifications/message", { level: "info", data: 1 })
      expect(other.messages.map((json) => json.method ?? "answer")).toEqual(["notifications/progress", "answer"])
      expect(exchange.exchange.lastProgress).toEqual({ progress: 1 })
    }))

  it.effect("waits while the peer is slow to read, and continues when it has read", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({
        dispatch: (exchange) =>
          Effect.as(Effect.andThen(exchange.progress({ progress: 1 }), exchange.progress({ progress: 2 })), {})
      })
      other.room = false
      other.request(1, "a", { _meta: { progressToken: 1 } })
      expect(other.messages.map((json) => json.params.progress)).toEqual([1])
      expect(other.waiters).toBe(1)
      other.drain()
      expect(other.messages.map((json) => json.params?.progress)).toEqual([1, 2, undefined])
      expect(other.waiters).toBe(0)
    }))

  it.effect("cancels a handler that waits for a slow reader, and leaves no waiter", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({
        dispatch: (exchange) => Effect.as(exchange.progress({ progress: 1 }), {})
      })
      other.room = false
      other.request(1, "a", { _meta: { progressToken: 1 } })
      expect(other.waiters).toBe(1)
      other.cancel(1)
      expect(other.waiters).toBe(0)
      expect([...peer.requests]).toEqual([])
    }))
})

describe("progress that a call asked for", () => {
  it.effect("2025-11-25 · tokens MUST be unique across all active requests; other _meta is kept", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const params = { name: "x", _meta: { "example.com/a": 1 } }
      yield* fork(peer.request("a", params, { onProgress: () => {} }))
      yield* fork(peer.request("b", undefined, { onProgress: () => {} }))
      yield* fork(peer.request("c", params))
      expect(other.requests().map((json) => json.params)).toEqual([
        { name: "x", _meta: { "example.com/a": 1, progressToken: 1 } },
        { _meta: { progressToken: 2 } },
        params
      ])
    }))

  it.effect("is reported also if the token comes back as text", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const seen: Array<unknown> = []
      const call = yield* fork(peer.request("a", {}, { onProgress: (progress) => seen.push(progress) }))
      other.progress("1", 3)
      other.answer("1" as never)
      yield* Fiber.join(call)
      expect(seen).toEqual([{ progress: 3 }])
    }))

  it.effect("is reported in order, only while it grows, and never after the end", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const seen: Array<unknown> = []
      const call = yield* fork(peer.request("a", {}, { onProgress: (progress) => seen.push(progress) }))
      other.progress(1, 0)
      other.progress(1, 1, { total: 4, message: "one" })
      other.progress(1, 1)
      other.progress(1, 0.5)
      other.progress(1, 2.5, { total: "4", message: 7, unknown: true })
      other.progress("1.0", 3)
      other.progress(2, 3)
      other.progress(undefined, 3)
      other.notify("notifications/progress")
      other.answer(1)
      other.progress(1, 4)
      yield* Fiber.join(call)
      expect(seen).toEqual([{ progress: 0 }, { progress: 1, total: 4, message: "one" }, { progress: 2.5 }])
      expect(other.messages).toHaveLength(1)
    }))

  it.effect("ignores a report or a total that is too large for a double", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const seen: Array<unknown> = []
      yield* fork(peer.request("a", {}, { onProgress: (progress) => seen.push(progress) }))
      const report = (rest: string) =>
        other.text(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,${rest}}}`)
      report(`"progress":1e999`)
      report(`"progress":-1e999`)
      report(`"progress":1,"total":1e999`)
      report(`"progress":2`)
      expect(seen).toEqual([{ progress: 1 }, { progress: 2 }])
    }))

  it.effect("logs a callback that throws, and continues the call and the connection", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw()
        const call = yield* fork(peer.request("a", {}, {
          onProgress: () => {
            throw new Error("broken")
          }
        }))
        expect(() => other.progress(1, 1)).not.toThrow()
        other.answer(1, { ok: true })
        expect(yield* Fiber.join(call)).toEqual({ ok: true })
        expect(lines.map((line) => [line.level, line.text])).toEqual([["Error", "failed to handle the progress of a"]])
        expect(lines[0]!.cause).toContain("broken")
      })
    ))

  it.effect("reports nothing more after a callback has ended its call", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const seen: Array<number> = []
      const held: { call?: Fiber.Fiber<unknown, unknown> } = {}
      held.call = yield* fork(peer.request("a", {}, {
        onProgress: ({ progress }) => {
          seen.push(progress)
          held.call!.interruptUnsafe()
        }
      }))
      other.progress(1, 1)
      other.progress(1, 2)
      expect(seen).toEqual([1])
      expect(poll(held.call)).toBe("failed")
      expect(other.notices("notifications/cancelled")).toHaveLength(1)
    }))

  it.effect("works in both directions over an in-memory transport", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const working: RequestContext.Dispatcher = (exchange) =>
        Effect.as(
          Effect.forEach(
            [1, 2, 3],
            (progress) => Effect.andThen(exchange.progress({ progress, total: 3 }), Effect.yieldNow)
          ),
          {}
        )
      const [left, right] = yield* pair({ left: working, right: working })
      yield* Effect.all([
        left.request("a", {}, { onProgress: (p) => seen.push(`left ${p.progress}`) }),
        right.request("b", {}, { onProgress: (p) => seen.push(`right ${p.progress}`) })
      ], { concurrency: 2 })
      expect(seen.filter((line) => line.startsWith("left"))).toEqual(["left 1", "left 2", "left 3"])
      expect(seen.filter((line) => line.startsWith("right"))).toEqual(["right 1", "right 2", "right 3"])
    }))

  it.effect("slows the progress of handlers and the notifications of a session down for a slow reader, and loses none", () =>
    Effect.gen(function*() {
      const handlers = new Handlers()
      const { other, peer } = yield* raw({ dispatch: handlers.parked })
      other.room = false
      const notices = yield* fork(Effect.forEach([1, 2, 3], (n) => peer.notify("notifications/message", { n })))
      yield* settle
      expect(other.messages).toHaveLength(1)
      expect(poll(notices)).toBe("running")
      other.drain()
      yield* settle
      expect(poll(notices)).toBe("succeeded")
      expect(other.messages.map((json) => json.params.n)).toEqual([1, 2, 3])
      other.room = false
      const stuck = yield* fork(peer.notify("notifications/message"))
      yield* Fiber.interrupt(stuck)
      expect(other.waiters).toBe(0)
    }))
})
