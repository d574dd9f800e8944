import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
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
      expect(yield* second.sql`SELECT version FROM skein_task_versions ORDER BY version`).toEqual(
        Array.from({ length: 13 }, (_, index) => ({ version: index + 1 }))
      )
    }))

  it.effect("rejects tables of a later version", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const { sql } = yield* client
      yield* sql`INSERT INTO skein_task_versions (version) VALUES (99)`
      expect(yield* Effect.flip(client)).toMatchObject({
        reason: { _tag: "StoreError" },
        message: "the task tables have version 99, and this program supports 13: a later version created them"
      })
    }))
})

each(all, (backend) => {
  it.effect("finds tasks for listings, expiry and workers by indexes", () =>
    Effect.gen(function*() {
      const { sql } = yield* fresh(backend)
      const never = Number.MAX_SAFE_INTEGER
      const inPool = backend === pg ? "AND pool = 'default'" : ""
      const plans = [
        [
          "skein_tasks_owner",
          "SELECT id FROM skein_tasks WHERE owner = 'a' AND (created_at, id) < (5, 'x') ORDER BY created_at DESC, id DESC LIMIT 5"
        ],
        [
          "skein_tasks_created",
          "SELECT tool FROM skein_tasks WHERE tool = 'x' ORDER BY created_at DESC, id DESC LIMIT 5"
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
          "skein_task_queue_ready",
          `SELECT task_id FROM skein_task_queue WHERE state = 0 AND gate <> 1 ${inPool} ORDER BY priority, wake_at LIMIT 5`
        ],
        [
          "skein_task_queue_gated",
          "SELECT task_id FROM skein_task_queue WHERE state = 0 AND gate = 1 AND tool = 'x' ORDER BY priority, wake_at LIMIT 5"
        ],
        [
          "skein_task_queue_keys",
          "SELECT task_id FROM skein_task_queue WHERE state = 0 AND gate = 1 AND tool = 'x' AND rate_key = 'k' ORDER BY priority, wake_at LIMIT 1"
        ],
        [
          "skein_task_queue_keys",
          "SELECT rate_key FROM skein_task_queue WHERE state = 0 AND gate = 1 AND tool = 'x' AND rate_key > 'k' ORDER BY rate_key LIMIT 1"
        ],
        [
          "skein_task_queue_running_keys",
          "SELECT COUNT(*) FROM skein_task_queue WHERE state = 2 AND gate <> 0 AND tool = 'x'"
        ],
        [
          "skein_task_queue_running_keys",
          "SELECT COUNT(*) FROM skein_task_queue WHERE state = 2 AND gate <> 0 AND tool = 'x' AND rate_key = 'k'"
        ],
        [
          "skein_task_queue_debounce_key",
          "SELECT task_id FROM skein_task_queue WHERE tool = 'x' AND debounce_key = 'k' AND runs = 0"
        ],
        [
          "skein_tasks_singleton_key",
          "SELECT id FROM skein_tasks WHERE tool = 'x' AND singleton_key = 'k'"
        ],
        [
          "skein_task_questions_addressee",
          "SELECT task_id FROM skein_task_questions WHERE state = 0 AND addressee = 'x'"
        ],
        [
          "skein_task_starts_key",
          "SELECT COUNT(*) FROM skein_task_starts WHERE tool = 'x' AND rate_key = 'k' AND started_at > 5"
        ],
        [
          "skein_task_queue_waiting",
          `SELECT task_id FROM skein_task_queue WHERE state = 1 AND wake_at < ${never} AND wake_at <= 5`
        ],
        [
          "skein_task_queue_running",
          "SELECT task_id FROM skein_task_queue WHERE state = 2 AND worker = 'x'"
        ],
        [
          backend === pg ? "skein_task_log_pkey" : "PRIMARY KEY",
          "SELECT value FROM skein_task_log WHERE task_id = 'x' AND seq = 1"
        ]
      ] as const
      for (const [index, query] of plans) {
        const plan = yield* planOf(backend, sql, query)
        expect(plan).toContain(index)
        expect(plan).not.toMatch(/TEMP B-TREE|Sort/)
      }
    }))
})
