/**
 * The queries of an operator: tasks by any of their properties, the log of a task, the queue and the workers.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import type { ListedTask, Statistics, TaskPlace, WorkerState } from "../../TaskAdmin.ts"
import { currentMillis, maxTime, type Parameter, type Row } from "./database.ts"
import { databaseNow } from "./queue.ts"
import { listColumns, ownerToRow, queued, type StoreContext, toListed } from "./rows.ts"
import type { QueueCount } from "../telemetry/taskObserver.ts"
import type { AdminStore } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

const number = (row: Row, column: string): number => Number(row[column])

const placeColumns = `queue.task_id AS queued, queue.state AS place, queue.wake_at, queue.worker, queue.runs,
  queue.attempts, queue.gate, (SELECT paused_at FROM skein_task_tools WHERE tool = queue.tool) AS paused_at,
  (SELECT MAX(seq) - MIN(seq) + 1 FROM skein_task_log WHERE task_id = skein_tasks.id) AS events`

const toPlace = (row: Row): TaskPlace => {
  if (row["queued"] == null) return { _tag: "Settled" }
  const runs = number(row, "runs")
  const attempts = number(row, "attempts")
  if (number(row, "place") === queued.ready) {
    const heldBy = number(row, "gate") !== 1 ? undefined : row["paused_at"] == null ? "limit" : "pause"
    return { _tag: "Ready", since: number(row, "wake_at"), runs, attempts, heldBy }
  }
  if (number(row, "place") === queued.running) {
    return { _tag: "Running", worker: row["worker"] as string, runs, attempts }
  }
  const until = number(row, "wake_at")
  return { _tag: "Waiting", until: until >= maxTime ? undefined : until, runs, attempts }
}

/** The tool and the state of a row of the queue. */
const placeOf = (row: Row) => ({
  pool: unescape(row["pool"] as string),
  tool: unescape(row["tool"] as string),
  state: (["ready", "waiting", "running"] as const)[number(row, "place")]!
})

/** The age of the oldest task of a group that is ready, in milliseconds. */
const ageOf = (row: Row, now: number): number | undefined =>
  number(row, "place") === queued.ready && row["since"] != null ? Math.max(now - number(row, "since"), 0) : undefined

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
      if (hasFailed === true) add("(skein_tasks.status = 'failed' OR skein_tasks.is_error = 1)")
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
    `SELECT tool, status, COUNT(*) AS tasks, SUM(is_error) AS errors FROM skein_tasks GROUP BY tool, status ORDER BY tool, status`
  )
  const selectQueue = database.prepare(
    `SELECT pool, tool, state AS place, COUNT(*) AS tasks, MIN(wake_at) AS since FROM skein_task_queue
     GROUP BY pool, tool, state ORDER BY pool, tool, state`
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
     ) AS counts GROUP BY pool, tool, place`
  )

  return {
    list,
    find: (id) => Effect.flatMap(selectOne(id), ([row]) => row === undefined ? Effect.undefined : found(row)),
    statistics: Effect.map(
      Effect.all([selectStatus(), selectQueue(), currentMillis]),
      ([statuses, queue, now]): Statistics => ({
        tasks: statuses.map((row) => ({
          tool: unescape(row["tool"] as string),
          status: row["status"] as TaskStatus,
          count: number(row, "tasks"),
          errors: number(row, "errors")
        })),
        queue: queue.map((row) => ({
          ...placeOf(row),
          count: number(row, "tasks"),
          oldestMs: ageOf(row, now)
        }))
      })
    ),
    queueCounts: Effect.map(
      Effect.all([selectCounts(), currentMillis]),
      ([rows, now]) =>
        rows.map((row): QueueCount => ({
          ...placeOf(row),
          count: number(row, "tasks"),
          oldestMs: ageOf(row, now),
          openQuestions: number(row, "questions")
        }))
    ),
    workers: Effect.map(selectWorkers(), (rows) =>
      rows.map((row): WorkerState => ({
        id: row["id"] as string,
        pools: JSON.parse(row["pools"] as string) as ReadonlyArray<string>,
        host: row["host"] as string,
        startedAt: number(row, "started_at"),
        leaseEndsAt: number(row, "expires_at"),
        isLost: row["lost"] === true,
        running: number(row, "tasks")
      })))
  }
}
