/**
 * Tasks of mounted parts, with the engine in memory and with that of SQLite: one `Tasks.layer` beside the mounts, in a part,
 * or in a mounted server.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Server } from "../../../server/test/kit.ts"
import { build } from "../../../server/test/middleware/support.ts"
import * as kit from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-mounted-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

type Engine = Layer.Layer<TaskEngine, unknown>

const engines = [
  ["in memory", Effect.succeed<Engine>(MemoryTasks.layer())],
  ["SQLite", Effect.map(folder, (path): Engine => SqliteTasks.layer({ filename: join(path, "tasks.db") }))]
] as const

/** The definitions of a part: a task with a step, a question and a link to a resource of the part, and a tool. */
const bakery = () => {
  const steps: Array<string> = []
  const oven = Latch.makeUnsafe()
  const bake = Task.layer(Task.make("bake", { input: { cakes: Schema.Int } }), ({ cakes }) =>
    Effect.gen(function*() {
      yield* Step.run("flour", {}, () => Effect.sync(() => void steps.push(`flour for ${cakes}`)))
      yield* Task.setStatusMessage("The dough rests")
      yield* oven.await
      return Tool.result({
        content: [{ type: "text", text: `${cakes} cakes` }, { type: "resource_link", uri: "data://menu", name: "menu" }]
      })
    }))
  const order = Task.layer(Task.make("order"), () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("How many?", { cakes: Schema.Int })),
      ({ cakes }) => `${cakes} ordered`
    ))
  const quick = Tool.layer(
    Tool.make("quick", { execution: { taskSupport: "optional" } }),
    () => Effect.succeed("at once")
  )
  const menu = Resource.layer(Resource.make("data://menu"), Effect.succeed("cakes"))
  return { definitions: [bake, order, quick, menu] as const, oven, steps }
}

const link = (uri: string) => ({ type: "resource_link", uri, name: "menu" })

/** A task of either revision: its methods have other names, and its state other members. */
const follow = (client: kit.Client, created: kit.Json) => {
  const isLegacy = client.revision === "2025-11-25"
  const { taskId } = isLegacy ? created.task : created
  const get = kit.get(client, taskId)
  const until = (status: string): Effect.Effect<kit.Json> =>
    Effect.flatMap(
      get,
      (state) => state.status === status ? Effect.succeed(state) : Effect.andThen(Effect.sleep(20), until(status))
    )
  return {
    taskId,
    get,
    until,
    result: isLegacy
      ? client.result("tasks/result", { taskId })
      : Effect.map(until("completed"), ({ result }) => result),
    cancel: client.result("tasks/cancel", { taskId })
  }
}

const call = (client: kit.Client, name: string, args: kit.Json = {}) =>
  Effect.map(
    client.result("tools/call", {
      name,
      arguments: args,
      ...client.revision === "2025-11-25" ? { task: { ttl: 60_000 } } : undefined
    }),
    (created) => follow(client, created)
  )

