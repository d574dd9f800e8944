/** How many tasks a worker runs at the same time that were lost with their workers. */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { SqlClient } from "effect/sql/SqlClient"
import { expect } from "vitest"
import { durable, ended, pass, submit, textOf, work } from "./kit.ts"

/** Tasks that were lost as often as `losses`, each with a step that ends on request. */
const prepare = Effect.fnUntraced(function*(losses: ReadonlyArray<number>) {
  const sql = yield* SqlClient
  const begun: Array<number> = []
  const tasks = yield* Effect.forEach(losses, (attempts, index) =>
    Effect.gen(function*() {
      const { id } = yield* submit("held", { args: { index } })
      yield* sql`UPDATE skein_task_queue SET attempts = ${attempts}, runs = 1, wake_at = ${index} WHERE task_id = ${id}`
      return { id, latch: yield* Latch.make() }
    }))
  const stepOf = (index: number, name: string, effect: Effect.Effect<void>) =>
    Step.run(`${name} ${index}`, {}, () => effect)
  yield* work({
    held: durable(({ index }) =>
      Effect.gen(function*() {
        const number = Number(index)
        yield* stepOf(
          number,
          "first",
          Effect.andThen(Effect.sync(() => begun.push(number)), tasks[number]!.latch.await)
        )
        yield* stepOf(number, "second", tasks[number]!.latch.await)
        return "Done"
      })
    )
  })
  yield* pass(2)
  return {
    /** The tasks that have begun, in the order of their numbers. */
    begun: () => begun.toSorted(),
    /** Lets the first step of a task end; its second one lasts. */
    release: (index: number) =>
      Effect.gen(function*() {
        const { latch } = tasks[index]!
        yield* latch.open
        yield* latch.close
        yield* pass(2)
      }),
    finish: Effect.gen(function*() {
      for (const { latch } of tasks) yield* latch.open
      for (const { id } of tasks) {
        yield* pass(2)
        expect(textOf(yield* ended(id))).toBe("Done")
      }
    })
  }
})

it.effect("a task that was lost twice runs alone at first, and beside as many others as have recovered", () =>
  Effect.gen(function*() {
    const { begun, finish, release } = yield* prepare([2, 2, 2, 2, 2, 2, 0])
    expect(begun()).toEqual([0, 6])
    yield* release(0)
    expect(begun()).toEqual([0, 1, 2, 6])
    yield* release(1)
    expect(begun()).toEqual([0, 1, 2, 3, 4, 6])
    yield* finish
    expect(begun()).toEqual([0, 1, 2, 3, 4, 5, 6])
  }).pipe(Effect.scoped, Effect.provide(MemoryTasks.layer())))

it.effect("a task that was lost three times runs beside no other one that was lost", () =>
  Effect.gen(function*() {
    const { begun, finish, release } = yield* prepare([3, 1, 2, 0, 1])
    expect(begun()).toEqual([0, 3])
    yield* release(0)
    expect(begun()).toEqual([0, 1, 2, 3, 4])
    yield* finish
  }).pipe(Effect.scoped, Effect.provide(MemoryTasks.layer())))

it.effect("tasks that were lost once run together, but not beside one that was lost twice", () =>
  Effect.gen(function*() {
    const { begun, finish, release } = yield* prepare([1, 1, 1, 2])
    expect(begun()).toEqual([3])
    yield* release(3)
    expect(begun()).toEqual([0, 1, 2, 3])
    yield* finish
  }).pipe(Effect.scoped, Effect.provide(MemoryTasks.layer())))
