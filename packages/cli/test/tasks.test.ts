/** `skein tasks` on the store of a server that runs. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { hostname, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
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
          if (end === "event") yield* Task.awaitEvent("paid\u001b[2J", { timeout: "2 days" })
          if (end === "undo") {
            yield* Step.compensate(() => Effect.die("no bank"))
            return yield* Effect.fail({ message: "Not paid" })
          }
          if (end === "die") return yield* Effect.die("no oven")
          if (end === "emit") {
            yield* Effect.orDie(Effect.forEach(["flour", { cakes: 2 }, "\u001b[2J"], Task.emit))
            yield* Effect.orDie(ask("More?"))
            yield* Effect.orDie(Task.emit("done"))
          }
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
      expect(head).toMatch(/^ID {32}TOOL {2}STATUS {10}CREATED \(UTC\) +AGE +WHERE +MESSAGE$/)
      const time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d"
      expect(lines).toHaveLength(2)
      expect(lines[0]).toMatch(
        new RegExp(`^${asking.id} +bake +input_required +${time} +\\d+s +(waits for an answer|runs on \\w+)$`)
      )
      expect(lines[1]).toMatch(new RegExp(`^${id} +bake +completed +${time} +\\d+s +ended ${time}$`))
      expect(yield* output(tasks("list", "--status", "completed", "--tool", "bake", "--limit", "1"))).toContain(id)
      expect(yield* json(tasks("list", "--json", "--status", "completed"))).toMatchObject([
        { id, tool: "bake", status: "completed", place: { _tag: "Settled" }, events: 1 }
      ])

      const shown = yield* output(tasks("show", asking.id))
      expect(shown).toContain(`task ${asking.id}\n  tool     bake\n  status   input_required\n`)
      expect(shown).toContain("open questions:\n")
      expect(shown).toMatch(/1 {4}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}step +\d+ ms +flour\\u\{1b\}\[2J/)
      expect(shown).not.toContain("More?")
      const whole = yield* output(tasks("show", "--values", asking.id))
      expect(whole).toContain("More?")
      expect(whole).toContain("arguments:\n  {\"end\":\"ask\"}\n")
      const done = yield* output(tasks("show", "--values", id))
      expect(done).toContain("arguments:\n  {\"cakes\":7}\n")
      expect(done).toMatch(/result:\n {2}.*7 cakes/)
      expect(yield* json(tasks("show", "--values", "--json", id))).toMatchObject({
        args: { cakes: 7 },
        outcome: { _tag: "Result" }
      })
      expect(JSON.stringify(yield* json(tasks("show", "--json", id)))).not.toContain("7 cakes")
      expect(yield* tasks("show", "nothing")).toMatchObject({ code: 1, err: "skein: there is no task nothing\n" })
    }).pipe(Effect.scoped))

  it.live("lists tasks page by page, and those of a time", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      for (let count = 0; count < 5; count++) yield* inServer(ended((yield* inServer(submit("bake"))).id))
      const whole = (yield* json(tasks("list", "--json"))) as ReadonlyArray<
        { readonly id: string; readonly cursor: string }
      >
      expect(whole).toHaveLength(5)
      const first = yield* output(tasks("list", "--limit", "2"))
      expect(first.split("\n").at(-1)).toBe(
        `There are more: add --cursor ${whole[1]!.cursor}, or a larger --limit`
      )
      const rest = yield* output(tasks("list", "--limit", "3", "--cursor", whole[1]!.cursor))
      expect(rest.split("\n").slice(1).map((line) => line.split(" ")[0])).toEqual(whole.slice(2).map(({ id }) => id))
      expect(yield* json(tasks("list", "--json", "--after", "1h"))).toHaveLength(5)
      const labelled = yield* inServer(submit("bake", { labels: { order: "4=2" } }))
      yield* inServer(ended(labelled.id))
      expect(yield* json(tasks("list", "--json", "--label", "order=4=2"))).toMatchObject([{ id: labelled.id }])
      expect(yield* output(tasks("show", labelled.id))).toMatch(/^ {2}labels +order=4=2$/m)
      expect(yield* json(tasks("list", "--json", "--ended-before", "1h"))).toEqual([])
      expect(yield* json(tasks("list", "--json", "--before", "2026-01-31T12:00+01:00"))).toEqual([])
      expect(yield* json(tasks("failed", "--json", "--tool", "bake", "--ended-after", "1h"))).toEqual([])
      for (
        const [problem, ...argv] of [
          [
            "--after must be a date such as 2026-02-28 or 2026-02-28T09:30Z, or an age such as 90m, 12h or 7d: \"yesterday\"",
            "--after",
            "yesterday"
          ],
          ["--label must be a name and a value, such as order=42: \"order\"", "--label", "order"],
          ["--cursor must be one that the command has printed: \"2\"", "--cursor", "2"]
        ] as const
      ) {
        const { code, err } = yield* tasks("list", ...argv)
        expect([code, err.split("\n\n")[0]]).toEqual([2, `skein: ${problem}`])
      }
    }).pipe(Effect.scoped))

  it.live("shows the event that a task waits for, and those that it has not received", () =>
    Effect.gen(function*() {
      const { engine, inServer, tasks } = yield* start()
      const { id } = yield* inServer(submit("bake", { args: { end: "event" } }))
      const shown = yield* Effect.repeat(tasks("show", id), { until: ({ out }) => out.includes("waits for") })
      expect(shown.out).toMatch(/where +waits for the event paid\S*, at most \d+/)
      expect(shown.out).not.toContain("\u001b")
      yield* engine.send(id, "other", 1)
      const { out } = yield* tasks("show", id)
      expect(out).toMatch(/events that it has not received:\n {2}other {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
      yield* engine.send(id, "paid\u001b[2J", { reference: "4711" })
      yield* inServer(ended(id))
      expect((yield* tasks("show", id, "--values")).out).toContain("{\"reference\":\"4711\"}")
    }).pipe(Effect.scoped))

  it.live("prints what a task has emitted, from an offset and until its end", () =>
    Effect.gen(function*() {
      const { engine, inServer, tasks } = yield* start()
      const { id } = yield* inServer(submit("bake", { args: { end: "emit" } }))
      const { questions: [question] } = yield* inServer(until(id, ({ status }) => status === "input_required"))
      expect(yield* output(tasks("show", "--output", id))).toBe("flour\n{\"cakes\":2}\n\u001b[2J")
      expect(
        yield* json(
          tasks("show", "--output", "--from", "1", "--json", id).pipe(
            Effect.map((run) => ({ ...run, out: run.out.split("\n")[0]! }))
          )
        )
      ).toMatchObject({ offset: 1, value: { cakes: 2 } })
      const following = yield* Effect.forkChild(output(tasks("show", "--follow", "--from", "2", id)))
      yield* engine.answer(id, question!.key, { action: "accept" })
      expect(yield* Fiber.join(following)).toBe("\u001b[2J\ndone")
      expect(yield* tasks("show", "--output", "x")).toMatchObject({ code: 1, err: "skein: there is no task x\n" })
      expect((yield* tasks("show", "--output", "--from", "-1", id)).code).toBe(2)
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
      yield* Effect.repeat(tasks("show", id), { until: ({ out }) => !out.includes("where") })
      expect(yield* tasks("wake", id)).toMatchObject({ code: 1, err: "skein: the task has ended already\n" })
      for (const command of ["wake", "rerun"]) {
        expect(yield* tasks(command, "x")).toMatchObject({ code: 1, err: "skein: there is no task x\n" })
      }
      expect(yield* tasks("cancel", "x")).toMatchObject({ code: 1, err: "skein: there is no task x\n" })

      const open = yield* inServer(submit("bake", { args: { end: "ask" } }))
      yield* inServer(until(open.id, ({ status }) => status === "input_required"))
      expect(yield* tasks("rerun", open.id)).toMatchObject({
        code: 1,
        err: "skein: the task has not ended, its status is input_required: cancel it, or wait for its end\n"
      })
      const done = yield* inServer(submit("bake", { args: { cakes: 2 } }))
      yield* inServer(ended(done.id))
      const again = (yield* json(tasks("rerun", done.id, "--json"))) as { readonly id: string }
      expect(yield* inServer(ended(again.id))).toMatchObject({ status: "completed" })
      expect(yield* tasks("rerun", done.id, "--from", "sugar")).toMatchObject({
        code: 1,
        err: "skein: the task has no step sugar\n"
      })
    }).pipe(Effect.scoped))

  it.live("changes the tasks that options select, with --yes, and counts them without", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      const asking: Array<string> = []
      for (let count = 0; count < 3; count++) {
        asking.push((yield* inServer(submit("bake", { args: { end: "ask" } }))).id)
      }
      for (const id of asking) yield* inServer(until(id, ({ status }) => status === "input_required"))
      expect(yield* output(tasks("cancel", "--tool", "bake"))).toBe(
        "TOOL  STATUS          TASKS\nbake  input_required  3\n\nWith --yes, 3 tasks would be cancelled; their compensations run."
      )
      expect(yield* json(tasks("cancel", "--tool", "bake", "--json"))).toEqual({
        dryRun: true,
        tasks: [{ tool: "bake", status: "input_required", count: 3 }]
      })
      expect(yield* output(tasks("cancel", "--tool", "bake", "--yes", "--message", "closed today"))).toBe(
        "3 tasks are cancelled; their compensations run."
      )
      for (const id of asking) expect(yield* inServer(ended(id))).toMatchObject({ statusMessage: "closed today" })
      expect(yield* tasks("cancel", "--tool", "bake", "--yes")).toMatchObject({
        code: 1,
        err: "skein: there are no such tasks\n"
      })
      expect(yield* output(tasks("show", asking[0]!))).toMatch(
        new RegExp(`operators:\n {2}\\d{4}-\\S+ \\S+ {2}cancelled, by \\S+@${hostname()}`)
      )

      const failing = yield* inServer(submit("bake", { args: { end: "fail" } }))
      yield* inServer(ended(failing.id))
      expect(yield* json(tasks("rerun", "--failed", "--yes", "--json"))).toEqual({ changed: 1, skipped: [] })
      const [{ detail }] = ((yield* json(tasks("show", "--json", failing.id))) as {
        readonly actions: ReadonlyArray<{ readonly detail: string }>
      }).actions as [{ readonly detail: string }]
      yield* inServer(ended(detail))
      expect(yield* output(tasks("rerun", "--failed", "--before", "0s", "--yes"))).toBe(
        `1 task is run again. 1 task skipped:\n  ${failing.id}  it was run again before`
      )
      yield* Effect.repeat(tasks("list", "--json", "--status", "working"), { until: ({ out }) => out.trim() === "[]" })
      for (const id of asking) {
        yield* Effect.repeat(tasks("show", id), { until: ({ out }) => !out.includes("where") })
      }
      expect(yield* output(tasks("delete", asking[0]!))).toBe("1 task is deleted.")
      expect(yield* output(tasks("delete", "--status", "cancelled", "--yes"))).toBe("2 tasks are deleted.")
      expect(yield* json(tasks("list", "--json"))).toHaveLength(3)
      expect(yield* tasks("delete", asking[0]!)).toMatchObject({ code: 1, err: "skein: there are no such tasks\n" })

      yield* output(tasks("pause", "bake"))
      const { id } = yield* inServer(submit("bake"))
      expect(yield* output(tasks("priority", id, "--to", "-5"))).toBe("1 task is given the priority -5.")
      expect(yield* output(tasks("move", id, "--to", "night"))).toBe("1 task is moved to the pool night.")
      expect(yield* output(tasks("move", id))).toBe("1 task is moved to the pool default.")
      for (
        const [problem, ...argv] of [
          ["<id> is required, or options that select tasks, such as --tool", "wake", "--yes"],
          ["<id> is required", "cancel", "--yes"],
          ["The id of a task, and options that select tasks, exclude each other", "wake", id, "--all"],
          ["The id of a task, and options that select tasks, exclude each other", "cancel", id, "--all"],
          ["--to must be a whole number from -1000000 to 1000000: \"high\"", "priority", id, "--to", "high"]
        ] as const
      ) {
        const { code, err } = yield* tasks(...argv)
        expect([code, err.split("\n\n")[0]]).toEqual([2, `skein: ${problem}`])
      }
    }).pipe(Effect.scoped))

  it.live("pauses and resumes a tool, and shows that and the queue", () =>
    Effect.gen(function*() {
      const { engine, inServer, tasks } = yield* start()
      yield* engine.pace(new Map([["fry", { concurrency: 2, rate: { limit: 5, periodMs: 60_000 } }]]))
      expect(yield* tasks("pause", "bake")).toMatchObject({
        code: 1,
        err:
          "skein: the store has no task, limit or schedule of the tool \"bake\": check its name, or use --new to pause " +
          "it before its first task\n"
      })
      expect(yield* output(tasks("pause", "bake", "--new"))).toBe("bake is paused.")
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

  it.live("waits for a transaction of the server that lasts for longer than a second", () =>
    Effect.gen(function*() {
      const { filename, tasks } = yield* start()
      const other = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(filename)),
        (other) => Effect.sync(() => other.close())
      )
      other.exec("BEGIN IMMEDIATE")
      const paused = yield* Effect.forkChild(output(tasks("pause", "bake", "--new")))
      yield* Effect.sleep("1500 millis")
      expect(paused.pollUnsafe()).toBeUndefined()
      other.exec("COMMIT")
      expect(yield* Fiber.join(paused)).toBe("bake is paused.")
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
      const span = ["--from", "2022-01-01", "--to", "2024-01-02"]
      expect(yield* output(tasks("backfill", name, ...span, "--dry-run"))).toMatch(/would start.*\n.*would start/)
      expect(yield* output(tasks("backfill", name, ...span))).toContain("\n\n3 of 3 times have started a task.")
      expect(yield* output(tasks("backfill", name, ...span))).toContain("\n\n0 of 3 times have started a task.")
      expect((yield* tasks("backfill", name)).err).toContain("--from is required")
      expect((yield* tasks("backfill", "x", ...span)).code).toBe(1)
      expect(yield* output(tasks("pause-schedule", name))).toContain("is paused.")
      expect((yield* tasks("pause-schedule", name)).err).toContain("is paused already")
      expect(yield* output(tasks("schedules"))).toContain("  paused  ")
      expect(yield* output(tasks("resume-schedule", name))).toContain("goes on.")
      expect(yield* output(tasks("remove-schedule", name))).toContain("is removed.")
      for (const command of ["trigger", "pause-schedule", "resume-schedule", "remove-schedule"]) {
        expect(yield* tasks(command, "x")).toMatchObject({ code: 1, err: "skein: there is no schedule x\n" })
      }
    }).pipe(Effect.scoped))

  it.live("shows a task that waits for other code, and lets it end as it is", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      const tasks = (...argv: ReadonlyArray<string>) => skein({ SKEIN_TASKS: filename }, "tasks", ...argv)
      const deploy = <A, E>(steps: ReadonlyArray<string>, use: Effect.Effect<A, E, TaskEngine>) =>
        Effect.andThen(
          work({
            bake: durable(() =>
              Effect.gen(function*() {
                for (const name of steps) yield* Step.run(name, { success: Schema.String }, () => Effect.succeed(name))
                yield* Step.sleep("rest", "1 hour")
                return "done"
              })
            )
          }),
          use
        ).pipe(Effect.scoped, Effect.provide(SqliteTasks.layer({ filename, pollInterval: "50 millis" })))
      const has = (text: string, ...argv: ReadonlyArray<string>): Effect.Effect<string, unknown> =>
        Effect.flatMap(output(tasks(...argv)), (out) =>
          out.includes(text) ? Effect.succeed(out) : Effect.andThen(Effect.sleep(20), has(text, ...argv)))
      const { id } = yield* deploy(["flour", "bake"], Effect.tap(submit("bake"), has("waits, at most", "list")))
      yield* deploy(
        ["sieve", "flour", "bake"],
        Effect.gen(function*() {
          yield* output(tasks("cancel", id))
          yield* has("needs attention", "failed")
          expect(yield* has("attention", "show", id)).toContain(
            "it waits for other code, because its code has changed: it does not reach what is recorded as done " +
              "(step \"flour\", step \"bake\"), and stops at step \"sieve\", which has not begun; it compensates with code " +
              "that reaches it, or without that after \"skein tasks settle\"; the compensations of these steps have not run: " +
              "flour, bake"
          )
          yield* has("stopped", "show", id)
          expect(yield* output(tasks("settle", id))).toBe(
            "The task ends as it is. Compensations that the code does not reach never run."
          )
          yield* has("There are no such tasks.", "failed")
          expect(yield* output(tasks("show", id))).toContain("settled by an operator")
          expect(yield* tasks("settle", id)).toMatchObject({
            code: 1,
            err: expect.stringContaining("the task does not need attention")
          })
        })
      )
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
      const [, reference = ""] = /^\S+ +bake +failed .*Internal error, reference ([\da-f-]{36})$/.exec(lines[2]!) ?? []
      expect(lines[2]).toContain(ids[2])
      expect(reference).not.toBe("")
      expect(yield* output(tasks("show", ids[2]!))).toContain(`Internal error, reference ${reference}`)
      expect(yield* output(tasks("show", "--values", ids[2]!))).toMatch(new RegExp(`error:\n {2}.*${reference}`))
      expect(JSON.stringify(yield* json(tasks("failed", "--json")))).toContain(reference)
    }).pipe(Effect.scoped))

  it.live("lists the tasks with a compensation that has failed", () =>
    Effect.gen(function*() {
      const { inServer, tasks } = yield* start()
      expect(yield* output(tasks("failed", "--compensations"))).toBe("There are no such tasks.")
      for (const end of ["fail", "undo"]) {
        const { id } = yield* inServer(submit("bake", { args: { end } }))
        yield* inServer(ended(id))
      }
      const lines = (yield* output(tasks("failed", "--compensations"))).split("\n")
      expect(lines).toHaveLength(2)
      expect(lines[1]).toContain("Not paid")
      const shown = yield* output(tasks("show", lines[1]!.split(" ")[0]!))
      expect(shown).toMatch(/failed compensations:\n {2}\d{4}-\S+ \S+ {2}number 1: no bank$/m)
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

  it.live("exports a task, and imports it into another file", () =>
    Effect.gen(function*() {
      const { filename, inServer, tasks } = yield* start()
      const { id } = yield* inServer(submit("bake", { args: { cakes: 7, end: "ask" } }))
      yield* inServer(until(id, ({ status }) => status === "input_required"))
      const whole = yield* output(tasks("export", id, "--values"))
      expect(JSON.parse(whole)).toMatchObject({ format: "skein-task", version: 1, redacted: false, task: { id } })
      expect(whole).toContain("More?")
      expect(yield* output(tasks("export", id, "--redact"))).not.toMatch(/More\?|"ask"|: 7,/)
      const file = `${filename}.json`
      writeFileSync(file, whole)
      const other = yield* start()
      expect(yield* json(other.tasks("import", file, "--json"))).toEqual({ id, started: false })
      expect(yield* json(other.tasks("show", id, "--json"))).toMatchObject({
        status: "cancelled",
        place: { _tag: "Settled" },
        actions: [{ action: "import", detail: id, by: expect.stringContaining("@") }]
      })
      expect(yield* output(other.tasks("show", id))).toMatch(new RegExp(`  imported from ${id}, by `))
      const again = yield* output(other.tasks("import", file, "--start"))
      expect(again).toMatch(/^The task is [\w-]{32}\. It goes on\.$/)
      expect(again).not.toContain(id)

      const needed = "skein: --values or --redact is required, and not both"
      for (const flags of [[], ["--values", "--redact"]]) {
        const { code, err } = yield* tasks("export", id, ...flags)
        expect([code, err.split("\n\n")[0]]).toEqual([2, needed])
      }
      expect(yield* tasks("export", "none", "--values")).toMatchObject({ code: 1 })
      expect(yield* tasks("import", `${filename}-none`)).toMatchObject({ code: 2 })
      expect(yield* tasks("import", filename)).toMatchObject({
        code: 2,
        err: expect.stringContaining("not a JSON file")
      })
      writeFileSync(file, JSON.stringify({ ...JSON.parse(whole), version: 2 }))
      expect(yield* tasks("import", file)).toMatchObject({
        code: 2,
        err: expect.stringContaining("not an exported task of version 1")
      })
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
