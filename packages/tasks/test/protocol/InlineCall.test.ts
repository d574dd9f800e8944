import { describe, expect, it } from "@effect/vitest"
import type * as Revision from "@skein/protocol/Revision"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as McpServer from "@skein/server/McpServer"
import { StoreError, TaskError } from "@skein/tasks/TaskError"
import * as asking from "../../../server/test/input/kit.ts"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const sides = [["2025-11-25", {}], ["2025-06-18", {}], ["2026-07-28", {}]] as const

const names: kit.Json = { "First?": "a", "Second?": "b", "Third?": "c" }
const answering: asking.Answerer = ({ params }) => asking.accept({ name: names[params.message] })

const connectWith = (revision: Revision.Revision, answer: asking.Answerer | undefined) =>
  Effect.gen(function*() {
    const { context, fake } = yield* kit.server([tools.asking])
    const server = Context.pick(McpServer.McpServer)(context)
    const options = answer === undefined ? { revision } : { revision, answer }
    return { client: yield* Effect.provide(asking.connect(options), server), fake }
  })

describe("a call that waits for its task", () => {
  for (const [revision, can] of sides) {
    it.effect(`${revision} · returns a result, a failure or an error, like the call of a tool`, () =>
      Effect.gen(function*() {
        const { connect } = yield* kit.server([tools.quick, tools.failing, tools.refusing, tools.dying])
        const client = yield* connect({ revision, can })
        expect((yield* client.call("quick", { n: 4 })).structuredContent).toEqual({ double: 8 })
        expect(yield* client.call("failing")).toMatchObject({ isError: true, content: [{ text: "There is no flour" }] })
        expect(yield* client.error("tools/call", { name: "refusing" })).toEqual({
          code: 1234,
          message: "Rate limit",
          data: { at: 3 }
        })
        yield* client.defect("dying")
      }))

    it.effect(`${revision} · reports its progress, if requested`, () =>
      Effect.gen(function*() {
        const { definition, next } = tools.reporting()
        const { connect } = yield* kit.server([definition])
        const client = yield* connect({ revision, can })
        const id = client.send("tools/call", { name: "reporting", _meta: { progressToken: "p" } })
        for (const n of [0, 1]) {
          yield* kit.settle
          yield* next(n)
        }
        expect((yield* client.answer(id)).result.content[0].text).toBe("reported")
        expect(client.notices("notifications/progress").map(({ params: { _meta, ...rest } }) => rest)).toEqual([
          { progressToken: "p", progress: 1, total: 2, message: "half" },
          { progressToken: "p", progress: 2, total: 2 }
        ])
      }))

    it.effect(`${revision} · asks the task's questions through the call, all open ones together`, () =>
      Effect.gen(function*() {
        const { client, fake } = yield* connectWith(revision, answering)
        expect(yield* client.call("asking")).toBe("a b c")
        expect(client.asked.map(({ params }) => params.message)).toEqual(["First?", "Second?", "Third?"])
        expect(fake.rows.size).toBe(1)
      }))

    it.effect(`${revision} · cancelling the call cancels its task`, () =>
      Effect.gen(function*() {
        const { definition, seen } = tools.gated()
        const { connect, fake } = yield* kit.server([definition])
        const client = yield* connect({ revision, can })
        const requestId = client.send("tools/call", { name: "bake" })
        yield* kit.settle
        expect(seen).toEqual({ runs: 1, interrupted: 0 })
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        expect(seen).toEqual({ runs: 1, interrupted: 1 })
        const [row] = [...fake.rows.values()]
        expect(row!.state).toMatchObject({
          status: "cancelled",
          statusMessage: "The call that created the task was cancelled"
        })
        expect(client.answers(requestId)).toEqual([])
      }))

    it.effect(`${revision} · logs a task that cannot be cancelled with its call, and the task continues`, () => {
      const lines: Array<unknown> = []
      return Effect.gen(function*() {
        const { definition } = tools.gated()
        const { connect, fake } = yield* kit.server([definition])
        const client = yield* connect({ revision, can })
        const requestId = client.send("tools/call", { name: "bake" })
        yield* kit.settle
        fake.broken = new TaskError({ reason: new StoreError({ message: "away" }) })
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        expect([...fake.rows.values()][0]!.state.status).toBe("working")
        expect(lines).toContainEqual(["failed to cancel the task of a cancelled call; the task continues"])
      }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(message))])))
    })

    it.effect(`${revision} · a task that is cancelled meanwhile is a failure of the tool; a deleted task is an error`, () =>
      Effect.gen(function*() {
        const { definition } = tools.gated()
        const { connect, context, fake } = yield* kit.server([definition])
        const client = yield* connect({ revision, can })
        const id = client.send("tools/call", { name: "bake" })
        yield* kit.settle
        const engine = yield* Effect.provide(kit.engine, context)
        yield* engine.cancel([...fake.rows.keys()][0]!, "The oven broke")
        expect((yield* client.answer(id)).result).toMatchObject({
          isError: true,
          content: [{ text: "The task was cancelled: The oven broke" }]
        })
      }))

    it.effect(`${revision} · a server that stops does not cancel: the task of the call continues`, () =>
      Effect.gen(function*() {
        const { definition, open, seen } = tools.gated()
        const { connect, fake } = yield* kit.server([definition])
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(connect({ revision, can }), scope)
        const id = client.send("tools/call", { name: "bake" })
        yield* kit.settle
        yield* Scope.close(scope, Exit.void)
        yield* kit.settle
        const [row] = [...fake.rows.values()]
        expect([row!.state.status, seen]).toEqual(["working", { runs: 1, interrupted: 0 }])
        expect(client.answers(id)).toEqual([])
        yield* open()
        yield* kit.settle
        expect(row!.state.status).toBe("completed")
      }))

    const broken = new TransportError({ reason: new ConnectionLost({ message: "broken" }) })
    for (const end of [{ _tag: "ClosedByPeer" }, { _tag: "Lost", cause: broken }] as const) {
      it.effect(`${revision} · the end of a client's connection (${end._tag}) cancels the task of its call`, () =>
        Effect.gen(function*() {
          const { definition, seen } = tools.gated()
          const { connect, fake } = yield* kit.server([definition])
          const client = yield* connect({ revision, can })
          client.send("tools/call", { name: "bake" })
          yield* kit.settle
          client.peer.close(end)
          yield* kit.settle
          // A client that has sent its last message may still receive for a while.
          const [row] = [...fake.rows.values()]
          if (end._tag === "ClosedByPeer") expect(row!.state.status).toBe("working")
          yield* TestClock.adjust("5 seconds")
          yield* kit.settle
          expect([row!.state.status, seen]).toEqual(["cancelled", { runs: 1, interrupted: 1 }])
        }))
    }
  }

  for (const [revision, can] of [...sides, ["2026-07-28", kit.tasks] as const]) {
    const who = can === kit.tasks ? "a client with tasks" : "a client without"
    it.effect(`${revision} · ${who} that cancels while the task is created leaves no task`, () =>
      Effect.gen(function*() {
        const { definition, seen } = tools.gated()
        const { connect, fake } = yield* kit.server([definition])
        const client = yield* connect({ revision, can })
        const gate = Deferred.makeUnsafe<void>()
        fake.submitting = Deferred.await(gate)
        const requestId = client.send("tools/call", { name: "bake" })
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        yield* Deferred.succeed(gate, undefined)
        yield* kit.settle
        expect([...fake.rows.values()].map(({ state: { status } }) => status)).toEqual(["cancelled"])
        expect(seen).toEqual({ runs: 1, interrupted: 1 })
      }))
  }

  for (const revision of ["2025-06-18", "2025-11-25"] as const) {
    it.effect(`${revision} · the handler receives the refusal of a question by the client`, () =>
      Effect.gen(function*() {
        const { client } = yield* connectWith(revision, () => ({ error: { code: -1, message: "User rejected" } }))
        expect(yield* client.call("asking")).toMatch(/^ProtocolError: .*User rejected/)
      }))

    it.effect(`${revision} · withdraws a question that was answered elsewhere`, () =>
      Effect.gen(function*() {
        const { context, fake } = yield* kit.server([tools.asking])
        const server = Context.pick(McpServer.McpServer)(context)
        const client = yield* Effect.provide(asking.connect({ revision }), server)
        const call = yield* Effect.forkChild(client.call("asking"))
        const engine = yield* Effect.provide(kit.engine, context)
        const [id] = [...(yield* Effect.as(kit.settle, fake.rows.keys()))]
        for (const key of ["first", "second", "third"]) {
          yield* engine.answer(id!, key, { action: "decline" })
          yield* kit.settle
        }
        expect(yield* Fiber.join(call)).toBe("decline decline decline")
        expect(client.notices("notifications/cancelled")).toHaveLength(3)
      }))
  }

  it.effect("2026-07-28 · the call is repeated with answers and keeps its task; between its rounds the task has no watcher", () =>
    Effect.gen(function*() {
      const { client, fake } = yield* connectWith("2026-07-28", undefined)
      const first = yield* client.once("tools/call", { name: "asking" })
      expect(Object.keys(first.result.inputRequests).sort()).toEqual(["first", "second"])
      const [row] = [...fake.rows.values()]
      expect(row!.state.status).toBe("input_required")
      const { requestState } = first.result
      const inputResponses = { first: asking.accept({ name: "a" }) }
      const second = yield* client.once("tools/call", { name: "asking", inputResponses, requestState })
      expect(Object.keys(second.result.inputRequests)).toEqual(["second"])
      const rest = { second: asking.accept({ name: "b" }) }
      const third = yield* client.once("tools/call", {
        name: "asking",
        inputResponses: rest,
        requestState: second.result.requestState
      })
      expect(Object.keys(third.result.inputRequests)).toEqual(["third"])
      const last = yield* client.once("tools/call", {
        name: "asking",
        inputResponses: { third: { action: "decline" } },
        requestState: third.result.requestState
      })
      expect(asking.textOf(last)).toBe("a b decline")
      expect(fake.rows.size).toBe(1)
    }))

  it.effect("2026-07-28 · a call that is repeated after its task was deleted receives an error", () =>
    Effect.gen(function*() {
      const { client, fake } = yield* connectWith("2026-07-28", undefined)
      const { result: { requestState } } = yield* client.once("tools/call", { name: "asking" })
      fake.forget([...fake.rows.keys()][0]!)
      const { error } = yield* client.once("tools/call", { name: "asking", inputResponses: {}, requestState })
      expect([error.code, error.message]).toEqual([-32603, "The task of this call no longer exists"])
    }))
})
