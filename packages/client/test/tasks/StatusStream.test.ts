/** Polling, status notifications, and lost connections of a task. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Options } from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Json, open, pass, refuseSubscriptions, result, run, settle, shapes, started, watch } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const reconnect: Options = { reconnect: { initialDelay: 1000, jitter: "none" } }

for (const shape of shapes) {
  describe(shape, () => {
    /** Counts the polls of a task within the given seconds, without notifications from the server. */
    const looks = (suggested: Json, seconds: number, tasks?: Json) =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { tasks }, (server) => {
          server.task.pollIntervalMs = suggested
          server.overrides["subscriptions/listen"] = refuseSubscriptions
        })
        const call = yield* run(client.callTool("t"))
        yield* pass(`${seconds} seconds`)
        yield* call.stop
        return server.count("tasks/get")
      })

    it.effect("requestors SHOULD respect the poll interval; defaults to a second, or the client's option", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* looks(5000, 60), 12)
        assert.strictEqual(yield* looks(undefined, 60), 60)
        assert.strictEqual(yield* looks(undefined, 60, { pollInterval: "10 seconds" }), 6)
      }))

    it.effect("clamps the interval to 100 ms and 5 minutes", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* looks(0, 1), 10)
        assert.strictEqual(yield* looks(-5, 1), 10)
        assert.strictEqual(yield* looks(1e15, 600), 2)
      }))

    it.effect("the interval MAY change over the lifetime of a task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const call = yield* run(client.callTool("t"))
        yield* pass("1 second")
        server.update({ pollIntervalMs: 10_000 })
        yield* pass("1 second")
        const before = server.count("tasks/get")
        yield* pass("9 seconds")
        assert.strictEqual(server.count("tasks/get"), before)
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), before + 1)
        yield* call.stop
      }))

    it.effect("applies a status notification at once", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.update({ status: "completed", result: result("done") })
        server.notify()
        yield* settle
        assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "done" }])
      }))

    it.effect("ignores malformed notifications and notifications of another task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        const method = shape === "2025-11-25" ? "notifications/tasks/status" : "notifications/tasks"
        const [listen] = server.subscriptions.keys()
        const _meta = { "io.modelcontextprotocol/subscriptionId": listen as Json }
        const done = { status: "completed", result: result("no") }
        server.server.notify(method, { ...server.wireTask, ...done, taskId: "t2", _meta })
        server.server.notify(method, { ...server.wireTask, status: "finished", _meta })
        server.server.notify(method, { ...server.wireTask, createdAt: 7, status: "cancelled", _meta })
        server.server.notify(method, { taskId: "t1", _meta })
        server.server.notify(method)
        yield* settle
        assert.isFalse(call.done)
        yield* call.stop
      }))

    it.effect("ignores notifications that arrive too late", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const task = yield* started(client)
        const seen = yield* watch(task)
        const old = server.wireTask
        server.update({ statusMessage: "new" })
        server.notify()
        yield* settle
        const method = shape === "2025-11-25" ? "notifications/tasks/status" : "notifications/tasks"
        const [listen] = server.subscriptions.keys()
        const _meta = { "io.modelcontextprotocol/subscriptionId": listen as Json }
        server.server.notify(method, { ...old, statusMessage: "old", _meta })
        yield* settle
        assert.deepStrictEqual(seen.states.map(({ statusMessage }) => statusMessage), [undefined, "new"])
        yield* seen.stop
      }))

    it.effect("continues a task after the connection was lost", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, reconnect)
        const call = yield* run(client.callTool("t"))
        server.server.disconnect()
        yield* pass("10 seconds")
        assert.strictEqual(server.server.connections, 2)
        assert.isFalse(call.done)
        server.update({ status: "completed", result: result("after") })
        yield* pass("20 seconds")
        assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "after" }])
        assert.strictEqual(server.count("tools/call"), 1)
      }))

    it.effect("fails the call with Closed and the handle of the task without a further connection", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { reconnect: false })
        const call = yield* run(client.callTool("t"))
        server.server.disconnect()
        yield* pass("10 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "Closed")
        assert.deepInclude(error.task, { taskId: "t1", tool: "t" })
      }))

    it.effect("retries a failed poll that may succeed later, after twice the time; fails the call after ten failures", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const call = yield* run(client.callTool("t"))
        server.overrides["tasks/get"] = () => ScriptedServer.failure(-32603, "Internal error")
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), 1)
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), 2)
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), 2)
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), 3)
        yield* pass("5 minutes")
        const error = yield* call.error
        assert.strictEqual(server.count("tasks/get"), 10)
        assert.strictEqual(fieldsOf(error).error?.reason, "InternalError")
        assert.strictEqual(error.task?.taskId, "t1")
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("maxFailures counts failures in a row: a successful poll resets the count", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { tasks: { maxFailures: 2 } })
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        let looks = 0
        server.overrides["tasks/get"] = () =>
          looks++ % 2 === 0
            ? ScriptedServer.failure(-32603, "Internal error")
            : ScriptedServer.success({ resultType: "complete", ...server.wireTask })
        const call = yield* run(client.callTool("t"))
        yield* pass("1 minute")
        assert.isFalse(call.done)
        server.overrides["tasks/get"] = () => ScriptedServer.failure(-32603, "Internal error")
        yield* pass("3 seconds")
        assert.strictEqual(fieldsOf(yield* call.error).error?.reason, "InternalError")
      }))

    it.effect("retries a poll without a response", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        server.overrides["tasks/get"] = () => "no response"
        const call = yield* run(client.callTool("t", {}, { timeout: "5 seconds" }))
        yield* pass("6 seconds")
        server.overrides["tasks/get"] = undefined
        server.update({ status: "completed", result: result("done") })
        yield* pass("20 seconds")
        yield* call.value
      }))

    it.effect("ttl is a backstop: fails a task that still runs after it with TaskNotFound, and cancels it", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, {}, ({ task }) => {
          task.ttlMs = 60_000
        })
        const call = yield* run(client.callTool("t"))
        yield* pass("60 seconds")
        assert.isFalse(call.done)
        yield* pass("2 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "TaskNotFound")
        assert.include(error.message, "time to live")
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("the value of ttl MAY change over the lifetime of a task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, {}, (server) => {
          server.task.ttlMs = 60_000
          server.task.pollIntervalMs = 20_000
        })
        const call = yield* run(client.callTool("t"))
        yield* pass("30 seconds")
        server.update({ ttlMs: 600_000 })
        yield* pass("2 minutes")
        assert.isFalse(call.done)
        server.update({ ttlMs: null })
        yield* pass("2 hours")
        assert.isFalse(call.done)
        yield* call.stop
      }))

    it.effect("shares one poll among several callers that wait for a task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const task = yield* started(client)
        const first = yield* run(task.result)
        const second = yield* run(task.result)
        const seen = yield* watch(task)
        yield* pass("3 seconds")
        assert.strictEqual(server.count("tasks/get"), 3)
        yield* first.stop
        yield* pass("1 second")
        assert.strictEqual(server.count("tasks/get"), 4)
        assert.strictEqual(server.count("tasks/cancel"), 0)
        server.update({ status: "completed", result: result("done") })
        yield* pass("1 second")
        yield* second.value
        yield* seen.value
        assert.strictEqual(server.count("tasks/get"), 5)
        // The task has ended, and its result is stored.
        const again = yield* run(task.result)
        yield* again.value
        assert.strictEqual(server.count("tasks/get"), 5)
      }))

    it.effect("stops polling a task without waiting callers, and resumes for the next caller", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const task = yield* started(client)
        yield* pass("1 minute")
        assert.strictEqual(server.count("tasks/get"), 0)
        const first = yield* run(task.result)
        yield* pass("1 second")
        yield* first.stop
        yield* pass("1 minute")
        assert.strictEqual(server.count("tasks/get"), 1)
        const second = yield* run(task.result)
        server.update({ status: "completed", result: result("done") })
        yield* pass("1 second")
        yield* second.value
      }))
  })
}

