import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import { ChangeListeners } from "../../src/internal/store/changeNotifier.ts"
import { sharedPostgres } from "../../../sql/test/postgres.ts"
import { all, completed, each, file, fresh, insert, memory, pg, question, stateOf, task } from "./kit.ts"

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

/** Counts the calls of a listener; `next` waits for one more. */
const counting = () => {
  let calls = 0
  let waiting = Deferred.makeUnsafe<void>()
  return {
    listener: () => {
      calls++
      const called = waiting
      waiting = Deferred.makeUnsafe()
      Deferred.doneUnsafe(called, Effect.void)
    },
    get calls() {
      return calls
    },
    /** Waits until it was called more than `calls` times. */
    after: (before: number): Effect.Effect<void> =>
      Effect.suspend(() => calls > before ? Effect.void : Deferred.await(waiting))
  }
}

describe("listeners", () => {
  it("are called once for the changes of a turn, and all of them are called", async () => {
    const notices = new ChangeListeners({ onError: () => {} })
    const called: Array<string> = []
    const stop = notices.listen("a", () => called.push("a1"))
    notices.listen("a", () => called.push("a2"))
    notices.listen("b", () => called.push("b"))
    notices.notify("a")
    notices.notify("a")
    notices.notify("c")
    expect(called).toEqual([])
    await Promise.resolve()
    expect(called).toEqual(["a1", "a2"])
    stop()
    stop()
    notices.notify("a")
    notices.notify("b")
    await Promise.resolve()
    expect(called).toEqual(["a1", "a2", "a2", "b"])
    notices.notifyAll()
    await Promise.resolve()
    expect(called).toEqual(["a1", "a2", "a2", "b", "a2", "b"])
  })

  it("that throw do not prevent the calls of others", async () => {
    const failed: Array<unknown> = []
    const notices = new ChangeListeners({ onError: (error) => failed.push(error) })
    let calls = 0
    notices.listen("a", () => {
      throw new Error("no")
    })
    notices.listen("a", () => calls++)
    notices.notify("a")
    await Promise.resolve()
    expect(calls).toBe(1)
    expect(failed).toEqual([new Error("no")])
  })

  it("that are removed leave nothing, even ten thousand", async () => {
    const notices = new ChangeListeners({ onError: () => {} })
    let calls = 0
    const stops = Array.from({ length: 10_000 }, (_, index) => notices.listen(`task ${index}`, () => calls++))
    notices.notifyAll()
    await Promise.resolve()
    expect(calls).toBe(10_000)
    for (const stop of stops) stop()
    expect(notices.size).toBe(0)
  })
})

each(all, (backend) => {
  it.effect("each change is notified after its commit, and rolled-back changes are not", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const { id } = yield* insert(opened)
      const { id: other } = yield* insert(opened)
      const seen: Array<string | undefined> = []
      const listening = counting()
      const elsewhere = counting()
      yield* store.listen(id, listening.listener)
      yield* store.listen(other, elsewhere.listener)

      // Rolled back.
      yield* Effect.exit(sql.withTransaction(Effect.andThen(store.setStatusMessage(id, "not"), Effect.fail("no"))))
      yield* turn
      expect(listening.calls).toBe(0)

      // Within a transaction no notification arrives before the commit.
      yield* sql.withTransaction(Effect.gen(function*() {
        yield* store.setStatusMessage(id, "a")
        yield* store.setStatusMessage(id, "b")
        yield* turn
        expect(listening.calls).toBe(0)
      }))
      yield* listening.after(0)
      expect((yield* stateOf(opened, id)).statusMessage).toBe("b")
      seen.push("commit")

      const changes: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        store.setStatusMessage(id, "one"),
        store.setStatusMessage(id, "two", 2),
        store.setProgress(id, { progress: 1 }),
        store.ask(id, question("q")),
        store.answer(id, "q", {}),
        store.ask(id, question("r")),
        store.withdraw(id, "r"),
        store.finish(id, completed({})),
        store.remove([id])
      ]
      for (const change of changes) {
        const before = listening.calls
        yield* change
        yield* listening.after(before)
      }
      // A statement that changes nothing does not notify.
      const before = listening.calls
      yield* store.setStatusMessage(id, "late")
      yield* store.finish(id, completed({}))
      yield* store.remove([id])
      // Notifications are in order, so earlier ones would have arrived before this one.
      yield* store.setStatusMessage(other, "now")
      yield* elsewhere.after(0)
      expect(listening.calls).toBe(before)
    }))

  it.effect("a listener is removed when its scope closes", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      const scope = yield* Scope.make()
      const first = counting()
      const second = counting()
      yield* Scope.provide(opened.store.listen(id, first.listener), scope)
      yield* opened.store.listen(id, second.listener)
      yield* Scope.close(scope, Exit.void)
      yield* opened.store.setStatusMessage(id, "a")
      yield* second.after(0)
      expect(first.calls).toBe(0)
    }))
})

each([memory, file], (backend) => {
  it.effect("a submission within a transaction of the caller is notified after the commit", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* fresh(backend)
      const { id } = yield* sql.withTransaction(store.insert(task()))
      expect(yield* store.get(id)).toBeDefined()
    }))
})

each([pg], (backend) => {
  it.effect("listeners in other processes receive the changes of their task", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const here = yield* client
      const there = yield* client
      const { id } = yield* insert(here)
      const { id: other } = yield* insert(here)
      const listening = counting()
      const last = counting()
      yield* there.store.listen(id, listening.listener)
      yield* there.store.listen(other, last.listener)
      yield* here.store.setStatusMessage(id, "from here")
      yield* listening.after(0)
      expect((yield* stateOf(there, id)).statusMessage).toBe("from here")

      yield* Effect.exit(
        here.sql.withTransaction(Effect.andThen(here.store.setStatusMessage(id, "not"), Effect.fail("no")))
      )
      const { calls } = listening
      yield* here.store.setStatusMessage(other, "last")
      yield* last.after(0)
      expect(listening.calls).toBe(calls)

      const waiting = yield* Effect.forkChild(listening.after(calls))
      yield* there.store.finish(id, completed({}))
      yield* Fiber.join(waiting)
    }))

  it.live("all listeners are called when the listening connection was lost", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const here = yield* client
      const tasks = yield* Effect.forEach([1, 2, 3], () => insert(here))
      const listening = tasks.map(() => counting())
      yield* Effect.forEach(tasks, ({ id }, index) => here.store.listen(id, listening[index]!.listener))
      const { restartImmediate } = yield* Effect.promise(sharedPostgres)
      yield* Effect.promise(restartImmediate)
      yield* Effect.forEach(listening, ({ after }) => after(0))
      expect(listening.map(({ calls }) => calls)).toEqual([1, 1, 1])
      yield* here.store.setStatusMessage(tasks[0]!.id, "after")
      yield* listening[0]!.after(1)
    }), 120_000)
})
