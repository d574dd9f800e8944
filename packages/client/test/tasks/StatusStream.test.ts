/** How a task is looked at: how often, what is heard of it meanwhile, and what a lost connection costs. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Options } from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Json, open, pass, refuseSubscriptions, result, run, settle, shapes, started, watch } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const reconnect: Options = { reconnect: { initialDelay: 1000, jitter: "none" } }

for (const shape of shapes) {
  describe(shape, () => {
    /** How often a task is looked at in some seconds, with no word from the server. */
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

    it.effect("requestors SHOULD respect the poll interval; without one it is a second, or what the client says", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* looks(5000, 60), 12)
        assert.strictEqual(yield* looks(undefined, 60), 60)
        assert.strictEqual(yield* looks(undefined, 60, { pollInterval: "10 seconds" }), 6)
      }))

    it.effect("an interval of 0, or below, is 100 ms; one of ages is 5 minutes; both are options", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* looks(0, 1), 10)
        assert.strictEqual(yield* looks(-5, 1), 10)
        assert.strictEqual(yield* looks(1e15, 600), 2)
        assert.strictEqual(yield* looks(1, 1, { minPollInterval: "500 millis" }), 2)
        assert.strictEqual(yield* looks(1e15, 60, { maxPollInterval: "20 seconds" }), 3)
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

    it.effect("a change that is told is known at once", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.update({ status: "completed", result: result("told") })
        server.notify()
        yield* settle
        assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "told" }])
      }))

    it.effect("what is told of another task, or makes no sense, is ignored", () =>
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

    it.effect("what is told too late changes nothing", () =>
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

    it.effect("a task goes on through the loss of the connection", () =>
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

    it.effect("where no connection follows the call fails with Closed, and says how the task is found again", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { reconnect: false })
        const call = yield* run(client.callTool("t"))
        server.server.disconnect()
        yield* pass("10 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "Closed")
        assert.deepInclude(error.task, { taskId: "t1", tool: "t" })
      }))

    it.effect("a look that fails and may fare better is made again, each after twice the time; ten of them fail the call", () =>
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

    it.effect("maxFailures is an option, and a look that succeeds starts the count anew", () =>
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

    it.effect("a look that is not answered is made again", () =>
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

    it.effect("ttl is a backstop: a task that still goes on after it is Gone, and is cancelled", () =>
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

    it.effect("several who wait for one task are one who looks", () =>
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
        // It is over, and known.
        const again = yield* run(task.result)
        yield* again.value
        assert.strictEqual(server.count("tasks/get"), 5)
      }))

    it.effect("a task that nobody waits for is left alone, and followed again when somebody does", () =>
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

  it.effect("a task is subscribed to, looked at once then, and ten times less often", () =>
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

  it.effect("it is not looked at where the server begins with how it stands", () =>
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

  it.effect("a server that has no subscriptions is looked at, and asked for one once per connection", () =>
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

  it.effect("so is one that agrees to a subscription, but not of this task", () =>
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

  it.effect("a server that keeps a change to itself is looked at as often as ever from then on", () =>
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

  it.effect("a subscription that ends is looked after at once, and asked for again", () =>
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

  it.effect("the subscription ends with the wait", () =>
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

  it.effect("when the requestor encounters input_required it SHOULD preemptively call tasks/result, and goes on looking", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required" })
      yield* pass("1 second")
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

  it.effect("a tasks/result that was lost is asked for again", () =>
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

  it.effect("one that is never answered does not keep the result of a task that is over", () =>
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

  it.effect("the result of a task that is over is asked for until it comes", () =>
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

  it.effect("a task that failed with isError has a result: it is told as completed", () =>
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
