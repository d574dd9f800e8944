import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { durable, ended, plain, submit, textOf, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer())

it.effect("a plain handler runs as a task", () =>
  Effect.gen(function*() {
    yield* work({ hello: plain(({ name }) => Effect.succeed(`Hello, ${name}`)) })
    const { id, status } = yield* submit("hello", { args: { name: "Ada" } })
    expect(status).toBe("working")
    const state = yield* ended(id)
    expect(state.status).toBe("completed")
    expect(textOf(state)).toBe("Hello, Ada")
  }).pipe(memory))

it.effect("a durable handler runs its steps", () =>
  Effect.gen(function*() {
    yield* work({
      add: durable(() =>
        Effect.gen(function*() {
          const one = yield* Step.run("one", { success: Schema.Number }, () => Effect.succeed(1))
          const two = yield* Step.run("two", { success: Schema.Number }, () => Effect.succeed(2))
          return `${one + two}`
        })
      )
    })
    const { id } = yield* submit("add")
    expect(textOf(yield* ended(id))).toBe("3")
  }).pipe(memory))
