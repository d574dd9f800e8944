import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import type * as RequestContext from "@skein/runtime/RequestContext"
import type { SessionEnd } from "@skein/runtime/Session"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Counterpart, echo, failureOf, Handlers, logged, pair, poll, raw, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const lost: SessionEnd = {
  _tag: "Lost",
  cause: new TransportError({ reason: new ConnectionLost({ message: "broken" }) })
}

const stubborn: RequestContext.Dispatcher = () => Effect.uninterruptible(Effect.never)

describe("the end of a session", () => {
  const reasons: ReadonlyArray<SessionEnd> = [
    { _tag: "ClosedByUs" },
    { _tag: "ClosedByPeer" },
    lost,
    { _tag: "Refused", message: "no common revision" },
    { _tag: "Expired" }
  ]

  for (const end of reasons) {
    it.effect(`${end._tag} is the reason: calls fail with it, the connection and the scope are closed`, () =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw()
        let closed = false
        yield* Scope.addFinalizer(
          peer.scope,
          Effect.sync(() => {
            closed = true
          })
        )
        const call = yield* fork(peer.request("a"))
        const ended = yield* fork(peer.ended)
        expect(poll(ended)).toBe("running")
        if (end._tag === "ClosedByPeer" || end._tag === "Lost") other.end(end)
        else peer.close(end)
        expect(yield* Fiber.join(ended)).toEqual(end)
        expect(failureOf(call)).toMatchObject({ _tag: "RequestError", reason: { _tag: "Closed", end }, method: "a" })
        expect(closed).toBe(true)
        expect(other.closes).toBe(1)
        expect(other.notices("notifications/cancelled")).toEqual([])
      }))
  }

  it.effect("reports each request without a response to the transport: cancelled, interrupted, or too late", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ dispatch: () => Effect.never })
      for (const id of [1, 2]) other.json({ jsonrpc: "2.0", id, method: "a" })
      other.json({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } })
      expect(other.forgotten).toEqual([1])
      peer.close({ _tag: "ClosedByPeer" })
      other.json({ jsonrpc: "2.0", id: 3, method: "a" })
      expect(other.forgotten).toEqual([1, 3])
      peer.close({ _tag: "ClosedByUs" })
      yield* peer.ended
      expect(other.forgotten).toEqual([1, 3, 2])
      expect(other.messages).toEqual([])
    }))

  const stop = (scope: Scope.Closeable) => Scope.close(scope, Exit.void)
  const ways: ReadonlyArray<[string, boolean, (end: (end: SessionEnd) => void, scope: Scope.Closeable) => unknown]> = [
    ["its scope closes", true, (_, scope) => Effect.runFork(stop(scope))],
    ["the other side ends, and then its scope closes", false, (end, scope) => {
      end({ _tag: "ClosedByPeer" })
      Effect.runFork(stop(scope))
    }],
    ["it is closed", false, (end) => end({ _tag: "ClosedByUs" })],
    ["its transport is lost", false, (end) => end(lost)]
  ]
  for (const [what, stopped, way] of ways) {
    it.effect(`a request in flight knows ${stopped ? "that this side stops" : "of no stop of this side"}: ${what}`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        let seen: RequestContext.RequestContext | undefined
        const dispatch: RequestContext.Dispatcher = (exchange) => {
          seen = exchange
          return Effect.never
        }
        const { other, peer } = yield* Scope.provide(raw({ dispatch }), scope)
        other.json({ jsonrpc: "2.0", id: 1, method: "a" })
        expect([seen!.cancelled, seen!.stopped]).toEqual([false, false])
        way((end) => peer.close(end), scope)
        yield* peer.ended
        expect([seen!.cancelled, seen!.stopped]).toEqual([true, stopped])
        yield* stop(scope)
      }))
  }

  it.effect("reports the first of several reasons", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      peer.close({ _tag: "Expired" })
      peer.close({ _tag: "ClosedByUs" })
      other.end(lost)
      expect(yield* peer.ended).toEqual({ _tag: "Expired" })
      expect(other.closes).toBe(1)
    }))

  it.effect("runs no handler and sends no message afterwards", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      peer.close({ _tag: "ClosedByUs" })
      yield* peer.ended
      other.request(1)
      yield* peer.notify("notifications/message")
      expect(yield* Effect.flip(peer.request("a"))).toMatchObject({
        reason: { _tag: "Closed", end: { _tag: "ClosedByUs" } }
      })
      expect(handlers.started).toEqual([])
      expect(other.messages).toEqual([])
      expect(peer.scope.state._tag).toBe("Closed")
    }))

  it.effect("interrupts requests in flight when the session is closed, expires or is lost, and answers none", () =>
    Effect.gen(function*() {
      for (const end of reasons.filter((end) => end._tag !== "ClosedByPeer")) {
        const { handlers, other, peer } = yield* raw()
        other.request(1)
        other.request(2)
        if (end._tag === "Lost") other.end(end)
        else peer.close(end)
        expect(handlers.interrupted).toEqual([1, 2])
        expect(yield* peer.ended).toEqual(end)
        expect(other.messages).toEqual([])
      }
    }))

  it.effect("interrupts the handlers of notifications", () =>
    Effect.gen(function*() {
      let interrupted = false
      const { other, peer } = yield* raw({
        onNotification: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (interrupted = true)))
      })
      other.notify("notifications/a")
      peer.close({ _tag: "ClosedByUs" })
      expect(interrupted).toBe(true)
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByUs" })
    }))

  it.effect("waits for the finalizers of interrupted handlers", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust(0)
      let finalized = 0
      const { other, peer } = yield* raw({
        dispatch: () =>
          Effect.onInterrupt(Effect.never, () => Effect.andThen(Effect.sleep(100), Effect.sync(() => finalized++)))
      })
      for (let id = 0; id < 5; id++) other.request(id)
      yield* Scope.addFinalizer(peer.scope, Effect.andThen(Effect.sleep(150), Effect.sync(() => finalized++)))
      const ended = yield* fork(peer.ended)
      peer.close({ _tag: "ClosedByUs" })
      yield* TestClock.adjust(149)
      expect([finalized, poll(ended), other.closes]).toEqual([5, "running", 0])
      yield* TestClock.adjust(1)
      expect([finalized, poll(ended), other.closes]).toEqual([6, "succeeded", 1])
    }))

  it.effect("closes with the scope of the peer, as Closed, and the scope waits for it", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { handlers, other, peer } = yield* raw().pipe(Effect.provideService(Scope.Scope, scope))
      other.request(1)
      yield* Scope.close(scope, Exit.void)
      expect(handlers.interrupted).toEqual([1])
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByUs" })
      expect(other.closes).toBe(1)
    }))
})

