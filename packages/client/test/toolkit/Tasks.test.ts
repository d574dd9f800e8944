/** Tools that a model calls and that become tasks. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Toolkit from "../../src/Toolkit.ts"
import { type Json, open, pass, result, settle, shapes } from "../tasks/kit.ts"

for (const shape of shapes) {
  describe(shape, () => {
    const called = Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const toolkit = yield* Client.toolkit(client)
      const parts: Array<readonly [preliminary: boolean, text: string]> = []
      const fiber = yield* Effect.forkChild(
        Effect.flatMap(
          toolkit.handle("t", {}),
          (results) =>
            Stream.runForEach(results, ({ preliminary, result }) =>
              Effect.sync(() => {
                const text = result instanceof Toolkit.ToolFailure ? result.message : (result as Json).content[0].text
                parts.push([preliminary, text])
              }))
        )
      )
      yield* settle
      return { server, parts, fiber }
    })

    it.effect("returns the status message of the task as a preliminary result once, then the result", () =>
      Effect.gen(function*() {
        const { fiber, server, parts } = yield* called
        for (const statusMessage of ["Heating", "Heating", "Steeping"]) {
          server.update({ statusMessage })
          server.notify()
          yield* pass("1 second")
        }
        server.update({ status: "completed", statusMessage: "Done", result: result("Tea") })
        server.notify()
        yield* pass("1 second")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(parts, [[true, "Heating"], [true, "Steeping"], [false, "Tea"]])
      }))

    it.effect("reports a failed task to the model as a failure", () =>
      Effect.gen(function*() {
        const { fiber, server, parts } = yield* called
        server.update({ status: "cancelled", statusMessage: "closed for today" })
        server.notify()
        yield* pass("1 second")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(parts, [
          [false, "The task t1 was cancelled at the server: closed for today"]
        ])
      }))

    it.effect("cancels the task when the model is stopped", () =>
      Effect.gen(function*() {
        const { fiber, server } = yield* called
        yield* Fiber.interrupt(fiber)
        yield* settle
        assert.strictEqual(server.task.status, "cancelled")
      }))
  })
}
