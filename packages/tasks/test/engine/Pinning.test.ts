/**
 * Tasks that stay with the deployment that began them.
 */
import { describe, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { inspected, toWait } from "./deployments.ts"
import { durable, ended, get, submit, textOf, work } from "./kit.ts"

const database = Effect.promise(() => sharedPostgres().then((server) => server.createDatabase()))

/** A worker whose steps have its name as their value. */
const worker = (url: string, deployment: string | undefined, pools = ["default"]) => {
  const said = (name: string) =>
    Step.run(name, { success: Schema.String }, () => Effect.succeed(`${name} ${deployment}`))
  const handler = durable(() =>
    Effect.gen(function*() {
      const first = yield* said("first")
      yield* Task.awaitEvent("go on")
      return `${first}, ${yield* said("second")}`
    })
  )
  return Effect.gen(function*() {
    const engine = yield* Layer.build(
      PostgresTasks.layer({ url, deployment, pools, pollInterval: 20, shutdownTimeout: 0 })
    )
    yield* Effect.provideContext(work({ pinned: { ...handler, pinned: true }, free: handler }), engine)
    return engine
  })
}

const goOn = (id: string) => Effect.flatMap(TaskEngine, ({ send }) => send(id, "go on", null))

describe.skipIf(unavailable !== undefined && !required)("versioning: \"pinned\"", () => {
  it.live("a pinned task goes on with its deployment, and any other with each", () =>
    Effect.gen(function*() {
      const url = yield* database
      const front = yield* Layer.build(PostgresTasks.layer({ url, runTasks: false, pollInterval: 20 }))
      yield* Effect.gen(function*() {
        const [pinned, free] = yield* Effect.scoped(
          Effect.gen(function*() {
            yield* worker(url, "v1")
            const tasks = yield* Effect.all([submit("pinned"), submit("free")])
            for (const { id } of tasks) yield* toWait(id)
            return tasks
          })
        )
        expect((yield* get(pinned.id))?.pool).toBe("default@v1")
        expect((yield* get(free.id))?.pool).toBe("default")
        yield* goOn(pinned.id)
        yield* goOn(free.id)
        yield* Effect.scoped(Effect.gen(function*() {
          yield* worker(url, "v2")
          expect(textOf(yield* ended(free.id))).toBe("first v1, second v2")
          const later = yield* submit("pinned")
          yield* toWait(later.id)
          expect((yield* get(later.id))?.pool).toBe("default@v2")
          expect((yield* inspected(pinned.id)).place._tag).toBe("Ready")
          // The first deployment runs again, beside the second one.
          yield* worker(url, "v1")
          expect(textOf(yield* ended(pinned.id))).toBe("first v1, second v1")
        }))
      }).pipe(Effect.provideContext(front))
    }).pipe(Effect.scoped))

  it.live("an operator moves a pinned task to another pool, where it goes on", () =>
    Effect.gen(function*() {
      const url = yield* database
      const front = yield* Layer.build(PostgresTasks.layer({ url, runTasks: false, pollInterval: 20 }))
      yield* Effect.gen(function*() {
        const { changeMany, inspect, list } = yield* TaskAdmin
        const task = yield* Effect.scoped(
          Effect.gen(function*() {
            yield* worker(url, "v1")
            return yield* Effect.tap(submit("pinned"), ({ id }) => toWait(id))
          })
        )
        yield* goOn(task.id)
        yield* worker(url, "v2")
        expect((yield* list({ pool: "default@v1" })).map(({ state }) => state.id)).toEqual([task.id])
        const page = yield* changeMany({ pool: "default@v1" }, { action: "move", pool: "default" }, { by: "ada" })
        expect(page).toMatchObject({ changed: 1, skipped: [] })
        expect(textOf(yield* ended(task.id))).toBe("first v1, second v2")
        expect((yield* inspect(task.id))?.actions).toMatchObject([{ action: "move", by: "ada", detail: "default" }])
        const other = yield* submit("free")
        yield* toWait(other.id)
        const tooLong = changeMany({}, { action: "move", pool: "p".repeat(513) })
        expect((yield* Effect.flip(tooLong)).message).toBe("the pool of a task exceeds 512 characters")
      }).pipe(Effect.provideContext(front))
    }).pipe(Effect.scoped))

  it.live("a worker without a deployment pins nothing, and says so once", () =>
    Effect.gen(function*() {
      const url = yield* database
      const logged: Array<string> = []
      const logger = Logger.make(({ message }) => void logged.push(String(message)))
      yield* Effect.gen(function*() {
        const engine = yield* worker(url, undefined)
        yield* Effect.gen(function*() {
          for (let n = 0; n < 2; n++) {
            const { id } = yield* submit("pinned")
            yield* toWait(id)
            expect((yield* get(id))?.pool).toBe("default")
          }
        }).pipe(Effect.provideContext(engine))
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
      expect(logged.filter((line) => line.includes("not pinned"))).toEqual([
        "the tasks of pinned are not pinned: this worker has no `deployment`"
      ])
    }).pipe(Effect.scoped))

  it.live("a deployment has 1 to 100 characters", () =>
    Effect.gen(function*() {
      const url = yield* database
      for (const deployment of ["", "v".repeat(101)]) {
        const { message } = yield* Effect.flip(Layer.build(PostgresTasks.layer({ url, deployment })))
        expect(message).toBe("deployment must have 1 to 100 characters")
      }
    }).pipe(Effect.scoped))
})
