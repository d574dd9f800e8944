import { expect, it } from "@effect/vitest"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { indexMessages } from "../../src/internal/store/migrations.ts"
import { all, type Backend, each, file, fresh, insert, pg, stateOf } from "./kit.ts"

/** How a statement runs; PostgreSQL does not use indexes for small tables. */
const planOf = (backend: Backend, sql: SqlClient.SqlClient, statement: string) =>
  Effect.map(
    backend === pg
      ? sql.withTransaction(Effect.andThen(sql`SET LOCAL enable_seqscan = off`, sql.unsafe(`EXPLAIN ${statement}`)))
      : sql.unsafe(`EXPLAIN QUERY PLAN ${statement}`),
    (rows) => JSON.stringify(rows)
  )

each([file, pg], (backend) => {
  it.effect("does not change tables that are up to date", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const first = yield* client
      const task = yield* insert(first)
      const second = yield* client
      expect(yield* stateOf(second, task.id)).toEqual(task)
      expect(yield* second.sql`SELECT version FROM skein_task_versions`).toEqual([{ version: 1 }])
    }))

  it.effect("runs a migration that stopped half-way again", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const first = yield* client
      const task = yield* insert(first)
      yield* first.sql`DELETE FROM skein_task_versions`
      yield* first.sql`DROP INDEX skein_tasks_expiry`
      expect(yield* stateOf(yield* client, task.id)).toEqual(task)
    }))

  it.effect("rejects tables of a later version", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const { sql } = yield* client
      yield* sql`INSERT INTO skein_task_versions (version) VALUES (99)`
      expect(yield* Effect.flip(client)).toMatchObject({
        reason: { _tag: "StoreError" },
        message: "the task tables have version 99, and this program supports 1: a later version created them"
      })
    }))
})

each(all, (backend) => {
  it.effect("finds the messages of one execution by an index", () =>
    Effect.gen(function*() {
      const { sql } = yield* fresh(backend)
      const client = Layer.succeed(SqlClient.SqlClient, sql)
      expect(yield* Effect.flip(Effect.provide(indexMessages(), client))).toMatchObject({
        reason: { _tag: "StoreError" }
      })
      for (const prefix of [undefined, "other"]) {
        yield* Effect.scoped(Layer.build(Layer.provide(SqlMessageStorage.layerMigrations({ prefix }), client)))
        const index = Effect.provide(indexMessages(prefix), client)
        yield* index
        yield* index
        const table = `${prefix ?? "cluster"}_messages`
        const where = "entity_type = 'Workflow/skein/Task' AND entity_id = 'x'"
        const plan = yield* planOf(backend, sql, `DELETE FROM ${table} WHERE ${where}`)
        expect(plan).toContain(`${table}_skein_entity_idx`)
        expect(plan).toMatch(
          backend === pg ? /Index Cond: .*entity_id.* AND .*entity_type/ : /entity_id=\? AND entity_type=\?/
        )
      }
    }))

  it.effect("finds tasks for listings, sweeps and expiry by indexes", () =>
    Effect.gen(function*() {
      const { sql } = yield* fresh(backend)
      const never = Number.MAX_SAFE_INTEGER
      const plans = [
        [
          "skein_tasks_owner",
          "SELECT id FROM skein_tasks WHERE owner = 'a' AND (created_at, id) < (5, 'x') ORDER BY created_at DESC, id DESC LIMIT 5"
        ],
        [
          "skein_tasks_unsettled",
          "SELECT id FROM skein_tasks WHERE settled = 0 AND id > 'x' AND updated_at < 5 ORDER BY id LIMIT 5"
        ],
        [
          "skein_tasks_expiry",
          `SELECT id FROM skein_tasks WHERE expires_at < ${never} AND expires_at <= 5 AND (expires_at, id) > (5, 'x') ORDER BY expires_at, id LIMIT 5`
        ],
        [
          "skein_tasks_expiry",
          `SELECT MIN(expires_at) FROM skein_tasks WHERE expires_at < ${never} AND expires_at > 5`
        ],
        [
          "skein_tasks_undoing",
          "SELECT id FROM skein_tasks WHERE settled = 0 AND status = 'cancelled' AND id > 'x' ORDER BY id LIMIT 5"
        ]
      ] as const
      for (const [index, query] of plans) {
        const plan = yield* planOf(backend, sql, query)
        expect(plan).toContain(index)
        expect(plan).not.toMatch(/TEMP B-TREE|Sort/)
      }
    }))
})
