/**
 * Tasks that compensate with code that does not reach what other code has recorded as done.
 */
import { describe, it } from "@effect/vitest"
import * as Once from "@skein/server/Once"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { expect } from "vitest"
import {
  eventually,
  inspect,
  inspected,
  isUnavailable,
  type Services,
  stores,
  toSettled,
  toStop,
  toWait
} from "./deployments.ts"
import { ask, durable, submit } from "./kit.ts"

type Parts = CurrentTask | McpRequest
type Body = Effect.Effect<unknown, { readonly message: string }, Parts>

/** The effects of the steps of each task, by its tool. */
type Effects = (tool: string) => {
  readonly done: ReadonlyArray<string>
  /** A step with a compensation. */
  readonly undoable: (name: string) => Effect.Effect<string, never, CurrentTask>
  /** A step with a value, and no compensation. */
  readonly valued: (name: string) => Effect.Effect<string, never, CurrentTask>
  /** A step without either. */
  readonly plain: (name: string) => Effect.Effect<void, never, CurrentTask>
}

const makeEffects = (): Effects => {
  const all = new Map<string, Array<string>>()
  return (tool) => {
    const done = all.get(tool) ?? []
    all.set(tool, done)
    const did = (what: string) => Effect.sync(() => (done.push(what), what))
    const valued = (name: string) => Step.run(name, { success: Schema.String }, () => did(name))
    return {
      done,
      valued,
      plain: (name) => Step.run(name, {}, () => did(name)),
      undoable: (name) =>
        Step.run(name, { success: Schema.String }, () => did(name)).pipe(
          Step.withCompensation(() => Step.run(`undo ${name}`, {}, () => did(`undo ${name}`)))
        )
    }
  }
}

const inOrder = (...parts: ReadonlyArray<Body>): Body => Effect.forEach(parts, (part) => part, { discard: true })
const wait = Step.sleep("wait", "1 hour")

interface Change {
  /** The change, and the part at which a replay stops. */
  readonly change: string
  readonly stopsAt: string | undefined
  /** The steps that are not reached. */
  readonly unreached?: string
  /** The compensations that run if an operator settles the task. */
  readonly reached?: ReadonlyArray<string>
  readonly after: (effects: ReturnType<Effects>) => Body
}

const before = ({ undoable }: ReturnType<Effects>): Body => inOrder(undoable("charge"), undoable("ship"), wait)

