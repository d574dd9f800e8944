import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

describe("2025-11-25 · tasks/cancel", () => {
  it.effect("MUST transition the task to `cancelled` before sending the response, which shows it", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const task = yield* client.result("tasks/cancel", { taskId })
      expect(task).toMatchObject({ taskId, status: "cancelled", statusMessage: "The task was cancelled by request" })
      expect(fake.find(taskId)!.history).toEqual(["working", "cancelled"])
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("cancelled")
    }))

  it.effect("MUST remain `cancelled` even if execution continues to completion or fails", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      yield* client.result("tasks/cancel", { taskId })
      expect(fake.end(taskId, { _tag: "Result", result: { content: [] } })).toBe(false)
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("cancelled")
    }))

  const over = [
    ["completed", "sum", { a: 1, b: 2 }],
    ["failed", "fail", { how: "tool" }],
    ["failed", "fail", { how: "protocol" }]
  ] as const
  for (const [status, name, args] of over) {
    it.effect(`MUST reject a task that is already \`${status}\` (${Object.values(args)[0]}), with -32602`, () =>
      Effect.gen(function*() {
        const { connect } = yield* kit.set()
        const client = yield* connect()
        const taskId = yield* kit.make(client, name, args)
        yield* kit.settle
        const before = yield* client.result("tasks/get", { taskId })
        const { code, message } = yield* client.error("tasks/cancel", { taskId })
        expect(code).toBe(-32602)
        expect(message).toContain(`'${status}'`)
        expect(yield* client.result("tasks/get", { taskId })).toEqual(before)
      }))
  }

  it.effect("MUST reject a task that is already `cancelled`, with -32602", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      yield* client.result("tasks/cancel", { taskId })
      const { code, message } = yield* client.error("tasks/cancel", { taskId })
      expect([code, message]).toEqual([-32602, "Cannot cancel task: already in terminal status 'cancelled'"])
    }))

  it.effect("of two concurrent cancellations one succeeds, and the other reports that the task has ended", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const answers = yield* Effect.forEach(
        [client.send("tasks/cancel", { taskId }), client.send("tasks/cancel", { taskId })],
        (id) => client.answer(id)
      )
      expect(answers.map(({ error, result }) => result?.status ?? error.code)).toEqual(["cancelled", -32602])
    }))

  it.effect("`notifications/cancelled` for the call that created a task does not cancel the task", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "sleep", task: {} })
      const { result } = yield* client.answer(call)
      client.notify("notifications/cancelled", { requestId: call })
      yield* kit.settle
      expect((yield* client.result("tasks/get", { taskId: result.task.taskId })).status).toBe("working")
    }))
})
