/**
 * All Skein processes of the tasks benchmark: a server with an engine, a worker, a server that runs no tasks, and a
 * client.
 */
import * as Client from "@skein/client/Client"
import * as NodeClient from "@skein/client/NodeHttp"
import type { Transport } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import { McpServer } from "@skein/server/McpServer"
import * as NodeServer from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { isFinal, type NewTask, type State } from "@skein/tasks/TaskState"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { MinimumLogLevel } from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { burst, type Execute, runCommandLoop } from "../commandLoop.ts"
import { server, sleeperCount } from "../tools.ts"
import { clock, type Command, done, type Through } from "../commands.ts"

type Of<Do extends Command["do"]> = Extract<Command, { readonly do: Do }>

const scope = Scope.makeUnsafe()
const run = <A>(effect: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.provideService(Scope.provide(effect, scope), MinimumLogLevel, "Warn"))

const clients = new Map<Through, Client.Client>()
let engine: TaskEngine["Service"]

const engineOf = ({ at, store, work }: Of<"open">) => {
  switch (store) {
    case "memory":
      return MemoryTasks.layer()
    case "sqlite":
      return SqliteTasks.layer({ filename: at })
    case "postgres":
      return PostgresTasks.layer({ url: at, runTasks: work })
  }
}

const connect = (through: Through, transport: Transport) =>
  Effect.gen(function*() {
    const revisions = [through === "inMemoryLegacy" ? "2025-11-25" : "2026-07-28"] as const
    const client = yield* Client.make(transport, { info: { name: "bench", version: "1.0.0" }, revisions })
    yield* client.listToolsPage()
    clients.set(through, client)
  })

const open = (command: Of<"open">) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(Layer.provideMerge(server, engineOf(command)))
    engine = Context.get(context, TaskEngine)
    const { serve } = Context.get(context, McpServer)
    yield* connect("inMemory", InMemoryTransport.transport(serve))
    yield* connect("inMemoryLegacy", InMemoryTransport.transport(serve))
    if (!command.listen) return undefined
    const listener = NodeServer.layer({ port: 0, limits: { maxStreams: 20_000 } })
    return Context.get(yield* Layer.build(Layer.provide(listener, Layer.succeedContext(context))), NodeServer.Server)
      .url
  })

const newTask = (tool: string, args: NewTask["args"] = {}, changes: Partial<NewTask> = {}): NewTask => ({
  tool,
  args,
  pool: "default",
  owner: null,
  caller: {
    revision: "2026-07-28",
    capabilities: { elicitation: { form: {} } },
    info: undefined,
    principal: undefined
  },
  ttlMs: 86_400_000,
  pollIntervalMs: 1_000,
  limits: { all: {}, client: {}, tool: {} },
  ...changes
})

const ended = ({ id }: State) => Stream.runLast(Stream.takeUntil(engine.watch(id), isFinal))

const checkResult = (tool: string, result: unknown) => {
  const text = (result as { readonly content?: ReadonlyArray<{ readonly text?: unknown }> }).content?.[0]?.text
  return text === done ? Effect.void : Effect.die(new Error(`${tool} ended with ${JSON.stringify(result)}`))
}

const checkOutcome = (tool: string, state: Option.Option<State>) => {
  const outcome = Option.getOrUndefined(state)?.outcome
  return checkResult(tool, outcome?._tag === "Result" ? outcome.result : outcome)
}

/** Runs a task from its creation to its result directly with the engine, and checks the result. */
const engineTask = (task: NewTask): Effect.Effect<void, unknown> =>
  Effect.flatMap(Effect.flatMap(engine.submit(task), ended), (state) => checkOutcome(task.tool, state))

/** Runs a task from its creation to its result, and checks the result. */
const task = (through: Through, tool: string): Effect.Effect<void, unknown> =>
  through === "engine"
    ? Effect.suspend(() => engineTask(newTask(tool)))
    : Effect.flatMap(
      clients.get(through)!.callTool(tool, {}, { task: { augment: true } }),
      (result) => checkResult(tool, result)
    )

const runConcurrently = (count: number, one: Effect.Effect<void, unknown>): Effect.Effect<void, unknown> =>
  Effect.all(Array.from({ length: count }, () => one), { concurrency: "unbounded", discard: true })

const begin = ({ count, tool }: Of<"begin">) =>
  Effect.forEach(Array.from({ length: count }), () => engine.submit(newTask(tool)), {
    concurrency: 64,
    discard: true
  })

