/** Resuming a stream (2025-11-25, transports: resumability and redelivery, polling). */
import { describe, expect, it } from "@effect/vitest"
import * as EventStore from "@skein/server/EventStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { fixedBounds } from "../../../src/internal/base/fixedBounds.ts"
import { MemoryEventStore } from "../../../src/internal/http/limits/eventStore.ts"
import { bounded, type Event } from "../kit.ts"
import { call, type Client, enter, serve, until } from "./kit.ts"

const after = ({ id }: Event) => ({ "last-event-id": id })

describe("event ids", () => {
  it.effect("2025-11-25 · the server SHOULD immediately send an event with an id and empty data, here with retry", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* bounded({ retryDelay: 1_500 })(serve()), "2025-11-25")
      const streams = [yield* client.get(), yield* client.stream(call(1, "steps", { key: "a" }))]
      for (const stream of streams) {
        expect(yield* stream.next).toEqual({ id: expect.any(String), retry: 1500, data: "" })
      }
    }))

  for (const revision of ["2025-03-26", "2025-06-18"]) {
    it.effect(`${revision} · sends no event without data, because clients of that revision read each as JSON`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const client = yield* enter(server, revision)
        const listening = yield* client.get()
        const stream = yield* client.stream(call(1, "steps", { key: "a" }))
        expect((yield* stream.next).json).toMatchObject({ method: "notifications/progress" })
        yield* client.post(call(2, "announce", { times: 1, same: false }))
        expect((yield* listening.next).json).toMatchObject({ method: "notifications/test" })
      }))
  }

  it.effect("2025-11-25 · the ID MUST be globally unique across all streams within that session", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      for (const key of ["a 1", "a 2"]) server.control.open(key)
      const ids: Array<unknown> = []
      for (let n = 0; n < 3; n++) {
        ids.push(...(yield* client.post(call(n, "steps", { key: "a" }))).events.map(({ id }) => id))
      }
      yield* client.post(call(9, "announce", { times: 2, same: false }))
      const listening = yield* client.get()
      for (let n = 0; n < 3; n++) ids.push((yield* listening.next).id)
      expect(ids).toHaveLength(15)
      expect(new Set(ids).size).toBe(15)
    }))
})

const steps = (client: Client) =>
  Effect.gen(function*() {
    const { control } = client.server
    const stream = yield* client.stream(call(1, "steps", { key: "a" }))
    const primed = yield* stream.next
    const first = yield* stream.next
    stream.leave()
    const go = (gate: string) => Effect.sync(() => control.open(`a ${gate}`))
    return { primed, first, go, control }
  })

describe("resumption", () => {
  it.effect("replays the events after the given one, and continues until the response", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      const { control, first, go } = yield* steps(client)
      yield* go("1")
      yield* until(() => control.started.length === 2)
      const resumed = yield* client.get(after(first))
      expect((yield* resumed.next).json).toMatchObject({ params: { progress: 2 } })
      yield* go("2")
      expect((yield* resumed.next).json).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
      expect(yield* resumed.ended).toBe("end")
    }))

  it.effect("2025-11-25 · primes a resumed connection without a missed event: SDK clients forget ids of earlier ones", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      const { first } = yield* steps(client)
      const listening = yield* client.get()
      const standalone = yield* listening.next
      listening.leave()
      for (const event of [first, standalone, first]) {
        const resumed = yield* client.get(after(event))
        expect(yield* resumed.next).toMatchObject({ id: event.id, retry: 1_000, data: "" })
        resumed.leave()
      }
    }))

  it.effect("2025-06-18 · sends no event without data: older clients read each as a message", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-06-18")
      const stream = yield* client.stream(call(1, "steps", { key: "a" }))
      const first = yield* stream.next
      stream.leave()
      const resumed = yield* client.get(after(first))
      client.server.control.open("a 1")
      expect((yield* resumed.next).json.params.progress).toBe(2)
    }))

  it.effect("replays a stream that is complete meanwhile, from any of its events, and from its priming event", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      const { control, first, go, primed } = yield* steps(client)
      yield* go("1")
      yield* go("2")
      yield* until(() => control.started.length === 2)
      const whole = yield* client.read(after(primed))
      expect(whole.messages.map(({ id, params }) => id ?? params.progress)).toEqual([1, 2, 1])
      expect(whole.messages[2].result.content[0].text).toBe("a done")
      const rest = yield* client.read(after(first))
      expect(rest.events).toEqual(whole.events.slice(1))
      // All events were received: "204 No Content" stops the client.
      expect((yield* client.read(after(whole.events[2]!))).status).toBe(204)
    }))

  it.effect("2025-11-25 · MUST NOT replay messages that would have been delivered on a different stream", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const one = yield* client.stream(call("one", "steps", { key: "a" }))
      const two = yield* client.stream(call("two", "steps", { key: "b" }))
      yield* client.post(call(9, "announce", { times: 3, same: false }))
      const primed = yield* one.next
      one.leave()
      for (const key of ["b 1", "b 2", "a 1", "a 2"]) server.control.open(key)
      yield* two.ended
      yield* until(() => server.control.started.length === 4)
      const replayed = yield* client.read(after(primed))
      expect(replayed.messages.map(({ id, params }) => id ?? params.progressToken)).toEqual(["one", "one", "one"])
    }))

  it.effect("never replays the events of another session, for any caller", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const mine = yield* enter(server, "2025-11-25")
      const { first, primed } = yield* steps(mine)
      const other = yield* enter(server, "2025-11-25")
      for (const event of [primed, first]) {
        const refused = yield* other.read(after(event))
        expect([refused.status, refused.json.error.code]).toEqual([400, -32600])
      }
    }))

  it.effect("refuses an invalid or unknown event id with 400, because a 404 would end the session for the client", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      yield* steps(client)
      for (const id of ["nonsense", "1-99", "7-0", "0-5", "-1-1", "1", "1-1-1", "01-1", "9".repeat(40) + "-1"]) {
        const refused = yield* client.read({ "last-event-id": id })
        expect([id, refused.status]).toEqual([id, 400])
        expect(refused.json.error).toMatchObject({ code: -32600, message: expect.stringContaining("Last-Event-ID") })
      }
    }))

  it.effect("continues the GET stream after the given event, with the messages that were sent meanwhile", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const listening = yield* client.get()
      yield* client.post(call(1, "announce", { times: 3, same: false }))
      yield* listening.next
      const first = yield* listening.next
      listening.leave()
      yield* until(() => server.endpoint.streams === 0)
      yield* client.post(call(2, "announce", { times: 4, same: false }))
      const again = yield* client.get(after(first))
      const events = []
      for (let n = 0; n < 6; n++) events.push(yield* again.next)
      expect(events.map(({ json }) => json.params.n)).toEqual([2, 3, 1, 2, 3, 4])
      yield* client.post(call(3, "announce", { times: 1, same: false }))
      expect((yield* again.next).json.params.n).toBe(1)
    }))

  it.effect("replaces a connection that only seems to be alive", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const stale = yield* client.stream(call(1, "steps", { key: "a" }))
      const primed = yield* stale.next
      const resumed = yield* client.get(after(primed))
      expect(yield* stale.ended).toBe("end")
      expect((yield* resumed.next).json.params.progress).toBe(1)
      server.control.open("a 1")
      expect((yield* resumed.next).json.params.progress).toBe(2)
    }))
})

