/**
 * The queries of an operator: tasks by any of their properties, the log of a task, the queue and the workers; and of a
 * comparison of tasks with the code of a process.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type { ListedTask, Statistics, TaskFilter, TaskPlace, WorkerState } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import { maxTime, numberOf, optionalNumberOf, optionalTextOf, type Row, textOf } from "./database.ts"
import { counterOf } from "./counters.ts"
import {
  errorKinds,
  isException,
  isWaitingForCode,
  listColumns,
  queued,
  type StoreContext,
  toListed,
  waitKinds
} from "./rows.ts"
import type { QueueCount } from "../telemetry/taskMetrics.ts"
import type { AdminStore, CheckStore, UnsettledTask } from "./store.ts"
import { labelsOf, toLabels } from "./labels.ts"
import { makeMedians } from "./stepMedians.ts"
import { escape, unescape } from "./storedText.ts"
import { isInQueue, select } from "./taskFilter.ts"

/** Tasks of the queue that a listing sorts, at most. */
const maxSortedTasks = 10_000

const placeColumns = (isPostgres: boolean) =>
  `${
    labelsOf(isPostgres)
  } AS labels, queue.task_id AS queued, queue.state AS place, queue.wake_at, queue.worker, queue.runs,
  queue.attempts, queue.gate, queue.awaits, (SELECT paused_at FROM skein_task_tools WHERE tool = queue.tool) AS paused_at,
  (SELECT MAX(seq) - MIN(seq) + 1 FROM skein_task_log WHERE task_id = skein_tasks.id) AS events`

/** A process that runs tasks. */
type Process = Pick<WorkerState, "host" | "pid" | "application"> & {
  /** The steps that it runs, by the ids of the tasks: see `StepReport`. */
  readonly steps: Readonly<Record<string, ReadonlyArray<readonly [name: string, attempt: number, startedAt: number]>>>
}

const processOf = (row: Row): Omit<Process, "steps"> => {
  const application = optionalTextOf(row, "application")
  return {
    host: textOf(row, "host"),
    pid: optionalNumberOf(row, "pid"),
    application: application === undefined ? undefined : unescape(application)
  }
}

const toPlace = (row: Row, processes: ReadonlyMap<string, Process>): TaskPlace => {
  if (row["queued"] == null) return { _tag: "Settled" }
  const runs = numberOf(row, "runs")
  const attempts = numberOf(row, "attempts")
  if (numberOf(row, "place") === queued.ready) {
    const heldBy = numberOf(row, "gate") !== 1 ? undefined : row["paused_at"] == null ? "limit" : "pause"
    return { _tag: "Ready", since: numberOf(row, "wake_at"), runs, attempts, heldBy }
  }
  if (numberOf(row, "place") === queued.running) {
    const worker = textOf(row, "worker")
    const { steps = {}, ...process } = processes.get(worker) ?? {}
    const own = steps[textOf(row, "queued")] ?? []
    return {
      ...{ _tag: "Running", worker, runs, attempts, process: "host" in process ? process : undefined },
      steps: own.map(([name, attempt, startedAt]) => ({
        name,
        attempt,
        startedAt,
        medianMs: undefined,
        heartbeat: undefined
      }))
    }
  }
  const until = numberOf(row, "wake_at")
  const awaits = JSON.parse(optionalTextOf(row, "awaits") ?? "[]") as ReadonlyArray<string>
  return { _tag: "Waiting", until: until >= maxTime ? undefined : until, events: awaits.map(unescape), runs, attempts }
}

/** The age of the oldest task of a group that is ready, in milliseconds. */
const ageOf = (row: Row, now: number): number | undefined =>
  numberOf(row, "place") === queued.ready && row["since"] != null
    ? Math.max(now - numberOf(row, "since"), 0)
    : undefined

