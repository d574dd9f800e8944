/** Task objects: their states, their handle, and cancellation. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import {
  type Json,
  open,
  pass,
  refuseSubscriptions,
  result,
  run,
  settle,
  shapes,
  started,
  TaskServer,
  watch
} from "./kit.ts"
import { peerOf } from "../support/peer.ts"

for (const shape of shapes) {
  describe(shape, () => {
    it.effect("states: emits the present state first, then each change once, and the result with the last state, in both revisions", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* started(client)
        const seen = yield* watch(task)
        server.update({ statusMessage: "half" })
        yield* pass("11 seconds")
        server.update({ status: "completed", statusMessage: "done", result: result("it") })
        server.notify()
        yield* settle
        yield* seen.value
        const common = { taskId: "t1", createdAt: "2026-11-01T10:30:00.000Z", ttlMs: null, pollIntervalMs: 1000 }
        assert.deepStrictEqual(
          seen.states.map((state) => ({ ...state, lastUpdatedAt: undefined, result: undefined })) as Json,
          [
            { ...common, status: "working", lastUpdatedAt: undefined, result: undefined },
            { ...common, status: "working", statusMessage: "half", lastUpdatedAt: undefined, result: undefined },
            { ...common, status: "completed", statusMessage: "done", lastUpdatedAt: undefined, result: undefined }
          ]
        )
        assert.deepStrictEqual((seen.states[2] as Json).result.content, [{ type: "text", text: "it" }])
        // A late subscriber receives the final state.
        const late = yield* watch(task)
        yield* late.value
        assert.deepStrictEqual(late.statuses, ["completed"])
      }))

    it.effect("ends the states with failed or cancelled, without failing the stream", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const failing = yield* watch(yield* started(client))
        server.update({ status: "failed", error: { code: 7, message: "no" } })
        yield* pass("11 seconds")
        yield* failing.value
        const [state] = failing.states.slice(-1) as Json
        assert.deepInclude(state.error, { reason: "Other", code: 7, message: "no" })
        server.task.error = undefined
        server.update({ status: "working" })
        const cancelled = yield* watch(yield* started(client))
        server.update({ status: "cancelled" })
        yield* pass("11 seconds")
        yield* cancelled.value
        assert.strictEqual(cancelled.statuses.at(-1), "cancelled")
      }))

    it.effect("fails the states when the task cannot be followed any further", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const seen = yield* watch(yield* started(client))
        server.overrides["tasks/get"] = () => ScriptedServer.failure(-32602, "Task not found")
        yield* pass("11 seconds")
        assert.strictEqual((yield* seen.error).reason._tag, "TaskNotFound")
      }))

    it.effect("cancel sends tasks/cancel, and the task ends with TaskCancelled by this client", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* started(client)
        const waiting = yield* run(task.result)
        yield* task.cancel
        yield* settle
        const error = yield* waiting.error
        assert.strictEqual(error.reason._tag, "TaskCancelled")
        assert.include(error.message, "by this client")
        yield* task.cancel
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("cancel succeeds for a task that has just completed, and its result is available", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* started(client)
        server.update({ status: "completed", result: result("first") })
        yield* task.cancel
        const waiting = yield* run(task.result)
        yield* pass("1 second")
        assert.deepStrictEqual((yield* waiting.value).content, [{ type: "text", text: "first" }])
      }))

    it.effect("cancel fails with TaskNotFound for an unknown task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* started(client)
        server.task.taskId = "t2"
        assert.strictEqual((yield* Effect.flip(task.cancel)).reason._tag, "TaskNotFound")
      }))

    it.effect("interrupting result leaves a task of startTask running, unless leaveRunning is off", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const left = yield* run((yield* started(client)).result)
        yield* left.stop
        assert.strictEqual(server.count("tasks/cancel"), 0)
        const own = yield* run((yield* started(client, { task: { leaveRunning: false } })).result)
        yield* own.stop
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("a handle is a JSON value, and the client of another process resumes the task with it", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, {}, (server) => {
          server.outputSchema = { type: "object", required: ["n"] }
        })
        const { handle } = yield* started(client)
        const kept = JSON.parse(JSON.stringify(handle))
        assert.deepStrictEqual(kept, { taskId: "t1", tool: "t", server: "scripted", revision: shape })
        const other = yield* Client.make(server.server.transport)
        yield* other.listToolsPage()
        const task = yield* other.resumeTask(kept)
        assert.deepStrictEqual(task.handle, handle)
        const waiting = yield* run(task.result)
        server.update({ status: "completed", result: result("", { structuredContent: {} }) })
        yield* pass("11 seconds")
        // The tool's outputSchema applies here as well.
        assert.strictEqual((yield* waiting.error).reason._tag, "InvalidResponse")
      }))

    it.effect("resumes a task by its id alone", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.update({ status: "completed", result: result("done") })
        const task = yield* client.resumeTask({ taskId: "t1" })
        const waiting = yield* run(task.result)
        yield* waiting.value
      }))

    it.effect("rejects an invalid or foreign handle with Unsupported without a request, and an unknown task with TaskNotFound", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const resumed = (handle: Json) =>
          Effect.map(Effect.flip(client.resumeTask(handle)), ({ reason }) => reason._tag)
        for (const handle of [undefined, null, 7, {}, { taskId: 7 }, { taskId: "" }, { taskId: "x".repeat(4097) }]) {
          assert.strictEqual(yield* resumed(handle), "Unsupported")
        }
        assert.strictEqual(yield* resumed({ taskId: "t1", server: "bank" }), "Unsupported")
        assert.strictEqual(server.count("tasks/get"), 0)
        assert.strictEqual(yield* resumed({ taskId: "t9" }), "TaskNotFound")
        assert.strictEqual(
          yield* resumed({ taskId: "t1", server: 7, tool: 7 }).pipe(Effect.flip, Effect.as("there")),
          "there"
        )
      }))

    it.effect("maxTimeout of resumeTask counts from the call of resumeTask", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* client.resumeTask({ taskId: "t1" }, { maxTimeout: "10 seconds" })
        const waiting = yield* run(task.result)
        yield* pass("10 seconds")
        const error = yield* waiting.error
        assert.deepStrictEqual([error.reason._tag, error.task?.taskId], ["Timeout", "t1"])
        assert.strictEqual(server.count("tasks/cancel"), 0)
      }))

    it.effect("fails callers that wait for a task when the client is closed", () =>
      Effect.gen(function*() {
        const server = new TaskServer(shape)
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(Client.make(server.server.transport), scope)
        yield* client.listToolsPage()
        const task = yield* started(client)
        const waiting = yield* run(task.result)
        const seen = yield* watch(task)
        yield* Scope.close(scope, Exit.void)
        yield* settle
        const error = yield* waiting.error
        assert.deepStrictEqual([error.reason._tag, error.task?.taskId], ["Closed", "t1"])
        assert.strictEqual((yield* seen.error).reason._tag, "Closed")
      }))

    it.effect("retains nothing of a thousand completed tasks", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        for (let round = 0; round < 10; round++) {
          server.task.status = "working"
          const calls: Array<Effect.Effect<unknown, unknown>> = []
          for (let call = 0; call < 100; call++) {
            const fiber = yield* Effect.forkChild(client.callTool("t", {}, { onProgress: () => {} }))
            calls.push(Fiber.join(fiber))
          }
          yield* settle
          server.update({ status: "completed", result: result("done") })
          yield* pass("1 second")
          yield* Effect.all(calls)
        }
        assert.strictEqual([...peerOf(client).calls].length, 0)
      }))
  })
}

describe("2025-11-25", () => {
  it.effect("includes progress in the states of a started task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25")
      const task = yield* started(client)
      const seen = yield* watch(task)
      const { progressToken } = server.server.requests("tools/call")[0]!.params!["_meta"] as Json
      server.server.notify("notifications/progress", { progressToken, progress: 1, total: 2, message: "half" })
      yield* settle
      assert.deepStrictEqual(seen.states.map(({ progress }) => progress), [
        undefined,
        { progress: 1, total: 2, message: "half" }
      ])
      yield* seen.stop
    }))

  it.effect("lists an unlisted tool before it is started", () =>
    Effect.gen(function*() {
      const server = new TaskServer("2025-11-25")
      server.support = "optional"
      const client = yield* Client.make(server.server.transport)
      const task = yield* started(client)
      assert.strictEqual(task.id, "t1")
      assert.deepStrictEqual(server.methods, ["tools/list", "tools/call"])
    }))

  it.effect("sends no tasks/cancel to a server without that capability", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", {}, (server) => {
        server.capabilities.tasks.cancel = undefined
        server.capabilities = JSON.parse(JSON.stringify(server.capabilities))
      })
      const call = yield* run(client.callTool("t"))
      yield* call.stop
      assert.strictEqual(server.count("tasks/cancel"), 0)
      const task = yield* started(client)
      assert.strictEqual((yield* Effect.flip(task.cancel)).reason._tag, "Unsupported")
    }))
})
