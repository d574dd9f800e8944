/**
 * A database that has lost the last writes of a running task, such as a replica that was promoted. The test deletes them
 * behind the back of the worker.
 */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { expect } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, get, type Handler, submit, textOf, until, work } from "./kit.ts"

const pollInterval = 20

const engines = [
  ["SQLite", MemoryTasks.layer({ pollInterval })],
  [
    "PostgreSQL",
    Layer.unwrap(Effect.map(
      Effect.promise(() => sharedPostgres().then((server) => server.createDatabase())),
      (url) => PostgresTasks.layer({ url, pollInterval })
    ))
  ]
] as const

/** Starts a task of this handler, and waits until it has come to a point. */
const start = (body: Handler, point: Latch.Latch) =>
  Effect.gen(function*() {
    yield* work({ body })
    const { id } = yield* submit("body")
    yield* point.await
    return { id, sql: yield* SqlClient }
  })

const logOf = (id: string) =>
  Effect.map(
    Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id)),
    (found) => found?.log.map(({ kind, name, seq }) => `${seq} ${kind} ${name}`)
  )

for (const [name, layer] of engines) {
  describe.skipIf(name === "PostgreSQL" && unavailable !== undefined && !required)(name, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, TaskEngine | TaskAdmin | SqlClient | Scope>) =>
      it.live(title, () => Effect.scoped(Effect.provide(test, layer)))

    live(
      "a run whose last event is lost starts no further step, and the next one begins from the stored events",
      Effect.gen(function*() {
        const [atStep, lost] = [yield* Latch.make(), yield* Latch.make()]
        const steps: Array<string> = []
        const step = (name: string, effect: Effect.Effect<void> = Effect.void) =>
          Step.run(name, { success: Schema.String }, () => {
            steps.push(name)
            return Effect.as(effect, name)
          })
        let runs = 0
        const body = durable(() =>
          Effect.gen(function*() {
            const isFirst = ++runs === 1
            yield* step("before")
            const winner = yield* Effect.raceFirst(
              step("a", isFirst ? Effect.void : Effect.never),
              step("b", isFirst ? Effect.never : Effect.void)
            )
            yield* step(`next ${winner}`, isFirst ? Effect.andThen(atStep.open, lost.await) : Effect.void)
            yield* step(`last ${winner}`)
            return winner
          })
        )
        const { id, sql } = yield* start(body, atStep)
        yield* sql`DELETE FROM skein_task_log WHERE task_id = ${id} AND seq > 1`
        yield* lost.open
        expect(textOf(yield* ended(id))).toBe("b")
        expect(yield* logOf(id)).toEqual(["1 step before", "2 step b", "3 step next b", "4 step last b"])
        expect(steps).toEqual(["before", "a", "b", "next a", "a", "b", "next b", "last b"])
      })
    )

    live(
      "a run behind another event of the same position stores nothing",
      Effect.gen(function*() {
        const [atStep, lost] = [yield* Latch.make(), yield* Latch.make()]
        let runs = 0
        const body = durable(() =>
          Effect.gen(function*() {
            const isFirst = ++runs === 1
            yield* Step.run("before", {}, () => Effect.void)
            yield* Step.run(
              `second of ${runs}`,
              {},
              () => isFirst ? Effect.andThen(atStep.open, lost.await) : Effect.void
            )
            return `run ${runs}`
          })
        )
        const { id, sql } = yield* start(body, atStep)
        // Another worker has repeated the lost step, and has not gone on yet.
        yield* sql`UPDATE skein_task_log SET at = at + 1 WHERE task_id = ${id}`
        yield* lost.open
        expect(textOf(yield* ended(id))).toBe("run 2")
        expect(yield* logOf(id)).toEqual(["1 step before", "2 step second of 2"])
      })
    )

    live(
      "the end of a task whose last event is lost is not stored",
      Effect.gen(function*() {
        const [atEnd, lost] = [yield* Latch.make(), yield* Latch.make()]
        let runs = 0
        const body = durable(() =>
          Effect.gen(function*() {
            const run = ++runs
            const value = yield* Step.run("value", { success: Schema.Int }, () => Effect.succeed(run))
            if (run === 1) yield* Effect.andThen(atEnd.open, lost.await)
            return `value ${value}`
          })
        )
        const { id, sql } = yield* start(body, atEnd)
        yield* sql`DELETE FROM skein_task_log WHERE task_id = ${id}`
        yield* lost.open
        expect(textOf(yield* ended(id))).toBe("value 2")
        expect(yield* logOf(id)).toEqual(["1 step value"])
      })
    )

    live(
      "a run that waits for a lost question asks it again",
      Effect.gen(function*() {
        const [atStep, lost] = [yield* Latch.make(), yield* Latch.make()]
        const body = durable(() =>
          Effect.gen(function*() {
            const hold = Step.run("hold", {}, () => Effect.andThen(atStep.open, lost.await))
            const [answer] = yield* Effect.all([ask("Go on?"), hold], { concurrency: "unbounded" })
            return JSON.stringify(answer)
          }).pipe(Effect.orDie)
        )
        const { id, sql } = yield* start(body, atStep)
        yield* until(id, ({ status }) => status === "input_required")
        yield* sql`DELETE FROM skein_task_questions WHERE task_id = ${id}`
        yield* sql`UPDATE skein_tasks SET status = 'working', open_questions = 0 WHERE id = ${id}`
        yield* lost.open
        const { questions: [question] } = yield* until(id, ({ questions }) => questions.length === 1)
        yield* Effect.flatMap(TaskEngine, ({ answer }) => answer(id, question!.key, { yes: true }))
        expect(textOf(yield* ended(id))).toBe(`{"yes":true}`)
      })
    )

    live(
      "a worker that claims a task again, because the database has lost its claim, ends the first run",
      Effect.gen(function*() {
        const atStep = yield* Latch.make()
        const log: Array<string> = []
        const body = durable(() =>
          Effect.gen(function*() {
            const run = log.length
            yield* Step.run("step", {}, () => {
              log.push("begun")
              if (run > 0) return Effect.void
              return Effect.onInterrupt(
                Effect.andThen(atStep.open, Effect.never),
                () => Effect.sync(() => log.push("interrupted"))
              )
            })
            return "Done"
          })
        )
        const { id, sql } = yield* start(body, atStep)
        yield* sql`UPDATE skein_task_queue SET state = 0, worker = NULL, runs = 0 WHERE task_id = ${id}`
        expect(textOf(yield* ended(id))).toBe("Done")
        expect(log).toEqual(["begun", "interrupted", "begun"])
      })
    )

    live(
      "a cancelled task whose compensation is lost compensates again before it is settled",
      Effect.gen(function*() {
        const [atStep, atUndo, lost] = [yield* Latch.make(), yield* Latch.make(), yield* Latch.make()]
        let undone = 0
        const body = durable(() =>
          Effect.gen(function*() {
            yield* Step.compensate(() =>
              Effect.suspend(() => ++undone === 1 ? Effect.andThen(atUndo.open, lost.await) : Effect.void)
            )
            yield* Step.run("step", {}, () => Effect.andThen(atStep.open, Effect.never))
            return ""
          })
        )
        const { id, sql } = yield* start(body, atStep)
        yield* Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))
        yield* atUndo.await
        yield* sql`DELETE FROM skein_task_log WHERE task_id = ${id}`
        yield* lost.open
        yield* Effect.repeat(Effect.delay(sql`SELECT 1 FROM skein_task_queue WHERE task_id = ${id}`, 20), {
          until: (rows) => rows.length === 0
        })
        expect(undone).toBe(2)
        expect((yield* get(id))?.status).toBe("cancelled")
        expect(yield* logOf(id)).toEqual(["1 undo cancelled"])
      })
    )
  })
}
