/** `PostgresTasks` through PgBouncer. */
import { describe, expect, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { afterAll, beforeAll } from "vitest"
import { noPgBouncer, type PgBouncer, startPgBouncer } from "../../sql/test/startPgBouncer.ts"
import { type Postgres, required, startPostgres, unavailable } from "../../sql/test/postgres.ts"
import { ask, durable, ended, handlers, submit, textOf, until } from "./engine/kit.ts"

const reason = unavailable ?? noPgBouncer
const skipped = reason !== undefined && !required

describe.skipIf(skipped)(
  skipped ? `PostgresTasks through PgBouncer (${reason})` : "PostgresTasks through PgBouncer",
  () => {
    let postgres: Postgres
    const poolers = new Map<"session" | "transaction", PgBouncer>()
    beforeAll(async () => {
      if (reason !== undefined) throw new Error(reason)
      postgres = await startPostgres()
      for (const poolMode of ["session", "transaction"] as const) {
        poolers.set(poolMode, await startPgBouncer(postgres.port, { poolMode, roundRobin: true }))
      }
    }, 60_000)
    afterAll(async () => {
      for (const pooler of poolers.values()) await pooler.stop()
      await postgres?.stop()
    })
    const database = (poolMode: "session" | "transaction") =>
      Effect.map(Effect.promise(() => postgres.createDatabase()), (url) => poolers.get(poolMode)!.through(url))

    it.live("session mode · a server that runs no tasks and a worker run a task with a question", () =>
      Effect.gen(function*() {
        const url = yield* database("session")
        const worker = yield* Layer.build(PostgresTasks.layer({ url }))
        const front = yield* Layer.build(PostgresTasks.layer({ url, runTasks: false }))
        const bake = durable(() => Effect.as(Effect.orDie(ask("With rum?")), "Baked"))
        yield* Context.get(worker, TaskEngine).runTasks(handlers({ bake }))
        const text = yield* Effect.gen(function*() {
          const { id } = yield* submit("bake")
          const { questions: [question] } = yield* until(id, ({ questions }) => questions.length > 0)
          yield* Context.get(front, TaskEngine).answer(id, question!.key, { action: "accept" })
          return textOf(yield* ended(id))
        }).pipe(Effect.provideContext(front))
        expect(text).toBe("Baked")
        expect(yield* Context.get(worker, SqlClient)`SHOW idle_in_transaction_session_timeout`)
          .toEqual([{ idle_in_transaction_session_timeout: "3334ms" }])
      }).pipe(Effect.scoped))

    it.live("transaction mode · the layer fails with StoreError, which names the mode", () =>
      Effect.gen(function*() {
        const url = yield* database("transaction")
        // Opens several connections to the server, which take turns then.
        yield* Effect.provide(
          Effect.forEach([1, 2, 3], () => Effect.flatMap(SqlClient, (sql) => sql`SELECT pg_sleep(0.1)`), {
            concurrency: 3
          }),
          PgClient.layer({ url })
        )
        const { reason } = yield* Effect.flip(Layer.build(PostgresTasks.layer({ url, connectTimeout: "1 second" })))
        expect(reason._tag).toBe("StoreError")
        expect(reason.message).toContain("pool_mode = session")
        const { cause } = reason as typeof reason & { readonly cause: SqlError }
        expect(cause.reason.cause).toBeInstanceOf(PgClient.TransactionPoolingError)
      }).pipe(Effect.scoped))
  }
)