const failureOf = (layer: Layer.Layer<McpServer.McpServer, unknown>) =>
  Effect.map(
    Effect.flip(Effect.sandbox(Effect.scoped(Layer.build(layer)))),
    (cause) => String(Cause.squash(cause))
  )

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  const who = (can: object = {}) => ({
    revision,
    can: revision === "2025-11-25" ? { ...can } : { ...kit.tasks, ...can }
  })

  for (const [name, engine] of engines) {
    describe(`${revision} · tasks of a mounted part, ${name}`, () => {
      it.live("start, report their status and return their result, under the prefixed name", () =>
        Effect.gen(function*() {
          const { definitions, oven, steps } = bakery()
          const nested = bakery()
          nested.oven.openUnsafe()
          const { connect } = yield* kit.server(
            [McpServer.mount("p", ...definitions), McpServer.mount("a", McpServer.mount("b", ...nested.definitions))],
            {},
            yield* engine
          )
          const client = yield* connect(who())
          const { tools } = yield* client.result("tools/list")
          const supports = (tool: kit.Json) => [tool.name, tool.execution?.taskSupport]
          // 2026-07-28 has no `execution`.
          const support = revision === "2025-11-25" ? "optional" : undefined
          expect(tools.map(supports)).toEqual(
            ["p_bake", "p_order", "p_quick", "a_b_bake", "a_b_order", "a_b_quick"].map((name) => [name, support])
          )
          const task = yield* call(client, "p_bake", { cakes: 2 })
          expect(task.taskId).toMatch(/^[\w-]{22,}$/)
          while ((yield* task.get).statusMessage === undefined) yield* Effect.sleep(20)
          expect(yield* task.get).toMatchObject({ status: "working", statusMessage: "The dough rests" })
          oven.openUnsafe()
          expect((yield* task.until("completed")).taskId).toBe(task.taskId)
          const content = [{ type: "text", text: "2 cakes" }, link("data://p/menu")]
          expect((yield* task.result).content).toEqual(content)
          expect(steps).toEqual(["flour for 2"])
          expect((yield* (yield* call(client, "p_quick")).result).content).toEqual([{ type: "text", text: "at once" }])
          expect((yield* (yield* call(client, "a_b_bake", { cakes: 3 })).result).content).toEqual([
            { type: "text", text: "3 cakes" },
            link("data://a/b/menu")
          ])
          expect((yield* client.error("tools/call", { name: "bake", arguments: { cakes: 1 } })).message)
            .toBe("Unknown tool: bake")
          // A call that waits.
          const waiting = yield* connect({ revision, can: {} })
          expect((yield* waiting.call("p_bake", { cakes: 4 })).content[0].text).toBe("4 cakes")
        }))

      it.live("are cancelled, and ask questions", () =>
        Effect.gen(function*() {
          const { definitions } = bakery()
          const { connect } = yield* kit.server([McpServer.mount("p", ...definitions)], {}, yield* engine)
          const client = yield* connect(who({ elicitation: { form: {} } }))
          const baking = yield* call(client, "p_bake", { cakes: 2 })
          yield* baking.cancel
          expect((yield* baking.until("cancelled")).status).toBe("cancelled")
          const ordering = yield* call(client, "p_order")
          const asking = yield* ordering.until("input_required")
          if (revision === "2025-11-25") {
            // The question is sent while the client waits for the result.
            const waiting = client.send("tasks/result", { taskId: ordering.taskId })
            let asked: kit.Json
            while (asked === undefined) {
              yield* Effect.sleep(20)
              asked = client.received.find(({ method }) => method === "elicitation/create")
            }
            const result = { action: "accept", content: { cakes: 5 } }
            client.answerRaw({ _tag: "Success", id: asked.id, result })
            expect((yield* client.answer(waiting)).result.content[0].text).toBe("5 ordered")
          } else {
            const [key = ""] = Object.keys(asking.inputRequests)
            yield* client.result("tasks/update", {
              taskId: ordering.taskId,
              inputResponses: { [key]: { action: "accept", content: { cakes: 5 } } }
            })
            expect((yield* ordering.result).content[0].text).toBe("5 ordered")
          }
        }))

      it.live("run in the middleware of their part: of requests at the call, of tool calls with the handler", () =>
        Effect.gen(function*() {
          const { definitions, oven } = bakery()
          oven.openUnsafe()
          const seen: Array<string> = []
          const { connect } = yield* kit.server(
            [
              Middleware.callTool((call, next) => {
                seen.push(`server ${call.name}`)
                return next()
              }),
              McpServer.mount(
                "p",
                Middleware.layer((next) => (request) => {
                  seen.push(`request ${request.target}`)
                  return next(request)
                }),
                Middleware.callTool((call, next) => {
                  seen.push(`part ${call.name}`)
                  return Effect.map(
                    next({ ...call.arguments, cakes: 7 }),
                    (result) => ({ ...result, _meta: { "example.com/part": true } })
                  )
                }, { tools: ["bake"] }),
                ...definitions
              )
            ],
            {},
            yield* engine
          )
          const task = yield* call(yield* connect(who()), "p_bake", { cakes: 2 })
          const result = yield* task.result
          expect(result).toMatchObject({ content: [{ text: "7 cakes" }, {}], _meta: { "example.com/part": true } })
          expect(seen).toEqual(["request bake", "server p_bake", "part bake"])
        }))

      it.live("have the engine of the part, or of the mounted server, that has Tasks.layer", () =>
        Effect.gen(function*() {
          const { definitions, oven } = bakery()
          const tool = Tool.layer(Tool.make("plain"), () => Effect.succeed("plain"))
          const Engine = yield* engine
          const inPart = McpServer.mount("p", ...definitions, Tasks.layer()).pipe(Layer.provide(Engine))
          const server = McpServer.layer({ name: "inner", version: "1.0.0" }, ...definitions, Tasks.layer())
          for (const mounted of [inPart, McpServer.mount("p", Layer.provide(server, Engine))]) {
            oven.openUnsafe()
            yield* Effect.scoped(Effect.gen(function*() {
              const outer = yield* build(
                McpServer.layer({ name: "outer", version: "1.0.0" }, tool, mounted) as Server
              )
              const client = yield* kit.connect(outer, who())
              const task = yield* call(client, "p_bake", { cakes: 2 })
              // The engine stores the result of the part, and its methods do not know of the prefix.
              expect((yield* task.result).content).toEqual([{ type: "text", text: "2 cakes" }, link("data://menu")])
              oven.closeUnsafe()
              const stopped = yield* call(client, "p_bake", { cakes: 9 })
              yield* stopped.cancel
              expect((yield* stopped.until("cancelled")).status).toBe("cancelled")
              expect((yield* client.call("plain")).content[0].text).toBe("plain")
            }))
          }
        }))
    })
  }

  it.live(`${revision} · a task of a mounted part continues in the next process, and keeps its id`, () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      const { definitions, oven, steps } = bakery()
      const start = kit.server([McpServer.mount("p", ...definitions)], {}, Layer.fresh(SqliteTasks.layer({ filename })))
      const first = yield* start
      const task = yield* call(yield* first.connect(who()), "p_bake", { cakes: 2 })
      while ((yield* task.get).statusMessage === undefined) yield* Effect.sleep(20)
      yield* first.close
      const second = yield* start
      const again = follow(yield* second.connect(who()), revision === "2025-11-25" ? { task } : task)
      expect(yield* again.get).toMatchObject({ taskId: task.taskId, status: "working" })
      oven.openUnsafe()
      expect((yield* again.result).content[0].text).toBe("2 cakes")
      // The step has not run again.
      expect(steps).toEqual(["flour for 2"])
    }))
}

