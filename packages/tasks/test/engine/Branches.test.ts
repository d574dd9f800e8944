import { expect, it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as kit from "./kit.ts"

const engine = MemoryTasks.layer()

/** How many texts WebCrypto is encrypting or decrypting. */
let cryptoCalls = 0
const counted = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    cryptoCalls++
    return Effect.ensuring(effect, Effect.sync(() => void cryptoCalls--))
  })

const sealing = Layer.provide(
  engine,
  Layer.effect(
    Encryption.Encryption,
    Effect.map(Encryption.make({ keys: ["a key of thirty-two characters, or more"] }), (cipher): Encryption.Cipher => ({
      readPlaintext: cipher.readPlaintext,
      encrypt: (text, associatedData) => counted(cipher.encrypt(text, associatedData)),
      decrypt: (encrypted, associatedData) => counted(cipher.decrypt(encrypted, associatedData))
    }))
  )
)

/**
 * Advances the clock second by second, and only while WebCrypto is idle. WebCrypto takes real time: on a loaded machine the virtual
 * time ran out before a text was decrypted, and an engine that was closed during a decryption waited for a clock that had stopped.
 */
const pass = (seconds: number) =>
  Effect.forEach(
    Array.from({ length: seconds }),
    () => Effect.andThen(kit.pass(1), Effect.repeat(kit.settled, { while: () => cryptoCalls > 0 })),
    { discard: true }
  )

const names = ["one", "two", "three", "four", "five"]
const patience = Step.run("patience", {}, () => Effect.never)

/** Sequential steps with compensations, and something between them. */
const done = (done: Array<string>, between: Effect.Effect<void>) =>
  Effect.forEach(names, (name) =>
    Effect.andThen(
      between,
      Step.run(name, {}, () => Effect.sync(() => void done.push(name))).pipe(
        Step.withCompensation(() => Effect.sync(() => void done.push(`not ${name}`)))
      )
    ), { discard: true })

/** Passes up to 100 seconds until the condition holds, and five more. */
const until = (done: () => boolean) =>
  Effect.gen(function*() {
    for (let second = 0; second < 100 && !done(); second++) yield* pass(1)
    yield* pass(5)
  })

for (const [how, layer] of [["as they are", engine], ["sealed", sealing]] as const) {
  for (
    const [what, other, between] of [
      ["a step", patience, Effect.void],
      ["a step, with pauses between the others", patience, Effect.sleep("1 second")],
      ["a sleep", Step.sleep("patience", "1 day"), Effect.void],
      [
        "a step that comes after another",
        Effect.andThen(Step.run("first", {}, () => Effect.void), patience),
        Effect.void
      ]
    ] as ReadonlyArray<[string, Effect.Effect<void, never, CurrentTask>, Effect.Effect<void>]>
  ) {
    it.effect(`texts ${how}: compensates all steps that ran beside ${what} when the task is cancelled`, () =>
      Effect.gen(function*() {
        const entries: Array<string> = []
        const branches = Effect.all([other, done(entries, between)], { concurrency: "unbounded" })
        yield* kit.work({ order: kit.durable(() => Effect.as(branches, "Done")) })
        const { id } = yield* kit.submit("order")
        yield* until(() => entries.length === names.length)
        expect(entries).toEqual(names)
        yield* Effect.flatMap(TaskEngine, (engine) => engine.cancel(id))
        yield* until(() => entries.length === 2 * names.length)
        expect(entries.slice(names.length)).toEqual(names.toReversed().map((name) => `not ${name}`))
      }).pipe(Effect.provide(layer)))
  }
}

class NoMoney extends Schema.TaggedError<NoMoney>()("NoMoney", { message: Schema.String }) {}
const broke = Effect.fail(new NoMoney({ message: "No money" }))

