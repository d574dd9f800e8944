import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Task from "@skein/tasks/Task"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as serverKit from "../../../server/test/kit.ts"
import * as kit from "../legacy/kit.ts"

const measured = Task.layer(
  Task.make("measured", { output: { sum: Schema.Finite } }),
  () => Effect.andThen(Effect.sleep("1 minute"), Effect.succeed({ sum: 3 }))
)
const hidden = Task.layer(
  Task.make("hidden", { taskSupport: "forbidden" }),
  () => Effect.as(Effect.sleep("1 minute"), "Late")
)
const think = Task.layer(Task.make("think"), () =>
  Effect.catch(
    Effect.map(Sampling.createMessage({ messages: "Think", maxTokens: 9 }), Sampling.text),
    ({ reason }) => Effect.succeed(reason._tag)
  ))
const sure = Task.layer(
  Task.make("sure"),
  () => Effect.map(Elicitation.form("Sure?", { really: Schema.Boolean }), ({ action }) => action)
)

const names = ["task_status", "task_answer", "task_cancel", "task_list", "task_questions"]
const set = (options: TaskTools.Options = {}) =>
  kit.set({}, [...kit.all, measured, hidden, think, sure, TaskTools.layer(options)])

const offered = (client: serverKit.Client) =>
  Effect.map(
    client.result("tools/list"),
    ({ tools }) => tools.map(({ name }: kit.Json) => name).filter((name: string) => name.startsWith("task_"))
  )

/** Calls a task that takes longer than `waitTimeout`, and returns its id. */
const begin = (client: serverKit.Client, name: string, params?: kit.Json) =>
  Effect.gen(function*() {
    const call = client.send("tools/call", { name, ...params })
    yield* kit.pass("20 seconds")
    const { result } = yield* client.answer(call)
    return { result, taskId: /^Task (\S+) of/m.exec(result.content[0].text)![1]! }
  })

const status = (client: serverKit.Client, taskId: string, waitSeconds = 0) =>
  client.call("task_status", { taskId, waitSeconds })

describe("tools for tasks", () => {
  for (const revision of ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · are offered to clients without tasks; \`task_list\` to identified callers`, () =>
      Effect.gen(function*() {
        const { connect } = yield* set()
        expect(yield* offered(yield* connect({ revision }))).toEqual(names.slice(0, 3))
        expect(yield* offered(yield* connect({ revision, principal: { id: "ann" } }))).toEqual(names)
      }))
  }

  it.effect("2025-11-25 · are hidden from clients that have tasks of their own", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect({ capabilities: { tasks: { cancel: {} } } })
      expect(yield* offered(client)).toEqual([])
      expect((yield* client.error("tools/call", { name: "task_status", arguments: { taskId: "x" } })).code).toBe(-32602)
    }))

  it.effect("2026-07-28 · are hidden from clients that declare the extension", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect({ revision: "2026-07-28" })
      const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }
      const _meta = { "io.modelcontextprotocol/clientCapabilities": capabilities }
      const { tools } = yield* client.result("tools/list", { _meta })
      expect(tools.some(({ name }: kit.Json) => name.startsWith("task_"))).toBe(false)
    }))

  it.effect("an option decides which callers see them", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({ visible: ({ principal }) => principal?.id === "ann" })
      expect(yield* offered(yield* connect())).toEqual([])
      expect(yield* offered(yield* connect({ principal: { id: "ann" } }))).toEqual(names)
    }))

  it.effect("2025-11-25 · declare hints, and schemas of their input and output", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const { tools } = yield* (yield* connect({ principal: { id: "ann" } })).result("tools/list")
      const hints = Object.fromEntries(tools.map((tool: kit.Json) => [tool.name, tool.annotations]))
      expect(hints["task_status"]).toMatchObject({ readOnlyHint: true, idempotentHint: true })
      expect(hints["task_list"]).toMatchObject({ readOnlyHint: true, idempotentHint: true })
      expect(hints["task_answer"]).toMatchObject({ readOnlyHint: false, destructiveHint: false })
      expect(hints["task_cancel"]).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true })
      for (const tool of tools.filter(({ name }: kit.Json) => name.startsWith("task_"))) {
        expect(tool.description.length).toBeGreaterThan(40)
        expect(tool.outputSchema.type).toBe("object")
        expect(tool.execution).toBe(undefined)
      }
    }))

  it.effect("require `Tasks.layer`", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(
        Effect.scoped(Layer.build(serverKit.server(TaskTools.layer()) as serverKit.Server))
      )
      expect(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "built").toContain("requires `Tasks.layer`")
    }))

  it.effect("another tool of the server with such a name fails the server", () =>
    Effect.gen(function*() {
      const own = Tool.layer(Tool.make("task_status"), () => Effect.succeed("mine"))
      const error = yield* serverKit.failure(serverKit.server(own, TaskTools.layer()) as never)
      expect(error).toMatchObject({ _tag: "DefinitionError", reason: { _tag: "DuplicateName" } })
    }))
})

