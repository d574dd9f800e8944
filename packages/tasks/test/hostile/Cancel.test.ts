/** Many tasks that wait, and are cancelled or expire at the same time. */
import { expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { SqlClient } from "effect/sql/SqlClient"
import { durable, pass, submit, until, work } from "../engine/kit.ts"

const count = 60

/** Tasks with a compensation, which ask. */
const asking = (ttl: number | null) =>
  Effect.gen(function*() {
    const undone = new Set<string>()
    yield* work({
      ask: durable(() =>
        Effect.gen(function*() {
          const taskRequest = yield* McpRequest
          const { task } = taskRequest as never as { task: { id: string } }
          yield* Step.compensate(() => Effect.sync(() => undone.add(task.id)))
          yield* Effect.orDie(taskRequest.request("elicitation/create", {}, { key: "k" }))
          return ""
        })
      )
    })
    const ids = yield* Effect.forEach(
      Array.from({ length: count }),
      () => Effect.map(submit("ask", { ttlMs: ttl }), ({ id }) => id)
    )
    if (ttl === null) yield* Effect.forEach(ids, (id) => until(id, ({ questions }) => questions.length > 0))
    return { ids, undone }
  })

const left = (table: string) =>
  Effect.flatMap(SqlClient, (sql) => Effect.map(sql`SELECT * FROM ${sql(table)}`, (rows) => rows.length))

const engine = <A, E>(effect: Effect.Effect<A, E, TaskEngine | SqlClient>) =>
  effect.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(MemoryTasks.layer(), Logger.layer([]))))

it.live(
  "compensates each of many sleeping tasks when they are cancelled together",
  () =>
    engine(Effect.scoped(Effect.gen(function*() {
      const { ids, undone } = yield* asking(null)
      // Waits until the engine has suspended all of them.
      yield* Effect.sleep(300)
      const { cancel } = yield* TaskEngine
      yield* Effect.forEach(ids, (id) => cancel(id))
      yield* Effect.repeat(Effect.sleep(20), { until: () => undone.size === count })
      expect(undone).toEqual(new Set(ids))
    }))),
  120_000
)

it.live(
  "compensates each of many expired tasks, and leaves nothing behind",
  () =>
    engine(Effect.scoped(Effect.gen(function*() {
      const { undone } = yield* asking(1000)
      yield* Effect.repeat(Effect.andThen(Effect.sleep(50), left("skein_tasks")), { until: (count) => count === 0 })
      expect(undone.size).toBe(count)
      for (const table of ["skein_task_questions", "skein_task_queue", "skein_task_log"]) {
        expect(yield* left(table)).toBe(0)
      }
      const sql = yield* SqlClient
      expect(yield* sql`SELECT live, retained FROM skein_task_counts`).toEqual([{ live: 0, retained: 0 }])
    }))),
  120_000
)

it.effect("cancels a task within ten seconds of its expiry, even if no other task expires for long", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    yield* work({
      long: durable(() =>
        Effect.andThen(
          Step.compensate((why) => Effect.sync(() => void log.push(why))),
          Effect.as(Step.sleep("long", "1 day"), "")
        )
      )
    })
    yield* pass(3)
    yield* submit("long", { ttlMs: 5000 })
    yield* pass(4)
    expect(log).toEqual([])
    yield* pass(12)
    expect(log).toEqual(["cancelled"])
  }).pipe(Effect.provide(Layer.provideMerge(MemoryTasks.layer(), Logger.layer([])))))
