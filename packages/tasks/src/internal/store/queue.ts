/**
 * The queue of tasks, the logs of their runs, and the workers.
 *
 * The queue has one row for each task that is not settled: it must run, waits for an event, or runs. A task that has
 * ended and has nothing to compensate leaves the queue with its end. The log of a task has one row for each event that
 * its handler has observed, in that order.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { currentMillis, type Database, maxTime, type Row, type Statement, toStoredMillis } from "./database.ts"
import { claimedColumns, live, queued, type StoreContext, taskColumns, toStoredTask } from "./rows.ts"
import * as gates from "./gates.ts"
import type { Claim, LogEntry, Store } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

/** The columns of an event. */
const entryColumns = "seq, kind, name, attempt, value, started_at, at, beside"

const number = (row: Row, column: string): number => Number(row[column])

const toEntry = (row: Row): LogEntry => ({
  seq: number(row, "seq"),
  kind: row["kind"] as LogEntry["kind"],
  name: unescape(row["name"] as string),
  attempt: number(row, "attempt"),
  value: row["value"] as string | null,
  startedAt: row["started_at"] == null ? undefined : number(row, "started_at"),
  at: number(row, "at"),
  ...(row["beside"] == null ? {} : { beside: JSON.parse(row["beside"] as string) as ReadonlyArray<string> })
})

