/**
 * `@modelcontextprotocol/ext-tasks` with Skein's server, in both forms of tasks ("v1" there is 2025-11-25, "v2" the
 * extension).
 *
 * In 2025-11-25 it deviates from the specification:
 * - "When the requestor encounters the `input_required` status, it SHOULD preemptively call `tasks/result`": it
 *   continues polling, so that it never receives the requests of the task. The application has to call `tasks/result`
 *   on the client below; ext-tasks responds to the requests then.
 * - It does not fetch `tasks/result` for a `failed` task: the code and data of an error are lost, and a tool error
 *   looks like a protocol error.
 */
import { type TaskId, taskId } from "@modelcontextprotocol/ext-tasks/core"
import { TaskStatusNotificationV1Schema } from "@modelcontextprotocol/ext-tasks/core/v1"
import {
  contributeTaskFilterV2,
  readAcceptedTaskIdsV2,
  TaskStatusNotificationV2Schema
} from "@modelcontextprotocol/ext-tasks/core/v2"
import {
  TaskInputUpdateUnsupportedError,
  type ToolCallOptions,
  type ToolExecution
} from "@modelcontextprotocol/ext-tasks/client"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import { connect, type ExtTasksClient, type Kind, kinds } from "../fixtures/extTasksClient.ts"
import type { AnyServer } from "../testClient.ts"
import * as Tasks from "../fixtures/skeinTasks.ts"
import { tasksServers } from "../fixtures/skeinTasksServers.ts"

const servers = tasksServers()

const day = 24 * 60 * 60 * 1000

type Execution = ToolExecution<unknown>
type TaskExecution = Extract<Execution, { readonly kind: "task" }>

const transports: ReadonlyArray<readonly [string, () => AnyServer, ReadonlyArray<Kind>]> = [
  ["HTTP, in memory", servers.http, kinds],
  ["stdio, in a file", servers.stdio, ["sdk-v1 2025-11-25", "sdk-v2 2026-07-28"]]
]