describe("a call of a task by a client without tasks", () => {
  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · returns the task's id after \`waitTimeout\`, and \`task_status\` returns the result`, () =>
      Effect.gen(function*() {
        const { connect, fake } = yield* set()
        const client = yield* connect({ revision })
        const call = client.send("tools/call", { name: "sleepy" })
        expect((yield* client.answer(call)).error.code).toBe(-32602)
        const slow = client.send("tools/call", { name: "measured" })
        yield* kit.pass("19 seconds")
        expect(client.answers(slow)).toEqual([])
        yield* kit.pass("1 second")
        const { result } = yield* client.answer(slow)
        const [taskId] = fake.rows.keys()
        expect(result.content[0].text).toContain(`Task ${taskId} of the tool measured: working`)
        expect(result.content[0].text).toContain("task_status")
        yield* kit.pass("40 seconds")
        const over = yield* status(client, taskId!)
        expect(over.content[0].text).toContain("completed")
        expect(over.content[1].text).toBe("{\"sum\":3}")
        if (revision >= "2025-06-18") {
          expect(over.structuredContent.result.structuredContent).toEqual({ sum: 3 })
        }
      }))
  }

  it.effect("returns a result that is there in time", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "bake" })
      for (let second = 0; second < 3; second++) yield* kit.pass("1 second")
      expect((yield* client.answer(call)).result.content).toEqual([{ type: "text", text: "A cake" }])
    }))

  it.effect("`waitTimeout` is an option", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({ waitTimeout: "2 seconds" })
      const client = yield* connect()
      const call = client.send("tools/call", { name: "measured" })
      yield* kit.pass("2 seconds")
      expect((yield* client.answer(call)).result.content[0].text).toContain("has not ended yet")
    }))

  it.effect("2025-06-18 · the status of a tool with an output schema has `isError`; that of others does not", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect({ capabilities: { elicitation: {} } })
      expect((yield* begin(client, "measured")).result).toMatchObject({ isError: true })
      expect((yield* begin(client, "book")).result).not.toHaveProperty("isError")
    }))

  it.effect("without the tools it waits for the result, however long", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({}, [measured])
      const client = yield* connect()
      const call = client.send("tools/call", { name: "measured" })
      yield* kit.pass("59 seconds")
      expect(client.answers(call)).toEqual([])
      yield* kit.pass("1 second")
      expect((yield* client.answer(call)).result.structuredContent).toEqual({ sum: 3 })
    }))

  it.effect("so it does for a tool whose tasks clients never see", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "hidden" })
      yield* kit.pass("1 minute")
      expect((yield* client.answer(call)).result.content[0].text).toBe("Late")
    }))

  it.effect("2025-11-25 · and for a client that has tasks of its own", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect({ capabilities: { tasks: {} } })
      const call = client.send("tools/call", { name: "measured" })
      yield* kit.pass("1 minute")
      expect((yield* client.answer(call)).result.structuredContent).toEqual({ sum: 3 })
    }))

  it.effect("cancelling it before that cancels the task; after its response the task continues", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set()
      const client = yield* connect()
      const call = client.send("tools/call", { name: "measured" })
      yield* kit.pass("5 seconds")
      client.notify("notifications/cancelled", { requestId: call })
      yield* kit.settle
      const [first] = fake.rows.keys()
      expect(fake.find(first!)!.state.status).toBe("cancelled")
      const { taskId } = yield* begin(client, "measured")
      expect(fake.find(taskId)!.state.status).toBe("working")
      yield* kit.settle
      expect(fake.watching).toBe(0)
    }))

  it.effect("2025-11-25 · asks a client that can be asked; withdraws unanswered questions after `waitTimeout`", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect({ capabilities: kit.forms })
      const { result, taskId } = yield* begin(client, "book")
      expect(kit.asked(client).map(({ params }) => params.message)).toEqual(["How many?"])
      expect(kit.withdrawn(client)).toEqual([kit.asked(client)[0].id])
      expect(result.content[0].text).toContain("How many?")
      yield* client.call("task_answer", { taskId, content: { people: 2 } })
      expect((yield* status(client, taskId)).structuredContent.questions[0].message).toBe("Whose name?")
    }))

  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · a client that cannot be asked gets the questions immediately, and the model answers them`, () =>
      Effect.gen(function*() {
        const { connect } = yield* set()
        const client = yield* connect({ revision })
        const { content: [{ text }] } = yield* client.call("book")
        expect(text).toContain("\"q1\": How many?")
        expect(text).toContain("\"people\":{\"type\":\"integer\"")
        expect(text).toContain("task_answer")
        const taskId = /^Task (\S+) of/m.exec(text)![1]!
        const wrong = yield* client.call("task_answer", { taskId, content: { people: "four" } })
        expect(wrong.isError).toBe(true)
        expect(wrong.content[0].text).toContain("content.people")
        yield* client.call("task_answer", { taskId, question: "q1", content: { people: 4 } })
        const next = yield* status(client, taskId)
        expect(next.content[0].text).toContain("Whose name?")
        yield* client.call("task_answer", { taskId, action: "accept", content: { name: "Ann" } })
        yield* kit.settle
        expect((yield* status(client, taskId)).content[1].text).toBe("4 for Ann")
      }))
  }

  it.effect("does not ask a model what only a client can answer", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect()
      expect((yield* client.call("think")).content[0].text).toBe("MissingCapability")
    }))
})

describe("task_answer", () => {
  it.effect("declines for the user", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect()
      for (const action of ["decline", "cancel"]) {
        const taskId = /^Task (\S+) of/m.exec((yield* client.call("sure")).content[0].text)![1]!
        yield* client.call("task_answer", { taskId, action })
        yield* kit.settle
        expect((yield* status(client, taskId)).content[1].text).toBe(action)
      }
    }))

  it.effect("reports mistakes of a model: no question, several questions, an unknown key, an earlier answer", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set()
      const client = yield* connect()
      fake.manual = true
      const { taskId } = yield* begin(client, "book")
      const say = (args: kit.Json) =>
        Effect.map(
          client.call("task_answer", { taskId, ...args }),
          (result) => [result.isError, result.content[0].text]
        )
      expect(yield* say({ content: {} })).toEqual([true, "The task has no open question"])
      const params = { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } }
      fake.ask(taskId, { key: "a", method: "elicitation/create", params })
      fake.ask(taskId, { key: "b", method: "elicitation/create", params })
      expect((yield* say({ content: {} }))[1]).toContain("\"a\", \"b\"")
      expect((yield* say({ question: "c", content: {} }))[1]).toContain("\"a\", \"b\"")
      fake.ask(taskId, { key: "s", method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } })
      expect((yield* say({ question: "s" }))[1]).toContain("only the client can")
      fake.answer = () => false
      expect((yield* say({ question: "a", content: {} }))[1]).toBe("The question is no longer open")
    }))
})

describe("task_status", () => {
  it.effect("waits for the end, and reports progress meanwhile", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({ waitTimeout: "1 second" })
      const client = yield* connect()
      const call = client.send("tools/call", { name: "bake" })
      yield* kit.pass("1 second")
      const taskId = /^Task (\S+) of/m.exec((yield* client.answer(call)).result.content[0].text)![1]!
      const first = client.send("tools/call", {
        name: "task_status",
        arguments: { taskId },
        _meta: { progressToken: "p" }
      })
      yield* kit.pass("1 second")
      const { result } = yield* client.answer(first)
      expect(result.structuredContent).toMatchObject({
        status: "working",
        message: "In the oven",
        progress: { progress: 2 }
      })
      expect(client.notices("notifications/progress").map(({ params }) => params.progress)).toEqual([1, 2])
      const second = client.send("tools/call", { name: "task_status", arguments: { taskId } })
      yield* kit.pass("1 second")
      expect((yield* client.answer(second)).result.content[1].text).toBe("A cake")
    }))

  it.effect("waits for a question", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set()
      const client = yield* connect()
      fake.manual = true
      const { taskId } = yield* begin(client, "book")
      const call = client.send("tools/call", { name: "task_status", arguments: { taskId } })
      yield* kit.settle
      expect(client.answers(call)).toEqual([])
      const params = { mode: "form", message: "Now?", requestedSchema: { type: "object", properties: {} } }
      fake.ask(taskId, { key: "a", method: "elicitation/create", params })
      const { result } = yield* client.answer(call)
      expect(result.structuredContent.questions).toEqual([
        { question: "a", message: "Now?", answerable: true, schema: params.requestedSchema }
      ])
    }))

  it.effect("waits no longer than `waitTimeout`", () =>
    Effect.gen(function*() {
      const { connect } = yield* set()
      const client = yield* connect()
      const { taskId } = yield* begin(client, "measured")
      expect((yield* client.call("task_status", { taskId, waitSeconds: 21 })).isError).toBe(true)
      const call = client.send("tools/call", { name: "task_status", arguments: { taskId, waitSeconds: 20 } })
      yield* kit.pass("20 seconds")
      expect((yield* client.answer(call)).result.structuredContent.status).toBe("working")
    }))

  it.effect("reports a task that has failed, without failing itself", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set()
      const client = yield* connect()
      fake.manual = true
      const ids = [(yield* begin(client, "book")).taskId, (yield* begin(client, "book")).taskId]
      fake.end(ids[0]!, { _tag: "Result", result: { content: [{ type: "text", text: "No" }], isError: true } })
      fake.end(ids[1]!, { _tag: "Error", error: { code: -5, message: "Broken" } })
      for (const [id, message] of [[ids[0]!, "No"], [ids[1]!, "Broken"]] as const) {
        const result = yield* status(client, id)
        expect(result).not.toHaveProperty("isError")
        expect(result.structuredContent).toMatchObject({ status: "failed", message })
      }
      expect((yield* status(client, ids[1]!)).structuredContent.error).toEqual({ code: -5, message: "Broken" })
    }))
})

describe("task_cancel", () => {
  it.effect("cancels a task, and reports one that has ended", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set()
      const client = yield* connect()
      const { taskId } = yield* begin(client, "measured")
      for (let time = 0; time < 2; time++) {
        expect((yield* client.call("task_cancel", { taskId })).structuredContent.status).toBe("cancelled")
      }
      expect(fake.find(taskId)!.history).toEqual(["working", "cancelled"])
    }))
})

describe("task_list", () => {
  it.effect("lists the caller's own tasks, in pages", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ pageSize: 2 }, [...kit.all, measured, TaskTools.layer()])
      const ann = yield* connect({ principal: { id: "ann" } })
      const bob = yield* connect({ principal: { id: "bob" } })
      const ids: Array<string> = []
      for (let each = 0; each < 3; each++) ids.unshift((yield* begin(ann, "measured")).taskId)
      yield* begin(bob, "measured")
      const first = (yield* ann.call("task_list", {})).structuredContent
      const second = (yield* ann.call("task_list", { cursor: first.nextCursor })).structuredContent
      expect([...first.tasks, ...second.tasks].map(({ taskId }) => taskId)).toEqual(ids)
      expect(second).not.toHaveProperty("nextCursor")
      expect((yield* ann.call("task_list", { cursor: "x" })).isError).toBe(true)
    }))
})

describe("tools for tasks: isolation", () => {
  for (const name of ["task_status", "task_answer", "task_cancel"]) {
    it.effect(`${name}: an unknown and a foreign id have the same error`, () =>
      Effect.gen(function*() {
        const { connect, fake } = yield* set()
        const ann = yield* connect({ principal: { id: "ann" } })
        const bob = yield* connect({ principal: { id: "bob" } })
        const { taskId } = yield* begin(ann, "measured")
        const foreign = yield* bob.call(name, { taskId })
        expect(foreign).toEqual(yield* bob.call(name, { taskId: "AAAA" }))
        expect(foreign.isError).toBe(true)
        expect(fake.find(taskId)!.state.status).toBe("working")
      }))
  }
})
