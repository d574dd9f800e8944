/**
 * The tables and their versions. A published migration never changes: a later one alters the tables. One process at a
 * time migrates, each migration in a transaction, except that indexes on large tables of PostgreSQL are made outside.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { createCounters } from "./counters.ts"
import { type Database, maxTime, type Row, runAll, storeError, storeFailure } from "./database.ts"
import { hasFailed, isException } from "./rows.ts"

/** An index: `CREATE <kind> <name> ON <target>`. */
interface Index {
  readonly kind: "INDEX" | "UNIQUE INDEX"
  readonly name: string
  readonly target: string
}

/** Changes of the tables in a transaction, or an index. */
type Migration = ((database: Database) => Effect.Effect<void, TaskError>) | Index

const isIndex = (migration: Migration | undefined): migration is Index => typeof migration === "object"

/** The type of ids. They are compared by their bytes, whatever the locale of the database. */
const idType = (isPostgres: boolean): string => isPostgres ? `TEXT COLLATE "C"` : "TEXT"

const createTables = (database: Database) => {
  const pg = database.isPostgres
  const id = idType(pg)
  // Leaves free space in each page, so that frequent updates stay in place and do not change indexes.
  const fillFactor = pg ? "WITH (fillfactor = 70)" : ""
  // From `expires_at` on a task is not readable, and the sweeper cancels and deletes it.
  return runAll(database, [
    `CREATE TABLE IF NOT EXISTS skein_tasks (
      id ${id} NOT NULL PRIMARY KEY,
      tool TEXT NOT NULL,
      pool TEXT NOT NULL,
      owner TEXT NOT NULL,
      status TEXT NOT NULL,
      waits SMALLINT NOT NULL DEFAULT 0,
      is_error SMALLINT NOT NULL DEFAULT 0,
      version INTEGER NOT NULL DEFAULT 1,
      said INTEGER NOT NULL DEFAULT 0,
      open_questions INTEGER NOT NULL DEFAULT 0,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      ttl BIGINT,
      poll_interval BIGINT NOT NULL,
      progress DOUBLE PRECISION,
      progress_total DOUBLE PRECISION,
      progress_message TEXT,
      message TEXT,
      caller TEXT NOT NULL,
      args TEXT NOT NULL,
      submission_key TEXT,
      counter TEXT NOT NULL DEFAULT '',
      outcome TEXT
    ) ${fillFactor}`,
    "CREATE INDEX IF NOT EXISTS skein_tasks_created ON skein_tasks (created_at, id)",
    "CREATE INDEX IF NOT EXISTS skein_tasks_owner ON skein_tasks (owner, created_at, id)",
    `CREATE INDEX IF NOT EXISTS skein_tasks_expiry ON skein_tasks (expires_at, id) WHERE expires_at < ${maxTime}`,
    // `state`: 0 open, 1 answered, 2 withdrawn, 3 lost in a race.
    `CREATE TABLE IF NOT EXISTS skein_task_questions (
      task_id ${id} NOT NULL,
      name TEXT NOT NULL,
      place INTEGER NOT NULL,
      state SMALLINT NOT NULL DEFAULT 0,
      method TEXT NOT NULL,
      params TEXT,
      answer TEXT,
      PRIMARY KEY (task_id, name)
    )`,
    // `kind`: 0 all tasks, 1 of a tool, 2 of an owner, or of a client without one: the `counter` of their tasks. On PostgreSQL
    // it has what programs count that do not know skein_task_counters.
    `CREATE TABLE IF NOT EXISTS skein_task_counts (
      kind SMALLINT NOT NULL,
      name TEXT NOT NULL,
      live BIGINT NOT NULL,
      retained BIGINT NOT NULL,
      PRIMARY KEY (kind, name)
    ) ${pg ? "WITH (fillfactor = 30)" : "WITHOUT ROWID"}`,
    `CREATE TABLE IF NOT EXISTS skein_task_queue (
      task_id ${id} NOT NULL PRIMARY KEY,
      pool TEXT NOT NULL,
      tool TEXT NOT NULL,
      priority INTEGER NOT NULL DEFAULT 0,
      state SMALLINT NOT NULL,
      wake_at BIGINT NOT NULL,
      worker TEXT,
      signals INTEGER NOT NULL DEFAULT 0,
      runs INTEGER NOT NULL DEFAULT 0,
      attempts INTEGER NOT NULL DEFAULT 0,
      reached INTEGER NOT NULL DEFAULT 0,
      gate SMALLINT NOT NULL DEFAULT 0,
      rate_key TEXT NOT NULL DEFAULT ''
    ) ${pg ? "WITH (fillfactor = 50)" : ""}`,
    // The only process on a SQLite database runs the tasks of all pools.
    `CREATE INDEX IF NOT EXISTS skein_task_queue_ready ON skein_task_queue (${pg ? "pool, " : ""}priority, wake_at)
     WHERE state = 0 AND gate <> 1`,
    "CREATE INDEX IF NOT EXISTS skein_task_queue_gated ON skein_task_queue (tool, priority, wake_at) WHERE state = 0 AND gate = 1",
    "CREATE INDEX IF NOT EXISTS skein_task_queue_gated_running ON skein_task_queue (tool) WHERE state = 2 AND gate <> 0",
    `CREATE INDEX IF NOT EXISTS skein_task_queue_waiting ON skein_task_queue (wake_at)
     WHERE state = 1 AND wake_at < ${maxTime}`,
    "CREATE INDEX IF NOT EXISTS skein_task_queue_running ON skein_task_queue (worker) WHERE state = 2",
    "CREATE INDEX IF NOT EXISTS skein_task_questions_open ON skein_task_questions (task_id) WHERE state = 0",
    `CREATE TABLE IF NOT EXISTS skein_task_log (
      task_id ${id} NOT NULL,
      seq INTEGER NOT NULL,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      value TEXT,
      started_at BIGINT,
      at BIGINT NOT NULL,
      beside TEXT,
      PRIMARY KEY (task_id, seq)
    ) ${pg ? "" : "WITHOUT ROWID"}`,
    `CREATE TABLE IF NOT EXISTS skein_task_workers (
      id TEXT NOT NULL PRIMARY KEY,
      pools TEXT NOT NULL,
      host TEXT NOT NULL,
      started_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL
    )`,
    // The tools whose tasks a worker may not claim freely: see `gates.ts`.
    `CREATE TABLE IF NOT EXISTS skein_task_tools (
      tool TEXT NOT NULL PRIMARY KEY,
      concurrency INTEGER,
      rate_limit INTEGER,
      rate_ms BIGINT,
      paused_at BIGINT
    )`,
    `CREATE TABLE IF NOT EXISTS skein_task_starts (
      tool TEXT NOT NULL,
      rate_key TEXT NOT NULL,
      started_at BIGINT NOT NULL,
      task_id ${id} NOT NULL,
      PRIMARY KEY (tool, started_at, task_id)
    ) ${pg ? "" : "WITHOUT ROWID"}`,
    `CREATE TABLE IF NOT EXISTS skein_task_schedules (
      name ${id} NOT NULL PRIMARY KEY,
      tool TEXT NOT NULL,
      rule TEXT NOT NULL,
      definition TEXT NOT NULL,
      args TEXT NOT NULL,
      paused SMALLINT NOT NULL DEFAULT 0,
      next_at BIGINT NOT NULL,
      last_at BIGINT,
      last_task TEXT,
      revision INTEGER NOT NULL DEFAULT 1
    )`,
    "CREATE INDEX IF NOT EXISTS skein_task_schedules_next ON skein_task_schedules (next_at, name) WHERE paused = 0",
    ...pg ? [] : [
      // PostgreSQL does this in the statement that ends a task.
      `CREATE TRIGGER IF NOT EXISTS skein_tasks_ended AFTER UPDATE OF status ON skein_tasks
      WHEN OLD.status IN ('working', 'input_required') AND NEW.status NOT IN ('working', 'input_required')
      BEGIN
        UPDATE skein_task_counts SET live = live - 1
        WHERE (kind, name) IN (VALUES (0, ''), (1, NEW.tool), (2, NEW.counter));
      END`,
      `CREATE TRIGGER IF NOT EXISTS skein_tasks_settled AFTER UPDATE OF status ON skein_tasks
      WHEN OLD.status IN ('working', 'input_required') AND NEW.status IN ('completed', 'failed')
      BEGIN
        DELETE FROM skein_task_queue WHERE task_id = NEW.id;
      END`
    ]
  ])
}

