/**
 * Tasks whose workers die again and again, and options out of bounds.
 */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
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
import { durable, get, settled, submit, work } from "./kit.ts"

it.live("a task whose worker dies each time is given up after maxAttempts, with its reason", () =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db"), maxAttempts: 3, interruptTimeout: 50 })
    let begun = 0
    const tools = {
      deadly: durable(() =>
        Effect.as(
          Effect.andThen(
            Step.run("fine", {}, () => Effect.void),
            Step.run("die", {}, () => {
              begun++
              return Effect.never
            })
          ),
          ""
        )
      )
    }
    const first = yield* Scope.make()
    const engine = yield* Layer.buildWithScope(layer, first)
    const { id } = yield* Effect.provideContext(submit("deadly"), engine)
    yield* Scope.close(first, Exit.void)
    for (let death = 0; death < 5; death++) {
      yield* Effect.gen(function*() {
        yield* Effect.scoped(Effect.andThen(work(tools), settled))
        // Like a process that ended without a word.
        const sql = yield* SqlClient
        yield* sql`UPDATE skein_task_queue SET state = 2, worker = 'dead'`
      }).pipe(Effect.provide(layer))
    }
    expect(begun).toBe(4)
    const state = yield* Effect.provide(get(id), layer)
    expect(state).toMatchObject({
      status: "failed",
      statusMessage: "The task was given up: 4 workers have ended while they ran it"
    })
  }).pipe(Effect.scoped))

for (
  const options of [
    { concurrency: 0 },
    { concurrency: Number.NaN },
    { maxAttempts: 0 },
    { pollInterval: 0 },
    { pollInterval: "30 days" },
    { interruptTimeout: Duration.infinity }
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
