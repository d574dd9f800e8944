/** Names, keys and results of any form: they come from arguments, and must not affect how a task finds its records. */
import { it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { Outcome } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { afterAll, describe, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, get, type Handler, submit, textOf, until, work } from "../engine/kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const names = [
  "",
  "a",
  "a/1",
  "a/1/1",
  "a/2",
  "step/a",
  "x\ud800",
  "x\ud801",
  "x\ufffd",
  "n\0a",
  "n\0b",
  "n",
  "json:\"step/n\"",
  "sealed:x",
  "__proto__",
  "constructor",
  "DurableClock/sleep/a",
  "Workflow/InterruptSignal",
  "question/a",
  "once/a",
  "é",
  "e\u0301",
  "'; DROP TABLE skein_task_log; --",
  "L".repeat(300),
  "L".repeat(300) + "\ud800",
  "L".repeat(300) + "\udfff",
  "M".repeat(100_000)
]

/** Every named part, under each of the names; in each run every step is looked up again. */
const named = durable(() =>
  Effect.gen(function*() {
    const taskRequest = yield* McpRequest
    const keys = new Set<string>()
    const steps = yield* Effect.forEach(
      names,
      (name, index) =>
        Step.run(name, { success: Schema.Struct({ index: Schema.Finite, key: Schema.String }) }, (key) =>
          Effect.succeed({ index, key }))
    )
    for (const { key } of steps) {
      keys.add(key)
    }
    const retried = yield* Effect.forEach(names, (name, index) => {
      let tries = 0
      return Step.run(`retried ${name}`, { error: Schema.Finite, retry: Schedule.recurs(1) }, () =>
        Effect.fail(++tries * 1000 + index)).pipe(Effect.flip, Effect.orDie)
    })
    const onces = yield* Effect.forEach(names, (name, index) =>
      taskRequest.startRound()!.once(name, Effect.succeed(index)))
    yield* Effect.forEach(names, (name) =>
      Step.sleep(name, 1))
    const short = names.filter((name) =>
      name.length < 400
    )
    const answers = yield* Effect.orDie(Effect.forEach(
      short,
      (key) =>
        taskRequest.request("elicitation/create", { key }, { key }),
      { concurrency: "unbounded" }
    ))
    return JSON.stringify({
      steps: steps.map(({ index }) =>
        index
      ),
      keys: keys.size,
      retried,
      onces,
      answers
    })
  })
)

const result = (members: object): Outcome => ({ _tag: "Result", result: { content: [], ...members } })
const ending = (outcome: Outcome, seen: Array<string> = []): Record<string, Handler> => ({
  durable: {
    durable: true,
    run: (taskRequest) =>
      Effect.andThen(
        taskRequest.task.compensate((why) => Effect.sync(() => void seen.push(why))),
        Effect.succeed(outcome)
      )
  },
  plain: { durable: false, run: () => Effect.succeed(outcome) }
})

const cycle: Record<string, unknown> = {}
cycle["self"] = cycle

const engines = [
  ["SQLite", Effect.succeed(MemoryTasks.layer()), false],
  [
    "PostgreSQL",
    Effect.map(Effect.promise(() => server!.createDatabase()), (url) => PostgresTasks.layer({ url })),
    server === undefined
  ]
] as const

