/** Subscriptions to tasks, against scripted servers. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { fieldsOf } from "../support/fields.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Change } from "../../src/Changes.ts"
import type * as Reconnect from "../../src/Reconnect.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as kit from "./kit.ts"

const revision = "2026-07-28"
const extension = "io.modelcontextprotocol/tasks"
const reconnect: Reconnect.Policy = { initialDelay: 1000, jitter: "none" }
const tasks = "notifications/tasks"

const state = {
  createdAt: "2026-11-01T10:30:00Z",
  lastUpdatedAt: "2026-11-01T10:50:00Z",
  ttlMs: 60_000,
  pollIntervalMs: 5000
}

const working = (taskId: string) => ({ ...state, taskId, status: "working" })

const about = (changes: ReadonlyArray<Change>) =>
  changes.map((change) => change._tag === "TaskChanged" ? change.task : change._tag)

describe("subscriptions/listen", () => {
  it.effect("2026-07-28 · clients send subscriptions/listen including a list of task IDs, and declare the extension in it", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true, taskIds: ["t1", "t1", "t2"] })
      const [request] = server.requests(kit.listen)
      assert.deepStrictEqual(request!.params?.["notifications"], { toolsListChanged: true, taskIds: ["t1", "t2"] })
      const meta = kit.metaOf(request!)
      assert.deepStrictEqual(meta["io.modelcontextprotocol/clientCapabilities"], { extensions: { [extension]: {} } })
      assert.strictEqual(meta["io.modelcontextprotocol/protocolVersion"], revision)
      assert.deepStrictEqual(seen.changes, [
        {
          _tag: "Subscribed",
          honoured: { tools: true, prompts: false, resources: false, uris: [], taskIds: ["t1", "t2"] }
        }
      ])
    }))

  it.effect("a client that declares no tasks declares them in a subscription to a task, and in no other request", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, { tasks: false })
      yield* kit.run(client, { tools: true, taskIds: [] })
      yield* kit.run(client, { taskIds: ["t1"] })
      const [without, about] = server.requests(kit.listen)
      assert.deepStrictEqual(kit.metaOf(without!)["io.modelcontextprotocol/clientCapabilities"], {})
      assert.deepStrictEqual(without!.params?.["notifications"], { toolsListChanged: true })
      const declared = kit.metaOf(about!)["io.modelcontextprotocol/clientCapabilities"]
      assert.deepStrictEqual(declared, { extensions: { [extension]: {} } })
    }))

  it.effect("2026-07-28 · each notification carries a complete DetailedTask, which is returned unchanged", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { taskIds: ["t1"] })
      const question = {
        method: "elicitation/create",
        params: { mode: "form", message: "Who?", requestedSchema: { type: "object", properties: {} } }
      }
      const notified = [
        { ...working("t1"), statusMessage: "Half of it" },
        { ...working("t1"), status: "input_required", inputRequests: { name: question } },
        { ...working("t1"), status: "completed", result: { content: [], isError: true } },
        { ...working("t1"), status: "failed", error: { code: -32603, message: "Oops" } },
        { ...working("t1"), status: "cancelled", ttlMs: null }
      ]
      for (const task of notified) kit.notifySubscription(server, tasks, task as JsonRpc.JsonObject)
      yield* kit.settle
      assert.deepStrictEqual(about(seen.changes), ["Subscribed", ...notified] as never)
    }))

  it.effect("2026-07-28 · reports the acknowledged tasks, and ignores notifications of other tasks", () =>
    Effect.gen(function*() {
      const script: ScriptedServer.Script = (request, server) => {
        kit.acknowledge(server, request, { taskIds: ["t9", "t2", 7] })
        return "no response"
      }
      const { client, server } = yield* kit.open(revision, script)
      const seen = yield* kit.run(client, { taskIds: ["t1", "t2"] })
      const [first] = seen.changes
      assert.deepStrictEqual(first?._tag === "Subscribed" ? first.honoured.taskIds : undefined, ["t2"])
      kit.notifySubscription(server, tasks, working("t9"))
      kit.notifySubscription(server, tasks, working("t2"))
      yield* kit.settle
      assert.deepStrictEqual(about(seen.changes), ["Subscribed", working("t2")] as never)
    }))

  it.effect("ignores malformed notifications, and keeps the stream open", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { taskIds: ["t1"] })
      for (
        const task of [
          {},
          { taskId: 7 },
          { taskId: "t1" },
          { ...working("t1"), status: "asleep" },
          { ...working("t1"), status: "completed" },
          { ...working("t1"), status: "failed", error: "Oops" },
          { ...working("t1"), createdAt: 7 }
        ]
      ) kit.notifySubscription(server, tasks, task)
      kit.notifySubscription(server, tasks, working("t1"))
      yield* kit.settle
      assert.deepStrictEqual(about(seen.changes), ["Subscribed", working("t1")] as never)
    }))

  it.effect("fails with Unsupported when the server honours no tasks, so that the host can poll", () =>
    Effect.gen(function*() {
      const { client } = yield* kit.open(revision, (request, server) => {
        kit.acknowledge(server, request, {})
        return "no response"
      })
      const seen = yield* kit.run(client, { taskIds: ["t1"] })
      assert.strictEqual((yield* seen.error).reason._tag, "Unsupported")
    }))

  it.effect("2026-07-28 · fails with the server's error when it still misses the capability (-32021)", () =>
    Effect.gen(function*() {
      const data = { requiredCapabilities: { extensions: { [extension]: {} } } }
      const { client } = yield* kit.open(
        revision,
        () => ScriptedServer.failure(-32021, "Missing required client capability", data)
      )
      const seen = yield* kit.run(client, { taskIds: ["t1"] })
      const { error, reason } = fieldsOf(yield* seen.error)
      assert.deepStrictEqual([reason, error?.code], ["ProtocolError", -32021])
    }))

  it.effect("subscribes again after a reconnect or an end, and emits a Gap first", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, { reconnect })
      const seen = yield* kit.run(client, { taskIds: ["t1"] })
      server.disconnect()
      yield* kit.pass(1000)
      kit.notifySubscription(server, tasks, working("t1"))
      yield* kit.settle
      kit.endSubscription(server)
      yield* kit.pass(2000)
      assert.deepStrictEqual(seen.tags, [
        "Subscribed",
        "Gap Lost",
        "Subscribed",
        "TaskChanged",
        "Gap Ended",
        "Subscribed"
      ])
      for (const request of server.requests(kit.listen)) {
        assert.deepStrictEqual(request.params?.["notifications"], { taskIds: ["t1"] })
        const declared = kit.metaOf(request)["io.modelcontextprotocol/clientCapabilities"]
        assert.deepStrictEqual(declared, { extensions: { [extension]: {} } })
      }
      yield* seen.stop
      assert.deepStrictEqual(kit.cancelled(server), [server.requests(kit.listen).at(-1)!.id])
    }))

  it.effect("drops the oldest state when maxBufferedNotifications states are waiting, and emits a Gap", () =>
    Effect.gen(function*() {
      const limits = { maxBufferedNotifications: 2 }
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, { limits })
      const seen: Array<string> = []
      const reading = Stream.runForEach(client.changes({ taskIds: ["t1"] }), (change) =>
        Effect.gen(function*() {
          seen.push(change._tag === "TaskChanged" ? change.task.statusMessage! : change._tag)
          if (seen.length === 1) {
            yield* Effect.sleep(1000)
          }
        }))
      yield* Effect.forkChild(reading, { startImmediately: true })
      yield* kit.settle
      for (let n = 1; n <= 5; n++) {
        kit.notifySubscription(server, tasks, { ...working("t1"), statusMessage: `${n}` })
      }
      yield* kit.pass(1000)
      assert.deepStrictEqual(seen, ["Subscribed", "Gap", "4", "5"])
    }))
})

for (const revision of Revision.sessionBased) {
  describe(revision, () => {
    it.effect("fails with Unsupported for tasks alone, and does not honour them beside other parts of a filter", () =>
      Effect.gen(function*() {
        for (const enforceCapabilities of [true, false]) {
          const { client } = yield* kit.open(revision, kit.acceptSubscriptions, { enforceCapabilities })
          const alone = yield* kit.run(client, { taskIds: ["t1"] })
          const error = yield* alone.error
          assert.deepStrictEqual([error.reason._tag, error.message], [
            "Unsupported",
            `${revision} has no subscriptions to tasks`
          ])
          const beside = yield* kit.run(client, { tools: true, taskIds: ["t1"] })
          const [first] = beside.changes
          assert.deepStrictEqual(first?._tag === "Subscribed" ? first.honoured.taskIds : undefined, [])
        }
      }))
  })
}
