/**
 * Steps that block the event loop, and branches that end at the same time, with several workers.
 */
import { describe, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { id as taskId } from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, handlers, submit, textOf } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** The orders that the runs of each task have observed. */
const observed = () => {
  const orders = new Map<string, Array<string>>()
  const note = (order: string) => Effect.map(taskId, (id) => void orders.set(id, [...orders.get(id) ?? [], order]))
  return { orders, note }
}

const step = (name: string, execute: Effect.Effect<void>) =>
  Step.run(name, { success: Schema.String }, () => Effect.as(execute, name))

/** Blocks the event loop. */
const block = (milliseconds: number): void => {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

describe.skipIf(server === undefined)(
  "PostgreSQL · a step that blocks the event loop for longer than leaseTimeout",
  () => {
    for (const workers of [1, 2]) {
      it.live(
        `ends, with ${workers === 1 ? "one worker" : "two workers"}, and its block is logged with its name`,
        () => {
          const lines: Array<string> = []
          const logger = Logger.make(({ message }) => void lines.push(String(message)))
          return Effect.gen(function*() {
            const url = yield* Effect.promise(() => server!.createDatabase())
            let begun = 0
            const heavy = durable(() =>
              Step.run("compress", { success: Schema.String }, () =>
                Effect.gen(function*() {
                  begun++
                  yield* Effect.sleep(10)
                  block(3000)
                  yield* Effect.sleep(10)
                  return "Compressed"
                }))
            )
            const engines = yield* Effect.forEach(Array.from({ length: workers }), () =>
              Effect.gen(function*() {
                const engine = yield* Layer.build(PostgresTasks.layer({ url, leaseTimeout: "1 second" }))
                yield* Context.get(engine, TaskEngine).runTasks(handlers({ heavy }))
                return engine
              }))
            const { id } = yield* Effect.provideContext(submit("heavy"), engines[0]!)
            const state = yield* Effect.provideContext(Effect.timeout(ended(id), "90 seconds"), engines[0]!)
            expect(textOf(state)).toBe("Compressed")
            expect(begun).toBeLessThanOrEqual(2)
            expect(lines.filter((line) => /event loop was blocked for \d+ ms.*heavy: compress/.test(line))).not.toEqual(
              []
            )
          }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
        },
        120_000
      )
    }
  }
)

it.live("SQLite · a step that blocks the event loop is logged with its name", () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  return Effect.gen(function*() {
    const folder = mkdtempSync(join(tmpdir(), "skein-engine-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const engine = yield* Layer.build(SqliteTasks.layer({ filename: join(folder, "tasks.db") }))
    const heavy = durable(() =>
      Step.run("compress", { success: Schema.String }, () =>
        Effect.sync(() => {
          block(2500)
          return "Compressed"
        }))
    )
    yield* Context.get(engine, TaskEngine).runTasks(handlers({ heavy }))
    // The event loop is idle for a while.
    yield* Effect.sleep(1600)
    const { id } = yield* Effect.provideContext(submit("heavy"), engine)
    yield* Effect.provideContext(ended(id), engine)
    // On a busy machine the process itself may stand still, at another time.
    const ofStep = () => lines.filter((line) => line.includes("compress"))
    yield* Effect.repeat(Effect.sleep(50), { until: () => ofStep().length > 0 }).pipe(Effect.timeout("60 seconds"))
    yield* Effect.sleep(1600)
    expect(ofStep()).toEqual([expect.stringMatching(/^the event loop was blocked for \d{4,5} ms; .*heavy: compress/)])
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
})

describe.skipIf(server === undefined)("ties on PostgreSQL", () => {
  for (const jitter of [0, 200]) {
    it.live(
      `two steps that race with a jitter of ${jitter} ms: the same winner on two workers, for 100 tasks`,
      () =>
        Effect.gen(function*() {
          const url = yield* Effect.promise(() => server!.createDatabase())
          const { note, orders } = observed()
          const pause = () => Effect.suspend(() => Effect.sleep(10 + Math.floor(Math.random() * jitter)))
          const race = durable(() =>
            Effect.gen(function*() {
              const winner = yield* Effect.raceFirst(step("a", pause()), step("b", pause()))
              yield* note(winner)
              yield* Step.sleep("long", 5100)
              return winner
            })
          )
          const start = Effect.gen(function*() {
            const scope = yield* Scope.fork(yield* Effect.scope)
            const engine = yield* Layer.buildWithScope(PostgresTasks.layer({ url }), scope)
            yield* Scope.provide(Context.get(engine, TaskEngine).runTasks(handlers({ race })), scope)
            return { engine, stop: Scope.close(scope, Exit.void) }
          })
          const first = yield* start
          const submitted = Effect.forEach(Array.from({ length: 100 }), () => submit("race"), { concurrency: 20 })
          const tasks = yield* Effect.provideContext(submitted, first.engine)
          const sql = Context.get(first.engine, SqlClient)
          const asleep = sql`SELECT 1 FROM skein_task_queue WHERE state = 1`
          yield* Effect.repeat(Effect.delay(asleep, 50), { until: (rows) => rows.length === 100 })
          const second = yield* start
          yield* first.stop
          for (const { id } of tasks) {
            const winner = textOf(yield* Effect.provideContext(ended(id), second.engine))
            // The second worker may also have replayed the task to check its code.
            expect(orders.get(id)!.length).toBeGreaterThanOrEqual(2)
            expect(new Set(orders.get(id))).toEqual(new Set([winner]))
          }
        }).pipe(Effect.scoped),
      60_000
    )
  }
})
