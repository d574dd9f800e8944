/** Clients that do not read, and the stored events for clients that reconnect. */
import { describe, expect, it } from "@effect/vitest"
import * as EventStore from "@skein/server/EventStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { fixedBounds } from "../../../src/internal/base/fixedBounds.ts"
import { MemoryEventStore } from "../../../src/internal/http/limits/eventStore.ts"
import { bounded } from "../kit.ts"
import { call, enter, serve, until } from "./kit.ts"

describe("a client that does not read", () => {
  it.effect("slows only its own handler", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const slow = yield* client.stream(call(1, "flood", { times: 400, waits: true }))
      slow.pause()
      server.control.open("flood")
      yield* client.post(call(2, "echo", { text: "still here" }))
      let stuck = -1
      yield* until(() => {
        // It stops when the sockets' own buffers are full.
        const same = stuck === server.control.flooded
        stuck = server.control.flooded
        return same && stuck > 0
      })
      expect((yield* client.post(call(3, "echo", { text: "still here" }))).status).toBe(200)
      expect(server.control.flooded).toBeLessThan(400)
      slow.resume()
      yield* slow.ended
      expect(slow.waiting().at(-1)!.json).toMatchObject({ id: 1, result: { content: [{ text: "flooded" }] } })
      expect(server.control.flooded).toBe(400)
    }))

  it.effect(
    "disconnects the client beyond the bound of unsent messages, and sends the rest when it reconnects",
    () =>
      Effect.gen(function*() {
        const bounds = { maxEventCharsPerSession: 64 * 1024 * 1024, maxUnsentChars: 256 * 1024 }
        const server = yield* bounded(bounds)(serve())
        const client = yield* enter(server, "2025-11-25")
        const slow = yield* client.stream(call(1, "flood", { times: 400, waits: false }))
        const primed = yield* slow.next
        slow.pause()
        server.control.open("flood")
        yield* until(() => server.control.flooded === 400)
        slow.resume()
        expect(yield* slow.ended).toBe("cut")
        const rest = yield* client.read({ "last-event-id": primed.id })
        expect(rest.messages).toHaveLength(402)
        expect(rest.messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: "flooded" }] } })
      }),
    120_000
  )
})

describe("the event log in memory", () => {
  const read = (log: EventStore.Store, session: string, stream: number, after: number) =>
    Effect.runSync(log.read(session, stream, after))

  const fill = (log: EventStore.Store, session: string, stream: number, count: number, data = "0123456789") => {
    for (let event = 1; event <= count; event++) log.append(session, stream, event, data)
  }

  it("retains the last events of a stream", () => {
    const log = new MemoryEventStore({ ...fixedBounds, maxEventsPerStream: 3 })
    fill(log, "a", 1, 5)
    expect(read(log, "a", 1, 2)).toHaveLength(3)
    expect(read(log, "a", 1, 5)).toEqual([])
    expect(read(log, "a", 1, 1)).toBeUndefined()
    expect(read(log, "a", 1, 6)).toBeUndefined()
    const none = new MemoryEventStore({ ...fixedBounds, maxEventsPerStream: 0 })
    fill(none, "a", 1, 2)
    expect(read(none, "a", 1, 1)).toBeUndefined()
  })

  it("bounds the characters of a session, and evicts events of incomplete streams last", () => {
    const log = new MemoryEventStore({ ...fixedBounds, maxEventCharsPerSession: 50 })
    fill(log, "a", 1, 2)
    fill(log, "a", 2, 2)
    fill(log, "b", 1, 5)
    log.complete("a", 2)
    log.append("a", 1, 3, "0123456789")
    log.append("a", 1, 4, "0123456789")
    expect(read(log, "a", 2, 0)).toBeUndefined()
    expect(read(log, "a", 2, 1)).toHaveLength(1)
    expect(read(log, "a", 1, 0)).toHaveLength(4)
    expect(read(log, "b", 1, 0)).toHaveLength(5)
    // An event that is too large is not stored, and the events before it can no longer be replayed.
    log.append("b", 1, 6, "x".repeat(51))
    log.append("b", 1, 7, "y")
    expect(read(log, "b", 1, 5)).toBeUndefined()
    expect(read(log, "b", 1, 6)).toEqual(["y"])
  })

  it("bounds the characters of all sessions", () => {
    const log = new MemoryEventStore({ ...fixedBounds, maxEventChars: 100 })
    for (const session of ["a", "b", "c"]) fill(log, session, 1, 4)
    expect(read(log, "a", 1, 1)).toBeUndefined()
    expect(read(log, "a", 1, 2)).toHaveLength(2)
    expect(read(log, "b", 1, 0)).toHaveLength(4)
    log.complete("b", 1)
    log.append("d", 1, 1, "0123456789")
    expect(read(log, "b", 1, 0)).toBeUndefined()
    expect(read(log, "c", 1, 0)).toHaveLength(4)
  })

  it("removes the events of a closed session, and of streams that completed long enough ago", () => {
    const log = new MemoryEventStore({ ...fixedBounds, eventLifetime: 5_000 })
    fill(log, "a", 1, 2)
    fill(log, "b", 1, 2)
    log.forget("a")
    expect(read(log, "a", 1, 0)).toBeUndefined()
    expect(log.sweep(0)).toBe(false)
    log.complete("b", 1)
    expect(log.sweep(1_000)).toBe(true)
    expect(log.sweep(5_999)).toBe(true)
    expect(read(log, "b", 1, 0)).toHaveLength(2)
    expect(log.sweep(6_000)).toBe(false)
    expect(read(log, "b", 1, 0)).toBeUndefined()
  })

  it.effect("removes the events of a session when it is closed", () =>
    Effect.gen(function*() {
      const memory = EventStore.make()
      const sessions: Array<string> = []
      const log: EventStore.Store = {
        append: (session, stream, event, data) => {
          sessions.push(session)
          memory.append(session, stream, event, data)
        },
        complete: (session, stream) => memory.complete(session, stream),
        forget: (session) => memory.forget(session),
        read: (session, stream, after) => memory.read(session, stream, after)
      }
      const server = yield* Effect.provide(serve(), Layer.succeed(EventStore.EventStore, log))
      const client = yield* enter(server, "2025-11-25")
      yield* client.post(call(0, "echo", { text: "x" }))
      expect(sessions).toEqual([])
      const stream = yield* client.stream(call(1, "steps", { key: "a" }))
      yield* stream.message
      expect(sessions).toEqual([client.id])
      expect(read(memory, client.id, 1, 0)).toHaveLength(1)
      yield* client.delete()
      yield* stream.ended
      yield* until(() => read(memory, client.id, 1, 0) === undefined)
    }))
})

describe("a single large message", () => {
  it.effect("does not treat a single large message as a client that does not read", () =>
    Effect.gen(function*() {
      const server = yield* bounded({ maxUnsentChars: 1000 })(serve())
      const client = yield* enter(server, "2025-11-25")
      server.control.open("flood")
      const whole = yield* client.post(call(1, "flood", { times: 3, waits: true }))
      expect(whole.messages).toHaveLength(5)
    }))
})
