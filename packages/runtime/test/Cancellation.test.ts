import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { echo, failureOf, Handlers, logged, pair, poll, raw, settle } from "./kit.ts"

describe("cancellation of an inbound request", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · SHOULD stop processing and not send a response for the cancelled request`, () =>
      Effect.gen(function*() {
        const { handlers, other, peer } = yield* raw({ revision })
        other.request("a")
        other.request("b")
        other.cancel("a", "no longer needed")
        expect(handlers.interrupted).toEqual(["a"])
        expect([...peer.requests].map((exchange) => exchange.id)).toEqual(["b"])
        handlers.end("b")
        expect(other.messages).toEqual([{ jsonrpc: "2.0", id: "b", result: { done: "b" } }])
      }))
  }

  it.effect("cancels a request with the id 0, and one with an empty id", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      for (const id of [0, ""]) {
        other.request(id)
        other.cancel(id)
      }
      expect(handlers.interrupted).toEqual([0, ""])
      expect([...peer.requests]).toEqual([])
      expect(other.messages).toEqual([])
    }))

  it.effect("2025-11-25 · MAY ignore cancellations of unknown and completed requests, and malformed ones", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      other.cancel("never")
      other.request(1)
      handlers.end(1)
      other.cancel(1)
      other.request(2)
      other.cancel("2")
      other.cancel(undefined)
      other.cancel({ id: 2 })
      other.notify("notifications/cancelled")
      expect([...peer.requests].map((exchange) => exchange.id)).toEqual([2])
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { done: 1 } }])
      other.request(1)
      expect([...peer.requests].map((exchange) => exchange.id)).toEqual([2, 1])
    }))

  it.effect("2025-11-25 · MUST NOT cancel initialize: answers it in spite of a cancellation", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1, "initialize")
      other.cancel(1)
      expect(handlers.interrupted).toEqual([])
      handlers.end(1)
      expect(other.answers(1)).toHaveLength(1)
    }))

  it.effect("sends no response if the cancellation precedes the completion in the same tick", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1)
      other.cancel(1)
      handlers.end(1)
      yield* settle
      expect(other.messages).toEqual([])
    }))

  it.effect("responds once if the completion precedes the cancellation in the same tick", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1)
      handlers.end(1)
      other.cancel(1)
      yield* settle
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { done: 1 } }])
    }))

  it.effect("ignores a second cancellation", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      other.request(1)
      other.cancel(1)
      other.cancel(1)
      expect(handlers.interrupted).toEqual([1])
      expect([...peer.requests]).toEqual([])
    }))

  it.effect("lets a finalizer end if the request is cancelled again meanwhile", () =>
    Effect.gen(function*() {
      let finalized = 0
      yield* TestClock.adjust(0)
      const { other, peer } = yield* raw({
        dispatch: () =>
          Effect.onInterrupt(Effect.never, () => Effect.andThen(Effect.sleep(10), Effect.sync(() => finalized++)))
      })
      other.request(1)
      other.cancel(1)
      other.cancel(1)
      expect([...peer.requests].map((exchange) => exchange.cancelled)).toEqual([true])
      yield* TestClock.adjust(10)
      expect(finalized).toBe(1)
      expect([...peer.requests]).toEqual([])
      expect(other.messages).toEqual([])
    }))

  it.effect("sends neither a response nor notifications for a cancelled handler that is uninterruptible", () =>
    Effect.gen(function*() {
      const handlers = new Handlers()
      const { other, peer } = yield* raw({
        dispatch: (exchange) =>
          Effect.uninterruptible(Effect.tap(handlers.parked(exchange), exchange.progress({ progress: 1 })))
      })
      other.request(1, "work", { _meta: { progressToken: "t" } })
      other.cancel(1)
      expect([...peer.requests].map(({ id, cancelled }) => ({ id, cancelled }))).toEqual([{ id: 1, cancelled: true }])
      handlers.end(1)
      expect([...peer.requests]).toEqual([])
      expect(other.messages).toEqual([])
    }))

  it.effect("sends no response if a cancelled handler turns its interruption into a failure or a result", () =>
    Effect.gen(function*() {
      for (const recover of [Effect.succeed({}), Effect.fail(McpError.invalidParams()), Effect.die("late")]) {
        const { other } = yield* raw({
          dispatch: () =>
            Effect.uninterruptibleMask((restore) => Effect.flatMap(Effect.exit(restore(Effect.never)), () => recover))
        })
        other.request(1)
        other.cancel(1)
        yield* settle
        expect(other.messages).toEqual([])
      }
    }))

  it.effect("accepts the id of a request that was cancelled and has ended", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1)
      other.cancel(1)
      other.request(1)
      handlers.end(1)
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { done: 1 } }])
    }))

  it.effect("2025-11-25 · SHOULD log cancellation reasons: logs a shortened reason at the level Debug", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other } = yield* raw()
        other.request(1, "tools/call")
        other.cancel(1, "x".repeat(100_000))
        expect(lines.map((line) => line.level)).toEqual(["Debug"])
        expect(lines[0]!.text).toMatch(/^tools\/call was cancelled: x+…$/)
        expect(lines[0]!.text.length).toBeLessThan(400)
      })
    ))

  it.effect("sends no notifications and requests of a cancelled request", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const { other, peer } = yield* raw({
        dispatch: (exchange) =>
          Effect.onInterrupt(Effect.never, () =>
            exchange.notify("notifications/message", {}).pipe(
              Effect.andThen(exchange.progress({ progress: 1 })),
              Effect.andThen(Effect.flip(exchange.request("roots/list"))),
              Effect.tap((error) =>
                Effect.sync(() => asked.push(error._tag === "RequestError" ? error.reason._tag : "?"))
              ),
              Effect.ignore
            ))
      })
      other.request(1, "work", { _meta: { progressToken: 1 } })
      other.cancel(1)
      expect(asked).toEqual(["Closed"])
      expect(other.messages).toEqual([])
      expect([...peer.requests]).toEqual([])
    }))
})

describe("cancellation of an outbound call", () => {
  it.effect("2025-11-25 · MUST only reference requests that were issued and are believed to be in progress", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("tools/call", { name: "x" }), { startImmediately: true })
      const [request] = other.requests("tools/call")
      yield* Fiber.interrupt(call)
      expect(other.messages.slice(1)).toEqual([{
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: request.id, reason: expect.any(String) }
      }])
      expect([...peer.calls]).toEqual([])
    }))

  it.effect("2025-11-25 · SHOULD ignore any response that arrives after the cancellation", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("tools/call"), { startImmediately: true })
      yield* Fiber.interrupt(call)
      const sent = other.messages.length
      other.answer(1)
      other.fail(1, -32603, "late")
      other.progress(1, 1)
      expect(other.messages).toHaveLength(sent)
      expect(Exit.hasInterrupts(yield* Fiber.await(call))).toBe(true)
    }))

  it.effect("reports the late result of a cancelled call once, and no other late response", () =>
    Effect.gen(function*() {
      const lateResults: Array<unknown> = []
      const { other, peer } = yield* raw({ onLate: (method, result) => void lateResults.push([method, result]) })
      const cancelled = function*(method: string) {
        yield* Fiber.interrupt(yield* Effect.forkChild(peer.request(method), { startImmediately: true }))
      }
      yield* cancelled("a")
      yield* cancelled("b")
      yield* cancelled("c")
      yield* cancelled("initialize")
      const waiting = yield* Effect.forkChild(peer.request("d"), { startImmediately: true })
      other.answer(1, { late: 1 })
      other.answer(1, { late: 2 })
      other.fail(2, -32603, "late")
      other.answer(2, { late: 3 })
      other.answer(4, { late: 4 })
      other.answer(5, { late: 5 })
      other.answer(5, { late: 6 })
      other.answer(6, { late: 7 })
      yield* Fiber.join(waiting)
      expect(lateResults).toEqual([["a", { late: 1 }]])
    }))

  it.effect("reports the late result of a call that timed out, and remembers the last 1,000 cancelled calls", () =>
    Effect.gen(function*() {
      const lateResults: Array<string> = []
      const { other, peer } = yield* raw({ onLate: (method) => void lateResults.push(method) })
      const late = yield* Effect.forkChild(peer.request("late", {}, { timeout: 10 }), { startImmediately: true })
      yield* TestClock.adjust(10)
      expect(poll(late)).toBe("failed")
      for (let id = 2; id <= 1_001; id++) {
        yield* Fiber.interrupt(yield* Effect.forkChild(peer.request(`m${id}`), { startImmediately: true }))
      }
      for (const id of [1, 2, 1_001]) other.answer(id)
      expect(lateResults).toEqual(["m2", "m1001"])
    }))

  it.effect("2025-11-25 · MUST NOT cancel initialize: sends nothing when it is interrupted", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("initialize"), { startImmediately: true })
      yield* Fiber.interrupt(call)
      expect(other.messages.map((json) => json.method)).toEqual(["initialize"])
    }))

  it.effect("does not cancel a call whose response precedes the interruption in the same tick", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("a"), { startImmediately: true })
      other.answer(1, { ok: true })
      call.interruptUnsafe()
      yield* settle
      expect(other.notices("notifications/cancelled")).toEqual([])
      expect(poll(call)).toBe("succeeded")
    }))

  it.effect("ignores late, unknown and duplicate responses", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      other.answer(1)
      other.answer("1")
      other.fail(undefined, -32700, "Parse error")
      const call = yield* Effect.forkChild(peer.request("a"), { startImmediately: true })
      other.answer(7)
      other.fail(undefined, -32700, "Parse error")
      other.json({ jsonrpc: "2.0", id: 9, result: 5 })
      expect(poll(call)).toBe("running")
      other.answer(1, { first: true })
      other.answer(1, { second: true })
      other.fail(1, -32603, "third")
      expect(yield* Fiber.join(call)).toEqual({ first: true })
      expect(other.messages).toHaveLength(1)
    }))

  it.effect("fails the call of an invalid response, and does not answer it", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("a"), { startImmediately: true })
      other.json({ jsonrpc: "2.0", id: 1, result: "text" })
      expect(failureOf(call)).toMatchObject({ _tag: "RequestError", reason: { _tag: "InvalidResponse" }, method: "a" })
      expect(other.messages).toHaveLength(1)
    }))

  it.effect("2026-07-28 · a server's notifications/cancelled ends a subscription, and no other request", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ revision: "2026-07-28" })
      const listen = yield* Effect.forkChild(peer.request("subscriptions/listen"), { startImmediately: true })
      const call = yield* Effect.forkChild(peer.request("tools/call"), { startImmediately: true })
      other.cancel(2)
      other.cancel(1)
      other.cancel(1)
      expect(failureOf(listen)).toMatchObject({
        _tag: "RequestError",
        reason: { _tag: "Closed" },
        method: "subscriptions/listen"
      })
      expect(poll(call)).toBe("running")
      expect(other.notices("notifications/cancelled")).toEqual([])
    }))

  it.effect("interrupts the handler of the peer when a call is interrupted, over an in-memory transport", () =>
    Effect.gen(function*() {
      let interrupted = false
      const [left, right] = yield* pair({
        right: (exchange) =>
          exchange.method === "ping" ? echo(exchange) : Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              interrupted = true
            }))
      })
      const call = yield* Effect.forkChild(left.request("tools/call"))
      yield* settle
      expect([...right.requests]).toHaveLength(1)
      yield* Fiber.interrupt(call)
      yield* settle
      expect(interrupted).toBe(true)
      expect([...right.requests]).toEqual([])
      expect(yield* left.request("ping")).toEqual({})
    }))
})
