/**
 * Writes databases of version 0.1 with tasks in the middle. It was run once, with the packages of that version:
 *
 *     git worktree add --detach ../version01 v0.1.0
 *     cp -r packages/tasks/test/store/version01 ../version01/packages/tasks/test/store
 *     cd ../version01 && npm ci
 *     npx node --conditions=@skein/source packages/tasks/test/store/version01/generate.ts tasks.db postgres://postgres@127.0.0.1/tasks
 *     sqlite3 tasks.db .dump > sqlite.sql
 *     pg_dump --inserts --no-owner --no-comments postgres://postgres@127.0.0.1/tasks > postgres.sql
 *
 * Lines of comments and of settings were removed from the dumps. Each database has every task twice: with the owner
 * "plain", and encrypted with the owner "sealed".
 */
import * as Encryption from "@skein/tasks/Encryption"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import { get, handlers, newTask } from "../../engine/kit.ts"
import { inTheMiddle, key, makeTools } from "./tools.ts"

const sealed = Encryption.layer({ keys: [key], readPlaintext: true })
const options = { pollInterval: "50 millis", interruptTimeout: "200 millis" } as const

/** Runs the tasks of all tools up to the point where they hold. */
const run = (owner: string, hasPools: boolean) =>
  Effect.gen(function*() {
    const { answer, cancel, runTasks, submit } = yield* TaskEngine
    const sql = yield* SqlClient
    yield* sql`CREATE TABLE IF NOT EXISTS orders (name TEXT NOT NULL)`
    const { missing: _, ...tools } = makeTools({ holds: true, executed: [], sql })
    yield* runTasks(handlers(tools))
    const ids = new Map<string, string>()
    for (const tool of inTheMiddle) {
      const pool = hasPools && (tool === "steps" || tool === "race" || tool === "cancelled") ? "gpu" : "default"
      ids.set(tool, (yield* submit(newTask(tool, { owner, pool }))).id)
    }
    // The longest sleep that ends is one of six seconds.
    yield* Effect.sleep("4 seconds")
    const { questions: [question] } = (yield* get(ids.get("answered")!))!
    yield* answer(ids.get("answered")!, question!.key, { action: "accept", content: { text: "yes" } })
    for (const tool of ["cancelled", "cancelledBranches"]) yield* cancel(ids.get(tool)!)
    yield* Effect.sleep("6 seconds")
    return ids
  })

/** Answers a question while no worker runs the task. */
const answerLate = (ids: ReadonlyMap<string, string>) =>
  Effect.flatMap(
    TaskEngine,
    ({ answer }) => answer(ids.get("unobserved")!, "soon", { action: "accept", content: { text: "soon" } })
  )

const [filename, url] = process.argv.slice(2) as [string, string]
for (
  const [layer, hasPools] of [
    [SqliteTasks.layer({ filename, ...options }), false],
    [PostgresTasks.layer({ url, pools: ["default", "gpu"], ...options }), true]
  ] as const
) {
  const plainIds = await Effect.runPromise(Effect.scoped(Effect.provide(run("plain", hasPools), layer)))
  const encrypted = Layer.provide(layer, sealed)
  const sealedIds = await Effect.runPromise(Effect.scoped(Effect.provide(run("sealed", hasPools), encrypted)))
  for (const ids of [plainIds, sealedIds]) {
    await Effect.runPromise(Effect.provide(answerLate(ids), encrypted))
  }
}
process.exit()
