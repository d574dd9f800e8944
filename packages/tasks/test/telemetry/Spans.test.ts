/** The spans of tasks. */
import { describe, it } from "@effect/vitest"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Tracer from "effect/Tracer"
import { expect } from "vitest"
import { ask, durable, ended, newTask, pass, plain, settled, submit, until, work } from "../engine/kit.ts"
import { makeTracer, observed } from "./kit.ts"

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

const parentOf = (span: Tracer.Span) => Option.getOrUndefined(span.parent)
const attributesOf = (span: Tracer.Span) => Object.fromEntries(span.attributes)
const endOf = (span: Tracer.Span) => span.attributes.get("mcp.server.task.run.end")
const isFailed = (span: Tracer.Span) => span.status._tag === "Ended" && span.status.exit._tag === "Failure"

const bake = durable(() =>
  Effect.gen(function*() {
    yield* Step.run("mix/1", {}, () => Effect.withSpan(Effect.logInfo("mixed"), "stir"))
    yield* Effect.logInfo("between")
    yield* ask("Sugar?")
    yield* Step.sleep("rest", "1 hour")
    const options = { error: Schema.Struct({ message: Schema.String }), retry: Schedule.recurs(1) }
    yield* Effect.withSpan(Step.run("bake", options, () => Effect.fail({ message: "Cold" })), "in the oven")
    return "Baked"
  }).pipe(Effect.mapError(() => ({ message: "Cold" })))
)

describe("spans of tasks", () => {
  it.effect("a run is the root of a trace with a link to the call, and its executed steps are its children", () => {
    const { layer, named, spans } = makeTracer()
    return Effect.gen(function*() {
      yield* work({ bake })
      const task = newTask("bake")
      const { answer, submit } = yield* TaskEngine
      const { id } = yield* submit({ ...task, caller: { ...task.caller, traceparent } })
      const asked = yield* until(id, ({ status }) => status === "input_required")
      yield* pass(5)
      yield* answer(id, asked.questions[0]!.key, {})
      yield* pass(3610, 10)
      expect((yield* ended(id)).isError).toBe(true)
      yield* settled

      const runs = named("task bake")
      expect(runs.map(endOf)).toEqual(["suspended", "suspended", "tool_error"])
      expect(runs.map(isFailed)).toEqual([false, false, true])
      for (const run of runs) {
        expect(parentOf(run)).toBeUndefined()
        expect(run.kind).toBe("consumer")
        expect(run.links.map(({ span }) => `00-${span.traceId}-${span.spanId}-01`)).toEqual([traceparent])
        expect(attributesOf(run)).toMatchObject({
          "gen_ai.tool.name": "bake",
          "mcp.server.task.id": `${id.slice(0, 8)}…`,
          "mcp.server.task.pool": "default",
          "mcp.server.task.lost_workers": 0
        })
      }
      expect(new Set(runs.map(({ traceId }) => traceId)).size).toBe(3)
      // A replay makes no spans of steps.
      const [mix] = named("mix")
      expect(named("mix").length).toBe(1)
      expect(parentOf(mix!)).toBe(runs[0])
      expect(attributesOf(mix!)).toEqual({ "mcp.server.task.step.name": "mix/1", "mcp.server.task.step.attempt": 1 })
      expect(parentOf(named("stir")[0]!)).toBe(mix)
      const attempts = named("bake")
      expect(attempts.map((span) => attributesOf(span)["mcp.server.task.step.attempt"])).toEqual([1, 2])
      expect(attempts.map(isFailed)).toEqual([true, true])
      const [oven] = named("in the oven")
      expect(attempts.map(parentOf)).toEqual([oven, oven])
      expect(parentOf(oven!)).toBe(runs[2])
      // Effect adds log lines to the events.
      const events = runs.map((run) =>
        (run as Tracer.NativeSpan).events.map(([name]) => name).filter((name) => name !== "between")
      )
      expect(events).toEqual([["question open"], ["question answered", "timer set"], ["timer ended"]])
      expect(spans.every(({ status }) => status._tag === "Ended")).toBe(true)
      // The whole id may be enough to use the task.
      expect(spans.flatMap((span) => [span.name, ...Object.values(attributesOf(span))]).join()).not.toContain(id)
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer, engine: { pollInterval: "10 seconds" } })))
  })

  it.effect("log lines of a run and of a step have the ids of their span", () => {
    const { layer, named } = makeTracer()
    const ids = new Map<string, unknown>()
    const logger = Logger.make<unknown, void>(({ fiber, message }) => {
      ids.set(String(message), fiber.getRef(References.CurrentLogAnnotations)["span_id"])
    })
    return Effect.gen(function*() {
      yield* work({ bake })
      const { id } = yield* submit("bake")
      yield* until(id, ({ status }) => status === "input_required")
      expect(ids.get("mixed")).toBe(named("mix")[0]!.spanId)
      expect(ids.get("between")).toBe(named("task bake")[0]!.spanId)
    }).pipe(Effect.scoped, Effect.provide(observed({ to: Layer.merge(layer, Logger.layer([logger])) })))
  })

  it.effect("a run of a plain handler, a cancelled run and a run of a worker that stops end with their reason", () => {
    const { layer, named } = makeTracer()
    return Effect.gen(function*() {
      const stopped = Effect.scoped(Effect.gen(function*() {
        yield* work({ quick: plain(() => Effect.succeed("Done")), slow: durable(() => Effect.never) })
        yield* ended((yield* submit("quick")).id)
        const { id } = yield* submit("slow")
        yield* settled
        yield* (yield* TaskEngine).cancel(id)
        yield* settled
        yield* pass(5)
        yield* submit("slow")
        yield* settled
      }))
      yield* stopped
      yield* settled
      expect(named("task quick").map(endOf)).toEqual(["completed"])
      expect(named("task slow").map(endOf)).toEqual(["cancelled", "compensated", "released"])
      expect(named("task slow").map(isFailed)).toEqual([false, false, false])
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer })))
  })

  it.effect("records no spans with spans: false", () => {
    const { layer, spans } = makeTracer()
    return Effect.gen(function*() {
      yield* work({ quick: durable(() => Effect.as(Step.run("a", {}, () => Effect.void), "Done")) })
      yield* ended((yield* submit("quick")).id)
      expect(spans).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(observed({ to: layer, telemetry: { spans: false } })))
  })
})
