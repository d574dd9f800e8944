/**
 * The order in which tasks that wait for a worker start.
 */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { durable, ended, pass, settled, submit, work } from "./kit.ts"

it.effect("tasks with a higher priority start first, and of equal ones the one that has waited longest", () =>
  Effect.gen(function*() {
    const started: Array<string> = []
    yield* work({
      job: durable(({ name }) =>
        Effect.as(
          Step.run("work", {}, () =>
            Effect.andThen(
              Effect.sync(() => void started.push(name as string)),
              Effect.sleep("1 second")
            )),
          ""
        )
      )
    })
    const jobs = [
      ["first", undefined],
      ["low", -5],
      ["usual", 0],
      ["urgent", 10],
      ["also usual", undefined],
      ["lowest", -1e12],
      ["highest", Infinity],
      ["not a number", Number.NaN]
    ] as const
    const tasks = yield* Effect.forEach(
      jobs,
      ([name, priority]) => Effect.tap(submit("job", { args: { name }, priority }), () => pass(0.01, 0.01))
    )
    yield* settled
    yield* pass(30)
    for (const { id } of tasks) yield* ended(id)
    expect(started).toEqual(["first", "highest", "urgent", "usual", "also usual", "not a number", "low", "lowest"])
  }).pipe(Effect.provide(MemoryTasks.layer({ concurrency: 1 }))))
