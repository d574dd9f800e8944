/**
 * Sections that a cancellation waits for, and branches that are cancelled alone.
 */
import { describe, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { inspected, isUnavailable, stores, toSettled, toWait } from "./deployments.ts"
import { ask, durable, ended, pass, submit, textOf, work } from "./kit.ts"

/** Steps that record what they have done; one of them waits until the test opens it. */
const recorder = () => {
  const done: Array<string> = []
  const begun = Deferred.makeUnsafe<void>()
  const open = Deferred.makeUnsafe<void>()
  const did = (name: string) => Effect.sync(() => void done.push(name))
  const step = (name: string) => Step.run(name, {}, () => did(name))
  const slow = (name: string): Effect.Effect<void, never, CurrentTask> =>
    Step.run(name, {}, () =>
      Deferred.succeed(begun, undefined).pipe(
        Effect.andThen(Deferred.await(open)),
        Effect.andThen(did(name)),
        Effect.onInterrupt(() => did(`${name} interrupted`))
      ))
  const undoable = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
    effect.pipe(Step.withCompensation((_: A, reason) => step(`undo ${name}: ${reason}`)))
  return { begun, done, open, slow, step, undoable }
}

const cancel = (id: string) => Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))

for (const [store, open] of stores) {
  describe.skipIf(isUnavailable(store))(store, () => {
    it.live("a cancelled task ends its section, and then compensates, its own steps included", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { begun, done, open: go, slow, step, undoable } = recorder()
        const transfer = durable(() =>
          Effect.gen(function*() {
            yield* undoable("before", step("before"))
            yield* Task.nonCancellable(
              "transfer",
              Effect.andThen(undoable("debit", slow("debit")), undoable("credit", step("credit")))
            )
            yield* step("after")
            return "transferred"
          })
        )
        yield* deploy(
          { transfer },
          Effect.gen(function*() {
            const { id } = yield* submit("transfer")
            yield* Deferred.await(begun)
            expect(yield* cancel(id)).toBe(true)
            expect((yield* ended(id)).status).toBe("cancelled")
            yield* Deferred.succeed(go, undefined)
            yield* toSettled(id)
            expect(done).toEqual([
              ...["before", "debit", "credit"],
              ...["undo credit: cancelled", "undo debit: cancelled", "undo before: cancelled"]
            ])
          })
        )
      }).pipe(Effect.scoped))

    it.live("a section goes on in the next process, if its task was cancelled and its process has ended", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { begun, done, open: go, slow, step, undoable } = recorder()
        const transfer = durable(() =>
          Effect.gen(function*() {
            yield* Task.nonCancellable(
              "transfer",
              Effect.gen(function*() {
                yield* undoable("debit", step("debit"))
                yield* slow("credit")
                yield* step("receipt")
              })
            )
            yield* step("after")
            return "transferred"
          })
        )
        const id = yield* deploy(
          { transfer },
          Effect.gen(function*() {
            const { id } = yield* submit("transfer")
            yield* Deferred.await(begun)
            return id
          })
        )
        expect(done).toEqual(["debit", "credit interrupted"])
        // It is cancelled while no process runs it.
        yield* deploy({}, cancel(id))
        yield* Deferred.succeed(go, undefined)
        yield* deploy({ transfer }, toSettled(id))
        expect(done).toEqual(["debit", "credit interrupted", "credit", "receipt", "undo debit: cancelled"])
      }).pipe(Effect.scoped))

    it.live("a branch that is cancelled is undone once, and the task goes on", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { begun, done, slow, step, undoable } = recorder()
        const travel = durable(() =>
          Effect.gen(function*() {
            yield* undoable("train", step("train"))
            const hotel = yield* Task.branch(
              "hotel",
              Effect.andThen(undoable("room", step("room")), undoable("breakfast", slow("breakfast")))
            )
            yield* Step.run("wait", {}, () => Deferred.await(begun))
            yield* hotel.cancel
            yield* hotel.cancel
            const error = yield* Effect.orDie(Effect.flip(hotel.join))
            yield* Task.awaitEvent("morning")
            return yield* Effect.fail({ message: `${error.reason._tag}: ${error.message}` })
          })
        )
        const id = yield* deploy(
          { travel },
          Effect.gen(function*() {
            const { id } = yield* submit("travel")
            yield* toWait(id)
            return id
          })
        )
        const undone = ["train", "room", "breakfast interrupted", "undo room: cancelled"]
        expect(done).toEqual(undone)
        yield* deploy(
          { travel },
          Effect.gen(function*() {
            yield* (yield* TaskEngine).send(id, "morning", null)
            expect(textOf(yield* ended(id))).toBe("Cancelled: the branch \"hotel\" was cancelled")
          })
        )
        expect(done).toEqual([...undone, "undo train: failed"])
      }).pipe(Effect.scoped))

    it.live("a task that is cancelled while it undoes a branch runs each compensation once", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { begun, done, open: go, slow, step, undoable } = recorder()
        const travel = durable(() =>
          Effect.gen(function*() {
            yield* undoable("train", step("train"))
            const hotel = yield* Task.branch(
              "hotel",
              Effect.andThen(
                undoable("room", step("room")),
                step("breakfast").pipe(Step.withCompensation(() => slow("undo breakfast")))
              )
            )
            yield* hotel.join
            yield* hotel.cancel
            return "at home"
          }).pipe(Effect.catchTag("TaskError", ({ message }) => Effect.succeed(message)))
        )
        yield* deploy(
          { travel },
          Effect.gen(function*() {
            const { id } = yield* submit("travel")
            yield* Deferred.await(begun)
            yield* cancel(id)
            yield* Deferred.succeed(go, undefined)
            yield* toSettled(id)
            const { failedCompensations } = yield* inspected(id)
            expect(failedCompensations).toEqual([])
          })
        )
        expect(done).toEqual([
          ...["train", "room", "breakfast"],
          ...["undo breakfast", "undo room: cancelled", "undo train: cancelled"]
        ])
      }).pipe(Effect.scoped))
  })
}

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

