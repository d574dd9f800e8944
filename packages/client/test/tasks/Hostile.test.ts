/** Servers with invalid task states. The call fails, and nothing else does. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Json, open, pass, refuseSubscriptions, result, run, shapes } from "./kit.ts"

const broken: { readonly [what: string]: (state: Json) => Json } = {
  "no id": (state) => ({ ...state, taskId: undefined }),
  "an id that is not a text": (state) => ({ ...state, taskId: 7 }),
  "an empty id": (state) => ({ ...state, taskId: "" }),
  "an id that fits no header": (state) => ({ ...state, taskId: "x".repeat(5000) }),
  "a status of its own": (state) => ({ ...state, status: "pondering" }),
  "no status": (state) => ({ ...state, status: undefined }),
  "no creation": (state) => ({ ...state, createdAt: undefined }),
  "a status that is nested": (state) => ({ ...state, status: { toString: "working" } })
}

const wrongResults: ReadonlyArray<Json> = [
  { content: 7 },
  { content: {} },
  { content: [], isError: "no" },
  { resultType: "input_required", requestState: "s" },
  { resultType: "task", content: [] }
]

for (const shape of shapes) {
  const modern = shape === "2026-07-28"
  const wrap = (state: Json) => modern ? { resultType: "task", ...state } : { task: state }

  describe(shape, () => {
    it.effect("rejects a malformed task as a response", () =>
      Effect.gen(function*() {
        for (const [what, change] of Object.entries(broken)) {
          const { client, server } = yield* open(shape)
          server.overrides["tools/call"] = () => ScriptedServer.success(wrap(change(server.wireTask)))
          const call = yield* run(client.callTool("t"))
          assert.isTrue(call.done, what)
          assert.strictEqual((yield* call.error).reason._tag, "InvalidResponse", what)
          yield* client.listToolsPage()
        }
        for (const answer of modern ? [{ resultType: "task" }] : [{ task: 7 }, { task: "t1" }, { task: [] }]) {
          const { client, server } = yield* open(shape)
          server.overrides["tools/call"] = () => ScriptedServer.success(answer)
          assert.strictEqual((yield* Effect.flip(client.callTool("t"))).reason._tag, "InvalidResponse")
        }
      }))

    it.effect("rejects a malformed or different task from tasks/get, and cancels the task", () =>
      Effect.gen(function*() {
        const wrong = { ...broken, "another task": (state: Json) => ({ ...state, taskId: "t2" }) }
        for (const [what, change] of Object.entries(wrong)) {
          const { client, server } = yield* open(shape)
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          server.overrides["tasks/get"] = () => ScriptedServer.success(change(server.wireTask))
          const call = yield* run(client.callTool("t"))
          yield* pass("1 second")
          assert.isTrue(call.done, what)
          const error = yield* call.error
          assert.deepStrictEqual([error.reason._tag, error.task?.taskId], ["InvalidResponse", "t1"], what)
          assert.strictEqual(server.count("tasks/cancel"), 1, what)
        }
      }))

    it.effect("rejects a task result that is not a tool result", () =>
      Effect.gen(function*() {
        for (const wrong of wrongResults) {
          // Before 2026-07-28 there is only one kind of result.
          if (!modern && wrong.resultType !== undefined) continue
          const { client, server } = yield* open(shape)
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          const call = yield* run(client.callTool("t"))
          server.update({ status: "completed", result: wrong })
          yield* pass("1 second")
          assert.isTrue(call.done)
          assert.strictEqual((yield* call.error).reason._tag, "InvalidResponse", JSON.stringify(wrong))
        }
      }))

    it.effect("survives invalid times, intervals and ttls", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const call = yield* run(client.callTool("t"))
        server.update({ ttlMs: Number.MAX_SAFE_INTEGER, pollIntervalMs: Number.MAX_SAFE_INTEGER })
        yield* pass("1 second")
        server.task.lastUpdatedAt = "yesterday"
        yield* pass("10 minutes")
        assert.isFalse(call.done)
        server.update({ status: "completed", result: result("done"), ttlMs: -1 })
        yield* pass("5 minutes")
        yield* pass("5 minutes")
        assert.isTrue(call.done)
      }))

    it.effect("ignores state changes after a task has ended", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const started = yield* client.startTask("t")
        if (started._tag !== "RemoteTask") return assert.fail("no task")
        const first = yield* run(started.result)
        server.update({ status: "completed", result: result("first") })
        yield* pass("1 second")
        yield* first.value
        server.update({ status: "completed", result: result("second") })
        server.notify()
        yield* pass("1 minute")
        const again = yield* run(started.result)
        assert.deepStrictEqual((yield* again.value).content, [{ type: "text", text: "first" }])
      }))
  })
}

describe("2026-07-28", () => {
  it.effect("rejects a failed task without an error, a completed task without a result, and a malformed input request", () =>
    Effect.gen(function*() {
      for (const status of ["failed", "completed", "input_required"]) {
        for (const more of [{}, { error: "no", result: "no", inputRequests: "no" }]) {
          const { client, server } = yield* open("2026-07-28")
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          const { error: _, inputRequests: __, result: ___, ...state } = server.wireTask
          server.overrides["tasks/get"] = () =>
            ScriptedServer.success({ resultType: "complete", ...state, status, ...more })
          const call = yield* run(client.callTool("t"))
          yield* pass("1 second")
          assert.isTrue(call.done, `${status} ${JSON.stringify(more)}`)
          assert.strictEqual((yield* call.error).reason._tag, "InvalidResponse")
        }
      }
    }))

  it.effect("accepts the resultType task in a terminal response to tasks/get, as in an example of the specification", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2026-07-28")
      server.update({ status: "completed", result: result("done") })
      server.overrides["tasks/get"] = () => ScriptedServer.success({ ...server.wireTask, resultType: "task" })
      const call = yield* run(client.callTool("t"))
      yield* call.value
    }))
})