const changes: ReadonlyArray<Change> = [
  {
    change: "a step in front",
    stopsAt: `stops at step "audit", which has not begun`,
    after: ({ undoable, valued }) => inOrder(valued("audit"), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "a step between",
    stopsAt: `stops at step "audit", which has not begun`,
    unreached: `step "ship"`,
    reached: ["undo charge"],
    after: ({ undoable, valued }) => inOrder(undoable("charge"), valued("audit"), undoable("ship"), wait)
  },
  {
    change: "a step beside the others",
    stopsAt: `stops at step "audit", which has not begun`,
    unreached: `step "ship"`,
    reached: ["undo charge"],
    after: ({ undoable, valued }) =>
      inOrder(
        Effect.all([valued("audit"), undoable("charge")], { concurrency: 2 }),
        undoable("ship"),
        wait
      )
  },
  {
    change: "a step that is renamed",
    stopsAt: `stops at step "send", which has not begun`,
    unreached: `step "ship"`,
    reached: ["undo charge"],
    after: ({ undoable }) => inOrder(undoable("charge"), undoable("send"), wait)
  },
  {
    change: "a step that is removed",
    stopsAt: "waits before it",
    unreached: `step "ship"`,
    reached: ["undo charge"],
    after: ({ undoable }) => inOrder(undoable("charge"), wait)
  },
  {
    change: "a question in front",
    stopsAt: `stops at question "`,
    after: ({ undoable }) => inOrder(Effect.orDie(ask("Sure?")), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "a once in front",
    stopsAt: `stops at once "look", which has not begun`,
    after: ({ undoable }) =>
      inOrder(
        Effect.orDie(Once.once("look", Schema.String, Effect.succeed("looked"))),
        undoable("charge"),
        undoable("ship"),
        wait
      )
  },
  {
    change: "a compensation behind a new step, which may be its own",
    stopsAt: `stops at step "audit", which has not begun`,
    after: ({ plain, undoable }) =>
      inOrder(plain("audit"), Step.compensate(() => plain("undo audit")), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "a handler that ends in front",
    stopsAt: "ends without it",
    after: ({ undoable }) => inOrder(Effect.fail({ message: "no" }), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "nothing",
    stopsAt: undefined,
    after: before
  },
  {
    change: "a step at the end",
    stopsAt: undefined,
    after: ({ undoable, valued }) => inOrder(undoable("charge"), undoable("ship"), valued("audit"), wait)
  },
  {
    change: "a step without a value in front",
    stopsAt: undefined,
    after: ({ plain, undoable }) => inOrder(plain("audit"), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "a sleep in front",
    stopsAt: undefined,
    after: ({ undoable }) => inOrder(Step.sleep("rest", "1 hour"), undoable("charge"), undoable("ship"), wait)
  },
  {
    change: "a short sleep between",
    stopsAt: undefined,
    after: ({ undoable }) => inOrder(undoable("charge"), Step.sleep("rest", "2 seconds"), undoable("ship"), wait)
  }
]

/** The changes with which a task waits. */
const stopping = changes.flatMap(({ change, stopsAt }) => stopsAt === undefined ? [] : [change])

/** Ends the tasks in one of the ways in which a task compensates. */
type End = (ids: ReadonlyArray<string>) => Effect.Effect<unknown, unknown, Services>

/** The sweeper has seen all tasks that have expired before. */
const swept = Effect.gen(function*() {
  const { id } = yield* submit("none", { ttlMs: 1 })
  yield* eventually(Effect.map(inspect(id), (task) => task === undefined ? true : undefined))
})

const expire = (ids: ReadonlyArray<string>, before: number) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient
    for (const id of ids) {
      yield* sql`UPDATE skein_tasks SET expires_at = created_at - CAST(${before} AS BIGINT) WHERE id = ${id}`
    }
  })

const ends: ReadonlyArray<readonly [how: string, end: End]> = [
  ["cancelled", (ids) => Effect.flatMap(TaskAdmin, ({ cancel }) => Effect.forEach(ids, (id) => cancel(id)))],
  ["expired", (ids) => Effect.andThen(expire(ids, 0), swept)],
  [
    "given up",
    (ids) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        const admin = yield* TaskAdmin
        for (const id of ids) {
          yield* sql`UPDATE skein_task_queue SET attempts = 5 WHERE task_id = ${id}`
          yield* admin.wake(id)
        }
      })
  ]
]

const toolsOf = (effects: Effects, bodyOf: (change: Change, effects: ReturnType<Effects>) => Body) => ({
  none: durable(() => Effect.succeed("")),
  ...Object.fromEntries(changes.map((change) => [
    change.change,
    durable(() => Effect.as(bodyOf(change, effects(change.change)), "done"))
  ]))
})

for (const [store, open] of stores) {
  describe.skipIf(isUnavailable(store))(store, () => {
    for (const [how, end] of ends) {
      it.live(
        `compensates a task that is ${how} with code that reaches all of its steps, and only then`,
        () => {
          const errors: Array<string> = []
          const logger = Logger.make(({ logLevel, message }) => {
            if (logLevel === "Error") errors.push(String(message))
          })
          return Effect.gen(function*() {
            const deploy = yield* open
            const effects = makeEffects()
            const old = toolsOf(effects, (_, effects) => before(effects))
            const changed = toolsOf(effects, ({ after }, effects) => after(effects))
            const ids = yield* deploy(
              old,
              Effect.gen(function*() {
                const ids = new Map<string, string>()
                for (const { change } of changes) ids.set(change, (yield* submit(change)).id)
                for (const id of ids.values()) {
                  yield* toWait(id)
                }
                return ids
              })
            )
            const done = ["charge", "ship"]
            const undone = [...done, "undo ship", "undo charge"]
            const stops = Effect.gen(function*() {
              for (const { change, stopsAt, unreached = `step "charge", step "ship"` } of changes) {
                const id = ids.get(change)!
                if (stopsAt === undefined) {
                  yield* toSettled(id)
                  expect([change, ...effects(change).done]).toEqual([change, ...undone])
                  continue
                }
                const { log } = yield* toStop(id)
                expect([change, ...effects(change).done]).toEqual([change, ...done])
                expect(log.filter(({ kind }) => kind === "stopped").map(({ name }) => name)).toEqual([
                  expect.stringContaining(`it does not reach what is recorded as done (${unreached}), and ${stopsAt}`)
                ])
              }
              const { list } = yield* TaskAdmin
              const listed = yield* list({ needsAttention: true })
              expect(listed.map(({ state }) => state.tool).toSorted()).toEqual(stopping.toSorted())
            })
            yield* deploy(
              changed,
              Effect.andThen(Effect.andThen(end([...ids.values()]), stops), stops)
            )
            // The errors of the tasks, and none more.
            const stopped = errors.flatMap((error) =>
              /^task (.*) stops, because its code has changed: /.exec(error)?.[1] ?? []
            )
            expect(stopped.toSorted()).toEqual(stopping.toSorted())
            // Further restarts change nothing, also long after the time to live.
            yield* deploy(changed, Effect.andThen(Effect.andThen(expire([...ids.values()], 120_000), swept), stops))
            yield* deploy(
              old,
              Effect.gen(function*() {
                const { list, wake } = yield* TaskAdmin
                for (const { change } of changes) {
                  const id = ids.get(change)!
                  if ((yield* inspect(id)) === undefined) continue
                  yield* wake(id)
                  yield* eventually(Effect.map(inspect(id), (task) => task?.needsAttention === true ? undefined : true))
                  expect([change, ...effects(change).done]).toEqual([change, ...undone])
                }
                expect(yield* list({ needsAttention: true })).toEqual([])
              })
            )
          }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
        }
      )
    }

    it.live("does not end a task that fails, until its code reaches the steps that are done", () =>
      Effect.gen(function*() {
        const deploy = yield* open
        const effects = makeEffects()
        const tools = (bodyOf: (effects: ReturnType<Effects>) => Body) =>
          Object.fromEntries(["a", "b"].map((tool) => [tool, durable(() => Effect.as(bodyOf(effects(tool)), "done"))]))
        const failing = Effect.fail({ message: "no" })
        const ids = yield* deploy(
          tools(before),
          Effect.forEach(
            ["a", "b"],
            (tool) =>
              Effect.tap(
                Effect.map(submit(tool), ({ id }) => id),
                (id) => toWait(id)
              )
          )
        )
        const [a, b] = [ids[0]!, ids[1]!]
        yield* deploy(
          tools(({ undoable }) => inOrder(failing, undoable("charge"), undoable("ship"), wait)),
          Effect.gen(function*() {
            const { settle, wake } = yield* TaskAdmin
            for (const id of [a, b]) {
              yield* wake(id)
              expect((yield* toStop(id)).state).toMatchObject({
                status: "working",
                statusMessage: expect.stringMatching(/^Waiting for a worker whose code of the tool/)
              })
            }
            expect(yield* settle(b)).toBe(true)
            yield* toSettled(b)
            expect((yield* inspected(b)).state.status).toBe("cancelled")
          })
        )
        expect(effects("a").done).toEqual(["charge", "ship"])
        expect(effects("b").done).toEqual(["charge", "ship"])
        yield* deploy(
          tools(({ undoable }) => inOrder(undoable("charge"), undoable("ship"), failing)),
          Effect.gen(function*() {
            yield* Effect.flatMap(TaskAdmin, ({ wake }) => wake(a))
            yield* toSettled(a)
            expect((yield* inspected(a)).state).toMatchObject({ status: "completed", isError: true })
          })
        )
        expect(effects("a").done).toEqual(["charge", "ship", "undo ship", "undo charge"])
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))))

    it.live(
      "ends tasks as they are when an operator settles them, after the compensations that the code reaches",
      () =>
        Effect.gen(function*() {
          const deploy = yield* open
          const effects = makeEffects()
          const ids = yield* deploy(
            toolsOf(effects, (_, effects) => before(effects)),
            Effect.gen(function*() {
              const ids = new Map<string, string>()
              for (const { change, stopsAt } of changes) {
                if (stopsAt === undefined) continue
                const { id } = yield* submit(change)
                ids.set(change, id)
                yield* toWait(id)
              }
              return ids
            })
          )
          yield* deploy(
            toolsOf(effects, ({ after }, effects) => after(effects)),
            Effect.gen(function*() {
              const { cancel, settle } = yield* TaskAdmin
              const [first] = ids.values()
              expect(yield* settle(first!)).toBe(false)
              expect(yield* settle("unknown")).toBe(false)
              for (const { change, reached = [] } of changes) {
                const id = ids.get(change)
                if (id === undefined) continue
                yield* cancel(id)
                yield* toStop(id)
                expect(yield* settle(id)).toBe(true)
                yield* toSettled(id)
                const { log, state } = yield* inspected(id)
                expect(state.status).toBe("cancelled")
                expect(log.filter(({ kind }) => kind === "stopped" || kind === "settled").map(({ kind }) => kind))
                  .toEqual(
                    ["stopped", "settled"]
                  )
                expect([change, ...effects(change).done]).toEqual([change, "charge", "ship", ...reached])
                expect(yield* settle(id)).toBe(false)
              }
            })
          )
        }).pipe(Effect.scoped, Effect.provide(Logger.layer([])))
    )
  })
}
