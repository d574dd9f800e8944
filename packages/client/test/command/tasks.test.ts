/** A call that has become a task, from a shell. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { call } from "../../src/internal/command/call.ts"
import type { Invocation } from "../../src/internal/command/invocation.ts"
import { pass, result, settle, shapes, TaskServer } from "../tasks/kit.ts"

const plain: Invocation = {
  target: { _tag: "Url", url: new URL("http://x") },
  tool: "t",
  args: {},
  headers: {},
  env: {},
  timeout: undefined,
  leave: false,
  resume: undefined,
  verbose: false,
  json: false
}

for (const shape of shapes) {
  describe(`skein-call · ${shape}`, () => {
    const run = (server: TaskServer, options: Partial<Invocation> = {}) =>
      Effect.gen(function*() {
        const out: Array<string> = []
        const err: Array<string> = []
        const fiber = yield* Effect.forkChild(
          call(server.server.transport, { ...plain, ...options }, {
            print: (text) => Effect.sync(() => void out.push(text)),
            tell: (line) => void err.push(line)
          })
        )
        yield* settle
        // It has asked for the tools, where it had to.
        yield* settle
        return { out, err, fiber }
      })
    const handle = { taskId: "t1", tool: "t", server: "scripted", revision: shape }

    it.effect("--verbose tells of its states on stderr, and the result is on stdout", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { verbose: true })
        for (const statusMessage of ["Heating", "Steeping"]) {
          server.become({ statusMessage })
          server.notify()
          yield* pass("1 second")
        }
        server.become({ status: "completed", result: result("Tea") })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual(yield* Fiber.join(fiber), 0)
        assert.deepStrictEqual(out, ["Tea"])
        assert.deepStrictEqual(err.slice(0, 5), [
          `Connected to scripted 1.0.0 in ${shape}`,
          "Task t1",
          "working",
          "working: Heating",
          "working: Steeping"
        ])
      }))

    it.effect("an interrupted call cancels its task, and says nothing", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(server.task.status, "cancelled")
        assert.deepStrictEqual([out, err], [[], []])
      }))

    it.effect("--leave leaves it running, and prints its handle; --resume takes it up again", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { leave: true })
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(server.task.status, "working")
        assert.deepStrictEqual(out.map((line) => JSON.parse(line)), [handle])
        assert.include(err[0], "--resume")
        const again = yield* run(server, { tool: undefined, resume: JSON.parse(out[0]!) })
        server.become({ status: "completed", result: result("Tea") })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual(yield* Fiber.join(again.fiber), 0)
        assert.deepStrictEqual(again.out, ["Tea"])
        assert.strictEqual(server.count("tools/call"), server.support === "required" && shape === "2025-11-25" ? 2 : 1)
      }))

    it.effect("--timeout is for all of it: then the task is cancelled, or left", () =>
      Effect.gen(function*() {
        for (const leave of [false, true]) {
          const server = new TaskServer(shape)
          const { fiber, out } = yield* run(server, { leave, timeout: 5_000 })
          yield* pass("5 seconds")
          assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "Timeout")
          assert.strictEqual(server.task.status, leave ? "working" : "cancelled")
          assert.deepStrictEqual(out.map((line) => JSON.parse(line)), leave ? [handle] : [])
        }
      }))

    it.effect("of a task that is over nothing is left, whatever became of it", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { leave: true })
        server.become({ status: "cancelled" })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "TaskCancelled")
        assert.deepStrictEqual([out, err], [[], []])
      }))
  })
}
