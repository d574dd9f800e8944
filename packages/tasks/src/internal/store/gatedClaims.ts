/**
 * Claims of gated tasks: see `gates.ts`.
 *
 * The tasks of a tool with keys are claimed in turns: one of each key, in the order of the keys, and the next claim goes on
 * behind the last one. So a key with a thousand tasks delays another one by a task.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import {
  type Database,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  type Parameter,
  type Row,
  textOf
} from "./database.ts"
import { isGatedReady, unlimited } from "./gates.ts"
import { claimedColumns, queued } from "./rows.ts"
import type { Claim, Store } from "./store.ts"
import { escape } from "./storedText.ts"

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

type Pools = ReadonlyArray<string> | undefined

const noTasks: Effect.Effect<ReadonlyArray<Row>> = /* @__PURE__ */ Effect.succeed([])

const dueColumns = "task_id, rate_key, runs, attempts"

/** The parameters of the query for turns, by their names in its text. */
interface Turns {
  readonly tool: string
  /** How many workers were lost with a task, at most. */
  readonly lost: number
  readonly pools: Pools
  /** How many tasks of a key run, and start since a time, at most. */
  readonly concurrency: number
  readonly rate: number
  readonly since: number
  /** The number of tasks, at most. */
  readonly wanted: number
  readonly lastKey: string
}

/**
 * The next task of each key, up to a number of tasks. `from` compares the first key with the last one of the claim before.
 * Each row of `turns` has a key, and the task of the key before.
 */
const selectTurns = (database: Database, from: ">" | ">=", { pools, ...values }: Turns) => {
  const inPools = pools === undefined ? "" : `AND pool IN (${pools.map((_, index) => `:pool${index}`).join()})`
  const queue = `FROM skein_task_queue WHERE ${isGatedReady} AND tool = :tool AND attempts <= :lost ${inPools}`
  // Only the index that has the keys before the priorities returns the rows in this order: no statistics are needed to choose it.
  const first = (condition = "") =>
    `SELECT task_id ${queue} AND rate_key BETWEEN turns.rate_key AND turns.rate_key ${condition}
     ORDER BY rate_key, priority, wake_at LIMIT 1`
  const running = `SELECT COUNT(*) FROM skein_task_queue
    WHERE state = ${queued.running} AND gate <> 0 AND tool = :tool AND rate_key = turns.rate_key`
  const starts = `SELECT COUNT(*) FROM skein_task_starts
    WHERE tool = :tool AND rate_key = turns.rate_key AND started_at > :since`
  const found = "found + CASE WHEN task_id IS NULL THEN 0 ELSE 1 END"
  const text = `WITH RECURSIVE turns (rate_key, task_id, found) AS (
      SELECT (SELECT rate_key ${queue} AND rate_key ${from} :lastKey ORDER BY rate_key LIMIT 1),
        (SELECT task_id FROM skein_task_queue LIMIT 0), 0
      UNION ALL
      SELECT (SELECT rate_key ${queue} AND rate_key > turns.rate_key ORDER BY rate_key LIMIT 1),
        CASE WHEN (${running}) < :concurrency
          THEN CASE WHEN (${starts}) < :rate THEN (${first()}) ELSE (${first("AND runs > 0")}) END
        END,
        ${found}
      FROM turns WHERE turns.rate_key IS NOT NULL AND ${found} < :wanted
    )
    SELECT task_id FROM turns WHERE task_id IS NOT NULL`
  const byName: Readonly<Record<string, Parameter>> = {
    ...values,
    ...Object.fromEntries((pools ?? []).map((pool, index) => [`pool${index}`, escape(pool)]))
  }
  const parameters: Array<Parameter> = []
  const positional = text.replaceAll(/:(\w+)/g, (_, name: string) => {
    parameters.push(byName[name]!)
    return "?"
  })
  return database.prepare(positional)(...parameters)
}

