/** Tasks over HTTP on the wire. */
import { assert, describe, it } from "@effect/vitest"
import * as Header from "@skein/protocol/Header"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import { until } from "../http/support/connection.ts"
import type { Json } from "./kit.ts"

const lost = { code: -32000, message: "Bad Request: Server not initialized" }

const extension = "io.modelcontextprotocol/tasks"

describe("2025-11-25 · Streamable HTTP", () => {
  for (const status of [404, 400]) {
    it.live(`a session that is lost again and again (${status}) is opened again while a task is followed`, () =>
      Effect.scoped(Effect.gen(function*() {
        const state = {
          taskId: "t1",
          createdAt: "2026-11-01T10:30:00Z",
          lastUpdatedAt: "2026-11-01T10:30:00Z",
          ttl: null
        }
        let polls = 0
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => {
          if (hit.method !== "POST") return hit.respond(hit.method === "GET" ? 405 : 200)
          switch (hit.json.method) {
            case "initialize":
              return hit.respondResult({
                protocolVersion: "2025-11-25",
                capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
                serverInfo: { name: "scripted", version: "1" }
              }, { "mcp-session-id": `s-${polls}` })
            case "tools/list":
              return hit.respondResult({
                tools: [{ name: "t", inputSchema: { type: "object" }, execution: { taskSupport: "optional" } }]
              })
            case "tools/call":
              return hit.respondResult({ task: { ...state, status: "working", pollInterval: 50 } })
            case "tasks/result":
              return hit.respondResult({ content: [{ type: "text", text: "done" }] })
            case "tasks/get":
              polls++
              // The server may have handled the first request. It has the session of none of the next ones.
              if (polls === 1) return void hit.response.destroy()
              if (polls < 8) return hit.respondJson({ jsonrpc: "2.0", id: null, error: lost }, {}, status)
              return hit.respondResult({ ...state, status: "completed" })
            default:
              return hit.respond(202)
          }
        })
        const client = yield* Client.make(Http.transport({ url }), {
          reconnect: { jitter: "none", initialDelay: 5, maxDelay: 5 },
          tasks: { pollInterval: 20 }
        })
        const started = yield* client.startTask("t", {})
        assert.strictEqual(started._tag, "RemoteTask")
        const { content } = yield* started.result
        assert.deepStrictEqual(content, [{ type: "text", text: "done" }])
        assert.isAtLeast(exchanges.filter(({ json }) => json?.method === "initialize").length, 6)
      })))
  }
})

describe("2026-07-28 · Streamable HTTP", () => {
  for (const taskId of ["786512e2-9e0d-44bd-8f29-789f320fe840", " tâche "]) {
    it.live(`tasks/get, tasks/update and tasks/cancel: the client MUST set Mcp-Name to params.taskId · ${taskId}`, () =>
      Effect.scoped(Effect.gen(function*() {
        let answered = false
        const state = { taskId, createdAt: "2026-11-01T10:30:00Z", lastUpdatedAt: "2026-11-01T10:30:00Z", ttlMs: null }
        const question = {
          method: "elicitation/create",
          params: { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } }
        }
        const task = () =>
          answered
            ? { ...state, status: "working" }
            : { ...state, status: "input_required", inputRequests: { q: question } }
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => {
          const { method } = hit.json
          const complete = (result: Json) => hit.respondResult({ resultType: "complete", ...result })
          switch (method) {
            case "server/discover":
              return complete({
                supportedVersions: ["2026-07-28"],
                capabilities: { tools: {}, extensions: { [extension]: {} } },
                ttlMs: 0,
                cacheScope: "private"
              })
            case "tools/call":
              return hit.respondResult({ resultType: "task", ...state, status: "working", pollIntervalMs: 100 })
            case "tasks/update":
              answered = true
              return complete({})
            case "tasks/get":
              return complete(task())
            case "tasks/cancel":
              return complete({})
            default:
              return hit.respondJson(
                { jsonrpc: "2.0", id: hit.json.id, error: { code: -32601, message: "no" } },
                {},
                404
              )
          }
        })
        const host = Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) })
        const client = yield* Effect.provide(Client.make(Http.transport({ url })), host)
        const started = yield* client.startTask("t", {}, { task: { leaveRunning: false } })
        assert.strictEqual(started._tag, "RemoteTask")
        const sent = (method: string) => exchanges.filter(({ json }) => json.method === method)
        const waiting = yield* Effect.forkChild(started.result)
        yield* until(() => answered && sent("tasks/get").length > 1)
        yield* Fiber.interrupt(waiting)
        yield* until(() => sent("tasks/cancel").length > 0)
        const name = Header.standard({ protocolVersion: "2026-07-28", method: "x", name: taskId })[Header.names.name]
        for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
          const of = sent(method)
          assert.isAbove(of.length, 0, method)
          for (const { headers, json } of of) {
            assert.strictEqual(headers["mcp-method"], method)
            assert.strictEqual(headers["mcp-name"], name)
            assert.strictEqual(json.params.taskId, taskId)
            const { extensions } = json.params._meta["io.modelcontextprotocol/clientCapabilities"]
            assert.deepStrictEqual(extensions, { [extension]: {} })
          }
        }
        const called = exchanges.find(({ json }) => json.method === "tools/call")
        assert.strictEqual(called!.headers["mcp-name"], "t")
      })))
  }
})
