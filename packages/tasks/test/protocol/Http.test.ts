import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as http from "../../../server/test/http/kit.ts"
import * as fake from "../fakeEngine.ts"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const request = (method: string, params: kit.Json, name?: string): http.Request =>
  http.modern(method, params, {
    headers: { "Mcp-Name": name },
    _meta: { "io.modelcontextprotocol/clientCapabilities": kit.tasks }
  })

describe("io.modelcontextprotocol/tasks · Streamable HTTP: routing headers", () => {
  it.live("2026-07-28 · `Mcp-Name` is `params.taskId` for tasks/get, tasks/update, and tasks/cancel: else 400 and -32020", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, tools.gated().definition, Tasks.layer())
      const at = yield* http.serve(Layer.provide(server, fake.layer))
      const created = yield* http.send(at, request("tools/call", { name: "bake" }, "bake"))
      const { taskId } = created.json.result
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        const params = { taskId, inputResponses: {} }
        for (const name of [undefined, "other", taskId.toLowerCase(), method]) {
          const { json, status } = yield* http.send(at, request(method, params, name))
          expect([status, json.error.code]).toEqual([400, -32020])
        }
        const { json, status } = yield* http.send(at, request(method, params, taskId))
        expect([status, json.result.resultType]).toEqual([200, "complete"])
      }
      const unknown = yield* http.send(at, request("tasks/get", { taskId: "unknown" }, "unknown"))
      expect(unknown.json.error.code).toBe(-32602)
    })))

  it.live("2026-07-28 · closing the connection of a waiting call cancels the call and its task", () =>
    Effect.scoped(Effect.gen(function*() {
      const { definition, seen } = tools.gated()
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, definition, Tasks.layer())
      const at = yield* http.serve(Layer.provide(server, fake.layer))
      const waiting = http.modern("tools/call", { name: "bake" })
      yield* Effect.raceFirst(http.send(at, waiting), Effect.repeat(Effect.void, { until: () => seen.runs === 1 }))
      yield* Effect.repeat(Effect.sleep(1), { until: () => seen.interrupted === 1 })
      expect(seen).toEqual({ runs: 1, interrupted: 1 })
    })))

  it.live("2026-07-28 · a closing server ends a waiting call, and does not cancel its task", () =>
    Effect.scoped(Effect.gen(function*() {
      const { definition, seen } = tools.gated()
      const engine = yield* Layer.build(fake.layer)
      // The workers stop with the server: their runs are interrupted, and continue elsewhere.
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, definition, Tasks.layer())
      const scope = yield* Scope.make()
      const at = yield* Scope.provide(
        http.serve(Layer.provide(server, Layer.succeedContext(engine)), { shutdownTimeout: 50 }),
        scope
      )
      yield* Effect.forkScoped(http.send(at, http.modern("tools/call", { name: "bake" })))
      yield* Effect.repeat(Effect.sleep(1), { until: () => seen.runs === 1 })
      yield* Scope.close(scope, Exit.void)
      const [row] = [...Context.get(engine, fake.FakeTasks).rows.values()]
      expect([row!.state.status, seen]).toEqual(["working", { runs: 1, interrupted: 1 }])
    })))
})
