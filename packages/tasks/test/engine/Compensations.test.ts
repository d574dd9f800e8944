import { it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { ask, durable, ended, get, pass, plain, settled, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const cancel = (id: string, message?: string) => Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id, message))

type Slow = Effect.Effect<void, never, CurrentTask>

/** A task with two steps, which records their effects and compensations. */
const booking = (log: Array<string>, end: Effect.Effect<string, { readonly message: string }, any>) =>
  durable(() => {
    const book = (what: string) =>
      Step.run(`book ${what}`, { success: Schema.String }, () =>
        Effect.sync(() => {
          log.push(`book ${what}`)
          return `#${what}`
        })).pipe(
          Step.withCompensation((id, why) =>
            Step.run(`unbook ${what}`, {}, () => Effect.sync(() => void log.push(`unbook ${id}: ${why}`)))
          )
        )
    return Effect.gen(function*() {
      yield* book("flight")
      yield* book("hotel")
      return yield* end
    })
  })

it.effect("a task that fails runs its compensations in reverse order, and then fails", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({ travel: booking(log, Effect.fail({ message: "no taxi" })) })
    const { id } = yield* submit("travel")
    const state = yield* ended(id)
    expect(textOf(state)).toBe("no taxi")
    expect(log).toEqual(["book flight", "book hotel", "unbook #hotel: failed", "unbook #flight: failed"])
  }).pipe(memory))

it.effect("a task that dies runs its compensations; a task that succeeds does not", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({ dies: booking(log, Effect.die("!")), ends: booking(log, Effect.succeed("well")) })
    const { id } = yield* submit("ends")
    expect(textOf(yield* ended(id))).toBe("well")
    expect(log.splice(0)).toEqual(["book flight", "book hotel"])
    expect((yield* ended((yield* submit("dies")).id)).status).toBe("failed")
    expect(log).toEqual(["book flight", "book hotel", "unbook #hotel: failed", "unbook #flight: failed"])
  }).pipe(memory))

for (
  const [where, end] of [
    ["while it waits for an answer", Effect.as(Effect.orDie(ask("go?")), "")],
    ["while it sleeps", Effect.as(Step.sleep("nap", "1 day"), "")],
    ["in a step", Effect.as(Step.run("endless", {}, () => Effect.never), "")],
    ["between steps", Effect.never],
    [
      "in a question beside a step",
      Effect.as(
        Effect.all([
          Effect.orDie(ask("go?")),
          Step.run("endless", {}, () => Effect.never)
        ], { concurrency: 2 }),
        ""
      )
    ]
  ] as const
) {
  it.effect(`a task that is cancelled ${where} is cancelled immediately, and runs its compensations`, () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      yield* work({ travel: booking(log, end) })
      const { id } = yield* submit("travel")
      yield* settled
      expect(log.splice(0)).toEqual(["book flight", "book hotel"])
      expect(yield* cancel(id, "no more")).toBe(true)
      const state = yield* get(id)
      expect(state).toMatchObject({ status: "cancelled", statusMessage: "no more", questions: [] })
      yield* settled
      // The time that code between two steps may take while the task is replayed to collect its compensations.
      yield* TestClock.adjust("4 seconds")
      yield* settled
      expect(log).toEqual(["unbook #hotel: cancelled", "unbook #flight: cancelled"])
      expect(yield* cancel(id)).toBe(false)
    }).pipe(memory))
}

it.effect("a task that is cancelled before it started does nothing", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const { id } = yield* submit("travel")
    expect(yield* cancel(id)).toBe(true)
    yield* settled
    yield* work({ travel: booking(log, Effect.never) })
    yield* settled
    expect(log).toEqual([])
  }).pipe(memory))

it.effect("logs a compensation that fails, with its task, and runs the others", () => {
  const lines: Array<unknown> = []
  const logger = Logger.make(({ fiber, message }) => {
    const { task, tool } = fiber.getRef(References.CurrentLogAnnotations)
    if (tool !== undefined) lines.push([task, tool, String(message)])
  })
  return Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      three: durable(() =>
        Effect.gen(function*() {
          yield* Effect.log("begins")
          yield* Step.run("step", {}, () => Effect.log("acts"))
          yield* Step.compensate(() => Effect.sync(() => void log.push("first")))
          yield* Step.compensate(() => Effect.fail("no"))
          yield* Step.compensate(() => Effect.die("no"))
          yield* Step.compensate(() => Effect.map(Effect.flip(ask("may I?")), ({ message }) => void log.push(message)))
          yield* Step.compensate(() =>
            Effect.andThen(Step.sleep("short", "1 hour"), Effect.sync(() => void log.push("last")))
          )
          return yield* Effect.fail({ message: "over" })
        })
      )
    })
    const { id } = yield* submit("three")
    yield* settled
    expect((yield* get(id))?.status).toBe("working")
    yield* TestClock.adjust("1 hour")
    expect(textOf(yield* ended(id))).toBe("over")
    expect(log).toEqual([
      "last",
      "elicitation/create was not sent: a task cannot ask for input while it compensates",
      "first"
    ])
    // Eight characters are enough to find the task, and not to use it.
    const about = [`${id.slice(0, 8)}…`, "three"]
    const failed = [...about, "task three: a compensation failed"]
    expect(lines).toEqual([[...about, "begins"], [...about, "acts"], failed, failed])
  }).pipe(
    Effect.provide(Layer.provideMerge(MemoryTasks.layer({ pollInterval: "1 hour" }), Logger.layer([logger])))
  )
})

