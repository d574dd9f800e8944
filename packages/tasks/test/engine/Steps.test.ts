import * as Task from "@skein/tasks/Task"
import { it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { StepTimeout } from "@skein/tasks/TaskError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { expect, expectTypeOf } from "vitest"
import { durable, ended, get, pass, plain, settled, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String, code: Schema.Int }) {}

it("the types require schemas for the value and the failure of a step", () => {
  const five = Effect.succeed(5)
  const broken = Effect.fail(new Broken({ message: "no", code: 1 }))
  const forgotten = Step.run("a", {}, () => five)
  const remembered = Step.run("a", { success: Schema.Finite }, () => five)
  const failing = Step.run("a", { error: Broken }, () => broken)
  const retry = { times: 1, while: (error: Broken) => error.code === 1 }
  const limited = Step.run("a", { timeout: "1 second" }, () => five)
  const both = Step.run("a", {
    error: Broken,
    timeout: 1000,
    retry: { times: 1, while: (error) => error._tag === "StepTimeout" || error.code === 1 }
  }, () => broken)
  expectTypeOf<Effect.Error<typeof limited>>().toEqualTypeOf<StepTimeout>()
  expectTypeOf<Effect.Error<typeof both>>().toEqualTypeOf<Broken | StepTimeout>()
  expectTypeOf(Step.run("a", { error: Broken, retry }, () => broken)).toEqualTypeOf(failing)
  expectTypeOf<Effect.Success<typeof forgotten>>().toEqualTypeOf<void>()
  expectTypeOf<Effect.Success<typeof remembered>>().toEqualTypeOf<number>()
  expectTypeOf<Effect.Error<typeof failing>>().toEqualTypeOf<Broken>()
  const wrong = [
    // @ts-expect-error -- a failure without a schema would be a defect
    Step.run("a", {}, () => broken),
    // @ts-expect-error -- and it would not be retried
    Step.run("a", { retry: Schedule.recurs(3) }, () => broken),
    // @ts-expect-error -- it returns no text
    Step.run("a", { success: Schema.String }, () => five)
  ]
  expect(wrong).toHaveLength(3)
})

it.effect("a step without a schema returns nothing, in the first run and in each later one", () =>
  Effect.gen(function*() {
    const seen: Array<unknown> = []
    yield* work({
      five: durable(() =>
        Effect.gen(function*() {
          seen.push(yield* Step.run("five", {}, () => Effect.succeed(5)))
          yield* Step.sleep("a while", "1 hour")
          return ""
        })
      )
    })
    const { id } = yield* submit("five")
    yield* pass(7200, 3600)
    yield* ended(id)
    expect(seen).toEqual([undefined, undefined])
  }).pipe(memory))

it.effect("records the failure of a step by its schema", () =>
  Effect.gen(function*() {
    let tries = 0
    let runs = 0
    yield* work({
      pay: durable(() =>
        Effect.gen(function*() {
          runs++
          const pay = Step.run("pay", { error: Broken }, () =>
            Effect.suspend(() => Effect.fail(new Broken({ message: "no money", code: ++tries }))))
          const error = yield* Effect.orDie(Effect.flip(pay))
          yield* Step.sleep("a while", "1 hour")
          return `${error instanceof Broken} ${error.code} ${error.message}`
        })
      )
    })
    const { id } = yield* submit("pay")
    yield* pass(7200, 3600)
    expect(textOf(yield* ended(id))).toBe("true 1 no money")
    expect([tries, runs]).toEqual([1, 2])
  }).pipe(memory))

it.effect("retries a step by its schedule, with the same key; long pauses are durable, and attempts are counted across restarts", () =>
  Effect.gen(function*() {
    const keys: Array<string> = []
    const times: Array<number> = []
    let runs = 0
    yield* work({
      pay: durable(() =>
        Effect.as(
          Effect.andThen(
            Effect.sync(() => void runs++),
            Step.run("pay", {
              error: Broken,
              retry: Schedule.exponential("1 second", 10).pipe(Schedule.upTo({ times: 4 }))
            }, (key) =>
              Effect.gen(function*() {
                keys.push(key)
                times.push((yield* Clock.currentTimeMillis) / 1000)
                return yield* new Broken({ message: "no", code: 1 })
              }))
          ),
          ""
        )
      )
    })
    const { id } = yield* submit("pay")
    yield* settled
    yield* TestClock.adjust("1 second")
    yield* settled
    expect(times).toEqual([0, 1])
    yield* pass(10, 10)
    yield* pass(120, 20)
    yield* pass(1200, 100)
    const state = yield* ended(id)
    expect(textOf(state)).toBe("no")
    expect(times).toHaveLength(5)
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(10)
    expect(times[3]! - times[2]!).toBeGreaterThanOrEqual(100)
    // The task was not in memory during the pauses of 10, 100 and 1,000 seconds.
    expect(runs).toBe(4)
    expect(times[4]! - times[3]!).toBeGreaterThanOrEqual(1000)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).not.toContain(id)
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "5 seconds" }))))

