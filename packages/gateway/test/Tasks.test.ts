/** Tools that a remote server runs as tasks: the proxy awaits their results. */
import { describe, expect, it } from "@effect/vitest"
import type { Progress } from "@skein/runtime/RequestContext"
import * as McpServer from "@skein/server/McpServer"
import * as CurrentProgress from "@skein/server/Progress"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { Everything } from "../../../examples/everything/server.ts"
import { answering, connect, eras, pairs, through } from "./kit.ts"
import { Log } from "./remote.ts"

const everything = Everything as Layer.Layer<McpServer.McpServer, unknown>
const textOf = (result: { readonly content: ReadonlyArray<unknown> }) => (result.content[0] as { text: string }).text

/** A task that reports progress, and never ends. */
const working = (log: Log) =>
  McpServer.layer(
    { name: "working", version: "1.0.0" },
    Task.layer(Task.make("work", { taskSupport: "required" }), () =>
      Effect.onInterrupt(
        Effect.gen(function*() {
          yield* log.add("began")
          yield* CurrentProgress.report({ progress: 1 })
          return yield* Effect.never as Effect.Effect<string>
        }),
        () => log.add("interrupted")
      )),
    Tasks.layer()
  ).pipe(Layer.provide(MemoryTasks.layer())) as Layer.Layer<McpServer.McpServer, unknown>

describe.each(pairs(eras))("%s before %s", (front, behind) => {
  it.live("returns the result of a task, and asks its questions of the caller", () =>
    Effect.gen(function*() {
      const { near } = yield* through(everything, behind)
      const client = yield* connect(near, front, { tasks: false }, answering)
      const tools = yield* client.listTools()
      expect(tools.filter(({ execution }) => execution !== undefined)).toEqual([])
      expect(textOf(yield* client.callTool("slow_compute", { seconds: 0 }))).toBe("Computed it in 0 s")
      expect(textOf(yield* client.callTool("confirm_delete", { filename: "a" }))).toBe("Deleted a")
      expect(textOf(yield* client.callTool("multi_input"))).toBe("Answered: accept, accept")
    }))

  it.live("passes the progress of a task on, and cancels the task with the call", () =>
    Effect.gen(function*() {
      const log = new Log()
      const { near } = yield* through(working(log), behind)
      const client = yield* connect(near, front, { tasks: false })
      const reports: Array<number> = []
      const onProgress = ({ progress }: Progress) => void reports.push(progress)
      const call = yield* Effect.forkChild(client.callTool("work", {}, { onProgress }), { startImmediately: true })
      while (log.count("began") === 0) yield* Effect.sleep(5)
      // The extension of 2026-07-28 has no progress of tasks.
      while (behind === "2025-11-25" && reports.length === 0) yield* Effect.sleep(5)
      yield* Fiber.interrupt(call)
      while (log.count("interrupted") === 0) yield* Effect.sleep(5)
      expect(reports).toEqual(behind === "2025-11-25" ? [1] : [])
    }))
})
