import { describe, expect, it } from "@effect/vitest"
import * as Cursor from "@skein/protocol/Cursor"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"

const ann = { principal: { id: "ann" } }
const bob = { principal: { id: "bob" } }

describe("2025-11-25 · tasks/list", () => {
  it.effect("MUST include only tasks of the requestor, newest first, as `tasks/get` shows them", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect(ann)
      const other = yield* connect(bob)
      const nobody = yield* connect()
      const first = yield* kit.make(client, "sleep")
      yield* kit.make(other, "sleep")
      yield* kit.make(nobody, "sleep")
      yield* kit.pass("1 second")
      const second = yield* kit.make(client, "fail", { how: "tool" })
      yield* kit.settle
      const { nextCursor, tasks } = yield* client.result("tasks/list")
      expect(tasks).toEqual([
        yield* client.result("tasks/get", { taskId: second }),
        yield* client.result("tasks/get", { taskId: first })
      ])
      expect(tasks.map(({ status }: kit.Json) => status)).toEqual(["failed", "working"])
      expect(nextCursor).toBe(undefined)
    }))

  it.effect("a task that is retrievable via `tasks/get` MUST be retrievable via `tasks/list`, on some page", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ pageSize: 3 })
      const client = yield* connect(ann)
      const ids: Array<string> = []
      for (let each = 0; each < 10; each++) {
        ids.unshift(yield* kit.make(client, "sleep"))
        yield* kit.pass("1 second")
      }
      const { entries, pages } = yield* client.all("tasks/list", "tasks")
      expect(entries.map(({ taskId }) => taskId)).toEqual(ids)
      expect(pages).toBe(4)
    }))

  it.effect("lists each of several tasks of one millisecond once", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ pageSize: 2 })
      const client = yield* connect(ann)
      const ids = yield* Effect.forEach([1, 2, 3, 4, 5], () => kit.make(client, "sleep"))
      const { entries } = yield* client.all("tasks/list", "tasks")
      expect(entries.map(({ taskId }) => taskId).toSorted()).toEqual(ids.toSorted())
    }))

  it.effect("a full last page has no `nextCursor`", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ pageSize: 2 })
      const client = yield* connect(ann)
      yield* kit.make(client, "sleep")
      yield* kit.make(client, "sleep")
      const { nextCursor, tasks } = yield* client.result("tasks/list")
      expect([tasks.length, nextCursor]).toEqual([2, undefined])
    }))

  it.effect("an invalid cursor is -32602", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect(ann)
      const cursors = [
        "",
        "nonsense",
        "!",
        Cursor.encode("tools", "1 x"),
        Cursor.encode("tasks", "x"),
        Cursor.encode("tasks", "x y"),
        Cursor.encode("tasks", "99999999999999999999 x")
      ]
      for (const cursor of cursors) {
        expect((yield* client.error("tasks/list", { cursor })).code).toBe(-32602)
      }
    }))

  it.effect("another caller's cursor is only a position in one's own list", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ pageSize: 1 })
      const client = yield* connect(ann)
      const other = yield* connect(bob)
      yield* kit.make(other, "sleep")
      yield* kit.pass("1 second")
      yield* kit.make(client, "sleep")
      yield* kit.make(client, "sleep")
      const { nextCursor: cursor } = yield* client.result("tasks/list")
      const { tasks } = yield* other.result("tasks/list", { cursor })
      for (const { taskId } of tasks) expect((yield* client.error("tasks/get", { taskId })).code).toBe(-32602)
    }))

  it.effect("an expired task is on no page", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect(ann)
      yield* kit.make(client, "sleep", undefined, { task: { ttl: 1000 } })
      yield* kit.pass("1 second")
      expect((yield* client.result("tasks/list")).tasks).toEqual([])
    }))

  it.effect("SHOULD NOT be offered to unidentified requestors: it is not declared, and returns -32601", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set()
      const client = yield* connect()
      expect(client.received[0].result.capabilities.tasks).not.toHaveProperty("list")
      expect((yield* client.error("tasks/list")).code).toBe(-32601)
    }))

  it.effect("`list: \"always\"` offers it to them too, with the tasks without an owner only", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ list: "always" })
      const client = yield* connect()
      const other = yield* connect(bob)
      expect(client.received[0].result.capabilities.tasks).toHaveProperty("list")
      const taskId = yield* kit.make(client, "sleep")
      yield* kit.make(other, "sleep")
      const { tasks } = yield* client.result("tasks/list")
      expect(tasks.map((task: kit.Json) => task.taskId)).toEqual([taskId])
    }))

  it.effect("`list: \"never\"` offers it to no client", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.set({ list: "never" })
      const client = yield* connect(ann)
      expect(client.received[0].result.capabilities.tasks).not.toHaveProperty("list")
      expect((yield* client.error("tasks/list")).code).toBe(-32601)
    }))
})
