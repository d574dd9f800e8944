import { describe, expect, it } from "@effect/vitest"
import * as Json from "@skein/protocol/Json"
import { StoreError, TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const requiredCapabilities = kit.tasks
const yes = (name: string) => ({ action: "accept", content: { name } })

describe("io.modelcontextprotocol/tasks · capability negotiation", () => {
  it.effect("2026-07-28 · the server declares the extension, \"an empty object indicates support\"", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      const { capabilities } = yield* client.result("server/discover")
      expect(capabilities.extensions).toEqual({ "io.modelcontextprotocol/tasks": {} })
      expect(capabilities).not.toHaveProperty("tasks")
    }))

  it.effect("2026-07-28 · MUST NOT return CreateTaskResult to a client that did not declare it, regardless of prior declarations", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      yield* kit.begin(client, "quick", { n: 1 })
      const undeclared = [{}, { extensions: {} }, { extensions: { [kit.extension]: true } }, { extensions: [] }]
      for (const capabilities of undeclared) {
        const result = yield* client.result("tools/call", {
          name: "quick",
          arguments: { n: 2 },
          _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities }
        })
        expect([result.resultType, result.structuredContent]).toEqual(["complete", { double: 4 }])
      }
    }))

  it.effect("2026-07-28 · MUST return -32021, with the required extension, for a tool that requires a task", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.must])
      const client = yield* connect({ can: { elicitation: {} } })
      const error = yield* client.error("tools/call", { name: "must" })
      expect([error.code, error.data]).toEqual([-32021, { requiredCapabilities }])
      expect((yield* kit.begin(yield* connect(), "must")).status).toBe("working")
    }))

  it.effect("2026-07-28 · MUST return -32021 to non-declaring clients issuing tasks/get, tasks/update, and tasks/cancel", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const { taskId } = yield* kit.begin(yield* connect(), "quick", { n: 1 })
      const client = yield* connect({ can: {} })
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        for (const id of [taskId, "unknown"]) {
          const error = yield* client.error(method, { taskId: id, inputResponses: {} })
          expect([error.code, error.data]).toEqual([-32021, { requiredCapabilities }])
        }
      }
    }))

  it.effect("2026-07-28 · tasks/list and tasks/result do not exist", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      for (const method of ["tasks/list", "tasks/result"]) {
        expect((yield* client.error(method, { taskId: "x" })).code).toBe(-32601)
      }
    }))
})

describe("io.modelcontextprotocol/tasks · task creation", () => {
  it.effect("2026-07-28 · MUST set resultType to `task`; a tasks/get for the returned taskId resolves immediately", () =>
    Effect.gen(function*() {
      const { definition, open } = tools.gated("bake", { ttl: "1 hour", pollInterval: "2 seconds" })
      const { connect } = yield* kit.server([definition])
      yield* TestClock.adjust("1 day")
      const client = yield* connect()
      const created = yield* client.call("bake")
      const at = "1970-01-02T00:00:00.000Z"
      const { taskId } = created
      const task = {
        taskId,
        status: "working",
        createdAt: at,
        lastUpdatedAt: at,
        ttlMs: 3_600_000,
        pollIntervalMs: 2000
      }
      expect(created).toEqual({ resultType: "task", ...task, _meta: expect.anything() })
      expect(yield* kit.get(client, taskId)).toEqual({ resultType: "complete", ...task, _meta: expect.anything() })
      yield* open()
    }))

  it.effect("2026-07-28 · a CreateTaskResult contains only the state of the task: no `task`, and no outcome", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const created = yield* (yield* connect()).call("quick", { n: 1 })
      expect(Object.keys(created).sort()).toEqual([
        "_meta",
        "createdAt",
        "lastUpdatedAt",
        "pollIntervalMs",
        "resultType",
        "status",
        "taskId",
        "ttlMs"
      ])
    }))

  it.effect("a task that is not created: at a limit -32603 with a message; on a store failure a result with a reference", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.server([tools.gated().definition], { limits: { all: { live: 1 } } })
      const client = yield* connect()
      yield* kit.begin(client, "bake")
      const limit = yield* client.error("tools/call", { name: "bake" })
      expect([limit.code, limit.message]).toEqual([-32603, expect.stringContaining("Too many tasks")])
      expect(fake.rows.size).toBe(1)
      fake.broken = new TaskError({ reason: new StoreError({ message: "secret" }) })
      yield* client.defect("bake")
    }))
})

