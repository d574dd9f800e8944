/**
 * Tasks whose workers die again and again, and options out of bounds.
 */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, type Handler, settled, submit, work } from "./kit.ts"

/** A SQLite file whose workers die. */
const dyingWorkers = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const layer = SqliteTasks.layer({
    filename: join(folder, "tasks.db"),
    maxAttempts: 3,
    shutdownTimeout: 50,
    pollInterval: 20
  })
  const first = yield* Scope.make()
  const engine = yield* Layer.buildWithScope(layer, first)
  const { id } = yield* Effect.provideContext(submit("deadly"), engine)
  yield* Scope.close(first, Exit.void)
  /** Runs the task in a worker that then ends without a word. */
  const die = (tools: Record<string, Handler>) =>
    Effect.gen(function*() {
      const { wake } = yield* TaskAdmin
      // It does not wait until the pause after the last death is over.
      yield* Effect.scoped(Effect.andThen(Effect.andThen(work(tools), wake(id)), settled))
      const sql = yield* SqlClient
      yield* sql`UPDATE skein_task_queue SET state = 2, worker = 'dead'`
    }).pipe(Effect.provide(layer))
  return { id, layer, die }
})

const givenUp = {
  status: "failed",
  statusMessage: "The task was given up: 3 workers have ended while they ran it"
}

it.live("a task whose worker dies each time is given up after maxAttempts, with its reason, and is compensated", () =>
  Effect.gen(function*() {
    const { die, id, layer } = yield* dyingWorkers
    const begun: Array<string> = []
    const tools = {
      deadly: durable(() =>
        Effect.gen(function*() {
          yield* Step.run("fine", {}, () => Effect.void).pipe(
            Step.withCompensation((_, reason) =>
              Step.run("undo fine", {}, () => Effect.sync(() => begun.push(`undone: ${reason}`)))
            )
          )
          yield* Step.run("die", {}, () => {
            begun.push("die")
            return Effect.never
          })
          return ""
        })
      )
    }
    for (let death = 0; death < 3; death++) yield* die(tools)
    expect(begun).toEqual(["die", "die", "die"])
    const state = yield* Effect.provide(Effect.scoped(Effect.andThen(work(tools), ended(id))), layer)
    expect(state).toMatchObject(givenUp)
    expect(begun.slice(3)).toEqual(["undone: failed"])
    const inspected = yield* Effect.provide(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id)), layer)
    expect(inspected?.log.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      "step fine",
      "giveUp 3",
      "undo failed",
      "step undo fine"
    ])
  }).pipe(Effect.scoped))

it.live("a task that also ends the workers of its compensations fails without them", () =>
  Effect.gen(function*() {
    const { die, id, layer } = yield* dyingWorkers
    let begun = 0
    const never = () => {
      begun++
      return Effect.never
    }
    const tools = {
      deadly: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate(() => Step.run("undo", {}, never))
          yield* Step.run("die", {}, never)
          return ""
        })
      )
    }
    for (let death = 0; death < 8; death++) yield* die(tools)
    expect(yield* Effect.provide(get(id), layer)).toMatchObject(givenUp)
    // The step three times, and its compensation as often.
    expect(begun).toBe(6)
  }).pipe(Effect.scoped))

it.live("a task that is cancelled after it was given up is compensated as cancelled", () =>
  Effect.gen(function*() {
    const { die, id, layer } = yield* dyingWorkers
    const reasons: Array<string> = []
    const tools = {
      deadly: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate((reason) => Effect.sync(() => void reasons.push(reason)))
          yield* Step.run("die", {}, () => Effect.never)
          return ""
        })
      )
    }
    for (let death = 0; death < 3; death++) yield* die(tools)
    yield* Effect.gen(function*() {
      expect(yield* Effect.flatMap(TaskAdmin, ({ cancel }) => cancel(id))).toBe(true)
      yield* work(tools)
      const sql = yield* SqlClient
      yield* Effect.repeat(Effect.delay(sql`SELECT 1 FROM skein_task_queue`, 20), {
        until: (rows) => rows.length === 0
      })
    }).pipe(Effect.scoped, Effect.provide(layer))
    expect(reasons).toEqual(["cancelled"])
  }).pipe(Effect.scoped))

for (
  const options of [
    { concurrency: 0 },
    { concurrency: Number.NaN },
    { maxAttempts: 0 },
    { pollInterval: 0 },
    { pollInterval: "30 days" },
    { shutdownTimeout: Duration.infinity }
  ] as const
) {
  it.effect(`rejects ${Object.entries(options).join()} with the name of the option`, () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(MemoryTasks.layer(options))))
      expect(error).toMatchObject({
        _tag: "TaskError",
        reason: { _tag: "InvalidOption", message: expect.stringContaining(Object.keys(options)[0]!) }
      })
    }))
}
