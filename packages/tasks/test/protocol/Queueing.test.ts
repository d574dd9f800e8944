/** The options of a task that decide when and how often it runs, in calls of clients and in own code. */
import { describe, expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as http from "../../../server/test/http/kit.ts"
import * as kit from "./kit.ts"

/** A task that works for ten seconds, and the inputs of its runs in their order. */
const working = (options: Task.ToolPolicyOptions) => {
  const runs: Array<number> = []
  const definition = Task.layer(
    Task.make("work", { ...options, input: { job: Schema.Int } }),
    ({ job }) =>
      Step.run("work", {}, () => Effect.andThen(Effect.sync(() => runs.push(job)), Effect.sleep("10 seconds"))).pipe(
        Effect.as(`job ${job}`)
      )
  )
  return { definition, runs }
}

const serve = (definition: Parameters<typeof kit.server>[0][number]) =>
  kit.server([definition], {}, Layer.orDie(MemoryTasks.layer()))

const principal = (id: string) => ({ principal: { id } })

/** Lets time pass, a second at a time. A server waits at its end for the steps that run. */
const pass = (seconds: number) =>
  Effect.forEach(Array.from({ length: seconds }), () => Effect.andThen(TestClock.adjust("1 second"), kit.settle), {
    discard: true
  })

const jobOf = (value: unknown): number => (value as JsonObject)["job"] as number

describe("options of a task", () => {
  it.effect("callers take turns, and each has one task that runs", () =>
    Effect.gen(function*() {
      const { definition, runs } = working({
        queueKey: ({ caller }) => caller.principal?.id ?? "",
        perKey: { concurrency: 1 },
        priority: ({ args }) => jobOf(args) === 3 ? 1 : 0
      })
      const { connect } = yield* serve(definition)
      const ada = yield* connect(principal("ada"))
      const bob = yield* connect(principal("bob"))
      for (const job of [1, 2, 3]) yield* kit.begin(ada, "work", { job })
      yield* kit.begin(bob, "work", { job: 4 })
      yield* pass(2)
      expect(runs).toEqual([1, 4])
      yield* pass(30)
      expect(runs).toEqual([1, 4, 3, 2])
    }))

  it.effect("a singleton rejects a call, or returns the task that has not ended to its owner", () =>
    Effect.gen(function*() {
      const region = ({ args }: Task.TaskCall) => String(jobOf(args) % 2)
      const { connect } = yield* serve(working({ singleton: { key: region } }).definition)
      const ada = yield* connect(principal("ada"))
      yield* kit.begin(ada, "work", { job: 1 })
      const { error } = yield* ada.request("tools/call", { name: "work", arguments: { job: 3 } })
      expect(error).toEqual({
        code: -32603,
        message: "Another task of this tool has not ended: the call was not started. Try again after its end"
      })
      yield* kit.begin(ada, "work", { job: 2 })
      yield* pass(11)
      yield* kit.begin(ada, "work", { job: 3 })
      yield* pass(11)
    }))

  it.effect("useExisting returns the task to its owner, and to no one else", () =>
    Effect.gen(function*() {
      const { definition, runs } = working({ singleton: { onConflict: "useExisting" } })
      const { connect } = yield* serve(definition)
      const ada = yield* connect(principal("ada"))
      const bob = yield* connect(principal("bob"))
      const first = yield* kit.begin(ada, "work", { job: 1 })
      expect((yield* kit.begin(ada, "work", { job: 2 })).taskId).toBe(first.taskId)
      const { error } = yield* bob.request("tools/call", { name: "work", arguments: { job: 3 } })
      expect(error.code).toBe(-32603)
      yield* pass(11)
      expect(runs).toEqual([1])
    }))

  it.effect("cancelExisting replaces the task of anyone", () =>
    Effect.gen(function*() {
      const { connect } = yield* serve(working({ singleton: { onConflict: "cancelExisting" } }).definition)
      const ada = yield* connect(principal("ada"))
      const bob = yield* connect(principal("bob"))
      const { taskId } = yield* kit.begin(ada, "work", { job: 1 })
      yield* kit.begin(bob, "work", { job: 2 })
      expect(yield* kit.get(ada, taskId)).toMatchObject({
        status: "cancelled",
        statusMessage: "Another task has replaced this one"
      })
      yield* pass(11)
    }))

  it.effect("calls are debounced for each owner, and their arguments collected", () =>
    Effect.gen(function*() {
      const { definition, runs } = working({
        debounce: {
          period: "5 seconds",
          timeout: "8 seconds",
          merge: (stored, next) => ({ job: jobOf(stored) + jobOf(next) })
        }
      })
      const { connect } = yield* serve(definition)
      const ada = yield* connect(principal("ada"))
      const bob = yield* connect(principal("bob"))
      const first = yield* kit.begin(ada, "work", { job: 1 })
      yield* pass(4)
      expect((yield* kit.begin(ada, "work", { job: 2 })).taskId).toBe(first.taskId)
      yield* kit.begin(bob, "work", { job: 100 })
      yield* pass(3)
      expect((yield* kit.begin(ada, "work", { job: 4 })).taskId).toBe(first.taskId)
      expect(runs).toEqual([])
      yield* pass(3)
      expect(runs.toSorted((a, b) => a - b)).toEqual([7, 100])
      expect((yield* kit.begin(ada, "work", { job: 8 })).taskId).not.toBe(first.taskId)
      yield* pass(16)
    }))

  it.live("callers without an owner share no task over HTTP", () =>
    Effect.scoped(Effect.gen(function*() {
      const { definition } = working({ debounce: { period: "1 hour" } })
      const server = McpServer.layer({ name: "test", version: "1.0.0" }, definition, Tasks.layer())
      const at = yield* http.serve(Layer.provide(server, Layer.orDie(MemoryTasks.layer())))
      const call = http.modern("tools/call", { name: "work", arguments: { job: 1 } }, {
        headers: { "Mcp-Name": "work" },
        _meta: { "io.modelcontextprotocol/clientCapabilities": kit.tasks }
      })
      const { json: first } = yield* http.send(at, call)
      const { json: second } = yield* http.send(at, call)
      expect(first.result.resultType).toBe("task")
      expect(second.result.taskId).not.toBe(first.result.taskId)
    })))

  it.effect("a server with an invalid time does not start", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(serve(working({ debounce: { period: 0 } }).definition))
      expect(String(exit)).toContain("debounce.period of work is 0: it must be finite, and more than 0")
    }))
})

