/** The messages of a node: their order, receipts and bounds, without a database. */
import { describe, expect, it } from "@effect/vitest"
import { Fleet, FleetError } from "@skein/server/Fleet"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import type { Backend, Outgoing } from "../src/internal/node/backend.ts"
import { type Content, decode, encode } from "../src/internal/node/envelope.ts"
import { makeNode } from "../src/internal/node/node.ts"
import { Outbox } from "../src/internal/node/outbox.ts"
import { Receipts } from "../src/internal/node/receipts.ts"
import { Arrivals, SentMessages } from "../src/internal/node/resending.ts"

const down = new FleetError({ message: "down" })
const content = (text: string): Content => ({ _tag: "Session", message: { _tag: "Received", id: "x", text } })

describe("receipts", () => {
  it.effect("waits until all nodes that have the session have received a change, and this one", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      const stored = yield* Effect.forkChild(receipts.await(true, () => Effect.succeed([2, 3])), {
        startImmediately: true
      })
      for (const node of [3, 1, 4]) receipts.receive(1, node)
      yield* TestClock.adjust("900 millis")
      expect(stored.pollUnsafe()).toBeUndefined()
      receipts.receive(1, 2)
      expect([yield* Fiber.join(stored), receipts.size]).toEqual([true, 0])
    }))

  it.effect("counts receipts that arrive before the nodes are known", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      yield* receipts.await(true, (change) =>
        Effect.sync(() => {
          for (const node of [1, 2]) receipts.receive(change, node)
          return [2]
        }))
      receipts.receive(1, 2)
    }))

  it.effect("does not wait for longer than 1 second for a node that does not confirm", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      const stored = yield* Effect.forkChild(receipts.await(true, () => Effect.succeed([2])), {
        startImmediately: true
      })
      receipts.receive(1, 1)
      yield* TestClock.adjust("999 millis")
      expect(stored.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect(yield* Fiber.join(stored)).toBe(false)
    }))

  it.effect("does not wait for this node if its change is not sent back to it", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      expect(yield* receipts.await(false, () => Effect.succeed([]))).toBe(true)
      const stored = yield* Effect.forkChild(receipts.await(false, () => Effect.succeed([2])), {
        startImmediately: true
      })
      receipts.gap()
      expect(stored.pollUnsafe()).toBeUndefined()
      receipts.receive(2, 2)
      expect([yield* Fiber.join(stored), receipts.size]).toEqual([true, 0])
    }))

  it.effect("fails if this node does not receive its own change", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      const stored = yield* Effect.forkChild(Effect.flip(receipts.await(true, () => Effect.succeed([]))), {
        startImmediately: true
      })
      yield* TestClock.adjust("5 seconds")
      expect((yield* Fiber.join(stored)).message).toBe("this node has not received its own change within 5000 ms")
      expect(receipts.size).toBe(0)
    }))

  it.effect("fails when this node loses messages", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      const stored = yield* Effect.forkChild(Effect.flip(receipts.await(true, () => Effect.succeed([]))), {
        startImmediately: true
      })
      receipts.gap()
      expect((yield* Fiber.join(stored)).message).toContain("was lost during a change")
    }))

  it.effect("fails with the error of the database", () =>
    Effect.gen(function*() {
      const receipts = new Receipts(1)
      expect(yield* Effect.flip(receipts.await(true, () => Effect.fail(down)))).toBe(down)
      expect(receipts.size).toBe(0)
    }))
})

describe("the members", () => {
  it.effect("are known from the messages of nodes that join and leave, without a query", () =>
    Effect.gen(function*() {
      let renewals = 0
      let isSlow = false
      let receive: (text: string) => void = () => {}
      const backend: Backend = {
        node: 1,
        key: "key",
        create: () => Effect.succeed(true),
        find: () => Effect.undefined,
        change: () => Effect.succeed([]),
        end: () => Effect.succeed([]),
        touch: () => Effect.void,
        send: () => Effect.void,
        receive: (onText) => Effect.sync(() => void (receive = onText)),
        renew: Effect.suspend(() => {
          renewals++
          return Effect.delay(Effect.succeed({ nodes: [1, 2], wasLost: false }), isSlow ? 1_000 : 0)
        }),
        leave: Effect.void,
        clean: () => Effect.succeed([])
      }
      const fleet = Context.get(yield* makeNode(backend, 30_000), Fleet)
      const says = (from: number, isServing: boolean) =>
        receive(encode({ from, content: { _tag: "Members", isServing } }))
      for (let from = 3; from <= 100; from++) says(from, true)
      says(2, false)
      yield* TestClock.adjust(1_000)
      expect([2, 3, 100, 101].map((node) => fleet.isServing(node))).toEqual([false, true, true, false])
      expect(renewals).toBe(1)
      isSlow = true
      yield* TestClock.adjust(9_500)
      // The query that runs may have read the nodes before.
      says(101, true)
      yield* TestClock.adjust(500)
      expect(renewals).toBe(3)
      yield* TestClock.adjust(1_000)
      // A node that is unknown may have joined a moment ago. One query answers all who ask while another one runs.
      const asked = yield* Effect.forkChild(
        Effect.forEach([2, 200, 201, 202], fleet.hasGone, { concurrency: "unbounded" })
      )
      yield* TestClock.adjust(2_000)
      expect(yield* Fiber.join(asked)).toEqual([false, true, true, true])
      expect(renewals).toBe(5)
    }))
})