/** Starts tasks that sleep, and waits until they do: an engine creates tasks faster than it runs them. */
const sleep = ({ count }: Of<"sleep">) =>
  Effect.gen(function*() {
    const all = sleeperCount() + count
    yield* begin({ do: "begin", tool: "sleep", count })
    while (sleeperCount() < all) yield* Effect.sleep(10)
  })

/** Runs a task that asks questions, and answers each when it is open. */
const interview = (questions: number): Effect.Effect<void, unknown> =>
  Effect.gen(function*() {
    const { id } = yield* engine.submit(newTask("interview", { questions }))
    const answered = Stream.tap(engine.watch(id), (state) =>
      Effect.forEach(state.questions, ({ key }) =>
        engine.answer(id, key, { action: "accept", content: { answer: "yes" } })))
    const last = yield* Stream.runLast(Stream.takeUntil(answered, isFinal))
    yield* checkOutcome("interview", last)
  })

/** Milliseconds from the end of the last task until its expiry, in which those that still run can end. */
const expiryMargin = 5_000

/** Runs tasks that all expire at the same time, and returns their number. */
const runExpiring = ({ count, expireAt }: Of<"runExpiring">) =>
  Effect.gen(function*() {
    let tasks = 0
    const expiring = Effect.suspend(() => engineTask(newTask("one", {}, { ttlMs: expireAt - Date.now() })))
    const more: Effect.Effect<void, unknown> = Effect.suspend(() =>
      tasks < count && Date.now() < expireAt - expiryMargin
        ? (tasks++, Effect.flatMap(expiring, () => more))
        : Effect.void
    )
    yield* runConcurrently(64, more)
    if (Date.now() >= expireAt) return yield* Effect.die(new Error("the tasks ended after their expiry"))
    return tasks
  })

/** Waits until no task is stored. An expired task cannot be read, but counts as retained until it is deleted. */
const awaitDeletion = () => {
  const only = newTask("one", {}, { limits: { all: { retained: 1 }, client: {}, tool: {} } })
  const attempt: Effect.Effect<void, unknown> = Effect.catchReason(
    engine.submit(only),
    "TaskError",
    "LimitExceeded",
    () => Effect.flatMap(Effect.sleep(100), () => attempt)
  )
  return Effect.map(attempt, () => Date.now())
}

/** Follows tasks, and returns the latency of each tick in milliseconds. */
const follow = ({ interval, tasks, ticks }: Of<"follow">) =>
  Effect.gen(function*() {
    const latencies: Array<number> = []
    const one = Effect.gen(function*() {
      const started = yield* clients.get("http")!.startTask("ticks", { count: ticks, interval })
      if (started._tag !== "RemoteTask") return yield* Effect.die(new Error("ticks did not create a task"))
      yield* Stream.runForEach(started.states, ({ status, statusMessage }) =>
        Effect.sync(() => {
          if (status === "working" && statusMessage !== undefined) latencies.push(clock() - Number(statusMessage))
        }))
    })
    yield* runConcurrently(tasks, one)
    return latencies
  })

/** Keeps a number of `steps` tasks running: each one that ends is replaced. */
const runSteps = ({ stepDuration, tasks }: Of<"runSteps">) =>
  Effect.forkScoped(
    runConcurrently(tasks, Effect.forever(Effect.flatMap(engine.submit(newTask("steps", { stepDuration })), ended)))
  )

const execute: Execute = async (command) => {
  switch (command.do) {
    case "open":
      return run(open(command))
    case "connect":
      return run(connect("http", NodeClient.transport({ url: command.url })))
    case "burst": {
      const { inFlight, millis, through, tool } = command
      const one = task(through, tool)
      return burst(millis, (next) =>
        run(runConcurrently(
          inFlight,
          Effect.suspend(function more(): Effect.Effect<void, unknown> {
            return next() ? Effect.flatMap(one, more) : Effect.void
          })
        )))
    }
    case "sleep":
      return run(sleep(command))
    case "interview":
      return run(runConcurrently(command.tasks, interview(command.questions)))
    case "runExpiring":
      return run(runExpiring(command))
    case "awaitDeletion":
      return run(awaitDeletion())
    case "begin":
      return run(begin(command))
    case "follow":
      return run(follow(command))
    case "runSteps":
      return void await run(runSteps(command))
    case "close":
      return Effect.runPromise(Scope.close(scope, Exit.void))
    case "cpu":
    case "memory":
      return undefined
  }
}

runCommandLoop(execute)
