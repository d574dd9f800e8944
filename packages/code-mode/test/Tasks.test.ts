/** Tools that support tasks, in programs. */
import { describe, expect, it } from "@effect/vitest"
import * as CodeMode from "@skein/code-mode/CodeMode"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as input from "../../server/test/input/kit.ts"
import * as server from "../../server/test/kit.ts"
import { eras } from "./kit.ts"

const bakery = Layer.provide(
  server.server(
    CodeMode.layer(
      {},
      Task.layer(Task.make("bake"), () => Effect.succeed("baked")),
      Task.layer(Task.make("age", { taskSupport: "required" }), () => Effect.succeed("aged"))
    ),
    Tasks.layer()
  ) as server.Server,
  MemoryTasks.layer()
) as server.Server

const refused = {
  "2025-11-25": "Method not found: age requires a task-augmented call",
  "2026-07-28": "Missing required client capability: extensions"
}

describe("a program with tools that support tasks", () => {
  for (const revision of eras) {
    it.live(`${revision} · waits for the result of a task`, () =>
      Effect.gen(function*() {
        const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }
        const client = yield* input.client(bakery, { revision, capabilities })
        const run = (code: string) => Effect.map(client.call("execute", { code }), (text) => JSON.parse(text).result)
        expect(yield* run("return tools.bake()")).toBe("baked")
        // Called by its own name it is a task, for clients that declare the extension.
        const direct = yield* client.request("tools/call", { name: "bake" })
        expect(direct.result.resultType).toBe(revision === "2026-07-28" ? "task" : undefined)
        expect(yield* run("try { await tools.age() } catch (error) { return error.message }")).toBe(refused[revision])
      }))
  }
})
