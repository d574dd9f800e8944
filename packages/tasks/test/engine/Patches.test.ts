/**
 * Changes of the code that their author has marked: tasks that began before one continue without it.
 */
import { describe, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { expect } from "vitest"
import { eventually, inspected, isUnavailable, stores, toSettled, toWait } from "./deployments.ts"
import { ask, durable, ended, submit, textOf, until } from "./kit.ts"

/** Steps that record what they have done. */
const recorder = () => {
  const done: Array<string> = []
  const did = (name: string) => Effect.sync(() => (done.push(name), name))
  const step = (name: string) => Step.run(name, { success: Schema.String }, () => did(name))
  const undoable = (name: string) => step(name).pipe(Step.withCompensation(() => Effect.asVoid(step(`undo ${name}`))))
  return { done, step, undoable }
}

type Part = Effect.Effect<unknown, never, CurrentTask | McpRequest>

const nap = Step.sleep("nap", "1 hour")
const wait = Step.sleep("wait", "1 hour")

/** Starts a task, and waits until it sleeps or asks. */
const start = Effect.fnUntraced(function*(tool: string) {
  const { id } = yield* submit(tool)
  yield* toWait(id)
  return id
})

/** The decisions in the log of a task. */
const decisions = (id: string) =>
  Effect.map(
    inspected(id),
    ({ log }) =>
      log.filter(({ kind }) => kind === "patched" || kind === "unpatched").map(({ kind, name }) => `${kind} ${name}`)
  )

for (const [store, open] of stores) {
  describe.skipIf(isUnavailable(store))(store, () => {
    it.live("is false in a task that began before the change, whose compensations are found, and true in a new one", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { done, step, undoable } = recorder()
        const before = durable(() => Effect.as(Effect.all([undoable("charge"), undoable("ship"), wait]), "done"))
        const after = durable(() =>
          Effect.gen(function*() {
            const isAudited = yield* Task.patched("audit first")
            if (isAudited) yield* step("audit")
            yield* undoable("charge")
            yield* undoable("ship")
            yield* wait
            return `audited: ${isAudited}`
          })
        )
        const started = start("t")
        const [cancelled, finished] = yield* deploy({ t: before }, Effect.all([started, started]))
        expect(done.splice(0)).toEqual(["charge", "ship", "charge", "ship"])
        const fresh = yield* deploy(
          { t: after },
          Effect.gen(function*() {
            const { cancel, wake } = yield* TaskAdmin
            yield* cancel(cancelled)
            yield* toSettled(cancelled)
            expect(done.splice(0)).toEqual(["undo ship", "undo charge"])
            yield* wake(finished)
            yield* eventually(Effect.map(decisions(finished), (all) => all.length === 0 ? undefined : true))
            const id = yield* started
            expect(done.splice(0)).toEqual(["audit", "charge", "ship"])
            expect(yield* decisions(id)).toEqual(["patched audit first"])
            return id
          })
        )
        // The decisions stay the same in later runs, and in compensations.
        yield* deploy(
          { t: after },
          Effect.gen(function*() {
            const { cancel } = yield* TaskAdmin
            yield* cancel(fresh)
            yield* cancel(finished)
            yield* toSettled(fresh)
            yield* toSettled(finished)
            expect(done.splice(0).toSorted()).toEqual(["undo charge", "undo charge", "undo ship", "undo ship"])
            expect(yield* decisions(finished)).toEqual(["unpatched audit first"])
            expect((yield* inspected(finished)).log.some(({ kind }) => kind === "stopped")).toBe(false)
          })
        )
      }).pipe(Effect.scoped))

    it.live("is false where the task sleeps or asks behind it, and true in front of a part that it has not begun", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const { done, step } = recorder()
        const bodies = (marked: (part: Part) => Part) => ({
          nap: durable(() => Effect.as(Effect.andThen(step("a"), marked(nap)), "done")),
          ask: durable(() => Effect.as(Effect.andThen(step("a"), marked(Effect.orDie(ask("Sure?")))), "done")),
          end: durable(() => Effect.as(Effect.andThen(nap, marked(step("b"))), "done"))
        })
        const tools = ["nap", "ask", "end"]
        const ids = yield* deploy(
          bodies((part) => part),
          Effect.forEach(tools, start)
        )
        done.length = 0
        yield* deploy(
          bodies((part) => Effect.andThen(Task.patched("p"), part)),
          Effect.gen(function*() {
            const [napping, asking, end] = ids
            // The hour is over.
            const sql = yield* SqlClient
            yield* sql`UPDATE skein_task_log SET at = 0 WHERE kind = 'timer'`
            for (const id of [napping!, end!]) yield* Effect.flatMap(TaskAdmin, ({ wake }) => wake(id))
            const { answer } = yield* TaskEngine
            const { questions } = yield* until(asking!, ({ questions }) => questions.length === 1)
            yield* answer(asking!, questions[0]!.key, { action: "accept" })
            for (const id of [napping!, asking!, end!]) expect(textOf(yield* ended(id))).toBe("done")
            expect(yield* decisions(napping!)).toEqual(["unpatched p"])
            expect(yield* decisions(asking!)).toEqual(["unpatched p"])
            expect(yield* decisions(end!)).toEqual(["patched p"])
          })
        )
        expect(done).toEqual(["b"])
      }).pipe(Effect.scoped))
  })
}

it.live("is a defect in a step", () =>
  Effect.gen(function*() {
    const [, open] = stores[0]!
    const deploy = yield* open
    const body = durable(() =>
      Effect.as(Step.run("a", {}, () => Task.patched("p")), "done").pipe(
        Effect.catchDefect((defect) => Effect.succeed(String(defect)))
      )
    )
    const text = yield* deploy({ t: body }, Effect.flatMap(submit("t"), ({ id }) => Effect.map(ended(id), textOf)))
    expect(text).toContain(`Task.patched("p") is not allowed inside step "a"`)
  }).pipe(Effect.scoped))