/** Makes the operations. */
export const make = ({ database, texts }: StoreContext): AdminStore => {
  const from = "FROM skein_tasks LEFT JOIN skein_task_queue AS queue ON queue.task_id = skein_tasks.id"
  const places = placeColumns(database.isPostgres)
  const columns = listColumns.split(",").map((column) => `skein_tasks.${column.trim()}`).join(", ")
  const medians = makeMedians(database)
  const selectProcesses = database.prepare("SELECT id, host, pid, application, steps FROM skein_task_workers")
  /** Decodes tasks, with the processes that run them. */
  const decode = (rows: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<ListedTask>, TaskError> =>
    Effect.flatMap(
      rows.some((row) => row["queued"] != null && numberOf(row, "place") === queued.running)
        ? selectProcesses()
        : Effect.succeed([]),
      (workers) => {
        const processes = new Map(workers.map((row): [string, Process] => [textOf(row, "id"), {
          ...processOf(row),
          steps: JSON.parse(optionalTextOf(row, "steps") ?? "{}") as Process["steps"]
        }]))
        return Effect.forEach(rows, (row) =>
          Effect.flatMap(
            toListed(row, texts),
            (state) =>
              Effect.map(medians.add(state.tool, toPlace(row, processes)), (place): ListedTask => {
                const needsAttention = place._tag !== "Settled" && isWaitingForCode(row)
                const labels = toLabels(optionalTextOf(row, "labels"))
                return { state, place, needsAttention, labels, events: Number(row["events"] ?? 0) }
              })
          ))
      }
    )

  const countQueue = database.prepare(
    `SELECT COUNT(*) AS queued FROM (SELECT 1 FROM skein_task_queue LIMIT ?) AS queue`
  )

  /**
   * Whether to find the tasks of a filter through the queue. A store may have millions of tasks that have ended, and few
   * in the queue; or so many in the queue that it takes less time to read the newest tasks.
   */
  const readsQueue = (filter: TaskFilter): Effect.Effect<boolean, TaskError> =>
    filter.worker !== undefined || !isInQueue(filter)
      ? Effect.succeed(filter.worker !== undefined)
      : Effect.map(countQueue(maxSortedTasks), ([row]) => numberOf(row!, "queued") < maxSortedTasks)

  const list: AdminStore["list"] = (filter, after, limit) =>
    Effect.flatMap(readsQueue(filter), (readsQueue) => {
      const selected = select(filter, { after, database, readsQueue })
      if (selected === undefined) return Effect.succeed([])
      const statement = database.prepare(
        `SELECT ${columns}, ${places} ${selected.from}
         ORDER BY skein_tasks.created_at DESC, skein_tasks.id DESC LIMIT ?`
      )
      return Effect.flatMap(statement(...selected.parameters, limit), decode)
    })

  const selectOne = database.prepare(`SELECT ${columns}, ${places} ${from} WHERE skein_tasks.id = ?`)

  // The tasks come last: without one of this tool the query reads them all.
  const selectTool = database.prepare(
    `SELECT 1 AS found FROM skein_task_tools WHERE tool = ?
     UNION ALL SELECT 1 FROM skein_task_schedules WHERE tool = ?
     UNION ALL SELECT 1 FROM skein_tasks WHERE tool = ? LIMIT 1`
  )

  // One statement, so that all numbers are of one moment.
  const selectNumbers = database.prepare(
    `SELECT tool, '' AS status, 0 AS is_error, live, retained AS tasks FROM (${
      countedTools(database.isPostgres)
    }) AS counted
     UNION ALL
     SELECT tool, status, is_error, 0, COUNT(*) FROM skein_tasks WHERE ${isException} GROUP BY tool, status, is_error
     UNION ALL
     SELECT queue.tool, 'input_required', 0, 0, COUNT(DISTINCT questions.task_id)
     FROM skein_task_questions AS questions JOIN skein_task_queue AS queue ON queue.task_id = questions.task_id
     WHERE questions.state = 0 GROUP BY queue.tool`
  )
  const selectWorkers = database.prepare(
    `SELECT id, pools, host, pid, application, started_at, expires_at, expires_at < ${database.currentTime} AS lost, (
       SELECT COUNT(*) FROM skein_task_queue WHERE worker = skein_task_workers.id AND state = ${queued.running}
     ) AS tasks FROM skein_task_workers WHERE expires_at < ${maxTime} ORDER BY started_at, id`
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
    Effect.all([selectCounts(), database.now]),
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
    find: (id) => Effect.map(Effect.flatMap(selectOne(id), decode), ([task]) => task),
    hasTool: (name) => {
      const tool = escape(name)
      return Effect.map(selectTool(tool, tool, tool), (rows) => rows.length > 0)
    },
    statistics: Effect.map(
      Effect.all([selectNumbers(), queueCounts]),
      ([numbers, counts]): Statistics => ({
        tasks: toNumbers(numbers),
        queue: counts.map((count) => Struct.omit(count, ["openQuestions"]))
      })
    ),
    queueCounts,
    workers: Effect.map(selectWorkers(), (rows) =>
      rows.map((row): WorkerState => ({
        id: textOf(row, "id"),
        pools: JSON.parse(textOf(row, "pools")) as ReadonlyArray<string>,
        ...processOf(row),
        startedAt: numberOf(row, "started_at"),
        leaseEndsAt: numberOf(row, "expires_at"),
        isLost: row["lost"] === true,
        running: numberOf(row, "tasks")
      })))
  }
}

/** The tools with tasks, from their counters, with how many are live and how many are stored. */
const countedTools = (isPostgres: boolean): string =>
  isPostgres
    ? `SELECT names.name AS tool, counted.live, counted.retained FROM (
         SELECT name FROM skein_task_counters WHERE kind = 1 UNION SELECT name FROM skein_task_counts WHERE kind = 1
       ) AS names CROSS JOIN LATERAL ${counterOf("1", "names.name")} AS counted`
    : "SELECT name AS tool, live, retained FROM skein_task_counts WHERE kind = 1"

/** The numbers of tasks by tool and status: the tasks that are in no row of a status work, or are completed. */
const toNumbers = (rows: ReadonlyArray<Row>): Statistics["tasks"] => {
  const found = new Map<string, Map<TaskStatus, Omit<Statistics["tasks"][number], "tool" | "status">>>()
  const adderOf = (row: Row) => {
    const tool = textOf(row, "tool")
    const statuses = found.get(tool) ?? new Map()
    found.set(tool, statuses)
    return (status: TaskStatus, count: number, errors = 0, declined = 0): void => {
      const known = statuses.get(status) ?? { count: 0, errors: 0, declined: 0 }
      statuses.set(status, {
        count: known.count + count,
        errors: known.errors + errors,
        declined: known.declined + declined
      })
    }
  }
  for (const row of rows) {
    const add = adderOf(row)
    const tasks = numberOf(row, "tasks")
    const status = textOf(row, "status")
    if (status === "") {
      const live = numberOf(row, "live")
      add("working", live)
      add("completed", tasks - live)
      continue
    }
    const error = numberOf(row, "is_error")
    const isCounted = error !== errorKinds.none
    add(status as TaskStatus, tasks, isCounted ? tasks : 0, error === errorKinds.declined ? tasks : 0)
    add(status === "input_required" ? "working" : "completed", -tasks)
  }
  return [...found].sort(([one], [other]) => one < other ? -1 : 1).flatMap(([tool, statuses]) =>
    [...statuses].sort(([one], [other]) => one < other ? -1 : 1)
      // Tasks that end at this moment may be missing.
      .filter(([, { count }]) => count > 0)
      .map(([status, numbers]) => ({ tool: unescape(tool), status, ...numbers }))
  )
}

const toUnsettled = (row: Row): UnsettledTask => {
  const state = numberOf(row, "state")
  return {
    id: textOf(row, "task_id"),
    tool: unescape(textOf(row, "tool")),
    pool: unescape(textOf(row, "pool")),
    status: textOf(row, "status") as TaskStatus,
    createdAt: numberOf(row, "created_at"),
    isRunning: state === queued.running,
    isWaiting: state === queued.waiting,
    runs: numberOf(row, "runs"),
    waitsFor: numberOf(row, "waits") === waitKinds.no ? undefined : isWaitingForCode(row) ? "code" : "tool"
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
