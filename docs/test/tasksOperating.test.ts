/** The commands of `tasks-operating.md`, on a file and on PostgreSQL. */
import { describe, expect, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { execFile } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { promisify } from "node:util"
import { ask, durable, ended, submit, textOf, until, work } from "../../packages/tasks/test/engine/kit.ts"
import { installedBin, type Postgres, required, startPostgres } from "../../packages/sql/test/postgres.ts"
import { failures } from "../programs/tasksOperating.ts"
import { blocksOf } from "./blocks.ts"

/** The shell block of the guide that begins with a command. */
const commandsOf = (command: string): string =>
  blocksOf("tasks-operating.md").find(({ info, text }) => info === "sh" && text.startsWith(command))!.text

/** A folder with the program `skein`, as npm would install it. */
const place = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "skein-operating-"))
    const program = join(import.meta.dirname, "../../packages/cli/src/bin/skein.ts")
    writeFileSync(
      join(folder, "skein"),
      `#!/bin/sh\nexec "${process.execPath}" --conditions=@skein/source "${program}" "$@"\n`
    )
    chmodSync(join(folder, "skein"), 0o755)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Runs the commands of a block in a folder, as a shell does. Returns what they print. */
const shell = (cwd: string, commands: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const PATH = [cwd, installedBin, process.env["PATH"]].filter((part) => part !== undefined).join(delimiter)
    const { stdout } = await promisify(execFile)("/bin/sh", ["-ec", commands], {
      cwd,
      env: { ...process.env, ...env, PATH }
    })
    return stdout
  })

interface Store {
  /** The engine on the store. */
  readonly engine: Layer.Layer<TaskEngine | TaskAdmin | SqlClient, unknown>
  readonly backup: Effect.Effect<unknown>
  readonly restore: Effect.Effect<unknown>
}

/** Backs up a store with tasks that run, changes it, and restores it. */
const restores = ({ backup, engine, restore }: Store) =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const start = Effect.gen(function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(engine, scope)
      const services = Context.add(context, Scope.Scope, scope)
      const within = <A, E>(effect: Effect.Effect<A, E, TaskEngine | TaskAdmin | SqlClient | Scope.Scope>) =>
        Effect.provideContext(effect, services)
      const sql = Context.get(context, SqlClient)
      yield* sql`CREATE TABLE IF NOT EXISTS orders (cakes INTEGER NOT NULL)`
      yield* within(work({
        bake: durable(() =>
          Effect.gen(function*() {
            yield* Step.run("flour", {}, () => Effect.sync(() => void log.push("flour")))
            yield* Step.run("book", { transactional: true }, () =>
              Effect.orDie(sql`INSERT INTO orders (cakes) VALUES (7)`))
            yield* Effect.orDie(ask("With rum?"))
            return "Baked"
          })
        ),
        fry: durable(() =>
          Effect.succeed("Fried")
        )
      }))
      return { within, sql, stop: Scope.close(scope, Exit.void) }
    })

    const before = yield* start
    const fried = yield* before.within(submit("fry"))
    yield* before.within(ended(fried.id))
    const baked = yield* before.within(submit("bake"))
    const { questions: [question] } = yield* before.within(until(baked.id, ({ questions }) => questions.length > 0))
    yield* backup
    const answer = ({ within }: typeof before) =>
      within(Effect.flatMap(TaskEngine, ({ answer }) => answer(baked.id, question!.key, { action: "accept" })))
    yield* answer(before)
    yield* before.within(ended(baked.id))
    const later = yield* before.within(submit("bake"))
    yield* before.within(until(later.id, ({ questions }) => questions.length > 0))
    yield* before.stop
    expect(log).toEqual(["flour", "flour"])

    yield* restore
    const after = yield* start
    const listed = yield* after.within(Effect.flatMap(TaskAdmin, ({ list }) => list({})))
    expect(listed.map(({ state: { id, status } }) => [id, status])).toEqual([
      [baked.id, "input_required"],
      [fried.id, "completed"]
    ])
    expect(yield* after.sql`SELECT cakes FROM orders`).toEqual([{ cakes: 7 }])
    yield* answer(after)
    expect(textOf(yield* after.within(ended(baked.id)))).toBe("Baked")
    // Its steps had ended before the backup.
    expect(log).toEqual(["flour", "flour"])
    expect(yield* after.sql`SELECT cakes FROM orders`).toEqual([{ cakes: 7 }])
    yield* after.stop
  })

