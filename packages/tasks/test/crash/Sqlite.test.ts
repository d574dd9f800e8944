/** The short form of `npm run crash`. */
import { describe, expect, it } from "vitest"
import { crash } from "./crash.ts"
import { type Moment, survive } from "./killAtCommits.ts"
import { kindOf } from "./orders.ts"

/** Ends a task. */
const finish = "UPDATE skein_tasks SET status = \\?"
const append = "INSERT INTO skein_task_log"
const suspend = "UPDATE skein_task_queue SET state = 1, worker = NULL"
const claim = "UPDATE skein_task_queue SET state = 2, worker"

const moments: ReadonlyArray<Moment & { readonly says: string }> = [
  { order: 0, side: "before", commit: "INSERT INTO skein_task_queue", says: "the task is not submitted" },
  { order: 0, side: "after", commit: "INSERT INTO skein_task_queue", says: "the task is submitted, and has not begun" },
  { order: 0, side: "before", commit: append, says: "a step has acted, and its end is not in the log" },
  {
    order: 0,
    side: "after",
    commit: append,
    says: "the end of a step is in the log, and the handler has not observed it"
  },
  {
    order: 0,
    side: "after",
    commit: "INSERT INTO ledger",
    says: "the writes of a transactional step are committed together with its event"
  },
  { order: 0, side: "before", commit: finish, says: "the log has all events, and the task has no result" },
  { order: 0, side: "after", commit: finish, says: "the task has its result" },
  { order: 1, side: "before", commit: "INSERT INTO skein_task_questions", says: "the question is not stored" },
  {
    order: 1,
    side: "after",
    commit: "INSERT INTO skein_task_questions",
    says: "the question is stored, and the run is not suspended"
  },
  { order: 1, side: "before", commit: "UPDATE skein_task_questions", says: "the answer is not stored" },
  { order: 1, side: "after", commit: "UPDATE skein_task_questions", says: "the answer is stored, and not observed" },
  { order: 2, side: "after", commit: suspend, says: "the run is suspended" },
  { order: 2, side: "before", commit: claim, says: "the time of a task has come, and no worker has claimed it" },
  { order: 2, side: "after", commit: claim, says: "a task is claimed, and does not run" },
  { order: 3, side: "after", commit: finish, says: "the task is cancelled, and its run is not interrupted" },
  {
    order: 3,
    side: "before",
    commit: "DELETE FROM skein_task_queue",
    says: "the cancelled task has compensated, and is not settled"
  },
  { order: 9, side: "after", commit: suspend, says: "a race is decided, and the run is suspended" }
]

describe.concurrent("a process with tasks on SQLite that is killed", () => {
  it(
    "at random moments: every task ends, transactional steps are committed once, keys make one effect of the others",
    async () => {
      const seed = Math.floor(Math.random() * 2 ** 31)
      const plan = { orders: 20, concurrency: 20, pace: 60, life: 1_000, kills: 5, seed }
      const { problems, ...report } = await crash(plan)
      expect({ seed, problems }).toEqual({ seed, problems: [] })
      expect(report.kills + report.stops).toBeGreaterThan(0)
      expect(report.completed + report.failed + report.cancelled).toBeGreaterThanOrEqual(20)
      expect(report.failed).toBeGreaterThanOrEqual(2)
    },
    120_000
  )

  for (const { says, ...moment } of moments) {
    it(`at a commit: ${says} (${kindOf(moment.order)})`, async () => {
      const { died, problems } = await survive(moment)
      expect(died).toContain(`${moment.side} commit`)
      expect(problems).toEqual([])
    }, 120_000)
  }
})