for (const [transport, server, kinds] of transports) {
  for (const kind of kinds) {
    const modern = kind.endsWith("2026-07-28")
    describe(`ext-tasks with ${kind} · ${transport}`, () => {
      let ext: ExtTasksClient
      const call = (name: string, args = {}, options: ToolCallOptions<unknown> = {}): Promise<Execution> =>
        ext.session.callTool(name, args, { task: { preference: "prefer" }, ...options })
      const begin = async (name: string): Promise<TaskExecution> => {
        const execution = await call(name)
        if (execution.kind === "immediate") throw new Error(`${name} did not create a task`)
        return execution
      }
      const settled = async (execution: Execution) => {
        const { outcome } = await execution.settle()
        return outcome.status === "completed" ? outcome.result as { readonly content: Array<never> } : outcome
      }
      const text = async (execution: Execution) => textOf(await settled(execution) as never)
      /** Calls `tasks/result`, which 2025-11-25 requires of clients and ext-tasks does not do. */
      const fetchResult = (id: TaskId) => modern ? undefined : ext.request("tasks/result", { taskId: id })
      const countUndone = async () => Number(await text(await call("undone", {}, { task: { preference: "allow" } })))
      beforeAll(async () => {
        ext = await connect(kind, server())
      })
      afterEach(() => {
        expect(ext.clientErrors).toEqual([])
        ext.asked.length = 0
      })
      afterAll(() => ext.close())

      it("detects the capabilities of the server", () => {
        expect(ext.session.capabilities).toEqual({
          inventory: modern ? "known-handles" : "server-list",
          execution: true,
          cancellation: true,
          inputResponses: modern,
          requestedRetention: !modern
        })
      })

      it("returns the result of a call as a task, and reports its statuses", async () => {
        const execution = await call("sum", { a: 1, b: 2 })
        expect(execution).toMatchObject({ kind: "task", handle: { operation: "tools/call" } })
        const statuses: Array<string> = []
        const { lastTask, outcome } = await execution.settle({
          onEvent: (event) => void statuses.push(event.type === "task" ? event.task.status : event.outcome.status)
        })
        expect(outcome).toMatchObject({ status: "completed", result: { structuredContent: { sum: 3 } } })
        expect(lastTask).toMatchObject({ status: "completed", retentionMs: day, suggestedPollIntervalMs: 20 })
        expect(statuses.at(-1)).toBe("completed")
      })

      it("without a preference, returns an immediate result in 2025-11-25; later the server decides", async () => {
        const execution = await call("sum", { a: 1, b: 2 }, { task: { preference: "allow" } })
        expect(execution.kind).toBe(modern ? "task" : "immediate")
        expect(await settled(execution)).toMatchObject({ structuredContent: { sum: 3 } })
        expect((await call("release")).kind).toBe("immediate")
        expect((await call("must", {}, { task: { preference: "allow" } })).kind).toBe("task")
      })

      it("creates no task if tasks are forbidden, or cancels it", async () => {
        if (!modern) {
          const execution = await call("sum", { a: 1, b: 2 }, { task: { preference: "forbid" } })
          return expect(execution.kind).toBe("immediate")
        }
        const before = await countUndone()
        await expect(call("stuck", {}, { task: { preference: "forbid" } })).rejects.toThrow("forbidden")
        await eventually(async () => expect(await countUndone()).toBe(before + 1))
      })

      it("returns a tool error and a protocol error, which 2025-11-25 does not distinguish", async () => {
        const failed = await settled(await call("fail"))
        const refused = await settled(await call("refuse"))
        const { code, data, message } = Tasks.refusal
        if (modern) {
          expect(failed).toMatchObject({ isError: true, content: [{ type: "text", text: Tasks.failure }] })
          expect(refused).toMatchObject({ status: "failed", error: { code, data, message } })
        } else {
          expect(failed).toMatchObject({ status: "failed", error: { message: Tasks.failure } })
          expect(refused).toMatchObject({ status: "failed", error: { message } })
        }
      })

      it("responds to several requests of a task at once, and names the task", async () => {
        const execution = await begin("interview")
        void fetchResult(execution.handle.taskId)
        expect(await text(execution)).toBe("Ada\nAda said\nfile:///home/Ada")
        const delivery = modern ? "task-update" : "peer-request"
        const { taskId } = execution.handle
        expect(ext.asked.toSorted((a, b) => a.kind < b.kind ? -1 : 1)).toEqual(
          ["elicitation", "roots", "sampling"].map((kind) => ({ kind, delivery, scope: "task", taskId }))
        )
      })

      it("responds to a request before the task as part of the call", async () => {
        const execution = await begin("prepared")
        expect(ext.asked).toMatchObject([
          { kind: "elicitation", scope: "request", delivery: modern ? "request-retry" : "peer-request" }
        ])
        expect(await text(execution)).toBe("Ada said so before")
      })

      it("responds to one request after the other", async () => {
        const execution = await begin("twice")
        void fetchResult(execution.handle.taskId)
        expect(await text(execution)).toBe("Ada Ada")
        expect(ext.asked).toHaveLength(2)
      })

      if (transport.startsWith("HTTP") && kind.startsWith("sdk-v2")) {
        it("responds with cancel if the application has no handler", async () => {
          const silent = await connect(kind, server(), { answers: false })
          const execution = await silent.session.callTool("twice", {}, { task: { preference: "require" } })
          if (!modern) void silent.request("tasks/result", { taskId: execution.handle!.taskId })
          expect(await text(execution)).toBe("cancel cancel")
          await silent.close()
        })
      }

      it("cancels a task, which runs its compensation", async () => {
        const before = await countUndone()
        const execution = await begin("stuck")
        const { taskId } = execution.handle
        const controller = ext.session.task(taskId)
        await eventually(async () => expect((await controller.snapshot()).statusMessage).toBe("begun"))
        await execution.cancel()
        expect(await execution.result()).toMatchObject({ status: "cancelled" })
        expect(await controller.snapshot()).toMatchObject({ taskId, status: "cancelled" })
        expect(await controller.result()).toMatchObject({ status: "cancelled" })
        await eventually(async () => expect(await countUndone()).toBe(before + 1))
        // 2025-11-25 forbids cancelling twice; the extension does not.
        const again = controller.cancel()
        if (modern) await again
        else await expect(again).rejects.toMatchObject({ code: -32602 })
      })

      it("rejects an unknown task", async () => {
        const unknown = ext.session.task(taskId("unknown"))
        await expect(unknown.snapshot()).rejects.toMatchObject({ code: -32602 })
        await expect(unknown.cancel()).rejects.toMatchObject({ code: -32602 })
        await expect(unknown.result()).rejects.toMatchObject({ code: -32602 })
      })

      if (transport.startsWith("HTTP")) {
        it("hands a task to another client", async () => {
          let saved = ""
          const first = await connect(kind, server())
          const execution = await first.session.callTool("bake", {}, { task: { preference: "prefer" } })
          if (execution.kind !== "task") throw new Error("bake did not create a task")
          await execution.handoff((reference) => void (saved = JSON.stringify(reference)))
          await first.close()
          const resumed = await ext.session.resumeTask(JSON.parse(saved))
          for (const _ of [1, 2]) {
            await eventually(async () => expect(await text(await ext.session.callTool("release"))).toBe("1"))
          }
          expect(await text(resumed)).toBe("A cake")
        })
      } else {
        it("resumes a task with another client after the server was killed and restarted", async () => {
          let saved = ""
          const execution = await begin("interview")
          const id = execution.handle.taskId
          await execution.handoff((reference) => void (saved = JSON.stringify(reference)))
          await eventually(async () => expect((await ext.session.task(id).snapshot()).status).toBe("input_required"))
          process.kill(ext.pid!, "SIGKILL")
          await eventually(() => expect(() => process.kill(ext.pid!, 0)).toThrow("ESRCH"))
          await ext.close()
          ext = await connect(kind, server(), { discovered: ext.discovered })
          const resumed = await ext.session.resumeTask(JSON.parse(saved))
          void fetchResult(id)
          expect(await text(resumed)).toBe("Ada\nAda said\nfile:///home/Ada")
          expect(ext.asked).toHaveLength(3)
        })
      }

      if (modern) {
        it("updates a task with single responses; ignores unknown keys, rejects invalid responses", async () => {
          const { taskId: id } = await ext.request("tools/call", { name: "interview" }) as { readonly taskId: TaskId }
          const controller = ext.session.task(id)
          const inputRequests = async () => Object.entries((await controller.snapshot()).raw["inputRequests"] ?? {})
          await eventually(async () => expect(await inputRequests()).toHaveLength(3))
          const keyOf = async (method: string) =>
            (await inputRequests()).find(([, request]) =>
              (request as { readonly method: string }).method === method
            )![0]
          await controller.update({
            [await keyOf("elicitation/create")]: { action: "decline" },
            unknown: { action: "cancel" }
          })
          expect(await inputRequests()).toHaveLength(2)
          const model = await keyOf("sampling/createMessage")
          await expect(controller.update({ [model]: { action: "decline" } })).rejects.toMatchObject({ code: -32602 })
          const sampled = { role: "assistant", model: "m", content: { type: "text", text: "From the application" } }
          await controller.updateJson({ [model]: sampled, [await keyOf("roots/list")]: { roots: [] } })
          expect(textOf((await controller.result() as { readonly result: never }).result)).toBe(
            "decline\nFrom the application\n"
          )
        })

        it("receives each state of its own tasks through a subscription", async () => {
          const execution = await begin("stuck")
          const id = execution.handle.taskId
          const from = ext.received.length
          const closing = new AbortController()
          const filter = contributeTaskFilterV2({ notifications: {} }, [id, "unknown"])
          const listening = ext.request("subscriptions/listen", filter, closing.signal).catch(() => undefined)
          const received = (method: string) =>
            ext.received.slice(from).filter((notification) => notification["method"] === method)
          await eventually(() => expect(received("notifications/subscriptions/acknowledged")).toHaveLength(1))
          expect(readAcceptedTaskIdsV2(received("notifications/subscriptions/acknowledged")[0]!["params"])).toEqual([
            id
          ])
          await execution.cancel()
          const last = () => TaskStatusNotificationV2Schema.parse(received("notifications/tasks").at(-1))
          await eventually(() => expect(last().params).toMatchObject({ taskId: id, status: "cancelled" }))
          closing.abort()
          await listening
        })
      } else {
        it("lists tasks in pages, newest first", async () => {
          const ids: Array<string> = []
          for (let n = 0; n < 6; n++) {
            const execution = await begin("fail")
            await execution.settle()
            ids.push(execution.handle.taskId)
          }
          const first = await ext.session.listTasks()
          const second = await ext.session.listTasks(first.nextCursor)
          expect(first.tasks).toHaveLength(5)
          const listed = [...first.tasks, ...second.tasks].map(({ taskId }) => taskId)
          expect(listed.slice(0, 6)).toEqual(ids.toReversed())
          await expect(ext.session.listTasks("unknown")).rejects.toMatchObject({ code: -32602 })
        })

        it("requests a retention time for a task", async () => {
          const options = {
            task: { preference: "prefer", retentionMs: 60_000, retention: "require-capability" }
          } as const
          const { lastTask } = await (await call("must", {}, options)).settle()
          expect(lastTask).toMatchObject({ retentionMs: 60_000, status: "completed" })
        })

        it("receives status notifications, and cannot update a task with responses", async () => {
          const from = ext.received.length
          const execution = await begin("stuck")
          const id = execution.handle.taskId
          await expect(ext.session.task(id).update({})).rejects.toBeInstanceOf(TaskInputUpdateUnsupportedError)
          await execution.cancel()
          await eventually(() => {
            const received = ext.received.slice(from).filter(({ method }) => method === "notifications/tasks/status")
            const last = TaskStatusNotificationV1Schema.parse({ jsonrpc: "2.0", ...received.at(-1) })
            expect(last.params).toMatchObject({ taskId: id, status: "cancelled" })
          })
        })
      }
    })
  }
}
