/**
 * Converts the tasks of version 0.1, which ran them with `effect/cluster`: queues each task that is not settled, writes
 * its log, and drops the tables of the cluster.
 */
import * as Effect from "effect/Effect"
import { Encryption } from "../../Encryption.ts"
import type { TaskError } from "../../TaskError.ts"
import { type ConvertedTask, convertExecution, type Message, type OnceAttempt, toLog } from "./convertExecution.ts"
import type { Database, Row } from "./database.ts"
import { associatedData } from "./rows.ts"
import { encryptedTexts, escape, plainTexts, type StoredTexts, unescape } from "./storedText.ts"

/** The failure of a conversion while workers of version 0.1 run. */
const workersRun = { _tag: "WorkersRun" } as const
export type WorkersRun = typeof workersRun
export const isWorkersRun = (error: unknown): error is WorkersRun => error === workersRun

/** The tables of the cluster. */
const clusterTables = ["messages", "replies", "migrations", "runners", "locks", "runner_migrations"].map((name) =>
  `cluster_${name}`
)

const taskType = "Workflow/skein/Task"
const timerType = "Workflow/-/DurableClock"

/** The condition of the messages that belong to tasks. */
const isOfTask = `(entity_type = '${taskType}'
  OR (entity_type = '${timerType}' AND payload LIKE '%"workflowName":"skein/Task"%'))`

/** Tasks that are read together, and characters of their messages that are in memory, at most. */
const pageSize = 500
const pageChars = 4_000_000

/**
 * Characters of an encrypted `{}`, the record of a failed attempt of `once`, with the cipher of this package: a prefix,
 * a hint, a dot, and 30 bytes.
 */
const sealedEmptyChars = 54

/** Whether a table, an index or a trigger exists. */
export const exists = (database: Database, name: string): Effect.Effect<boolean, TaskError> =>
  Effect.map(
    database.isPostgres
      ? database.prepare("SELECT to_regclass(?) IS NOT NULL AS found")(name)
      : database.prepare("SELECT COUNT(*) > 0 AS found FROM sqlite_master WHERE name = ?")(name),
    (rows) => Boolean(rows[0]?.["found"])
  )

/** The first half of the keys of the locks that a runner of the cluster holds: a hash of "effect-cluster:cluster". */
const runnerLocks = 2_839_596_291

/**
 * Whether workers of version 0.1 run. Each holds locks for as long as it is connected. Other users of the cluster hold
 * such locks too, so a runner with a shard group of tasks, which is a number, must also have given a sign of life.
 */
