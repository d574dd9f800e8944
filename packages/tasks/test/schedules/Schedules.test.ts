/**
 * Schedules on each store: one task for each time, and what an operator sees and touches.
 */
import { describe, it } from "@effect/vitest"
import type { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskSchedule from "@skein/tasks/TaskSchedule"
import * as TaskSchedules from "@skein/tasks/TaskSchedules"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { defaults } from "../../src/internal/engine/schedules.ts"
import { resolveSettings } from "../../src/internal/protocol/policy.ts"
import { durable, pass, plain, settled, work } from "../engine/kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const memory = MemoryTasks.layer({ pollInterval: "1 hour" })
const withKey = (key: string) => Encryption.layer({ keys: [key] })
const sealed = Layer.provide(memory, withKey("a key of thirty-two characters, or more"))

const hourly: TaskSchedules.Definition = { cron: "0 * * * *", task: { tool: "report" } }
const hour = 3_600_000

/** The arguments of the tasks of a tool that have run, in their order. */
const recording = Effect.gen(function*() {
  const runs: Array<unknown> = []
  yield* work({
    report: plain((args) => Effect.as(Effect.sync(() => void runs.push(args)), "")),
    endless: durable(() => Effect.never)
  })
  return runs
})

/** The statements about schedules that SQLite executes while the scope is open. */
const statements = Effect.acquireRelease(
  Effect.sync(() => {
    const executed: Array<string> = []
    const { prepare } = DatabaseSync.prototype
    DatabaseSync.prototype.prepare = function(this: DatabaseSync, sql: string) {
      const statement = prepare.call(this, sql)
      const { all } = statement
      statement.all = (...parameters: ReadonlyArray<never>) => {
        if (sql.includes("skein_task_schedules")) executed.push(sql)
        return all.apply(statement, parameters as never)
      }
      return statement
    }
    return Object.assign(executed, { prepare })
  }),
  ({ prepare }) => Effect.sync(() => void (DatabaseSync.prototype.prepare = prepare))
)

/** Lets the engine continue until a number of tasks have run: encryption takes turns of the event loop. */
const ran = (runs: ReadonlyArray<unknown>, count: number) =>
  Effect.repeat(settled, { until: () => runs.length >= count, times: 1000 })

const tasks = Effect.flatMap(TaskAdmin, ({ list }) => Effect.map(list({}), (all) => all.map(({ state }) => state)))
const schedules = TaskSchedules.TaskSchedules

for (const [store, layer] of [["memory", memory], ["encrypted", sealed]] as const) {
  describe(`TaskSchedules · ${store}`, () => {
    it.effect("starts one task at each time", () =>
      Effect.gen(function*() {
        const runs = yield* recording
        const { set } = yield* schedules
        const set1 = yield* set("reports", {
          ...hourly,
          task: { tool: "report", args: { secret: "Ada" }, owner: "ada" }
        })
        expect(set1).toMatchObject({ name: "reports", tool: "report", pool: "default", owner: "ada", isPaused: false })
        expect(set1).toMatchObject({ nextAt: hour, lastAt: undefined, lastTask: undefined, timeZone: "UTC" })
        yield* pass(3599, 3599)
        expect(runs).toEqual([])
        yield* pass(1)
        yield* ran(runs, 1)
        expect(runs).toEqual([{ secret: "Ada" }])
        for (const count of [2, 3]) {
          yield* pass(3600, 600)
          yield* ran(runs, count)
          expect(runs).toHaveLength(count)
        }
        const [last] = yield* tasks
        expect(last).toMatchObject({ tool: "report", owner: "ada", ttlMs: 24 * hour, createdAt: 3 * hour })
        expect(yield* (yield* schedules).get("reports")).toMatchObject({
          nextAt: 4 * hour,
          lastAt: 3 * hour,
          lastTask: last!.id
        })
        const sql = yield* SqlClient
        const [{ args } = { args: "" }] = yield* sql<{ args: string }>`SELECT args FROM skein_task_schedules`
        expect(args.includes("Ada")).toBe(store === "memory")
      }).pipe(Effect.provide(layer)))

    it.effect("starts the tasks of a span once, however often that is repeated", () =>
      Effect.gen(function*() {
        const runs = yield* recording
        const { backfill, get, pause, set } = yield* schedules
        yield* TestClock.setTime(48 * hour)
        const task = { tool: "report", args: { secret: "Ada", at: "" }, owner: "ada" }
        yield* set("reports", { ...hourly, task, timeArgument: "at", overlap: "skip" })
        yield* pause("reports")
        const span = { from: 3 * hour, to: 6 * hour }
        const planned = yield* backfill("reports", { ...span, dryRun: true })
        expect(planned).toEqual([3, 4, 5].map((at) => ({ at: at * hour, task: undefined, isStarted: false })))
        const first = yield* backfill("reports", { ...span, to: 5 * hour })
        expect(first!.map(({ isStarted }) => isStarted)).toEqual([true, true])
        const second = yield* backfill("reports", span)
        expect(second!.map(({ isStarted }) => isStarted)).toEqual([false, false, true])
        expect(second!.slice(0, 2).map(({ task }) => task)).toEqual(first!.map(({ task }) => task))
        yield* ran(runs, 3)
        expect((runs as Array<{ readonly at: string }>).map(({ at }) => at).toSorted()).toEqual(
          [3, 4, 5].map((at) => new Date(at * hour).toISOString())
        )
        expect(yield* tasks).toHaveLength(3)
        expect(yield* get("reports")).toMatchObject({ isPaused: true, lastTask: undefined })
        expect(yield* backfill("other", span)).toBeUndefined()
        for (
          const [wrong, message] of [
            [{ from: 5 * hour, to: 4 * hour }, "must begin before it ends"],
            [{ from: 5 * hour, to: 49 * hour }, "must not end in the future"],
            [{ from: -1001 * hour }, "more than 1000 times"]
          ] as const
        ) {
          const { reason } = yield* Effect.flip(backfill("reports", wrong))
          expect([reason._tag, reason.message]).toEqual(["InvalidOption", expect.stringContaining(message)])
        }
      }).pipe(Effect.provide(layer)))
  })
}

const onMemory = Effect.provide(memory)

describe("TaskSchedules", () => {
  it.effect("keeps the next time of a schedule that is set again, and follows another expression", () =>
    Effect.gen(function*() {
      const runs = yield* recording
      const { set } = yield* schedules
      yield* set("reports", { ...hourly, task: { tool: "report", args: { version: 1 } } })
      yield* pass(1800, 60)
      expect(yield* set("reports", { ...hourly, task: { tool: "report", args: { version: 2 } } }))
        .toMatchObject({ nextAt: hour })
      yield* pass(1800, 60)
      expect(runs).toEqual([{ version: 2 }])
      expect(yield* set("reports", { ...hourly, cron: "15 * * * *" })).toMatchObject({ nextAt: hour + 15 * 60_000 })
      yield* pass(900, 60)
      expect(runs).toHaveLength(2)
      expect(yield* set("reports", { ...hourly, cron: "15 * * * *", timeZone: "+05:30" }))
        .toMatchObject({ nextAt: hour + 45 * 60_000 })
    }).pipe(onMemory))

  it.effect("starts nothing while a schedule is paused, and skips the times of the pause", () =>
    Effect.gen(function*() {
      const runs = yield* recording
      const { get, pause, resume, set } = yield* schedules
      yield* set("reports", { ...hourly, missed: "all" })
      expect(yield* resume("reports")).toBe(false)
      expect(yield* pause("reports")).toBe(true)
      expect(yield* pause("reports")).toBe(false)
      expect(yield* pause("unknown")).toBe(false)
      yield* pass(3 * 3600 + 60, 60)
      yield* set("reports", { ...hourly, missed: "all" })
      expect(yield* get("reports")).toMatchObject({ isPaused: true })
      expect(runs).toEqual([])
      expect(yield* resume("reports")).toBe(true)
      expect(yield* resume("unknown")).toBe(false)
      yield* settled
      expect(runs).toEqual([])
      yield* pass(3540, 60)
      expect(runs).toHaveLength(1)
    }).pipe(onMemory))

  it.effect("lists by name and page, triggers and removes", () =>
    Effect.gen(function*() {
      const runs = yield* recording
      const { get, list, pause, remove, set, trigger } = yield* schedules
      for (const name of ["b", "c", "a", "\0"]) yield* set(name, hourly)
      expect((yield* list()).map(({ name }) => name)).toEqual(["a", "b", "c", "\0"])
      expect((yield* list({ after: "a", limit: 1 })).map(({ name }) => name)).toEqual(["b"])
      yield* pause("a")
      yield* TestClock.adjust(5000)
      const state = yield* trigger("a")
      yield* settled
      expect(runs).toHaveLength(1)
      expect(yield* get("a")).toMatchObject({ lastAt: 5000, lastTask: state!.id, nextAt: hour, isPaused: true })
      expect(yield* trigger("unknown")).toBeUndefined()
      expect(yield* remove("a")).toBe(true)
      expect(yield* remove("a")).toBe(false)
      expect(yield* get("a")).toBeUndefined()
    }).pipe(onMemory))

  it.effect("with overlap \"skip\" starts no task while the last one has not ended", () =>
    Effect.gen(function*() {
      yield* recording
      const { get, set } = yield* schedules
      yield* set("long", { ...hourly, overlap: "skip", task: { tool: "endless", ttlMs: null } })
      yield* set("parallel", { ...hourly, task: { tool: "endless", ttlMs: null } })
      yield* pass(3 * 3600, 600)
      const { lastAt, lastTask, nextAt } = (yield* get("long"))!
      expect({ lastAt, nextAt }).toEqual({ lastAt: hour, nextAt: 4 * hour })
      expect(yield* tasks).toHaveLength(4)
      yield* (yield* TaskEngine).cancel(lastTask!)
      yield* pass(3600, 600)
      expect(yield* get("long")).toMatchObject({ lastAt: 4 * hour })
    }).pipe(onMemory))

  it.effect("retries a time at a limit, logs it once, and starts the other schedules", () => {
    const logged: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      if (logLevel !== "Debug") logged.push(String(Array.isArray(message) ? message[0] : message))
    })
    return Effect.gen(function*() {
      logged.length = 0
      const runs = yield* recording
      const { get, set } = yield* schedules
      const limits = { all: {}, client: {}, tool: { live: 1 } }
      yield* set("a", { ...hourly, task: { tool: "endless", limits } })
      yield* set("b", { ...hourly, task: { tool: "endless", limits } })
      yield* set("c", hourly)
      yield* pass(3600, 600)
      expect(runs).toHaveLength(1)
      yield* pass(30)
      expect(logged).toEqual([
        expect.stringContaining("the schedule \"b\" could not start a task for 1970-01-01T01:00:00.000Z")
      ])
      yield* pass(90)
      // After a minute the time has been missed. That is logged at most once too.
      expect(logged).toHaveLength(1)
      expect(yield* get("b")).toMatchObject({ nextAt: hour, lastTask: undefined })
      yield* (yield* TaskEngine).cancel((yield* get("a"))!.lastTask!)
      yield* pass(2)
      expect(yield* get("b")).toMatchObject({ nextAt: 2 * hour, lastAt: hour })
    }).pipe(onMemory, Effect.provide(Logger.layer([logger])))
  })

  it.effect("starts the other schedules if the task of one cannot be stored", () =>
    Effect.gen(function*() {
      const runs = yield* recording
      const { get, set } = yield* schedules
      const sql = yield* SqlClient
      yield* sql`CREATE TRIGGER no BEFORE INSERT ON skein_tasks WHEN NEW.tool = 'endless' BEGIN SELECT RAISE(ABORT, 'no'); END`
      yield* set("a", { ...hourly, task: { tool: "endless" } })
      yield* set("b", hourly)
      yield* pass(3600, 600)
      expect(runs).toHaveLength(1)
      expect(yield* get("a")).toMatchObject({ nextAt: hour, lastTask: undefined })
      yield* sql`DROP TRIGGER no`
      yield* pass(2)
      expect(yield* get("a")).toMatchObject({ nextAt: 2 * hour, lastAt: hour })
    }).pipe(onMemory, Effect.provide(Logger.layer([]))))

  it.effect("reads a thousand schedules with one statement per look, and looks once a minute", () =>
    Effect.gen(function*() {
      const executed = yield* statements
      yield* Effect.gen(function*() {
        const { set } = yield* schedules
        for (let index = 0; index < 1000; index++) yield* set(`schedule ${index}`, { ...hourly, cron: "0 0 1 * *" })
        yield* settled
        executed.length = 0
        yield* pass(600, 60)
        expect(executed).toHaveLength(10)
      }).pipe(onMemory)
    }).pipe(Effect.scoped))

  it.effect("starts a thousand schedules that are due at once", () =>
    Effect.gen(function*() {
      const runs = yield* recording
      const { set } = yield* schedules
      for (let index = 0; index < 1000; index++) yield* set(`schedule ${index}`, { ...hourly, cron: "0 1 * * *" })
      yield* TestClock.adjust("1 hour")
      yield* ran(runs, 1000)
      expect(runs).toHaveLength(1000)
    }).pipe(onMemory), 60_000)

  it.effect("in a SQLite file start the missed times after a restart", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-schedules-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const file = Effect.provide(SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 hour" }))
      yield* Effect.gen(function*() {
        const { set } = yield* schedules
        for (const missed of ["once", "skip", "all"] as const) {
          const task = { tool: "report", args: { missed, at: "" } }
          yield* set(missed, { ...hourly, missed, task, timeArgument: "at" })
        }
        yield* pass(3600, 600)
        expect(yield* tasks).toHaveLength(3)
      }).pipe(file)
      yield* TestClock.adjust("330 minutes")
      yield* Effect.gen(function*() {
        const runs = yield* recording
        yield* settled
        const { list } = yield* schedules
        expect((yield* list()).map(({ lastAt, name, nextAt }) => [name, lastAt! / hour, nextAt! / hour])).toEqual([
          ["all", 6, 7],
          ["once", 6, 7],
          ["skip", 1, 7]
        ])
        const started = (name: string) =>
          (runs as ReadonlyArray<{ at: string; missed: string }>)
            .filter(({ missed }) => missed === name).map(({ at }) => Number(at.slice(11, 13))).sort()
        // The three tasks of the first hour had no handler then.
        expect(["once", "skip", "all"].map(started)).toEqual([[1, 6], [1], [1, 2, 3, 4, 5, 6]])
      }).pipe(file)
    }).pipe(Effect.scoped))

  it.effect("as a definition of a server have the options of the task, and start it", () =>
    Effect.gen(function*() {
      const runs: Array<number> = []
      const report = Task.make("report", {
        input: { year: Schema.Int },
        pool: "reports",
        priority: 3,
        ttl: "2 hours",
        limits: { live: 7, retained: Infinity },
        inputFrom: "anyone"
      })
      const Server = (cron: string, ...extra: ReadonlyArray<Layer.Layer<never, never, Catalog>>) =>
        McpServer.layer(
          { name: "office", version: "1.0.0" },
          ...extra,
          TaskSchedule.layer("yearly", report, { cron, args: { year: 2026 } }),
          Task.layer(
            report,
            ({ year }) => Effect.as(Step.run("write", {}, () => Effect.sync(() => void runs.push(year))), "")
          ),
          Tasks.layer()
        )
      yield* Effect.gen(function*() {
        yield* pass(3600, 600)
        expect(runs).toEqual([2026])
        const [state] = yield* tasks
        expect(state).toMatchObject({ pool: "reports", ttlMs: 2 * hour, owner: null, status: "completed" })
        expect(state!.caller.capabilities).toMatchObject({ elicitation: { form: {} } })
        const error = yield* Effect.flip(Layer.build(Server("0 25 * * *")).pipe(Effect.scoped))
        expect(error).toMatchObject({ reason: { _tag: "InvalidOption" } })
      }).pipe(Effect.provide(Server("0 * * * *").pipe(Layer.provideMerge(memory))))
    }))

  it("have tasks with the defaults of `Tasks.layer`", () => {
    const { limits, pollIntervalMs, ttlMs } = resolveSettings({})
    expect(defaults).toEqual({ limits, pollIntervalMs, ttlMs })
  })

  it.effect("dies at the start of a server that cannot start the task", () =>
    Effect.gen(function*() {
      const report = Task.make("report")
      const prepared = Task.layerPrepared(report, Schema.String, () => Effect.succeed(""), () => Effect.succeed(""))
      const nightly = TaskSchedule.layer("nightly", report, { cron: "0 2 * * *" })
      const options = { name: "office", version: "1.0.0" }
      const problem = <E, R>(server: Layer.Layer<R, E, TaskEngine | TaskSchedules.TaskSchedules>) =>
        Effect.map(Effect.exit(Effect.scoped(Layer.build(Layer.provide(server, memory)))), String)
      expect(yield* problem(McpServer.layer(options, nightly, prepared, Tasks.layer()))).toContain(
        "is prepared in the call"
      )
      expect(yield* problem(McpServer.layer(options, nightly, Tasks.layer()))).toContain("is not a task of this server")
      expect(yield* problem(McpServer.layer(options, nightly))).toContain("the server has no `Tasks.layer`")
    }))
})

