/**
 * Deployments of code, one after the other, on each store. A process with other code opens the store again.
 */
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { type Handler, work } from "./kit.ts"

/** Whether the tests of a store are skipped. */
export const isUnavailable = (store: string): boolean =>
  store === "PostgreSQL" && unavailable !== undefined && !required

/** The services of a deployment. */
export type Services = TaskEngine | TaskAdmin | SqlClient | Scope.Scope

type Engine = Context.Context<TaskEngine | TaskAdmin | SqlClient>

/** Runs an effect beside the workers of a deployment. */
export type Deploy = <A, E>(
  tools: Record<string, Handler>,
  effect: Effect.Effect<A, E, Services>
) => Effect.Effect<A, E>

/** Each deployment opens the engine again. */
const deployWith = (open: Effect.Effect<Engine, unknown, Scope.Scope>): Deploy => (tools, effect) =>
  Effect.scoped(
    Effect.flatMap(Effect.orDie(open), (engine) =>
      Effect.provideContext(Effect.scoped(Effect.andThen(work(tools), effect)), engine))
  )

const options = { pollInterval: 20, checkCode: false, undoTimeout: "1 minute" } as const

/** Deployments on each store. */
export const stores: ReadonlyArray<readonly [name: string, deploy: Effect.Effect<Deploy, unknown, Scope.Scope>]> = [
  ["memory", Effect.map(Layer.build(MemoryTasks.layer(options)), (engine) => deployWith(Effect.succeed(engine)))],
  [
    "SQLite",
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-engine-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      ),
      (folder) => deployWith(Layer.build(SqliteTasks.layer({ ...options, filename: join(folder, "tasks.db") })))
    )
  ],
  [
    "PostgreSQL",
    Effect.map(
      Effect.promise(() => sharedPostgres().then((server) => server.createDatabase())),
      (url) => deployWith(Layer.build(PostgresTasks.layer({ ...options, url })))
    )
  ]
]

/** Waits until an effect returns a value. */
export const eventually = <A, E, R>(effect: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    effect,
    (value) =>
      value === undefined
        ? Effect.andThen(Effect.sleep(20), Effect.suspend(() => eventually(effect)))
        : Effect.succeed(value)
  )

/** A task with its log. */
export const inspect = (id: string) => Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id))
export const inspected = (id: string) => Effect.map(inspect(id), (task) => task!)

/** Waits until a task has slept for a while, or asks. */
export const toWait = (id: string) =>
  eventually(Effect.map(inspected(id), ({ place }) => place._tag === "Waiting" ? true : undefined))

/** Waits until a task is settled. One that has expired is deleted then. */
export const toSettled = (id: string) =>
  eventually(Effect.map(inspect(id), (task) => task === undefined || task.place._tag === "Settled" ? true : undefined))

/** Waits until a task needs attention. */
export const toStop = (id: string) =>
  eventually(
    Effect.map(inspected(id), (task) => task.needsAttention && task.place._tag === "Waiting" ? task : undefined)
  )
