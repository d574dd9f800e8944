/**
 * Calls after the server was restarted: the client must not decide by its knowledge of the earlier process whether a
 * call becomes a task (2025-11-25, tool-level negotiation).
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as McpServer from "@skein/server/McpServer"
import * as NodeServer from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import type * as Reconnect from "../../src/Reconnect.ts"
import { type Json, open, pass, result, run, settle, type Shape, TaskServer } from "./kit.ts"

const shape = "2025-11-25"
const reconnect: Reconnect.Policy = { jitter: "none", initialDelay: "1 second" }
const optional = (server: TaskServer): void => void (server.support = "optional")

const tasksOf = (server: TaskServer): ReadonlyArray<Json> =>
  server.server.requests("tools/call").map(({ params }) => params!["task"])

/** Loses the connection, and lets the client notice. */
const lose = ({ server }: TaskServer) => Effect.andThen(Effect.sync(() => server.lose()), settle)

/** A transport to one server after the other. */
const successive = (first: TaskServer) => {
  let current = first
  const transport: Transport = { connect: Effect.suspend(() => current.server.transport.connect) }
  return {
    transport,
    replaceWith: (next: TaskServer) => {
      const before = current
      current = next
      before.server.lose()
    }
  }
}

describe("startTask after a reconnect", () => {
  it.effect("a call that waited for the connection is sent as a task, after the tools were listed again", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      yield* lose(server)
      const starting = yield* run(client.startTask("t"))
      yield* pass("1 second")
      assert.strictEqual((yield* starting.value)._tag, "RemoteTask")
      assert.deepStrictEqual(tasksOf(server), [{}])
      assert.deepStrictEqual(server.methods, ["tools/list", "tools/list", "tools/call"])
    }))

  it.effect("a call whose request was not delivered is sent as a task on the next connection", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      server.server.onRequest = ({ method }) => {
        if (method !== "tools/call") return undefined
        server.server.onRequest = () => undefined
        return "lose"
      }
      const starting = yield* run(client.startTask("t", {}, { retry: true }))
      yield* pass("1 second")
      assert.strictEqual((yield* starting.value)._tag, "RemoteTask")
      assert.deepStrictEqual(tasksOf(server).at(-1), {})
    }))

  it.effect("fails with the failure of tools/list, and sends nothing, if the tools cannot be listed", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      yield* lose(server)
      server.overrides["tools/list"] = () => ScriptedServer.failure(-32603, "The catalog is broken")
      const starting = yield* run(client.startTask("t"))
      yield* pass("1 second")
      const error = yield* starting.error
      assert.strictEqual(error.reason._tag, "ProtocolError")
      assert.include(error.message, "The catalog is broken")
      assert.strictEqual(error.undelivered, true)
      assert.strictEqual(server.count("tools/call"), 0)
    }))

  it.effect("fails with Timeout, and sends nothing, if the tools are not listed in time", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      yield* lose(server)
      server.overrides["tools/list"] = () => "no response"
      const starting = yield* run(client.startTask("t", {}, { timeout: "30 seconds" }))
      yield* pass("1 second")
      yield* pass("30 seconds")
      const error = yield* starting.error
      assert.deepStrictEqual([error.reason._tag, error.undelivered], ["Timeout", true])
      assert.strictEqual(server.count("tools/call"), 0)
    }))

  it.effect("fails with Unsupported, and sends nothing, for a tool that the server does not list", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, {}, optional)
      const error = yield* Effect.flip(client.startTask("u"))
      assert.deepStrictEqual([error.reason._tag, error.undelivered], ["Unsupported", true])
      assert.strictEqual(
        error.message,
        "\"u\" was not called: the server does not list it, so its taskSupport is unknown"
      )
      assert.strictEqual(server.count("tools/call"), 0)
    }))

  it.effect("lists the tools again if the server reports a change while they are listed, at most three times", () =>
    Effect.gen(function*() {
      for (const [changes, listings, outcome] of [[0, 1, "RemoteTask"], [2, 3, "RemoteTask"], [9, 3, "Unsupported"]]) {
        const { client, server } = yield* open(shape, { reconnect }, optional)
        yield* lose(server)
        let left = changes as number
        const tool = { name: "t", inputSchema: { type: "object" }, execution: { taskSupport: "optional" } }
        server.overrides["tools/list"] = ({ params }, scripted) => {
          if (params?.["cursor"] === undefined) return ScriptedServer.success({ tools: [tool], nextCursor: "more" })
          if (left-- > 0) scripted.notify("notifications/tools/list_changed")
          return ScriptedServer.success({ tools: [] })
        }
        const starting = yield* run(client.startTask("t"))
        yield* pass("1 second")
        const ended = outcome === "RemoteTask"
          ? (yield* starting.value)._tag
          : (yield* starting.error).reason._tag
        assert.deepStrictEqual([ended, server.count("tools/list")], [outcome, 1 + 2 * (listings as number)])
      }
    }))

  it.effect("returns the result if the next server declares no tasks, or the tool forbids them", () =>
    Effect.gen(function*() {
      for (const [support, tasks] of [["optional", undefined], ["forbidden", { requests: { tools: { call: {} } } }]]) {
        const { client, server } = yield* open(shape, { reconnect }, optional)
        yield* lose(server)
        server.support = support as string
        server.capabilities = { tools: {}, ...(tasks === undefined ? undefined : { tasks }) }
        const starting = yield* run(client.startTask("t"))
        yield* pass("1 second")
        assert.strictEqual((yield* starting.value)._tag, "Finished")
        assert.deepStrictEqual(tasksOf(server), [undefined])
      }
    }))

  const revisions: ReadonlyArray<Shape> = ["2026-07-28", "2025-11-25"]
  for (const before of revisions) {
    const after = before === "2026-07-28" ? "2025-11-25" : "2026-07-28"
    it.effect(`starts a task at a server of ${after} that has replaced one of ${before}`, () =>
      Effect.gen(function*() {
        const [first, second] = [new TaskServer(before), new TaskServer(after)]
        optional(first)
        optional(second)
        const { replaceWith, transport } = successive(first)
        const client = yield* Client.make(transport, { reconnect })
        yield* client.listToolsPage()
        replaceWith(second)
        yield* settle
        const starting = yield* run(client.startTask("t"))
        yield* pass("5 seconds")
        assert.strictEqual((yield* starting.value)._tag, "RemoteTask")
        assert.deepStrictEqual(tasksOf(second), [after === shape ? {} : undefined])
      }))

    it.effect(`resumes and cancels a task at a server of ${after} that has replaced one of ${before}`, () =>
      Effect.gen(function*() {
        const [first, second] = [new TaskServer(before), new TaskServer(after)]
        const { replaceWith, transport } = successive(first)
        const client = yield* Client.make(transport, { reconnect })
        replaceWith(second)
        yield* settle
        const resuming = yield* run(client.resumeTask({ taskId: "t1" }))
        yield* pass("5 seconds")
        const task = yield* resuming.value
        const third = new TaskServer(before)
        replaceWith(third)
        yield* settle
        const cancelling = yield* run(task.cancel)
        yield* pass("5 seconds")
        yield* cancelling.value
        assert.strictEqual(third.task.status, "cancelled")
      }))
  }
})

