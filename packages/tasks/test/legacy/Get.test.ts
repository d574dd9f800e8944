import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

const nobody = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

describe("2025-11-25 · tasks/get", () => {
  it.effect("returns the status of a task, with the times of its creation and last update in ISO 8601", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "bake")
      yield* kit.pass("1 second")
      yield* kit.pass("1 second")
      const task = yield* client.result("tasks/get", { taskId })
      expect(task).toEqual({
        taskId,
        status: "working",
        statusMessage: "In the oven",
        createdAt: "1970-01-01T00:00:00.000Z",
        lastUpdatedAt: "1970-01-01T00:00:02.000Z",
        ttl: 86_400_000,
        pollInterval: 1000
      })
      yield* kit.pass("1 second")
      expect(yield* client.result("tasks/get", { taskId })).toMatchObject({
        status: "completed",
        lastUpdatedAt: "1970-01-01T00:00:03.000Z"
      })
    }))

  it.effect("`failed` includes a tool result with `isError`, and SHOULD give the reason", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "fail", { how: "tool" })
      yield* kit.settle
      expect(yield* client.result("tasks/get", { taskId })).toMatchObject({
        status: "failed",
        statusMessage: "The oven is cold"
      })
    }))

  it.effect("`failed` includes JSON-RPC protocol errors; a defect has only a reference", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "fail", { how: "protocol" })
      const other = yield* kit.make(client, "fail", { how: "defect" })
      yield* kit.settle
      expect(yield* client.result("tasks/get", { taskId })).toMatchObject({
        status: "failed",
        statusMessage: "No such cake"
      })
      const task = yield* client.result("tasks/get", { taskId: other })
      expect(task.status).toBe("failed")
      expect(JSON.stringify(task)).not.toContain("secret")
    }))

  it.effect("MUST ignore related-task metadata in favor of the parameter, and SHOULD NOT include it in the result", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const other = yield* kit.make(client, "sleep")
      const _meta = { [kit.relatedTask]: { taskId: other } }
      for (const method of ["tasks/get", "tasks/cancel"]) {
        const task = yield* client.result(method, { taskId, _meta })
        expect(task.taskId).toBe(taskId)
        expect(task).not.toHaveProperty("_meta")
      }
      expect((yield* client.result("tasks/get", { taskId: other })).status).toBe("working")
    }))

  it.effect("after its `ttl` a task is as unknown as one that never existed", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep", undefined, { task: { ttl: 5000 } })
      yield* kit.pass("4999 millis")
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("working")
      yield* kit.pass("1 millis")
      expect(yield* client.error("tasks/get", { taskId })).toEqual(
        yield* client.error("tasks/get", { taskId: nobody })
      )
    }))
})

