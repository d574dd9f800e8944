/** The output of tasks while they run: `Task.emit`, and those who read and follow it. */
import { describe, expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Encryption from "@skein/tasks/Encryption"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { defaults, TaskBounds } from "../../src/internal/base/bounds.ts"
import { ask, durable, ended, get, pass, submit, textOf, until, work } from "./kit.ts"

const engine = MemoryTasks.layer({ pollInterval: "1 minute" })
const memory = Effect.provide(engine)

const asksForBread = (id: string) => until(id, ({ status }) => status === "input_required")

const valuesOf = (id: string) =>
  Effect.flatMap(
    TaskEngine,
    ({ readOutput }) => Effect.map(readOutput(id), (page) => page?.items.map(({ value }) => value))
  )

const answer = (id: string) =>
  Effect.flatMap(
    TaskEngine,
    ({ answer }) => Effect.flatMap(get(id), (state) => answer(id, state!.questions[0]!.key, { action: "accept" }))
  )

describe("Task.emit", () => {
  it.effect("adds each item once, however often the body runs again, also if its value differs", () =>
    Effect.gen(function*() {
      let runs = 0
      yield* work({
        bake: durable(() =>
          Effect.gen(function*() {
            yield* Task.emit({ run: ++runs })
            yield* Step.run("flour", {}, () => Effect.void)
            yield* Task.emit("dough")
            yield* ask("Bread?")
            yield* Step.sleep("rest", "1 hour")
            yield* Task.emit("bread")
            return `${runs} runs`
          })
        )
      })
      const { id } = yield* submit("bake")
      yield* asksForBread(id)
      yield* answer(id)
      yield* pass(3700, 100)
      expect(textOf(yield* ended(id))).toMatch(/[23] runs/)
      expect(yield* valuesOf(id)).toEqual([{ run: 1 }, "dough", "bread"])
      const { log } = (yield* (yield* TaskAdmin).inspect(id, { values: true }))!
      expect(log.map(({ attempt, kind }) => `${kind} ${attempt}`)).toEqual([
        ...["emit 1", "step 1", "emit 2", "answer 1", "timer 1", "fired 1", "emit 3"]
      ])
    }).pipe(memory))

  it.effect("keeps the items of parallel branches in the order of the log", () =>
    Effect.gen(function*() {
      yield* work({
        bake: durable(() =>
          Effect.gen(function*() {
            const part = (n: number) =>
              Effect.andThen(Step.run(`part ${n}`, {}, () => Effect.sleep(n * 10)), Task.emit(n))
            yield* Effect.forEach([3, 1, 2], part, { concurrency: "unbounded" })
            yield* ask("Bread?")
            yield* Effect.forEach([5, 4], part, { concurrency: "unbounded" })
            return "done"
          })
        )
      })
      const { id } = yield* submit("bake")
      yield* pass(4)
      yield* answer(id)
      yield* pass(4)
      expect(textOf(yield* ended(id))).toBe("done")
      expect(yield* valuesOf(id)).toEqual([1, 2, 3, 4, 5])
    }).pipe(memory))

  it.effect("adds the items of a step at once, and those of a transactional step with its commit", () =>
    Effect.gen(function*() {
      let attempts = 0
      class Failed extends Schema.TaggedError<Failed>()("Failed", {}) {}
      yield* work({
        write: durable(() =>
          Effect.gen(function*() {
            yield* Step.run("words", {}, () =>
              Effect.andThen(
                Effect.orDie(Task.emit("once")),
                Effect.andThen(Effect.sleep("1 second"), Effect.orDie(Task.emit("twice")))
              ))
            const attempt = Effect.suspend(() =>
              Effect.andThen(
                Effect.orDie(Task.emit(`attempt ${++attempts}`)),
                attempts === 1 ? Effect.fail(new Failed()) : Effect.void
              )
            )
            yield* Effect.ignore(Step.run("failed", { error: Failed, transactional: true }, () => attempt))
            yield* Step.run("committed", { error: Failed, transactional: true }, () => attempt)
            return "done"
          }).pipe(Effect.orDie)
        )
      })
      const { id } = yield* submit("write")
      yield* pass(0.5, 0.5)
      expect(yield* valuesOf(id)).toEqual(["once"])
      yield* pass(1)
      expect(textOf(yield* ended(id))).toBe("done")
      expect(yield* valuesOf(id)).toEqual(["once", "twice", "attempt 2"])
    }).pipe(memory))

  it.effect("fails in each run at the same item when the output is full, and at once for an invalid value", () =>
    Effect.gen(function*() {
      yield* work({
        bake: durable(() =>
          Effect.gen(function*() {
            const tried: Array<string> = []
            for (const value of ["one", undefined, "two", "three"]) {
              tried.push(
                yield* Effect.match(Task.emit(value), {
                  onFailure: ({ reason }) => reason._tag,
                  onSuccess: () => String(value)
                })
              )
            }
            yield* ask("Bread?")
            return tried.join()
          })
        )
      })
      const { id } = yield* submit("bake")
      yield* asksForBread(id)
      yield* answer(id)
      expect(textOf(yield* ended(id))).toBe("one,InvalidOutput,two,TooMuchOutput")
      expect(yield* valuesOf(id)).toEqual(["one", "two"])
    }).pipe(Effect.provide(Layer.provide(engine, Layer.succeed(TaskBounds, { ...defaults, maxOutputItems: 2 })))))

  it.effect("is a defect in a compensation, and adds nothing while a cancelled task is replayed", () =>
    Effect.gen(function*() {
      const undone: Array<string> = []
      yield* work({
        bake: durable(() =>
          Effect.gen(function*() {
            yield* Task.emit("first")
            yield* Step.compensate(() =>
              Effect.catchCause(Task.emit("undone"), (cause) =>
                Effect.sync(() => void undone.push(String(Cause.squash(cause)))))
            )
            yield* ask("Bread?")
            yield* Task.emit("never")
            return "done"
          })
        )
      })
      const { id } = yield* submit("bake")
      yield* asksForBread(id)
      yield* Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))
      yield* pass(5)
      expect(undone).toEqual(["Error: Task.emit is not allowed in a compensation"])
      expect(yield* valuesOf(id)).toEqual(["first"])
    }).pipe(memory))

  it.effect("keeps the output when the task begins again, and copies it to a task that runs again from a step", () =>
    Effect.gen(function*() {
      yield* work({
        bake: durable(({ day }) =>
          Effect.gen(function*() {
            yield* Task.emit(`day ${String(day ?? 0)}`)
            yield* Step.sleep("short", "1 second")
            yield* Step.run("oven", {}, () => Effect.void)
            yield* Task.emit("baked")
            return day === 1 ? "done" : yield* Task.continueWith({ day: 1 })
          })
        )
      })
      const { id } = yield* submit("bake")
      yield* Effect.repeat(Effect.andThen(pass(1), get(id)), { until: (state) => state?.status === "completed" })
      expect(yield* valuesOf(id)).toEqual(["day 0", "baked", "day 1", "baked"])
      const again = yield* (yield* TaskAdmin).rerun(id, { from: "oven" })
      yield* ended(again!.id)
      expect(yield* valuesOf(again!.id)).toEqual(["day 0", "baked", "day 1", "baked"])
    }).pipe(
      Effect.provide(Layer.provide(
        engine,
        Encryption.layer({ keys: ["a key of thirty-two characters, or more"] })
      ))
    ))
})

