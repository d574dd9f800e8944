/** Tasks through the `SqlClient` of an application, on SQLite. */
import { describe, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as SqlTasks from "@skein/tasks/SqlTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, submit, textOf, work } from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-sql-tasks-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The client of an application. Its names are in camel case, and those of its tables in snake case. */
const application = (filename: string) =>
  SqliteClient.layer({
    filename,
    transformQueryNames: (name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    transformResultNames: (name) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  })

class Payments extends Context.Service<Payments, {
  readonly add: (amount: number) => Effect.Effect<void>
}>()("test/Payments") {
  /** A repository of the application, which knows nothing of tasks. */
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE IF NOT EXISTS payments (paid_amount INTEGER NOT NULL)`
      return { add: (paidAmount) => Effect.orDie(sql`INSERT INTO payments ${sql.insert({ paidAmount })}`) }
    })
  )
}

const failing = <A, E>(layer: Layer.Layer<A, E>): Effect.Effect<E> =>
  Effect.scoped(Effect.flip(Effect.flatMap(Layer.build(layer), () => Effect.die(new Error("it was built"))))) as never

/** The `TaskError` of an engine that cannot be built on a client. */
const refusal = (options: SqlTasks.Options, client: Layer.Layer<SqlClient.SqlClient, unknown>) =>
  Effect.map(failing(Layer.provide(SqlTasks.layer(options), client)), (error) => error as TaskError)

describe("SqlTasks on SQLite", () => {
  it.live("writes into the tables of the application in the transaction of a step", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "app.db")
      const error = Schema.Struct({ message: Schema.String })
      const program = Effect.gen(function*() {
        const payments = yield* Payments
        const sql = yield* SqlClient.SqlClient
        yield* work({
          pay: durable(() =>
            Effect.gen(function*() {
              // The payment of a step that fails is rolled back.
              yield* Effect.ignore(
                Step.run(
                  "lost",
                  { transactional: true, error },
                  () => Effect.andThen(payments.add(7), Effect.fail({ message: "no" }))
                )
              )
              yield* Step.run("kept", { transactional: true }, () => payments.add(8))
              return "paid"
            })
          )
        })
        const { id } = yield* submit("pay")
        expect(textOf(yield* ended(id))).toBe("paid")
        expect(yield* sql`SELECT paid_amount FROM payments`).toEqual([{ paidAmount: 8 }])
        // The engine reads its own tables with their own names.
        expect((yield* get(id))?.status).toBe("completed")
      })
      const app = Layer.provideMerge(Layer.merge(SqlTasks.layer(), Payments.layer), application(filename))
      yield* Effect.scoped(Effect.provide(program, app))
    }).pipe(Effect.scoped))

  it.live("continues the tasks of the file after a restart, without repeating their steps", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "app.db")
      const log: Array<string> = []
      const run = Effect.fnUntraced(function*(name: string) {
        const scope = yield* Scope.fork(yield* Effect.scope)
        const context = yield* Layer.buildWithScope(Layer.provide(SqlTasks.layer(), application(filename)), scope)
        const inner = yield* Scope.fork(scope)
        yield* work({
          two: durable(() =>
            Effect.gen(function*() {
              yield* Step.run("one", {}, () => Effect.sync(() => void log.push(name)))
              yield* Step.sleep("pause", "1 second")
              return name
            })
          )
        }).pipe(Scope.provide(inner), Effect.provideContext(context))
        return { context, stop: Effect.andThen(Scope.close(inner, Exit.void), Scope.close(scope, Exit.void)) }
      })
      const first = yield* run("first")
      const { id } = yield* Effect.provideContext(submit("two"), first.context)
      yield* Effect.repeat(Effect.sleep(20), { until: () => log.length > 0 })
      yield* first.stop
      const second = yield* run("second")
      expect(textOf(yield* Effect.provideContext(ended(id), second.context))).toBe("second")
      expect(log).toEqual(["first"])
    }).pipe(Effect.scoped))

  it.live("locks the file against other processes that run its tasks, unless the client is exclusive itself", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "app.db")
      const engine = Layer.provide(SqlTasks.layer(), application(filename))
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(engine, scope)
      const locked = yield* refusal({}, application(filename))
      expect(locked).toMatchObject({ _tag: "TaskError", reason: { _tag: "FileLocked" } })
      expect((yield* failing(SqliteTasks.layer({ filename }))).reason._tag).toBe("FileLocked")
      yield* Scope.close(scope, Exit.void)
      const exclusive = SqliteClient.layer({ filename, exclusive: true })
      expect((yield* refusal({}, exclusive)).reason._tag).toBe("FileLocked")
      yield* Effect.scoped(Layer.build(Layer.provide(SqlTasks.layer({ exclusive: false }), exclusive)))
    }).pipe(Effect.scoped))

  it.live("creates its tables as a step of the application's own migrations", () =>
    Effect.gen(function*() {
      const program = Effect.gen(function*() {
        const missing = yield* Effect.flip(Effect.scoped(Layer.build(SqlTasks.layer({ migrate: false }))))
        expect(missing).toMatchObject({ reason: { _tag: "StoreError" } })
        expect((yield* SqlTasks.migrate({ dryRun: true })).from).toBe(0)
        const { from, to } = yield* SqlTasks.migrate()
        expect([from, (yield* SqlTasks.migrate()).from]).toEqual([0, to])
        yield* Effect.scoped(Layer.build(SqlTasks.layer({ migrate: false })))
        const tasks = yield* Effect.flatMap(TaskAdmin, ({ list }) => list({})).pipe(Effect.provide(SqlTasks.layerAdmin))
        expect(tasks).toEqual([])
      })
      yield* Effect.provide(program, application(":memory:"))
    }).pipe(Effect.scoped))

  it.effect("refuses other databases, and options of PostgreSQL that SQLite does not have", () =>
    Effect.gen(function*() {
      const other = Layer.effect(
        SqlClient.SqlClient,
        SqlClient.make({
          driver: "test",
          acquirer: Effect.die(new Error("it must not connect")),
          compiler: Statement.makeCompiler({
            dialect: "mysql",
            placeholder: () => "?",
            onIdentifier: (name) => name,
            onRecordUpdate: () => ["", []],
            onCustom: () => ["", []]
          }),
          spanAttributes: []
        })
      ).pipe(Layer.provide(Reactivity.layer))
      const refused = yield* refusal({}, other)
      expect(refused.message).toBe("the SqlClient has the dialect mysql: tasks need SQLite or PostgreSQL")
      const beside = yield* refusal({ runTasks: false }, application(":memory:"))
      expect(beside.message).toBe("runTasks is false: SQLite has one process, which runs the tasks")
      expect(beside.reason._tag).toBe("InvalidOption")
    }))
})
