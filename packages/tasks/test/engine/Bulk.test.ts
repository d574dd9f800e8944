/**
 * Changes of many tasks by an operator, on each store.
 */
import { describe, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { type BulkChange, type BulkPage, TaskAdmin, type TaskFilter } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import type { ListPosition } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, plain, submit, work } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-bulk-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const memory = MemoryTasks.layer({ pollInterval: 50 })
const sqlite = Layer.unwrap(
  Effect.map(folder, (folder) => SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: 50 }))
)
const postgres = Layer.unwrap(Effect.map(
  Effect.suspend(() => Effect.promise(() => server!.createDatabase())),
  (url) => PostgresTasks.layer({ url, pollInterval: 50 })
))
const sealed = Encryption.layer({ keys: ["a key of thirty-two characters, or more"] })

const stores: ReadonlyArray<readonly [string, Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, unknown>]> = [
  ["memory", memory],
  ["SQLite", sqlite],
  ...server === undefined ? [] : [
    ["PostgreSQL", postgres] as const,
    ["PostgreSQL, encrypted", Layer.provide(postgres, sealed)] as const
  ]
]

const tools = {
  fine: plain(() => Effect.succeed("")),
  fails: plain(() => Effect.fail({ message: "No" })),
  sleeps: durable(() => Effect.as(Step.sleep("long", "1 day"), "")),
  undone: durable(() =>
    Effect.gen(function*() {
      yield* Step.run("do", {}, () => Effect.void)
      yield* Step.compensate(() => Effect.never)
      yield* Step.sleep("long", "1 day")
      return ""
    })
  )
}

const submitMany = (tool: string, count: number) =>
  Effect.map(
    Effect.forEach(Array.from({ length: count }), () => submit(tool)),
    (states) => states.map(({ id }) => id)
  )

/** Waits until all tasks that match are at a place. */
const allAt = (filter: TaskFilter, tag: string) =>
  Effect.flatMap(
    TaskAdmin,
    ({ list }) =>
      Effect.repeat(Effect.delay(list(filter), 20), {
        until: (tasks) => tasks.every(({ place }) => place._tag === tag)
      })
  )

/** Changes all pages of a filter. */
const changeAll = (filter: TaskFilter, change: BulkChange, limit = 3) =>
  Effect.gen(function*() {
    const { changeMany } = yield* TaskAdmin
    const skipped: Array<BulkPage["skipped"][number]> = []
    let [changed, pages] = [0, 0]
    let after: ListPosition | undefined
    do {
      const page: BulkPage = yield* changeMany(filter, change, { after, limit, by: "ada@bakery" })
      after = page.after
      changed += page.changed
      pages++
      skipped.push(...page.skipped)
    } while (after !== undefined)
    return { changed, pages, skipped }
  })

