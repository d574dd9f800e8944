/**
 * The experimental tasks of SDK v1's client with our server, in 2025-11-25: in memory over HTTP, and in a file over stdio.
 *
 * Where it does not as the specification says (its `requestStream`): of a task that is `failed` it does not fetch what `tasks/result` has
 * for it, but gives an error of its own; and a stream whose reader goes leaves the task running.
 */
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  McpError,
  TaskStatusNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { answers } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import { program, type SdkV1, sdkV1, type Server } from "../fixtures/tasks-clients.ts"
import * as Offer from "../fixtures/tasks-offer.ts"
import { serve, type Serving } from "../serving.ts"

const related = "io.modelcontextprotocol/related-task"

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

/** What a stream gives: the id of the task, the statuses in order, each once, and how it ended. */
const followed = async (stream: ReturnType<SdkV1["client"]["experimental"]["tasks"]["callToolStream"]>) => {
  const statuses: Array<string> = []
  let id: string | undefined
  let end: unknown
  for await (const message of stream) {
    if (message.type === "taskCreated") id = message.task.taskId
    else if (message.type === "taskStatus") {
      if (statuses.at(-1) !== message.task.status) statuses.push(message.task.status)
    } else end = message.type === "result" ? message.result : message.error
  }
  return { id: id!, statuses, end }
}

const doors: ReadonlyArray<readonly [string, () => Server]> = [
  ["HTTP, in memory", () => serving.http],
  ["stdio, in a file", () => program(join(folder, "tasks.db"))]
]

