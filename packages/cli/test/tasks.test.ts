/** `skein tasks` on the store of a server that runs. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { ask, durable, ended, submit, until, work } from "../../tasks/test/engine/kit.ts"
import { Process } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { skeinArguments, skeinCommand } from "../src/internal/commands/skeinCommand.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-cli-tasks-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Runs a command line. */
const skein = (env: Record<string, string>, ...argv: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    let [out, err] = ["", ""]
    const console = {
      print: (text: string) => Effect.sync(() => void (out += `${text}\n`)),
      warn: (text: string) => void (err += `${text}\n`)
    }
    const code = yield* Effect.provideService(runCommand(skeinCommand, skeinArguments(argv)), Process, {
      env,
      console,
      terminal: undefined
    })
    return { code, out, err }
  })

/** A server with tasks in a file, and `skein tasks` on that file. */
const start = (
  layer: (filename: string) => ReturnType<typeof SqliteTasks.layer> = (filename) =>
    SqliteTasks.layer({ filename, pollInterval: "50 millis" })
) =>
  Effect.gen(function*() {
    const filename = join(yield* folder, "tasks.db")
    const context = yield* Layer.build(layer(filename))
    const inServer = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideContext(effect, context)
    yield* inServer(work({
      bake: durable(({ cakes, end }) =>
        Effect.gen(function*() {
          yield* Step.run("flour\u001b[2J", {}, () => Effect.void)
          if (end === "ask") {
            const { action } = yield* Effect.orDie(ask("More?"))
            if (action === "decline") return yield* Effect.fail({ message: "No more" })
          }
          if (end === "die") return yield* Effect.die("no oven")
          if (end === "fail") return yield* Effect.fail({ message: "The cake is burnt" })
          return `${String(cakes)} cakes`
        })
      )
    }))
    const tasks = (...argv: ReadonlyArray<string>) => skein({ SKEIN_TASKS: filename }, "tasks", ...argv)
    return { filename, inServer, tasks, engine: Context.get(context, TaskEngine) }
  })

/** The output of a command that succeeds. */
const output = <E>(run: Effect.Effect<{ code: number; out: string; err: string }, E>) =>
  Effect.map(run, ({ code, err, out }) => {
    assert.deepStrictEqual([code, err], [0, ""])
    return out.trimEnd()
  })

const json = <E>(run: Effect.Effect<{ code: number; out: string; err: string }, E>) =>
  Effect.map(output(run), (out): unknown => JSON.parse(out))