describe("a task that has ended", () => {
  it.effect("has its result at a server of 2026-07-28 that has replaced one of 2025-11-25 before it was read", () =>
    Effect.gen(function*() {
      const [first, second] = [new TaskServer("2025-11-25"), new TaskServer("2026-07-28")]
      const { replaceWith, transport } = successive(first)
      const client = yield* Client.make(transport, { reconnect })
      yield* client.listToolsPage()
      const call = yield* run(client.callTool("t"))
      for (const server of [first, second]) server.update({ status: "completed", result: result("done") })
      first.overrides["tasks/result"] = () => {
        replaceWith(second)
      }
      yield* pass("20 seconds")
      yield* pass("5 seconds")
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "done" }])
      assert.strictEqual(second.count("tasks/result"), 0)
    }))
})

describe("callTool after a reconnect", () => {
  it.effect("with augment, sends an optional tool as a task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      yield* lose(server)
      const call = client.callTool("t", {}, { task: { augment: true } })
      yield* run(Effect.all([call, call], { concurrency: 2 }))
      yield* pass("1 second")
      assert.deepStrictEqual(tasksOf(server), [{}, {}])
    }))

  it.effect("with augment, sends a plain call if the tools cannot be listed", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect }, optional)
      yield* lose(server)
      server.overrides["tools/list"] = () => ScriptedServer.failure(-32603, "The catalog is broken")
      const call = yield* run(client.callTool("t", {}, { task: { augment: true } }))
      yield* pass("1 second")
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "at once" }])
    }))

  it.effect("calls a tool that requires a task as a task, although its definition was discarded", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect })
      yield* lose(server)
      const call = yield* run(client.callTool("t"))
      yield* pass("1 second")
      assert.deepStrictEqual(tasksOf(server), [undefined, {}])
      server.update({ status: "completed", result: result("done") })
      yield* pass("20 seconds")
      yield* call.value
    }))

  it.effect("calls a tool that requires a task as a task at a server that replaced one without tasks", () =>
    Effect.gen(function*() {
      const [first, second] = [new TaskServer(shape), new TaskServer(shape)]
      first.capabilities = { tools: {} }
      const { replaceWith, transport } = successive(first)
      const client = yield* Client.make(transport, { reconnect, revisions: [shape] })
      replaceWith(second)
      yield* settle
      yield* run(client.callTool("t"))
      yield* pass("1 second")
      assert.deepStrictEqual(tasksOf(second), [undefined, {}])
    }))

  it.effect("several calls at the same time of a tool that requires a task become tasks", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(shape, { reconnect })
      yield* lose(server)
      yield* run(Effect.all([client.callTool("t"), client.callTool("t"), client.callTool("t")], { concurrency: 3 }))
      yield* pass("1 second")
      assert.deepStrictEqual(tasksOf(server).filter((task) => task !== undefined), [{}, {}, {}])
      assert.strictEqual(server.count("tools/list"), 2)
    }))
})

