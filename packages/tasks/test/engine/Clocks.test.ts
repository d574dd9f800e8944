/** Processes whose machine has another time than the database. */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { day, machine } from "./machine.ts"
import { ask, durable, ended, get, type Handler, handlers, pass, plain, settled, submit, textOf, until } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

type Services = TaskEngine | TaskAdmin | TaskSchedules | SqlClient

const hour = 3_600_000

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-clocks-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)
const newDatabase = Effect.promise(() => server!.createDatabase())

/** A process of a database, on a machine. */
const start = (
  url: string,
  tools: Record<string, Handler>,
  { layer }: ReturnType<typeof machine>,
  pools: ReadonlyArray<string> = ["default"]
) =>
  Effect.gen(function*() {
    const options = { url, pools, leaseTimeout: "600 millis", pollInterval: "50 millis" } as const
    const context = yield* Layer.build(Layer.provide(PostgresTasks.layer(options), layer))
    yield* Context.get(context, TaskEngine).runTasks(handlers(tools))
    return <A, E>(effect: Effect.Effect<A, E, Services>) =>
      Effect.provide(Effect.provideContext(effect, context), layer)
  })

const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>, isDone: (value: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    effect,
    (value) => isDone(value) ? Effect.succeed(value) : Effect.andThen(Effect.sleep(20), eventually(effect, isDone))
  )

const logs = (lines: ReadonlyArray<string>, text: string) =>
  eventually(Effect.sync(() => lines.filter((line) => line.includes(text))), (found) => found.length > 0)

/** Waits until all workers have renewed their leases several times. */
const renewals = Effect.gen(function*() {
  const sql = yield* SqlClient
  const leases = sql<{ expires_at: string }>`SELECT id, expires_at FROM skein_task_workers ORDER BY id`
  for (let count = 0; count < 4; count++) {
    const before = yield* leases
    yield* eventually(leases, (rows) => rows.every((row, index) => row.expires_at !== before[index]?.expires_at))
  }
})

const hello = plain(() => Effect.succeed("hello"))

