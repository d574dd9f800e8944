/** Hostile answers and arguments from clients, as bytes: large, deep, early, for other tasks, or invalid. */
import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Sampling from "@skein/server/Sampling"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as http from "../../../server/test/http/kit.ts"
import * as kit from "../protocol/kit.ts"

const can = { ...kit.tasks, elicitation: {}, sampling: {} }

/** Asks a form and a model at once, and returns both answers. */
const both = Task.layer(Task.make("both"), () =>
  Effect.map(
    Effect.all([
      Effect.result(Elicitation.form("Name?", { name: Schema.String }, { key: "form" })),
      Effect.result(Sampling.createMessage({ messages: "Hi", maxTokens: 5 }, { key: "model" }))
    ], { concurrency: 2 }),
    (ends) => JSON.stringify(ends.map((end) => end._tag === "Success" ? end.success : end.failure.reason))
  ))

/** Returns its arguments, after a sleep and a step. */
const echo = Task.layer(Task.make("echo", { input: { value: Schema.Unknown } }), ({ value }) =>
  Effect.gen(function*() {
    const text = yield* Step.run("keep", { success: Schema.String }, () => Effect.succeed(JSON.stringify(value)))
    yield* Task.setStatusMessage(text.slice(0, 100))
    return text
  }))

const late = Task.layer(Task.make("late"), () =>
  Effect.gen(function*() {
    yield* Step.sleep("first", 300)
    const answer = yield* Effect.orDie(Elicitation.form("Name?", { name: Schema.String }, { key: "later" }))
    return answer.action === "accept" ? answer.content.name : answer.action
  }))