describe("a call between two connections", () => {
  it.effect("is checked for the next server, and not for the last one", () =>
    Effect.gen(function*() {
      const [first, second] = [new TaskServer(shape), new TaskServer(shape)]
      first.capabilities = {}
      const { replaceWith, transport } = successive(first)
      const client = yield* Client.make(transport, { reconnect, revisions: [shape] })
      assert.strictEqual((yield* Effect.flip(client.listToolsPage())).reason._tag, "Unsupported")
      replaceWith(second)
      yield* settle
      const listing = yield* run(client.listToolsPage())
      const prompts = yield* run(client.listPromptsPage())
      yield* pass("1 second")
      assert.lengthOf((yield* listing.value).tools, 1)
      const error = yield* prompts.error
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.strictEqual(second.count("prompts/list"), 0)
    }))
})

describe("between two connections, to a server of the other lifecycle", () => {
  const revisions: ReadonlyArray<Shape> = ["2026-07-28", "2025-11-25"]
  for (const before of revisions) {
    const after = before === "2026-07-28" ? "2025-11-25" : "2026-07-28"
    it.effect(`from ${before} to ${after}: ping and setLoggingLevel take the form of the next server`, () =>
      Effect.gen(function*() {
        const [first, second] = [new TaskServer(before), new TaskServer(after)]
        for (const server of [first, second]) {
          server.capabilities = { tools: {}, logging: {} }
          server.overrides["ping"] = () => ScriptedServer.success({})
          server.overrides["logging/setLevel"] = () => ScriptedServer.success({})
        }
        const { replaceWith, transport } = successive(first)
        const client = yield* Client.make(transport, { reconnect })
        replaceWith(second)
        yield* settle
        const pinging = yield* run(client.ping())
        const setting = yield* run(client.setLoggingLevel("error"))
        yield* pass("5 seconds")
        yield* pinging.value
        yield* setting.value
        yield* client.listToolsPage()
        const isModern = after === "2026-07-28"
        assert.deepStrictEqual([second.count("ping") > 0, second.count("logging/setLevel") > 0], [!isModern, !isModern])
        const { _meta } = second.server.requests("tools/list")[0]!.params as Json
        assert.strictEqual(_meta?.["io.modelcontextprotocol/logLevel"], isModern ? "error" : undefined)
      }))
  }
})

describe("2025-11-25 · Streamable HTTP", () => {
  it.live("startTask starts a task at a server that was restarted, which does not know the session", () =>
    Effect.scoped(Effect.gen(function*() {
      const gate = Latch.makeUnsafe(false)
      const bake = Task.layer(Task.make("bake"), () => Effect.as(gate.await, "A cake"))
      const server = McpServer.layer({ name: "ours", version: "1" }, bake, Tasks.layer()).pipe(
        Layer.provide(MemoryTasks.layer({ pollInterval: "50 millis" }))
      )
      const serve = (port: number) =>
        Effect.gen(function*() {
          const scope = yield* Scope.fork(yield* Effect.scope)
          const listening = NodeServer.layer({ port, shutdownTimeout: 0 }).pipe(Layer.provide(server))
          const context = yield* Scope.provide(Effect.orDie(Layer.build(listening)), scope)
          return { at: Context.get(context, NodeServer.Server), stop: Scope.close(scope, Exit.void) }
        })
      const first = yield* serve(0)
      const revisions: ReadonlyArray<Revision.Revision> = [shape]
      const policy = { initialDelay: "10 millis", jitter: "none" } as const
      const client = yield* Client.make(Http.transport({ url: first.at.url }), { revisions, reconnect: policy })
      yield* client.listTools()
      yield* first.stop
      yield* serve(first.at.port)
      // With `retry`, since the request may be sent on a socket that the first server has closed.
      const started = yield* Effect.timeout(client.startTask("bake", {}, { retry: true }), "10 seconds")
      assert.strictEqual(started._tag, "RemoteTask")
      yield* gate.open
      assert.deepStrictEqual((yield* started.result).content, [{ type: "text", text: "A cake" }])
    })))
})
