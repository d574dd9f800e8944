/** The time that an attempt of a step may take, and which failures are retried. */
import { it } from "@effect/vitest"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as TaskTest from "@skein/tasks/TaskTest"
import { StepTimeout, TaskError } from "@skein/tasks/TaskError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { expect } from "vitest"
import { durable, ended, pass, settled, submit, textOf, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String, code: Schema.Int }) {}

it.effect("a step fails at its timeout, which names the step and the limit, and is retried", () =>
  Effect.gen(function*() {
    let attempts = 0
    let interrupted = 0
    let runs = 0
    const seen: Array<unknown> = []
    yield* work({
      charge: durable(() =>
        Effect.gen(function*() {
          runs++
          const charge = Step.run(
            "charge",
            { timeout: "2 seconds", retry: { times: 2, initialDelay: "1 second" } },
            () =>
              Effect.onInterrupt(
                Effect.suspend(() => (attempts++, Effect.never)),
                () => Effect.sync(() => void interrupted++)
              )
          )
          seen.push(yield* Effect.orDie(Effect.flip(charge)))
          yield* Step.sleep("a while", "1 hour")
          return ""
        })
      )
    })
    const { id } = yield* submit("charge")
    yield* settled
    yield* pass(3)
    expect([attempts, interrupted]).toEqual([2, 1])
    yield* pass(6)
    expect([attempts, interrupted]).toEqual([3, 3])
    yield* pass(7200, 3600)
    yield* ended(id)
    // The second run has the recorded failure.
    expect([attempts, runs]).toEqual([3, 2])
    expect(seen.map((error) => error instanceof StepTimeout && { ...error, message: error.message })).toEqual(
      Array.from({ length: 2 }, () => ({
        _tag: "StepTimeout",
        message: "step \"charge\" did not end within its timeout of 2000 ms",
        step: "charge",
        option: "timeout",
        limitMs: 2000
      }))
    )
  }).pipe(memory))

it.effect("a transactional step that exceeds its timeout leaves no writes", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE money (amount INTEGER)`
    yield* work({
      pay: durable(() =>
        Effect.map(
          Effect.flip(
            Step.run(
              "pay",
              { timeout: "2 seconds", transactional: true },
              () => Effect.andThen(Effect.orDie(sql`INSERT INTO money VALUES (1)`), Effect.never)
            )
          ),
          ({ _tag }) => _tag
        )
      )
    })
    const { id } = yield* submit("pay")
    yield* settled
    yield* pass(3)
    expect(textOf(yield* ended(id))).toBe("StepTimeout")
    expect(yield* sql`SELECT * FROM money`).toEqual([])
  }).pipe(memory))

it.live("in a test, time does not skip to the timeout of a step that waits for something outside", () =>
  Effect.scoped(Effect.gen(function*() {
    const turns = Effect.promise(async () => {
      for (let turn = 0; turn < 100; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
    })
    const step = (name: string, effect: Effect.Effect<void>) =>
      Effect.match(Step.run(name, { timeout: "1 minute" }, () => effect), {
        onFailure: ({ _tag }) => _tag,
        onSuccess: () => "ended"
      })
    const test = yield* TaskTest.make(Layer.effectDiscard(work({
      fetch: durable(() => step("outside", turns)),
      sleep: durable(() => step("inside", Effect.sleep("1 hour")))
    })))
    expect(textOf(yield* test.run(Effect.flatMap(submit("fetch"), ({ id }) => ended(id))))).toBe("ended")
    expect(textOf(yield* test.run(Effect.flatMap(submit("sleep"), ({ id }) => ended(id))))).toBe("StepTimeout")
  })))

it.effect("only the failures that `while` accepts are retried, and the decision is made once", () =>
  Effect.gen(function*() {
    const codes: Array<number> = []
    const asked: Array<number> = []
    let runs = 0
    yield* work({
      pay: durable(() =>
        Effect.gen(function*() {
          runs++
          const error = yield* Effect.orDie(Effect.flip(Step.run("pay", {
            error: Broken,
            retry: {
              times: 5,
              initialDelay: "1 second",
              while: ({ code }) => (asked.push(code), code < 2)
            }
          }, () => Effect.suspend(() => new Broken({ message: "no", code: codes.push(codes.length) - 1 })))))
          yield* Step.sleep("a while", "1 hour")
          return `${error.code}`
        })
      )
    })
    const { id } = yield* submit("pay")
    yield* pass(4)
    expect(codes).toEqual([0, 1, 2])
    yield* pass(7200, 3600)
    expect(textOf(yield* ended(id))).toBe("2")
    expect([codes, asked, runs]).toEqual([[0, 1, 2], [0, 1, 2], 2])
  }).pipe(memory))

it.effect("a `while` that throws is a defect of its step", () =>
  Effect.gen(function*() {
    const seen: Array<string> = []
    yield* work({
      pay: durable(() => {
        const retry = {
          times: 5,
          while: (): boolean => {
            throw new Error("oops")
          }
        }
        const pay = Step.run("pay", { error: Broken, retry }, () => new Broken({ message: "no", code: 1 }))
        return Effect.as(Effect.catchDefect(pay, (defect) => Effect.sync(() => void seen.push(String(defect)))), "")
      })
    })
    yield* ended((yield* submit("pay")).id)
    expect(seen).toEqual(["Error: step \"pay\": `while` of its `retry` has failed: oops"])
  }).pipe(memory))

it.effect("rejects options of a step that are out of bounds, and does not run it", () =>
  Effect.gen(function*() {
    const wrong: ReadonlyArray<readonly [options: object, message: string]> = [
      [{ timeout: 0 }, "timeout of step \"a\" is 0: it must be finite, and more than 0"],
      [{ timeout: -1 }, "timeout of step \"a\" is -1: it must be finite, and more than 0"],
      [{ timeout: NaN }, "timeout of step \"a\" is NaN: it must be finite, and more than 0"],
      [{ timeout: Infinity }, "timeout of step \"a\" is Infinity: it must be finite, and more than 0"],
      [{ timeout: "soon" }, "timeout of step \"a\" is soon: it must be finite, and more than 0"],
      [{ retry: {} }, "retry of step \"a\": times is undefined: it must be a whole number, or Infinity"],
      [{ retry: { times: 1.5 } }, "retry of step \"a\": times is 1.5: it must be a whole number, or Infinity"],
      [{ retry: { times: 1, factor: NaN } }, "retry of step \"a\": factor is NaN: it must be finite, and more than 0"],
      [{ retry: { times: 1, initialDelay: "x" } }, "retry of step \"a\": initialDelay is x: it must be a duration"],
      [{ retry: { times: 1, maxDelay: "x" } }, "retry of step \"a\": maxDelay is x: it must be a duration"]
    ]
    let executed = 0
    const seen: Array<unknown> = []
    yield* work({
      wrong: durable(({ index }) =>
        Effect.map(
          Effect.exit(Step.run("a", wrong[index as number]![0], () => Effect.sync(() => void executed++))),
          (exit) => {
            const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
            seen.push(defect instanceof TaskError && defect.reason._tag === "InvalidOption" ? defect.message : defect)
            return ""
          }
        )
      )
    })
    for (const index of wrong.keys()) yield* ended((yield* submit("wrong", { args: { index } })).id)
    expect(seen).toEqual(wrong.map(([, message]) => message))
    expect(executed).toBe(0)
  }).pipe(memory))