describe("2025-11-25 · tasks/result", () => {
  it.effect("MUST return the result of the underlying request, with the related task in its `_meta`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const direct = yield* client.call("sum", { a: 1, b: 2 })
      const taskId = yield* kit.make(client, "sum", { a: 1, b: 2 })
      yield* kit.settle
      const result = yield* client.result("tasks/result", { taskId })
      expect(result).toEqual({ ...direct, _meta: { [kit.relatedTask]: { taskId } } })
    }))

  it.effect("a result with `isError` is a result", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const direct = yield* client.call("fail", { how: "tool" })
      const taskId = yield* kit.make(client, "fail", { how: "tool" })
      yield* kit.settle
      const result = yield* client.result("tasks/result", { taskId })
      expect(result).toEqual({ ...direct, _meta: { [kit.relatedTask]: { taskId } } })
      expect(result.isError).toBe(true)
    }))

  it.effect("if the underlying request resulted in a JSON-RPC error, `tasks/result` MUST return that same error", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const direct = yield* client.error("tools/call", { name: "fail", arguments: { how: "protocol" } })
      expect(direct).toEqual({ code: -32020, message: "No such cake", data: { cake: 1 } })
      const taskId = yield* kit.make(client, "fail", { how: "protocol" })
      yield* kit.settle
      expect(yield* client.error("tasks/result", { taskId })).toEqual(direct)
    }))

  it.effect("invalid arguments fail the task, as they fail the call", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const direct = yield* client.call("sum", { a: "x" })
      const taskId = yield* kit.make(client, "sum", { a: "x" })
      yield* kit.settle
      expect((yield* client.result("tasks/result", { taskId })).content).toEqual(direct.content)
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("failed")
    }))

  it.effect("MUST block the response until the task reaches a terminal status", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "bake")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.pass("1 second")
      yield* kit.pass("1 second")
      expect(client.answers(waiting)).toEqual([])
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("working")
      yield* kit.pass("1 second")
      expect((yield* client.answer(waiting)).result.content[0].text).toBe("A cake")
      yield* kit.settle
      expect(fake.watching).toBe(0)
    }))

  it.effect("several requests may wait, and each receives the result; it can be read again until the `ttl` is over", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const one = yield* connect()
      const other = yield* connect()
      const taskId = yield* kit.make(one, "bake")
      const waiting = [one.send("tasks/result", { taskId }), one.send("tasks/result", { taskId })]
      const elsewhere = other.send("tasks/result", { taskId })
      for (let second = 0; second < 3; second++) yield* kit.pass("1 second")
      const results = [
        ...(yield* Effect.forEach(waiting, (id) => one.answer(id))),
        yield* other.answer(elsewhere),
        yield* one.request("tasks/result", { taskId })
      ]
      expect(results.map(({ result }) => result.content[0].text)).toEqual(Array(4).fill("A cake"))
    }))

  it.effect("cancelling the waiting request does not change the task, and leaves nothing behind", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "bake")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      const watching = fake.watching
      client.notify("notifications/cancelled", { requestId: waiting })
      yield* kit.settle
      expect(fake.watching).toBe(watching - 1)
      for (let second = 0; second < 3; second++) yield* kit.pass("1 second")
      expect(client.answers(waiting)).toEqual([])
      expect((yield* client.result("tasks/result", { taskId })).content[0].text).toBe("A cake")
    }))

  it.effect("returns an error for a cancelled task, which has no result", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      yield* client.result("tasks/cancel", { taskId })
      const { error } = yield* client.answer(waiting)
      expect(error).toEqual({ code: -32800, message: "The task was cancelled: The task was cancelled by request" })
      expect(yield* client.error("tasks/result", { taskId })).toEqual(error)
    }))

  it.effect("a task that expires while a request waits is unknown then", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep", undefined, { task: { ttl: 5000 } })
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.pass("5 seconds")
      fake.find(taskId)
      expect((yield* client.answer(waiting)).error).toEqual(yield* client.error("tasks/get", { taskId: nobody }))
    }))
})

describe("2025-11-25 · isolation", () => {
  for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
    it.effect(`${method}: an unknown, a foreign and an expired id have the same error, -32602`, () =>
      Effect.gen(function*() {
        const { connect } = yield* kit.set()
        const ann = yield* connect({ principal: { id: "ann" } })
        const bob = yield* connect({ principal: { id: "bob" } })
        const anonymous = yield* connect()
        const foreign = yield* kit.make(ann, "sleep")
        const expired = yield* kit.make(bob, "sleep", undefined, { task: { ttl: 1000 } })
        yield* kit.pass("1 second")
        const error = yield* bob.error(method, { taskId: nobody })
        expect(error.code).toBe(-32602)
        expect(error.message).toContain("not found")
        expect(yield* bob.error(method, { taskId: foreign })).toEqual(error)
        expect(yield* anonymous.error(method, { taskId: foreign })).toEqual(error)
        expect(yield* bob.error(method, { taskId: expired })).toEqual(error)
        expect(yield* bob.error(method, { taskId: "" })).toEqual(error)
        expect((yield* ann.result("tasks/get", { taskId: foreign })).status).toBe("working")
      }))

    it.effect(`${method}: rejects a request without a task id with -32602`, () =>
      Effect.gen(function*() {
        const { connect } = yield* kit.set()
        expect((yield* (yield* connect()).error(method, {})).code).toBe(-32602)
      }))
  }

  it.effect("a task belongs to its principal, in any session", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const one = yield* connect({ principal: { id: "ann" } })
      const taskId = yield* kit.make(one, "sum", { a: 1, b: 2 })
      one.peer.close({ _tag: "ClosedByUs" })
      const other = yield* connect({ principal: { id: "ann" } })
      expect((yield* other.result("tasks/result", { taskId })).structuredContent).toEqual({ sum: 3 })
    }))

  it.effect("an owner policy binds tasks to another owner, which several principals may share", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ owner: ({ principal }) => principal?.id.split("@")[1] ?? null })
      const ann = yield* connect({ principal: { id: "ann@shop" } })
      const bob = yield* connect({ principal: { id: "bob@shop" } })
      const eve = yield* connect({ principal: { id: "eve@else" } })
      const taskId = yield* kit.make(ann, "sleep")
      expect((yield* bob.result("tasks/get", { taskId })).taskId).toBe(taskId)
      expect((yield* eve.error("tasks/get", { taskId })).code).toBe(-32602)
    }))
})
