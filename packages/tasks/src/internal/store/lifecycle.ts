/**
 * How tasks begin, end and are forgotten: what the counters count.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask, State } from "../../TaskState.ts"
import { diagnosis, isError } from "../diagnosis.ts"
import type { End } from "./store.ts"
import { longest, millis, now, type Table } from "./context.ts"
import * as counters from "./quotas.ts"
import { never, type Row } from "./database.ts"
import { about, isLive, live, ownerToRow } from "./rows.ts"
import { escape, json, unfit } from "./stored.ts"

/** 192 bits, as 32 characters. */
const newId = (): string => Base64Url.encode(globalThis.crypto.getRandomValues(new Uint8Array(24)))

const tooLong = (what: string) => unfit(`The ${what} of a task has too many characters: at most ${longest} are kept`)

const newState = (id: string, { caller, owner, pollInterval, pool, tool, ttl }: NewTask, now: number): State => ({
  id,
  tool,
  pool,
  owner,
  status: "working",
  message: undefined,
  progress: undefined,
  createdAt: now,
  updatedAt: now,
  ttl: ttl === null || ttl === Number.POSITIVE_INFINITY ? null : millis(ttl),
  pollInterval: millis(pollInterval),
  version: 1,
  caller,
  questions: [],
  isError: false,
  outcome: undefined
})

const countsOf = (row: Row): counters.Counts => ({ tool: row["tool"] as string, owner: row["owner"] as string })

/** See `TaskStore`. */
export const make = ({ changes, database, vault }: Table) => {
  const counted = counters.make(database)
  const inserts = database.prepare(
    `INSERT INTO skein_tasks
       (id, tool, pool, owner, status, created_at, updated_at, expires_at, ttl, poll_interval, caller, args)
     SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 'working', CAST(? AS BIGINT),
       CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)
     WHERE NOT ${counters.full} RETURNING id`
  )
  const finishes = changes.prepare(
    `UPDATE skein_tasks SET status = ?, outcome = ?, is_error = ?, message = COALESCE(?, message),
       version = version + 1, updated_at = ${database.latest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id, tool, owner`,
    `, counted AS (${counters.ended})`
  )
  const removes = changes.prepare("DELETE FROM skein_tasks WHERE id = ? RETURNING id, tool, owner, status")
  const removesQuestions = database.prepare("DELETE FROM skein_task_questions WHERE task_id = ?")

  const insert = <E, R>(
    task: NewTask,
    then: (state: State) => Effect.Effect<void, E, R>
  ): Effect.Effect<State, TaskError | E, R> => {
    const counts = { tool: escape(task.tool), owner: ownerToRow(task.owner) }
    const pool = escape(task.pool)
    if (counts.tool.length > longest) return Effect.fail(tooLong("tool"))
    if (counts.owner.length > longest) return Effect.fail(tooLong("owner"))
    if (pool.length > longest) return Effect.fail(tooLong("pool"))
    return Effect.suspend(() => {
      const id = newId()
      const args = Effect.flatMap(json(task.args), (text) => vault.seal(text, about.args(id)))
      return Effect.flatMap(Effect.all([now, args, json(task.caller)]), ([time, args, caller]) => {
        const state = newState(id, task, time)
        const { createdAt, pollInterval, ttl } = state
        const expiresAt = ttl === null ? never : millis(createdAt + ttl)
        const row = [
          id,
          counts.tool,
          pool,
          counts.owner,
          createdAt,
          createdAt,
          expiresAt,
          ttl,
          pollInterval,
          caller,
          args
        ]
        const inserted = inserts(...row, ...counters.bounds(task.limits, counts))
        const begun = Effect.flatMap(inserted, (rows) =>
          rows.length === 0
            ? Effect.flatMap(counted.reached(counts, task.limits), Effect.fail)
            : Effect.andThen(then(state), counted.enter(counts, task.limits)))
        return Effect.as(database.transaction(begun), state)
      })
    })
  }

  const finish = (id: string, end: End): Effect.Effect<boolean, TaskError> => {
    const outcome = end.status === "cancelled"
      ? Effect.succeed(null)
      : Effect.flatMap(json(end.outcome), (text) => vault.seal(text, about.outcome(id)))
    const said = end.message ?? (end.status === "cancelled" ? undefined : diagnosis(end.outcome))
    const message = said === undefined ? Effect.succeed(null) : vault.seal(escape(said), about.message(id))
    const failed = Number(end.status !== "cancelled" && isError(end.outcome))
    return Effect.flatMap(Effect.all([now, outcome, message]), ([time, outcome, message]) => {
      // The same statement counts, in either database.
      const changed = finishes(end.status, outcome, failed, message, time, id)
      return Effect.map(changed, (row) => row !== undefined)
    })
  }

  const remove = <E, R>(id: string, then: Effect.Effect<void, E, R>): Effect.Effect<void, TaskError | E, R> =>
    database.transaction(
      Effect.flatMap(removes(id), (row) =>
        row === undefined
          ? then
          : Effect.andThen(Effect.andThen(removesQuestions(id), then), counted.leave(countsOf(row), isLive(row))))
    )

  return { insert, finish, remove }
}
