/** The programs of `tasks.md` and `tasks-machines.md` that are processes, on a file and on PostgreSQL. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { RemoteTask } from "@skein/client/RemoteTask"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as PgClient from "@skein/sql/PgClient"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describePostgres } from "../../packages/sql/test/describePostgres.ts"
import { BigOvens, Sealed } from "../programs/tasksMachines.ts"
import { Orders } from "../programs/tasksSteps.ts"
import { started } from "./process.ts"
import { launch } from "./runtime.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-guide-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const connect = (url: string) => Client.make(NodeHttp.transport({ url }))

const begin = (client: Client.Client, tool: string, args?: object) =>
  Effect.map(client.startTask(tool, args), (started) => {
    expect(started._tag).toBe("RemoteTask")
    return started as RemoteTask
  })

const textOf = (task: RemoteTask) =>
  Effect.map(task.result, ({ content: [first] }) => first?.type === "text" ? first.text : undefined)

const configured = (env: Readonly<Record<string, string>>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

describe("programs/tasksServed.ts", () => {
  it.live("continues a task after its process died, and locks the file against a second process", () =>
    Effect.gen(function*() {
      const cwd = yield* folder
      const first = yield* started("tasksServed", { cwd })
      const task = yield* begin(yield* connect(first.url), "bake", { cakes: 2 })
      const resting = Stream.filter(task.states, ({ statusMessage }) => statusMessage === "The dough rests")
      expect(Option.isSome(yield* Stream.runHead(resting))).toBe(true)
      const refused = launch("tasksServed", { cwd })
      expect(yield* Effect.promise(() => once(refused, "exit"))).toEqual([1, null])
      first.child.kill("SIGKILL")
      const second = yield* started("tasksServed", { cwd })
      const again = yield* (yield* connect(second.url)).resumeTask(task.handle)
      expect(Option.getOrThrow(yield* Stream.runHead(again.states)))
        .toMatchObject({ status: "working", statusMessage: "The dough rests" })
      yield* again.cancel
      expect((yield* Effect.flip(again.result)).reason._tag).toBe("TaskCancelled")
    }).pipe(Effect.scoped))
})

describePostgres("programs/tasksFront.ts, programs/tasksWorker.ts", (postgres) => {
  it.live("runs tasks of a front end on a worker, and those of a pool on its worker", () =>
    Effect.gen(function*() {
      const env = { DATABASE_URL: yield* Effect.promise(() => postgres().createDatabase()) }
      const front = yield* started("tasksFront", { env })
      const client = yield* connect(front.url)
      const baked = yield* begin(client, "bake")
      const roasted = yield* begin(client, "roast")
      const worker = yield* Effect.acquireRelease(
        Effect.sync(() => launch("tasksWorker", { env })),
        (child) => Effect.sync(() => void child.kill("SIGKILL"))
      )
      expect(yield* textOf(baked)).toBe(`Baked by ${worker.pid}`)
      yield* Layer.build(BigOvens).pipe(configured(env))
      expect(yield* textOf(roasted)).toBe(`Baked by ${process.pid}`)
      const left = new Promise((resolve) => worker.once("exit", resolve))
      worker.kill("SIGTERM")
      expect(yield* Effect.promise(() => left)).not.toBe(null)
    }).pipe(Effect.scoped))
})

describePostgres("programs/tasksSteps.ts", (postgres) => {
  it.live("creates its table while another worker creates it", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const connection = Effect.map(Layer.build(PgClient.layer({ url, maxConnections: 1 })), (context) => ({
        create: Effect.scoped(Effect.provideContext(Layer.build(Orders), context)),
        sql: Context.get(context, SqlClient.SqlClient)
      }))
      const one = yield* connection
      const other = yield* connection
      const { sql } = yield* connection
      const waits = sql<{ readonly count: number }>`SELECT COUNT(*) AS count FROM pg_locks WHERE NOT granted`
      const creating = yield* one.sql.withTransaction(Effect.gen(function*() {
        yield* one.create
        const creating = yield* Effect.forkChild(other.create)
        yield* Effect.repeat(waits, { until: ([row]) => Number(row!.count) > 0 })
        return creating
      }))
      yield* Fiber.join(creating)
      expect(yield* sql`SELECT id FROM orders`).toEqual([])
    }).pipe(Effect.scoped))
})

describe("programs/tasksMachines.ts", () => {
  it.live("stores no readable content, and does not start without its keys", () =>
    Effect.gen(function*() {
      const cwd = process.cwd()
      const there = yield* folder
      yield* Effect.acquireRelease(Effect.sync(() => process.chdir(there)), () => Effect.sync(() => process.chdir(cwd)))
      expect((yield* Effect.exit(Effect.scoped(Layer.build(Sealed).pipe(configured({})))))._tag).toBe("Failure")
      const text = yield* Effect.gen(function*() {
        const context = yield* Layer.build(Sealed).pipe(
          configured({ TASK_KEYS: `${"n".repeat(32)},${"o".repeat(32)}` })
        )
        const { serve } = Context.get(context, McpServer.McpServer)
        const client = yield* Client.make(InMemoryTransport.transport(serve))
        return yield* textOf(yield* begin(client, "bake"))
      }).pipe(Effect.scoped)
      expect(text).toBe(`Baked by ${process.pid}`)
      const kept = readdirSync(there).map((name) => readFileSync(join(there, name), "latin1")).join("")
      expect(kept).toContain("sealed:")
      expect(kept).not.toContain("Baked by")
    }).pipe(Effect.scoped))
})
