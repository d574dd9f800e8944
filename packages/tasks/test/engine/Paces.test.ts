/**
 * How fast the tasks of a tool run: concurrency, rates and pauses, through the engine.
 */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { Pace } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, pass, settled, submit, work } from "./kit.ts"

const pace = (tool: string, pace: Pace | undefined) =>
  Effect.flatMap(TaskEngine, (engine) => engine.pace(new Map([[tool, pace]])))

/** A tool whose one step takes some seconds, and the numbers of its steps that ran together. */
const measured = (seconds: number) => {
  let now = 0
  const state = { most: 0, starts: new Array<number>() }
  const handler = durable(() =>
    Step.run("work", {}, () =>
      Effect.gen(function*() {
        state.most = Math.max(state.most, ++now)
        state.starts.push(yield* Clock.currentTimeMillis)
        yield* Effect.sleep(`${seconds} seconds`)
        now--
        return "done"
      }))
  )
  return { handler, state }
}

it.effect("a tool runs no more tasks together than its concurrency, and all of them in the end", () =>
  Effect.gen(function*() {
    const { handler, state } = measured(2)
    const other = measured(2)
    yield* pace("bake", { concurrency: 3 })
    yield* work({ bake: handler, other: other.handler })
    const tasks = yield* Effect.forEach(Array.from({ length: 10 }), () => submit("bake"))
    yield* Effect.forEach(Array.from({ length: 10 }), () => submit("other"))
    yield* settled
    expect(state.starts).toHaveLength(3)
    expect(other.state.most).toBe(10)
    yield* pass(8, 0.5)
    for (const { id } of tasks) yield* ended(id)
    expect(state.most).toBe(3)
    // A task starts when another one ends, not at the next poll.
    expect(state.starts.map((start) => start - state.starts[0]!)).toEqual([
      ...[0, 0, 0, 2000, 2000, 2000, 4000, 4000, 4000, 6000]
    ])
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))

it.effect("the concurrency of a tool can be changed and removed while its tasks wait", () =>
  Effect.gen(function*() {
    const { handler, state } = measured(1000)
    yield* pace("bake", { concurrency: 1 })
    yield* work({ bake: handler })
    yield* Effect.forEach(Array.from({ length: 6 }), () => submit("bake"))
    yield* settled
    expect(state.most).toBe(1)
    yield* pace("bake", { concurrency: 3 })
    yield* settled
    expect(state.most).toBe(3)
    yield* pace("bake", undefined)
    yield* settled
    expect(state.most).toBe(6)
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))

it.effect.prop(
  "a rate is never exceeded in any period, and every task starts as soon as it allows",
  {
    limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
    gaps: Schema.NonEmptyArray(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))).check(
      Schema.isMaxLength(12)
    )
  },
  ({ gaps, limit }) =>
    Effect.gen(function*() {
      const periodMs = 5000
      const { handler, state } = measured(0)
      yield* pace("call", { rate: { limit, periodMs } })
      yield* work({ call: handler })
      const submitted: Array<number> = []
      for (const gap of gaps) {
        yield* pass(gap, 0.5)
        submitted.push(yield* Clock.currentTimeMillis)
        yield* submit("call")
        yield* settled
      }
      yield* pass(5 * Math.ceil(gaps.length / limit) + 1, 0.5)
      const { starts } = state
      expect(starts).toHaveLength(gaps.length)
      for (const [index, start] of starts.entries()) {
        // The earliest start: its submission, and a period after the start which is `limit` starts before it.
        const earliest = Math.max(submitted[index]!, (starts[index - limit] ?? -Infinity) + periodMs)
        expect(start).toBeGreaterThanOrEqual(earliest)
        expect(start).toBeLessThanOrEqual(earliest + 500)
      }
    }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: 500 }))),
  { arbitrary: { runs: 15 } }
)

