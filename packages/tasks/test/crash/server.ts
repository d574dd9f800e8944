/**
 * The process that is killed: a server of orders over HTTP, with its tasks in a SQLite file. It reports its URL to
 * its parent.
 */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { parseArgs } from "node:util"
import { describeFibersOnSignal } from "../../../../scripts/fibers.ts"
import { census } from "./unfinishedTasks.ts"
import { limits, orders, tables } from "./orders.ts"
import { inFile } from "./outsideLog.ts"

const { values } = parseArgs({
  options: {
    file: { type: "string", default: ":memory:" },
    outside: { type: "string", default: "/dev/null" },
    port: { type: "string", default: "0" },
    pace: { type: "string", default: "100" }
  }
})

const server = McpServer.layer(
  { name: "orders", version: "1.0.0" },
  Layer.unwrap(Effect.as(Effect.orDie(tables), orders({ outside: inFile(values.outside), pace: Number(values.pace) }))),
  census,
  Tasks.layer({ limits })
).pipe(Layer.provide(SqliteTasks.layer({ filename: values.file })))

describeFibersOnSignal()
// It ends with its parent.
process.on("disconnect", () => process.exit(1))
NodeHttp.runMain(server, {
  port: Number(values.port),
  onListening: ({ url }) => Effect.sync(() => void process.send?.({ url }))
})
