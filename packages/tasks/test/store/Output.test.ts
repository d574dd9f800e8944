import { expect, it } from "@effect/vitest"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { defaults, TaskBounds } from "../../src/internal/base/bounds.ts"
import { all, completed, each, fresh, insert, type Opened, pg } from "./kit.ts"

/** A task that worker "w" runs. */
const running = (opened: Opened) =>
  Effect.flatMap(insert(opened), ({ id }) => Effect.as(opened.store.claim("w", ["default"], 10), id))

const bounded = Effect.provideService(TaskBounds, { ...defaults, maxOutputItems: 3, maxOutputBytes: 10 })

each(all, (backend) => {
  it.effect("returns items from an offset, and deletes them with their task", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store: { finish, output, remove } } = opened
      const [id, other] = [yield* running(opened), yield* running(opened)]
      yield* output.add(id, "{\"n\":1}")
      yield* TestClock.adjust(5)
      yield* output.add(id, yield* output.check("json:\0\ud800"))
      yield* output.add(other, "3")
      const items = yield* output.read(id, 0)
      expect(items.map(({ offset, value }) => [offset, value])).toEqual([[0, { n: 1 }], [1, "json:\0\ud800"]])
      expect(items[1]!.at - items[0]!.at).toBe(5)
      expect(yield* output.read(id, 1)).toEqual([items[1]])
      expect(yield* output.read(id, 2)).toEqual([])
      expect(yield* output.read("unknown", 0)).toEqual([])
      expect(yield* output.count(id)).toBe(2)
      yield* finish(id, completed({}))
      // A step that does not notice the end of its task.
      yield* output.add(id, "4")
      expect(yield* output.count(id)).toBe(2)
      yield* remove([id])
      expect(yield* sql.unsafe("SELECT value FROM skein_task_output")).toEqual([{ value: "3" }])
    }))

  it.effect("refuses items beyond the bounds of a task, and values that are no JSON or too large", () =>
    Effect.gen(function*() {
      const opened = yield* bounded(fresh(backend))
      const { output } = opened.store
      const [many, large] = [yield* running(opened), yield* running(opened)]
      for (const text of ["1", "2", "3"]) yield* output.add(many, text)
      const refused = yield* Effect.flip(output.add(many, "4"))
      expect(refused.reason._tag).toBe("TooMuchOutput")
      expect(refused.message).toBe("the task has emitted 3 items of 3 bytes, and may emit at most 3 items of 10 bytes")
      yield* output.add(large, "\"ü234567\"")
      expect((yield* Effect.flip(output.add(large, "1"))).reason._tag).toBe("TooMuchOutput")
      expect(yield* output.count(large)).toBe(1)
      for (const value of [undefined, 1n, "x".repeat(262_143)]) {
        expect((yield* Effect.flip(output.check(value))).reason._tag).toBe("InvalidOutput")
      }
      expect(yield* output.check("x".repeat(262_142))).toHaveLength(262_144)
    }))

  it.effect("returns pages of up to a mebibyte", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { output } = opened.store
      const id = yield* running(opened)
      const text = JSON.stringify("x".repeat(262_142))
      for (let n = 0; n < 6; n++) yield* output.add(id, text)
      expect((yield* output.read(id, 0)).map(({ offset }) => offset)).toEqual([0, 1, 2, 3])
      expect((yield* output.read(id, 1)).map(({ offset }) => offset)).toEqual([1, 2, 3, 4])
      expect((yield* output.read(id, 4)).map(({ offset }) => offset)).toEqual([4, 5])
    }))

  it.live("gives each of many items at once a place of its own, and none to a rolled back one", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { output, transaction } = opened.store
      const id = yield* running(opened)
      const one = (n: number): Effect.Effect<unknown, TaskError> => {
        const added = output.add(id, String(n))
        return n % 5 === 0 ? Effect.exit(transaction(Effect.andThen(added, Effect.interrupt))) : added
      }
      yield* Effect.forEach(Array.from({ length: 20 }, (_, n) => n), one, { concurrency: "unbounded", discard: true })
      const items = yield* output.read(id, 0)
      expect(items.map(({ offset }) => offset)).toEqual(Array.from({ length: 16 }, (_, n) => n))
      expect(items.map(({ value }) => value as number).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, n) => n).filter((n) => n % 5 !== 0)
      )
    }))
})

each([pg], (backend) => {
  it.live("notifies readers in another process, and no listeners of the state of the task", () =>
    Effect.gen(function*() {
      const connect = yield* backend.database
      const [one, two] = [yield* connect, yield* connect]
      const id = yield* running(one)
      const heard: Array<string> = []
      yield* two.store.output.listen(id, () => void heard.push("output"))
      yield* two.store.listen(id, () => void heard.push("state"))
      yield* one.store.output.add(id, "1")
      yield* Effect.repeat(Effect.sleep(5), { until: () => heard.length > 0 })
      yield* one.store.setStatusMessage(id, "later")
      yield* Effect.repeat(Effect.sleep(5), { until: () => heard.length > 1 })
      expect(heard).toEqual(["output", "state"])
      expect(Exit.isSuccess(yield* Effect.exit(two.store.output.read(id, 0)))).toBe(true)
    }))
})
