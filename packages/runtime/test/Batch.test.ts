import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { echo, failureOf, logged, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const request = (id: unknown, method = "work") => ({ jsonrpc: "2.0", id, method })
const notice = (method: string, params?: object) => ({ jsonrpc: "2.0", method, params })
const cancel = (requestId: unknown) => notice("notifications/cancelled", { requestId })

const revision = "2025-03-26"

describe("batches", () => {
  for (const revision of Revision.all.filter((revision) => revision !== "2025-03-26")) {
    it.effect(`${revision} · has no batches: refuses one without an id, and runs none of its requests`, () =>
      Effect.gen(function*() {
        const { handlers, other } = yield* raw({ revision })
        other.json([request(1), request(2)])
        expect(other.messages).toEqual([{
          jsonrpc: "2.0",
          error: { code: -32600, message: "Invalid Request: Only revision 2025-03-26 has batches" }
        }])
        expect(handlers.started).toEqual([])
      }))
  }

  it.effect("2025-03-26 · initialize MUST NOT be part of a batch: refuses batches before the handshake", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ revision })
      peer.session = undefined
      other.json([request(1, "initialize")])
      expect(other.messages.map((json) => json.error.code)).toEqual([-32600])
      expect(handlers.started).toEqual([])
    }))

  it.effect("2025-03-26 · MUST support receiving batches: sends all responses together after the last one, in the order of their completion", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ revision })
      other.json([request(1), request("b"), request(3)])
      handlers.end(3)
      handlers.end(1, Effect.fail(McpError.invalidParams("no")))
      yield* settle
      expect(other.messages).toEqual([])
      handlers.end("b")
      expect(other.messages).toEqual([[
        { jsonrpc: "2.0", id: 3, result: { done: 3 } },
        { jsonrpc: "2.0", id: 1, error: { code: -32602, message: "no" } },
        { jsonrpc: "2.0", id: "b", result: { done: "b" } }
      ]])
      // About its first request, so that a transport with several streams finds the one that the batch came by.
      expect(other.sent[0]!.about).toBe(1)
      expect([...peer.requests]).toEqual([])
    }))

  it.effect("answers a batch of requests that do not suspend synchronously, in order", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ revision, dispatch: echo })
      other.json([request(1, "ping"), request(2, "ping")])
      expect(other.messages).toEqual([[{ jsonrpc: "2.0", id: 1, result: {} }, { jsonrpc: "2.0", id: 2, result: {} }]])
    }))

  it.effect("answers each invalid member with an error of its own, but not notifications and responses", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const { other, peer } = yield* raw({
        revision,
        dispatch: echo,
        onNotification: (_, { method }) => void seen.push(method)
      })
      const call = yield* fork(peer.request("roots/list"))
      other.sent.length = 0
      other.json([
        request(1, "ping"),
        5,
        notice("notifications/roots/list_changed"),
        notice("notifications/malformed", []),
        { jsonrpc: "2.0", id: 1, result: { roots: [] } },
        { jsonrpc: "2.0", id: "bad", method: 7 },
        { jsonrpc: "2.0", id: 99, result: "no object" },
        [],
        request(2, "ping")
      ])
      expect(seen).toEqual(["notifications/roots/list_changed"])
      expect(yield* Fiber.join(call)).toEqual({ roots: [] })
      expect(other.messages).toHaveLength(1)
      expect(other.messages[0].map((json: any) => [json.id, json.error?.code])).toEqual([
        [1, undefined],
        [undefined, -32600],
        ["bad", -32600],
        [undefined, -32600],
        [2, undefined]
      ])
    }))

  it.effect("sends nothing for a batch of notifications and responses, or one whose requests are all cancelled", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ revision })
      other.json([notice("notifications/a"), { jsonrpc: "2.0", id: 5, result: {} }])
      other.json([request(1), request(2)])
      other.cancel(1)
      other.cancel(2)
      yield* settle
      expect(other.messages).toEqual([])
      expect([...peer.requests]).toEqual([])
    }))

  it.effect("omits a cancelled request, and does not delay the others", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ revision })
      other.json([request(1), request(2), request(3)])
      handlers.end(1)
      other.cancel(2)
      handlers.end(3)
      expect(other.messages).toEqual([[
        { jsonrpc: "2.0", id: 1, result: { done: 1 } },
        { jsonrpc: "2.0", id: 3, result: { done: 3 } }
      ]])
      other.json([request(4), request(5)])
      handlers.end(4)
      other.cancel(5)
      expect(other.messages[1]).toEqual([{ jsonrpc: "2.0", id: 4, result: { done: 4 } }])
    }))

  it.effect("cancels a request that precedes the cancellation in the same batch", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ revision })
      other.json([request(1), request(2), cancel(1)])
      expect(handlers.interrupted).toEqual([1])
      handlers.end(2)
      expect(other.messages).toEqual([[{ jsonrpc: "2.0", id: 2, result: { done: 2 } }]])
    }))

  it.effect("refuses a duplicate id in one batch with -32600, and continues the first request", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ revision })
      other.json([request(1), request(1)])
      expect(other.messages).toEqual([])
      handlers.end(1)
      expect(other.messages[0].map((json: any) => [json.id, json.error?.code])).toEqual([[1, -32600], [1, undefined]])
    }))

  it.effect("answers two batches in flight separately", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ revision })
      other.json([request(1), request(2)])
      other.json([request(3), request(4)])
      handlers.end(1)
      handlers.end(4)
      handlers.end(3)
      handlers.end(2)
      expect(other.messages.map((batch) => batch.map((json: any) => json.id))).toEqual([[4, 3], [1, 2]])
    }))

  it.effect("answers -32603 for a result or error without JSON form, and sends the other responses", () =>
    logged(() =>
      Effect.gen(function*() {
        const { other } = yield* raw({
          revision,
          dispatch: (exchange) =>
            exchange.id === 1
              ? Effect.succeed({ big: 1n })
              : exchange.id === 2
              ? Effect.fail(McpError.invalidParams("no", { big: 1n }))
              : Effect.succeed({})
        })
        other.json([request(1), request(2), request(3)])
        expect(other.messages).toHaveLength(1)
        expect(other.messages[0].map((json: any) => [json.id, json.error?.code])).toEqual([
          [1, -32603],
          [2, -32603],
          [3, undefined]
        ])
      })
    ))

  it.effect("refuses requests beyond maxInFlightRequests and maxQueuedRequests in the response of the batch", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({ revision, limits: { maxInFlightRequests: 2, maxQueuedRequests: 0 } })
      other.json([request(1), request(2), request(3)])
      handlers.end(1)
      handlers.end(2)
      expect(other.messages[0].map((json: any) => [json.id, json.error?.code])).toEqual([
        [3, -32603],
        [1, undefined],
        [2, undefined]
      ])
    }))

  it.effect("sends the responses of a batch that are complete when the session ends, and discards the other requests", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ revision, limits: { shutdownTimeout: 100 } })
      other.json([request(1), request(2)])
      handlers.end(1)
      other.end({ _tag: "ClosedByPeer" })
      yield* TestClock.adjust(100)
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByPeer" })
      expect(other.messages).toEqual([[{ jsonrpc: "2.0", id: 1, result: { done: 1 } }]])
    }))

  it.effect("does not run the members after one that ends the session, and sends the earlier responses", () =>
    Effect.gen(function*() {
      const started: Array<unknown> = []
      const { other, peer } = yield* raw({
        revision,
        dispatch: (exchange) =>
          Effect.sync(() => {
            started.push(exchange.id)
            if (exchange.id === 2) peerNow().close({ _tag: "Expired" })
            return { done: exchange.id }
          })
      })
      const peerNow = () => peer
      other.json([request(1), request(2), request(3)])
      expect(started).toEqual([1, 2])
      expect(yield* peer.ended).toEqual({ _tag: "Expired" })
      expect(other.messages).toEqual([[
        { jsonrpc: "2.0", id: 1, result: { done: 1 } },
        { jsonrpc: "2.0", id: 2, result: { done: 2 } }
      ]])
    }))

  it.effect("with splitBatches handles the members one by one, in every revision", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ dispatch: echo, splitBatches: true })
      other.json([request(1, "a"), request(2, "b")])
      expect(other.messages).toMatchObject([{ id: 1 }, { id: 2 }])
    }))

  it.effect("neither handles nor answers messages and members of batches that are not accepted", () =>
    Effect.gen(function*() {
      const accept = (message: { readonly _tag: string }) => message._tag !== "Request"
      const { handlers, other } = yield* raw({ revision, accept })
      other.json(request(1))
      other.json([request(2), request(3)])
      expect(other.messages).toEqual([])
      expect(handlers.started).toEqual([])
      other.json([request(4), { jsonrpc: "2.0" }])
      expect(other.messages).toMatchObject([[{ error: { code: -32600 } }]])
    }))

  it.effect("settles two calls by one batch of responses, one of them invalid", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ revision })
      const good = yield* fork(peer.request("a"))
      const bad = yield* fork(peer.request("b"))
      const open = yield* fork(peer.request("c"))
      other.json([{ jsonrpc: "2.0", id: 2, result: [] }, { jsonrpc: "2.0", id: 1, result: { ok: true } }])
      expect(yield* Fiber.join(good)).toEqual({ ok: true })
      expect(failureOf(bad)).toMatchObject({ reason: { _tag: "InvalidResponse" } })
      expect(poll(open)).toBe("running")
      expect(other.messages).toHaveLength(3)
    }))
})