describe.skipIf(server === undefined)("PostgreSQL · a machine whose clock is wrong", () => {
  it.live(
    "400 days ahead ends, deletes and schedules nothing, reports it, and continues once it is right",
    () =>
      Effect.gen(function*() {
        const url = yield* newDatabase
        const undone: Array<string> = []
        const rest = durable(() =>
          Effect.gen(function*() {
            yield* Step.compensate((why) => Effect.sync(() => void undone.push(why)))
            yield* Step.sleep("rest", "1 day")
            return ""
          })
        )
        const tools = { rest, tea: plain(() => Effect.as(ask("milk?"), "")) }
        const right = yield* start(url, tools, machine(0))
        const resting = yield* right(submit("rest", { ttlMs: 2 * day }))
        const asking = yield* right(submit("tea", { ttlMs: hour }))
        yield* right(until(asking.id, ({ questions }) => questions.length > 0))
        const { nextAt } = yield* right(
          Effect.flatMap(TaskSchedules, ({ set }) => set("yearly", { cron: "0 0 1 1 *", task: { tool: "tea" } }))
        )
        const wrong = machine(400 * day)
        const inWrong = yield* start(url, { ...tools, hello }, wrong, ["default", "its own"])
        const waiting = yield* right(submit("hello", { ttlMs: hour, pool: "its own" }))
        expect(yield* logs(wrong.lines, "ahead of that of the database")).toEqual([
          "Error the clock of this machine is 400d ahead of that of the database: until they agree to a minute, this " +
          "process claims no tasks, ends no expired ones, and starts none for schedules"
        ])
        yield* right(renewals)
        const states = yield* right(Effect.all([resting, asking, waiting].map(({ id }) => get(id))))
        expect(states.map((state) => state?.status)).toEqual(["working", "input_required", "working"])
        expect(undone).toEqual([])
        const { inspect } = yield* right(TaskAdmin)
        expect((yield* inspect(resting.id))?.place._tag).toBe("Waiting")
        expect((yield* inspect(waiting.id))?.place).toMatchObject({ _tag: "Ready", runs: 0 })
        const schedule = yield* right(Effect.flatMap(TaskSchedules, ({ get }) => get("yearly")))
        expect(schedule).toMatchObject({ nextAt, lastTask: undefined })
        // A task that such a process creates has the time of the database.
        const submitted = yield* inWrong(submit("hello", { ttlMs: hour, pool: "its own" }))
        expect(Math.abs(submitted.createdAt - Date.now())).toBeLessThan(30_000)
        expect((yield* right(get(submitted.id)))?.status).toBe("working")
        wrong.ahead = 0
        expect(textOf(yield* right(ended(waiting.id)))).toBe("hello")
        expect(wrong.lines.filter((line) => line.includes("clock"))).toEqual([
          expect.stringContaining("is 400d ahead of"),
          "Info the clock of this machine agrees with that of the database again: this process continues"
        ])
        wrong.ahead = -400 * day
        yield* logs(wrong.lines, "is 400d behind that of the database")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("2 seconds ahead warns once, and works with the time of the database", () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      const wrong = machine(2000)
      const nap = durable(() => Effect.as(Step.sleep("nap", "6 seconds"), "rested"))
      const inWrong = yield* start(url, { hello, nap }, wrong)
      const { createdAt, id } = yield* inWrong(submit("nap", { ttlMs: hour }))
      expect(textOf(yield* inWrong(ended((yield* inWrong(submit("hello"))).id)))).toBe("hello")
      const warning = "ahead of that of the database"
      expect((yield* logs(wrong.lines, warning))[0]).toContain("Warn the clock of this machine is ")
      const rested = yield* inWrong(ended(id))
      expect(rested.updatedAt - createdAt).toBeGreaterThanOrEqual(6000)
      yield* inWrong(renewals)
      expect(wrong.lines.filter((line) => line.includes("clock"))).toHaveLength(1)
      const sql = yield* inWrong(SqlClient)
      const [row] = yield* sql<{ now: string }>`SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now`
      expect(Number(row!.now) - rested.updatedAt).toBeGreaterThan(-1000)
    }).pipe(Effect.scoped), 60_000)
})

/** The processes of a new database. */
const stores = [
  ["SQLite", Effect.map(folder, (folder) => SqliteTasks.layer({ filename: join(folder, "tasks.db") }))],
  ["PostgreSQL", Effect.map(newDatabase, (url) => PostgresTasks.layer({ url }))]
] as const

for (const [name, open] of stores) {
  describe.skipIf(name === "PostgreSQL" && server === undefined)(`${name} · a schedule with a wrong next time`, () => {
    it.live("gets the next time from now when a process starts, unless it is paused", () =>
      Effect.gen(function*() {
        const { layer, lines } = machine(0)
        const started = Layer.fresh(Layer.provide(yield* open, layer))
        const yearly = { cron: "0 0 1 1 *", task: { tool: "report" } }
        const names = Array.from({ length: 120 }, (_, index) => `report ${index}`)
        const before = yield* Effect.gen(function*() {
          const { pause, set } = yield* TaskSchedules
          const sql = yield* SqlClient
          for (const name of names) yield* set(name, yearly)
          yield* pause("report 7")
          const late = Date.now() + 400 * day
          yield* sql`UPDATE skein_task_schedules SET next_at = ${late} WHERE name <> 'report 5'`
          yield* sql`UPDATE skein_task_schedules SET next_at = ${Number.MAX_SAFE_INTEGER} WHERE name = 'report 6'`
          return Date.now()
        }).pipe(Effect.provide(started))
        yield* Effect.gen(function*() {
          const { get, list } = yield* TaskSchedules
          const late = before + 370 * day
          const all = Effect.map(list({ limit: 1000 }), (rows) =>
            rows.filter(({ nextAt = Infinity }) => nextAt > late).map(({ name }) => name))
          const repaired = yield* eventually(all, (names) =>
            names.length <= 1)
          expect(repaired).toEqual(["report 7"])
          expect((yield* get("report 6"))?.nextAt).toBe((yield* get("report 5"))?.nextAt)
        }).pipe(Effect.provide(started))
        expect(lines.filter((line) => line.includes("was too late, because a clock was wrong"))).toHaveLength(118)
        expect(lines.find((line) => line.includes("\"report 6\""))).toContain("instead of never")
      }).pipe(Effect.scoped), 60_000)
  })
}

it.effect("a schedule with a wrong next time continues within a quarter of an hour", () =>
  Effect.gen(function*() {
    const runs: Array<number> = []
    const { runTasks } = yield* TaskEngine
    yield* runTasks(handlers({ report: plain(() => Effect.as(Effect.sync(() => void runs.push(1)), "")) }))
    const { set } = yield* TaskSchedules
    const sql = yield* SqlClient
    yield* set("hourly", { cron: "0 * * * *", task: { tool: "report" } })
    yield* pass(60, 60)
    yield* sql`UPDATE skein_task_schedules SET next_at = ${400 * day}`
    yield* pass(16 * 60, 60)
    expect(yield* sql`SELECT next_at FROM skein_task_schedules`).toEqual([{ next_at: hour }])
    yield* TestClock.adjust(hour - 17 * 60_000)
    yield* settled
    expect(runs).toEqual([1])
  }).pipe(Effect.provide(Layer.provide(MemoryTasks.layer({ pollInterval: "1 minute" }), Logger.layer([])))))
