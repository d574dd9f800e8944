/**
 * Databases of version 0.1 with tasks in the middle, which the engine of this version continues: see
 * `version01/generate.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Encryption from "@skein/tasks/Encryption"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { Database } from "../../src/internal/store/database.ts"
import { migrate } from "../../src/internal/store/migrations.ts"
import { unescape } from "../../src/internal/store/storedText.ts"
import { ended, get, handlers, textOf } from "../engine/kit.ts"
import { each, file, pg, server } from "./kit.ts"
import { key, makeTools, names } from "./version01/tools.ts"

const dump = (name: "sqlite" | "postgres") => readFileSync(new URL(`version01/${name}.sql`, import.meta.url), "utf8")

/** A copy of a database of version 0.1. */
interface Copy {
  readonly client: Layer.Layer<SqlClient, unknown>
  readonly tasks: Layer.Layer<TaskEngine | SqlClient, unknown>
}

const options = { pollInterval: "50 millis" } as const

const sqliteCopy = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tasks-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder): Copy => {
    const filename = join(folder, "tasks.db")
    const { DatabaseSync } = SqliteClient.loadNodeSqlite()
    const database = new DatabaseSync(filename)
    database.exec(dump("sqlite"))
    database.close()
    return { client: SqliteClient.layer({ filename }), tasks: SqliteTasks.layer({ filename, ...options }) }
  }
)

const postgresCopy = Effect.promise(async (): Promise<Copy & { readonly url: string }> => {
  const url = await (await server()).createDatabase()
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(dump("postgres"))
  await client.end()
  return {
    url,
    client: PgClient.layer({ url }),
    tasks: PostgresTasks.layer({ url, pools: ["default", "gpu"], ...options })
  }
})

const sealed = Encryption.layer({ keys: [key], readPlaintext: true })

/** Runs an effect some hours after a database was written. */
const laterBy = (hours: number, { client }: Copy) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const lastSubmission = Effect.flatMap(
      SqlClient,
      (sql) => sql<{ readonly at: unknown }>`SELECT MAX(created_at) AS at FROM skein_tasks`
    )
    const [row] = yield* Effect.provide(lastSubmission, client)
    const offset = Number(row!.at) + hours * 3_600_000 - Date.now()
    const now = () => Date.now() + offset
    const clock = Object.assign(Object.create(yield* Clock.Clock) as Clock.Clock, {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
    return yield* Effect.provideService(effect, Clock.Clock, clock)
  })

const owners = ["plain", "sealed"] as const
const yes = { action: "accept", content: { text: "yes" } }

/** The end of each task, and the steps that are executed after the migration. */
const ends: Record<string, readonly [end: string | undefined, ...executed: Array<string>]> = {
  steps: ["one two then three", "then three"],
  sleeper: ["after", "after"],
  asker: ["before yes after", "after"],
  asksForever: ["yes after", "after"],
  late: ["no answer after", "after"],
  timedOut: ["no answer then", "then"],
  answered: ["before yes then", "then"],
  unobserved: ["before soon after", "after"],
  lost: ["fast then", "then"],
  race: ["fast then", "then"],
  raceSleep: ["quick then", "then"],
  branches: ["a1 then a2, b1 b2, yes, d", "then a2"],
  cancelled: [undefined, "then undo b", "undo a"],
  cancelledBranches: [undefined, "then undo b", "undo a"],
  failing: ["c has failed", "then undo a"],
  caught: ["as expected, a defect, then", "then"],
  transactional: ["then", "then"],
  once: ["flaky good", "bad"],
  names: ["then", "then"],
  pauses: ["step", "step"],
  paused: ["step then", "step", "then"],
  missing: ["step", "step"],
  plain: ["plain", "run"],
  ended: ["step"]
}

each([file, pg], (backend) => {
  const copy: Effect.Effect<Copy, never, Scope.Scope> = backend === pg ? postgresCopy : sqliteCopy

  it.live("continues tasks of version 0.1", () =>
    Effect.gen(function*() {
      const old = yield* copy
      yield* Effect.gen(function*() {
        const { answer, runTasks } = yield* TaskEngine
        const sql = yield* SqlClient
        const executed: Array<string> = []
        yield* runTasks(handlers(makeTools({ holds: false, executed, sql })))
        const rows = yield* sql<{ readonly id: string; readonly tool: string; readonly owner: string }>`
          SELECT id, tool, owner FROM skein_tasks`
        const results: Record<string, unknown> = {}
        for (const { id, owner, tool } of rows) {
          if (tool === "far") continue
          for (const { key } of (yield* get(id))!.questions) {
            if (key !== "late") expect(yield* answer(id, key, yes)).toBe(true)
          }
          const state = yield* Effect.timeout(ended(id), "20 seconds")
          results[`${tool} ${owner.slice(1)}`] = textOf(state)
        }
        expect(results).toEqual(Object.fromEntries(
          Object.entries(ends).flatMap(([tool, [end]]) => owners.map((owner) => [`${tool} ${owner}`, end]))
        ))
        // Cancelled tasks compensate after their end.
        yield* Effect.timeout(
          Effect.repeat(sql`SELECT tool FROM skein_task_queue`, {
            until: (rows) => rows.length <= 2,
            schedule: Schedule.spaced("50 millis")
          }),
          "20 seconds"
        )
        expect(yield* sql`SELECT tool, state FROM skein_task_queue`).toEqual([
          { tool: "far", state: 1 },
          { tool: "far", state: 1 }
        ])
        const all = Object.entries(ends).flatMap(([tool, [, ...steps]]) => steps.map((step) => `${tool}: ${step}`))
        expect(executed.toSorted()).toEqual([...all, ...all].toSorted())
        expect(yield* sql`SELECT name FROM orders`).toEqual([{ name: "tea" }, { name: "tea" }])
      }).pipe(Effect.provide(Layer.provide(old.tasks, sealed)), laterBy(2, old))
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))), 60_000)
})
