/** Children of tasks: they start once, their parents wait for them without memory, and end with them. */
import { describe, expect, it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { beforeAll } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { inTime, memory, poll, postgres, process, sqlite, type Store } from "./kit.ts"

type Body = Effect.Effect<string, { readonly message: string }, CurrentTask>

const child = Task.make("child", { input: { n: Schema.Int }, output: { twice: Schema.Int } })
const parent = Task.make("parent", { ttl: "2 days" })
const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.matchEffect(effect, { onFailure: Effect.succeed, onSuccess: () => Effect.die("it has not failed") })

const boom = { message: "boom" }

/** The work of a child: a sleep of the test clock, or on PostgreSQL, which has its own clock, a moment. */
const work = (isLive: boolean) =>
  isLive ? Step.run("work", {}, () => Effect.sleep(20)) : Step.sleep("work", "6 seconds")

/** Doubles; fails for negative numbers; never ends for 0. */
const childLayer = (isLive: boolean) =>
  Task.layer(child, ({ n }) =>
    Effect.gen(function*() {
      yield* n === 0 ? Step.sleep("work", "10 hours") : work(isLive)
      if (n < 0) return yield* Effect.fail({ message: `no ${n}` })
      return { twice: n * 2 }
    }))

const items = (...numbers: ReadonlyArray<number>) => numbers.map((n) => ({ n }))

const tests = (store: Store) => {
  const isLive = store === postgres
  const ended = <A, E, R>(effect: Effect.Effect<A, E, R>) => isLive ? effect : inTime(effect)
  const test = (name: string, effect: Effect.Effect<void, unknown, Scope.Scope>) =>
    isLive ? it.live(name, () => Effect.scoped(effect)) : it.effect(name, () => Effect.scoped(effect))

  /** A process in which a parent runs. */
  const begin = (body: Body) =>
    Effect.gen(function*() {
      const { run, stop } = yield* process(yield* store.engine, [childLayer(isLive), Task.layer(parent, () => body)])
      const handle = yield* run(Task.submit(parent, {}))
      const children = run(Effect.flatMap(TaskAdmin, ({ list }) => list({ parent: handle.id })))
      const inspect = run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(handle.id)))
      return { run, stop, handle, children, inspect }
    })

  test(
    "joins children with their values and failures",
    Effect.gen(function*() {
      const { handle, inspect } = yield* begin(Effect.gen(function*() {
        const one = yield* Task.start(child, { n: 1 }, { key: "one" })
        const two = yield* Task.start(child, { n: 2 }, { key: "two" })
        const bad = yield* Task.start(child, { n: -1 }, { key: "bad" })
        const all = yield* Effect.all([Task.join(one), Task.join(two)], { concurrency: "unbounded" })
        const failed = yield* failureOf(Task.join(bad))
        const again = yield* Task.join(one)
        return JSON.stringify([all, failed.reason._tag, failed.message, again.twice])
      }))
      expect(JSON.parse(yield* ended(handle.await))).toEqual([[{ twice: 2 }, { twice: 4 }], "Failed", "no -1", 2])
      const found = yield* inspect
      expect(found?.children).toEqual({ live: 0, completed: 2, failed: 1 })
      expect(found?.parent).toBeUndefined()
    })
  )

  test(
    "returns the first of several, and cancels the others at its end",
    Effect.gen(function*() {
      const { children, handle, run } = yield* begin(Effect.gen(function*() {
        const slow = yield* Task.start(child, { n: 0 }, { key: "slow" })
        const quick = yield* Task.start(child, { n: 3 }, { key: "quick" })
        const { twice } = yield* Effect.raceFirst(Task.join(slow), Task.join(quick))
        yield* Step.sleep("later", "6 seconds")
        return String(twice)
      }))
      expect(yield* ended(handle.await)).toBe("6")
      const all = yield* children
      expect(all.map(({ state }) => state.status).toSorted()).toEqual(["cancelled", "completed"])
      const one = yield* run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(all[0]!.state.id)))
      expect(one?.parent).toBe(handle.id)
    })
  )

  test(
    "cancels children before it compensates, except for detached ones",
    Effect.gen(function*() {
      const seen: Array<string> = []
      const looked = Latch.makeUnsafe()
      let look: Effect.Effect<unknown, unknown> = Effect.void
      const { children, handle } = yield* begin(Effect.gen(function*() {
        yield* Step.compensate(() => Effect.suspend(() => look))
        yield* Task.start(child, { n: 0 }, { key: "detached", detached: true })
        yield* Task.join(yield* Task.start(child, { n: 0 }, { key: "own" }))
        return "never"
      }))
      look = Effect.tap(children, (all) =>
        Effect.sync(() => {
          seen.push(...all.map(({ state }) => state.status))
          looked.openUnsafe()
        }))
      yield* ended(poll(children, (all) => all.length === 2))
      expect(yield* handle.cancel()).toBe(true)
      yield* ended(looked.await)
      expect(seen.toSorted()).toEqual(["cancelled", "working"])
    })
  )

  test(
    "cancels children of a parent that fails",
    Effect.gen(function*() {
      const { children, handle } = yield* begin(
        Effect.andThen(Effect.orDie(Task.start(child, { n: 0 })), Effect.fail(boom))
      )
      expect((yield* Effect.flip(ended(handle.await))).message).toBe("boom")
      expect((yield* children).map(({ state }) => state.status)).toEqual(["cancelled"])
    })
  )

  test(
    "runs a child for each item, some at a time, and collects failures",
    Effect.gen(function*() {
      const { children, handle, inspect } = yield* begin(Effect.gen(function*() {
        const results = yield* Task.forEach(child, items(1, 2, -3, 4, -5, 6, 7), {
          concurrency: 2,
          onFailure: "collect"
        })
        return JSON.stringify(
          results.map((each) => Result.isSuccess(each) ? each.success.twice : each.failure.message)
        )
      }))
      let most = 0
      const counted = Effect.map(children, (all) => {
        most = Math.max(most, all.filter(({ state }) => state.status === "working").length)
      })
      yield* Effect.forkChild(Effect.forever(Effect.andThen(Effect.sleep(isLive ? 5 : 2000), counted)))
      expect(JSON.parse(yield* ended(handle.await))).toEqual([2, 4, "no -3", 8, "no -5", 12, 14])
      expect(most).toBeLessThanOrEqual(2)
      expect((yield* inspect)?.log.map(({ kind, name }) => `${kind} ${name}`)).toEqual(["join child"])
    })
  )

  test(
    "fails with the first failure, and cancels the other children",
    Effect.gen(function*() {
      const { children, handle } = yield* begin(Effect.gen(function*() {
        const failed = yield* failureOf(Task.forEach(child, items(0, -2, 0, 1), { concurrency: 3 }))
        return `${failed.reason._tag}: ${failed.message}`
      }))
      expect(yield* ended(handle.await)).toBe("Failed: no -2")
      expect((yield* children).map(({ state }) => `${state.status} ${state.isError}`).toSorted()).toEqual([
        "cancelled false",
        "cancelled false",
        "completed true"
      ])
    })
  )

  test(
    "holds no slot while it waits, and continues after a restart",
    Effect.gen(function*() {
      let runs = 0
      const engine = yield* store.engine
      const definitions = [
        childLayer(isLive),
        Task.layer(parent, () =>
          Effect.gen(function*() {
            runs++
            const never = yield* Task.start(child, { n: 0 }, { key: "never" })
            return String((yield* Effect.result(Task.join(never)))._tag)
          }))
      ]
      const first = yield* process(engine, definitions)
      const handle = yield* first.run(Task.submit(parent, {}))
      const waits = first.run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(handle.id)))
      yield* ended(poll(waits, (task) => task?.place._tag === "Waiting"))
      if (store === memory) return
      yield* first.stop
      const second = yield* process(engine, definitions)
      const children = second.run(Effect.flatMap(TaskAdmin, ({ list }) => list({ parent: handle.id })))
      const [only, ...others] = yield* children
      expect(others).toEqual([])
      yield* second.run(Effect.flatMap(TaskAdmin, ({ cancel }) => cancel(only!.state.id)))
      const end = second.run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(handle.id, { values: true })))
      const task = yield* ended(poll(end, (task) => task?.state.status === "completed"))
      expect(task?.outcome).toMatchObject({ result: { content: [{ text: "Failure" }] } })
      expect(yield* children).toHaveLength(1)
      expect(runs).toBeGreaterThan(1)
    })
  )
}