describe("the outbox", () => {
  /** An outbox that sends to a list, while `isDown` is false. */
  const make = () => {
    const sent: Array<Outgoing> = []
    const state = { isDown: false, attempts: 0, now: 0 }
    const send = (messages: ReadonlyArray<Outgoing>) =>
      Effect.suspend(() => {
        state.attempts++
        if (state.isDown) return Effect.fail(down)
        sent.push(...messages)
        return Effect.void
      })
    const texts = () =>
      sent.map(({ text }) => {
        const message = decode(text)!.content
        return message._tag === "Session" && message.message._tag === "Received" ? message.message.text : message._tag
      })
    return { outbox: new Outbox(1, send, () => state.now), sent, state, texts }
  }

  it.effect("sends messages in order, and again until the database takes them", () =>
    Effect.gen(function*() {
      const { outbox, state, texts } = make()
      yield* Effect.forkChild(outbox.run, { startImmediately: true })
      state.isDown = true
      for (const text of ["a", "b"]) outbox.add(undefined, content(text))
      const flushed = yield* Effect.forkChild(outbox.flushed, { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      expect([flushed.pollUnsafe(), texts()]).toEqual([undefined, []])
      expect(state.attempts).toBeGreaterThan(50)
      outbox.add(2, content("c"))
      state.isDown = false
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(flushed)
      expect(texts()).toEqual(["a", "b", "c"])
      yield* outbox.flushed
    }))

  it.effect("loses the messages beyond 16 Mi characters", () =>
    Effect.gen(function*() {
      const { outbox, texts } = make()
      const text = "x".repeat(1024 * 1024)
      for (let n = 0; n < 20; n++) outbox.add(undefined, content(text))
      yield* outbox.flush
      expect(texts()).toHaveLength(15)
      outbox.add(undefined, content("later"))
      yield* outbox.flush
      expect(texts().at(-1)).toBe("later")
    }))

  it.effect("joins the receipts for one node, and keeps the messages of an interrupted attempt", () =>
    Effect.gen(function*() {
      const { outbox, sent, state, texts } = make()
      outbox.confirm(3, 7)
      outbox.confirm(3, 8)
      yield* outbox.flush
      expect(sent).toEqual([{ to: 3, text: encode({ from: 1, content: { _tag: "Confirmed", changes: [7, 8] } }) }])
      state.isDown = true
      outbox.add(2, content("a"))
      const interrupted = yield* Effect.forkChild(outbox.flush, { startImmediately: true })
      yield* Fiber.interrupt(interrupted)
      state.isDown = false
      yield* outbox.flush
      expect(texts()).toEqual(["Confirmed", "a"])
    }))

  it.effect("sends a node again what it has missed within a minute", () =>
    Effect.gen(function*() {
      const { outbox, state, texts } = make()
      outbox.add(2, content("old"))
      yield* outbox.flush
      state.now = 60_001
      for (const [to, text] of [[2, "a"], [3, "other"], [undefined, "b"], [2, "c"]] as const) {
        outbox.add(to, content(text))
      }
      yield* outbox.flush
      outbox.resend(2, 0)
      yield* outbox.flush
      expect(texts().slice(5)).toEqual(["a", "b", "c"])
      outbox.resend(2, 4)
      yield* outbox.flush
      expect(texts().slice(8)).toEqual(["c"])
    }))
})

describe("arrivals", () => {
  it("notices messages that have arrived before, in any order", () => {
    const arrivals = new Arrivals()
    expect([1, 3, 2, 3, 1, 2].map((number) => arrivals.add(5, number))).toEqual([true, true, true, false, false, false])
    expect(arrivals.add(6, 1)).toBe(true)
    for (let number = 4; number <= 5_000; number++) arrivals.add(5, number)
    expect([4, 4_999, 5_001].map((number) => arrivals.add(5, number))).toEqual([false, false, true])
    expect(arrivals.highest()).toEqual({ 5: 4_901, 6: 0 })
    // The lease of node 5 ends for a moment, as while the database is down.
    arrivals.retain(new Set([6]), 0)
    arrivals.retain(new Set([5, 6]), 100_000)
    expect(arrivals.add(5, 5_001)).toBe(false)
    arrivals.retain(new Set([6]), 200_000)
    arrivals.retain(new Set([6]), 320_000)
    expect(arrivals.highest()).toEqual({ 5: 4_901, 6: 0 })
    arrivals.retain(new Set([6]), 320_001)
    expect(arrivals.highest()).toEqual({ 6: 0 })
  })

  it("retains 4 Mi characters of sent messages", () => {
    const sent = new SentMessages()
    const text = "x".repeat(1024 * 1024)
    for (let number = 1; number <= 10; number++) sent.add({ to: undefined, text }, number, 0)
    expect(sent.after(0, 1, 0)).toHaveLength(4)
    sent.add({ to: undefined, text: "x".repeat(5 * 1024 * 1024) }, 11, 0)
    expect(sent.after(0, 1, 0)).toHaveLength(0)
  })
})

describe("envelopes", () => {
  it("are ignored if another version has written them", () => {
    const envelope = { from: 1, content: { _tag: "Members", isServing: true } } as const
    expect(decode(encode(envelope))).toEqual(envelope)
    for (const other of ["", ";", "{", "{}", "{\"from\":1}", "null"]) expect(decode(other)).toBeUndefined()
  })
})