for (const [store, layer] of stores) {
  describe(`TaskAdmin.changeMany · ${store}`, () => {
    it.live(
      "cancels the tasks of a filter page by page, with a message, and stores who did it",
      () =>
        Effect.gen(function*() {
          const { count, inspect, list } = yield* TaskAdmin
          yield* work(tools)
          const ids = yield* submitMany("sleeps", 7)
          const [other] = yield* submitMany("undone", 1)
          const [done] = yield* submitMany("fine", 1)
          yield* ended(done!)
          expect(yield* count({ tool: "sleeps" }, { action: "cancel" })).toEqual([
            { tool: "sleeps", status: "working", count: 7 }
          ])
          const change = { action: "cancel", statusMessage: "Closed today" } as const
          expect(yield* changeAll({ tool: "sleeps" }, change)).toEqual({ changed: 7, pages: 3, skipped: [] })
          for (const id of ids) {
            expect(yield* ended(id)).toMatchObject({ status: "cancelled", statusMessage: "Closed today" })
          }
          yield* allAt({ tool: "sleeps" }, "Settled")
          expect((yield* inspect(ids[0]!))!.actions).toMatchObject([{
            action: "cancel",
            by: "ada@bakery",
            detail: undefined
          }])
          expect((yield* inspect(other!))!.actions).toEqual([])
          expect((yield* list({ tool: "undone" }))[0]!.state.status).toBe("working")
          expect(yield* changeAll({ tool: "sleeps" }, change)).toEqual({ changed: 0, pages: 1, skipped: [] })
          expect(yield* changeAll({ tool: "fine" }, change)).toEqual({ changed: 0, pages: 1, skipped: [] })
          expect(yield* changeAll({ ids: [done!, other!] }, { action: "cancel" })).toMatchObject({ changed: 1 })
        }).pipe(Effect.scoped, Effect.provide(layer)),
      120_000
    )

    it.live("runs failed tasks again once, however often it is repeated", () =>
      Effect.gen(function*() {
        const { count, inspect, list } = yield* TaskAdmin
        yield* work(tools)
        const ids = yield* submitMany("fails", 5)
        yield* Effect.forEach([...ids, ...yield* submitMany("fine", 2)], ended)
        const filter = { hasFailed: true } as const
        expect(yield* count(filter, { action: "rerun" })).toEqual([{ tool: "fails", status: "completed", count: 5 }])
        expect(yield* changeAll({ ids }, { action: "rerun", from: "no such step" })).toMatchObject({
          changed: 0,
          skipped: ids.map(() => ({ reason: "noStep" }))
        })
        expect(yield* changeAll(filter, { action: "rerun" })).toMatchObject({ changed: 5, skipped: [] })
        expect(yield* list({ tool: "fails" })).toHaveLength(10)
        const [note] = (yield* inspect(ids[0]!))!.actions
        expect(note).toMatchObject({ action: "rerun", by: "ada@bakery" })
        expect(yield* ended(note!.detail!)).toMatchObject({ tool: "fails", isError: true })
        yield* allAt({ tool: "fails" }, "Settled")
        const again = yield* changeAll({ ids }, { action: "rerun" })
        expect(again).toMatchObject({ changed: 0, skipped: ids.map(() => ({ reason: "rerun" })) })
      }).pipe(Effect.scoped, Effect.provide(layer)), 120_000)

    it.live("deletes tasks that have ended, except those that compensate", () =>
      Effect.gen(function*() {
        const { inspect, list } = yield* TaskAdmin
        yield* work(tools)
        const fine = yield* submitMany("fine", 4)
        yield* Effect.forEach(fine, ended)
        const [sleeping] = yield* submitMany("sleeps", 1)
        const [undone] = yield* submitMany("undone", 1)
        yield* allAt({ tool: "undone" }, "Waiting")
        yield* changeAll({ tool: "undone" }, { action: "cancel" })
        expect(yield* changeAll({}, { action: "delete" }, 2)).toEqual({
          changed: 4,
          pages: 3,
          skipped: [{ id: undone, reason: "compensating" }]
        })
        expect((yield* list({})).map(({ state }) => state.id).sort()).toEqual([sleeping, undone].sort())
        expect(yield* inspect(fine[0]!)).toBeUndefined()
      }).pipe(Effect.scoped, Effect.provide(layer)), 120_000)

    it.live("wakes tasks that wait, and changes the priority of tasks in the queue", () =>
      Effect.gen(function*() {
        const { inspect, pause, resume } = yield* TaskAdmin
        yield* work(tools)
        const sleeping = yield* submitMany("sleeps", 4)
        yield* allAt({}, "Waiting")
        expect(yield* changeAll({ tool: "sleeps" }, { action: "wake" })).toMatchObject({ changed: 4, skipped: [] })
        for (const id of sleeping) {
          yield* Effect.repeat(Effect.delay(inspect(id), 20), {
            until: (task) => task?.place._tag === "Waiting" && task.place.runs === 2
          })
        }
        yield* pause("fine")
        const waiting = yield* submitMany("fine", 2)
        expect(yield* changeAll({ tool: "fine" }, { action: "priority", priority: 7 })).toMatchObject({ changed: 2 })
        expect(yield* changeAll({ tool: "fine" }, { action: "wake" })).toMatchObject({
          changed: 0,
          skipped: [{ reason: "notWaiting" }, { reason: "notWaiting" }]
        })
        expect((yield* inspect(waiting[0]!))!.actions).toMatchObject([{ action: "priority", detail: "7" }])
        yield* resume("fine")
        yield* Effect.forEach(waiting, ended)
        expect((yield* inspect(sleeping[0]!))!.actions).toMatchObject([{ action: "wake", by: "ada@bakery" }])
      }).pipe(Effect.scoped, Effect.provide(layer)), 120_000)
  })
}
