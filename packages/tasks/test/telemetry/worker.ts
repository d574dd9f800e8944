/** A worker that exports its metrics and spans. It reports to its parent when it is ready. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as McpServer from "@skein/server/McpServer"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTelemetry from "@skein/tasks/TaskTelemetry"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { defaults, TaskBounds } from "../../src/internal/base/bounds.ts"
import { otlp, tools } from "./brewery.ts"

const [url = "", collector = "", name = "", pool = "", folder = ""] = process.argv.slice(2)

const worker = McpServer.layer({ name: "brewery", version: "1.0.0" }, tools(folder), Tasks.layer()).pipe(
  Layer.provide(PostgresTasks.layer({ url, pools: [pool], leaseTimeout: "1 second" })),
  Layer.provide(TaskTelemetry.layer()),
  Layer.provide(otlp(collector, name)),
  Layer.provide(Layer.succeed(TaskBounds, { ...defaults, queueInterval: 200 }))
)

// It ends with its parent.
process.on("disconnect", () => process.exit(1))
const ready = Effect.sync(() => void process.send?.({}))
NodeRuntime.runMain(Effect.scoped(Effect.andThen(Layer.build(worker), Effect.andThen(ready, Effect.never))))
