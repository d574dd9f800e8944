import { it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Roots from "@skein/server/Roots"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { ask, durable, ended, get, type Handler, plain, settled, submit, textOf, until, work } from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Processes on one file, one after the other: each is shut down. */
const processes = Effect.map(folder, (folder) => {
  const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 minute" })
  return <A, E>(
    tools: Record<string, Handler>,
    effect: Effect.Effect<A, E, TaskEngine | Scope.Scope>
  ) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(layer, scope)
      // Some time passes between two processes.
      yield* TestClock.adjust(10)
      const inner = yield* Scope.make()
      const done = yield* Effect.andThen(work(tools), effect).pipe(
        Effect.provideContext(context),
        Scope.provide(inner)
      )
      yield* Scope.close(inner, Exit.void)
      yield* Scope.close(scope, Exit.void)
      return done
    })
})

it.effect("a shutdown lets the executing step end, compensates nothing, and the task continues", () =>
  Effect.gen(function*() {
    const process = yield* processes
    const log: Array<string> = []
    let go: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const tools = {
      travel: durable(() => {
        const book = (what: string, wait: Effect.Effect<void>) =>
          Step.run(
            `book ${what}`,
            { success: Schema.String },
            () => Effect.tap(Effect.as(wait, what), () => Effect.sync(() => void log.push(what)))
          ).pipe(
            Step.withCompensation(() => Effect.sync(() => void log.push(`undo ${what}`)))
          )
        return Effect.gen(function*() {
          const one = yield* book("flight", Effect.void)
          const two = yield* book("hotel", Effect.promise(() => gate))
          const three = yield* book("taxi", Effect.void)
          return `${one} ${two} ${three}`
        })
      })
    }
    const id = yield* process(
      tools,
      Effect.gen(function*() {
        const { id } = yield* submit("travel")
        yield* settled
        setTimeout(go, 20)
        return id
      })
    )
    expect(log.splice(0)).toEqual(["flight", "hotel"])
    const state = yield* process(tools, ended(id))
    expect(textOf(state)).toBe("flight hotel taxi")
    expect(log).toEqual(["taxi"])
  }))

it.effect("a shutdown interrupts a step that does not end in time, and the step runs again without compensations", () =>
  Effect.gen(function*() {
    const process = yield* processes
    const log: Array<string> = []
    let fast = false
    const tools = {
      slow: durable(() =>
        Effect.gen(function*() {
          yield* Step.compensate(() => Effect.sync(() => void log.push("undone")))
          yield* Step.run("slow", {}, () =>
            Effect.suspend(() => {
              log.push("begun")
              return fast
                ? Effect.void
                : Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted")))
            }))
          return "done"
        })
      )
    }
    const stopping = process(tools, Effect.tap(submit("slow"), settled))
    const fiber = yield* Effect.forkChild(stopping)
    // The file is opened and closed in real time.
    yield* Effect.repeat(settled, { until: () => log.length > 0 })
    yield* settled
    yield* TestClock.adjust("2 seconds")
    yield* settled
    yield* TestClock.adjust("2 seconds")
    yield* Effect.repeat(settled, { until: () => fiber.pollUnsafe() !== undefined })
    const { id } = yield* Fiber.join(fiber)
    expect(log.splice(0)).toEqual(["begun", "interrupted"])
    fast = true
    expect(textOf(yield* process(tools, ended(id)))).toBe("done")
    expect(log).toEqual(["begun"])
  }))

