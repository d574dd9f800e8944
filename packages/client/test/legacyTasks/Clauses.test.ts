/** The requirements of 2025-11-25 for a receiver of task-augmented requests, clause by clause. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Exceptions from "../../../protocol/test/oracle/Exceptions.ts"
import * as Spec from "../../../protocol/test/oracle/Spec.ts"
import * as Validate from "../../../protocol/test/oracle/Validate.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import { logged } from "../input/kit.ts"
import * as kit from "./kit.ts"
import { bounded } from "../support/fixedBounds.ts"

const invalid = (answer: kit.Json): void => assert.strictEqual(answer.error.code, -32602)

describe("2025-11-25 · creating tasks", () => {
  it.effect("Receivers that accept a task-augmented request MUST return a CreateTaskResult as the response", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.parse("2026-11-01T10:30:00Z"))
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { result } = yield* asking.ask(kit.elicitation, { ...kit.form, task: { ttl: 60_000 } })
      const { taskId } = result.task
      assert.deepStrictEqual(result, {
        task: {
          taskId,
          status: "working",
          createdAt: "2026-11-01T10:30:00.000Z",
          lastUpdatedAt: "2026-11-01T10:30:00.000Z",
          ttl: 60_000,
          pollInterval: 1000
        },
        _meta: { [kit.related]: { taskId } }
      })
      yield* kit.turns()
      assert.strictEqual(host.forms.length, 1)
    }))

  it.effect("Tasks MUST begin in the `working` status when created, even when the host responds at once", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(Sampling.layer(() => Effect.succeed(kit.textAnswer("Hello"))))
      const task = yield* asking.message()
      assert.strictEqual(task.status, "working")
      yield* kit.turns()
      assert.strictEqual((yield* asking.get(task.taskId)).status, "completed")
      // Status notifications follow the response to the request.
      const [first, second] = asking.server.received.slice(-3)
      assert.property(first, "result")
      assert.propertyVal(second, "method", "notifications/tasks/status")
    }))

  it.effect("Task IDs MUST be a string, unique, and of enough entropy to prevent guessing: 192 random bits", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      const ids = new Set<string>()
      for (let n = 0; n < 50; n++) ids.add((yield* asking.form()).taskId)
      assert.strictEqual(ids.size, 50)
      for (const id of ids) assert.match(id, /^[\w-]{32}$/)
    }))

  it.effect("refuses an invalid request before it reaches the host, with the error of a request without a task, and creates no task", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      invalid(yield* asking.ask(kit.elicitation, { mode: "form", message: 7, task: {} }))
      invalid(
        yield* asking.ask(kit.elicitation, {
          mode: "url",
          message: "?",
          url: "https://a.b",
          elicitationId: "e",
          task: {}
        })
      )
      invalid(yield* asking.ask(kit.sampling, { ...kit.message, tools: [], task: {} }))
      invalid(yield* asking.ask(kit.sampling, { ...kit.message, task: { ttl: "long" } }))
      invalid(yield* asking.ask(kit.sampling, { ...kit.message, task: 7 }))
      assert.deepStrictEqual((yield* asking.ask("tasks/list")).result, { tasks: [] })
      assert.deepStrictEqual([host.forms.length, host.messages.length], [0, 0])
    }))

  it.effect("Receivers that declare the capability MAY return an error for requests without a task; processes them normally", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(Sampling.layer(() => Effect.succeed(kit.textAnswer("Hello"))))
      for (const rest of [{}, { task: null }]) {
        assert.strictEqual((yield* asking.ask(kit.sampling, { ...kit.message, ...rest })).result.content.text, "Hello")
      }
      assert.deepStrictEqual((yield* asking.ask("tasks/list")).result, { tasks: [] })
    }))
})

describe("2025-11-25 · result retrieval", () => {
  it.effect("`tasks/result` MUST block until the task is terminal, then return exactly what the request would have returned", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.form()
      assert.isUndefined(yield* asking.ask("tasks/result", { taskId }, "early"))
      assert.isUndefined(yield* asking.ask("tasks/result", { taskId }, "early, too"))
      assert.strictEqual((yield* asking.get(taskId)).status, "working")
      yield* host.fillIn()
      const expected = { action: "accept", content: { name: "Ada" }, _meta: { [kit.related]: { taskId } } }
      assert.deepStrictEqual(asking.answerTo("early").result, expected)
      assert.deepStrictEqual(asking.answerTo("early, too").result, expected)
      assert.deepStrictEqual((yield* asking.ask("tasks/result", { taskId })).result, expected)
      assert.deepStrictEqual((yield* asking.ask("tasks/result", { taskId })).result, expected)
    }))

  it.effect("If the underlying request resulted in a JSON-RPC error, `tasks/result` MUST return that same JSON-RPC error", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.message()
      yield* kit.turns()
      assert.isUndefined(yield* asking.ask("tasks/result", { taskId }, "early"))
      yield* host.complete(0, Effect.fail(new Sampling.SamplingRefused({ message: "Not today" })))
      const error = { code: -1, message: "Not today" }
      assert.deepStrictEqual(asking.answerTo("early").error, error)
      assert.deepStrictEqual((yield* asking.ask("tasks/result", { taskId })).error, error)
      const task = yield* asking.get(taskId)
      assert.deepStrictEqual([task.status, task.statusMessage], ["failed", "Not today"])
    }))

  it.effect("responds -32603 with a reference, and logs the cause, when a handler has a defect or returns an invalid value", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const asking = yield* kit.open(Elicitation.layer({
          form: ({ message }) =>
            message === "die" ? Effect.die(new Error("Oops")) : Effect.succeed(Elicitation.accept({}))
        }))
        for (const message of ["die", "lie"]) {
          const { result } = yield* asking.ask(kit.elicitation, { ...kit.form, message, task: {} })
          const { error } = yield* asking.ask("tasks/result", { taskId: result.task.taskId })
          assert.strictEqual(error.code, -32603)
          assert.notInclude(JSON.stringify(error), "Oops")
          const { status, statusMessage } = yield* asking.get(result.task.taskId)
          assert.deepStrictEqual([status, statusMessage], ["failed", error.message])
          const { reference } = error.data
          assert.isTrue(lines.some((line) => line.startsWith("Error elicitation/create") && line.includes(reference)))
        }
        assert.isTrue(lines.some((line) => line.includes("Oops")))
      })
    ))

  it.effect("a requestor MAY give up on `tasks/result`: keeps the task running", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.form()
      yield* asking.ask("tasks/result", { taskId }, "early")
      asking.server.notify("notifications/cancelled", { requestId: "early" })
      yield* kit.turns()
      assert.strictEqual(host.interrupted, 0)
      yield* host.fillIn()
      assert.isUndefined(asking.answerTo("early"))
      assert.strictEqual((yield* asking.ask("tasks/result", { taskId })).result.action, "accept")
    }))

  it.effect("`related-task` metadata in the request MUST be ignored in favor of the parameter, and is absent from get, list and cancel", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      const one = yield* asking.form()
      const two = yield* asking.form()
      const _meta = { [kit.related]: { taskId: two.taskId } }
      const { result } = yield* asking.ask("tasks/get", { taskId: one.taskId, _meta })
      assert.deepStrictEqual(result, one)
      const listed = yield* asking.ask("tasks/list", { _meta })
      assert.notInclude(JSON.stringify(listed.result), kit.related)
      const cancelled = yield* asking.ask("tasks/cancel", { taskId: one.taskId, _meta })
      assert.deepStrictEqual([cancelled.result.taskId, cancelled.result._meta], [one.taskId, undefined])
      assert.strictEqual((yield* asking.get(two.taskId)).status, "working")
    }))
})

describe("2025-11-25 · associating messages", () => {
  it.effect("responses related to a task of the server MUST include the related-task key of the request", () =>
    Effect.gen(function*() {
      for (const taskReceiver of [undefined, false] as const) {
        const host = new kit.Host()
        const asking = yield* kit.open(host.layer, { taskReceiver })
        const _meta = { [kit.related]: { taskId: "theirs" }, other: 1 }
        yield* asking.ask(kit.elicitation, { ...kit.form, _meta }, "about theirs")
        yield* host.fillIn()
        assert.deepStrictEqual(asking.answerTo("about theirs").result, {
          action: "accept",
          content: { name: "Ada" },
          _meta: { [kit.related]: { taskId: "theirs" } }
        })
      }
    }))

  it.effect("`tasks/result` MUST name its own task, even when the request referred to a task of the server", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const _meta = { [kit.related]: { taskId: "theirs" } }
      const { result } = yield* asking.ask(kit.elicitation, { ...kit.form, _meta, task: {} })
      const { taskId } = result.task
      yield* kit.turns()
      yield* host.fillIn()
      const got = yield* asking.ask("tasks/result", { taskId })
      assert.deepStrictEqual(got.result._meta, { [kit.related]: { taskId } })
    }))
})

describe("2025-11-25 · task status notifications", () => {
  it.effect("includes the full Task, and SHOULD NOT include related-task metadata; sends one for each task that ends", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const done = yield* asking.form()
      const refused = yield* asking.message()
      const left = yield* asking.form()
      yield* kit.pass(5000)
      yield* host.fillIn()
      yield* host.complete(0, Effect.fail(new Sampling.SamplingRefused({})))
      yield* asking.ask("tasks/cancel", { taskId: left.taskId })
      yield* kit.turns()
      assert.deepStrictEqual(asking.statusNotifications, [
        yield* asking.get(done.taskId),
        yield* asking.get(refused.taskId)
      ])
      const { createdAt, lastUpdatedAt, status } = asking.statusNotifications[0]
      assert.deepStrictEqual([status, Date.parse(lastUpdatedAt) - Date.parse(createdAt)], ["completed", 5000])
    }))
})

describe("2025-11-25 · task listing", () => {
  it.effect("MUST include a `nextCursor` if more tasks are available; lists every retrievable task, oldest first", () =>
    Effect.gen(function*() {
      const asking = yield* bounded({ pageSize: 2 }, kit.open(new kit.Host().layer))
      const ids: Array<string> = []
      for (let n = 0; n < 5; n++) ids.push((yield* asking.form()).taskId)
      const pages: Array<Array<string>> = []
      let cursor: string | undefined
      do {
        const { result } = yield* asking.ask("tasks/list", cursor === undefined ? {} : { cursor })
        pages.push(result.tasks.map(({ taskId }: kit.Json) => taskId))
        cursor = result.nextCursor
        // A task that is removed between two pages leaves no gap.
        if (pages.length === 1) yield* asking.ask("tasks/cancel", { taskId: ids[1] })
      } while (cursor !== undefined)
      assert.deepStrictEqual(pages, [[ids[0], ids[1]], [ids[2], ids[3]], [ids[4]]])
      const [first] = (yield* asking.ask("tasks/list")).result.tasks
      assert.deepStrictEqual(first, yield* asking.get(ids[0]!))
    }))

  it.effect("Invalid or nonexistent cursor in `tasks/list`: -32602", () =>
    Effect.gen(function*() {
      const asking = yield* bounded({ pageSize: 1 }, kit.open(new kit.Host().layer))
      const other = yield* bounded({ pageSize: 3 }, kit.open(new kit.Host().layer))
      for (let n = 0; n < 2; n++) yield* asking.form()
      for (let n = 0; n < 4; n++) yield* other.form()
      const { nextCursor } = (yield* other.ask("tasks/list")).result
      for (const cursor of ["", "x", "WyJ0b29scyIsImEiXQ", nextCursor, 7]) {
        invalid(yield* asking.ask("tasks/list", { cursor }))
      }
    }))
})

describe("2025-11-25 · task cancellation", () => {
  it.effect("MUST transition the task to `cancelled` before sending the response, and SHOULD attempt to stop the execution", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.form()
      yield* kit.turns()
      yield* asking.ask("tasks/result", { taskId }, "early")
      const { result } = yield* asking.ask("tasks/cancel", { taskId })
      assert.strictEqual(result.status, "cancelled")
      assert.strictEqual(host.interrupted, 1)
      // The task never has a result.
      assert.strictEqual(asking.answerTo("early").error.code, -32603)
      assert.strictEqual((yield* asking.ask("tasks/result", { taskId })).error.code, -32603)
    }))

  it.effect("MUST remain in `cancelled` status even if execution continues to completion", () =>
    Effect.gen(function*() {
      let ended = false
      const stubborn = Effect.uninterruptible(Effect.map(Effect.sleep(5000), () => {
        ended = true
        return Elicitation.accept({ name: "Ada" })
      }))
      const asking = yield* kit.open(Elicitation.layer({ form: () => stubborn }))
      const { taskId } = yield* asking.form()
      yield* kit.turns()
      yield* asking.ask("tasks/cancel", { taskId })
      const before = yield* asking.get(taskId)
      yield* kit.pass(5000)
      assert.isTrue(ended)
      assert.deepStrictEqual(yield* asking.get(taskId), before)
      assert.strictEqual(before.status, "cancelled")
      assert.deepStrictEqual(asking.statusNotifications, [])
    }))

  it.effect("MUST reject cancellation requests for tasks already in a terminal status: -32602", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const done = yield* asking.form()
      const refused = yield* asking.message()
      const left = yield* asking.form()
      yield* kit.turns()
      yield* host.fillIn()
      yield* host.complete(0, Effect.fail(new Sampling.SamplingRefused({})))
      yield* asking.ask("tasks/cancel", { taskId: left.taskId })
      for (const [{ taskId }, status] of [[done, "completed"], [refused, "failed"], [left, "cancelled"]] as const) {
        const answer = yield* asking.ask("tasks/cancel", { taskId })
        invalid(answer)
        assert.include(answer.error.message, `already in terminal status '${status}'`)
        assert.strictEqual((yield* asking.get(taskId)).status, status)
      }
    }))
})

describe("2025-11-25 · protocol errors", () => {
  it.effect("Invalid or nonexistent `taskId` in `tasks/get`, `tasks/result`, or `tasks/cancel`: -32602", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      yield* asking.form()
      for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
        for (const params of [{ taskId: "nobody's" }, { taskId: "" }, { taskId: 7 }, {}, undefined]) {
          invalid(yield* asking.ask(method, params))
        }
      }
    }))

  it.effect("responds -32601 to an unknown method", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      for (const method of ["tasks/update", "tasks/delete"]) {
        assert.strictEqual((yield* asking.ask(method, { taskId: "x" })).error.code, -32601)
      }
    }))
})

it.effect("2025-11-25 · MUST NOT write anything that is not a valid MCP message: all messages about tasks", () =>
  Effect.gen(function*() {
    const host = new kit.Host()
    const asking = yield* bounded(
      { pageSize: 2, maxTtl: Infinity },
      kit.open(host.layer, { revisions: [kit.revision] })
    )
    const done = yield* asking.form()
    const refused = yield* asking.message({ ttl: 1000 })
    const left = yield* asking.form()
    yield* kit.turns()
    yield* host.fillIn()
    yield* host.complete(0, Effect.fail(new Sampling.SamplingRefused({})))
    const answers: Array<readonly [string, kit.Json]> = [
      ["CreateTaskResult", (yield* asking.ask(kit.sampling, { ...kit.message, task: {} })).result],
      ["CancelTaskResult", (yield* asking.ask("tasks/cancel", { taskId: left.taskId })).result],
      ["GetTaskResult", yield* asking.get(done.taskId)],
      ["GetTaskResult", yield* asking.get(refused.taskId)],
      ["GetTaskPayloadResult", (yield* asking.ask("tasks/result", { taskId: done.taskId })).result],
      ["ElicitResult", (yield* asking.ask("tasks/result", { taskId: done.taskId })).result],
      ["ListTasksResult", (yield* asking.ask("tasks/list")).result]
    ]
    assert.strictEqual(asking.statusNotifications.length, 2)
    assert.isNull((yield* asking.get(done.taskId)).ttl)
    if (!Spec.present) return
    const document = Exceptions.load(kit.revision)
    const check = (definition: string, value: unknown) =>
      assert.isUndefined(Validate.refusal(document, definition, value), `${definition}: ${JSON.stringify(value)}`)
    for (const [definition, value] of answers) check(definition, value)
    for (const message of asking.server.received as ReadonlyArray<JsonRpc.Outbound>) {
      const written = JSON.parse(JsonRpc.encode(message))
      check("JSONRPCMessage", written)
      if (written.method !== undefined) {
        check(written.id === undefined ? "ClientNotification" : "ClientRequest", written)
      }
    }
    const [introduction] = asking.server.requests("initialize")
    check("ClientCapabilities", introduction!.params!["capabilities"])
  }))
