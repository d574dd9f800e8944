import { describe, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { Socket } from "node:net"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, handlers, submit, textOf, until } from "./kit.ts"
import { first } from "./statements.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** The first statement that matches loses its connection, while the scope is open. */
const lose = (like: RegExp) => {
  const lost = { count: 0 }
  const sends = (socket: Socket, send: () => void) => {
    lost.count++
    socket.destroy()
    send()
  }
  return Effect.as(first(like, sends), lost)
}

/** A worker with one tool, which waits for `go` after it has sent `begun`. */
const worker = (
  body: (sql: SqlClient, wait: Effect.Effect<void>) => Effect.Effect<string, never, CurrentTask | McpRequest>
) =>
  Effect.gen(function*() {
    const url = yield* Effect.promise(() => server!.createDatabase())
    const begun = yield* Latch.make()
    const go = yield* Latch.make()
    // The connection does not detect the loss on its own.
    const engine = yield* Layer.build(PostgresTasks.layer({ url, leaseTimeout: "1 minute", applicationName: "worker" }))
    const sql = Context.get(engine, SqlClient)
    yield* sql`CREATE TABLE paid (amount INTEGER)`
    const pay = durable(() => body(sql, Effect.andThen(begun.open, go.await)))
    yield* Context.get(engine, TaskEngine).runTasks(handlers({ pay }))
    const { id } = yield* Effect.provideContext(submit("pay"), engine)
    yield* begun.await
    return { id, engine, go, sql, end: Effect.map(Effect.provideContext(ended(id), engine), textOf) }
  })

describe.skipIf(server === undefined)("PostgreSQL · lost connections", () => {
  it.live(
    "a transactional step that loses its connection runs again",
    () =>
      Effect.gen(function*() {
        let first = true
        const { end, go, sql } = yield* worker((sql, wait) =>
          Step.run("pay", { transactional: true, success: Schema.String }, () =>
            Effect.gen(function*() {
              if (first) {
                first = false
                yield* wait
              }
              yield* Effect.orDie(sql`INSERT INTO paid VALUES (1)`)
              return "Paid"
            }))
        )
        // The engine may be between two statements of a short transaction of its own.
        const lose = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'worker' AND state = 'idle in transaction' AND datname = current_database()
        AND state_change < now() - interval '300 milliseconds'`
        const lost = yield* Effect.repeat(Effect.delay(lose, 100), { until: (rows) => rows.length > 0 })
        expect(lost.length).toBe(1)
        yield* go.open
        expect(yield* Effect.timeout(end, "60 seconds")).toBe("Paid")
        expect(yield* sql`SELECT amount FROM paid`).toEqual([{ amount: 1 }])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "waits before a step until the database is back",
    () =>
      Effect.gen(function*() {
        const { end, go } = yield* worker((_, wait) =>
          Effect.gen(function*() {
            yield* wait
            yield* Step.run("step", {}, () => Effect.void)
            return "Paid"
          })
        )
        yield* Effect.promise(() => server!.kill())
        yield* go.open
        // Several pauses between two attempts.
        yield* Effect.sleep("2500 millis")
        yield* Effect.promise(() => server!.start())
        expect(yield* Effect.timeout(end, "60 seconds")).toBe("Paid")
      }).pipe(Effect.scoped),
    120_000
  )

  for (
    const [what, like] of [
      ["its question is kept", /^INSERT INTO skein_task_questions/],
      ["it ends", /skein_task_count\(/]
    ] as const
  ) {
    it.live(
      `a task whose connection is lost while ${what} continues`,
      () =>
        Effect.gen(function*() {
          const { end, engine, go, id, sql } = yield* worker((sql, wait) =>
            Effect.gen(function*() {
              yield* Step.compensate(() => Step.run("back", {}, () => Effect.orDie(sql`INSERT INTO paid VALUES (-1)`)))
              yield* wait
              yield* Effect.orDie(ask("Really?"))
              return "Paid"
            })
          )
          const lost = yield* lose(like)
          yield* go.open
          const { questions: [question] } = yield* Effect.provideContext(
            until(id, ({ questions }) => questions.length > 0),
            engine
          )
          const { answer } = Context.get(engine, TaskEngine)
          expect(yield* answer(id, question!.key, { action: "accept" })).toBe(true)
          expect(yield* Effect.timeout(end, "60 seconds")).toBe("Paid")
          expect(lost.count).toBe(1)
          expect(yield* sql`SELECT amount FROM paid`).toEqual([])
        }).pipe(Effect.scoped),
      120_000
    )
  }
})
