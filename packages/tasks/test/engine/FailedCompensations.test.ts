/**
 * Compensations that have failed, as operators see them, on each store.
 */
import { describe, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, submit, work } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const memory = MemoryTasks.layer({ pollInterval: 50 })
const postgres = Layer.unwrap(Effect.map(
  Effect.suspend(() => Effect.promise(() => server!.createDatabase())),
  (url) => PostgresTasks.layer({ url, pollInterval: 50 })
))

const stores = [
  ["memory", memory],
  ["encrypted", Layer.provide(memory, Encryption.layer({ keys: ["a key of thirty-two characters, or more"] }))],
  ...server === undefined ? [] : [["PostgreSQL", postgres] as const]
] as const

for (const [store, layer] of stores) {
  describe(`failed compensations · ${store}`, () => {
    it.live(
      "lists the tasks, and shows each failed compensation once, also after a second run",
      () =>
        Effect.gen(function*() {
          const { inspect, list } = yield* TaskAdmin
          const order = (last: Effect.Effect<void>) =>
            durable(() =>
              Effect.gen(function*() {
                yield* Step.compensate(() => last)
                yield* Step.compensate(() => Effect.die(new Error("The bank is closed")))
                yield* Step.compensate(() => Effect.void)
                return yield* Effect.fail({ message: "No" })
              })
            )
          const first = yield* Scope.make()
          yield* Scope.provide(work({ order: order(Effect.never), fine: durable(() => Effect.succeed("")) }), first)
          yield* ended((yield* submit("fine")).id)
          const { id } = yield* submit("order")
          const failed = { hasFailedCompensation: true } as const
          yield* Effect.repeat(Effect.delay(list(failed), 20), { until: (tasks) => tasks.length > 0 })
          // The first run ends in its last compensation, and the second one runs all of them again.
          yield* Scope.close(first, Exit.void)
          yield* work({ order: order(Effect.die("No ledger")) })
          yield* ended(id)
          expect((yield* list(failed)).map(({ state }) => state.id)).toEqual([id])
          expect((yield* inspect(id))!.failedCompensations).toMatchObject([
            { number: 2, message: "The bank is closed" },
            { number: 1, message: "No ledger" }
          ])
          expect((yield* inspect(id))!.actions).toEqual([])
        }).pipe(Effect.scoped, Effect.provide(layer)),
      120_000
    )
  })
}
