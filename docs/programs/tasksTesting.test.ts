import { expect, it } from "@effect/vitest"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import { checkout, Shop } from "./tasksEvents.ts"
import { Office, written } from "./tasksSchedules.ts"

// #region restart
it.live("a payment arrives after a restart, and another one never", () =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* TaskTest.make(Shop)
    const [paid, unpaid] = yield* test.run(Effect.all([
      Task.submit(checkout, { order: "4711" }),
      Task.submit(checkout, { order: "4712" })
    ]))
    yield* test.run(Effect.sleep("1 day"))
    yield* test.restart
    const sent = Effect.flatMap(TaskEngine, (engine) => engine.sendAll("paid", "order/4711", { receipt: "R1" }))
    yield* test.run(sent)
    yield* test.untilIdle // a day later, at the end of the second task's timeout
    const ended = Effect.flatMap(TaskEngine, ({ get }) => Effect.all([get(paid.id), get(unpaid.id)]))
    expect(yield* test.run(ended)).toMatchObject([
      { outcome: { result: { content: [{ text: "4711 is paid: R1" }] } } },
      { outcome: { result: { content: [{ text: "4712 was not paid in time" }] } } }
    ])
  })))
// #endregion

// #region schedule
it.live("the report is written at half past two, also on the day that skips it", () =>
  Effect.scoped(Effect.gen(function*() {
    written.length = 0
    const test = yield* TaskTest.make(Office, { startAt: "2026-03-27T12:00:00Z" })
    yield* test.run(Effect.sleep("2 days"))
    yield* test.untilIdle
    expect(written).toEqual(["north 2026-03-28T01:30:00.000Z", "north 2026-03-29T01:30:00.000Z"])
  })))
// #endregion