describe("skein tasks", () => {
  it.live("lists tasks, and shows one with its log, without what callers have sent", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      expect(yield* output(tasks("list"))).toBe("There are no such tasks.")
      const { id } = yield* inServer(submit("bake", { args: { cakes: 7 } }))
      yield* inServer(ended(id))
      const asking = yield* inServer(submit("bake", { args: { end: "ask" } }))
      yield* inServer(until(asking.id, ({ status }) => status === "input_required"))

      const [head, ...lines] = (yield* output(tasks("list"))).split("\n")
      expect(head).toMatch(/^ID {32}TOOL {2}STATUS {10}AGE {2}WHERE/)
      expect(lines).toHaveLength(2)
      expect(lines[0]).toMatch(
        new RegExp(`^${asking.id} +bake +input_required +\\d+s +(waits for an answer|runs on \\w+)$`)
      )
      expect(lines[1]).toMatch(new RegExp(`^${id} +bake +completed +\\d+s$`))
      expect(yield* output(tasks("list", "--status", "completed", "--tool", "bake", "--limit", "1"))).toContain(id)
      expect(yield* json(tasks("list", "--json", "--status", "completed"))).toMatchObject([
        { id, tool: "bake", status: "completed", place: { _tag: "Settled" }, events: 1 }
      ])

      const shown = yield* output(tasks("show", asking.id))
      expect(shown).toContain(`task ${asking.id}\n  tool     bake\n  status   input_required\n`)
      expect(shown).toContain("open questions:\n")
      expect(shown).toMatch(/1 {4}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}step +\d+ ms +flour\\u\{1b\}\[2J/)
      expect(shown).not.toContain("More?")
      expect(yield* output(tasks("show", "--values", asking.id))).toContain("More?")
      expect(JSON.stringify(yield* json(tasks("show", "--json", id)))).not.toContain("7 cakes")
      expect(yield* tasks("show", "nothing")).toMatchObject({ code: 1, err: "skein: there is no task nothing\n" })
    }).pipe(Effect.scoped))

  it.live("cancels, wakes and runs tasks again in the server", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      const { id } = yield* inServer(submit("bake", { args: { end: "ask" } }))
      yield* inServer(until(id, ({ status }) => status === "input_required"))
      yield* Effect.repeat(tasks("show", id), { until: ({ out }) => out.includes("waits for an answer") })
      expect(yield* output(tasks("wake", id))).toBe("A worker checks the task.")
      expect(yield* output(tasks("cancel", id, "--message", "closed today"))).toContain("The task is cancelled")
      expect(yield* inServer(ended(id))).toMatchObject({ status: "cancelled", statusMessage: "closed today" })
      expect(yield* tasks("cancel", id)).toMatchObject({ code: 1, err: "skein: the task has ended already\n" })
      expect(yield* tasks("wake", id)).toMatchObject({ code: 1, err: "skein: the task does not wait\n" })
      expect(yield* tasks("cancel", "x")).toMatchObject({ code: 1, err: "skein: there is no task x\n" })

      const done = yield* inServer(submit("bake", { args: { cakes: 2 } }))
      yield* inServer(ended(done.id))
      const again = (yield* json(tasks("rerun", done.id, "--json"))) as { readonly id: string }
      expect(yield* inServer(ended(again.id))).toMatchObject({ status: "completed" })
      expect(yield* tasks("rerun", done.id, "--from", "sugar")).toMatchObject({
        code: 1,
        err: "skein: the task has no step sugar\n"
      })
    }).pipe(Effect.scoped))

  it.live("pauses and resumes a tool, and shows that and the queue", () =>
    Effect.gen(function*() {
      const { engine, inServer, tasks } = yield* start()
      yield* engine.pace(new Map([["fry", { concurrency: 2, rate: { limit: 5, periodMs: 60_000 } }]]))
      expect(yield* output(tasks("pause", "bake"))).toBe("bake is paused.")
      expect(yield* tasks("pause", "bake")).toMatchObject({ code: 1, err: "skein: bake is paused already\n" })
      const { id } = yield* inServer(submit("bake"))
      expect(yield* output(tasks("list"))).toContain("held: its tool is paused")
      const numbers = yield* output(tasks("stats"))
      expect(numbers).toMatch(/TOOL {2}STATUS {3}TASKS\nbake {2}working {2}1\n/)
      expect(numbers).toMatch(/default {2}bake {2}ready {2}1 +\ds/)
      expect(numbers).toMatch(/bake {2}since \d{4}-.* 0\nfry +2 +5 in 1m00s +0/)
      expect(yield* json(tasks("stats", "--json"))).toMatchObject({ tools: [{ tool: "bake" }, { tool: "fry" }] })
      expect(yield* output(tasks("resume", "bake"))).toBe("bake runs again.")
      expect(yield* tasks("resume", "bake")).toMatchObject({ code: 1, err: "skein: bake is not paused\n" })
      yield* inServer(ended(id))
      expect(yield* output(tasks("workers"))).toContain("There are no workers")
    }).pipe(Effect.scoped))

  it.live("lists schedules, starts a task of one, pauses, resumes and removes it", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      expect(yield* output(tasks("schedules"))).toBe("There are no schedules.")
      const definition = { cron: "0 2 1 1 *", timeZone: "Europe/Berlin", task: { tool: "bake", args: { cakes: 3 } } }
      yield* inServer(Effect.flatMap(TaskSchedules, ({ set }) => set("new\u001b[2J year", definition)))
      const name = "new\u001b[2J year"
      const { task } = (yield* json(tasks("trigger", "--json", name))) as { readonly task: string }
      expect(yield* inServer(ended(task))).toMatchObject({ status: "completed" })
      const [head, row] = (yield* output(tasks("schedules"))).split("\n")
      expect(head).toMatch(/^SCHEDULE +TOOL +TIMES +ZONE +NEXT +LAST +LAST TASK$/)
      expect(row).toMatch(
        new RegExp(`^new\\\\u\\{1b\\}\\[2J year +bake +0 2 1 1 \\* +Europe/Berlin +in \\S+ +\\ds ago +${task}$`)
      )
      expect(yield* json(tasks("schedules", "--json"))).toMatchObject([{ name, tool: "bake", lastTask: task }])
      expect(yield* output(tasks("pause-schedule", name))).toContain("is paused.")
      expect((yield* tasks("pause-schedule", name)).err).toContain("is paused already")
      expect(yield* output(tasks("schedules"))).toContain("  paused  ")
      expect(yield* output(tasks("resume-schedule", name))).toContain("goes on.")
      expect(yield* output(tasks("remove-schedule", name))).toContain("is removed.")
      for (const command of ["trigger", "pause-schedule", "resume-schedule", "remove-schedule"]) {
        expect(yield* tasks(command, "x")).toMatchObject({ code: 1, err: "skein: there is no schedule x\n" })
      }
    }).pipe(Effect.scoped))

  it.live("lists the tasks that have failed", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      const ids: Array<string> = []
      for (const end of ["die", "fail", "well"]) {
        const { id } = yield* inServer(submit("bake", { args: { end } }))
        ids.unshift(id)
        yield* inServer(ended(id))
      }
      // A person who declines makes a task an error of its caller, and not a failure.
      const { id: asking } = yield* inServer(submit("bake", { args: { end: "ask" } }))
      const { questions } = yield* inServer(until(asking, ({ questions }) => questions.length === 1))
      yield* inServer(
        Effect.flatMap(TaskEngine, (engine) => engine.answer(asking, questions[0]!.key, { action: "decline" }))
      )
      yield* inServer(ended(asking))
      expect(yield* output(tasks("list"))).toMatch(new RegExp(`${asking} +bake +completed \\(error\\) .*No more`))
      const lines = (yield* output(tasks("failed"))).split("\n")
      expect(lines).toHaveLength(3)
      expect(lines[1]).toMatch(new RegExp(`^${ids[1]} +bake +completed \\(error\\) .*The cake is burnt$`))
      expect(lines[2]).toMatch(new RegExp(`^${ids[2]} +bake +failed .*Internal error`))
    }).pipe(Effect.scoped))

  it.live("copies the file of a running server, and no PostgreSQL database", () =>
    Effect.gen(function*() {
      const { filename, inServer, tasks } = yield* start()
      const { id } = yield* inServer(submit("bake"))
      yield* inServer(ended(id))
      const to = `${filename}-copy`
      expect(yield* json(tasks("backup", "--json", to))).toEqual({ from: filename, to })
      expect(yield* output(tasks("list", "--sqlite", to))).toContain(id)
      expect(yield* tasks("backup", to)).toMatchObject({
        code: 3,
        err: `skein: "${to}" cannot be created: it exists already\n`
      })
      expect((yield* tasks("backup", "/nowhere/copy.db")).err).toContain("cannot be created: ENOENT")
      expect((yield* skein({}, "tasks", "backup", "--sqlite", "/nowhere/tasks.db", to)).err).toContain("no such file")
      expect(yield* skein({ SKEIN_TASKS: "postgres://127.0.0.1/x" }, "tasks", "backup", to)).toMatchObject({
        code: 2,
        err: "skein: a PostgreSQL database is copied with pg_dump, and not with this command\n"
      })
      expect(readdirSync(dirname(filename)).filter((name) => name.endsWith("-partial"))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("decrypts values with the keys of the environment only", () =>
    Effect.gen(function*() {
      const key = "k".repeat(32)
      const { filename, inServer } = yield* start((filename) =>
        SqliteTasks.layer({ filename }).pipe(Layer.provide(Encryption.layer({ keys: [key] })))
      )
      const { id } = yield* inServer(submit("bake", { args: { end: "ask" } }))
      yield* inServer(until(id, ({ status }) => status === "input_required"))
      const withKey = (env: Record<string, string>) =>
        skein({ SKEIN_TASKS: filename, ...env }, "tasks", "show", "--values", id)
      expect(yield* output(withKey({ SKEIN_TASK_KEYS: key }))).toContain("More?")
      expect(yield* withKey({})).toMatchObject({ code: 3 })
      expect(yield* withKey({ SKEIN_TASK_KEYS: "short" })).toMatchObject({
        code: 3,
        err: "skein: key 1 for the encryption of tasks has less than 32 bytes\n"
      })
    }).pipe(Effect.scoped))

  it.live("reports a store that cannot be used, and a wrong command line", () =>
    Effect.gen(function*() {
      expect(yield* skein({}, "tasks", "list")).toMatchObject({
        code: 2,
        err: "skein: no store is given: use --sqlite <file>, --postgres <url>, or SKEIN_TASKS\n"
      })
      expect(yield* skein({}, "tasks", "list", "--sqlite", "/nowhere/tasks.db")).toMatchObject({
        code: 3,
        err: `skein: cannot open "/nowhere/tasks.db": there is no such file\n`
      })
      const refused = yield* skein({ SKEIN_TASKS: "postgres://u:secret@127.0.0.1:1/x" }, "tasks", "stats")
      expect(refused.code).toBe(3)
      expect(refused.err).not.toContain("secret")
      for (
        const [wrong, ...argv] of [
          ["--sqlite and --postgres exclude each other", "list", "--sqlite", "a", "--postgres", "b"],
          [
            "--status must be one of working, input_required, completed, failed, cancelled: \"done\"",
            "list",
            "--status",
            "done"
          ],
          ["--limit must be a whole number from 1 to 1000: \"1001\"", "list", "--limit", "1001"],
          ["<id> is required", "show"],
          ["Unknown command shw; did you mean show?", "shw"]
        ] as const
      ) {
        const { code, err } = yield* skein({ SKEIN_TASKS: "x" }, "tasks", ...argv)
        expect([code, err.split("\n\n")[0]]).toEqual([2, `skein: ${wrong}`])
      }
    }))
})