const submissionKeys: Index = {
  kind: "UNIQUE INDEX",
  name: "skein_tasks_key",
  target: "skein_tasks (owner, tool, submission_key) WHERE submission_key IS NOT NULL"
}

const createEvents = (database: Database) => {
  const pg = database.isPostgres
  const id = idType(pg)
  return runAll(database, [
    // `value` is NULL of an event that was received: its row is kept for its key.
    `CREATE TABLE IF NOT EXISTS skein_task_events (
      task_id ${id} NOT NULL,
      place INTEGER NOT NULL,
      name TEXT NOT NULL,
      value TEXT,
      send_key TEXT,
      at BIGINT NOT NULL,
      PRIMARY KEY (task_id, place)
    )`,
    `CREATE INDEX IF NOT EXISTS skein_task_events_unreceived ON skein_task_events (task_id, place)
     WHERE value IS NOT NULL`,
    `CREATE UNIQUE INDEX IF NOT EXISTS skein_task_events_key ON skein_task_events (task_id, send_key)
     WHERE send_key IS NOT NULL`,
    // The tasks that receive the events of a topic, and the last events of topics.
    `CREATE TABLE IF NOT EXISTS skein_task_topics (
      event TEXT NOT NULL,
      task_id ${id} NOT NULL,
      PRIMARY KEY (event, task_id)
    )`,
    "CREATE INDEX IF NOT EXISTS skein_task_topics_task ON skein_task_topics (task_id)",
    `CREATE TABLE IF NOT EXISTS skein_task_topic_events (
      event TEXT NOT NULL,
      place BIGINT NOT NULL,
      value TEXT NOT NULL,
      send_key TEXT,
      at BIGINT NOT NULL,
      PRIMARY KEY (event, place)
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS skein_task_topic_events_key ON skein_task_topic_events (event, send_key)
     WHERE send_key IS NOT NULL`,
    "CREATE INDEX IF NOT EXISTS skein_task_topic_events_at ON skein_task_topic_events (at)",
    // The names of the events that a suspended task waits for, as JSON, for operators.
    "ALTER TABLE skein_task_queue ADD COLUMN awaits TEXT"
  ])
}

