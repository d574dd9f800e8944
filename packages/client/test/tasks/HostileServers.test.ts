/** Servers that use tasks to exhaust the user's attention, the memory or the time of the client. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { type Json, open, pass, refuseSubscriptions, result, run, shapes, started, TaskServer, watch } from "./kit.ts"
import { bounded } from "../support/fixedBounds.ts"

const form = (message: string): Json => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties: { answer: { type: "string" } } } }
})

/** A user who never responds. Counts requests and withdrawals. */
const silent = () => {
  const user = { asked: 0, gone: 0 }
  const layer = Elicitation.layer({
    form: () =>
      Effect.suspend(() => {
        user.asked++
        return Effect.onInterrupt(Effect.never, () => Effect.sync(() => void user.gone++))
      })
  })
  return { user, layer }
}

describe("2026-07-28", () => {
  const asked = (options?: Client.Options) =>
    Effect.gen(function*() {
      const { layer, user } = silent()
      const server = new TaskServer("2026-07-28")
      server.overrides["subscriptions/listen"] = refuseSubscriptions
      const client = yield* Effect.provide(Client.make(server.server.transport, options), layer)
      yield* client.listToolsPage()
      return { client, server, user }
    })

  it.effect("counts withdrawn input requests, and bounds the requests to the user for any keys", () =>
    Effect.gen(function*() {
      for (const keyOf of [(n: number) => `k${n}`, (n: number) => `k${n % 2}`]) {
        const { client, server, user } = yield* bounded({ maxTaskInputRequests: 20 }, asked())
        const call = yield* run(client.callTool("t"))
        for (let n = 0; n < 100 && !call.done; n++) {
          server.update({ status: "input_required", inputRequests: { [keyOf(n)]: form(`${n % 2}?`) } })
          yield* pass("1 second")
        }
        assert.isTrue(call.done)
        assert.strictEqual((yield* call.error).reason._tag, "LimitExceeded")
        assert.isAtMost(user.asked, 20)
        assert.strictEqual(user.gone, user.asked)
        assert.strictEqual(server.task.status, "cancelled")
      }
    }))

  it.effect("ends the call for 20,000 input requests at once, and presents none of them", () =>
    Effect.gen(function*() {
      const { client, server, user } = yield* asked()
      const call = yield* run(client.callTool("t"))
      const inputRequests = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, form("?")]))
      server.update({ status: "input_required", inputRequests })
      yield* pass("1 second")
      assert.isTrue(call.done)
      assert.strictEqual((yield* call.error).reason._tag, "LimitExceeded")
      assert.strictEqual(user.asked, 0)
    }))

  it.effect("treats each distinct key separately, and responds to each request under its own key", () =>
    Effect.gen(function*() {
      const keys = ["__proto__", "constructor", "", "a\nb", "toString", "\0", "\ufffd"]
      const server = new TaskServer("2026-07-28")
      server.overrides["subscriptions/listen"] = refuseSubscriptions
      const host = Elicitation.layer({ form: ({ message }) => Effect.succeed(Elicitation.accept({ answer: message })) })
      const client = yield* Effect.provide(Client.make(server.server.transport), host)
      yield* client.listToolsPage()
      const given: Record<string, Json> = Object.create(null)
      server.overrides["tasks/update"] = ({ params }) => {
        for (const [key, answer] of Object.entries(params!["inputResponses"] as Json)) given[key] = answer
        return ScriptedServer.success({ resultType: "complete" })
      }
      const call = yield* run(client.callTool("t"))
      server.update({
        status: "input_required",
        inputRequests: Object.fromEntries(keys.map((key, n) => [key, form(`${n}`)]))
      })
      yield* pass("1 second")
      assert.deepStrictEqual(Object.keys(given).toSorted(), keys.toSorted())
      keys.forEach((key, n) => assert.deepStrictEqual(given[key].content, { answer: `${n}` }))
      yield* call.stop
    }))

  it.effect("replaces a zero or negative poll interval by the minimum, and an infinite one by the maximum", () =>
    Effect.gen(function*() {
      for (const pollIntervalMs of [0, -1, Number.MIN_SAFE_INTEGER]) {
        const { client, server } = yield* asked({ heartbeat: undefined } as Client.Options)
        server.task.pollIntervalMs = pollIntervalMs
        const call = yield* run(client.callTool("t"))
        for (let n = 0; n < 50; n++) yield* pass(20)
        assert.isAtMost(server.count("tasks/get"), 10)
        yield* call.stop
      }
      const { client, server } = yield* asked()
      server.task.pollIntervalMs = Number.MAX_SAFE_INTEGER
      const call = yield* run(client.callTool("t"))
      yield* pass("5 minutes")
      assert.strictEqual(server.count("tasks/get"), 1)
      yield* call.stop
    }))

  it.effect("rejects a task whose ttl is not an integer", () =>
    Effect.gen(function*() {
      for (const wrong of [{ ttlMs: 1e300 }, { ttlMs: 0.5 }, { ttlMs: "1" }]) {
        const { client, server } = yield* asked()
        const call = yield* run(client.callTool("t"))
        server.update(wrong as Json)
        yield* pass("1 second")
        assert.strictEqual((yield* call.error).reason._tag, "InvalidResponse", JSON.stringify(wrong))
      }
    }))

  it.effect("polls once before it accepts that a ttl has expired at once or in the past", () =>
    Effect.gen(function*() {
      for (const ttlMs of [0, -1, Number.MIN_SAFE_INTEGER]) {
        const { client, server } = yield* asked()
        server.task.ttlMs = ttlMs
        const call = yield* run(client.callTool("t"))
        yield* pass("10 seconds")
        assert.isTrue(call.done)
        assert.strictEqual((yield* call.error).reason._tag, "TaskNotFound")
      }
    }))
})