/** The operations of `TaskStore` on the queue and the logs. */
export const make = ({ database, observer, signals, texts }: StoreContext) => {
  const { isPostgres } = database
  const skipLocked = isPostgres ? "FOR UPDATE SKIP LOCKED" : ""
  const inTasks = `IN (${database.textsOfJson})`

  /** The claim of tasks of any pool, or of some pools. PostgreSQL could run a subquery with a limit more than once. */
  const claimOf = (pools: number | undefined): Statement =>
    database.prepare(
      `WITH due AS MATERIALIZED (
         SELECT task_id FROM skein_task_queue
         WHERE state = ${queued.ready} AND gate <> 1
           ${pools === undefined ? "" : `AND pool IN (${Array.from({ length: pools }, () => "?").join()})`}
         ORDER BY priority, wake_at LIMIT ? ${skipLocked}
       )
       UPDATE skein_task_queue SET state = ${queued.running}, worker = ?, runs = runs + 1
       WHERE task_id IN (SELECT task_id FROM due)
       RETURNING ${claimedColumns}`
    )
  const claims = new Map<number | undefined, Statement>()
  const selectTasks = database.prepare(`SELECT ${taskColumns} FROM skein_tasks WHERE id ${inTasks}`)
  const selectLog = database.prepare(`SELECT ${entryColumns} FROM skein_task_log WHERE task_id = ? ORDER BY seq`)
  const selectEntry = database.prepare(
    `SELECT ${entryColumns} FROM skein_task_log WHERE task_id = ? AND seq = ?`
  )
  // A settled task has no row in the queue, and takes no further events. The lock of this row makes a removal wait, so that it
  // deletes the event, too. Positions below the first event of a log are free, if the task was continued: a worker that has
  // read the log before must not take them.
  const insertEntry = database.prepare(
    `INSERT INTO skein_task_log (task_id, ${entryColumns})
     SELECT task_id, CAST(? AS INTEGER), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS TEXT),
       CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT)
     FROM skein_task_queue AS queue WHERE task_id = ? AND NOT EXISTS (
       SELECT 1 FROM skein_task_log AS log WHERE log.task_id = queue.task_id AND log.seq >= CAST(? AS INTEGER)
     ) ${isPostgres ? "FOR KEY SHARE OF queue" : ""}
     ON CONFLICT (task_id, seq) DO NOTHING RETURNING seq`
  )
  const wakeTheDue = `UPDATE skein_task_queue SET state = ${queued.ready}
     WHERE state = ${queued.waiting} AND wake_at < ${maxTime} AND wake_at <= ? RETURNING task_id, gate`
  const someGated = `EXISTS (SELECT 1 FROM skein_task_queue WHERE state = ${queued.ready} AND gate = 1)`
  const wakeDue = database.prepare(
    isPostgres
      ? `WITH woken AS (${wakeTheDue})
         SELECT COUNT(*) AS woken, ${someGated} OR COALESCE(BOOL_OR(gate = 1), FALSE) AS gated FROM woken`
      : wakeTheDue
  )
  const selectGated = database.prepare(`SELECT ${someGated} AS gated`)
  const wakeSome = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.ready}, wake_at = ? WHERE state = ${queued.waiting} AND task_id ${inTasks}
     RETURNING pool, gate`
  )
  const suspendRun = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.waiting}, worker = NULL, attempts = 0, wake_at = ?
     WHERE task_id = ? AND state = ${queued.running} AND worker = ? AND signals = ? RETURNING task_id`
  )
  const releaseRun = database.prepare(
    `UPDATE skein_task_queue SET state = CASE WHEN CAST(? AS BIGINT) = 0 THEN ${queued.ready} ELSE ${queued.waiting} END,
       worker = NULL, wake_at = ?
     WHERE task_id = ? AND state = ${queued.running} AND worker = ? RETURNING pool, gate`
  )
  const selectSignals = database.prepare(
    `SELECT queue.signals, queue.worker, tasks.status FROM skein_tasks AS tasks
     LEFT JOIN skein_task_queue AS queue ON queue.task_id = tasks.id WHERE tasks.id = ?`
  )
  const selectSignalled = database.prepare(
    `SELECT task_id, signals FROM skein_task_queue WHERE state = ${queued.running} AND worker = ?`
  )
  const settleTasks = database.prepare(
    `DELETE FROM skein_task_queue WHERE task_id ${inTasks}
     AND NOT EXISTS (SELECT 1 FROM skein_tasks WHERE id = skein_task_queue.task_id AND ${live})`
  )
  const reachedNow = "(SELECT COALESCE(MAX(seq), 0) FROM skein_task_log WHERE task_id = skein_task_queue.task_id)"
  const takeBack = (condition: string) =>
    database.prepare(
      `UPDATE skein_task_queue SET state = ${queued.ready}, worker = NULL,
         attempts = CASE WHEN reached < ${reachedNow} THEN 1 ELSE attempts + 1 END, reached = ${reachedNow}
       WHERE state = ${queued.running} AND ${condition} RETURNING pool, tool, gate`
    )
  const noteTakeover = (rows: ReadonlyArray<Row>) =>
    observer === undefined ? Effect.void : Effect.sync(() => {
      for (const { pool, tool } of rows) {
        observer.takenOver({ pool: unescape(pool as string), tool: unescape(tool as string) })
      }
    })
  const takeBackAll = takeBack("TRUE")
  const takeBackLost = takeBack("worker NOT IN (SELECT id FROM skein_task_workers)")
  const releaseAll = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.ready}, worker = NULL
     WHERE state = ${queued.running} AND worker = ? RETURNING pool, gate`
  )

  const announce = (rows: ReadonlyArray<Row>) => signals.announce(rows)

  const claim: Store["claim"] = (worker, pools, limit) => {
    const count = pools?.length
    if (count === 0) return noClaims
    let statement = claims.get(count)
    if (statement === undefined) claims.set(count, statement = claimOf(count))
    return Effect.flatMap(statement(...(pools ?? []).map(escape), limit, worker), toClaims)
  }

  /** The claims of rows of the queue, which were updated for a worker. */
  const toClaims = (rows: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<Claim>, TaskError> => {
    if (rows.length === 0) return noClaims
    const byId = new Map(rows.map((row) => [row["task_id"], row]))
    return Effect.map(selectTasks(JSON.stringify([...byId.keys()])), (tasks) =>
      tasks.map((task): Claim => {
        const row = byId.get(task["id"])!
        return {
          id: task["id"] as string,
          task: toStoredTask(task, texts),
          signals: number(row, "signals"),
          isFirst: number(row, "runs") === 1,
          attempts: number(row, "attempts"),
          isGated: number(row, "gate") === 1
        }
      }))
  }

  const readLog: Store["readLog"] = (id) =>
    Effect.map(selectLog(id), (rows) => {
      const entries = rows.map(toEntry)
      // Only a worker that was stopped in the middle of a statement can have appended an event before this one.
      const first = entries.findLastIndex(({ kind }) => kind === "continued")
      return first <= 0 ? entries : entries.slice(first)
    })

  const append: Store["append"] = (
    id,
    { at, attempt, beside, kind, name, seq, startedAt, value },
    isRepeated = false
  ) => {
    const parts = beside === undefined ? null : JSON.stringify(beside)
    return Effect.flatMap(
      insertEntry(seq, kind, escape(name), attempt, value, startedAt ?? null, toStoredMillis(at), parts, id, seq),
      (rows) => {
        if (rows.length > 0) return appended
        return Effect.map(selectEntry(id, seq), ([row]) => {
          if (row === undefined) return "settled"
          const found = toEntry(row)
          const isEqual = found.kind === kind && found.name === name && found.attempt === attempt &&
            found.value === value
          return isRepeated && isEqual ? "appended" : "conflict"
        })
      }
    )
  }

  const suspend: Store["suspend"] = (id, worker, seen, wakeAt) =>
    Effect.map(suspendRun(toStoredMillis(wakeAt), id, worker, seen), (rows) => rows.length > 0)

  const release: Store["release"] = (id, worker, wakeAt) =>
    Effect.flatMap(
      currentMillis,
      (now) =>
        Effect.tap(
          releaseRun(wakeAt === undefined ? 0 : 1, toStoredMillis(wakeAt ?? now), id, worker),
          (rows) => wakeAt === undefined ? announce(rows) : Effect.void
        )
    )

  const readSignals: Store["readSignals"] = (id) =>
    Effect.map(selectSignals(id), ([row]) =>
      row === undefined ? undefined : {
        signals: number(row, "signals"),
        worker: row["worker"] as string | null,
        isCancelled: row["status"] === "cancelled"
      })

  const findSignals: Store["findSignals"] = (worker) =>
    Effect.map(
      selectSignalled(worker),
      (rows) => new Map(rows.map((row) => [row["task_id"] as string, number(row, "signals")]))
    )

  const wake: Store["wake"] = Effect.flatMap(
    Effect.flatMap(currentMillis, (time) => wakeDue(time)),
    (rows) =>
      isPostgres
        ? Effect.succeed({ count: number(rows[0]!, "woken"), hasGated: rows[0]!["gated"] === true })
        : Effect.map(selectGated(), ([row]) => ({ count: rows.length, hasGated: number(row!, "gated") === 1 }))
  )

  const settle = (ids: ReadonlyArray<string>): Effect.Effect<void, TaskError> =>
    Effect.asVoid(settleTasks(JSON.stringify(ids)))

  return {
    claim,
    claimGated: gates.makeClaim({ database, claimed: toClaims }),
    readLog,
    append,
    suspend,
    release,
    readSignals,
    findSignals,
    wake,
    wakeTasks: (ids: ReadonlyArray<string>) =>
      Effect.flatMap(
        Effect.flatMap(currentMillis, (now) => wakeSome(now, JSON.stringify(ids))),
        (rows) => Effect.as(announce(rows), rows.length)
      ),
    settle,
    takeBackAll: Effect.flatMap(takeBackAll(), noteTakeover),
    takeBackLost: Effect.flatMap(takeBackLost(), (rows) => Effect.andThen(noteTakeover(rows), announce(rows))),
    releaseAll: (worker: string) => Effect.flatMap(releaseAll(worker), announce)
  }
}

const noClaims: Effect.Effect<ReadonlyArray<Claim>> = /* @__PURE__ */ Effect.succeed([])
const appended = /* @__PURE__ */ Effect.succeed("appended" as const)

/** The current time of a PostgreSQL database, in milliseconds of Unix time. */
export const databaseNow = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

/**
 * The operations of `TaskStore` on workers: the processes that run tasks. A worker renews its lease; the tasks of a
 * worker whose lease is over have no worker. The clock of the database decides. Only PostgreSQL has several workers.
 */
export const makeWorkers = (database: Database): Pick<Store, "register" | "renew" | "unregister" | "removeLost"> => {
  const insert = database.prepare(
    `INSERT INTO skein_task_workers (id, pools, host, started_at, expires_at)
     VALUES (?, ?, ?, ${databaseNow}, ${databaseNow} + CAST(? AS BIGINT))`
  )
  const update = database.prepare(`UPDATE skein_task_workers SET expires_at = ${databaseNow} + CAST(? AS BIGINT)
    WHERE id = ? RETURNING (SELECT COUNT(*) FROM skein_task_workers) AS workers`)
  const remove = database.prepare("DELETE FROM skein_task_workers WHERE id = ?")
  const removeLost = database.prepare(`DELETE FROM skein_task_workers WHERE expires_at < ${databaseNow} RETURNING id`)
  return {
    register: (id, { host, leaseMs, pools }) => Effect.asVoid(insert(id, JSON.stringify(pools), host, leaseMs)),
    renew: (id, leaseMs) => Effect.map(update(leaseMs, id), ([row]) => Number(row?.["workers"] ?? 0)),
    unregister: (id) => Effect.asVoid(remove(id)),
    removeLost: Effect.map(removeLost(), (rows) => rows.length)
  }
}