for (const [door, server] of doors) {
  describe(`2025-11-25 · sdk-v1 with tasks · ${door}`, () => {
    let one: SdkV1
    const tasks = () => one.client.experimental.tasks
    const call = (name: string, args = {}, options = {}) =>
      followed(tasks().callToolStream({ name, arguments: args }, undefined, options))
    const plain = async (name: string) => textOf((await one.client.callTool({ name })) as never)
    const begin = async (name: string) => {
      const stream = tasks().callToolStream({ name })
      const { value } = await stream.next()
      if (value?.type !== "taskCreated") throw new Error(JSON.stringify(value))
      return { task: value.task, stream }
    }
    beforeAll(async () => {
      one = await sdkV1(server())
      await one.client.listTools()
    })
    afterAll(async () => {
      expect(one.complaints).toEqual([])
      await one.close()
    })

    it("it finds what the server declares, and what each tool allows", async () => {
      expect(one.client.getServerCapabilities()?.tasks).toEqual({
        list: {},
        cancel: {},
        requests: { tools: { call: {} } }
      })
      const { tools } = await one.client.listTools()
      const support = Object.fromEntries(tools.map(({ execution, name }) => [name, execution?.taskSupport]))
      expect(support).toMatchObject({ sum: "optional", twice: "optional", must: "required", release: undefined })
    })

    it("a task ends with the result of the call, which names the task", async () => {
      const { end, id, statuses } = await call("sum", { a: 1, b: 2 })
      expect(end).toMatchObject({ structuredContent: { sum: 3 }, _meta: { [related]: { taskId: id } } })
      expect(statuses.at(-1)).toBe("completed")
    })

    it("a tool that must be called as a task is, and is refused otherwise; one that cannot be is refused as a task", async () => {
      expect((await call("must")).end).toMatchObject({ content: [{ type: "text", text: "As a task" }] })
      const request = { method: "tools/call" as const, params: { name: "must", arguments: {} } }
      await expect(one.client.request(request, CallToolResultSchema)).rejects.toMatchObject({ code: -32601 })
      expect((await call("release", {}, { task: {} })).end).toMatchObject({ code: -32601 })
    })

    it("a failure of the tool and an error of the call are those of tasks/result", async () => {
      const failed = await call("fail")
      expect(failed.statuses.at(-1)).toBe("failed")
      expect(failed.end).toBeInstanceOf(McpError)
      expect(await tasks().getTask(failed.id)).toMatchObject({ status: "failed", statusMessage: Offer.failure })
      expect(await tasks().getTaskResult(failed.id, CallToolResultSchema)).toMatchObject({
        isError: true,
        content: [{ type: "text", text: Offer.failure }],
        _meta: { [related]: { taskId: failed.id } }
      })
      const refused = await call("refuse")
      expect(refused.statuses.at(-1)).toBe("failed")
      const { code, data } = Offer.refusal
      await expect(tasks().getTaskResult(refused.id, CallToolResultSchema)).rejects.toMatchObject({ code, data })
    })

    it("what a task asks comes on tasks/result, all of it at once, and names the task", async () => {
      one.asked.length = 0
      const { end, id, statuses } = await call("interview")
      expect(textOf(end as never)).toBe("Ada\nAda said\nfile:///home/Ada")
      expect(statuses).toContain("input_required")
      expect(one.asked.toSorted((a, b) => a.method < b.method ? -1 : 1)).toEqual(
        ["elicitation/create", "roots/list", "sampling/createMessage"].map((method) => ({ method, task: id }))
      )
    })

    it("a question after a question comes on the same tasks/result", async () => {
      one.asked.length = 0
      const { end } = await call("twice")
      expect(textOf(end as never)).toBe("Ada Ada")
      expect(one.asked).toHaveLength(2)
    })

    it("what the client refuses to answer fails the tool, where that does not take it otherwise", async () => {
      const answer = () => {
        throw new McpError(1, "Nobody is there")
      }
      one.client.setRequestHandler(ElicitRequestSchema, answer)
      const { end, id } = await call("twice")
      expect(end).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("Nobody is there") }] })
      expect((await tasks().getTask(id)).status).toBe("failed")
      one.client.setRequestHandler(ElicitRequestSchema, ({ params }) => answers("Ada").elicit(params))
    })

    it("what is asked before there is a task belongs to the call", async () => {
      const { end, id, statuses } = await call("prepared")
      expect(textOf(end as never)).toBe("Ada said so before")
      expect(statuses).not.toContain("input_required")
      expect(end).toMatchObject({ _meta: { [related]: { taskId: id } } })
    })

    it("progress is told over the whole life of the task", async () => {
      const progress: Array<number> = []
      const options = {
        onprogress: (note: { readonly progress: number }) => void progress.push(note.progress)
      }
      const baking = call("bake", {}, options)
      for (const steps of [[1], [1, 2]]) {
        await eventually(() => expect(progress).toEqual(steps))
        await eventually(async () => expect(await plain("release")).toBe("1"))
      }
      expect(textOf((await baking).end as never)).toBe("A cake")
    })

    it("a task is cancelled, once, and undoes what it did; its stream ends so", async () => {
      const before = Number(await plain("undone"))
      const { stream, task: { taskId } } = await begin("stuck")
      await eventually(async () => expect((await tasks().getTask(taskId)).statusMessage).toBe("begun"))
      expect(await tasks().cancelTask(taskId)).toMatchObject({ taskId, status: "cancelled" })
      await expect(tasks().cancelTask(taskId)).rejects.toMatchObject({ code: -32602 })
      expect((await tasks().getTask(taskId)).status).toBe("cancelled")
      await expect(tasks().getTaskResult(taskId, CallToolResultSchema)).rejects.toBeInstanceOf(McpError)
      expect((await followed(stream)).end).toMatchObject({ message: expect.stringContaining("was cancelled") })
      await eventually(async () => expect(Number(await plain("undone"))).toBe(before + 1))
    })

    it("tasks are listed page by page, newest first; what is no cursor, or no task, is refused", async () => {
      const ids: Array<string> = []
      for (let n = 0; n < 6; n++) ids.push((await call("sum", { a: n, b: n })).id)
      const first = await tasks().listTasks()
      const second = await tasks().listTasks(first.nextCursor)
      const listed = [...first.tasks, ...second.tasks].map(({ taskId }) => taskId)
      expect(first.tasks).toHaveLength(5)
      expect(listed.slice(0, 6)).toEqual(ids.toReversed())
      await expect(tasks().listTasks("nowhere")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().getTask("nobody's")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().getTaskResult("nobody's")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().cancelTask("nobody's")).rejects.toMatchObject({ code: -32602 })
    })

    it("its session hears of each status", async () => {
      const heard: Array<readonly [string, string]> = []
      one.client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
        heard.push([params.taskId, params.status])
      })
      const { id } = await call("interview")
      await eventually(() => expect(heard.findLast(([task]) => task === id)).toEqual([id, "completed"]))
      expect(heard).toContainEqual([id, "input_required"])
    })

    it("a reader that goes leaves the task as it is", async () => {
      const { stream, task: { taskId, ttl } } = await begin("stuck")
      expect(ttl).toBe(24 * 60 * 60 * 1000)
      await stream.return()
      expect(await tasks().getTask(taskId)).toMatchObject({ taskId, status: "working" })
      await tasks().cancelTask(taskId)
    })

    it("a client asks for another time to live, and is told the one that it gets", async () => {
      const stream = tasks().callToolStream({ name: "sum", arguments: { a: 1, b: 1 } }, undefined, {
        task: { ttl: 60_000 }
      })
      const { value } = await stream.next()
      expect(value).toMatchObject({ type: "taskCreated", task: { ttl: 60_000, pollInterval: 20, status: "working" } })
      await followed(stream)
    })
  })
}
