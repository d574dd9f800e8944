/**
 * No client knows the task of a call that waits: it is deleted after its result, and then does not count against
 * limits.
 */
import { expect, it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { SqlClient } from "effect/sql/SqlClient"
import { pass, settled } from "../engine/kit.ts"
import * as kit from "../protocol/kit.ts"

const quick = Task.layer(Task.make("quick"), () => Effect.as(Step.run("one", {}, () => Effect.void), "done"))
const slow = Task.layer(Task.make("slow"), () => Effect.as(Step.sleep("long", "1 hour"), "done"))

const count = (context: Context.Context<never>, table: string) => {
  const sql = Context.get(context as Context.Context<SqlClient>, SqlClient)
  return Effect.map(sql`SELECT * FROM ${sql(table)}`, (rows) => rows.length)
}

for (const revision of ["2024-11-05", "2025-11-25", "2026-07-28"] as const) {
  it.effect(`${revision} · deletes the task of a waiting call ten seconds after its result or its cancellation`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect, context } = yield* kit.server(
        [quick, slow],
        { limits: { perClient: { live: 5, retained: 5 } } },
        MemoryTasks.layer({ pollInterval: "1 minute" }) as never
      )
      const client = yield* connect({ principal: { id: "ann" }, revision, can: {} })
      const call = (name: string) =>
        Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(client.call(name), { startImmediately: true })
          yield* settled
          return fiber
        })
      for (let turn = 0; turn < 3; turn++) {
        for (let n = 0; n < 4; n++) {
          const fiber = yield* call("quick")
          expect((yield* Fiber.join(fiber)).content).toEqual([{ type: "text", text: "done" }])
        }
        const id = client.send("tools/call", { name: "slow", arguments: {} })
        yield* settled
        client.notify("notifications/cancelled", { requestId: id })
        yield* settled
        expect(yield* count(context, "skein_tasks")).toBe(5)
        // A cancelled task counts until it has been compensated.
        yield* pass(40, 1)
        expect(yield* count(context, "skein_tasks")).toBe(0)
        for (const table of ["skein_task_queue", "skein_task_log"]) expect(yield* count(context, table)).toBe(0)
      }
    })))
}