for (const [how, layer] of [["as they are", engine], ["sealed", sealing]] as const) {
  it.effect(`texts ${how}: compensates all steps that ran beside a step that fails in a later run`, () =>
    Effect.gen(function*() {
      const entries: Array<string> = []
      const retry = Schedule.spaced("1 minute").pipe(Schedule.upTo({ times: 2 }))
      const charge = Step.run("charge", { error: NoMoney, retry }, () => broke)
      const branches = Effect.all([charge, done(entries, Effect.void)], { concurrency: "unbounded" })
      yield* kit.work({ order: kit.durable(() => Effect.as(branches, "Done")) })
      const { id } = yield* kit.submit("order")
      for (let time = 0; time < 200 && kit.textOf(yield* kit.get(id)) === undefined; time++) yield* pass(1)
      expect(kit.textOf(yield* kit.get(id))).toBe("No money")
      expect(entries).toEqual([...names, ...names.toReversed().map((name) => `not ${name}`)])
    }).pipe(Effect.provide(layer)))

  it.effect(`texts ${how}: another worker runs all compensations of a failed task`, () =>
    Effect.gen(function*() {
      const entries: Array<string> = []
      let stands: "works" | "has worked" | "undoes" = "works"
      const stand = (now: typeof stands) => Effect.sync(() => void (stands = now))
      const worked = Effect.repeat(Effect.sleep("1 second"), { until: () => stands !== "works" })
      const charge = Step.run("charge", { error: NoMoney }, () => Effect.andThen(worked, broke))
      const undo = Effect.andThen(stand("undoes"), Effect.sleep("20 seconds"))
      const slow = Step.compensate(() => Step.run("slow", {}, () => undo))
      const beside = Effect.andThen(Effect.andThen(done(entries, Effect.void), slow), stand("has worked"))
      const branches = Effect.all([charge, beside], { concurrency: "unbounded" })
      const order = kit.durable(() => Effect.as(branches, "Done"))
      const first = yield* Scope.make()
      yield* Scope.provide(kit.work({ order }), first)
      const { id } = yield* kit.submit("order")
      yield* until(() => stands === "undoes")
      yield* Effect.forkChild(Scope.close(first, Exit.void))
      yield* pass(5)
      expect(entries).toEqual(names)
      yield* kit.work({ order })
      for (let time = 0; time < 100 && kit.textOf(yield* kit.get(id)) === undefined; time++) yield* pass(1)
      expect(kit.textOf(yield* kit.get(id))).toBe("No money")
      expect(entries.slice(names.length)).toEqual(names.toReversed().map((name) => `not ${name}`))
    }).pipe(Effect.provide(layer)))
}

const ask = Effect.flatMap(McpRequest, (request) =>
  Effect.orDie(request.request("elicitation/create", {
    message: "Sure?",
    requestedSchema: { type: "object", properties: {} }
  })))

it.effect("texts sealed: runs every step to its end while a question and a sleep are pending", () =>
  Effect.gen(function*() {
    const entries: Array<string> = []
    // Each later run decrypts the results of the steps before it, which takes milliseconds for texts of this size.
    const large = "x".repeat(1_000_000)
    const steps = Effect.forEach(
      names,
      (name) => Step.run(name, { success: Schema.String }, () => Effect.sync(() => (entries.push(name), large)))
    )
    const branches = Effect.all([ask, Step.sleep("rest", "1 day"), steps], { concurrency: "unbounded" })
    yield* kit.work({
      order: kit.durable(() => Effect.as(branches, "Done"))
    })
    const { id } = yield* kit.submit("order")
    for (let second = 0; second < 100 && entries.length < names.length; second++) yield* pass(1)
    expect(entries).toEqual(names)
    expect(yield* kit.get(id)).toMatchObject({ status: "input_required" })
    yield* pass(3)
  }).pipe(Effect.provide(sealing)))

it.effect("continues code between two steps beside a question and a sleep, for up to two seconds", () =>
  Effect.gen(function*() {
    const entries: Array<string> = []
    const order = (between: Effect.Effect<void>) => {
      const branches = Effect.all([ask, Step.sleep("rest", "1 day"), done(entries, between)], {
        concurrency: "unbounded"
      })
      return kit.durable(() => Effect.as(branches, "Done"))
    }
    yield* kit.work({ quick: order(Effect.sleep("1500 millis")), slow: order(Effect.sleep("5 seconds")) })
    yield* kit.submit("quick")
    yield* kit.pass(10)
    expect(entries).toEqual(names)
    yield* kit.submit("slow")
    yield* kit.pass(10)
    expect(entries).toEqual(names)
  }).pipe(Effect.provide(engine)))

it.effect("does not run the step, sleep or question of a finalizer when the task is only suspended", () =>
  Effect.gen(function*() {
    const entries: Array<string> = []
    const leave = Step.run("leave", {}, () => Effect.sync(() => void entries.push("left")))
    const rest = Effect.as(Step.sleep("rest", "10 minutes"), "Done")
    yield* kit.work({
      step: kit.durable(() => Effect.ensuring(rest, leave)),
      sleep: kit.durable(() => Effect.ensuring(rest, Effect.andThen(Step.sleep("late", "10 minutes"), leave))),
      question: kit.durable(() => Effect.ensuring(rest, Effect.andThen(ask, leave)))
    })
    const [step, sleep, question] = yield* Effect.forEach(["step", "sleep", "question"], (tool) => kit.submit(tool))
    yield* kit.pass(60, 5)
    expect(entries).toEqual([])
    expect(yield* kit.get(question!.id)).toMatchObject({ status: "working" })
    yield* kit.pass(600, 60)
    // The sleep in the finalizer started when the sleep in the body ended.
    expect(entries).toEqual(["left"])
    expect(yield* kit.get(step!.id)).toMatchObject({ status: "completed" })
    expect(yield* kit.get(sleep!.id)).toMatchObject({ status: "working" })
    expect(yield* kit.get(question!.id)).toMatchObject({ status: "input_required" })
    yield* kit.pass(600, 60)
    expect(yield* kit.get(sleep!.id)).toMatchObject({ status: "completed" })
  }).pipe(Effect.provide(engine)))