describe("2026-07-28 · subscriptions", () => {
  const shape = "2026-07-28"

  it.effect("polls a subscribed task once at the start, and then ten times less often", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const call = yield* run(client.callTool("t"))
      assert.deepStrictEqual([...server.subscriptions.values()], [["t1"]])
      yield* pass("20 millis")
      assert.strictEqual(server.count("tasks/get"), 1)
      yield* pass("9 seconds")
      assert.strictEqual(server.count("tasks/get"), 1)
      yield* pass("51 seconds")
      assert.strictEqual(server.count("tasks/get"), 7)
      yield* call.stop
    }))

  it.effect("does not poll when the server starts the subscription with the present status", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const call = yield* run(client.callTool("t"))
      server.notify()
      yield* pass("9 seconds")
      assert.strictEqual(server.count("tasks/get"), 0)
      yield* pass("2 seconds")
      assert.strictEqual(server.count("tasks/get"), 1)
      yield* call.stop
    }))

  it.effect("polls when the server has no subscriptions, and requests one once per connection", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["subscriptions/listen"] = refuseSubscriptions
      const first = yield* run(client.callTool("t"))
      yield* pass("10 seconds")
      assert.strictEqual(server.count("tasks/get"), 10)
      const second = yield* run(client.callTool("t"))
      yield* pass("10 seconds")
      assert.strictEqual(server.count("subscriptions/listen"), 1)
      yield* first.stop
      yield* second.stop
    }))

  it.effect("polls when the server accepts the subscription without this task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["subscriptions/listen"] = ({ id }) => {
        server.server.notify("notifications/subscriptions/acknowledged", {
          _meta: { "io.modelcontextprotocol/subscriptionId": id },
          notifications: { taskIds: [] }
        })
        return "no response"
      }
      const call = yield* run(client.callTool("t"))
      yield* pass("10 seconds")
      assert.strictEqual(server.count("tasks/get"), 10)
      yield* call.stop
    }))

  it.effect("returns to the normal poll interval when the server omits a notification", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const call = yield* run(client.callTool("t"))
      yield* pass("20 millis")
      server.update({ status: "input_required", inputRequests: {} })
      yield* pass("10 seconds")
      const before = server.count("tasks/get")
      yield* pass("10 seconds")
      assert.strictEqual(server.count("tasks/get"), before + 10)
      yield* call.stop
    }))

  it.effect("polls at once when a subscription ends, and subscribes again", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, reconnect)
      const call = yield* run(client.callTool("t"))
      const [listen] = server.subscriptions.keys()
      server.subscriptions.clear()
      server.update({ status: "completed", result: result("meanwhile") })
      server.server.send({
        _tag: "Success",
        id: listen!,
        result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": listen! } }
      })
      yield* settle
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "meanwhile" }])
    }))

  it.effect("ends the subscription with the last waiting caller", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const call = yield* run(client.callTool("t"))
      server.update({ status: "completed", result: result("done") })
      server.notify()
      yield* settle
      yield* call.value
      yield* settle
      assert.include(server.methods, "notifications/cancelled")
    }))
})

