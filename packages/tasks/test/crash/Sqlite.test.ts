/** The short form of `npm run crash`. */
import { describe, expect, it } from "vitest"
import { crash } from "./crash.ts"
import { type Moment, survive } from "./killAtCommits.ts"
import { kindOf } from "./orders.ts"

/** Ends a task: its row, before the workflow engine. */
const finish = "UPDATE skein_tasks SET status = \\?"

const moments: ReadonlyArray<Moment & { readonly says: string }> = [
  {
    order: 0,
    side: "after",
    commit: "INSERT INTO ledger",
    says: "the writes of a transactional step are committed together with its record"
  },
  { order: 0, side: "before", commit: finish, says: "the engine has recorded all steps, and the row has no result" },
  { order: 0, side: "after", commit: finish, says: "the row has the result, and the execution has not ended" },
  { order: 3, side: "after", commit: finish, says: "the row is cancelled, and the engine is not interrupted" },
  {
    order: 1,
    side: "after",
    commit: "INSERT INTO skein_task_questions",
    says: "the question is stored, and the engine does not wait for it yet"
  },
  { order: 1, side: "before", commit: "UPDATE skein_task_questions", says: "the answer is not in the row yet" }
]

describe.concurrent("a process with tasks on SQLite that is killed", () => {
  it(
    "at random moments: every task ends, transactional steps are committed once, keys make one effect of the others",
    async () => {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const plan = { orders: 20, concurrency: 20, pace: 60, life: 1_000, kills: 5, later: true, seed }
      const { problems, ...report } = await crash(plan)
      expect({ seed, problems }).toEqual({ seed, problems: [] })
      expect(report.kills + report.stops).toBeGreaterThan(0)
      expect(report.completed + report.failed + report.cancelled).toBeGreaterThanOrEqual(20)
      expect(report.failed).toBeGreaterThanOrEqual(2)
    },
    120_000
  )

  for (const { says, ...moment } of moments) {
    it(`between store and engine: ${says} (${kindOf(moment.order)})`, async () => {
      const { died, problems } = await survive(moment)
      expect(died).toContain(`${moment.side} commit`)
      expect(problems).toEqual([])
    }, 120_000)
  }
})
