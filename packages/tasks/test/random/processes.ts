/**
 * Processes on one file, one after the other. A process is shut down or killed: then the next one finds the file as
 * it was at that moment, even in the middle of a transaction.
 */
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { durable, settled, work } from "../engine/kit.ts"
import type { Program } from "./generate.ts"
import { interpret } from "./interpret.ts"
import { Life, type World } from "./world.ts"

const options = { pollInterval: "4 minutes", undoTimeout: "30 days" } as const

/** A process that runs the tasks of a program. */
export interface Process {
  readonly engine: TaskEngine["Service"]
  readonly sql: SqlClient
  readonly life: Life
  readonly scope: Scope.Closeable
}

/** The processes of one program. */
export interface Processes {
  readonly start: Effect.Effect<Process>
  readonly stop: (process: Process) => Effect.Effect<void>
  readonly kill: (process: Process) => Effect.Effect<void>
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-random-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Makes the processes of a program. */
export const processes = (program: Program, world: World): Effect.Effect<Processes, never, Scope.Scope> =>
  Effect.gen(function*() {
    const parent = yield* Effect.scope
    const directory = yield* folder
    let number = 0
    const file = () => join(directory, `${number}.db`)

    const start = Effect.gen(function*() {
      const scope = yield* Scope.fork(parent)
      const layer = program.memory ? MemoryTasks.layer(options) : SqliteTasks.layer({ filename: file(), ...options })
      const context = yield* Effect.orDie(Layer.buildWithScope(layer, scope))
      const engine = Context.get(context, TaskEngine)
      const sql = Context.get(context, SqlClient)
      // Some time passes between two processes.
      yield* TestClock.adjust(10)
      const life = new Life(world)
      yield* Effect.orDie(sql`CREATE TABLE IF NOT EXISTS ledger (name TEXT, key TEXT)`)
      const handler = durable(() => interpret(program, life, sql))
      yield* Scope.provide(Effect.provideContext(work({ random: handler }), context), scope)
      return { engine, sql, life, scope }
    })

    /** Steps may take time to end, on a clock that does not advance otherwise. */
    const stop = ({ scope }: Process) =>
      Effect.gen(function*() {
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* settled
        for (let second = 0; closing.pollUnsafe() === undefined; second++) {
          if (second > 100) return yield* Effect.die(new Error("A process does not stop"))
          yield* TestClock.adjust("1 second")
          yield* settled
        }
      })

    const kill = (process: Process) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const before = file()
        number++
        for (const part of ["", "-wal"]) if (existsSync(before + part)) copyFileSync(before + part, file() + part)
        process.life.die(now)
        return stop(process)
      })

    return { start, stop, kill }
  })