describe("readers of the output", () => {
  it.effect("follow it from an offset until the end of the task", () =>
    Effect.gen(function*() {
      const { followOutput, readOutput } = yield* TaskEngine
      yield* work({
        count: durable(() =>
          Effect.as(
            Effect.forEach([0, 1, 2, 3], (n) => Effect.andThen(Task.emit(n), Step.sleep(`pause ${n}`, "1 second"))),
            "done"
          )
        )
      })
      const { id } = yield* submit("count")
      const seen: Array<unknown> = []
      const all = yield* Effect.forkChild(
        Stream.runForEach(followOutput(id), ({ offset, value }) => Effect.sync(() => void seen.push([offset, value])))
      )
      const late = yield* Effect.forkChild(Stream.runCollect(followOutput(id, { from: 2 })))
      yield* pass(1.5, 0.5)
      expect(seen).toEqual([[0, 0], [1, 1]])
      expect(yield* readOutput(id, { from: 1 })).toMatchObject({
        items: [{ offset: 1, value: 1 }],
        next: 2,
        count: 2,
        hasEnded: false
      })
      yield* pass(5)
      yield* Fiber.join(all)
      expect(seen).toEqual([[0, 0], [1, 1], [2, 2], [3, 3]])
      expect((yield* Fiber.join(late)).map(({ value }) => value)).toEqual([2, 3])
      expect(yield* readOutput(id, { from: 9 })).toEqual({ items: [], next: 9, count: 4, hasEnded: true })
    }).pipe(memory))

  it.effect("find nothing for an unknown id, and fail at once for an offset that is no whole number", () =>
    Effect.gen(function*() {
      const { followOutput, readOutput } = yield* TaskEngine
      expect(yield* readOutput("unknown")).toBeUndefined()
      expect(yield* Stream.runCollect(followOutput("unknown"))).toEqual([])
      for (const from of [-1, 0.5, Number.NaN]) {
        expect((yield* Effect.flip(readOutput("unknown", { from }))).reason._tag).toBe("InvalidOption")
        expect((yield* Effect.flip(Stream.runDrain(followOutput("unknown", { from })))).reason._tag).toBe(
          "InvalidOption"
        )
      }
    }).pipe(memory))
})