describe("Tasks.layer twice, of which one is in a mount", () => {
  const { definitions } = bakery()
  const inner = McpServer.layer({ name: "inner", version: "1.0.0" }, ...definitions, Tasks.layer()).pipe(
    Layer.provide(MemoryTasks.layer())
  )
  const outer = (...more: ReadonlyArray<McpServer.Definitions | ReturnType<typeof Tasks.layer>>) =>
    McpServer.layer({ name: "outer", version: "1.0.0" }, ...more as ReadonlyArray<McpServer.Definitions>).pipe(
      Layer.provide(MemoryTasks.layer())
    ) as Layer.Layer<McpServer.McpServer, unknown>
  const mounted = McpServer.mount("p", inner)
  const other = McpServer.layer({ name: "other", version: "1.0.0" }, ...definitions, Tasks.layer()).pipe(
    Layer.provide(MemoryTasks.layer())
  )
  const part = McpServer.mount("q", ...definitions, Tasks.layer()) as McpServer.Definitions
  const cases = [
    ["beside a mounted server", [Tasks.layer(), mounted]],
    ["after a mounted server", [mounted, Tasks.layer()]],
    ["in two mounted servers", [mounted, McpServer.mount("q", other)]],
    ["in a part and in a mounted server", [part, mounted]],
    ["beside a part", [Tasks.layer(), part]]
  ] as const

  for (const [title, definitions] of cases) {
    it.effect(`${title} is a defect when the server is built`, () =>
      Effect.gen(function*() {
        expect(yield* failureOf(outer(...definitions))).toContain("The extension Tasks.layer is twice in one server")
      }))
  }

  it.live("is none for one server that is mounted in two places: both have its tasks", () =>
    Effect.gen(function*() {
      const server = yield* build(outer(mounted, McpServer.mount("q", inner)) as Server)
      const client = yield* kit.connect(server, {})
      for (const name of ["p_quick", "q_quick"]) {
        expect((yield* (yield* call(client, name)).result).content[0].text).toBe("at once")
      }
    }))

  it.effect("does not stand in for the server's own: a task outside of the part needs Tasks.layer", () =>
    Effect.gen(function*() {
      expect(yield* failureOf(outer(...definitions, mounted))).toContain("task definitions require `Tasks.layer`")
    }))
})
