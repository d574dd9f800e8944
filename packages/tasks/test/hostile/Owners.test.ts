/** Owners: principals, owner policies that differ between tools, and callers that try to be another owner. */
import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as TaskTools from "@skein/tasks/TaskTools"
import type * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as kit from "../protocol/kit.ts"

const server = (definitions: Parameters<typeof kit.server>[0], options?: Tasks.Options) =>
  kit.server(definitions, options, MemoryTasks.layer() as never)

const mine = Task.layer(Task.make("mine"), () => Effect.never)
/** Belongs to the team of its caller, independently of the other tools of the server. */
const teams = Task.layer(
  Task.make("teams", { owner: ({ principal }) => (principal?.claims as kit.Json)?.team ?? null }),
  () => Effect.andThen(Task.setStatusMessage("a secret of the team"), Effect.never)
)

const who = (id: string, team: string) => ({ id, claims: { team } })
const unknown = { code: -32602, message: "Task not found: the id is unknown, or the task has expired" }

describe("owners", () => {
  it.live("a caller with the name that another policy gives to somebody else sees none of their tasks, in no listing", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* server([mine, teams, TaskTools.layer()])
      const ann = yield* connect({ principal: who("ann", "acme") })
      const { taskId } = yield* kit.begin(ann, "teams")
      const own = yield* kit.begin(ann, "mine")
      const bob = yield* connect({ principal: who("bob", "acme"), revision: "2025-11-25" })
      expect((yield* bob.result("tasks/list")).tasks.map((task: kit.Json) => task.taskId)).toEqual([taskId])

      const stranger = who("acme", "ann")
      const legacy = yield* connect({ principal: stranger, revision: "2025-11-25" })
      const plain = yield* connect({ principal: stranger, can: {} })
      expect((yield* legacy.result("tasks/list")).tasks).toEqual([])
      expect((yield* plain.call("task_list")).structuredContent.tasks).toEqual([])
      for (const id of [taskId, own.taskId]) {
        for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
          expect(yield* legacy.error(method, { taskId: id })).toEqual(unknown)
        }
      }
    })))

  it.live("pages keep their size and order when other callers' tasks lie between", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* server([mine, teams], { pageSize: 2 })
      const ann = yield* connect({ principal: who("ann", "acme") })
      const acme = yield* connect({ principal: who("acme", "x") })
      const first = yield* kit.begin(acme, "mine")
      for (let each = 0; each < 5; each++) yield* kit.begin(ann, "teams")
      const last = yield* kit.begin(acme, "mine")
      const client = yield* connect({ principal: who("acme", "x"), revision: "2025-11-25" })
      const { entries, pages } = yield* client.all("tasks/list", "tasks")
      expect(entries.map(({ taskId }) => taskId)).toEqual([last.taskId, first.taskId])
      expect(pages).toBe(4)
    })))

  it.live("a disabled tool keeps the owners of its tasks", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect, context } = yield* server([mine, teams])
      const ann = yield* connect({ principal: who("ann", "acme") })
      const { taskId } = yield* kit.begin(ann, "teams")
      const stranger = yield* connect({ principal: who("acme", "ann") })
      const scope = yield* Scope.make()
      yield* Effect.provide(Scope.provide(Catalog.disable("tool", "teams"), scope), context)
      for (
        const [method, more] of [["tasks/get"], ["tasks/update", { inputResponses: {} }], ["tasks/cancel"]] as const
      ) {
        expect(yield* stranger.error(method, { taskId, ...more })).toEqual(unknown)
      }
      expect((yield* kit.get(ann, taskId)).status).toBe("working")
      yield* Scope.close(scope, Exit.void)
      expect(yield* stranger.error("tasks/get", { taskId })).toEqual(unknown)
    })))

  it.live("a caller without an owner is neither the principal `null` nor a principal with an empty id", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* server([mine])
      const nobody = yield* connect()
      yield* kit.begin(nobody, "mine")
      const ids: Array<string> = []
      for (const id of ["null", "", "undefined", "=", "default", "__proto__"]) {
        const client = yield* connect({ principal: { id } })
        const { taskId } = yield* kit.begin(client, "mine")
        const list = yield* connect({ principal: { id }, revision: "2025-11-25" })
        expect((yield* list.result("tasks/list")).tasks.map((task: kit.Json) => task.taskId)).toEqual([taskId])
        expect(yield* nobody.error("tasks/get", { taskId })).toEqual(unknown)
        for (const other of ids) expect(yield* client.error("tasks/get", { taskId: other })).toEqual(unknown)
        ids.push(taskId)
      }
    })))

  it.live("2026-07-28 · a subscription agrees to the caller's own tasks only, and receives no others", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* server([mine, teams])
      const ann = yield* connect({ principal: who("ann", "acme") })
      const eve = yield* connect({ principal: who("acme", "ann") })
      const { taskId } = yield* kit.begin(ann, "teams")
      const own = yield* kit.begin(eve, "mine")
      const asked = [taskId, own.taskId, "unknown", "\0", "A".repeat(32), "x".repeat(100_000), taskId]
      eve.send("subscriptions/listen", { notifications: { taskIds: asked } })
      yield* Effect.repeat(Effect.sleep(2), { until: () => eve.received.length >= 3 })
      const acknowledged = eve.received.find(({ method }) => method === "notifications/subscriptions/acknowledged")
      expect(acknowledged.params.notifications).toEqual({ taskIds: [own.taskId] })
      yield* ann.result("tasks/cancel", { taskId })
      yield* eve.result("tasks/cancel", { taskId: own.taskId })
      yield* Effect.repeat(Effect.sleep(2), { until: () => JSON.stringify(eve.received).includes("cancelled") })
      expect(JSON.stringify(eve.received)).not.toContain(taskId)
    })))
})
