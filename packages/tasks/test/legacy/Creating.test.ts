import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Spec from "../../../protocol/test/oracle/Spec.ts"
import { validate, validated } from "../../../server/test/kit.ts"
import * as kit from "./kit.ts"

describe("2025-11-25 · declaring tasks", () => {
  it.effect("`tasks` declares which requests can be tasks: `tools/call`, with `cancel`; without `list` for unidentified requestors", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const { received } = yield* connect()
      expect(received[0].result.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } })
    }))

  it.effect("declares `list` too for an identified requestor", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const { received } = yield* connect({ principal: { id: "ann" } })
      expect(received[0].result.capabilities.tasks).toEqual({
        list: {},
        cancel: {},
        requests: { tools: { call: {} } }
      })
    }))

  for (const revision of Revision.all.filter((each) => each < "2025-11-25")) {
    it.effect(`${revision} · has no tasks: declares none, rejects their methods, and ignores \`task\``, () =>
      Effect.gen(function*() {
        const { connect, fake } = yield* kit.set()
        const client = yield* connect({ revision })
        expect(client.received[0].result.capabilities).not.toHaveProperty("tasks")
        expect((yield* client.error("tasks/get", { taskId: "x" })).code).toBe(-32601)
        expect((yield* client.error("tasks/list")).code).toBe(-32601)
        const result = yield* client.result("tools/call", { name: "plain", task: { ttl: 1000 } })
        expect(result.content[0].text).toBe("at once")
        const other = yield* client.result("tools/call", { name: "required", task: { ttl: 1000 } })
        expect(other.content[0].text).toBe("done")
        expect(fake.rows.size).toBe(0)
      }))
  }

  it.effect("tools declare their support in `tools/list`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const { tools } = yield* (yield* connect()).result("tools/list")
      const support = Object.fromEntries(tools.map((tool: kit.Json) => [tool.name, tool.execution?.taskSupport]))
      expect(support).toMatchObject({ sum: "optional", required: "required", forbidden: "forbidden", book: "optional" })
      expect(support.plain).toBe(undefined)
    }))
})

