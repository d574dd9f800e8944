/** Resumption of a stream (2025-11-25, transports: resumability and redelivery, polling). */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import type * as Http from "../../src/Http.ts"
import { answer, entered, type Exchange, type Json, note, settle, until } from "./support/connection.ts"
import type { FixedBounds } from "./support/changedBounds.ts"

/**
 * Makes a call. `first` responds to it with a stream, and `resumed` responds to each resumption. `n` counts the
 * resumptions from 1.
 */
const polled = (
  first: (hit: Exchange) => void,
  resumed: (hit: Exchange, n: number) => void,
  resumption?: Http.Resumption,
  bounds?: Partial<FixedBounds>
) =>
  Effect.gen(function*() {
    let resumes = 0
    const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
      if (hit.method === "GET") return resumed(hit, ++resumes)
      return hit.json.method === "tools/call" ? first(hit) : hit.respond(202)
    }))
    const side = yield* entered({ url: server.url, resumption }, { minRetry: 0, ...bounds })
    side.request(1, "tools/call", { name: "x" })
    yield* until(() => server.exchanges.some(({ json }) => json?.method === "tools/call"))
    yield* settle
    return { ...side, server, gets: () => server.byMethod("GET").filter(({ headers }) => "last-event-id" in headers) }
  })

const primed = (retry?: number) => `id: e0\n${retry === undefined ? "" : `retry: ${retry}\n`}data:\n\n`

/** Advances the clock in steps, with turns of the event loop for the sockets in between. */
const run = (steps: number, step: number) =>
  Effect.gen(function*() {
    for (let n = 0; n < steps; n++) {
      yield* TestClock.adjust(step)
      yield* settle
    }
  })

