/**
 * Tasks that continue with other code than they have run with.
 */
import { describe, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { ask, durable, ended, get, type Handler, pass, plain, settled, submit, textOf, until, work } from "./kit.ts"

/** Deployments on one file, one after the other, and the warnings and errors that they log. */
const deployments = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn" || logLevel === "Error") lines.push(String(message))
  })
  const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 second", checkCode: false })
  const deploy = <A, E>(
    tools: Record<string, Handler>,
    effect: Effect.Effect<A, E, TaskEngine | TaskAdmin | Scope.Scope>
  ) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(layer, scope)
      yield* TestClock.adjust(10)
      const inner = yield* Scope.make()
      const done = yield* Effect.andThen(work(tools), effect).pipe(
        Effect.provideContext(context),
        Scope.provide(inner)
      )
      yield* Scope.close(inner, Exit.void)
      yield* Scope.close(scope, Exit.void)
      return done
    }).pipe(Effect.provide(Logger.layer([logger])))
  return { deploy, lines }
})

/** A handler, and the steps that it executes. */
const recorder = () => {
  const done: Array<string> = []
  const step = (name: string, pause: Effect.Effect<void> = Effect.void) =>
    Step.run(name, { success: Schema.String }, () =>
      Effect.andThen(
        pause,
        Effect.sync(() => {
          done.push(name)
          return name
        })
      ))
  return { done, step }
}

const nap = Step.sleep("nap", "1 hour")
const handler = (body: Effect.Effect<unknown, { readonly message: string }, CurrentTask>) =>
  durable(() => Effect.map(body, String))

describe("a race whose winning branch is dropped", () => {
  const slow = Effect.never
  for (const [how, others] of [["alone", false], ["beside another branch", true]] as const) {
    it.effect(`stops the task instead of running the loser, ${how}, until the branch is back`, () =>
      Effect.gen(function*() {
        const { deploy, lines } = yield* deployments
        const { done, step } = recorder()
        const before = handler(Effect.tap(Effect.raceFirst(step("approve"), step("reject", slow)), () => nap))
        const rest = step("reject")
        const after = handler(
          Effect.tap(others ? Effect.raceFirst(rest, step("ask again", slow)) : rest, () => nap)
        )
        const id = yield* deploy({ t: before }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
        expect(done).toEqual(["approve"])
        yield* deploy(
          { t: after },
          Effect.gen(function*() {
            yield* pass(4000, 100)
            expect(yield* get(id)).toMatchObject({
              status: "working",
              statusMessage: "Waiting for a worker whose code of the tool t can continue this task"
            })
          })
        )
        expect(done).toEqual(["approve"])
        expect(lines).toEqual([
          `task t stops, because its code has changed: it does not reach step "approve", which was recorded while ` +
          `step "reject" was under way; it continues with code that reaches it`
        ])
        const state = yield* deploy({ t: before }, Effect.andThen(pass(400, 10), ended(id)))
        expect(textOf(state)).toBe("approve")
        expect(state.statusMessage).toBeUndefined()
        expect(done).toEqual(["approve"])
      }).pipe(Effect.scoped))
  }

  it.effect("stops the task, too, where the loser ended at the same time, and was not recorded", () =>
    Effect.gen(function*() {
      const { deploy } = yield* deployments
      const { done, step } = recorder()
      let open: () => void = () => {}
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const same = Effect.promise(() => gate)
      const before = handler(Effect.tap(Effect.raceFirst(step("approve", same), step("reject", same)), () => nap))
      const after = handler(Effect.tap(step("reject"), () => nap))
      const id = yield* deploy(
        { t: before },
        Effect.gen(function*() {
          const { id } = yield* submit("t")
          yield* settled
          open()
          yield* pass(5)
          return id
        })
      )
      expect(done).toEqual(["approve", "reject"])
      yield* deploy(
        { t: after },
        Effect.gen(function*() {
          yield* pass(4000, 100)
          expect((yield* get(id))?.statusMessage).toMatch(/^Waiting for a worker whose code/)
        })
      )
      expect(done).toEqual(["approve", "reject"])
    }).pipe(Effect.scoped))

  it.effect("keeps a task that is cancelled while it is stopped, until code with the winner compensates it", () =>
    Effect.gen(function*() {
      const { deploy, lines } = yield* deployments
      const { done, step } = recorder()
      const approve = step("approve").pipe(Step.withCompensation(() => Effect.sync(() => done.push("undone"))))
      const race = (...branches: ReadonlyArray<Effect.Effect<string, never, CurrentTask>>) =>
        handler(Effect.andThen(step("first"), Effect.tap(Effect.raceAllFirst(branches), () => nap)))
      const before = { t: race(approve, step("reject", slow)) }
      const id = yield* deploy(before, Effect.map(Effect.tap(submit("t"), pass(5)), ({ id }) => id))
      const place = Effect.map(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id)), (task) => task?.place._tag)
      yield* deploy(
        { t: race(step("reject", slow)) },
        Effect.gen(function*() {
          yield* Effect.flatMap(TaskAdmin, ({ wake }) => wake(id))
          yield* pass(1)
          expect(yield* Effect.flatMap(TaskAdmin, ({ cancel }) => cancel(id))).toBe(true)
          yield* pass(20)
          expect(yield* place).toBe("Waiting")
        })
      )
      expect(done).toEqual(["first", "approve"])
      expect(lines).toEqual([
        expect.stringContaining(`(step "approve"), and stops at step "reject", which has not begun`)
      ])
      yield* deploy(before, Effect.andThen(pass(400, 10), Effect.map(place, (tag) => expect(tag).toBe("Settled"))))
      expect(done).toEqual(["first", "approve", "undone"])
    }).pipe(Effect.scoped))

  it.effect("stops the task, too, where the loser is a sleep or a question", () =>
    Effect.gen(function*() {
      const { deploy } = yield* deployments
      const { done, step } = recorder()
      const asked = Effect.as(Effect.orDie(ask("Sure?")), "answered")
      const late = Effect.as(Step.sleep("late", "30 minutes"), "late")
      const approve = step("approve", Effect.sleep("1 second"))
      const race = (...branches: ReadonlyArray<Effect.Effect<string, never, CurrentTask | McpRequest>>) =>
        durable(() => Effect.tap(Effect.raceAllFirst(branches), () => nap))
      const ids = yield* deploy(
        { a: race(approve, late), b: race(approve, asked) },
        Effect.gen(function*() {
          const a = yield* submit("a")
          const b = yield* submit("b")
          yield* pass(10)
          return [a.id, b.id]
        })
      )
      yield* deploy(
        { a: race(late), b: race(asked) },
        Effect.gen(function*() {
          yield* pass(4000, 100)
          for (const id of ids) {
            expect(yield* get(id)).toMatchObject({
              status: "working",
              statusMessage: expect.stringMatching(/^Waiting for a worker whose code/)
            })
          }
        })
      )
      expect(done).toEqual(["approve", "approve"])
    }).pipe(Effect.scoped))
})

