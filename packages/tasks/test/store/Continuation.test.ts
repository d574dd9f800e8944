/**
 * A log that begins again: no worker that has read the old one appends to it.
 */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { all, completed, counters, each, event, fresh, insert, question, stateOf } from "./kit.ts"

each(all, (backend) => {
  it.effect("keeps the positions of the log: an append and an end that know the old log change nothing", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      for (const seq of [1, 2, 3, 4]) yield* store.append(id, event(seq))
      expect(yield* store.continueWith(id, { nextSeq: 4 }, { year: 0 })).toBe(false)
      expect((yield* store.load(id))!.args).toEqual({ year: 2026 })
      expect(yield* store.continueWith(id, { nextSeq: 5 }, { year: 2027 })).toBe(true)
      expect((yield* store.load(id))!.args).toEqual({ year: 2027 })
      expect((yield* store.readLog(id)).map(({ kind, seq }) => [seq, kind])).toEqual([[5, "continued"]])
      for (const seq of [1, 3, 4, 5]) expect(yield* store.append(id, event(seq), true)).not.toBe("appended")
      expect(yield* store.continueWith(id, { nextSeq: 3 }, {})).toBe(false)
      expect(yield* store.finish(id, completed({}), { nextSeq: 3 })).toBe(false)
      expect(yield* store.finish(id, completed({}), { nextSeq: 5 })).toBe(false)
      expect(yield* store.append(id, event(6))).toBe("appended")
      expect((yield* store.admin.find(id))!.events).toBe(2)
      expect(yield* store.finish(id, completed({}), { nextSeq: 7 })).toBe(true)
      expect(yield* store.continueWith(id, { nextSeq: 7 }, {})).toBe(false)
      expect(yield* store.continueWith("unknown".padEnd(32, "x"), { nextSeq: 1 }, {})).toBe(false)
    }).pipe(Effect.scoped))

  it.effect("deletes its questions, open and answered", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { createdAt, id } = yield* insert(opened)
      yield* store.ask(id, question("a"))
      yield* store.answer(id, "a", { yes: true })
      yield* store.ask(id, question("b"))
      expect((yield* stateOf(opened, id)).status).toBe("input_required")
      expect(yield* store.continueWith(id, { nextSeq: 1 }, {})).toBe(true)
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", questions: [], createdAt })
      expect(yield* store.readAnswers(id)).toEqual([])
      expect(yield* store.answer(id, "b", {})).toBe(false)
      yield* store.ask(id, question("b"))
      yield* store.answer(id, "b", { yes: true })
      expect((yield* stateOf(opened, id)).status).toBe("working")
      const { counted, kept } = yield* counters(opened)
      expect(kept).toEqual(counted)
    }).pipe(Effect.scoped))

  it.effect("ignores an event below its first one", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const { id } = yield* insert(opened)
      for (const seq of [1, 2, 3]) yield* store.append(id, event(seq))
      yield* store.continueWith(id, { nextSeq: 4 }, {})
      yield* sql`INSERT INTO skein_task_log (task_id, seq, kind, name, attempt, at) VALUES (${id}, 3, 'step', 'old', 1, 1)`
      expect((yield* store.readLog(id)).map(({ seq }) => seq)).toEqual([4])
    }).pipe(Effect.scoped))
})