const findWorkers = (database: Database): Effect.Effect<boolean, TaskError> =>
  Effect.gen(function*() {
    if (!database.isPostgres || !(yield* exists(database, "cluster_runners"))) return false
    const locks = yield* database.prepare(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
         AND CAST(classid AS BIGINT) = ${runnerLocks}
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`
    )()
    if (locks.length === 0) return false
    const runners = yield* database.prepare(
      `SELECT runner FROM cluster_runners WHERE last_heartbeat > CAST(NOW() AS TIMESTAMP) - INTERVAL '1 minute'`
    )()
    return runners.some(({ runner }) => isOfTasks(runner as string))
  })

/** Whether a runner runs tasks: the names of their shard groups are numbers. */
const isOfTasks = (runner: string): boolean => {
  const { groups } = JSON.parse(runner) as { readonly groups?: ReadonlyArray<string> }
  return groups?.some((group) => /^\d{4}$/.test(group)) ?? false
}

/** Converts all tasks, in the transaction of a migration. The new tables must exist. */
export const convertTasks = (database: Database): Effect.Effect<void, TaskError | WorkersRun> =>
  Effect.gen(function*() {
    const run = (statement: string) => database.prepare(statement)()
    const hasCluster = yield* exists(database, "cluster_messages")
    if (database.isPostgres && hasCluster) {
      if (yield* findWorkers(database)) return yield* Effect.fail(workersRun)
      // Decryption may take a while between two statements.
      yield* run("SET LOCAL idle_in_transaction_session_timeout = '5min'")
      // In the order in which processes of version 0.1 that submit tasks lock them.
      yield* run(
        `LOCK TABLE skein_tasks, skein_task_questions, skein_task_counts, cluster_messages, cluster_replies
         IN ACCESS EXCLUSIVE MODE`
      )
      if (yield* findWorkers(database)) return yield* Effect.fail(workersRun)
    }
    if (hasCluster) {
      yield* run(
        "CREATE INDEX IF NOT EXISTS cluster_messages_skein_entity_idx ON cluster_messages (entity_id, entity_type)"
      )
    }
    const cipher = yield* Encryption
    const texts = cipher === undefined ? plainTexts : encryptedTexts(cipher)
    yield* convertPages(database, hasCluster, texts)
    if (hasCluster) yield* dropCluster(database)
    yield* run("DROP TABLE IF EXISTS skein_task_pools")
  })

const convertPages = (
  database: Database,
  hasCluster: boolean,
  texts: StoredTexts
): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const readTasks = database.prepare(
      `SELECT id, pool, tool, status, updated_at FROM skein_tasks
       WHERE settled = 0 AND status IN ('working', 'input_required', 'cancelled') AND id > ? ORDER BY id LIMIT ?`
    )
    const groups = yield* readGroups(database)
    let after = ""
    while (true) {
      const tasks = yield* readTasks(after, pageSize)
      const byExecution = new Map(tasks.map((task) => {
        const id = task["id"] as string
        const group = groups.get(task["pool"] as string)
        return [group === undefined ? id : `${group}/${id}`, task] as const
      }))
      const parts = hasCluster ? yield* splitPage(database, [...byExecution.keys()]) : [[...byExecution.keys()]]
      for (const executions of parts) {
        const part = new Map(executions.map((execution) => [execution, byExecution.get(execution)!]))
        yield* convertPart(database, part, hasCluster, texts)
      }
      if (tasks.length < pageSize) return
      after = tasks.at(-1)!["id"] as string
    }
  })

/** The shard groups of the pools, by their stored names. The default pool has none, and neither have those of SQLite. */
const readGroups = (database: Database): Effect.Effect<ReadonlyMap<string, string>, TaskError> =>
  Effect.flatMap(exists(database, "skein_task_pools"), (found) =>
    found
      ? Effect.map(database.prepare("SELECT name, number FROM skein_task_pools")(), (rows) =>
        new Map(rows.map(({ name, number }) => [escape(name as string), String(number).padStart(4, "0")])))
      : Effect.succeed(new Map<string, string>()))

/** The query for the executions in a parameter. PostgreSQL plans an array as a few values, and uses the index. */
const inExecutions = (database: Database): string =>
  database.isPostgres ? `= ANY (ARRAY(${database.textsOfJson}))` : `IN (${database.textsOfJson})`

const messagesOf = (database: Database): string =>
  `FROM cluster_messages AS messages
   LEFT JOIN cluster_replies AS replies ON replies.request_id = messages.id AND replies.kind = 0
   WHERE messages.entity_id ${inExecutions(database)} AND messages.kind = 0
     AND messages.entity_type IN ('${taskType}', '${timerType}')`

/** Splits executions into parts whose messages take a bounded amount of memory. */
const splitPage = (
  database: Database,
  executions: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<ReadonlyArray<string>>, TaskError> => {
  const readSizes = database.prepare(
    `SELECT messages.entity_id AS id, SUM(LENGTH(messages.payload) + COALESCE(LENGTH(replies.payload), 0)) AS size
     ${messagesOf(database)} GROUP BY messages.entity_id`
  )
  return Effect.map(readSizes(JSON.stringify(executions)), (rows) => {
    const sizes = new Map(rows.map(({ id, size }) => [id as string, Number(size)]))
    const parts: Array<Array<string>> = []
    let room = 0
    for (const execution of executions) {
      const size = sizes.get(execution) ?? 0
      if (size > room || parts.length === 0) {
        parts.push([])
        room = pageChars
      }
      parts.at(-1)!.push(execution)
      room -= size
    }
    return parts
  })
}

const groupBy = <A>(rows: ReadonlyArray<Row>, column: string, convert: (row: Row) => A): Map<string, Array<A>> => {
  const grouped = new Map<string, Array<A>>()
  for (const row of rows) {
    const key = row[column] as string
    const group = grouped.get(key)
    if (group === undefined) grouped.set(key, [convert(row)])
    else group.push(convert(row))
  }
  return grouped
}

const toMessage = (row: Row): Message => ({
  id: row["id"] as string,
  isTimer: row["entity_type"] === timerType,
  tag: row["tag"] as string,
  payload: row["payload"] as string,
  isProcessed: Boolean(row["processed"]),
  deliverAt: row["deliver_at"] == null ? undefined : Number(row["deliver_at"]),
  replyId: row["reply_id"] as string | null ?? undefined,
  reply: row["reply"] as string | null ?? undefined
})

/** Converts some tasks, by the ids of their executions. */
const convertPart = (
  database: Database,
  tasks: ReadonlyMap<string, Row>,
  hasCluster: boolean,
  texts: StoredTexts
): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const ids = [...tasks.values()].map(({ id }) => id as string)
    const messages = hasCluster
      ? yield* database.prepare(
        `SELECT messages.entity_id, messages.entity_type, messages.tag, messages.payload, messages.processed,
           messages.deliver_at, CAST(messages.id AS TEXT) AS id, CAST(replies.id AS TEXT) AS reply_id,
           replies.payload AS reply
         ${messagesOf(database)}`
      )(JSON.stringify([...tasks.keys()]))
      : []
    const questions = yield* database.prepare(
      `SELECT task_id, name, state FROM skein_task_questions WHERE task_id ${inExecutions(database)}`
    )(JSON.stringify(ids))
    const messagesByExecution = groupBy(messages, "entity_id", toMessage)
    const questionsByTask = groupBy(
      questions,
      "task_id",
      ({ name, state }) => [unescape(name as string), Number(state)] as const
    )
    const queue: Array<object> = []
    const log: Array<object> = []
    for (const [execution, task] of tasks) {
      const id = task["id"] as string
      const converted = convertExecution({
        status: task["status"] as string,
        updatedAt: Number(task["updated_at"]),
        messages: messagesByExecution.get(execution) ?? [],
        questions: new Map(questionsByTask.get(id))
      })
      queue.push({
        task_id: id,
        pool: task["pool"],
        tool: task["tool"],
        state: converted.state,
        wake_at: converted.wakeAt
      })
      const onceEvents = yield* successfulOnce(id, converted, texts)
      for (const { at, attempt, kind, name, seq, startedAt, value } of toLog([...converted.events, ...onceEvents])) {
        log.push({ task_id: id, seq, kind, name: escape(name), attempt, value, started_at: startedAt ?? null, at })
      }
    }
    yield* insertRows(database, "skein_task_queue", queueColumns, queue)
    yield* insertRows(database, "skein_task_log", logColumns, log)
  })

/**
 * The attempts of `once` that have succeeded, as the one attempt that the log has. An attempt that has failed has the
 * value `{}`. If it is encrypted by a key that this process does not have, then its length decides.
 */
const successfulOnce = (
  id: string,
  { onceAttempts }: ConvertedTask,
  texts: StoredTexts
): Effect.Effect<ReadonlyArray<OnceAttempt>, TaskError> =>
  Effect.map(
    Effect.filter(onceAttempts, ({ name, value }) =>
      Effect.match(texts.decrypt(value, associatedData.other(escape(`${id}/once/${name}`))), {
        onFailure: () =>
          value.length !== sealedEmptyChars && value !== "{}",
        onSuccess: (text) => text !== "{}"
      })),
    (attempts) =>
      attempts.map((attempt) => ({ ...attempt, attempt: 1 }))
  )

/** The columns of the rows that are inserted, with the types of PostgreSQL. */
const queueColumns = "task_id TEXT, pool TEXT, tool TEXT, state SMALLINT, wake_at BIGINT"
const logColumns =
  "task_id TEXT, seq INTEGER, kind TEXT, name TEXT, attempt INTEGER, value TEXT, started_at BIGINT, at BIGINT"

/** Inserts rows in one statement. A queued task has run: its next run reads the log. */
const insertRows = (
  database: Database,
  table: "skein_task_queue" | "skein_task_log",
  columns: string,
  rows: ReadonlyArray<object>
): Effect.Effect<void, TaskError> => {
  if (rows.length === 0) return Effect.void
  const names = columns.split(", ").map((column) => column.split(" ")[0]!)
  const [runs, hasRun] = table === "skein_task_queue" ? [", runs", ", 1"] : ["", ""]
  const insert = database.prepare(
    `INSERT INTO ${table} (${names.join(", ")}${runs}) ` + (database.isPostgres
      ? `SELECT ${names.join(", ")}${hasRun} FROM json_to_recordset(CAST(? AS JSON)) AS inserted (${columns})`
      : `SELECT ${names.map((name) => `value ->> '${name}'`).join(", ")}${hasRun} FROM json_each(?)`)
  )
  return Effect.asVoid(insert(JSON.stringify(rows)))
}

/** Drops the tables of the cluster. If the application uses them as well, only the messages of tasks are deleted. */
const dropCluster = (database: Database): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const run = (statement: string) => database.prepare(statement)()
    const others = yield* run(`SELECT 1 FROM cluster_messages WHERE kind = 0 AND NOT ${isOfTask} LIMIT 1`)
    const runners = (yield* exists(database, "cluster_runners")) ? yield* run("SELECT runner FROM cluster_runners") : []
    const isShared = others.length > 0 || runners.some(({ runner }) => !isOfTasks(runner as string))
    if (!isShared) {
      return yield* Effect.forEach(clusterTables, (table) => run(`DROP TABLE IF EXISTS ${table}`), { discard: true })
    }
    const requests = `SELECT id FROM cluster_messages WHERE kind = 0 AND ${isOfTask}`
    yield* run(`DELETE FROM cluster_replies WHERE request_id IN (${requests})`)
    yield* run(`DELETE FROM cluster_messages WHERE request_id IN (${requests})`)
    yield* run("DROP INDEX IF EXISTS cluster_messages_skein_entity_idx")
  })
