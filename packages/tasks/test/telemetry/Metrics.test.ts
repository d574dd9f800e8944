/** The metrics of tasks. */
import { describe, it } from "@effect/vitest"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { expect } from "vitest"
import { ask, durable, ended, handlers, pass, plain, settled, submit, until, work } from "../engine/kit.ts"
import { makeRegistry, observed } from "./kit.ts"

const tools = {
  brew: durable(() => Step.run("boil", { success: Schema.String }, () => Effect.as(Effect.sleep("3 seconds"), "Tea"))),
  burn: durable(() => Effect.fail({ message: "Burnt" })),
  break: durable(() => Effect.die(new Error("Broken"))),
  ask: plain(() => Effect.as(Effect.orDie(ask("Sugar?")), "Sweet"))
}

describe("metrics of tasks", () => {
  it.effect("count submissions and ends by tool, pool and outcome, and measure delays and durations", () => {
    const { layer, read, values } = makeRegistry()
    return Effect.gen(function*() {
      yield* work(tools)
      const { cancel } = yield* TaskEngine
      const brewing = yield* submit("brew")
      yield* submit("brew", { pool: "big" })
      yield* ended((yield* submit("burn")).id)
      yield* ended((yield* submit("break")).id)
      const asking = yield* submit("ask")
      yield* until(asking.id, ({ status }) => status === "input_required")
      expect(yield* cancel(asking.id)).toBe(true)
      expect(yield* cancel(asking.id)).toBe(false)
      yield* pass(4)
      yield* ended(brewing.id)
      yield* settled

      expect(values("submissions")).toEqual({
        "brew default": 1,
        "brew big": 1,
        "burn default": 1,
        "break default": 1,
        "ask default": 1
      })
      expect(values("ends")).toEqual({
        "brew default completed": 1,
        "brew big completed": 1,
        "burn default tool_error": 1,
        "break default failed": 1,
        "ask default cancelled": 1
      })
      expect(values("start.delay")).toEqual(values("submissions"))
      expect(values("duration")).toEqual(values("ends"))
      const duration = read().find(({ attributes, id }) =>
        id === "mcp.server.task.duration" && attributes?.["gen_ai.tool.name"] === "brew"
      )
      expect(duration!.state).toMatchObject({ sum: 3 })
      expect(duration!.attributes).toMatchObject({ unit: "s" })
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer })))
  })

  it.effect("begin with 0: Prometheus sees no increase in a counter that begins with 1", () => {
    const { all, layer } = makeRegistry()
    return Effect.gen(function*() {
      for (const name of ["worker.lost_leases", "store.outages"]) {
        expect(all(name)).toEqual({ "": 0 })
      }
      expect(all("worker.stall.duration")).toEqual({})
      const { runTasks } = yield* TaskEngine
      yield* runTasks(handlers(tools), { tools: [{ tool: "brew", pool: "big" }] })
      expect(all("submissions")).toEqual({ "brew big": 0 })
      expect(all("takeovers")).toEqual({ "brew big": 0 })
      const outcomes = ["completed", "declined", "tool_error", "failed", "cancelled", "given_up"]
      expect(all("ends")).toEqual(Object.fromEntries(outcomes.map((outcome) => [`brew big ${outcome}`, 0])))

      const { id } = yield* submit("brew")
      expect(all("ends")["brew default failed"]).toBe(0)
      yield* pass(4)
      yield* ended(id)
      expect(all("step.attempts")).toEqual(Object.fromEntries(
        ["ok", "error", "defect", "interrupted"].flatMap((outcome) =>
          ["false", "true"].map((
            retry
          ) => [`brew boil ${outcome} ${retry}`, outcome === "ok" && retry === "false" ? 1 : 0])
        )
      ))
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer })))
  })

  it.effect("count executed attempts of steps by outcome, and their retries, but no replays", () => {
    const { layer, values } = makeRegistry()
    let failures = 2
    const charge = durable(() =>
      Effect.gen(function*() {
        const options = { error: Schema.Struct({ message: Schema.String }), retry: Schedule.recurs(5) }
        yield* Step.run("charge/first", options, () => failures-- > 0 ? Effect.fail({ message: "Busy" }) : Effect.void)
        yield* Step.run("charge/second", {}, () => Effect.void)
        yield* Step.sleep("wait", "1 minute")
        yield* Step.run("refund", {}, () => Effect.die(new Error("No refund")))
        return "Charged"
      })
    )
    return Effect.gen(function*() {
      yield* work({ charge })
      const { id } = yield* submit("charge")
      yield* pass(62)
      yield* ended(id)
      expect(values("step.attempts")).toEqual({
        "charge charge error false": 1,
        "charge charge error true": 1,
        "charge charge ok true": 1,
        "charge charge ok false": 1,
        "charge refund defect false": 1
      })
      expect(values("step.duration")).toEqual({ "charge charge": 4, "charge refund": 1 })
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer })))
  })

  it.effect("count tools and steps beyond the bounds together", () => {
    const { layer, values } = makeRegistry()
    const named = (name: string) => durable(() => Effect.as(Step.run(name, {}, () => Effect.void), "Done"))
    const stepLabel = (step: string) => {
      if (step === "c") throw new Error("No label")
      return step
    }
    return Effect.gen(function*() {
      yield* work({ a: named("a"), b: named("b"), c: named("c") })
      for (const tool of ["a", "b", "c", "a"]) yield* ended((yield* submit(tool)).id)
      expect(values("submissions")).toEqual({ "a default": 2, "_OTHER _OTHER": 2 })
      expect(values("step.duration")).toEqual({ "a a": 2, "b b": 1, "_OTHER _OTHER": 1 })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        observed({ to: layer, telemetry: { stepLabel }, bounds: { maxMeasuredTools: 1, maxMeasuredSteps: 2 } })
      )
    )
  })

  it.effect("report the queue every 15 seconds while somebody reads the metrics, and remove it at the end", () => {
    const { layer, values } = makeRegistry()
    return Effect.gen(function*() {
      const asking = yield* submit("ask")
      yield* submit("brew")
      yield* submit("brew")
      // They have not been read yet.
      yield* pass(60, 5)
      expect(values("queue.size")).toEqual({})
      expect(values("running")).toEqual({ "": 0 })
      yield* pass(15, 5)
      expect(values("queue.size")).toEqual({ "ask default ready": 1, "brew default ready": 2 })
      expect(values("queue.age")).toEqual({ "ask default": 75, "brew default": 75 })

      yield* Effect.scoped(Effect.gen(function*() {
        yield* work(tools)
        yield* until(asking.id, ({ status }) => status === "input_required")
        yield* settled
        expect(values("running")).toEqual({ "": 2 })
        yield* pass(15, 5)
        expect(values("queue.size")).toEqual({
          "ask default ready": 0,
          "brew default ready": 0,
          "ask default waiting": 1
        })
        expect(values("queue.age")).toEqual({ "ask default": 0, "brew default": 0 })
        expect(values("questions")).toEqual({ "ask default": 1, "brew default": 0 })
      }))
      // The metrics were read for the last time more than five minutes ago.
      yield* pass(305, 5)
      yield* submit("brew")
      yield* pass(15, 5)
      expect(values("queue.size")["brew default ready"]).toBe(0)
      yield* pass(15, 5)
      expect(values("queue.size")["brew default ready"]).toBe(1)
    }).pipe(
      Effect.scoped,
      Effect.provide(observed({ to: layer, engine: { pollInterval: "1 day" } })),
      Effect.andThen(() => Effect.sync(() => expect(values("queue.size")).toEqual({}))),
      Effect.andThen(() => Effect.sync(() => expect(values("running")).toEqual({})))
    )
  })

  it.effect("do not read the queue with queueMetrics: false", () => {
    const { layer, values } = makeRegistry()
    return Effect.gen(function*() {
      yield* submit("brew")
      expect(values("running")).toEqual({ "": 0 })
      yield* pass(30, 5)
      expect(values("running")).toEqual({ "": 0 })
      expect(values("submissions")).toEqual({ "brew default": 1 })
      expect(values("queue.size")).toEqual({})
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer, telemetry: { queueMetrics: false } })))
  })

  it.effect("record nothing without the layer, and nothing with metrics: false", () => {
    const { layer, read } = makeRegistry()
    return Effect.gen(function*() {
      yield* work(tools)
      yield* ended((yield* submit("burn")).id)
      expect(read()).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer, telemetry: { metrics: false } })))
  })
})