/**
 * The labels of tasks, the actions of operators, compensations that have failed, and what a worker runs. `source` is the
 * operator, or the number of the compensation.
 */
const createNotes = (database: Database) => {
  const id = idType(database.isPostgres)
  const addColumn = `ALTER TABLE skein_task_workers ADD COLUMN ${database.isPostgres ? "IF NOT EXISTS" : ""}`
  return runAll(database, [
    `CREATE TABLE IF NOT EXISTS skein_task_notes (
      task_id ${id} NOT NULL,
      at BIGINT NOT NULL,
      action TEXT NOT NULL,
      source TEXT,
      detail TEXT
    )`,
    `CREATE TABLE IF NOT EXISTS skein_task_labels (
      task_id ${id} NOT NULL,
      name TEXT NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (task_id, name)
    )`,
    "CREATE INDEX IF NOT EXISTS skein_task_labels_value ON skein_task_labels (name, value, task_id)",
    "CREATE INDEX IF NOT EXISTS skein_task_notes_task ON skein_task_notes (task_id, at)",
    "CREATE INDEX IF NOT EXISTS skein_task_notes_undo ON skein_task_notes (task_id) WHERE action = 'undo'",
    `${addColumn} pid INTEGER`,
    `${addColumn} application TEXT`,
    `${addColumn} steps TEXT`
  ])
}