describe("io.modelcontextprotocol/tasks · tasks/get", () => {
  it.effect("2026-07-28 · 1: `working`, with the status message", () =>
    Effect.gen(function*() {
      const { definition, next } = tools.reporting()
      const { connect } = yield* kit.server([definition])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "reporting")
      expect(yield* kit.get(client, taskId)).toMatchObject({ status: "working", statusMessage: "half" })
      yield* next(0)
      yield* kit.settle
      expect(yield* kit.get(client, taskId)).toMatchObject({ status: "working", statusMessage: "2 of 2" })
    }))

  it.effect("2026-07-28 · 2: `input_required`, with all outstanding requests, for every reader and every time", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.asking])
      const client = yield* connect({ can: { ...kit.tasks, elicitation: {} } })
      const { taskId } = yield* kit.begin(client, "asking")
      const first = yield* kit.get(client, taskId)
      expect(first).toMatchObject({
        status: "input_required",
        statusMessage: "Asking",
        inputRequests: {
          first: { method: "elicitation/create", params: { mode: "form", message: "First?" } },
          second: { method: "elicitation/create", params: { message: "Second?" } }
        }
      })
      expect(yield* kit.get(client, taskId)).toEqual(first)
      expect(Object.keys(first.inputRequests)).toEqual(["first", "second"])
    }))

  it.effect("2026-07-28 · 3: `completed`, with exactly what the call would have returned, resultType `complete` on both", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      const direct = yield* (yield* connect({ can: {} })).call("quick", { n: 2 })
      const { taskId } = yield* kit.begin(client, "quick", { n: 2 })
      const got = yield* kit.get(client, taskId)
      expect([got.status, got.resultType]).toEqual(["completed", "complete"])
      const { _meta, ...rest } = direct
      expect(got.result).toEqual(rest)
      expect(got.result).not.toHaveProperty("_meta.io.modelcontextprotocol/related-task")
    }))

  it.effect("2026-07-28 · 4: `cancelled`", () =>
    Effect.gen(function*() {
      const { definition } = tools.gated()
      const { connect } = yield* kit.server([definition])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "bake")
      yield* client.result("tasks/cancel", { taskId })
      const got = yield* kit.get(client, taskId)
      expect(got.status).toBe("cancelled")
      for (const member of ["result", "error", "inputRequests"]) expect(got).not.toHaveProperty(member)
    }))

  it.effect("2026-07-28 · 5: `failed` MUST include the JSON-RPC error, and SHOULD include a statusMessage", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.refusing])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "refusing")
      expect(yield* kit.get(client, taskId)).toMatchObject({
        status: "failed",
        statusMessage: "Rate limit",
        error: { code: 1234, message: "Rate limit", data: { at: 3 } }
      })
    }))

  it.effect("2026-07-28 · `failed` MUST NOT represent a tool result with isError: that is `completed`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.failing, tools.quick])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "failing")
      const result = { content: [{ type: "text", text: "There is no flour" }], isError: true }
      expect(yield* kit.get(client, taskId)).toMatchObject({ status: "completed", result })
      const bad = yield* kit.get(client, (yield* kit.begin(client, "quick", { n: "x" })).taskId)
      expect([bad.status, bad.result.isError]).toEqual(["completed", true])
    }))
})

