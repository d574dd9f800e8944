/** The tasks that run in a process, with their steps, and the tasks of its store. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import { ConsoleSources } from "@skein/console/ConsoleSource"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Telemetry from "@skein/server/Telemetry"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTelemetry from "@skein/tasks/TaskTelemetry"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import type { Node } from "../src/ConsoleSource.ts"
import { makeServerSource } from "../src/internal/serverSource.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const query = { limit: 100, maxRows: 1000, showPayloads: false }

let attempts = 0
const cater = Task.layer(Task.make("cater"), () =>
  Effect.all([
    Step.run("order/scones", { error: Schema.String, retry: Schedule.recurs(3) }, () =>
      Effect.suspend(() =>
        ++attempts === 1 ? Effect.fail("Sold out") : Effect.withSpan(Effect.never, "phone the baker")
      )),
    Step.run("boil", {}, () =>
      Effect.never)
  ], { concurrency: 2, discard: true }).pipe(Effect.orDie))

const program = McpServer.layer({ name: "tea house", version: "1.0.0" }, Telemetry.layer(), cater, Tasks.layer()).pipe(
  Layer.merge(ConsoleTasks.layer),
  Layer.provideMerge(ConsoleSources.layer),
  Layer.provideMerge(MemoryTasks.layer()),
  Layer.provide(TaskTelemetry.layer())
)

it.live("shows the executing steps of a task with their attempt, age and span, and the trace of the call", () =>
  Effect.gen(function*() {
    const context = yield* Layer.build(program)
    const server = Context.get(context, McpServer.McpServer)
    const source = makeServerSource(server, 100)
    const client = yield* Client.make(InMemoryTransport.transport(server.serve))
    const before = Date.now()
    yield* client.startTask("cater").pipe(
      Effect.withParentSpan(Tracer.externalSpan({ traceId, spanId: "b7ad6b7169203331", sampled: true }))
    )
    const stepsOf = (nodes: ReadonlyArray<Node>) => nodes.filter(({ kind }) => kind === "step")
    const { nodes } = yield* Effect.timeout(
      Effect.repeat(Effect.delay(source.read(query), 20), {
        until: ({ nodes }) => stepsOf(nodes).some(({ waitsFor }) => waitsFor === "span phone the baker")
      }),
      "60 seconds"
    )
    const task = nodes.find(({ kind }) => kind === "task")!
    expect(task).toMatchObject({ label: "cater", state: "running", traceId: expect.stringMatching(/^[\da-f]{32}$/) })
    expect(task.waitsFor).toMatch(/^step (boil|order\/scones)$/)
    const steps = stepsOf(nodes)
    expect(steps.map(({ label }) => label).toSorted()).toEqual(["boil", "order/scones"])
    for (const { parent, since, state } of steps) {
      expect({ parent, state }).toEqual({ parent: task.id, state: "running" })
      expect(since).toBeGreaterThanOrEqual(before - 1000)
    }
    const [boil, order] = steps.toSorted((one, other) => one.label < other.label ? -1 : 1)
    expect(boil).toMatchObject({ details: { attempt: 1 }, waitsFor: undefined })
    expect(order).toMatchObject({ details: { attempt: 2 }, waitsFor: "span phone the baker" })
    // Rows of later snapshots have the same ids.
    const { nodes: later } = yield* source.read(query)
    expect(stepsOf(later).map(({ id }) => id)).toEqual(steps.map(({ id }) => id))

    const stored = yield* Context.get(context, ConsoleSources).all.get("tasks")!.read(query)
    expect(stored.nodes.find(({ kind }) => kind === "task")).toMatchObject({ traceId, state: "running" })
    const [listed] = yield* Context.get(context, TaskAdmin).list({ tool: "cater" })
    expect(yield* Context.get(context, TaskAdmin).cancel(listed!.state.id)).toBe(true)
    yield* Effect.timeout(
      Effect.repeat(Effect.delay(source.read(query), 20), { until: ({ nodes }) => stepsOf(nodes).length === 0 }),
      "60 seconds"
    )
  }).pipe(Effect.scoped))
