/** The notifications of a subscription, delivered to the call that opened it. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { failureOf, logged, poll, raw, settle } from "./kit.ts"

const key = "io.modelcontextprotocol/subscriptionId"
const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** A peer of a stateless revision with subscriptions, and the notifications that each of them receives. */
const listening = (count: number, onNotification?: (method: string) => void) =>
  Effect.gen(function*() {
    const all: Array<string> = []
    const { other, peer } = yield* raw({
      revision: "2026-07-28",
      onNotification: (_, { method }) => {
        all.push(method)
      }
    })
    const received: Array<Array<string>> = []
    const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let index = 0; index < count; index++) {
      const mine: Array<string> = []
      received.push(mine)
      fibers.push(
        yield* fork(peer.request("subscriptions/listen", { notifications: {} }, {
          timeout: Infinity,
          maxTimeout: Infinity,
          onNotification: ({ method }) => {
            mine.push(method)
            onNotification?.(method)
          }
        }))
      )
    }
    const ids: ReadonlyArray<number> = other.requests("subscriptions/listen").map(({ id }) => id)
    const notify = (method: string, id: unknown) => other.notify(method, { _meta: { [key]: id } })
    return { all, fibers, received, ids, other, peer, notify }
  })

describe("a subscription", () => {
  it.effect("2026-07-28 · the value is the JSON-RPC ID of the request: delivers to each call its own notifications, in order", () =>
    Effect.gen(function*() {
      const { all, received, ids, other, notify } = yield* listening(2)
      notify("a", ids[1])
      notify("b", ids[0])
      notify("c", ids[1])
      // Some servers send the id back as text.
      notify("d", String(ids[0]))
      for (const id of [99, ` ${ids[0]}`, null, {}, [ids[0]], undefined]) notify("foreign", id)
      other.notify("without")
      other.notify("odd", { _meta: 7 })
      expect(received).toEqual([["b", "d"], ["a", "c"]])
      // The listener of the connection receives everything.
      expect(all).toEqual(["a", "b", "c", "d", ...Array.from({ length: 6 }, () => "foreign"), "without", "odd"])
    }))

  it.effect("2026-07-28 · delivers nothing after its response, nor after its cancellation", () =>
    Effect.gen(function*() {
      const { fibers, received, ids, other, notify } = yield* listening(2)
      other.answer(ids[0], { _meta: { [key]: ids[0] } })
      yield* Fiber.interrupt(fibers[1]!)
      for (const id of ids) notify("late", id)
      expect(received).toEqual([[], []])
      yield* settle
      expect(fibers.map(poll)).toEqual(["succeeded", "failed"])
      expect(other.notices("notifications/cancelled").map(({ params }) => params.requestId)).toEqual([ids[1]])
    }))

  it.effect("2026-07-28 · ends with Closed when the server cancels it; other requests ignore that", () =>
    Effect.gen(function*() {
      const { fibers, received, ids, other, peer, notify } = yield* listening(1)
      const call = yield* fork(peer.request("tools/call"))
      other.cancel(ids[0])
      other.cancel(other.requests("tools/call")[0].id)
      yield* settle
      expect(failureOf(fibers[0]!)).toMatchObject({ reason: { _tag: "Closed" }, method: "subscriptions/listen" })
      expect(poll(call)).toBe("running")
      notify("late", ids[0])
      expect(received).toEqual([[]])
    }))

  it.effect("never times out with an infinite timeout, while other calls do", () =>
    Effect.gen(function*() {
      const { fibers, received, ids, peer, notify } = yield* listening(1)
      const call = yield* fork(peer.request("tools/call", {}, { timeout: 1000 }))
      yield* TestClock.adjust("365 days")
      yield* settle
      expect(failureOf(call)).toMatchObject({ reason: { _tag: "Timeout" } })
      notify("a", ids[0])
      expect(received).toEqual([["a"]])
      expect(poll(fibers[0]!)).toBe("running")
    }))

  it.effect("logs a callback that throws, and calls it for the next notification", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { received, ids, notify } = yield* listening(1, (method) => {
          if (method === "bad") throw new Error("my bug")
        })
        notify("bad", ids[0])
        notify("good", ids[0])
        yield* settle
        expect(received).toEqual([["bad", "good"]])
        expect(lines.map(({ cause, level, text }) => [level, text, cause.includes("my bug")])).toEqual([
          ["Error", "failed to handle bad", true]
        ])
      })
    ))
})
