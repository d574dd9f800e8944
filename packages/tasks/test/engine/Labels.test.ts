/**
 * The labels of tasks, on each store.
 */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin, type TaskFilter } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, submit, textOf, until, work } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const postgres = Layer.unwrap(Effect.map(
  Effect.suspend(() => Effect.promise(() => server!.createDatabase())),
  (url) => PostgresTasks.layer({ url, pollInterval: 50 })
))

const stores = [
  ["memory", MemoryTasks.layer({ pollInterval: 50 })],
  ...server === undefined ? [] : [["PostgreSQL", postgres] as const]
] as const

const ids = (filter: TaskFilter) =>
  Effect.flatMap(
    TaskAdmin,
    ({ list }) => Effect.map(list(filter), (tasks) => tasks.map(({ state }) => state.id).sort())
  )

/** The reason of a failed label, as a text. */
const reasonOf = <R>(effect: Effect.Effect<void, TaskError, R>) =>
  Effect.match(effect, {
    onFailure: ({ message, reason }) => `${reason._tag}: ${message}`,
    onSuccess: () => "the label was set"
  })

for (const [store, layer] of stores) {
  describe(`labels · ${store}`, () => {
    it.live(
      "finds tasks by the labels of their submission, and runs them again with these",
      () =>
        Effect.gen(function*() {
          const { changeMany, inspect, rerun } = yield* TaskAdmin
          yield* work({ bake: durable(() => Effect.succeed("")) })
          const labels = { order: "42", "shop\u0000": "Nord" }
          const first = yield* submit("bake", { labels })
          const second = yield* submit("bake", { labels: { order: "43" }, key: "k" })
          yield* submit("bake")
          for (const { id } of [first, second]) yield* ended(id)
          expect((yield* inspect(first.id))!.labels).toEqual(labels)
          expect(yield* ids({ labels: { order: "42" } })).toEqual([first.id])
          expect(yield* ids({ labels })).toEqual([first.id])
          expect(yield* ids({ labels: { ...labels, order: "43" } })).toEqual([])
          const again = (yield* rerun(first.id))!
          yield* ended(again.id)
          expect(yield* ids({ labels })).toEqual([first.id, again.id].sort())
          expect(yield* changeMany({ labels }, { action: "delete" })).toMatchObject({ changed: 2 })
          expect(yield* ids({ labels })).toEqual([])
          const sql = yield* Effect.serviceOption(SqlClient)
          if (sql._tag === "Some") {
            expect(yield* sql.value`SELECT name FROM skein_task_labels`).toEqual([{ name: "order" }])
          }
        }).pipe(Effect.scoped, Effect.provide(layer)),
      120_000
    )

    it.live(
      "labels a task that runs, once for all its runs, and rejects an eleventh label",
      () =>
        Effect.gen(function*() {
          const { inspect } = yield* TaskAdmin
          const { answer } = yield* TaskEngine
          let runs = 0
          yield* work({
            bake: durable(() =>
              Effect.gen(function*() {
                runs++
                yield* Effect.orDie(Task.label("stage", "dough"))
                yield* Step.run("mix", {}, () => Effect.void)
                yield* Effect.orDie(Task.label("stage", "rest"))
                yield* Effect.orDie(ask("Bake?"))
                for (let count = 1; count < 10; count++) yield* Effect.orDie(Task.label(`n${count}`, String(runs)))
                yield* Effect.orDie(Task.label("stage", "oven"))
                const failed = (name: string, value: string) => reasonOf(Task.label(name, value))
                return [yield* failed("n10", ""), yield* failed("", ""), yield* failed("n1", "x".repeat(201))].join(
                  "\n"
                )
              })
            )
          })
          const { id } = yield* submit("bake")
          const { questions: [question] } = yield* until(id, ({ questions }) => questions.length > 0)
          yield* Effect.repeat(Effect.delay(inspect(id), 20), { until: (task) => task?.place._tag === "Waiting" })
          expect((yield* inspect(id))!.labels).toEqual({ stage: "rest" })
          expect(yield* ids({ labels: { stage: "rest" } })).toEqual([id])
          yield* answer(id, question!.key, { action: "accept" })
          const bounds = "InvalidOption: the name of a label has 1 to 200 characters, and its value at most 200"
          expect(textOf(yield* ended(id))).toBe(`LimitExceeded: a task has at most 10 labels\n${bounds}\n${bounds}`)
          expect(runs).toBe(2)
          const { labels } = (yield* inspect(id))!
          expect(Object.keys(labels)).toHaveLength(10)
          expect(labels).toMatchObject({ stage: "oven", n1: "2" })
        }).pipe(Effect.scoped, Effect.provide(layer)),
      120_000
    )

    it.live("rejects a task with labels out of bounds, and stores none", () =>
      Effect.gen(function*() {
        const many = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`n${index}`, ""]))
        const refused = (labels: Record<string, string>) =>
          Effect.map(Effect.flip(submit("bake", { labels })), ({ reason }) => reason._tag)
        expect(yield* refused(many)).toBe("LimitExceeded")
        expect(yield* refused({ ["x".repeat(201)]: "" })).toBe("InvalidOption")
        expect(yield* ids({})).toEqual([])
      }).pipe(Effect.scoped, Effect.provide(layer)), 120_000)
  })
}
