/** Which clients are asked the questions of a task. */
import { describe, expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { settle } from "../../../server/test/kit.ts"
import * as kit from "./kit.ts"

const form = Elicitation.form("Who are you?", { name: Schema.String }, { key: "who" })

const ask = (options?: Task.ToolPolicyOptions) =>
  Task.layer(
    Task.make("ask", options ?? {}),
    () => Effect.map(Elicitation.accepted(form), ({ name }) => `Hello, ${name}!`)
  )

const both = Task.layer(Task.make("both", { inputFrom: "anyone" }), () =>
  Effect.map(
    Effect.all([
      Elicitation.accepted(form),
      Sampling.createMessage({ messages: [Sampling.user("Say hello")], maxTokens: 10 })
    ], { concurrency: "unbounded" }),
    ([{ name }, hello]) => `${Sampling.text(hello)}, ${name}!`
  ))

const can = (more: JsonObject) => ({ ...kit.tasks, ...more })
const answer = (name: string) => ({ action: "accept", content: { name } })
const keys = ({ inputRequests }: kit.Json): ReadonlyArray<string> => Object.keys(inputRequests)

describe("2026-07-28 · MUST NOT send inputRequests that the client has not declared support for", () => {
  it.effect("a question is in the tasks/get of declaring clients only; the others see that the task waits", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([ask()])
      const asked = yield* connect({ can: can({ elicitation: {} }) })
      const { taskId } = yield* kit.begin(asked, "ask")
      expect(keys(yield* kit.get(asked, taskId))).toEqual(["who"])
      for (const other of [{}, { elicitation: { url: {} } }, { sampling: {} }]) {
        const seen = yield* kit.get(yield* connect({ can: can(other) }), taskId)
        expect(seen).toMatchObject({ status: "input_required", inputRequests: {} })
        expect(seen.statusMessage).toBe(
          "Waiting for an answer to elicitation/create, which this client has not declared"
        )
      }
      const able = yield* connect({ can: can({ elicitation: { form: {} } }) })
      yield* able.request("tasks/update", { taskId, inputResponses: { who: answer("Ada") } })
      yield* settle
      expect((yield* kit.get(able, taskId)).result.content[0].text).toBe("Hello, Ada!")
    }))

  it.effect("of several questions each is shown to the clients that can answer it, and the status message stays", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([both])
      const all = yield* connect({ can: can({ elicitation: {}, sampling: {} }) })
      const { taskId } = yield* kit.begin(all, "both")
      expect(keys(yield* kit.get(all, taskId))).toHaveLength(2)
      const some = yield* kit.get(yield* connect({ can: can({ elicitation: {} }) }), taskId)
      expect(keys(some)).toEqual(["who"])
      expect(some.statusMessage).toBeUndefined()
    }))

  it.effect("nor are they in a notifications/tasks", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([ask()])
      const able = yield* connect({ can: can({ elicitation: {} }) })
      const { taskId } = yield* kit.begin(able, "ask")
      for (const [client, expected] of [[able, ["who"]], [yield* connect(), []]] as const) {
        client.send("subscriptions/listen", { notifications: { taskIds: [taskId] } })
        yield* settle
        const [notification] = client.notices("notifications/tasks")
        expect(keys(notification.params)).toEqual(expected)
      }
    }))
})

describe("the clients that a task may ask (`inputFrom`)", () => {
  it.effect("caller: a question that the calling client has not declared fails immediately, as in a call", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([ask()])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "ask")
      expect(yield* kit.get(client, taskId)).toMatchObject({ status: "failed", error: { code: -32021 } })
    }))

  it.effect("anyone: the question waits for a declaring client that reads the task", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([ask({ inputFrom: "anyone" })])
      const first = yield* connect()
      const { taskId } = yield* kit.begin(first, "ask")
      expect(yield* kit.get(first, taskId)).toMatchObject({ status: "input_required", inputRequests: {} })
      const other = yield* connect({ can: can({ elicitation: {} }) })
      expect(keys(yield* kit.get(other, taskId))).toEqual(["who"])
      yield* other.request("tasks/update", { taskId, inputResponses: { who: answer("Ada") } })
      yield* settle
      expect((yield* kit.get(first, taskId)).result.content[0].text).toBe("Hello, Ada!")
    }))

  it.effect("2025-11-25 · the same: it is sent on a tasks/result of a client that declares it", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([ask({ inputFrom: "anyone" })])
      const revision = "2025-11-25" as const
      const first = yield* connect({ revision, can: {} })
      const { task } = yield* first.result("tools/call", { name: "ask", arguments: {}, task: {} })
      yield* settle
      const waiting = first.send("tasks/result", { taskId: task.taskId })
      yield* settle
      expect(first.notices("elicitation/create")).toEqual([])
      const other = yield* connect({ revision, can: { elicitation: {} } })
      const again = other.send("tasks/result", { taskId: task.taskId })
      yield* settle
      const [question] = other.notices("elicitation/create")
      other.answerRaw({ _tag: "Success", id: question.id, result: answer("Ada") })
      for (const [client, id] of [[first, waiting], [other, again]] as const) {
        expect((yield* client.answer(id)).result.content[0].text).toBe("Hello, Ada!")
      }
    }))

  for (const revision of ["2025-06-18", "2026-07-28"] as ReadonlyArray<Revision>) {
    it.effect(`${revision} · a call that waits for its task asks its own client only`, () =>
      Effect.gen(function*() {
        const { connect } = yield* kit.server([ask({ inputFrom: "anyone" })])
        const client = yield* connect({ revision, can: {} })
        const answered = yield* client.request("tools/call", { name: "ask", arguments: {} })
        expect(JSON.stringify(answered)).toMatch(/elicitation/)
        expect(answered.error?.code ?? answered.result.isError).toBe(revision === "2026-07-28" ? -32021 : true)
      }))
  }
})
