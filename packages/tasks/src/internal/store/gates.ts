/**
 * Gates: the tasks of a tool with a limit of concurrency or a rate, and those of a paused tool, are not claimed freely.
 *
 * Such a tool has a row in `skein_task_tools`, and the rows of its tasks in the queue have `gate` 1: a claim locks the
 * row of the tool, and counts what runs. Cancelled tasks have `gate` 2 and are claimed like those of other tools, whose
 * rows have 0. A tool without a gate costs nothing.
 */
import * as Effect from "effect/Effect"
import type { ToolState } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import { type Database, numberOf, optionalNumberOf, type Row, textOf } from "./database.ts"
import { claimedColumns, queued, type StoreContext } from "./rows.ts"
import type { Claim, Store } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

/** A number that no count of tasks exceeds. */
export const unlimited = 2 ** 31 - 1

const isReady = `state = ${queued.ready} AND gate = 1`

/** The tasks of a claim that were lost with their workers: see `TaskStore.claim`. */
interface LostTasks {
  readonly max: number
  /** How many workers were lost with those that are claimed, at most. */
  claimed: number
}

/** Whether a task may start beside the others of its claim. */
const mayStart = (task: Row, lost: LostTasks): boolean => {
  const attempts = numberOf(task, "attempts")
  const isAlone = attempts > 1 || lost.claimed > 1
  if (isAlone && attempts > 0 && lost.claimed > 0) return false
  lost.claimed = Math.max(lost.claimed, attempts)
  return true
}

