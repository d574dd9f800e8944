import { it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Elicitation from "@skein/server/Elicitation"
import { once } from "@skein/server/Once"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { durable, ended, get, pass, plain, settled, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const ask = (message: string, options?: { readonly timeout?: string; readonly key?: string }) =>
  Effect.flatMap(
    McpRequest,
    (taskRequest) =>
      taskRequest.request("elicitation/create", { message }, options as never) as Effect.Effect<JsonObject, Error>
  )

const answer = (id: string, key: string, reply: string) =>
  Effect.flatMap(TaskEngine, ({ answer }) => answer(id, key, { reply }))

const asking = (id: string, count = 1) => until(id, ({ questions }) => questions.length === count)

const keyOf = (
  state: { readonly questions: ReadonlyArray<{ readonly key: string; readonly params: unknown }> },
  message: string
) => state.questions.find(({ params }) => (params as JsonObject)["message"] === message)!.key

it.effect("stores a question, and continues with its answer", () =>
  Effect.gen(function*() {
    let runs = 0
    let steps = 0
    yield* work({
      tea: durable(() =>
        Effect.gen(function*() {
          runs++
          yield* Step.run("boil", {}, () => Effect.sync(() => void steps++))
          const { reply } = yield* ask("milk?")
          return `Tea, ${reply}`
        })
      )
    })
    const { id } = yield* submit("tea")
    const state = yield* asking(id)
    expect(state.status).toBe("input_required")
    expect(state.questions).toMatchObject([{ method: "elicitation/create", params: { message: "milk?" } }])
    yield* settled
    expect(yield* answer(id, "other", "no")).toBe(false)
    expect(yield* answer(id, state.questions[0]!.key, "no milk")).toBe(true)
    expect(yield* answer(id, state.questions[0]!.key, "milk")).toBe(false)
    expect(textOf(yield* ended(id))).toBe("Tea, no milk")
    expect(steps).toBe(1)
    expect(runs).toBe(2)
  }).pipe(memory))

it.effect("asks several questions at once, answered in any order", () =>
  Effect.gen(function*() {
    yield* work({
      three: durable(() =>
        Effect.map(
          Effect.all([ask("a"), ask("b"), ask("b"), ask("c", { key: "see" })], { concurrency: "unbounded" }),
          (answers) => answers.map(({ reply }) => reply).join(",")
        )
      )
    })
    const { id } = yield* submit("three")
    const state = yield* asking(id, 4)
    expect(state.questions.map(({ key }) => key)).toContain("see")
    const [b1, b2] = state.questions.filter(({ params }) => params!["message"] === "b").map(({ key }) => key)
    yield* answer(id, "see", "4")
    yield* settled
    yield* answer(id, b2!, "3")
    yield* answer(id, b1!, "2")
    yield* settled
    expect((yield* get(id))?.questions).toHaveLength(1)
    yield* answer(id, keyOf(state, "a"), "1")
    expect(textOf(yield* ended(id))).toBe("1,2,3,4")
  }).pipe(memory))

it.effect("2025-11-25 · asks a URL elicitation once, although its elicitationId differs in each run", () =>
  Effect.gen(function*() {
    let runs = 0
    yield* work({
      sign: durable(() =>
        Effect.gen(function*() {
          runs++
          const first = yield* Elicitation.url("Sign here", "https://example.com/sign")
          const second = yield* Elicitation.url("Sign here", "https://example.com/sign")
          return `${first.action}, ${second.action}`
        }).pipe(Effect.orDie)
      )
    })
    const caller = {
      revision: "2025-11-25",
      capabilities: { elicitation: { url: {} } },
      info: undefined,
      principal: undefined
    } as const
    const { id } = yield* submit("sign", { caller })
    const engine = yield* TaskEngine
    const [first] = (yield* asking(id)).questions
    yield* settled
    yield* engine.answer(id, first!.key, { action: "accept" })
    // The second one is a question of its own, and the first is not asked again.
    const [second] = (yield* until(id, ({ questions }) => questions.some(({ key }) => key !== first!.key))).questions
    expect(second!.params).toMatchObject({ url: "https://example.com/sign" })
    yield* settled
    yield* engine.answer(id, second!.key, { action: "decline" })
    expect(textOf(yield* ended(id))).toBe("accept, decline")
    expect(runs).toBe(3)
  }).pipe(memory))

it.effect("withdraws a question that loses a race", () =>
  Effect.gen(function*() {
    yield* work({
      race: durable(() =>
        Effect.gen(function*() {
          const first = yield* Effect.raceFirst(
            Effect.map(ask("sure?"), ({ reply }) => String(reply)),
            Effect.as(Step.sleep("patience", "1 hour"), "nobody")
          )
          yield* ask("and now?")
          return first
        })
      )
    })
    const { id } = yield* submit("race")
    const first = yield* asking(id)
    yield* settled
    yield* pass(3601, 600)
    const state = yield* until(id, ({ questions }) =>
      questions[0]?.key !== first.questions[0]!.key && questions.length > 0)
    expect(state.questions).toMatchObject([{ params: { message: "and now?" } }])
    expect(yield* answer(id, first.questions[0]!.key, "yes")).toBe(false)
    yield* answer(id, state.questions[0]!.key, "well")
    expect(textOf(yield* ended(id))).toBe("nobody")
  }).pipe(memory))

it.effect("a question's timeout is durable, and fails with Timeout", () =>
  Effect.gen(function*() {
    yield* work({
      wait: durable(() =>
        Effect.gen(function*() {
          const first = yield* Effect.match(ask("sure?", { timeout: "2 hours" }), {
            onFailure: (error) => (error as unknown as { reason: { _tag: string } }).reason._tag,
            onSuccess: () => "answered"
          })
          const { reply } = yield* ask("then?", { timeout: "2 hours" })
          return `${first} ${reply}`
        })
      )
    })
    const { id } = yield* submit("wait")
    const { questions: [first] } = yield* asking(id)
    yield* settled
    yield* TestClock.adjust("1 hour")
    yield* settled
    expect((yield* get(id))?.status).toBe("input_required")
    yield* TestClock.adjust("1 hour")
    const { questions: [then] } = yield* until(
      id,
      ({ questions: [one] }) => one !== undefined && one.key !== first!.key
    )
    yield* answer(id, then!.key, "yes")
    expect(textOf(yield* ended(id))).toBe("Timeout yes")
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 hour" }))))

it.effect("an answer does not interrupt a step that executes beside its question", () =>
  Effect.gen(function*() {
    let begun = 0
    yield* work({
      both: durable(() =>
        Effect.map(
          Effect.all([
            Effect.tap(ask("well?"), () => Step.run("after", {}, () => Effect.void)),
            Step.run("long", {}, () => Effect.andThen(Effect.sync(() => void begun++), Effect.sleep("1 minute")))
          ], { concurrency: 2 }),
          ([{ reply }]) => String(reply)
        )
      )
    })
    const { id } = yield* submit("both")
    const { questions: [question] } = yield* asking(id)
    yield* settled
    yield* answer(id, question!.key, "well")
    yield* pass(61)
    expect(textOf(yield* ended(id))).toBe("well")
    expect(begun).toBe(1)
  }).pipe(memory))

it.effect("replays a plain handler with its answers, and does not run the effect of `once` again", () =>
  Effect.gen(function*() {
    let done = 0
    let failures = 0
    yield* work({
      order: plain(() =>
        Effect.gen(function*() {
          const flaky = once(
            "flaky",
            Schema.String,
            Effect.suspend(() => ++failures < 3 ? Effect.fail({ message: "no" }) : Effect.succeed("yes"))
          )
          yield* Effect.ignore(flaky)
          const id = yield* once("reserve", Schema.String, Effect.sync(() => `#${++done}`))
          const { reply } = yield* ask(`Order ${id}?`)
          return `${reply} ${id} ${yield* Effect.retry(flaky, { times: 5 })}`
        })
      )
    })
    const { id } = yield* submit("order")
    const { questions: [question] } = yield* asking(id)
    expect(question!.params).toEqual({ message: "Order #1?" })
    yield* settled
    yield* answer(id, question!.key, "yes")
    expect(textOf(yield* ended(id))).toBe("yes #1 yes")
    expect([done, failures]).toEqual([1, 3])
  }).pipe(memory))

it.effect("a question in a step is a defect, and so are a step in a step and two steps with one name", () =>
  Effect.gen(function*() {
    const nothing = { success: Schema.Void }
    yield* work({
      question: durable(() => Step.run("one", {}, () => Effect.orDie(ask("?"))).pipe(Effect.as(""))),
      nested: durable(() => Step.run("one", {}, () => Step.run("two", {}, () => Effect.void)).pipe(Effect.as(""))),
      slept: durable(() => Step.run("one", {}, () => Step.sleep("two", 10)).pipe(Effect.as(""))),
      undone: durable(() => Step.run("one", {}, () => Step.compensate(() => Effect.void)).pipe(Effect.as(""))),
      twice: durable(() =>
        Effect.as(
          Effect.andThen(Step.run("one", nothing, () => Effect.void), Step.run("one", nothing, () => Effect.void)),
          ""
        )
      ),
      once: plain(() => Effect.as(once("key", Schema.Unknown, ask("?")), ""))
    })
    for (const tool of ["question", "nested", "slept", "undone", "twice", "once"]) {
      const { id } = yield* submit(tool)
      const state = yield* ended(id)
      expect([tool, state.status]).toEqual([tool, "failed"])
      expect(state.outcome).toMatchObject({
        _tag: "Error",
        error: { code: -32603, data: { reference: expect.any(String) } }
      })
    }
  }).pipe(memory))
