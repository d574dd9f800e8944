/**
 * The queue of tasks, the logs of their runs, and the workers.
 *
 * The queue has one row for each task that is not settled: it must run, waits for an event, or runs. A task that has
 * ended and has nothing to compensate leaves the queue with its end. The log of a task has one row for each event that
 * its handler has observed, in that order.
 */
import { cut } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import {
  conflict,
  maxNameChars,
  maxTime,
  numberOf,
  optionalNumberOf,
  type Row,
  type Statement,
  textOf,
  toStoredMillis
} from "./database.ts"
import { associatedData, claimedColumns, live, queued, type StoreContext, taskColumns, toStoredTask } from "./rows.ts"
import { makeClaim } from "./gatedClaims.ts"
import * as gates from "./gates.ts"
import type { Claim, LogEnd, LogEntry, Store } from "./store.ts"
import { escape, toJson, unescape } from "./storedText.ts"

/** The columns of an event. */
const entryColumns = "seq, kind, name, attempt, value, started_at, at, beside"

const toEntry = (row: Row): LogEntry => ({
  seq: numberOf(row, "seq"),
  kind: row["kind"] as LogEntry["kind"],
  name: unescape(textOf(row, "name")),
  attempt: numberOf(row, "attempt"),
  value: row["value"] as string | null,
  startedAt: optionalNumberOf(row, "started_at"),
  at: numberOf(row, "at"),
  ...(row["beside"] == null ? {} : { beside: JSON.parse(textOf(row, "beside")) as ReadonlyArray<string> })
})