describe("when the peer has ended", () => {
  it.effect("answers requests in flight, and then closes the connection", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      const ended = yield* fork(peer.ended)
      other.request(1)
      other.request(2)
      other.end({ _tag: "ClosedByPeer" })
      handlers.end(1)
      yield* settle
      expect([poll(ended), other.closes]).toEqual(["running", 0])
      handlers.end(2)
      expect(yield* Fiber.join(ended)).toEqual({ _tag: "ClosedByPeer" })
      expect(other.messages).toEqual([
        { jsonrpc: "2.0", id: 1, result: { done: 1 } },
        { jsonrpc: "2.0", id: 2, result: { done: 2 } }
      ])
      expect(other.closes).toBe(1)
    }))

  it.effect("sends the last response before it closes the connection, also a failure or a defect", () =>
    logged(() =>
      Effect.gen(function*() {
        for (const outcome of [Effect.succeed({}), Effect.die("broken")]) {
          const { handlers, other, peer } = yield* raw()
          other.request(1)
          other.end({ _tag: "ClosedByPeer" })
          handlers.end(1, outcome)
          yield* peer.ended
          expect(other.answers(1)).toHaveLength(1)
        }
      })
    ))

  it.effect("interrupts requests in flight after shutdownTimeout, 5 seconds by default", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      const ended = yield* fork(peer.ended)
      other.request(1)
      other.end({ _tag: "ClosedByPeer" })
      yield* TestClock.adjust("4999 millis")
      expect(handlers.interrupted).toEqual([])
      yield* TestClock.adjust("1 millis")
      expect(handlers.interrupted).toEqual([1])
      expect(yield* Fiber.join(ended)).toEqual({ _tag: "ClosedByPeer" })
      expect(other.messages).toEqual([])
    }))

  it.effect("still sends progress, and fails calls immediately", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1, "a", { _meta: { progressToken: 1 } })
      other.end({ _tag: "ClosedByPeer" })
      const exchange = handlers.exchanges.get(1)!
      yield* exchange.progress({ progress: 1 })
      expect(other.notices("notifications/progress")).toHaveLength(1)
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({ reason: { _tag: "Closed" } })
    }))

  it.effect("stops waiting for them on close, and keeps the reason Ended", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw({ limits: { shutdownTimeout: "1 hour" } })
      other.request(1)
      other.end({ _tag: "ClosedByPeer" })
      yield* settle
      expect(handlers.interrupted).toEqual([])
      peer.close({ _tag: "ClosedByUs" })
      expect(handlers.interrupted).toEqual([1])
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByPeer" })
    }))

  it.effect("stops waiting for them when the scope of the peer closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { handlers, other } = yield* raw({ limits: { shutdownTimeout: "1 hour" } }).pipe(
        Effect.provideService(Scope.Scope, scope)
      )
      other.request(1)
      other.end({ _tag: "ClosedByPeer" })
      yield* Scope.close(scope, Exit.void)
      expect(handlers.interrupted).toEqual([1])
    }))

  it.effect("ends without waiting if nothing is in flight", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ dispatch: echo })
      other.request(1, "ping")
      other.end({ _tag: "ClosedByPeer" })
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByPeer" })
    }))
})

