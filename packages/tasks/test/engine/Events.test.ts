import { expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { EventError } from "@skein/tasks/TaskError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ask, durable, ended, get, pass, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const send = (id: string, name: string, value: unknown, key?: string) =>
  Effect.flatMap(TaskEngine, (engine) => engine.send(id, name, value, { key }))

/** The task is suspended, and waits for these events. A run with branches is suspended after two seconds. */
const waiting = (id: string, events: ReadonlyArray<string>) =>
  Effect.flatMap(TaskAdmin, (admin) =>
    Effect.repeat(Effect.andThen(pass(1), admin.inspect(id)), {
      until: (found) => found?.place._tag === "Waiting" && JSON.stringify(found.place.events) === JSON.stringify(events)
    }))

const Paid = Schema.Struct({ reference: Schema.String })

const payment = durable(() =>
  Effect.gen(function*() {
    yield* Step.run("create the payment", {}, () => Effect.void)
    const { reference } = yield* Task.awaitEvent("paid", { schema: Paid, timeout: "2 days" })
    return `paid: ${reference}`
  }).pipe(Effect.catchReason("EventError", "Timeout", () => Effect.succeed("not paid")))
)

it.effect("receives an event in a task that waits, whose status stays working", () =>
  Effect.gen(function*() {
    yield* work({ payment })
    const { id } = yield* submit("payment")
    const found = yield* waiting(id, ["paid"])
    expect(found?.state.status).toBe("working")
    expect(found?.questions).toEqual([])
    expect(yield* send(id, "paid", { reference: "4711" })).toBe(true)
    expect(textOf(yield* ended(id))).toBe("paid: 4711")
  }).pipe(memory))

it.effect("receives an event that was sent before the task waits for it", () =>
  Effect.gen(function*() {
    const { id } = yield* submit("payment")
    yield* send(id, "paid", { reference: "early" })
    const admin = yield* TaskAdmin
    expect((yield* admin.inspect(id))?.unreceived).toMatchObject([{ name: "paid" }])
    yield* work({ payment })
    expect(textOf(yield* ended(id))).toBe("paid: early")
    const found = yield* admin.inspect(id, { values: true })
    expect(found?.unreceived).toEqual([])
    expect(found?.log.find(({ kind }) => kind === "received")).toMatchObject({
      name: "paid",
      attempt: 1,
      value: "{\"reference\":\"early\"}"
    })
  }).pipe(memory))

it.effect("receives events with one name in the order of sending, each once", () =>
  Effect.gen(function*() {
    let runs = 0
    yield* work({
      votes: durable(() =>
        Effect.gen(function*() {
          runs++
          const votes: Array<unknown> = []
          for (let i = 0; i < 4; i++) votes.push(yield* Task.awaitEvent("vote"))
          return votes.join(",")
        })
      )
    })
    const { id } = yield* submit("votes")
    yield* send(id, "vote", 1)
    yield* send(id, "other", "x")
    yield* send(id, "vote", 2)
    yield* waiting(id, ["vote"])
    yield* send(id, "vote", 3)
    yield* waiting(id, ["vote"])
    yield* send(id, "vote", 4)
    expect(textOf(yield* ended(id))).toBe("1,2,3,4")
    expect(runs).toBe(3)
  }).pipe(memory))

it.effect("fails with Timeout, and leaves a later event to the next wait", () =>
  Effect.gen(function*() {
    yield* work({
      late: durable(() =>
        Effect.gen(function*() {
          const first = yield* Task.awaitEvent("paid", { timeout: "1 hour" }).pipe(
            Effect.catchReason("EventError", "Timeout", ({ message }) => Effect.succeed(message))
          )
          yield* Step.sleep("grace", "1 hour")
          return `${first}; ${yield* Task.awaitEvent("paid", { timeout: "0 millis" })}`
        })
      )
    })
    const { id } = yield* submit("late")
    yield* waiting(id, ["paid"])
    yield* pass(3700, 100)
    yield* send(id, "paid", "late")
    yield* pass(3700, 100)
    expect(textOf(yield* ended(id))).toBe("No event \"paid\" came within its timeout; late")
  }).pipe(memory))

it.effect("receives nothing when it loses a race, in each run", () =>
  Effect.gen(function*() {
    let runs = 0
    yield* work({
      race: durable(() =>
        Effect.gen(function*() {
          runs++
          const first = yield* Effect.raceFirst(
            Task.awaitEvent("paid"),
            Effect.as(Step.sleep("a day", "1 day"), "a day later")
          )
          const second = yield* Effect.raceFirst(
            Effect.map(ask("sure?"), () => "answered"),
            Task.awaitEvent("paid")
          )
          return `${first}; ${second}; ${yield* Task.awaitEvent("paid")}`
        }).pipe(Effect.orDie)
      )
    })
    const { id } = yield* submit("race")
    yield* waiting(id, ["paid"])
    yield* pass(86_460, 600)
    yield* until(id, ({ questions }) => questions.length === 1)
    yield* waiting(id, ["paid"])
    yield* send(id, "paid", 1)
    yield* waiting(id, ["paid"])
    yield* send(id, "paid", 2)
    const end = yield* ended(id)
    expect(textOf(end)).toBe("a day later; 1; 2")
    expect(runs).toBe(4)
  }).pipe(memory))

it.effect("receives events in parallel branches", () =>
  Effect.gen(function*() {
    yield* work({
      votes: durable(() =>
        Effect.map(
          Effect.all([Task.awaitEvent("a"), Task.awaitEvent("b"), Task.awaitEvent("a")], { concurrency: "unbounded" }),
          (values) => values.join(",")
        )
      )
    })
    const { id } = yield* submit("votes")
    yield* waiting(id, ["a", "b"])
    yield* send(id, "b", 1)
    yield* waiting(id, ["a"])
    yield* send(id, "a", 2)
    yield* send(id, "a", 3)
    expect(textOf(yield* ended(id))).toBe("2,1,3")
  }).pipe(memory))

it.effect("delivers an event with a key once", () =>
  Effect.gen(function*() {
    yield* work({
      two: durable(() => Effect.map(Effect.all([Task.awaitEvent("e"), Task.awaitEvent("e")]), (all) => all.join(",")))
    })
    const { id } = yield* submit("two")
    expect(yield* send(id, "e", 1, "k1")).toBe(true)
    expect(yield* send(id, "e", 1, "k1")).toBe(false)
    yield* waiting(id, ["e"])
    expect(yield* send(id, "e", 1, "k1")).toBe(false)
    expect(yield* send(id, "e", 2, "k2")).toBe(true)
    expect(textOf(yield* ended(id))).toBe("1,2")
    // A sender repeats it after a lost response.
    expect(yield* send(id, "e", 2, "k2")).toBe(false)
  }).pipe(memory))

it.effect("rejects an event that no task can receive", () =>
  Effect.gen(function*() {
    const { id } = yield* submit("payment")
    const refused = (id: string, name: string, value: unknown, key?: string) =>
      Effect.map(Effect.flip(send(id, name, value, key)), ({ message, reason }) => `${reason._tag}: ${message}`)
    const unknown = "UnknownTask: no task has this id, or it has expired"
    expect(yield* refused("x".repeat(32), "paid", 1)).toBe(unknown)
    expect(yield* refused("no id", "paid", 1)).toBe(unknown)
    expect(yield* refused(id, "", 1)).toBe("InvalidEvent: the name of an event has 0 characters: it must have 1 to 512")
    expect(yield* refused(id, "paid", 1, "k".repeat(513))).toBe(
      "InvalidEvent: the key of an event has 513 characters: it must have 1 to 512"
    )
    expect(yield* refused(id, "paid", 1n)).toMatch(/^InvalidEvent: the event "paid" cannot be sent: /)
    expect(yield* refused(id, "paid", undefined)).toMatch(/^InvalidEvent: /)
    // The quotes count.
    expect(yield* send(id, "paid", "ä".repeat(131_071))).toBe(true)
    expect(yield* refused(id, "paid", "ä".repeat(131_072))).toBe(
      "InvalidEvent: the value of the event \"paid\" has 262146 bytes, and may have at most 262144"
    )
    yield* Effect.flatMap(TaskEngine, (engine) => engine.cancel(id))
    expect(yield* refused(id, "paid", 1)).toBe("AlreadyEnded: the task has ended, and receives no events")
  }).pipe(memory))

it.effect("rejects the 1,001st event that a task has not received", () =>
  Effect.gen(function*() {
    const { id } = yield* submit("payment")
    for (let n = 1; n <= 1000; n++) yield* send(id, "other", n)
    expect(yield* Effect.flip(send(id, "paid", { reference: "x" }))).toMatchObject({
      message: "the task has 1000 events that it has not received, which is the limit",
      reason: { _tag: "TooManyEvents" }
    })
  }).pipe(memory))

it.effect("fails with InvalidEvent for a value that does not match, and receives the next one", () =>
  Effect.gen(function*() {
    const standard = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value: unknown) =>
          typeof value === "number" ? { value: value * 2 } : { issues: [{ message: "no number" }] }
      }
    } as const
    const problem = <A>(awaited: Effect.Effect<A, EventError, CurrentTask>) =>
      Effect.catchReason(
        awaited,
        "EventError",
        "InvalidEvent",
        ({ message, value }) => Effect.succeed(`${message} ${JSON.stringify(value)}`)
      )
    yield* work({
      bad: durable(() =>
        Effect.map(
          Effect.all([
            problem(Task.awaitEvent("paid", { schema: Paid })),
            Task.awaitEvent("paid", { schema: Paid }),
            problem(Task.awaitEvent("n", { schema: standard })),
            Task.awaitEvent("n", { schema: standard })
          ]),
          (all) => JSON.stringify(all)
        )
      )
    })
    const { id } = yield* submit("bad")
    yield* send(id, "paid", { reference: 5 })
    yield* send(id, "paid", { reference: "6" })
    yield* waiting(id, ["n"])
    yield* send(id, "n", "seven")
    yield* send(id, "n", 8)
    const [first, second, third, fourth] = JSON.parse(String(textOf(yield* ended(id)))) as ReadonlyArray<unknown>
    expect(first).toMatch(/^the value of the event "paid" does not match its schema: .* \{"reference":5\}$/s)
    expect(second).toEqual({ reference: "6" })
    expect(third).toBe("the value of the event \"n\" does not match its schema: no number \"seven\"")
    expect(fourth).toBe(16)
  }).pipe(memory))

