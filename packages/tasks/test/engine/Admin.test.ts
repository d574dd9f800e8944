/**
 * The operations of an operator, on each store.
 */
import { describe, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, plain, submit, textOf, until, work } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

const url = () => Effect.promise(() => server!.createDatabase())
const postgres = Layer.unwrap(Effect.map(Effect.suspend(url), (url) => PostgresTasks.layer({ url, pollInterval: 50 })))
const memory = MemoryTasks.layer({ pollInterval: 50 })
const sealed = Layer.provide(memory, Encryption.layer({ keys: ["a key of thirty-two characters, or more"] }))

const stores: ReadonlyArray<readonly [string, Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, unknown>]> = [
  ["memory", memory],
  ["encrypted", sealed],
  ...server === undefined ? [] : [["PostgreSQL", postgres] as const]
]

const tools = {
  fine: plain(() => Effect.succeed("")),
  fails: durable(() =>
    Effect.andThen(
      Step.run("first", { success: Schema.String }, () => Effect.succeed("secret")),
      Effect.as(
        Step.run("second", { error: Schema.Struct({ message: Schema.String }) }, () => Effect.fail({ message: "No" })),
        ""
      )
    )
  ),
  sleeps: durable(() => Effect.as(Step.sleep("long", "1 day"), "")),
  asks: durable(() => Effect.as(Effect.orDie(ask("Sure?")), "")),
  works: durable(() => Effect.as(Step.run("endless", {}, () => Effect.never), ""))
}

/** Repeats a look until it shows what is expected. */
const eventually = <A, E, R>(look: Effect.Effect<A, E, R>, is: (value: A) => boolean) =>
  Effect.timeout(Effect.repeat(Effect.delay(look, 20), { until: is }), "60 seconds")

it.live.skipIf(server === undefined)(
  "checks new code on PostgreSQL in a process that runs no tasks",
  () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => server!.createDatabase())
      const long = Step.sleep("long", "1 day")
      const body = (name: string) =>
        durable(() => Effect.as(Effect.andThen(Step.run(name, {}, () => Effect.void), long), ""))
      const old = yield* Layer.build(PostgresTasks.layer({ url, pollInterval: 50 }))
      const id = yield* Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work({ t: body("a"), gone: body("a") })
        const { id } = yield* submit("t")
        yield* submit("gone")
        yield* eventually(admin.list({}), (tasks) => tasks.every(({ place }) => place._tag === "Waiting"))
        return id
      }).pipe(Effect.provideContext(old))
      const planned = yield* Layer.build(PostgresTasks.layer({ url, runTasks: false }))
      yield* Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work({ t: body("b") })
        const { findings } = yield* admin.check()
        expect(findings.find(({ tool }) => tool === "t")).toEqual(
          { tool: "t", kind: "skipped", count: 1, tasks: [id], details: [`step "a"`] }
        )
        // The only worker has the tool, and the new code does not.
        expect(findings.find(({ tool }) => tool === "gone")).toMatchObject({ kind: "missing", count: 1 })
        expect(findings.length).toBe(2)
        expect((yield* admin.list({ tool: "t" }))[0]?.place).toMatchObject({ _tag: "Waiting", runs: 1 })
      }).pipe(Effect.provideContext(planned))
    }).pipe(Effect.scoped),
  120_000
)

