/**
 * The process that kills itself while its task begins again: the task writes an entry in its database in each round, and
 * calls the outside world with a key. After a restart it continues the same task.
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { appendFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { newTask, text } from "../engine/kit.ts"
import { dieAt } from "./commits.ts"

const { values } = parseArgs({
  options: {
    file: { type: "string", default: ":memory:" },
    outside: { type: "string", default: "/dev/null" },
    side: { type: "string" },
    commit: { type: "string", default: "" }
  }
})
const { file, outside, side } = values
dieAt(side === "before" || side === "after" ? { side, commit: Number(values.commit) } : undefined)

const rounds = 3

const body = ({ round }: JsonObject) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient
    yield* Step.run("call", {}, (key) => Effect.sync(() => appendFileSync(outside, `${String(round)} ${key}\n`)))
    yield* Step.run("book", { transactional: true }, () =>
      Effect.orDie(sql`INSERT INTO ledger (round) VALUES (${Number(round)})`))
    return Number(round) === rounds ? "done" : yield* Task.continueWith({ round: Number(round) + 1 })
  })

const process_ = Effect.gen(function*() {
  const engine = yield* TaskEngine
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS ledger (round INTEGER NOT NULL)`
  yield* engine.runTasks(() => ({
    durable: true,
    run: (request) =>
      Effect.map(
        Effect.suspend(() => body(request.params?.["arguments"] as JsonObject)),
        (value) => text(value)
      ).pipe(
        Effect.provideService(CurrentTask, request.task),
        Effect.provideService(McpRequest, request),
        Effect.provideService(SqlClient, sql)
      )
  }))
  const [made] = yield* engine.list(["ada"], { limit: 1 })
  const { id } = made ?? (yield* engine.submit(newTask("poll", { owner: "ada", args: { round: 1 } })))
  yield* Stream.runDrain(engine.watch(id))
})

await Effect.runPromise(Effect.scoped(Effect.provide(process_, SqliteTasks.layer({ filename: file }))))
process.exit(0)
