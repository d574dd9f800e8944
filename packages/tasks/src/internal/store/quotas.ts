/**
 * The numbers of tasks: of all, of a tool, of an owner or a client without one. Each transaction changes the counters last, and in this order,
 * so that transactions do not deadlock, and wait for a counter no longer than a commit takes.
 */
import * as Effect from "effect/Effect"
import { LimitExceeded, TaskError } from "../../TaskError.ts"
import type { TaskLimits } from "../../TaskState.ts"
import * as counters from "./counters.ts"
import { type Database, numberOf } from "./database.ts"
import { clientPrefix } from "./rows.ts"
import { unescape } from "./storedText.ts"

/** The counters of a task, by the stored names. `counter`: see `counterOf`. */
export interface QuotaKey {
  readonly tool: string
  readonly counter: string
}

const unbounded = Number.MAX_SAFE_INTEGER
const toLimit = (limit: number | undefined): number =>
  limit === undefined || !(limit < unbounded) ? unbounded : Math.max(Math.floor(limit), 0)

/** The parameters of `bounds`. */
export const limitParameters = ({ all, client, tool }: TaskLimits, key: QuotaKey): ReadonlyArray<string | number> => [
  toLimit(all.live),
  toLimit(all.retained),
  key.tool,
  toLimit(tool.live),
  toLimit(tool.retained),
  key.counter,
  toLimit(client.live),
  toLimit(client.retained)
]

/** The rows of the counters of a task, with their limits: `kind`, `name`, `live`, `retained`. */
export const bounds = `VALUES
  (0, '', CAST(? AS BIGINT), CAST(? AS BIGINT)),
  (1, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT)),
  (2, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT))`

/** The condition that one of the limits in the table `bound` of `bounds` is reached. */
export const limitReached = (isPostgres: boolean): string =>
  `EXISTS (
    SELECT 1 FROM bound ${
    isPostgres
      ? `CROSS JOIN LATERAL ${counters.counterOf("bound.kind", "bound.name")} AS counted`
      : "LEFT JOIN skein_task_counts AS counted ON counted.kind = bound.kind AND counted.name = bound.name"
  }
    WHERE COALESCE(counted.live, 0) >= bound.live OR COALESCE(counted.retained, 0) >= bound.retained
  )`

const quotaName = (kind: number, { counter, tool }: QuotaKey): string =>
  kind === 0
    ? "in total"
    : kind === 1
    ? `of the tool "${unescape(tool)}"`
    : counter === ""
    ? "without an owner"
    : counter.startsWith(clientPrefix)
    ? "of the client"
    : "of the owner"

const limitExceeded = (message: string) => new TaskError({ reason: new LimitExceeded({ message }) })

const none = { live: 0, retained: 0 }

const addToCounts = `ON CONFLICT (kind, name) DO UPDATE SET
  live = skein_task_counts.live + excluded.live, retained = skein_task_counts.retained + excluded.retained`

/** The statements on the counters. */
export const make = (database: Database) => {
  const add = database.prepare(
    `INSERT INTO skein_task_counts (kind, name, live, retained)
     VALUES (0, '', 1, 1), (1, ?, 1, 1), (2, ?, 1, 1) ${addToCounts}`
  )
  const read = database.prepare(
    database.isPostgres
      ? `SELECT counter.kind, counted.live, counted.retained
         FROM (VALUES (0, ''), (1, CAST(? AS TEXT)), (2, CAST(? AS TEXT))) AS counter(kind, name)
         CROSS JOIN LATERAL ${counters.counterOf("counter.kind", "counter.name")} AS counted`
      : `SELECT kind, live, retained FROM skein_task_counts
         WHERE (kind = 0 AND name = '') OR (kind = 1 AND name = ?) OR (kind = 2 AND name = ?)`
  )
  const addAll = database.prepare(
    `INSERT INTO skein_task_counts (kind, name, live, retained)
     SELECT value ->> 'kind' AS kind, value ->> 'name' AS name, SUM(value ->> 'live'), SUM(value ->> 'retained')
     FROM json_each(?) WHERE TRUE GROUP BY 1, 2 ${addToCounts}`
  )
  const clearEmpty = database.prepare("DELETE FROM skein_task_counts WHERE kind > 0 AND retained <= 0")
  const change = database.isPostgres
    ? database.prepare(counters.countAll)
    : (items: string) => Effect.andThen(addAll(items), clearEmpty())

  return {
    /** Counts a new task on SQLite, in the transaction that has found room for it. */
    increment: ({ counter, tool }: QuotaKey): Effect.Effect<unknown, TaskError> => add(tool, counter),
    /** Counts a task that was inserted whatever the limits are. */
    add: ({ counter, tool }: QuotaKey, isLive: boolean): Effect.Effect<unknown, TaskError> =>
      change(JSON.stringify(
        ["", tool, counter].map((name, kind) => ({ kind, name, live: Number(isLive), retained: 1 }))
      )),
    /** Counts deleted tasks. Deletes counters of owners that have reached zero. */
    decrement: (tasks: ReadonlyArray<QuotaKey & { readonly isLive: boolean }>): Effect.Effect<unknown, TaskError> =>
      change(JSON.stringify(differencesOf(tasks))),
    /** The error for the limit that is reached. */
    limitError: (key: QuotaKey, { all, client, tool }: TaskLimits): Effect.Effect<TaskError, TaskError> =>
      Effect.map(read(key.tool, key.counter), (rows) => {
        for (const [kind, limits] of [all, tool, client].entries()) {
          const row = rows.find((row) => numberOf(row, "kind") === kind) ?? none
          const tasks = `tasks ${quotaName(kind, key)}`
          const live = toLimit(limits.live)
          if (numberOf(row, "live") >= live) return limitExceeded(`limit reached: ${live} ${tasks} that have not ended`)
          const retained = toLimit(limits.retained)
          if (numberOf(row, "retained") >= retained) return limitExceeded(`limit reached: ${retained} stored ${tasks}`)
        }
        return limitExceeded("limit on tasks reached")
      })
  }
}

/** The differences of the counters after the deletion of tasks. */
const differencesOf = (tasks: ReadonlyArray<QuotaKey & { readonly isLive: boolean }>) =>
  tasks.flatMap(({ counter, isLive, tool }) =>
    ["", tool, counter].map((name, kind) => ({ kind, name, live: isLive ? -1 : 0, retained: -1 }))
  )