for (const [store, layer] of stores) {
  describe(`TaskAdmin · ${store}`, () => {
    it.live("lists by tool, status, owner, pool and worker, newest first and page by page", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work(tools)
        const fine = yield* submit("fine", { owner: "ada" })
        yield* ended(fine.id)
        yield* Effect.sleep(5)
        const works = yield* submit("works")
        const [working] = yield* eventually(admin.list({ tool: "works" }), ([task]) => task?.place._tag === "Running")
        expect((yield* admin.list({})).map(({ state }) => state.id)).toEqual([works.id, fine.id])
        expect((yield* admin.list({ status: ["completed"] })).map(({ state }) => state.id)).toEqual([fine.id])
        expect(yield* admin.list({ status: [] })).toEqual([])
        expect((yield* admin.list({ owner: "ada" })).map(({ state }) => state.id)).toEqual([fine.id])
        expect((yield* admin.list({ owner: null })).map(({ state }) => state.id)).toEqual([works.id])
        expect(yield* admin.list({ pool: "other" })).toEqual([])
        const { worker } = working!.place as { readonly worker: string }
        expect((yield* admin.list({ worker })).map(({ state }) => state.id)).toEqual([works.id])
        const page = yield* admin.list({}, { limit: 1 })
        const next = yield* admin.list({}, { limit: 1, after: page[0]!.state })
        expect([...page, ...next].map(({ state }) => state.id)).toEqual([works.id, fine.id])
        expect(page[0]!.place).toMatchObject({ _tag: "Running", runs: 1, attempts: 0 })
        expect(next[0]!.place).toEqual({ _tag: "Settled" })
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("compares the code of this process with tasks that exist", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        const long = Step.sleep("long", "1 day")
        const step = (name: string) => Step.run(name, { success: Schema.String }, () => Effect.succeed(name))
        const body = (names: ReadonlyArray<string>) =>
          durable(() => Effect.as(Effect.andThen(Effect.forEach(names, step, { concurrency: 3 }), long), ""))
        const old = yield* Scope.make()
        yield* Scope.provide(work({ changes: body(["a", "b", "c"]), goes: body(["a"]), stays: body(["a"]) }), old)
        const { id } = yield* submit("changes")
        const gone = yield* submit("goes")
        yield* submit("stays")
        yield* eventually(admin.list({}), (tasks) => tasks.every(({ place }) => place._tag === "Waiting"))
        expect(yield* admin.check()).toEqual({ checked: 3, isComplete: true, findings: [] })
        yield* Scope.close(old, Exit.void)
        yield* work({ changes: body(["a", "c"]), stays: body(["a"]) })
        const { checked, findings } = yield* admin.check()
        expect(checked).toBe(3)
        expect(findings.toSorted((one, other) => one.tool < other.tool ? -1 : 1)).toEqual([
          { tool: "changes", kind: "skipped", count: 1, tasks: [id], details: [`step "b"`] },
          { tool: "goes", kind: "missing", count: 1, tasks: [gone.id], details: [] }
        ])
        expect(yield* admin.check({ tool: "stays" })).toEqual({ checked: 1, isComplete: true, findings: [] })
      }).pipe(Effect.scoped, Effect.provide(layer)), 120_000)

    it.live("inspects the log of a task: names, attempts and failures, and records only if asked for", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work(tools)
        const { id } = yield* submit("fails", { args: { cakes: 7 } })
        yield* ended(id)
        const task = (yield* admin.inspect(id))!
        expect([task.args, task.outcome]).toEqual([undefined, undefined])
        expect(task.state).toMatchObject({ status: "completed", isError: true })
        expect(task.log).toMatchObject([
          { seq: 1, kind: "step", name: "first", attempt: 1, failed: false, value: undefined },
          { seq: 2, kind: "step", name: "second", attempt: 1, failed: true, value: undefined }
        ])
        expect(task.log.every(({ at, startedAt }) => startedAt! <= at)).toBe(true)
        const { args, log: [first], outcome } = (yield* admin.inspect(id, { values: true }))!
        expect(JSON.parse(first!.value!)).toEqual({ v: "secret" })
        expect(args).toEqual({ cakes: 7 })
        expect(outcome).toMatchObject({ _tag: "Result", result: { isError: true } })
        expect(yield* admin.inspect("unknown")).toBeUndefined()
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("shows what a task waits for, wakes it, and cancels it", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work(tools)
        const sleeps = yield* submit("sleeps")
        const asks = yield* submit("asks")
        yield* until(asks.id, ({ questions }) => questions.length === 1)
        const isWaiting = (id: string) => eventually(admin.inspect(id), (task) => task?.place._tag === "Waiting")
        const day = 24 * 3_600_000
        const { place } = (yield* isWaiting(sleeps.id))!
        expect((place as { readonly until: number }).until - sleeps.createdAt).toBeGreaterThanOrEqual(day)
        expect((yield* isWaiting(asks.id))!.place).toMatchObject({ until: undefined, runs: 1 })
        expect((yield* admin.inspect(asks.id))!.questions).toHaveLength(1)
        expect(yield* admin.wake(sleeps.id)).toBe(true)
        yield* eventually(admin.inspect(sleeps.id), (task) => task?.place._tag === "Waiting" && task.place.runs === 2)
        expect(yield* admin.wake("unknown")).toBe(false)
        expect(yield* admin.cancel(sleeps.id, "By an operator")).toBe(true)
        yield* eventually(admin.inspect(sleeps.id), (task) => task?.place._tag === "Settled")
        expect((yield* admin.inspect(sleeps.id))!.state).toMatchObject({
          status: "cancelled",
          statusMessage: "By an operator"
        })
        expect(yield* admin.cancel(sleeps.id)).toBe(false)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("does not run a task again that has not ended, or whose compensations run", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work({
          ...tools,
          undone: durable(() =>
            Effect.gen(function*() {
              yield* Step.run("do", {}, () => Effect.void)
              yield* Step.compensate(() => Effect.never)
              yield* Step.sleep("long", "1 day")
              return ""
            })
          )
        })
        const refusal = (id: string) => Effect.map(Effect.flip(admin.rerun(id)), ({ reason }) => reason)
        const { id } = yield* submit("sleeps")
        expect(yield* refusal(id)).toMatchObject({ _tag: "NotEnded", message: expect.stringContaining("working") })
        const undone = yield* submit("undone")
        yield* eventually(admin.inspect(undone.id), (task) => task?.place._tag === "Waiting")
        expect(yield* admin.cancel(undone.id)).toBe(true)
        expect(yield* refusal(undone.id)).toMatchObject({
          _tag: "NotEnded",
          message: expect.stringContaining("compensations")
        })
        expect(yield* admin.list({})).toHaveLength(2)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("pauses only a tool that the store knows, if it must be known", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        const engine = yield* TaskEngine
        const { reason } = yield* Effect.flip(admin.pause("fine", { mustBeKnown: true }))
        expect(reason).toMatchObject({ _tag: "UnknownTool", message: expect.stringContaining("\"fine\"") })
        expect(yield* admin.tools).toEqual([])
        yield* submit("fine")
        yield* engine.pace(new Map([["limited", { concurrency: 1 }]]))
        const schedules = yield* TaskSchedules
        yield* schedules.set("nightly", { cron: "0 2 * * *", task: { tool: "scheduled" } })
        for (const tool of ["fine", "limited", "scheduled"]) {
          expect(yield* admin.pause(tool, { mustBeKnown: true })).toBe(true)
        }
        expect(yield* admin.pause("new")).toBe(true)
        expect(yield* admin.pause("new", { mustBeKnown: true })).toBe(false)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("runs a task again, from its beginning or from a step with what came before", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        const acts: Array<string> = []
        const keys = new Set<string>()
        let isBroken = true
        const act = (name: string, fails = false) =>
          Step.run(name, { success: Schema.String, error: Schema.Struct({ message: Schema.String }) }, (key) =>
            Effect.suspend(() => {
              acts.push(name)
              keys.add(key)
              return fails && isBroken ? Effect.fail({ message: "Broken" }) : Effect.succeed(`${name}!`)
            }))
        yield* work({
          job: durable(() =>
            Effect.gen(function*() {
              const first = yield* act("first")
              const { name } = yield* Effect.orDie(ask("Name?"))
              yield* Step.compensate(() =>
                Effect.ignore(act("undo"))
              )
              const last = yield* act("last", true)
              return `${first} ${String(name)} ${last}`
            })
          )
        })
        const engine = yield* TaskEngine
        const { id } = yield* submit("job", { owner: "ada", args: { deep: { a: [1] } } })
        const { questions } = yield* until(id, ({ questions }) =>
          questions.length === 1)
        yield* engine.answer(id, questions[0]!.key, { name: "Ada" })
        expect(textOf(yield* ended(id))).toBe("Broken")
        expect(acts.splice(0)).toEqual(["first", "last", "undo"])
        isBroken = false

        const again = (yield* admin.rerun(id, { from: "last" }))!
        expect(again).toMatchObject({ owner: "ada", tool: "job", status: "working" })
        expect(textOf(yield* ended(again.id))).toBe("first! Ada last!")
        expect(acts.splice(0)).toEqual(["last"])
        expect(keys.size).toBe(4)
        expect((yield* admin.inspect(again.id))!.log.map(({ kind, seq }) => `${seq} ${kind}`)).toEqual([
          "1 step",
          "2 answer",
          "3 step"
        ])
        expect((yield* engine.get(id))?.isError).toBe(true)

        const whole = (yield* admin.rerun(id))!
        const asked = yield* until(whole.id, ({ questions }) => questions.length === 1)
        yield* engine.answer(whole.id, asked.questions[0]!.key, { name: "Bob" })
        expect(textOf(yield* ended(whole.id))).toBe("first! Bob last!")
        expect(acts).toEqual(["first", "last"])

        expect(yield* admin.rerun(id, { from: "unknown" })).toBeUndefined()
        expect(yield* admin.rerun("unknown")).toBeUndefined()
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("lists and counts tasks that have failed, also those with a result that has isError", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* work({
          ...tools,
          dies: durable(() => Effect.die("no")),
          refuses: durable(() => Effect.fail({ message: "Sold out" }))
        })
        const ids: Array<string> = []
        for (const tool of ["fine", "dies", "refuses"]) {
          const { id } = yield* submit(tool)
          yield* ended(id)
          ids.unshift(id)
        }
        const listed = yield* admin.list({ hasFailed: true })
        expect(listed.map(({ state }) => [state.id, state.status, state.statusMessage])).toEqual([
          [ids[0], "completed", "Sold out"],
          [ids[1], "failed", expect.stringMatching(/^Internal error, reference [\da-f-]{36}$/)]
        ])
        const died = (yield* admin.inspect(ids[1]!, { values: true }))!
        expect(died.outcome).toMatchObject({ _tag: "Error", error: { message: "Internal error" } })
        expect(died.state.statusMessage).toContain((died.outcome as any).error.data.reference)
        expect((yield* admin.list({ hasFailed: true, tool: "dies" })).map(({ state }) => state.id)).toEqual([ids[1]])
        expect((yield* admin.statistics).tasks).toEqual([
          { tool: "dies", status: "failed", count: 1, errors: 0, declined: 0 },
          { tool: "fine", status: "completed", count: 1, errors: 0, declined: 0 },
          { tool: "refuses", status: "completed", count: 1, errors: 1, declined: 0 }
        ])
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("does not list a task as failed whose question a person declined, and counts it apart", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        const engine = yield* TaskEngine
        const released: Array<string> = []
        const step = (name: string) => Step.run(name, { success: Schema.String }, () => Effect.succeed(name))
        const refusing = { error: Schema.Struct({ message: Schema.String }) }
        yield* work({
          order: durable(({ pays }) =>
            Effect.gen(function*() {
              yield* step("reserve")
              yield* Step.compensate(() => Effect.sync(() => void released.push("reserve")))
              const { action } = yield* Effect.orDie(ask("Where to?"))
              if (pays === true) yield* Step.run("pay", refusing, () => Effect.fail({ message: "No money" }))
              return action === "accept" ? "sent" : yield* Effect.fail({ message: "No address" })
            })
          )
        })
        const end = (action: string, args: object = {}) =>
          Effect.gen(function*() {
            const { id } = yield* submit("order", { args: { ...args } })
            const { questions: [question] } = yield* until(id, ({ questions }) => questions.length === 1)
            yield* engine.answer(id, question!.key, { action })
            return yield* ended(id)
          })
        yield* end("accept")
        for (const action of ["decline", "cancel"]) {
          expect(yield* end(action)).toMatchObject({ status: "completed", isError: true, statusMessage: "No address" })
        }
        expect(released).toEqual(["reserve", "reserve"])
        expect(yield* admin.list({ hasFailed: true })).toEqual([])
        // A failure after an answer is one.
        const failed = [yield* end("accept", { pays: true }), yield* end("decline", { pays: true })]
        expect((yield* admin.list({ hasFailed: true })).map(({ state }) => state.id).toSorted()).toEqual(
          failed.map(({ id }) => id).toSorted()
        )
        expect((yield* admin.statistics).tasks).toEqual([
          { tool: "order", status: "completed", count: 5, errors: 4, declined: 2 }
        ])
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("counts tasks and the queue, and names the workers", () =>
      Effect.gen(function*() {
        const admin = yield* TaskAdmin
        yield* submit("fine")
        yield* submit("fine")
        yield* Effect.sleep(30)
        const before = yield* admin.statistics
        expect(before.tasks).toEqual([{ tool: "fine", status: "working", count: 2, errors: 0, declined: 0 }])
        expect(before.queue).toMatchObject([{ pool: "default", tool: "fine", state: "ready", count: 2 }])
        expect(before.queue[0]!.oldestMs).toBeGreaterThanOrEqual(30)
        yield* work(tools)
        yield* submit("asks")
        const after = yield* eventually(admin.statistics, ({ queue, tasks }) =>
          tasks.some(({ count, status }) =>
            status === "completed" && count === 2
          ) &&
          queue.some(({ state }) => state === "waiting"))
        expect(after.queue).toEqual([
          { pool: "default", tool: "asks", state: "waiting", count: 1, oldestMs: undefined }
        ])
        const workers = yield* admin.workers
        if (store !== "PostgreSQL") expect(workers).toEqual([])
        else {
          expect(workers).toMatchObject([{ pools: ["default"], running: 0, isLost: false }])
          expect(workers[0]!.leaseEndsAt).toBeGreaterThan(workers[0]!.startedAt)
          expect(workers[0]!.host).not.toBe("")
        }
      }).pipe(Effect.scoped, Effect.provide(layer)))
  })
}