it.effect("is a defect in a step and in a compensation", () =>
  Effect.gen(function*() {
    const problems: Array<string> = []
    const note = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.catchCause(
        effect,
        (cause) => Effect.sync(() => void problems.push((Cause.squash(cause) as Error).message))
      )
    yield* work({
      wrong: durable(() =>
        Effect.gen(function*() {
          yield* note(Step.run("s", {}, () => Effect.orDie(Task.awaitEvent("paid"))))
          yield* note(Task.awaitEvent(""))
          yield* note(Task.awaitEvent("paid", { topic: "t".repeat(508) }))
          yield* Step.compensate(() => note(Task.awaitEvent("paid")))
          return yield* Effect.fail({ message: "failed" })
        })
      )
    })
    const { id } = yield* submit("wrong")
    expect((yield* ended(id)).isError).toBe(true)
    expect(problems).toEqual([
      "awaitEvent \"paid\" is not allowed inside step \"s\": move it before or after the step",
      "the name of an event has 0 characters: it must have 1 to 512",
      "the name of an event has 513 characters: it must have 1 to 512",
      "awaitEvent \"paid\" is not allowed in a compensation"
    ])
  }).pipe(memory))

it.effect("compensates a task that is cancelled while it waits for an event", () =>
  Effect.gen(function*() {
    const undone: Array<string> = []
    yield* work({
      hire: durable(() =>
        Effect.gen(function*() {
          yield* Task.awaitEvent("go")
          yield* Step.compensate((reason) => Effect.sync(() => void undone.push(reason)))
          yield* Task.awaitEvent("paid")
          return "never"
        })
      )
    })
    const { id } = yield* submit("hire")
    yield* send(id, "go", null)
    yield* waiting(id, ["paid"])
    yield* Effect.flatMap(TaskEngine, (engine) => engine.cancel(id))
    yield* Effect.repeat(pass(1, 0.1), { until: () => undone.length > 0 })
    expect(undone).toEqual(["cancelled"])
    expect((yield* get(id))?.status).toBe("cancelled")
  }).pipe(memory))

