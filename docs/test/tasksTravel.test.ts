/** The tasks of a travel office, at their size: a thousand customers, weeks of approvals. */
import { expect, it } from "@effect/vitest"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import { order, payment, Reports, Travel, trip } from "../programs/tasksTravel.ts"
import { calls } from "../programs/travelServices.ts"

const start = TaskTest.make(Travel)

it.live(
  "programs/tasksTravel.ts: reports of a thousand customers each night",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const test = yield* TaskTest.make(Reports, { startAt: "2026-03-27T00:00:00Z" })
      yield* test.run(Effect.sleep("3 days"))
      const reports = yield* test.run(Effect.flatMap(TaskAdmin, ({ list }) => list({ tool: "report" })))
      expect(reports.map(({ state }) => new Date(state.createdAt).toISOString())).toEqual([
        // The clocks have gone forward, and there was no 2:30. The first report is deleted after its two days.
        ...["2026-03-29T01:30:00.000Z", "2026-03-28T01:30:00.000Z"]
      ])
      expect(new Set(reports.map(({ state }) => state.status))).toEqual(new Set(["completed"]))
      const { outcome } = (yield* test.run(Effect.flatMap(TaskEngine, ({ get }) => get(reports[0]!.state.id))))!
      expect(outcome).toMatchObject({ result: { content: [{ text: "980 rows, 20 failed" }] } })
      // Those that fail are read twice.
      expect(calls).toMatchObject({ figures: 3 * 1020, mails: { length: 3 } })
    })),
  120_000
)

it.live("programs/tasksTravel.ts: three persons approve over days, and are reminded", () =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* start
    calls.reminders = 0
    const { await: value, id } = yield* test.run(Task.submit(order, { amount: 5000 }))
    for (const who of ["team lead", "finance", "board"]) {
      yield* test.run(Effect.sleep("49 hours"))
      const answered = Effect.flatMap(
        TaskEngine,
        ({ answer }) => answer(id, who, { action: "accept", content: { yes: true } })
      )
      expect(yield* test.run(answered)).toBe(true)
    }
    expect(yield* test.run(value)).toBe("approved")
    expect(calls).toMatchObject({ reminders: 6, paid: 1 })
    const late = yield* test.run(Task.submit(order, { amount: 1 }))
    expect(yield* test.run(late.await)).toBe("no answer in a week")
  })))

it.live("programs/tasksTravel.ts: a trip without a car is undone, as far as the airline answers", () =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* start
    const { await: value, id } = yield* test.run(Task.submit(trip, {}))
    expect((yield* Effect.flip(test.run(value))).message).toBe("no car is left")
    expect(calls.undone).toEqual(["hotel"])
    const { failedCompensations } = (yield* test.run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id))))!
    expect(failedCompensations).toMatchObject([{ number: 2, message: "the airline does not answer" }])
  })))

it.live("programs/tasksTravel.ts: a payment is received, or is late", () =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* start
    const paid = yield* test.run(Task.submit(payment, { order: "A1" }))
    yield* test.run(Effect.flatMap(TaskEngine, ({ send }) => send(paid.id, "paid", { reference: "R1" })))
    expect(yield* test.run(paid.await)).toBe("A1 is paid: R1")
    const late = yield* test.run(Task.submit(payment, { order: "A2" }))
    expect(yield* test.run(late.await)).toBe("A2 is not paid")
  })))
