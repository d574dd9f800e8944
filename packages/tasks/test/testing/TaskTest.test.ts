import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import * as Elicitation from "@skein/server/Elicitation"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

/** Many turns of the event loop. */
const turns = Effect.repeat(Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve))), {
  times: 100
})

/** The actions of the handlers. */
class Notes {
  readonly all: Array<string> = []
  readonly note = (text: string) => Effect.sync(() => void this.all.push(text))
  readonly step = (name: string) => Step.run(name, {}, () => this.note(name))
}

/** A server with one tool, which runs as a task. */
const serverOf = <E, R>(handler: Effect.Effect<string, E, R>) =>
  McpServer.layer(
    { name: "test", version: "1" },
    Task.layer(Task.make("work", { ttl: "30 days" }), () => Effect.orDie(handler) as never),
    Tasks.layer()
  )

const connect = Effect.flatMap(McpServer.McpServer, ({ serve }) => Client.make(InMemoryTransport.transport(serve)))

const startWith = (client: Effect.Success<typeof connect>) =>
  Effect.map(client.startTask("work", {}), (started) => started._tag === "RemoteTask" ? started.id : "")

const start = Effect.flatMap(connect, startWith)

const stateOf = (id: string) => Effect.flatMap(TaskEngine, (engine) => engine.get(id))

const textOf = (state: { readonly outcome?: unknown } | undefined) =>
  (state as any)?.outcome?.result?.content?.[0]?.text as string | undefined

describe("a task under test", () => {
  it.live("sleeps for days, and retries for hours, at the right times", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, note } = new Notes()
      const at = Effect.flatMap(Clock.currentTimeMillis, (now) => note(new Date(now).toISOString()))
      let attempts = 0
      const flaky = Effect.suspend(() => Effect.andThen(at, ++attempts < 4 ? Effect.fail("not yet") : Effect.void))
      const test = yield* TaskTest.make(
        serverOf(Effect.gen(function*() {
          yield* Step.run("begin", {}, () => at)
          yield* Step.sleep("rest", "3 days")
          yield* Step.run("retried", { error: Schema.String, retry: Schedule.spaced("6 hours") }, () => flaky)
          yield* Step.run("slow", {}, () => Effect.delay(at, "20 minutes"))
          return "done"
        })),
        { startAt: "2026-03-27T06:00:00Z" }
      )
      const id = yield* test.run(start)
      yield* test.untilIdle
      expect(textOf(yield* test.run(stateOf(id)))).toBe("done")
      expect(all.map((time) => time.slice(0, 16))).toEqual([
        "2026-03-27T06:00",
        "2026-03-30T06:00",
        "2026-03-30T12:00",
        "2026-03-30T18:00",
        "2026-03-31T00:00",
        "2026-03-31T00:20"
      ])
    })))

  it.live("is awaited by a client, which the time of the test does not hold up", () =>
    Effect.scoped(Effect.gen(function*() {
      const test = yield* TaskTest.make(serverOf(Effect.as(Step.sleep("rest", "5 minutes"), "rested")))
      const client = yield* test.run(connect)
      const { content } = yield* test.run(client.callTool("work", {}))
      expect(content).toMatchObject([{ text: "rested" }])
      expect(yield* test.run(Clock.currentTimeMillis)).toBeGreaterThanOrEqual(300_000)
    })))

  it.live("stands still between the effects of a test, and while a step waits for something outside", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, step } = new Notes()
      let release = (): void => {}
      const outside = new Promise<void>((resolve) => {
        release = resolve
      })
      const test = yield* TaskTest.make(serverOf(Effect.gen(function*() {
        yield* Step.run("outside", {}, () => Effect.promise(() => outside))
        yield* Step.sleep("rest", "1 hour")
        yield* step("after")
        return "done"
      })))
      const id = yield* test.run(start)
      yield* turns
      expect(yield* test.run(Clock.currentTimeMillis)).toBe(0)
      const idle = yield* Effect.forkScoped(test.untilIdle)
      yield* turns
      expect([idle.pollUnsafe(), all]).toEqual([undefined, []])
      release()
      yield* Fiber.join(idle)
      expect(all).toEqual(["after"])
      expect(textOf(yield* test.run(stateOf(id)))).toBe("done")
    })))

  it.live("waits for an answer of a user, and for its timeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, step } = new Notes()
      const ask = (name: string) =>
        Elicitation.form(name, { yes: Schema.Boolean }).pipe(
          Elicitation.accepted,
          Effect.as("answered"),
          Effect.raceFirst(Effect.as(Step.sleep(`limit of ${name}`, "2 days"), "late")),
          Effect.tap((outcome) => step(`${name}: ${outcome}`))
        )
      const test = yield* TaskTest.make(serverOf(Effect.gen(function*() {
        yield* ask("first")
        yield* Elicitation.accepted(Elicitation.form("second", { yes: Schema.Boolean }))
        return "done"
      })))
      const id = yield* test.run(Effect.flatMap(
        Effect.provide(connect, ClientElicitation.layer({ form: () => Effect.never })),
        startWith
      ))
      yield* test.untilIdle
      const open = yield* test.run(stateOf(id))
      expect([all, open?.status]).toEqual([["first: late"], "input_required"])
      yield* test.run(Effect.sleep("10 days"))
      const answered = yield* test.run(Effect.flatMap(TaskEngine, (engine) =>
        engine.answer(id, (open as any).questions[0].key, { action: "accept", content: { yes: true } })))
      expect(answered).toBe(true)
      yield* test.untilIdle
      expect(textOf(yield* test.run(stateOf(id)))).toBe("done")
    })))

  it.live("continues after a restart between its steps", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, note, step } = new Notes()
      const test = yield* TaskTest.make(serverOf(Effect.gen(function*() {
        yield* note("run")
        yield* step("one")
        yield* Step.sleep("rest", "1 day")
        yield* step("two")
        return "done"
      })))
      const id = yield* test.run(start)
      yield* test.run(Effect.sleep("1 hour"))
      expect(all).toEqual(["run", "one"])
      yield* test.restart
      yield* test.run(Effect.sleep("12 hours"))
      yield* test.restart
      yield* test.untilIdle
      expect(all.filter((each) => each !== "run")).toEqual(["one", "two"])
      expect(textOf(yield* test.run(stateOf(id)))).toBe("done")
    })))

  it.live("replayAfterEachEvent · starts its handler again after each event, and no step runs twice", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, note, step } = new Notes()
      const test = yield* TaskTest.make(
        serverOf(Effect.gen(function*() {
          yield* note("run")
          yield* step("one")
          yield* step("two")
          yield* Step.sleep("rest", "1 day")
          yield* Step.run("four", {}, () => note("four")).pipe(Step.withCompensation(() => step("undo four")))
          return yield* Effect.die("the end")
        })),
        { replayAfterEachEvent: true }
      )
      const id = yield* test.run(start)
      yield* test.untilIdle
      const runs = all.filter((each) => each === "run").length
      expect(all.filter((each) => each !== "run").toSorted()).toEqual(["four", "one", "two", "undo four"])
      const log = yield* test.run(Effect.flatMap(TaskAdmin, (admin) => admin.inspect(id)))
      expect(runs).toBeGreaterThanOrEqual(log!.log.length)
    })))

  it.live("replayAfterEachEvent · shows an effect between two steps that belongs in a step", () =>
    Effect.scoped(Effect.gen(function*() {
      const sent: Array<string> = []
      const test = yield* TaskTest.make(
        serverOf(Effect.gen(function*() {
          sent.push("mail")
          yield* Step.run("one", {}, () => Effect.void)
          yield* Step.run("two", {}, () => Effect.void)
          return "done"
        })),
        { replayAfterEachEvent: true }
      )
      yield* test.run(start)
      yield* test.untilIdle
      expect(sent).toHaveLength(3)
    })))
})