describe("io.modelcontextprotocol/tasks · tasks/update", () => {
  const asked = Effect.gen(function*() {
    const { connect, fake } = yield* kit.server([tools.asking])
    const client = yield* connect({ can: { ...kit.tasks, elicitation: {} } })
    const { taskId } = yield* kit.begin(client, "asking")
    const update = (inputResponses: kit.Json) =>
      Effect.tap(client.request("tasks/update", { taskId, inputResponses }), () => kit.settle)
    const open = Effect.map(kit.get(client, taskId), ({ inputRequests, status }) => [
      status,
      ...Object.keys(inputRequests ?? {})
    ])
    return { client, taskId, update, open, fake }
  })

  it.effect("2026-07-28 · MUST acknowledge with an empty result; MAY accept a partial set, and stays `input_required`", () =>
    Effect.gen(function*() {
      const { client, open, taskId, update } = yield* asked
      const { result } = yield* update({ second: yes("b") })
      expect(result).toEqual({ resultType: "complete", _meta: expect.anything() })
      expect(yield* open).toEqual(["input_required", "first"])
      yield* update({ first: yes("a") })
      expect(yield* open).toEqual(["input_required", "third"])
      yield* update({ third: { action: "decline" } })
      expect((yield* kit.get(client, taskId)).result.content[0].text).toBe("a b decline")
    }))

  it.effect("2026-07-28 · SHOULD ignore responses for keys never issued, already answered, or superseded, with any content", () =>
    Effect.gen(function*() {
      const { client, open, taskId, update } = yield* asked
      yield* update({ first: yes("a") })
      const odd = { nobody: 5, toString: null, first: yes("again"), "": { action: "?" }, second: yes("b") }
      expect((yield* update(odd)).error).toBeUndefined()
      expect(yield* open).toEqual(["input_required", "third"])
      yield* update({ third: yes("c") })
      expect((yield* kit.get(client, taskId)).result.content[0].text).toBe("a b c")
      expect((yield* update({ third: yes("late") })).result.resultType).toBe("complete")
    }))

  it.effect("2026-07-28 · of two concurrent answers the first counts, and both are acknowledged", () =>
    Effect.gen(function*() {
      const { client, fake, taskId } = yield* asked
      const gate = Latch.makeUnsafe(false)
      fake.answering = gate.await
      const send = (name: string) =>
        client.send("tasks/update", { taskId, inputResponses: { first: yes(name), second: yes(name) } })
      const updates = [send("a"), send("b")]
      yield* kit.settle
      yield* gate.open
      for (const id of updates) expect((yield* client.answer(id)).result.resultType).toBe("complete")
      yield* kit.settle
      expect(fake.answered).toEqual([["first", yes("a")], ["second", yes("a")]])
      yield* client.result("tasks/update", { taskId, inputResponses: { third: yes("c") } })
      yield* kit.settle
      expect((yield* kit.get(client, taskId)).result.content[0].text).toBe("a a c")
    }))

  it.effect("2026-07-28 · rejects an invalid answer with -32602 and its path, and applies nothing of that request", () =>
    Effect.gen(function*() {
      const { open, update } = yield* asked
      for (const bad of [5, null, {}, { action: "perhaps" }, { roots: [] }, { action: "accept", content: 4 }]) {
        const { error } = yield* update({ first: yes("a"), second: bad })
        expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining("params.inputResponses")])
        expect(error.message).toContain("second")
      }
      const rounded = Json.parse("{\"action\":\"accept\",\"content\":{\"name\":1915883588174806058}}")
      expect((yield* update({ first: yes("a"), second: rounded })).error).toMatchObject({
        code: -32602,
        message: "Invalid params: params.inputResponses[\"second\"]: content.name is 1915883588174806058, an integer " +
          "beyond 2^53 that would be rounded: write it as a string"
      })
      expect(yield* open).toEqual(["input_required", "first", "second"])
      for (const params of [{}, { inputResponses: [] }, { inputResponses: "x" }]) {
        expect((yield* update((params as kit.Json).inputResponses)).error.code).toBe(-32602)
      }
    }))
})