/** Makes the claim of gated tasks. `claimed` reads the tasks of rows that were updated. */
export const makeClaim = ({ claimed, database }: {
  readonly database: Database
  readonly claimed: (rows: ReadonlyArray<Row>) => Effect.Effect<ReadonlyArray<Claim>, TaskError>
}): Store["claimGated"] => {
  const { isPostgres } = database
  const forUpdate = isPostgres ? "FOR UPDATE" : ""
  const inPools = (pools: ReadonlyArray<string> | undefined) =>
    pools === undefined ? "" : `AND pool IN (${pools.map(() => "?").join()})`
  // The order of the tools prevents deadlocks.
  const lockTools = (pools: ReadonlyArray<string> | undefined) =>
    database.prepare(
      `SELECT tool, concurrency, rate_limit, rate_ms FROM skein_task_tools WHERE paused_at IS NULL AND EXISTS (
         SELECT 1 FROM skein_task_queue WHERE ${isReady} AND tool = skein_task_tools.tool ${inPools(pools)}
       ) ORDER BY tool ${forUpdate}`
    )
  const countRunning = database.prepare(
    `SELECT COUNT(*) AS tasks FROM skein_task_queue WHERE state = ${queued.running} AND gate <> 0 AND tool = ?`
  )
  // A key may start fewer tasks than are found; the next claim leaves out a key that has none left.
  const selectDue = (pools: ReadonlyArray<string> | undefined) =>
    database.prepare(
      `SELECT task_id, rate_key, runs, attempts FROM skein_task_queue
       WHERE ${isReady} AND attempts <= ? AND tool = ? ${inPools(pools)}
         AND (runs > 0 OR rate_key NOT IN (
           SELECT rate_key FROM skein_task_starts WHERE tool = ? AND started_at > ?
           GROUP BY rate_key HAVING COUNT(*) >= ?
         ))
       ORDER BY priority, wake_at LIMIT ? ${isPostgres ? "FOR UPDATE SKIP LOCKED" : ""}`
    )
  const countStarts = database.prepare(
    `SELECT rate_key, COUNT(*) AS tasks FROM skein_task_starts
     WHERE tool = ? AND started_at > ? AND rate_key IN (${database.textsOfJson}) GROUP BY rate_key`
  )
  const claimTasks = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.running}, worker = ?, runs = runs + 1
     WHERE task_id IN (${database.textsOfJson}) RETURNING ${claimedColumns}`
  )
  const insertStart = database.prepare(
    "INSERT INTO skein_task_starts (tool, rate_key, started_at, task_id) VALUES (?, ?, ?, ?)"
  )
  const deleteStarts = database.prepare("DELETE FROM skein_task_starts WHERE tool = ? AND started_at <= ?")

  /** The tasks of one tool that may start, up to `limit`. Records the starts. */
  const start = Effect.fnUntraced(function*(
    row: Row,
    pools: ReadonlyArray<string> | undefined,
    limit: number,
    lost: LostTasks
  ) {
    const tool = textOf(row, "tool")
    const concurrency = optionalNumberOf(row, "concurrency")
    const running = concurrency === undefined ? 0 : numberOf((yield* countRunning(tool))[0]!, "tasks")
    const free = Math.min(limit, (concurrency ?? unlimited) - running)
    if (free <= 0) return []
    const now = yield* database.now
    const rate = optionalNumberOf(row, "rate_limit")
    const since = now - (optionalNumberOf(row, "rate_ms") ?? 0)
    const due = yield* selectDue(pools)(
      lost.max,
      tool,
      ...(pools ?? []).map(escape),
      tool,
      since,
      rate ?? unlimited,
      free
    )
    if (rate === undefined || due.length === 0) {
      return due.filter((task) => mayStart(task, lost)).map((task) => textOf(task, "task_id"))
    }
    yield* deleteStarts(tool, since)
    const keys = JSON.stringify([...new Set(due.map((task) => textOf(task, "rate_key")))])
    const starts = new Map(
      (yield* countStarts(tool, since, keys)).map((found) => [textOf(found, "rate_key"), numberOf(found, "tasks")])
    )
    const started: Array<string> = []
    for (const task of due) {
      const id = textOf(task, "task_id")
      const key = textOf(task, "rate_key")
      if (!mayStart(task, lost)) continue
      // Only the start of a task counts, not what follows a sleep or an answer.
      if (numberOf(task, "runs") === 0) {
        const count = starts.get(key) ?? 0
        if (count >= rate) continue
        starts.set(key, count + 1)
        yield* insertStart(tool, key, now, id)
      }
      started.push(id)
    }
    return started
  })

  return (worker, pools, limit, maxLost = unlimited) => {
    if (pools?.length === 0) return Effect.succeed([])
    const claim = Effect.gen(function*() {
      const ids: Array<string> = []
      const lost: LostTasks = { max: Math.min(maxLost, unlimited), claimed: 0 }
      for (const row of yield* lockTools(pools)(...(pools ?? []).map(escape))) {
        ids.push(...(yield* start(row, pools, limit - ids.length, lost)))
      }
      return ids.length === 0 ? [] : yield* claimTasks(worker, JSON.stringify(ids))
    })
    return Effect.flatMap(database.transaction(claim), claimed)
  }
}

/** Makes the operations that open, close and list gates. */
export const make = ({ database, signals }: StoreContext): Store["tools"] => {
  const upsertPace = database.prepare(
    `INSERT INTO skein_task_tools (tool, concurrency, rate_limit, rate_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (tool) DO UPDATE SET concurrency = excluded.concurrency, rate_limit = excluded.rate_limit,
       rate_ms = excluded.rate_ms`
  )
  const removePace = database.prepare(
    "UPDATE skein_task_tools SET concurrency = NULL, rate_limit = NULL, rate_ms = NULL WHERE tool = ? RETURNING tool"
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
    `DELETE FROM skein_task_tools WHERE tool = ? AND concurrency IS NULL AND rate_limit IS NULL AND paused_at IS NULL
     RETURNING tool`
  )
  const gateTasks = database.prepare(
    `UPDATE skein_task_queue SET gate = 1 WHERE tool = ? AND gate = 0
     AND NOT EXISTS (SELECT 1 FROM skein_tasks WHERE id = skein_task_queue.task_id AND status = 'cancelled')`
  )
  const freeTasks = database.prepare(
    `UPDATE skein_task_queue SET gate = 0 WHERE tool = ? AND gate = 1 RETURNING pool, gate, state`
  )
  const deleteStarts = database.prepare("DELETE FROM skein_task_starts WHERE tool = ?")
  const selectPools = database.prepare(`SELECT DISTINCT pool, gate FROM skein_task_queue WHERE ${isReady} AND tool = ?`)
  const selectTools = database.prepare(
    `SELECT tool, concurrency, rate_limit, rate_ms, paused_at,
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
      const { concurrency, rate } = pace
      return close(tool, upsertPace(tool, concurrency ?? null, rate?.limit ?? null, rate?.periodMs ?? null)).pipe(
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
      rows.map((row): ToolState => {
        const limit = optionalNumberOf(row, "rate_limit")
        return {
          tool: unescape(textOf(row, "tool")),
          concurrency: optionalNumberOf(row, "concurrency"),
          rate: limit === undefined ? undefined : { limit, periodMs: numberOf(row, "rate_ms") },
          pausedAt: optionalNumberOf(row, "paused_at"),
          running: numberOf(row, "running")
        }
      }))
  }
}