describe("schedules under test", () => {
  const nightly = (all: Array<string>) =>
    serverOf(Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.as(
        Step.run("note", {}, () => Effect.sync(() => void all.push(new Date(now).toISOString().slice(0, 16)))),
        "done"
      )))

  const set = Effect.flatMap(
    TaskSchedules,
    (schedules) => schedules.set("nightly", { cron: "30 2 * * *", timeZone: "Europe/Berlin", task: { tool: "work" } })
  )

  it.live("start tasks at their times, also over a change of the clocks, and now", () =>
    Effect.scoped(Effect.gen(function*() {
      const all: Array<string> = []
      const test = yield* TaskTest.make(nightly(all), { startAt: new Date("2026-03-27T12:00:00Z") })
      yield* test.run(set)
      yield* test.untilIdle
      expect(all).toEqual([])
      yield* test.run(Effect.sleep("3 days"))
      expect(all).toEqual(["2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30"])
      yield* test.run(Effect.flatMap(TaskSchedules, (schedules) => schedules.trigger("nightly")))
      yield* test.untilIdle
      expect(all.at(-1)).toBe("2026-03-30T12:00")
    })))
})

describe("the time of a test", () => {
  it.live("lets tasks expire", () =>
    Effect.scoped(Effect.gen(function*() {
      const { all, step } = new Notes()
      const test = yield* TaskTest.make(serverOf(Effect.gen(function*() {
        yield* step("one").pipe(Step.withCompensation(() => step("undo one")))
        yield* Step.sleep("rest", "60 days")
        return "done"
      })))
      const id = yield* test.run(start)
      yield* test.run(Effect.sleep("31 days"))
      expect([all, yield* test.run(stateOf(id))]).toEqual([["one", "undo one"], undefined])
    })))

  it.live("begins at startAt, and refuses an invalid time and options out of bounds", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = serverOf(Effect.succeed(""))
      const test = yield* TaskTest.make(server, { startAt: 5 })
      expect(yield* test.run(Clock.currentTimeMillis)).toBe(5)
      for (const options of [{ startAt: "tomorrow" }, { concurrency: 0 }]) {
        const exit = yield* Effect.exit(TaskTest.make(server, options))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(String(exit)).toContain("InvalidOption")
      }
    })))
})
