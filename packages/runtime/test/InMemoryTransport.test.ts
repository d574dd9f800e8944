import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Connection from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { Bounds, fixedBounds } from "../src/internal/base/fixedBounds.ts"
import { pair, poll, settle } from "./kit.ts"

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** Opens a side and records the messages that it receives. */
const listen = (connection: Connection.Connection) => {
  const received: Array<JsonRpc.Inbound> = []
  const ends: Array<Connection.End> = []
  connection.open({ message: (message) => received.push(message), end: (end) => ends.push(end) })
  return { received, ends }
}

/** Makes a transport whose `send` returns `false` from this many messages on. */
const withMark = <A, E, R>(highWaterMark: number, make: Effect.Effect<A, E, R>) =>
  Effect.provideService(make, Bounds, { ...fixedBounds, highWaterMark })

const note = (n: number) => JsonRpc.notification("n", { n })
const numbers = (messages: ReadonlyArray<JsonRpc.Inbound>) =>
  messages.map((message) => message._tag === "Notification" ? message.params?.["n"] : message._tag)

describe("InMemoryTransport.make", () => {
  it.effect("delivers in order, in both directions, and never inside send", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make()
      const left = listen(a)
      const right = listen(b)
      for (let n = 0; n < 5; n++) {
        expect(a.send(note(n))).toBe(true)
        expect(b.send(note(n + 10))).toBe(true)
      }
      expect([left.received, right.received]).toEqual([[], []])
      yield* settle
      expect(numbers(right.received)).toEqual([0, 1, 2, 3, 4])
      expect(numbers(left.received)).toEqual([10, 11, 12, 13, 14])
    }))

  it.effect("encodes messages: drops undefined members, writes dates as text, delivers batches as one message", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make()
      const right = listen(b)
      a.send(JsonRpc.success(1, { gone: undefined, at: new Date(0) }))
      a.send(JsonRpc.success(2, new JsonRpc.Encoded(`{"raw":true}`)))
      a.send({ _tag: "Batch", members: [JsonRpc.success(3, {}), JsonRpc.failure(4, { code: 1, message: "x" })] })
      yield* settle
      expect(right.received).toEqual([
        { _tag: "Success", id: 1, result: { at: "1970-01-01T00:00:00.000Z" } },
        { _tag: "Success", id: 2, result: { raw: true } },
        {
          _tag: "Batch",
          members: [{ _tag: "Success", id: 3, result: {} }, {
            _tag: "Failure",
            id: 4,
            error: { code: 1, message: "x" }
          }]
        }
      ])
    }))

  it.effect("passes the principal to the second side only", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make({ principal: { id: "ada" } })
      const origins: Array<Connection.Origin | undefined> = []
      const open = (side: Connection.Connection): void =>
        side.open({ message: (_, origin) => void origins.push(origin), end: () => {} })
      open(a)
      open(b)
      a.send(note(1))
      yield* settle
      b.send(note(2))
      yield* settle
      expect(origins).toEqual([{ principal: { id: "ada" } }, undefined])
    }))

  it.effect("throws the errors of encode, and then sends nothing", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make()
      const right = listen(b)
      expect(() => a.send(JsonRpc.notification("n", { big: 1n }))).toThrow(TypeError)
      a.send(note(1))
      yield* settle
      expect(numbers(right.received)).toEqual([1])
    }))

  it.effect("delivers messages that arrived before open", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make()
      a.send(note(1))
      yield* settle
      const right = listen(b)
      yield* settle
      expect(numbers(right.received)).toEqual([1])
    }))

  it.effect("returns false at highWaterMark, accepts the message, and drained waits until the peer reads", () =>
    Effect.gen(function*() {
      const [a, b] = yield* withMark(2, InMemoryTransport.make())
      expect([a.send(note(1)), a.send(note(2)), a.send(note(3))]).toEqual([true, false, false])
      const first = yield* fork(a.drained)
      const second = yield* fork(a.drained)
      yield* settle
      expect([poll(first), poll(second)]).toEqual(["running", "running"])
      yield* Fiber.interrupt(first)
      const right = listen(b)
      yield* settle
      expect(poll(second)).toBe("succeeded")
      expect(numbers(right.received)).toEqual([1, 2, 3])
      yield* a.drained
    }))

  it.effect("has a highWaterMark of 1,024", () =>
    Effect.gen(function*() {
      const [a] = yield* InMemoryTransport.make()
      for (let n = 1; n < 1024; n++) expect(a.send(note(n))).toBe(true)
      expect(a.send(note(1024))).toBe(false)
    }))

  it.effect("reports Ended to the peer after all messages, and Closed to this side, once each", () =>
    Effect.gen(function*() {
      const [a, b] = yield* InMemoryTransport.make()
      const left = listen(a)
      const right = listen(b)
      a.send(note(1))
      b.send(note(2))
      yield* a.close
      yield* a.close
      yield* b.close
      yield* settle
      expect(numbers(right.received)).toEqual([1])
      expect(right.ends).toEqual([{ _tag: "ClosedByPeer" }])
      expect(left.received).toEqual([])
      expect(left.ends).toEqual([{ _tag: "ClosedByUs" }])
      expect([a.send(note(3)), b.send(note(4))]).toEqual([true, true])
      yield* settle
      expect([left.received.length, right.received.length]).toEqual([0, 1])
    }))

  it.effect("resumes drained when either side closes", () =>
    Effect.gen(function*() {
      for (const closer of [0, 1] as const) {
        const link = yield* withMark(1, InMemoryTransport.make())
        const [a] = link
        a.send(note(1))
        const waiting = yield* fork(a.drained)
        expect(poll(waiting)).toBe("running")
        yield* link[closer].close
        yield* settle
        expect(poll(waiting)).toBe("succeeded")
      }
    }))

  it.effect("resumes drained when a side closes that was never opened", () =>
    Effect.gen(function*() {
      const [a, b] = yield* withMark(1, InMemoryTransport.make())
      a.send(note(1))
      const waiting = yield* fork(a.drained)
      yield* b.close
      yield* settle
      expect(poll(waiting)).toBe("succeeded")
    }))

  it.effect("closes both sides with the scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const [a, b] = yield* InMemoryTransport.make().pipe(Effect.provideService(Scope.Scope, scope))
      const left = listen(a)
      const right = listen(b)
      yield* Scope.close(scope, Exit.void)
      yield* settle
      expect([left.ends, right.ends]).toEqual([[{ _tag: "ClosedByUs" }], [{ _tag: "ClosedByPeer" }]])
    }))

  it.live("does not starve timers while both sides send continuously", () =>
    Effect.gen(function*() {
      const [left] = yield* pair()
      let stop = false
      let calls = 0
      const timer = setTimeout(() => {
        stop = true
      }, 1)
      yield* Effect.whileLoop({
        while: () => !stop && calls < 500_000,
        body: () => left.request("ping"),
        step: () => {
          calls++
        }
      })
      clearTimeout(timer)
      expect(stop).toBe(true)
    }))
})

