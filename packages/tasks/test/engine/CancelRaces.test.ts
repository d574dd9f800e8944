/**
 * Cancellations that race with everything else a task does: at each of many moments, and with the same few outcomes.
 */
import { it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { id as taskId } from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { durable, get, pass, plain, settled, submit, textOf, until, work } from "./kit.ts"

const memory = Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))

const cancel = (id: string) => Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))
const answer = (id: string) => Effect.flatMap(TaskEngine, ({ answer }) => answer(id, "k", { action: "accept" }))

const ask = Effect.flatMap(
  McpRequest,
  (taskRequest) =>
    taskRequest.request("elicitation/create", { message: "?" }, { key: "k" }) as Effect.Effect<JsonObject, Error>
)

/** Lets other fibers run for some turns of the scheduler, and now and then for a turn of the event loop. */
const turns = (n: number) =>
  Effect.forEach(Array.from({ length: n }), (_, index) =>
    index % 8 === 7
      ? Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      : Effect.yieldNow, { discard: true })

/** The steps that the tasks have run and compensated, by task id. A step takes time, and acts at its end. */
const journal = () => {
  const done = new Map<string, Array<string>>()
  const step = (name: string, options = {}) =>
    Effect.flatMap(taskId, (id) => {
      const act = (line: string) =>
        Effect.andThen(turns(3), Effect.sync(() => void done.set(id, [...done.get(id) ?? [], line])))
      return Step.run(name, options, () => act(name)).pipe(
        Step.withCompensation(() => Step.run(`un${name}`, options, () => act(`un${name}`)))
      )
    })
  return { step, of: (id: string) => done.get(id) ?? [] }
}

/** Every act was undone once, in reverse order. */
const undone = (lines: ReadonlyArray<string>): void => {
  const did = lines.filter((line) => !line.startsWith("un"))
  expect(lines).toEqual([...did, ...did.toReversed().map((line) => `un${line}`)])
}

const moments = Array.from({ length: 120 }, (_, n) => n)

for (const transactional of [false, true]) {
  const steps = transactional ? "transactional steps" : "steps"
  it.effect(`cancelled at any moment of its ${steps}: ends once, and is compensated completely or not at all`, () =>
    Effect.gen(function*() {
      const { of, step } = journal()
      yield* work({
        travel: durable(() =>
          Effect.gen(function*() {
            yield* turns(6)
            yield* step("flight", { transactional })
            yield* step("hotel", { transactional })
            yield* turns(6)
            return "booked"
          })
        )
      })
      const tasks = yield* Effect.forEach(moments, (n) =>
        Effect.gen(function*() {
          const { id } = yield* submit("travel")
          yield* turns(n)
          return { id, cancelled: yield* cancel(id) }
        }))
      yield* pass(8)
      for (const { cancelled, id } of tasks) {
        const state = yield* get(id)
        if (cancelled) {
          expect(state).toMatchObject({ status: "cancelled", outcome: undefined })
          undone(of(id))
        } else {
          expect(textOf(state)).toBe("booked")
          expect(of(id)).toEqual(["flight", "hotel"])
        }
      }
      const ends = new Set(tasks.map(({ cancelled, id }) => `${cancelled} ${of(id).length}`))
      // The cancellation waits for the end of a transaction.
      const between = transactional ? [] : ["true 2"]
      expect([...ends]).toEqual(expect.arrayContaining(["true 0", ...between, "true 4", "false 2"]))
      const sql = yield* SqlClient
      expect(yield* sql`SELECT task_id FROM skein_task_queue`).toEqual([])
    }).pipe(memory))
}

it.effect("cancelled while its answer arrives: the first answer counts, and a cancelled task stays cancelled", () =>
  Effect.gen(function*() {
    const { of, step } = journal()
    yield* work({
      travel: durable(() =>
        Effect.gen(function*() {
          yield* step("flight")
          yield* Effect.orDie(ask)
          yield* step("hotel")
          return "booked"
        })
      )
    })
    const tasks = yield* Effect.forEach(moments.slice(0, 80), (n) =>
      Effect.gen(function*() {
        const { id } = yield* submit("travel")
        yield* until(id, ({ questions }) => questions.length === 1)
        // Each of the two starts first in half of the runs.
        const first = yield* Effect.forkChild(n % 2 === 0 ? answer(id) : cancel(id), { startImmediately: true })
        yield* turns(n)
        const second = yield* n % 2 === 0 ? cancel(id) : answer(id)
        const one = yield* Fiber.join(first)
        return n % 2 === 0 ? { id, answered: one, cancelled: second } : { id, answered: second, cancelled: one }
      }))
    yield* pass(8)
    for (const { answered, cancelled, id } of tasks) {
      const state = yield* get(id)
      expect(state?.status).toBe(cancelled ? "cancelled" : "completed")
      expect(answered || cancelled).toBe(true)
      if (cancelled) undone(of(id))
      else expect(of(id)).toEqual(["flight", "hotel"])
    }
    const ends = new Set(tasks.map(({ answered, cancelled }) => `${answered} ${cancelled}`))
    expect(ends).toEqual(new Set(["true true", "true false", "false true"]))
  }).pipe(memory))

