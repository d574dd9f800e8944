import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Task from "@skein/tasks/Task"
import { StoreError, TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

/** Asks two questions at once. */
const both = Task.layer(Task.make("both"), () =>
  Effect.map(
    Effect.all([
      Elicitation.accepted(Elicitation.form("Left?", { left: Schema.String })),
      Elicitation.accepted(Elicitation.form("Right?", { right: Schema.String }))
    ], { concurrency: "unbounded" }),
    ([{ left }, { right }]) => `${left} ${right}`
  ))

/** Asks the model, and continues after its refusal. */
const think = Task.layer(Task.make("think"), () =>
  Sampling.createMessage({ messages: "Think", maxTokens: 9 }).pipe(
    Effect.map(Sampling.text),
    Effect.catch((error) => Effect.succeed(`${error.reason}: ${error.message}`))
  ))

const definitions = [kit.book, both, think]
const form = { as: { capabilities: kit.forms }, tools: definitions } as const

const set = Effect.map(kit.set({}, definitions), (made) => made)
const messages = (questions: ReadonlyArray<kit.Json>) => questions.map(({ params }) => params.message)

describe("2025-11-25 · input_required", () => {
  it.effect("the receiver SHOULD move the task to `input_required`, and asks only clients that call `tasks/result`", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      yield* kit.settle
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("input_required")
      expect(kit.asked(client)).toEqual([])
    }))

  it.effect("questions are asked while `tasks/result` waits, MUST include the related task, and lead back to `working`", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      yield* kit.settle
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      expect(kit.asked(client)[0]).toMatchObject({
        method: "elicitation/create",
        params: { message: "How many?", mode: "form", _meta: { [kit.relatedTask]: { taskId } } }
      })
      yield* kit.reply(client, kit.asked(client)[0], {
        ...kit.accept({ people: 4 }),
        _meta: { [kit.relatedTask]: { taskId } }
      })
      expect(messages(kit.asked(client))).toEqual(["How many?", "Whose name?"])
      yield* kit.reply(client, kit.asked(client)[1], kit.accept({ name: "Ann" }))
      expect((yield* client.answer(waiting)).result.content[0].text).toBe("4 for Ann")
      expect(fake.find(taskId)!.history).toEqual([
        "working",
        "input_required",
        "working",
        "working",
        "input_required",
        "working",
        "completed"
      ])
      expect(kit.withdrawn(client)).toEqual([])
    }))

  it.effect("all open questions are asked in parallel, and answered in any order", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "both")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      const [left, right] = kit.asked(client)
      expect(messages([left, right])).toEqual(["Left?", "Right?"])
      yield* kit.reply(client, right, kit.accept({ right: "R" }))
      expect((yield* client.result("tasks/get", { taskId })).status).toBe("input_required")
      yield* kit.reply(client, left, kit.accept({ left: "L" }))
      expect((yield* client.answer(waiting)).result.content[0].text).toBe("L R")
      expect(kit.asked(client).length).toBe(2)
    }))

  it.effect("a pending question is not asked again when another one comes", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const client = yield* connect(form.as)
      fake.manual = true
      const taskId = yield* kit.make(client, "both")
      client.send("tasks/result", { taskId })
      const params = { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } }
      for (const key of ["a", "b", "c"]) {
        fake.ask(taskId, { key, method: "elicitation/create", params })
        yield* kit.settle
      }
      expect(kit.asked(client).length).toBe(3)
      expect(kit.withdrawn(client)).toEqual([])
    }))

  it.effect("each question is asked by one request at a time, the last one, and withdrawn from the request before", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const one = yield* connect(form.as)
      const other = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      const first = one.send("tasks/result", { taskId })
      yield* kit.settle
      const second = other.send("tasks/result", { taskId })
      yield* kit.settle
      expect(kit.withdrawn(one)).toEqual([kit.asked(one)[0].id])
      expect(messages(kit.asked(other))).toEqual(["How many?"])
      yield* kit.reply(other, kit.asked(other)[0], kit.accept({ people: 2 }))
      yield* kit.reply(other, kit.asked(other)[1], kit.accept({ name: "Bob" }))
      expect(kit.asked(one).length).toBe(1)
      for (const answer of [yield* one.answer(first), yield* other.answer(second)]) {
        expect(answer.result.content[0].text).toBe("2 for Bob")
      }
    }))

  it.effect("when the asking request is cancelled, its questions are withdrawn, and the request before it asks", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const one = yield* connect(form.as)
      const other = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      one.send("tasks/result", { taskId })
      yield* kit.settle
      const second = other.send("tasks/result", { taskId })
      yield* kit.settle
      other.notify("notifications/cancelled", { requestId: second })
      yield* kit.settle
      expect(kit.withdrawn(other)).toEqual([kit.asked(other)[0].id])
      expect(messages(kit.asked(one))).toEqual(["How many?", "How many?"])
      expect((yield* one.result("tasks/get", { taskId })).status).toBe("input_required")
    }))

  it.effect("when the session of the asking request ends, the request before it asks", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const one = yield* connect(form.as)
      const other = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      one.send("tasks/result", { taskId })
      other.send("tasks/result", { taskId })
      yield* kit.settle
      const before = kit.asked(one).length
      other.peer.close({ _tag: "ClosedByUs" })
      yield* other.peer.ended
      yield* kit.settle
      expect(kit.asked(one).length).toBe(before + 1)
    }))

  it.effect("an answer from elsewhere wins: the question is withdrawn, and its late answer is ignored", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      client.send("tasks/result", { taskId })
      yield* kit.settle
      const [question] = kit.asked(client)
      expect(fake.answer(taskId, "q1", kit.accept({ people: 7 }))).toBe(true)
      yield* kit.settle
      expect(kit.withdrawn(client)).toEqual([question.id])
      yield* kit.reply(client, question, kit.accept({ people: 1 }))
      expect(fake.answered).toEqual([["q1", kit.accept({ people: 7 })]])
    }))

  it.effect("while an answer is being stored its question is not asked again; it is stored even if its request is cancelled", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const one = yield* connect(form.as)
      const other = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      const call = one.send("tasks/result", { taskId })
      yield* kit.settle
      const gate = Latch.makeUnsafe(false)
      fake.answering = gate.await
      yield* kit.reply(one, kit.asked(one)[0], kit.accept({ people: 1 }))
      other.send("tasks/result", { taskId })
      one.notify("notifications/cancelled", { requestId: call })
      yield* kit.settle
      expect(kit.asked(other)).toEqual([])
      expect(kit.withdrawn(one)).toEqual([])
      yield* gate.open
      yield* kit.settle
      expect(fake.answered.map(([key]) => key)).toEqual(["q1"])
      expect(messages(kit.asked(other))).toEqual(["Whose name?"])
    }))

  it.effect("of two concurrent answers the first that is stored counts", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      const gate = Latch.makeUnsafe(false)
      fake.answering = gate.await
      yield* kit.reply(client, kit.asked(client)[0], kit.accept({ people: 1 }))
      expect(fake.answer(taskId, "q1", kit.accept({ people: 7 }))).toBe(true)
      yield* gate.open
      yield* kit.settle
      expect(fake.answered).toEqual([["q1", kit.accept({ people: 7 })]])
      yield* kit.reply(client, kit.asked(client)[1], kit.accept({ name: "Ann" }))
      expect((yield* client.answer(waiting)).result.content[0].text).toBe("7 for Ann")
    }))

  it.effect("an answer that cannot be stored leaves the question open: the request before it asks", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const one = yield* connect(form.as)
      const other = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      one.send("tasks/result", { taskId })
      other.send("tasks/result", { taskId })
      yield* kit.settle
      const before = kit.asked(one).length
      fake.answering = Effect.fail(new TaskError({ reason: new StoreError({ message: "away" }) }))
      yield* kit.reply(other, kit.asked(other).at(-1), kit.accept({ people: 1 }))
      fake.answering = Effect.void
      expect(kit.asked(one).length).toBe(before + 1)
      yield* kit.reply(one, kit.asked(one).at(-1), kit.accept({ people: 2 }))
      expect(fake.answered.map(([, answer]) => answer)).toEqual([kit.accept({ people: 2 })])
    }))

  it.effect("questions are withdrawn before the end of the task is sent", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      yield* client.result("tasks/cancel", { taskId })
      yield* client.answer(waiting)
      const [question] = kit.asked(client)
      expect(kit.withdrawn(client)).toEqual([question.id])
      const order = client.received.filter((message) => message.method === kit.cancelled || message.id === waiting)
      expect(order.map(({ method }) => method)).toEqual([kit.cancelled, undefined])
    }))

  it.effect("a client without the capability is not asked: its request continues to wait", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const able = yield* connect(form.as)
      const unable = yield* connect()
      const taskId = yield* kit.make(able, "book")
      able.send("tasks/result", { taskId })
      yield* kit.settle
      // It is the last request, and is not asked.
      const waiting = unable.send("tasks/result", { taskId })
      yield* kit.settle
      expect(kit.asked(unable)).toEqual([])
      expect(kit.withdrawn(able)).toEqual([])
      yield* kit.reply(able, kit.asked(able)[0], kit.accept({ people: 1 }))
      yield* kit.reply(able, kit.asked(able)[1], kit.accept({ name: "X" }))
      expect((yield* unable.answer(waiting)).result.content[0].text).toBe("1 for X")
    }))

  it.effect("a task of a client that cannot be asked fails as its call would", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect()
      const taskId = yield* kit.make(client, "book")
      yield* kit.settle
      const task = yield* client.result("tasks/get", { taskId })
      expect(task.status).toBe("failed")
      expect(task.statusMessage).toContain("a capability that the client has not declared")
    }))

  it.effect("an error is an answer: the user rejects a sampling request", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect({ capabilities: { sampling: {} } })
      const taskId = yield* kit.make(client, "think")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      const [question] = kit.asked(client)
      expect(question.params._meta).toEqual({ [kit.relatedTask]: { taskId } })
      client.answerRaw(JsonRpc.failure(question.id, { code: -1, message: "User rejected sampling request" }))
      const { result } = yield* client.answer(waiting)
      expect(result.content[0].text).toContain("ProtocolError: ")
      expect(result.content[0].text).toContain("User rejected sampling request")
    }))

  it.effect("a question has no time limit: only the end of the task ends it", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      client.send("tasks/result", { taskId })
      yield* kit.pass("23 hours")
      expect(kit.withdrawn(client)).toEqual([])
      yield* kit.reply(client, kit.asked(client)[0], kit.accept({ people: 1 }))
      expect(messages(kit.asked(client))).toEqual(["How many?", "Whose name?"])
    }))

  it.effect("the handler receives an invalid answer as it is", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const client = yield* connect(form.as)
      const taskId = yield* kit.make(client, "book")
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      yield* kit.reply(client, kit.asked(client)[0], { nothing: true })
      const { result } = yield* client.answer(waiting)
      expect(result.isError).toBe(true)
      expect(result.content[0].text).toContain("elicitation/create")
    }))

  it.effect("questions outlive the session that created the task: its owner answers them in another", () =>
    Effect.gen(function*() {
      const { connect } = yield* set
      const one = yield* connect(form.as)
      const taskId = yield* kit.make(one, "book")
      yield* kit.settle
      one.peer.close({ _tag: "ClosedByUs" })
      yield* one.peer.ended
      const other = yield* connect(form.as)
      const waiting = other.send("tasks/result", { taskId })
      yield* kit.settle
      yield* kit.reply(other, kit.asked(other)[0], kit.accept({ people: 3 }))
      yield* kit.reply(other, kit.asked(other)[1], kit.accept({ name: "C" }))
      expect((yield* other.answer(waiting)).result.content[0].text).toBe("3 for C")
    }))

  it.effect("a task of 2026-07-28 is answered by its owner in 2025-11-25", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* set
      const principal = { id: "ann" }
      const modern = yield* connect({ principal, revision: "2026-07-28" })
      const { taskId } = yield* modern.result("tools/call", {
        name: "book",
        _meta: {
          "io.modelcontextprotocol/clientCapabilities": {
            ...kit.forms,
            extensions: { "io.modelcontextprotocol/tasks": {} }
          }
        }
      }).pipe(Effect.catchDefect(() => Effect.succeed({ taskId: [...fake.rows.keys()][0] })))
      const client = yield* connect({ ...form.as, principal })
      const waiting = client.send("tasks/result", { taskId })
      yield* kit.settle
      yield* kit.reply(client, kit.asked(client)[0], kit.accept({ people: 3 }))
      yield* kit.reply(client, kit.asked(client)[1], kit.accept({ name: "C" }))
      expect((yield* client.answer(waiting)).result.content[0].text).toBe("3 for C")
    }))
})
