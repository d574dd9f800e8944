/** Submissions that begin later, that are the only ones of their key, and that others change: on each store. */
import { it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Debounce, Singleton } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { all, completed, counters, each, fresh, insert, type Opened, stateOf, task } from "./kit.ts"

/** The tasks that may begin now. */
const claim = ({ store }: Opened) =>
  Effect.map(Effect.andThen(store.wake, store.claim("w1", undefined, 100)), (claims) => claims.map(({ id }) => id))

const argsOf = ({ store }: Opened, id: string) => Effect.map(store.load(id), (task) => task?.args)

const notStarted = (message: string) => ({ reason: { _tag: "NotStarted", message } })

each(all, (backend) => {
  it.effect("a task begins after its delay, which its time to live does not include", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const now = yield* opened.store.clock.now
      const later = yield* insert(opened, { delayMs: 60_000, ttlMs: 1000 })
      expect(later).toMatchObject({ status: "working", createdAt: now, ttlMs: 61_000 })
      const at = yield* insert(opened, { startAt: now + 30_000, delayMs: 90_000 })
      const past = yield* insert(opened, { startAt: now - 5, ttlMs: 1000 })
      const negative = yield* insert(opened, { delayMs: -5 })
      expect(past.ttlMs).toBe(1000)
      expect(new Set(yield* claim(opened))).toEqual(new Set([past.id, negative.id]))
      yield* TestClock.adjust(29_999)
      expect(yield* claim(opened)).toEqual([])
      yield* TestClock.adjust(1)
      expect(yield* claim(opened)).toEqual([at.id])
      yield* TestClock.adjust(30_000)
      expect(yield* claim(opened)).toEqual([later.id])
    }))

  it.effect("a process that submits a task with a delay does not run it, whether its tool has a gate or not", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const claimed: Array<boolean> = []
      const submit = (tool: string) =>
        store.insert(
          task({ tool, delayMs: 1000 }),
          "w1",
          (_, isClaimed) => Effect.sync(() => void claimed.push(isClaimed))
        )
      yield* submit("free")
      yield* store.tools.pace("gated", { concurrency: 1 })
      yield* submit("gated")
      expect(claimed).toEqual([false, false])
      expect(yield* store.claimGated("w1", undefined, 9)).toEqual([])
      yield* TestClock.adjust(1000)
      expect(yield* claim(opened)).toHaveLength(1)
      expect(yield* store.claimGated("w1", undefined, 9)).toHaveLength(1)
    }))

  it.effect("a singleton refuses, returns or cancels, until it has ended, was cancelled or has expired", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const submit = (onConflict: Singleton["onConflict"], options: Parameters<typeof task>[0] = {}) =>
        store.insert(task({ singleton: { key: "eu", onConflict }, ...options }))
      const first = yield* submit("fail")
      expect(yield* Effect.flip(submit("fail"))).toMatchObject(
        notStarted(
          "the task \"report\" was not started: another task with the singleton key \"eu\" has not ended"
        )
      )
      expect((yield* submit("useExisting")).id).toBe(first.id)
      expect((yield* Effect.flip(submit("useExisting", { owner: "bob" }))).reason._tag).toBe("NotStarted")
      // Other keys, other tools, and tasks without a key.
      yield* submit("fail", { singleton: { key: "\0 us", onConflict: "fail" } })
      yield* submit("fail", { tool: "other" })
      yield* insert(opened)
      const second = yield* submit("cancelExisting", { owner: "bob" })
      expect(yield* stateOf(opened, first.id)).toMatchObject({
        status: "cancelled",
        statusMessage: "Another task has replaced this one"
      })
      yield* store.finish(second.id, completed({}))
      const third = yield* submit("useExisting", { ttlMs: 1000 })
      expect(third.id).not.toBe(second.id)
      yield* TestClock.adjust(1000)
      const fourth = yield* submit("fail")
      yield* store.remove([fourth.id])
      expect((yield* submit("useExisting")).id).not.toBe(fourth.id)
      const { counted, kept } = yield* counters(opened)
      expect(kept).toEqual(counted)
    }))

  it.effect("of 8 submissions of a singleton at once one is created", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const submit = (onConflict: Singleton["onConflict"], owner = "ada") =>
        opened.store.insert(task({ owner, singleton: { key: "", onConflict } }))
      const many = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.all(Array.from({ length: 8 }, () => effect), { concurrency: "unbounded" })
      const states = yield* many(submit("useExisting"))
      expect(new Set(states.map(({ id }) => id)).size).toBe(1)
      const refused = yield* many(Effect.flip(submit("fail")))
      expect(refused[0]).toMatchObject(
        notStarted("the task \"report\" was not started: another task of the tool has not ended")
      )
      yield* many(submit("cancelExisting"))
      const live = yield* opened.sql`SELECT id FROM skein_tasks WHERE status = 'working'`
      expect(live).toHaveLength(1)
    }))

  it.effect("a debounced task begins after the last submission, with its arguments, or at its timeout", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const submit = (page: number, options: Partial<Debounce> = {}, owner: string | null = "ada") =>
        store.insert(
          task({
            args: { page },
            owner,
            ttlMs: 5000,
            debounce: { key: "k", periodMs: 1000, timeoutMs: 2500, ...options }
          })
        )
      const first = yield* submit(1)
      expect(first.ttlMs).toBe(6000)
      yield* TestClock.adjust(900)
      const again = yield* submit(2)
      expect(again).toMatchObject({ id: first.id, createdAt: first.createdAt, ttlMs: 6900 })
      expect(again.version).toBeGreaterThan(first.version)
      const other = yield* submit(3, {}, "bob")
      const another = yield* submit(4, { key: "l" })
      expect(new Set([first.id, other.id, another.id]).size).toBe(3)
      yield* TestClock.adjust(900)
      expect(yield* claim(opened)).toEqual([])
      expect((yield* submit(5)).id).toBe(first.id)
      yield* TestClock.adjust(100)
      expect(new Set(yield* claim(opened))).toEqual(new Set([other.id, another.id]))
      // The timeout, and not the period after the last submission.
      yield* TestClock.adjust(599)
      expect(yield* claim(opened)).toEqual([])
      yield* TestClock.adjust(1)
      expect(yield* claim(opened)).toEqual([first.id])
      expect(yield* argsOf(opened, first.id)).toEqual({ page: 5 })
      const next = yield* submit(6)
      expect(next.id).not.toBe(first.id)
      // One that is due and that no worker has claimed yet.
      yield* TestClock.adjust(1000)
      yield* store.wake
      expect((yield* submit(7)).id).toBe(next.id)
      expect(yield* argsOf(opened, next.id)).toEqual({ page: 7 })
      expect(yield* claim(opened)).toEqual([])
      // A cancelled one.
      yield* store.finish(next.id, { status: "cancelled" })
      const last = yield* submit(8)
      expect(last.id).not.toBe(next.id)
      expect((yield* submit(9)).id).toBe(last.id)
      expect(yield* sql`SELECT id FROM skein_tasks`).toHaveLength(5)
    }))

  it.effect("8 submissions at once are one debounced task, whose arguments are merged", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const merge = (stored: JsonObject, next: JsonObject): JsonObject => ({
        pages: [...stored["pages"] as Array<number>, ...next["pages"] as Array<number>]
      })
      const states = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, page) => page),
        (page) => insert(opened, { args: { pages: [page] }, debounce: { key: "", periodMs: 1000, merge } }),
        { concurrency: "unbounded" }
      )
      const [id] = new Set(states.map(({ id }) => id))
      expect(new Set(states.map(({ id }) => id)).size).toBe(1)
      const args = yield* argsOf(opened, id!)
      expect((args!["pages"] as Array<number>).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 8 }, (_, i) => i)
      )
    }))

  it.effect("keys have at most 512 characters", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const key = "x".repeat(513)
      expect(yield* Effect.flip(insert(opened, { singleton: { key, onConflict: "fail" } }))).toMatchObject({
        reason: { _tag: "StoreError", message: "the singleton key of a task exceeds 512 characters" }
      })
      expect(yield* Effect.flip(insert(opened, { debounce: { key, periodMs: 1 } }))).toMatchObject({
        reason: { _tag: "StoreError", message: "the debounce key of a task exceeds 512 characters" }
      })
      yield* insert(opened, { singleton: { key: key.slice(1), onConflict: "fail" } })
      yield* insert(opened, { debounce: { key: key.slice(0, 500), periodMs: 1 } })
    }))
})
