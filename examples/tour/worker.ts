/**
 * `npm run worker`: a worker of the tea house. It has the definitions of the server but no transport. It runs tasks of
 * the PostgreSQL database at `--postgres`, together with the other workers and servers, and logs their steps.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { parseArgs } from "node:util"
import { exitWithNpm } from "../exitWithNpm.ts"
import { logKitchenTo } from "./kitchenLog.ts"
import { TeaHouse } from "./server.ts"

const postgresUrl = (): string => {
  const usage = "usage: npm run worker -- --postgres <url>"
  try {
    const { postgres } = parseArgs({ options: { postgres: { type: "string" } } }).values
    if (postgres !== undefined) return postgres
    console.error(usage)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`)
  }
  return process.exit(2)
}

const Engine = PostgresTasks.layer({ url: postgresUrl() })

const Worker = TeaHouse.pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.acquireRelease(
    Effect.sync(() =>
      console.log(`Tea house worker running. Ctrl-C stops it gracefully, kill -9 ${process.pid} kills it.`)
    ),
    () => Effect.sync(() => console.log("Worker stopped. Other processes continue its tasks."))
  ))),
  Layer.provide([Engine, logKitchenTo(process.stdout)])
)

exitWithNpm()
NodeRuntime.runMain(
  Effect.catchTag(Layer.launch(Worker), "TaskError", ({ message }) =>
    Effect.sync(() => {
      console.error(message)
      process.exitCode = 1
    }))
)
