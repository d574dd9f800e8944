/**
 * The queries of an operator: tasks by any of their properties, the log of a task, the queue and the workers; and of a
 * comparison of tasks with the code of a process.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type { ListedTask, Statistics, TaskPlace, WorkerState } from "../../TaskAdmin.ts"
import { currentMillis, maxTime, numberOf, type Parameter, type Row, textOf } from "./database.ts"
import { databaseNow } from "./queue.ts"
import { errorKinds, listColumns, ownerToRow, queued, type StoreContext, toListed } from "./rows.ts"
import type { QueueCount } from "../telemetry/taskMetrics.ts"
import type { AdminStore, CheckStore, UnsettledTask } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

const placeColumns = `queue.task_id AS queued, queue.state AS place, queue.wake_at, queue.worker, queue.runs,
  queue.attempts, queue.gate, (SELECT paused_at FROM skein_task_tools WHERE tool = queue.tool) AS paused_at,
  (SELECT MAX(seq) - MIN(seq) + 1 FROM skein_task_log WHERE task_id = skein_tasks.id) AS events`

const toPlace = (row: Row): TaskPlace => {
  if (row["queued"] == null) return { _tag: "Settled" }
  const runs = numberOf(row, "runs")
  const attempts = numberOf(row, "attempts")
  if (numberOf(row, "place") === queued.ready) {
    const heldBy = numberOf(row, "gate") !== 1 ? undefined : row["paused_at"] == null ? "limit" : "pause"
    return { _tag: "Ready", since: numberOf(row, "wake_at"), runs, attempts, heldBy }
  }
  if (numberOf(row, "place") === queued.running) {
    return { _tag: "Running", worker: textOf(row, "worker"), runs, attempts }
  }
  const until = numberOf(row, "wake_at")
  return { _tag: "Waiting", until: until >= maxTime ? undefined : until, runs, attempts }
}

/** The age of the oldest task of a group that is ready, in milliseconds. */
const ageOf = (row: Row, now: number): number | undefined =>
  numberOf(row, "place") === queued.ready && row["since"] != null
    ? Math.max(now - numberOf(row, "since"), 0)
    : undefined