describe("io.modelcontextprotocol/tasks · tasks/cancel", () => {
  it.effect("2026-07-28 · MUST acknowledge with an empty result, and interrupts the work", () =>
    Effect.gen(function*() {
      const { definition, seen } = tools.gated()
      const { connect } = yield* kit.server([definition])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "bake")
      const result = yield* client.result("tasks/cancel", { taskId })
      expect(result).toEqual({ resultType: "complete", _meta: expect.anything() })
      yield* kit.settle
      expect(seen).toEqual({ runs: 1, interrupted: 1 })
      expect((yield* client.result("tasks/cancel", { taskId })).resultType).toBe("complete")
    }))

  it.effect("2026-07-28 · acknowledges a task that has ended, and does not change it", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "quick", { n: 1 })
      const before = yield* kit.get(client, taskId)
      yield* client.result("tasks/cancel", { taskId })
      expect(yield* kit.get(client, taskId)).toEqual(before)
    }))
})

describe("io.modelcontextprotocol/tasks · owners", () => {
  const methods = ["tasks/get", "tasks/update", "tasks/cancel"]

  it.effect("2026-07-28 · unknown, expired and foreign taskIds: one error, -32602, after one read of the store", () =>
    Effect.gen(function*() {
      const { definition, seen } = tools.gated("bake", { ttl: "1 minute" })
      const { connect, fake } = yield* kit.server([definition, tools.quick])
      const alice = yield* connect({ principal: { id: "alice" } })
      const eve = yield* connect({ principal: { id: "eve" } })
      const nobody = yield* connect()
      const old = yield* kit.begin(alice, "bake")
      yield* TestClock.adjust("1 minute")
      const { taskId } = yield* kit.begin(alice, "bake")
      fake.looks.length = 0
      const answers: Array<kit.Json> = []
      for (const method of methods) {
        for (
          const [client, id] of [[eve, taskId], [nobody, taskId], [alice, old.taskId], [alice, "no"], [
            alice,
            ""
          ]] as const
        ) {
          answers.push(yield* client.error(method, { taskId: id, inputResponses: {} }))
        }
      }
      for (const answer of answers) expect(answer).toEqual(answers[0])
      expect(answers[0].code).toBe(-32602)
      expect(fake.looks).toEqual(answers.map(() => "get"))
      expect(seen.interrupted).toBe(0)
      expect((yield* kit.get(alice, taskId)).status).toBe("working")
    }))

  it.effect("2026-07-28 · the task of a caller without an owner belongs to every caller that has its id", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.quick])
      const { taskId } = yield* kit.begin(yield* connect(), "quick", { n: 1 })
      expect((yield* kit.get(yield* connect({ principal: { id: "eve" } }), taskId)).status).toBe("completed")
    }))

  it.effect("2026-07-28 · an owner policy of the server or of a task decides about the owner", () =>
    Effect.gen(function*() {
      const tenant = (id: string) => ({ id, tenant: id[0] })
      const { definition } = tools.gated("bake", { owner: ({ principal }) => `tenant ${principal?.["tenant"]}` })
      const { connect, fake } = yield* kit.server([definition, tools.quick], { owner: () => "all" })
      const one = yield* connect({ principal: tenant("a1") })
      const other = yield* connect({ principal: tenant("a2") })
      const stranger = yield* connect({ principal: tenant("b1") })
      const { taskId } = yield* kit.begin(one, "bake")
      expect((yield* kit.get(other, taskId)).status).toBe("working")
      expect((yield* stranger.error("tasks/get", { taskId })).code).toBe(-32602)
      const shared = yield* kit.begin(stranger, "quick", { n: 1 })
      expect((yield* kit.get(one, shared.taskId)).status).toBe("completed")
      expect([...fake.rows.values()].map(({ state: { owner } }) => owner)).toEqual(["tenant a", "all"])
    }))

  it.effect("stores only the principal's id and the client's capabilities of the caller", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.server([tools.quick])
      const principal = { id: "alice", token: "secret", claims: { email: "a@example.com" } }
      yield* kit.begin(yield* connect({ principal }), "quick", { n: 1 })
      const [row] = [...fake.rows.values()]
      expect(row!.state.caller).toEqual({
        revision: "2026-07-28",
        capabilities: kit.tasks,
        info: { name: "kit", version: "1" },
        principal: { id: "alice" }
      })
    }))
})
