/**
 * Creates, ends and deletes tasks, and updates the numbers that the limits bound.
 */
import * as RandomId from "@skein/runtime/RandomId"
import * as Effect from "effect/Effect"
import type { NewTask, State } from "../../TaskState.ts"
import { failureMessage, isErrorResult } from "../text.ts"
import type { Store } from "./store.ts"
import * as quotas from "./quotas.ts"
import { currentMillis, maxNameChars, maxTime, type Row, toStoredMillis } from "./database.ts"
import { associatedData, isLive, live, ownerToRow, type StoreContext } from "./rows.ts"
import { escape, permanentError, toJson } from "./storedText.ts"

/** A task id: 190 random bits, as 32 letters and digits. */
const newId = (): string => RandomId.make(32)

const tooLong = (name: string) => permanentError(`the ${name} of a task exceeds ${maxNameChars} characters`)

const newState = (id: string, { caller, owner, pollIntervalMs, pool, tool, ttlMs }: NewTask, now: number): State => ({
  id,
  tool,
  pool,
  owner,
  status: "working",
  statusMessage: undefined,
  progress: undefined,
  createdAt: now,
  updatedAt: now,
  ttlMs: ttlMs === null || ttlMs === Number.POSITIVE_INFINITY ? null : toStoredMillis(ttlMs),
  pollIntervalMs: toStoredMillis(pollIntervalMs),
  version: 1,
  caller,
  questions: [],
  isError: false,
  outcome: undefined
})

const quotaKeyOf = (row: Row): quotas.QuotaKey => ({ tool: row["tool"] as string, owner: row["owner"] as string })

/** The lifecycle operations of `TaskStore`. */
export const make = ({ changes, database, texts }: StoreContext) => {
  const counted = quotas.make(database)
  const insertTask = database.prepare(
    `INSERT INTO skein_tasks
       (id, tool, pool, owner, status, created_at, updated_at, expires_at, ttl, poll_interval, caller, args)
     SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 'working', CAST(? AS BIGINT),
       CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)
     WHERE NOT ${quotas.limitReached} RETURNING id`
  )
  const finishTask = changes.prepare(
    `UPDATE skein_tasks SET status = ?, outcome = ?, is_error = ?, message = COALESCE(?, message),
       version = version + 1, updated_at = ${database.greatest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id, tool, owner`,
    `, counted AS (${quotas.countEnd})`
  )
  const deleteTask = changes.prepare("DELETE FROM skein_tasks WHERE id = ? RETURNING id, tool, owner, status")
  const deleteQuestions = database.prepare("DELETE FROM skein_task_questions WHERE task_id = ?")

  const insert: Store["insert"] = (task, then) => {
    const counts = { tool: escape(task.tool), owner: ownerToRow(task.owner) }
    const pool = escape(task.pool)
    if (counts.tool.length > maxNameChars) return Effect.fail(tooLong("tool"))
    if (counts.owner.length > maxNameChars) return Effect.fail(tooLong("owner"))
    if (pool.length > maxNameChars) return Effect.fail(tooLong("pool"))
    return Effect.suspend(() => {
      const id = newId()
      const args = Effect.flatMap(toJson(task.args), (text) => texts.encrypt(text, associatedData.args(id)))
      return Effect.flatMap(Effect.all([currentMillis, args, toJson(task.caller)]), ([time, args, caller]) => {
        const state = newState(id, task, time)
        const { createdAt, pollIntervalMs, ttlMs } = state
        const expiresAt = ttlMs === null ? maxTime : toStoredMillis(createdAt + ttlMs)
        const row = [
          id,
          counts.tool,
          pool,
          counts.owner,
          createdAt,
          createdAt,
          expiresAt,
          ttlMs,
          pollIntervalMs,
          caller,
          args
        ]
        const inserted = insertTask(...row, ...quotas.limitParameters(task.limits, counts))
        const created = Effect.flatMap(inserted, (rows) =>
          rows.length === 0
            ? Effect.flatMap(counted.limitError(counts, task.limits), Effect.fail)
            : Effect.andThen(then(state), counted.increment(counts, task.limits)))
        return Effect.as(database.transaction(created), state)
      })
    })
  }

  const finish: Store["finish"] = (id, end) => {
    const outcome = end.status === "cancelled"
      ? Effect.succeed(null)
      : Effect.flatMap(toJson(end.outcome), (text) => texts.encrypt(text, associatedData.outcome(id)))
    const statusMessage = end.statusMessage ?? (end.status === "cancelled" ? undefined : failureMessage(end.outcome))
    const message = statusMessage === undefined
      ? Effect.succeed(null)
      : texts.encrypt(escape(statusMessage), associatedData.message(id))
    const failed = Number(end.status !== "cancelled" && isErrorResult(end.outcome))
    return Effect.flatMap(Effect.all([currentMillis, outcome, message]), ([time, outcome, message]) => {
      // The same statement updates the counters, in either database.
      const changed = finishTask(end.status, outcome, failed, message, time, id)
      return Effect.map(changed, (row) => row !== undefined)
    })
  }

  const remove: Store["remove"] = (id, then) =>
    database.transaction(
      Effect.flatMap(deleteTask(id), (row) =>
        row === undefined
          ? then
          : Effect.andThen(Effect.andThen(deleteQuestions(id), then), counted.decrement(quotaKeyOf(row), isLive(row))))
    )

  return { insert, finish, remove }
}
