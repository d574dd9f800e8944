import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import type { Catalog, UnscopedHandler } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as CurrentTask from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as fake from "../fakeEngine.ts"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

class Oven extends Context.Service<Oven, { readonly heat: number }>()("test/Oven") {}

const bake = Task.make("bake", {
  title: "Bake",
  description: "Bakes",
  input: { cakes: Schema.Int },
  output: { text: Schema.String },
  ttl: "1 hour",
  annotations: { destructiveHint: true },
  _meta: { "example.com/a": 1 }
})

const baking = Task.layer(bake, ({ cakes }) =>
  Effect.gen(function*() {
    const { heat } = yield* Oven
    const { id } = yield* CurrentTask.CurrentTask
    const key = yield* Step.run("mix", { success: Schema.String }, Effect.succeed)
    yield* Task.setStatusMessage("Mixed")
    const { params } = yield* McpRequest
    return { text: `${cakes} at ${heat}: ${key.startsWith(id)} ${id === (yield* Task.id)} ${JSON.stringify(params)}` }
  }))

describe("a task is defined like a tool", () => {
  it("the layer requires the services of the handler, except for the task and the request", () => {
    expectTypeOf(baking).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog | Oven>>()
    expectTypeOf(Tasks.layer()).toEqualTypeOf<Layer.Layer<never, never, Catalog | TaskEngine>>()
    const scoped = Task.layer(
      Task.make("t"),
      () => Effect.as(Effect.acquireRelease(Effect.void, () => Effect.void), "t")
    )
    // A handler that acquires resources needs a scope of its own.
    expectTypeOf(scoped).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog | UnscopedHandler>>()
    // Steps are for tasks only.
    const stepping = Tool.layer(Tool.make("t"), () => Task.setStatusMessage("x"))
    expectTypeOf(stepping).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog | CurrentTask.CurrentTask>>()
    // @ts-expect-error -- the definition declares the type of the result
    void Task.layer(bake, () => Effect.succeed({ text: 1 }))
    // @ts-expect-error -- `taskSupport` replaces `execution`
    void Task.make("t", { execution: { taskSupport: "optional" } })
  })

  it.effect("its handler receives its arguments, its services, its task and the request of the task", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([Layer.provide(baking, Layer.succeed(Oven, { heat: 200 }))])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "bake", { cakes: 3 })
      const { result } = yield* kit.get(client, taskId)
      const params = JSON.stringify({ name: "bake", arguments: { cakes: 3 } })
      expect(result.structuredContent).toEqual({ text: `3 at 200: true true ${params}` })
    }))

  it.effect("2025-11-25 · lists all of its definition, and nothing of its policy", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([Layer.provide(baking, Layer.succeed(Oven, { heat: 200 }))])
      const { tools: [tool] } = yield* (yield* connect({ revision: "2025-11-25" })).result("tools/list")
      expect(tool).toMatchObject({
        name: "bake",
        title: "Bake",
        description: "Bakes",
        annotations: { destructiveHint: true },
        execution: { taskSupport: "optional" },
        _meta: { "example.com/a": 1 }
      })
      for (const term of ["ttl", "taskSupport", "extensions", "pool"]) expect(tool).not.toHaveProperty(term)
    }))

  it.effect("a tool of `Tool.make` is a task with `Task.layer`: optional, unless it declares otherwise", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([Task.layer(Tool.make("t"), () => Effect.map(Task.id, () => "t"))])
      yield* kit.begin(yield* connect(), "t")
      const { tools: [tool] } = yield* (yield* connect({ revision: "2025-11-25" })).result("tools/list")
      expect(tool.execution).toEqual({ taskSupport: "optional" })
    }))

  it.effect("a task of `Task.make` with a plain handler is one step, with its policy", () =>
    Effect.gen(function*() {
      const plain = Tool.layer(Task.make("t", { ttl: "2 hours" }), () => Effect.succeed("t"))
      const { connect } = yield* kit.server([plain])
      expect((yield* kit.begin(yield* connect(), "t")).ttlMs).toBe(7_200_000)
    }))

  it.effect("is added and replaced while the server runs, until its scope closes", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* kit.server([Tool.layer(Tool.make("t"), () => Effect.succeed("a tool"))])
      const client = yield* connect()
      const run = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, context)
      const text = (name: string) =>
        Effect.gen(function*() {
          const called = yield* client.call(name)
          if (called.resultType !== "task") return called.content[0].text
          yield* kit.settle
          return `task: ${(yield* kit.get(client, called.taskId)).result.content[0].text}`
        })
      yield* Effect.scoped(Effect.gen(function*() {
        yield* run(Task.replace(Task.make("t"), () => Effect.succeed("replaced")))
        yield* run(Task.add(Task.make("u"), () => Effect.succeed("added")))
        expect([yield* text("t"), yield* text("u")]).toEqual(["task: replaced", "task: added"])
        const error = yield* Effect.flip(run(Task.add(Task.make("u"), () => Effect.succeed("again"))))
        expect([error._tag, error.reason._tag]).toEqual(["DefinitionError", "DuplicateName"])
      }))
      expect(yield* text("t")).toBe("a tool")
      expect((yield* client.error("tools/call", { name: "u" })).code).toBe(-32602)
    }))

  it.effect("a second `Tasks.layer` in one server is a defect when the server is built", () =>
    Effect.gen(function*() {
      const cause = yield* Effect.flip(Effect.sandbox(Effect.scoped(kit.server([tools.quick, Tasks.layer()]))))
      expect(String(Cause.squash(cause))).toContain("The extension Tasks.layer is twice in one server")
      // Two servers of one process may share an engine.
      const engine = Layer.succeedContext(yield* Layer.build(fake.layer))
      const one = yield* kit.server([tools.quick], {}, engine)
      const two = yield* kit.server([tools.must], {}, engine)
      const client = yield* one.connect()
      expect((yield* kit.begin(client, "quick", { n: 1 })).resultType).toBe("task")
      expect((yield* kit.begin(yield* two.connect(), "must")).resultType).toBe("task")
    }))

  it.effect("the same definitions without a transport are a worker: it runs the tasks that a server submits", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(fake.layer)
      const shared = Layer.succeedContext(context)
      const define = (text: string) => Task.layer(Task.make("t"), () => Effect.succeed(text))
      const front = yield* kit.server(
        [define("front")],
        undefined,
        Layer.effect(
          TaskEngine,
          Effect.map(TaskEngine, (engine) => ({ ...engine, runTasks: () => Effect.void }))
        ).pipe(Layer.provide(shared))
      )
      const client = yield* front.connect()
      const { taskId } = yield* kit.begin(client, "t")
      expect((yield* kit.get(client, taskId)).status).toBe("working")
      const worker = McpServer.layer({ name: "worker", version: "1" }, define("worker"), Tasks.layer())
      yield* Layer.build(Layer.provide(worker, shared))
      yield* kit.settle
      expect((yield* kit.get(client, taskId)).result.content[0].text).toBe("worker")
    }))
})

