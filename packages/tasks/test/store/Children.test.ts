/** The places of children in their parents. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { all, completed, each, fresh, task } from "./kit.ts"

each(all, (backend) => {
  it.effect("inserts one child for a place, also at once, and none for a parent that has ended", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const parent = yield* store.insert(task({ tool: "parent" }))
      const link = { parent: parent.id, name: "\0 odd", item: -1, isDetached: false }
      const ids = yield* Effect.all(
        Array.from({ length: 10 }, () => store.insertChild(link, task())),
        { concurrency: "unbounded" }
      )
      expect(new Set(ids).size).toBe(1)
      expect(yield* sql`SELECT id FROM skein_tasks WHERE tool = 'report'`).toEqual([{ id: ids[0] }])
      expect(yield* store.children.progress(parent.id, "\0 odd")).toEqual({ started: 0, live: 1, failed: undefined })
      yield* store.finish(parent.id, { status: "cancelled" })
      expect(yield* store.insertChild({ ...link, name: "other" }, task())).toBeUndefined()
      expect(yield* store.insertChild(link, task())).toBe(ids[0])
    }))

  it.effect("notes the ends of children, signals their parent, and forgets them with it", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* fresh(backend)
      const parent = yield* store.insert(task({ tool: "parent" }))
      const insert = (item: number, isDetached = false) =>
        Effect.map(store.insertChild({ parent: parent.id, name: "group", item, isDetached }, task()), (id) => id!)
      const [first, second, third] = [yield* insert(0), yield* insert(1), yield* insert(2, true)]
      yield* store.finish(first, completed({ content: [] }))
      yield* store.finish(second, completed({ content: [], isError: true }))
      expect(yield* store.children.progress(parent.id, "group")).toEqual({ started: 3, live: 1, failed: 1 })
      expect((yield* store.readSignals(parent.id))?.signals).toBe(2)
      expect(yield* store.children.findLive(parent.id, undefined, 5)).toEqual([])
      const states = yield* store.children.states(parent.id, "group", 0, 2)
      expect([...states].map(([item, state]) => [item, state?.id, state?.isError])).toEqual([
        [0, first, false],
        [1, second, true]
      ])
      yield* store.finish(third, { status: "cancelled" })
      expect(yield* store.children.relatives(parent.id)).toEqual({
        parent: undefined,
        children: { live: 0, completed: 1, failed: 2 }
      })
      expect((yield* store.children.relatives(third)).parent).toBe(parent.id)
      yield* store.finish(parent.id, completed({ content: [] }))
      yield* store.remove([parent.id])
      expect(yield* sql`SELECT child FROM skein_task_children`).toEqual([])
    }))

  it.effect("counts children for their tool, and not for their owner", () =>
    Effect.gen(function*() {
      const { store } = yield* fresh(backend)
      const limits = { all: {}, client: { live: 1 }, tool: { live: 2 } }
      const parent = yield* store.insert(task({ tool: "parent", limits }))
      const insert = (item: number) =>
        store.insertChild({ parent: parent.id, name: "group", item, isDetached: false }, task({ limits }))
      yield* insert(0)
      yield* insert(1)
      expect(yield* Effect.flip(insert(2))).toMatchObject({ reason: { _tag: "LimitExceeded" } })
      expect((yield* store.children.progress(parent.id, "group")).started).toBe(2)
    }))
})
