/** The heartbeats of steps: their details, and their limit. */
import { it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as TaskTest from "@skein/tasks/TaskTest"
import { StepTimeout, TaskError } from "@skein/tasks/TaskError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { expect } from "vitest"
import { durable, ended, pass, settled, submit, textOf, work } from "./kit.ts"

const memory = MemoryTasks.layer({ pollInterval: "1 minute" })

const stored = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string; readonly details: string }>`SELECT name, details FROM skein_task_heartbeats`
)

it.effect("an attempt without a heartbeat fails, and the next one has the last details", () =>
  Effect.gen(function*() {
    const seen: Array<unknown> = []
    yield* work({
      bake: durable(() =>
        Effect.gen(function*() {
          const options = { heartbeatTimeout: "3 seconds", retry: { times: 1, initialDelay: "1 second" } } as const
          const error = yield* Effect.orDie(Effect.flip(Step.run("bake", options, () =>
            Effect.gen(function*() {
              seen.push(yield* Step.lastHeartbeat)
              for (const cake of [1, 2]) {
                yield* Effect.sleep("2 seconds")
                yield* Step.heartbeat({ cake, at: undefined })
              }
              yield* Effect.sleep("2 seconds")
              yield* Step.heartbeat()
              seen.push(yield* Step.lastHeartbeat)
              return yield* Effect.never
            }))))
          seen.push(error instanceof StepTimeout && [error.option, error.message])
          return ""
        })
      )
    })
    const { id } = yield* submit("bake")
    yield* settled
    yield* pass(10, 2)
    expect(seen).toEqual([undefined, { cake: 2 }, { cake: 2 }])
    yield* pass(10, 2)
    yield* ended(id)
    expect(seen.slice(3)).toEqual([
      { cake: 2 },
      ["heartbeatTimeout", "step \"bake\" had no heartbeat for its heartbeatTimeout of 3000 ms"]
    ])
    expect(yield* stored).toEqual([])
  }).pipe(Effect.provide(memory)))

it.effect("details are written at most every two seconds, and when an attempt fails", () =>
  Effect.gen(function*() {
    yield* work({
      bake: durable(() =>
        Effect.as(
          Effect.ignore(Step.run("bake", { timeout: "4500 millis", retry: { times: 1, initialDelay: "1 hour" } }, () =>
            Effect.gen(function*() {
              for (let tick = 0;; tick++) {
                yield* Step.heartbeat(tick)
                yield* Effect.sleep("500 millis")
              }
            }))),
          ""
        )
      )
    })
    const { id } = yield* submit("bake")
    yield* settled
    const written: Array<unknown> = []
    for (let half = 0; half < 10; half++) {
      written.push(...(yield* stored).map(({ details }) => details))
      yield* pass(0.5, 0.5)
    }
    // Each is at most two seconds old, and the last attempt ended at 4.5 seconds.
    expect(new Set(written).size).toBeLessThanOrEqual(4)
    expect(written.length).toBe(10)
    expect((yield* stored).map(({ details }) => details)).toEqual(["8"])
    yield* pass(7200, 3600)
    yield* ended(id)
    expect(yield* stored).toEqual([])
  }).pipe(Effect.provide(memory)))

it.live("the next process continues from the last details, which are encrypted in the store", () =>
  Effect.scoped(Effect.gen(function*() {
    let baked = 0
    const server = Layer.effectDiscard(work({
      bake: durable(() =>
        Effect.as(
          Step.run("bake", {}, () =>
            Effect.gen(function*() {
              const from = (yield* Step.lastHeartbeat) as number | undefined ?? 0
              for (let cake = from; cake < 4; cake++) {
                baked++
                yield* Step.heartbeat(cake + 1)
                if (from === 0 && cake === 2) return yield* Effect.never
              }
            })),
          "baked"
        )
      )
    }))
    const test = yield* TaskTest.make(server)
    const { id } = yield* test.run(submit("bake"))
    yield* test.run(Effect.repeat(Effect.delay(stored, 100), { until: (rows) => rows.length > 0 }))
    const [row] = yield* test.run(stored)
    expect(row).toMatchObject({ name: "bake", details: expect.stringMatching(/^sealed:/) })
    yield* test.restart
    expect(textOf(yield* test.run(ended(id)))).toBe("baked")
    expect(baked).toBe(4)
  })).pipe(Effect.provide(Encryption.layer({ keys: [Redacted.make("0123456789abcdef0123456789abcdef")] }))))

it.effect("rejects details out of bounds, and a heartbeat outside of a step", () =>
  Effect.gen(function*() {
    const seen: Array<unknown> = []
    const note = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.map(Effect.exit(effect), (exit) => {
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        seen.push([defect instanceof TaskError && defect.reason._tag, defect instanceof Error && defect.message])
      })
    yield* work({
      wrong: durable(() =>
        Effect.gen(function*() {
          yield* Step.run("a", {}, () => note(Step.heartbeat("x".repeat(8191))))
          yield* Step.run("b", {}, () => note(Step.heartbeat(1n)))
          yield* Step.run("c".repeat(513), {}, () => note(Step.heartbeat(1)))
          yield* note(Step.heartbeat(1))
          yield* note(Step.lastHeartbeat)
          yield* note(Step.run("d", { heartbeatTimeout: 0 }, () => Effect.void))
          return ""
        })
      )
    })
    yield* ended((yield* submit("wrong")).id)
    expect(seen).toEqual([
      [
        "InvalidOption",
        "heartbeat of step \"a\": its details have 8193 characters as JSON, and may have at most 8192"
      ],
      ["InvalidOption", expect.stringContaining("heartbeat of step \"b\": its details")],
      ["InvalidOption", expect.stringContaining("the name of the step exceeds 512 characters")],
      [false, "Step.heartbeat is only allowed inside a step"],
      [false, "Step.lastHeartbeat is only allowed inside a step"],
      ["InvalidOption", "heartbeatTimeout of step \"d\" is 0: it must be finite, and more than 0"]
    ])
  }).pipe(Effect.provide(memory)))
