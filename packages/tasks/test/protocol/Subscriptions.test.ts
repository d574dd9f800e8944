import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as Task from "@skein/tasks/Task"
import { StoreError, TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"
import { defaults, TaskBounds } from "../../src/internal/base/bounds.ts"

const acknowledged = "notifications/subscriptions/acknowledged"
const id = "io.modelcontextprotocol/subscriptionId"

const listen = (client: kit.Client, notifications: kit.Json) =>
  Effect.as(kit.settle, client.send("subscriptions/listen", { notifications })).pipe(Effect.tap(() => kit.settle))

const taskNotifications = (client: kit.Client) => client.notices("notifications/tasks").map(({ params }) => params)

describe("io.modelcontextprotocol/tasks · notifications/tasks through subscriptions/listen", () => {
  it.effect("2026-07-28 · MUST return -32021, specifying the missing capabilities, to a client that has not declared it", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect({ can: {} })
      const error = yield* client.error("subscriptions/listen", { notifications: { taskIds: [] } })
      expect([error.code, error.data]).toEqual([-32021, { requiredCapabilities: kit.tasks }])
      const other = yield* listen(client, { toolsListChanged: true })
      expect(client.answers(other)).toEqual([])
      expect(client.notices(acknowledged)[0].params.notifications).toEqual({ toolsListChanged: true })
    }))

  it.effect("2026-07-28 · acknowledges the ids that it watches: the caller's own, each once", () =>
    Effect.gen(function*() {
      const { definition } = tools.gated()
      const { connect } = yield* kit.server([definition])
      const alice = yield* connect({ principal: { id: "alice" } })
      const eve = yield* connect({ principal: { id: "eve" } })
      const a = yield* kit.begin(alice, "bake")
      const b = yield* kit.begin(alice, "bake")
      const taskIds = [a.taskId, "unknown", b.taskId, a.taskId]
      yield* listen(alice, { taskIds, promptsListChanged: true })
      yield* listen(eve, { taskIds })
      expect(alice.notices(acknowledged)[0].params.notifications).toEqual({ taskIds: [a.taskId, b.taskId] })
      expect(eve.notices(acknowledged)[0].params.notifications).toEqual({ taskIds: [] })
      expect(taskNotifications(alice).map(({ taskId }) => taskId)).toEqual([a.taskId, b.taskId])
      expect(taskNotifications(eve)).toEqual([])
    }))

  it.effect("2026-07-28 · sends the state immediately, then each change, identical to what tasks/get would have returned", () =>
    Effect.gen(function*() {
      const { definition, open } = tools.gated()
      const { connect } = yield* kit.server([definition, tools.asking, tools.refusing])
      const client = yield* connect({ can: { ...kit.tasks, elicitation: {} } })
      const same = (taskId: string) =>
        Effect.map(kit.get(client, taskId), ({ _meta, resultType: _type, ...task }) => {
          const { _meta: _, ...last } = taskNotifications(client).findLast((params) => params.taskId === taskId)!
          expect(last).toEqual(task)
          return task.status
        })
      const bake = (yield* kit.begin(client, "bake")).taskId
      const ask = (yield* kit.begin(client, "asking")).taskId
      const over = (yield* kit.begin(client, "refusing")).taskId
      const asked = yield* listen(client, { taskIds: [bake, ask, over] })
      expect([yield* same(bake), yield* same(ask), yield* same(over)]).toEqual(["working", "input_required", "failed"])
      yield* client.result("tasks/update", { taskId: ask, inputResponses: { first: { action: "decline" } } })
      yield* kit.settle
      expect(yield* same(ask)).toBe("input_required")
      yield* client.result("tasks/cancel", { taskId: ask })
      yield* open("baked")
      yield* kit.settle
      expect([yield* same(bake), yield* same(ask)]).toEqual(["completed", "cancelled"])
      for (const { _meta } of taskNotifications(client)) expect(_meta).toEqual({ [id]: asked })
      // The subscription stays open although all of its tasks have ended.
      expect(client.answers(asked)).toEqual([])
    }))

  it.effect("2026-07-28 · notifications/progress and notifications/message MUST NOT be sent for a task", () =>
    Effect.gen(function*() {
      const { definition, next } = tools.reporting()
      const talking = Task.layer(Task.make("talking"), () => Effect.as(Effect.logError("loud"), "said"))
      const { connect } = yield* kit.server([definition, talking])
      const client = yield* connect()
      const _meta = { progressToken: "p", "io.modelcontextprotocol/logLevel": "debug" }
      const { taskId } = yield* client.result("tools/call", { name: "reporting", _meta })
      yield* client.result("tools/call", { name: "talking", _meta })
      yield* listen(client, { taskIds: [taskId] })
      yield* next(0)
      yield* next(1)
      yield* kit.settle
      expect(taskNotifications(client).at(-1).status).toBe("completed")
      expect(client.notices("notifications/progress")).toEqual([])
      expect(client.notices("notifications/message")).toEqual([])
    }))

  it.effect("2026-07-28 · with more ids than can be watched reads the first ones only", () =>
    Effect.gen(function*() {
      const { definition } = tools.gated()
      const { connect, fake } = yield* Effect.provideService(
        kit.server([definition]),
        TaskBounds,
        { ...defaults, maxWatchedTasks: 2 }
      )
      const client = yield* connect()
      const ids = yield* Effect.forEach([1, 2, 3], () => Effect.map(kit.begin(client, "bake"), ({ taskId }) => taskId))
      fake.looks.length = 0
      yield* listen(client, { taskIds: ids })
      expect(client.notices(acknowledged)[0].params.notifications).toEqual({ taskIds: ids.slice(0, 2) })
      expect(fake.looks.filter((name) => name === "get")).toHaveLength(2)
    }))

  it.effect("2026-07-28 · a store that fails: -32603 and a reference, from every method", () =>
    Effect.gen(function*() {
      const { definition } = tools.gated()
      const { connect, fake } = yield* kit.server([definition])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "bake")
      fake.broken = new TaskError({ reason: new StoreError({ message: "secret" }) })
      const refused = yield* client.error("subscriptions/listen", { notifications: { taskIds: [taskId] } })
      expect(refused).toEqual({ code: -32603, message: "Internal error", data: { reference: expect.any(String) } })
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        const error = yield* client.error(method, { taskId, inputResponses: {} })
        expect([error.code, error.data]).toEqual([-32603, { reference: expect.any(String) }])
      }
    }))

  it.effect("2026-07-28 · rejects ids that are not strings with -32602", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      for (const taskIds of [5, "x", [5], {}]) {
        expect((yield* client.error("subscriptions/listen", { notifications: { taskIds } })).code).toBe(-32602)
      }
    }))

  it.effect("2026-07-28 · a subscription that ends does not change its tasks, and leaves no watcher", () =>
    Effect.gen(function*() {
      const { definition, open } = tools.gated()
      const { connect } = yield* kit.server([definition])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "bake")
      const requestId = yield* listen(client, { taskIds: [taskId] })
      client.notify("notifications/cancelled", { requestId })
      yield* kit.settle
      const before = taskNotifications(client).length
      expect((yield* kit.get(client, taskId)).status).toBe("working")
      yield* open()
      yield* kit.settle
      expect(taskNotifications(client)).toHaveLength(before)
    }))

  it.effect("2026-07-28 · `inputRequests` are what an equivalent standalone request would be", () =>
    Effect.gen(function*() {
      const url = Task.layer(
        Task.make("url"),
        () => Effect.as(Effect.ignore(Elicitation.url("Sign in", "https://example.com/in", { key: "sign-in" })), "ok")
      )
      const { connect } = yield* kit.server([url])
      const client = yield* connect({ can: { ...kit.tasks, elicitation: { url: {} } } })
      const { taskId } = yield* kit.begin(client, "url")
      yield* listen(client, { taskIds: [taskId] })
      const params = { mode: "url", message: "Sign in", url: "https://example.com/in" }
      expect(taskNotifications(client)[0].inputRequests).toEqual({
        "sign-in": { method: "elicitation/create", params: expect.objectContaining(params) }
      })
    }))
})
