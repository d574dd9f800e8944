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
import { ask, durable, ended, get, pass, plain, settled, submit, textOf, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const messages = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT (SELECT COUNT(*) FROM cluster_messages) + (SELECT COUNT(*) FROM cluster_replies) AS n`,
    ([row]) => row!.n
  ))

const rows = Effect.flatMap(
  SqlClient,
  (sql) => Effect.map(sql<{ n: number }>`SELECT COUNT(*) AS n FROM skein_tasks`, ([row]) => row!.n)
)

/** Damage that a crash at the wrong moment could do. */
const damage = (statement: string) => Effect.flatMap(SqlClient, (sql) => Effect.orDie(sql.unsafe(statement)))

it.effect("an expired task is gone immediately, and is then deleted with all its messages", () =>
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
    expect(yield* messages).toBeGreaterThan(3)
    yield* pass(3600, 60)
    expect(yield* rows).toBe(0)
    expect(yield* messages).toBe(0)
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
    expect(yield* messages).toBe(0)
  }).pipe(memory))

it.effect("starts the execution of a row without one", () =>
  Effect.gen(function*() {
    const { id } = yield* submit("hello")
    yield* damage("DELETE FROM cluster_messages")
    yield* work({ hello: plain(() => Effect.succeed("late")) })
    yield* pass(120, 30)
    expect(textOf(yield* get(id))).toBe("late")
  }).pipe(memory))

it.effect("fails a live row whose execution has ended", () =>
  Effect.gen(function*() {
    yield* work({ hello: plain(() => Effect.succeed("")) })
    const { id } = yield* submit("hello")
    yield* ended(id)
    yield* settled
    yield* damage("UPDATE skein_tasks SET status = 'working', outcome = NULL, settled = 0")
    yield* pass(120, 30)
    expect(yield* get(id)).toMatchObject({
      status: "failed",
      outcome: { _tag: "Error", error: { code: -32603, data: { reference: expect.any(String) } } }
    })
  }).pipe(memory))

it.effect("interrupts the execution of a cancelled row, which then runs its compensations", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      long: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate((why) => Effect.sync(() => void log.push(why)))
          yield* Step.sleep("long", "10 days")
          return ""
        })
      )
    })
    yield* submit("long")
    yield* settled
    yield* damage("UPDATE skein_tasks SET status = 'cancelled'")
    yield* pass(240, 30)
    expect(log).toEqual(["cancelled"])
    const sql = yield* SqlClient
    yield* pass(2)
    expect(yield* sql`SELECT settled FROM skein_tasks`).toEqual([{ settled: 1 }])
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

it.effect("resumes a stalled task that waits for nothing", () =>
  Effect.gen(function*() {
    let runs = 0
    yield* work({
      nap: durable(() =>
        Effect.andThen(Effect.sync(() => runs++), Effect.as(Step.sleep("nap", "10 minutes"), "Slept"))
      ),
      asks: durable(() => Effect.as(Effect.orDie(ask("Really?")), ""))
    })
    const { id } = yield* submit("nap")
    const asks = yield* submit("asks")
    yield* settled
    // Tasks that wait for an event are left alone.
    yield* pass(300, 30)
    expect(runs).toBe(1)
    yield* damage("DELETE FROM cluster_messages WHERE entity_type = 'Workflow/-/DurableClock'")
    yield* pass(120, 30)
    expect(runs).toBe(2)
    yield* pass(600, 60)
    expect(textOf(yield* ended(id))).toBe("Slept")
    expect((yield* get(asks.id))?.status).toBe("input_required")
  }).pipe(memory))
