/** "Approvals" of `tasks.md`. */
import { expect, it } from "@effect/vitest"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import { Office, order, reminded } from "../programs/tasksApprovals.ts"

/** Answers the only open question for a person or a group. */
const answer = (to: string, yes: boolean) =>
  Effect.gen(function*() {
    const engine = yield* TaskEngine
    const [found] = yield* engine.questionsFor([to])
    return yield* engine.answer(found!.task.id, found!.question.key, { action: "accept", content: { yes } })
  })

it.live("an order is approved by three, with reminders, and another one is not within a week", () =>
  Effect.scoped(Effect.gen(function*() {
    reminded.length = 0
    const test = yield* TaskTest.make(Office)
    const large = yield* test.run(Task.submit(order, { euros: 5000 }))
    yield* test.run(Effect.sleep("60 hours"))
    expect(reminded).toEqual(["ada", "ada"])
    expect(yield* test.run(answer("ada", true))).toBe(true)
    yield* test.run(Effect.sleep("30 hours"))
    expect(reminded).toEqual(["ada", "ada", "finance"])
    yield* test.restart
    expect(yield* test.run(answer("finance", true))).toBe(true)
    yield* test.run(Effect.sleep("1 hour"))
    expect(yield* test.run(answer("board", true))).toBe(true)
    yield* test.untilIdle
    const ended = (id: string) => test.run(Effect.flatMap(TaskEngine, ({ get }) => get(id)))
    expect(yield* ended(large.id)).toMatchObject({ outcome: { result: { content: [{ text: "Ordered" }] } } })

    const small = yield* test.run(Task.submit(order, { euros: 50 }))
    yield* test.run(Effect.sleep("8 days"))
    expect(yield* ended(small.id)).toMatchObject({
      outcome: { result: { content: [{ text: "Not approved by ada" }] } }
    })
    expect(reminded.filter((who) => who === "ada")).toHaveLength(2 + 6)
  })))
