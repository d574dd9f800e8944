/**
 * Tasks that are exported from one store and imported into another.
 */
import { describe, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { type LoggedEvent, TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { ExportedTask } from "@skein/tasks/TaskExport"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, submit, textOf, until, work } from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-export-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)
const memory = MemoryTasks.layer({ pollInterval: 50 })
const sqlite = Layer.unwrap(
  Effect.map(folder, (folder) => SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: 50 }))
)
const postgres = Layer.unwrap(Effect.map(
  Effect.promise(async () => (await sharedPostgres()).createDatabase()),
  (url) => PostgresTasks.layer({ url, pollInterval: 50 })
))
const sealed = Layer.provide(postgres, Encryption.layer({ keys: ["a key of thirty-two characters, or more"] }))

type Store = Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, unknown>
const stores: ReadonlyArray<readonly [name: string, store: Store]> = [
  ["memory", memory],
  ["SQLite", sqlite],
  ...unavailable === undefined || required
    ? [["PostgreSQL, encrypted", sealed] as const]
    : []
]

/** A tool that records its steps, and asks between them. */
const makeTool = () => {
  const done: Array<string> = []
  const step = (name: string, value: string) =>
    Step.run(name, { success: Schema.String }, () => Effect.sync(() => (done.push(name), value))).pipe(
      Step.withCompensation(() => Effect.sync(() => void done.push(`undo ${name}`)))
    )
  const order = durable(({ cake }) =>
    Effect.gen(function*() {
      const receipt = yield* step("pay", `receipt of ${String(cake)}`)
      const { content } = yield* Effect.orDie(ask("Where to?"))
      yield* Step.sleep("moment", 1)
      yield* step("ship", "shipped")
      return `${receipt}, to ${(content as { readonly to: string }).to}`
    })
  )
  return { done, tools: { order } }
}

const answered = { action: "accept", content: { to: "Hafen 1" } }
const admin = <A, E>(use: (admin: TaskAdmin["Service"]) => Effect.Effect<A, E>) => Effect.flatMap(TaskAdmin, use)

/** A task that waits for its answer, and one that has ended, as JSON. */
const exportTwo = (redact: boolean) =>
  Effect.gen(function*() {
    const { tools } = makeTool()
    yield* work(tools)
    const make = Effect.gen(function*() {
      const { id } = yield* submit("order", { args: { cake: "Sacher" }, owner: "ada", labels: { order: "4711" } })
      const asking = yield* until(id, ({ questions }) => questions.length === 1)
      return { id, key: asking.questions[0]!.key }
    })
    const waiting = yield* make
    const other = yield* make
    yield* Effect.flatMap(TaskEngine, ({ answer }) => answer(other.id, other.key, answered))
    yield* ended(other.id)
    const exported = (id: string) =>
      Effect.map(
        admin(({ exportTask }) => exportTask(id, { redact })),
        (exported) => JSON.parse(JSON.stringify(exported)) as ExportedTask
      )
    return { waiting: yield* exported(waiting.id), done: yield* exported(other.id), key: waiting.key }
  })

const inMemory = <A, E>(effect: Effect.Effect<A, E, Layer.Success<Store> | Scope.Scope>) =>
  Effect.scoped(Effect.provide(effect, Layer.fresh(memory)))

