/** How a round ends in the stateless revision, for any control flow around the input requests of a handler. */
import { describe, expect, it } from "@effect/vitest"
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const text = Elicitation.make({ text: Schema.String })

/** Requests input and returns the entered text; the client answers with the message in capitals. */
const ask = (message: string, options?: Elicitation.Options): Effect.Effect<string, InputError, McpRequest> =>
  Effect.map(Elicitation.accepted(Elicitation.form(message, text, options)), ({ text }) => text)

const answer: kit.Answerer = ({ params }) => kit.accept({ text: params.message.toUpperCase() })

const all = { concurrency: "unbounded" } as const

/** The outcome of a handler in both eras, and the number of requests that the client sent for it. */
const both = (handler: Effect.Effect<string, InputError, McpRequest>, answerer: kit.Answerer = answer) =>
  Effect.gen(function*() {
    const session = yield* kit.client(kit.tool(handler), { revision: "2025-11-25", answer: answerer })
    const modern = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer: answerer })
    const output = yield* modern.call("t")
    expect(yield* session.call("t")).toBe(output)
    return { output, requests: modern.sent }
  })

/** The same in the stateless revision only, with the client. */
const replayed = (handler: Effect.Effect<string, InputError, McpRequest>, answerer: kit.Answerer = answer) =>
  Effect.gen(function*() {
    const client = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer: answerer })
    return { output: yield* client.call("t"), requests: client.sent, client }
  })

const immediate = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
const microtask = Effect.promise(() => Promise.resolve())

describe("sends parallel input requests together", () => {
  const handlers = {
    plain: Effect.all([ask("a"), ask("b"), ask("c")], all),
    "behind a fork": Effect.gen(function*() {
      const b = yield* Effect.forkChild(ask("b"))
      const c = yield* Effect.forkChild(Effect.andThen(Effect.yieldNow, ask("c")))
      return [yield* ask("a"), yield* Fiber.join(b), yield* Fiber.join(c)]
    }),
    "behind a promise": Effect.all(
      [ask("a"), Effect.andThen(microtask, ask("b")), Effect.andThen(microtask, ask("c"))],
      all
    )
  }
  for (const [name, handler] of Object.entries(handlers)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { requests, output } = yield* both(Effect.map(handler, (answers) => answers.join("")))
        expect([output, requests]).toEqual(["ABC", 2])
      }))
  }

  it.effect("takes one more turn if a fiber requested input meanwhile", () =>
    Effect.gen(function*() {
      const after = (turns: number, message: string) =>
        Effect.andThen(Effect.repeat(Effect.yieldNow, { times: turns - 1 }), ask(message))
      const handler = Effect.all([ask("a"), after(1, "b"), after(2, "c"), after(3, "d"), after(4, "e")], all)
      const { requests, output } = yield* both(Effect.map(handler, (answers) => answers.join("")))
      expect([output, requests]).toEqual(["ABCDE", 2])
    }))

  it.effect("takes more rounds with bounded concurrency", () =>
    Effect.gen(function*() {
      const handler = Effect.forEach(["a", "b", "c"], (message) => ask(message), { concurrency: 2 })
      const { requests, output } = yield* both(Effect.map(handler, (answers) => answers.join("")))
      expect([output, requests]).toEqual(["ABC", 3])
    }))
})

describe("sequential input requests", () => {
  it.effect("takes one round for each", () =>
    Effect.gen(function*() {
      const handler = Effect.gen(function*() {
        return (yield* ask("a")) + (yield* ask("b")) + (yield* ask("c"))
      })
      expect(yield* both(handler)).toEqual({ output: "ABC", requests: 4 })
    }))

  it.effect("sends different input requests for the same text in a loop", () =>
    Effect.gen(function*() {
      let n = 0
      const handler = Effect.map(Effect.forEach([1, 2, 3], () => ask("again?")), (answers) => answers.join())
      const count = () => kit.accept({ text: String(++n) })
      const session = yield* kit.client(kit.tool(handler), { revision: "2025-11-25", answer: count })
      expect(yield* session.call("t")).toBe("1,2,3")
      n = 0
      const modern = yield* replayed(handler, count)
      expect([modern.output, modern.requests]).toEqual(["1,2,3", 4])
    }))

  it.effect("sends an input request after an asynchronous step", () =>
    Effect.gen(function*() {
      const handler = Effect.gen(function*() {
        yield* immediate
        const a = yield* ask("a")
        yield* immediate
        return a + (yield* ask("b"))
      })
      expect(yield* both(handler)).toEqual({ output: "AB", requests: 3 })
    }))

  it.effect("sends an input request that depends on the earlier responses", () =>
    Effect.gen(function*() {
      const handler = Effect.flatMap(ask("a"), (a) => a === "A" ? ask("yes") : ask("no"))
      expect(yield* both(handler)).toEqual({ output: "YES", requests: 3 })
    }))
})