it.effect("cancelled twice, or ten times at once: one call cancels it, and it is compensated once", () =>
  Effect.gen(function*() {
    const { of, step } = journal()
    yield* work({
      sleeps: durable(() => Effect.as(Effect.andThen(step("flight"), Step.sleep("nap", "1 day")), "")),
      asks: durable(() => Effect.as(Effect.andThen(step("flight"), Effect.orDie(ask)), "")),
      works: durable(() => Effect.as(Effect.andThen(step("flight"), Step.run("endless", {}, () => Effect.never)), ""))
    })
    for (const tool of ["sleeps", "asks", "works"]) {
      const { id } = yield* submit(tool)
      yield* settled
      const at = Array.from({ length: 10 }, (_, n) => Effect.andThen(turns(n * 3), cancel(id)))
      const done = yield* Effect.all(at, { concurrency: "unbounded" })
      expect(done.filter((cancelled) => cancelled)).toHaveLength(1)
      yield* pass(8)
      expect((yield* get(id))?.status).toBe("cancelled")
      expect(of(id)).toEqual(["flight", "unflight"])
    }
  }).pipe(memory))

it.effect(
  "cancelled just as it wakes from a sleep, or just as a question times out",
  () =>
    Effect.gen(function*() {
      const { of, step } = journal()
      const late = Effect.flatMap(
        McpRequest,
        (taskRequest) =>
          Effect.ignore(taskRequest.request("elicitation/create", {}, { key: "k", timeout: "10 seconds" }))
      )
      const travel = (pause: Effect.Effect<unknown, never, any>) =>
        durable(() =>
          Effect.gen(function*() {
            yield* step("flight")
            yield* pause
            yield* step("hotel")
            return "booked"
          })
        )
      yield* work({ sleeps: travel(Step.sleep("nap", "10 seconds")), asks: travel(late) })
      for (const tool of ["sleeps", "asks"]) {
        const outcomes = new Set<boolean>()
        for (let n = 0; n < 40; n++) {
          const { id } = yield* submit(tool)
          yield* settled
          yield* pass(9)
          const waking = yield* Effect.forkChild(TestClock.adjust("2 seconds"), { startImmediately: true })
          yield* turns(n * 6)
          const cancelled = yield* cancel(id)
          outcomes.add(cancelled)
          yield* Fiber.join(waking)
          yield* pass(8)
          expect((yield* get(id))?.status).toBe(cancelled ? "cancelled" : "completed")
          if (cancelled) {
            undone(of(id))
          } else expect(of(id)).toEqual(["flight", "hotel"])
        }
        expect(outcomes).toEqual(new Set([true, false]))
      }
    }).pipe(Effect.provide(MemoryTasks.layer())),
  60_000
)

it.effect("cancelled while no worker has its tool: runs nothing when a worker has the tool, and is settled", () =>
  Effect.gen(function*() {
    const { of, step } = journal()
    yield* work({ other: plain(() => Effect.succeed("")) })
    const { id } = yield* submit("rare")
    const known = yield* submit("rare")
    yield* pass(10)
    expect((yield* get(id))?.statusMessage).toBe("Waiting for a worker that has the tool rare")
    expect(yield* cancel(id)).toBe(true)
    expect(yield* get(id)).toMatchObject({ status: "cancelled", statusMessage: undefined })
    yield* pass(5)
    yield* work({ rare: durable(() => Effect.as(step("flight"), "booked")) })
    yield* pass(20)
    expect(of(id)).toEqual([])
    expect(textOf(yield* get(known.id))).toBe("booked")
    const sql = yield* SqlClient
    expect(yield* sql`SELECT task_id FROM skein_task_queue`).toEqual([])
  }).pipe(memory))
