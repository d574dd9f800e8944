/**
 * How many tasks there are: in all, of a tool, of an owner. The counters are touched last in each transaction, and in this order, so
 * that no two transactions wait for each other, and nobody waits for them longer than a commit takes.
 */
import * as Effect from "effect/Effect"
import { TaskError } from "../../TaskError.ts"
import type { Counted, Limits } from "../../TaskState.ts"
import type { Database } from "./database.ts"
import { unescape } from "./stored.ts"

/** What a task is counted by, as it is stored. */
export interface Counts {
  readonly tool: string
  readonly owner: string
}

const unbounded = Number.MAX_SAFE_INTEGER
const bound = (limit: number | undefined): number =>
  limit === undefined || !(limit < unbounded) ? unbounded : Math.max(Math.floor(limit), 0)

/** The parameters of `counters.full`. */
export const bounds = ({ all, owner, tool }: Counted, counts: Counts): ReadonlyArray<string | number> => [
  bound(all.live),
  bound(all.retained),
  counts.tool,
  bound(tool.live),
  bound(tool.retained),
  counts.owner,
  bound(owner.live),
  bound(owner.retained)
]

/** Whether a bound is reached, as a condition. */
export const full = `EXISTS (
  SELECT 1 FROM (VALUES
    (0, '', CAST(? AS BIGINT), CAST(? AS BIGINT)),
    (1, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT)),
    (2, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT))
  ) AS bound LEFT JOIN skein_task_counts AS counted ON counted.kind = bound.column1 AND counted.name = bound.column2
  WHERE COALESCE(counted.live, 0) >= bound.column3 OR COALESCE(counted.retained, 0) >= bound.column4
)`

const added = `ON CONFLICT (kind, name) DO UPDATE SET
  live = skein_task_counts.live + excluded.live, retained = skein_task_counts.retained + excluded.retained`

/** Counts the end of the task in the row `changed`; for PostgreSQL. On SQLite, whose statements change one table, a trigger does. */
export const ended = `INSERT INTO skein_task_counts (kind, name, live, retained)
  SELECT kinds.kind, CASE kinds.kind WHEN 0 THEN '' WHEN 1 THEN changed.tool ELSE changed.owner END, -1, 0
  FROM changed CROSS JOIN (VALUES (0), (1), (2)) AS kinds(kind) ORDER BY kinds.kind ${added}`

const whose = (kind: number, { owner, tool }: Counts): string =>
  kind === 0
    ? "in all"
    : kind === 1
    ? `of the tool "${unescape(tool)}"`
    : owner === ""
    ? "that belong to nobody"
    : "of the owner"

const exceeded = (kind: number, counts: Counts, what: "live" | "retained", limit: number) =>
  new TaskError({
    reason: "Limit",
    message: what === "live"
      ? `No more than ${limit} tasks ${whose(kind, counts)} may run at a time`
      : `No more than ${limit} tasks ${whose(kind, counts)} are kept, over or not`
  })

const none = { live: 0, retained: 0 }

/** The table of counters. */
export const make = (database: Database) => {
  const add = database.prepare(
    `INSERT INTO skein_task_counts (kind, name, live, retained) VALUES
      (0, '', CAST(? AS BIGINT), CAST(? AS BIGINT)),
      (1, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT)),
      (2, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT))
    ${added} RETURNING kind, live, retained`
  )
  const read = database.prepare(
    `SELECT kind, live, retained FROM skein_task_counts
     WHERE (kind = 0 AND name = '') OR (kind = 1 AND name = ?) OR (kind = 2 AND name = ?) ORDER BY kind`
  )
  const clear = database.prepare("DELETE FROM skein_task_counts WHERE kind = ? AND name = ? AND retained <= 0")

  const change = ({ owner, tool }: Counts, live: number, retained: number) =>
    add(live, retained, tool, live, retained, owner, live, retained)

  return {
    /** Counts one more. Fails with `Limit`, for its transaction to be undone. */
    enter: (counts: Counts, limits: Counted): Effect.Effect<void, TaskError> =>
      Effect.flatMap(change(counts, 1, 1), (rows) => {
        const error = over(rows, counts, limits, 0)
        return error === undefined ? Effect.void : Effect.fail(error)
      }),
    /** Counts one less, live or not. What nothing is counted in any more is forgotten. */
    leave: (counts: Counts, live: boolean): Effect.Effect<void, TaskError> =>
      Effect.flatMap(change(counts, live ? -1 : 0, -1), (rows) => {
        const empty = rows.filter(({ kind, retained }) => Number(kind) > 0 && Number(retained) <= 0)
        return Effect.forEach(
          empty,
          ({ kind }) => clear(Number(kind), Number(kind) === 1 ? counts.tool : counts.owner),
          { discard: true }
        )
      }),
    /** Which bound is reached. */
    reached: (counts: Counts, limits: Counted): Effect.Effect<TaskError, TaskError> =>
      Effect.map(read(counts.tool, counts.owner), (rows) => {
        const all = [0, 1, 2].map((kind) => rows.find((row) => Number(row["kind"]) === kind) ?? { ...none, kind })
        return over(all, counts, limits, 1) ?? new TaskError({ reason: "Limit", message: "There are too many tasks" })
      })
  }
}

const over = (
  rows: ReadonlyArray<Readonly<Record<string, unknown>>>,
  counts: Counts,
  { all, owner, tool }: Counted,
  more: number
): TaskError | undefined => {
  const limits: ReadonlyArray<Limits> = [all, tool, owner]
  for (const row of rows) {
    const kind = Number(row["kind"])
    const { live, retained } = limits[kind]!
    if (Number(row["live"]) + more > bound(live)) return exceeded(kind, counts, "live", bound(live))
    if (Number(row["retained"]) + more > bound(retained)) return exceeded(kind, counts, "retained", bound(retained))
  }
  return undefined
}
