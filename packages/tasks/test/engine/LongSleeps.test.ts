import { expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

it.effect("an infinite sleep, or one beyond all dates, lasts until the task is cancelled", () =>
  Effect.gen(function*() {
    const sleeping = (duration: Duration.Input) => kit.durable(() => Effect.as(Step.sleep("long", duration), "Awake"))
    yield* kit.work({ ever: sleeping(Duration.infinity), ages: sleeping("1000000000000 days") })
    for (const tool of ["ever", "ages"]) {
      const { id } = yield* kit.submit(tool)
      yield* kit.pass(20, 5)
      expect(yield* kit.get(id)).toMatchObject({ status: "working" })
      yield* Effect.flatMap(TaskEngine, (engine) => engine.cancel(id))
      yield* kit.pass(2)
      expect(yield* kit.get(id)).toMatchObject({ status: "cancelled" })
    }
  }).pipe(Effect.provide(MemoryTasks.layer())))