it.effect("code between steps that is slow once reaches its event later, and the task goes on", () =>
  Effect.gen(function*() {
    const { deploy, lines } = yield* deployments
    const { done, step } = recorder()
    let slowMs = 0
    const pause = Effect.suspend(() => {
      const milliseconds = slowMs
      slowMs = 0
      return Effect.sleep(milliseconds)
    })
    const first = Effect.andThen(pause, step("quick"))
    const body = handler(Effect.tap(Effect.raceFirst(first, step("slow", Effect.never)), () => nap))
    const id = yield* deploy({ t: body }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
    slowMs = 5000
    const state = yield* deploy({ t: body }, Effect.andThen(pass(4000, 1), ended(id)))
    expect(textOf(state)).toBe("quick")
    expect(done).toEqual(["quick"])
    expect(lines).toEqual([expect.stringMatching(/^task t stops/)])
  }).pipe(Effect.scoped))

describe("a task of a durable handler whose tool is a plain one", () => {
  it.effect("waits with a status message, and continues with a durable handler", () =>
    Effect.gen(function*() {
      const { deploy, lines } = yield* deployments
      const { done, step } = recorder()
      const before = handler(Effect.andThen(step("pay"), Effect.andThen(nap, step("ship"))))
      const id = yield* deploy({ t: before }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
      let runs = 0
      const after = plain(() => Effect.sync(() => String(++runs)))
      yield* deploy(
        { t: after },
        Effect.gen(function*() {
          yield* pass(4000, 100)
          expect(yield* get(id)).toMatchObject({
            status: "working",
            statusMessage: "Waiting for a worker whose code of the tool t can continue this task"
          })
          // A new task of the plain tool runs.
          expect(textOf(yield* ended((yield* submit("t")).id))).toBe("1")
        })
      )
      expect(runs).toBe(1)
      expect(lines).toEqual([
        "task t stops, because its tool is a plain one here: it continues with a handler of Task.layer"
      ])
      expect(textOf(yield* deploy({ t: before }, Effect.andThen(pass(400, 10), ended(id))))).toBe("ship")
      expect(done).toEqual(["pay", "ship"])
    }).pipe(Effect.scoped))

  it.effect("keeps its compensations for a durable handler if it is cancelled meanwhile", () =>
    Effect.gen(function*() {
      const { deploy } = yield* deployments
      const { done, step } = recorder()
      const before = handler(
        Effect.andThen(
          step("pay").pipe(
            Step.withCompensation((_, reason) => Effect.sync(() => done.push(`undone: ${reason}`)))
          ),
          nap
        )
      )
      const id = yield* deploy({ t: before }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
      yield* deploy(
        { t: plain(() => Effect.succeed("")) },
        Effect.gen(function*() {
          expect(yield* Effect.flatMap(TaskAdmin, ({ cancel }) => cancel(id))).toBe(true)
          yield* pass(20)
        })
      )
      expect(done).toEqual(["pay"])
      yield* deploy({ t: before }, pass(400, 10))
      expect(done).toEqual(["pay", "undone: cancelled"])
    }).pipe(Effect.scoped))
})

it.effect("a cancelled task reaches the steps after a step that was removed beside others", () =>
  Effect.gen(function*() {
    const { deploy } = yield* deployments
    const { done, step } = recorder()
    const undone = (name: string) =>
      step(name).pipe(Step.withCompensation(() => Effect.sync(() => void done.push(`undone: ${name}`))))
    const body = (...names: ReadonlyArray<string>) =>
      handler(
        Effect.andThen(
          Effect.all(names.map(undone), { concurrency: 2 }),
          Effect.andThen(Effect.all([undone("c"), step("d")], { concurrency: 2 }), nap)
        )
      )
    const id = yield* deploy({ t: body("a", "b") }, Effect.map(Effect.tap(submit("t"), pass(5)), ({ id }) => id))
    done.length = 0
    yield* deploy(
      { t: body("b") },
      Effect.gen(function*() {
        const { cancel, settle } = yield* TaskAdmin
        expect(yield* cancel(id)).toBe(true)
        yield* pass(20)
        expect(done).toEqual([])
        expect(yield* settle(id)).toBe(true)
        yield* pass(20)
      })
    )
    expect(done).toEqual(["undone: c", "undone: b"])
  }).pipe(Effect.scoped))

it.effect("the status message of a stopped task that has only slept is removed when it goes on", () =>
  Effect.gen(function*() {
    const { deploy } = yield* deployments
    const id = yield* deploy({ t: handler(nap) }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
    const woken = Effect.andThen(Effect.flatMap(TaskAdmin, ({ wake }) => wake(id)), pass(10))
    yield* deploy({ t: plain(() => Effect.succeed("")) }, woken)
    const message = Effect.map(get(id), (state) => state?.statusMessage)
    yield* deploy(
      { t: plain(() => Effect.succeed("")) },
      Effect.gen(function*() {
        expect(yield* message).toMatch(/^Waiting for a worker whose code/)
        yield* work({ other: plain(() => Effect.succeed("")) })
      })
    )
    yield* deploy(
      { t: handler(nap) },
      Effect.andThen(woken, Effect.map(message, (text) => expect(text).toBeUndefined()))
    )
  }).pipe(Effect.scoped))

it.effect("a question that the code no longer asks is withdrawn, logged, and asked again by the old code", () =>
  Effect.gen(function*() {
    const { deploy, lines } = yield* deployments
    const asks = (message: string) =>
      durable(() => Effect.map(Effect.orDie(ask(message)), ({ reply }) => String(reply)))
    const keys = (id: string) =>
      Effect.map(get(id), (state) => state?.questions.map(({ params }) => params?.["message"]))
    const id = yield* deploy({ t: asks("Old?") }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
    yield* deploy(
      { t: asks("New?") },
      Effect.gen(function*() {
        yield* Effect.flatMap(TaskAdmin, ({ wake }) => wake(id))
        yield* pass(5)
        expect(yield* keys(id)).toEqual(["New?"])
        expect((yield* get(id))?.status).toBe("input_required")
      })
    )
    expect(lines).toEqual([
      expect.stringMatching(
        /^the code of a task has changed: it no longer asks the open question "[0-9a-f]{32}", which is/
      )
    ])
    yield* deploy(
      { t: asks("Old?") },
      Effect.gen(function*() {
        yield* Effect.flatMap(TaskAdmin, ({ wake }) => wake(id))
        yield* pass(5)
        expect(yield* keys(id)).toEqual(["Old?"])
        const { questions } = yield* until(id, ({ questions }) => questions.length === 1)
        const { answer } = yield* TaskEngine
        expect(yield* answer(id, questions[0]!.key, { reply: "yes" })).toBe(true)
        expect(textOf(yield* ended(id))).toBe("yes")
      })
    )
  }).pipe(Effect.scoped))

it.effect("recorded events that the code does not reach are logged once", () =>
  Effect.gen(function*() {
    const { deploy, lines } = yield* deployments
    const { done, step } = recorder()
    const body = (...names: ReadonlyArray<string>) =>
      handler(
        Effect.gen(function*() {
          for (const name of names) yield* name.startsWith("nap") ? Step.sleep(name, "1 hour") : step(name)
        })
      )
    const before = body("a", "b", "nap")
    const id = yield* deploy({ t: before }, Effect.map(Effect.tap(submit("t"), pass(2)), ({ id }) => id))
    yield* deploy({ t: body("a", "nap", "nap 2", "c") }, Effect.andThen(pass(8000, 100), ended(id)))
    expect(done).toEqual(["a", "b", "c"])
    expect(lines).toEqual([`the code of a task has changed: it does not reach what was recorded: step "b"`])
    yield* settled
  }).pipe(Effect.scoped))