const serve = Effect.gen(function*() {
  const server = McpServer.layer({ name: "test", version: "1.0.0" }, both, echo, late, Tasks.layer())
  const at = yield* http.serve(Layer.provide(server, Layer.provideMerge(MemoryTasks.layer(), Logger.layer([]))), {
    limits: { maxMessageBytes: 64 * 1024 * 1024 }
  })
  const raw = (method: string, params: string, name: string) => {
    const { body, headers } = http.modern(method, {}, {
      headers: { "Mcp-Name": name },
      _meta: { "io.modelcontextprotocol/clientCapabilities": can }
    })
    const envelope = body as kit.Json
    const meta = JSON.stringify(envelope.params._meta)
    const text = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"_meta":${meta},${params.slice(1)}}`
    return http.send(at, { headers, body: text } as http.Request)
  }
  const send = (method: string, params: kit.Json, name: string) => raw(method, JSON.stringify(params), name)
  const begin = (name: string, args: kit.Json = {}) =>
    Effect.map(send("tools/call", { name, arguments: args }, name), ({ json }) => json.result.taskId as string)
  const get = (taskId: string) => Effect.map(send("tasks/get", { taskId }, taskId), ({ json }) => json.result)
  const until = (taskId: string, is: (task: kit.Json) => boolean) =>
    Effect.repeat(Effect.tap(get(taskId), () => Effect.sleep(5)), { until: is })
  return { raw, send, begin, get, until }
})

const asks = (count: number) => (task: kit.Json) => Object.keys(task.inputRequests ?? {}).length === count
const over = ({ status }: kit.Json) => status === "completed" || status === "failed"
const accept = (name: unknown) => ({ action: "accept", content: { name } })

describe("2026-07-28 · Streamable HTTP", () => {
  it.live(
    "rejects or ignores answers of the wrong kind as a whole, and the task keeps asking",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { begin, get, raw, send, until } = yield* serve
        const taskId = yield* begin("both")
        yield* until(taskId, asks(2))
        const model = { role: "assistant", content: { type: "text", text: "Hello" }, model: "m" }
        const update = (inputResponses: unknown) =>
          Effect.map(send("tasks/update", { taskId, inputResponses }, taskId), ({ json }) => json)
        const refused = [null, 5, "x", [], true, undefined, { form: null }, { form: [] }, { form: { action: "nope" } }]
        for (const bad of [...refused, { form: model }, { model: accept("x") }, { form: accept("x"), model: 5 }]) {
          expect([bad, (yield* update(bad)).error?.code]).toEqual([bad, -32602])
        }
        const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`k${n}`, accept(n)]))
        for (const ignored of [{}, { FORM: accept("x"), "form ": 5 }, many]) {
          expect((yield* update(ignored)).result.resultType).toBe("complete")
        }
        for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
          const { json } = yield* raw(
            "tasks/update",
            `{"taskId":"${taskId}","inputResponses":{"${name}":{"form":{"action":"accept"}}}}`,
            taskId
          )
          expect(json.result.resultType).toBe("complete")
        }
        expect(asks(2)(yield* get(taskId))).toBe(true)
        // The first answer to each counts.
        yield* update({ form: accept("Ann") })
        yield* update({ form: accept("Eve"), model })
        yield* update({ form: accept("Eve"), model: { ...model, content: { type: "text", text: "Bye" } } })
        const { result } = yield* until(taskId, over)
        expect(result.content[0].text).toContain("Ann")
        expect(result.content[0].text).toContain("Hello")
        expect(result.content[0].text).not.toMatch(/Eve|Bye/)
      })),
    120_000
  )

  it.live("ignores an answer that arrives before its question", () =>
    Effect.scoped(Effect.gen(function*() {
      const { begin, send, until } = yield* serve
      const taskId = yield* begin("late")
      const update = (name: string) => send("tasks/update", { taskId, inputResponses: { later: accept(name) } }, taskId)
      yield* update("early")
      yield* until(taskId, asks(1))
      yield* update("right")
      expect((yield* until(taskId, over)).result.content[0].text).toBe("right")
    })), 120_000)

  it.live(
    "returns arguments and answers of megabytes unchanged, rejects endless nesting, and stays up",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { begin, raw, send, until } = yield* serve
        const texts = [
          "x".repeat(1_000_000),
          "🧶\0\ud800\"\\".repeat(20_000),
          "\u2028\ufeff'; DROP TABLE skein_tasks; --"
        ]
        for (const value of [...texts, { ["__proto__ "]: 1, constructor: { prototype: null } }, [[[]]], null, 1e308]) {
          const { result, statusMessage } = yield* Effect.flatMap(begin("echo", { value }), (id) => until(id, over))
          expect(JSON.parse(result.content[0].text)).toEqual(JSON.parse(JSON.stringify(value)))
          expect(statusMessage).toBe(JSON.stringify(value).slice(0, 100))
        }
        for (const depth of [1000, 10_000, 500_000]) {
          const deep = "[".repeat(depth) + "]".repeat(depth)
          const { json, status } = yield* raw("tools/call", `{"name":"echo","arguments":{"value":${deep}}}`, "echo")
          expect([200, 400]).toContain(status)
          if (json.result === undefined) expect(json.error.code).toBeLessThanOrEqual(-32600)
          else expect(over(yield* until(json.result.taskId, over))).toBe(true)
          const taskId = yield* begin("late")
          yield* until(taskId, asks(1))
          yield* raw("tasks/update", `{"taskId":"${taskId}","inputResponses":{"later":${deep}}}`, taskId)
          yield* raw(
            "tasks/update",
            `{"taskId":"${taskId}","inputResponses":{"later":{"action":"accept","content":{"name":"x"},"more":${deep}}}}`,
            taskId
          )
          yield* send("tasks/update", { taskId, inputResponses: { later: accept("Ann") } }, taskId)
          expect((yield* until(taskId, over)).result.content[0].text).toMatch(/^(Ann|x)$/)
        }
      })),
    60_000
  )
})

describe("task_list", () => {
  it.live("lists tasks whose time to live is beyond all dates", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* kit.server([late, TaskTools.layer()], { maxTtl: null }, MemoryTasks.layer() as never)
      const principal = { id: "ann" }
      const legacy = yield* connect({ principal, revision: "2025-11-25" })
      const call = { name: "late", arguments: {}, task: { ttl: Number.MAX_SAFE_INTEGER } }
      const { task: { taskId } } = yield* legacy.result("tools/call", call)
      const client = yield* connect({ principal, can: {} })
      const { structuredContent } = yield* client.call("task_list")
      expect(structuredContent.tasks[0]).toMatchObject({ taskId, expiresAt: "+275760-09-13T00:00:00.000Z" })
      expect((yield* client.call("task_status", { taskId, waitSeconds: 0 })).structuredContent.taskId).toBe(taskId)
    })))
})