it.effect("keys differ between steps and between tasks", () =>
  Effect.gen(function*() {
    const keys: Array<string> = []
    const step = (name: string) => Step.run(name, {}, (key) => Effect.sync(() => void keys.push(key)))
    yield* work({ two: durable(() => Effect.as(Effect.andThen(step("a"), step("b")), "")) })
    for (const { id } of [yield* submit("two"), yield* submit("two")]) yield* ended(id)
    expect(new Set(keys).size).toBe(4)
  }).pipe(memory))

it.effect("commits a transactional step's own SQL with the step, and rolls it back when the step fails", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE money (amount INTEGER)`
    const put = (amount: number) => Effect.orDie(sql`INSERT INTO money VALUES (${amount})`)
    yield* work({
      pay: durable(() =>
        Effect.gen(function*() {
          yield* Step.run("one", { transactional: true }, () => put(1))
          const two = Step.run("two", { transactional: true, error: Broken }, () =>
            Effect.andThen(put(2), Effect.fail(new Broken({ message: "no", code: 2 }))))
          yield* Effect.ignore(two)
          yield* Step.run("three", { transactional: true }, () =>
            Effect.andThen(Task.setStatusMessage("three"), put(3)))
          yield* Effect.ignoreCause(Step.run("four", { transactional: true }, () =>
            Effect.andThen(put(4), Effect.die("no"))))
          return ""
        })
      )
    })
    const { id } = yield* submit("pay")
    const state = yield* ended(id)
    expect(state.status).toBe("completed")
    expect(state.statusMessage).toBe("three")
    expect(yield* sql`SELECT amount FROM money ORDER BY amount`).toEqual([{ amount: 1 }, { amount: 3 }])
  }).pipe(memory))

it.effect("sleeps for hours", () =>
  Effect.gen(function*() {
    let runs = 0
    yield* work({
      nap: durable(() =>
        Effect.gen(function*() {
          runs++
          yield* Step.sleep("short", "3 seconds")
          yield* Step.sleep("long", "3 hours")
          return "awake"
        })
      )
    })
    const { id } = yield* submit("nap")
    yield* settled
    yield* TestClock.adjust("3 seconds")
    yield* settled
    yield* TestClock.adjust("2 hours")
    yield* settled
    expect((yield* get(id))?.status).toBe("working")
    yield* TestClock.adjust("62 minutes")
    expect(textOf(yield* ended(id))).toBe("awake")
    expect(runs).toBe(2)
  }).pipe(memory))

it.effect("does not write status messages from outside of steps again in a later run", () =>
  Effect.gen(function*() {
    const seen: Array<string | undefined> = []
    yield* work({
      talk: durable(() =>
        Effect.gen(function*() {
          yield* Task.setStatusMessage("first")
          yield* Step.sleep("a while", "1 hour")
          yield* Task.setStatusMessage("second")
          yield* Step.run("in it", {}, () => Task.setStatusMessage("third"))
          return yield* Task.id
        })
      )
    })
    const { watch } = yield* TaskEngine
    const { id } = yield* submit("talk")
    yield* Effect.forkChild(
      Stream.runForEach(watch(id), ({ statusMessage }) => Effect.sync(() => void seen.push(statusMessage)))
    )
    yield* until(id, ({ statusMessage }) => statusMessage === "first")
    yield* pass(7200, 3600)
    const state = yield* ended(id)
    expect(textOf(state)).toBe(id)
    expect(state.statusMessage).toBe("third")
    yield* settled
    const distinct = seen.filter((message, index) => message !== undefined && message !== seen[index - 1])
    expect(distinct[0]).toBe("first")
    expect(distinct.lastIndexOf("first")).toBe(0)
    expect(distinct.at(-1)).toBe("third")
  }).pipe(memory))

it.effect("writes progress at most every 100 milliseconds, and the last report always", () =>
  Effect.gen(function*() {
    const seen: Array<number | undefined> = []
    yield* work({
      count: plain(() =>
        Effect.gen(function*() {
          const request = yield* McpRequest
          for (let progress = 1; progress <= 50; progress++) {
            yield* request.progress({ progress, total: 50 })
            yield* Effect.sleep(10)
          }
          yield* request.progress({ progress: 51 })
          return ""
        })
      )
    })
    const { watch } = yield* TaskEngine
    const { id } = yield* submit("count")
    yield* Effect.forkChild(
      Stream.runForEach(watch(id), ({ progress }) => Effect.sync(() => void seen.push(progress?.progress)))
    )
    yield* pass(0.6, 0.01)
    const state = yield* ended(id)
    expect(state.progress?.progress).toBe(51)
    yield* settled
    expect(seen.length).toBeGreaterThan(3)
    expect(seen.length).toBeLessThan(12)
  }).pipe(memory))
