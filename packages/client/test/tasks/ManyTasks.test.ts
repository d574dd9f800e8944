/** A host has the same fibers and memory after many tasks as before. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Client from "../../src/Client.ts"
import { census } from "../support/census.ts"
import { pass } from "./kit.ts"
import { SeveralTasks } from "./several.ts"

describe("1,000 tasks of one client", () => {
  it.effect("2026-07-28 · retains nothing of completed and of interrupted tasks", () =>
    Effect.gen(function*() {
      const server = new SeveralTasks()
      const client = yield* Client.make(server.script.transport)
      const run = (count: number, ended: boolean) =>
        Effect.gen(function*() {
          const first = server.tasks.size
          const calls = yield* Effect.forEach(
            Array.from({ length: count }),
            () => Effect.forkDetach(client.callTool("t"))
          )
          yield* pass("1 second")
          assert.strictEqual(server.standing, 1)
          if (ended) server.finish(...[...server.tasks.keys()].slice(first))
          yield* pass("2 seconds")
          yield* ended ? Fiber.joinAll(calls) : Fiber.interruptAll(calls)
          yield* pass("1 second")
          assert.strictEqual(server.standing, 0)
        })
      yield* run(10, true)
      yield* run(10, false)
      const before = yield* census
      yield* run(500, true)
      yield* run(500, false)
      assert.deepStrictEqual(yield* census, before)
    }))
})