it.effect("interrupts a plain handler that is cancelled, and does not run it again", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      slow: plain(() =>
        Effect.onInterrupt(
          Effect.andThen(Effect.sync(() => void log.push("run")), Effect.never),
          () => Effect.sync(() => void log.push("interrupted"))
        )
      ),
      asks: plain(() => Effect.andThen(Effect.sync(() => void log.push("asks")), Effect.as(ask("?"), "")))
    })
    const { id } = yield* submit("slow")
    yield* settled
    expect(yield* cancel(id)).toBe(true)
    yield* settled
    expect(log.splice(0)).toEqual(["run", "interrupted"])
    const asks = yield* submit("asks")
    yield* until(asks.id, ({ questions }) => questions.length === 1)
    yield* settled
    expect(yield* cancel(asks.id)).toBe(true)
    yield* settled
    expect(log).toEqual(["asks"])
  }).pipe(memory))

it.effect("a cancellation during the compensations of a failed task does not compensate twice", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      slow: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate(() => Step.run("undo one", {}, () => Effect.sync(() => void log.push("one"))))
          yield* Step.compensate(() => Step.sleep("a minute", "1 minute"))
          yield* Step.compensate(() => Step.run("undo two", {}, () => Effect.sync(() => void log.push("two"))))
          return yield* Effect.fail({ message: "over" })
        })
      )
    })
    const { id } = yield* submit("slow")
    yield* settled
    expect(log).toEqual(["two"])
    yield* cancel(id)
    yield* settled
    yield* TestClock.adjust("2 minutes")
    yield* settled
    expect(log).toEqual(["two", "one"])
    expect((yield* get(id))?.status).toBe("cancelled")
  }).pipe(memory))

for (
  const [where, around] of [
    [
      "a compensation",
      (slow: Slow) => Effect.andThen(Step.compensate(() => slow), Effect.as(Step.sleep("long", "1 day"), ""))
    ],
    ["a step in a finalizer", (slow: Slow) => Effect.ensuring(Effect.succeed(""), slow)]
  ] as const
) {
  it.effect(`${where} that takes long is neither cut off nor restarted, however often the task is interrupted`, () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const slow = Step.run("slow", {}, () =>
        Effect.sync(() => void log.push("begins")).pipe(
          Effect.andThen(Effect.sleep("1 minute")),
          Effect.andThen(Effect.sync(() => void log.push("ends")))
        ))
      yield* work({ slow: durable(() => around(slow)) })
      const { id } = yield* submit("slow")
      yield* settled
      yield* cancel(id)
      yield* pass(70)
      expect(log).toEqual(["begins", "ends"])
    }).pipe(memory))
}

it.effect("a task that is cancelled while it compensates its failure keeps that reason, also on another worker", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const undo = (name: string, execute: Effect.Effect<void>) =>
      Step.compensate((why) =>
        Effect.andThen(Effect.sync(() => void log.push(`${name}: ${why}`)), Step.run(name, {}, () => execute))
      )
    const tools = {
      fails: durable(() =>
        Effect.gen(function*() {
          yield* undo("last", Effect.void)
          yield* undo("first", Effect.sleep("1 second"))
          return yield* Effect.fail({ message: "over" })
        })
      )
    }
    const worker = yield* Scope.make()
    yield* Scope.provide(work(tools), worker)
    const { id } = yield* submit("fails")
    yield* settled
    expect(log).toEqual(["first: failed"])
    expect(yield* cancel(id)).toBe(true)
    // The step of the first compensation ends, and the worker stops before the last one.
    yield* Effect.forkChild(Scope.close(worker, Exit.void))
    yield* settled
    yield* pass(3)
    yield* work(tools)
    yield* pass(5)
    expect(log).toEqual(["first: failed", "first: failed", "last: failed"])
    expect((yield* get(id))?.status).toBe("cancelled")
  }).pipe(memory))