it.effect("keeps the events that a task has not received when it continues with other arguments", () =>
  Effect.gen(function*() {
    yield* work({
      loop: durable((args: JsonObject) =>
        Effect.gen(function*() {
          const value = `${String(args["seen"] ?? "")}${yield* Task.awaitEvent("n")}`
          return value.length === 3 ? value : yield* Task.continueWith({ seen: value })
        })
      )
    })
    const { id } = yield* submit("loop")
    for (const n of [1, 2, 3]) yield* send(id, "n", n)
    expect(textOf(yield* ended(id))).toBe("123")
  }).pipe(memory))

it.effect("runs a task again with the events before a step", () =>
  Effect.gen(function*() {
    let fails = true
    yield* work({
      again: durable(() =>
        Effect.gen(function*() {
          const value = yield* Task.awaitEvent("n")
          return yield* Step.run(
            "ship",
            { success: Schema.String },
            () => fails ? Effect.die("broken") : Effect.succeed(`shipped ${value}`)
          )
        })
      )
    })
    const { id } = yield* submit("again")
    yield* send(id, "n", 5)
    yield* ended(id)
    fails = false
    const admin = yield* TaskAdmin
    const again = yield* admin.rerun(id, { from: "ship" })
    expect(textOf(yield* ended(again!.id))).toBe("shipped 5")
  }).pipe(memory))