describe("SQLite", () => {
  it.live("a backup of a running server is restored, and its tasks go on", () =>
    Effect.gen(function*() {
      const folder = yield* place
      const engine = SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "50 millis" })
      const backup = Effect.gen(function*() {
        expect(yield* shell(folder, commandsOf("skein tasks backup"))).toBe(
          "tasks-backup.db has all tasks of tasks.db.\n"
        )
        expect(statSync(join(folder, "tasks-backup.db")).mode & 0o777).toBe(0o600)
      })
      yield* restores({ engine, backup, restore: shell(folder, commandsOf("rm -f tasks.db")) })
    }).pipe(Effect.scoped))

  it.live("the commands for migrations run, and programs/tasksOperating.ts lists what has failed", () =>
    Effect.gen(function*() {
      const folder = yield* place
      const filename = join(folder, "tasks.db")
      const env = { SKEIN_TASKS: filename }
      writeFileSync(filename, "")
      const [dryRun = "", migrate = ""] = commandsOf("skein tasks migrate").split("\n")
      expect(yield* shell(folder, dryRun, env)).toBe("There are no tables, and this program needs version 13.\n")
      expect(yield* shell(folder, migrate, env)).toBe("There were no tables, and have version 13 now.\n")
      const context = yield* Layer.build(SqliteTasks.layer({ filename, migrate: false }))
      const { id } = yield* Effect.gen(function*() {
        yield* work({ bake: durable(() => Effect.die("no oven")) })
        const task = yield* submit("bake")
        yield* ended(task.id)
        return task
      }).pipe(Effect.provideContext(context))
      expect(yield* failures(filename)).toMatchObject([{ id, tool: "bake" }])
    }).pipe(Effect.scoped))

  it.live("the commands for many tasks change those of the guide", () =>
    Effect.gen(function*() {
      const folder = yield* place
      const filename = join(folder, "tasks.db")
      const [cancel = "", rerun = "", remove = ""] = commandsOf("skein tasks cancel --tool").split("\n")
      const context = yield* Layer.build(SqliteTasks.layer({ filename, pollInterval: "50 millis" }))
      yield* Effect.gen(function*() {
        const run = (command: string) => shell(folder, command, { SKEIN_TASKS: filename })
        yield* work({
          bake: durable(({ end }) => end === "ask" ? Effect.orDie(Effect.as(ask("Rum?"), "")) : Effect.die("no oven"))
        })
        const asking = yield* submit("bake", { args: { end: "ask" } })
        yield* until(asking.id, ({ status }) => status === "input_required")
        yield* ended((yield* submit("bake")).id)
        expect(yield* run(cancel)).toMatch(/bake +input_required +1\n\nWith --yes, 1 task would be cancelled/)
        expect(yield* run(rerun)).toBe("1 task is run again.\n")
        expect(yield* run(remove.replace(/#.*/, "|| true"))).toBe("")
        expect(yield* Effect.flatMap(TaskAdmin, ({ list }) => list({}))).toHaveLength(3)
      }).pipe(Effect.provideContext(context))
    }).pipe(Effect.scoped), 60_000)
})

const reason = installedBin === undefined ? "no folder has both postgres and pg_dump" : undefined

describe.skipIf(reason !== undefined && !required)(
  reason === undefined ? "PostgreSQL" : `PostgreSQL (${reason})`,
  () => {
    const server = Effect.acquireRelease(
      Effect.promise(() =>
        reason === undefined ? startPostgres({ bin: installedBin! }) : Promise.reject(new Error(reason))
      ),
      (postgres: Postgres) => Effect.promise(() => postgres.stop())
    )

    it.live("a backup of a running database is restored, and its tasks go on", () =>
      Effect.gen(function*() {
        const folder = yield* place
        const postgres = yield* server
        const url = yield* Effect.promise(() => postgres.createDatabase())
        const run = (command: string) => shell(folder, commandsOf(command), { DATABASE_URL: url })
        yield* restores({
          engine: PostgresTasks.layer({ url, leaseTimeout: "1 second" }),
          backup: run("pg_dump"),
          restore: run("pg_restore")
        })
      }).pipe(Effect.scoped), 60_000)
  }
)
