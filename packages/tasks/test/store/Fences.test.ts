/** The writes of a run that knows another log than the database, which may have lost the last events. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { all, completed, each, event, fresh, insert, type Opened, question, stateOf } from "./kit.ts"

/** A task with a log of three events, of which the database has lost the last ones. */
const lose = (opened: Opened, remaining: number) =>
  Effect.gen(function*() {
    const { sql, store } = opened
    const { id } = yield* insert(opened)
    yield* store.claim("w1", undefined, 1)
    for (const seq of [1, 2, 3]) expect(yield* store.append(id, event(seq), false, event(seq - 1).at)).toBe("appended")
    yield* sql`DELETE FROM skein_task_log WHERE task_id = ${id} AND seq > ${remaining}`
    return id
  })

/** Everything that is stored about a task. */
const stored = ({ sql }: Opened, id: string) =>
  Effect.all([
    sql`SELECT * FROM skein_tasks WHERE id = ${id}`,
    sql`SELECT * FROM skein_task_log WHERE task_id = ${id} ORDER BY seq`,
    sql`SELECT * FROM skein_task_questions WHERE task_id = ${id} ORDER BY name`,
    sql`SELECT * FROM skein_task_queue WHERE task_id = ${id}`
  ])

each(all, (backend) => {
  for (const remaining of [0, 1, 2]) {
    it.effect(`a run whose database has only ${remaining} of its 3 events changes nothing`, () =>
      Effect.gen(function*() {
        const opened = yield* fresh(backend)
        const { store } = opened
        const id = yield* lose(opened, remaining)
        yield* store.ask(id, question("asked"))
        yield* store.ask(id, question("answered"))
        yield* store.answer(id, "answered", { yes: true })
        const before = yield* stored(opened, id)
        const end = { nextSeq: 4, lastAt: event(3).at }
        for (const isRepeated of [false, true]) {
          expect(yield* store.append(id, event(4), isRepeated, end.lastAt)).toBe("refused")
          expect(yield* store.append(id, event(4), isRepeated)).toBe("refused")
        }
        expect(yield* store.finish(id, completed({}), end)).toBe(false)
        expect(yield* store.suspend(id, "w1", 1, Infinity, end)).toBe(false)
        expect(yield* store.continueWith(id, end, {})).toBe(false)
        yield* store.ask(id, question("new"), 3)
        yield* store.withdraw(id, "asked", 3)
        yield* store.markLost(id, "asked", true, 3)
        yield* store.markLost(id, "answered", true, 3)
        yield* store.removeQuestion(id, "asked", 3)
        expect(yield* stored(opened, id)).toEqual(before)
        expect(yield* store.readSignals(id)).toMatchObject({ worker: "w1", lastSeq: remaining })
        yield* store.finish(id, { status: "cancelled" })
        expect(yield* store.settle(id, end)).toBe(false)
        // A run that has read what is stored goes on.
        const known = { nextSeq: remaining + 1, lastAt: remaining === 0 ? undefined : event(remaining).at }
        expect(yield* store.append(id, event(remaining + 1, { at: 77 }), true, known.lastAt)).toBe("appended")
        expect(yield* store.settle(id, { nextSeq: remaining + 2, lastAt: 77 })).toBe(true)
        expect(yield* store.settle(id)).toBe(false)
      }).pipe(Effect.scoped))
  }

  it.effect("a run whose last event was replaced by that of another worker changes nothing", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const id = yield* lose(opened, 2)
      const replaced = event(3, { at: 99 })
      expect(yield* store.append(id, replaced)).toBe("appended")
      const before = yield* stored(opened, id)
      const end = { nextSeq: 4, lastAt: event(3).at }
      expect(yield* store.append(id, event(4), true, end.lastAt)).toBe("refused")
      // The event of the other worker is equal except for its time.
      expect(yield* store.append(id, event(3), true, event(2).at)).toBe("conflict")
      expect(yield* store.finish(id, completed({}), end)).toBe(false)
      expect(yield* store.suspend(id, "w1", 0, Infinity, end)).toBe(false)
      expect(yield* store.continueWith(id, end, {})).toBe(false)
      expect(yield* stored(opened, id)).toEqual(before)
      expect(yield* store.finish(id, completed({}), { nextSeq: 4, lastAt: replaced.at })).toBe(true)
    }).pipe(Effect.scoped))

  it.effect("records an answer and a withdrawal only while the question has it", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      for (const key of ["a\0", "b"]) yield* store.ask(id, question(key))
      const answer = event(1, { kind: "answer", name: "a\0", value: null })
      const timeout = event(2, { kind: "timeout", name: "b", value: null })
      for (const kind of ["answer", "timeout"] as const) {
        expect(yield* store.append(id, { ...answer, kind }, true)).toBe("refused")
      }
      expect(yield* store.answer(id, "a\0", {})).toBe(true)
      yield* store.withdraw(id, "b")
      expect(yield* store.append(id, { ...answer, kind: "timeout" }, true)).toBe("refused")
      expect(yield* store.append(id, { ...answer, name: "unknown" }, true)).toBe("refused")
      expect(yield* store.append(id, answer, true)).toBe("appended")
      expect(yield* store.append(id, answer, true)).toBe("appended")
      expect(yield* store.append(id, { ...timeout, kind: "answer" }, true)).toBe("refused")
      expect(yield* store.append(id, timeout, true)).toBe("appended")
    }).pipe(Effect.scoped))

  it.effect("suspends a run only while the questions that it waits for are open", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const { id } = yield* insert(opened)
      yield* store.claim("w1", undefined, 1)
      yield* store.ask(id, question("k"))
      const suspend = (questions: number) => store.suspend(id, "w1", 0, Infinity, { nextSeq: 1 }, questions)
      expect(yield* suspend(2)).toBe(false)
      yield* sql`UPDATE skein_tasks SET open_questions = 0, status = 'working' WHERE id = ${id}`
      expect(yield* suspend(1)).toBe(false)
      yield* sql`UPDATE skein_tasks SET open_questions = 1, status = 'input_required' WHERE id = ${id}`
      expect(yield* suspend(1)).toBe(true)
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "input_required" })
    }).pipe(Effect.scoped))
})
