/** One subscription for all tasks that a client follows, in the request era. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import type { RemoteTask } from "../../src/RemoteTask.ts"
import { ok, refuse, type Reply, scripted, speaks, unknown } from "../support/scripted.ts"
import { extension, type Json, pass, result, run, settle } from "./kit.ts"

const shape = "2026-07-28"
const subscriptionId = "io.modelcontextprotocol/subscriptionId"

/** A server each call of which is a task of its own: `t1`, `t2`, … */
class Server {
  readonly tasks = new Map<string, Json>()
  /** The subscriptions that are open: of each the tasks that were asked for. */
  readonly open = new Map<JsonRpc.Id, ReadonlyArray<string>>()
  /** How many tasks it agrees to at once. */
  most = Infinity
  /** Whether it says nothing to what is asked for from now on. */
  slow = false
  readonly script = scripted((request, server) => {
    if (request.method === "notifications/cancelled") return "silence"
    return speaks(shape, (request) => this.#answer(request), { tools: {}, extensions: { [extension]: {} } })(
      request,
      server
    )
  })

  #changes = 0

  become(id: string, change: Json): void {
    const time = new Date(Date.parse("2026-11-01T10:30:00Z") + ++this.#changes * 1000).toISOString()
    this.tasks.set(id, { ...this.tasks.get(id), lastUpdatedAt: time, ...change })
    for (const [listen, ids] of this.open) {
      if (!ids.includes(id)) continue
      this.script.notify("notifications/tasks", { ...this.tasks.get(id), _meta: { [subscriptionId]: listen } })
    }
  }

  finish(...ids: ReadonlyArray<string>): void {
    for (const id of ids) this.become(id, { status: "completed", result: result(id) })
  }

  agree(id: JsonRpc.Id, taskIds: ReadonlyArray<string>): void {
    this.script.notify("notifications/subscriptions/acknowledged", {
      _meta: { [subscriptionId]: id },
      notifications: { taskIds }
    })
    this.open.set(id, taskIds)
  }

  /** What was asked for, in order. */
  get asked(): ReadonlyArray<ReadonlyArray<string>> {
    return this.script.requests("subscriptions/listen").map(({ params }) => (params!["notifications"] as Json).taskIds)
  }

  /** Which were taken back. */
  get left(): ReadonlyArray<JsonRpc.Id> {
    return this.script.received.flatMap((message) =>
      message._tag === "Notification" && message.method === "notifications/cancelled"
        ? [message.params!["requestId"] as JsonRpc.Id]
        : []
    )
  }

  looks(id: string): number {
    return this.script.requests("tasks/get").filter(({ params }) => params!["taskId"] === id).length
  }

  #answer({ id, method, params }: JsonRpc.Request): Reply {
    const taskId = (params as Json).taskId as string
    switch (method) {
      case "tools/call": {
        const taskId = `t${this.tasks.size + 1}`
        const at = "2026-11-01T10:30:00Z"
        const task = { taskId, status: "working", createdAt: at, lastUpdatedAt: at, ttlMs: null, pollIntervalMs: 1000 }
        this.tasks.set(taskId, task)
        return ok({ resultType: "task", ...task })
      }
      case "tasks/get":
        return ok({ resultType: "complete", ...this.tasks.get(taskId) })
      case "tasks/cancel":
        return ok({ resultType: "complete" })
      case "subscriptions/listen": {
        const { taskIds } = params!["notifications"] as Json
        if (!this.slow) this.agree(id, taskIds.slice(0, this.most))
        return "silence"
      }
      default:
        return unknown(method)
    }
  }
}

const open = (options?: Client.Options) =>
  Effect.gen(function*() {
    const server = new Server()
    const client = yield* Client.make(server.script.transport, options)
    const call = run(client.callTool("t"))
    return { server, client, call, calls: (count: number) => Effect.all(Array.from({ length: count }, () => call)) }
  })

describe("2026-07-28 · one subscriptions/listen", () => {
  it.effect("all tasks are in it; those that come within 20 ms of the last time are subscribed to together", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      yield* calls(4)
      assert.deepStrictEqual(server.asked, [["t1"]])
      yield* pass("19 millis")
      assert.strictEqual(server.asked.length, 1)
      yield* pass("1 millis")
      assert.deepStrictEqual(server.asked, [["t1"], ["t1", "t2", "t3", "t4"]])
      // The one before is taken back.
      assert.deepStrictEqual(server.left, [...server.open.keys()].slice(0, 1))
      yield* pass("9 seconds")
      // Each was looked at once when its changes began to be told, and one more time by then.
      for (const id of server.tasks.keys()) assert.isAtMost(server.looks(id), 2, id)
    }))

  it.effect("the more tasks are in it the longer it stays: a millisecond for each", () =>
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

  it.effect("what is told on the way from one to the next is heard: the first ends when the second is agreed to", () =>
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

  it.effect("a task that goes changes nothing; with the last one it ends, and begins anew with the next", () =>
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

  it.effect("no more than maxSubscriptions tasks are in it; the others are looked at, until there is room", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open({ tasks: { maxSubscriptions: 2 } })
      const [first] = yield* calls(3)
      yield* pass("5 seconds")
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

  it.effect("with 0 of them nothing is subscribed to", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open({ tasks: { maxSubscriptions: 0 } })
      yield* calls(2)
      yield* pass("5 seconds")
      assert.deepStrictEqual(server.asked, [])
      assert.strictEqual(server.looks("t2"), 5)
    }))

  it.effect("a task that the server has not agreed to is looked at", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      server.most = 1
      yield* calls(2)
      yield* pass("10 seconds")
      assert.isAtMost(server.looks("t1"), 2)
      assert.isAtLeast(server.looks("t2"), 9)
    }))

  it.effect("where a further one is refused the one that stands goes on, and who came is looked at", () =>
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

  it.effect("where it breaks each of them is looked at at once, and all are asked for again", () =>
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

  it.effect("one that nobody waits for any more is left in it, and the others go on", () =>
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

  it.effect("a server without it is asked once per connection", () =>
    Effect.gen(function*() {
      const { calls, server } = yield* open()
      server.slow = true
      yield* calls(1)
      const { id } = server.script.requests("subscriptions/listen")[0]!
      server.script.send({ _tag: "Failure", id, error: (refuse(-32601, "none") as Json).error })
      yield* settle
      yield* calls(2)
      yield* pass("5 seconds")
      assert.strictEqual(server.asked.length, 1)
    }))
})
