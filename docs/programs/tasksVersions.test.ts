import { expect, it } from "@effect/vitest"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { After, Renamed } from "./tasksVersions.ts"

// #region replay
it.live("continues the tasks of May", () =>
  Effect.gen(function*() {
    const may = join(import.meta.dirname, "tasksVersions.may.json")
    expect(yield* TaskTest.replay(After, may)).toEqual({ _tag: "Matches", next: undefined })
    const difference = { seq: 1, recorded: "step \"flour\"", code: "step \"wheat flour\"" }
    expect(yield* TaskTest.replay(Renamed, may)).toEqual({ _tag: "Differs", ...difference })
  }))
// #endregion
