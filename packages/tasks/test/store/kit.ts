/**
 * The stores that are tested, each on a database of its own, and the tasks that tests insert.
 */
import { describe } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import * as SqlStore from "../../src/internal/store/sqlStore.ts"
import { type LogEntry, TaskStore } from "../../src/internal/store/store.ts"
import type { NewTask, State } from "../../src/TaskState.ts"

/** A client of a database, and a store on it. */
export interface Opened {
  readonly store: TaskStore["Service"]
  readonly sql: SqlClient.SqlClient
}

export interface Backend {
  readonly name: "SQLite in memory" | "SQLite in a file" | "PostgreSQL"
  /** A new database; each use of the result is another client, if the database allows several. */
  readonly database: Effect.Effect<Effect.Effect<Opened, unknown, Scope.Scope>, unknown, Scope.Scope>
}

const open = <E>(layer: Layer.Layer<TaskStore | SqlClient.SqlClient, E>): Effect.Effect<Opened, E, Scope.Scope> =>
  Effect.map(
    Effect.flatMap(Effect.scope, (scope) => Layer.buildWithScope(layer, scope)),
    (context) => ({ store: Context.get(context, TaskStore), sql: Context.get(context, SqlClient.SqlClient) })
  )

const sqlite = (filename: string) => open(SqlStore.layer().pipe(Layer.provideMerge(SqliteClient.layer({ filename }))))

const postgresAt = (url: string) =>
  open(
    Layer.unwrap(Effect.map(PgClient.PgClient, SqlStore.layerListening)).pipe(
      Layer.provideMerge(PgClient.layer({ url }))
    )
  )

export const memory: Backend = {
  name: "SQLite in memory",
  database: Effect.sync(() => sqlite(":memory:"))
}

export const file: Backend = {
  name: "SQLite in a file",
  database: Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tasks-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => sqlite(join(folder, "tasks.db"))
  )
}

export const pg: Backend = {
  name: "PostgreSQL",
  database: Effect.map(
    Effect.promise(async () => (await sharedPostgres()).createDatabase()),
    postgresAt
  )
}

/** The tables of tasks. */
export const tables = [
  "skein_tasks",
  "skein_task_questions",
  "skein_task_counts",
  "skein_task_queue",
  "skein_task_log",
  "skein_task_workers",
  "skein_task_tools",
  "skein_task_starts",
  "skein_task_schedules",
  "skein_task_events",
  "skein_task_topics",
  "skein_task_topic_events",
  "skein_task_notes",
  "skein_task_labels",
  "skein_task_children",
  "skein_task_output",
  "skein_task_heartbeats"
] as const

let used: Promise<string> | undefined

/** A client of an empty database. A PostgreSQL database is emptied, which takes less time than a new one. */
export const fresh = (backend: Backend): Effect.Effect<Opened, unknown, Scope.Scope> =>
  backend !== pg
    ? Effect.flatten(backend.database)
    : Effect.promise(() => used ??= sharedPostgres().then((server) => server.createDatabase())).pipe(
      Effect.flatMap(postgresAt),
      Effect.tap(({ sql }) => sql.unsafe(`TRUNCATE ${tables.join()}, skein_task_counters`))
    )

/** Runs the same tests for these stores. Skips PostgreSQL if it cannot run, which fails with `CI`. */
export const each = (backends: ReadonlyArray<Backend>, tests: (backend: Backend) => void): void => {
  for (const backend of backends) {
    const absent = backend === pg && unavailable !== undefined && !required
    describe.skipIf(absent)(absent ? `${backend.name} (${unavailable})` : backend.name, () => {
      if (backend === pg) beforeAll(sharedPostgres, 60_000)
      tests(backend)
    })
  }
}

export const all: ReadonlyArray<Backend> = [memory, file, pg]

/** A task without limits, with a time to live of an hour. */
export const task = (options: Partial<NewTask> = {}): NewTask => ({
  tool: "report",
  args: { year: 2026 },
  pool: "default",
  owner: "ada",
  caller: {
    revision: "2025-11-25",
    capabilities: { elicitation: {} },
    info: { name: "test", version: "1" },
    principal: { id: "ada" }
  },
  ttlMs: 3_600_000,
  pollIntervalMs: 1000,
  limits: { all: {}, client: {}, tool: {} },
  ...options
})

/** Inserts a task for any worker. */
export const insert = ({ store }: Opened, options: Partial<NewTask> = {}) => store.insert(task(options))

/** A task that must exist. */
export const stateOf = ({ store }: Opened, id: string): Effect.Effect<State, unknown> =>
  Effect.flatMap(store.get(id), (state) => state === undefined ? Effect.die(`no task ${id}`) : Effect.succeed(state))

export const completed = (result: Record<string, unknown>) =>
  ({ status: "completed", outcome: { _tag: "Result", result } }) as const

export const question = (key: string, params: Record<string, unknown> | undefined = { message: `${key}?` }) => ({
  key,
  method: "elicitation/create",
  params
})

/** An event of a log. */
export const event = (seq: number, options: Partial<LogEntry> = {}): LogEntry => ({
  ...{ seq, kind: "step", name: `step ${seq}`, attempt: 1, value: "{}", startedAt: seq, at: seq + 1 },
  ...options
})

export interface Count {
  readonly kind: number
  readonly name: string
  readonly live: number
  readonly retained: number
}

/** The counters as PostgreSQL and SQLite store them. */
export const storedCounters = ({ sql }: Opened): Effect.Effect<ReadonlyArray<Count>, unknown> =>
  Effect.map(
    sql.unsafe<Count>(
      sql.onDialectOrElse({
        pg: () =>
          `SELECT kind, name, SUM(live) AS live, SUM(retained) AS retained FROM (
             SELECT kind, name, live, retained FROM skein_task_counts
             UNION ALL SELECT kind, name, live, retained FROM skein_task_counters
           ) AS parts GROUP BY kind, name ORDER BY kind, name`,
        orElse: () => "SELECT kind, name, live, retained FROM skein_task_counts ORDER BY kind, name"
      })
    ),
    (rows) => rows.map((row) => ({ ...row, live: Number(row.live), retained: Number(row.retained) }))
  )

/** The stored counters, and the counters as computed from the rows. */
export const counters = (opened: Opened) => {
  const { sql } = opened
  const numbers = (rows: ReadonlyArray<object>) =>
    (rows as ReadonlyArray<Count>).map(({ kind, live, name, retained }) =>
      `${kind} ${name} ${Number(live)} ${Number(retained)}`
    ).sort()
  const counted = (kind: number, name: string) =>
    `SELECT ${kind} AS kind, ${name} AS name, COUNT(*) AS retained,
       SUM(CASE WHEN status IN ('working', 'input_required') THEN 1 ELSE 0 END) AS live
     FROM skein_tasks GROUP BY ${name === "''" ? "1" : name} HAVING COUNT(*) > 0`
  return Effect.all({
    kept: Effect.map(
      storedCounters(opened),
      (rows) => numbers(rows.filter(({ live, retained }) => retained !== 0 || live !== 0))
    ),
    counted: Effect.map(
      sql.unsafe([counted(0, "''"), counted(1, "tool"), counted(2, "counter")].join(" UNION ALL ")),
      numbers
    )
  })
}
