/** The programs of the guides about tasks, with the engine in memory or on a file, under `TestClock`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import type { RemoteTask, Started } from "@skein/client/RemoteTask"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Mill from "../programs/mill.ts"
import { Bakery } from "../programs/tasks.ts"
import { Asking } from "../programs/tasksAsking.ts"
import * as Monitoring from "../programs/tasksMonitoring.ts"
import * as Children from "../programs/tasksChildren.ts"
import { Scarce } from "../programs/tasksOvens.ts"
import * as Schedules from "../programs/tasksSchedules.ts"
import { Stepping, tries } from "../programs/tasksSteps.ts"
import * as Terms from "../programs/tasksTerms.ts"
import * as Undo from "../programs/tasksUndo.ts"
import * as Versions from "../programs/tasksVersions.ts"
import { docs, read } from "./blocks.ts"
import { clientOf, inMemory, pass, type Revision, run, settled, until, user } from "./taskKit.ts"

const testedRevisions = ["2025-06-18", "2025-11-25", "2026-07-28"] as const
const withTasks = ["2025-11-25", "2026-07-28"] as const

const textOf = ({ content }: { readonly content: ReadonlyArray<{ readonly type: string; readonly text?: unknown }> }) =>
  content.map(({ text }) => text).join("")

const isTask = (started: Started): RemoteTask => {
  expect(started._tag).toBe("RemoteTask")
  return started as RemoteTask
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-guide-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe.each(testedRevisions)("programs/tasks.ts, %s", (revision: Revision) => {
  it.effect("is called like any tool, and takes hours", () =>
    Effect.gen(function*() {
      Mill.seen.length = 0
      const { transport } = yield* run(Bakery, inMemory)
      const client = yield* user({ "Light the oven?": { sure: true } })(clientOf(transport(), revision))
      const call = yield* Effect.forkChild(
        client.callTool("bake", { cakes: 3 }, { maxTimeout: "2 days", timeout: "2 days" })
      )
      expect(textOf(yield* until(call))).toBe("3 cakes of spelt, 3 kg")
      expect(Mill.seen).toEqual(["flour", "cake", "cake", "cake"])
    }))
})

describe("programs/tasks.ts", () => {
  it.effect("continues a task of one protocol in the other", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Bakery, inMemory)
      const connect = (revision: Revision) =>
        user({ "Light the oven?": { sure: false } })(clientOf(transport(), revision))
      for (const [one, other] of [["2025-11-25", "2026-07-28"], ["2026-07-28", "2025-11-25"]] as const) {
        const begun = isTask(yield* (yield* connect(one)).startTask("bake", { cakes: 1 }))
        const task = yield* (yield* connect(other)).resumeTask(begun.handle)
        expect(textOf(yield* until(yield* Effect.forkChild(task.result)))).toBe("Nothing was baked")
      }
    }))

  it.effect("creates two tasks for two calls", () =>
    Effect.gen(function*() {
      Mill.seen.length = 0
      const { transport } = yield* run(Bakery, inMemory)
      const client = yield* clientOf(transport())
      const ids = [yield* client.startTask("bake", { cakes: 1 }), yield* client.startTask("bake", { cakes: 1 })]
      expect(isTask(ids[0]!).id).not.toBe(isTask(ids[1]!).id)
      yield* settled
      expect(Mill.seen).toEqual(["flour", "flour"])
    }))

  it.effect("reports a missing capability in the result of the call", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Bakery, inMemory)
      const client = yield* clientOf(transport(), "2025-11-25")
      const task = isTask(yield* client.startTask("bake", { cakes: 1 }))
      const result = yield* until(yield* Effect.forkChild(task.result))
      expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining("the client has not declared")])
    }))
})

describe("programs/tasksSteps.ts", () => {
  it.effect("retries with the same key, writes once, and runs steps in parallel", () =>
    Effect.gen(function*() {
      tries.length = 0
      Mill.seen.length = 0
      const { context, transport } = yield* run(Stepping, inMemory)
      const client = yield* clientOf(transport())
      const task = isTask(yield* client.startTask("order", { count: 4 }))
      expect(textOf(yield* until(yield* Effect.forkChild(task.result)))).toBe("4 cakes, 1970-01-01")
      expect([tries.length, new Set(tries).size]).toEqual([3, 1])
      expect(Mill.seen).toEqual(Array.from({ length: 8 }, () => "cake"))
      const sql = Context.get(context, SqlClient.SqlClient)
      expect(yield* sql`SELECT id, kilos FROM orders`).toEqual([{ id: task.id, kilos: 4 }])
    }))
})

describe("programs/tasksOvens.ts", () => {
  it.effect("runs as many steps at once as there are permits", () =>
    Effect.gen(function*() {
      Mill.seen.length = Mill.oven.most = 0
      const { transport } = yield* run(Scarce, inMemory)
      const client = yield* clientOf(transport())
      const baking = Array.from({ length: 6 }, () => client.callTool("bake"))
      yield* until(yield* Effect.forkChild(Effect.all(baking, { concurrency: "unbounded" })))
      expect([Mill.seen.length, Mill.oven.most]).toEqual([6, 2])
    }))
})

describe.each(withTasks)("programs/tasksAsking.ts, %s", (revision) => {
  const connect = (answers: Parameters<typeof user>[0]) =>
    Effect.flatMap(
      run(Asking, inMemory),
      ({ transport }) => user(answers)(clientOf(transport(), revision))
    )

  it.effect("asks several questions at once", () =>
    Effect.gen(function*() {
      const client = yield* connect({ "How many guests?": { guests: 12 }, "Which cake?": { cake: "Plum cake" } })
      const task = isTask(yield* client.startTask("party"))
      expect(textOf(yield* until(yield* Effect.forkChild(task.result)))).toBe("Plum cake for 12")
    }))

  it.effect("ends a question at its timeout, and when it loses a race with a sleep", () =>
    Effect.gen(function*() {
      const client = yield* connect({ "Shall we deliver today?": { sure: true } })
      const late = isTask(yield* client.startTask("deliver"))
      const never = isTask(yield* client.startTask("fetch"))
      yield* pass(9, 3)
      expect(textOf(yield* until(yield* Effect.forkChild(late.result))))
        .toBe("No answer: kept in the shop")
      yield* pass(4, 4)
      expect(textOf(yield* until(yield* Effect.forkChild(never.result)))).toBe("Given away")
      const soon = isTask(yield* client.startTask("deliver"))
      expect(textOf(yield* until(yield* Effect.forkChild(soon.result)))).toBe("On its way")
    }))
})

describe("programs/tasksUndo.ts", () => {
  it.effect("runs compensations after a failure and after a cancellation", () =>
    Effect.gen(function*() {
      Undo.log.length = 0
      const { transport } = yield* run(Undo.Catering, inMemory)
      const client = yield* clientOf(transport())
      const failed = yield* until(yield* Effect.forkChild(client.callTool("cater", { drivers: 0 })))
      expect([failed.isError, textOf(failed)]).toEqual([true, "No driver is available"])
      expect(Undo.log.splice(0)).toEqual([
        "hired a van",
        "hired a tent",
        expect.stringMatching(/^released the tent .*: failed$/),
        expect.stringMatching(/^released the van .*: failed$/)
      ])
      const task = isTask(yield* client.startTask("cater", { drivers: 1 }))
      yield* settled
      expect(Undo.log.splice(0)).toEqual(["hired a van", "hired a tent"])
      yield* task.cancel
      yield* pass(1)
      expect(Undo.log).toMatchObject(
        [/^released the tent/, /^released the van/].map((line) => expect.stringMatching(line))
      )
      expect(Undo.log[0]).toMatch(/: cancelled$/)
    }))
})

describe("programs/tasksSteps.ts, query", () => {
  it.live("answers from the variables of the body", () =>
    Effect.gen(function*() {
      const { context, transport } = yield* run(Stepping, inMemory)
      const client = yield* clientOf(transport())
      const task = isTask(yield* client.startTask("import", { files: ["a.csv", "bb.csv"] }))
      yield* task.result
      const { query } = Context.get(context, TaskEngine)
      expect(yield* query(task.id, "progress")).toEqual({ rows: { "a.csv": 5, "bb.csv": 6 }, left: 0 })
    }))
})

describe("programs/tasksUndo.ts, sections and branches", () => {
  it.effect("ends a section of a cancelled task, and gives a branch back", () =>
    Effect.gen(function*() {
      Undo.log.length = 0
      const { transport } = yield* run(Undo.Catering, inMemory)
      const client = yield* clientOf(transport())
      const task = isTask(yield* client.startTask("relocate", {}))
      yield* settled
      expect(Undo.log.splice(0)).toEqual(["hired a van", "moved from the house to the van"])
      yield* task.cancel
      yield* pass(3)
      expect(Undo.log.splice(0)).toEqual([
        "moved from the van to the new house",
        expect.stringMatching(/^released the van .*: cancelled$/)
      ])
      const call = (drivers: number) =>
        Effect.flatMap(
          Effect.forkChild(client.callTool("party", { drivers })),
          (call) => Effect.map(until(call), textOf)
        )
      expect(yield* call(0)).toBe("In the garden")
      expect(Undo.log.splice(0)).toEqual([
        "hired a tent",
        "hired a van",
        expect.stringMatching(/^released the tent .*: cancelled$/)
      ])
      expect(yield* call(1)).toMatch(/^With the tent tent/)
    }))
})

describe("programs/tasksChildren.ts", () => {
  it.effect("runs a child for each shop, for a client and for own code", () =>
    Effect.gen(function*() {
      const { context, transport } = yield* run(Children.Server, inMemory)
      const client = yield* clientOf(transport())
      const called = yield* until(yield* Effect.forkChild(client.callTool("report", { shops: ["market"] })))
      expect(textOf(called)).toBe("1 of 1 shops sold 60 cakes")
      const night = yield* Effect.forkChild(Effect.provideContext(Children.night, context))
      expect(yield* until(night)).toBe("2 of 3 shops sold 120 cakes")
    }))
})

describe("programs/tasksUndo.ts, before", () => {
  it.effect("runs a compensation that was registered before an interrupted step", () =>
    Effect.gen(function*() {
      Undo.log.length = 0
      const { transport } = yield* run(Undo.Catering, inMemory)
      const task = isTask(yield* (yield* clientOf(transport())).startTask("pay"))
      yield* settled
      expect(Undo.log).toEqual(["charged 36"])
      yield* task.cancel
      yield* settled
      expect(Undo.log).toEqual(["charged 36", "refunded 36, if it was charged"])
    }))
})

describe("programs/tasksTerms.ts", () => {
  it.effect("makes a plain tool a task, and no small order", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Terms.Terms, inMemory)
      const client = yield* clientOf(transport())
      const counted = isTask(yield* client.startTask("count"))
      expect(textOf(yield* until(yield* Effect.forkChild(counted.result)))).toBe("12 sacks, 3 crates")
      expect((yield* until(yield* Effect.forkChild(client.startTask("bulk", { cakes: 3 }))))._tag).toBe("Finished")
    }))

  it.effect("shows the tasks of a shop only to its principals", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Terms.Terms, inMemory)
      const as = (id: string, shop: string) => clientOf(transport({ id, shop }), "2025-11-25")
      const ada = yield* as("ada", "north")
      const { handle } = isTask(yield* ada.startTask("count"))
      expect((yield* (yield* as("bob", "north")).listTasksPage()).tasks).toMatchObject([{ taskId: handle.taskId }])
      const eve = yield* as("eve", "south")
      expect((yield* eve.listTasksPage()).tasks).toEqual([])
      expect((yield* Effect.flip(eve.resumeTask(handle))).reason._tag).toBe("TaskNotFound")
    }))

  it.effect("reads the claims of the principal in the call", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Terms.Bakery, inMemory)
      const connect = (id: string) => user({ "Charge account 0815?": { sure: true } })(clientOf(transport({ id })))
      const task = isTask(yield* (yield* connect("ada")).startTask("order", { cakes: 2 }))
      expect(textOf(yield* until(yield* Effect.forkChild(task.result)))).toBe("2 cakes")
      const refused = yield* (yield* connect("eve")).startTask("order", { cakes: 2 })
      expect(refused._tag).toBe("Finished")
      expect(yield* refused.result).toMatchObject({ isError: true, content: [{ text: "You have no account with us" }] })
    }))

  it.effect("lets a model manage a task in a client without tasks", () =>
    Effect.gen(function*() {
      const { transport } = yield* run(Terms.Bakery, inMemory)
      const client = yield* clientOf(transport({ id: "ada" }), "2025-06-18")
      expect((yield* client.listTools()).map(({ name }) => name).toSorted())
        .toEqual(["order", "task_answer", "task_cancel", "task_list", "task_questions", "task_status"])
      const output = textOf(yield* until(yield* Effect.forkChild(client.callTool("order", { cakes: 2 }))))
      expect(output).toContain("The task needs answers")
      const [, taskId] = /Task ([\w-]{32}) /.exec(output) ?? []
      yield* client.callTool("task_answer", { taskId, content: { sure: true } })
      yield* settled
      const looked = client.callTool("task_status", { taskId })
      expect(textOf(yield* until(yield* Effect.forkChild(looked)))).toContain("2 cakes")
    }))
})

describe("programs/tasksSchedules.ts", () => {
  it.live("writes a report each night, and one for a shop when it likes", () =>
    Effect.scoped(Effect.gen(function*() {
      Schedules.written.length = 0
      const test = yield* TaskTest.make(Schedules.Office)
      yield* test.run(Schedules.subscribe("south", "0 7 * * *", "America/New_York"))
      yield* test.run(Effect.sleep("1 day"))
      expect(Schedules.written).toEqual(["north 1970-01-01T01:30:00.000Z", "south 1970-01-01T12:00:00.000Z"])
      expect(yield* test.run(Schedules.unsubscribe("south"))).toBe(true)
      yield* test.run(Effect.sleep("1 day"))
      expect(Schedules.written).toHaveLength(3)
    })))

  it.effect("tracks a parcel for weeks with a short log", () =>
    Effect.gen(function*() {
      const { context, transport } = yield* run(Schedules.Tracking, inMemory)
      const client = yield* clientOf(transport())
      const task = isTask(yield* client.startTask("track", { parcel: "0815", day: 1 }))
      yield* pass(20)
      const sql = Context.get(context, SqlClient.SqlClient)
      const [{ events } = { events: 0 }] = yield* sql<{ events: number }>`SELECT COUNT(*) AS events FROM skein_task_log`
      expect(events).toBeLessThan(1 + 24 * 3)
      expect(yield* sql`SELECT ttl FROM skein_tasks`).toEqual([{ ttl: 300 * 86_400_000 }])
      Schedules.arrives("0815")
      expect(textOf(yield* until(yield* Effect.forkChild(task.result)))).toMatch(/^Arrived on day [34]$/)
    }))
})

describe("programs/tasksVersions.ts", () => {
  it.effect("continues a task without a change that it began before", () =>
    Effect.gen(function*() {
      Versions.bought.length = 0
      const engine = SqliteTasks.layer({ filename: join(yield* folder, "tasks.db"), pollInterval: "10 minutes" })
      const may = yield* run(Versions.Before, engine)
      const old = isTask(yield* (yield* clientOf(may.transport())).startTask("bake"))
      yield* settled
      yield* until(yield* Effect.forkChild(may.close))
      const june = yield* run(Versions.After, engine)
      const client = yield* clientOf(june.transport())
      const resumed = yield* client.resumeTask(old.handle)
      const fresh = isTask(yield* client.startTask("bake"))
      expect(textOf(yield* until(yield* Effect.forkChild(resumed.result)))).toMatch(
        /^Baked: flour 32, unknown$/
      )
      expect(textOf(yield* until(yield* Effect.forkChild(fresh.result)))).toBe("Baked with butter: flour 32, 12")
      expect(Versions.bought).toEqual(["flour", "butter", "flour"])
    }))

  it.effect("checks new code against the tasks that exist", () =>
    Effect.gen(function*() {
      Versions.bought.length = 0
      const engine = SqliteTasks.layer({ filename: join(yield* folder, "tasks.db"), pollInterval: "10 minutes" })
      const may = yield* run(Versions.Before, engine)
      yield* (yield* clientOf(may.transport())).startTask("bake")
      yield* settled
      yield* until(yield* Effect.forkChild(may.close))
      const june = yield* run(Versions.After, engine)
      expect(yield* until(yield* Effect.forkChild(Effect.provideContext(Versions.checked, june.context)))).toEqual([])
      yield* until(yield* Effect.forkChild(june.close))
      const july = yield* run(Versions.Renamed, engine)
      expect(yield* until(yield* Effect.forkChild(Effect.provideContext(Versions.checked, july.context)))).toEqual([
        `bake: 1 skipped: step "flour"`
      ])
      expect(Versions.bought).toEqual(["flour"])
    }))
})

describe("programs/tasksMonitoring.ts", () => {
  it.effect("finds stalled tasks, cancels one, answers for a user, and counts", () =>
    Effect.gen(function*() {
      const { context, transport } = yield* run(Bakery, inMemory)
      const here = Effect.provideContext(context)
      const client = yield* Client.make(transport({ id: "ada" }), { tasks: { pollInterval: "1 hour" } })
      const task = isTask(yield* client.startTask("bake", { cakes: 1 }))
      expect(yield* here(Monitoring.stalled("ada"))).toEqual([])
      yield* pass(1.5, 0.5)
      expect(yield* here(Monitoring.stalled("ada"))).toMatchObject([{ id: task.id, statusMessage: "The dough rests" }])
      expect(yield* here(Monitoring.stalled(null))).toEqual([])
      expect(yield* here(Monitoring.counts)).toEqual([
        { tool: "bake", status: "working", count: 1, waiting: 0, since: 0 }
      ])
      expect(yield* here(Monitoring.answerFirst(task.id, true))).toBe(false)
      expect(yield* here(Monitoring.cancelTask(task.id))).toBe(true)
      expect(yield* here(Monitoring.counts)).toMatchObject([{ tool: "bake", status: "cancelled", count: 1 }])
    }))
})

describe("tasks-machines.md", () => {
  const page = read("tasks-machines.md")

  it.effect("lists the tables of the engine", () =>
    Effect.gen(function*() {
      const { context } = yield* run(Bakery, inMemory)
      const sql = Context.get(context, SqlClient.SqlClient)
      const tables = yield* sql<{ readonly name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`
      const listed = Array.from(page.matchAll(/`(skein_task\w+)`/g), ([, name]) => name)
      expect(listed.toSorted()).toEqual(tables.map(({ name }) => name).toSorted())
    }))

  it("lists log messages that the engine writes", () => {
    const files = globSync(join(docs, "../packages/tasks/src/**/*.ts"))
    const source = files.map((file) => readFileSync(file, "utf8")).join("\n").replaceAll("${longLog}", "10000")
    const listed = Array.from(
      page.slice(page.indexOf("### Logs and alerts")).matchAll(/^- "([^"]+)"/gm),
      ([, message = ""]) => message
    )
    expect(listed.length).toBeGreaterThan(5)
    expect(listed.filter((message) => !source.includes(message))).toEqual([])
  })
})