/**
 * The children of tasks, by their names in their parents. `state`: 0 live, 1 completed, 2 failed or cancelled. A row stays
 * until its parent is deleted, so that no child starts twice. PostgreSQL does what the trigger does in the statement that
 * ends a task.
 */
const createChildren = (database: Database) => {
  const pg = database.isPostgres
  const id = idType(pg)
  return runAll(database, [
    `CREATE TABLE IF NOT EXISTS skein_task_children (
      parent ${id} NOT NULL,
      name TEXT NOT NULL,
      item INTEGER NOT NULL,
      child ${id} NOT NULL,
      state SMALLINT NOT NULL DEFAULT 0,
      detached SMALLINT NOT NULL DEFAULT 0,
      PRIMARY KEY (parent, name, item)
    ) ${pg ? "" : "WITHOUT ROWID"}`,
    "CREATE UNIQUE INDEX IF NOT EXISTS skein_task_children_child ON skein_task_children (child)",
    "CREATE INDEX IF NOT EXISTS skein_task_children_state ON skein_task_children (parent, state, name, item)",
    ...pg ? [] : [
      `CREATE TRIGGER IF NOT EXISTS skein_task_child_ended AFTER UPDATE OF status ON skein_tasks
      WHEN OLD.status IN ('working', 'input_required') AND NEW.status NOT IN ('working', 'input_required')
        AND EXISTS (SELECT 1 FROM skein_task_children WHERE child = NEW.id)
      BEGIN
        UPDATE skein_task_children
        SET state = CASE WHEN NEW.status = 'completed' AND NEW.is_error = 0 THEN 1 ELSE 2 END WHERE child = NEW.id;
        UPDATE skein_task_queue SET signals = signals + 1,
          wake_at = CASE state WHEN 1 THEN NEW.updated_at ELSE wake_at END, state = CASE state WHEN 1 THEN 0 ELSE state END
        WHERE task_id = (SELECT parent FROM skein_task_children WHERE child = NEW.id);
      END`
    ]
  ])
}

/** The output of tasks. `total`: the bytes of the items up to this one. */
const createOutput = (database: Database) =>
  runAll(database, [
    `CREATE TABLE IF NOT EXISTS skein_task_output (
      task_id ${idType(database.isPostgres)} NOT NULL,
      place INTEGER NOT NULL,
      value TEXT NOT NULL,
      total BIGINT NOT NULL,
      at BIGINT NOT NULL,
      PRIMARY KEY (task_id, place)
    )`
  ])

/** The details that running steps have reported. Processes of earlier versions do not use them. */
const createHeartbeats = (database: Database) =>
  runAll(database, [
    `CREATE TABLE IF NOT EXISTS skein_task_heartbeats (
      task_id ${idType(database.isPostgres)} NOT NULL,
      name TEXT NOT NULL,
      at BIGINT NOT NULL,
      details TEXT NOT NULL,
      PRIMARY KEY (task_id, name)
    )`
  ])

/** The keys of the queue, and what limits and debounces them. */
const createQueueKeys = (database: Database) => {
  const add = (table: string, column: string) =>
    `ALTER TABLE ${table} ADD COLUMN ${database.isPostgres ? "IF NOT EXISTS" : ""} ${column}`
  return runAll(database, [
    add("skein_task_tools", "keyed SMALLINT NOT NULL DEFAULT 0"),
    add("skein_task_tools", "key_concurrency INTEGER"),
    add("skein_task_tools", "key_rate_limit INTEGER"),
    add("skein_task_tools", "key_rate_ms BIGINT"),
    add("skein_task_tools", "last_key TEXT"),
    add("skein_task_queue", "debounce_key TEXT"),
    add("skein_tasks", "singleton_key TEXT"),
    `CREATE INDEX IF NOT EXISTS skein_task_queue_keys ON skein_task_queue (tool, rate_key, priority, wake_at)
     WHERE state = 0 AND gate = 1`,
    `CREATE INDEX IF NOT EXISTS skein_task_queue_continued ON skein_task_queue (tool, rate_key, priority, wake_at)
     WHERE state = 0 AND gate = 1 AND runs > 0`,
    "DROP INDEX IF EXISTS skein_task_queue_gated_running",
    `CREATE INDEX IF NOT EXISTS skein_task_queue_running_keys ON skein_task_queue (tool, rate_key)
     WHERE state = 2 AND gate <> 0`,
    `CREATE UNIQUE INDEX IF NOT EXISTS skein_task_queue_debounce_key ON skein_task_queue (tool, debounce_key)
     WHERE debounce_key IS NOT NULL AND runs = 0`,
    "CREATE INDEX IF NOT EXISTS skein_task_starts_key ON skein_task_starts (tool, rate_key, started_at)"
  ])
}

