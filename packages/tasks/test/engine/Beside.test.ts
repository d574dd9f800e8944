/**
 * `TaskAdmin` beside the process that runs the tasks.
 */
import { describe, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, submit, textOf, until, work } from "./kit.ts"

const server = unavailable === undefined || required ? await sharedPostgres() : undefined

const temporary = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-beside-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => join(folder, "tasks.db")
)

const stores = {
  SQLite: Effect.map(temporary, (filename) => ({
    engine: SqliteTasks.layer({ filename, pollInterval: "50 millis" }),
    admin: SqliteTasks.layerAdmin({ filename })
  })),
  PostgreSQL: Effect.map(Effect.promise(async () => server!.createDatabase()), (url) => ({
    engine: PostgresTasks.layer({ url }),
    admin: PostgresTasks.layerAdmin({ url })
  }))
}

describe.each(["SQLite", "PostgreSQL"] as const)("%s", (name) => {
  it.live.skipIf(name === "PostgreSQL" && server === undefined)(
    "an operator lists, cancels, wakes, runs again and pauses tasks of a running server",
    () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const { admin, engine } = yield* stores[name]
        const context = yield* Layer.build(engine)
        const running = Effect.provideContext(
          Effect.gen(function*() {
            yield* work({
              job: durable(({ rest }) =>
                Effect.gen(function*() {
                  yield* Step.run("book", {}, () => Effect.sync(() => void log.push("book")))
                  yield* Step.compensate(() => Effect.sync(() => void log.push("unbook")))
                  if (rest === "step") yield* Step.run("hold", {}, () => Effect.never)
                  if (rest === "sleep") yield* Step.sleep("rest", "1 hour")
                  return "done"
                })
              )
            })
            const busy = yield* submit("job", { args: { rest: "step" } })
            const asleep = yield* submit("job", { args: { rest: "sleep" } })
            const done = yield* submit("job")
            yield* ended(done.id)
            return { busy: busy.id, asleep: asleep.id, done: done.id }
          }),
          context
        )
        const { asleep, busy, done } = yield* running
        const beside = <A>(use: (admin: TaskAdmin["Service"]) => Effect.Effect<A, TaskError>) =>
          Effect.scoped(
            Effect.flatMap(Layer.build(admin), (context) => use(Context.get(context, TaskAdmin)))
          )
        const waits = Effect.repeat(beside(({ inspect }) => inspect(asleep)), {
          until: (task) => task?.place._tag === "Waiting",
          schedule: undefined
        })
        yield* waits
        const listed = yield* beside(({ list }) => list({}))
        expect(listed.map(({ state }) => state.id).toSorted()).toEqual([asleep, busy, done].toSorted())
        expect((yield* beside(({ inspect }) => inspect(done)))!.log).toMatchObject([{ kind: "step", name: "book" }])

        // The run is interrupted, and compensates.
        expect(yield* beside(({ cancel }) => cancel(busy, "stop"))).toBe(true)
        const unbooked = Effect.repeat(Effect.andThen(Effect.sleep(10), Effect.sync(() => log.includes("unbook"))), {
          until: (found) => found
        })
        yield* Effect.timeout(unbooked, "60 seconds")
        expect(yield* beside(({ wake }) => wake(asleep))).toBe(true)

        const again = yield* beside(({ rerun }) => rerun(done))
        expect(textOf(yield* Effect.provideContext(ended(again!.id), context))).toBe("done")

        expect(yield* beside(({ pause }) => pause("job"))).toBe(true)
        const held = yield* Effect.provideContext(submit("job"), context)
        yield* Effect.sleep(200)
        expect((yield* beside(({ inspect }) => inspect(held.id)))!.place).toMatchObject({ heldBy: "pause" })
        expect(yield* beside(({ resume }) => resume("job"))).toBe(true)
        yield* Effect.provideContext(Effect.timeout(ended(held.id), "60 seconds"), context)

        const schedules = <A>(use: (schedules: TaskSchedules["Service"]) => Effect.Effect<A, TaskError>) =>
          Effect.scoped(Effect.flatMap(Layer.build(admin), (context) => use(Context.get(context, TaskSchedules))))
        yield* schedules(({ set }) => set("yearly", { cron: "0 0 1 1 *", task: { tool: "job" } }))
        const triggered = yield* schedules(({ trigger }) => trigger("yearly"))
        yield* Effect.provideContext(Effect.timeout(ended(triggered!.id), "60 seconds"), context)
        expect(yield* schedules(({ pause }) => pause("yearly"))).toBe(true)
        expect(yield* schedules(({ list }) => list())).toMatchObject([
          { name: "yearly", tool: "job", isPaused: true, lastTask: triggered!.id }
        ])
        expect(yield* Effect.flatMap(TaskSchedules, ({ get }) => get("yearly")).pipe(Effect.provideContext(context)))
          .toMatchObject({ isPaused: true })

        // A listener in the server hears of the cancellation.
        const heard = Effect.provideContext(until(asleep, ({ status }) => status === "cancelled"), context)
        yield* Effect.all([heard, Effect.andThen(Effect.sleep(100), beside(({ cancel }) => cancel(asleep)))], {
          concurrency: 2
        })
      }).pipe(Effect.scoped),
    120_000
  )
})

const failureOf = (layer: Layer.Layer<TaskAdmin | TaskSchedules, TaskError>) =>
  Effect.scoped(Effect.map(Effect.flip(Layer.build(layer)), ({ reason }) => `${reason._tag}: ${reason.message}`))

it.effect("a program beside a server creates no file, and changes no table", () =>
  Effect.gen(function*() {
    const filename = yield* temporary
    expect(yield* failureOf(SqliteTasks.layerAdmin({ filename }))).toBe(
      `StoreError: cannot open "${filename}": there is no such file`
    )
    expect(existsSync(filename)).toBe(false)

    const sql = <A>(use: (sql: SqlClient) => Effect.Effect<A, unknown>) =>
      Effect.provide(Effect.flatMap(SqlClient, use), SqliteClient.layer({ filename }), { local: true })
    yield* sql((sql) => sql`CREATE TABLE teas (name TEXT)`)
    expect(yield* failureOf(SqliteTasks.layerAdmin({ filename }))).toBe(
      "StoreError: the database has no tables of tasks: run \"skein tasks migrate\", or start a server or worker that may create them"
    )
    yield* sql((sql) => sql`CREATE TABLE skein_task_versions (version INTEGER)`)
    yield* sql((sql) => sql`INSERT INTO skein_task_versions VALUES (1)`)
    expect(yield* failureOf(SqliteTasks.layerAdmin({ filename }))).toContain("the task tables have version 1")
    yield* sql((sql) => sql`INSERT INTO skein_task_versions VALUES (99)`)
    expect(yield* failureOf(SqliteTasks.layerAdmin({ filename }))).toContain("a later version created them")
    expect(yield* sql((sql) => sql`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`)).toEqual([
      { name: "skein_task_versions" },
      { name: "teas" }
    ])
  }))

it.effect("TaskEngine is not among its services", () =>
  Effect.gen(function*() {
    const filename = yield* temporary
    yield* Effect.scoped(Layer.build(SqliteTasks.layer({ filename })))
    const context = yield* Layer.build(SqliteTasks.layerAdmin({ filename }))
    expect(Context.getOption(context as Context.Context<never>, TaskEngine)._tag).toBe("None")
  }))
