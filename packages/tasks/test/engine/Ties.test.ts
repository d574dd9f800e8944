/**
 * Branches that end at the same time: the order in which a handler has observed their ends is the same in each later
 * run.
 */
import { describe, it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { id as taskId } from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { durable, ended, pass, settled, submit, textOf, work } from "./kit.ts"

/** The orders that the runs of each task have observed. */
const observed = () => {
  const orders = new Map<string, Array<string>>()
  const note = (order: string) => Effect.map(taskId, (id) => void orders.set(id, [...orders.get(id) ?? [], order]))
  return { orders, note }
}

const step = (name: string, execute: Effect.Effect<void>) =>
  Step.run(name, { success: Schema.String }, () => Effect.as(execute, name))

type Branches = (execute: () => Effect.Effect<void>) => Effect.Effect<string, never, CurrentTask>

const kinds: ReadonlyArray<readonly [what: string, branches: Branches]> = [
  ["two steps that race", (execute) => Effect.raceFirst(step("a", execute()), step("b", execute()))],
  ["three steps that race, one of them after another", (execute) =>
    Effect.raceFirst(
      Effect.raceFirst(step("a", execute()), step("b", execute())),
      Effect.andThen(step("first", execute()), step("c", execute()))
    )],
  [
    "steps with names of 300 characters",
    (execute) => Effect.raceFirst(step(`a ${"x".repeat(300)}`, execute()), step(`b ${"x".repeat(300)}`, execute()))
  ],
  ["four steps side by side", (execute) => {
    const order: Array<string> = []
    const branch = (name: string) => Effect.map(step(name, execute()), (value) => void order.push(value))
    return Effect.map(
      Effect.all(["a", "b", "c", "d"].map(branch), { concurrency: "unbounded" }),
      () => order.join()
    )
  }]
]

describe("ties", () => {
  for (const [what, branches] of kinds) {
    it.effect(`${what}: observed in the same order in each of three runs, for 60 tasks`, () =>
      Effect.gen(function*() {
        const { note, orders } = observed()
        yield* work({
          race: durable(() =>
            Effect.gen(function*() {
              const order = yield* branches(() => Effect.sleep(10))
              yield* note(order)
              yield* Step.sleep("one", "10 seconds")
              yield* Step.sleep("two", "10 seconds")
              return order
            })
          )
        })
        const tasks = yield* Effect.forEach(Array.from({ length: 60 }), () => submit("race"))
        yield* settled
        yield* pass(40)
        for (const { id } of tasks) {
          const runs = orders.get(id)!
          expect(runs).toHaveLength(3)
          expect(new Set(runs).size).toBe(1)
          expect(textOf(yield* ended(id))).toBe(runs[0])
        }
      }).pipe(Effect.provide(MemoryTasks.layer())))
  }
})

it.effect("a sleep may have the name of a question's timer or of a retry", () =>
  Effect.gen(function*() {
    const late = Effect.flatMap(McpRequest, (request) =>
      Effect.ignore(request.request("elicitation/create", { message: "?" }, { key: "q", timeout: "1 day" })))
    yield* work({
      both: durable(() =>
        Effect.as(Effect.raceFirst(Step.sleep("timeout/q", "1 hour"), late), "Slept")
      )
    })
    const { id } = yield* submit("both")
    yield* settled
    yield* pass(3700, 60)
    expect(textOf(yield* ended(id))).toBe("Slept")
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))
