/** Tasks that begin again after they have failed. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

type Failure = "message" | "error" | "defect"

const fail = (failure: Failure, attempt: number) => {
  switch (failure) {
    case "message":
      return Effect.fail({ message: `no oven in attempt ${attempt}` })
    case "error":
      return Effect.fail(new McpError.McpError({ reason: "InternalError", message: "no oven" }))
    case "defect":
      return Effect.die(new Error("no oven"))
  }
}

/** A task whose first attempts fail, and what it does. */
const baking = (options: Task.ToolPolicyOptions, failures: ReadonlyArray<Failure>) => {
  const seen = { keys: new Set<string>(), starts: new Array<number>(), undone: 0 }
  const bake = Task.make("bake", options)
  const layer = Task.layer(bake, () =>
    Effect.gen(function*() {
      const attempt = yield* Step.run("oven", { success: Schema.Int }, (key) =>
        Effect.gen(function*() {
          seen.keys.add(key)
          seen.starts.push(yield* Clock.currentTimeMillis)
          return seen.starts.length
        }))
      yield* Step.compensate(() => Effect.sync(() => void seen.undone++))
      yield* Step.sleep("rest", "10 seconds")
      const failure = failures[attempt - 1]
      return failure === undefined ? `baked in attempt ${attempt}` : yield* fail(failure, attempt)
    }))
  return { bake, seen, server: McpServer.layer({ name: "bakery", version: "1.0.0" }, layer, Tasks.layer()) }
}

type Bake = ReturnType<typeof baking>["bake"]

const start = (test: TaskTest.TaskTest<TaskTest.Services, unknown>, bake: Bake) => test.run(Task.submit(bake, {}))

describe("retry of a task", () => {
  for (const replayAfterEachEvent of [false, true]) {
    it.live(
      `begins again after each kind of failure, compensated, with other keys of its steps${
        replayAfterEachEvent ? ", in a new run after each event" : ""
      }`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { bake, seen, server } = baking(
            { retry: { times: 3, initialDelay: "1 minute" } },
            ["message", "error", "defect"]
          )
          const test = yield* TaskTest.make(server, { replayAfterEachEvent })
          const { await: value, id } = yield* start(test, bake)
          const messages: Array<string | undefined> = []
          const status = Effect.flatMap(TaskEngine, ({ get }) => get(id))
          yield* test.run(Effect.repeat(
            Effect.andThen(
              Effect.sleep("5 seconds"),
              Effect.map(status, (state) => {
                if (messages.at(-1) !== state?.statusMessage) messages.push(state?.statusMessage)
                return state?.status
              })
            ),
            { until: (status) => status !== "working" }
          ))
          expect(yield* test.run(value)).toBe("baked in attempt 4")
          expect(messages.map((message) => message?.replace(/[0-9a-f-]{36}/, "…"))).toEqual([
            "Attempt 1 of 4 has failed: no oven in attempt 1",
            "Attempt 2 of 4 has failed: no oven",
            expect.stringMatching(/^Attempt 3 of 4 has failed: .*…/) as string
          ])
          expect(seen.undone).toBe(3)
          expect(seen.keys.size).toBe(4)
          // Ten seconds of each attempt, and pauses of one, two and four minutes.
          expect(seen.starts.map((at) => Math.round((at - seen.starts[0]!) / 10_000))).toEqual([0, 7, 20, 45])
          const inspected = yield* test.run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id)))
          expect(inspected!.log[0]).toMatchObject({ kind: "continued", attempt: 4 })
        }))
    )
  }

  it.live("fails with the failure of the last attempt, and is listed as failed", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bake, seen, server } = baking({ retry: { times: 1 } }, ["message", "message", "message"])
      const test = yield* TaskTest.make(server)
      const { await: value, id } = yield* start(test, bake)
      yield* test.untilIdle
      expect((yield* Effect.flip(test.run(value))).reason).toMatchObject({
        _tag: "Failed",
        message: "no oven in attempt 2"
      })
      expect(seen).toMatchObject({ undone: 2, starts: { length: 2 } })
      const failed = yield* test.run(Effect.flatMap(TaskAdmin, ({ list }) => list({ hasFailed: true })))
      expect(failed.map(({ state }) => state.id)).toEqual([id])
    })))

  it.live("does not retry what while refuses, a declined question, or a plain tool", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bake, seen, server } = baking(
        { retry: { times: 5, while: (outcome) => outcome._tag === "Result" } },
        ["message", "error"]
      )
      const test = yield* TaskTest.make(server)
      const { await: value } = yield* start(test, bake)
      yield* test.untilIdle
      expect((yield* Effect.flip(test.run(value))).reason).toMatchObject({ _tag: "Failed", message: "no oven" })
      expect(seen.starts).toHaveLength(2)

      let asked = 0
      const order = Task.make("order", { retry: { times: 5 }, inputFrom: "anyone" })
      const ordering = Task.layer(order, () =>
        Effect.andThen(
          Effect.sync(() => void asked++),
          Effect.as(Elicitation.accepted(Elicitation.form("Sure?", { sure: Schema.Boolean }, { key: "sure" })), "sold")
        ))
      const shop = yield* TaskTest.make(
        McpServer.layer({ name: "shop", version: "1.0.0" }, ordering, Tasks.layer())
      )
      const handle = yield* shop.run(Task.submit(order, {}))
      yield* shop.untilIdle
      const before = asked
      yield* shop.run(Effect.flatMap(TaskEngine, ({ answer }) => answer(handle.id, "sure", { action: "decline" })))
      yield* shop.untilIdle
      expect(yield* shop.run(handle.status)).toMatchObject({ status: "completed", isError: true })
      expect(asked).toBeLessThanOrEqual(before + 1)
    })))

  it.live("keeps its attempts over a restart, and ends when it is cancelled in a pause", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bake, seen, server } = baking({ retry: { times: 2, initialDelay: "1 hour" } }, [
        "message",
        "message",
        "message"
      ])
      const test = yield* TaskTest.make(server)
      const { id } = yield* start(test, bake)
      const status = Effect.flatMap(TaskEngine, ({ get }) => get(id))
      for (let attempt = 1; attempt <= 3; attempt++) {
        yield* test.run(Effect.sleep("30 minutes"))
        yield* test.restart
        expect(seen.starts).toHaveLength(attempt)
        yield* test.run(Effect.sleep(attempt === 1 ? "45 minutes" : "2 hours"))
      }
      expect(yield* test.run(status)).toMatchObject({
        status: "completed",
        isError: true,
        statusMessage: "no oven in attempt 3"
      })

      seen.starts.length = 0
      const second = yield* start(test, bake)
      yield* test.run(Effect.sleep("30 minutes"))
      expect(seen.starts).toHaveLength(1)
      expect(yield* test.run(second.cancel("Closed"))).toBe(true)
      yield* test.untilIdle
      yield* test.run(Effect.sleep("1 day"))
      expect(seen.starts).toHaveLength(1)
    })))

  it.live("a server with an invalid retry does not start", () =>
    Effect.scoped(Effect.gen(function*() {
      const exit = yield* Effect.exit(TaskTest.make(baking({ retry: { times: -1 } }, []).server))
      expect(String(exit)).toContain("retry of bake: times is -1: it must be a whole number, or Infinity")
    })))
})
