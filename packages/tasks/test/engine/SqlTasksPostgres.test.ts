/** Tasks through the `SqlClient` of an application: that of `@effect/sql-pg`. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { describe, it } from "@effect/vitest"
import * as SqlTasks from "@skein/tasks/SqlTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, type Handler, handlers, plain, submit, textOf, until } from "./kit.ts"
import { first } from "./statements.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** Processes of an application on one database: the engine of each, its client, and its ordinary shutdown. */
const database = Effect.map(
  Effect.promise(() => server!.createDatabase()),
  (url) => (tools: Record<string, Handler>, options: SqlTasks.Options = {}, client: PgClient.PgPoolConfig = {}) =>
    Effect.gen(function*() {
      const scope = yield* Scope.fork(yield* Effect.scope)
      const application = PgClient.layer({
        url: Redacted.make(url),
        startupParameters: { idle_in_transaction_session_timeout: "3000" },
        ...client
      })
      const tasks = Layer.provideMerge(SqlTasks.layer(options), application)
      const context = yield* Layer.buildWithScope(tasks, scope)
      const inner = yield* Scope.fork(scope)
      yield* Scope.provide(Context.get(context, TaskEngine).runTasks(handlers(tools)), inner)
      return {
        in: <A, E>(effect: Effect.Effect<A, E, TaskEngine | SqlClient>) => Effect.provideContext(effect, context),
        sql: Context.get(context, SqlClient),
        stop: Effect.andThen(Scope.close(inner, Exit.void), Scope.close(scope, Exit.void))
      }
    })
)

