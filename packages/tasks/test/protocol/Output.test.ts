/** The output of tasks as resources of their server. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Elicitation from "@skein/server/Elicitation"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

const report = Task.layer(Task.make("report", { inputFrom: "anyone" }), () =>
  Effect.gen(function*() {
    yield* Task.emit({ page: 1 })
    yield* Task.emit("page 2")
    yield* Effect.orDie(Elicitation.form("More?", { more: Schema.Boolean }))
    yield* Task.emit("page 3")
    return "3 pages"
  }))

const ada = { principal: { id: "ada" } }
const eve = { principal: { id: "eve" } }

const opened = Effect.gen(function*() {
  const { connect, context } = yield* kit.server([report], {}, MemoryTasks.layer() as never)
  const engine = Context.get(context, TaskEngine)
  const { taskId } = yield* kit.begin(yield* connect(ada), "report")
  const state = yield* Effect.repeat(engine.get(taskId as string), {
    until: (state) => state?.status === "input_required"
  })
  const more = engine.answer(taskId, state!.questions[0]!.key, { action: "accept", content: { more: true } })
  return { connect, more, taskId: taskId as string, uri: `task-output://${taskId}` }
})

const read = (client: kit.Client, uri: string) =>
  Effect.map(client.result("resources/read", { uri }), ({ contents: [content] }) => {
    expect(content).toMatchObject({ uri, mimeType: "application/json" })
    return JSON.parse(content.text)
  })

const updates = (client: kit.Client) =>
  client.notices("notifications/resources/updated").map(({ params }) => params.uri as string)

describe("task-output", () => {
  for (const revision of Revision.all) {
    it.live(`${revision} · its owner reads the output of a task from an offset, and nobody else does`, () =>
      Effect.gen(function*() {
        const { connect, more, uri } = yield* opened
        const client = yield* connect({ ...ada, revision })
        expect((yield* client.result("resources/templates/list")).resourceTemplates).toMatchObject([
          { uriTemplate: "task-output://{taskId}{?from}", name: "task-output" }
        ])
        expect(yield* read(client, uri)).toEqual({ items: [{ page: 1 }, "page 2"], next: 2, count: 2, hasEnded: false })
        expect(yield* read(client, `${uri}?from=1`)).toMatchObject({ items: ["page 2"] })
        yield* more
        yield* Effect.repeat(read(client, `${uri}?from=2`), { until: ({ hasEnded }) => hasEnded === true })
        expect(yield* read(client, `${uri}?from=2`)).toEqual({ items: ["page 3"], next: 3, count: 3, hasEnded: true })
        const stranger = yield* connect({ ...eve, revision })
        const code = revision === "2026-07-28" ? -32602 : -32002
        expect((yield* stranger.error("resources/read", { uri })).code).toBe(code)
        for (const other of [`${uri}?from=-1`, `${uri}?from=x`, `${uri}/x`, "task-output://x"]) {
          expect((yield* client.error("resources/read", { uri: other })).code).toBe(code)
        }
      }).pipe(Effect.scoped))
  }

  it.live("2025-11-25 · notifies a subscriber when the output grows and when the task has ended, and nobody else", () =>
    Effect.gen(function*() {
      const { connect, more, uri } = yield* opened
      const client = yield* connect({ ...ada, revision: "2025-11-25" })
      const stranger = yield* connect({ ...eve, revision: "2025-11-25" })
      yield* client.result("resources/subscribe", { uri })
      expect((yield* stranger.error("resources/subscribe", { uri })).code).toBe(-32002)
      yield* more
      yield* Effect.repeat(Effect.sleep(5), { until: () => updates(client).length > 1 })
      expect(new Set(updates(client))).toEqual(new Set([uri]))
      expect(updates(stranger)).toEqual([])
    }).pipe(Effect.scoped))

  it.live("2026-07-28 · a subscription agrees to the caller's own outputs only", () =>
    Effect.gen(function*() {
      const { connect, more, uri } = yield* opened
      const client = yield* connect(ada)
      const stranger = yield* connect(eve)
      const notifications = { resourceSubscriptions: [uri, "task-output://unknown"] }
      for (const each of [client, stranger]) each.send("subscriptions/listen", { notifications })
      const acknowledged = (each: kit.Client) => each.notices("notifications/subscriptions/acknowledged")
      yield* Effect.repeat(Effect.sleep(5), {
        until: () => acknowledged(client).length > 0 && acknowledged(stranger).length > 0
      })
      expect(acknowledged(client)[0].params.notifications).toEqual({ resourceSubscriptions: [uri] })
      expect(acknowledged(stranger)[0].params.notifications).toEqual({ resourceSubscriptions: [] })
      yield* more
      yield* Effect.repeat(Effect.sleep(5), { until: () => updates(client).length > 0 })
      expect(updates(stranger)).toEqual([])
    }).pipe(Effect.scoped))

  it.live("is no resource of a server whose tasks cannot emit", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([], {}, MemoryTasks.layer() as never)
      const client = yield* connect(ada)
      expect((yield* client.result("server/discover")).capabilities.resources).toBeUndefined()
    }).pipe(Effect.scoped))
})
