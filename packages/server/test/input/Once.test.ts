/** Side effects of handlers that request input: `once` means the same in both eras. */
import { describe, expect, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Elicitation from "@skein/server/Elicitation"
import { once } from "@skein/server/Once"
import * as RequestState from "@skein/server/RequestState"
import * as Roots from "@skein/server/Roots"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { HandlerError } from "@skein/server/HandlerError"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const text = Elicitation.make({ text: Schema.String })
const ask = (message: string) => Effect.map(Elicitation.accepted(Elicitation.form(message, text)), ({ text }) => text)
const answer: kit.Answerer = ({ params }) => kit.accept({ text: params.message.toUpperCase() })
const all = { concurrency: "unbounded" } as const

/** A side effect that counts its runs. */
const counter = () => {
  const runs = { count: 0 }
  return { runs, tick: Effect.sync(() => ++runs.count) }
}

/** The outcome of a call whose handler has died. */
const failedUnexpectedly = /^failed: The tool t failed unexpectedly\. The log of the server has the cause/

const eras = ["2025-11-25", "2026-07-28"] as const

/** A test in both eras. */
const inBoth = (
  name: string,
  test: (
    revision: typeof eras[number],
    call: (handler: Effect.Effect<string, HandlerError, McpRequest>) => Effect.Effect<string>
  ) => Effect.Effect<void>
) => {
  for (const revision of eras) {
    it.effect(`${revision} · ${name}`, () =>
      test(
        revision,
        (handler) =>
          Effect.scoped(
            Effect.flatMap(kit.client(kit.tool(handler), { revision, answer }), (client) => client.call("t"))
          )
      ))
  }
}

describe("once", () => {
  inBoth("runs once, and returns its result in every round", (revision, call) =>
    Effect.gen(function*() {
      const { runs, tick } = counter()
      let rounds = 0
      const handler = Effect.gen(function*() {
        rounds++
        const before = yield* once("n", Schema.Int, tick)
        const textOf = (yield* ask("a")) + (yield* ask("b"))
        return `${textOf}${before}${yield* once("n", Schema.Int, tick)}`
      })
      expect(yield* call(handler)).toBe("AB11")
      expect([runs.count, rounds]).toEqual([1, revision === "2026-07-28" ? 3 : 1])
    }))

  inBoth("returns the decoded value of its schema, not the encoded one", (_revision, call) =>
    Effect.gen(function*() {
      const day = new Date("2026-07-28T00:00:00Z")
      const handler = Effect.gen(function*() {
        const when = yield* once("when", Schema.Date, Effect.succeed(day))
        yield* ask("a")
        return `${when instanceof Date} ${when.toISOString()}`
      })
      expect(yield* call(handler)).toBe("true 2026-07-28T00:00:00.000Z")
    }))

  inBoth(
    "runs once for two concurrent calls with one key, and both return the result",
    (_revision, call) =>
      Effect.gen(function*() {
        const { runs, tick } = counter()
        const slow = once("n", Schema.Int, Effect.andThen(Effect.yieldNow, tick))
        const handler = Effect.gen(function*() {
          const both = yield* Effect.all([slow, slow, once("m", Schema.Int, Effect.succeed(7)), ask("a")], all)
          return both.join()
        })
        expect(yield* call(handler)).toBe("1,1,7,A")
        expect(runs.count).toBe(1)
      })
  )

  inBoth(
    "fails all waiting calls with its failure, does not store it, and runs again on the next call",
    (_revision, call) =>
      Effect.gen(function*() {
        const { runs, tick } = counter()
        const flaky = once(
          "n",
          Schema.Int,
          Effect.andThen(
            Effect.yieldNow,
            Effect.flatMap(tick, (n) => n === 1 ? Effect.fail({ message: "flaky" }) : Effect.succeed(n))
          )
        )
        const textOf = Effect.match(flaky, { onFailure: ({ message }) => message, onSuccess: String })
        const handler = Effect.gen(function*() {
          const [one, two] = yield* Effect.all([textOf, textOf], all)
          return `${one} ${two} ${yield* ask("a")} ${yield* flaky}`
        })
        // In the stateless revision it fails in the first round. It succeeds in the second round, and so does not fail.
        const retried = Effect.gen(function*() {
          return `${yield* Effect.retry(flaky, { times: 1 })} ${yield* ask("a")}`
        })
        if (_revision === "2025-11-25") {
          expect(yield* call(handler)).toBe("flaky flaky A 2")
          runs.count = 0
        }
        expect(yield* call(retried)).toBe("2 A")
        expect(runs.count).toBe(2)
      })
  )

  inBoth(
    "passes the work of an interrupted call on to the next waiting call",
    (_revision, call) =>
      Effect.gen(function*() {
        const { runs, tick } = counter()
        const handler = Effect.gen(function*() {
          const gate = yield* Deferred.make<void>()
          const work = once("n", Schema.Int, Effect.tap(tick, (n) => n === 1 ? Deferred.await(gate) : Effect.void))
          const first = yield* Effect.forkChild(work, { startImmediately: true })
          const second = yield* Effect.forkChild(work, { startImmediately: true })
          yield* Fiber.interrupt(first)
          return String(yield* Fiber.join(second))
        })
        expect(yield* call(handler)).toBe("2")
        expect(runs.count).toBe(2)
      })
  )

  inBoth(
    "dies with an explanation if the effect requests input",
    (_revision, call) =>
      base.logged((lines) =>
        Effect.gen(function*() {
          expect(yield* call(Effect.as(once("k", Schema.String, ask("a")), "done"))).toMatch(failedUnexpectedly)
          expect(lines.join()).toContain(`elicitation/create is not allowed inside of once("k")`)
          const nested = once(
            "k",
            Schema.String,
            Effect.andThen(once("l", Schema.Void, Effect.asVoid(Roots.list())), ask("a"))
          )
          expect(yield* call(Effect.as(nested, "done"))).toMatch(failedUnexpectedly)
          expect(lines.join()).toContain(`roots/list is not allowed inside of once("l")`)
        })
      )
  )

  inBoth(
    "dies with an explanation if it waits for itself, and may be nested otherwise",
    (_revision, call) =>
      base.logged((lines) =>
        Effect.gen(function*() {
          const inner = (key: string) => once(key, Schema.Int, Effect.succeed(1))
          expect(yield* call(Effect.map(once("k", Schema.Int, inner("l")), String))).toBe("1")
          expect(yield* call(Effect.map(once("k", Schema.Int, inner("k")), String))).toMatch(failedUnexpectedly)
          expect(lines.join()).toContain(`once("k") waits for itself`)
        })
      )
  )

  inBoth("is interrupted after a minute by default", (_revision) =>
    Effect.gen(function*() {
      let interrupted = 0
      const hanging = Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const handler = Effect.as(once("slow", Schema.Void, hanging), "done")
      yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* kit.client(kit.tool(handler), { revision: _revision, answer })
        const call = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
        yield* base.settle
        yield* TestClock.adjust("59999 millis")
        expect(interrupted).toBe(0)
        yield* TestClock.adjust("1 millis")
        expect(yield* Fiber.join(call)).toBe(`failed: once("slow") took longer than its timeout`)
        expect(interrupted).toBe(1)
      }))
    }))

  inBoth("is interrupted after the given time", (_revision) =>
    Effect.scoped(Effect.gen(function*() {
      const handler = Effect.as(once("slow", Schema.Void, Effect.never, { timeout: "2 seconds" }), "done")
      const client = yield* kit.client(kit.tool(handler), { revision: _revision, answer })
      const call = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
      yield* base.settle
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(call)).toBe(`failed: once("slow") took longer than its timeout`)
    })))
})

