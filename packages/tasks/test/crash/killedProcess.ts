/**
 * The process that kills itself at a chosen moment: it submits an order, waits for its end, and exits when nothing is
 * left to do. After a restart it continues the same order.
 */
import * as McpServer from "@skein/server/McpServer"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { isFinal } from "@skein/tasks/TaskState"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { parseArgs } from "node:util"
import { commits, dieAt } from "./commits.ts"
import { describeFibersOnSignal } from "../../../../scripts/fibers.ts"
import { asks, cancelled, kindOf, orders, tables } from "./orders.ts"
import { inFile } from "./outsideLog.ts"

const { values } = parseArgs({
  options: {
    file: { type: "string", default: ":memory:" },
    outside: { type: "string", default: "/dev/null" },
    order: { type: "string", default: "0" },
    // When it dies, and at which commit: a number, or a pattern of a statement.
    side: { type: "string" },
    commit: { type: "string", default: "" }
  }
})
const { file, outside } = values
const order = Number(values.order)
const kind = kindOf(order)
const owner = `customer ${order}`

if (values.side === "before" || values.side === "after") {
  const commit = /^\d+$/.test(values.commit) ? Number(values.commit) : new RegExp(values.commit, "s")
  dieAt({ side: values.side, commit })
} else dieAt(undefined)

const Orders = McpServer.layer(
  { name: "orders", version: "1.0.0" },
  Layer.unwrap(Effect.as(Effect.orDie(tables), orders({ outside: inFile(outside), pace: 1 }))),
  Tasks.layer()
).pipe(
  Layer.provideMerge(SqliteTasks.layer({ filename: file, pollInterval: "1 second" }))
)

const customer = Effect.gen(function*() {
  const engine = yield* TaskEngine
  const sql = yield* SqlClient
  // Its parcels have the same owner.
  const made = (yield* engine.list([owner], { limit: 100 })).find(({ tool }) => tool === "order")
  const { id } = made ?? (yield* engine.submit({
    tool: "order",
    args: { order },
    pool: "default",
    owner,
    caller: {
      revision: "2026-07-28",
      capabilities: { elicitation: { form: {} } },
      info: undefined,
      principal: undefined
    },
    ttlMs: null,
    pollIntervalMs: 1000,
    limits: { all: {}, client: {}, tool: {} }
  }))
  yield* Stream.runForEach(engine.watch(id), (state) => {
    const [question] = state.questions
    if (isFinal(state)) return Effect.void
    if (cancelled(kind)) {
      const place = kind === "cancelled while it moves" ? "Moves" : "Rests"
      return question !== undefined || state.statusMessage === place && !asks(kind) ? engine.cancel(id) : Effect.void
    }
    if (state.statusMessage === "Waits to be paid") {
      return Effect.andThen(
        engine.send(id, "paid", { receipt: "R1" }, { key: "paid" }),
        engine.sendAll("sent", id, { receipt: "R1" }, { key: "sent" })
      )
    }
    return question === undefined
      ? Effect.void
      : engine.answer(id, question.key, { action: "accept", content: { right: true } })
  })
  // The execution may still have compensations to run.
  while ((yield* sql`SELECT 1 FROM skein_task_queue WHERE task_id = ${id}`).length > 0) {
    yield* Effect.sleep("20 millis")
  }
})

describeFibersOnSignal()
process.on("disconnect", () => process.exit(1))
await Effect.runPromise(Effect.scoped(Effect.provide(customer, Orders)))
process.send?.({ commits }, () => process.exit(0))