describe("InMemoryTransport.transport", () => {
  it.effect("makes a separate pair for each connection, and closes it together with its server", () =>
    Effect.gen(function*() {
      const served: Array<ReturnType<typeof listen>> = []
      const log: Array<string> = []
      const { connect } = InMemoryTransport.transport((connection) =>
        Effect.acquireRelease(
          Effect.sync(() => served.push(listen(connection))),
          () => Effect.sync(() => log.push("released"))
        )
      )
      const first = yield* Scope.make()
      const one = yield* Scope.provide(connect, first)
      const two = yield* connect
      one.send(note(1))
      two.send(note(2))
      yield* settle
      expect(served.map(({ received }) => numbers(received))).toEqual([[1], [2]])

      yield* Scope.close(first, Exit.void)
      yield* settle
      expect(log).toEqual(["released"])
      two.send(note(3))
      yield* settle
      expect(served.map(({ ends }) => ends.length)).toEqual([1, 0])
      expect(numbers(served[1]!.received)).toEqual([2, 3])
    }))

  it.effect("returns false at highWaterMark", () =>
    Effect.gen(function*() {
      const connection = yield* withMark(2, InMemoryTransport.transport(() => Effect.void).connect)
      expect([connection.send(note(1)), connection.send(note(2))]).toEqual([true, false])
    }))
})
