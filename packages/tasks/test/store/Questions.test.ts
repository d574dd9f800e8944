import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { all, completed, each, fresh, insert, question, stateOf } from "./kit.ts"

each(all, (backend) => {
  it.effect("asks a question once, and makes its task wait", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      expect(yield* store.ask(id, question("a"))).toBeUndefined()
      expect(yield* store.ask(id, question("b", undefined))).toBeUndefined()
      const asked = yield* stateOf(opened, id)
      expect(asked).toMatchObject({ status: "input_required", version: 3 })
      expect(asked.questions).toStrictEqual([question("a"), question("b", undefined)])
      // A replay asks again.
      expect(yield* store.ask(id, question("a"))).toBeUndefined()
      expect(yield* stateOf(opened, id)).toEqual(asked)
      // Listings do not contain questions.
      expect((yield* store.list(["ada"], undefined, 1))[0]).toMatchObject({ status: "input_required", questions: [] })
    }))

  it.effect("the first answer counts; the last one makes the task working again", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened, { pool: "gpu", ttlMs: 1000 })
      yield* store.ask(id, question("a"))
      yield* store.ask(id, question("b"))
      const signals = Effect.map(store.readSignals(id), (state) => state?.signals)
      expect(yield* store.answer(id, "a", { action: "accept", content: { n: 1 } })).toBe(true)
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "input_required", questions: [question("b")] })
      expect(yield* store.answer(id, "a", { action: "decline" })).toBe(false)
      expect(yield* store.answer(id, "z", {})).toBe(false)
      expect(yield* store.answer(id, "b", { action: "cancel" })).toBe(true)
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", questions: [], version: 5 })
      // Only the answers that count signal the task.
      expect(yield* signals).toBe(2)
      expect((yield* store.readAnswers(id)).toSorted((a, b) => a.key < b.key ? -1 : 1)).toEqual([
        { key: "a", answer: { action: "accept", content: { n: 1 } } },
        { key: "b", answer: { action: "cancel" } }
      ])
      expect(yield* store.ask(id, question("a"))).toEqual({ action: "accept", content: { n: 1 } })
      expect(yield* store.ask(id, question("b"))).toEqual({ action: "cancel" })
      expect((yield* stateOf(opened, id)).version).toBe(5)
    }))

  it.effect("rolls an answer back when its transaction fails", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.ask(id, question("a"))
      const before = yield* stateOf(opened, id)
      const answered = opened.sql.withTransaction(Effect.andThen(store.answer(id, "a", {}), Effect.fail("no")))
      expect(yield* Effect.flip(answered)).toBe("no")
      expect(yield* stateOf(opened, id)).toEqual(before)
      expect(yield* store.readSignals(id)).toMatchObject({ signals: 0 })
      expect(yield* store.readAnswers(id)).toEqual([])
      expect(yield* store.answer(id, "a", { yes: true })).toBe(true)
    }))

  it.effect("a withdrawn question is not open, and its key stays in use", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.ask(id, question("a"))
      yield* store.ask(id, question("b"))
      yield* store.withdraw(id, "a")
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "input_required", questions: [question("b")] })
      yield* store.withdraw(id, "a")
      yield* store.withdraw(id, "z")
      expect((yield* stateOf(opened, id)).version).toBe(4)
      yield* store.withdraw(id, "b")
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", version: 5 })
      expect(yield* store.answer(id, "a", {})).toBe(false)
      expect(yield* store.readAnswers(id)).toContainEqual({ key: "a", answer: undefined })
      expect(yield* store.ask(id, question("a"))).toBeUndefined()
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", version: 5 })
    }))

  it.effect("a lost question cannot be answered, and an answer that the handler has not received is dropped", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      for (const key of ["a", "b", "c"]) yield* store.ask(id, question(key))
      yield* store.markLost(id, "a", false)
      expect(yield* stateOf(opened, id)).toMatchObject({ questions: [question("b"), question("c")], version: 5 })
      expect(yield* store.answer(id, "a", {})).toBe(false)
      expect(yield* store.ask(id, question("a"))).toBe("lost")
      for (const key of ["b", "c"]) expect(yield* store.answer(id, key, { key })).toBe(true)
      yield* store.markLost(id, "b", false)
      expect(yield* store.ask(id, question("b"))).toEqual({ key: "b" })
      yield* store.markLost(id, "b", true)
      expect(yield* store.ask(id, question("b"))).toBe("lost")
      expect(yield* store.ask(id, question("c"))).toEqual({ key: "c" })
      yield* store.withdraw(id, "c")
      yield* store.markLost(id, "z", true)
      expect(new Map((yield* store.readAnswers(id)).map(({ answer, key }) => [key, answer]))).toEqual(
        new Map<string, unknown>([["a", "lost"], ["b", "lost"], ["c", { key: "c" }]])
      )
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", version: 7 })
    }))

  it.effect("a question of an expired task can be withdrawn", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened, { ttlMs: 10 })
      yield* opened.store.ask(id, question("a"))
      yield* TestClock.adjust(10)
      yield* opened.store.withdraw(id, "a")
      expect((yield* opened.store.load(id))?.status).toBe("working")
    }))

  it.effect("a task that ends has no open questions, and its answers stay for its compensations", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      for (const end of [{ status: "cancelled" } as const, completed({})]) {
        const { id } = yield* insert(opened)
        yield* store.ask(id, question("a"))
        yield* store.ask(id, question("b"))
        yield* store.answer(id, "a", { action: "accept" })
        yield* store.finish(id, end)
        const over = yield* stateOf(opened, id)
        expect(over).toMatchObject({ status: end.status, questions: [] })
        expect(yield* store.answer(id, "b", {})).toBe(false)
        yield* store.withdraw(id, "b")
        expect(yield* store.ask(id, question("a"))).toEqual({ action: "accept" })
        expect(yield* store.ask(id, question("b"))).toBeUndefined()
        expect(yield* store.ask(id, question("c"))).toBeUndefined()
        expect(yield* stateOf(opened, id)).toEqual(over)
      }
    }))

  it.effect("several fibers ask at once", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      const keys = Array.from({ length: 20 }, (_, index) => `k${index % 10}`)
      yield* Effect.forEach(keys, (key) => opened.store.ask(id, question(key)), { concurrency: "unbounded" })
      const { questions, version } = yield* stateOf(opened, id)
      expect(questions.map(({ key }) => key).toSorted()).toEqual(keys.slice(0, 10).toSorted())
      expect(version).toBe(11)
      yield* Effect.forEach(keys, (key) => opened.store.answer(id, key, {}), { concurrency: "unbounded" })
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", version: 21 })
    }))

  it.effect("finds the open questions for persons and groups, those of the oldest tasks first", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const ids: Array<string> = []
      for (let i = 0; i < 4; i++) {
        const { id } = yield* insert(opened, i === 3 ? { ttlMs: 500 } : {})
        ids.push(id)
        yield* store.ask(id, { ...question("a"), to: "finance" })
        yield* store.ask(id, { ...question("b"), to: "\0 ada" })
        yield* store.ask(id, question("c"))
        yield* TestClock.adjust(1)
      }
      const found = (addresses: ReadonlyArray<string>, limit = 100) =>
        Effect.map(
          store.findAddressed(addresses, limit),
          (all) => all.map(({ question, task }) => `${ids.indexOf(task.id)} ${question.key} ${question.to}`)
        )
      expect(yield* found(["finance"])).toEqual(["0 a finance", "1 a finance", "2 a finance", "3 a finance"])
      expect(yield* found(["finance"], 2)).toEqual(["0 a finance", "1 a finance"])
      yield* store.answer(ids[0]!, "a", {})
      yield* store.finish(ids[1]!, completed({}))
      yield* TestClock.adjust(500)
      expect(yield* found(["finance", "\0 ada"])).toEqual(["0 b \0 ada", "2 a finance", "2 b \0 ada"])
      expect(yield* found(["Finance"])).toEqual([])
      expect(yield* found([])).toEqual([])
      const long = store.ask(ids[0]!, { ...question("d"), to: "x".repeat(513) })
      expect(yield* Effect.flip(long)).toMatchObject({
        reason: { message: "`to` of a question exceeds 512 characters" }
      })
    }))
})
