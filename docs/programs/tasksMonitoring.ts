import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { Owner } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

/** Tasks of an owner (`null`: anonymous callers) that have not changed for an hour. */
export const stalled = (owner: Owner) =>
  Effect.gen(function*() {
    const { list } = yield* TaskEngine
    const now = yield* Clock.currentTimeMillis
    const newest = yield* list([owner], { limit: 1000 })
    return newest.filter(({ status, updatedAt }) => status === "working" && now - updatedAt > 3_600_000)
  })

/** Cancels a task of any owner. Its compensations run. */
export const cancelTask = (id: string) => Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id, "The oven is broken"))

/** Answers the first question of a task, for a user who has phoned. */
export const answerFirst = (id: string, sure: boolean) =>
  Effect.gen(function*() {
    const { answer, get } = yield* TaskEngine
    const [question] = (yield* get(id))?.questions ?? []
    return question !== undefined && (yield* answer(id, question.key, { action: "accept", content: { sure } }))
  })

interface Count {
  readonly tool: string
  readonly status: string
  readonly count: number
  /** The number of these that wait for a worker with their tool, or with code that can continue them. */
  readonly waiting: number
  /** The earliest time of a last change, in milliseconds of Unix time. */
  readonly since: number
}

export const counts = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql<Count>`
    SELECT tool, status, COUNT(*) AS count, SUM(CASE waits WHEN 0 THEN 0 ELSE 1 END) AS waiting,
      MIN(updated_at) AS since
    FROM skein_tasks GROUP BY tool, status ORDER BY tool, status`)