it.effect("a section fails with the failure of its effect, and returns its value, as if it were not there", () =>
  Effect.gen(function*() {
    yield* work({
      t: durable(() =>
        Effect.gen(function*() {
          const value = yield* Task.nonCancellable(
            "first",
            Step.run("a", { success: Schema.String }, () => Effect.succeed("A"))
          )
          const inner = Task.nonCancellable("inner", Effect.fail({ message: `failed after ${value}` }))
          return yield* Task.nonCancellable("second", inner)
        })
      )
    })
    const { id } = yield* submit("t")
    expect(textOf(yield* ended(id))).toBe("failed after A")
  }).pipe(memory))

it.effect("a branch in a branch is undone with the outer one, or before it", () =>
  Effect.gen(function*() {
    const { done, step, undoable } = recorder()
    const outer = (cancelsInner: boolean) =>
      durable(() =>
        Effect.gen(function*() {
          const hotel = yield* Task.branch(
            "hotel",
            Effect.gen(function*() {
              yield* undoable("room", step("room"))
              const meal = yield* Task.branch("meal", undoable("breakfast", step("breakfast")))
              yield* meal.join
              if (cancelsInner) yield* meal.cancel
            })
          )
          yield* Effect.orDie(hotel.join)
          yield* hotel.cancel
          return "done"
        })
      )
    yield* work({ both: outer(true), outer: outer(false) })
    for (const tool of ["both", "outer"]) {
      const { id } = yield* submit(tool)
      expect(textOf(yield* ended(id))).toBe("done")
      expect(done.splice(0)).toEqual(["room", "breakfast", "undo breakfast: cancelled", "undo room: cancelled"])
    }
  }).pipe(memory))

