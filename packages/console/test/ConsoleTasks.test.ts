/** The tasks of an engine in a console. */
import { it } from "@effect/vitest"
import { ConsoleSources } from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { type Handlers, TaskEngine, type TaskRequest } from "@skein/tasks/TaskEngine"
import type { NewTask } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { expect } from "vitest"

const task = (tool: string): NewTask => ({
  tool,
  args: { secret: "argument" },
  pool: "default",
  owner: "ada",
  caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
  ttlMs: null,
  pollIntervalMs: 1000,
  limits: { all: {}, owner: {}, tool: {} }
})

const brew = ({ task }: TaskRequest) =>
  Effect.provideService(
    Effect.andThen(
      Step.run("boil", { success: Schema.String }, () => Effect.succeed("hot secret")),
      Step.sleep("steep", "1 day")
    ),
    CurrentTask,
    task
  )

const handlers: Handlers = (tool) => ({
  durable: true,
  run: (request) =>
    Effect.as(
      tool === "brew" ? brew(request) : request.request("elicitation/create", { message: "Sugar?" }).pipe(Effect.orDie),
      { _tag: "Result", result: { content: [] } } as const
    )
})

const query = { limit: 2, maxRows: 100, showPayloads: false }

/** Repeats a look until it shows what is expected. */
const eventually = <A, E, R>(look: Effect.Effect<A, E, R>, is: (value: A) => boolean) =>
  Effect.timeout(Effect.repeat(Effect.delay(look, 20), { until: is }), "10 seconds")

const engine = MemoryTasks.layer({ pollInterval: 50 })

it.live("shows tasks by pages with what they wait for, their logs on request, and cancels them", () =>
  Effect.gen(function*() {
    const { all } = yield* ConsoleSources
    const source = all.get("tasks")!
    const { read } = source
    const [more, interrupt] = [source.more!, source.interrupt!]
    expect((yield* read(query)).nodes).toEqual([{ id: "tasks", kind: "group", label: "Tasks", state: "idle" }])

    const { runTasks, submit } = yield* TaskEngine
    yield* runTasks(handlers)
    const brews = yield* submit(task("brew"))
    yield* Effect.sleep(5)
    const asks = yield* submit(task("ask"))
    yield* Effect.sleep(5)
    yield* submit(task("ask"))
    const { nodes } = yield* eventually(
      read(query),
      ({ nodes }) => nodes.length === 3 && nodes.slice(1).every(({ waitsFor }) => waitsFor === "an answer")
    )
    expect(nodes[0]).toMatchObject({ id: "tasks", state: "running", more: { total: 3 } })
    expect(nodes[2]).toMatchObject({
      id: `task/${asks.id}`,
      parent: "tasks",
      kind: "task",
      label: `ask ${asks.id.slice(0, 8)}…`,
      state: "waiting",
      principal: "ada",
      since: asks.createdAt,
      canInterrupt: true,
      more: { total: 1, after: "0" }
    })
    const rest = yield* more({ ...query, parent: "tasks", after: nodes[0]!.more!.after })
    expect(rest.after).toBeUndefined()
    expect(rest.nodes).toMatchObject([{
      id: `task/${brews.id}`,
      waitsFor: expect.stringMatching(/^its timer, until 2/)
    }])

    const inTask = { ...query, parent: `task/${brews.id}`, after: undefined }
    const { nodes: log } = yield* more(inTask)
    expect(log).toMatchObject([
      { kind: "step", label: "boil", state: "done", details: { attempt: 1 } },
      {
        label: "timer sleep/steep",
        state: "waiting",
        waitsFor: expect.stringMatching(/^its time, 2/),
        since: undefined
      }
    ])
    // By pages, and later events on request.
    const first = yield* more({ ...inTask, limit: 1 })
    expect(first).toMatchObject({ nodes: [{ label: "boil" }], after: "1" })
    const second = yield* more({ ...inTask, limit: 1, after: "1" })
    expect(second).toMatchObject({ nodes: [{ label: "timer sleep/steep" }], after: "2" })
    expect(yield* more({ ...inTask, after: "2" })).toEqual({ nodes: [], after: "2" })
    const question = yield* more({ ...query, parent: `task/${asks.id}`, after: undefined })
    expect(question.nodes).toMatchObject([{ kind: "question", label: "elicitation/create", state: "waiting" }])
    expect(JSON.stringify([nodes, rest, log, question])).not.toMatch(/secret|Sugar/)
    const [boil] = (yield* more({ ...inTask, showPayloads: true })).nodes
    expect(boil!.details!["record"]).toContain("hot secret")

    expect(yield* interrupt(`task/${brews.id}`)).toBe(true)
    expect(yield* interrupt(`task/${brews.id}`)).toBe(false)
    expect(yield* interrupt("tasks")).toBe(false)
    expect((yield* more({ ...query, parent: "task/unknown", after: undefined })).nodes).toEqual([])
  }).pipe(
    Effect.provide(ConsoleTasks.layer.pipe(Layer.provideMerge(ConsoleSources.layer), Layer.provideMerge(engine))),
    Effect.scoped
  ))