describe("a handler that ignores its interruption", () => {
  it.effect("delays the end by at most interruptTimeout, 5 seconds by default, and is logged", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw({
          dispatch: stubborn,
          onNotification: () => Effect.uninterruptible(Effect.never)
        })
        other.request(1, "tools/call")
        other.notify("notifications/stubborn")
        const ended = yield* fork(peer.ended)
        peer.close({ _tag: "ClosedByUs" })
        yield* TestClock.adjust("4999 millis")
        expect([poll(ended), other.closes, lines.length]).toEqual(["running", 0, 0])
        yield* TestClock.adjust("1 millis")
        expect(yield* Fiber.join(ended)).toEqual({ _tag: "ClosedByUs" })
        expect(other.closes).toBe(1)
        expect(lines.map((line) => [line.level, line.text])).toEqual([
          ["Warn", "tools/call did not stop within 5000 ms of its interruption"],
          ["Warn", "notifications/stubborn did not stop within 5000 ms of its interruption"]
        ])
      })
    ))

  it.effect("shares interruptTimeout with the finalizers of the session's scope", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw({ dispatch: stubborn, bounds: { interruptTimeout: 100 } })
        other.request(1)
        yield* Scope.addFinalizer(peer.scope, Effect.never)
        const ended = yield* fork(peer.ended)
        peer.close({ _tag: "ClosedByUs" })
        yield* TestClock.adjust(99)
        expect(poll(ended)).toBe("running")
        yield* TestClock.adjust(1)
        expect(poll(ended)).toBe("succeeded")
        expect(lines.map((line) => line.text)).toEqual([
          "work did not stop within 100 ms of its interruption",
          "a finalizer of the session did not stop within 100 ms of its interruption"
        ])
      })
    ))

  it.effect("sends no response when it ends later, and leaves nothing behind", () =>
    logged(() =>
      Effect.gen(function*() {
        const handlers = new Handlers()
        const { other, peer } = yield* raw({
          dispatch: (exchange) => Effect.uninterruptible(handlers.parked(exchange)),
          bounds: { interruptTimeout: 10 }
        })
        other.request(1)
        peer.close({ _tag: "ClosedByUs" })
        yield* TestClock.adjust(10)
        yield* peer.ended
        expect([...peer.requests]).toHaveLength(1)
        handlers.end(1)
        expect([...peer.requests]).toEqual([])
        expect(other.messages).toEqual([])
      })
    ))

  it.effect("has shutdownTimeout after Ended, and then interruptTimeout", () =>
    logged(() =>
      Effect.gen(function*() {
        const { other, peer } = yield* raw({
          dispatch: stubborn,
          limits: { shutdownTimeout: 30 },
          bounds: { interruptTimeout: 20 }
        })
        other.request(1)
        const ended = yield* fork(peer.ended)
        other.end({ _tag: "ClosedByPeer" })
        yield* TestClock.adjust(49)
        expect(poll(ended)).toBe("running")
        yield* TestClock.adjust(1)
        expect(poll(ended)).toBe("succeeded")
      })
    ))

  it.effect("delays the scope of the peer by at most interruptTimeout", () =>
    logged(() =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const { other } = yield* raw({ dispatch: stubborn, bounds: { interruptTimeout: 20 } }).pipe(
          Effect.provideService(Scope.Scope, scope)
        )
        other.request(1)
        const closing = yield* fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(19)
        expect(poll(closing)).toBe("running")
        yield* TestClock.adjust(1)
        expect(poll(closing)).toBe("succeeded")
      })
    ))
})

