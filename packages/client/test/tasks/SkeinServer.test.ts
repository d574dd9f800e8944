/** The client with tasks of Skein servers on the real engine, over each transport and in both revisions. */
import { assert, describe, it } from "@effect/vitest"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as ServerElicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeServer from "@skein/server/NodeHttp"
import * as ServerProgress from "@skein/server/Progress"
import * as ServerRoots from "@skein/server/Roots"
import * as ServerSampling from "@skein/server/Sampling"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import type { RemoteTask, State } from "../../src/RemoteTask.ts"
import * as Roots from "../../src/Roots.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as Stdio from "../../src/Stdio.ts"
import { type Json, shapes } from "./kit.ts"

const undone: Array<string> = []

const definitions = [
  Task.layer(Task.make("book", { pollInterval: "50 millis" }), () =>
    Effect.gen(function*() {
      yield* Task.setStatusMessage("Looking")
      const [day, people] = yield* Effect.all([
        ServerElicitation.accepted(ServerElicitation.form("Which day?", { answer: Schema.String })),
        ServerElicitation.accepted(ServerElicitation.form("How many?", { answer: Schema.String }))
      ], { concurrency: "unbounded" })
      return `A table for ${people.answer} on ${day.answer}`
    })),
  Task.layer(Task.make("describe"), () =>
    Effect.gen(function*() {
      const [root] = yield* ServerRoots.list()
      yield* Step.run("look", {}, () => Effect.void)
      const answer = yield* ServerSampling.createMessage({ messages: `What is ${root?.uri}?`, maxTokens: 50 })
      return ServerSampling.text(answer)
    })),
  Task.layer(
    Task.make("sum", { input: { a: Schema.Int, b: Schema.Int }, output: { sum: Schema.Int } }),
    ({ a, b }) => Effect.succeed({ sum: a + b })
  ),
  Task.layer(Task.make("fail"), () => Effect.fail({ _tag: "NoFlour", message: "No flour" } as const)),
  Task.layer(Task.make("bake"), () =>
    Effect.gen(function*() {
      yield* ServerProgress.report({ progress: 1, total: 2 })
      yield* Step.sleep("rest", "500 millis")
      yield* ServerProgress.report({ progress: 2, total: 2 })
      return "A cake"
    })),
  Task.layer(Task.make("wait"), () =>
    Effect.gen(function*() {
      yield* Step.run("begin", {}, () => Effect.void)
      yield* Step.compensate(() => Effect.sync(() => void undone.push("wait")))
      yield* Task.setStatusMessage("begun")
      yield* Step.sleep("long", "1 hour")
      return ""
    }))
]

const server = McpServer.layer({ name: "ours", version: "1" }, ...definitions, Tasks.layer({ list: "always" })).pipe(
  Layer.provide(MemoryTasks.layer({ pollInterval: "50 millis" }))
)

const user = (asked: Array<string>) =>
  Elicitation.layer({
    form: ({ message }) => {
      asked.push(message)
      return Effect.succeed(Elicitation.accept({ answer: message === "Which day?" ? "Friday" : "three" }))
    }
  })

/** A host with a folder and a model. */
const host = Layer.mergeAll(
  Roots.layer([{ uri: "file:///recipes", name: "Recipes" }]),
  Sampling.layer(({ messages: [message] }) =>
    Effect.succeed({
      role: "assistant",
      model: "parrot",
      content: { type: "text", text: `You ask: ${(message!.content as Json).text}` }
    })
  )
)

const text = ({ content }: { readonly content: ReadonlyArray<unknown> }) => (content[0] as Json).text as string

const doors = {
  memory: Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return {
      connect: Effect.gen(function*() {
        const [near, far] = yield* InMemoryTransport.make()
        yield* serve(far)
        return near
      })
    }
  }),
  HTTP: Effect.gen(function*() {
    const listening = yield* Layer.build(NodeServer.layer({ port: 0 }).pipe(Layer.provide(server)))
    return Http.transport({ url: Context.get(listening, NodeServer.Server).url })
  })
}

const augmented = { task: { augment: true } }

