/**
 * Any actions of clients and of the tool, in any order: a task takes valid transitions only, and each waiting request
 * receives its end.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Outcome } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as serverKit from "../../../server/test/kit.ts"
import * as kit from "./kit.ts"

const which = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
const Act = Schema.Struct({
  what: Schema.Literals([
    "get",
    "result",
    "result",
    "ask",
    "ask",
    "answer",
    "answer",
    "answer elsewhere",
    "withdraw",
    "leave",
    "say",
    "cancel",
    "end"
  ]),
  /** The index of a client, a question or a call. */
  which,
  /** Whether all consequences happen before the next action. */
  settles: Schema.Boolean
})
const How = Schema.Literals(["result", "isError", "error"])

const outcomes: { readonly [how in typeof How.Type]: Outcome } = {
  result: { _tag: "Result", result: { content: [{ type: "text", text: "done" }] } },
  isError: { _tag: "Result", result: { content: [{ type: "text", text: "not done" }], isError: true } },
  error: { _tag: "Error", error: { code: -7, message: "broken" } }
}

/** "Receivers MUST only transition tasks through the following valid paths." */
const next: { readonly [status: string]: ReadonlyArray<string> } = {
  working: ["working", "input_required", "completed", "failed", "cancelled"],
  input_required: ["input_required", "working", "completed", "failed", "cancelled"],
  completed: ["completed"],
  failed: ["failed"],
  cancelled: ["cancelled"]
}

const legal = (statuses: ReadonlyArray<string>): void =>
  statuses.forEach((status, index) => {
    if (index > 0) expect(next[statuses[index - 1]!]).toContain(status)
  })

const params = { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } }

const play = (acts: ReadonlyArray<typeof Act.Type>, how: typeof How.Type) =>
  Effect.scoped(Effect.gen(function*() {
    const { connect, fake } = yield* kit.set({}, [kit.book])
    fake.manual = true
    const clients = [yield* connect({ capabilities: kit.forms }), yield* connect({ capabilities: kit.forms })]
    const taskId = yield* kit.make(clients[0]!, "book")
    const seen: Array<string> = ["working"]
    const waiting: Array<{ readonly client: serverKit.Client; readonly id: number | string; left: boolean }> = []
    const cancels: Array<{ readonly client: serverKit.Client; readonly id: number | string }> = []
    const replied = new Set<string>()
    let keys = 0

    for (const { settles, what, which } of acts) {
      const client = clients[which % 2]!
      const questions = fake.find(taskId)!.state.questions
      const key = questions[which % Math.max(1, questions.length)]?.key
      switch (what) {
        case "get":
          seen.push((yield* client.result("tasks/get", { taskId })).status)
          break
        case "result":
          waiting.push({ client, id: client.send("tasks/result", { taskId }), left: false })
          break
        case "ask":
          if (fake.find(taskId)!.state.outcome === undefined && fake.find(taskId)!.state.status !== "cancelled") {
            fake.ask(taskId, { key: `k${keys++}`, method: "elicitation/create", params })
          }
          break
        case "answer": {
          const open = kit.asked(client).filter(({ id }) => !replied.has(`${which % 2} ${id}`))
          const question = open[which % Math.max(1, open.length)]
          if (question === undefined) break
          replied.add(`${which % 2} ${question.id}`)
          client.answerRaw({
            _tag: "Success",
            id: question.id,
            result: { action: "accept", content: { by: question.id } }
          })
          break
        }
        case "answer elsewhere":
          if (key !== undefined) fake.answer(taskId, key, { action: "decline" })
          break
        case "withdraw":
          if (key !== undefined) fake.withdraw(taskId, key)
          break
        case "leave": {
          const call = waiting[which]
          if (call === undefined) break
          call.left = true
          call.client.notify("notifications/cancelled", { requestId: call.id })
          break
        }
        case "say":
          fake.change(taskId, { statusMessage: `message ${keys}` })
          break
        case "cancel":
          cancels.push({ client, id: client.send("tasks/cancel", { taskId }) })
          break
        case "end":
          fake.end(taskId, outcomes[how])
      }
      if (settles) yield* kit.settle
    }
    fake.end(taskId, outcomes[how])
    yield* kit.settle

    const last = yield* clients[0]!.result("tasks/get", { taskId })
    const history = fake.find(taskId)!.history
    legal(history)
    // Clients see the same transitions, with `failed` for a result with `isError`.
    legal([...seen, last.status])
    const cancelled = history.at(-1) === "cancelled"
    expect(last.status).toBe(cancelled ? "cancelled" : how === "result" ? "completed" : "failed")

    // All waiting requests return, with the same result.
    const end = yield* clients[0]!.request("tasks/result", { taskId })
    const payloadOf = ({ error, result }: kit.Json) => error ?? result
    if (cancelled) expect(end.error.code).toBe(-32800)
    else if (how === "error") expect(end.error).toEqual({ code: -7, message: "broken" })
    else expect(end.result).toMatchObject(outcomes[how]._tag === "Result" ? outcomes[how].result : {})
    for (const { client, id, left } of waiting) {
      const answers = client.answers(id)
      if (!left) expect(answers.length).toBe(1)
      for (const answer of answers) expect(payloadOf(answer)).toEqual(payloadOf(end))
    }

    // At most one cancellation succeeds; the others report that the task has ended.
    const answers = yield* Effect.forEach(cancels, ({ client, id }) => client.answer(id))
    expect(answers.filter(({ result }) => result?.status === "cancelled").length).toBe(cancelled ? 1 : 0)
    for (const { error } of answers) if (error !== undefined) expect(error.code).toBe(-32602)

    // A question has one answer, and is then open nowhere.
    const answered = fake.answered.map(([key]) => key)
    expect(new Set(answered).size).toBe(answered.length)
    for (const [index, client] of clients.entries()) {
      const open = kit.asked(client).map(({ id }) => id)
        .filter((id) => !replied.has(`${index} ${id}`) && !kit.withdrawn(client).includes(id))
      expect(open).toEqual([])
    }

    // Nothing is left behind.
    yield* kit.settle
    expect(fake.watching).toBe(0)
    for (const { peer } of clients) expect([...peer.calls, ...peer.requests]).toEqual([])
  }))

describe("2025-11-25 · any interleaving", () => {
  it.effect.prop(
    "MUST only transition tasks through the valid paths, and no result is lost",
    [Schema.Array(Act).check(Schema.isMaxLength(24)), How],
    ([acts, how]) => play(acts, how),
    { arbitrary: { runs: 150 } }
  )

  it.effect("a concurrent cancellation and end: the first counts", () =>
    Effect.gen(function*() {
      for (const settles of [true, false]) {
        yield* play([
          { what: "result", which: 0, settles },
          { what: "cancel", which: 1, settles },
          { what: "end", which: 0, settles },
          { what: "cancel", which: 0, settles },
          { what: "result", which: 1, settles }
        ], "result")
      }
    }))
})
