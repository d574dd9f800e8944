/**
 * A process of the tests: a worker that is not a server, or a front server that runs no tasks. It reports to its
 * parent when it is ready, and its URL.
 */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { describeFibersOnSignal } from "../../../../../scripts/fibers.ts"
import { census } from "../unfinishedTasks.ts"
import { limits, orders } from "../orders.ts"
import { world } from "./outsideServer.ts"
import { tools } from "./tools.ts"

/** The options of a process, as JSON. */
export interface Given extends Pick<PostgresTasks.Options, "leaseTimeout" | "idleInTransactionTimeout"> {
  readonly role: "worker" | "front"
  /** The URLs of the database and of the outside world. */
  readonly url: string
  readonly outside: string
  /** The port of a front server: 0 for a free one. */
  readonly port: number
  /** Milliseconds, at most, that a step of an order takes before and after it acts. */
  readonly pace: number
}

const { outside, pace, port, role, ...engine } = JSON.parse(process.argv[2]!) as Given

const server = McpServer.layer(
  { name: "orders", version: "1.0.0" },
  orders({ outside: world(outside), pace }),
  tools(outside),
  census,
  Tasks.layer({ limits })
).pipe(
  Layer.provide(
    PostgresTasks.layer({ ...engine, applicationName: `skein ${process.pid}`, runTasks: role === "worker" })
  )
)

const say = (message: object) => Effect.sync(() => void process.send?.(message))

describeFibersOnSignal()
// It ends with its parent.
process.on("disconnect", () => process.exit(1))
if (role === "front") NodeHttp.runMain(server, { port, onListening: say })
else {
  const life = Effect.andThen(Layer.build(server), Effect.andThen(say({}), Effect.never))
  NodeRuntime.runMain(Effect.provide(Effect.scoped(life), Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])))
}