/** Makes the operations. */
export const make = ({ database, texts }: StoreContext): AdminStore => {
  const from = "FROM skein_tasks LEFT JOIN skein_task_queue AS queue ON queue.task_id = skein_tasks.id"
  const columns = listColumns.split(",").map((column) => `skein_tasks.${column.trim()}`).join(", ")
  const found = (row: Row) =>
    Effect.map(
      toListed(row, texts),
      (state): ListedTask => ({ state, place: toPlace(row), events: Number(row["events"] ?? 0) })
    )

  const list: AdminStore["list"] = ({ hasFailed, owner, pool, status, tool, worker }, after, limit) =>
    Effect.suspend(() => {
      const conditions: Array<string> = []
      const parameters: Array<Parameter> = []
      const add = (condition: string, ...values: ReadonlyArray<Parameter>) => {
        conditions.push(condition)
        parameters.push(...values)
      }
      if (tool !== undefined) add("skein_tasks.tool = ?", escape(tool))
      if (pool !== undefined) add("skein_tasks.pool = ?", escape(pool))
      if (owner !== undefined) add("skein_tasks.owner = ?", ownerToRow(owner))
      if (worker !== undefined) add("queue.worker = ?", worker)
      if (hasFailed === true) add(`(skein_tasks.status = 'failed' OR skein_tasks.is_error = ${errorKinds.failed})`)
      if (status !== undefined) {
        if (status.length === 0) return Effect.succeed([])
        add(`skein_tasks.status IN (${status.map(() => "?").join()})`, ...status)
      }
      if (after !== undefined) add("(skein_tasks.created_at, skein_tasks.id) < (?, ?)", after.createdAt, after.id)
      const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`
      const select = database.prepare(
        `SELECT ${columns}, ${placeColumns} ${from} ${where}
         ORDER BY skein_tasks.created_at DESC, skein_tasks.id DESC LIMIT ?`
      )
      return Effect.flatMap(select(...parameters, limit), (rows) => Effect.forEach(rows, found))
    })

  const selectOne = database.prepare(`SELECT ${columns}, ${placeColumns} ${from} WHERE skein_tasks.id = ?`)

  const selectStatus = database.prepare(
    `SELECT tool, status, COUNT(*) AS tasks,
       SUM(CASE WHEN is_error = ${errorKinds.none} THEN 0 ELSE 1 END) AS errors,
       SUM(CASE WHEN is_error = ${errorKinds.declined} THEN 1 ELSE 0 END) AS declined
     FROM skein_tasks GROUP BY tool, status ORDER BY tool, status`
  )
  const selectWorkers = database.prepare(
    `SELECT id, pools, host, started_at, expires_at, expires_at < ${database.isPostgres ? databaseNow : "0"} AS lost, (
       SELECT COUNT(*) FROM skein_task_queue WHERE worker = skein_task_workers.id AND state = ${queued.running}
     ) AS tasks FROM skein_task_workers ORDER BY started_at, id`
  )

  const selectCounts = database.prepare(
    `SELECT pool, tool, place, SUM(tasks) AS tasks, MIN(since) AS since, SUM(questions) AS questions FROM (
       SELECT pool, tool, state AS place, COUNT(*) AS tasks, MIN(wake_at) AS since, 0 AS questions
       FROM skein_task_queue GROUP BY pool, tool, state
       UNION ALL
       SELECT queue.pool, queue.tool, queue.state, 0, NULL, COUNT(*)
       FROM skein_task_questions AS questions JOIN skein_task_queue AS queue ON queue.task_id = questions.task_id
       WHERE questions.state = 0 GROUP BY queue.pool, queue.tool, queue.state
     ) AS counts GROUP BY pool, tool, place ORDER BY pool, tool, place`
  )

  const queueCounts = Effect.map(
    Effect.all([selectCounts(), currentMillis]),
    ([rows, now]) =>
      rows.map((row): QueueCount => ({
        pool: unescape(textOf(row, "pool")),
        tool: unescape(textOf(row, "tool")),
        state: (["ready", "waiting", "running"] as const)[numberOf(row, "place")]!,
        count: numberOf(row, "tasks"),
        oldestMs: ageOf(row, now),
        openQuestions: numberOf(row, "questions")
      }))
  )

  return {
    list,
    find: (id) => Effect.flatMap(selectOne(id), ([row]) => row === undefined ? Effect.undefined : found(row)),
    statistics: Effect.map(
      Effect.all([selectStatus(), queueCounts]),
      ([statuses, counts]): Statistics => ({
        tasks: statuses.map((row) => ({
          tool: unescape(textOf(row, "tool")),
          status: textOf(row, "status") as TaskStatus,
          count: numberOf(row, "tasks"),
          errors: numberOf(row, "errors"),
          declined: numberOf(row, "declined")
        })),
        queue: counts.map((count) => Struct.omit(count, ["openQuestions"]))
      })
    ),
    queueCounts,
    workers: Effect.map(selectWorkers(), (rows) =>
      rows.map((row): WorkerState => ({
        id: textOf(row, "id"),
        pools: JSON.parse(textOf(row, "pools")) as ReadonlyArray<string>,
        host: textOf(row, "host"),
        startedAt: numberOf(row, "started_at"),
        leaseEndsAt: numberOf(row, "expires_at"),
        isLost: row["lost"] === true,
        running: numberOf(row, "tasks")
      })))
  }
}

const toUnsettled = (row: Row): UnsettledTask => {
  const state = numberOf(row, "state")
  const waits = numberOf(row, "waits")
  return {
    id: textOf(row, "task_id"),
    tool: unescape(textOf(row, "tool")),
    pool: unescape(textOf(row, "pool")),
    status: textOf(row, "status") as TaskStatus,
    createdAt: numberOf(row, "created_at"),
    isRunning: state === queued.running,
    isWaiting: state === queued.waiting,
    runs: numberOf(row, "runs"),
    waitsFor: waits === 0 ? undefined : waits === 1 ? "tool" : "code"
  }
}

/**
 * Makes the queries of a check of the code. Its pages are in the order of the ids, which are random, so that a part of
 * them is a sample.
 */
export const makeChecks = ({ database }: StoreContext): CheckStore => {
  const columns = `queue.task_id, queue.tool, queue.pool, queue.state, queue.runs, tasks.status, tasks.created_at,
    tasks.waits`
  const selectPage = database.prepare(
    `SELECT ${columns} FROM (SELECT * FROM skein_task_queue WHERE task_id > ? ORDER BY task_id LIMIT ?) AS queue
     JOIN skein_tasks AS tasks ON tasks.id = queue.task_id ORDER BY queue.task_id`
  )
  const selectOne = database.prepare(
    `SELECT ${columns} FROM skein_task_queue AS queue JOIN skein_tasks AS tasks ON tasks.id = queue.task_id
     WHERE queue.task_id = ?`
  )
  return {
    page: (after, limit) => Effect.map(selectPage(after, limit), (rows) => rows.map(toUnsettled)),
    find: (id) => Effect.map(selectOne(id), ([row]) => row === undefined ? undefined : toUnsettled(row))
  }
}
