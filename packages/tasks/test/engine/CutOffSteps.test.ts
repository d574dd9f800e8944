import { describe, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, handlers, submit } from "./kit.ts"
import { first } from "./statements.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** Delays the first statement that matches, while the scope is open; reports when it has begun. */
const slow = (like: RegExp, milliseconds: number) =>
  Effect.gen(function*() {
    const begun = yield* Latch.make()
    yield* first(like, (_, send) => {
      begun.openUnsafe()
      setTimeout(send, milliseconds)
    })
    return begun
  })

/** A worker with one tool, until one of its tasks has run its compensations. */
const worker = Effect.gen(function*() {
  const url = yield* Effect.promise(() => server!.createDatabase())
  const context = yield* Layer.build(PostgresTasks.layer({ url }))
  const engine = Context.get(context, TaskEngine)
  const sql = Context.get(context, SqlClient)
  const begin = (pay: ReturnType<typeof durable>) =>
    Effect.andThen(engine.runTasks(handlers({ pay })), Effect.provideContext(submit("pay"), context))
  const settled = (id: string) => {
    const rows = sql`SELECT task_id FROM skein_task_queue WHERE task_id = ${id}`
    const until = Effect.repeat(Effect.delay(rows, 50), { until: (rows) => rows.length === 0 })
    return Effect.timeout(until, "60 seconds")
  }
  return { engine, sql, begin, settled }
})

describe.skipIf(server === undefined)("PostgreSQL · steps of a cancelled task", () => {
  for (const like of [/^INSERT INTO paid/, /^INSERT INTO skein_task_log/, /^COMMIT/]) {
    it.live(
      `compensates a transactional step that was committed and cut off at ${like.source.slice(1)}`,
      () =>
        Effect.gen(function*() {
          const { begin, engine, settled, sql } = yield* worker
          yield* sql`CREATE TABLE paid (amount INTEGER)`
          const write = (step: string, amount: number) =>
            Step.run(step, { transactional: true }, () => Effect.orDie(sql`INSERT INTO paid VALUES (${amount})`))
          const scope = yield* Effect.scope
          const slowed = yield* Latch.make()
          const { id } = yield* begin(durable(() =>
            Effect.gen(function*() {
              const begun = yield* Effect.provideService(slow(like, 500), Scope.Scope, scope)
              yield* Effect.forkIn(Effect.andThen(begun.await, slowed.open), scope)
              yield* write("pay", 1).pipe(Step.withCompensation(() => write("back", -1)))
              yield* Step.sleep("long", "1 hour")
              return ""
            })
          ))
          yield* slowed.await
          expect(yield* engine.cancel(id)).toBe(true)
          yield* settled(id)
          yield* Effect.sleep(1000)
          expect(yield* sql`SELECT COALESCE(SUM(amount), 0)::int AS sum FROM paid`).toEqual([{ sum: 0 }])
        }).pipe(Effect.scoped),
      120_000
    )
  }
})
