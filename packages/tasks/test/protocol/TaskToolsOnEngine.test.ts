/** The tools on the real engine. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as serverKit from "../../../server/test/kit.ts"
import * as kit from "../legacy/kit.ts"

const server = McpServer.layer({ name: "test", version: "1" }, kit.book, Tasks.layer(), TaskTools.layer()).pipe(
  Layer.provide(MemoryTasks.layer())
)
const idOf = ({ content: [{ text }] }: kit.Json): string => /^Task (\S+) of/m.exec(text)![1]!

describe("tools for tasks, on the engine in memory", () => {
  for (const revision of ["2024-11-05", "2025-11-25", "2026-07-28"] as const) {
    it.live(`${revision} · a model calls, answers a question, and gets the result`, () =>
      Effect.scoped(Effect.gen(function*() {
        const client = yield* serverKit.client(server, revision)
        const taskId = idOf(yield* client.call("book"))
        yield* client.call("task_answer", { taskId, content: { people: 4 } })
        const asks = yield* client.call("task_status", { taskId })
        expect(asks.content[0].text).toContain("Whose name?")
        yield* client.call("task_answer", { taskId, content: { name: "Ann" } })
        expect((yield* client.call("task_status", { taskId })).content[1].text).toBe("4 for Ann")
      })))
  }

  it.live("2026-07-28 · a client that can be asked is asked through its call", () =>
    Effect.scoped(Effect.gen(function*() {
      const client = yield* serverKit.client(server, "2026-07-28")
      const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } }
      let round: kit.Json = {}
      for (const content of [{ people: 2 }, { name: "Bob" }]) {
        const { inputRequests, requestState, resultType } = yield* client.result("tools/call", {
          name: "book",
          _meta,
          ...round
        })
        expect(resultType).toBe("input_required")
        const inputResponses = Object.fromEntries(
          Object.keys(inputRequests).map((key) => [key, { action: "accept", content }])
        )
        round = { inputResponses, requestState }
      }
      expect((yield* client.result("tools/call", { name: "book", _meta, ...round })).content[0].text).toBe("2 for Bob")
    })))
})
