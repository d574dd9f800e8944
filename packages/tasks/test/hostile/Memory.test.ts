/** The memory that remains of many tasks and of the requests that created them. */
import { expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Middleware from "@skein/server/Middleware"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { durable, get, pass, plain, settled, submit, work } from "../engine/kit.ts"
import * as kit from "../protocol/kit.ts"
import * as tools from "../protocol/tools.ts"

it.effect("2025-11-25 · notifying a session about its tasks does not retain the request, which may be large", () =>
  Effect.gen(function*() {
    const { gc } = globalThis
    expect(gc, "run with --expose-gc").toBeTypeOf("function")
    const requests: Array<WeakRef<object>> = []
    const remembered = Middleware.layer((next) => (taskRequest) => {
      requests.push(new WeakRef(taskRequest))
      return next(taskRequest)
    })
    const { connect } = yield* kit.server([tools.gated().definition, remembered])
    const client = yield* connect({ revision: "2025-11-25" })
    for (let n = 0; n < 20; n++) {
      const { task } = yield* client.result("tools/call", { name: "bake", arguments: {}, task: {} })
      expect(task.status).toBe("working")
    }
    yield* settled
    gc!()
    yield* settled
    gc!()
    // Values on the current stack may still be reachable.
    expect(requests.filter((request) => request.deref() !== undefined).length).toBeLessThan(5)
  }))

it.effect("expired tasks of all kinds leave no fiber, no row and no message", () => {
  let alive = 0
  const metrics: Metric.FiberRuntimeMetricsService = {
    recordFiberStart: () => void alive++,
    recordFiberEnd: () => void alive--
  }
  const tables = [
    "skein_tasks",
    "skein_task_questions",
    "skein_task_queue",
    "skein_task_log"
  ]
  return Effect.gen(function*() {
    const asked = Effect.flatMap(
      McpRequest,
      (taskRequest) =>
        Effect.as(Effect.orDie(taskRequest.request("elicitation/create", {}, { key: "k", timeout: "2 minutes" })), "")
    )
    yield* work({
      quick: plain(() => Effect.succeed("")),
      stuck: plain(() => Effect.never),
      steps: durable(() => Effect.as(Step.run("a", {}, () => Effect.void), "")),
      sleeps: durable(() => Effect.as(Step.sleep("a", "1 minute"), "")),
      asks: durable(() => asked),
      plainly: plain(() => asked),
      dies: durable(() => Effect.die("dead")),
      fails: durable(() => Effect.fail({ message: "no" })),
      undoes: durable(() =>
        Effect.andThen(Step.compensate(() => Step.run("undo", {}, () => Effect.void)), Effect.never)
      )
    })
    const { answer, cancel, watch } = yield* TaskEngine
    const names = ["quick", "stuck", "steps", "sleeps", "asks", "plainly", "dies", "fails", "undoes"]
    const some = (count: number) =>
      Effect.gen(function*() {
        for (let n = 0; n < count; n++) {
          const { id } = yield* submit(names[n % names.length]!, { ttlMs: 90_000, owner: `owner ${n}` })
          if (n % 4 === 0) yield* Effect.forkChild(Stream.runDrain(watch(id)))
          yield* settled
          if (n % 5 === 0) yield* cancel(id)
          if (n % 3 === 0) yield* answer(id, "k", {})
        }
        yield* pass(600, 20)
      })
    yield* some(names.length)
    const before = alive
    yield* some(20 * names.length)
    expect(alive - before).toBeLessThanOrEqual(0)
    const sql = yield* SqlClient
    for (const table of tables) {
      expect([table, ...yield* sql`SELECT * FROM ${sql(table)}`.withoutTransform]).toEqual([table])
    }
    expect(yield* sql`SELECT name, live, retained FROM skein_task_counts`).toEqual([{ name: "", live: 0, retained: 0 }])
  }).pipe(
    Effect.provide(Layer.provideMerge(MemoryTasks.layer({ pollInterval: "10 seconds" }), Logger.layer([]))),
    Effect.provideService(Metric.FiberRuntimeMetrics, metrics)
  )
}, 60_000)

it.effect("keeps the first 4,096 characters of a status message of 10 MB", () =>
  Effect.gen(function*() {
    const yarn = "🧶".repeat(5_000_000)
    yield* work({
      talks: durable(() =>
        Effect.gen(function*() {
          const taskRequest = yield* McpRequest
          const { setStatusMessage } = yield* CurrentTask
          yield* setStatusMessage(`x${yarn}`)
          yield* Step.run("in a step", {}, () => setStatusMessage(yarn))
          yield* taskRequest.progress({ progress: 1, message: yarn })
          return ""
        })
      ),
      refuses: {
        durable: false,
        run: () => Effect.succeed({ _tag: "Error", error: { code: 1, message: `x${yarn}` } } as const)
      }
    })
    const { id } = yield* submit("talks")
    yield* pass(2)
    const kept = `${"🧶".repeat(2048)}…`
    expect(yield* get(id)).toMatchObject({ statusMessage: kept, progress: { message: kept } })
    const refused = yield* submit("refuses")
    yield* pass(2)
    const state = yield* get(refused.id)
    expect(state?.statusMessage).toBe(`x${"🧶".repeat(2047)}…`)
    // The error itself is complete.
    expect(state?.outcome?._tag === "Error" && state.outcome.error.message.length).toBe(yarn.length + 1)
  }).pipe(Effect.provide(Layer.provideMerge(MemoryTasks.layer(), Logger.layer([])))))
