import * as Task from "@skein/tasks/Task"
import { describe, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { Client } from "pg"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, handlers, submit, textOf } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

describe.skipIf(server === undefined)("PostgreSQL · tasks of a worker that has stopped", () => {
  it.live(
    "are taken over, even if a transaction that was left open locks their rows at first",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const begun = yield* Latch.make()
        const start = (body: Effect.Effect<void>) =>
          Effect.gen(function*() {
            const scope = yield* Scope.fork(yield* Effect.scope)
            const engine = yield* Layer.buildWithScope(PostgresTasks.layer({ url, leaseTimeout: "1 second" }), scope)
            const held = durable(() => Effect.as(Step.run("held", {}, () => body), "Taken over"))
            yield* Scope.provide(Context.get(engine, TaskEngine).runTasks(handlers({ held })), scope)
            return { engine, stop: Scope.close(scope, Exit.void) }
          })

        const first = yield* start(Effect.andThen(begun.open, Effect.never))
        const { id } = yield* Effect.provideContext(submit("held"), first.engine)
        yield* begun.await
        yield* first.stop
        const left = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new Client({ connectionString: url })
            await client.connect()
            return client
          }),
          (client) => Effect.promise(() => client.end())
        )
        const { rowCount } = yield* Effect.promise(async () => {
          await left.query("BEGIN")
          return left.query("SELECT 1 FROM skein_task_queue FOR UPDATE")
        })
        expect(rowCount).toBeGreaterThan(0)

        const second = yield* start(Effect.void)
        yield* Effect.sleep("2 seconds")
        yield* Effect.promise(() => left.query("ROLLBACK"))
        const done = yield* Effect.provideContext(Effect.timeout(ended(id), "60 seconds"), second.engine)
        expect(textOf(done)).toBe("Taken over")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a transactional step that a stopping worker cuts off is run by the next worker, without compensations",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const log: Array<string> = []
        const start = (body: Effect.Effect<void>) =>
          Effect.gen(function*() {
            const scope = yield* Scope.fork(yield* Effect.scope)
            const layer = PostgresTasks.layer({ url, leaseTimeout: "1 second", shutdownTimeout: 1000 })
            const engine = yield* Layer.buildWithScope(layer, scope)
            const slow = durable(() =>
              Effect.gen(function*() {
                yield* Step.compensate(() => Effect.sync(() => log.push("undone")))
                yield* Step.run("slow", { transactional: true }, () => body)
                return "Done"
              })
            )
            const inner = yield* Scope.fork(scope)
            yield* Scope.provide(Context.get(engine, TaskEngine).runTasks(handlers({ slow })), inner)
            const stop = Effect.andThen(Scope.close(inner, Exit.void), Scope.close(scope, Exit.void))
            return { engine, stop }
          })

        const begun = { number: 0 }
        const first = yield* start(Effect.andThen(Effect.sync(() => begun.number++), Effect.never))
        const tasks = yield* Effect.provideContext(Effect.forEach([1, 2, 3, 4, 5], () => submit("slow")), first.engine)
        yield* Effect.repeat(Effect.sleep(20), { until: () => begun.number === 5 })
        const second = yield* start(Effect.void)
        yield* first.stop
        for (const { id } of tasks) {
          expect(textOf(yield* Effect.provideContext(ended(id), second.engine))).toBe("Done")
        }
        expect(log).toEqual([])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a worker that joins runs the tasks that wait for a busy worker",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const steps: Array<{ readonly task: string; readonly worker: number }> = []
        const joined = yield* Deferred.make<void>()
        const start = (worker: number) =>
          Effect.gen(function*() {
            const engine = yield* Layer.build(PostgresTasks.layer({ url, concurrency: 4 }))
            const many = durable(() =>
              Effect.gen(function*() {
                const task = yield* Task.id
                for (let step = 0; step < 20; step++) {
                  yield* Step.run(`${step}`, {}, () =>
                    Effect.sleep(50).pipe(
                      // The first worker stays busy until the second one has joined.
                      Effect.andThen(step === 0 ? Effect.void : Deferred.await(joined)),
                      Effect.andThen(Effect.sync(() => steps.push({ task, worker })))
                    ))
                }
                return "Done"
              })
            )
            yield* Context.get(engine, TaskEngine).runTasks(handlers({ many }))
            return engine
          })

        const first = yield* start(1)
        const submitted = Effect.forEach(Array.from({ length: 24 }), () => submit("many"))
        const tasks = yield* Effect.provideContext(submitted, first)
        yield* Effect.repeat(Effect.sleep(20), { until: () => steps.length >= 4 })
        yield* start(2)
        yield* Deferred.succeed(joined, undefined)
        for (const { id } of tasks) expect(textOf(yield* Effect.provideContext(ended(id), first))).toBe("Done")
        expect(steps).toHaveLength(24 * 20)
        expect(new Set(steps.slice(0, 4).map(({ task }) => task)).size).toBe(4)
        // No task has moved while it ran.
        const workers = tasks.map(({ id }) => new Set(steps.flatMap(({ task, worker }) => task === id ? [worker] : [])))
        expect(workers.every(({ size }) => size === 1)).toBe(true)
        expect(workers.filter((workers) => workers.has(2)).length).toBeGreaterThan(4)
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "a transactional step is rolled back if another worker has stored the same end of it meanwhile",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const engine = yield* Layer.build(PostgresTasks.layer({ url }))
        const sql = Context.get(engine, SqlClient)
        yield* sql`CREATE TABLE paid (worker TEXT)`
        const other = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new Client({ connectionString: url })
            await client.connect()
            return client
          }),
          (client) => Effect.promise(() => client.end())
        )
        const pay = durable(() =>
          Effect.flatMap(Task.id, (task) =>
            Effect.as(
              Step.run("pay", { transactional: true }, () =>
                Effect.andThen(
                  Effect.orDie(sql`INSERT INTO paid VALUES ('this')`),
                  Effect.promise(async () => {
                    await other.query("BEGIN")
                    await other.query("INSERT INTO paid VALUES ('other')")
                    await other.query(
                      `INSERT INTO skein_task_log (task_id, seq, kind, name, attempt, value, at)
                     VALUES ($1, 1, 'step', 'pay', 1, '{"v":null}', 0)`,
                      [task]
                    )
                    await other.query("COMMIT")
                  })
                )),
              "Done"
            ))
        )
        yield* Context.get(engine, TaskEngine).runTasks(handlers({ pay }))
        const { id } = yield* Effect.provideContext(submit("pay"), engine)
        expect(textOf(yield* Effect.provideContext(ended(id), engine))).toBe("Done")
        expect(yield* sql`SELECT worker FROM paid`).toEqual([{ worker: "other" }])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "two workers share the tasks that one of them submits",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const ran = [0, 0]
        const start = (worker: number) =>
          Effect.gen(function*() {
            const engine = yield* Layer.build(PostgresTasks.layer({ url, leaseTimeout: "1 second" }))
            const job = durable(() =>
              Step.run("work", {}, () => Effect.andThen(Effect.sync(() => ran[worker]!++), Effect.sleep(20))).pipe(
                Effect.as("Done")
              )
            )
            yield* Context.get(engine, TaskEngine).runTasks(handlers({ job }))
            return engine
          })
        const first = yield* start(0)
        yield* start(1)
        const submitted = Effect.forEach(Array.from({ length: 60 }), () => submit("job"))
        const round = Effect.gen(function*() {
          const tasks = yield* submitted
          for (const { id } of tasks) expect(textOf(yield* ended(id))).toBe("Done")
        })
        // The first worker learns of the second one when it renews its lease.
        let rounds = 0
        while (Math.min(...ran) <= 5) {
          yield* Effect.provideContext(round, first)
          rounds++
        }
        expect(ran[0]! + ran[1]!).toBe(60 * rounds)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a transactional step that ends although its worker has cut it off is committed once: here or there",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        let begun = 0
        const start = (milliseconds: number) =>
          Effect.gen(function*() {
            const scope = yield* Scope.fork(yield* Effect.scope)
            const layer = PostgresTasks.layer({ url, leaseTimeout: "2 seconds", shutdownTimeout: 200 })
            const engine = yield* Layer.buildWithScope(layer, scope)
            const sql = Context.get(engine, SqlClient)
            yield* sql`CREATE TABLE IF NOT EXISTS paid (task TEXT)`
            const slow = durable(() =>
              Effect.flatMap(Task.id, (task) =>
                Effect.as(
                  Step.run("pay", { transactional: true }, () =>
                    Effect.uninterruptible(Effect.gen(function*() {
                      yield* Effect.orDie(sql`INSERT INTO paid VALUES (${task})`)
                      begun++
                      yield* Effect.sleep(milliseconds)
                    }))),
                  "Done"
                ))
            )
            const inner = yield* Scope.fork(scope)
            yield* Scope.provide(Context.get(engine, TaskEngine).runTasks(handlers({ slow })), inner)
            const stop = Effect.andThen(Scope.close(inner, Exit.void), Scope.close(scope, Exit.void))
            return { engine, sql, stop }
          })

        const first = yield* start(700)
        const tasks = yield* Effect.provideContext(Effect.forEach([1, 2, 3, 4, 5], () => submit("slow")), first.engine)
        yield* Effect.repeat(Effect.sleep(20), { until: () => begun === 5 })
        const second = yield* start(0)
        yield* first.stop
        for (const { id } of tasks) yield* Effect.provideContext(ended(id), second.engine)
        expect(yield* second.sql`SELECT task FROM paid GROUP BY task HAVING count(*) > 1`).toEqual([])
        expect(yield* second.sql`SELECT task FROM paid`).toHaveLength(5)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "compensations of cancelled tasks run once, also when they move to a worker that joins",
    () =>
      Effect.gen(function*() {
        const url = yield* Effect.promise(() => server!.createDatabase())
        const asleep = new Set<string>()
        const undone: Array<string> = []
        const start = Effect.gen(function*() {
          const engine = yield* Layer.build(PostgresTasks.layer({ url, leaseTimeout: "2 seconds" }))
          const sql = Context.get(engine, SqlClient)
          yield* sql`CREATE TABLE IF NOT EXISTS undone (task TEXT, step TEXT)`
          const sleepy = durable(() =>
            Effect.gen(function*() {
              const task = yield* Task.id
              const undo = (step: string) =>
                Step.run(
                  step,
                  { transactional: true },
                  () =>
                    Effect.orDie(Effect.andThen(sql`INSERT INTO undone VALUES (${task}, ${step})`, Effect.sleep(300)))
                )
              for (let step = 0; step < 6; step++) {
                yield* Step.compensate(() => undo(`${step}`))
              }
              asleep.add(task)
              yield* Step.sleep("long", "1 hour")
              return ""
            })
          )
          yield* Context.get(engine, TaskEngine).runTasks(handlers({ sleepy }))
          return engine
        })

        const first = yield* start
        const one = yield* Effect.provideContext(submit("sleepy"), first)
        const more = Array.from({ length: 23 })
        const tasks = [one, ...yield* Effect.provideContext(Effect.forEach(more, () => submit("sleepy")), first)]
        yield* Effect.repeat(Effect.sleep(20), { until: () => asleep.size === 24 })
        yield* Effect.forkScoped(start)
        yield* Effect.sleep(500)
        for (const { id } of tasks) yield* Context.get(first, TaskEngine).cancel(id)
        const rows = Effect.map(Context.get(first, SqlClient)`SELECT task, step FROM undone`, (rows) => {
          undone.splice(0, Infinity, ...rows.map(({ step, task }) => `${task} ${step}`))
          return undone.length
        })
        yield* Effect.timeout(
          Effect.repeat(Effect.delay(rows, 100), { until: (number) => number >= 24 * 6 }),
          "60 seconds"
        )
        expect(new Set(undone).size).toBe(24 * 6)
        expect(undone).toHaveLength(24 * 6)
      }).pipe(Effect.scoped),
    120_000
  )

  for (
    const [when, waits] of [
      ["in their last step", { step: true, undo: false }],
      ["in their compensations", { step: false, undo: true }]
    ] as const
  ) {
    it.live(
      `tasks that fail and move to a worker that joins, ${when}, are compensated there`,
      () =>
        Effect.gen(function*() {
          const url = yield* Effect.promise(() => server!.createDatabase())
          const go = yield* Latch.make()
          const begun = new Set<string>()
          const undone: Array<string> = []
          const start = Effect.gen(function*() {
            const engine = yield* Layer.build(PostgresTasks.layer({ url, shutdownTimeout: "20 seconds" }))
            const fails = durable(() =>
              Effect.gen(function*() {
                const task = yield* Task.id
                const wait = Effect.andThen(Effect.sync(() => begun.add(task)), go.await)
                const undo = (step: string) =>
                  Step.compensate(() =>
                    Step.run(step, {}, () =>
                      Effect.andThen(
                        waits.undo ? wait : Effect.void,
                        Effect.sync(() => undone.push(`${task} ${step}`))
                      ))
                  )
                yield* undo("first")
                yield* undo("second")
                yield* Step.run("last", {}, () => waits.step ? wait : Effect.void)
                return yield* Effect.fail({ message: "No" })
              })
            )
            yield* Context.get(engine, TaskEngine).runTasks(handlers({ fails }))
            return engine
          })

          const first = yield* start
          const submitted = Effect.forEach(Array.from({ length: 24 }), () => submit("fails"))
          const tasks = yield* Effect.provideContext(submitted, first)
          yield* Effect.repeat(Effect.sleep(20), { until: () => begun.size === 24 })
          yield* Effect.forkScoped(start)
          // By then the first worker knows which tasks it must hand over.
          yield* Effect.sleep("3 seconds")
          yield* go.open
          for (const { id } of tasks) {
            const state = yield* Effect.provideContext(Effect.timeout(ended(id), "60 seconds"), first)
            expect(textOf(state)).toBe("No")
          }
          expect(undone.toSorted()).toEqual(tasks.flatMap(({ id }) => [`${id} first`, `${id} second`]).toSorted())
        }).pipe(Effect.scoped),
      60_000
    )
  }

  it.live("ends a transaction that was left open before others take over, unless another time is configured", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => server!.createDatabase())
      const show = (options: Partial<PostgresTasks.Options>) =>
        Effect.gen(function*() {
          const engine = yield* Layer.build(PostgresTasks.layer({ url, runTasks: false, ...options }))
          const [row] = yield* Context.get(engine, SqlClient)`SHOW idle_in_transaction_session_timeout`
          return row
        }).pipe(Effect.scoped)
      expect(yield* show({ leaseTimeout: "6 seconds" })).toEqual({ idle_in_transaction_session_timeout: "4s" })
      expect(yield* show({ idleInTransactionTimeout: "7 seconds" })).toEqual({
        idle_in_transaction_session_timeout: "7s"
      })
    }))
})
