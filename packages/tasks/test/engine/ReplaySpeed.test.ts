import { expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as kit from "./kit.ts"

it.effect("another worker replays recorded steps quickly, also beside a step that executes for long", () =>
  Effect.gen(function*() {
    let found = 0
    const long = Step.run("long", {}, () => Effect.sleep("1 hour"))
    const short = Effect.forEach(
      Array.from({ length: 50 }, (_, index) => `step ${index}`),
      (name) => Step.run(name, {}, () => Effect.void),
      { discard: true }
    )
    const steps = Effect.andThen(short, Effect.sync(() => void found++))
    const order = kit.durable(() => Effect.as(Effect.all([long, steps], { concurrency: "unbounded" }), "Done"))
    const work = Effect.tap(Scope.make(), (scope) => Scope.provide(kit.work({ order }), scope))
    const stop = (scope: Scope.Closeable) =>
      Effect.andThen(Effect.forkChild(Scope.close(scope, Exit.void)), kit.pass(4))
    const first = yield* work
    yield* kit.submit("order")
    for (let second = 0; second < 20 && found < 1; second++) yield* kit.pass(1)
    yield* stop(first)
    const second = yield* work
    for (let second = 0; second < 4 && found < 2; second++) yield* kit.pass(1)
    expect(found).toBe(2)
    yield* stop(second)
  }).pipe(Effect.provide(MemoryTasks.layer())))
