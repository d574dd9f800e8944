/** A call that becomes a task gives what it would have given, in both shapes. */
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

for (const shape of shapes) {
  describe(shape, () => {
    it.effect("callTool gives the result that the task ends with", () =>
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

    it.effect("a result with isError is a result, and a typed call fails with Tool", () =>
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

    it.effect("a typed call reads the structured content of the task's result", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", {}, { output: Schema.Struct({ n: Schema.Number }) }))
        server.update({ status: "completed", result: result("", { structuredContent: { n: 7 } }) })
        yield* pass("20 seconds")
        assert.deepStrictEqual(yield* call.value, { n: 7 })
      }))

    it.effect("the result of a task is checked by the tool's outputSchema as any other", () =>
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

    it.effect("a task that fails, fails the call with the JSON-RPC error that the call would have had", () =>
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

    it.effect("a task that somebody else cancels fails the call with Cancelled", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t"))
        server.update({ status: "cancelled", statusMessage: "the owner wanted it so" })
        yield* pass("20 seconds")
        const error = yield* call.error
        assert.strictEqual(error.reason._tag, "TaskCancelled")
        assert.include(error.message, "not by this client: the owner wanted it so")
        assert.strictEqual(server.count("tasks/cancel"), 0)
        if (shape === "2025-11-25") assert.strictEqual(server.count("tasks/result"), 0)
      }))

    it.effect("a task that the server does not know any more fails the call with Gone", () =>
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

    it.effect("interrupting the call cancels the task, and not with notifications/cancelled", () =>
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

    it.effect("interrupting it leaves the task running where that is wanted", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const call = yield* run(client.callTool("t", {}, { task: { leaveRunning: true } }))
        yield* call.stop
        yield* pass("1 minute")
        assert.strictEqual(server.count("tasks/cancel"), 0)
        assert.strictEqual(server.task.status, "working")
      }))

    it.effect("a server that does not answer tasks/cancel holds an interrupted call up for cancelTimeout", () => {
      const lines: Array<unknown> = []
      return Effect.gen(function*() {
        const { client, server } = yield* open(shape, { tasks: { cancelTimeout: "2 seconds" } })
        server.overrides["tasks/cancel"] = () => "no response"
        const call = yield* run(client.callTool("t"))
        const stopping = yield* Effect.forkChild(call.stop)
        yield* pass("1 second")
        assert.isFalse(call.done)
        yield* pass("1 second")
        yield* Fiber.join(stopping)
        assert.isTrue(Exit.isExit(call.fiber.pollUnsafe()))
        // That it may go on is not kept quiet.
        assert.include(String(lines), "A task that nobody waits for any more may go on")
      }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(message))])))
    })

    it.effect("a task outlives the maxTimeout of the client's limits, and the timeout of the call", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape, { limits: { timeout: "10 seconds", maxTimeout: "1 minute" } })
        const call = yield* run(client.callTool("t", {}, { timeout: "5 seconds" }))
        yield* pass("3 hours")
        assert.isFalse(call.done)
        server.update({ status: "completed", result: result("late") })
        yield* pass("1 minute")
        assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "late" }])
      }))

    it.effect("maxTimeout of the call itself is that of all of it: the task is cancelled then", () =>
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

    it.effect("a call that times out with leaveRunning says how the task is found again", () =>
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

    it.effect("onTask hears of the task at once; what it throws is no matter", () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(shape)
        const heard: Array<Json> = []
        const call = yield* run(client.callTool("t", {}, {
          task: {
            onTask: ({ handle }) => {
              heard.push(handle)
              throw new Error("boom")
            }
          }
        }))
        assert.deepStrictEqual(heard, [{ taskId: "t1", tool: "t", server: "scripted", revision: shape }])
        server.update({ status: "completed", result: result("done") })
        yield* pass("20 seconds")
        yield* call.value
      }))

    it.effect("a client without tasks takes no task for an answer", () =>
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

  it.effect("the client declares the extension in its per-request capabilities, and says nothing else of tasks", () =>
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

  it.effect("a task may follow on questions that were asked before it", () =>
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

  it.effect("a task that is over, or asks something, when it is told of, is looked at first: what belongs to it is not in the answer", () =>
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

  it.effect("optional: as a normal request, or as a task where the call says so", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, (server) => {
        server.support = "optional"
      })
      const plain = yield* client.callTool("t")
      assert.deepStrictEqual(plain.content, [{ type: "text", text: "at once" }])
      yield* run(client.callTool("t", {}, { task: { augment: true } }))
      assert.deepStrictEqual(tasksOf(server), [undefined, {}])
    }))

  it.effect("forbidden, or not said: clients MUST NOT attempt to invoke the tool as a task", () =>
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

  it.effect("a tool that was not listed and requires a task is called once more as one", () =>
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

  it.effect("so is one whose server makes a failure of the tool out of -32601, as SDK v1 does", () =>
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

  it.effect("a tool that is not there is looked for once", () =>
    Effect.gen(function*() {
      const server = new TaskServer(shape)
      server.overrides["tools/call"] = () => ScriptedServer.failure(-32601, "Unknown tool")
      const client = yield* Client.make(server.server.transport)
      const call = yield* run(client.callTool("u"))
      assert.strictEqual((yield* call.error).reason._tag, "ProtocolError")
      yield* Effect.flip(client.callTool("u"))
      assert.deepStrictEqual(server.methods, ["tools/call", "tools/list", "tools/call"])
    }))

  it.effect("a server may answer with a result though a task was asked for", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape)
      server.overrides["tools/call"] = () => ScriptedServer.success(result("at once"))
      const { content } = yield* client.callTool("t", {}, { onProgress: () => {} })
      assert.deepStrictEqual(content, [{ type: "text", text: "at once" }])
    }))

  it.effect("a task that was not asked for is no answer", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, (server) => {
        server.support = "optional"
      })
      server.overrides["tools/call"] = () => ScriptedServer.success({ task: server.wireTask })
      assert.strictEqual((yield* Effect.flip(client.callTool("t"))).reason._tag, "InvalidResponse")
    }))

  it.effect("a call that is interrupted before there is a task is not cancelled as a request: tasks/cancel MUST be used instead", () =>
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

  it.effect("a call that waits for its task when the client is closed fails with Closed", () =>
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

  it.effect("a server that does not say which task it is, is told that nobody waits", () =>
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

  it.effect("listTasks gives a page of the tasks, with the names of 2026-07-28", () =>
    Effect.gen(function*() {
      const { client } = yield* open(shape)
      const { tasks } = yield* client.listTasksPage()
      assert.deepInclude(tasks[0], { taskId: "t1", ttlMs: null, pollIntervalMs: 1000 })
      const { client: modern } = yield* open("2026-07-28")
      assert.strictEqual((yield* Effect.flip(modern.listTasksPage())).reason._tag, "Unsupported")
    }))
})
