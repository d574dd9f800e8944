/** An executing step does not delay events in other branches. */
import { expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import { durable, ended, pass, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer())

const hour = Step.run("an hour", {}, () => Effect.sleep("1 hour"))

it.effect("a sleep beside an executing step ends in time", () =>
  Effect.gen(function*() {
    let awake = false
    const sleeps = Effect.andThen(Step.sleep("rest", "10 seconds"), Effect.sync(() => void (awake = true)))
    yield* work({ rest: durable(() => Effect.as(Effect.all([hour, sleeps], { concurrency: 2 }), "")) })
    const { id } = yield* submit("rest")
    yield* pass(9)
    expect(awake).toBe(false)
    yield* pass(4)
    expect(awake).toBe(true)
    yield* Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))
    yield* pass(5)
  }).pipe(memory))

it.effect("a step that takes too long loses the race with a sleep, and is cut off", () =>
  Effect.gen(function*() {
    let cut = false
    const slow = Step.run(
      "work",
      {},
      () => Effect.onInterrupt(Effect.sleep("1 hour"), () => Effect.sync(() => void (cut = true)))
    )
    const limited = Effect.raceFirst(Effect.as(slow, "done"), Effect.as(Step.sleep("limit", "30 seconds"), "too late"))
    yield* work({ limited: durable(() => limited) })
    const { id } = yield* submit("limited")
    yield* pass(29)
    expect(cut).toBe(false)
    yield* pass(4)
    expect(cut).toBe(true)
    expect(textOf(yield* ended(id))).toBe("too late")
  }).pipe(memory))

it.effect("receives an answer while a step executes beside the question", () =>
  Effect.gen(function*() {
    const ask = Effect.flatMap(McpRequest, (request) => request.request("elicitation/create", {}, { key: "k" }))
    const asks = Effect.orDie(Effect.map(ask, (answer) => String(answer["reply"])))
    yield* work({ asks: durable(() => Effect.raceFirst(Effect.as(hour, "nobody"), asks)) })
    const { id } = yield* submit("asks")
    yield* until(id, ({ questions }) => questions.length === 1)
    yield* Effect.flatMap(TaskEngine, ({ answer }) => answer(id, "k", { reply: "somebody" }))
    yield* pass(3)
    expect(textOf(yield* ended(id))).toBe("somebody")
  }).pipe(memory))
