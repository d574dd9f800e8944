import { describe, expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import type * as KitClient from "../../../server/test/kit.ts"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => kit.pass("1 second"))
const token = { _meta: { progressToken: "p" } }
const progress = "notifications/progress"

const receivedByClient = (client: KitClient.Client): ReadonlyArray<kit.Json> =>
  client.received.filter(({ id, method }) => method !== undefined && id === undefined)
    .map(({ method, params }) => method === progress ? params.progress : [params.status, params.statusMessage])

describe("2025-11-25 · notifications of a task", () => {
  it.effect("`notifications/tasks/status` sends each change with the full task, and SHOULD NOT name it in `_meta`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "bake")
      yield* seconds(3)
      const notices = client.notices(kit.status).map(({ params }) => params)
      expect(notices.map(({ status, statusMessage }) => [status, statusMessage])).toEqual([
        ["working", "Dough"],
        ["working", "In the oven"],
        ["completed", "In the oven"]
      ])
      expect(notices.at(-1)).toEqual(yield* client.result("tasks/get", { taskId }))
    }))

  it.effect("the `progressToken` remains valid throughout the task lifetime; progress MUST include the related task", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const taskId = yield* kit.make(client, "bake", undefined, token)
      yield* seconds(3)
      const _meta = { [kit.relatedTask]: { taskId } }
      expect(client.notices(progress).map(({ params }) => params)).toEqual([
        { progressToken: "p", progress: 1, total: 2, message: "Dough", _meta },
        { progressToken: "p", progress: 2, total: 2, _meta }
      ])
    }))

  it.effect("are sent after the task id, and not after the end", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "bake", task: {}, ...token })
      yield* seconds(5)
      const about = client.received.slice(1).map(({ id, method, params }) =>
        id === call ? "handle" : params?.status ?? method
      )
      expect(about[0]).toBe("handle")
      expect(about.at(-1)).toBe("completed")
      expect(about.filter((each) => each === "completed").length).toBe(1)
    }))

  it.effect("are sent after the task id, even if a middleware delays it until the task has ended", () =>
    Effect.gen(function*() {
      const slow = AuditLog.layer({ methods: ["tools/call"], sink: () => Effect.sleep("10 seconds") })
      const { connect } = yield* kit.set({}, [slow, kit.bake])
      const client = yield* connect()
      const call = client.send("tools/call", { name: "bake", task: {}, ...token })
      yield* seconds(9)
      expect(client.received.slice(1)).toEqual([])
      yield* seconds(2)
      const about = client.received.slice(1).map(({ id, method, params }) =>
        id === call ? "handle" : params?.status ?? method
      )
      expect(about).toEqual(["handle", progress, "completed"])
    }))

  it.effect("for a task that ends immediately: the id, and its end", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "sum", arguments: { a: 1, b: 2 }, task: {} })
      yield* kit.settle
      const about = client.received.slice(1).map(({ id, params }) => id === call ? "handle" : params.status)
      expect(about).toEqual(["handle", "completed"])
    }))

  it.effect("report questions as `input_required`, a failure as `failed`, a cancellation as `cancelled`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect({ capabilities: kit.forms })
      const taskId = yield* kit.make(client, "book")
      yield* kit.settle
      yield* client.result("tasks/cancel", { taskId })
      yield* kit.make(client, "fail", { how: "tool" })
      yield* kit.settle
      expect(receivedByClient(client)).toEqual([
        ["input_required", undefined],
        ["cancelled", "The task was cancelled by request"],
        ["failed", "The oven is cold"]
      ])
    }))

  it.effect("are sent to the session that created the task, and to no other of the same principal", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const one = yield* connect({ principal: { id: "ann" } })
      const other = yield* connect({ principal: { id: "ann" } })
      yield* kit.make(one, "bake", undefined, token)
      yield* seconds(3)
      expect(receivedByClient(one).length).toBeGreaterThan(3)
      expect(receivedByClient(other)).toEqual([])
    }))

  it.effect("leave nothing behind after the end of the task or of the session", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      yield* kit.make(client, "bake")
      yield* kit.settle
      expect(fake.watching).toBe(1)
      yield* seconds(3)
      expect(fake.watching).toBe(0)
      const taskId = yield* kit.make(client, "sleep")
      yield* kit.settle
      expect(fake.watching).toBe(1)
      client.peer.close({ _tag: "ClosedByUs" })
      yield* client.peer.ended
      yield* kit.settle
      expect(fake.watching).toBe(0)
      expect(fake.find(taskId)!.state.status).toBe("working")
    }))

  it.effect("send no progress after the end to a slow reader", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const gate = new kit.Gate()
      const client = yield* connect({ gate })
      yield* kit.make(client, "bake", undefined, token)
      yield* kit.settle
      gate.closed = true
      yield* seconds(3)
      const before = receivedByClient(client)
      gate.open()
      yield* kit.settle
      // The first notification has already been sent; of the others the last of each kind is sent, and the end comes
      // last.
      expect(before.length).toBe(1)
      expect(receivedByClient(client).slice(1)).toEqual([["working", "In the oven"], 2, ["completed", "In the oven"]])
    }))
})
