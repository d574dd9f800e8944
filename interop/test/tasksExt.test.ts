/**
 * `@modelcontextprotocol/ext-tasks` with our server, in both shapes ("v1" there is 2025-11-25, "v2" the extension).
 *
 * Where it does not as the specification says, in 2025-11-25:
 * - "When the requestor encounters the `input_required` status, it SHOULD preemptively call `tasks/result`": it goes on polling, so
 *   that a server that asks there is never heard. Its host has to call it, on the client below; what comes then it answers.
 * - It does not fetch what `tasks/result` has for a task that is `failed`: the code and the data of an error are lost, and a tool's own
 *   failure is not told from an error.
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
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import { program, type Server } from "../fixtures/tasks-clients.ts"
import { connect, type Ext, type Kind, kinds } from "../fixtures/tasks-ext.ts"
import * as Offer from "../fixtures/tasks-offer.ts"
import { serve, type Serving } from "../serving.ts"

let serving: Serving
let folder: string
beforeAll(async () => {
  serving = await serve(Offer.server(MemoryTasks.layer(Offer.quick)))
  folder = await mkdtemp(join(tmpdir(), "skein-tasks-"))
})
afterAll(async () => {
  await serving.close()
  await rm(folder, { recursive: true })
})

const day = 24 * 60 * 60 * 1000

type Execution = ToolExecution<unknown>
type Begun = Extract<Execution, { readonly kind: "task" }>

const doors: ReadonlyArray<readonly [string, () => Server, ReadonlyArray<Kind>]> = [
  ["HTTP, in memory", () => serving.http, kinds],
  ["stdio, in a file", () => program(join(folder, "tasks.db")), ["sdk-v1 2025-11-25", "sdk-v2 2026-07-28"]]
]

for (const [door, server, kinds] of doors) {
  for (const kind of kinds) {
    const modern = kind.endsWith("2026-07-28")
    describe(`ext-tasks on ${kind} · ${door}`, () => {
      let ext: Ext
      const call = (name: string, args = {}, options: ToolCallOptions<unknown> = {}): Promise<Execution> =>
        ext.session.callTool(name, args, { task: { preference: "prefer" }, ...options })
      const begin = async (name: string): Promise<Begun> => {
        const execution = await call(name)
        if (execution.kind === "immediate") throw new Error(`${name} is no task`)
        return execution
      }
      const settled = async (execution: Execution) => {
        const { outcome } = await execution.settle()
        return outcome.status === "completed" ? outcome.result as { readonly content: Array<never> } : outcome
      }
      const text = async (execution: Execution) => textOf(await settled(execution) as never)
      /** What 2025-11-25 wants of its clients, and ext-tasks leaves undone. */
      const fetch = (id: TaskId) => modern ? undefined : ext.request("tasks/result", { taskId: id })
      const undone = async () => Number(await text(await call("undone", {}, { task: { preference: "allow" } })))
      beforeAll(async () => {
        ext = await connect(kind, server())
      })
      afterEach(() => {
        expect(ext.complaints).toEqual([])
        ext.asked.length = 0
      })
      afterAll(() => ext.close())

      it("it finds what the server can do", () => {
        expect(ext.session.capabilities).toEqual({
          inventory: modern ? "known-handles" : "server-list",
          execution: true,
          cancellation: true,
          inputResponses: modern,
          requestedRetention: !modern
        })
      })

      it("a call is seen through to its result, as a task where that is preferred, and its host is told on the way", async () => {
        const execution = await call("sum", { a: 1, b: 2 })
        expect(execution).toMatchObject({ kind: "task", handle: { operation: "tools/call" } })
        const told: Array<string> = []
        const { lastTask, outcome } = await execution.settle({
          onEvent: (event) => void told.push(event.type === "task" ? event.task.status : event.outcome.status)
        })
        expect(outcome).toMatchObject({ status: "completed", result: { structuredContent: { sum: 3 } } })
        expect(lastTask).toMatchObject({ status: "completed", retentionMs: day, suggestedPollIntervalMs: 20 })
        expect(told.at(-1)).toBe("completed")
      })

      it("who does not mind gets a result at once in 2025-11-25, and what the server decides since", async () => {
        const execution = await call("sum", { a: 1, b: 2 }, { task: { preference: "allow" } })
        expect(execution.kind).toBe(modern ? "task" : "immediate")
        expect(await settled(execution)).toMatchObject({ structuredContent: { sum: 3 } })
        expect((await call("release")).kind).toBe("immediate")
        expect((await call("must", {}, { task: { preference: "allow" } })).kind).toBe("task")
      })

      it("who wants no task is not left with one", async () => {
        if (!modern) {
          const execution = await call("sum", { a: 1, b: 2 }, { task: { preference: "forbid" } })
          return expect(execution.kind).toBe("immediate")
        }
        const before = await undone()
        await expect(call("stuck", {}, { task: { preference: "forbid" } })).rejects.toThrow("forbidden")
        await eventually(async () => expect(await undone()).toBe(before + 1))
      })

      it("a failure of the tool and an error of the call are told, as far as the shape tells them apart", async () => {
        const failed = await settled(await call("fail"))
        const refused = await settled(await call("refuse"))
        const { code, data, message } = Offer.refusal
        if (modern) {
          expect(failed).toMatchObject({ isError: true, content: [{ type: "text", text: Offer.failure }] })
          expect(refused).toMatchObject({ status: "failed", error: { code, data, message } })
        } else {
          expect(failed).toMatchObject({ status: "failed", error: { message: Offer.failure } })
          expect(refused).toMatchObject({ status: "failed", error: { message } })
        }
      })

      it("what a task asks, all of it at once, is answered by the application, which hears whose question it is", async () => {
        const execution = await begin("interview")
        void fetch(execution.handle.taskId)
        expect(await text(execution)).toBe("Ada\nAda said\nfile:///home/Ada")
        const delivery = modern ? "task-update" : "peer-request"
        const { taskId } = execution.handle
        expect(ext.asked.toSorted((a, b) => a.kind < b.kind ? -1 : 1)).toEqual(
          ["elicitation", "roots", "sampling"].map((kind) => ({ kind, delivery, scope: "task", taskId }))
        )
      })

      it("what is asked before there is a task belongs to the call", async () => {
        const execution = await begin("prepared")
        expect(ext.asked).toMatchObject([
          { kind: "elicitation", scope: "request", delivery: modern ? "request-retry" : "peer-request" }
        ])
        expect(await text(execution)).toBe("Ada said so before")
      })

      it("a question after a question has another key", async () => {
        const execution = await begin("twice")
        void fetch(execution.handle.taskId)
        expect(await text(execution)).toBe("Ada Ada")
        expect(ext.asked).toHaveLength(2)
      })

      if (door.startsWith("HTTP") && kind.startsWith("sdk-v2")) {
        it("where it has no application its user is taken to have dismissed what is asked", async () => {
          const mute = await connect(kind, server(), { able: false })
          const execution = await mute.session.callTool("twice", {}, { task: { preference: "require" } })
          if (!modern) void mute.request("tasks/result", { taskId: execution.handle!.taskId })
          expect(await text(execution)).toBe("cancel cancel")
          await mute.close()
        })
      }

      it("a task is cancelled, and undoes what it did", async () => {
        const before = await undone()
        const execution = await begin("stuck")
        const { taskId } = execution.handle
        const controller = ext.session.task(taskId)
        await eventually(async () => expect((await controller.snapshot()).statusMessage).toBe("begun"))
        await execution.cancel()
        expect(await execution.result()).toMatchObject({ status: "cancelled" })
        expect(await controller.snapshot()).toMatchObject({ taskId, status: "cancelled" })
        expect(await controller.result()).toMatchObject({ status: "cancelled" })
        await eventually(async () => expect(await undone()).toBe(before + 1))
        // The extension has no word against it; 2025-11-25 has.
        const again = controller.cancel()
        if (modern) await again
        else await expect(again).rejects.toMatchObject({ code: -32602 })
      })

      it("what is no task is refused", async () => {
        const nobodys = ext.session.task(taskId("nobody's"))
        await expect(nobodys.snapshot()).rejects.toMatchObject({ code: -32602 })
        await expect(nobodys.cancel()).rejects.toMatchObject({ code: -32602 })
        await expect(nobodys.result()).rejects.toMatchObject({ code: -32602 })
      })

      if (door.startsWith("HTTP")) {
        it("a task is handed on to another client, which goes on with it", async () => {
          let kept = ""
          const first = await connect(kind, server())
          const execution = await first.session.callTool("bake", {}, { task: { preference: "prefer" } })
          if (execution.kind !== "task") throw new Error("It is no task")
          await execution.handoff((reference) => void (kept = JSON.stringify(reference)))
          await first.close()
          const resumed = await ext.session.resumeTask(JSON.parse(kept))
          for (const _ of [1, 2]) {
            await eventually(async () => expect(await text(await ext.session.callTool("release"))).toBe("1"))
          }
          expect(await text(resumed)).toBe("A cake")
        })
      } else {
        it("a task is handed on past the end of its server, which was killed, to whom another client meets in its place", async () => {
          let kept = ""
          const execution = await begin("interview")
          const id = execution.handle.taskId
          await execution.handoff((reference) => void (kept = JSON.stringify(reference)))
          await eventually(async () => expect((await ext.session.task(id).snapshot()).status).toBe("input_required"))
          process.kill(ext.pid!, "SIGKILL")
          await eventually(() => expect(() => process.kill(ext.pid!, 0)).toThrow("ESRCH"))
          await ext.close()
          ext = await connect(kind, server(), { discovered: ext.discovered })
          const resumed = await ext.session.resumeTask(JSON.parse(kept))
          void fetch(id)
          expect(await text(resumed)).toBe("Ada\nAda said\nfile:///home/Ada")
          expect(ext.asked).toHaveLength(3)
        })
      }

      if (modern) {
        it("questions are answered by hand, one by one; what answers nothing is ignored, what is no answer is refused", async () => {
          const { taskId: id } = await ext.request("tools/call", { name: "interview" }) as { readonly taskId: TaskId }
          const controller = ext.session.task(id)
          const questions = async () => Object.entries((await controller.snapshot()).raw["inputRequests"] ?? {})
          await eventually(async () => expect(await questions()).toHaveLength(3))
          const keyOf = async (method: string) =>
            (await questions()).find(([, question]) => (question as { readonly method: string }).method === method)![0]
          await controller.update({
            [await keyOf("elicitation/create")]: { action: "decline" },
            nobody: { action: "cancel" }
          })
          expect(await questions()).toHaveLength(2)
          const model = await keyOf("sampling/createMessage")
          await expect(controller.update({ [model]: { action: "decline" } })).rejects.toMatchObject({ code: -32602 })
          const said = { role: "assistant", model: "m", content: { type: "text", text: "By hand" } }
          await controller.updateJson({ [model]: said, [await keyOf("roots/list")]: { roots: [] } })
          expect(textOf((await controller.result() as { readonly result: never }).result)).toBe("decline\nBy hand\n")
        })

        it("a subscription tells each state as tasks/get does, to whom the tasks are known", async () => {
          const execution = await begin("stuck")
          const id = execution.handle.taskId
          const from = ext.heard.length
          const closing = new AbortController()
          const filter = contributeTaskFilterV2({ notifications: {} }, [id, "nobody's"])
          const listening = ext.request("subscriptions/listen", filter, closing.signal).catch(() => undefined)
          const heard = (method: string) => ext.heard.slice(from).filter((notice) => notice["method"] === method)
          await eventually(() => expect(heard("notifications/subscriptions/acknowledged")).toHaveLength(1))
          expect(readAcceptedTaskIdsV2(heard("notifications/subscriptions/acknowledged")[0]!["params"])).toEqual([id])
          await execution.cancel()
          const last = () => TaskStatusNotificationV2Schema.parse(heard("notifications/tasks").at(-1))
          await eventually(() => expect(last().params).toMatchObject({ taskId: id, status: "cancelled" }))
          closing.abort()
          await listening
        })
      } else {
        it("tasks are listed page by page, newest first", async () => {
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
          await expect(ext.session.listTasks("nowhere")).rejects.toMatchObject({ code: -32602 })
        })

        it("a task is kept for as long as is asked for", async () => {
          const options = {
            task: { preference: "prefer", retentionMs: 60_000, retention: "require-capability" }
          } as const
          const { lastTask } = await (await call("must", {}, options)).settle()
          expect(lastTask).toMatchObject({ retentionMs: 60_000, status: "completed" })
        })

        it("its session is told each status, and a question cannot be answered by hand", async () => {
          const from = ext.heard.length
          const execution = await begin("stuck")
          const id = execution.handle.taskId
          await expect(ext.session.task(id).update({})).rejects.toBeInstanceOf(TaskInputUpdateUnsupportedError)
          await execution.cancel()
          await eventually(() => {
            const heard = ext.heard.slice(from).filter(({ method }) => method === "notifications/tasks/status")
            const last = TaskStatusNotificationV1Schema.parse({ jsonrpc: "2.0", ...heard.at(-1) })
            expect(last.params).toMatchObject({ taskId: id, status: "cancelled" })
          })
        })
      }
    })
  }
}
