/** One subscription for all tasks that a client follows, in stateless revisions. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import type { RemoteTask } from "../../src/RemoteTask.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Json, pass, run, settle } from "./kit.ts"
import { SeveralTasks } from "./several.ts"
import { bounded } from "../support/fixedBounds.ts"

const open = (options?: Client.Options) =>
  Effect.gen(function*() {
    const server = new SeveralTasks()
    const client = yield* Client.make(server.script.transport, options)
    const call = run(client.callTool("t"))
    return { server, client, call, calls: (count: number) => Effect.all(Array.from({ length: count }, () => call)) }
  })

describe("2026-07-28 · one subscriptions/listen", () => {
  it.effect("contains all tasks, and adds those that start within 20 ms in one request", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      yield* calls(4)
      assert.deepStrictEqual(server.asked, [["t1"]])
      yield* pass("19 millis")
      assert.strictEqual(server.asked.length, 1)
      yield* pass("1 millis")
      assert.deepStrictEqual(server.asked, [["t1"], ["t1", "t2", "t3", "t4"]])
      // The earlier subscription is cancelled.
      assert.deepStrictEqual(server.left, [...server.open.keys()].slice(0, 1))
      yield* pass("9 seconds")
      // Each task was polled once when its subscription began, and at most once more since.
      for (const id of server.tasks.keys()) assert.isAtMost(server.looks(id), 2, id)
    }))

  it.effect("is replaced less often the more tasks it contains: after one millisecond per task", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      yield* calls(60)
      yield* pass("20 millis")
      assert.deepStrictEqual(server.asked.map(({ length }) => length), [1, 60])
      yield* calls(1)
      yield* pass("59 millis")
      assert.strictEqual(server.asked.length, 2)
      yield* pass("1 millis")
      assert.deepStrictEqual(server.asked.map(({ length }) => length), [1, 60, 61])
    }))

  it.effect("receives notifications during a replacement: the old subscription ends after the new one is acknowledged", () =>
    Effect.gen(function*() {
      const { call, server } = yield* open()
      const first = yield* call
      server.slow = true
      const second = yield* call
      yield* pass("20 millis")
      assert.strictEqual(server.asked.length, 2)
      assert.deepStrictEqual(server.left, [])
      const looks = server.looks("t1")
      server.finish("t1")
      yield* settle
      yield* first.value
      assert.strictEqual(server.looks("t1"), looks)
      const [, listen] = server.script.requests("subscriptions/listen")
      server.agree(listen!.id, ["t1", "t2"])
      yield* settle
      assert.strictEqual(server.left.length, 1)
      server.finish("t2")
      yield* settle
      yield* second.value
    }))

  it.effect("stays unchanged when a task ends, closes with the last task, and reopens for the next one", () =>
    Effect.gen(function*() {
      const { call, calls, server } = yield* open()
      const [first, ...others] = yield* calls(3)
      yield* pass("1 second")
      server.finish("t1")
      yield* settle
      yield* first!.value
      yield* pass("1 second")
      assert.strictEqual(server.asked.length, 2)
      assert.strictEqual(server.left.length, 1)
      server.finish("t2", "t3")
      yield* settle
      for (const { value } of others) yield* value
      assert.strictEqual(server.left.length, 2)
      yield* call
      assert.deepStrictEqual(server.asked.slice(2), [["t4"]])
    }))

  it.effect("contains at most maxSubscriptions tasks; other tasks are polled until there is a free place", () =>
    Effect.gen(function*() {
      const { call, calls, server } = yield* bounded({ maxSubscriptions: 2 }, open())
      const [first] = yield* calls(3)
      yield* pass("1 second")
      yield* call
      yield* pass("4 seconds")
      assert.deepStrictEqual(server.asked, [["t1"], ["t1", "t2"]])
      assert.isAtLeast(server.looks("t3"), 4)
      server.finish("t1")
      yield* pass("1 second")
      yield* first!.value
      assert.deepStrictEqual(server.asked.slice(2), [["t2", "t3"]])
      const looks = server.looks("t3")
      yield* pass("9 seconds")
      assert.isAtMost(server.looks("t3"), looks + 1)
    }))

  it.effect("is not sent when maxSubscriptions is 0", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* bounded({ maxSubscriptions: 0 }, open())
      yield* calls(2)
      yield* pass("5 seconds")
      assert.deepStrictEqual(server.asked, [])
      assert.strictEqual(server.looks("t2"), 5)
    }))

  it.effect("polls a task that the server has not acknowledged", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      server.most = 1
      yield* calls(2)
      yield* pass("10 seconds")
      assert.isAtMost(server.looks("t1"), 2)
      assert.isAtLeast(server.looks("t2"), 9)
    }))

  it.effect("keeps the present subscription when its replacement is refused, and polls the new task", () =>
    Effect.gen(function*() {
      const { call, server } = yield* open()
      const first = yield* call
      server.slow = true
      yield* call
      yield* pass("20 millis")
      const { id } = server.script.requests("subscriptions/listen")[1]!
      server.script.send({ _tag: "Failure", id, error: { code: -32603, message: "Too many" } })
      yield* pass("5 seconds")
      assert.strictEqual(server.looks("t1"), 1)
      assert.isAtLeast(server.looks("t2"), 4)
      server.finish("t1")
      yield* settle
      yield* first.value
    }))

  it.effect("polls each task at once when it breaks, and subscribes to all of them again", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open({ reconnect: { initialDelay: 1000, jitter: "none" } })
      yield* calls(2)
      yield* pass("1 second")
      const [, listen] = server.script.requests("subscriptions/listen")
      const before = [server.looks("t1"), server.looks("t2")]
      server.open.clear()
      server.script.send({ _tag: "Success", id: listen!.id, result: { resultType: "complete" } })
      yield* settle
      assert.deepStrictEqual([server.looks("t1"), server.looks("t2")], before.map((looks) => looks + 1))
      yield* pass("3 seconds")
      assert.deepStrictEqual(server.asked.slice(2), [["t1", "t2"]])
    }))

  it.effect("retains a task without waiting callers, and continues for the others", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open()
      const one = (yield* client.startTask("t")) as RemoteTask
      const two = (yield* client.startTask("t")) as RemoteTask
      const first = yield* run(one.result)
      const second = yield* run(two.result)
      yield* pass("1 second")
      yield* first.stop
      assert.strictEqual(server.left.length, 1)
      server.finish("t2")
      yield* settle
      yield* second.value
      assert.strictEqual(server.left.length, 2)
    }))

  it.effect("is requested once per connection from a server that does not support it", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      server.slow = true
      yield* calls(1)
      const { id } = server.script.requests("subscriptions/listen")[0]!
      server.script.send({ _tag: "Failure", id, error: (ScriptedServer.failure(-32601, "none") as Json).error })
      yield* settle
      yield* calls(2)
      yield* pass("5 seconds")
      assert.strictEqual(server.asked.length, 1)
    }))
})