for (const [engine, make, absent] of engines) {
  describe.skipIf(absent)(engine, () => {
    const run = <A, E>(tools: Record<string, Handler>, effect: Effect.Effect<A, E, TaskEngine>) =>
      Effect.scoped(
        Effect.flatMap(make, (layer) =>
          Effect.provide(effect, Layer.provideMerge(Layer.effectDiscard(work(tools)), layer)))
      ).pipe(Effect.provide(Logger.layer([])))

    it.live("every name of a step, a question, a `once`, a sleep and a retry is distinct", () =>
      run(
        { named },
        Effect.gen(function*() {
          const { id } = yield* submit("named")
          const short = names.filter((name) => name.length < 400)
          const { questions } = yield* until(id, ({ questions }) => questions.length === short.length)
          expect(questions.map(({ key }) => key).toSorted()).toEqual(short.toSorted())
          const { answer } = yield* TaskEngine
          for (const key of short) expect(yield* answer(id, key, { key })).toBe(true)
          const all = JSON.parse(textOf(yield* ended(id)) as string)
          const indexes = names.map((_, index) => index)
          expect(all).toEqual({
            steps: indexes,
            keys: names.length,
            retried: indexes.map((index) => 2000 + index),
            onces: indexes,
            answers: short.map((key) => ({ key }))
          })
        })
      ), 120_000)

    // The rest does not depend on the database.
    if (engine === "PostgreSQL") return

    it.live("two questions that wait under one key are a defect: their order could differ in another run", () =>
      run(
        {
          pay: durable(() =>
            Effect.flatMap(McpRequest, (taskRequest) => {
              const ask = (message: string) =>
                Effect.orDie(taskRequest.request("elicitation/create", { message }, { key: "sure" }))
              return Effect.as(Effect.all([ask("Pay 1?"), ask("Pay 1000?")], { concurrency: 2 }), "")
            })
          ),
          turns: durable(() =>
            Effect.flatMap(McpRequest, (taskRequest) => {
              const ask = (message: string) =>
                Effect.orDie(taskRequest.request("elicitation/create", { message }, { key: "sure" }))
              // The same question twice is fine, and so are two questions one after the other.
              const first = Effect.all([ask("Pay 1?"), ask("Pay 1?")], { concurrency: 2 })
              return Effect.map(Effect.all([first, ask("Pay 2?")]), (all) => JSON.stringify(all.flat()))
            })
          )
        },
        Effect.gen(function*() {
          const { id } = yield* submit("pay")
          expect((yield* ended(id)).status).toBe("failed")
          const turns = yield* submit("turns")
          const { answer } = yield* TaskEngine
          for (const key of ["sure", "sure.1", "sure.2"]) {
            yield* until(turns.id, ({ questions }) => questions.some((question) => question.key === key))
            yield* answer(turns.id, key, { key })
          }
          const keys = JSON.parse(textOf(yield* ended(turns.id)) as string).map(({ key }: { key: string }) => key)
          expect(keys).toEqual(["sure", "sure.1", "sure.2"])
        })
      ))

    it.live("fails a task immediately for a question key that is too long to store", () =>
      run(
        {
          long: durable(() =>
            Effect.flatMap(McpRequest, (taskRequest) =>
              Effect.orDie(taskRequest.request("elicitation/create", {}, { key: "k".repeat(600) }))).pipe(
                Effect.as("")
              )
          )
        },
        Effect.gen(function*() {
          const { status } = yield* Effect.flatMap(submit("long"), ({ id }) =>
            ended(id))
          expect(status).toBe("failed")
        })
      ))

    for (
      const [what, members] of Object.entries({
        "a bigint": { structuredContent: { n: 1n } },
        "a cycle": { structuredContent: cycle },
        "what throws when it is written": {
          toJSON: () => {
            throw new Error("no")
          }
        }
      })
    ) {
      it.live(`a handler that ends with ${what} has failed, and is compensated once`, () => {
        const undone: Array<string> = []
        return run(
          ending(result(members), undone),
          Effect.gen(function*() {
            for (const tool of ["durable", "plain"]) {
              const { id } = yield* submit(tool)
              expect(yield* ended(id)).toMatchObject({ status: "failed", outcome: { error: { code: -32603 } } })
              expect((yield* get(id))?.status).toBe("failed")
            }
            expect(undone).toEqual(["failed"])
          })
        )
      })
    }

    it.live("a handler that fails with a value without a JSON form is compensated once", () => {
      const undone: Array<string> = []
      return run(
        ending(result({ isError: true, structuredContent: { n: 1n } }), undone),
        Effect.gen(function*() {
          const { id } = yield* submit("durable")
          expect((yield* ended(id)).status).toBe("failed")
          expect(undone).toEqual(["failed"])
        })
      )
    })
  })
}