describe("2026-07-28", () => {
  const revision = "2026-07-28"

  it.effect("does not end the round while it runs: its result is sent with the input requests", () =>
    Effect.gen(function*() {
      const { runs, tick } = counter()
      const gate = yield* Deferred.make<void>()
      const slow = once("n", Schema.Int, Effect.andThen(Deferred.await(gate), tick))
      const client = yield* kit.client(
        kit.tool(Effect.map(Effect.all([ask("a"), slow], all), (both) => both.join())),
        { revision, answer }
      )
      const call = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
      yield* base.settle
      expect(client.asked).toEqual([])
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(call)).toBe("A,1")
      expect([runs.count, client.sent]).toEqual([1, 2])
    }))

  it.effect("runs in a finalizer of the round", () =>
    Effect.gen(function*() {
      const { runs, tick } = counter()
      const handler = Effect.ensuring(ask("a"), Effect.ignore(once("n", Schema.Int, tick)))
      const client = yield* kit.client(kit.tool(handler), { revision, answer })
      expect(yield* client.call("t")).toBe("A")
      expect(runs.count).toBe(1)
    }))

  inBoth(
    "dies with one line if the result does not match the schema",
    (_revision, call) =>
      base.logged((lines) =>
        Effect.gen(function*() {
          expect(yield* call(Effect.as(once("k", Schema.Int, Effect.succeed(0.5)), "done"))).toMatch(
            failedUnexpectedly
          )
          expect(lines).toEqual([
            expect.stringMatching(/ Error: the result of once\("k"\) does not match its schema: .+$/)
          ])
        })
      )
  )

  it.effect("dies instead of running twice if the schema cannot read a result of another version", () =>
    base.logged((lines) =>
      Effect.gen(function*() {
        const { runs, tick } = counter()
        const state = RequestState.layer({ keys: ["k".repeat(32)] })
        const version = (schema: Schema.Codec<unknown, unknown>, effect: Effect.Effect<unknown>) =>
          kit.client(
            Layer.provide(kit.tool(Effect.andThen(once("n", schema, effect), ask("a"))), state),
            { revision, answer }
          )
        const before = yield* version(Schema.Int as never, tick)
        const after = yield* version(Schema.String as never, Effect.map(tick, String))
        const { result } = yield* before.once("tools/call", { name: "t" })
        const inputResponses = before.responses(result)
        const retry = yield* after.once("tools/call", { name: "t", requestState: result.requestState, inputResponses })
        expect(kit.textOf(retry)).toMatch(failedUnexpectedly)
        expect(lines.join()).toContain(`the result of once("n") in an earlier round`)
        expect(runs.count).toBe(1)
      })
    ))
})