describe("Task.submit", () => {
  const submit = (job: number, options?: Task.SubmitOptions) =>
    Task.submit(Task.make("work", { input: { job: Schema.Int } }), { job }, options)

  it.effect("begins after a delay, at a time, or before others", () =>
    Effect.gen(function*() {
      const { definition, runs } = working({ concurrency: 1 })
      const { context } = yield* serve(definition)
      const engine = Context.pick(TaskEngine)(context)
      yield* Effect.provideContext(
        Effect.all([
          Effect.andThen(submit(1), kit.settle),
          submit(2),
          submit(3, { priority: 5 }),
          submit(4, { delay: "1 hour" }),
          submit(5, { startAt: new Date(7_200_000), delay: "1 second" })
        ]),
        engine
      )
      yield* pass(35)
      expect(runs).toEqual([1, 3, 2])
      yield* TestClock.adjust("1 hour")
      yield* pass(11)
      expect(runs).toEqual([1, 3, 2, 4])
      yield* TestClock.adjust("1 hour")
      yield* pass(11)
      expect(runs).toEqual([1, 3, 2, 4, 5])
    }))

  it.effect("fails for a value that is not a time, and stores nothing", () =>
    Effect.gen(function*() {
      const { context } = yield* serve(working({}).definition)
      const engine = Context.pick(TaskEngine)(context)
      for (
        const [options, message] of [
          [{ delay: Infinity }, "delay is not a time: Infinity"],
          [{ delay: "soon" as "1 hour" }, "delay is not a time: soon"],
          [{ startAt: "tomorrow" }, "startAt is not a time: tomorrow"]
        ] as const
      ) {
        expect((yield* Effect.flip(Effect.provideContext(submit(1, options), engine))).reason).toMatchObject({
          _tag: "InvalidOption",
          message
        })
      }
    }))

  it.effect("fails with NotStarted for a singleton, whatever its owner", () =>
    Effect.gen(function*() {
      const { context } = yield* serve(working({ singleton: { onConflict: "useExisting" } }).definition)
      const engine = Context.pick(TaskEngine)(context)
      const { id } = yield* Effect.provideContext(submit(1), engine)
      expect((yield* Effect.provideContext(submit(2), engine)).id).toBe(id)
      const refused = yield* Effect.flip(Effect.provideContext(submit(3, { owner: "bob" }), engine))
      expect(refused.reason._tag).toBe("NotStarted")
      yield* pass(11)
    }))
})
