/** The gates of tools: concurrency, rates and pauses, on each store. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { all, completed, each, fresh, insert, type Opened, task } from "./kit.ts"

const idsOf = (claims: ReadonlyArray<{ readonly id: string }>) => claims.map(({ id }) => id).toSorted()

/** Inserts tasks of a tool, a millisecond apart. */
const insertMany = (opened: Opened, tool: string, count: number, options: Parameters<typeof task>[0] = {}) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.map(Effect.andThen(TestClock.adjust(1), insert(opened, { tool, ...options })), ({ id }) => id)
  )

const claimAll = ({ store }: Opened, worker: string, limit = 100) =>
  Effect.map(
    Effect.all([store.claim(worker, undefined, limit), store.claimGated(worker, undefined, limit)]),
    ([free, gated]) => ({ free: idsOf(free), gated: idsOf(gated) })
  )

each(all, (backend) => {
  it.effect("a tool runs as many tasks at the same time as its concurrency, those that are due longest first", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("bake", { concurrency: 2 })
      const ids = yield* insertMany(opened, "bake", 5)
      const other = yield* insert(opened, { tool: "other" })
      expect(yield* claimAll(opened, "w1")).toEqual({ free: [other.id], gated: ids.slice(0, 2).toSorted() })
      expect(yield* claimAll(opened, "w2")).toEqual({ free: [], gated: [] })
      // One waits for an answer, and one has ended.
      expect(yield* store.suspend(ids[0]!, "w1", 0, 1e15, { nextSeq: 1 })).toBe(true)
      yield* store.finish(ids[1]!, completed({}))
      expect((yield* claimAll(opened, "w2", 1)).gated).toEqual([ids[2]])
      expect((yield* claimAll(opened, "w1")).gated).toEqual([ids[3]])
      yield* TestClock.adjust(1)
      expect(yield* store.wakeTasks([ids[0]!])).toEqual([ids[0]])
      expect((yield* claimAll(opened, "w1")).gated).toEqual([])
      yield* store.release(ids[3]!, "w1", 1e15)
      expect((yield* claimAll(opened, "w1")).gated).toEqual([ids[4]])
      yield* store.finish(ids[4]!, completed({}))
      expect((yield* claimAll(opened, "w1")).gated).toEqual([ids[0]])
    }))

  it.effect("tasks that were submitted before their tool had a limit count for it", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const ids = yield* insertMany(opened, "bake", 4)
      expect(idsOf(yield* store.claim("w1", undefined, 2))).toEqual(ids.slice(0, 2).toSorted())
      yield* store.tools.pace("bake", { concurrency: 3 })
      expect(yield* claimAll(opened, "w1")).toEqual({ free: [], gated: [ids[2]] })
      expect(yield* store.tools.list).toEqual([
        { tool: "bake", concurrency: 3, rate: undefined, perKey: undefined, pausedAt: undefined, running: 3 }
      ])
      yield* store.tools.pace("bake", undefined)
      expect(yield* store.tools.list).toEqual([])
      expect(yield* claimAll(opened, "w1")).toEqual({ free: [ids[3]], gated: [] })
    }))

  it.effect("a task is not claimed by its submission if its tool has a gate", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const claimed: Array<boolean> = []
      const insertFor = (tool: string) =>
        store.insert(task({ tool }), "w1", (_, isClaimed) => Effect.sync(() => void claimed.push(isClaimed)))
      yield* insertFor("bake")
      yield* store.tools.pause("bake")
      yield* insertFor("bake")
      yield* insertFor("other")
      expect(claimed).toEqual([true, false, true])
    }))

  it.effect("a paused tool starts and continues no task, and compensates cancelled ones", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const [running, waiting, cancelled, ready] = (yield* insertMany(opened, "bake", 4)) as [
        string,
        string,
        string,
        string
      ]
      expect(idsOf(yield* store.claim("w1", undefined, 3))).toEqual([running, waiting, cancelled].toSorted())
      yield* store.suspend(waiting, "w1", 0, 1e15, { nextSeq: 1 })
      yield* store.suspend(cancelled, "w1", 0, 1e15, { nextSeq: 1 })
      expect(yield* store.tools.pause("bake")).toBe(true)
      expect(yield* store.tools.pause("bake")).toBe(false)
      expect(yield* store.wakeTasks([waiting])).toEqual([waiting])
      const late = yield* insertMany(opened, "bake", 1)
      expect(yield* claimAll(opened, "w2")).toEqual({ free: [], gated: [] })
      expect((yield* store.admin.find(ready))!.place).toMatchObject({ _tag: "Ready", heldBy: "pause" })
      expect(yield* store.tools.list).toMatchObject([{ tool: "bake", running: 1 }])

      yield* store.finish(cancelled, { status: "cancelled" })
      expect(yield* claimAll(opened, "w2")).toEqual({ free: [cancelled], gated: [] })
      yield* store.settle(cancelled)

      expect(yield* store.tools.resume("bake")).toBe(true)
      expect(yield* store.tools.resume("bake")).toBe(false)
      expect((yield* claimAll(opened, "w2")).free).toEqual([waiting, ready, ...late].toSorted())
      expect(yield* store.tools.list).toEqual([])
    }))

  it.effect("a resumed tool keeps its limits", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("bake", { concurrency: 1, rate: { limit: 5, periodMs: 1000 } })
      const ids = yield* insertMany(opened, "bake", 2)
      yield* store.tools.pause("bake")
      yield* store.tools.pace("bake", { concurrency: 1 })
      expect((yield* claimAll(opened, "w1")).gated).toEqual([])
      yield* store.tools.pace("bake", undefined)
      expect(yield* store.tools.list).toMatchObject([{ tool: "bake", concurrency: undefined }])
      yield* store.tools.pace("bake", { concurrency: 1 })
      yield* store.tools.resume("bake")
      expect((yield* claimAll(opened, "w1")).gated).toEqual([ids[0]])
      expect((yield* store.admin.find(ids[1]!))!.place).toMatchObject({ _tag: "Ready", heldBy: "limit" })
    }))

  it.effect("a rate bounds the starts of a tool in each period, and lets those pass that continue", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("call", { rate: { limit: 2, periodMs: 1000 } })
      const ids = yield* insertMany(opened, "call", 25)
      expect((yield* claimAll(opened, "w1", 20)).gated).toEqual(ids.slice(0, 2).toSorted())
      expect((yield* claimAll(opened, "w1", 20)).gated).toEqual([])
      expect(yield* store.wake).toMatchObject({ hasGated: true })
      yield* store.release(ids[0]!, "w1")
      expect((yield* claimAll(opened, "w1", 20)).gated).toEqual([ids[0]])
      yield* TestClock.adjust(999)
      expect((yield* claimAll(opened, "w2", 20)).gated).toEqual([])
      yield* TestClock.adjust(1)
      expect((yield* claimAll(opened, "w2", 1)).gated).toEqual([ids[2]])
      expect((yield* claimAll(opened, "w2", 20)).gated).toEqual([ids[3]])
    }))

  it.effect("keys take turns: the next claim goes on behind the last key, and priority decides among those of a key", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("call", { perKey: {} })
      const a = yield* insertMany(opened, "call", 5, { queueKey: "a" })
      const b = yield* insertMany(opened, "call", 2, { queueKey: "\0 b" })
      const [c, urgent] = [
        yield* insert(opened, { tool: "call", queueKey: "c" }),
        yield* insert(opened, { tool: "call", queueKey: "c", priority: 1 })
      ]
      const none = yield* insert(opened, { tool: "call" })
      const claims: Array<string> = []
      for (let i = 0; i < 4; i++) claims.push(...(yield* claimAll(opened, "w1", 1)).gated)
      expect(new Set(claims)).toEqual(new Set([none.id, a[0], b[0], urgent.id]))
      expect((yield* claimAll(opened, "w1", 3)).gated).toEqual([a[1]!, b[1]!, c.id].toSorted())
      expect((yield* claimAll(opened, "w1", 9)).gated).toEqual([a[2]])
      expect((yield* claimAll(opened, "w1", 9)).gated).toEqual([a[3]])
      expect(yield* store.tools.list).toMatchObject([{ tool: "call", running: 9, perKey: {} }])
      yield* store.tools.pace("call", undefined)
      expect(yield* store.tools.list).toEqual([])
      expect((yield* claimAll(opened, "w1")).free).toEqual([a[4]])
    }))

  it.effect("the limits of each key hold beside those of the tool, and full keys do not stop others", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("call", {
        concurrency: 4,
        perKey: { concurrency: 2, rate: { limit: 3, periodMs: 1000 } }
      })
      const a = yield* insertMany(opened, "call", 6, { queueKey: "a" })
      const b = yield* insertMany(opened, "call", 1, { queueKey: "b" })
      const c = yield* insertMany(opened, "call", 3, { queueKey: "c" })
      const claimNext = Effect.map(claimAll(opened, "w1"), ({ gated }) => gated)
      expect(yield* claimNext).toEqual([a[0]!, b[0]!, c[0]!].toSorted())
      // The tool has room for one more, and the turn is that of the first key.
      expect(yield* claimNext).toEqual([a[1]])
      expect(yield* claimNext).toEqual([])
      yield* store.finish(b[0]!, completed({}))
      expect(yield* claimNext).toEqual([c[1]])
      yield* store.finish(a[0]!, completed({}))
      expect(yield* claimNext).toEqual([a[2]])
      yield* store.finish(a[1]!, completed({}))
      yield* store.finish(c[0]!, completed({}))
      // The first key has started three in this period. One of them may continue.
      expect(yield* claimNext).toEqual([c[2]])
      yield* store.release(a[2]!, "w1")
      expect(yield* claimNext).toEqual([a[2]])
      expect(yield* claimNext).toEqual([])
      yield* TestClock.adjust(1000)
      expect(yield* claimNext).toEqual([a[3]])
    }))

  it.effect("keys of other pools are not claimed", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      yield* store.tools.pace("call", { perKey: { concurrency: 1 } })
      const far = yield* insertMany(opened, "call", 2, { queueKey: "a", pool: "far" })
      const near = yield* insertMany(opened, "call", 2, { queueKey: "a", pool: "near" })
      expect(idsOf(yield* store.claimGated("w1", ["near"], 9))).toEqual([near[0]])
      expect(idsOf(yield* store.claimGated("w2", ["far"], 9))).toEqual([])
      yield* store.finish(near[0]!, completed({}))
      expect(idsOf(yield* store.claimGated("w2", ["far", "further"], 9))).toEqual([far[0]])
    }))

  it.effect("a queue key has at most 512 characters", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      yield* opened.store.insert(task({ queueKey: "x".repeat(512) }))
      const error = yield* Effect.flip(opened.store.insert(task({ queueKey: "x".repeat(513) })))
      expect(error.reason.message).toContain("the queue key of a task exceeds 512 characters")
    }))
})
