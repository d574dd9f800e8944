import { expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { all, completed, counters, each, fresh, insert, question, stateOf, task } from "./kit.ts"

const strings = [
  "",
  "\0",
  "a\0b",
  "\ud800",
  "x\udfffy",
  "\ud800\udc00",
  "json:\"x\"",
  "sealed:x",
  "__proto__",
  "constructor",
  "'; DROP TABLE skein_tasks; --",
  "\"",
  "\\",
  "\\u0000",
  "$1 ? %s",
  "\u0001\u0002\u001f\u007f\u2028\ufeff",
  "=",
  "=ada",
  "é vs é",
  "🧶".repeat(100)
]

each(all, (backend) => {
  it.effect("stores any text unchanged, in every column", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      for (const text of strings) {
        const json = JSON.parse(`{"__proto__":${JSON.stringify(text)}}`) as JsonObject
        const caller = {
          revision: "2025-11-25",
          capabilities: { ...json, text },
          info: { name: text },
          principal: { id: text }
        } as const
        const { id } = yield* insert(opened, {
          owner: text,
          tool: text,
          pool: text,
          args: { [text]: text, json },
          caller
        })
        yield* store.setStatusMessage(id, text)
        yield* store.setProgress(id, { progress: 1, message: text })
        yield* store.ask(id, { key: text, method: text, params: { [text]: json } })
        const state = yield* stateOf(opened, id)
        expect(state).toMatchObject({
          ...{ owner: text, tool: text, pool: text, statusMessage: text, caller },
          progress: { message: text },
          questions: [{ key: text, method: text, params: { [text]: json } }]
        })
        expect(Object.keys(state.caller.capabilities)).toContain("__proto__")
        expect(Object.getPrototypeOf(state.caller.capabilities)).toBe(Object.prototype)
        expect(yield* store.load(id)).toMatchObject({
          args: { [text]: text, json },
          tool: text,
          pool: text,
          owner: text
        })
        expect((yield* store.list([text], undefined, 10)).map(({ id }) => id)).toEqual([id])
        expect(yield* store.answer(id, text, { [text]: json })).toBe(true)
        expect(yield* store.ask(id, question(text))).toEqual({ [text]: json })
        yield* store.finish(id, {
          status: "failed",
          outcome: { _tag: "Error", error: { code: 1, message: text, data: json } }
        })
        expect((yield* stateOf(opened, id)).outcome).toEqual({
          _tag: "Error",
          error: { code: 1, message: text, data: json }
        })
      }
      // Each text is an owner and a tool of its own.
      const { counted, kept } = yield* counters(opened)
      expect(kept).toEqual(counted)
      expect(kept).toHaveLength(1 + 2 * strings.length)
    }))

  it.effect("treats texts that cannot be ids as unknown tasks", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      for (
        const other of [
          ...strings,
          "A".repeat(32),
          id.slice(1),
          `${id}\0`,
          `${id} `,
          id.toLowerCase(),
          "x".repeat(1_000_000)
        ]
      ) {
        if (other === id) continue
        expect(yield* store.get(other)).toBeUndefined()
        expect(yield* store.load(other)).toBeUndefined()
        expect(yield* store.finish(other, { status: "cancelled" })).toBe(false)
        expect(yield* store.answer(other, "k", {})).toBe(false)
        expect(yield* store.ask(other, question("k"))).toBeUndefined()
        yield* store.withdraw(other, "k")
        yield* store.setStatusMessage(other, "x")
        yield* store.setProgress(other, { progress: 1 })
        yield* store.remove([other])
        yield* Effect.scoped(store.listen(other, () => {}))
        yield* store.list(["ada"], { createdAt: 0, id: other }, 10)
      }
      expect(yield* stateOf(opened, id)).toMatchObject({ status: "working", version: 1 })
    }))

  it.effect("treats keys of questions that were not asked as unknown", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.ask(id, question("k"))
      for (const key of [...strings, "k\0", "K", "k".repeat(1_000_000)]) {
        expect(yield* store.answer(id, key, {})).toBe(false)
        yield* store.withdraw(id, key)
      }
      expect((yield* stateOf(opened, id)).questions).toHaveLength(1)
    }))

  it.effect("stores large arguments, results, questions and answers", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const text = "ü\0\"".repeat(350_000)
      const { id } = yield* insert(opened, { args: { text } })
      expect((yield* store.load(id))?.args).toEqual({ text })
      yield* store.setStatusMessage(id, text)
      yield* store.ask(id, question("k", { text }))
      expect((yield* stateOf(opened, id)).questions[0]?.params).toEqual({ text })
      yield* store.answer(id, "k", { text })
      expect(yield* store.ask(id, question("k"))).toEqual({ text })
      yield* store.finish(id, completed({ text }))
      expect(yield* stateOf(opened, id)).toMatchObject({ statusMessage: text, outcome: { result: { text } } })
    }))

  it.effect("rejects names that are too long for an index, and creates nothing", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const long = "🧶".repeat(256)
      for (
        const options of [{ owner: `${long}x` }, { tool: `${long}x` }, { pool: `${long}x` }, { tool: "\0".repeat(512) }]
      ) {
        let begun = false
        const error = yield* Effect.flip(
          opened.store.insert(task(options), undefined, () => Effect.sync(() => void (begun = true)))
        )
        expect(error).toMatchObject({
          reason: { _tag: "StoreError" },
          message: expect.stringContaining("512 characters")
        })
        expect(begun).toBe(false)
      }
      const { id } = yield* insert(opened, { owner: long.slice(0, -2), tool: long, pool: long })
      yield* opened.store.ask(id, question(long))
      expect(yield* Effect.flip(opened.store.ask(id, question(`${long}x`)))).toMatchObject({
        reason: { _tag: "StoreError" }
      })
      expect((yield* stateOf(opened, id)).questions.map(({ key }) => key)).toEqual([long])
      expect(yield* opened.store.list([`${long}x`], undefined, 10)).toEqual([])
    }))

  it.effect("fails for values without a JSON form, and does not die", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const circle: Record<string, unknown> = {}
      circle["circle"] = circle
      for (const args of [{ big: 1n } as never, circle as never, undefined as never]) {
        expect(yield* Effect.flip(insert(opened, { args }))).toMatchObject({ reason: { _tag: "StoreError" } })
      }
      const { id } = yield* insert(opened)
      expect(yield* Effect.flip(opened.store.finish(id, completed(circle as never)))).toMatchObject({
        reason: { _tag: "StoreError" }
      })
      expect((yield* stateOf(opened, id)).status).toBe("working")
    }))

  it.effect("accepts any number as a time to live", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      for (
        const [ttl, kept] of [[0.5, 1], [1e300, Number.MAX_SAFE_INTEGER], [-5, 0], [
          Number.POSITIVE_INFINITY,
          null
        ]] as const
      ) {
        expect((yield* insert(opened, { ttlMs: ttl })).ttlMs).toBe(kept)
      }
      expect((yield* opened.store.findExpired(1)).map(({ expiresAt }) => expiresAt)).toEqual([0])
      expect(yield* opened.store.nextExpiry(0)).toBe(1)
    }))

  it.effect("an invalid row fails its own reads only", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      const other = yield* insert(opened)
      yield* opened.sql`UPDATE skein_tasks SET caller = 'no json', args = '{' WHERE id = ${id}`
      expect(yield* Effect.flip(opened.store.get(id))).toMatchObject({ reason: { _tag: "StoreError" } })
      expect(yield* Effect.flip(opened.store.load(id))).toMatchObject({ reason: { _tag: "StoreError" } })
      expect(yield* stateOf(opened, other.id)).toEqual(other)
    }))

  it.effect("an unreachable store is an error", () =>
    Effect.gen(function*() {
      const opened = yield* Effect.flatten(backend.database)
      const { id } = yield* insert(opened)
      yield* opened.sql`ALTER TABLE skein_tasks RENAME TO gone`
      expect(yield* Effect.flip(opened.store.get(id))).toMatchObject({
        _tag: "TaskError",
        reason: { _tag: "StoreError" }
      })
      expect(yield* Effect.flip(insert(opened))).toMatchObject({ _tag: "TaskError", reason: { _tag: "StoreError" } })
    }))
})
