import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { durable, ended, get, pass, plain, settled, submit, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const events = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT (SELECT COUNT(*) FROM skein_task_queue) + (SELECT COUNT(*) FROM skein_task_log) AS n`,
    ([row]) => row!.n
  ))

const rows = Effect.flatMap(
  SqlClient,
  (sql) => Effect.map(sql<{ n: number }>`SELECT COUNT(*) AS n FROM skein_tasks`, ([row]) => row!.n)
)

it.effect("an expired task is gone immediately, and is then deleted with its log", () =>
  Effect.gen(function*() {
    yield* work({
      hello: plain(() => Effect.succeed("")),
      nap: durable(() => Effect.as(Step.sleep("short", "1 minute"), ""))
    })
    const short = yield* submit("hello", { ttlMs: 60_000 })
    const nap = yield* submit("nap", { ttlMs: 3_600_000 })
    yield* ended(short.id)
    yield* settled
    yield* TestClock.adjust(59_999)
    expect((yield* get(short.id))?.status).toBe("completed")
    yield* TestClock.adjust(1)
    expect(yield* get(short.id)).toBeUndefined()
    yield* pass(180, 60)
    expect(yield* rows).toBe(1)
    yield* ended(nap.id)
    expect(yield* events).toBe(2)
    yield* pass(3600, 60)
    expect(yield* rows).toBe(0)
    expect(yield* events).toBe(0)
  }).pipe(memory))

it.effect("a task that expires while it runs is cancelled, is compensated, and is then deleted", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      long: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate((why) => Step.run("undo", {}, () => Effect.sync(() => void log.push(why))))
          yield* Step.sleep("long", "10 days")
          return ""
        })
      )
    })
    const { id } = yield* submit("long", { ttlMs: 600_000 })
    const { watch } = yield* TaskEngine
    const seen: Array<string> = []
    yield* Effect.forkChild(Stream.runForEach(watch(id), ({ status }) => Effect.sync(() => void seen.push(status))))
    yield* settled
    yield* pass(720, 60)
    expect(log).toEqual(["cancelled"])
    yield* pass(120, 60)
    expect(yield* rows).toBe(0)
    expect(yield* events).toBe(0)
  }).pipe(memory))

it.effect("does not run a long task twice", () =>
  Effect.gen(function*() {
    let begun = 0
    yield* work({
      long: durable(() =>
        Effect.as(
          Step.run("long", {}, () => Effect.andThen(Effect.sync(() => void begun++), Effect.sleep("10 minutes"))),
          ""
        )
      )
    })
    const { id } = yield* submit("long")
    yield* settled
    yield* pass(660, 60)
    expect((yield* get(id))?.status).toBe("completed")
    expect(begun).toBe(1)
    expect(yield* Clock.currentTimeMillis).toBe(660_000)
  }).pipe(memory))

it.effect("deletes 2,000 expired tasks in batches, and their counters", () =>
  Effect.gen(function*() {
    yield* work({ hello: plain(() => Effect.succeed("")) })
    const submitted = Array.from(
      { length: 2000 },
      (_, n) => submit("hello", { ttlMs: 60_000, owner: `owner ${n % 7}` })
    )
    yield* Effect.all(submitted, { discard: true })
    yield* settled
    expect(yield* rows).toBe(2000)
    yield* pass(63)
    expect(yield* rows).toBe(0)
    const sql = yield* SqlClient
    expect(yield* sql`SELECT kind, live, retained FROM skein_task_counts`).toEqual([{ kind: 0, live: 0, retained: 0 }])
  }).pipe(memory))
