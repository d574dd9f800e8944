/**
 * Queries that the body of a task answers from its state: in its process, in another one, and after its end.
 */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { isUnavailable, stores, toWait } from "./deployments.ts"
import { ask, durable, ended, plain, submit, work } from "./kit.ts"

const query = (id: string, name: string, args?: {}) => Effect.flatMap(TaskEngine, ({ query }) => query(id, name, args))
const failure = (id: string, name: string, args?: {}) =>
  Effect.map(Effect.flip(query(id, name, args)), ({ reason }) => ({ tag: reason._tag, message: reason.message }))

/** A task that imports three files, waits, and imports the others. */
const importing = () => {
  const executed: Array<string> = []
  const handler = durable(() =>
    Effect.gen(function*() {
      const done: Array<string> = []
      yield* Task.query("progress", () => ({ done, of: 5 }))
      yield* Task.query("has", ({ file }) => done.includes(`${file as string}`))
      for (const file of ["a", "b", "c", "d", "e"]) {
        done.push(
          yield* Step.run(file, { success: Schema.String }, () =>
            Effect.sync(() => {
              executed.push(file)
              return file
            }))
        )
        if (file === "c") yield* Task.awaitEvent("go on")
      }
      return "done"
    })
  )
  return { executed, handler }
}

for (const [store, open] of stores) {
  describe.skipIf(isUnavailable(store))(store, () => {
    it.live("answers while the task waits, in any process, and after its end, and runs no step again", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { executed, handler } = importing()
        const id = yield* deploy(
          { t: handler },
          Effect.gen(function*() {
            const { id } = yield* submit("t")
            yield* toWait(id)
            expect(yield* query(id, "progress")).toEqual({ done: ["a", "b", "c"], of: 5 })
            return id
          })
        )
        yield* deploy(
          { t: handler },
          Effect.gen(function*() {
            expect(yield* query(id, "has", { file: "c" })).toBe(true)
            expect(yield* query(id, "has", { file: "d" })).toBe(false)
            yield* (yield* TaskEngine).send(id, "go on", null)
            yield* ended(id)
            expect(yield* query(id, "progress")).toEqual({ done: ["a", "b", "c", "d", "e"], of: 5 })
          })
        )
        expect(executed).toEqual(["a", "b", "c", "d", "e"])
      }).pipe(Effect.scoped))
  })
}

const memory = Effect.provide(MemoryTasks.layer())

it.live("answers from the run in this process while a step executes, and sees what that has set", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const go = yield* Deferred.make<void>()
    yield* work({
      t: durable(() =>
        Effect.gen(function*() {
          let rows = 0
          yield* Task.query("rows", () => rows)
          yield* Step.run("read", {}, () =>
            Effect.andThen(
              Effect.sync(() => void (rows = 7)),
              Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go))
            ))
          return "done"
        })
      )
    })
    const { id } = yield* submit("t")
    yield* Deferred.await(begun)
    expect(yield* query(id, "rows")).toBe(7)
    yield* Deferred.succeed(go, undefined)
    yield* ended(id)
    // The replay has not run the step.
    expect(yield* query(id, "rows")).toBe(0)
  }).pipe(memory))

it.live("the newest function with a name answers, and a task that asks is queried at its question", () =>
  Effect.gen(function*() {
    yield* work({
      t: durable(() =>
        Effect.gen(function*() {
          yield* Task.query("state", () => "before")
          yield* Step.run("a", {}, () => Effect.void)
          yield* Task.query("state", () => "asking")
          yield* Effect.orDie(ask("Sure?"))
          return "done"
        })
      )
    })
    const { id } = yield* submit("t")
    yield* toWait(id)
    expect(yield* query(id, "state")).toBe("asking")
  }).pipe(memory))

it.live("fails with the reason for what it cannot answer", () =>
  Effect.gen(function*() {
    yield* work({
      t: durable(() =>
        Effect.gen(function*() {
          yield* Task.query("throws", () => {
            throw new Error("no answer yet")
          })
          yield* Task.query("cycle", () => {
            const cycle: Record<string, unknown> = {}
            return Object.assign(cycle, { cycle })
          })
          yield* Task.query("nothing", () => undefined)
          yield* Task.awaitEvent("end")
          yield* Task.query("late", () => "late")
          return "done"
        })
      ),
      step: durable(() =>
        Effect.as(Step.run("a", {}, () => Effect.orDie(Task.query("q", () => 1)) as Effect.Effect<void>), "done")
      ),
      plain: plain(() => Effect.succeed("plain"))
    })
    const { id } = yield* submit("t")
    yield* toWait(id)
    expect(yield* failure(id, "throws")).toEqual({
      tag: "QueryError",
      message: "the query \"throws\" has failed: no answer yet"
    })
    expect(yield* failure(id, "cycle")).toMatchObject({ tag: "QueryError" })
    expect(yield* query(id, "nothing")).toBeUndefined()
    expect(yield* failure(id, "late")).toEqual({
      tag: "QueryError",
      message: "the task has no query \"late\" at its place: it has \"throws\", \"cycle\", \"nothing\""
    })
    expect(yield* failure(id, "throws", [])).toMatchObject({ tag: "InvalidOption" })
    expect(yield* failure("0".repeat(43), "throws")).toEqual({ tag: "UnknownTask", message: "no task has this id" })
    const other = yield* submit("plain")
    yield* ended(other.id)
    expect(yield* failure(other.id, "q")).toEqual({
      tag: "QueryError",
      message: "the task has no query \"q\" at its place"
    })
    const unknown = yield* submit("unknown")
    expect(yield* failure(unknown.id, "q")).toMatchObject({ tag: "UnknownTool" })
    const inStep = yield* submit("step")
    expect((yield* ended(inStep.id)).status).toBe("failed")
  }).pipe(memory))
