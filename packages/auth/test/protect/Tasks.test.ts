/** Tasks of a protected server: a task belongs to the principal of the token that created it, in both eras. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { bearer, type Client, type Json, protect, revisions, type Server, Tokens } from "./kit.ts"

const brew = Task.layer(Task.make("brew"), () => Effect.never)

/** A protected server, with two tokens of ada and one of grace. */
const start = Effect.gen(function*() {
  const tokens = new Tokens()
  tokens.add("ada", { subject: "ada" })
  tokens.add("ada-renewed", { subject: "ada" })
  tokens.add("ada-elsewhere", { subject: "ada", clientId: "another app" })
  tokens.add("grace", { subject: "grace" })
  // The same subject of no user is a client, and no user.
  tokens.add("client", { subject: undefined, clientId: "ada" })
  const server = McpServer.layer({ name: "tea", version: "1.0.0" }, brew, Tasks.layer())
  const listening = NodeHttp.layer({ port: 0, protection: protect(tokens) })
  const context = yield* Effect.orDie(
    Layer.build(Layer.provide(listening, Layer.provide(server, MemoryTasks.layer())))
  )
  return Context.get(context, NodeHttp.Server)
})

const openAs = (server: Server, revision: string, token: string) =>
  Effect.gen(function*() {
    const client = revisions.find(([name]) => name === revision)![1](server)
    expect(yield* client.open(bearer(token))).toBeUndefined()
    return client
  })

const others = ["grace", "client"]
const own = ["ada", "ada-renewed", "ada-elsewhere"]

describe("2026-07-28 · a task", () => {
  const extension = {
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } }
  }
  const ask = (client: Client, token: string, method: string, params: Json) =>
    client.request(method, { ...params, _meta: extension }, {
      ...bearer(token),
      "mcp-name": params.name ?? params.taskId
    })

  it.live("belongs to the user who created it: others cannot get, update or cancel it", () =>
    Effect.scoped(Effect.gen(function*() {
      const client = yield* openAs(yield* start, "2026-07-28", "ada")
      const { taskId } = (yield* ask(client, "ada", "tools/call", { name: "brew", arguments: {} })).json.result
      expect(taskId).toEqual(expect.any(String))
      for (const token of others) {
        for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
          const { json } = yield* ask(client, token, method, { taskId, inputResponses: {} })
          expect([token, method, json.result, json.error?.code]).toEqual([token, method, undefined, -32602])
          // The answer is the same as for a task that does not exist.
          const unknown = yield* ask(client, token, method, { taskId: "unknown", inputResponses: {} })
          expect(json.error.message.replaceAll(taskId, "unknown")).toBe(unknown.json.error.message)
        }
      }
      expect((yield* ask(client, "nobody", "tasks/get", { taskId })).status).toBe(401)
      for (const token of own) {
        expect((yield* ask(client, token, "tasks/get", { taskId })).json.result).toMatchObject({ status: "working" })
      }
      expect((yield* ask(client, "ada-renewed", "tasks/cancel", { taskId })).json.error).toBeUndefined()
      expect((yield* ask(client, "ada", "tasks/get", { taskId })).json.result).toMatchObject({ status: "cancelled" })
    })))
})

describe("2025-11-25 · a task", () => {
  it.live("belongs to the user who created it: others cannot get, list or cancel it, or wait for its result", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const ada = yield* openAs(server, "2025-11-25", "ada")
      const created = yield* ada.request("tools/call", { name: "brew", arguments: {}, task: {} }, bearer("ada"))
      const { taskId } = created.json.result.task
      const listed = (client: Client, token: string) =>
        Effect.map(
          client.request("tasks/list", {}, bearer(token)),
          ({ json }) => json.result.tasks.map(({ taskId }: Json) => taskId)
        )
      for (const token of others) {
        const client = yield* openAs(server, "2025-11-25", token)
        for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
          const { json } = yield* client.request(method, { taskId }, bearer(token))
          expect([token, method, json.result, json.error?.code]).toEqual([token, method, undefined, -32602])
        }
        expect(yield* listed(client, token)).toEqual([])
        // The session of another user is not found.
        expect((yield* ada.request("tasks/get", { taskId }, bearer(token))).status).toBe(404)
      }
      for (const token of own) {
        const client = yield* openAs(server, "2025-11-25", token)
        expect((yield* client.request("tasks/get", { taskId }, bearer(token))).json.result).toMatchObject({
          status: "working"
        })
        expect(yield* listed(client, token)).toEqual([taskId])
      }
      yield* ada.request("tasks/cancel", { taskId }, bearer("ada-renewed"))
      expect((yield* ada.request("tasks/get", { taskId }, bearer("ada"))).json.result.status).toBe("cancelled")
    })))
})