for (const replayAfterEachEvent of [false, true]) {
  it.live(`sections, branches and queries are the same in a run after each event: ${replayAfterEachEvent}`, () =>
    Effect.scoped(Effect.gen(function*() {
      const done: Array<string> = []
      const step = (name: string) =>
        Step.run(name, { success: Schema.String }, () => Effect.sync(() => (done.push(name), name)))
      const travel = Task.make("travel")
      const travelling = Task.layer(travel, () =>
        Effect.gen(function*() {
          const places: Array<string> = []
          yield* Task.query("places", () => places)
          const hotel = yield* Task.branch(
            "hotel",
            Effect.andThen(
              step("room").pipe(Step.withCompensation(() => step("no room"))),
              Effect.andThen(Step.sleep("night", "8 hours"), step("breakfast"))
            )
          )
          places.push(yield* step("train"))
          yield* Step.sleep("ride", "1 hour")
          yield* hotel.cancel
          places.push(yield* Task.nonCancellable("ferry", Effect.andThen(step("on board"), step("on land"))))
          return places.join(", ")
        }))
      const server = McpServer.layer({ name: "office", version: "1.0.0" }, travelling, Tasks.layer())
      const test = yield* TaskTest.make(server, { replayAfterEachEvent })
      const { await: value, id } = yield* test.run(Task.submit(travel, {}))
      expect(yield* test.run(value)).toBe("train, on land")
      // A step that runs beside an event runs again.
      expect([...new Set(done)].toSorted()).toEqual(["no room", "on board", "on land", "room", "train"])
      expect(yield* test.run(Effect.flatMap(TaskEngine, ({ query }) => query(id, "places")))).toEqual([
        "train",
        "on land"
      ])
    })))
}

it.effect("other branches of a cancelled task start nothing while a section goes on", () =>
  Effect.gen(function*() {
    const { begun, done, open, slow, step } = recorder()
    yield* work({
      t: durable(() =>
        Effect.as(
          Effect.all([
            Task.nonCancellable("section", Effect.andThen(slow("first"), step("second"))),
            Effect.forEach(Array.from({ length: 100 }, (_, n) => n), (n) => Step.sleep(`tick ${n}`, "1 second"))
          ], { concurrency: "unbounded" }),
          "done"
        )
      )
    })
    const { id } = yield* submit("t")
    yield* pass(3)
    yield* Deferred.await(begun)
    yield* cancel(id)
    yield* pass(30)
    const { log } = yield* inspected(id)
    expect(log.filter(({ kind }) => kind === "fired").length).toBeLessThan(6)
    yield* Deferred.succeed(open, undefined)
    yield* pass(10)
    expect(done).toEqual(["first", "second"])
    expect((yield* inspected(id)).place._tag).toBe("Settled")
  }).pipe(memory))

it.effect("waits for others are defects in a section, and sections and branches in steps", () =>
  Effect.gen(function*() {
    const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => Task.nonCancellable("s", effect)
    const wrong: Record<string, Effect.Effect<unknown, unknown, any>> = {
      asks: within(ask("Sure?")),
      awaits: within(Task.awaitEvent("paid")),
      step: Step.run("a", {}, () => Effect.orDie(within(Effect.void)) as Effect.Effect<void>),
      branch: Step.run("a", {}, () => Effect.asVoid(Task.branch("b", Effect.void)) as Effect.Effect<void>),
      twice: Effect.andThen(within(Effect.void), within(Effect.void))
    }
    yield* work(Object.fromEntries(
      Object.entries(wrong).map(([name, effect]) => [
        name,
        durable(() => Effect.as(effect as Effect.Effect<unknown, { readonly message: string }, never>, "fine"))
      ])
    ))
    for (const tool of Object.keys(wrong)) {
      const { id } = yield* submit(tool)
      expect([tool, (yield* ended(id)).status]).toEqual([tool, "failed"])
    }
  }).pipe(memory, Effect.provideService(References.MinimumLogLevel, "None")))

it.effect("the sleep of a section is waited for when the task is cancelled", () =>
  Effect.gen(function*() {
    const { done, step, undoable } = recorder()
    yield* work({
      t: durable(() =>
        Effect.as(
          Task.nonCancellable(
            "section",
            Effect.andThen(undoable("a", step("a")), Effect.andThen(Step.sleep("long", "1 hour"), step("b")))
          ),
          "done"
        )
      )
    })
    const { id } = yield* submit("t")
    yield* pass(10)
    yield* cancel(id)
    yield* pass(600, 60)
    expect(done).toEqual(["a"])
    yield* pass(3600, 60)
    expect(done).toEqual(["a", "b", "undo a: cancelled"])
    expect((yield* inspected(id)).place._tag).toBe("Settled")
  }).pipe(memory))