const singletonKeys: Index = {
  kind: "UNIQUE INDEX",
  name: "skein_tasks_singleton_key",
  target: "skein_tasks (tool, singleton_key) WHERE singleton_key IS NOT NULL"
}

/** The persons and groups that answer questions. */
const createAddressees = (database: Database) =>
  runAll(database, [
    `ALTER TABLE skein_task_questions ADD COLUMN ${database.isPostgres ? "IF NOT EXISTS" : ""} addressee TEXT`,
    `CREATE INDEX IF NOT EXISTS skein_task_questions_addressee ON skein_task_questions (addressee)
     WHERE state = 0 AND addressee IS NOT NULL`
  ])

/** The tasks that operators look for first. */
const failedTasks: Index = {
  kind: "INDEX",
  name: "skein_tasks_failed",
  target: `skein_tasks (created_at, id) WHERE ${hasFailed}`
}

/** The ended tasks that are not completed without an error: few, and the others are the rest of all. */
const exceptions: Index = {
  kind: "INDEX",
  name: "skein_tasks_exceptions",
  target: `skein_tasks (tool, status, is_error) WHERE ${isException}`
}

const migrations: ReadonlyArray<Migration> = [
  createTables,
  submissionKeys,
  createEvents,
  createNotes,
  createChildren,
  createCounters,
  createOutput,
  createHeartbeats,
  createQueueKeys,
  singletonKeys,
  createAddressees,
  failedTasks,
  exceptions
]

/** The keys of PostgreSQL advisory locks: "skein" as a number, and two more. `SqlTokenStore` has the number between. */
const migrationLock = "495790843246"
const indexLock = "495790843248"

/** Milliseconds between two attempts to get the lock of indexes. */
const retryMs = 200

const newerVersion = (found: number) =>
  storeFailure(
    `the task tables have version ${found}, and this program supports ${migrations.length}: a later version created them`
  )

/** Runs an effect while no other process runs one. */
const withMigrationLock = <A, E>(database: Database, effect: Effect.Effect<A, E>): Effect.Effect<A, E | TaskError> =>
  database.transaction(
    database.isPostgres
      ? Effect.andThen(database.prepare(`SELECT pg_advisory_xact_lock(${migrationLock})`)(), effect)
      : effect
  )

const hasVersions = (database: Database): Effect.Effect<boolean, TaskError> =>
  Effect.map(
    database.prepare(
      database.isPostgres
        ? "SELECT to_regclass('skein_task_versions') IS NOT NULL AS found"
        : "SELECT COUNT(*) > 0 AS found FROM sqlite_master WHERE name = 'skein_task_versions'"
    )(),
    (rows) => Boolean(rows[0]?.["found"])
  )

/** The version of the tables; 0 without tables. */
export const readVersion = (database: Database): Effect.Effect<number, TaskError> =>
  Effect.flatMap(hasVersions(database), (found) =>
    found
      ? Effect.map(
        database.prepare("SELECT MAX(version) AS version FROM skein_task_versions")(),
        (rows) => Number(rows[0]?.["version"] ?? 0)
      )
      : Effect.succeed(0))

/** Fails if the tables do not have the version of this program. It changes nothing. */
export const checkVersion = (database: Database): Effect.Effect<void, TaskError> =>
  Effect.flatMap(readVersion(database), (found) => {
    if (found === migrations.length) return Effect.void
    if (found > migrations.length) return Effect.fail(newerVersion(found))
    const message = found === 0
      ? "the database has no tables of tasks: run \"skein tasks migrate\", or start a server or worker that may create them"
      : `the task tables have version ${found}, and this program needs ${migrations.length}: run "skein tasks migrate", or start a server or worker of this version that may change the tables`
    return Effect.fail(storeFailure(message))
  })

