/** A call that becomes a task. */
import { assert, describe, it } from "@effect/vitest"
import type { ClientError } from "@skein/client/ClientError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { pass, result, settle, shapes, TaskServer } from "../../client/test/tasks/kit.ts"
import { call } from "../src/internal/calls/call.ts"
import type { Invocation } from "../src/internal/calls/call.ts"
import { resolveEnv } from "../src/internal/connection/connection.ts"
import type { CommandFailed } from "../src/internal/base/process.ts"
import { invocationOf } from "./invocation.ts"

/** The reason of a failure of the client. */
const reasonOf = (error: ClientError | CommandFailed): string =>
  error._tag === "ClientError" ? error.reason._tag : assert.fail(error.report)

for (const shape of shapes) {
  describe(`skein-call · ${shape}`, () => {
    const run = (server: TaskServer, options: Partial<Invocation> = {}) =>
      Effect.gen(function*() {
        const out: Array<string> = []
        const err: Array<string> = []
        const fiber = yield* Effect.forkChild(
          call({ transport: server.server.transport }, invocationOf(options), {
            print: (text) => Effect.sync(() => void out.push(text)),
            warn: (line) => void err.push(line)
          })
        )
        yield* settle
        // The client lists the tools first, where the revision needs it.
        yield* settle
        return { out, err, fiber }
      })
    const handle = { taskId: "t1", tool: "t", server: "scripted", revision: shape }

    it.effect("--verbose reports its states on stderr, and the result goes to stdout", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { verbose: true })
        for (const statusMessage of ["Heating", "Steeping"]) {
          server.update({ statusMessage })
          server.notify()
          yield* pass("1 second")
        }
        server.update({ status: "completed", result: result("Tea") })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual(yield* Fiber.join(fiber), 0)
        assert.deepStrictEqual(out, ["Tea"])
        assert.deepStrictEqual(err.slice(0, 5), [
          `Connected to scripted 1.0.0 (protocol ${shape})`,
          "Task t1",
          "working",
          "working: Heating",
          "working: Steeping"
        ])
      }))

    it.effect("an interrupted call cancels its task, and prints nothing", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(server.task.status, "cancelled")
        assert.deepStrictEqual([out, err], [[], []])
      }))

    it.effect("--leave leaves it running and prints its handle, and --resume waits for its result", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { leave: true })
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(server.task.status, "working")
        assert.deepStrictEqual(out.map((line) => JSON.parse(line)), [handle])
        assert.include(err[0], "--resume")
        const again = yield* run(server, { tool: undefined, resume: JSON.parse(out[0]!) })
        server.update({ status: "completed", result: result("Tea") })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual(yield* Fiber.join(again.fiber), 0)
        assert.deepStrictEqual(again.out, ["Tea"])
        assert.strictEqual(server.count("tools/call"), server.support === "required" && shape === "2025-11-25" ? 2 : 1)
      }))

    it.effect("--timeout bounds the whole call, and the task is then cancelled, or left with --leave", () =>
      Effect.gen(function*() {
        for (const leave of [false, true]) {
          const server = new TaskServer(shape)
          const { fiber, out } = yield* run(server, { leave, timeout: 5_000 })
          yield* pass("5 seconds")
          assert.strictEqual(reasonOf(yield* Effect.flip(Fiber.join(fiber))), "Timeout")
          assert.strictEqual(server.task.status, leave ? "working" : "cancelled")
          assert.deepStrictEqual(out.map((line) => JSON.parse(line)), leave ? [handle] : [])
        }
      }))

    it.effect("--leave prints nothing for a task that has ended", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const { err, fiber, out } = yield* run(server, { leave: true })
        server.update({ status: "cancelled" })
        server.notify()
        yield* pass("1 second")
        assert.strictEqual(reasonOf(yield* Effect.flip(Fiber.join(fiber))), "TaskCancelled")
        assert.deepStrictEqual([out, err], [[], []])
      }))
  })
}

describe("skein-call --timeout", () => {
  it.effect("bounds the list of tools and the log level of --verbose as well", () =>
    Effect.gen(function*() {
      const { transport } = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      const fiber = yield* Effect.forkChild(
        call({ transport }, invocationOf({ tool: undefined, verbose: true, timeout: 5_000 }), {
          print: () => Effect.void,
          warn: () => {}
        })
      )
      yield* settle
      // The client probes the server first.
      for (let second = 0; second < 11; second++) yield* pass("1 second")
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.strictEqual(error.message, "The server did not list its tools within 5000 ms")
    }))
})

describe("skein-call --env", () => {
  it("passes a variable without a value on from this process, and one that is not set as undefined", () => {
    const env = resolveEnv({ KEY: undefined, A: "b=c", EMPTY: "", MISSING: undefined }, {
      KEY: "secret",
      A: "other",
      EMPTY: "x"
    })
    assert.deepStrictEqual(env, { KEY: "secret", A: "b=c", EMPTY: "", MISSING: undefined })
  })
})
