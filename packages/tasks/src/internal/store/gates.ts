/**
 * Gates: the tasks of a tool with a limit of concurrency, a rate or keys, and those of a paused tool, are not claimed freely.
 *
 * Such a tool has a row in `skein_task_tools`, and the rows of its tasks in the queue have `gate` 1: a claim locks the
 * row of the tool, and counts what runs. Cancelled tasks have `gate` 2 and are claimed like those of other tools, whose
 * rows have 0. A tool without a gate costs nothing.
 */
import * as Effect from "effect/Effect"
import type { ToolState } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { Pace } from "../../TaskState.ts"
import { numberOf, optionalNumberOf, type Row, textOf } from "./database.ts"
import { queued, type StoreContext } from "./rows.ts"
import type { Store } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

/** A number that no count of tasks exceeds. */
export const unlimited = 2 ** 31 - 1

/** The condition for the tasks that a claim of gated tasks finds. */
export const isGatedReady = `state = ${queued.ready} AND gate = 1`

/** The columns of a tool's limits, in the order of `paceValues`. */
const paceColumns = [
  "concurrency",
  "rate_limit",
  "rate_ms",
  "keyed",
  "key_concurrency",
  "key_rate_limit",
  "key_rate_ms"
]

const paceValues = ({ concurrency, perKey, rate }: Pace) => [
  concurrency ?? null,
  rate?.limit ?? null,
  rate?.periodMs ?? null,
  Number(perKey !== undefined),
  perKey?.concurrency ?? null,
  perKey?.rate?.limit ?? null,
  perKey?.rate?.periodMs ?? null
]

const rateOf = (row: Row, limit: string, periodMs: string) =>
  row[limit] == null ? undefined : { limit: numberOf(row, limit), periodMs: numberOf(row, periodMs) }

/** Makes the operations that open, close and list gates. */
export const make = ({ database, signals }: StoreContext): Store["tools"] => {
  const upsertPace = database.prepare(
    `INSERT INTO skein_task_tools (tool, ${paceColumns.join()}) VALUES (?, ${paceColumns.map(() => "?").join()})
     ON CONFLICT (tool) DO UPDATE SET ${paceColumns.map((column) => `${column} = excluded.${column}`).join()}`
  )
  const removePace = database.prepare(
    `UPDATE skein_task_tools SET ${
      paceColumns.map((column) => `${column} = ${column === "keyed" ? "0" : "NULL"}`).join()
    }
     WHERE tool = ? RETURNING tool`
  )
  const pause = database.prepare(
    `INSERT INTO skein_task_tools (tool, paused_at) VALUES (?, ?)
     ON CONFLICT (tool) DO UPDATE SET paused_at = excluded.paused_at WHERE skein_task_tools.paused_at IS NULL
     RETURNING tool`
  )
  const resume = database.prepare(
    "UPDATE skein_task_tools SET paused_at = NULL WHERE tool = ? AND paused_at IS NOT NULL RETURNING tool"
  )
  const removeGate = database.prepare(
    `DELETE FROM skein_task_tools WHERE tool = ? AND concurrency IS NULL AND rate_limit IS NULL AND keyed = 0
       AND paused_at IS NULL RETURNING tool`
  )
  const gateTasks = database.prepare(
    `UPDATE skein_task_queue SET gate = 1 WHERE tool = ? AND gate = 0
     AND NOT EXISTS (SELECT 1 FROM skein_tasks WHERE id = skein_task_queue.task_id AND status = 'cancelled')`
  )
  const freeTasks = database.prepare(
    `UPDATE skein_task_queue SET gate = 0 WHERE tool = ? AND gate = 1 RETURNING pool, gate, state`
  )
  const deleteStarts = database.prepare("DELETE FROM skein_task_starts WHERE tool = ?")
  const selectPools = database.prepare(
    `SELECT DISTINCT pool, gate FROM skein_task_queue WHERE ${isGatedReady} AND tool = ?`
  )
  const selectTools = database.prepare(
    `SELECT tool, ${paceColumns.join()}, paused_at,
       (SELECT COUNT(*) FROM skein_task_queue
        WHERE state = ${queued.running} AND gate <> 0 AND tool = skein_task_tools.tool) AS running
     FROM skein_task_tools ORDER BY tool`
  )

  /** Sets a gate. The tasks that were inserted in the meantime, and did not see it, have it afterwards. */
  const close = <A>(tool: string, set: Effect.Effect<A, TaskError>): Effect.Effect<A, TaskError> =>
    Effect.tap(database.transaction(Effect.tap(set, () => gateTasks(tool))), () => gateTasks(tool))

  /** Removes a gate without a limit; in any case tasks may be claimed now that could not be claimed before. */
  const reopen = Effect.fnUntraced(function*(tool: string): Effect.fn.Return<void, TaskError> {
    const isFree = (yield* removeGate(tool)).length > 0
    if (isFree) yield* deleteStarts(tool)
    const tasks = isFree
      ? (yield* freeTasks(tool)).filter(({ state }) => Number(state) === queued.ready)
      : yield* selectPools(tool)
    yield* signals.announce(tasks)
  })

  return {
    pace: (name, pace) => {
      const tool = escape(name)
      if (pace === undefined) {
        return database.transaction(
          Effect.flatMap(removePace(tool), (rows) => rows.length === 0 ? Effect.void : reopen(tool))
        )
      }
      return close(tool, upsertPace(tool, ...paceValues(pace))).pipe(
        Effect.andThen(selectPools(tool)),
        Effect.flatMap(signals.announce)
      )
    },
    pause: (name) =>
      Effect.flatMap(database.now, (now) => {
        const tool = escape(name)
        return Effect.map(close(tool, pause(tool, now)), (rows) => rows.length > 0)
      }),
    resume: (name) => {
      const tool = escape(name)
      return database.transaction(
        Effect.flatMap(resume(tool), (rows) => Effect.as(rows.length > 0 ? reopen(tool) : Effect.void, rows.length > 0))
      )
    },
    list: Effect.map(selectTools(), (rows) =>
      rows.map((row): ToolState => ({
        tool: unescape(textOf(row, "tool")),
        concurrency: optionalNumberOf(row, "concurrency"),
        rate: rateOf(row, "rate_limit", "rate_ms"),
        perKey: numberOf(row, "keyed") === 0 ? undefined : {
          concurrency: optionalNumberOf(row, "key_concurrency"),
          rate: rateOf(row, "key_rate_limit", "key_rate_ms")
        },
        pausedAt: optionalNumberOf(row, "paused_at"),
        running: numberOf(row, "running")
      })))
  }
}
