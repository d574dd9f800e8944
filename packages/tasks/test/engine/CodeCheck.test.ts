/**
 * Compares the code of a process with tasks that exist, without running them.
 */
import { describe, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { setStatusMessage } from "@skein/tasks/Task"
import { type CodeFinding, TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { ask, durable, type Handler, pass, plain, settled, submit, work } from "./kit.ts"
import { type Bounds, defaults, TaskBounds } from "../../src/internal/base/bounds.ts"

/** Deployments on one file, one after the other, and the warnings and errors that they log. */
const deployments = (options: Partial<SqliteTasks.Options> = {}, bounds: Partial<Bounds> = {}) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    const layer = SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 minute", ...options })
      .pipe(Layer.provide(Layer.succeed(TaskBounds, { ...defaults, ...bounds })))
    const deploy = <A, E>(
      tools: Record<string, Handler>,
      effect: Effect.Effect<A, E, TaskEngine | TaskAdmin | SqlClient | Scope.Scope>
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

/** Everything that the tables hold. */
const everything = Effect.gen(function*() {
  const sql = yield* SqlClient
  const tables = ["skein_tasks", "skein_task_queue", "skein_task_log", "skein_task_questions", "skein_task_counts"]
  return yield* Effect.forEach(tables, (table) => sql.unsafe(`SELECT * FROM ${table}`))
})

const check = (options?: { readonly tool?: string; readonly limit?: number }) =>
  Effect.gen(function*() {
    const admin = yield* TaskAdmin
    const fiber = yield* Effect.forkChild(admin.check(options))
    yield* pass(40)
    return yield* Fiber.join(fiber)
  })

type Parts = CurrentTask | McpRequest
const nap = Step.sleep("nap", "1 day")

/** The effects of handlers. */
const done: Array<string> = []
const did = (what: string) => Effect.sync(() => void done.push(what))
const step = (name: string, pause: Effect.Effect<void> = Effect.void) =>
  Step.run(name, { success: Schema.String }, () => Effect.as(Effect.andThen(pause, did(name)), name))
const handler = (body: Effect.Effect<unknown, { readonly message: string }, Parts>) =>
  durable(() => Effect.map(body, String))
const inOrder = (...parts: ReadonlyArray<string>) =>
  handler(Effect.forEach(parts, (part) => part.startsWith("nap") ? Step.sleep(part, "1 day") : step(part)))
const asks = (message: string) => Effect.orDie(ask(message))

interface Case {
  readonly change: string
  readonly before: Handler
  readonly after: Handler | undefined
  readonly findings: ReadonlyArray<Pick<CodeFinding, "kind" | "details">>
}

const cases: ReadonlyArray<Case> = [
  { change: "nothing", before: inOrder("a", "b", "nap"), after: inOrder("a", "b", "nap"), findings: [] },
  { change: "a later step is added", before: inOrder("a", "nap"), after: inOrder("a", "nap", "b"), findings: [] },
  {
    change: "a step is removed",
    before: inOrder("a", "b", "nap"),
    after: inOrder("a", "nap"),
    findings: [{ kind: "skipped", details: [`step "b"`] }]
  },
  {
    change: "a step is renamed",
    before: inOrder("a", "b", "nap"),
    after: inOrder("a", "B", "nap"),
    findings: [{ kind: "added", details: [`step "B" before step "b"`] }]
  },
  {
    change: "a step with a value is added in front",
    before: inOrder("a", "b", "nap"),
    after: inOrder("new", "a", "b", "nap"),
    findings: [{ kind: "added", details: [`step "new" before step "a"`, `step "new" before step "b"`] }]
  },
  {
    change: "a step without a value and two sleeps are added in front",
    before: inOrder("a", "b", "nap"),
    after: handler(
      Effect.gen(function*() {
        yield* Step.run("new", {}, () => did("new"))
        yield* Step.sleep("short", "1 second")
        yield* step("a")
        yield* Step.sleep("long", "1 day")
        yield* step("b")
        yield* nap
      })
    ),
    findings: []
  },
  {
    change: "a step is added in front of an open question",
    before: handler(asks("Sure?")),
    after: handler(Effect.andThen(step("new"), asks("Sure?"))),
    findings: []
  },
  {
    change: "a handler fails before a step that is done",
    before: inOrder("a", "b", "nap"),
    after: handler(Effect.andThen(step("a"), Effect.fail({ message: "no" }))),
    findings: [{ kind: "stopped", details: [`step "b", before which the handler fails: a result with isError`] }]
  },
  {
    change: "the sleep at the end is removed",
    before: inOrder("a", "nap"),
    after: inOrder("a"),
    findings: [{ kind: "skipped", details: [`sleep "nap"`] }]
  },
  {
    change: "a step beside others is removed",
    before: handler(Effect.andThen(Effect.all([step("a"), step("b")], { concurrency: 2 }), nap)),
    after: handler(Effect.andThen(Effect.all([step("a")], { concurrency: 2 }), nap)),
    findings: [{ kind: "skipped", details: [`step "b"`] }]
  },
  {
    change: "the winner of a race is dropped",
    before: handler(Effect.andThen(Effect.raceFirst(step("approve"), step("reject", Effect.never)), nap)),
    after: handler(Effect.andThen(step("reject"), nap)),
    findings: [{ kind: "stopped", details: [`step "approve", recorded while step "reject" was under way`] }]
  },
  {
    change: "the text of an open question",
    before: handler(asks("Old?")),
    after: handler(asks("New?")),
    findings: [{ kind: "question", details: [expect.stringMatching(/^"[0-9a-f]{32}"$/) as unknown as string] }]
  },
  {
    change: "a schema",
    before: handler(Effect.andThen(Step.run("a", { success: Schema.Int }, () => Effect.succeed(1)), nap)),
    after: handler(Effect.andThen(Step.run("a", { success: Schema.String }, () => Effect.succeed("")), nap)),
    findings: [{ kind: "failed", details: [expect.stringContaining(`step "a": its schema cannot decode`) as string] }]
  },
  {
    change: "two steps get one name",
    before: inOrder("a", "nap"),
    after: inOrder("a", "a", "nap"),
    findings: [{ kind: "failed", details: [expect.stringContaining(`duplicate step name "a"`) as string] }]
  },
  {
    change: "a task becomes a plain tool",
    before: inOrder("a", "nap"),
    after: plain(() => Effect.as(did("plain"), "")),
    findings: [{ kind: "plain", details: [] }]
  },
  {
    change: "a tool is removed",
    before: inOrder("a", "nap"),
    after: undefined,
    findings: [{ kind: "missing", details: [] }]
  },
  {
    change: "a retry waits, with the same code",
    before: handler(
      Step.run("a", { error: Schema.String, retry: Schedule.spaced("1 hour") }, () => Effect.fail("no")).pipe(
        Effect.mapError((message) => ({ message }))
      )
    ),
    after: handler(
      Step.run("a", { error: Schema.String, retry: Schedule.spaced("1 hour") }, () => Effect.fail("no")).pipe(
        Effect.mapError((message) => ({ message }))
      )
    ),
    findings: []
  }
]

describe("a check of the code", () => {
  for (const { after, before, change, findings } of cases) {
    it.effect(`finds what has changed, starts nothing and stores nothing: ${change}`, () =>
      Effect.gen(function*() {
        const { deploy, lines } = yield* deployments()
        const id = yield* deploy({ t: before }, Effect.map(Effect.tap(submit("t"), pass(5)), ({ id }) => id))
        done.length = 0
        lines.length = 0
        const tools: Record<string, Handler> = { other: inOrder("a") }
        if (after !== undefined) tools["t"] = after
        yield* deploy(
          tools,
          Effect.gen(function*() {
            const stored = yield* everything
            yield* pass(40)
            const result = yield* check()
            expect(result).toEqual({
              checked: 1,
              isComplete: true,
              findings: findings.map((finding) => ({ tool: "t", count: 1, tasks: [id], ...finding }))
            })
            expect(yield* everything).toEqual(stored)
          })
        )
        expect(done).toEqual([])
        // The check at the start has logged the same.
        expect(lines.length).toBe(findings.length)
        for (const line of lines) {
          expect(line).toMatch(new RegExp(`^a check of the code: 1 task of the tool t \\(${id.slice(0, 8)}…\\) `))
        }
      }).pipe(Effect.scoped))
  }

  it.effect("reads at most maxCheckedTasks tasks, and replays few of each tool", () =>
    Effect.gen(function*() {
      let runs = 0
      const counted = durable(() =>
        Effect.andThen(
          Effect.sync(() => runs++),
          Effect.as(
            Effect.andThen(setStatusMessage("again"), Effect.andThen(step("a"), nap)),
            ""
          )
        )
      )
      const { deploy, lines } = yield* deployments({}, { maxCheckedTasks: 50, maxCheckedTasksPerTool: 3 })
      yield* deploy(
        { t: counted },
        Effect.andThen(Effect.forEach(Array.from({ length: 60 }), () => submit("t")), pass(2))
      )
      runs = 0
      yield* deploy({ t: counted }, pass(40))
      expect(runs).toBe(3)
      yield* deploy(
        { t: counted },
        Effect.gen(function*() {
          yield* pass(40)
          runs = 0
          expect(yield* check({ limit: 10 })).toEqual({ checked: 10, isComplete: false, findings: [] })
          expect(runs).toBe(10)
          expect(yield* check({ tool: "other" })).toEqual({ checked: 0, isComplete: true, findings: [] })
        })
      )
      expect(lines).toEqual([])
      yield* deploy({ t: inOrder("nap") }, pass(40))
      expect(lines).toEqual([
        expect.stringMatching(/^a check of the code: at least 3 tasks of the tool t \(.{9}, .{9}, .{9}\) .*: step "a"$/)
      ])
    }).pipe(Effect.scoped))

  it.effect("does nothing with checkCode: false, and leaves out tasks of this process", () =>
    Effect.gen(function*() {
      let runs = 0
      const counted = durable(() => Effect.as(Effect.andThen(Effect.sync(() => runs++), nap), ""))
      const { deploy } = yield* deployments({ checkCode: false })
      yield* deploy({ t: counted }, Effect.andThen(submit("t"), pass(10)))
      yield* deploy({ t: counted }, pass(10))
      expect(runs).toBe(1)
      const others = yield* deployments()
      yield* others.deploy({ t: counted }, Effect.andThen(submit("t"), pass(10)))
      expect(runs).toBe(2)
      yield* settled
    }).pipe(Effect.scoped))
})