for (const store of [memory, sqlite]) describe(store.name, () => tests(store))

const isAbsent = unavailable !== undefined && !required
describe.skipIf(isAbsent)(isAbsent ? `PostgreSQL (${unavailable})` : "PostgreSQL", () => {
  beforeAll(sharedPostgres, 60_000)
  tests(postgres)
})

describe("children", () => {
  const failing = (body: Body) =>
    Effect.gen(function*() {
      const { run } = yield* process(yield* memory.engine, [childLayer(false), Task.layer(parent, () => body)])
      const { await: end } = yield* run(Task.submit(parent, {}))
      return yield* inTime(
        Effect.map(Effect.result(end), (result) => Result.isSuccess(result) ? result.success : result.failure.message)
      )
    }).pipe(Effect.scoped)

  it.effect("have names that are unique, and are not started or joined in steps and compensations", () =>
    Effect.gen(function*() {
      const start = Effect.orDie(Task.start(child, { n: 1 }))
      const died = (effect: Effect.Effect<unknown, never, CurrentTask>) =>
        failing(Effect.catchDefect(Effect.as(effect, "none"), (defect) => Effect.succeed((defect as Error).message)))
      const inStep = (effect: Effect.Effect<unknown, unknown, CurrentTask>) =>
        Step.run("s", {}, () => Effect.orDie(effect))
      expect(yield* died(Effect.andThen(start, start))).toContain("duplicate child name \"child\"")
      expect(yield* died(inStep(start))).toContain("Task.start of \"child\" is not allowed inside step \"s\"")
      expect(yield* died(Effect.flatMap(start, (child) => inStep(Task.join(child))))).toContain(
        "Task.join of \"child\" is not allowed inside step \"s\""
      )
    }))

  it.effect("are refused for invalid arguments, and for more than 10,000 items", () =>
    Effect.gen(function*() {
      const refused = <A>(effect: Effect.Effect<A, { readonly message: string }, CurrentTask>) =>
        failing(Effect.map(failureOf(effect), ({ message }) => message))
      expect(yield* refused(Task.start(child, { n: 0.5 }))).toContain("the arguments of the task \"child\" are invalid")
      expect(yield* refused(Task.forEach(child, items(1, 0.5)))).toContain("are invalid")
      expect(yield* refused(Task.forEach(child, items(...Array.from({ length: 10_001 }, (_, n) => n))))).toBe(
        "Task.forEach has 10001 items of the task \"child\": the limit is 10000"
      )
      expect(yield* refused(Task.forEach(child, [], { concurrency: 0 }))).toContain("must be a whole number from 1")
      expect(yield* failing(Effect.map(Task.forEach(child, []), ({ length }) => `${length}`))).toBe("0")
    }))
})