/** Makes the claim of gated tasks. `claimed` reads the tasks of rows that were updated. */
export const makeClaim = ({ claimed, database }: {
  readonly database: Database
  readonly claimed: (rows: ReadonlyArray<Row>) => Effect.Effect<ReadonlyArray<Claim>, TaskError>
}): Store["claimGated"] => {
  const { isPostgres } = database
  const inPools = (pools: Pools) => pools === undefined ? "" : `AND pool IN (${pools.map(() => "?").join()})`
  // The order of the tools prevents deadlocks. PostgreSQL could read the whole queue for an `EXISTS`.
  const lockTools = (pools: Pools) =>
    database.prepare(
      `SELECT tool, concurrency, rate_limit, rate_ms, keyed, key_concurrency, key_rate_limit, key_rate_ms, last_key
       FROM skein_task_tools WHERE paused_at IS NULL AND (
         SELECT 1 FROM skein_task_queue WHERE ${isGatedReady} AND tool = skein_task_tools.tool ${inPools(pools)} LIMIT 1
       ) = 1 ORDER BY tool ${isPostgres ? "FOR UPDATE" : ""}`
    )
  const countRunning = database.prepare(
    `SELECT COUNT(*) AS tasks FROM skein_task_queue WHERE state = ${queued.running} AND gate <> 0 AND tool = ?`
  )
  const selectDue = (pools: Pools, mayBegin: boolean) =>
    database.prepare(
      `SELECT ${dueColumns} FROM skein_task_queue
       WHERE ${isGatedReady} AND attempts <= ? AND tool = ? ${inPools(pools)} ${mayBegin ? "" : "AND runs > 0"}
       ORDER BY priority, wake_at LIMIT ? ${isPostgres ? "FOR UPDATE SKIP LOCKED" : ""}`
    )
  // A condition on the state would let PostgreSQL read all rows of that state.
  const lockDue = database.prepare(
    `SELECT ${dueColumns}, state, gate FROM skein_task_queue WHERE task_id IN (${database.textsOfJson})
     ORDER BY rate_key ${isPostgres ? "FOR UPDATE SKIP LOCKED" : ""}`
  )
  const setLastKey = database.prepare("UPDATE skein_task_tools SET last_key = ? WHERE tool = ?")
  const countStarts = database.prepare(
    "SELECT COUNT(*) AS tasks FROM skein_task_starts WHERE tool = ? AND started_at > ?"
  )
  const claimTasks = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.running}, worker = ?, runs = runs + 1
     WHERE task_id IN (${database.textsOfJson}) RETURNING ${claimedColumns}`
  )
  const insertStart = database.prepare(
    "INSERT INTO skein_task_starts (tool, rate_key, started_at, task_id) VALUES (?, ?, ?, ?)"
  )
  const deleteStarts = database.prepare("DELETE FROM skein_task_starts WHERE tool = ? AND started_at <= ?")

  /** The tasks of a tool with keys that are next, in turns. */
  const takeTurns = Effect.fnUntraced(function*(row: Row, pools: Pools, free: number, starts: number, lost: LostTasks) {
    const since = (yield* database.now) - (optionalNumberOf(row, "key_rate_ms") ?? 0)
    const rate = optionalNumberOf(row, "key_rate_limit") ?? unlimited
    const turns = {
      tool: textOf(row, "tool"),
      lost: lost.max,
      pools,
      concurrency: optionalNumberOf(row, "key_concurrency") ?? unlimited,
      rate: starts > 0 ? rate : 0,
      since,
      wanted: free
    }
    const find = (from: ">" | ">=", lastKey: string) =>
      Effect.flatMap(
        selectTurns(database, from, { ...turns, lastKey }),
        (found) => found.length === 0 ? noTasks : lockDue(JSON.stringify(found.map((task) => task["task_id"])))
      ).pipe(
        // A task may have been cancelled in between: another worker may run it then.
        Effect.map((tasks) => tasks.filter(({ gate, state }) => Number(state) === queued.ready && Number(gate) === 1))
      )
    const lastKey = optionalTextOf(row, "last_key")
    const later = lastKey === undefined ? [] : yield* find(">", lastKey)
    if (later.length >= free) return later
    const known = new Set(later.map((task) => task["task_id"]))
    const sooner = (yield* find(">=", "")).filter((task) => !known.has(task["task_id"]))
    return [...later, ...sooner].slice(0, free)
  })

  /** The tasks of one tool that may start, up to `limit`. Records the starts. */
  const start = Effect.fnUntraced(function*(row: Row, pools: Pools, limit: number, lost: LostTasks) {
    const tool = textOf(row, "tool")
    const concurrency = optionalNumberOf(row, "concurrency")
    const running = concurrency === undefined ? 0 : numberOf((yield* countRunning(tool))[0]!, "tasks")
    const free = Math.min(limit, (concurrency ?? unlimited) - running)
    if (free <= 0) return []
    const now = yield* database.now
    const rate = optionalNumberOf(row, "rate_limit")
    const period = optionalNumberOf(row, "rate_ms") ?? 0
    const started = rate === undefined ? 0 : numberOf((yield* countStarts(tool, now - period))[0]!, "tasks")
    let starts = (rate ?? unlimited) - started
    const isKeyed = numberOf(row, "keyed") === 1
    const due = isKeyed
      ? yield* takeTurns(row, pools, free, starts, lost)
      : yield* selectDue(pools, starts > 0)(lost.max, tool, ...(pools ?? []).map(escape), free)
    if (due.length === 0) return []
    const keyPeriod = optionalNumberOf(row, "key_rate_ms")
    const hasRate = rate !== undefined || keyPeriod !== undefined
    if (hasRate) yield* deleteStarts(tool, now - Math.max(period, keyPeriod ?? 0))
    const ids: Array<string> = []
    let lastKey: string | undefined
    for (const task of due) {
      const id = textOf(task, "task_id")
      // Only the start of a task counts, not what follows a sleep or an answer.
      const isStart = hasRate && numberOf(task, "runs") === 0
      if ((isStart && starts <= 0) || !mayStart(task, lost)) continue
      lastKey = textOf(task, "rate_key")
      if (isStart) {
        starts--
        yield* insertStart(tool, lastKey, now, id)
      }
      ids.push(id)
    }
    if (isKeyed && lastKey !== undefined) yield* setLastKey(lastKey, tool)
    return ids
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