const createVersions = "CREATE TABLE IF NOT EXISTS skein_task_versions (version INTEGER NOT NULL PRIMARY KEY)"
const insertVersion = "INSERT INTO skein_task_versions (version) VALUES (?) ON CONFLICT DO NOTHING"

/** Whether an index takes too long for a transaction, in which writes to the table would wait. */
const isLarge = (database: Database): Effect.Effect<boolean, TaskError> =>
  database.isPostgres
    ? Effect.map(database.prepare("SELECT 1 FROM skein_tasks LIMIT 1")(), (rows) => rows.length > 0)
    : Effect.succeed(false)

/** Runs the migrations from a version on, up to an index that must be made outside of a transaction. */
const migrateInTransaction = Effect.fnUntraced(function*(database: Database): Effect.fn.Return<void, TaskError> {
  yield* database.prepare(createVersions)()
  const now = yield* readVersion(database)
  if (now > migrations.length) return yield* Effect.fail(newerVersion(now))
  for (let next = now; next < migrations.length; next++) {
    const migration = migrations[next]!
    if (isIndex(migration)) {
      if (yield* isLarge(database)) return
      yield* database.prepare(`CREATE ${migration.kind} IF NOT EXISTS ${migration.name} ON ${migration.target}`)()
    } else yield* migration(database)
    yield* database.prepare(insertVersion)(next + 1)
  }
})

/**
 * Makes an index on a table of PostgreSQL that has rows, while other processes write to it, unless it is there. One
 * process at a time does it. It is not possible in a transaction: a process that dies leaves an invalid index, which the
 * next attempt replaces.
 */
const createConcurrently = (
  { sql }: Database,
  { kind, name, target }: Index
): Effect.Effect<void, TaskError> =>
  Effect.scoped(Effect.gen(function*() {
    const connection = yield* Effect.mapError(sql.reserve, storeError)
    const run = (statement: string): Effect.Effect<ReadonlyArray<Row>, TaskError> =>
      Effect.mapError(connection.executeUnprepared(statement, [], undefined), storeError)
    // The statement that makes the index waits for the end of all others, also for those that wait for a lock.
    const locked = Effect.map(run(`SELECT pg_try_advisory_lock(${indexLock}) AS locked`), ([row]) =>
      row!["locked"] === true)
    const acquired: Effect.Effect<void, TaskError> = Effect.flatMap(
      locked,
      (found) =>
        found ? Effect.void : Effect.andThen(Effect.sleep(retryMs), Effect.suspend(() => acquired))
    )
    yield* Effect.acquireRelease(acquired, () => Effect.ignoreCause(run(`SELECT pg_advisory_unlock(${indexLock})`)), {
      interruptible: true
    })
    const [found] = yield* run(`SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('${name}')`)
    if (found?.["valid"] === true) return
    if (found !== undefined) yield* run(`DROP INDEX CONCURRENTLY ${name}`)
    yield* run(`CREATE ${kind} CONCURRENTLY ${name} ON ${target}`)
  }))

/**
 * Migrates the tables to the version of this program, and returns the version before. If they have it already, it takes
 * no lock and changes nothing.
 */
export const migrate = Effect.fnUntraced(function*(database: Database): Effect.fn.Return<number, TaskError> {
  const before = yield* readVersion(database)
  if (before > migrations.length) return yield* Effect.fail(newerVersion(before))
  for (let now = before; now < migrations.length; now = yield* readVersion(database)) {
    yield* withMigrationLock(database, migrateInTransaction(database))
    const reached = yield* readVersion(database)
    const next = migrations[reached]
    if (!isIndex(next)) continue
    yield* createConcurrently(database, next)
    yield* database.prepare(insertVersion)(reached + 1)
  }
  return before
})

/** The version of the tables that this program needs. */
export const currentVersion = migrations.length