for (const shape of shapes) {
  describe(shape, () => {
    it.effect("fails the call, and sends no request, for ids of 10 MB and ids that are not valid in a header", () =>
      Effect.gen(function*() {
        for (const taskId of ["x".repeat(10_000_000), ""]) {
          const { client, server } = yield* open(shape)
          server.task.taskId = taskId
          const call = yield* run(client.callTool("t"))
          const error = yield* call.error
          assert.strictEqual(error.reason._tag, "InvalidResponse")
          assert.isBelow(error.message.length, 1000)
          assert.strictEqual(server.count("tasks/get"), 0)
        }
        for (const taskId of ["__proto__", "a\r\nX-Evil: 1", "\ufffd", "../../etc", "é", " x "]) {
          const { client, server } = yield* open(shape)
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          server.task.taskId = taskId
          const call = yield* run(client.callTool("t"))
          server.update({ status: "completed", result: result("done") })
          yield* pass("1 second")
          assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "done" }])
        }
      }))

    it.effect("survives invalid times, and texts of 1 MB in their place", () =>
      Effect.gen(function*() {
        for (const time of ["", "yesterday", "9".repeat(1_000_000), "+275760-09-13T00:00:00.001Z", "\0"]) {
          const { client, server } = yield* open(shape)
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          const call = yield* run(client.callTool("t"))
          const { wireTask } = server
          server.overrides["tasks/get"] = () =>
            ScriptedServer.success({
              ...(shape === "2026-07-28" ? { resultType: "complete" } : {}),
              ...wireTask,
              createdAt: time,
              lastUpdatedAt: time
            })
          yield* pass("1 second")
          assert.isFalse(call.done)
          yield* call.stop
        }
      }))

    it.effect("emits alternating states in the order of arrival, and the final state once", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const task = yield* started(client)
        const seen = yield* watch(task)
        const setStatus = (status: string, at: number) => {
          Object.assign(server.task, { status, lastUpdatedAt: new Date(at).toISOString() })
          if (shape === "2025-11-25") server.notify()
          return pass("1 second")
        }
        const born = Date.parse("2026-11-01T10:30:00Z")
        yield* setStatus("working", born + 5000)
        yield* setStatus("input_required", born + 1000)
        yield* setStatus("working", born + 6000)
        server.update({ status: "completed", result: result("done") })
        yield* setStatus("completed", born)
        yield* pass("10 seconds")
        yield* setStatus("working", born + 9000)
        assert.isDefined(seen.fiber.pollUnsafe())
        assert.notInclude(seen.statuses, "input_required")
        assert.strictEqual(seen.statuses.at(-1), "completed")
        assert.strictEqual(seen.statuses.filter((status) => status === "completed").length, 1)
      }))

    it.effect("accepts any handle with a valid task id, and rejects all others", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const forged: ReadonlyArray<Json> = [
          null,
          undefined,
          7,
          "t1",
          [],
          {},
          { taskId: 7 },
          { taskId: "" },
          { taskId: ["t1"] },
          { taskId: { toString: () => "t1" } },
          { taskId: "x".repeat(10_000_000) },
          { taskId: "t1", server: "another" },
          Object.create({ taskId: 5 })
        ]
        for (const handle of forged) {
          const error = yield* Effect.flip(client.resumeTask(handle))
          assert.strictEqual(error.reason._tag, "Unsupported")
          assert.isBelow(error.message.length, 1000)
        }
        assert.strictEqual(server.count("tasks/get"), 0)
        for (
          const more of [{ tool: 7 }, { tool: "x".repeat(1_000_000) }, { server: 7 }, { revision: "1" }, {
            tool: "__proto__"
          }]
        ) {
          server.overrides["subscriptions/listen"] = refuseSubscriptions
          server.update({ status: "completed", result: result("done") })
          const task = yield* client.resumeTask({ taskId: "t1", ...more } as Json)
          const call = yield* run(task.result)
          yield* pass("1 second")
          assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "done" }])
        }
      }))
  })
}
