/** The tasks of an engine in a console. */
import { it } from "@effect/vitest"
import { ConsoleSources } from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin, type WorkerState } from "@skein/tasks/TaskAdmin"
import { type Handlers, TaskEngine, type TaskRequest } from "@skein/tasks/TaskEngine"
import type { NewTask } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { expect } from "vitest"
import { OverviewInterval } from "../src/internal/tasks/overview.ts"

const task = (tool: string): NewTask => ({
  tool,
  args: { secret: "argument" },
  pool: "default",
  owner: "ada",
  caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
  ttlMs: null,
  pollIntervalMs: 1000,
  limits: { all: {}, client: {}, tool: {} }
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
  Effect.timeout(Effect.repeat(Effect.delay(look, 20), { until: is }), "60 seconds")

const program = ConsoleTasks.layer.pipe(
  Layer.provide(Layer.succeed(OverviewInterval, 0)),
  Layer.provideMerge(ConsoleSources.layer),
  Layer.provideMerge(MemoryTasks.layer({ pollInterval: 50 }))
)

/** A source of a console, and the rows below one of its groups. */
const open = Effect.map(ConsoleSources, ({ all }) => {
  const { act, more, read } = all.get("tasks")!
  return {
    act: act!,
    more: more!,
    below: (group: string, limit = 100) =>
      Effect.map(read({ ...query, limit }), ({ nodes }) => nodes.filter(({ parent }) => parent === group)),
    group: (id: string, limit = 100) =>
      Effect.map(read({ ...query, limit }), ({ nodes }) => nodes.find((node) => node.id === id))
  }
})

/** How often the steps of the failing tasks have run. */
const ran = { charge: 0, ship: 0, refund: 0 }

/** Charges, fails to ship, and pays back if it is the tool `refunds`. */
const order = (tool: string, { task }: TaskRequest) =>
  Effect.gen(function*() {
    yield* Step.run("charge", { success: Schema.String }, () => Effect.sync(() => (ran.charge++, "paid secret")))
    if (tool === "refunds") {
      yield* Step.compensate(() => Step.run("refund", {}, () => Effect.sync(() => void ran.refund++)))
    }
    yield* Step.run("ship", {}, () => Effect.sync(() => void ran.ship++))
    return { _tag: "Error", error: { code: -32603, message: "The ship has sunk" } } as const
  }).pipe(Effect.provideService(CurrentTask, task))

const orders: Handlers = (tool) => ({ durable: true, run: (request) => order(tool, request) })

it.live("shows tasks by pages with what they wait for, their logs on request, and cancels them", () =>
  Effect.gen(function*() {
    const { all } = yield* ConsoleSources
    const source = all.get("tasks")!
    const { read } = source
    const [more, interrupt] = [source.more!, source.interrupt!]
    expect((yield* read(query)).nodes).toEqual([
      { id: "queue", kind: "group", label: "Queue", state: "idle" },
      { id: "tasks", kind: "group", label: "Tasks", state: "idle" },
      { id: "failed", kind: "group", label: "Tasks that ended with an error", state: "idle" }
    ])

    const { runTasks, submit } = yield* TaskEngine
    yield* runTasks(handlers)
    const brews = yield* submit(task("brew"))
    yield* Effect.sleep(5)
    const asks = yield* submit(task("ask"))
    yield* Effect.sleep(5)
    yield* submit(task("ask"))
    const inTasks = Effect.map(
      read(query),
      ({ nodes }) => nodes.filter(({ id, parent }) => [id, parent].includes("tasks"))
    )
    const nodes = yield* eventually(
      inTasks,
      (nodes) =>
        nodes.length === 3 &&
        nodes.slice(1).every(({ state, waitsFor }) => state === "waiting" && waitsFor === "an answer")
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
      actions: [{ name: "wake", label: "Check now" }],
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
    Effect.provide(program),
    Effect.scoped
  ))

it.live("checks a task that waits now, and refuses what a row does not offer", () =>
  Effect.gen(function*() {
    const { act, below } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const admin = yield* TaskAdmin
    yield* runTasks(handlers)
    const { id } = yield* submit(task("brew"))
    const runs = Effect.map(admin.inspect(id), (found) => found!.place._tag === "Waiting" ? found!.place.runs : 0)
    yield* eventually(runs, (count) => count === 1)
    expect((yield* below("tasks"))[0]!.actions).toEqual([{ name: "wake", label: "Check now" }])
    expect(yield* act(`task/${id}`, "wake", "ada")).toEqual({ isDone: true, message: "A worker checks the task now" })
    yield* eventually(runs, (count) => count === 2)
    expect((yield* admin.inspect(id))!.actions).toMatchObject([{ action: "wake", by: "ada" }])
    expect(yield* act("task/unknown", "wake")).toEqual({ isDone: false, message: "The task does not wait" })
    const others = [
      [`task/${id}`, "rerun"],
      [`task/${id}/1`, "wake"],
      [`task/${id}/1`, "rerunFrom"],
      [`failed/${id}`, "rerun"],
      [`failed/${id}/1`, "rerunFrom"],
      ["failed/unknown", "rerun"],
      ["tasks", "wake"],
      ["queue", "pause"],
      ["queue/brew", "pause"],
      ["queue/\"unknown\"", "pause"],
      ["queue/\"brew\"", "wake"]
    ] as const
    for (const [row, action] of others) expect([row, action, yield* act(row, action)]).toEqual([row, action, undefined])
    expect((yield* admin.list({})).length).toBe(1)
    expect(yield* admin.tools).toEqual([])
    // A running or ready task does not wait.
    yield* admin.pause("brew")
    yield* act(`task/${id}`, "wake")
    const held = yield* eventually(below("tasks"), ([row]) => row?.waitsFor === "its tool, which is paused")
    expect(held[0]!.actions).toBeUndefined()
  }).pipe(Effect.provide(program), Effect.scoped))

it.live("shows failed tasks with their reasons and logs, and runs them again from the beginning or from a step", () =>
  Effect.gen(function*() {
    const { act, below, group, more } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const admin = yield* TaskAdmin
    Object.assign(ran, { charge: 0, ship: 0, refund: 0 })
    yield* runTasks(orders)
    const { id } = yield* submit(task("order"))
    const [row] = yield* eventually(below("failed"), (rows) => rows.length === 1)
    expect(row).toMatchObject({
      id: `failed/${id}`,
      kind: "task",
      label: `order ${id.slice(0, 8)}…`,
      state: "failed",
      summary: "The ship has sunk",
      principal: "ada",
      details: { id, reason: "The ship has sunk", pool: "default" },
      actions: [{ name: "rerun", label: "Run again", confirm: expect.stringContaining("new idempotency keys") }],
      more: { total: 2, after: "0" }
    })
    expect(row!.canInterrupt).toBeUndefined()
    expect(yield* group("failed")).toMatchObject({ label: "Tasks that ended with an error", state: "failed" })
    const log = yield* more({ ...query, limit: 100, parent: row!.id, after: row!.more!.after })
    expect(log.nodes.map(({ label, state }) => [label, state])).toEqual([["charge", "done"], ["ship", "done"]])
    expect(log.nodes[1]!.actions).toEqual([{
      name: "rerunFrom",
      label: "Run again from here",
      confirm: "A new task begins at the step ship, with the recorded results of the steps before it. The steps from " +
        "there have new idempotency keys: their effects happen again."
    }])
    expect(JSON.stringify([row, log])).not.toContain("secret")

    const again = yield* act(row!.id, "rerun")
    expect(again).toMatchObject({ isDone: true, message: expect.stringMatching(/^The new task is [\w-]{32}$/) })
    yield* eventually(below("failed"), (rows) => rows.length === 2)
    expect(ran).toEqual({ charge: 2, ship: 2, refund: 0 })
    const from = yield* act(log.nodes[1]!.id, "rerunFrom")
    expect(from!.isDone).toBe(true)
    const rows = yield* eventually(below("failed"), (rows) => rows.length === 3)
    expect(ran).toEqual({ charge: 2, ship: 3, refund: 0 })
    expect((yield* admin.list({})).length).toBe(3)
    // By pages, newest first.
    const first = yield* below("failed", 2)
    expect(first.map((node) => node.id)).toEqual(rows.slice(0, 2).map((node) => node.id))
    const { more: rest } = (yield* group("failed", 2))!
    expect(rest).toMatchObject({ total: 3 })
    const second = yield* more({ ...query, parent: "failed", after: rest!.after })
    expect([second.nodes.map((node) => node.id), second.after]).toEqual([[`failed/${id}`], undefined])
  }).pipe(Effect.provide(program), Effect.scoped))

it.live("does not call a result with isError a failure: a person may have declined", () =>
  Effect.gen(function*() {
    const { below, group } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const result = { content: [{ type: "text", text: "The user declined" }], isError: true }
    yield* runTasks(() => ({ durable: true, run: () => Effect.succeed({ _tag: "Result", result }) }))
    yield* submit(task("declined"))
    const [row] = yield* eventually(below("failed"), (rows) => rows.length === 1)
    expect(row!.state).toBe("completed (error)")
    expect(yield* group("failed")).toMatchObject({ state: "completed (error)" })
  }).pipe(Effect.provide(program)))

it.live("shows a task that waits for other code, and lets it end as it is", () =>
  Effect.gen(function*() {
    const { act, below, group, more } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const admin = yield* TaskAdmin
    const steps = (...names: ReadonlyArray<string>): Handlers => () => ({
      durable: true,
      run: ({ task }) =>
        Effect.gen(function*() {
          for (const name of names) {
            yield* Effect.orDie(task.step(name, { success: Schema.String }, () => Effect.succeed(name)))
          }
          yield* task.sleep("rest", "1 hour")
          return { _tag: "Result", result: { content: [] } } as const
        })
    })
    const { id } = yield* Effect.scoped(Effect.gen(function*() {
      yield* runTasks(steps("charge"))
      const state = yield* submit(task("pay"))
      yield* eventually(admin.inspect(state.id), (found) => found?.place._tag === "Waiting")
      return state
    }))
    expect(yield* group("stopped")).toBeUndefined()
    yield* runTasks(steps("audit", "charge"))
    yield* admin.cancel(id)
    const [row] = yield* eventually(below("stopped"), (rows) => rows.length === 1)
    expect(yield* group("stopped")).toMatchObject({ label: "Tasks that need attention" })
    expect(row).toMatchObject({ id: `stopped/${id}`, state: "failed", waitsFor: "other code, or an operator" })
    expect(row!.actions?.map(({ name }) => name)).toEqual(["settle"])
    const { nodes } = yield* more({ ...query, limit: 100, parent: row!.id, after: undefined })
    expect(nodes.map(({ label }) => label)).toContainEqual(
      expect.stringMatching(/^stopped, because its code has changed/)
    )
    expect(yield* act(row!.id, "settle")).toMatchObject({ isDone: true })
    yield* eventually(below("stopped"), (rows) => rows.length === 0)
    expect(yield* act(row!.id, "settle")).toMatchObject({ isDone: false })
  }).pipe(Effect.provide(program), Effect.scoped))

it.live("does not run a failed task again from its compensations, and warns about undone steps", () =>
  Effect.gen(function*() {
    const { act, below, more } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    yield* runTasks(orders)
    const { id } = yield* submit(task("refunds"))
    yield* eventually(below("failed"), (rows) => rows.length === 1)
    const { nodes } = yield* more({ ...query, limit: 100, parent: `failed/${id}`, after: undefined })
    const at = nodes.findIndex(({ label }) => label === "compensations begin")
    expect(at).toBe(2)
    expect(nodes.slice(at).map(({ actions }) => actions).filter((actions) => actions !== undefined)).toEqual([])
    const refund = nodes.at(-1)!
    expect(refund.label).toMatch(/refund/)
    expect(yield* act(refund.id, "rerunFrom")).toBeUndefined()
    expect(nodes[1]!.actions![0]!.confirm).toContain("the effects of the steps before may be undone")
  }).pipe(Effect.provide(program), Effect.scoped))

it.live("shows the queue by tool, and pauses and resumes a tool", () =>
  Effect.gen(function*() {
    const { act, below, group } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const admin = yield* TaskAdmin
    yield* submit(task("brew"))
    yield* submit({ ...task("brew"), pool: "ovens" })
    yield* submit(task("ask"))
    const [asks, brews] = yield* below("queue")
    expect(asks).toMatchObject({ label: "ask", state: "queued", summary: "1 ready", details: { pool: "default" } })
    expect(brews).toMatchObject({
      id: "queue/\"brew\"",
      kind: "queue",
      label: "brew",
      state: "queued",
      summary: "2 ready",
      details: { ready: 2, waiting: 0, running: 0, pool: "default, ovens" },
      actions: [
        { name: "pause", label: "Pause", confirm: expect.stringContaining("until it is resumed") },
        { name: "cancelAll", label: "Cancel all", confirm: expect.stringContaining("undone") },
        { name: "wakeAll", label: "Check all now" },
        { name: "rerunAll", label: "Run all again", confirm: expect.stringContaining("new idempotency keys") }
      ]
    })
    expect(Date.now() - brews!.since!).toBeLessThan(10_000)
    expect(yield* below(brews!.id)).toMatchObject([
      { label: "pool default", summary: "1 ready" },
      { label: "pool ovens", summary: "1 ready" }
    ])
    expect(yield* group("queue")).toMatchObject({ label: "Queue", state: "queued", summary: "3 ready" })

    expect(yield* act(brews!.id, "pause")).toEqual({ isDone: true, message: "brew is paused" })
    expect(yield* act(brews!.id, "pause")).toEqual({ isDone: false, message: "brew is paused already" })
    const [, paused] = yield* below("queue")
    expect(paused).toMatchObject({
      state: "paused",
      actions: [{ name: "resume", label: "Resume" }, {}, {}, {}],
      details: { "paused since": expect.stringMatching(/^2/) }
    })
    yield* runTasks(handlers)
    yield* eventually(below("queue"), ([asks]) => asks!.state === "waiting")
    expect((yield* below("queue"))[1]).toMatchObject({ summary: "2 ready" })
    expect(yield* act(brews!.id, "resume")).toEqual({ isDone: true, message: "brew runs again" })
    expect(yield* act(brews!.id, "resume")).toEqual({ isDone: false, message: "brew is not paused" })
    yield* eventually(below("queue"), ([, brews]) => brews!.summary === "2 waiting")
    // A tool that has nothing in the queue keeps its row.
    for (const { state } of yield* admin.list({ tool: "ask" })) yield* admin.cancel(state.id)
    const [idle] = yield* eventually(below("queue"), ([asks]) => asks?.state === "idle")
    expect(idle).toMatchObject({ label: "ask", actions: [{ name: "pause" }, { name: "rerunAll" }] })
    expect(idle!.summary).toBeUndefined()
    expect(yield* below("queue", 1)).toHaveLength(1)
    expect(yield* group("queue", 1)).toMatchObject({ more: { total: 2 } })
  }).pipe(Effect.provide(program), Effect.scoped))

const failure = { _tag: "Result", result: { content: [], isError: true } } as const

it.live("changes all tasks of a group or of a tool, and tells how many", () =>
  Effect.gen(function*() {
    const { act, below, group } = yield* open
    const { runTasks, submit } = yield* TaskEngine
    const admin = yield* TaskAdmin
    yield* runTasks((tool) => tool === "fail" ? { durable: true, run: () => Effect.succeed(failure) } : handlers(tool))
    const actionsOf = (actions: ReadonlyArray<{ readonly name: string }> = []) => actions.map(({ name }) => name)
    for (const tool of ["brew", "brew", "ask", "fail"]) yield* submit(task(tool))
    yield* eventually(admin.list({ hasFailed: true }), (failed) => failed.length === 1)
    yield* eventually(below("tasks", 10), (rows) => rows.length === 3 && rows.every(({ state }) => state === "waiting"))
    expect(actionsOf((yield* group("tasks"))!.actions)).toEqual(["cancelAll", "wakeAll"])
    const [ask, brew, fail] = yield* below("queue", 10)
    expect([ask, brew, fail].map((row) => actionsOf(row?.actions))).toEqual([
      ["pause", "cancelAll", "wakeAll", "rerunAll"],
      ["pause", "cancelAll", "wakeAll", "rerunAll"],
      ["pause", "rerunAll"]
    ])
    expect(yield* act(brew!.id, "wakeAll")).toEqual({ isDone: true, message: "2 tasks are checked now" })
    expect(yield* act(brew!.id, "cancelAll", "ada")).toEqual({ isDone: true, message: "2 tasks are cancelled" })
    const cancelled = yield* admin.list({ status: ["cancelled"] })
    expect(cancelled.map(({ state }) => state.statusMessage)).toEqual(Array(2).fill("Cancelled by an operator"))
    expect((yield* admin.inspect(cancelled[0]!.state.id))!.actions).toMatchObject([{ action: "wake" }, {
      action: "cancel",
      by: "ada"
    }])
    expect(yield* act("tasks", "cancelAll")).toEqual({ isDone: true, message: "1 task is cancelled" })
    expect(yield* act("tasks", "cancelAll")).toEqual({ isDone: false, message: "0 tasks are cancelled" })
    expect(actionsOf((yield* group("failed"))!.actions)).toEqual(["rerunAll"])
    expect(yield* act("failed", "rerunAll")).toEqual({ isDone: true, message: "1 task is run again" })
    yield* eventually(admin.list({ hasFailed: true }), (failed) => failed.length === 2)
    expect(yield* act("failed", "rerunAll")).toEqual({
      isDone: true,
      message: "1 task is run again; 1 is left out"
    })
    for (
      const [id, action] of [["tasks", "pause"], ["workers", "cancelAll"], ["queue", "cancelAll"], [ask!.id, "burn"]]
    ) {
      expect(yield* act(id!, action!)).toBeUndefined()
    }
  }).pipe(Effect.provide(program), Effect.scoped))

/** A service of an operator that counts what is read of it. */
const counting = (change: Partial<TaskAdmin["Service"]> = {}) => {
  const reads = { list: 0, statistics: 0, tools: 0, workers: 0 }
  const count = <A>(name: keyof typeof reads, value: A) => Effect.sync(() => (reads[name]++, value))
  const tool = {
    tool: "bake",
    concurrency: 4,
    rate: { limit: 10, periodMs: 60_000 },
    perKey: { concurrency: 2, rate: { limit: 3, periodMs: 1000 } },
    pausedAt: undefined,
    running: 0
  }
  const admin = {
    list: () => count("list", []),
    statistics: count("statistics", { tasks: [], queue: [] }),
    tools: count("tools", [tool]),
    workers: count("workers", []),
    pause: () => Effect.succeed(true),
    ...change
  } as unknown as TaskAdmin["Service"]
  const layer = ConsoleTasks.layer.pipe(
    Layer.provideMerge(ConsoleSources.layer),
    Layer.provide(Layer.succeed(TaskAdmin, admin))
  )
  return { layer, reads }
}

it.effect("reads the numbers every 5 seconds at most, and after an action", () => {
  const { layer, reads } = counting()
  return Effect.gen(function*() {
    const { act, below } = yield* open
    const once = { statistics: 1, tools: 1, workers: 1 }
    for (let second = 0; second < 5; second++) {
      expect(yield* below("queue")).toMatchObject([
        { label: "bake", details: { concurrency: 4, rate: "10 per 1m", "each key": "2 at once, 3 per 1s" } }
      ])
      yield* TestClock.adjust("1 second")
    }
    expect(reads).toEqual({ ...once, list: 7 })
    yield* below("queue")
    expect(reads).toEqual({ statistics: 2, tools: 2, workers: 2, list: 10 })
    yield* act("queue/\"bake\"", "pause")
    expect(reads.statistics).toBe(2)
    yield* below("queue")
    expect(reads.statistics).toBe(3)
    // Without viewers.
    yield* TestClock.adjust("1 hour")
    expect(reads.statistics).toBe(3)
  }).pipe(Effect.provide(layer))
})

it.effect("does not show numbers from before an action that ends while they are read", () => {
  const { layer, reads } = counting({
    workers: Effect.as(Effect.sleep("1 second"), [])
  })
  return Effect.gen(function*() {
    const { act, below } = yield* open
    const look = (limit: number) => Effect.forkChild(below("queue", limit), { startImmediately: true })
    yield* look(100)
    yield* TestClock.adjust("1 second")
    // It asks for more failed tasks, and so it reads again.
    yield* look(200)
    expect((yield* act("queue/\"bake\"", "pause"))!.isDone).toBe(true)
    yield* TestClock.adjust("1 second")
    expect(reads.statistics).toBe(2)
    yield* look(200)
    expect(reads.statistics).toBe(3)
  }).pipe(Effect.provide(layer))
})

it.effect("shows the workers of a database, and those whose lease is over", () => {
  const worker = (id: string, isLost: boolean, running: number): WorkerState => ({
    id: `${id}-0000-0000`,
    pools: ["default", "ovens"],
    host: "kitchen",
    pid: 7,
    application: "bakery 1.2.3",
    startedAt: 1_000,
    leaseEndsAt: 90_000,
    isLost,
    running
  })
  const workers = Effect.succeed([
    worker("aaaaaaaa", false, 3),
    worker("bbbbbbbb", false, 0),
    worker("cccccccc", true, 1)
  ])
  return Effect.gen(function*() {
    yield* TestClock.adjust("1 minute")
    const { below, group } = yield* open
    expect(yield* group("workers")).toMatchObject({ label: "Workers", state: "running", summary: "1 lost" })
    expect(yield* below("workers")).toMatchObject([
      {
        kind: "worker",
        label: "kitchen aaaaaaaa",
        state: "running",
        summary: "3 running in default, ovens",
        since: 1_000,
        details: { host: "kitchen", running: 3, "lease ends": "1970-01-01T00:01:30.000Z" }
      },
      { label: "kitchen bbbbbbbb", state: "idle", summary: "takes tasks of default, ovens" },
      {
        state: "lost",
        waitsFor: "another worker to take over its tasks",
        details: { "lease ended": expect.any(String) }
      }
    ])
  }).pipe(Effect.provide(counting({ workers }).layer))
})