describe("2025-11-25 · creating a task", () => {
  it.effect("a call with `task` immediately returns a `CreateTaskResult` that begins in `working`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const result = yield* client.result("tools/call", { name: "sleep", task: { ttl: 60_000 } })
      expect(result).toEqual({
        task: {
          taskId: expect.stringMatching(/^[\w-]{32}$/),
          status: "working",
          createdAt: "1970-01-01T00:00:00.000Z",
          lastUpdatedAt: "1970-01-01T00:00:00.000Z",
          ttl: 60_000,
          pollInterval: 1000
        },
        // "All requests, notifications, and responses related to a task MUST include" it.
        _meta: { [kit.relatedTask]: { taskId: result.task.taskId } }
      })
    }))

  it.effect("a task that ends immediately has begun in `working` nevertheless", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const { task } = yield* client.result("tools/call", { name: "sum", arguments: { a: 1, b: 2 }, task: {} })
      expect(task.status).toBe("working")
      yield* kit.settle
      expect((yield* client.result("tasks/get", { taskId: task.taskId })).status).toBe("completed")
    }))

  it.effect("ids MUST be unique, and have at least 128 bits", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ limits: { all: {}, perTool: {} } })
      const client = yield* connect()
      const ids = yield* Effect.forEach(Array.from({ length: 50 }), () => kit.make(client, "sleep"))
      expect(new Set(ids).size).toBe(50)
      for (const id of ids) expect(Buffer.from(id, "base64url").length).toBeGreaterThanOrEqual(16)
    }))

  it.effect("without a `ttl` uses the server's; receivers MAY override the requested one, up to `maxTtl`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ ttl: "1 hour", maxTtl: "2 hours", pollInterval: "3 seconds" })
      const client = yield* connect()
      const ttlOf = (task: kit.Json) =>
        Effect.map(client.result("tools/call", { name: "sleep", task }), ({ task }) => [task.ttl, task.pollInterval])
      expect(yield* ttlOf({})).toEqual([3_600_000, 3000])
      expect(yield* ttlOf({ ttl: 5_400_000 })).toEqual([5_400_000, 3000])
      expect(yield* ttlOf({ ttl: 864_000_000 })).toEqual([7_200_000, 3000])
    }))

  it.effect("receivers MUST include the actual `ttl`, or `null` for unlimited", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ ttl: null, maxTtl: null })
      const client = yield* connect()
      const taskId = yield* kit.make(client, "sleep")
      expect((yield* client.result("tasks/get", { taskId })).ttl).toBe(null)
    }))

  it.effect("rejects an invalid `task` with -32602", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      expect((yield* client.error("tools/call", { name: "sleep", task: { ttl: "soon" } })).code).toBe(-32602)
      expect((yield* client.error("tools/call", { name: "sleep", task: 1 })).code).toBe(-32602)
    }))

  for (const name of ["plain", "forbidden"]) {
    it.effect(`a tool whose \`taskSupport\` is ${name === "plain" ? "not present" : name} SHOULD be refused with -32601`, () =>
      Effect.gen(function*() {
        const { connect, fake } = yield* kit.set()
        const client = yield* connect()
        const { code, message } = yield* client.error("tools/call", { name, task: {} })
        expect([code, message]).toEqual([-32601, `Method not found: ${name} does not support task-augmented calls`])
        expect(fake.rows.size).toBe(0)
        expect((yield* client.call(name)).content[0].text).toBe("at once")
      }))
  }

  it.effect("a tool that requires a task: servers MUST return -32601 if a client does not request one", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      expect((yield* client.error("tools/call", { name: "required" })).code).toBe(-32601)
      expect(fake.rows.size).toBe(0)
      yield* kit.make(client, "required")
      expect(fake.rows.size).toBe(1)
    }))

  it.effect("an optional one: clients MAY invoke the tool as a task or as a normal request", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set()
      const client = yield* connect()
      expect((yield* client.call("sum", { a: 1, b: 2 })).structuredContent).toEqual({ sum: 3 })
      expect(fake.rows.size).toBe(0)
    }))

  it.effect("a text for the model MAY be included, as `model-immediate-response`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({
        immediateResponse: ({ tool }) => tool === "sleep" ? "It sleeps" : undefined
      })
      const client = yield* connect()
      const key = "io.modelcontextprotocol/model-immediate-response"
      expect((yield* client.result("tools/call", { name: "sleep", task: {} }))._meta[key]).toBe("It sleeps")
      const other = yield* client.result("tools/call", { name: "sum", arguments: { a: 1, b: 1 }, task: {} })
      expect(other._meta).not.toHaveProperty(key)
    }))

  it.effect("at a limit creates nothing, and returns an error", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.set({ limits: { all: { live: 1 } } })
      const client = yield* connect()
      yield* kit.make(client, "sleep")
      const { code, message } = yield* client.error("tools/call", { name: "sleep", task: {} })
      expect(code).toBe(-32603)
      expect(message).toContain("Too many tasks")
      expect(fake.rows.size).toBe(1)
    }))

  it.effect("a server without `Tasks.layer` declares nothing, and MUST process the request normally", () =>
    Effect.gen(function*() {
      const client = yield* kit.bare(kit.sum)
      expect(client.received[0].result.capabilities).not.toHaveProperty("tasks")
      const result = yield* client.result("tools/call", { name: "sum", arguments: { a: 1, b: 2 }, task: {} })
      expect(result.structuredContent).toEqual({ sum: 3 })
    }))
})

Spec.describeSpec("2025-11-25 · the official schema of a created task", () => {
  it.effect("validates the answer to a call with `task`, and rejects one with an unknown status", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      const before = validated.count
      const message = yield* client.request("tools/call", { name: "sleep", task: { ttl: 60_000 } })
      expect(validated.count).toBeGreaterThan(before)
      message.result.task.status = "asleep"
      expect(() => validate("2025-11-25", "tools/call", message)).toThrow("CreateTaskResult")
    }))
})