describe.each(stores)("an exported task, %s", (_, store) => {
  it.live("is stored as it was, under its id or a new one, and does not go on", () =>
    Effect.gen(function*() {
      const { done, waiting } = yield* inMemory(exportTwo(false))
      const tool = makeTool()
      yield* work(tool.tools)
      const imported = yield* admin(({ importTask }) => importTask(done, { by: "ada" }))
      expect(imported).toMatchObject({
        id: done.task.id,
        status: "completed",
        owner: "ada",
        outcome: done.task.outcome
      })
      const inspected = yield* admin(({ inspect }) => inspect(imported.id, { values: true }))
      expect(inspected).toMatchObject({
        args: { cake: "Sacher" },
        labels: { order: "4711" },
        place: { _tag: "Settled" },
        actions: [{ action: "import", by: "ada", detail: done.task.id }]
      })
      // The record of a short sleep is empty, and is not shown.
      const parts = (log: ReadonlyArray<Pick<LoggedEvent, "kind" | "name" | "seq"> & { readonly value?: unknown }>) =>
        log.map(({ kind, name, seq, value }) => [seq, kind, name, value || undefined])
      expect(parts(inspected!.log)).toEqual(parts(done.log))
      const second = yield* admin(({ importTask }) => importTask(done))
      expect(second.id).not.toBe(done.task.id)
      const back = yield* admin(({ exportTask }) => exportTask(second.id))
      expect(JSON.parse(JSON.stringify(back))).toMatchObject({ log: done.log, questions: done.questions })

      const stopped = yield* admin(({ importTask }) => importTask(waiting))
      expect(stopped).toMatchObject({ status: "cancelled", questions: [] })
      expect(stopped.statusMessage).toContain("input_required")
      expect(tool.done).toEqual([])
      // It runs again from a step, with what is recorded before it.
      const again = yield* admin(({ rerun }) => rerun(second.id, { from: "ship" }))
      expect(textOf(yield* ended(again!.id))).toBe("receipt of Sacher, to Hafen 1")
      expect(tool.done).toEqual(["ship"])
      const { tasks } = yield* admin(({ statistics }) => statistics)
      expect(tasks.map(({ count, status }) => [status, count])).toEqual([["cancelled", 1], ["completed", 3]])
      const { changed } = yield* admin(({ changeMany }) => changeMany({}, { action: "delete" }))
      expect(changed).toBe(4)
    }).pipe(Effect.provide(store), Effect.scoped), 20_000)

  it.live("goes on where it was, if that was asked for", () =>
    Effect.gen(function*() {
      const { done, key, waiting } = yield* inMemory(exportTwo(false))
      const tool = makeTool()
      yield* work(tool.tools)
      const { id } = yield* admin(({ importTask }) => importTask(waiting, { start: true }))
      expect(id).toBe(waiting.task.id)
      yield* until(id, ({ status }) => status === "input_required")
      yield* Effect.flatMap(TaskEngine, ({ answer }) => answer(id, key, answered))
      expect(textOf(yield* ended(id))).toBe("receipt of Sacher, to Hafen 1")
      expect(tool.done).toEqual(["ship"])
      const refused = Effect.flip(admin(({ importTask }) => importTask(done, { start: true })))
      expect((yield* refused).message).toBe("the task cannot start: its status is completed: rerun the imported task")
    }).pipe(Effect.provide(store), Effect.scoped), 20_000)
})

describe("an exported task", () => {
  it.live("has the shapes of its values if it is redacted, and does not go on", () =>
    inMemory(Effect.gen(function*() {
      const { done, waiting } = yield* exportTwo(true)
      expect(JSON.stringify(done)).not.toMatch(/Sacher|Hafen|4711|ada/)
      expect(done).toMatchObject({
        redacted: true,
        task: { args: { cake: "<6 characters>" }, labels: { order: "<4 characters>" }, owner: null, tool: "order" },
        questions: [{
          params: { message: "<9 characters>" },
          answer: { action: "accept", content: { to: "<7 characters>" } }
        }]
      })
      expect(done.log.map(({ kind, name, value }) => [kind, kind === "answer" ? "" : name, value])).toEqual([
        ["step", "pay", "{\"v\":\"<17 characters>\"}"],
        ["answer", "", undefined],
        ["fired", "sleep/moment", ""],
        ["step", "ship", "{\"v\":\"<7 characters>\"}"]
      ])
      const { importTask } = yield* TaskAdmin
      expect((yield* Effect.flip(importTask(waiting, { start: true }))).message).toContain("its values are redacted")
      expect(yield* importTask(waiting)).toMatchObject({ status: "cancelled" })
    })))

  it.live("is rejected unless it is one, of this version", () =>
    inMemory(Effect.gen(function*() {
      const { done } = yield* exportTwo(false)
      const { exportTask, importTask, replay } = yield* TaskAdmin
      for (const value of [undefined, {}, { ...done, version: 2 }, { ...done, log: [{ seq: 1, kind: "other" }] }]) {
        const { reason } = yield* Effect.flip(importTask(value))
        expect([reason._tag, reason.message]).toEqual([
          "InvalidOption",
          expect.stringContaining("not an exported task of version 1")
        ])
      }
      expect(yield* importTask({ ...done, later: 1, task: { ...done.task, id: "short" } })).toMatchObject({
        id: expect.stringMatching(/^[\w-]{32}$/)
      })
      expect(yield* exportTask("unknown")).toBeUndefined()
      const { reason } = yield* Effect.flip(replay({ ...done, task: { ...done.task, tool: "other" } }))
      expect(reason._tag).toBe("UnknownTool")
    })))
})