describe("a handler cannot recover from the end of a round", () => {
  const handlers: { readonly [name: string]: Effect.Effect<string, InputError, McpRequest> } = {
    catchCause: ask("a").pipe(Effect.catchCause(() => Effect.succeed("recovered"))),
    exit: Effect.map(Effect.exit(ask("a")), (exit) => exit._tag === "Success" ? exit.value : "recovered"),
    orElseSucceed: Effect.orElseSucceed(ask("a"), () => "recovered"),
    retry: Effect.retry(ask("a"), Schedule.recurs(3)),
    sandboxed: Effect.catch(Effect.sandbox(ask("a")), () => Effect.succeed("recovered")) as never,
    timeout: Effect.timeoutOrElse(ask("a"), { duration: "1 millis", orElse: () => Effect.succeed("too late") }),
    "a race with what takes time": Effect.race(ask("a"), Effect.as(Effect.sleep("1 millis"), "too late")),
    "all of these, behind a fork": Effect.flatMap(
      Effect.forkChild(
        Effect.catchCause(Effect.retry(ask("a"), Schedule.recurs(1)), () => Effect.succeed("recovered"))
      ),
      Fiber.join
    ),
    "an uninterruptible region": Effect.uninterruptible(ask("a")),
    "an acquisition": Effect.scoped(Effect.acquireRelease(ask("a"), () => Effect.void)),
    "a finalizer": Effect.suspend(() => {
      let output = ""
      const finalizer = Effect.orDie(Effect.map(ask("a"), (a) => {
        output = a
      }))
      return Effect.map(Effect.ensuring(Effect.void, finalizer), () => output)
    })
  }
  for (const [name, handler] of Object.entries(handlers)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        expect(yield* both(handler)).toEqual({ output: "A", requests: 2 })
      }))
  }

  it.effect("except in an uninterruptible region around a recovery, which continues without the input", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const recovering = Effect.gen(function*() {
        const exit = yield* Effect.exit(ask("a"))
        log.push(exit._tag === "Success" ? exit.value : Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "failed")
        return "left"
      })
      const { requests, output } = yield* replayed(Effect.tap(Effect.uninterruptible(recovering), () => {
        log.push("after")
        return Effect.void
      }))
      expect([output, requests]).toEqual(["left", 2])
      expect(log).toEqual(["interrupted", "A", "after"])
    }))
})

