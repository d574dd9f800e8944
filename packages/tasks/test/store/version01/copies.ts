/**
 * Copies of the databases of version 0.1, and many tasks in them.
 */
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"

/** A copy of a database. */
export interface Copy {
  readonly client: Layer.Layer<SqlClient, unknown>
  readonly tasks: Layer.Layer<TaskEngine | SqlClient, unknown>
}

const options = { pollInterval: "50 millis" } as const
const dump = (name: string) => readFileSync(new URL(`${name}.sql`, import.meta.url), "utf8")

/** A copy in a file. */
export const sqliteCopy: Effect.Effect<Copy, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tasks-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => {
    const filename = join(folder, "tasks.db")
    const { DatabaseSync } = SqliteClient.loadNodeSqlite()
    const database = new DatabaseSync(filename)
    database.exec(dump("sqlite"))
    database.close()
    return { client: SqliteClient.layer({ filename }), tasks: SqliteTasks.layer({ filename, ...options }) }
  }
)

/** A copy in an empty database of PostgreSQL. */
export const postgresCopy = async (url: string): Promise<Copy> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(dump("postgres"))
  await client.end()
  return {
    client: PgClient.layer({ url }),
    tasks: PostgresTasks.layer({ url, pools: ["default", "gpu"], ...options })
  }
}

/**
 * Replaces all tasks with others: each one has ended its steps, with values of some characters, and sleeps until 2030.
 */
export const replaceTasks = (
  { count, steps, valueChars }: { readonly count: number; readonly steps: number; readonly valueChars: number }
): Effect.Effect<void, unknown, SqlClient> =>
  Effect.gen(function*() {
    const sql = (yield* SqlClient).withoutTransforms()
    const isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
    for (const table of ["skein_tasks", "skein_task_questions", "cluster_messages", "cluster_replies"]) {
      yield* sql.unsafe(`DELETE FROM ${table}`)
    }
    const numbers = (name: string, from: number, to: number) =>
      isPostgres
        ? `(SELECT generate_series(${from}, ${to}) AS ${name}) AS ${name}s`
        : `(WITH RECURSIVE all_numbers (${name}) AS (
             SELECT ${from} UNION ALL SELECT ${name} + 1 FROM all_numbers WHERE ${name} < ${to}
           ) SELECT ${name} FROM all_numbers) AS ${name}s`
    const text = (expression: string) => `CAST(${expression} AS TEXT)`
    const id = `('task' || substr('0000000000000000000000000000' || ${text("task")}, -28))`.replace(
      "-28)",
      isPostgres ? `LENGTH(${text("task")}) + 1)` : "-28)"
    )
    // Ids of the year 2026, each of its own.
    const messageId = (part: string) => `((31536000000 + task) * 4194304 + ${part})`
    const yes = isPostgres ? "TRUE" : "1"
    const no = isPostgres ? "FALSE" : "0"
    const columns =
      "id, message_id, shard_id, entity_type, entity_id, kind, tag, payload, processed, request_id, deliver_at"
    yield* sql.unsafe(
      `INSERT INTO skein_tasks
         (id, tool, pool, owner, status, created_at, updated_at, expires_at, poll_interval, caller, args)
       SELECT ${id}, 'many', 'default', '=ada', 'working', 1767225600000, 1767225600000, 9007199254740991, 1000,
         '{"revision":"2025-11-25","capabilities":{}}', '{}'
       FROM ${numbers("task", 1, count)}`
    )
    yield* sql.unsafe(
      `INSERT INTO cluster_messages (${columns})
       SELECT ${messageId("0")}, 'Workflow/skein/Task/' || ${id} || '/run/', '0000:1', 'Workflow/skein/Task', ${id}, 0,
         'run', '{}', ${yes}, ${messageId("0")}, NULL
       FROM ${numbers("task", 1, count)}`
    )
    yield* sql.unsafe(
      `INSERT INTO cluster_messages (${columns})
       SELECT ${messageId("step")}, 'Workflow/skein/Task/' || ${id} || '/activity/step/' || ${text("step")} || '/1',
         '0000:1', 'Workflow/skein/Task', ${id}, 0, 'activity',
         '{"name":"step/' || ${text("step")} || '","attempt":1}', ${yes}, ${messageId("step")}, NULL
       FROM ${numbers("task", 1, count)} CROSS JOIN ${numbers("step", 1, steps)}`
    )
    yield* sql.unsafe(
      `INSERT INTO cluster_messages (${columns})
       SELECT ${messageId("4000")}, 'Workflow/-/DurableClock/' || ${id} || '/run/sleep/long', '0000:1',
         'Workflow/-/DurableClock', ${id}, 0, 'run', '{"name":"sleep/long","workflowName":"skein/Task"}', ${no},
         ${messageId("4000")}, 1893456000000
       FROM ${numbers("task", 1, count)}`
    )
    const value = JSON.stringify({ v: "x".repeat(valueChars) })
    const exit = (value: object) => `'${JSON.stringify({ _tag: "Success", value })}'`
    const ended = exit({ _tag: "Complete", exit: { _tag: "Success", value } })
    yield* sql.unsafe(
      `INSERT INTO cluster_replies (id, kind, request_id, payload)
       SELECT id + 2000, 0, id, CASE tag WHEN 'run' THEN ${exit({ _tag: "Suspended" })} ELSE ${ended} END
       FROM cluster_messages WHERE entity_type = 'Workflow/skein/Task'`
    )
  })