it.effect("receives the events of a topic in each task that awaits them", () =>
  Effect.gen(function*() {
    yield* work({
      order: durable((args: JsonObject) =>
        Effect.gen(function*() {
          const topic = String(args["topic"])
          const first = yield* Task.awaitEvent("paid", { topic, schema: Paid })
          const second = yield* Task.awaitEvent("paid", { topic, schema: Paid, timeout: "1 day" })
          return `${first.reference},${second.reference}`
        })
      )
    })
    const engine = yield* TaskEngine
    const one = yield* submit("order", { args: { topic: "order/1" } })
    const other = yield* submit("order", { args: { topic: "order/2" } })
    yield* waiting(one.id, ["paid@order/1"])
    yield* waiting(other.id, ["paid@order/2"])
    expect(yield* engine.sendAll("paid", "order/1", { reference: "a" }, { key: "1" })).toBe(1)
    expect(yield* engine.sendAll("paid", "order/1", { reference: "a" }, { key: "1" })).toBe(0)
    // It subscribes late, and has the events from before.
    const late = yield* submit("order", { args: { topic: "order/1" } })
    yield* waiting(late.id, ["paid@order/1"])
    // An event for one task is not one of a topic.
    yield* engine.send(one.id, "paid", { reference: "x" })
    expect(yield* engine.sendAll("paid", "order/1", { reference: "b" })).toBe(2)
    expect(textOf(yield* ended(one.id))).toBe("a,b")
    expect(textOf(yield* ended(late.id))).toBe("a,b")
    expect((yield* get(other.id))?.status).toBe("working")
  }).pipe(memory))
