/** The tasks that a server of several processes refuses to start with. */
import { describe, expect, it } from "@effect/vitest"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The parts that a layer reports. */
const partsOf = <A, E>(layer: Layer.Layer<A, E>) =>
  Effect.suspend(() => {
    const parts: Array<string> = []
    return Effect.scoped(Layer.build(layer)).pipe(
      Effect.provideService(ProcessLocal.Receiver, ({ remedy, what }) => void parts.push(`${what}: ${remedy}`)),
      Effect.as(parts)
    )
  })

describe("the parts of one process", () => {
  it.live("are the tasks in memory, and those in a file of SQLite", () =>
    Effect.scoped(Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "skein-tasks-"))),
        (folder) => Effect.promise(() => rm(folder, { recursive: true }))
      )
      expect(yield* partsOf(MemoryTasks.layer())).toEqual(["the tasks of MemoryTasks: use PostgresTasks"])
      expect(yield* partsOf(SqliteTasks.layer({ filename: join(folder, "tasks.db") }))).toEqual([
        "the tasks of SqliteTasks, whose file one process owns: use PostgresTasks"
      ])
    })))
})
