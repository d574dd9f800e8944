/**
 * Requests to a client that it runs as tasks (2025-11-25): the server as a requestor, against clients that the tests
 * control.
 */
import { describe, expect, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
// Loaded before, so that no test waits for the file.
import * as Loaded from "../../src/internal/input/legacyTasks/requestInputAsTask.ts"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const revision = "2025-11-25"
const related = "io.modelcontextprotocol/related-task"
const task = { ttl: "1 hour" } as const

const form = (options?: Elicitation.Options) => Elicitation.form("?", { a: Schema.String }, options)
const sample = (options?: Sampling.Options) => Sampling.createMessage({ messages: "?", maxTokens: 1 }, options)

const capabilities = {
  ...kit.everything,
  tasks: { cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } }
}

const turns = Effect.gen(function*() {
  for (let turn = 0; turn < 5; turn++) {
    yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    yield* base.settle
  }
})

/** Advances the test clock, and runs all fibers that it wakes. */
const pass = (time: Parameters<typeof TestClock.adjust>[0]) => Effect.andThen(TestClock.adjust(time), turns)

/** A client with one task, whose status and result are set by the test. */
class Receiver {
  status = "working"
  pollInterval: number | undefined = 5000
  result: kit.Json = { action: "accept", content: { a: "b" }, _meta: { [related]: { taskId: "t1" } } }
  created: kit.Json = undefined
  silent: ReadonlySet<string> = new Set()
  gone = false

  get state(): kit.Json {
    const { pollInterval, status } = this
    const at = "2026-11-01T10:30:00Z"
    return {
      taskId: "t1",
      status,
      createdAt: at,
      lastUpdatedAt: at,
      ttl: 3_600_000,
      ...(pollInterval === undefined ? undefined : { pollInterval })
    }
  }

  readonly answer: kit.Answerer = ({ method }) => {
    if (this.silent.has(method)) return undefined
    switch (method) {
      case "tasks/get":
        return this.gone ? { error: { code: -32602, message: "Task has expired" } } : this.state
      case "tasks/result":
        return this.result
      case "tasks/cancel":
        return { ...this.state, status: "cancelled" }
      default:
        return this.created ?? { task: this.state }
    }
  }
}

/** Sends a request to the client, and returns its outcome once it has ended. */
const asking = <A>(
  question: Effect.Effect<A, InputError, McpRequest>,
  receiver: Receiver,
  options: Partial<kit.Options> = {}
) =>
  Effect.gen(function*() {
    expect(Loaded.ask).toBeDefined()
    const ended: Array<Result.Result<A, InputError>> = []
    const handler = Effect.map(Effect.result(question), (result) => {
      ended.push(result)
      return "done"
    })
    const server = kit.tool(handler)
    const client = yield* kit.client(server, { revision, capabilities, answer: receiver.answer, ...options })
    const call = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
    yield* turns
    return {
      client,
      call,
      asked: () => client.asked.map(({ method }) => method),
      answers: () => ended.map((result) => Result.isSuccess(result) ? result.success : result.failure.reason._tag)
    }
  })