describe.skipIf(server === undefined)("SqlTasks on @effect/sql-pg", () => {
  it.live("writes into the tables of the application in the transaction of a step", () =>
    Effect.gen(function*() {
      const start = yield* database
      let attempts = 0
      /** A repository of the application, which knows nothing of tasks. */
      const pay = (amount: number) => Effect.orDie(app.sql`INSERT INTO payments (amount) VALUES (${amount})`)
      const app: Effect.Success<ReturnType<typeof start>> = yield* start({
        pay: durable(() =>
          Effect.gen(function*() {
            const error = Schema.Struct({ message: Schema.String })
            yield* Step.run("pay", { transactional: true, error }, () =>
              Effect.andThen(
                pay(7),
                Effect.suspend(() => ++attempts === 1 ? Effect.fail({ message: "no" }) : Effect.void)
              ))
              .pipe(Effect.catch(() => Step.run("pay again", { transactional: true }, () => pay(8))))
            return "paid"
          })
        )
      })
      yield* app.sql`CREATE TABLE payments (amount INTEGER)`
      const { id } = yield* app.in(submit("pay"))
      expect(textOf(yield* app.in(ended(id)))).toBe("paid")
      expect(yield* app.sql`SELECT amount FROM payments`).toEqual([{ amount: 8 }])
    }).pipe(Effect.scoped), 60_000)

  it.live("runs the tasks of another process, and tells it about questions and results", () =>
    Effect.gen(function*() {
      const start = yield* database
      // The poll would take longer than the test: a notification reports each event.
      const pollInterval = "5 minutes"
      const submitter = yield* start({}, { runTasks: false, pollInterval })
      const { id } = yield* submitter.in(submit("tea"))
      const asked = yield* Effect.forkChild(submitter.in(until(id, ({ questions }) => questions.length > 0)))
      yield* start({ tea: plain(() => Effect.map(ask("milk?"), ({ reply }) => `Tea, ${reply}`)) }, { pollInterval })
      const { questions: [question] } = yield* Fiber.join(asked)
      const done = yield* Effect.forkChild(submitter.in(ended(id)))
      yield* submitter.in(Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, { reply: "milk" })))
      expect(textOf(yield* Fiber.join(done))).toBe("Tea, milk")
    }).pipe(Effect.scoped), 60_000)

  it.live(
    "continues a task in another process after a shutdown, without repeating its steps",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        const log: Array<string> = []
        const tools = (name: string) => ({
          long: durable(() =>
            Effect.gen(function*() {
              const first = yield* Step.run("first", { success: Schema.String }, () =>
                Effect.sync(() => {
                  log.push(name)
                  return name
                }))
              yield* Step.sleep("a while", "1500 millis")
              return first
            })
          )
        })
        const one = yield* start(tools("one"))
        const { id } = yield* one.in(submit("long"))
        yield* Effect.repeat(Effect.sleep(50), { until: () => Effect.succeed(log.length > 0) })
        yield* one.stop
        const two = yield* start(tools("two"))
        expect(textOf(yield* two.in(ended(id)))).toBe("one")
        expect(log).toEqual(["one"])
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "runs a transactional step again whose connection was lost, and leaves no transaction open",
    () =>
      Effect.gen(function*() {
        const start = yield* database
        const begun = yield* Latch.make()
        const go = yield* Latch.make()
        let attempts = 0
        const app: Effect.Success<ReturnType<typeof start>> = yield* start({
          pay: durable(() =>
            Effect.as(
              Step.run("pay", { transactional: true }, () =>
                Effect.gen(function*() {
                  yield* Effect.orDie(app.sql`INSERT INTO payments VALUES (${++attempts})`)
                  if (attempts === 1) yield* Effect.andThen(begun.open, go.await)
                })),
              "paid"
            )
          )
        })
        yield* app.sql`CREATE TABLE payments (attempt INTEGER)`
        const { id } = yield* app.in(submit("pay"))
        yield* begun.await
        yield* app.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE query LIKE 'INSERT INTO payments%' AND datname = current_database()`
        yield* go.open
        expect(textOf(yield* app.in(ended(id)))).toBe("paid")
        expect(yield* app.sql`SELECT attempt FROM payments`).toEqual([{ attempt: 2 }])
        const open = app.sql`SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'
        AND datname = current_database() AND state_change < now() - interval '1 second'`
        // A connection that is left in its transaction stays there. Others may be slow.
        yield* Effect.sleep("1500 millis")
        yield* Effect.repeat(Effect.delay(open, 100), { until: (rows) => rows.length === 0 }).pipe(
          Effect.timeout("30 seconds")
        )
      }).pipe(Effect.scoped),
    60_000
  )

  it.live("keeps a question whose connection was lost while it was stored", () =>
    Effect.gen(function*() {
      const start = yield* database
      const app = yield* start({ tea: plain(() => Effect.map(ask("milk?"), ({ reply }) => `Tea, ${reply}`)) })
      let lost = 0
      yield* first(/^INSERT INTO skein_task_questions/, (socket, send) => {
        lost++
        socket.destroy()
        send()
      })
      const { id } = yield* app.in(submit("tea"))
      const { questions: [question] } = yield* app.in(until(id, ({ questions }) => questions.length > 0))
      yield* app.in(Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, { reply: "milk" })))
      expect(textOf(yield* app.in(ended(id)))).toBe("Tea, milk")
      expect(lost).toBe(1)
    }).pipe(Effect.scoped), 60_000)

  it.live("listens again after the server was restarted", () =>
    Effect.gen(function*() {
      const start = yield* database
      const tools = { one: durable(() => Step.run("one", { success: Schema.String }, () => Effect.succeed("done"))) }
      const submitter = yield* start({}, { runTasks: false, pollInterval: "5 minutes" })
      yield* start(tools)
      yield* Effect.promise(() => server!.restartImmediate())
      const submitted = submitter.in(submit("one")).pipe(
        Effect.retry({ times: 300, schedule: Schedule.spaced("200 millis") })
      )
      const { id } = yield* submitted
      expect(textOf(yield* submitter.in(ended(id)))).toBe("done")
    }).pipe(Effect.scoped), 120_000)

  it.live("warns where a frozen process can hold its locks for longer than its lease", () =>
    Effect.gen(function*() {
      const start = yield* database
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const unbounded = { startupParameters: { idle_in_transaction_session_timeout: "0" } }
      yield* Effect.provide(start({}, { leaseTimeout: "5 seconds" }, unbounded), Logger.layer([logger]))
      expect(lines.join("\n")).toContain(
        "idle_in_transaction_session_timeout is 0 ms: rows that a frozen worker has locked stay locked. Set it to at most " +
          "leaseTimeout (5000 ms)"
      )
      lines.length = 0
      yield* Effect.provide(start({}, { leaseTimeout: "5 seconds" }), Logger.layer([logger]))
      expect(lines.filter((line) => line.includes("idle_in_transaction"))).toEqual([])
    }).pipe(Effect.scoped), 60_000)

  it.live("fails at its start where the listeners take all connections of the client", () =>
    Effect.gen(function*() {
      const start = yield* database
      const error = yield* Effect.flip(start({}, {}, { maxConnections: 1 }))
      expect(error).toMatchObject({ _tag: "TaskError", reason: { _tag: "StoreError" } })
      expect(error.message).toMatch(/^notifications do not arrive: .*at least 4 connections$/)
    }).pipe(Effect.scoped), 60_000)
})