it.effect("a question is answered in another process than the one that asked", () =>
  Effect.gen(function*() {
    const process = yield* processes
    const log: Array<string> = []
    const tools = {
      tea: durable(() =>
        Effect.gen(function*() {
          yield* Step.run("boil", {}, () => Effect.sync(() => void log.push("boiled")))
          return `Tea, ${(yield* ask("milk?"))["reply"]}`
        })
      ),
      plain: plain(() => Effect.map(ask("sugar?"), ({ reply }) => `Sugar: ${reply}`))
    }
    const asked = yield* process(
      tools,
      Effect.gen(function*() {
        const tea = yield* submit("tea")
        const plain = yield* submit("plain")
        return [
          yield* until(tea.id, ({ questions }) => questions.length > 0),
          yield* until(plain.id, ({ questions }) => questions.length > 0)
        ]
      })
    )
    const answered = yield* process(
      tools,
      Effect.gen(function*() {
        const { answer } = yield* TaskEngine
        for (const { id, questions: [question] } of asked) yield* answer(id, question!.key, { reply: "yes" })
        return yield* Effect.forEach(asked, ({ id }) => ended(id))
      })
    )
    expect(answered.map(textOf)).toEqual(["Tea, yes", "Sugar: yes"])
    expect(log).toEqual(["boiled"])
  }))

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  it.effect(`${revision} · remembers the roots of the client across a restart, and does not ask again`, () =>
    Effect.gen(function*() {
      const process = yield* processes
      let runs = 0
      const uris = Effect.map(Roots.list(), (roots) => roots.map(({ uri }) => uri).join())
      const tools = {
        scan: durable(() =>
          Effect.gen(function*() {
            runs++
            return `${yield* uris}, then ${yield* uris}`
          })
        )
      }
      const roots = (uri: string): JsonObject => ({ roots: [{ uri }] })
      const answer = (id: string, key: string, uri: string) =>
        Effect.flatMap(TaskEngine, ({ answer }) => answer(id, key, roots(uri)))
      const open = (id: string, before?: string) =>
        until(id, ({ questions }) => questions.some(({ key }) => key !== before))

      const { first, id } = yield* process(
        tools,
        Effect.gen(function*() {
          const caller = { revision, capabilities: { roots: {} }, info: undefined, principal: undefined }
          const { id } = yield* submit("scan", { caller })
          const { questions, status } = yield* open(id)
          expect(status).toBe("input_required")
          expect(questions).toEqual([{ key: expect.any(String), method: "roots/list", params: undefined }])
          return { id, first: questions[0]!.key }
        })
      )
      // Another process asks the same question under the same key, and continues with the answer.
      const second = yield* process(
        tools,
        Effect.gen(function*() {
          yield* settled
          expect((yield* get(id))?.questions.map(({ key }) => key)).toEqual([first])
          expect(yield* answer(id, first, "file:///a")).toBe(true)
          const { questions } = yield* open(id, first)
          expect(questions).toMatchObject([{ method: "roots/list" }])
          return questions[0]!.key
        })
      )
      const before = runs
      const state = yield* process(
        tools,
        Effect.gen(function*() {
          yield* settled
          expect((yield* get(id))?.questions.map(({ key }) => key)).toEqual([second])
          expect(yield* answer(id, first, "file:///late")).toBe(false)
          expect(yield* answer(id, second, "file:///b")).toBe(true)
          return yield* ended(id)
        })
      )
      expect(textOf(state)).toBe("file:///a, then file:///b")
      expect(runs).toBeGreaterThan(before)
    }))
}

it.effect("a task sleeps across a restart", () =>
  Effect.gen(function*() {
    const process = yield* processes
    const tools = { nap: durable(() => Effect.as(Step.sleep("nap", "1 day"), "awake")) }
    const { id } = yield* process(tools, Effect.tap(submit("nap"), settled))
    yield* TestClock.adjust("12 hours")
    expect((yield* process(tools, Effect.andThen(settled, get(id))))?.status).toBe("working")
    yield* TestClock.adjust("12 hours")
    expect(textOf(yield* process(tools, ended(id)))).toBe("awake")
  }))

it.effect("a task whose tool no worker has waits with a status message, and runs when a worker has the tool", () =>
  Effect.gen(function*() {
    const process = yield* processes
    const other = { other: plain(() => Effect.succeed("")) }
    const id = yield* process(
      other,
      Effect.gen(function*() {
        const { id } = yield* submit("rare")
        yield* settled
        yield* TestClock.adjust("1 second")
        yield* settled
        expect(yield* get(id)).toMatchObject({
          status: "working",
          statusMessage: "Waiting for a worker that has the tool rare"
        })
        return id
      })
    )
    yield* TestClock.adjust("1 day")
    yield* process(other, settled)
    const rare = { rare: durable(() => Effect.as(Step.sleep("nap", "1 hour"), "found")) }
    // The message is cleared as soon as any process runs the task.
    const taken = yield* process(
      other,
      Effect.gen(function*() {
        yield* settled
        yield* work(rare)
        yield* settled
        return yield* get(id)
      })
    )
    expect(taken).toMatchObject({ status: "working", statusMessage: undefined })
    yield* TestClock.adjust("1 hour")
    expect(textOf(yield* process(rare, ended(id)))).toBe("found")
  }))

it.effect("rejects a second process on the same file", () =>
  Effect.gen(function*() {
    const filename = join(yield* folder, "tasks.db")
    yield* Layer.build(SqliteTasks.layer({ filename }))
    const error = yield* Effect.flip(Effect.scoped(Layer.build(SqliteTasks.layer({ filename }))))
    expect(error).toMatchObject({ _tag: "TaskError", reason: { _tag: "FileLocked" } })
    const missing = SqliteTasks.layer({ filename: join(filename, "none", "tasks.db") })
    expect(yield* Effect.flip(Effect.scoped(Layer.build(missing)))).toMatchObject({ reason: { _tag: "StoreError" } })
  }))