describe("2025-11-25 · tasks/result", () => {
  const shape = "2025-11-25"

  it.effect("when the requestor encounters input_required it SHOULD preemptively call tasks/result, and keeps polling", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, (server) => {
        server.task.pollIntervalMs = 30_000
      })
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required" })
      yield* pass("30 seconds")
      assert.strictEqual(server.count("tasks/result"), 1)
      yield* pass("2 hours")
      assert.strictEqual(server.count("tasks/result"), 1)
      server.update({ status: "working" })
      yield* pass("1 minute")
      server.update({ status: "completed", result: result("done") })
      yield* settle
      yield* call.value
      assert.strictEqual(server.count("tasks/result"), 1)
    }))

  it.effect("sends a lost tasks/result again", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, reconnect)
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required" })
      yield* pass("1 second")
      server.server.disconnect()
      yield* pass("5 seconds")
      assert.strictEqual(server.count("tasks/result"), 2)
      server.update({ status: "completed", result: result("done") })
      yield* pass("1 second")
      yield* call.value
    }))

  it.effect("returns the result of a completed task when an earlier tasks/result never gets a response", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["tasks/result"] = () => "no response"
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required" })
      yield* pass("1 second")
      server.update({ status: "completed", result: result("done") })
      server.overrides["tasks/result"] = undefined
      yield* pass("2 minutes")
      yield* call.value
      assert.strictEqual(server.count("tasks/result"), 2)
    }))

  it.effect("retries tasks/result of a completed task until it has the result", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, reconnect)
      let times = 0
      server.overrides["tasks/result"] = (_, { disconnect }) => {
        if (++times < 3) return disconnect(), "no response"
        return server.payload
      }
      const call = yield* run(client.callTool("t"))
      server.update({ status: "completed", result: result("done") })
      yield* pass("30 seconds")
      yield* call.value
    }))

  it.effect("reports a task that failed with isError as completed, because it has a result", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const task = yield* started(client)
      const seen = yield* watch(task)
      server.update({ status: "completed", result: result("no", { isError: true }) })
      assert.strictEqual(server.wireTask.status, "failed")
      yield* pass("1 second")
      yield* seen.value
      assert.deepStrictEqual(seen.statuses.slice(-1), ["completed"])
    }))
})
