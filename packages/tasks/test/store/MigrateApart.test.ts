/**
 * Migrations apart from the processes that run tasks, and indexes on tables that are in use.
 */
import { describe, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, submit, until, work } from "../engine/kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const database = Effect.promise(async () => server!.createDatabase())

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-migrate-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const failureOf = <A>(layer: Layer.Layer<A, TaskError>) =>
  Effect.scoped(Effect.map(Effect.flip(Layer.build(layer)), ({ message }) => message))

const noTables =
  "the database has no tables of tasks: run \"skein tasks migrate\", or start a server or worker that may create them"

describe("SQLite", () => {
  it.effect("a process with migrate: false needs tables that were made before", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      expect((yield* Effect.flip(SqliteTasks.migrate({ filename, dryRun: true }))).message).toContain("no such file")
      expect(existsSync(filename)).toBe(false)
      expect(yield* failureOf(SqliteTasks.layer({ filename, migrate: false }))).toBe(noTables)
      expect(yield* SqliteTasks.migrate({ filename, dryRun: true })).toEqual({ from: 0, to: 13 })
      expect(yield* SqliteTasks.migrate({ filename })).toEqual({ from: 0, to: 13 })
      expect(yield* SqliteTasks.migrate({ filename })).toEqual({ from: 13, to: 13 })
      yield* Layer.build(SqliteTasks.layer({ filename, migrate: false }))
      expect((yield* Effect.flip(SqliteTasks.migrate({ filename }))).reason._tag).toBe("FileLocked")
    }))
})

