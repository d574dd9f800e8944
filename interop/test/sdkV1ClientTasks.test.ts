/**
 * SDK v1's client with its experimental tasks and Skein's server, in 2025-11-25: over HTTP with tasks in memory, and
 * over stdio with tasks in a file.
 *
 * Its `requestStream` deviates from the specification: for a `failed` task it returns an error of its own instead of
 * `tasks/result`; and a stream that is no longer read leaves the task running.
 */
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  McpError,
  TaskStatusNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type AnyServer, userAnswers } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import { connect, type SdkV1TasksClient } from "../fixtures/sdkV1TasksClient.ts"
import * as Tasks from "../fixtures/skeinTasks.ts"
import { tasksServers } from "../fixtures/skeinTasksServers.ts"

const related = "io.modelcontextprotocol/related-task"

const servers = tasksServers()

/** Reads a stream to its end: the id of the task, its statuses without repetitions, and the result or error. */
const readStream = async (
  stream: ReturnType<SdkV1TasksClient["client"]["experimental"]["tasks"]["callToolStream"]>
) => {
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

const transports: ReadonlyArray<readonly [string, () => AnyServer]> = [
  ["HTTP, in memory", servers.http],
  ["stdio, in a file", servers.stdio]
]

for (const [transport, server] of transports) {
  describe(`2025-11-25 · sdk-v1 with tasks · ${transport}`, () => {
    let sdk: SdkV1TasksClient
    const tasks = () => sdk.client.experimental.tasks
    const call = (name: string, args = {}, options = {}) =>
      readStream(tasks().callToolStream({ name, arguments: args }, undefined, options))
    const callText = async (name: string) => textOf((await sdk.client.callTool({ name })) as never)
    const begin = async (name: string) => {
      const stream = tasks().callToolStream({ name })
      const { value } = await stream.next()
      if (value?.type !== "taskCreated") throw new Error(JSON.stringify(value))
      return { task: value.task, stream }
    }
    beforeAll(async () => {
      sdk = await connect(server())
      await sdk.client.listTools()
    })
    afterAll(async () => {
      expect(sdk.clientErrors).toEqual([])
      await sdk.close()
    })

    it("receives the task capabilities of the server and of each tool", async () => {
      expect(sdk.client.getServerCapabilities()?.tasks).toEqual({
        list: {},
        cancel: {},
        requests: { tools: { call: {} } }
      })
      const { tools } = await sdk.client.listTools()
      const support = Object.fromEntries(tools.map(({ execution, name }) => [name, execution?.taskSupport]))
      expect(support).toMatchObject({ sum: "optional", twice: "optional", must: "required", release: undefined })
    })

    it("returns the result of a task, with the related task", async () => {
      const { end, id, statuses } = await call("sum", { a: 1, b: 2 })
      expect(end).toMatchObject({ structuredContent: { sum: 3 }, _meta: { [related]: { taskId: id } } })
      expect(statuses.at(-1)).toBe("completed")
    })

    it("rejects a call without a task if the tool requires one, and a task if the tool does not support it", async () => {
      expect((await call("must")).end).toMatchObject({ content: [{ type: "text", text: "As a task" }] })
      const request = { method: "tools/call" as const, params: { name: "must", arguments: {} } }
      await expect(sdk.client.request(request, CallToolResultSchema)).rejects.toMatchObject({ code: -32601 })
      expect((await call("release", {}, { task: {} })).end).toMatchObject({ code: -32601 })
    })

    it("returns tool errors and protocol errors from tasks/result", async () => {
      const failed = await call("fail")
      expect(failed.statuses.at(-1)).toBe("failed")
      expect(failed.end).toBeInstanceOf(McpError)
      expect(await tasks().getTask(failed.id)).toMatchObject({ status: "failed", statusMessage: Tasks.failure })
      expect(await tasks().getTaskResult(failed.id, CallToolResultSchema)).toMatchObject({
        isError: true,
        content: [{ type: "text", text: Tasks.failure }],
        _meta: { [related]: { taskId: failed.id } }
      })
      const refused = await call("refuse")
      expect(refused.statuses.at(-1)).toBe("failed")
      const { code, data } = Tasks.refusal
      await expect(tasks().getTaskResult(refused.id, CallToolResultSchema)).rejects.toMatchObject({ code, data })
    })

    it("receives several requests of a task at once on tasks/result, with the related task", async () => {
      sdk.asked.length = 0
      const { end, id, statuses } = await call("interview")
      expect(textOf(end as never)).toBe("Ada\nAda said\nfile:///home/Ada")
      expect(statuses).toContain("input_required")
      expect(sdk.asked.toSorted((a, b) => a.method < b.method ? -1 : 1)).toEqual(
        ["elicitation/create", "roots/list", "sampling/createMessage"].map((method) => ({ method, task: id }))
      )
    })

    it("receives one request after the other on tasks/result", async () => {
      sdk.asked.length = 0
      const { end } = await call("twice")
      expect(textOf(end as never)).toBe("Ada Ada")
      expect(sdk.asked).toHaveLength(2)
    })

    it("fails the tool if the client responds with an error", async () => {
      const refuse = () => {
        throw new McpError(1, "no user is present")
      }
      sdk.client.setRequestHandler(ElicitRequestSchema, refuse)
      const { end, id } = await call("twice")
      expect(end).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("no user is present") }] })
      expect((await tasks().getTask(id)).status).toBe("failed")
      sdk.client.setRequestHandler(ElicitRequestSchema, ({ params }) => userAnswers("Ada").elicit(params))
    })

    it("receives a request before the task as part of the call", async () => {
      const { end, id, statuses } = await call("prepared")
      expect(textOf(end as never)).toBe("Ada said so before")
      expect(statuses).not.toContain("input_required")
      expect(end).toMatchObject({ _meta: { [related]: { taskId: id } } })
    })

    it("receives progress during the whole task", async () => {
      const progress: Array<number> = []
      const options = {
        onprogress: (note: { readonly progress: number }) => void progress.push(note.progress)
      }
      const baking = call("bake", {}, options)
      for (const steps of [[1], [1, 2]]) {
        await eventually(() => expect(progress).toEqual(steps))
        await eventually(async () => expect(await callText("release")).toBe("1"))
      }
      expect(textOf((await baking).end as never)).toBe("A cake")
    })

    it("cancels a task once, which runs its compensation and ends its stream", async () => {
      const before = Number(await callText("undone"))
      const { stream, task: { taskId } } = await begin("stuck")
      await eventually(async () => expect((await tasks().getTask(taskId)).statusMessage).toBe("begun"))
      expect(await tasks().cancelTask(taskId)).toMatchObject({ taskId, status: "cancelled" })
      await expect(tasks().cancelTask(taskId)).rejects.toMatchObject({ code: -32602 })
      expect((await tasks().getTask(taskId)).status).toBe("cancelled")
      await expect(tasks().getTaskResult(taskId, CallToolResultSchema)).rejects.toBeInstanceOf(McpError)
      expect((await readStream(stream)).end).toMatchObject({ message: expect.stringContaining("was cancelled") })
      await eventually(async () => expect(Number(await callText("undone"))).toBe(before + 1))
    })

    it("lists tasks in pages, newest first; rejects unknown cursors and tasks", async () => {
      const ids: Array<string> = []
      for (let n = 0; n < 6; n++) ids.push((await call("sum", { a: n, b: n })).id)
      const first = await tasks().listTasks()
      const second = await tasks().listTasks(first.nextCursor)
      const listed = [...first.tasks, ...second.tasks].map(({ taskId }) => taskId)
      expect(first.tasks).toHaveLength(5)
      expect(listed.slice(0, 6)).toEqual(ids.toReversed())
      await expect(tasks().listTasks("unknown")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().getTask("unknown")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().getTaskResult("unknown")).rejects.toMatchObject({ code: -32602 })
      await expect(tasks().cancelTask("unknown")).rejects.toMatchObject({ code: -32602 })
    })

    it("receives a notification of each status", async () => {
      const received: Array<readonly [string, string]> = []
      sdk.client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
        received.push([params.taskId, params.status])
      })
      const { id } = await call("interview")
      await eventually(() => expect(received.findLast(([task]) => task === id)).toEqual([id, "completed"]))
      expect(received).toContainEqual([id, "input_required"])
    })

    it("keeps the task running when its stream is no longer read", async () => {
      const { stream, task: { taskId, ttl } } = await begin("stuck")
      expect(ttl).toBe(24 * 60 * 60 * 1000)
      await stream.return()
      expect(await tasks().getTask(taskId)).toMatchObject({ taskId, status: "working" })
      await tasks().cancelTask(taskId)
    })

    it("requests a ttl, and receives the granted one", async () => {
      const stream = tasks().callToolStream({ name: "sum", arguments: { a: 1, b: 1 } }, undefined, {
        task: { ttl: 60_000 }
      })
      const { value } = await stream.next()
      expect(value).toMatchObject({ type: "taskCreated", task: { ttl: 60_000, pollInterval: 20, status: "working" } })
      await readStream(stream)
    })
  })
}