describe("a task that is created in one revision and read in another", () => {
  const principal = { id: "alice" }
  const form = Task.layer(Task.make("form"), () =>
    Effect.map(
      Elicitation.form("Name?", { name: Schema.String }, { key: "n" }),
      (answer) => answer.action === "accept" ? answer.content.name : answer.action
    ))

  it.effect("2025-11-25 to 2026-07-28 · encodes its question, its answer and its result for the reader", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([form])
      const old = yield* connect({ revision: "2025-11-25", principal, can: { elicitation: {} } })
      const { task: { taskId } } = yield* old.result("tools/call", { name: "form", task: {} })
      yield* kit.settle
      const client = yield* connect({ principal, can: { ...kit.tasks, elicitation: {} } })
      const { inputRequests } = yield* kit.get(client, taskId)
      expect(inputRequests).toMatchObject({ n: { method: "elicitation/create", params: { mode: "form" } } })
      const inputResponses = { n: { action: "accept", content: { name: "Ann" } } }
      yield* client.result("tasks/update", { taskId, inputResponses })
      yield* kit.settle
      expect((yield* kit.get(client, taskId)).result).toEqual({
        resultType: "complete",
        content: [{ type: "text", text: "Ann" }]
      })
    }))

  it.effect("2026-07-28 to 2025-11-25 · and back", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([form])
      const client = yield* connect({ principal, can: { ...kit.tasks, elicitation: {} } })
      const { taskId } = yield* kit.begin(client, "form")
      const old = yield* connect({ revision: "2025-11-25", principal })
      expect((yield* old.result("tasks/get", { taskId })).status).toBe("input_required")
      yield* client.result("tasks/update", { taskId, inputResponses: { n: { action: "decline" } } })
      yield* kit.settle
      const result = yield* old.result("tasks/result", { taskId })
      expect(result).toMatchObject({ content: [{ type: "text", text: "decline" }] })
      expect(result).not.toHaveProperty("resultType")
    }))
})
