/** Events arrive in the same order in each run of a handler, for any behaviour of its branches. */
import { expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { durable, ended, pass, settled, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const ask = (timeout?: Duration.Input) =>
  Effect.flatMap(
    McpRequest,
    (taskRequest) =>
      taskRequest.request("elicitation/create", {}, { key: "k", ...(timeout === undefined ? {} : { timeout }) })
  ).pipe(Effect.match({
    onFailure: () => "late",
    onSuccess: (answer) => String((answer as JsonObject)["reply"])
  }))

const patience = (duration: Duration.Input) => Effect.as(Step.sleep("patience", duration), "nobody")

/** The winner in each of the runs of a handler that waits once more, and in the end. */
const racing = (race: Effect.Effect<string, never, CurrentTask | McpRequest>) => {
  const winners: Array<string> = []
  const body = durable(() =>
    Effect.gen(function*() {
      const winner = yield* race
      winners.push(winner)
      yield* Step.sleep("a while", "1 hour")
      return winner
    })
  )
  return { winners, body }
}

const answered = (id: string) =>
  Effect.gen(function*() {
    yield* until(id, ({ questions }) => questions.length === 1)
    yield* settled
    const { answer } = yield* TaskEngine
    expect(yield* answer(id, "k", { reply: "somebody" })).toBe(true)
  })

it.effect("an answer that arrives before the end of a short sleep that won does not count later", () =>
  Effect.gen(function*() {
    const { body, winners } = racing(Effect.raceFirst(ask(), patience("2 seconds")))
    yield* work({ race: body })
    const { id } = yield* submit("race")
    yield* answered(id)
    yield* pass(4)
    const [winner] = winners
    yield* pass(3700, 100)
    expect(textOf(yield* ended(id))).toBe(winner)
    expect(new Set(winners)).toEqual(new Set([winner]))
  }).pipe(memory))

for (const first of ["the question", "the sleep"]) {
  it.effect(`replays an answer as the winner after the losing sleep has elapsed, with ${first} first`, () =>
    Effect.gen(function*() {
      const sleep = patience("10 minutes")
      const { body, winners } = racing(
        first === "the sleep" ? Effect.raceFirst(sleep, ask()) : Effect.raceFirst(ask(), sleep)
      )
      yield* work({ race: body })
      const { id } = yield* submit("race")
      yield* answered(id)
      yield* settled
      expect(winners).toEqual(["somebody"])
      yield* pass(3700, 100)
      expect(textOf(yield* ended(id))).toBe("somebody")
      expect(new Set(winners)).toEqual(new Set(["somebody"]))
    }).pipe(memory))

  it.effect(`a question that has lost cannot time out, with ${first} first`, () =>
    Effect.gen(function*() {
      const sleep = patience("10 minutes")
      const { body, winners } = racing(
        first === "the sleep" ? Effect.raceFirst(sleep, ask("20 minutes")) : Effect.raceFirst(ask("20 minutes"), sleep)
      )
      yield* work({ race: body })
      const { id } = yield* submit("race")
      yield* settled
      yield* pass(4400, 100)
      expect(textOf(yield* ended(id))).toBe("nobody")
      expect(new Set(winners)).toEqual(new Set(["nobody"]))
    }).pipe(memory))
}

/** Steps with compensations, and a record of the compensations that ran. */
const booking = () => {
  const log: Array<string> = []
  const step = (name: string) =>
    Step.run(name, {}, () => Effect.void).pipe(
      Step.withCompensation(() => Step.run(`undo ${name}`, {}, () => Effect.sync(() => void log.push(name))))
    )
  return { log, books: Effect.andThen(Effect.andThen(step("flight"), step("hotel")), step("taxi")) }
}

it.effect("a branch that fails after an answer waits for the results of the other branches, and compensates them", () =>
  Effect.gen(function*() {
    const { books, log } = booking()
    const asks = Effect.andThen(ask(), Effect.fail({ message: "no" }))
    yield* work({ travel: durable(() => Effect.as(Effect.all([asks, books], { concurrency: 2 }), "")) })
    const { id } = yield* submit("travel")
    yield* answered(id)
    expect(textOf(yield* ended(id))).toBe("no")
    expect(log).toEqual(["taxi", "hotel", "flight"])
  }).pipe(memory))

const no = Effect.fail({ message: "no" })

for (
  const [what, fails] of [
    ["after a step", Effect.andThen(Step.run("long", {}, () => Effect.sleep("10 seconds")), no)],
    ["after a sleep", Effect.andThen(Step.sleep("long", "10 seconds"), no)]
  ] as const
) {
  for (const sleeps of [false, true]) {
    const where = sleeps ? ", past a sleep of its own," : ""
    it.effect(`a branch that fails ${what} fails in each run after the results of the other branches${where} are known, and is compensated`, () =>
      Effect.gen(function*() {
        const { books, log } = booking()
        const beside = sleeps ? Effect.andThen(Step.sleep("short", "6 seconds"), books) : books
        const torn = Effect.catch(
          Effect.as(Effect.all([fails, beside], { concurrency: "unbounded" }), ""),
          () => Effect.void
        )
        const body = Effect.andThen(torn, Effect.andThen(Step.sleep("a while", "1 hour"), no))
        yield* work({ travel: durable(() => Effect.as(body, "")) })
        const { id } = yield* submit("travel")
        for (let second = 0; second < 20; second++) yield* pass(1)
        expect(log).toEqual([])
        yield* pass(3700, 100)
        expect(textOf(yield* ended(id))).toBe("no")
        expect(log).toEqual(["taxi", "hotel", "flight"])
      }).pipe(Effect.provide(MemoryTasks.layer())))
  }
}

it.effect("of two racing steps the same one wins in each run, even if the other one has ended after all", () =>
  Effect.gen(function*() {
    const slow = Step.run("slow", {}, () => Effect.uninterruptible(Effect.sleep("3 seconds")))
    const quick = Step.run("quick", {}, () => Effect.sleep("1 second"))
    const { body, winners } = racing(Effect.raceFirst(Effect.as(slow, "slow"), Effect.as(quick, "quick")))
    yield* work({ race: body })
    const { id } = yield* submit("race")
    yield* pass(10)
    yield* pass(3700, 100)
    expect(textOf(yield* ended(id))).toBe("quick")
    expect(new Set(winners)).toEqual(new Set(["quick"]))
  }).pipe(memory))