describe("a stream that ends without its response", () => {
  for (const broken of [false, true]) {
    it.effect(`2025-11-25 · MUST respect the retry field, to the millisecond, after a ${broken ? "broken" : "closed"} connection`, () =>
      Effect.gen(function*() {
        const { gets, received } = yield* polled(
          (hit) =>
            broken
              ? void hit.openStream(primed(1_234)).response.write("da", () => hit.cut())
              : hit.openStream(primed(1_234)).end(),
          (hit) => hit.openStream().end(ScriptedHttpServer.event(answer(1, { ok: true }), "e1"))
        )
        yield* TestClock.adjust(1_233)
        yield* settle
        expect(gets().length).toBe(0)
        yield* TestClock.adjust(1)
        yield* until(() => received.answer(1) !== undefined)
        expect(gets().map(({ headers }) => headers)).toMatchObject([{
          "last-event-id": "e0",
          accept: "text/event-stream",
          "mcp-session-id": "s-1",
          "mcp-protocol-version": "2025-11-25"
        }])
        expect(received.answer(1).result).toEqual({ ok: true })
        yield* settle
        yield* TestClock.adjust("1 hour")
        yield* settle
        expect([gets().length, received.refusals]).toEqual([1, []])
      }))
  }

  it.effect("2025-11-25 · sends the id of the last event as Last-Event-ID, also of events without data, and the stream continues", () =>
    Effect.gen(function*() {
      const { gets, received } = yield* polled(
        (hit) =>
          hit.openStream(`${primed(0)}${ScriptedHttpServer.event(note(1), "e1")}id: e2\n\n`).end(
            "id: never dispatched\ndata: x"
          ),
        (hit, n) =>
          n === 1
            ? hit.openStream(ScriptedHttpServer.event(note(2), "e3")).end()
            : hit.openStream().end(ScriptedHttpServer.event(answer(1)))
      )
      yield* run(3, 1)
      yield* until(() => received.answer(1) !== undefined)
      expect(gets().map(({ headers }) => headers["last-event-id"])).toEqual(["e2", "e3"])
      expect(received.messages.slice(1, 3).map(({ params }) => params.n)).toEqual([1, 2])
    }))

  it.effect("grows the delay up to maxDelay without a retry field, less a random part of up to one half", () =>
    Effect.gen(function*() {
      const delays: Array<number> = []
      const { gets } = yield* polled((hit) => hit.openStream(primed()).end(), (hit) => hit.respond(503), {
        initialDelay: "100 millis",
        factor: 3,
        maxDelay: "1 second"
      }).pipe(Random.withSeed("delays"))
      let seen = 0
      let waited = 0
      for (let n = 0; n < 500 && seen < 5; n++) {
        yield* TestClock.adjust(10)
        waited += 10
        yield* until(() => gets().length > seen, 20).pipe(Effect.exit)
        if (gets().length > seen) {
          delays.push(waited)
          seen = gets().length
          waited = 0
          yield* settle
        }
      }
      const bounds = [100, 300, 900, 1_000, 1_000]
      expect(delays.length).toBe(5)
      delays.forEach((delay, n) => {
        expect(delay).toBeGreaterThanOrEqual(bounds[n]! / 2)
        expect(delay).toBeLessThanOrEqual(bounds[n]! + 20)
      })
    }))

  for (const [retry, wait] of [["0", 100], ["1000000000000000", 300_000], ["9".repeat(400), 300_000]] as const) {
    it.effect(`waits ${wait} ms for a retry field of ${retry.slice(0, 16)} (minRetry, maxRetry)`, () =>
      Effect.gen(function*() {
        const first = `id: e0\nretry: ${retry}\ndata:\n\n`
        let count = 0
        const { gets } = yield* polled(
          (hit) => hit.openStream(first).end(),
          // Each stream has an event, so that no attempt is counted as one without an event.
          (hit) => hit.openStream(`id: n${++count}\ndata:\n\n`).end(),
          {},
          { minRetry: 100 }
        )
        for (let n = 1; n <= 3; n++) {
          yield* TestClock.adjust(wait - 1)
          yield* settle
          expect(gets()).toHaveLength(n - 1)
          yield* TestClock.adjust(1)
          yield* until(() => gets().length === n)
          yield* settle
        }
      }))
  }

  it.effect("waits at least the retry time after a failed attempt", () =>
    Effect.gen(function*() {
      const { gets } = yield* polled((hit) => hit.openStream(primed(5_000)).end(), (hit) => hit.cut())
      yield* TestClock.adjust(5_000)
      yield* until(() => gets().length === 1)
      yield* settle
      yield* TestClock.adjust(4_999)
      yield* settle
      expect(gets().length).toBe(1)
      yield* TestClock.adjust(1)
      yield* until(() => gets().length === 2)
    }))

  it.effect("maxAttempts: counts reconnects without an event, including those that end without an error", () =>
    Effect.gen(function*() {
      const { gets, received } = yield* polled(
        (hit) => hit.openStream(primed(10)).end(),
        (hit, n) => n % 2 === 0 ? hit.openStream(":\n\n").end() : hit.respond(502),
        { maxAttempts: 6, initialDelay: 10, maxDelay: 10 }
      )
      yield* run(20, 10)
      expect(gets().length).toBe(6)
      expect(received.error(1)).toMatchObject({
        reason: { _tag: "ConnectionLost" },
        message: expect.stringContaining("maxAttempts")
      })
      expect(received.ends).toEqual([])
    }))

  it.effect("maxAttempts: an event resets the count; maxReconnects bounds reconnects with events but without a message", () =>
    Effect.gen(function*() {
      const { gets, received } = yield* polled(
        (hit) => hit.openStream(primed(1)).end(),
        (hit, n) => hit.openStream(`id: p${n}\ndata:\n\n`).end(),
        { maxAttempts: 2 },
        { maxReconnects: 7 }
      )
      yield* run(12, 1)
      expect(gets().length).toBe(7)
      expect(received.error(1)).toMatchObject({
        reason: { _tag: "ConnectionLost" },
        message: expect.stringContaining("brought no message")
      })
    }))

  it.effect("fails after 10 attempts without an event by default", () =>
    Effect.gen(function*() {
      const { gets, received } = yield* polled((hit) => hit.openStream(primed()).end(), (hit) => hit.openStream().end())
      yield* run(15, 30_000)
      expect([gets().length, received.refusals.length]).toEqual([10, 1])
    }))

  it.effect("stableAfter: resets the counts after a stream that was open for that long", () =>
    Effect.gen(function*() {
      const { gets, received } = yield* polled(
        (hit) => hit.openStream(primed(10)).end(),
        (hit, n) => {
          hit.openStream(":\n\n")
          if (n !== 3) hit.end()
        },
        { maxAttempts: 3 },
        { stableAfter: 20_000 }
      )
      yield* run(3, 10)
      expect(gets().length).toBe(3)
      yield* TestClock.adjust("20 seconds")
      gets()[2]!.end()
      yield* settle
      yield* run(6, 10)
      expect([gets().length, received.refusals.length]).toEqual([6, 1])
    }))

  it.effect("drops a redelivered event, for the last maxEventIds ids", () =>
    Effect.gen(function*() {
      const five = [1, 2, 3, 4, 5].map((n) => ScriptedHttpServer.event(note(n), `n${n}`)).join("")
      const { received } = yield* polled(
        (hit) => hit.openStream(`${primed(1)}${five}`).end(),
        (hit) =>
          hit.openStream(`${five}${ScriptedHttpServer.event(note(6), "n6")}`).end(
            ScriptedHttpServer.event(answer(1), "n7")
          ),
        {},
        { maxEventIds: 4 }
      )
      yield* TestClock.adjust(1)
      yield* until(() => received.answer(1) !== undefined)
      const numbers = received.messages.flatMap((message) => message._tag === "Notification" ? [message.params.n] : [])
      expect(numbers).toEqual([1, 2, 3, 4, 5, 1, 6])
    }))

  const dead: ReadonlyArray<readonly [string, string]> = [
    ["has no ids", ScriptedHttpServer.event(note(1))],
    ["resets its last event id with an empty id", `${primed(1)}${ScriptedHttpServer.event(note(1), "")}`],
    ["has ids that are invalid in a header", `${primed(1)}${ScriptedHttpServer.event(note(1), "ä")}`],
    ["has ids that are too long", `${primed(1)}${ScriptedHttpServer.event(note(1), "x".repeat(5_000))}`]
  ]
  for (const [what, text] of dead) {
    it.effect(`fails its call at once if it ${what}`, () =>
      Effect.gen(function*() {
        const { gets, received } = yield* polled((hit) => hit.openStream(text).end(), (hit) => hit.respond(500))
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({ reason: { _tag: "ConnectionLost" } })
        yield* TestClock.adjust("1 hour")
        yield* settle
        expect(gets()).toEqual([])
      }))
  }

  for (const status of [204, 400, 405, 200]) {
    it.effect(`fails its call if its resumption gets ${status}`, () =>
      Effect.gen(function*() {
        const { gets, received } = yield* polled((hit) => hit.openStream(primed(1)).end(), (hit) => hit.respond(status))
        yield* TestClock.adjust(1)
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({
          reason: { _tag: "ConnectionLost" },
          status,
          message: expect.stringContaining("resumed")
        })
        expect([received.ends, gets().length]).toEqual([[], 1])
      }))
  }

  it.effect("2025-11-25 · 404 to its resumption ends the session: the call is lost, and may have run", () =>
    Effect.gen(function*() {
      const { received } = yield* polled((hit) => hit.openStream(primed(1)).end(), (hit) => hit.respond(404))
      yield* TestClock.adjust(1)
      yield* until(() => received.ends.length === 1)
      expect(received.error(1)).toMatchObject({ reason: { _tag: "ConnectionLost" }, status: 404 })
      expect(received.error(1)!.undelivered).toBeUndefined()
      expect(received.ends[0]).toMatchObject({ _tag: "Lost" })
    }))

  it.effect("is not resumed after its call is cancelled", () =>
    Effect.gen(function*() {
      const { gets, notify, server } = yield* polled((hit) => hit.openStream(primed(1_000)).end(), (hit) =>
        hit.respond(500))
      notify("notifications/cancelled", { requestId: 1 })
      yield* until(() =>
        server.exchanges.some(({ json }) => json?.method === "notifications/cancelled")
      )
      yield* TestClock.adjust("1 hour")
      yield* settle
      expect(gets()).toEqual([])
    }))

  it.effect("is closed two seconds after the response if it stays open, and keeps its socket if it ends", () =>
    Effect.gen(function*() {
      const { server, received } = yield* polled(
        (hit) => void hit.openStream(ScriptedHttpServer.event(answer(1))),
        (hit) => hit.respond(500)
      )
      yield* until(() => received.answer(1) !== undefined)
      const call = server.exchanges.find(({ json }) => json?.method === "tools/call")!
      yield* settle
      expect(call.closedByClient).toBe(false)
      yield* TestClock.adjust("2 seconds")
      yield* until(() => call.closedByClient)
      expect(received.refusals).toEqual([])
    }))

  it.effect("may deliver the response on another stream", () =>
    Effect.gen(function*() {
      const { gets, request, server, received } = yield* polled((hit) => {
        if (hit.json.id === 1) hit.openStream(primed(1_000)).end()
        else hit.openStream().end(ScriptedHttpServer.event(answer(2)) + ScriptedHttpServer.event(answer(1)))
      }, (hit) => hit.respond(500))
      request(2, "tools/call", { name: "x" })
      yield* until(() => received.answer(1) !== undefined && received.answer(2) !== undefined)
      yield* TestClock.adjust("1 hour")
      yield* settle
      expect([received.refusals, gets().length, server.byMethod("GET").length]).toEqual([[], 1, 2])
    }))
})