describe("a handler that ends its own session", () => {
  it.effect("and does not suspend is answered before the connection is closed", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({
        dispatch: () =>
          Effect.sync(() => {
            peerNow().close({ _tag: "Expired" })
            return { closed: true }
          })
      })
      const peerNow = () => peer
      other.request(1)
      expect(yield* peer.ended).toEqual({ _tag: "Expired" })
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { closed: true } }])
    }))

  it.effect("and suspends afterwards is interrupted, and waited for", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust(0)
      let finalized = false
      const { other, peer } = yield* raw({
        dispatch: () =>
          Effect.suspend(() => {
            peerNow().close({ _tag: "Expired" })
            return Effect.onInterrupt(
              Effect.never,
              () => Effect.andThen(Effect.sleep(10), Effect.sync(() => void (finalized = true)))
            )
          })
      })
      const peerNow = () => peer
      other.request(1)
      const ended = yield* fork(peer.ended)
      expect([...peer.requests].map((exchange) => exchange.cancelled)).toEqual([true])
      expect(poll(ended)).toBe("running")
      yield* TestClock.adjust(10)
      expect(finalized).toBe(true)
      expect(yield* Fiber.join(ended)).toEqual({ _tag: "Expired" })
      expect([...peer.requests]).toEqual([])
      expect(other.messages).toEqual([])
    }))

  it.effect("while it is suspended is interrupted like the others", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({
        dispatch: () =>
          Effect.flatMap(Effect.yieldNow, () => {
            peerNow().close({ _tag: "Expired" })
            return Effect.never
          })
      })
      const peerNow = () => peer
      other.request(1)
      expect(yield* peer.ended).toEqual({ _tag: "Expired" })
      expect([...peer.requests]).toEqual([])
      expect(other.messages).toEqual([])
    }))

  it.effect("of a notification may end the session too, whether it suspends or not", () =>
    Effect.gen(function*() {
      for (const rest of [Effect.void, Effect.never]) {
        const { other, peer } = yield* raw({
          onNotification: (peer) =>
            Effect.suspend(() => {
              peer.close({ _tag: "Expired" })
              return rest
            })
        })
        other.notify("notifications/a")
        expect(yield* peer.ended).toEqual({ _tag: "Expired" })
      }
    }))
})

describe("a peer at its bounds", () => {
  it.effect("receives the end after all messages before it, over an in-memory transport", () =>
    Effect.gen(function*() {
      const handlers = new Handlers()
      const [left, right] = yield* pair({
        right: handlers.parked,
        limits: { maxInFlightRequests: 1, shutdownTimeout: "1 hour" }
      })
      yield* fork(Effect.ignore(left.request("a")))
      yield* fork(Effect.ignore(left.request("b")))
      yield* settle
      left.close({ _tag: "ClosedByUs" })
      yield* left.ended
      yield* settle
      expect(handlers.started).toEqual([1])
      handlers.end(1)
      yield* settle
      expect(handlers.started).toEqual([1, 2])
      handlers.end(2)
      expect(yield* right.ended).toEqual({ _tag: "ClosedByPeer" })
    }))
})

describe("a connection that is over when the peer opens it", () => {
  it.effect("ends the session immediately", () =>
    Effect.gen(function*() {
      const other = new Counterpart()
      const open = other.open.bind(other)
      other.open = (receiver) => {
        open(receiver)
        receiver.end(lost)
      }
      const { peer } = yield* raw({ connection: other })
      expect(yield* peer.ended).toEqual(lost)
      expect(yield* Effect.flip(peer.request("a"))).toMatchObject({ reason: { _tag: "Closed", end: lost } })
    }))
})