describe.skipIf(server === undefined)("PostgreSQL", () => {
  it.live("a role without the right to create tables runs tasks", () =>
    Effect.gen(function*() {
      const url = yield* database
      const admin = Context.get(yield* Layer.build(PgClient.layer({ url })), SqlClient)
      const role = `worker_${Math.random().toString(36).slice(2)}`
      yield* admin.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`)
      const own = new URL(url)
      own.username = role
      own.password = "secret"
      const options = { url: own.href, leaseTimeout: "1 second" } as const
      expect(yield* failureOf(PostgresTasks.layer(options))).toContain("permission denied")
      expect(yield* failureOf(PostgresTasks.layer({ ...options, migrate: false }))).toBe(noTables)

      expect(yield* PostgresTasks.migrate({ url, dryRun: true })).toEqual({ from: 0, to: 13 })
      expect(yield* PostgresTasks.migrate({ url })).toEqual({ from: 0, to: 13 })
      // As the guide says.
      yield* admin.unsafe(`GRANT USAGE ON SCHEMA public TO ${role}`)
      const tables = yield* admin.unsafe<{ name: string }>(
        "SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'skein\\_task%'"
      )
      yield* admin.unsafe(
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables.map(({ name }) => name).join()} TO ${role}`
      )
      const start = Effect.flatMap(Effect.scope, (scope) =>
        Layer.buildWithScope(PostgresTasks.layer({ ...options, migrate: false }), scope))
      const context = yield* start
      yield* start
      yield* Effect.gen(function*() {
        const undone: Array<string> = []
        yield* work({
          job: durable(({ end }) =>
            Effect.gen(function*() {
              yield* Step.run("step", {}, () =>
                Effect.void)
              yield* Step.compensate(() => Effect.sync(() => void undone.push("step")))
              if (end === "ask") yield* Effect.orDie(ask("More?"))
              return "done"
            })
          )
        })
        const { answer, cancel, pace } = yield* TaskEngine
        yield* pace(new Map([["job", { concurrency: 5, rate: { limit: 100, periodMs: 1000 } }]]))
        const first = yield* submit("job", { key: "first", ttlMs: 3000 })
        expect(yield* ended(first.id)).toMatchObject({ status: "completed" })
        const [asked, cancelled] = yield* Effect.all([
          submit("job", { args: { end: "ask" } }),
          submit("job", { args: { end: "ask" } })
        ])
        const { questions } = yield* until(asked.id, ({ status }) => status === "input_required")
        yield* until(cancelled.id, ({ status }) => status === "input_required")
        expect(yield* answer(asked.id, questions[0]!.key, { action: "decline" })).toBe(true)
        expect(yield* ended(asked.id)).toMatchObject({ status: "completed" })
        expect(yield* cancel(cancelled.id)).toBe(true)
        const { inspect, list, pause, rerun, resume, statistics, tools, wake, workers } = yield* TaskAdmin
        expect(yield* pause("job")).toBe(true)
        expect(yield* resume("job")).toBe(true)
        expect(yield* tools).toHaveLength(1)
        const again = yield* rerun(first.id)
        expect(yield* ended(again!.id)).toMatchObject({ status: "completed" })
        expect((yield* inspect(asked.id))!.log).toHaveLength(2)
        expect(yield* wake(asked.id)).toBe(false)
        expect((yield* statistics).tasks.length).toBeGreaterThan(0)
        expect(yield* workers).toHaveLength(2)
        // The first task and its repetition expire and are deleted.
        yield* Effect.repeat(Effect.andThen(Effect.sleep(200), list({})), {
          until: (tasks) => tasks.length === 2
        })
        expect(undone).toEqual(["step"])
      }).pipe(Effect.provideContext(context))
    }).pipe(Effect.scoped), 60_000)

  it.live(
    "an index on a table with rows is made while others write, and a broken one is replaced",
    () =>
      Effect.gen(function*() {
        const url = yield* database
        yield* PostgresTasks.migrate({ url })
        const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), SqlClient)
        const insert = (id: string, key: string) =>
          sql.unsafe(
            `INSERT INTO skein_tasks (id, tool, pool, owner, status, created_at, updated_at, expires_at, poll_interval,
             caller, args, submission_key)
           VALUES ($1, 't', 'default', 'o', 'completed', 1, 1, 9007199254740991, 1, '{}', '{}', $2)`,
            [id, key]
          )
        yield* insert("a", "k")
        // As a process leaves it that is killed while it makes the index.
        yield* sql`DELETE FROM skein_task_versions WHERE version >= 2`
        yield* sql`ALTER TABLE skein_task_queue DROP COLUMN awaits`
        yield* sql`DROP INDEX skein_tasks_key`
        yield* insert("b", "k")
        const create =
          sql`CREATE UNIQUE INDEX CONCURRENTLY skein_tasks_key ON skein_tasks (owner, tool, submission_key)`
        expect((yield* Effect.flip(create)).message).toContain("could not create unique index")
        yield* sql`DELETE FROM skein_tasks WHERE id = 'b'`
        const valid = Effect.map(
          sql<
            { valid: boolean }
          >`SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('skein_tasks_key')`,
          ([row]) => row?.valid
        )
        expect(yield* valid).toBe(false)
        expect(yield* failureOf(PostgresTasks.layer({ url, migrate: false }))).toContain("have version 1")

        // A transaction that has written to the table holds the index up, but no other write.
        const migrations = yield* sql.withTransaction(Effect.gen(function*() {
          yield* insert("c", "c")
          const two = Effect.all([PostgresTasks.migrate({ url }), PostgresTasks.migrate({ url })], { concurrency: 2 })
          const fiber = yield* Effect.forkScoped(two)
          const other = Context.get(yield* Layer.build(Layer.fresh(PgClient.layer({ url }))), SqlClient)
          yield* Effect.repeat(
            Effect.andThen(
              Effect.sleep(20),
              other`SELECT 1 FROM pg_stat_activity WHERE query LIKE '%INDEX CONCURRENTLY%' AND state = 'active' AND pid <> pg_backend_pid()`
            ),
            { until: (rows) => rows.length > 0 }
          )
          yield* other`UPDATE skein_tasks SET version = version + 1 WHERE id = 'a'`
          expect(fiber.pollUnsafe()).toBeUndefined()
          return fiber
        }))
        const done = yield* Fiber.join(migrations)
        expect(done.every(({ to }) => to === 13)).toBe(true)
        expect(yield* valid).toBe(true)
        expect(yield* sql`SELECT version FROM skein_task_versions ORDER BY version`).toHaveLength(13)
        yield* Layer.build(PostgresTasks.layer({ url, migrate: false }))
      }).pipe(Effect.scoped),
    60_000
  )
})
