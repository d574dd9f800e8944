/** Questions of tasks that name who answers them. */
import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as Tool from "@skein/server/Tool"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

const approval = Elicitation.form("Pay 5,000 euros?", { yes: Schema.Boolean }, { key: "approve", to: "finance" })

const paying = Task.layer(
  Task.make("pay"),
  () => Effect.map(Elicitation.accepted(approval), ({ yes }) => yes ? "paid" : "refused")
)

const groups = new Map([["bob", ["finance"]], ["eve", ["sales"]]])

/** A server whose persons are in groups. */
const serve = kit.server(
  [paying, TaskTools.layer()],
  { addresses: ({ principal }) => principal === undefined ? [] : [principal.id, ...groups.get(principal.id) ?? []] },
  Layer.orDie(MemoryTasks.layer())
)

const as = (id: string, more: Partial<kit.Who> = {}): kit.Who => ({ principal: { id }, ...more })
const asking = { ...kit.tasks, elicitation: {} }
const forged = { inputResponses: { approve: { action: "accept", content: { yes: true } } } }
const noTasks = { can: {} }

/** The questions that a client was asked by requests of the server. */
const asked = ({ received }: kit.Client) => received.filter(({ method }) => method === "elicitation/create")

const use = (client: kit.Client, name: string, args: kit.Json = {}) =>
  Effect.map(client.call(name, args), ({ isError, structuredContent, content }) => ({
    isError,
    structured: structuredContent,
    text: content[0].text as string
  }))

describe("a question for others than the owner of its task", () => {
  it.effect("is neither shown to the owner nor answered by it, and is by a member of the group", () =>
    Effect.gen(function*() {
      const { connect } = yield* serve
      const ada = yield* connect(as("ada", { can: asking }))
      const { taskId } = yield* kit.begin(ada, "pay")
      expect(yield* kit.get(ada, taskId)).toMatchObject({
        status: "input_required",
        inputRequests: {},
        statusMessage: "Waiting for an answer of finance"
      })
      yield* ada.request("tasks/update", { taskId, ...forged })
      yield* kit.settle
      expect(yield* kit.get(ada, taskId)).toMatchObject({ status: "input_required" })
      const model = yield* connect(as("ada", noTasks))
      expect((yield* use(model, "task_questions")).structured).toEqual({ questions: [] })
      expect(yield* use(model, "task_answer", { taskId, content: { yes: true } })).toMatchObject({
        isError: true,
        text: "The task has no open question"
      })

      const bob = yield* connect(as("bob", noTasks))
      const { structured } = yield* use(bob, "task_questions")
      expect(structured.questions).toMatchObject([
        { taskId, tool: "pay", question: "approve", message: "Pay 5,000 euros?", answerable: true }
      ])
      expect((yield* use(bob, "task_status", { taskId })).isError).toBe(true)
      const answered = yield* use(bob, "task_answer", { taskId, content: { yes: true } })
      expect(answered.isError).toBeUndefined()
      expect(answered.structured).not.toHaveProperty("result")
      yield* kit.settle
      expect((yield* kit.get(ada, taskId)).result.content[0].text).toBe("paid")
      expect((yield* use(bob, "task_questions")).structured).toEqual({ questions: [] })
    }))

  it.effect("cannot be told from an unknown task by a person who is not asked", () =>
    Effect.gen(function*() {
      const { connect } = yield* serve
      const { taskId } = yield* kit.begin(yield* connect(as("ada")), "pay")
      const eve = yield* connect(as("eve", noTasks))
      expect((yield* use(eve, "task_questions")).structured).toEqual({ questions: [] })
      const known = yield* use(eve, "task_answer", { taskId, content: { yes: true } })
      const unknown = yield* use(eve, "task_answer", { taskId: "x".repeat(32), content: { yes: true } })
      expect(known).toEqual(unknown)
      expect(known.isError).toBe(true)
    }))

  it.effect("an owner who is in the group answers it, and own code finds and answers it", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* serve
      const bob = yield* connect(as("bob", { can: asking }))
      const { taskId } = yield* kit.begin(bob, "pay")
      expect(Object.keys((yield* kit.get(bob, taskId)).inputRequests)).toEqual(["approve"])
      yield* bob.request("tasks/update", { taskId, ...forged })
      yield* kit.settle
      expect((yield* kit.get(bob, taskId)).result.content[0].text).toBe("paid")

      const second = yield* kit.begin(bob, "pay")
      const engine = Context.get(context, TaskEngine)
      const [found] = yield* engine.questionsFor(["finance"])
      expect(found).toMatchObject({
        task: { id: second.taskId, tool: "pay", owner: "bob" },
        question: { key: "approve", to: "finance" }
      })
      yield* engine.answer(second.taskId, "approve", { action: "accept", content: { yes: false } })
      yield* kit.settle
      expect((yield* kit.get(bob, second.taskId)).result.content[0].text).toBe("refused")
      expect(yield* engine.questionsFor(["finance"])).toEqual([])
    }))

  it.effect("2025-11-25 · is not asked on the stream of the owner's tasks/result", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* serve
      const ada = yield* connect(as("ada", { revision: "2025-11-25", can: { elicitation: {} } }))
      const { task } = yield* ada.result("tools/call", { name: "pay", task: {} })
      const pending = ada.send("tasks/result", { taskId: task.taskId })
      yield* kit.settle
      expect(asked(ada)).toEqual([])
      yield* Context.get(context, TaskEngine).answer(task.taskId, "approve", { action: "decline" })
      yield* kit.settle
      expect((yield* ada.answer(pending)).result.isError).toBe(true)
      expect(asked(ada)).toEqual([])
    }))

  it.effect("is not asked through a call that waits for its task", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* serve
      const ada = yield* connect(as("ada", { revision: "2025-06-18", can: { elicitation: {} } }))
      const called = ada.send("tools/call", { name: "pay" })
      yield* kit.settle
      const engine = Context.get(context, TaskEngine)
      const [found] = yield* engine.questionsFor(["finance"])
      yield* engine.answer(found!.task.id, "approve", { action: "accept", content: { yes: true } })
      yield* kit.settle
      expect((yield* ada.answer(called)).result.content[0].text).toBe("paid")
      expect(asked(ada)).toEqual([])
    }))

  it.effect("an ordinary call cannot ask others than its caller", () =>
    Effect.gen(function*() {
      const tool = Tool.layer(Tool.make("ask"), () => Effect.as(Elicitation.accepted(approval), "asked"))
      const { connect } = yield* kit.server([tool])
      const ada = yield* connect(as("ada", { can: { elicitation: {} } }))
      expect((yield* ada.call("ask", {})).content[0].text).toContain(
        "elicitation/create has `to`, and only a task asks others than its caller"
      )
    }))
})