/** The operations of `TaskStore` on the queue and the logs. */
export const make = ({ changes, database, metrics, signals, texts }: StoreContext) => {
  const { isPostgres } = database
  const { announce } = signals
  const skipLocked = isPostgres ? "FOR UPDATE SKIP LOCKED" : ""
  const inTasks = `IN (${database.textsOfJson})`

  /** The claim of tasks of any pool, or of some pools. PostgreSQL could run a subquery with a limit more than once. */
  const claimOf = (pools: number | undefined): Statement =>
    database.prepare(
      `WITH due AS MATERIALIZED (
         SELECT task_id, attempts FROM skein_task_queue
         WHERE state = ${queued.ready} AND gate <> 1 AND attempts <= ?
           ${pools === undefined ? "" : `AND pool IN (${Array.from({ length: pools }, () => "?").join()})`}
         ORDER BY priority, wake_at LIMIT ? ${skipLocked}
       )
       UPDATE skein_task_queue SET state = ${queued.running}, worker = ?, runs = runs + 1
       WHERE task_id IN (
         SELECT task_id FROM due
         WHERE attempts = 0 OR (attempts = 1 AND NOT EXISTS (SELECT 1 FROM due WHERE attempts > 1))
           OR task_id = (SELECT task_id FROM due WHERE attempts > 1 LIMIT 1)
       )
       RETURNING ${claimedColumns}`
    )
  const claims = new Map<number | undefined, Statement>()
  const selectTasks = database.prepare(`SELECT ${taskColumns} FROM skein_tasks WHERE id ${inTasks}`)
  const selectLog = database.prepare(`SELECT ${entryColumns} FROM skein_task_log WHERE task_id = ? ORDER BY seq`)
  const selectEntry = database.prepare(
    `SELECT ${entryColumns} FROM skein_task_log WHERE task_id = ? AND seq = ?`
  )
  // A settled task has no row in the queue, and takes no further events. The lock of this row makes a removal wait, so that it
  // deletes the event, too. An event is only stored behind the one that its run has observed before: a promoted replica may
  // have lost that one, and a task that was continued has no events below the first one of its log.
  const insertInto = (condition = "") =>
    database.prepare(
      `INSERT INTO skein_task_log (task_id, ${entryColumns})
       SELECT task_id, CAST(? AS INTEGER), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS TEXT),
         CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT)
       FROM skein_task_queue AS queue WHERE task_id = ? AND ${endsAt("queue.task_id")} ${condition}
       ${isPostgres ? "FOR KEY SHARE OF queue" : ""}
       ON CONFLICT (task_id, seq) DO NOTHING RETURNING seq`
    )
  const insertEntry = insertInto()
  // Later runs read the answer from the row of the question.
  const insertClosing = insertInto(
    `AND EXISTS (SELECT 1 FROM skein_task_questions WHERE task_id = queue.task_id AND name = ? AND state = ?)`
  )
  // An event from outside moves into the log.
  const insertReceived = insertInto(
    `AND EXISTS (SELECT 1 FROM skein_task_events WHERE task_id = queue.task_id AND place = ? AND value IS NOT NULL)`
  )
  const deleteReceived = database.prepare(
    "DELETE FROM skein_task_events WHERE task_id = ? AND place = ? AND send_key IS NULL"
  )
  const clearReceived = database.prepare("UPDATE skein_task_events SET value = NULL WHERE task_id = ? AND place = ?")
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
     RETURNING task_id, pool, gate`
  )
  const suspendRun = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.waiting}, worker = NULL, attempts = 0, wake_at = ?,
       awaits = ?
     WHERE task_id = ? AND state = ${queued.running} AND worker = ? AND signals = ? AND ${
      endsAt("skein_task_queue.task_id")
    } AND (SELECT open_questions FROM skein_tasks WHERE id = skein_task_queue.task_id) >= CAST(? AS INTEGER)
     RETURNING task_id`
  )
  const reachedNow = lastSeqOf("skein_task_queue.task_id")
  const hasProgress = `reached < ${reachedNow}`
  // A worker that ends a claim is not lost.
  const noteProgress = `attempts = CASE WHEN ${hasProgress} THEN 0 ELSE attempts END, reached = ${reachedNow}`
  const releaseRun = database.prepare(
    `UPDATE skein_task_queue SET state = CASE WHEN CAST(? AS BIGINT) = 0 THEN ${queued.ready} ELSE ${queued.waiting} END,
       worker = NULL, wake_at = ?, awaits = NULL, ${noteProgress}
     WHERE task_id = ? AND state = ${queued.running} AND worker = ? RETURNING pool, gate`
  )
  const selectSignals = database.prepare(
    `SELECT queue.signals, queue.worker, tasks.status, ${lastSeqOf("tasks.id")} AS last_seq FROM skein_tasks AS tasks
     LEFT JOIN skein_task_queue AS queue ON queue.task_id = tasks.id WHERE tasks.id = ?`
  )
  const selectSignalled = database.prepare(
    `SELECT task_id, signals FROM skein_task_queue WHERE state = ${queued.running} AND worker = ?`
  )
  const settleTask = (condition = "") =>
    database.prepare(
      `DELETE FROM skein_task_queue WHERE task_id = ?
       AND NOT EXISTS (SELECT 1 FROM skein_tasks WHERE id = skein_task_queue.task_id AND ${live}) ${condition}
       RETURNING task_id`
    )
  const settleAnyhow = settleTask()
  const settleAt = settleTask(`AND ${endsAt("skein_task_queue.task_id")}`)
  // The first loss is that of any task of a process that was killed.
  const takeBack = (condition: string) => {
    const isFirst = `${hasProgress} OR attempts = 0`
    const pause = `CASE WHEN attempts > ${lossPauses.doublings} THEN ${lossPauses.max}
      ELSE ${lossPauses.first} << (attempts - 1) END`
    const update = database.prepare(
      `UPDATE skein_task_queue SET worker = NULL,
         state = CASE WHEN ${isFirst} THEN ${queued.ready} ELSE ${queued.waiting} END,
         wake_at = CASE WHEN ${isFirst} THEN wake_at ELSE CAST(? AS BIGINT) + ${pause} END,
         attempts = CASE WHEN ${hasProgress} THEN 1 ELSE attempts + 1 END, reached = ${reachedNow}
       WHERE state = ${queued.running} AND ${condition} RETURNING pool, tool, gate`
    )
    return Effect.flatMap(database.now, (now) => update(now))
  }
  const noteTakeover = (rows: ReadonlyArray<Row>) =>
    metrics === undefined ? Effect.void : Effect.sync(() => {
      for (const { pool, tool } of rows) {
        metrics.takenOver({ pool: unescape(pool as string), tool: unescape(tool as string) })
      }
    })
  const takeBackAll = takeBack("TRUE")
  const takeBackLost = takeBack("worker NOT IN (SELECT id FROM skein_task_workers)")
  const releaseAll = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.ready}, worker = NULL, ${noteProgress}
     WHERE state = ${queued.running} AND worker = ? RETURNING pool, gate`
  )

  const beginTask = changes.prepare(
    `UPDATE skein_tasks SET args = ?, message = COALESCE(?, message), said = 0, open_questions = 0, status = 'working', version = version + 1,
       updated_at = ${database.greatest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id`
  )
  const deleteQuestions = database.prepare("DELETE FROM skein_task_questions WHERE task_id = ?")
  const deleteEvents = database.prepare("DELETE FROM skein_task_log WHERE task_id = ? AND seq < ?")
  const deleteHeartbeats = database.prepare("DELETE FROM skein_task_heartbeats WHERE task_id = ?")

  // The clock of the database decides about leases.
  const databaseNow = database.currentTime
  const insertWorker = database.prepare(
    `INSERT INTO skein_task_workers (id, pools, host, pid, application, started_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ${databaseNow}, CASE WHEN CAST(? AS BIGINT) = ${maxTime} THEN ${maxTime}
       ELSE ${databaseNow} + CAST(? AS BIGINT) END)`
  )
  // The only process of a file before, which has no lease.
  const deleteAlone = database.prepare(`DELETE FROM skein_task_workers WHERE expires_at = ${maxTime}`)
  const updateSteps = database.prepare("UPDATE skein_task_workers SET steps = ? WHERE id = ?")
  const renewLease = database.prepare(
    `UPDATE skein_task_workers SET expires_at = ${databaseNow} + CAST(? AS BIGINT), steps = COALESCE(CAST(? AS TEXT), steps)
     WHERE id = ? RETURNING (SELECT COUNT(*) FROM skein_task_workers) AS workers, ${databaseNow} AS now`
  )
  // Those that have shared a file before its only process.
  const deleteWorkers = database.prepare("DELETE FROM skein_task_workers")
  const deleteWorker = database.prepare("DELETE FROM skein_task_workers WHERE id = ?")
  const deleteLost = database.prepare(`DELETE FROM skein_task_workers WHERE expires_at < ${databaseNow} RETURNING id`)

  const claim: Store["claim"] = (worker, pools, limit, maxLost = Infinity) => {
    const count = pools?.length
    if (count === 0) return noClaims
    let statement = claims.get(count)
    if (statement === undefined) claims.set(count, statement = claimOf(count))
    return Effect.flatMap(
      statement(Math.min(maxLost, gates.unlimited), ...(pools ?? []).map(escape), limit, worker),
      toClaims
    )
  }

  /** The claims of rows of the queue, which were updated for a worker. */
  const toClaims = (rows: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<Claim>, TaskError> => {
    if (rows.length === 0) return noClaims
    const byId = new Map(rows.map((row) => [row["task_id"], row]))
    return Effect.map(selectTasks(JSON.stringify([...byId.keys()])), (tasks) =>
      tasks.map((task): Claim => {
        const row = byId.get(task["id"])!
        return {
          id: textOf(task, "id"),
          task: toStoredTask(task, texts),
          signals: numberOf(row, "signals"),
          isFirst: numberOf(row, "runs") === 1,
          attempts: numberOf(row, "attempts"),
          isGated: numberOf(row, "gate") === 1
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
    { at, attempt, beside, kind, name, place, seq, startedAt, value },
    isRepeated = false,
    lastAt
  ) => {
    const parts = beside === undefined ? null : JSON.stringify(beside)
    const time = toStoredMillis(at)
    const closing = closingStates[kind]
    const row = [seq, kind, escape(name), attempt, value, startedAt ?? null, time, parts, id] as const
    const end = endParameters({ nextSeq: seq, lastAt })
    const received = (place: number) =>
      database.transaction(
        Effect.tap(
          insertReceived(...row, ...end, place),
          (rows) =>
            rows.length === 0 ? Effect.void : Effect.andThen(deleteReceived(id, place), clearReceived(id, place))
        )
      )
    return Effect.flatMap(
      place !== undefined
        ? received(place)
        : closing === undefined
        ? insertEntry(...row, ...end)
        : insertClosing(...row, ...end, escape(name), closing),
      (rows) => {
        if (rows.length > 0) return appended
        return Effect.map(selectEntry(id, seq), ([row]) => {
          if (row === undefined) return "refused"
          const found = toEntry(row)
          const isEqual = found.kind === kind && found.name === name && found.attempt === attempt &&
            found.value === value && found.at === time
          return isRepeated && isEqual ? "appended" : "conflict"
        })
      }
    )
  }

  // The positions of the log continue: the first event of the new log is after the last one of the old log, which is
  // deleted in the same transaction. So a worker that has read the old log cannot append to the new one.
  const continueWith: Store["continueWith"] = (id, { lastAt, nextSeq: seq }, args, retried) =>
    Effect.flatMap(
      Effect.all([
        Effect.flatMap(toJson(args), (text) => texts.encrypt(text, associatedData.args(id))),
        retried === undefined
          ? Effect.succeed(null)
          : texts.encrypt(escape(retried.statusMessage), associatedData.message(id))
      ]),
      ([args, message]) => {
        const continued = Effect.gen(function*() {
          const at = yield* database.now
          if ((yield* beginTask(args, message, at, id)) === undefined) return yield* Effect.fail(conflict)
          const attempt = retried?.attempt ?? 1
          const event = { seq, kind: "continued", name: "", attempt, value: null, startedAt: undefined, at } as const
          if ((yield* append(id, event, false, lastAt)) !== "appended") return yield* Effect.fail(conflict)
          yield* deleteQuestions(id)
          yield* deleteEvents(id, seq)
          yield* deleteHeartbeats(id)
          return true
        })
        return database.attempt(continued, Effect.succeed(false))
      }
    )

  const suspend: Store["suspend"] = (id, worker, seen, wakeAt, at, openQuestions = 0, events = []) => {
    const awaits = events.length === 0 ? null : JSON.stringify(events.map(escape))
    return Effect.map(
      suspendRun(toStoredMillis(wakeAt), awaits, id, worker, seen, ...endParameters(at), openQuestions),
      (rows) => rows.length > 0
    )
  }

  const release: Store["release"] = (id, worker, wakeAt) =>
    Effect.flatMap(
      database.now,
      (now) =>
        Effect.tap(
          releaseRun(wakeAt === undefined ? 0 : 1, toStoredMillis(wakeAt ?? now), id, worker),
          (rows) => wakeAt === undefined ? announce(rows) : Effect.void
        )
    )

  const readSignals: Store["readSignals"] = (id) =>
    Effect.map(selectSignals(id), ([row]) =>
      row === undefined ? undefined : {
        signals: numberOf(row, "signals"),
        worker: row["worker"] as string | null,
        isCancelled: row["status"] === "cancelled",
        lastSeq: numberOf(row, "last_seq")
      })

  const findSignals: Store["findSignals"] = (worker) =>
    Effect.map(
      selectSignalled(worker),
      (rows) => new Map(rows.map((row) => [textOf(row, "task_id"), numberOf(row, "signals")]))
    )

  const wake: Store["wake"] = Effect.flatMap(
    Effect.flatMap(database.now, (time) => wakeDue(time)),
    (rows) =>
      isPostgres
        ? Effect.succeed({ count: numberOf(rows[0]!, "woken"), hasGated: rows[0]!["gated"] === true })
        : Effect.map(selectGated(), ([row]) => ({ count: rows.length, hasGated: numberOf(row!, "gated") === 1 }))
  )

  const register: Store["register"] = (worker, { application, host, leaseMs = maxTime, pid, pools }) =>
    Effect.andThen(
      isPostgres || leaseMs === maxTime ? Effect.void : deleteAlone(),
      Effect.asVoid(
        insertWorker(
          worker,
          JSON.stringify(pools),
          host,
          pid,
          application === "" ? null : escape(cut(application, maxNameChars)),
          leaseMs,
          leaseMs
        )
      )
    )

  const renew: Store["renew"] = (worker, leaseMs, steps) =>
    Effect.suspend(() => {
      const begin = performance.now()
      return Effect.flatMap(
        renewLease(leaseMs, steps ?? null, worker),
        ([row]) =>
          row === undefined
            ? Effect.succeed(0)
            : Effect.as(database.clock.note(numberOf(row, "now"), begin), numberOf(row, "workers"))
      )
    })

  return {
    claim,
    claimGated: makeClaim({ database, claimed: toClaims }),
    readLog,
    append,
    continueWith,
    suspend,
    release,
    readSignals,
    findSignals,
    wake,
    wakeTasks: (ids: ReadonlyArray<string>) =>
      Effect.flatMap(
        Effect.flatMap(database.now, (now) => wakeSome(now, JSON.stringify(ids))),
        (rows) => Effect.as(announce(rows), rows.map((row) => textOf(row, "task_id")))
      ),
    settle: (id: string, at?: LogEnd) =>
      Effect.map(
        at === undefined ? settleAnyhow(id) : settleAt(id, ...endParameters(at)),
        (rows) => rows.length > 0
      ),
    takeBackAll: Effect.andThen(deleteWorkers(), Effect.flatMap(takeBackAll, noteTakeover)),
    takeBackLost: Effect.flatMap(takeBackLost, (rows) => Effect.andThen(noteTakeover(rows), announce(rows))),
    releaseAll: (worker: string) => Effect.flatMap(releaseAll(worker), announce),
    register,
    renew,
    reportSteps: (worker: string, steps: string) => Effect.asVoid(updateSteps(steps, worker)),
    unregister: (worker: string) => Effect.asVoid(deleteWorker(worker)),
    removeLost: Effect.map(deleteLost(), (rows) => rows.length)
  }
}

const noClaims: Effect.Effect<ReadonlyArray<Claim>> = /* @__PURE__ */ Effect.succeed([])
const appended = /* @__PURE__ */ Effect.succeed("appended" as const)

/** Milliseconds that a task waits after it was lost again: `first`, then twice as long each time, up to `max`. */
const lossPauses = { first: 1000, doublings: 6, max: 60_000 } as const

/** The states of the questions whose end an event records: see `questions.ts`. */
const closingStates: Partial<Record<LogEntry["kind"], number>> = { answer: 1, timeout: 2 }

/** The position of the last event of the log of a task, or 0: an expression. */
export const lastSeqOf = (id: string): string =>
  `(SELECT COALESCE(MAX(seq), 0) FROM skein_task_log AS log WHERE log.task_id = ${id})`

/**
 * The condition that the log of a task ends at a `LogEnd`: that its last event is the one before. It reads one row.
 */
export const endsAt = (id: string): string =>
  `COALESCE((
    SELECT CASE WHEN log.at = COALESCE(CAST(? AS BIGINT), log.at) THEN log.seq ELSE -1 END
    FROM skein_task_log AS log WHERE log.task_id = ${id} ORDER BY log.seq DESC LIMIT 1
  ), 0) = CAST(? AS INTEGER)`

/** The parameters of `endsAt`. */
export const endParameters = ({ lastAt, nextSeq }: LogEnd): readonly [number | null, number] => [
  lastAt === undefined ? null : toStoredMillis(lastAt),
  nextSeq - 1
]
