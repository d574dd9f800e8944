import { describe, expect, it } from "@effect/vitest"
import * as Concurrency from "@skein/server/Concurrency"
import * as Timeout from "@skein/server/Timeout"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

describe("2025-11-25 · tasks/result behind middleware", () => {
  it.effect("MUST block until the task ends: has no time limit of its own, and does not count for concurrency", () =>
    Effect.gen(function*() {
      const limits = [Timeout.layer(), Concurrency.layer({ limit: 1, methods: "all" })]
      const { connect } = yield* kit.set({}, [...limits, kit.sleep])
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const waiting = [client.send("tasks/result", { taskId }), client.send("tasks/result", { taskId })]
      yield* kit.pass("3 hours")
      expect(waiting.flatMap((id) => client.answers(id))).toEqual([])
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("working")
      expect((yield* client.result("tasks/cancel", { taskId })).status).toBe("cancelled")
      for (const id of waiting) expect((yield* client.answer(id)).error.message).toContain("cancelled")
    }))

  it.effect("has a time limit if the application sets one", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({}, [Timeout.layer({ methods: { "tasks/result": "1 hour" } }), kit.sleep])
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.pass("59 minutes")
      expect(client.answers(waiting)).toEqual([])
      yield* kit.pass("1 minute")
      expect((yield* client.answer(waiting)).error.code).toBe(-32603)
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("working")
    }))
})
