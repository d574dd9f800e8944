/**
 * Submissions with a key, which create one task however often they are repeated.
 */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { all, each, fresh, task } from "./kit.ts"

each(all, (backend) => {
  it.effect("returns the task that has the key, and creates none", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* fresh(backend)
      const first = yield* store.insert(task({ key: "order 7" }))
      const again = yield* store.insert(task({ key: "order 7", args: { other: true } }), "w1", () => Effect.die("ran"))
      expect(again).toEqual(first)
      expect(yield* sql`SELECT * FROM skein_tasks`).toHaveLength(1)
      expect(yield* sql`SELECT * FROM skein_task_queue`).toHaveLength(1)
      // Another owner, another tool, another key, and none.
      for (const other of [{ owner: "bob" }, { tool: "other" }, { key: "order 8" }, { key: undefined }]) {
        expect((yield* store.insert(task({ key: "order 7", ...other }))).id).not.toBe(first.id)
      }
      yield* store.insert(task({ key: undefined }))
      expect(yield* sql`SELECT * FROM skein_tasks`).toHaveLength(6)
    }))

  it.effect("returns a task that has ended, and creates a new one after its time to live", () =>
    Effect.gen(function*() {
      const { store } = yield* fresh(backend)
      const first = yield* store.insert(task({ key: "k", ttlMs: 1000 }))
      yield* store.finish(first.id, { status: "completed", outcome: { _tag: "Result", result: { content: [] } } })
      expect(yield* store.insert(task({ key: "k", ttlMs: 1000 }))).toMatchObject({ id: first.id, status: "completed" })
      yield* TestClock.adjust(1000)
      const second = yield* store.insert(task({ key: "k", ttlMs: 1000 }))
      expect(second.id).not.toBe(first.id)
      expect((yield* store.insert(task({ key: "k", ttlMs: 1000 }))).id).toBe(second.id)
    }))

  it.effect("creates one task for 20 submissions at once, and none above a limit", () =>
    Effect.gen(function*() {
      const { store } = yield* fresh(backend)
      const limits = { all: { live: 1 }, client: {}, tool: {} }
      const states = yield* Effect.all(
        Array.from({ length: 20 }, () => store.insert(task({ key: "\0 odd \ud800", limits }))),
        { concurrency: "unbounded" }
      )
      expect(new Set(states.map(({ id }) => id)).size).toBe(1)
      expect(yield* Effect.flip(store.insert(task({ key: "more", limits })))).toMatchObject({
        reason: { _tag: "LimitExceeded" }
      })
      expect(yield* Effect.flip(store.insert(task({ key: "x".repeat(513) })))).toMatchObject({
        reason: { _tag: "StoreError", message: "the key of a task exceeds 512 characters" }
      })
    }))
})
