/**
 * `npm run worker`: a worker of the tea house. It has the definitions of the server but no transport. It runs tasks of
 * the PostgreSQL database at `--postgres`, together with the other workers and servers, and logs their steps.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { commandLine, usageError } from "../commandLine.ts"
import { logKitchenTo } from "./kitchenLog.ts"
import { TeaHouse } from "./server.ts"

const usage = "npm run worker -- --postgres <url>"
const { postgres = usageError(usage, "missing --postgres") } = commandLine(usage, {
  options: { postgres: { type: "string" } }
}).values

const Engine = PostgresTasks.layer({ url: postgres })

const Worker = TeaHouse.pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.acquireRelease(
    Effect.sync(() =>
      console.log(`Tea house worker running. Ctrl-C stops it gracefully, kill -9 ${process.pid} kills it.`)
    ),
    () => Effect.sync(() => console.log("Worker stopped. Other processes continue its tasks."))
  ))),
  Layer.provide([Engine, logKitchenTo(process.stdout)])
)

NodeRuntime.runMain(
  Effect.catchTag(Layer.launch(Worker), "TaskError", ({ message }) =>
    Effect.sync(() => {
      console.error(message)
      process.exitCode = 1
    }))
)