it.effect("numbers out of bounds are rejected", () =>
  Effect.gen(function*() {
    const wrong: ReadonlyArray<readonly [Pace, string]> = [
      [{ concurrency: 0 }, "concurrency of bake is 0: it must be a whole number from 1 to 2147483647"],
      [{ concurrency: 1.5 }, "concurrency of bake is 1.5"],
      [{ concurrency: Infinity }, "concurrency of bake is Infinity"],
      [{ rate: { limit: 0, periodMs: 1 } }, "rate.limit of bake is 0"],
      [{ rate: { limit: 1, periodMs: 0 } }, "rate.period of bake is 0"],
      [{ rate: { limit: 1, periodMs: Number.NaN } }, "rate.period of bake is NaN"]
    ]
    for (const [limits, message] of wrong) {
      const { reason } = yield* Effect.flip(pace("bake", limits))
      expect(reason).toMatchObject({ _tag: "InvalidOption", message: expect.stringContaining(message) as string })
    }
    expect(yield* Effect.flatMap(TaskAdmin, ({ tools }) => tools)).toEqual([])
  }).pipe(Effect.provide(MemoryTasks.layer())))

it.effect("a task of a paused tool ends its step, and continues after a sleep when the tool is resumed", () =>
  Effect.gen(function*() {
    const { pause, resume } = yield* TaskAdmin
    const steps: Array<string> = []
    yield* work({
      job: durable(() =>
        Effect.gen(function*() {
          yield* Step.run("first", {}, () =>
            Effect.andThen(
              Effect.sleep("2 seconds"),
              Effect.sync(() => steps.push("1"))
            ))
          yield* Step.sleep("rest", "10 seconds")
          yield* Step.run("second", {}, () => Effect.sync(() => void steps.push("2")))
          return "done"
        })
      )
    })
    const { id } = yield* submit("job")
    yield* settled
    expect(yield* pause("job")).toBe(true)
    const late = yield* submit("job")
    yield* pass(60)
    expect(steps).toEqual(["1"])
    expect(yield* get(late.id)).toMatchObject({ status: "working" })
    yield* resume("job")
    yield* pass(20)
    expect(yield* ended(id)).toMatchObject({ status: "completed" })
    expect(yield* ended(late.id)).toMatchObject({ status: "completed" })
    expect(steps.toSorted()).toEqual(["1", "1", "2", "2"])
  }).pipe(Effect.provide(MemoryTasks.layer())))

it.effect("a cancelled task of a paused tool compensates at once", () =>
  Effect.gen(function*() {
    const { pause } = yield* TaskAdmin
    const undone: Array<string> = []
    yield* work({
      job: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate(() => Effect.sync(() => void undone.push("book")))
          yield* Step.sleep("rest", "1 hour")
          return "done"
        })
      )
    })
    const { id } = yield* submit("job")
    yield* pass(1)
    yield* pause("job")
    yield* Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))
    yield* pass(1)
    expect(undone).toEqual(["book"])
  }).pipe(Effect.provide(MemoryTasks.layer())))

it.effect("a pause and a rate outlive the process", () =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-paces-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db") })
    const { handler, state } = measured(0)
    const inProcess = <A, E>(effect: Effect.Effect<A, E, TaskEngine | TaskAdmin>) =>
      Effect.scoped(Effect.andThen(work({ job: handler, call: handler }), effect)).pipe(Effect.provide(layer))

    yield* inProcess(Effect.gen(function*() {
      yield* Effect.flatMap(TaskAdmin, ({ pause }) => pause("job"))
      yield* pace("call", { rate: { limit: 1, periodMs: 60_000 } })
      yield* submit("job")
      yield* submit("call")
      yield* submit("call")
      yield* pass(10)
      expect(state.starts).toHaveLength(1)
    }))
    yield* inProcess(Effect.gen(function*() {
      yield* pass(49)
      expect(state.starts).toHaveLength(1)
      yield* pass(2)
      expect(state.starts).toHaveLength(2)
      yield* Effect.flatMap(TaskAdmin, ({ resume }) => resume("job"))
      yield* pass(1)
      expect(state.starts).toHaveLength(3)
    }))
  }))
