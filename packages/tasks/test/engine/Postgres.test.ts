import { describe, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, get, type Handler, handlers, plain, submit, textOf, until } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** Processes on one database: the engine of each, and its ordinary shutdown. */
const database = Effect.map(
  Effect.promise(() => server!.createDatabase()),
  (url) => (tools: Record<string, Handler>, options: Partial<PostgresTasks.Options> = {}) =>
    Effect.gen(function*() {
      const scope = yield* Scope.fork(yield* Effect.scope)
      const context = yield* Layer.buildWithScope(PostgresTasks.layer({ url, ...options }), scope)
      const inner = yield* Scope.fork(scope)
      yield* Scope.provide(Context.get(context, TaskEngine).runTasks(handlers(tools)), inner)
      return {
        in: <A, E>(effect: Effect.Effect<A, E, TaskEngine | SqlClient>) => Effect.provideContext(effect, context),
        url,
        sql: Context.get(context, SqlClient),
        stop: Effect.andThen(Scope.close(inner, Exit.void), Scope.close(scope, Exit.void))
      }
    })
)

const one = { one: durable(() => Step.run("one", { success: Schema.String }, () => Effect.succeed("done"))) }

describe.skipIf(server === undefined)("PostgreSQL", () => {
  it.live(
    "a server that runs no tasks, and a worker that is not a server; a question between them",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        // The poll would take longer than the bound: a notification reports each event.
        const pollInterval = "20 seconds"
        const submitter = yield* start({}, { runTasks: false, pollInterval })
        const { id } = yield* submitter.in(submit("tea"))
        const asked = yield* Effect.forkChild(submitter.in(until(id, ({ questions }) => questions.length > 0)))
        yield* start({ tea: plain(() => Effect.map(ask("milk?"), ({ reply }) => `Tea, ${reply}`)) }, { pollInterval })
        const { questions: [question] } = yield* Fiber.join(asked)
        const done = yield* Effect.forkChild(submitter.in(ended(id)))
        yield* Effect.sleep(300)
        const before = performance.now()
        yield* submitter.in(Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, { reply: "milk" })))
        expect(textOf(yield* Fiber.join(done))).toBe("Tea, milk")
        expect(performance.now() - before).toBeLessThan(10_000)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a notification wakes the task that an event is sent to, on whichever worker",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        // Without notifications the test would not end.
        const pollInterval = "10 minutes"
        const sender = yield* start({}, { runTasks: false, pollInterval })
        const tools = {
          order: durable(() =>
            Effect.gen(function*() {
              const first = yield* Task.awaitEvent("paid")
              const second = yield* Task.awaitEvent("shipped", { topic: "order/1" })
              return `${String(first)}, ${String(second)}`
            })
          )
        }
        const awaits = (id: string, event: string) =>
          Effect.repeat(
            Effect.andThen(
              Effect.sleep(20),
              sender.sql`SELECT awaits FROM skein_task_queue WHERE task_id = ${id} AND state = 1`
            ),
            { until: ([row]) => row?.["awaits"] === JSON.stringify([event]) }
          )
        const worker = yield* start(tools, { pollInterval })
        const { id } = yield* sender.in(submit("order"))
        yield* awaits(id, "paid")
        yield* sender.in(Effect.flatMap(TaskEngine, ({ send }) => send(id, "paid", "paid")))
        yield* awaits(id, "shipped@order/1")
        const other = yield* start(tools, { pollInterval })
        yield* worker.stop
        yield* sender.in(Effect.flatMap(TaskEngine, ({ sendAll }) => sendAll("shipped", "order/1", "shipped")))
        expect(textOf(yield* other.in(ended(id)))).toBe("paid, shipped")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "branches receive events in the same order again, also in a worker that did not run them before",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        const log: Array<string> = []
        const step = (name: string, milliseconds: number) =>
          Step.run(name, {}, () => Effect.sleep(milliseconds)).pipe(
            Step.withCompensation(() => Effect.sync(() => void log.push(name)))
          )
        const no = Effect.fail({ message: "no" })
        const branches = Effect.all([
          Effect.andThen(Step.run("first named", {}, () => Effect.sleep(700)), no),
          Effect.andThen(step("one", 100), step("two", 100))
        ], { concurrency: "unbounded" })
        const tools = {
          torn: durable(() =>
            Effect.gen(function*() {
              yield* Effect.catch(branches, () => Effect.void)
              yield* Effect.orDie(ask("go on?"))
              return yield* no
            })
          )
        }
        const worker = yield* start(tools)
        const { id } = yield* worker.in(submit("torn"))
        const { questions: [question] } = yield* worker.in(until(id, ({ questions }) => questions.length > 0))
        yield* worker.stop
        expect(log).toEqual([])
        const other = yield* start(tools)
        yield* other.in(Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, {})))
        expect(textOf(yield* other.in(ended(id)))).toBe("no")
        expect(log).toEqual(["two", "one"])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a task that is submitted in this process runs here immediately, and can be cancelled from here",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        const pollInterval = "20 seconds"
        const submitter = yield* start({}, { runTasks: false, pollInterval })
        const log: Array<string> = []
        const worker = yield* start({
          ...one,
          endless: durable(() =>
            Effect.gen(function*() {
              yield* Step.compensate((why) => Effect.sync(() => void log.push(why)))
              yield* Step.run<void>("endless", {}, () => Effect.never)
              return ""
            })
          )
        }, { pollInterval })
        const first = yield* submitter.in(submit("one"))
        yield* submitter.in(ended(first.id))
        const times = yield* Effect.forEach([1, 2, 3, 4, 5], () =>
          Effect.gen(function*() {
            const before = performance.now()
            yield* submitter.in(Effect.flatMap(submit("one"), ({ id }) => ended(id)))
            return performance.now() - before
          }))
        expect(Math.min(...times)).toBeLessThan(10_000)
        const { id } = yield* submitter.in(submit("endless"))
        yield* Effect.sleep(300)
        expect(yield* submitter.in(Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id)))).toBe(true)
        expect((yield* worker.in(get(id)))?.status).toBe("cancelled")
        yield* Effect.sleep(500)
        expect(log).toEqual(["cancelled"])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("a worker that stops hands its tasks to another one, without compensations", () =>
    Effect.gen(function*() {
      const start = yield* database
      const log: Array<string> = []
      const tools = (worker: string) => ({
        five: durable(() =>
          Effect.gen(function*() {
            yield* Step.compensate(() => Effect.sync(() => void log.push("undone")))
            for (let n = 0; n < 5; n++) {
              yield* Step.run(`${n}`, {}, () =>
                Effect.andThen(
                  Effect.sleep(150),
                  Effect.sync(() => void log.push(`${worker}${n}`))
                ))
            }
            return "done"
          })
        )
      })
      const first = yield* start(tools("a"))
      const { id } = yield* first.in(submit("five"))
      yield* Effect.sleep(1500)
      yield* first.in(ended(id))
      const again = yield* first.in(submit("five"))
      const second = yield* start(tools("b"))
      yield* Effect.sleep(250)
      log.length = 0
      yield* first.stop
      expect(textOf(yield* second.in(ended(again.id)))).toBe("done")
      expect(log).not.toContain("undone")
    }).pipe(Effect.scoped), 120_000)

  it.live("a task runs on a worker of its pool, for any pools of the other processes", () =>
    Effect.gen(function*() {
      const start = yield* database
      const where = (worker: string) => ({ where: plain(() => Effect.succeed(worker)) })
      const common = yield* start(where("common"))
      const { id: early } = yield* common.in(submit("where", { pool: "gpu" }))
      yield* start(where("gpu"), { pools: ["gpu"] })
      yield* start(where("all"), { pools: ["a", "default", "gpu", "z"] })
      expect(textOf(yield* common.in(ended(early)))).not.toBe("common")
      const ids = yield* common.in(Effect.forEach(["z", "a", "z"], (pool) => submit("where", { pool })))
      for (const { id } of ids) expect(textOf(yield* common.in(ended(id)))).toBe("all")
    }).pipe(Effect.scoped), 120_000)

  it.live("a transactional step that the database ends because of a deadlock runs again", () =>
    Effect.gen(function*() {
      const start = yield* database
      let runs = 0
      const own: { sql?: SqlClient } = {}
      const pay = Effect.gen(function*() {
        const sql = own.sql!
        yield* sql`INSERT INTO paid VALUES (${++runs})`
        const deadlock = sql`DO $$ BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$`
        if (runs < 3) yield* deadlock
      })
      const worker = yield* start({
        pay: durable(() => Effect.as(Step.run("pay", { transactional: true }, () => Effect.orDie(pay)), "paid"))
      })
      own.sql = worker.sql
      yield* worker.sql`CREATE TABLE paid (run INTEGER)`
      const { id } = yield* worker.in(submit("pay"))
      expect(textOf(yield* worker.in(ended(id)))).toBe("paid")
      expect(yield* worker.sql`SELECT run FROM paid`).toEqual([{ run: 3 }])
    }).pipe(Effect.scoped), 120_000)

  it.live("a transactional step's own SQL is committed with the step", () =>
    Effect.gen(function*() {
      const start = yield* database
      const paid: { sql?: SqlClient } = {}
      const pay = Effect.suspend(() => Effect.orDie(Effect.asVoid(paid.sql!`INSERT INTO paid VALUES (1)`)))
      const worker = yield* start({
        pay: durable(() => Effect.as(Step.run("pay", { transactional: true }, () => pay), ""))
      })
      paid.sql = worker.sql
      yield* worker.sql`CREATE TABLE paid (amount INTEGER)`
      const { id } = yield* worker.in(submit("pay"))
      yield* worker.in(ended(id))
      expect(yield* worker.sql`SELECT amount FROM paid`).toEqual([{ amount: 1 }])
    }).pipe(Effect.scoped), 120_000)

  it.live(
    "a sleeping task is cancelled from another process, and is compensated immediately",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        const undone = yield* Latch.make()
        const sleepy = durable(() =>
          Effect.gen(function*() {
            yield* Step.run("first", {}, () => Effect.void).pipe(
              Step.withCompensation(() => Step.run("undo", {}, () => undone.open))
            )
            yield* Step.sleep("long", "1 hour")
            return ""
          })
        )
        // The poll would take longer than the bound: a notification reports the cancellation.
        const pollInterval = "2 minutes"
        const submitter = yield* start({}, { runTasks: false, pollInterval })
        const worker = yield* start({ sleepy }, { pollInterval })
        const { id } = yield* submitter.in(submit("sleepy"))
        const asleep = worker.sql`SELECT 1 FROM skein_task_queue WHERE state = 1`
        yield* Effect.repeat(Effect.delay(asleep, 50), { until: (rows) => rows.length > 0 })
        yield* Effect.sleep(200)
        expect(yield* submitter.in(Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id)))).toBe(true)
        yield* Effect.timeout(undone.await, "60 seconds")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("a server that runs no tasks deletes expired tasks that no worker runs", () =>
    Effect.gen(function*() {
      const start = yield* database
      const submitter = yield* start({}, { runTasks: false, undoTimeout: 0 })
      yield* submitter.in(submit("rare", { ttlMs: 3000, pool: "nobody" }))
      const rows = Effect.flatMap(Effect.sleep(50), () => submitter.sql`SELECT id FROM skein_tasks`)
      expect(yield* rows).toHaveLength(1)
      yield* Effect.repeat(rows, { until: (rows) => rows.length === 0 })
      expect(yield* submitter.sql`SELECT task_id FROM skein_task_queue`).toEqual([])
    }).pipe(Effect.scoped), 120_000)

  it.live("reads no whole table of tasks, also with plans that were made for few", () =>
    Effect.gen(function*() {
      const start = yield* database
      const tea = durable(() =>
        Effect.map(
          Effect.andThen(Step.run("water", {}, () => Effect.void), ask("milk?")),
          ({ reply }) => `Tea, ${reply}`
        )
      )
      const run = ({ in: inside }: Effect.Success<ReturnType<typeof start>>) =>
        inside(Effect.gen(function*() {
          const { id } = yield* submit("tea")
          const { questions: [question] } = yield* until(id, ({ questions }) => questions.length > 0)
          yield* Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, { reply: "milk" }))
          expect(textOf(yield* ended(id))).toBe("Tea, milk")
        }))
      const first = yield* start({ tea })
      yield* run(first)
      yield* first.sql`VACUUM ANALYZE`
      yield* first.stop
      // A connection has counted its scans when it has ended.
      const scans = Effect.scoped(Effect.gen(function*() {
        const sql = yield* PgClient.make({ url: first.url, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
        const others = sql`SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
        while ((yield* others).length > 0) yield* Effect.sleep(20)
        return yield* sql`SELECT relname, seq_scan FROM pg_stat_user_tables
          WHERE relname IN ('skein_tasks', 'skein_task_queue', 'skein_task_log', 'skein_task_questions') ORDER BY relname`
      }))
      const before = yield* scans
      const second = yield* start({ tea })
      for (let count = 0; count < 8; count++) yield* run(second)
      yield* second.stop
      expect(yield* scans).toEqual(before)
    }).pipe(Effect.scoped), 120_000)

  it.live("the last worker stops without a line in the log", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    return Effect.gen(function*() {
      const start = yield* database
      // It renews its lease also while it waits for a step that ignores its interruption.
      for (const wait of [300, 700]) {
        const worker = yield* start({
          slow: durable(() => Effect.as(Step.run("slow", {}, () => Effect.sleep(1500)), ""))
        })
        yield* worker.in(submit("slow"))
        yield* Effect.sleep(wait)
        yield* worker.stop
      }
      expect(lines).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
  }, 120_000)

  it.live("an unreachable database", () =>
    Effect.gen(function*() {
      const layer = PostgresTasks.layer({ url: "postgres://127.0.0.1:1/none", connectTimeout: 1000 })
      expect(yield* Effect.flip(Layer.build(layer))).toMatchObject({
        _tag: "TaskError",
        reason: { _tag: "StoreError" }
      })
    }).pipe(Effect.scoped))
})