describe("the end of a round", () => {
  it.effect("runs finalizers before the response", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const note = (line: string) => Effect.sync(() => void log.push(line))
      const handler = Effect.acquireUseRelease(
        note("acquired"),
        () => Effect.ensuring(ask("a"), Effect.andThen(immediate, note("slow finalizer"))),
        () => note("released")
      )
      const client = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer })
      const first = yield* client.once("tools/call", { name: "t" })
      expect(first.result.resultType).toBe("input_required")
      expect(log).toEqual(["acquired", "slow finalizer", "released"])
    }))

  it.effect("ends a finalizer that requests input after the round has ended, and sends the response", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const late = Effect.onExit(Effect.orDie(ask("late")), (exit) => Effect.sync(() => void log.push(exit._tag)))
      const { client, output } = yield* replayed(Effect.onInterrupt(ask("a"), () => Effect.asVoid(late)))
      expect([output, log]).toEqual(["A", ["Failure"]])
      expect(client.asked.map(({ params }) => params.message)).toEqual(["a"])
    }))

  it.effect("interrupts siblings in flight, which run again in the next round", () =>
    Effect.gen(function*() {
      const seen = { started: 0, interrupted: 0 }
      const slow = Effect.suspend(() => {
        seen.started++
        // Done by the time it runs again.
        return seen.started === 1
          ? Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.interrupted++))
          : Effect.void
      })
      const handler = Effect.map(Effect.all([ask("a"), slow], all), ([a]) => a)
      expect((yield* replayed(handler)).output).toBe("A")
      expect(seen).toEqual({ started: 2, interrupted: 1 })
    }))

  it.effect("interrupts a detached fiber that requests input", () =>
    Effect.gen(function*() {
      const fibers: Array<Fiber.Fiber<string, InputError>> = []
      const handler = Effect.gen(function*() {
        fibers.push(yield* Effect.forkDetach(Effect.catchCause(ask("stray"), () => Effect.succeed("recovered"))))
        return yield* ask("a")
      })
      const client = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer })
      const first = yield* client.once("tools/call", { name: "t" })
      // It was in time, so its input request was sent too.
      expect(Object.keys(first.result.inputRequests)).toHaveLength(2)
      const exit = yield* Fiber.await(fibers[0]!)
      expect(exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
    }))

  it.effect("prefers the final result, and does not send a pending input request", () =>
    Effect.gen(function*() {
      const fibers: Array<Fiber.Fiber<string, InputError>> = []
      const handler = Effect.gen(function*() {
        fibers.push(yield* Effect.forkDetach(ask("stray"), { startImmediately: true }))
        return "done"
      })
      const { requests, output } = yield* replayed(handler)
      expect([output, requests]).toEqual(["done", 1])
      const exit = yield* Fiber.await(fibers[0]!)
      expect(exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
    }))

  it.effect("prefers a failure, too", () =>
    Effect.gen(function*() {
      const failing = Effect.andThen(Effect.yieldNow, Effect.fail({ message: "broken" }))
      const client = yield* kit.client(
        kit.tool(Effect.map(Effect.all([ask("a"), failing], all), ([a]) => a)),
        { revision: "2026-07-28", answer }
      )
      expect(yield* client.call("t")).toBe("failed: broken")
      expect(client.asked).toEqual([])
    }))

  it.effect("withdraws an input request that lost a race", () =>
    Effect.gen(function*() {
      const handler = Effect.gen(function*() {
        const first = yield* Effect.race(ask("slow"), Effect.andThen(Effect.yieldNow, Effect.succeed("fast")))
        // When no fiber waits for input, the round continues for as long as it takes.
        yield* Effect.repeat(immediate, { times: 9 })
        return first + (yield* ask("then"))
      })
      const { client, output } = yield* replayed(handler)
      expect([output, client.sent]).toEqual(["fastTHEN", 2])
      expect(client.asked.map(({ params }) => params.message)).toEqual(["then"])
    }))

  it.effect("sends both of two racing input requests, and accepts either response", () =>
    Effect.gen(function*() {
      const handler = Effect.race(ask("a"), ask("b"))
      expect((yield* both(handler)).requests).toBe(2)
      const { client, output } = yield* replayed(
        handler,
        (question) => question.params.message === "b" ? answer(question) : undefined
      )
      expect([output, client.sent]).toEqual(["B", 2])
    }))

  it.effect("dies with a defect of a finalizer", () =>
    base.logged((lines) =>
      Effect.gen(function*() {
        const { requests, output } = yield* replayed(Effect.ensuring(ask("a"), Effect.die(new Error("torn"))))
        expect([output, requests]).toEqual([expect.stringMatching(/^failed: The tool t failed unexpectedly\./), 1])
        expect(lines.join()).toContain("torn")
      })
    ))
})

describe("the identity of an input request", () => {
  it.effect("depends on the key only, if the text varies with time", () =>
    Effect.gen(function*() {
      let now = 0
      const varying = (options?: Elicitation.Options) => Effect.suspend(() => ask(`It is ${++now}`, options))
      const { client, output } = yield* replayed(varying({ key: "time" }))
      expect([output, client.asked[0]!.key]).toEqual(["IT IS 1", "time"])
      // Without a key it is requested until the rounds are used up.
      const endless = yield* replayed(varying())
      expect(endless.output).toBe(
        "failed: tools/call was answered with input requests 16 times (maxRounds): elicitation/create was not sent. " +
          "A question whose text differs each time, as with a time or a random number, needs a key, or its value in once"
      )
      expect(endless.requests).toBe(17)
    }))

  it.effect("changes with its form, regardless of its key", () =>
    Effect.gen(function*() {
      let first = true
      const number = Elicitation.make({ number: Schema.Int })
      const handler = Effect.suspend(() => {
        if (!first) return Effect.map(Elicitation.accepted(Elicitation.form("?", number, { key: "k" })), String)
        first = false
        return ask("?", { key: "k" })
      })
      const client = yield* kit.client(kit.tool(Effect.as(handler, "done")), {
        revision: "2026-07-28",
        answer: ({ params }) => kit.accept(params.requestedSchema.properties.number ? { number: 1 } : { text: "x" })
      })
      expect(yield* client.call("t")).toBe("done")
      expect(client.asked.map(({ key }) => key)).toEqual(["k", "k"])
    }))

  it.effect("keys MUST be unique within the scope of the request", () =>
    Effect.gen(function*() {
      const keyed = ["k", "k", "k.1", "k", "k.1.1"].map((key, n) => ask(String(n), { key }))
      const handler = Effect.all([ask("a"), ask("a"), ...keyed], all)
      const { client, output } = yield* replayed(Effect.map(handler, (answers) => answers.join()))
      expect(output).toBe("A,A,0,1,2,3,4")
      expect(new Set(client.asked.map(({ key }) => key)).size).toBe(7)
      expect(client.sent).toBe(2)
    }))
})