describe("2025-11-25 · a requestor", () => {
  it.effect("sends the request with a task, respects the `pollInterval`, and fetches the result at the end", () =>
    Effect.gen(function*() {
      const receiver = new Receiver()
      const { answers, asked, client } = yield* asking(form({ task }), receiver)
      expect(client.asked[0]!.params.task).toEqual({ ttl: 3_600_000 })
      expect(asked()).toEqual(["elicitation/create"])
      yield* pass(4999)
      expect(asked()).toHaveLength(1)
      yield* pass(1)
      expect(asked()).toEqual(["elicitation/create", "tasks/get"])
      receiver.pollInterval = 60_000
      yield* pass(5000)
      yield* pass(59_999)
      expect(asked()).toHaveLength(3)
      receiver.status = "completed"
      yield* pass(1)
      expect(asked().slice(3)).toEqual(["tasks/get", "tasks/result"])
      expect(answers()).toEqual([{ action: "accept", content: { a: "b" } }])
      expect(client.asked.at(-1)!.params).toEqual({ taskId: "t1" })
    }))

  it.effect("does the same for sampling; without a `ttl` the client retains the task until the request's timeout", () =>
    Effect.gen(function*() {
      const receiver = new Receiver()
      receiver.status = "completed"
      receiver.result = { role: "assistant", model: "m", content: { type: "text", text: "Hi" } }
      const { answers, asked, client } = yield* asking(sample({ task: {} }), receiver)
      expect(client.asked[0]!.params.task).toEqual({ ttl: 600_000 })
      expect(asked()).toEqual(["sampling/createMessage", "tasks/result"])
      expect(answers()).toMatchObject([{ content: [{ text: "Hi" }] }])
    }))

  it.effect("waits for the `ttl`, or for `timeout` if it is given, then cancels the task and fails with Timeout", () =>
    Effect.gen(function*() {
      for (
        const [options, minutes] of [[{ task }, 60], [{ task, timeout: "2 minutes" }, 2], [{ task: {} }, 10]] as const
      ) {
        const receiver = new Receiver()
        const { answers, asked } = yield* asking(form(options), receiver)
        for (let minute = 1; minute < minutes; minute++) yield* pass("1 minute")
        yield* pass(59_999)
        expect(answers()).toEqual([])
        expect(asked()).not.toContain("tasks/cancel")
        yield* pass(1)
        expect(answers()).toEqual(["Timeout"])
        expect(asked().at(-1)).toBe("tasks/cancel")
      }
    }))

  it.effect("polls again after a poll that is not answered in time", () =>
    Effect.gen(function*() {
      const receiver = new Receiver()
      const { answers, asked } = yield* asking(form({ task }), receiver)
      receiver.silent = new Set(["tasks/get"])
      yield* pass(5000)
      yield* pass(60_000)
      expect(answers()).toEqual([])
      receiver.silent = new Set()
      receiver.status = "completed"
      yield* pass(5000)
      expect(asked().slice(-2)).toEqual(["tasks/get", "tasks/result"])
      expect(answers()).toEqual([{ action: "accept", content: { a: "b" } }])
    }))

  it.effect("when it encounters `input_required` it SHOULD preemptively call `tasks/result`", () =>
    Effect.gen(function*() {
      const receiver = new Receiver()
      receiver.status = "input_required"
      receiver.silent = new Set(["tasks/result"])
      const { answers, asked } = yield* asking(form({ task: { ttl: "3 hours" } }), receiver)
      expect(asked()).toEqual(["elicitation/create", "tasks/result"])
      yield* pass("179 minutes")
      expect(answers()).toEqual([])
      yield* pass("1 minute")
      expect(answers()).toEqual(["Timeout"])
    }))

  it.effect("cancels the task if the handler is interrupted, because no open request is left to cancel", () =>
    Effect.gen(function*() {
      const { asked, call, client } = yield* asking(form({ task }), new Receiver())
      client.notify("notifications/cancelled", { requestId: client.sent })
      yield* turns
      expect(asked()).toEqual(["elicitation/create", "tasks/cancel"])
      expect(client.notices("notifications/cancelled")).toEqual([])
      yield* Fiber.interrupt(call)
    }))

  it.effect("fails with ProtocolError and the client's error for the request, its task, and a missing task", () =>
    Effect.gen(function*() {
      const refused = { error: { code: -1, message: "Not today" } }
      const rejecting = [
        Object.assign(new Receiver(), { created: refused }),
        Object.assign(new Receiver(), { result: refused, status: "failed" }),
        Object.assign(new Receiver(), { gone: true })
      ]
      for (const receiver of rejecting) {
        const { answers, asked } = yield* asking(form({ task }), receiver)
        yield* pass(5000)
        expect(answers()).toEqual(["ProtocolError"])
        expect(asked()).not.toContain("tasks/cancel")
      }
    }))

  it.effect("accepts an immediate result, and fails with InvalidResponse if it has the wrong type", () =>
    Effect.gen(function*() {
      const direct = Object.assign(new Receiver(), { created: { action: "decline" } })
      expect((yield* asking(form({ task }), direct)).answers()).toEqual([{ action: "decline" }])
      for (const created of [{}, { task: { taskId: 7 } }, { task: "t1" }]) {
        const bad = Object.assign(new Receiver(), { created })
        expect((yield* asking(form({ task }), bad)).answers()).toEqual(["InvalidResponse"])
      }
      const odd = Object.assign(new Receiver(), { status: "asleep" })
      expect((yield* asking(form({ task }), odd)).answers()).toEqual(["InvalidResponse"])
    }))

  it.effect("polls at least once a minute, however long a `pollInterval` the client suggests, also in a later response", () =>
    Effect.gen(function*() {
      for (const pollInterval of [60_001, 3_600_000, 1e15, Number.MAX_SAFE_INTEGER]) {
        const receiver = Object.assign(new Receiver(), { pollInterval })
        const { answers, asked } = yield* asking(form({ task }), receiver)
        for (const polls of [1, 2, 3]) {
          yield* pass(59_999)
          expect(asked()).toHaveLength(polls)
          yield* pass(1)
          expect(asked()).toHaveLength(polls + 1)
        }
        receiver.status = "completed"
        yield* pass("1 minute")
        expect(answers()).toEqual([{ action: "accept", content: { a: "b" } }])
      }
    }))

  it.effect("polls at most every 100 milliseconds, and every second without a `pollInterval`", () =>
    Effect.gen(function*() {
      for (const [pollInterval, wait] of [[0, 100], [-5, 100], [undefined, 1000]] as const) {
        const receiver = Object.assign(new Receiver(), { pollInterval })
        const { asked } = yield* asking(form({ task }), receiver)
        yield* pass(wait - 1)
        expect(asked()).toHaveLength(1)
        yield* pass(1)
        expect(asked()).toHaveLength(2)
      }
    }))
})

describe("without a task", () => {
  it.effect("2025-11-25 · If `capabilities.tasks` is not defined, the peer SHOULD NOT attempt to create tasks", () =>
    Effect.gen(function*() {
      const some = { ...capabilities, tasks: { requests: { sampling: { createMessage: {} } } } }
      for (const declared of [kit.everything, { ...kit.everything, tasks: {} }, some]) {
        const receiver = Object.assign(new Receiver(), { created: { action: "cancel" } })
        const { answers, client } = yield* asking(form({ task }), receiver, { capabilities: declared })
        expect(client.asked[0]!.params).not.toHaveProperty("task")
        expect(answers()).toEqual([{ action: "cancel" }])
      }
    }))

  it.effect("without the option", () =>
    Effect.gen(function*() {
      const receiver = Object.assign(new Receiver(), { created: { action: "cancel" } })
      const { client } = yield* asking(form(), receiver)
      expect(client.asked[0]!.params).not.toHaveProperty("task")
    }))

  for (const older of ["2025-06-18", "2026-07-28"] as const) {
    it.effect(`${older} · in other revisions`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.tool(Effect.map(Effect.orDie(form({ task })), ({ action }) => action)),
          { revision: older, answer: () => ({ action: "decline" }) }
        )
        expect(yield* client.call("t")).toBe("decline")
        expect(client.asked[0]!.params).not.toHaveProperty("task")
      }))
  }
})