describe.skipIf(server === undefined)("TaskSchedules · PostgreSQL", () => {
  it.live("several processes start one task for each time", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => server!.createDatabase())
      const engines = yield* Effect.forEach(
        [1, 2, 3],
        () => Layer.build(PostgresTasks.layer({ url, runTasks: false })),
        { concurrency: 3 }
      )
      const first = Effect.provideContext(schedules, engines[0]!)
      const { get, set, trigger } = yield* first
      for (let index = 0; index < 5; index++) {
        yield* set(`s${index}`, { cron: "* * * * * *", task: { tool: "report", args: { index }, pool: "none" } })
      }
      // Each process looks once a minute, and when it sets a schedule.
      const again = { cron: "* * * * * *", task: { tool: "report", args: { index: 0 }, pool: "none" } }
      for (const engine of engines) {
        yield* Effect.provideContext(Effect.flatMap(schedules, ({ set }) => set("s0", again)), engine)
      }
      yield* Effect.sleep("4 seconds")
      expect((yield* trigger("s1"))?.tool).toBe("report")
      const { list } = yield* Effect.provideContext(TaskAdmin, engines[1]!)
      const all = (yield* list({}, { limit: 1000 })).map(({ state }) => state)
      const sql = yield* Effect.provideContext(SqlClient, engines[0]!)
      const keys = yield* sql<{ submission_key: string | null }>`SELECT submission_key FROM skein_tasks`
      const times = keys.map(({ submission_key }) => submission_key).filter((key) => key !== null)
      expect(new Set(times).size).toBe(times.length)
      const s0 = times.filter((key) => key.startsWith("schedule/s0/")).map((key) => Date.parse(key.slice(12))).sort()
      expect(s0.length).toBeGreaterThan(2)
      s0.forEach((time, index) => expect(time).toBe(s0[0]! + index * 1000))
      expect(all.length).toBeGreaterThanOrEqual(times.length)
      expect((yield* get("s0"))!.lastTask).toBeDefined()
    }).pipe(Effect.scoped), 120_000)
})
