/**
 * The steps that a worker runs, as operators see them, on each store.
 */
import { describe, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin, type TaskPlace } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { hostname, tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, submit, work } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const application = "bakery 1.2.3"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-steps-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** The engine, and the service of an operator in another process. */
const stores = [
  ["memory", Effect.succeed({ engine: MemoryTasks.layer({ application }), beside: undefined })],
  [
    "SQLite",
    Effect.map(folder, (folder) => {
      const filename = join(folder, "tasks.db")
      return { engine: SqliteTasks.layer({ filename, application }), beside: SqliteTasks.layerAdmin({ filename }) }
    })
  ],
  ...server === undefined ? [] : [
    [
      "PostgreSQL",
      Effect.map(Effect.suspend(() => Effect.promise(() => server.createDatabase())), (url) => ({
        engine: PostgresTasks.layer({ url, application, leaseTimeout: "1 second" }),
        beside: PostgresTasks.layerAdmin({ url })
      }))
    ] as const
  ]
] as const

for (const [store, opened] of stores) {
  describe(`running steps · ${store}`, () => {
    it.live("shows the step that a task executes, since when, and the process", () =>
      Effect.gen(function*() {
        const { beside, engine } = yield* opened
        const context = yield* Layer.build(engine)
        const admin = beside === undefined
          ? yield* Effect.provideContext(TaskAdmin, context)
          : yield* Effect.provideContext(TaskAdmin, yield* Effect.suspend(() => Layer.build(beside)))
        yield* Effect.gen(function*() {
          yield* work({
            bakes: durable(({ hangs }) =>
              Effect.as(
                Effect.andThen(
                  Step.run("dough", {}, () => Effect.void),
                  Step.run("oven", {}, () =>
                    hangs === true
                      ? Effect.andThen(Step.heartbeat({ cakes: 3 }), Effect.never)
                      : Effect.void)
                ),
                ""
              )
            )
          })
          for (let count = 0; count < 5; count++) yield* ended((yield* submit("bakes")).id)
          const before = Date.now()
          const { id } = yield* submit("bakes", { args: { hangs: true } })
          const hasStep = (place: TaskPlace | undefined) => place?._tag === "Running" && place.steps.length > 0
          const [listed] = yield* Effect.repeat(Effect.delay(admin.list({ ids: [id] }), 50), {
            until: ([task]) => hasStep(task?.place)
          })
          const process_ = { host: hostname(), pid: process.pid, application }
          expect(listed!.place).toMatchObject({
            _tag: "Running",
            process: process_,
            steps: [{ name: "oven", attempt: 1, medianMs: expect.any(Number), heartbeat: undefined }]
          })
          const inspected = (options?: { readonly values: boolean }) =>
            Effect.map(
              admin.inspect(id, options),
              (task) => (task!.place as Extract<TaskPlace, { _tag: "Running" }>).steps[0]
            )
          const step = yield* inspected()
          expect(step!.heartbeat).toMatchObject({ details: undefined })
          expect(step!.heartbeat!.at).toBeGreaterThanOrEqual(before - 1000)
          expect((yield* inspected({ values: true }))!.heartbeat).toMatchObject({ details: "{\"cakes\":3}" })
          expect(step!.medianMs).toBeGreaterThanOrEqual(0)
          // The clock of the database may differ by less than the step has run.
          expect(step!.startedAt).toBeGreaterThanOrEqual(before - 1000)
          expect(step!.startedAt).toBeLessThan(Date.now())
          const workers = yield* admin.workers
          expect(workers.map(({ application, host, pid }) => ({ application, host, pid }))).toEqual(
            store === "PostgreSQL" ? [process_] : []
          )
        }).pipe(Effect.provideContext(context))
      }).pipe(Effect.scoped), 120_000)
  })
}
