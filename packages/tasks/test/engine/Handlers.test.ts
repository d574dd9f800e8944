import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { expect } from "vitest"
import { durable, ended, pass, plain, settled, submit, textOf, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer())

it.effect("runs a plain handler as a task", () =>
  Effect.gen(function*() {
    yield* work({ hello: plain(({ name }) => Effect.succeed(`Hello, ${name}`)) })
    const { id, status } = yield* submit("hello", { args: { name: "Ada" } })
    expect(status).toBe("working")
    const state = yield* ended(id)
    expect(state.status).toBe("completed")
    expect(textOf(state)).toBe("Hello, Ada")
  }).pipe(memory))

it.effect("a plain handler that ends while its worker stops has ended: it does not run again", () =>
  Effect.gen(function*() {
    let runs = 0
    const slow = plain(() => Effect.as(Effect.andThen(Effect.sync(() => runs++), Effect.sleep(1000)), "Done"))
    const worker = yield* Scope.make()
    yield* Scope.provide(work({ slow }), worker)
    const { id } = yield* submit("slow")
    yield* settled
    const stopping = yield* Effect.forkChild(Scope.close(worker, Exit.void), { startImmediately: true })
    yield* pass(1)
    yield* Fiber.join(stopping)
    yield* work({ slow })
    yield* pass(2)
    expect(textOf(yield* ended(id))).toBe("Done")
    expect(runs).toBe(1)
  }).pipe(memory))

it.effect("2025-11-25 · SHOULD log the completion of tasks, and include the auth context: at the level Debug", () => {
  const lines: Array<unknown> = []
  const logger = Logger.make(({ fiber, message }) => {
    const { owner, task, tool } = fiber.getRef(References.CurrentLogAnnotations)
    if (String(message).startsWith("task ended")) lines.push([task, tool, owner, message])
  })
  return Effect.gen(function*() {
    yield* work({ well: plain(() => Effect.succeed("")), dies: plain(() => Effect.die("no")) })
    const well = yield* submit("well", { owner: "ada\u001b[2J\u202e" })
    yield* ended(well.id)
    const dies = yield* submit("dies")
    yield* ended(dies.id)
    yield* settled
    expect(lines).toEqual([
      [`${well.id.slice(0, 8)}…`, "well", "ada\\u{1b}[2J\\u{202e}", ["task ended:", "completed"]],
      [`${dies.id.slice(0, 8)}…`, "dies", undefined, ["task ended:", "failed"]]
    ])
  }).pipe(
    memory,
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Debug")
  )
})

it.effect("runs the steps of a durable handler", () =>
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
