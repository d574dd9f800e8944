/** Tasks that are cancelled or expire and cannot be compensated. */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, get, pass, plain, settled, submit, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const logged = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  return { lines, layer: Logger.layer([logger]) }
}

const count = (table: string) =>
  Effect.flatMap(SqlClient, (sql) => Effect.map(sql`SELECT 1 FROM ${sql(table)}`, (rows) => rows.length))

const minute = 60_000

describe("tasks that no worker can compensate", () => {
  it.effect("deletes a task whose tool no worker has an hour after it expired, and logs it", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      yield* work({ other: plain(() => Effect.succeed("")) })
      const { id } = yield* submit("rare", { ttlMs: 10 * minute })
      const cancelled = yield* submit("rare", { ttlMs: 10 * minute })
      yield* settled
      const { cancel } = yield* TaskEngine
      expect(yield* cancel(cancelled.id)).toBe(true)
      yield* pass(11 * 60, 60)
      expect(yield* get(id)).toBeUndefined()
      yield* pass(57 * 60, 60)
      // A worker with the tool may still come.
      expect(yield* count("skein_tasks")).toBe(2)
      yield* pass(6 * 60, 60)
      expect(yield* count("skein_tasks")).toBe(0)
      expect(yield* count("skein_task_counts")).toBe(1)
      expect(yield* count("skein_task_queue")).toBe(0)
      expect(yield* count("skein_task_log")).toBe(0)
      expect(lines.filter((line) => line.includes("compensations have not finished within undoTimeout"))).toHaveLength(
        2
      )
    }).pipe(memory, Effect.provide(layer))
  })

  it.effect("a compensation that does not end keeps a task no longer than that", () =>
    Effect.gen(function*() {
      const gate = Deferred.makeUnsafe<void>()
      const log: Array<string> = []
      yield* work({
        long: durable(() =>
          Effect.gen(function*() {
            yield* Step.compensate((why) => Effect.andThen(Effect.sync(() => void log.push(why)), Deferred.await(gate)))
            yield* Step.sleep("long", "10 days")
            return ""
          })
        )
      })
      yield* submit("long", { ttlMs: 10 * minute })
      yield* settled
      yield* pass(30 * 60, 60)
      expect(log).toEqual(["cancelled"])
      expect(yield* count("skein_tasks")).toBe(1)
      yield* pass(45 * 60, 60)
      expect(yield* count("skein_tasks")).toBe(0)
      yield* Deferred.succeed(gate, undefined)
      yield* settled
    }).pipe(
      Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute", undoTimeout: "1 hour" }))
    ))

  it.effect("that time is an option", () =>
    Effect.gen(function*() {
      yield* work({ other: plain(() => Effect.succeed("")) })
      yield* submit("rare", { ttlMs: 1000 })
      yield* pass(40)
      expect(yield* count("skein_tasks")).toBe(1)
      yield* pass(240, 5)
      expect(yield* count("skein_tasks")).toBe(0)
    }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute", undoTimeout: "1 minute" }))))
})

const undoable = (log: Array<string>) => ({
  long: durable(() =>
    Effect.gen(function*() {
      yield* Step.compensate((why) =>
        Effect.andThen(
          Step.run("undo", {}, () => Effect.sync(() => void log.push(`step: ${why}`))),
          Effect.sync(() => void log.push(why))
        )
      )
      yield* Step.sleep("long", "10 days")
      return ""
    })
  )
})

describe("the compensations of cancelled tasks", () => {
  it.effect("a compensation that interrupts itself has failed: the others run, and it does not run again", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      const log: Array<string> = []
      const note = (line: string) => Effect.sync(() => void log.push(line))
      yield* work({
        long: durable(() =>
          Effect.gen(function*() {
            yield* Step.compensate(() => note("first"))
            yield* Step.compensate(() => Effect.andThen(note("interrupts"), Effect.interrupt))
            yield* Step.compensate(() => note("last"))
            yield* Step.sleep("long", "10 days")
            return ""
          })
        )
      })
      const { id } = yield* submit("long")
      yield* settled
      const { cancel } = yield* TaskEngine
      yield* cancel(id)
      yield* pass(120, 5)
      expect(log).toEqual(["last", "interrupts", "first"])
      expect(lines.filter((line) => line.includes("a compensation failed"))).toHaveLength(1)
    }).pipe(memory, Effect.provide(layer))
  })

  it.effect("a task that is cancelled after its worker has stopped is compensated once a worker runs again", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 minute" })
      const log: Array<string> = []
      const first = yield* Scope.make()
      const engine = yield* Layer.buildWithScope(layer, first)
      yield* Effect.gen(function*() {
        const worker = yield* Scope.make()
        yield* Scope.provide(work(undoable(log)), worker)
        const { id } = yield* submit("long")
        yield* settled
        yield* Scope.close(worker, Exit.void)
        const { cancel } = yield* TaskEngine
        yield* cancel(id)
        yield* settled
      }).pipe(Effect.provideContext(engine))
      yield* Scope.close(first, Exit.void)
      expect(log).toEqual([])
      yield* TestClock.adjust(10)
      yield* Effect.gen(function*() {
        yield* work(undoable(log))
        yield* pass(6)
        expect(log).toEqual(["step: cancelled", "cancelled"])
        expect(yield* count("skein_tasks")).toBe(1)
      }).pipe(Effect.provide(layer))
    }))
})
