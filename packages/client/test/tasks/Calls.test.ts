/** A tool call that becomes a task returns the result of the plain call, in both revisions with tasks. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import {
  extension,
  type Json,
  open,
  pass,
  refuseSubscriptions,
  result,
  run,
  settle,
  shapes,
  TaskServer
} from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"
import { bounded } from "../support/fixedBounds.ts"

for (const shape of shapes) {
  describe(shape, () => {
    it.effect("callTool returns the result of the completed task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", { a: 1 }))
        assert.isFalse(call.done)
        server.update({ status: "completed", result: result("done") })
        yield* pass("1 second")
        yield* pass("10 seconds")
        const { content } = yield* call.value
        assert.deepStrictEqual(content, [{ type: "text", text: "done" }])
        assert.strictEqual(server.count("tools/call"), 1)
        assert.strictEqual(server.count("tasks/cancel"), 0)
        assert.deepInclude(server.server.requests("tools/call")[0]!.params, { name: "t", arguments: { a: 1 } })
      }))

    it.effect("returns a result with isError as a result, and fails a typed call with ToolFailed", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const plain = yield* run(client.callTool("t"))
        const typed = yield* run(client.callTool("t", {}, { output: Schema.Struct({ n: Schema.Number }) }))
        server.update({ status: "completed", result: result("broken", { isError: true }) })
        yield* pass("20 seconds")
        assert.isTrue((yield* plain.value).isError)
        const error = yield* typed.error
        assert.strictEqual(error.reason._tag, "ToolFailed")
        assert.include(error.message, "broken")
      }))

    it.effect("decodes the structured content of the task's result in a typed call", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", {}, { output: Schema.Struct({ n: Schema.Number }) }))
        server.update({ status: "completed", result: result("", { structuredContent: { n: 7 } }) })
        yield* pass("20 seconds")
        assert.deepStrictEqual(yield* call.value, { n: 7 })
      }))

    it.effect("checks the result of a task against the tool's outputSchema", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, {}, (server) => {
          server.outputSchema = { type: "object", required: ["n"] }
        })
        const call = yield* run(client.callTool("t"))
        server.update({ status: "completed", result: result("", { structuredContent: { m: 7 } }) })
        yield* pass("20 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "InvalidResponse")
        assert.isDefined(fieldsOf(error).problems)
        assert.isUndefined(error.task)
      }))

    it.effect("fails the call with the JSON-RPC error of a failed task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.update({ status: "failed", error: { code: -32603, message: "API rate limit exceeded", data: 1 } })
        yield* pass("20 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "ProtocolError")
        assert.strictEqual(error.method, "tools/call")
        assert.deepInclude(fieldsOf(error).error, {
          reason: "InternalError",
          message: "API rate limit exceeded",
          data: 1
        })
        assert.strictEqual(server.count("tasks/cancel"), 0)
      }))

    it.effect("fails the call with TaskCancelled when another client cancels the task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.update({ status: "cancelled", statusMessage: "the owner wanted it so" })
        yield* pass("20 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "TaskCancelled")
        assert.include(error.message, "at the server: the owner wanted it so")
        assert.strictEqual(server.count("tasks/cancel"), 0)
        if (shape === "2025-11-25") assert.strictEqual(server.count("tasks/result"), 0)
      }))

    it.effect("fails the call with TaskNotFound when the server no longer has the task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.overrides["tasks/get"] = () =>
          ScriptedServer.failure(-32602, "Failed to retrieve task: Task has expired")
        yield* pass("20 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "TaskNotFound")
        assert.isUndefined(error.task)
        assert.strictEqual(server.count("tasks/cancel"), 0)
      }))

    it.effect("cancels the task when the call is interrupted, without notifications/cancelled", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        const call = yield* run(client.callTool("t"))
        yield* pass("3 seconds")
        yield* call.stop
        assert.deepStrictEqual(server.server.requests("tasks/cancel").map(({ params }) => params!["taskId"]), ["t1"])
        assert.notInclude(server.methods, "notifications/cancelled")
        assert.strictEqual(server.task.status, "cancelled")
        const looks = server.count("tasks/get")
        yield* pass("1 hour")
        assert.strictEqual(server.count("tasks/get"), looks)
      }))

    it.effect("leaves the task of an interrupted call running on request", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", {}, { task: { leaveRunning: true } }))
        yield* call.stop
        yield* pass("1 minute")
        assert.strictEqual(server.count("tasks/cancel"), 0)
        assert.strictEqual(server.task.status, "working")
      }))

    it.effect("delays an interrupted call by at most cancelTimeout when the server does not respond to tasks/cancel", () => {
      const lines: Array<unknown> = []
      return Effect.gen(function*() {
        const { client, server } = yield* bounded({ cancelTimeout: 2_000 }, open(shape))
        server.overrides["tasks/cancel"] = () => "no response"
        const call = yield* run(client.callTool("t"))
        const stopping = yield* Effect.forkChild(call.stop)
        yield* pass("1 second")
        assert.isFalse(call.done)
        yield* pass("1 second")
        yield* Fiber.join(stopping)
        assert.isTrue(Exit.isExit(call.fiber.pollUnsafe()))
        // The client logs that the task may still run.
        assert.include(String(lines), "A task could not be cancelled and may continue")
      }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(message))])))
    })

    it.effect("lets a task run longer than the maxTimeout of the client's limits and the timeout of the call", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { limits: { timeout: "10 seconds", maxTimeout: "1 minute" } })
        const call = yield* run(client.callTool("t", {}, { timeout: "5 seconds" }))
        yield* pass("10 minutes")
        assert.isFalse(call.done)
        server.update({ status: "completed", result: result("late") })
        yield* pass("1 minute")
        assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "late" }])
      }))

    it.effect("maxTimeout of the call bounds its whole duration: cancels the task when it expires", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", {}, { maxTimeout: "1 minute" }))
        yield* pass("59 seconds")
        assert.isFalse(call.done)
        yield* pass("1 second")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "Timeout")
        assert.include(error.message, "maxTimeout")
        assert.strictEqual(server.count("tasks/cancel"), 1)
      }))

    it.effect("a call that times out with leaveRunning fails with the handle of the task", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(
          client.callTool("t", {}, { maxTimeout: "1 minute", task: { leaveRunning: true } })
        )
        yield* pass("1 minute")
        const { reason, task } = yield* call.error
        assert.strictEqual(reason._tag, "Timeout")
        assert.strictEqual(server.count("tasks/cancel"), 0)
        server.update({ status: "completed", result: result("after all") })
        const again = yield* client.resumeTask(JSON.parse(JSON.stringify(task)))
        const value = yield* run(again.result)
        assert.deepStrictEqual((yield* value.value).content, [{ type: "text", text: "after all" }])
      }))

    it.effect("calls onTask at once, and ignores an exception from it", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const received: Array<Json> = []
        const call = yield* run(client.callTool("t", {}, {
          task: {
            onTask: ({ handle }) => {
              received.push(handle)
              throw new Error("boom")
            }
          }
        }))
        assert.deepStrictEqual(received, [{ taskId: "t1", tool: "t", server: "scripted", revision: shape }])
        server.update({ status: "completed", result: result("done") })
        yield* pass("20 seconds")
        yield* call.value
      }))

    it.effect("a client without tasks rejects a task as the response", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { tasks: false })
        if (shape === "2025-11-25") {
          server.overrides["tools/call"] = () => ScriptedServer.success({ task: server.wireTask })
        }
        const error = yield* Effect.flip(client.callTool("t"))
        assert.strictEqual(error.reason._tag, "InvalidResponse")
        assert.include(error.message, "with a task, which was not requested")
        const [request] = server.server.requests("tools/call")
        assert.isUndefined(request!.params!["task"])
        const capabilities = (request!.params!["_meta"] as Json)?.["io.modelcontextprotocol/clientCapabilities"]
        assert.deepStrictEqual(capabilities, shape === "2026-07-28" ? {} : undefined)
      }))
  })
}

describe("2026-07-28", () => {
  const shape = "2026-07-28"

  it.effect("the client declares the extension in its per-request capabilities, and sends no other task metadata", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      yield* run(client.callTool("t", {}, { task: { augment: true, ttl: "1 hour" } }))
      const { _meta, ...params } = server.server.requests("tools/call")[0]!.params as Json
      assert.deepStrictEqual(params, { name: "t", arguments: {} })
      assert.deepStrictEqual(_meta["io.modelcontextprotocol/clientCapabilities"], { extensions: { [extension]: {} } })
    }))

  it.effect("CreateTaskResult in response to an unsupported request type MUST be interpreted as an invalid response", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["prompts/get"] = () => ScriptedServer.success({ resultType: "task", ...server.wireTask })
      server.capabilities.prompts = {}
      const error = yield* Effect.flip(
        Effect.flatMap(
          Client.make(server.server.transport, { enforceCapabilities: false }),
          (client) => client.getPrompt("p")
        )
      )
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.strictEqual(server.count("tasks/get"), 0)
      yield* client.ping()
    }))

  it.effect("accepts a task after input requests of the call", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      let rounds = 0
      server.overrides["tools/call"] = () =>
        rounds++ === 0
          ? ScriptedServer.success({ resultType: "input_required", requestState: "s" })
          : ScriptedServer.success({ resultType: "task", ...server.wireTask })
      const call = yield* run(client.callTool("t"))
      assert.strictEqual(server.server.requests("tools/call")[1]!.params!["requestState"], "s")
      yield* pass("2 hours")
      server.update({ status: "completed", result: result("done") })
      yield* pass("20 seconds")
      yield* call.value
    }))

  it.effect("reads a task that starts as completed or input_required with tasks/get before it uses its result or input requests", () =>
    Effect.gen(function*() {
      for (const status of ["completed", "input_required"]) {
        const { client, server } = yield* open(shape)
        server.overrides["subscriptions/listen"] = refuseSubscriptions
        server.overrides["tools/call"] = () =>
          ScriptedServer.success({ resultType: "task", ...server.wireTask, status, result: 7, inputRequests: 7 })
        if (status === "completed") server.update({ status, result: result("done") })
        const call = yield* run(client.callTool("t"))
        assert.strictEqual(server.count("tasks/get"), 1)
        assert.strictEqual(server.count("tasks/result"), 0)
        if (status === "completed") yield* call.value
        else assert.isFalse(call.done)
      }
    }))
})

describe("2025-11-25", () => {
  const shape = "2025-11-25"
  const tasksOf = (server: TaskServer): Json =>
    server.server.requests("tools/call").map(({ params }) => params!["task"])

  it.effect("required: clients MUST invoke the tool as a task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      yield* run(client.callTool("t"))
      yield* run(client.callTool("t", {}, { task: { augment: false, ttl: "1 minute" } }))
      assert.deepStrictEqual(tasksOf(server), [{}, { ttl: 60_000 }])
    }))

  it.effect("optional: sends a normal request, or a task when the call asks for it", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, (server) => {
        server.support = "optional"
      })
      const plain = yield* client.callTool("t")
      assert.deepStrictEqual(plain.content, [{ type: "text", text: "at once" }])
      yield* run(client.callTool("t", {}, { task: { augment: true } }))
      assert.deepStrictEqual(tasksOf(server), [undefined, {}])
    }))

  it.effect("forbidden or absent: clients MUST NOT attempt to invoke the tool as a task", () =>
    Effect.gen(function*() {
      for (const support of ["forbidden", undefined]) {
        const { client, server } = yield* open(shape, {}, (server) => {
          server.support = support
        })
        yield* client.callTool("t", {}, { task: { augment: true } })
        const started = yield* client.startTask("t")
        assert.strictEqual(started._tag, "Finished")
        assert.deepStrictEqual((yield* started.result).content, [{ type: "text", text: "at once" }])
        assert.deepStrictEqual(tasksOf(server), [undefined, undefined])
      }
    }))

  it.effect("no tasks.requests.tools.call: clients MUST NOT, regardless of execution.taskSupport", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { enforceCapabilities: false }, (server) => {
        server.capabilities = { tools: {}, tasks: { list: {}, cancel: {} } }
      })
      const error = yield* Effect.flip(client.callTool("t", {}, { task: { augment: true } }))
      assert.strictEqual(error.reason._tag, "ProtocolError")
      assert.deepStrictEqual(tasksOf(server), [undefined])
    }))

  it.effect("retries the call of an unlisted tool that requires a task, as a task", () =>
    Effect.gen(function*() {
      const server = new TaskServer(shape)
      const client = yield* Client.make(server.server.transport)
      const call = yield* run(client.callTool("t"))
      assert.deepStrictEqual(server.methods.slice(0, 3), ["tools/call", "tools/list", "tools/call"])
      assert.deepStrictEqual(tasksOf(server), [undefined, {}])
      server.update({ status: "completed", result: result("done") })
      yield* pass("20 seconds")
      yield* call.value
    }))

  it.effect("retries as a task too when the server reports -32601 as a tool failure, as SDK v1 does", () =>
    Effect.gen(function*() {
      const server = new TaskServer(shape)
      server.overrides["tools/call"] = () => {
        delete server.overrides["tools/call"]
        return ScriptedServer.success(result("MCP error -32601: Tool t requires task augmentation", { isError: true }))
      }
      const client = yield* Client.make(server.server.transport)
      const call = yield* run(client.callTool("t"))
      assert.deepStrictEqual(server.methods.slice(0, 3), ["tools/call", "tools/list", "tools/call"])
      assert.deepStrictEqual(tasksOf(server), [undefined, {}])
      server.update({ status: "completed", result: result("done") })
      yield* pass("20 seconds")
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "done" }])
    }))

  it.effect("lists the tools once for an unknown tool", () =>
    Effect.gen(function*() {
      const server = new TaskServer(shape)
      server.overrides["tools/call"] = () => ScriptedServer.failure(-32601, "Unknown tool")
      const client = yield* Client.make(server.server.transport)
      const call = yield* run(client.callTool("u"))
      assert.strictEqual((yield* call.error).reason._tag, "ProtocolError")
      yield* Effect.flip(client.callTool("u"))
      assert.deepStrictEqual(server.methods, ["tools/call", "tools/list", "tools/call"])
    }))

  it.effect("accepts a plain result for a call that requested a task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["tools/call"] = () => ScriptedServer.success(result("at once"))
      const { content } = yield* client.callTool("t", {}, { onProgress: () => {} })
      assert.deepStrictEqual(content, [{ type: "text", text: "at once" }])
    }))

  it.effect("rejects a task that was not requested", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, (server) => {
        server.support = "optional"
      })
      server.overrides["tools/call"] = () => ScriptedServer.success({ task: server.wireTask })
      assert.strictEqual((yield* Effect.flip(client.callTool("t"))).reason._tag, "InvalidResponse")
    }))

  it.effect("does not send notifications/cancelled for a call that is interrupted before its task is known: tasks/cancel MUST be used instead", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["tools/call"] = () => "no response"
      const call = yield* run(client.callTool("t"))
      const stopping = yield* Effect.forkChild(call.stop)
      yield* pass("1 second")
      assert.isFalse(call.done)
      const [request] = server.server.requests("tools/call")
      server.server.send({ _tag: "Success", id: request!.id, result: { task: server.wireTask } })
      yield* settle
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(server.methods, ["tools/list", "tools/call", "tasks/cancel"])
    }))

  it.effect("fails a call that waits for its task with Closed when the client is closed", () =>
    Effect.gen(function*() {
      const server = new TaskServer(shape)
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Client.make(server.server.transport), scope)
      yield* client.listToolsPage()
      server.overrides["tools/call"] = () => "no response"
      const call = yield* run(client.callTool("t"))
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.strictEqual((yield* call.error).reason._tag, "Closed")
    }))

  it.effect("sends notifications/cancelled when the server does not name the task of an interrupted call", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["tools/call"] = () => "no response"
      const call = yield* run(client.callTool("t"))
      const stopping = yield* Effect.forkChild(call.stop)
      yield* pass("5 seconds")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(server.methods, ["tools/list", "tools/call", "notifications/cancelled"])
    }))

  it.effect("the progressToken remains valid throughout the task lifetime", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      const reports: Array<number> = []
      const call = yield* run(client.callTool("t", {}, { onProgress: ({ progress }) => void reports.push(progress) }))
      const { progressToken } = server.server.requests("tools/call")[0]!.params!["_meta"] as Json
      for (const progress of [1, 3, 2, 4]) server.server.notify("notifications/progress", { progressToken, progress })
      server.server.notify("notifications/progress", { progressToken: 999, progress: 5 })
      server.server.notify("notifications/progress", { progressToken, progress: "6" })
      yield* settle
      assert.deepStrictEqual(reports, [1, 3, 4])
      server.update({ status: "completed", result: result("done") })
      yield* pass("20 seconds")
      yield* call.value
      server.server.notify("notifications/progress", { progressToken, progress: 9 })
      yield* settle
      assert.deepStrictEqual(reports, [1, 3, 4])
    }))

  it.effect("listTasks returns a page of the tasks, with the member names of 2026-07-28", () =>
    Effect.gen(function*() {
      const { client } = yield* open(shape)
      const { tasks } = yield* client.listTasksPage()
      assert.deepInclude(tasks[0], { taskId: "t1", ttlMs: null, pollIntervalMs: 1000 })
      const { client: modern } = yield* open("2026-07-28")
      assert.strictEqual((yield* Effect.flip(modern.listTasksPage())).reason._tag, "Unsupported")
    }))
})
