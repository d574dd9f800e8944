/** The alerts of tasks. */
import { expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as TaskAlerts from "@skein/tasks/TaskAlerts"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { makeQueueAlerts } from "../../src/internal/telemetry/alertSink.ts"
import { durable, ended, pass, plain, settled, submit, work } from "../engine/kit.ts"

const tools = {
  fine: plain(() => Effect.succeed("Tea")),
  burn: durable(() => Effect.fail({ message: "Burnt" })),
  break: durable(() => Effect.die(new Error("Broken"))),
  rest: durable(() => Effect.as(Step.sleep("rest", "1 day"), "Rested"))
}

/** An engine with alerts, which `notify` receives. */
const engine = <E>(options: TaskAlerts.Options<E>, lines: Array<string> = []) =>
  MemoryTasks.layer().pipe(
    Layer.provide(TaskAlerts.layer(options)),
    Layer.provideMerge(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]))
  )

const collect = () => {
  const alerts: Array<TaskAlerts.TaskAlert> = []
  return { alerts, notify: (alert: TaskAlerts.TaskAlert) => Effect.sync(() => void alerts.push(alert)) }
}

it.effect("report each task that has failed, and no other", () => {
  const { alerts, notify } = collect()
  return Effect.gen(function*() {
    yield* work(tools)
    const { cancel } = yield* TaskEngine
    yield* ended((yield* submit("fine")).id)
    const burnt = yield* submit("burn")
    yield* ended(burnt.id)
    yield* cancel((yield* submit("rest")).id)
    const broken = yield* submit("break", { pool: "big" })
    yield* ended(broken.id)
    yield* settled
    expect(alerts).toEqual([
      {
        _tag: "Failed",
        task: { id: burnt.id, tool: "burn", pool: "default" },
        outcome: "tool_error",
        message: "Burnt"
      },
      {
        _tag: "Failed",
        task: { id: broken.id, tool: "break", pool: "big" },
        outcome: "failed",
        message: expect.stringContaining("Internal error, reference")
      }
    ])
  }).pipe(Effect.scoped, Effect.provide(engine({ notify })))
})

it.effect("report a queue that is old", () => {
  const { alerts, notify } = collect()
  return Effect.gen(function*() {
    yield* submit("fine")
    yield* submit("fine")
    yield* pass(50, 50)
    expect(alerts).toEqual([])
    yield* pass(40, 40)
    expect(alerts).toMatchObject([{ _tag: "QueueOld", pool: "default", tool: "fine", ready: 2 }])
  }).pipe(Effect.scoped, Effect.provide(engine({ notify, queueOlderThan: "1 minute" })))
})

it("report an old queue again after an hour, and after it was short", () => {
  const reported: Array<string> = []
  const check = makeQueueAlerts({
    report: (alert) => void reported.push(alert._tag === "QueueOld" ? alert.tool : alert._tag),
    queueOlderThan: undefined
  }, 60_000)
  const at = (minute: number, ages: Readonly<Record<string, number>>, state: "ready" | "waiting" = "ready") => {
    const counts = Object.entries(ages).map(([tool, oldestMs]) => (
      { pool: "default", tool, state, count: 1, oldestMs, openQuestions: 0 }
    ))
    check(counts, minute * 60_000)
    return reported.splice(0)
  }
  expect(at(0, { a: 60_000, b: 60_001 })).toEqual(["b"])
  expect(at(1, { a: 60_001, b: 120_000 })).toEqual(["a"])
  expect(at(59, { a: 3_600_000, b: 3_600_000 })).toEqual([])
  expect(at(60, { a: 3_600_000, b: 3_600_000 })).toEqual(["b"])
  expect(at(60, { b: 1 })).toEqual([])
  expect(at(61, { a: 60_001, b: 60_001 })).toEqual(["a", "b"])
  expect(at(200, { c: 60_001 }, "waiting")).toEqual([])
})

it.effect("harm no task if the function fails or hangs, which is logged once until it succeeds", () => {
  const lines: Array<string> = []
  const seen: Array<string> = []
  let answer: Effect.Effect<void, string> = Effect.fail("No network")
  const notify = (alert: TaskAlerts.TaskAlert) =>
    Effect.andThen(Effect.sync(() => void seen.push(alert._tag)), Effect.suspend(() => answer))
  const warnings = () => lines.filter((line) => line.includes("failed to send an alert"))
  return Effect.gen(function*() {
    yield* work(tools)
    const burn = Effect.flatMap(submit("burn"), ({ id }) => Effect.andThen(ended(id), settled))
    yield* burn
    yield* burn
    expect([seen.length, warnings().length]).toEqual([2, 1])
    answer = Effect.void
    yield* burn
    answer = Effect.never
    yield* burn
    yield* burn
    expect([seen.length, warnings().length]).toEqual([4, 1])
    yield* pass(31)
    expect([seen.length, warnings().length]).toEqual([5, 2])
    yield* pass(31)
  }).pipe(Effect.scoped, Effect.provide(engine({ notify }, lines)))
})

it.effect("send those that wait when the process stops", () => {
  const { alerts, notify } = collect()
  return Effect.gen(function*() {
    const id = yield* Effect.gen(function*() {
      yield* work(tools)
      const { id } = yield* submit("burn")
      yield* ended(id)
      return id
    }).pipe(Effect.scoped, Effect.provide(engine({ notify })))
    expect(alerts).toMatchObject([{ task: { id } }])
  })
})

it.effect("refuse a time out of bounds", () =>
  Effect.gen(function*() {
    for (const queueOlderThan of [0, -1, Number.NaN, Infinity]) {
      const layer = TaskAlerts.layer({ notify: () => Effect.void, queueOlderThan })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      expect(error.reason._tag).toBe("InvalidOption")
      expect(error.message).toContain("must be finite, and more than 0")
    }
  }))