for (const shape of shapes) {
  for (const [door, opened] of Object.entries(doors)) {
    describe(`${shape} · ${door}`, () => {
      const open = (asked: Array<string> = []) =>
        Effect.gen(function*() {
          const transport = yield* Effect.orDie(opened as typeof doors.memory)
          const client = yield* Effect.provide(Client.make(transport, { revisions: [shape] }), user(asked))
          yield* client.listToolsPage()
          return client
        })

      it.live("runs a task to its end, with input requests, results and failures", () =>
        Effect.scoped(Effect.gen(function*() {
          const asked: Array<string> = []
          const client = yield* open(asked)
          const task: Array<RemoteTask> = []
          const booked = yield* client.callTool("book", {}, {
            task: { augment: true, onTask: (one) => task.push(one) }
          })
          assert.strictEqual(text(booked), "A table for three on Friday")
          assert.sameMembers(asked, ["Which day?", "How many?"])
          assert.strictEqual(task.length, 1)
          const output = Schema.Struct({ sum: Schema.Int })
          assert.deepStrictEqual(yield* client.callTool("sum", { a: 1, b: 2 }, { ...augmented, output }), { sum: 3 })
          const failed = yield* client.callTool("fail", {}, augmented)
          assert.deepStrictEqual([failed.isError, text(failed)], [true, "No flour"])
        })))

      it.live("lets a task request the host's roots and its model", () =>
        Effect.scoped(Effect.gen(function*() {
          const transport = yield* Effect.orDie(opened as typeof doors.memory)
          const client = yield* Effect.provide(Client.make(transport, { revisions: [shape] }), host)
          const described = yield* client.callTool("describe", {}, augmented)
          assert.strictEqual(text(described), "You ask: What is file:///recipes?")
        })))

      it.live("cancels the task of an interrupted call, which compensates its completed steps", () =>
        Effect.scoped(Effect.gen(function*() {
          undone.length = 0
          const client = yield* open()
          const tasks: Array<RemoteTask> = []
          const call = yield* Effect.forkChild(
            client.callTool("wait", {}, { task: { augment: true, onTask: (one) => tasks.push(one) } })
          )
          yield* Effect.repeat(Effect.sleep(5), { until: () => tasks.length > 0 })
          const task = tasks[0]!
          yield* Stream.runDrain(Stream.takeUntil(task.states, ({ statusMessage }) => statusMessage === "begun"))
          yield* Fiber.interrupt(call)
          const error = yield* Effect.flip(task.result)
          assert.strictEqual(error.reason._tag, "TaskCancelled")
          yield* Effect.repeat(Effect.sleep(5), { until: () => undone.length > 0 })
          assert.deepStrictEqual(undone, ["wait"])
        })))

      it.live("resumes a task in another client from the stored handle", () =>
        Effect.scoped(Effect.gen(function*() {
          const transport = yield* Effect.orDie(opened as typeof doors.memory)
          const first = yield* Effect.provide(Client.make(transport, { revisions: [shape] }), user([]))
          const started = yield* first.startTask("book")
          if (started._tag !== "RemoteTask") return assert.fail("no task")
          const kept = JSON.stringify(started.handle)
          const asked: Array<string> = []
          const second = yield* Effect.provide(Client.make(transport, { revisions: [shape] }), user(asked))
          const states: Array<State> = []
          const task = yield* second.resumeTask(JSON.parse(kept))
          const watching = yield* Effect.forkChild(
            Stream.runForEach(task.states, (state) => Effect.sync(() => states.push(state)))
          )
          assert.strictEqual(text(yield* task.result), "A table for three on Friday")
          yield* Fiber.join(watching)
          assert.strictEqual(states.at(-1)?.status, "completed")
          assert.strictEqual(asked.length, 2)
          const unknown = yield* Effect.flip(second.resumeTask({ taskId: "nobody" }))
          assert.strictEqual(unknown.reason._tag, "TaskNotFound")
        })))

      it.live("reports progress of a running task in 2025-11-25, and none in 2026-07-28", () =>
        Effect.scoped(Effect.gen(function*() {
          const client = yield* open()
          const reports: Array<number> = []
          const cake = yield* client.callTool("bake", {}, {
            ...augmented,
            onProgress: ({ progress }) => void reports.push(progress)
          })
          assert.strictEqual(text(cake), "A cake")
          if (shape === "2025-11-25") assert.strictEqual(reports.at(-1), 2)
          else assert.deepStrictEqual(reports, [])
        })))
    })
  }

  describe(`${shape} · stdio`, () => {
    it.live(
      "continues a task after its server was killed and another process has replaced it",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const folder = yield* Effect.acquireRelease(
            Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tasks-"))),
            (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
          )
          const program = fileURLToPath(new URL("./fixtures/server.ts", import.meta.url))
          const transport = Stdio.transport({
            command: process.execPath,
            args: ["--conditions=@skein/source", program, join(folder, "tasks.db")]
          })
          const asked: Array<string> = []
          const answer = Latch.makeUnsafe(false)
          const host = Elicitation.layer({
            form: ({ message }) => {
              asked.push(message)
              return Effect.as(answer.await, Elicitation.accept({ people: 4 }))
            }
          })
          const reconnect = { initialDelay: "50 millis", jitter: "none" } as const
          const client = yield* Effect.provide(Client.make(transport, { revisions: [shape], reconnect }), host)
          yield* client.listToolsPage()
          const call = yield* Effect.forkChild(client.callTool("book", {}, augmented))
          yield* Effect.repeat(Effect.sleep(10), { until: () => asked.length > 0 })
          const pid = Number(text(yield* client.callTool("pid")))
          process.kill(pid, "SIGKILL")
          yield* answer.open
          assert.strictEqual(text(yield* Fiber.join(call)), "A table for 4")
          assert.notStrictEqual(Number(text(yield* client.callTool("pid"))), pid)
          // In session-based revisions the request is lost with its connection. In stateless revisions the form stays
          // open.
          assert.strictEqual(asked.length, shape === "2025-11-25" ? 2 : 1)
        })),
      120_000
    )
  })
}
