/** Calls that are interrupted or time out before their task is known. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Json, open, pass, result, run, settle, shapes } from "./kit.ts"
import { bounded } from "../support/fixedBounds.ts"

for (const shape of shapes) {
  describe(`${shape} · a cancellation that crosses the task of its call`, () => {
    const crossed = (answer: Json) =>
      Effect.gen(function*() {
        const { client, server } = yield* bounded({ cancelTimeout: 1_000 }, open(shape))
        server.overrides["tools/call"] = () => "no response"
        const call = yield* run(client.callTool("t"))
        yield* Effect.forkChild(call.stop)
        yield* pass("1 second")
        assert.include(server.methods, "notifications/cancelled")
        const [request] = server.server.requests("tools/call")
        server.server.send({ _tag: "Success", id: request!.id, result: answer(server.wireTask) })
        yield* settle
        return server
      })
    const handle = (state: Json): Json => shape === "2025-11-25" ? { task: state } : { resultType: "task", ...state }

    it.effect("cancels the task, because no other caller has its id", () =>
      Effect.gen(function*() {
        const server = yield* crossed(handle)
        assert.deepStrictEqual(server.server.requests("tasks/cancel").map(({ params }) => params!["taskId"]), ["t1"])
        assert.strictEqual(server.task.status, "cancelled")
      }))

    it.effect("ignores a late response that is not a task", () =>
      Effect.gen(function*() {
        for (const answer of [result("late"), { task: "t1" }, { resultType: "task" }, { taskId: "t1" }]) {
          assert.strictEqual((yield* crossed(() => answer)).count("tasks/cancel"), 0)
        }
      }))

    it.effect("cancels a task that arrives after the timeout of its call", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["tools/call"] = () => "no response"
        const call = yield* run(client.callTool("t", {}, { timeout: "1 second" }))
        yield* pass("1 second")
        assert.strictEqual((yield* call.error).reason._tag, "Timeout")
        const [request] = server.server.requests("tools/call")
        server.server.send({ _tag: "Success", id: request!.id, result: handle(server.wireTask) })
        yield* settle
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("keeps the first of two tasks for the same call", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        const [request] = server.server.requests("tools/call")
        server.server.send({ _tag: "Success", id: request!.id, result: handle(server.wireTask) })
        yield* settle
        assert.strictEqual(server.count("tasks/cancel"), 0)
        assert.isFalse(call.done)
        yield* call.stop
      }))
  })
}
