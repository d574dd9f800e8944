/** Servers with parents and children, on each of the stores. */
import * as McpServer from "@skein/server/McpServer"
import type { Catalog } from "@skein/server/Catalog"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Tasks from "@skein/tasks/Tasks"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sharedPostgres } from "../../../sql/test/postgres.ts"
import { settled } from "../engine/kit.ts"

export type Services = TaskEngine | TaskAdmin | TaskSchedules | SqlClient

export type Engine = Layer.Layer<Services, unknown>

/** A database; each use of the layer is another process on it. */
export interface Store {
  readonly name: "memory" | "SQLite" | "PostgreSQL"
  readonly engine: Effect.Effect<Engine, never, Scope.Scope>
}

const pollInterval = "1 second"

export const memory: Store = {
  name: "memory",
  engine: Effect.sync(() => MemoryTasks.layer({ pollInterval, checkCode: false }) as Engine)
}

export const sqlite: Store = {
  name: "SQLite",
  engine: Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-children-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) =>
      SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval, checkCode: false }) as unknown as Engine
  )
}

export const postgres: Store = {
  name: "PostgreSQL",
  engine: Effect.map(
    Effect.promise(async () => (await sharedPostgres()).createDatabase()),
    (url) => PostgresTasks.layer({ url, pollInterval, checkCode: false }) as unknown as Engine
  )
}

type Definitions = ReadonlyArray<Layer.Layer<never, unknown, Catalog>>

/** A process on a store. */
export interface Process {
  readonly stop: Effect.Effect<void>
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>
}

/** Looks at something until it is as expected. */
export const poll = <A>(look: Effect.Effect<A, unknown>, is: (value: A) => boolean): Effect.Effect<A, unknown> =>
  Effect.flatMap(
    look,
    (value) => is(value) ? Effect.succeed(value) : Effect.andThen(Effect.sleep(50), poll(look, is))
  )

/** A process with these tasks, until the scope or `stop` closes it. */
export const process = (
  engine: Engine,
  definitions: Definitions,
  options: Tasks.Options = {}
): Effect.Effect<Process, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const many = { live: 1_000_000, retained: 1_000_000 }
    const limits = { all: many, perTool: many, perClient: many }
    const layer = McpServer.layer(
      { name: "test", version: "1.0.0" },
      ...definitions as ReadonlyArray<never>,
      Tasks.layer({ limits, ...options }) as never
    ).pipe(Layer.provideMerge(engine as never))
    const built = Layer.build(layer as unknown as Layer.Layer<Services, unknown>)
    const context: Context.Context<Services> = yield* Scope.provide(built, scope)
    return {
      stop: Scope.close(scope, Exit.void),
      run: (effect) => Effect.provideContext(effect, context)
    }
  })

/** Waits for an effect while the clock of the test advances. */
export const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>, step = 2000): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    while (fiber.pollUnsafe() === undefined) {
      yield* settled
      if (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(step)
    }
    return yield* Fiber.join(fiber)
  })
