/** Tasks that own code starts by their definition. */
import { describe, expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Tool from "@skein/server/Tool"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as kit from "./kit.ts"

const Day = Schema.DateFromString

const report = Task.make("report", {
  input: { day: Day, rows: Schema.Int.check(Schema.isGreaterThan(0)) },
  output: { next: Day, rows: Schema.Int },
  ttl: "2 days",
  pool: "default",
  priority: 3
})

const later = (day: Date) => new Date(day.getTime() + 86_400_000)

const reporting = Task.layer(
  report,
  ({ day, rows }) =>
    rows === 13
      ? Effect.fail({ message: "Thirteen rows" })
      : Effect.as(Step.sleep("a minute", "1 minute"), { next: later(day), rows })
)

const greet = Task.make("greet", { owner: ({ principal }) => `user:${principal?.id}` })
const greeting = Task.layer(greet, () => Effect.map(McpRequest, ({ caller }) => `Hello ${caller.principal?.id}`))

const day = new Date("2026-11-30T00:00:00.000Z")

/** A server of these tasks, and its engine. */
const engine = (definitions: Parameters<typeof kit.server>[0], options?: Tasks.Options) =>
  Effect.map(
    kit.server(definitions, options, Layer.orDie(MemoryTasks.layer())),
    ({ context }) => Context.pick(TaskEngine)(context)
  )

const rows = (engine: Context.Context<TaskEngine>) =>
  Effect.provideContext(Effect.flatMap(TaskEngine, ({ list }) => list([null], { limit: 10 })), engine)

describe("Task.submit", () => {
  it.effect("encodes the arguments, returns the decoded value, and applies the options of the task", () =>
    Effect.gen(function*() {
      const context = yield* engine([reporting, greeting], { maxTtl: "1 day", limits: { perTool: { live: 5 } } })
      const handle = yield* Effect.provideContext(Task.submit(report, { day, rows: 3 }), context)
      expect(yield* handle.status).toMatchObject({ status: "working", ttlMs: 86_400_000, owner: null })
      const fiber = yield* Effect.forkChild(handle.await, { startImmediately: true })
      yield* Effect.repeat(TestClock.adjust("10 seconds"), { until: () => fiber.pollUnsafe() !== undefined })
      expect(yield* Fiber.join(fiber)).toEqual({ next: later(day), rows: 3 })
      expect(yield* handle.await).toEqual({ next: later(day), rows: 3 })
      expect(yield* handle.cancel()).toBe(false)
      const hello = yield* Effect.provideContext(Task.submit(greet, {}, { principal: { id: "ada" } }), context)
      expect(yield* hello.await).toBe("Hello ada")
      expect((yield* hello.status)?.owner).toBe("user:ada")
    }).pipe(Effect.scoped))

  it.effect("fails before anything is stored for invalid arguments and at a limit", () =>
    Effect.gen(function*() {
      const context = yield* engine([reporting], { limits: { perTool: { live: 1 } } })
      const submit = (rows: number) => Effect.flip(Effect.provideContext(Task.submit(report, { day, rows }), context))
      expect((yield* submit(-1)).reason).toMatchObject({
        _tag: "InvalidArguments",
        message: expect.stringContaining("the arguments of the task \"report\" are invalid: ")
      })
      expect(yield* rows(context)).toEqual([])
      yield* Effect.provideContext(Task.submit(report, { day, rows: 1 }), context)
      expect((yield* submit(2)).reason._tag).toBe("LimitExceeded")
      expect(yield* rows(context)).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.effect("returns the task that has the key", () =>
    Effect.gen(function*() {
      const context = yield* engine([reporting])
      const submit = (rows: number) =>
        Effect.provideContext(Task.submit(report, { day, rows }, { key: "monday" }), context)
      const { id } = yield* submit(1)
      expect((yield* submit(2)).id).toBe(id)
    }).pipe(Effect.scoped))

  it.effect("fails with the failure, the cancellation or the expiry of the task", () =>
    Effect.gen(function*() {
      const brief = Task.make("brief", { ttl: "20 seconds" })
      const context = yield* engine([reporting, Task.layer(brief, () => Step.sleep("a day", "1 day"))])
      const submit = (rows: number) => Effect.provideContext(Task.submit(report, { day, rows }), context)
      const failed = yield* submit(13)
      expect((yield* Effect.flip(failed.await)).reason).toMatchObject({
        _tag: "Failed",
        message: "Thirteen rows",
        outcome: { _tag: "Result", result: { isError: true } }
      })
      const cancelled = yield* submit(1)
      const waiting = yield* Effect.forkChild(Effect.exit(cancelled.await), { startImmediately: true })
      expect(yield* cancelled.cancel("Closed today")).toBe(true)
      const exit = yield* Fiber.join(waiting)
      expect(Exit.isFailure(exit) && exit.cause.reasons[0]).toMatchObject({
        error: { reason: { _tag: "Cancelled", message: "Closed today" } }
      })
      const short = yield* Effect.provideContext(Task.submit(brief, {}), context)
      const expiring = yield* Effect.forkChild(Effect.flip(short.await), { startImmediately: true })
      yield* Effect.repeat(TestClock.adjust("10 seconds"), { until: () => expiring.pollUnsafe() !== undefined })
      expect((yield* Fiber.join(expiring)).reason._tag).toBe("Expired")
      expect(yield* short.status).toBeUndefined()
    }).pipe(Effect.scoped))

  it.effect("prepares a task as in a call, and reports a preparation that fails", () =>
    Effect.gen(function*() {
      const order = Task.make("order", { input: { cakes: Schema.Int } })
      const ordering = Task.layerPrepared(
        order,
        Schema.String,
        ({ cakes }) =>
          Effect.flatMap(McpRequest, ({ caller }) =>
            cakes > 9 ? Effect.fail({ message: "Too many" }) : Effect.succeed(`account of ${caller.principal?.id}`)),
        ({ cakes }, account) =>
          Effect.succeed(`${cakes} for the ${account}`)
      )
      const context = yield* engine([ordering])
      const submit = (cakes: number) =>
        Effect.provideContext(Task.submit(order, { cakes }, { principal: { id: "ada" } }), context)
      expect(yield* (yield* submit(2)).await).toBe("2 for the account of ada")
      expect((yield* Effect.flip(submit(10))).reason).toMatchObject({
        _tag: "NotStarted",
        message: "the task \"order\" was not started: Too many"
      })
    }).pipe(Effect.scoped))

  it.effect("sends the JSON of arguments to a schema that cannot encode, which validates it", () =>
    Effect.gen(function*() {
      const schema = JsonSchema.make<{ readonly n: number }>({
        type: "object",
        properties: { n: { type: "number", minimum: 1 } },
        required: ["n"]
      })
      const count = Task.make("count", { input: schema, output: schema })
      const context = yield* engine([Task.layer(count, ({ n }) => Effect.succeed({ n: n + 1 }))])
      const submit = (n: number) => Effect.provideContext(Task.submit(count, { n }), context)
      expect(yield* (yield* submit(1)).await).toEqual({ n: 2 })
      expect((yield* Effect.flip(submit(0))).reason._tag).toBe("InvalidArguments")
    }).pipe(Effect.scoped))

  it.effect("uses the options of the definition in a process without its server", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(MemoryTasks.layer())
      const plain = Tool.make("plain", { metadata: Task.policy({ ttl: "1 hour", pool: "slow" }) })
      const { status } = yield* Effect.provideContext(Task.submit(plain, {}), context)
      expect(yield* status).toMatchObject({ tool: "plain", pool: "slow", ttlMs: 3_600_000, status: "working" })
    }).pipe(Effect.scoped))
})
