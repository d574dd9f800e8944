/** The tasks that a server of several processes refuses to start with. */
import { describe, expect, it } from "@effect/vitest"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqlTasks from "@skein/tasks/SqlTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

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
  it.live("are the tasks in memory, and those of SqlTasks in SQLite", () =>
    Effect.gen(function*() {
      expect(yield* partsOf(MemoryTasks.layer())).toEqual([
        "the tasks of MemoryTasks: use SqliteTasks or PostgresTasks"
      ])
      expect(yield* partsOf(SqliteTasks.layer({ filename: ":memory:" }))).toEqual([
        "the tasks of SqliteTasks in memory: use a file, or PostgresTasks"
      ])
      const sqlite = Layer.provide(SqlTasks.layer(), SqliteClient.layer({ filename: ":memory:" }))
      expect(yield* partsOf(sqlite)).toEqual([
        "the tasks of SqlTasks in SQLite, which one process runs: use SqliteTasks with a file of its own, or PostgreSQL"
      ])
    }))
})