describe("the GET stream, if the log has lost the events after the given one", () => {
  it.effect("continues with new messages", () =>
    Effect.gen(function*() {
      const server = yield* Effect.provideService(
        serve(),
        EventStore.EventStore,
        new MemoryEventStore({ ...fixedBounds, maxEventsPerStream: 1 })
      )
      const client = yield* enter(server, "2025-11-25")
      const listening = yield* client.get()
      const primed = yield* listening.next
      yield* client.post(call(1, "announce", { times: 3, same: false }))
      yield* listening.next
      listening.leave()
      yield* until(() => server.endpoint.streams === 0)
      const again = yield* client.get(after(primed))
      expect(again.status).toBe(200)
      yield* client.post(call(2, "announce", { times: 1, same: true }))
      expect((yield* again.message).params).toEqual({})
    }))
})

describe("polling", () => {
  it.effect("2025-11-25 · MAY close the connection at any time, SHOULD send retry before; the client reconnects for the rest", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const listening = yield* client.get()
      const cut = yield* client.post(call(1, "poll", { key: "a" }))
      expect(cut.events).toEqual([{ id: expect.any(String), retry: 1000, data: "" }, { retry: 250 }])
      const polled = yield* client.get(after(cut.events[0]!))
      expect(polled.status).toBe(200)
      server.control.open("a")
      expect(yield* polled.message).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
      expect(yield* polled.ended).toBe("end")
      yield* client.post(call(2, "announce", { times: 1, same: false }))
      expect((yield* listening.message).params).toEqual({ n: 1 })
    }))

  for (const revision of ["2025-03-26", "2025-06-18"]) {
    it.effect(`${revision} · SHOULD NOT close the stream before the response: it stays open`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const client = yield* enter(server, revision)
        server.control.open("a")
        const whole = yield* client.post(call(1, "poll", { key: "a" }))
        expect(whole.json).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
      }))
  }
})

describe("the event log", () => {
  it.effect("removes a stream some time after it is complete", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      const { control, first, go } = yield* steps(client)
      yield* go("1")
      yield* go("2")
      yield* until(() => control.started.length === 2)
      yield* TestClock.adjust("5 minutes")
      expect((yield* client.read(after(first))).status).toBe(200)
      yield* TestClock.adjust("20 seconds")
      expect((yield* client.read(after(first))).status).toBe(400)
    }))

  it.effect("may be a slow service of the application: messages that are sent meanwhile arrive once", () =>
    Effect.gen(function*() {
      const memory = EventStore.make()
      const read = Latch.makeUnsafe(false)
      let reads = 0
      const slow: EventStore.Store = {
        append: (session, stream, event, data) => memory.append(session, stream, event, data),
        complete: (session, stream) => memory.complete(session, stream),
        forget: (session) => memory.forget(session),
        read: (session, stream, after) =>
          Effect.suspend(() => {
            reads++
            // Read before the wait, so that messages that are sent meanwhile are not included.
            const found = Effect.runSync(memory.read(session, stream, after))
            return Effect.as(read.await, found)
          })
      }
      const server = yield* Effect.provide(serve(), Layer.succeed(EventStore.EventStore, slow))
      const client = yield* enter(server, "2025-11-25")
      const { control, go, primed } = yield* steps(client)
      const resuming = yield* Effect.forkChild(client.read(after(primed)))
      yield* until(() => reads === 1)
      yield* go("1")
      yield* go("2")
      yield* until(() => control.started.length === 2)
      yield* client.post(call(5, "echo", { text: "x" }))
      read.openUnsafe()
      const replayed = yield* Fiber.join(resuming)
      expect(replayed.messages.map(({ id, params }) => id ?? params.progress)).toEqual([1, 2, 1])
    }))
})
